# Kernels of an op under the roof of this machine, a mark a kernel and shape. Further settings:
#   data        FLOPs a byte, GFLOP/s; a block a mark
#   peak        GFLOP/s of multiply-adds on registers     fast, slow  GB/s of the fastest and the slowest copy
#   left, right, low   ends of the axes
set xlabel 'FLOPs a byte that the op must move'
set ylabel 'GFLOP/s'
set logscale xy
set xrange [left:right]
set yrange [low:2 * peak]
set samples 500
roof(x, rate) = x * rate < peak ? x * rate : peak
plot for [i=1:n] data index i-1 using 1:2 with points lc rgb paint(i) pt marks(i) ps 1.4 title name[i], \
     roof(x, slow) with lines lw 2 lc rgb '#777777' \
       title sprintf('copy %.3g GB/s, registers %.3g GFLOP/s', slow, peak), \
     for [i=1:slow < 0.95 * fast] roof(x, fast) with lines lw 2 dt 3 lc rgb '#777777' \
       title sprintf('copy in caches %.3g GB/s', fast)

# Tokens a second over the length, a line per model. Further settings:
#   data      length, tokens per second; a block per model
set xlabel 'length'
set ylabel 'tokens per second'
set logscale xy
set format y '%.0s%c'
set xtics (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
plot for [i=1:n] data index i-1 using 1:2 with linespoints lw 2.2 lc rgb paint(i) dt dashes(i) \
         pt marks(i) ps 0.8 title name[i]

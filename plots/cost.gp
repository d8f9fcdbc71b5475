# Accuracy against what a model costs, a mark a model. Further settings:
#   data      cost, accuracy, its low and high; a block per model     xtitle, metric    of the axes
#   chance    accuracy of guessing
set xlabel xtitle
set ylabel metric noenhanced
set logscale x
set format x '%.0s%c'
set yrange [-0.02:1.05]
set ytics 0, 0.1, 1
set format y '%.1f'
set offsets graph 0.05, graph 0.05, 0, 0
plot for [i=1:n] data index i-1 using 1:2:3:4 with yerrorbars lc rgb paint(i) pt marks(i) ps 1.3 lw 1.5 title name[i], \
     chance with lines lw 1.2 lc rgb '#777777' dt 3 title sprintf('chance %.3f', chance)

# Test accuracy by length or position, one line per model. Further settings:
#   data      length, accuracy, its interval; a block per model; chance: accuracy of guessing
#   metric    what the axis shows                    trained    longest length in training
#   xtitle    what the axis below shows
set xlabel xtitle
set ylabel metric noenhanced
set yrange [-0.02:1.02]
set ytics 0.1
set format x '%.10g'
set xrange [0:*]
set format y '%.1f'
set arrow 1 from trained, graph 0 to trained, graph 1 nohead lc rgb '#777777' dt 2
set label 3 ' longest in training' at trained, graph 0.02 left noenhanced textcolor rgb '#555555'
plot for [i=1:n] data index i-1 using 1:2:3:4 with yerrorbars lw 0.8 lc rgb paint(i) pt 0 notitle, \
     for [i=1:n] data index i-1 using 1:2 with linespoints lw 2.2 lc rgb paint(i) dt dashes(i) \
         pt marks(i) ps 0.7 title name[i], \
     chance with lines lw 1.2 lc rgb '#777777' dt 3 title sprintf('chance %.3f', chance)

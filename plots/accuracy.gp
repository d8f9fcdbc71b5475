# Validation accuracy or loss over training: seeds as thin lines, their mean as a thick one. Further settings:
#   data              x, y; a block per model, its mean; behind them one per seed
#   m, of[1..m]       thin lines, and which model each is of      every          points between two marks
#   xtitle, ytitle    of the axes                                 logx, logy     1: logarithmic
#   chance            accuracy of guessing, NaN: none             published[i]   a paper's test accuracy, or NaN
#   some_published    1: one of those is a number             published_title   what these are
#   n_empty, empty[1..n_empty]    models without a point, of which the legend alone tells
set xlabel xtitle
set ylabel ytitle noenhanced
if (logx) { set logscale x } else { set format x '%.10g'; set xrange [0:*] }
if (logy) { set logscale y }
if (chance == chance && !logy) { set yrange [-0.02:1.02]; set ytics 0.1; set format y '%.1f' }
# A loop over none would leave a title without a line in the picture.
legend_of_empty = n_empty == 0 ? "" : "for [k=1:n_empty] keyentry with linespoints lw 2.4 lc rgb paint(empty[k]) " . \
                  "dt dashes(empty[k]) pt marks(empty[k]) ps 0.8 title name[empty[k]], "
plot for [j=1:m] data index n+j-1 using 1:2 with lines lw 0.7 lc rgb paint(of[j]) dt dashes(of[j]) notitle, \
     for [i=1:n] published[i] with lines lw 1.1 lc rgb paint(i) dt 3 notitle, \
     for [i=1:n] data index i-1 using 1:2 with linespoints lw 2.4 lc rgb paint(i) dt dashes(i) \
         pt marks(i) ps 0.8 pi every title name[i], \
     @legend_of_empty \
     (some_published ? 1/0 : NaN) with lines lw 1.1 lc rgb '#444444' dt 3 \
         title (some_published ? published_title : ''), \
     chance with lines lw 1.2 lc rgb '#777777' dt 3 title (chance == chance ? sprintf('chance %.3f', chance) : '')

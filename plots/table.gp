# The table as bars: ours beside the published number. `lrnn plot table` puts the settings in front of this file:
#   svg, png          where to write            heading, subheading   the title's two lines
#   data              the numbers, tab-separated: place, val-mean, its low and high, best-of-grid, published
#   n, name[1..n]     models                    interval              what the thin lines are
#   metric            what the axis shows       best                  name of the second bars
set encoding utf8
set datafile separator "\t"
set datafile missing "NaN"
set tmargin 5
set label 1 heading at graph 0, graph 1.09 left noenhanced font ',17'
set label 2 subheading at graph 0, graph 1.04 left noenhanced textcolor rgb '#555555'
set ylabel metric noenhanced
set yrange [0:1.12]
set ytics 0, 0.1, 1
set xrange [0.4:n + 0.6]
if (n > 3) { set xtics rotate by -30 noenhanced scale 0 () } else { set xtics norotate noenhanced scale 0 () }
# The label of a tic is a format: a percent sign in a name is doubled.
plain(s) = strstrt(s, '%') == 0 ? s : s[1:strstrt(s, '%')] . '%' . plain(s[strstrt(s, '%') + 1:*])
do for [i=1:n] { set xtics add (plain(name[i]) i) }
set grid ytics lt 1 lc rgb '#dddddd' lw 1
set format y '%.1f'
set border 3 lc rgb '#444444'
set tics nomirror
set key outside right top Left reverse noenhanced samplen 1.5 spacing 1.3
set style fill solid 1.0 noborder
set boxwidth 0.25
turn = n > 5 ? 90 : 0
lift = n > 5 ? 0.05 : 0.025
# Values stand above their bar, and above the interval's upper end.
above(low, high) = (high > low ? high : low) + lift
set terminal svg size 1200,750 noenhanced font 'DejaVu Sans,14' background '#ffffff'
set output svg
plot data using ($1 - 0.27):2 with boxes lc rgb '#0072B2' title 'val-mean', \
     data using 1:5 with boxes lc rgb '#E69F00' title best, \
     data using ($1 + 0.27):6 with boxes lc rgb '#999999' title 'published', \
     data using ($1 - 0.27):3:(0):($4 - $3) with vectors nohead lc rgb '#000000' lw 2 title interval, \
     data using ($1 - 0.27):(above($2, $4)):(sprintf('%.3f', $2)) with labels font ',10' rotate by turn notitle, \
     data using 1:(above($5, $5)):(sprintf('%.3f', $5)) with labels font ',10' rotate by turn notitle, \
     data using ($1 + 0.27):(above($6, $6)):(sprintf('%.3f', $6)) with labels font ',10' rotate by turn notitle
set terminal pngcairo size 1200,750 noenhanced font 'DejaVu Sans,12' background '#ffffff'
set output png
replot
set output

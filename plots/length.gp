# Test accuracy by length, one line a model. `lrnn plot length` puts the settings in front of this file:
#   svg, png          where to write            heading, subheading   the title's two lines
#   data              the numbers, tab-separated: length, accuracy; one block a model
#   n, name[1..n]     models                    chance                accuracy of guessing
#   metric            what the axis shows       trained               longest length in training
set encoding utf8
set datafile separator "\t"
set datafile missing "NaN"
# Okabe and Ito's colours, told apart by every kind of colour vision; the eighth model starts over with dashes.
array colour[7] = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#000000']
paint(i) = colour[(i - 1) % 7 + 1]
dashes(i) = 1 + (i - 1) / 7
set tmargin 5
set label 1 heading at graph 0, graph 1.09 left noenhanced font ',17'
set label 2 subheading at graph 0, graph 1.04 left noenhanced textcolor rgb '#555555'
set xlabel 'length'
set ylabel metric noenhanced
set yrange [-0.02:1.02]
set ytics 0.1
set xtics nomirror
set format x '%.0f'
set xrange [0:*]
set grid ytics lt 1 lc rgb '#dddddd' lw 1
set format y '%.1f'
set border 3 lc rgb '#444444'
set tics nomirror
set key outside right top Left reverse noenhanced samplen 2.5 spacing 1.15
set arrow 1 from trained, graph 0 to trained, graph 1 nohead lc rgb '#777777' dt 2
set label 3 ' longest in training' at trained, graph 0.02 left noenhanced textcolor rgb '#555555'
# The second terminal draws what the first drew.
set terminal svg size 1200,750 noenhanced font 'DejaVu Sans,14' background '#ffffff'
set output svg
plot for [i=1:n] data index i-1 using 1:2 with linespoints lw 2.2 lc rgb paint(i) dt dashes(i) \
         pt 7 ps 0.5 title name[i], \
     chance with lines lw 1.2 lc rgb '#777777' dt 3 title sprintf('chance %.3f', chance)
set terminal pngcairo size 1200,750 noenhanced font 'DejaVu Sans,12' background '#ffffff'
set output png
replot
set output

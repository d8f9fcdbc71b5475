# The table as bars, which lie so that names and numbers stand upright. Further settings:
#   data      place, our number, its low and high, best-of-grid, published
#   estimate  how that number is made
#   metric    what the axis shows           interval    what the thin lines are
#   best      name of the second bars       bests       1: there are several runs to take a best of
#   some_published    1: a paper has a number
set xlabel metric noenhanced
# Beside wide names the title begins at the picture's edge.
if (longest > 24) { set label 1 at screen 0.01, screen 1; set label 2 at screen 0.01, screen 1 }
set xrange [0:1.16]
set xtics 0, 0.1, 1
set format x '%.1f'
set yrange [n + 0.6:0.4]
set ytics scale 0 ()
# Names that would take a third of the width stand above their bars.
if (below) { unset ytics }
if (below) { do for [i=1:n] { set label 10+i name[i] at graph 0, first i - 0.36 left offset 0.3,0 noenhanced } }
if (!below) { do for [i=1:n] { set ytics add (plain(name[i]) i) } }
unset grid
set grid xtics lt 1 lc rgb '#dddddd' lw 1
set bmargin 6
set key outside bottom center horizontal Left reverse noenhanced samplen 1.5 maxcols 4 maxrows 1
set style fill solid 1.0 border rgb '#333333'
set style line 1 lc rgb '#0072B2'
bars = 1 + bests + some_published
highest = below ? -0.22 : -0.4
h = (0.4 - highest) / bars
top(k) = highest + k * h
# A value stands behind its bar, and behind the interval's upper end.
behind(value, high) = (high > value ? high : value) + 0.008
middle(k) = top(k) + h / 2
plot data using (0):1:(0):2:($1 + top(0)):($1 + top(1)) with boxxyerror lc rgb '#0072B2' title estimate, \
     data using (0):1:(0):(bests ? $5 : NaN):($1 + top(1)):($1 + top(2)) with boxxyerror lc rgb '#E69F00' \
         fs pattern 4 border rgb '#333333' title (bests ? best : ''), \
     data using (0):1:(0):(some_published ? $6 : NaN):($1 + top(1 + bests)):($1 + top(2 + bests)) \
         with boxxyerror lc rgb '#bbbbbb' title (some_published ? 'published' : ''), \
     data using 3:($1 + middle(0)):($4 - $3):(0) with vectors nohead lc rgb '#000000' lw 2 \
         title (strlen(interval) ? interval : ''), \
     data using (behind($2, $4)):($1 + middle(0)):(sprintf('%.3f', $2)) with labels left font ',10' notitle, \
     data using (bests ? behind($5, $5) : NaN):($1 + middle(1)):(sprintf('%.3f', $5)) with labels left font ',10' \
         notitle, \
     data using (some_published ? behind($6, $6) : NaN):($1 + middle(1 + bests)):(sprintf('%.3f', $6)) \
         with labels left font ',10' notitle

# A number of models as colour: a row per model, or a model and learning rate; a column per seed, or a position. Further
# settings:
#   data      column, row, value (NaN: no colour), its text
#   columns, column[1..columns]   rows, row[1..rows]: what stands beside them
#   metric    what the colour shows       xtitle   what a column is
set xlabel xtitle
# Names are wide: the title begins at the picture's edge instead of the map's.
set label 1 at screen 0.01, screen 1
set label 2 at screen 0.01, screen 1
set cblabel metric noenhanced
set xrange [0.5:columns + 0.5]
set yrange [rows + 0.5:0.5]
set cbrange [0:1]
set xtics scale 0 ()
do for [i=1:columns:1 + columns / 25] { set xtics add (plain(column[i]) i) }
set ytics scale 0 ()
do for [i=1:rows] { set ytics add (plain(row[i]) i) }
unset grid
unset key
# Dark to light and blue to yellow, so that it reads in grey as well.
set palette defined (0 '#440154', 0.25 '#3b528b', 0.5 '#21918c', 0.75 '#5ec962', 1 '#fde725')
set style fill solid 1.0 noborder
ink(v) = v < 0.6 ? 0xffffff : 0x000000
plot data using 1:2:($1 - 0.48):($1 + 0.48):($2 - 0.46):($2 + 0.46):3 with boxxyerror lc palette, \
     data using 1:2:4:(ink($3)) with labels tc rgb variable font ',10'

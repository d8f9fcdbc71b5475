# What every plot begins with. In front of it stand the settings:
#   heading, subheading   the title's two lines
#   feet, foot[1..feet]   lines below the picture
#   data                  the numbers, tab-separated; blocks that belong to something are numbered from 0
#   n, name[1..n]         models
#   longest               characters of the longest of the names
#   below                 1: they would take a third of the width beside the plot, and stand below it
set encoding utf8
set datafile separator "\t"
set datafile missing "NaN"
# Okabe and Ito's colours, told apart by every kind of colour vision; dashes and marks tell them apart in grey.
array colour[7] = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#000000']
array mark[8] = [7, 5, 9, 11, 13, 6, 4, 8]
array dash[4] = [1, 2, 4, 5]
paint(i) = colour[(i - 1) % 7 + 1]
marks(i) = mark[(i - 1) % 8 + 1]
dashes(i) = dash[(i - 1) % 4 + 1]
set tmargin 5
# A line of the title gets a smaller font where it is longer than its room, and at 9 points its end is left out.
points(s, most, room) = strlen(s) <= room ? most : strlen(s) * 9 > most * room ? 9 : most * room / strlen(s)
fitting(s, most, room) = strlen(s) * 9 <= most * room ? s : s[1:most * room / 9 - 4] . ' ...'
set label 1 fitting(heading, 17, 90) at screen 0.06, screen 1 left offset 0,-1.4 noenhanced \
    font sprintf(',%d', points(heading, 17, 90))
set label 2 fitting(subheading, 12, 125) at screen 0.06, screen 1 left offset 0,-3 noenhanced \
    textcolor rgb '#555555' font sprintf(',%d', points(subheading, 12, 125))
set size 1, 1 - 0.025 * feet
set origin 0, 0.025 * feet
do for [i=1:feet] { \
    set label 2+i foot[i] at screen 0.01, screen 0.025 * (feet - i + 0.5) left noenhanced \
    textcolor rgb '#555555' font ',10' }
set grid ytics lt 1 lc rgb '#dddddd' lw 1
set border 3 lc rgb '#444444'
set tics nomirror
set key outside right top Left reverse noenhanced samplen 3 spacing 1.1 maxrows 200
if (below) { set key outside below center vertical maxrows auto }
# The label of a tic is a format: a percent sign in a name is doubled.
plain(s) = strstrt(s, '%') == 0 ? s : s[1:strstrt(s, '%')] . '%' . plain(s[strstrt(s, '%') + 1:*])

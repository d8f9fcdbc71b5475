# torture_table.awk - the table of attacks in docs/trust.md from results/torture.csv; all fuzzers are one row.
#
#     awk -f tools/torture_table.awk results/torture.csv
function number(n,   text, i) {
    text = sprintf("%d", n)
    for (i = length(text) - 3; i > 0; i -= 3) text = substr(text, 1, i) " " substr(text, i + 1)
    return text
}
function row(promise, what, cases, all, lost) {
    printf "| %s | %s | %s%s | %d |\n", promise, what, number(cases),
           (all + 0 > cases + 0 ? " of " number(all) : ""), lost
}
# The cells of a line, some of them in quotes.
function read_cells(line,   n) {
    for (n = 1; line != ""; n++) {
        if (match(line, /^"[^"]*"/)) cell[n] = substr(line, 2, RLENGTH - 2)
        else { match(line, /^[^,]*/); cell[n] = substr(line, 1, RLENGTH) }
        line = substr(line, RLENGTH + 2)
    }
}
NR == 1 {
    print "| promise | attack | cases | cases that fail |"
    print "|:--|:--|--:|--:|"
    next
}
{ read_cells($0) }
cell[1] ~ /^fuzz-/ { fuzzers++; runs += cell[3]; seconds += cell[8]; lost += cell[6]; next }
{ row(cell[12], cell[2], cell[3], cell[4], cell[6]) }
END {
    if (fuzzers) row("P7", fuzzers " fuzzers make input files for " int(seconds / 60) " minutes", runs, 0, lost)
}

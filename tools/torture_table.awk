# torture_table.awk - the table of attacks in docs/trust.md: cases from results/torture.csv, and from results/faults.csv
# the faults of the program that an attack found, each mended by a commit and held by a test. All fuzzers are one row,
# and so are the faults that no attack found (`review`).
#
#     awk -f tools/torture_table.awk results/faults.csv results/torture.csv
function number(n,   text, i) {
    text = sprintf("%d", n)
    for (i = length(text) - 3; i > 0; i -= 3) text = substr(text, 1, i) " " substr(text, i + 1)
    return text
}
# Prints the row of an exercise and takes its faults.
function row(exercise, promise, what, cases, all, lost) {
    printf "| %s | %s | %s%s | %d | %d |\n", promise, what, number(cases),
           (all + 0 > cases + 0 ? " of " number(all) : ""), lost, faults[exercise]
    delete faults[exercise]
}
# The cells of a line, some of them in quotes.
function read_cells(line,   n) {
    for (n = 1; line != ""; n++) {
        if (match(line, /^"[^"]*"/)) cell[n] = substr(line, 2, RLENGTH - 2)
        else { match(line, /^[^,]*/); cell[n] = substr(line, 1, RLENGTH) }
        line = substr(line, RLENGTH + 2)
    }
    return n - 1
}
function fail(text) {
    printf "torture_table.awk: %s line %d: %s\n", FILENAME, FNR, text > "/dev/stderr"
    failed = 1
    exit 1
}
FNR == 1 { next }
FNR == NR {
    if (read_cells($0) != 5 || cell[4] !~ /^[a-z0-9_]+: [a-z0-9_]+$/ || cell[5] !~ /^[0-9a-f]+$/)
        fail("expected exercise,promise,fault,SUITE: TEST,COMMIT")
    faults[cell[1]]++
    next
}
!rows++ {
    print "| promise | attack | cases | cases that fail | faults found and mended |"
    print "|:--|:--|--:|--:|--:|"
}
{ read_cells($0) }
cell[1] ~ /^fuzz-/ { fuzzers++; runs += cell[3]; seconds += cell[8]; lost += cell[6]; next }
{ row(cell[1], cell[12], cell[2], cell[3], cell[4], cell[6]) }
END {
    if (failed) exit 1
    if (fuzzers) row("fuzz", "P7", fuzzers " fuzzers make input files for " int(seconds / 60) " minutes", runs, 0, lost)
    printf "| | reviews and trials by hand | | | %d |\n", faults["review"]
    delete faults["review"]
    for (exercise in faults) fail("there is no exercise " exercise)
}

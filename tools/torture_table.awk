# torture_table.awk - the table of attacks in docs/trust.md from results/torture.csv: all fuzzers are one row. `found`
# are the faults of the program that the attack has found, each with a test; `left` the cases of this table that failed.
function number(n,   text) {
    text = sprintf("%d", n)
    while (match(text, /[0-9][0-9][0-9][0-9]($| )/)) text = substr(text, 1, RSTART) " " substr(text, RSTART + 1)
    return text
}
function row(promise, what, cases, all, lost, found) {
    printf "| %s | %s | %s%s | %d | %d | %d |\n", promise, what, number(cases), all > cases ? " of " number(all) : "", found, found, lost
}
# Fields of one line, of which some are in quotes.
function split_csv(line,   n, text) {
    for (n = 1; line != ""; n++) {
        if (match(line, /^"[^"]*"/)) text = substr(line, 2, RLENGTH - 2)
        else { match(line, /^[^,]*/); text = substr(line, 1, RLENGTH) }
        field[n] = text
        line = substr(line, RLENGTH + 2)
    }
}
NR == 1 {
    print "| promise | attack | cases | faults found | mended | cases that fail |"
    print "|:--|:--|--:|--:|--:|--:|"
    next
}
{ split_csv($0) }
field[1] ~ /^fuzz-/ { fuzzers++; runs += field[3]; seconds += field[8]; lost += field[6]; next }
{ row(field[12], field[2], field[3], field[4], field[6], field[13]) }
END { if (fuzzers) row("P7", "bytes that " fuzzers " fuzzers make, in " int(seconds / 60) " minutes", runs, 0, lost, 0) }

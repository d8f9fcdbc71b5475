# examples_table.awk - the rows that `lrnn perf data TASK --out FOLDER` wrote into FOLDER/perf.csv as a Markdown table:
# a row a task, the latest measurement of each, and below it the commits and machines they are of. No row is no table
# yet.
#
#     awk -f tools/examples_table.awk results/baseline/perf.csv

# The line's cells into cell[1..]; one with a comma stands in quotes, as tasks with several options do.
function read_cells(line,   n, end) {
    for (n = 1; ; n++) {
        if (substr(line, 1, 1) == "\"") {
            end = index(substr(line, 2), "\"")
            cell[n] = substr(line, 2, end - 1)
            line = substr(line, end + 2)
        } else {
            end = index(line ",", ",")
            cell[n] = substr(line, 1, end - 1)
            line = substr(line, end)
        }
        if (line == "") return
        line = substr(line, 2)
    }
}
{ read_cells($0) }
NR == 1 { for (i in cell) column[cell[i]] = i; next }
cell[column["bench"]] == "examples" {
    split(cell[column["shape"]], part, " ")
    pass = cell[column["pass"]]
    task = "`" part[1] "`" (pass == "train" ? "" : ", " pass)
    if (!(task in known)) { known[task] = 1; tasks[++n_tasks] = task }
    quiet = cell[column["quiet"]] == 1 ? "" : "!"
    round = substr(part[2], 9)
    examples[task] = sprintf("%.0f", round / cell[column["time_ns"]] * 1e9) quiet
    tokens[task] = sprintf("%.3gM", cell[column["tok_per_s"]] / 1e6) quiet
    from[task] = substr(cell[column["commit"]], 1, 12) " on machine " cell[column["machine_id"]] ", " \
        substr(cell[column["started"]], 1, 10)
}
END {
    print "| task | examples/s | tokens/s |"
    print "|:--|--:|--:|"
    for (i = 1; i <= n_tasks; i++) {
        t = tasks[i]
        printf "| %s | %s | %s |\n", t, examples[t], tokens[t]
        if (examples[t] ~ /!/) loud = 1
        if (!(from[t] in told)) { told[from[t]] = 1; sources[++n_sources] = from[t] }
    }
    if (!n_tasks) { printf "\n- Nothing has been measured yet.\n"; exit }
    printf "\n- Median over rounds of %s examples of the time that the one thread ran.\n", round
    for (k = 1; k <= n_sources; k++) printf "- Of commit %s.\n", sources[k]
    if (loud)
        print "- ! the machine was not quiet: other processes had more than 3 % of the cores, or rounds varied."
}

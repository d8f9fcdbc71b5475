# readers_table.awk - the rows that `lrnn perf data NAME --files FILES --out FOLDER` wrote into FOLDER/perf.csv as a
# Markdown table: a row a set of files, the latest measurement of each, and below it the commits and machines they are
# of.
#
#     awk -f tools/readers_table.awk results/baseline/perf.csv
#
# These rows have no quoted cells.
BEGIN { FS = "," }
NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
$column["bench"] == "files" {
    shape = $column["shape"]
    split(shape, part, " ")
    if (!(shape in known)) { known[shape] = 1; shapes[++n_shapes] = shape }
    name[shape] = part[1]
    files[shape] = substr(part[2], 6)
    bytes[shape] = substr(part[3], 6)
    unpacked[shape] = substr(part[4], 9)
    time[shape, $column["pass"]] = $column["time_ns"]
    mark[shape] = $column["quiet"] == 1 ? "" : "!"
    from[shape] = substr($column["commit"], 1, 12) " on machine " $column["machine_id"] ", " \
        substr($column["started"], 1, 10)
}
# MB/s of so many bytes in a pass.
function rate(shape, of, pass) { return sprintf("%.0f", of[shape] / time[shape, pass] * 1000) mark[shape] }
END {
    if (!n_shapes) {
        print "readers_table.awk: no row of `lrnn perf data --files` in the file" > "/dev/stderr"
        exit 1
    }
    print "| files | number | MB | MB/s | unpacked, MB/s | zlib alone, unpacked, MB/s |"
    print "|:--|--:|--:|--:|--:|--:|"
    for (i = 1; i <= n_shapes; i++) {
        s = shapes[i]
        packed = (s, "unpack") in time
        printf "| `%s`%s | %d | %.1f | %s |", name[s], packed ? ", gzip" : "", files[s], bytes[s] / 1e6, \
            rate(s, bytes, "read")
        printf packed ? " " rate(s, unpacked, "read") " | " rate(s, unpacked, "unpack") " |\n" : " | |\n"
        if (mark[s] != "") loud = 1
        if (!(from[s] in told)) { told[from[s]] = 1; sources[++n_sources] = from[s] }
    }
    printf "\n- Median over passes of the time that the one thread ran.\n"
    for (k = 1; k <= n_sources; k++) printf "- Of commit %s.\n", sources[k]
    if (loud)
        print "- ! the machine was not quiet: other processes had more than 3 % of the cores, or passes varied."
}

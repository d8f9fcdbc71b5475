# layers_table.awk - the rows that `lrnn perf layers --out FOLDER` wrote into FOLDER/perf.csv as a Markdown table: a row
# a mixer, a column a length, the latest measurement of each; the commits and machines that they are of below it.
#
#     awk -f tools/layers_table.awk results/baseline/perf.csv
#
# These rows have no quoted cells.
BEGIN { FS = "," }
NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
$column["bench"] == "layer" {
    split($column["shape"], part, " ")
    mixer = part[1]
    length_of = substr(part[3], 2)
    if (!(mixer in known)) { known[mixer] = 1; mixers[++n_mixers] = mixer }
    if (!(length_of in seen)) { seen[length_of] = 1; lengths[++n_lengths] = length_of }
    batch = substr(part[2], 2)
    width = substr(part[4], 2)
    params[mixer] = substr(part[5], 7)
    speed[mixer, length_of] = sprintf("%.3gk", $column["tok_per_s"] / 1000) ($column["quiet"] == 1 ? "" : "!")
    if ($column["quiet"] != 1) loud = 1
    from[mixer, length_of] = substr($column["commit"], 1, 12) " on machine " $column["machine_id"] ", " \
        substr($column["started"], 1, 10) ", " $column["dtype"] ", " $column["threads"] " thread" \
        ($column["threads"] == 1 ? "" : "s")
}
END {
    if (!n_mixers) { print "layers_table.awk: no row of `lrnn perf layers` in the file" > "/dev/stderr"; exit 1 }
    printf "| mixer | parameters |"
    for (t = 1; t <= n_lengths; t++) printf " T = %s |", lengths[t]
    printf "\n|:--|--:|"
    for (t = 1; t <= n_lengths; t++) printf "--:|"
    printf "\n"
    for (m = 1; m <= n_mixers; m++) {
        printf "| %s | %s |", mixers[m], params[mixers[m]]
        for (t = 1; t <= n_lengths; t++) {
            key = mixers[m] SUBSEP lengths[t]
            printf " %s |", key in speed ? speed[key] : "-"
            if (key in from && !(from[key] in told)) { told[from[key]] = 1; sources[++n_sources] = from[key] }
        }
        printf "\n"
    }
    printf "\n- D = %s, batch %s, default options: tokens a second, median. A tree's tokens are its leaves.\n", width,
        batch
    for (s = 1; s <= n_sources; s++) printf "- Of commit %s.\n", sources[s]
    if (loud)
        print "- ! the machine was not quiet: other processes had more than 3 % of the cores, or steps varied."
}

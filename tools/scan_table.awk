# scan_table.awk - the lines that tools/scan_rates.sh wrote as a Markdown table: a row a kernel and shape, its time,
# bytes a second and its ratio to the larger of its byte and FLOP floors, with one thread and with two.
#
#     awk -f tools/scan_table.awk results/baseline/scans.jsonl
function text(key) {
    return match($0, "\"" key "\":\"[^\"]*\"") ? substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 5) : ""
}
function number(key) {
    return match($0, "\"" key "\":[-+.0-9e]+") ? substr($0, RSTART + length(key) + 3) + 0 : 0
}
BEGIN {
    print "| kernel | shape | threads | forward, ms | GB/s | backward, ms | GB/s | both over floor |"
    print "|:--|:--|--:|--:|--:|--:|--:|--:|"
}
text("pass") == "forward" { forward = sprintf("%.2f | %.1f", number("median_ms"), number("gb_per_s")) }
text("pass") == "backward" { backward = sprintf("%.2f | %.1f", number("median_ms"), number("gb_per_s")) }
text("pass") == "both" {
    shape = text("shape")
    sub(/ gate=.*/, "", shape)
    printf "| `%s` | %s | %d | %s | %s | %.2f (%s) |\n", text("kernel"), shape, number("threads"), forward, backward, \
        number("ratio"), text("bound")
    from = text("commit") " on machine " text("machine")
    if (!(from in told)) { told[from] = 1; sources[++n_sources] = from }
}
END {
    printf "\n- Times: medians. GB/s: each tensor read or written once, in the best time. Over floor: the best time "
    print "over the larger of the floors of bytes, at the rate of a copy, and of FLOPs, both of the same run."
    for (i = 1; i <= n_sources; i++) print "- Of commit " sources[i] "."
}

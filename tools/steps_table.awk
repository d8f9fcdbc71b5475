# steps_table.awk - the lines that tools/step_profiles.sh wrote as a Markdown table: a row a training step, its median
# and the floor of its products, then the time of its linear maps, of the op that loses most beside them and of all
# others, each with its own floor. Lines of steps side by side are tools/speedup_table.awk's.
#
#     awk -f tools/steps_table.awk results/baseline/steps.jsonl
#
# Values hold no commas and no quotes but those of JSON.
function text(key) {
    return match($0, "\"" key "\":\"[^\"]*\"") ? substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 5) : ""
}
function number(from, key) {
    return match(from, "\"" key "\":[-+.0-9e]+") ? substr(from, RSTART + length(key) + 3) + 0 : 0
}
function pair(time, floor) { return sprintf("%.3g (%.3g)", time, floor) }
BEGIN {
    printf "| model | D | L | B x T | type | threads | step, ms | floor | ratio "
    print "| linear | slowest other op | all others |"
    print "|:--|--:|--:|--:|:--|--:|--:|--:|--:|--:|:--|--:|"
}
/^{"beside":1,/ { next }
{
    split($0, half, "\"profile\":")
    n = split(half[2], op, "{\"op\":")
    linear = linear_floor = others = others_floor = 0
    worst = ""
    for (i = 2; i <= n; i++) {
        name = substr(op[i], 2, index(substr(op[i], 2), "\"") - 1)
        time = number(op[i], "forward_ms") + number(op[i], "backward_ms")
        floor = number(op[i], "floor_ms")
        if (name == "linear") { linear += time; linear_floor += floor }
        else if (worst == "") worst = "`" name "` " pair(time, floor)
        else { others += time; others_floor += floor }
    }
    lengths = number($0, "min_length") == number($0, "length") ? number($0, "length") : \
        number($0, "min_length") ".." number($0, "length")
    mark = number($0, "noise") < 0 || number($0, "noise") > 0.03 ? "!" : ""
    if (mark != "") loud = 1
    printf "| %s | %d | %d | %d x %s | %s | %d | %.2f%s | %.2f | %.2f |", text("model"), number($0, "dim"), \
        number($0, "layers"), number($0, "batch"), lengths, text("dtype"), number($0, "threads"), \
        number($0, "step_ms_med"), mark, number($0, "floor_ms"), number($0, "ratio_med")
    if (n > 1) printf " %s | %s | %s |\n", pair(linear, linear_floor), worst, pair(others, others_floor)
    else print " - | - | - |"
    from = text("commit") " on machine " text("machine") ", " text("products")
    if (!(from in told)) { told[from] = 1; sources[++n_sources] = from }
}
END {
    printf "\n- ms; in brackets the floor of bytes or FLOPs. step: median; floor: its products at the rate of one of "
    print "2048^3 of that type; ratio: of medians. Ops: the best of each call, the one that loses most first."
    for (i = 1; i <= n_sources; i++) print "- Of commit " sources[i] "."
    if (loud) print "- ! other processes had more than 3 % of the cores."
}

# crossover_table.awk - the lines that tools/crossovers.sh wrote as a Markdown table: a row an op and shape, the kernels
# that are taken by length, and what the choice loses where another kernel is more than 5 % faster.
#
#     awk -f tools/crossover_table.awk results/baseline/crossovers.jsonl
function text(key) {
    return match($0, "\"" key "\":\"[^\"]*\"") ? substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 5) : ""
}
function number(key) {
    return match($0, "\"" key "\":[-+.0-9e]+") ? substr($0, RSTART + length(key) + 3) + 0 : 0
}
function of_length(    ratio) { # what is known of one length, when the next one begins
    if (length_now == "") return
    if (taken != before) kernels = kernels (kernels == "" ? "" : ", ") "`" taken "` from " length_now
    before = taken
    ratio = taken_ms / least_ms
    if (ratio > 1.05) losses = losses (losses == "" ? "" : ", ") sprintf("%d: %.2f of `%s`", length_now, ratio, least)
    length_now = ""
}
function of_shape() {
    of_length()
    if (shape != "") printf "| `%s` | %s | %s | %s |\n", op, shape, kernels, losses
    kernels = losses = before = ""
}
BEGIN {
    print "| op | shape | taken, from T = 2 to 256 | where another is faster, by T |"
    print "|:--|:--|:--|:--|"
}
/"op":/ {
    of_shape()
    op = text("op")
    shape = text("shape")
    sub(/length=[0-9]+ /, "", shape)
    from = text("commit") " on machine " text("machine")
    if (!(from in told)) { told[from] = 1; sources[++n_sources] = from }
}
/"length":/ && !/"skipped":/ {
    if (number("length") != length_now) of_length()
    if (length_now == "") least_ms = 0
    length_now = number("length")
    if (least_ms == 0 || number("median_ms") < least_ms) { least_ms = number("median_ms"); least = text("kernel") }
    if (/"taken":true/) { taken_ms = number("median_ms"); taken = text("kernel") }
}
END {
    of_shape()
    print "\n- Medians of forward + backward, one thread. Where another is faster: the time of the one taken over its."
    for (i = 1; i <= n_sources; i++) print "- Of commit " sources[i] "."
}

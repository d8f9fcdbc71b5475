# speedup_table.awk - of the lines that tools/step_profiles.sh wrote those that were measured with one thread and with
# two, or alone and beside another process, as a Markdown table: how much more two threads do, and how much more of
# multiply-adds on registers, which nothing but the processor itself holds back.
#
#     awk -f tools/speedup_table.awk results/baseline/steps.jsonl
function text(key) {
    return match($0, "\"" key "\":\"[^\"]*\"") ? substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 5) : ""
}
function number(key) {
    return match($0, "\"" key "\":[-+.0-9e]+") ? substr($0, RSTART + length(key) + 3) + 0 : 0
}
function row(work, speedup, fma) {
    printf "| %s | %.2f | %.2f | %.2f |\n", work, speedup, fma, speedup / fma
}
BEGIN {
    print "| work | step | multiply-adds | ratio |"
    print "|:--|--:|--:|--:|"
}
{
    key = text("model") " D=" number("dim") " L=" number("layers") " " text("dtype")
    ms = number("step_ms_med")
    fma = number("fma_gflop_per_s")
    if (number("beside")) { both[key] += 1 / ms; both_fma[key] += fma }
    else if (number("threads") == 1) { one[key] = ms; one_fma[key] = fma }
    else if (key in one) row(key ", 2 threads", one[key] / ms, fma / one_fma[key])
}
END {
    for (key in both) row(key ", 2 processes of 1 thread", both[key] * one[key], both_fma[key] / one_fma[key])
    print "\n- Work done in the same time by two threads over that by one; medians of steps."
}

# library_table.awk - the rows that tests/library/speed_torch.py wrote as a Markdown table: our operator's time in
# PyTorch, and how many times as long two ways of PyTorch alone take.
#
#     awk -f tools/library_table.awk results/baseline/library_speed.csv
#
# These rows have no quoted cells. On one thread the times are of the processor, on several those that passed.
BEGIN { FS = "," }
NR == 1 {
    for (i = 1; i <= NF; i++) column[$i] = i
    print "| threads | m | T | ours, ms | compiled loop | associative scan | |"
    print "|--:|--:|--:|--:|--:|--:|:--|"
    next
}
{
    if ($column["threads"] > 1) many = 1
    wall = $column["threads"] > 1 ? "wall_" : ""
    printf "| %d | %d | %d | %.2f | %s | %s | %s |\n", $column["threads"], $column["m"], $column["length"],
        $column["lrnn_" wall "ms"], $column["compiled_loop_" wall "ratio"], $column["associative_scan_" wall "ratio"],
        $column["note"]
    batch = $column["batch"]
    states = $column["m"] * $column["blocks"]
    torch = $column["torch"]
}
END {
    if (NR < 2) { print "library_table.awk: the file has no rows" > "/dev/stderr"; exit 1 }
    print ""
    printf "- Forward and backward of BD-LRU, batch %d, %d states, PyTorch %s; ratios to ours.\n", batch, states, torch
    print "- On one thread: time of the processor." (many ? " On two: time that passed." : "")
}

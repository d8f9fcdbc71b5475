# peers_table.awk - the CSV file of tests/peers/recurrences.py and tests/peers/steps.py as a Markdown table. A peer
# is a PyTorch version. The table has a row per shape and a column per peer: the peer's median time divided by ours. A
# sentence below says what a peer could not do.
#
#     awk -f tools/peers_table.awk results/baseline/peers.csv                   the recurrences
#     awk -f tools/peers_table.awk -v steps=1 results/baseline/peers.csv        training steps and layers
#
# The file has no quoted cells.
BEGIN { FS = "," }
NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
{
    op = $column["op"]
    if ((op == "step" || op == "layer") != (steps != "")) next
    row = op ", " $column["shape"] ($column["threads"] == 1 ? "" : ", " $column["threads"] " threads")
    peer = $column["peer"]
    if (!(row in ours)) { rows[++n_rows] = row; ours[row] = $column["ours_us"] / 1000 }
    if (!(peer in known)) { peers[++n_peers] = peer; known[peer] = 1 }
    ok = $column["status"] == "ok"
    mark = "foreign" in column && $column["foreign"] > 0.03 ? "!" : ""
    if (mark != "") marked = 1
    cell[row, peer] = ok ? $column["times_ours"] mark : "-"
    if (!ok) notes = notes "- " row ", " peer ": " $column["status"] "\n"
    if (peer ~ /bf16/) { if ($column["error"] + 0 > worst_bf16) worst_bf16 = $column["error"] + 0 }
    else if ($column["error"] + 0 > worst) worst = $column["error"] + 0
    if (!index(commits, $column["commit"])) commits = commits (commits == "" ? "" : ", ") $column["commit"]
    where = "PyTorch " $column["torch"] ", " $column["device"] ", one thread unless the row says otherwise, commit " \
            commits
}
END {
    printf "| %s | ours, ms |", steps != "" ? "training step" : "recurrence"
    for (p = 1; p <= n_peers; p++) printf " %s |", peers[p]
    printf "\n|:--|--:|"
    for (p = 1; p <= n_peers; p++) printf "--:|"
    printf "\n"
    for (r = 1; r <= n_rows; r++) {
        printf "| %s | %.2f |", rows[r], ours[rows[r]]
        for (p = 1; p <= n_peers; p++) printf " %s |", (rows[r], peers[p]) in cell ? cell[rows[r], peers[p]] : ""
        printf "\n"
    }
    printf "\n- Columns after ours: median time of %s.\n- %s.\n", steps != "" \
        ? "a whole step, divided by our time in fp32; below 1, PyTorch is faster" \
        : "PyTorch, divided by our time, for forward and gradients in fp32", where
    if (steps != "") {
        printf "- Largest difference between PyTorch's losses in three steps and ours: %.1e", worst
        printf worst_bf16 ? ", with bf16 %.1e.\n" : ".\n", worst_bf16
    } else {
        printf "- Largest difference between a PyTorch version in fp32 and the loop in float64: %.1e.\n", worst
    }
    printf "%s", notes
    if (marked) printf "- ! the machine was not quiet: other processes had more than 3 %% of the cores.\n"
}

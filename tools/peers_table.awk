# peers_table.awk - tests/peers/recurrences.py's CSV file as a Markdown table: a row a shape, a column a peer, its median
# time over ours; what a peer could not do is a sentence below.
#
#     awk -f tools/peers_table.awk results/baseline/peers.csv
#
# The file has no quoted cells.
BEGIN { FS = "," }
NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
{
    row = $column["op"] ", " $column["shape"]
    peer = $column["peer"]
    if (!(row in ours)) { rows[++n_rows] = row; ours[row] = $column["ours_us"] / 1000 }
    if (!(peer in known)) { peers[++n_peers] = peer; known[peer] = 1 }
    cell[row, peer] = $column["status"] == "ok" ? $column["times_ours"] : "-"
    if ($column["status"] != "ok") notes = notes "- " row ", " peer ": " $column["status"] "\n"
    if ($column["error"] > worst) worst = $column["error"]
    where = "PyTorch " $column["torch"] ", " $column["device"] ", " $column["threads"] " thread" \
        ($column["threads"] == 1 ? "" : "s") ", commit " $column["commit"]
}
END {
    printf "| recurrence | ours, ms |"
    for (p = 1; p <= n_peers; p++) printf " %s |", peers[p]
    printf "\n|:--|--:|"
    for (p = 1; p <= n_peers; p++) printf "--:|"
    printf "\n"
    for (r = 1; r <= n_rows; r++) {
        printf "| %s | %.2f |", rows[r], ours[rows[r]]
        for (p = 1; p <= n_peers; p++) printf " %s |", cell[rows[r], peers[p]]
        printf "\n"
    }
    printf "\n- Forward and gradients in fp32, median time of a peer over ours; %s.\n", where
    printf "- Largest error of a peer beside the loop in float64: %.1e.\n%s", worst, notes
}

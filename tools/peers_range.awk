# peers_range.awk - the README's line on the CSV file of tests/peers/recurrences.py: from which to which the time of a
# recurrence in PyTorch lies over ours, of all peers and lengths on one core.
#
#     awk -f tools/peers_range.awk results/baseline/peers.csv
#
# The file has no quoted cells.
BEGIN { FS = "," }
NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
$column["threads"] == 1 && $column["status"] == "ok" {
    op = $column["op"]
    times = $column["times_ours"] + 0
    if (!(op in low) || times < low[op]) low[op] = times
    if (times > high[op]) high[op] = times
}
END {
    printf "- `tests/peers/recurrences.py`: PyTorch's loop, compiled loop and associative scan beside ours in one run:"
    printf " %s to\n  %s times our time for BD-LRU m = 5 on one core, %s to %s for a diagonal recurrence\n",
        low["block"], high["block"], low["diag"], high["diag"]
    printf "  ([docs/results.md](docs/results.md)).\n"
}

#!/usr/bin/env bash
# same_bits.sh - tests whether two builds train to the same bits, after a change that moves code and must not move
# numbers. Both run the smoke profile of a task of each suite. It compares the weights of every run (the best in
# validation and those of the last step), every loss and metric of its curve, and the rows of the table. It also finds a
# run with another id, as its files have other names.
#
#   tools/same_bits.sh OLD/lrnn NEW/lrnn [FOLDER]     works in FOLDER (default: a temporary one, removed at the end)
#
# LRNN_CACHE names the released data. Without it tests/data is imported into the folder.
set -euo pipefail
declare -A program=([old]=$(realpath "$1") [new]=$(realpath "$2"))
cd "$(dirname "$0")/.."
if [ $# -gt 2 ]; then
    work=$3
    mkdir -p "$work"
else
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi
tasks=${TASKS:-'s3 a5-slice parity listops compression in-context-recall memorization mqar-64 digits shapes pathfinder
    brackets pairs lra-text lra-retrieval spirals heartbeat mutag'}
if [ -z "${LRNN_CACHE:-}" ]; then
    export LRNN_CACHE=$work/cache
    for set in tests/data/*/; do
        name=$(basename "$set") # tasks read only some of them
        "${program[new]}" data path "$name" >/dev/null 2>&1 || continue
        "${program[new]}" data import "$name" "$set" >/dev/null
    done
fi

# bits FOLDER: prints what is compared, line by line.
bits() {
    (cd "$1/weights" && sha256sum -- *.safetensors)
    sed 1d "$1/summary.csv" | sort
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) is_time[i] = $i ~ /_s$/; next }
        { line = ""; for (i = 1; i <= NF; i++) line = line (is_time[i] ? "" : $i) ","; print line }' "$1/curves.csv" |
        sort
}

status=0
for task in $tasks; do
    for build in old new; do
        "${program[$build]}" bench "$task" --profile smoke --no-plots yes --no-speed yes --keep-weights all --out \
            "$work/$build/$task" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
        bits "$work/$build/$task" >"$work/$build.$task"
    done
    if cmp -s "$work/old.$task" "$work/new.$task"; then
        echo "$task: the same bits, $(grep -c safetensors "$work/new.$task") files of weights"
    else
        status=1
        echo "$task: other bits"
        diff "$work/old.$task" "$work/new.$task" | head -4
    fi
done
exit $status

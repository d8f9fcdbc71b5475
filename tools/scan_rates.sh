#!/usr/bin/env bash
# scan_rates.sh - measures the scans of gated recurrences in bytes per second, a JSON line for each kernel and pass, for
# tools/scan_table.awk. scan_block, from blocks of 2 on, moves the same number of bytes at every size, more than the
# caches hold (138 MB forward and backward, batch 128, 16 tokens); scan_companion has as many blocks. Takes two minutes
# on an otherwise idle machine.
#
#     tools/scan_rates.sh > results/baseline/scans.jsonl
set -euo pipefail
lrnn=${LRNN:-./lrnn}

for threads in 1 2; do
    for shape in '1 2048' '2 563' '3 315' '4 205' '5 141' '8 64'; do
        read -r m blocks <<<"$shape"
        "$lrnn" perf op scan_block --m "$m" --blocks "$blocks" --kernel scan_block_cpu --threads $threads --json
    done
    for m in 1 2 3 4 5; do
        "$lrnn" perf op scan_companion --m $m --blocks 512 --kernel scan_companion_cpu --threads $threads --json
    done
    "$lrnn" perf op scan_diag --blocks 2048 --kernel scan_diag_cpu --threads $threads --json
done

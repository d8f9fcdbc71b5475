#!/usr/bin/env bash
# crossovers.sh - times every kernel of the matrix-state scans at lengths of 2 to 256 and all sizes of a head. It writes
# JSON lines for tools/crossover_table.awk, which shows where the program does not take the fastest kernel. Takes two
# minutes on an otherwise idle machine.
#
#     tools/crossovers.sh > results/baseline/crossovers.jsonl
set -euo pipefail
lrnn=${LRNN:-./lrnn}

cross() { "$lrnn" perf crossover "$@" --from 2 --to 256 --seconds 0.05 --json; }

for op in scan_outer scan_plstm scan_delta; do
    for size in 2 4 8 16 32 64; do cross $op --dk $size --dv $size; done
done
for substeps in 2 4; do
    for size in 8 16 32; do cross scan_delta --substeps $substeps --dk $size --dv $size; done
done

#!/usr/bin/env bash
# valgrind.sh - runs one command of every kind under valgrind's memcheck, which finds reads of uninitialised memory,
# unseen by `make sanitize`, and leaks. `make valgrind` calls it.
#
#   tools/valgrind.sh LRNN     a build that valgrind understands (PORTABLE=1: no AVX-512)
#
# The last line is "N passed, N failed".
set -euo pipefail

lrnn=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0

# check WORDS...: runs the program with these words. It starts itself again (kernels/lib/libraries.h), and valgrind
# follows; its summary shows that it watched to the end.
check() {
    if valgrind --trace-children=yes --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite \
        --show-leak-kinds=definite "$lrnn" "$@" >"$folder/out" 2>"$folder/err" &&
        grep -q 'ERROR SUMMARY: 0 errors' "$folder/err"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "valgrind: lrnn $* ends with an error:"
        tail -40 "$folder/err"
    fi
}

task=s3:length=4,n_train=64,n_val=16,n_test=16
flags="--dim 8 --layers 1 --batch 8 --steps 6 --threads 2 --quiet --out $folder/store"
for model in bdlru:m=2,blocks=4 hlru:m=2,channels=4 lru:state=4 lstm:hidden=4 slice:structure=dense \
    mamba2:state=4,headdim=4 deltanet:heads=2 plstm:heads=2 attention:heads=2; do
    # shellcheck disable=SC2086 # a list of words
    check train "$task" "$model" $flags --checkpoint-every 0
done
check report --out "$folder/store" --format csv
run=$(find "$folder/store/runs" -name '*.json' | sort | head -1)
check export "$(basename "$run" .json)" "$folder/weights" --out "$folder/store"
check import "$folder/weights"
check verify tests/cases/00-bdlru-blocks3-m4.safetensors tests/cases/18-lstm-hidden8.safetensors
check data show s5 --count 2
check perf op linear --batch 1 --length 2 --dim 8 --seconds 0 --threads 1
check gate --serve linear --seconds 0
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

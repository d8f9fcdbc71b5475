#!/bin/sh
# memory.sh - trains one step of one layer of every mixer at 16 384 tokens, 8 sequences and width 128. The process may
# use at most 4 GB of memory at its peak. `make test-memory` calls it.
#
#   tools/memory.sh LRNN [MODEL...]     without models: all that `lrnn list models` has
set -u
most=4000000000
lrnn=$1
shift
models=${*:-$("$lrnn" list models | awk '{ print $1 }')}
passed=0
failed=0
for model in $models; do
    step=$("$lrnn" perf step "$model" --dim 128 --batch 8 --length 16384 --steps 1 --json 2>&1)
    bytes=$(printf '%s\n' "$step" | sed -n 's/.*"resident_bytes":\([0-9]*\).*/\1/p')
    if [ "${bytes:-$most}" -lt $most ]; then
        passed=$((passed + 1))
        echo "$model: $((bytes / 1000000)) MB"
    else
        failed=$((failed + 1))
        echo "$model: not within $((most / 1000000)) MB: $step"
    fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]

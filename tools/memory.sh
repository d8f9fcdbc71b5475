#!/bin/sh
# memory.sh - a training step of one layer of every mixer at 16 384 tokens, 8 sequences and width 128, in a process that
# gets no more than 4 GB (ulimit -d: all memory that it may write): it must end well. `make test-memory` calls it.
#
#   tools/memory.sh LRNN [MODEL...]     without models: all that `lrnn list models` has
set -u
lrnn=$1
shift
[ $# -gt 0 ] || set -- $("$lrnn" list models | awk '{ print $1 }')
passed=0
failed=0
for model; do
    set -- "$model" --dim 128 --batch 8 --length 16384 --steps 1 --json
    if step=$( (ulimit -d 3906250 && exec "$lrnn" perf step "$@") 2>&1); then
        passed=$((passed + 1))
        planned=$(printf '%s\n' "$step" | sed -n 's/.*"planned_bytes":\([0-9]*\).*/\1/p')
        echo "$model: $((planned / 1000000)) MB planned, a step within 4 GB"
    else
        failed=$((failed + 1))
        echo "$model: no step within 4 GB: $step"
    fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]

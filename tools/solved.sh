#!/bin/sh
# solved.sh - trains models of a task's quick profile and checks that each solves the task, as in its committed row.
# `make test-solved` calls it for the models that solve s3 in the fewest steps.
#
#   tools/solved.sh LRNN OUT TASK MODEL...
set -u
lrnn=$1
out=$2
task=$3
shift 3
passed=0
failed=0
"$lrnn" bench "$task" --profile quick --models "$*" --out "$out" --no-speed --no-plots || exit 1
for model; do
    row=$("$lrnn" report --out "$out" --task "$task" --profile quick --format json | grep -F "\"label\":\"$model\"")
    case $row in
    *'"solve_k":1,"solve_n":1,'*) passed=$((passed + 1)) ;;
    *)
        failed=$((failed + 1))
        echo "solved.sh: $task, $model: not solved: ${row:-no row of that label}" >&2
        ;;
    esac
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]

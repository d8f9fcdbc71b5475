#!/usr/bin/env bash
# red.sh - the gate finds faults that are there. It builds programs with one wrong line each in a copy of this tree: a
# gradient that lacks a term, a kernel that does its work twice, other random numbers for the weights. `lrnn gate` must
# call each of them regressed (exit 3) beside this tree's program, and that program the same as itself. Exit 0: it does;
# 1: it does not. The suite gate_plan has the same for plans: other seeds, slow steps, runs that learn nothing.
#
#   tests/ci/red.sh LRNN OBJECTS      make test-red; both are up to date
set -euo pipefail
lrnn=$(realpath "$1") objects=$2
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/tree/build"
git ls-files -z | tar --null --ignore-failed-read -T - -cf - | tar -xf - -C "$work/tree"
cp -a "$objects" "$objects"-* "$work/tree/build/"
cp -p "$lrnn" "$work/right"
cd "$work/tree"
passed=0 failed=0

# gate STATUS PROGRAM FLAGS...: the gate of the program must end so.
gate() {
    local want=$1 program=$2 status=0
    shift 2
    "$program" gate --baseline "$work/baseline" --history "$work/gate.jsonl" "$@" >"$work/log" 2>&1 || status=$?
    if [ "$status" = "$want" ]; then
        passed=$((passed + 1))
        echo "red: $name: exit $status, as it should"
    else
        failed=$((failed + 1))
        tail -20 "$work/log" >&2
        echo "red.sh: WRONG $name: exit $status, expected $want" >&2
    fi
}

# wrong NAME FILE SED FLAGS...: the gate of a program where the sed script changes that file.
wrong() {
    name=$1
    local file=$2 script=$3
    shift 3
    cp "$file" "$work/source"
    sed -i "$script" "$file"
    if cmp -s "$file" "$work/source"; then
        echo "red.sh: $file has no line for '$script' any more; write it anew" >&2
        exit 1
    fi
    "${MAKE:-make}" --no-print-directory BUILD=build all >"$work/log" 2>&1 || { tail -20 "$work/log" >&2; exit 1; }
    gate 3 "./$(basename "$lrnn")" "$@"
    cp "$work/source" "$file"
}

"$work/right" gate --write "$work/baseline"
name="the program itself"
gate 0 "$work/right" --accuracy
wrong "a gradient without its mean" kernels/gated/scan_block_cpu.c \
    's/= p\[j\] \* (before\[j \* stride\] - mean)/= p[j] * before[j * stride]/' --accuracy
wrong "a kernel that works twice" kernels/gated/scan_block_cpu.c \
    's/^    scan_parts(.*forward_of.*/&\n&/' --throughput --against "$work/right" --benches scan_block --load 1
wrong "another seed" core/params.c 's/(size_t)n, seed)/(size_t)n, seed + 1)/' --accuracy
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]

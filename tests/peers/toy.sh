#!/usr/bin/env bash
# toy.sh - runs every script of tests/peers that a page names, at toy size, so that none of them stops working unseen.
# Without PyTorch (PYTHON names a python3 that has it) only the scripts that need none are run, and the last lines say
# which did not run.
#
#   tests/peers/toy.sh LRNN [LRNN-F64]     LRNN-F64: the program in double precision, for loop.py
set -euo pipefail

[ $# -ge 1 ] || {
    echo "toy.sh: expected tests/peers/toy.sh LRNN [LRNN-F64]" >&2
    exit 2
}
lrnn=$(realpath "$1") f64=${2:-./lrnn-f64} python=${PYTHON:-python3}
cd "$(dirname "$0")"
f64=$(cd ../.. && realpath "$f64")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

command -v "$python" >/dev/null || {
    echo "not run: the scripts of tests/peers, for there is no $python"
    exit 0
}
"$python" released_files.py "$work/files" aan
# Every comparison that loop.py has is on record (docs/trust.md).
"$python" - <<'END'
from naive.settings import settings
wanted, there = len(list(settings())), sum(1 for _ in open("../../results/baseline/loop.jsonl"))
assert wanted == there, f"results/baseline/loop.jsonl has {there} of {wanted} comparisons: loop.py --log --resume"
END
if ! "$python" -c 'import numpy, safetensors, torch' 2>/dev/null; then
    echo "not run: recurrences.py, steps.py and loop.py, for $python has no PyTorch, NumPy and safetensors"
    exit 0
fi
# Each shape has a row of the plain loop with a time beside ours.
"$python" recurrences.py --toy --seconds 0.01 --lrnn "$lrnn" --out "$work/peers.csv" 2>"$work/told"
[ "$(grep -c ',loop,ok,' "$work/peers.csv")" = 2 ] || {
    cat "$work/told" "$work/peers.csv" >&2
    exit 1
}
"$python" steps.py --toy --rounds 1 --steps 1 --peers eager --lrnn "$lrnn" --out "$work/peers.csv" 2>"$work/told"
grep -q ',eager,ok,' "$work/peers.csv" || {
    cat "$work/told" "$work/peers.csv" >&2
    exit 1
}
[ -x "$f64" ] || {
    echo "not run: loop.py, for there is no $f64"
    exit 0
}
"$python" loop.py --lrnn "$f64" --only '^mixer: word-problem (lstm$|bdlru:blocks=4,m=2$)'

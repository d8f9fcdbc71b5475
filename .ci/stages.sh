# shellcheck shell=bash
# stages.sh - sourced by run and nightly: runs stages, prints their times, and sums all their tests. It changes to the
# top of the repository.
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# stage NAME COMMAND...: runs the command, and keeps its time and the test counts that it prints. A failure does not end
# the run, so that one run shows all failures. A stage that fails without a failed test counts as one.
stage() {
    local name=$1 start=$SECONDS verdict=ok passed=0 failed=0 p f
    shift
    printf '\n=== %s: %s\n' "$name" "$*"
    "$@" 2>&1 | tee "$work/log.$name" || verdict=FAILED
    while read -r p f; do
        passed=$((passed + p))
        failed=$((failed + f))
    done < <(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$work/log.$name")
    [ "$verdict" = ok ] || [ "$failed" -gt 0 ] || failed=1
    echo "$passed $failed" >>"$work/counts"
    printf '=== %s: %s, %d s\n' "$name" "$verdict" $((SECONDS - start)) | tee -a "$work/summary"
}

# beside FUNCTION FUNCTION: runs two lists of stages at once, so that one computes where the other has work for one core
# only. They share no build folder. The output of the second is printed after that of the first.
beside() {
    "$2" >"$work/beside" 2>&1 &
    local second=$!
    "$1"
    wait "$second" || echo "0 1" >>"$work/counts"
    cat "$work/beside"
}

# verdict: prints each stage's time and, as the last line, "N passed, N failed".
verdict() {
    local passed=0 failed=0 p f
    while read -r p f; do
        passed=$((passed + p))
        failed=$((failed + f))
    done <"$work/counts"
    printf '\n'
    cat "$work/summary"
    printf '=== all: %d s\n' "$SECONDS"
    printf '%d passed, %d failed\n' "$passed" "$failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}

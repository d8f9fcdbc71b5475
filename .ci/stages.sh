# shellcheck shell=bash
# stages.sh - sourced by run and nightly: stages one after the other, their times, and the sum of all their tests. It
# goes to the top of the repository.
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

# stage NAME COMMAND...: runs it, adds up the test counts it prints, goes on after a failure so that one run shows all.
stage() {
    local name=$1 start=$SECONDS before=$failed verdict=ok p f
    shift
    printf '\n=== %s: %s\n' "$name" "$*"
    "$@" 2>&1 | tee "$work/log" || verdict=FAILED
    while read -r p f; do
        passed=$((passed + p))
        failed=$((failed + f))
    done < <(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$work/log")
    [ "$verdict" = ok ] || [ "$failed" -gt "$before" ] || failed=$((failed + 1))
    printf '=== %s: %s, %d s\n' "$name" "$verdict" $((SECONDS - start)) | tee -a "$work/summary"
}

# The verdict: each stage's time, and the last line "N passed, N failed", where a stage that failed without a failed
# test counts as one failure.
verdict() {
    printf '\n'
    cat "$work/summary"
    printf '=== all: %d s\n' "$SECONDS"
    printf '%d passed, %d failed\n' "$passed" "$failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}

#!/usr/bin/env bash
# cuda_resources.sh - registers, spills and shared memory of every CUDA kernel, one line each and file by file; fails if
# one spills. As many files at once as there are cores.
#
#   tools/cuda_resources.sh 'NVCC AND FLAGS' FILE.cu...      (make cuda-resources)
set -euo pipefail

# Of one file, into $2.
look() {
    local object log
    object=$(mktemp)
    log=$(mktemp)
    # shellcheck disable=SC2086
    $compile -Xptxas -v -c -o "$object" "$1" 2>"$log" || {
        cat "$log" >&2
        rm -f "$object" "$log"
        return 1
    }
    c++filt <"$log" | awk -v file="$1" '
        /Compiling entry function/ {
            match($0, /.* for .sm_/)
            arch = $NF
            gsub(/[^a-z_0-9]/, "", arch)
            name = $0
            sub(/^[^'"'"']*'"'"'/, "", name)
            sub(/'"'"' for .*/, "", name)
        }
        /spill stores/ { spills = $0; sub(/^ */, "", spills) }
        /Used [0-9]+ registers/ {
            used = $0
            sub(/^ptxas info *: */, "", used)
            printf "%s %s: %s; %s; %s\n", file, arch, name, used, spills
        }' >"$2"
    rm -f "$object" "$log"
}

export compile=$1
shift
found=$(mktemp -d)
trap 'rm -rf "$found"' EXIT
export -f look
# shellcheck disable=SC2016
printf '%s\n' "$@" | xargs -P "$(nproc)" -I FILE bash -c 'look FILE "$0/$(echo FILE | tr / _)"' "$found"
cat "$found"/*
spilling=$(cat "$found"/* | grep spill | grep -vc ' 0 bytes spill stores, 0 bytes spill loads' || true)
kernels=$(cat "$found"/* | wc -l)
echo "cuda_resources: $kernels kernels, $spilling of them spill"
[ "$spilling" = 0 ] && [ "$kernels" -gt 0 ]

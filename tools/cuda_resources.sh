#!/usr/bin/env bash
# cuda_resources.sh - writes what ptxas reports of every CUDA kernel as CSV, a line for each kernel and architecture:
# registers, and bytes of shared memory, stack and spills. Fails if a kernel spills. It compiles as many files at once
# as there are cores, and runs none.
#
#   tools/cuda_resources.sh 'NVCC AND FLAGS' FILE.cu...      (make cuda-resources)
set -euo pipefail

# Reads one file's report into $2. ptxas prints spills and stack before the registers of the same kernel.
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
    c++filt --no-params <"$log" | sed 's/(anonymous namespace):://g' | awk -v file="$1" -v quote="'" '
        function number_before(text, what) {
            return match(text, "[0-9]+ bytes " what) ? substr(text, RSTART) + 0 : 0
        }
        /Compiling entry function/ {
            split($0, part, quote)
            name = part[2]
            sub(/^(static )?void /, "", name)
            gsub(/"/, "", name)
            arch = part[4]
        }
        /spill stores/ {
            stack = number_before($0, "stack")
            spills = number_before($0, "spill stores") + number_before($0, "spill loads")
        }
        /Used [0-9]+ registers/ {
            match($0, /[0-9]+ registers/)
            printf "%s,\"%s\",%s,%d,%d,%d,%d\n", file, name, arch, substr($0, RSTART) + 0, number_before($0, "smem"),
                   stack, spills
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
echo "file,kernel,arch,registers,shared_bytes,stack_bytes,spill_bytes"
cat "$found"/*
kernels=$(cat "$found"/* | wc -l)
spilling=$(cat "$found"/* | grep -vc ',0$' || true)
echo "cuda_resources: $kernels kernels, $spilling of them spill" >&2
[ "$spilling" = 0 ] && [ "$kernels" -gt 0 ]

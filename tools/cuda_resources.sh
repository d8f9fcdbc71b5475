#!/bin/sh
# cuda_resources.sh - registers, spills and shared memory of every CUDA kernel, one line each; fails if one spills.
#
#   tools/cuda_resources.sh 'NVCC AND FLAGS' FILE.cu...      (make cuda-resources)
set -eu

compile=$1
shift
object=$(mktemp)
log=$(mktemp)
trap 'rm -f "$object" "$log"' EXIT
for file in "$@"; do
    # shellcheck disable=SC2086
    $compile -Xptxas -v -c -o "$object" "$file" 2>"$log" || {
        cat "$log" >&2
        exit 1
    }
    c++filt <"$log" | awk -v file="$file" '
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
        }'
done | tee "$log.all"
status=0
if grep -v ' 0 bytes spill stores, 0 bytes spill loads' "$log.all" | grep -q spill; then
    echo "cuda_resources: some kernels spill" >&2
    status=1
fi
rm -f "$log.all"
exit $status

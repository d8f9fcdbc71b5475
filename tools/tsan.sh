#!/usr/bin/env bash
# tsan.sh - runs under ThreadSanitizer: trainings of several mixers in four threads with the thread that makes batches,
# and populations of four members on the CPU and on a device (CUDA on the host, docs/gpu.md). `make tsan` calls it.
#
#   tools/tsan.sh LRNN     a build by clang with -fsanitize=thread
#
# LLVM's OpenMP tells the sanitizer by its library archer which thread waits for which. Libraries that are not built for
# it (oneDNN) are left out. The last line is "N passed, N failed".
set -euo pipefail

lrnn=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0

omp=$(ldd "$lrnn" | awk '/libomp/ {print $3}')
archer=$(dirname "$(readlink -f "$omp")")/libarcher.so
[ -e "$archer" ] || { echo "tsan.sh: no $archer, which belongs to LLVM's OpenMP (bootstrap.sh --dev)" >&2; exit 1; }
export TSAN_OPTIONS='ignore_noninstrumented_modules=1 exitcode=66' OMP_TOOL_LIBRARIES="$archer"

task=s3:length=4,n_train=256,n_val=64,n_test=64

# tried WHAT COMMAND...
tried() {
    local what=$1
    shift
    if "$@" >"$folder/out" 2>"$folder/err"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "tsan: lrnn $what ends with an error:"
        head -60 "$folder/err"
    fi
}

for model in bdlru:m=4,blocks=16 lstm mamba2:state=4,headdim=8 attention:heads=2 slice:structure=block,block=4 \
    deltanet:heads=2; do
    tried "train $task $model" "$lrnn" train "$task" "$model" --dim 64 --layers 1 --batch 64 --steps 12 --threads 4 \
        --quiet --out "$folder/store"
done

# There are more runs than members, of different sizes. A report of the sanitizer ends its process, and the bench goes
# on by repeating the runs; so the reports are counted.
for device in cpu cuda; do
    tried "bench --population 4 --device $device" "$lrnn" bench s3:length=4,n_train=96,n_val=32,n_test=32 \
        --models 'bdlru:m=4,blocks=4 lru:state=4 bdlru:m=1,blocks=4' --dim 8 --batch 32 --profile smoke --epochs 2 \
        --seeds 2 --population 4 --device "$device" --no-speed --no-plots --out "$folder/$device"
    grep -q 'WARNING: ThreadSanitizer\|done again' "$folder/err" || continue
    failed=$((failed + 1))
    head -80 "$folder/err"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

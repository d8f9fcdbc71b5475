#!/usr/bin/env bash
# pack.sh - what measure.sh needs on a machine with a device and without compilers: the programs and the shared
# libraries they load, cuBLAS apart, which comes with the toolkit or with PyTorch there.
#
#   tests/device/pack.sh FOLDER [ARCH]      (then: PREBUILT=FOLDER tests/device/measure.sh 1 OUT)
#
# For x86-64-v3 processors and devices of compute capability ARCH/10, 9.0 where none is said.
set -euo pipefail

[ $# -ge 1 ] || {
    echo "pack.sh: a folder is needed; usage: tests/device/pack.sh FOLDER [ARCH]" >&2
    exit 2
}
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1/lib"
folder=$(cd "$1" && pwd)
cd "$root"
make CUDA_ARCHS="${2:-90}" OPT='-O3 -march=x86-64-v3' BUILD=build/device programs device-micro
cp build/device/lrnn build/device/check build/device/device-micro "$folder"
strip "$folder/lrnn" "$folder/check" "$folder/device-micro"
# The C library and the loader are the machine's own.
for program in lrnn check; do
    ldd "build/device/$program"
done | awk '$3 ~ /^\// && $1 !~ /^(libc|libm|libdl|librt|libpthread|libcublas|libcublasLt|libcuda|libcudart)\.so/ {
    print $3 }' | sort -u | xargs cp -L -t "$folder/lib"
bytes=$(du -sb "$folder" | cut -f1)
echo "$folder: $((bytes / 1000000)) MB"
[ "$bytes" -lt 60000000 ] || {
    echo "pack.sh: the folder is larger than 60 MB" >&2
    exit 1
}

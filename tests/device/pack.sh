#!/usr/bin/env bash
# pack.sh - what measure.sh needs on a machine with a device and without compilers: the programs and the shared
# libraries they load, cuBLAS apart, which comes with the toolkit or with PyTorch there.
#
#   tests/device/pack.sh FOLDER [ARCH]
#   (there:) tar -xJf FOLDER.tar.xz && PREBUILT=FOLDER tests/device/measure.sh 0 OUT
#   (without xz:) python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall()' FOLDER.tar.xz
#
# For x86-64-v3 processors and devices of compute capability ARCH/10, 9.0 where none is said. FOLDER.tar.xz, the same
# packed, is what travels.
set -euo pipefail

[ $# -ge 1 ] || {
    echo "pack.sh: a folder is needed; usage: tests/device/pack.sh FOLDER [ARCH]" >&2
    exit 2
}
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1/lib/compiler"
folder=$(cd "$1" && pwd)
cd "$root"
arch=${2:-90}
# Kernels packed for size (CUDA 12.8 or newer) take a sixth of the room. The code that newer devices could compile for
# themselves, which a build has as well, stays out: the folder is for devices of this one kind.
make CUDA_ARCHS="$arch" NVCC_ARCH="-gencode arch=compute_$arch,code=sm_$arch" OPT='-O3 -march=x86-64-v3' \
    NVCCFLAGS="${NVCCFLAGS---compress-mode=size}" BUILD=build/device programs device-micro
cp build/device/lrnn build/device/check build/device/device-micro "$folder"
strip "$folder/lrnn" "$folder/check" "$folder/device-micro"
# The C library and the loader are the machine's own. So are the compiler's libraries where they are new enough, which
# measure.sh tries: those from here may want a newer C library than is there.
for program in lrnn check; do
    ldd "build/device/$program"
done | awk '$3 ~ /^\// && $1 !~ /^(libc|libm|libdl|librt|libpthread|libcublas|libcublasLt|libcuda|libcudart)\.so/ {
    print $3 }' | sort -u | xargs cp -L -t "$folder/lib"
for name in libstdc++.so.6 libgcc_s.so.1; do
    [ ! -e "$folder/lib/$name" ] || mv "$folder/lib/$name" "$folder/lib/compiler"
done
bytes=$(du -sb "$folder" | cut -f1)
[ $((bytes >> 20)) -lt 60 ] || {
    echo "pack.sh: the folder has $((bytes >> 20)) MB, expected less than 60" >&2
    exit 1
}
tar -cJf "$folder.tar.xz" -C "$(dirname "$folder")" "$(basename "$folder")"
echo "$folder: $((bytes >> 20)) MB; $folder.tar.xz: $(($(stat -c %s "$folder.tar.xz") >> 20)) MB"
# Unpacked elsewhere, with the folder's own libraries, nothing may be missing.
elsewhere=$(mktemp -d)
trap 'rm -rf "$elsewhere"' EXIT
tar -xJf "$folder.tar.xz" -C "$elsewhere"
unpacked=$elsewhere/$(basename "$folder")
for program in lrnn check; do
    if LD_LIBRARY_PATH=$unpacked/lib:$unpacked/lib/compiler ldd "$unpacked/$program" | grep 'not found'; then
        echo "pack.sh: $program of $folder.tar.xz lacks a library" >&2
        exit 1
    fi
done

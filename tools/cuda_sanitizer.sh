#!/bin/sh
# cuda_sanitizer.sh - runs the shorter CUDA tests under memcheck, racecheck and synccheck of compute-sanitizer. Without
# a device or compute-sanitizer it says so and succeeds.
#
#   tools/cuda_sanitizer.sh build/check      (part of make test-cuda)
set -eu

check=$1
# With this set the tests do not start themselves again (kernels/lib/libraries.h), which the tool would not follow.
export GOMP_SPINCOUNT="${GOMP_SPINCOUNT:-1000}"
tool=$(command -v compute-sanitizer || echo "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer")
if ! command -v nvidia-smi >/dev/null 2>&1 || ! nvidia-smi -L 2>/dev/null | grep -q GPU; then
    echo "compute-sanitizer: no device; memcheck, racecheck and synccheck not run"
    exit 0
fi
if [ ! -x "$tool" ]; then
    echo "compute-sanitizer: not found; memcheck, racecheck and synccheck not run"
    exit 0
fi
for kind in memcheck racecheck synccheck; do
    echo "compute-sanitizer: $kind"
    CHECK_JOBS=1 CK_FORK=no "$tool" --target-processes all --tool "$kind" --error-exitcode 1 "$check" cuda_short
done

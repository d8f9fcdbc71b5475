#!/usr/bin/env bash
# measure.sh - everything that is to be known of a device, in three parts of 8 minutes each at most.
#
#   tests/device/measure.sh 1|2|3 OUT
#
#   1  does it work: the device, the libraries, a training run walked launch by launch and the same one captured, the
#      suites, compute-sanitizer
#   2  how fast are its parts: build/device-micro, `lrnn perf device`, Nsight Compute of the kernels of eight ops
#   3  how fast is the whole: a bench, several runs at once as processes and as populations of 1, 4, 16 and 32, peers
#      at lengths 16, 128 and 1024
#
# OUT gets at most 8 files a part: steps-PART.csv (a row a step, with its exit status), log-PART.txt (all that was
# printed) and a CSV file of each thing measured, which results/device/ then holds. A step that fails or outlasts its
# time does not stop the others; a tool that is not there makes the row `missing`. The exit status says whether a step
# failed.
#
# Programs are ./lrnn, build/check and build/device-micro; PREBUILT=FOLDER takes those of a folder that
# tests/device/pack.sh made, on a machine without compilers; LRNN=, CHECK= and MICRO= name others. SMALL=1 does all
# steps at sizes that show that they run: also without a device, with the program built by CUDA=host (docs/cuda.md).
set -uo pipefail

usage() {
    echo "measure.sh: $1; usage: tests/device/measure.sh 1|2|3 OUT" >&2
    exit 2
}

[ $# = 2 ] || usage "a part and a folder are needed"
part=$1
case $part in 1 | 2 | 3) ;; *) usage "there is no part '$part'" ;; esac
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$2" || exit 1
out=$(cd "$2" && pwd)
small=${SMALL:-}
limit=480 # seconds of a part: about what its steps may take together
begun=$SECONDS
failed=0
steps=$out/steps-$part.csv
log=$out/log-$part.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root" || exit 1

# Python's packages and toolkits bring cuBLAS under other roofs than the loader's.
libraries() {
    local found=${CUDA_HOME:-/usr/local/cuda}/lib64
    [ -z "${PREBUILT:-}" ] || found=$PREBUILT/lib:$found
    if command -v python3 >/dev/null; then
        found=$found:$(python3 - 2>/dev/null <<'PYTHON'
import glob, site, sys
roots = site.getsitepackages() + [p for p in sys.path if p.endswith("-packages")]
print(":".join(sorted({d for r in roots for d in glob.glob(r + "/nvidia/*/lib") if glob.glob(d + "/libcublas.so*")})))
PYTHON
)
    fi
    echo "$found"
}

if [ -n "${PREBUILT:-}" ]; then
    PREBUILT=$(cd "$PREBUILT" && pwd) || exit 1
    LRNN=${LRNN:-$PREBUILT/lrnn}
    CHECK=${CHECK:-$PREBUILT/check}
    MICRO=${MICRO:-$PREBUILT/device-micro}
fi
LRNN=${LRNN:-$root/lrnn}
CHECK=${CHECK:-$root/build/check}
MICRO=${MICRO:-$root/build/device-micro}
# With GOMP_SPINCOUNT set the program does not start itself again (kernels/lib/libraries.h) behind a profiler's back.
export LRNN CHECK_JOBS=1 GOMP_SPINCOUNT="${GOMP_SPINCOUNT:-1000}"
LD_LIBRARY_PATH=$(libraries)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
[ -x "$LRNN" ] || usage "$LRNN is not there; run make, or name one by LRNN= or PREBUILT="

: >"$log"
echo 'part,step,status,seconds,limit_s' >"$steps"

# step NAME SECONDS COMMAND...: runs it within its time and the part's, standard output into $work/NAME as well.
step() {
    local name=$1 seconds=$2 left=$((limit - (SECONDS - begun))) start=$SECONDS status
    shift 2
    [ "$seconds" -le "$left" ] || seconds=$left
    printf '=== %s: %s\n' "$name" "$*" >>"$log"
    if ! command -v "$1" >/dev/null; then
        status=missing
    elif [ "$seconds" -le 0 ]; then
        status='no time left'
        failed=1
    else
        timeout -k 5 "$seconds" "$@" >"$work/$name" 2>"$work/$name.err" </dev/null
        status=$?
        if [ "$status" = 0 ]; then
            status=ok
        else
            failed=1
        fi
        cat "$work/$name" "$work/$name.err" >>"$log"
    fi
    echo "$part,$name,$status,$((SECONDS - start)),$seconds" >>"$steps"
    printf '%-24s %s, %d s\n' "$name" "$status" $((SECONDS - start))
    [ "$status" = ok ]
}

# keep NAME FILE: what a step printed, as a file of OUT.
keep() {
    [ ! -s "$work/$1" ] || cp "$work/$1" "$out/$2"
}

# Of a suite's log its last line, "N passed, M failed". All sizes of the walks, one after the other, would take many
# times as long as there is.
export LRNN_CUDA_EVERY="${LRNN_CUDA_EVERY:-8}"
suite() {
    step "suite-$1" "$2" "$CHECK" "$1"
    sed -n "s/^\([0-9]*\) passed, \([0-9]*\) failed\$/$1,\1,\2/p" "$work/suite-$1" >>"$out/suites.csv"
}

sizes='--dim 256 --batch 128'
[ -z "$small" ] || sizes='--dim 8 --batch 16'

# One run of a few steps; its losses are the same walked and captured.
train() {
    local name=$1 task=s5 seconds=40
    shift
    [ -z "$small" ] || task=s3:n_train=96,n_val=32,n_test=32,length=4 seconds=150 # a host, and one that others use
    # shellcheck disable=SC2086
    step "$name" $seconds env "$@" "$LRNN" train "$task" bdlru:m=5,blocks=8 --device cuda --stop-after 60 --quiet \
        --no-color $sizes --log-steps "$work/$name.csv" --out "$work/$name.results"
}

part_1() {
    step nvidia-smi 20 nvidia-smi --format=csv \
        --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.max.sm,clocks.mem,power.limit,temperature.gpu &&
        keep nvidia-smi gpu.csv
    step ldd 10 ldd "$LRNN"
    step doctor 20 "$LRNN" doctor
    train train-walked LRNN_CUDA_SYNC=1
    train train-captured LRNN_CUDA_GRAPH=1
    step walked-equals-captured 5 cmp "$work/train-walked.csv" "$work/train-captured.csv"
    train train-plain LRNN_CUDA_OVERLAP=0 LRNN_CUDA_BRANCHES=0
    step plain-equals-captured 5 cmp "$work/train-plain.csv" "$work/train-captured.csv"
    echo 'suite,passed,failed' >"$out/suites.csv"
    if [ -n "$small" ]; then
        suite cuda_host 60
    else
        suite cuda_run 70
        suite cuda 110
        suite cuda_order 50
        suite cuda_population 35
    fi
    for tool in memcheck racecheck; do
        step "$tool" 40 compute-sanitizer --target-processes all --tool "$tool" --error-exitcode 1 \
            env CK_FORK=no CK_DEFAULT_TIMEOUT=600 "$CHECK" cuda_short
    done
}

# Shapes by which the kernels are known (spec G1, G3, G4), the scans with clusters and on tensor cores, and the
# products and the loss of the step: op and what its kernels are called.
profiled='scan_diag=diag_ scan_block=block_ scan_lstm=lstm_ scan_outer=outer_ scan_delta=delta_ linear=gemm
    rmsnorm=norm_ cross_entropy=losses|softmax|count'

part_2() {
    step micro 100 "$MICRO" && keep micro micro.csv
    # shellcheck disable=SC2086
    step perf-device 220 "$LRNN" perf device ${small:+--small --seconds 0} && keep perf-device perf-device.csv
    for one in $profiled; do
        op=${one%%=*}
        # shellcheck disable=SC2086
        step "ncu-$op" 20 ncu --clock-control none --csv --set basic --launch-count 6 --kernel-name-base demangled \
            --kernel-name "regex:${one#*=}" "$LRNN" perf device --only "$op" --no-error --seconds 0 ${small:+--small} &&
            sed -n '/^"/p' "$work/ncu-$op" >>"$work/ncu.csv"
    done
    keep ncu.csv ncu.csv
}

# The rows of runs of some benches in one file, with the bench in front of each.
keep_runs() {
    local name tables head=1
    for name in "$@"; do
        tables=$work/folders/$name.tables
        "$LRNN" report --out "$work/folders/$name" --to "$tables" >/dev/null 2>>"$log" || continue
        [ -z "$head" ] || sed -n 's/^/bench,/;1p' "$tables/runs.csv"
        head=
        sed "1d;s/^/$name,/" "$tables/runs.csv"
    done >"$out/runs.csv"
}

# Runs side by side, each a process: what populations are to beat. Populations train as many steps a run, whatever their
# size, so that their rows of runs.csv (train_s, steps) say how much a device that is shared does more than one run.
part_3() {
    local task=s5 jobs=8 settings='--profile quick --limit 50s' same='--profile quick --stop-after 4000'
    local members='1 4 16 32'
    if [ -n "$small" ]; then
        task=s3:n_train=96,n_val=32,n_test=32,length=4 jobs=2
        settings='--profile smoke --dim 8' same='--profile smoke --dim 8 --stop-after 3' members='1 3'
    fi
    mkdir "$work/folders"
    # shellcheck disable=SC2086
    step bench 100 "$LRNN" bench "$task" --device cuda --models 'bdlru hlru lru' --seeds 1 \
        $settings --no-plots --no-speed --no-color --out "$work/folders/bench"
    # shellcheck disable=SC2086
    step side-by-side 70 "$LRNN" bench "$task" --device cuda --models bdlru --seeds $jobs \
        --jobs $jobs $settings --no-plots --no-speed --no-color --out "$work/folders/side"
    for s in $members; do
        # shellcheck disable=SC2086
        step "population-$s" 35 "$LRNN" bench "$task" --device cuda --models bdlru --seeds $s \
            --population $s $same --no-plots --no-speed --no-color --out "$work/folders/population-$s"
    done
    # shellcheck disable=SC2046,SC2086
    keep_runs bench side $(printf 'population-%s ' $members)
    if [ -n "$small" ]; then
        step perf-only 60 "$LRNN" perf device --only scan_block --no-error --small --seconds 0
    elif python3 -c 'import torch' 2>/dev/null; then
        step peers 170 python3 tests/peers/recurrences.py --device cuda --seconds 0.3 --compile-seconds 25 \
            --lrnn "$LRNN" --out "$out/peers.csv"
    else
        echo "$part,peers,missing,0,170" >>"$steps"
    fi
}

case $part in
    1) part_1 ;;
    2) part_2 ;;
    3) part_3 ;;
esac
exit $failed

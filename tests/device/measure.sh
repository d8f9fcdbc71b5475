#!/usr/bin/env bash
# measure.sh - everything that is to be known of a device, in four parts: one of two minutes, three of 8 at most; or
# the most of it in one lease.
#
#   tests/device/measure.sh 0|1|2|3|lease OUT
#
#   lease  what matters most of all parts for a device that is lent for a quarter of an hour: 560 seconds, one step
#      after the other, so that nothing is timed beside other work; then once more what has failed, in the time that is
#      left. Its files lie in OUT/DEVICE, as rows of two kinds of device are never mixed
#   0  is all there: the device, libraries, profilers and PyTorch; a training run walked launch by launch and the same
#      one captured; the launches of a step; one op measured
#   1  does it work: the suites and compute-sanitizer, all side by side, since nothing of it is timed
#   2  how fast are its parts: `lrnn perf device`, build/device-micro, Nsight Compute of the kernels of eight ops
#   3  how fast is the whole: a bench, several runs at once as processes and as populations of 1, 4, 16 and 32, peers
#      at lengths 16, 128 and 1024
#
# OUT gets at most 8 files per part: steps-PART.csv (one row per step, with its status), gpu-PART.csv (what nvidia-smi
# says), log-PART.txt (all that was printed; it names folders of the machine, so it is read and not kept) and a CSV file
# of each thing measured, which results/device/ then holds. Whatever a step has printed until it failed or outlasted its
# time is kept, and the others go on. A tool of others that is not there makes the row `missing`; a program of ours that
# is not there fails. The exit status says whether a step failed.
#
# Programs are ./lrnn, build/check and build/device-micro; PREBUILT=FOLDER takes those of a folder that
# tests/device/pack.sh made, on a machine without compilers; LRNN=, CHECK= and MICRO= name others. SMALL=1 does all
# steps at sizes that show that they run: also without a device, with the program built by CUDA=host (docs/gpu.md).
# LIMIT=SECONDS is the part's time where a device is lent for less. DRY_RUN=1 prints a lease's steps with their seconds
# and does none.
set -uo pipefail

usage() {
    echo "measure.sh: $1; usage: tests/device/measure.sh 0|1|2|3|lease OUT" >&2
    exit 2
}

[ $# = 2 ] || usage "a part and a folder are needed"
part=$1
case $part in
    0) limit=120 ;; # seconds of a part: its steps take together what is left of it, and no more
    1) limit=420 ;;
    2) limit=480 ;;
    3) limit=450 ;;
    lease) limit=560 ;;
    *) usage "there is no part '$part'" ;;
esac
root=$(cd "$(dirname "$0")/../.." && pwd)
small=${SMALL:-}
[ -z "$small" ] || limit=900 # a host, and one that others use
limit=${LIMIT:-$limit}
[[ $limit =~ ^[1-9][0-9]*$ ]] || usage "LIMIT is seconds, got '$limit'"
begun=$SECONDS

# Seconds of each step of a lease and its command, in their order. The steps of one command share its seconds.
lease='45 check_all
20 measure_steps
20 measure_calls
8 measure_population tf32 1
12 measure_population tf32 4
22 measure_population tf32 16
28 measure_population tf32 32
8 measure_population bf16 1
12 measure_population bf16 4
22 measure_population bf16 16
28 measure_population bf16 32
70 measure_micro
80 measure_taken
15 suite_alone cuda_run
15 suite_alone cuda_population
30 suite_shares
50 sanitize memcheck
50 sanitize racecheck'
if [ -n "${DRY_RUN:-}" ]; then
    [ "$part" = lease ] || usage "DRY_RUN is for a lease"
    awk -v limit="$limit" '{ print; sum += $1 } END { print sum " of " limit " seconds"; exit sum > limit }' <<<"$lease"
    exit
fi
mkdir -p "$2" || exit 1
out=$(cd "$2" && pwd)
if [ "$part" = lease ]; then
    device=$(timeout 20 nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | sed 's/[^A-Za-z0-9]/-/g;1q')
    out=$out/${device:-no-device}
    mkdir -p "$out" || exit 1
fi
steps=$out/steps-$part.csv
log=$out/log-$part.txt
export LRNN_CACHE=$out # cublas.products comes back too: which algorithms were fastest, and their times
work=$(mktemp -d)
# end_session FILE: ends what a step has left, which would compute beside what is measured next, and after the script.
# By hand, because a Debian without more has no pkill.
end_session() {
    local session process line its
    session=$(cat "$1")
    for process in /proc/[0-9]*; do
        { read -r line <"$process/stat"; } 2>/dev/null || continue
        read -r _ _ _ its _ <<<"${line##*) }" # after the name: state, parent, group, session
        [ "$its" != "$session" ] || kill -KILL "${process#/proc/}" 2>/dev/null
    done
    rm -f "$1"
}
end_all() {
    local session
    for session in "$work"/*.session; do [ ! -e "$session" ] || end_session "$session"; done
    rm -rf "$work"
}
trap end_all EXIT
trap 'exit 130' INT TERM HUP
cd "$root" || exit 1
# Profilers come with the toolkit, or beside it, and neither need be in the path.
for folder in "${CUDA_HOME:-/usr/local/cuda}/bin" /opt/nvidia/nsight-compute/*; do PATH=$PATH:$folder; done

# --- programs ---------------------------------------------------------------------------------------------------------

# Python's packages and toolkits bring cuBLAS under other roofs than the loader's.
cublas_folders() {
    local found=${CUDA_HOME:-/usr/local/cuda}/lib64
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

# Takes the libraries of a pack; those of its compiler only if the program does not start with the machine's own,
# which are as a rule newer, and fit the machine's C library.
library_folders() {
    local found
    found=$(cublas_folders)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    if [ -n "${PREBUILT:-}" ]; then
        found=$PREBUILT/lib:$found
        LD_LIBRARY_PATH=$found "$lrnn" --version >/dev/null 2>&1 || found=$PREBUILT/lib/compiler:$found
    fi
    echo "$found"
}

# own NAME PROGRAM: a script in its place, which sets the folders of libraries: for our programs alone, since Python and
# the profilers have libraries of the same names. Prints its path.
own() {
    printf '#!/usr/bin/env bash\nLD_LIBRARY_PATH=%q exec %q "$@"\n' "$libraries" "$2" >"$work/bin/$1"
    chmod +x "$work/bin/$1"
    echo "$work/bin/$1"
}

if [ -n "${PREBUILT:-}" ]; then
    PREBUILT=$(cd "$PREBUILT" && pwd) || exit 1
fi
lrnn=${LRNN:-${PREBUILT:-$root}/lrnn}
check=${CHECK:-${PREBUILT:-$root/build}/check}
micro=${MICRO:-${PREBUILT:-$root/build}/device-micro}
[ -x "$lrnn" ] || usage "$lrnn is not there; run make, or name one by LRNN= or PREBUILT="
libraries=$(library_folders)
mkdir "$work/bin"
LRNN=$(own lrnn "$lrnn")
CHECK=$(own check "$check")
MICRO=$(own device-micro "$micro")
# With GOMP_SPINCOUNT set the program does not start itself again, which profilers do not follow.
export LRNN CHECK_JOBS=1 GOMP_SPINCOUNT="${GOMP_SPINCOUNT:-1000}"

# --- steps ------------------------------------------------------------------------------------------------------------

# Prints the beginning of rows that no program of ours writes: "commit,device,driver".
read_origin() {
    local device
    device=$(timeout 20 nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null |
        sed 's/, */,/;1q')
    "$LRNN" --version | awk -v device="${device:-,}" '
        $1 == "commit" { print substr($2, 1, 12) ($3 == "" ? "" : "+") "," device }'
}

origin=$(read_origin)
: >"$log"
echo 'commit,device,driver,part,step,status,seconds,limit_s' >"$steps"

# row STEP STATUS MILLISECONDS LIMIT
row() {
    local seconds
    seconds=$(printf '%d.%03d' $(($3 / 1000)) $(($3 % 1000)))
    echo "$origin,$part,$1,$2,$seconds,$4" >>"$steps"
    printf '%-24s %s, %s s\n' "$1" "$2" "$seconds"
}

# step NAME SECONDS COMMAND...: runs it within its time and the part's, what it prints into $work/NAME and NAME.err.
# `verdict` is then ok, missing, or what went wrong. Steps may run in the background, several at once.
step() {
    local name=$1 seconds=$2 left=$((limit - (SECONDS - begun))) start=${EPOCHREALTIME/[.,]/}
    shift 2
    [ "$seconds" -le "$left" ] || seconds=$left
    verdict=ok
    : >"$work/$name"
    : >"$work/$name.err"
    if ! command -v "$1" >/dev/null; then
        verdict=missing
    elif [ "$seconds" -le 0 ]; then
        verdict='no time left'
    else
        setsid timeout -k 5 "$seconds" "$@" >"$work/$name" 2>"$work/$name.err" </dev/null &
        echo "$!" >"$work/$name.session"
        wait "$!" || verdict=$?
        end_session "$work/$name.session"
    fi
    printf '=== %s: %s\n' "$name" "$*" | cat - "$work/$name" "$work/$name.err" >"$work/$name.log"
    cat "$work/$name.log" >>"$log"
    row "$name" "$verdict" $(((${EPOCHREALTIME/[.,]/} - start) / 1000)) "$seconds"
    [ "$verdict" = ok ]
}

# Prints the number of steps that went wrong so far.
count_failures() {
    awk -F, 'NR > 1 && $6 != "ok" && $6 != "missing" { n++ } END { print n + 0 }' "$steps"
}

# lacks NAME TEXT STEP: a step of its own where STEP prints the text and exits with 0.
lacks() {
    # shellcheck disable=SC2016
    step "$1" 5 bash -c '! grep -q -- "$1" "$2"' bash "$2" "$work/$3"
}

# keep STEP FILE: what a step printed, however it ended, as a file of OUT.
keep() {
    [ ! -s "$work/$1" ] || cp "$work/$1" "$out/$2"
}

describe_device() {
    step nvidia-smi 20 nvidia-smi --format=csv \
        --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.max.sm,clocks.mem,power.limit,temperature.gpu
    keep nvidia-smi "gpu-$part.csv"
}

# --- 0: is all there --------------------------------------------------------------------------------------------------

sizes='--dim 256 --batch 128'
[ -z "$small" ] || sizes='--dim 8 --batch 16'

# One run of a few steps; its losses are the same walked and captured.
train() {
    local name=$1 task=s5 seconds=40
    shift
    [ -z "$small" ] || task=s3:n_train=96,n_val=32,n_test=32,length=4 seconds=150
    # shellcheck disable=SC2086
    step "$name" $seconds env "$@" "$LRNN" train "$task" bdlru:m=5,blocks=8 --device cuda --stop-after 60 --quiet \
        $sizes --log-steps "$work/$name.csv" --out "$work/$name.results"
}

# The Markdown table as CSV.
count_launches() {
    local models=''
    [ -z "$small" ] || models='bdlru --dim 8 --batch 4 --length 8'
    # shellcheck disable=SC2086
    step launches 40 "$LRNN" perf launches $models
    lacks launches-of-all-mixers '| - |' launches
    sed '/^|/!d;/^|[ :-]*--/d;s/, / in /g;s/^| //;s/ |$//;s/ | /,/g' "$work/launches" >"$work/rows"
    sed "1s/^/commit,device,driver,/;2,\$s|^|$origin,|" "$work/rows" >"$out/launches.csv"
}

part_0() {
    local programs=("$lrnn" "$check")
    [ -n "$small" ] || programs+=("$micro")
    step ldd 10 env LD_LIBRARY_PATH="$libraries" ldd "${programs[@]}"
    lacks ldd-finds-all 'not found' ldd
    step doctor 20 "$LRNN" doctor
    step doctor-finds-device 5 grep -q '^ok *CUDA' "$work/doctor"
    lacks built-for-the-device 'are compiled for compute capability' doctor
    train train-walked LRNN_CUDA_SYNC=1
    train train-captured LRNN_CUDA_GRAPH=1
    lacks train-is-captured 'cannot be captured' train-captured.err
    step walked-equals-captured 5 cmp "$work/train-walked.csv" "$work/train-captured.csv"
    train train-plain LRNN_CUDA_OVERLAP=0 LRNN_CUDA_BRANCHES=0
    step plain-equals-captured 5 cmp "$work/train-plain.csv" "$work/train-captured.csv"
    train train-branches LRNN_CUDA_OVERLAP=0
    step branches-equal-captured 5 cmp "$work/train-branches.csv" "$work/train-captured.csv"
    step perf-scan_diag 40 "$LRNN" perf device --only scan_diag --shape length=128 --compare=no --seconds 0 \
        ${small:+--small}
    count_launches
    step ncu 20 ncu --version
    step compute-sanitizer 20 compute-sanitizer --version
    if [ -z "$small" ] && [ "$part" != lease ]; then
        step torch 60 python3 -c 'import torch; print(torch.__version__, torch.cuda.get_device_name())'
    fi
}

# --- 1: does it work --------------------------------------------------------------------------------------------------

# All sizes of the walks would take many times as long as there is.
[ "$part" != lease ] || : "${LRNN_CUDA_EVERY:=32}"
export LRNN_CUDA_EVERY="${LRNN_CUDA_EVERY:-8}"

# suite NAME SECONDS APART [STEP [SHARE OF]]: with `yes` each test has a process of its own; of the sizes that a walk
# has every OF-th, from the SHARE-th on. A row says how many tests had passed and failed when it ended, in whatever way,
# and the log which.
suite() {
    local name=$1 seconds=$2 apart=$3 step=${4:-suite-$1} share=${5:-1} of=${6:-1}
    local tap=$work/$step.tap
    : >"$tap"
    CK_FORK=$apart CK_TAP_LOG_FILE_NAME=$tap LRNN_CUDA_FIRST=$((LRNN_CUDA_EVERY * (share - 1))) \
        LRNN_CUDA_EVERY=$((LRNN_CUDA_EVERY * of)) step "$step" "$seconds" "$CHECK" "$name"
    grep '^not ok' "$tap" >>"$log"
    echo "$origin,$name,$share/$of,$apart,$verdict,$(grep -c '^ok' "$tap"),$(grep -c '^not ok' "$tap")" \
        >>"$out/suites.csv"
    [ "$verdict" = ok ]
}

# One context for hundreds of tests, since a context takes longer to open than a test. If that goes
# wrong, a process a test, so that what one does to the device falls upon it alone.
suite_together() {
    suite "$1" 200 no "suite-$1-$2-of-$3" "$2" "$3" || suite "$1" 400 yes "suite-$1-$2-of-$3-apart" "$2" "$3"
}

# A share a process, because most of the time is that of the references on the host.
suite_in_shares() {
    local share
    for share in $(seq "$2"); do suite_together "$1" "$share" "$2" & done
    wait
}

sanitize() {
    step "$1" 400 compute-sanitizer --target-processes all --tool "$1" --error-exitcode 1 \
        env CK_FORK=no CK_DEFAULT_TIMEOUT=600 "$CHECK" cuda_short
}

part_1() {
    echo 'commit,device,driver,suite,share,apart,status,passed,failed' >"$out/suites.csv"
    if [ -n "$small" ]; then
        suite cuda_host 150 yes
    else
        suite_in_shares cuda 8 &
        suite_in_shares cuda_order 4 &
        wait # contexts take the device in turns, and these two wait for it the most often
        for name in cuda_run cuda_ways cuda_values cuda_library cuda_population; do suite "$name" 400 yes & done
    fi
    for tool in memcheck racecheck synccheck; do sanitize "$tool" & done
    wait
}

# --- 2: how fast are its parts ----------------------------------------------------------------------------------------

# Shapes by which the kernels are known, the scans with clusters and on tensor cores, and the products and the loss of
# the step: an op and the words of its shapes.
profiled='scan_block batch=128 length=128 m=5
scan_diag batch=128 length=128
scan_delta batch=128 length=128
scan_outer batch=128 length=128
scan_lstm length=128
linear out=1920
rmsnorm length=128
cross_entropy length=128'

# Measures what a fault of the device has left without a row, each op in a process of its own.
measure_rest() {
    local op ops
    ops=$("$LRNN" perf device --only '?' 2>&1 | sed 's/.*measures //;s/, /\n/g' | sort -u)
    for op in $ops; do
        grep -q ",$op,$op" "$work/perf-device" && continue
        step "perf-$op" 20 "$LRNN" perf device --only "$op" --compare=no ${small:+--small --seconds 0}
        grep ",$op,$op" "$work/perf-$op" >>"$work/perf-device"
    done
}

# Every launch of an op's kernels once for each of its sizes; nothing else runs in that process.
profile() {
    local op=$1 shape=$2
    step "ncu-$op" 40 ncu --clock-control none --csv --set basic --target-processes all \
        --filter-mode per-launch-config --launch-count 1 \
        "$LRNN" perf device --only "$op" --shape "$shape" --once ${small:+--small}
    [ "$verdict" = missing ] || step "ncu-$op-has-rows" 5 grep -q '^"[0-9]' "$work/ncu-$op"
    awk -v op="$op" -v shape="$shape" -v origin="$origin" -f tests/device/ncu.awk "$work/ncu-$op" >>"$work/ncu.rows"
}

part_2() {
    local measured
    # shellcheck disable=SC2086
    step perf-device 280 "$LRNN" perf device --compare=no ${small:+--small --seconds 0} # errors are part 1's
    measured=$verdict
    [ -n "$small" ] || step micro 100 "$MICRO"
    [ -n "$small" ] || keep micro micro.csv
    while read -r op shape; do profile "$op" "$shape"; done <<<"$profiled"
    sed '1i commit,device,driver,op,shape,kernel,block,grid,section,metric,unit,value' "$work/ncu.rows" >"$work/ncu.csv"
    keep ncu.csv ncu.csv
    [ "$measured" = ok ] || measure_rest
    keep perf-device perf-device.csv
}

# --- 3: how fast is the whole -----------------------------------------------------------------------------------------

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

# bench NAME SECONDS FLAGS...
bench() {
    local name=$1 seconds=$2
    shift 2
    step "$name" "$seconds" "$LRNN" bench "$task" --device cuda "$@" --no-plots --no-speed \
        --out "$work/folders/$name"
}

# Whole steps of the recurrences in PyTorch; a shape is written when it is done.
measure_peers() {
    if [ -n "$small" ]; then
        step perf-only 60 "$LRNN" perf device --only scan_block --compare=no --small --seconds 0
    elif python3 -c 'import torch' 2>/dev/null; then
        step peers 300 python3 tests/peers/recurrences.py --device cuda --seconds 0.3 --compile-seconds 40 \
            --unroll 16 --lrnn "$LRNN" --out "$out/peers.csv"
    else
        row peers missing 0 300
    fi
}

# Runs side by side, each a process, are what populations are to beat. All train as many steps per run, however many of
# them there are and whatever they have learnt, so that the rows of runs.csv (train_s, steps) say how much a device that
# is shared does more than one run.
part_3() {
    local task=s5 jobs=8 limited='--profile quick --limit 50s' members='1 4 16 32'
    local same='--profile quick --stop-after 4000 --stop-at 2'
    if [ -n "$small" ]; then
        task=s3:n_train=96,n_val=32,n_test=32,length=4 jobs=2 members='1 3'
        limited='--profile smoke --dim 8' same='--profile smoke --dim 8 --stop-after 3 --stop-at 2'
    fi
    mkdir "$work/folders"
    # shellcheck disable=SC2086
    bench bench 90 --models 'bdlru hlru lru' --seeds 1 $limited
    # shellcheck disable=SC2086
    bench side-by-side 60 --models bdlru --seeds $jobs --jobs $jobs $same
    for s in $members; do
        # shellcheck disable=SC2086
        bench "population-$s" 60 --models bdlru --seeds "$s" --population "$s" $same
    done
    # shellcheck disable=SC2046,SC2086
    keep_runs bench side-by-side $(printf 'population-%s ' $members)
    measure_peers
}

# --- a lease ----------------------------------------------------------------------------------------------------------

# The output that a step has printed before it ends is kept.
check_all() {
    describe_device
    part_0
}

# measure_rows STEP FLAGS...: rows of `lrnn perf device`, in perf-STEP.csv.
measure_rows() {
    local name=$1 seconds=0.1
    shift
    [ -z "$small" ] || seconds=0
    step "$name" 120 "$LRNN" perf device --compare=no --seconds "$seconds" "$@" ${small:+--small}
    keep "$name" "perf-$name.csv"
}

measure_steps() { measure_rows steps --rows steps; }
measure_calls() { measure_rows calls --rows calls; }
measure_taken() { measure_rows taken --rows kernels --taken; }

measure_micro() {
    if [ -n "$small" ]; then return; fi
    step micro 120 "$MICRO"
    keep micro micro.csv
}

# measure_population PRECISION MEMBERS: as many runs of the model of the measured step, all as many steps.
measure_population() {
    local task=s5 runs=$2 name=population-$1-$2 same='--stop-after 1500 --stop-at 2'
    same+=' --models bdlru:m=5,blocks=64 --mlp swiglu --dim 256 --batch 128'
    if [ -n "$small" ]; then
        task=s3:n_train=96,n_val=32,n_test=32,length=4 same='--models bdlru --dim 8 --stop-after 3 --stop-at 2'
        [ "$runs" -lt 3 ] || runs=3
    fi
    # shellcheck disable=SC2086
    bench "$name" 120 --profile quick --precision "$1" --seeds "$runs" --population "$runs" $same
    populations="${populations:-} $name"
    # shellcheck disable=SC2086
    keep_runs $populations
}

suite_alone() {
    [ -n "$small" ] || suite "$1" 120 yes
}

# The eight shares of the suite side by side: nothing of it is timed.
suite_shares() {
    [ -n "$small" ] || suite_in_shares cuda 8
}

# Does the commands in their order, each within its own seconds and the lease's, and then once more those that failed.
part_lease() {
    local whole=$limit seconds before again='' line round
    mkdir -p "$work/folders"
    echo 'commit,device,driver,suite,share,apart,status,passed,failed' >"$out/suites.csv"
    for round in first again; do
        [ $round = first ] && again=$lease
        lease=$again again=''
        while read -r seconds line; do
            [ -n "$line" ] || continue
            [ $round = first ] || row "again: $line" ok 0 "$seconds"
            limit=$((SECONDS - begun + (${#small} ? whole : seconds)))
            [ "$limit" -le "$whole" ] || limit=$whole
            before=$(count_failures)
            $line
            [ "$(count_failures)" = "$before" ] || again+="$seconds $line"$'\n'
        done <<<"$lease"
    done
}

[ "$part" = lease ] || describe_device
"part_$part"
[ "$(count_failures)" = 0 ]

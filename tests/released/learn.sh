#!/bin/sh
# learn.sh - every kind of released data from its files to a trained net: writes at least 2 000 images, texts or series
# in the released form (write.py), imports them, trains, and checks that the test accuracy is above that of the best
# trivial answer. `make test-released` calls it; a set takes a minute or two of one core.
#
#   tests/released/learn.sh LRNN FOLDER [SET...]
set -u
lrnn=$1
out=$2
shift 2
here=$(dirname "$0")
passed=0
failed=0
export LRNN_CACHE="$out/cache"
mkdir -p "$out"

# Draws images of a task into FOLDER/NAME-train.jsonl and -test.jsonl.
drawn() {
    for split in train test; do
        "$lrnn" data dump "$2,n_train=2000,n_test=400" "$out/$1-$split.jsonl" --split $split >/dev/null || return 1
    done
}

# learn SET IMPORTED TASK ABOVE MODEL FLAG...: trains on the files of SET, and wants a test accuracy above ABOVE.
learn() {
    set_name=$1
    imported=$2
    task=$3
    above=$4
    model=$5
    shift 5
    rm -rf "${out:?}/$set_name"
    case $set_name in
    mnist) drawn mnist digits:size=28,noise=0,clutter=0,distort=0.5 ;;
    cifar10) drawn cifar10 shapes:size=32,noise=0,contrast=0.8 ;;
    esac || return 1
    files=
    [ -f "$out/$set_name-train.jsonl" ] && files="$out/$set_name-train.jsonl $out/$set_name-test.jsonl"
    # shellcheck disable=SC2086 # two words, or none
    python3 "$here/write.py" "$set_name" "$out/$set_name" $files || return 1
    "$lrnn" data import "$imported" "$out/$set_name" >/dev/null || return 1
    json=$("$lrnn" train "$task" "$model" "$@" --quiet --json --out "$out/runs") || return 1
    accuracy=$(printf '%s' "$json" | sed -n 's/.*"test_acc":\([0-9.e+-]*\).*/\1/p')
    echo "$task $model: test accuracy $accuracy, wanted above $above"
    awk -v a="$accuracy" -v b="$above" 'BEGIN { exit !(a > b) }'
}

# Trivial answers reach .13 at most of ten digits or shapes, .5 of two kinds and .38 of three.
learn_set() {
    case $1 in
    mnist) learn mnist mnist smnist:patch=4 0.2 lru --dim 32 --epochs 8 --lr 0.004 ;;
    cifar10) learn cifar10 cifar10 scifar:patch=4 0.2 lru --dim 32 --epochs 8 --lr 0.008 ;;
    pathfinder32)
        learn pathfinder32 pathfinder32 pathfinder:released=yes,patch=4 0.6 lru --dim 32 --epochs 12 --lr 0.004
        ;;
    imdb) learn imdb imdb lra-text:length=160 0.6 lru --dim 32 --epochs 6 --lr 0.004 ;;
    aan) learn aan aan lra-retrieval:length=40 0.6 lru --dim 32 --epochs 8 --lr 0.004 ;;
    uea) learn uea uea:Waves uea:set=Waves 0.45 lru --dim 32 --epochs 6 --lr 0.004 ;;
    *) echo "learn.sh: no set is called $1" >&2 && exit 2 ;;
    esac
}

[ $# -gt 0 ] || set -- mnist cifar10 pathfinder32 imdb aan uea
for name; do
    if learn_set "$name"; then
        passed=$((passed + 1))
    else
        echo "learn.sh: $name: not learnt" >&2
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]

#!/usr/bin/env bash
# workflows.sh - runs the shell steps of the workflow files in ci/ as they stand, each in a clone of a bare copy of this
# repository and with the variables that the service would set: a change beside its merge base, and a commit of main
# with its pages.
# Exit 0: all steps ended as they should and left what is published; 1: one did not; 2: PyYAML is missing
# (apt-get install python3-yaml). The steps install packages and need root.
#
#   tests/ci/workflows.sh [NAME...]      make test-workflows; NAME is one of the four runs below. They share one
#                                        compiler cache, as the service's would be: CACHE=folder, or a new one
set -euo pipefail
names=" $* "
cd "$(dirname "$0")/../.."
python3 -c 'import yaml' 2>/dev/null || { echo "workflows.sh: no PyYAML; apt-get install python3-yaml" >&2; exit 2; }
work=$(mktemp -d)
cache=$(realpath -m "${CACHE:-$work/cache}")
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

wanted() { [ "$names" = "  " ] || [ "${names#* "$1" }" != "$names" ]; }

# run NAME FILE EVENT VARIABLE=VALUE...: the steps, in a clone whose branch `change` is one commit after main.
run() {
    local name=$1 file=$2 event=$3 clone=$work/$1/clone start=$SECONDS
    shift 3
    wanted "$name" || return 0
    mkdir -p "$work/$name/home"
    git clone -q --bare . "$work/$name/origin"
    git -C "$work/$name/origin" update-ref refs/heads/main HEAD
    git -C "$work/$name/origin" symbolic-ref HEAD refs/heads/main
    git clone -q "$work/$name/origin" "$clone"
    mkdir -p "$cache"
    ln -s "$cache" "$clone/.ccache"
    if [ "$event" != push ]; then
        git -C "$clone" checkout -q -b change
        echo "a line more" >>"$clone/README.md"
        git -C "$clone" -c user.name=test -c user.email=test@localhost commit -qam "a change"
    fi
    if tests/ci/steps.py "$file" "$event" >"$work/$name/steps" &&
        (cd "$clone" && env -i PATH="$PATH" HOME="$work/$name/home" CI=true "$@" bash "$work/$name/steps") \
            >"$work/$name/log" 2>&1; then
        echo "$name: its steps ended well, $((SECONDS - start)) s"
    else
        tail -30 "$work/$name/log" >&2
        echo "workflows.sh: WRONG the steps of $name failed, $((SECONDS - start)) s" >&2
        failed=$((failed + 1))
        return
    fi
    passed=$((passed + 1))
}

# left NAME FILE TEXT: the steps have left a file of the clone that has the text.
left() {
    wanted "$1" || return 0
    if grep -q -e "$3" "$work/$1/clone/$2" 2>/dev/null; then
        passed=$((passed + 1))
    else
        echo "workflows.sh: WRONG the steps of $1 left no $2 with '$3'" >&2
        failed=$((failed + 1))
    fi
}

run github-change ci/github.yml pull_request GITHUB_WORKSPACE="$work/github-change/clone" GITHUB_BASE_REF=main \
    GITHUB_STEP_SUMMARY="$work/github-change/clone/summary"
left github-change gate.xml '<testsuite'
left github-change summary 'Accuracy'
run github-main ci/github.yml push GITHUB_WORKSPACE="$work/github-main/clone" GITHUB_BASE_REF= \
    GITHUB_STEP_SUMMARY="$work/github-main/clone/summary"
left github-main site/index.html '<html'
left github-main site/gate.svg '<svg'
left github-main results/gate.jsonl '"commit"'
run gitlab-change ci/gitlab.yml merge_request CI_PROJECT_DIR="$work/gitlab-change/clone" CI_DEFAULT_BRANCH=main \
    CI_COMMIT_BRANCH= CI_MERGE_REQUEST_TARGET_BRANCH_NAME=main
left gitlab-change gate.xml '<testsuite'
run gitlab-main ci/gitlab.yml push CI_PROJECT_DIR="$work/gitlab-main/clone" CI_DEFAULT_BRANCH=main CI_COMMIT_BRANCH=main
left gitlab-main public/index.html '<html'
left gitlab-main public/gate.svg '<svg'
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]

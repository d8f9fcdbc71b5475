#!/bin/sh
# gate.sh - builds a commit beside this tree and asks `lrnn gate` whether this tree's build is as accurate and as fast.
# `make gate BASE=main` calls it; the commit is built with the same flags in a git worktree outside the tree, which is
# removed afterwards.
#
#   tools/gate.sh LRNN OBJECTS BASE [FLAGS OF lrnn gate...]
#
# LRNN and OBJECTS (build/float, beside it the folder of the CUDA mode) are up to date. They are copied, so that only
# sources that differ in the commit are compiled again. MAKE and its variables come from the environment. With
# ALLOW_INCONCLUSIVE=1 a gate that could not decide (4) ends with 0, for CI on a shared machine; a regression (3) never
# does.
set -eu

if [ $# -lt 3 ]; then
    usage=$(sed -n '2,/^set -eu/s/^#\( \|$\)//p' "$0")
    case ${1:-} in
        -h | --help) printf '%s\n' "$usage"; exit 0 ;;
    esac
    echo "gate.sh: expected tools/gate.sh LRNN OBJECTS BASE, got $# words; try make gate BASE=main, or --help" >&2
    exit 2
fi
lrnn=$(realpath "$1") objects=$2 base=$3
shift 3

tree=$(mktemp -d)
trap 'git worktree remove --force "$tree/base" 2>/dev/null; rm -rf "$tree"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

commit=$(git rev-parse --verify --quiet "$base^{commit}") ||
    { echo "gate.sh: there is no commit '$base' here; BASE=COMMIT names the one to compare with" >&2; exit 2; }

# A copy of this tree with its times; git then writes only the files that differ in the commit.
git worktree add --quiet --detach --no-checkout "$tree/base" "$commit"
git ls-files -z | tar --null --ignore-failed-read -T - -cf - 2>/dev/null | tar -xf - -C "$tree/base"
git -C "$tree/base" reset --quiet --mixed
git -C "$tree/base" checkout --quiet --force -- .
git -C "$tree/base" clean --quiet --force -d
mkdir -p "$tree/base/build"
cp -a "$objects" "$objects"-* "$tree/base/build/"
echo "building $(git log -1 --format='%h %s' "$commit")"
"${MAKE:-make}" --no-print-directory -C "$tree/base" BUILD=build all >"$tree/log" 2>&1 ||
    { tail -20 "$tree/log" >&2; echo "gate.sh: $base does not build" >&2; exit 1; }
old=$tree/base/$(basename "$lrnn")

"$old" gate --write "$tree/baseline" ||
    { echo "gate.sh: the program of $base makes no baseline; it may be older than \`lrnn gate\`" >&2; exit 1; }
status=0
"$lrnn" gate --baseline "$tree/baseline" --accuracy --throughput --against "$old" "$@" || status=$?
if [ "$status" = 4 ] && [ "${ALLOW_INCONCLUSIVE:-}" = 1 ]; then
    echo "gate.sh: what could not be decided on this machine is no failure here"
    status=0
fi
exit "$status"

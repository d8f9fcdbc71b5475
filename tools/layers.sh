#!/bin/sh
# layers.sh - fails on an include that the layering forbids (docs/design.md, "Layers").
#
#   tools/layers.sh          checks itself on made-up trees, then checks this tree
#   tools/layers.sh FOLDER   checks the tree in FOLDER
set -eu

# Folders whose headers a folder may include.
allowed() {
    case $1 in
    core) echo core ;;
    kernels) echo core kernels ;;
    models) echo core kernels models ;;
    tasks) echo core tasks ;;
    harness) echo core kernels models tasks harness ;;
    tests) echo core kernels models tasks harness tests ;;
    esac
}

folders='core kernels models tasks harness tests'

# Prints each forbidden include of the tree in $1, one sentence a line.
violations() {
    for folder in $folders; do
        [ -d "$1/$folder" ] || continue
        (cd "$1" && find "$folder" -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.def') | sort |
            while read -r file; do
                awk -v file="$file" -v may="$(allowed "$folder")" -v all="$folders" '
                    /^[ \t]*#[ \t]*include[ \t]*["<]/ {
                        quoted = $0 ~ /include[ \t]*"/
                        path = $0
                        sub(/^[^"<]*["<]/, "", path)
                        sub(/[">].*$/, "", path)
                        from = path
                        sub(/\/.*$/, "", from)
                        ours = index(" " all " ", " " from " ") > 0 && path ~ /\//
                        where = file ":" FNR ": "
                        if (path ~ /(^|\/)\.\.?\//)
                            print where "includes \"" path "\"; write the path from the root"
                        else if (ours && index(" " may " ", " " from " ") == 0)
                            print where "includes \"" path "\"; this folder may include only " may
                        else if (path == "harness/main.c")
                            print where "includes \"" path "\"; nothing may"
                        else if (quoted && !ours)
                            print where "includes \"" path "\"; write the path from the root, or <> for a library"
                    }' "$1/$file"
            done
    done
}

# Every forbidden pair must be found, every allowed one must not.
self_test() {
    tree=$(mktemp -d)
    trap 'rm -rf "$tree"' EXIT
    for from in $folders; do
        for to in $folders; do
            for line in "#include \"$to/x.h\"" "# include <$to/x.h>"; do
                rm -rf "${tree:?}/$from"
                mkdir -p "$tree/$from"
                printf '/* x */\n%s\n' "$line" >"$tree/$from/x.c"
                case " $(allowed "$from") " in
                *" $to "*) want=0 ;;
                *) want=1 ;;
                esac
                got=$(violations "$tree" | wc -l)
                if [ "$got" -ne "$want" ]; then
                    echo "layers: self-test: $line in $from/ gave $got findings, expected $want" >&2
                    return 1
                fi
            done
            rm -rf "${tree:?}/$from"
        done
    done
    mkdir "$tree/tests"
    for line in '#include "harness/main.c"' '#include "x.h"' '#include "../core/x.h"' '#include "./core/x.h"'; do
        printf '%s\n' "$line" >"$tree/tests/x.c"
        if [ "$(violations "$tree" | wc -l)" -ne 1 ]; then
            echo "layers: self-test: $line in tests/ was not found" >&2
            return 1
        fi
    done
}

if [ $# -eq 0 ]; then
    self_test
    cd "$(dirname "$0")/.."
fi
found=$(violations "${1:-.}")
if [ -n "$found" ]; then
    printf '%s\n' "$found" >&2
    echo "layers: $(printf '%s\n' "$found" | wc -l) forbidden includes" >&2
    exit 1
fi
echo "layers: no forbidden include"

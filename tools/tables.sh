#!/bin/sh
# tables.sh - writes the tables of pages again. A table stands between two marks, the first of which has its command:
#
#     <!-- table: lrnn report --what lengths -->
#     <!-- end of table -->
#
#   tools/tables.sh [--check] PAGE...
#
# Commands begin with `lrnn report`, which reads results/baseline and writes Markdown unless
# they say --format, or with `awk -f tools/`. LRNN is
# the program, ./lrnn if it is not set. Nothing is written where a command fails or a mark lacks its fellow. --check
# writes nothing and fails where a page would change.
set -eu
check=no
if [ "${1-}" = --check ]; then
    check=yes
    shift
fi
if [ $# -eq 0 ]; then
    echo "tables.sh: no page; expected tools/tables.sh [--check] docs/findings.md" >&2
    exit 2
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The command as it is run.
command_of() {
    case $1 in
    'lrnn report'*' --format '*) echo "'${LRNN:-./lrnn}' report --out results/baseline${1#lrnn report}" ;;
    'lrnn report'*) echo "'${LRNN:-./lrnn}' report --out results/baseline --format md${1#lrnn report}" ;;
    'awk -f tools/'*) echo "$1" ;;
    *)
        echo "tables.sh: $2: the command '$1' begins neither with 'lrnn report' nor with 'awk -f tools/'" >&2
        return 1
        ;;
    esac
}

# The page with its tables, on stdout.
fill() {
    inside=
    number=0
    while IFS= read -r line || [ -n "$line" ]; do
        number=$((number + 1))
        case $line in
        '<!-- table: '*' -->')
            if [ -n "$inside" ]; then
                echo "tables.sh: $1:$number: a table begins within that of line $inside" >&2
                return 1
            fi
            inside=$number
            words=${line#<!-- table: }
            command=$(command_of "${words% -->}" "$1:$number") || return 1
            printf '%s\n' "$line"
            if ! sh -c "$command" <"/dev/null" >"$folder/table"; then
                echo "tables.sh: $1:$number: no table from: ${words% -->}" >&2
                return 1
            fi
            cat "$folder/table"
            ;;
        '<!-- end of table -->')
            if [ -z "$inside" ]; then
                echo "tables.sh: $1:$number: a table ends that did not begin" >&2
                return 1
            fi
            inside=
            printf '%s\n' "$line"
            ;;
        *) [ -n "$inside" ] || printf '%s\n' "$line" ;;
        esac
    done <"$1"
    if [ -n "$inside" ]; then
        echo "tables.sh: $1:$inside: the table has no end" >&2
        return 1
    fi
}

status=0
for page; do
    fill "$page" >"$folder/page" || exit 1
    if cmp -s "$folder/page" "$page"; then continue; fi
    if [ $check = yes ]; then
        echo "tables.sh: $page is not what its commands write; \`make results\` writes it again" >&2
        diff "$page" "$folder/page" | head -20 >&2 || true
        status=1
    else
        cp "$folder/page" "$page"
    fi
done
exit $status

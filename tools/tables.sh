#!/bin/sh
# tables.sh - writes the tables and figures of pages again. A table stands between two marks, and the first holds its
# command. A figure stands below such a mark:
#
#     <!-- table: lrnn report --what lengths -->
#     <!-- end of table -->
#
#     <!-- figure: lrnn plot length --task parity -->
#     ![what one sees](../results/baseline/parity-length.svg)
#
#   tools/tables.sh [--check] PAGE...
#
# Commands begin with `lrnn report`, which reads results/baseline and writes Markdown unless they say --format, with
# `lrnn compare FOLDER`, which writes Markdown, or with `awk -f tools/`; those of figures with `lrnn plot`, and draw
# one SVG. LRNN names the program, by default ./lrnn. No page is written if a command fails, a mark has no partner or a
# picture of the records has no command. --check writes nothing, and fails if a page or picture would change.
set -eu
check=no
if [ "${1-}" = --check ]; then
    check=yes
    shift
fi
if [ $# -eq 0 ]; then
    echo "tables.sh: no page; expected tools/tables.sh [--check] docs/results.md" >&2
    exit 2
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The command with the program and the defaults filled in.
command_of() {
    case $1 in
    'lrnn report'*' --format '*) echo "'${LRNN:-./lrnn}' report --out results/baseline${1#lrnn report}" ;;
    'lrnn report'*) echo "'${LRNN:-./lrnn}' report --out results/baseline --format md${1#lrnn report}" ;;
    'lrnn compare '*) echo "'${LRNN:-./lrnn}' compare --format md${1#lrnn compare}" ;;
    'awk -f tools/'*) echo "$1" ;;
    *)
        echo "tables.sh: $2: the command '$1' begins neither with 'lrnn report', 'lrnn compare' nor 'awk -f tools/'" >&2
        return 1
        ;;
    esac
}

# A picture without the release of gnuplot, which the comparison ignores.
without_version() {
    sed '/Produced by GNUPLOT/d' "$1"
}

# draw COMMAND PICTURE WHERE: draws the picture by the command.
draw() {
    case $1 in
    'lrnn plot '*) ;;
    *)
        echo "tables.sh: $3: the command '$1' does not begin with 'lrnn plot'" >&2
        return 1
        ;;
    esac
    rm -rf "$folder/figure"
    if ! sh -c "'${LRNN:-./lrnn}' plot ${1#lrnn plot } --out results/baseline --format svg --to '$folder/figure'" \
        </dev/null >/dev/null || [ "$(find "$folder/figure" -type f | wc -l)" != 1 ]; then
        echo "tables.sh: $3: expected one picture from: $1" >&2
        return 1
    fi
    without_version "$folder"/figure/*.svg >"$folder/drawn"
    if [ -e "$2" ] && without_version "$2" | cmp -s - "$folder/drawn"; then return 0; fi
    if [ $check = yes ]; then
        echo "tables.sh: $2 is not what its command draws ($3); \`make results\` draws it again" >&2
        return 1
    fi
    cp "$folder"/figure/*.svg "$2"
}

# figure LINE WHERE: draws the picture that the line shows, by the command before it. Only pictures of the records have
# a command.
figure() {
    picture=${1#*"]("}
    picture=$(dirname "$page")/${picture%")"*}
    case $picture in
    *results/baseline/*) ;;
    *) return 0 ;;
    esac
    if [ -z "$drawn_by" ]; then
        echo "tables.sh: $2: no <!-- figure: lrnn plot ... --> before the picture" >&2
        return 1
    fi
    draw "$drawn_by" "$picture" "$2"
}

# Makes the tables of a page, as many at once as there are cores: each in $folder/table.LINE, unless its command fails.
make_tables() {
    rm -f "$folder"/table.*
    grep -n '^<!-- table: .* -->$' "$1" | while IFS=: read -r number words; do
        words=${words#<!-- table: }
        command=$(command_of "${words% -->}" "$1:$number") || exit 1
        printf '%s\0%s\0' "$folder/table.$number" "$command"
    done >"$folder/commands" || return 1
    # shellcheck disable=SC2016 # the words of the inner shell
    xargs -0 -r -n 2 -P "$(nproc)" sh -c 'sh -c "$2" </dev/null >"$1" || rm "$1"' sh <"$folder/commands"
}

# Prints the page with its tables.
fill() {
    make_tables "$1" || return 1
    inside=
    drawn_by=
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
            printf '%s\n' "$line"
            if ! cat "$folder/table.$number" 2>/dev/null; then
                words=${line#<!-- table: }
                echo "tables.sh: $1:$number: no table from: ${words% -->}" >&2
                return 1
            fi
            ;;
        '<!-- figure: '*' -->') printf '%s\n' "$line" ;;
        '<!-- end of table -->')
            if [ -z "$inside" ]; then
                echo "tables.sh: $1:$number: a table ends that did not begin" >&2
                return 1
            fi
            inside=
            printf '%s\n' "$line"
            ;;
        '!['*)
            figure "$line" "$1:$number" || return 1
            printf '%s\n' "$line"
            ;;
        *) [ -n "$inside" ] || printf '%s\n' "$line" ;;
        esac
        case $line in
        '<!-- figure: '*' -->')
            drawn_by=${line#<!-- figure: }
            drawn_by=${drawn_by% -->}
            ;;
        *) drawn_by= ;;
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

#!/bin/sh
# layers.sh - fails on
#   - an include that the order of folders and rooms forbids (docs/design.md, "Folders")
#   - modules that include each other in a circle; a module is a header and the source of the same name
#   - a comment that names a missing file
#   - a function that a header declares and only its own source uses
#   - a called member of a struct that has the name of a function, which reads like an include that is not there
#   - a source or a room that is too long to be read
#
#   tools/layers.sh          checks itself on a made-up tree, then checks this tree
#   tools/layers.sh FOLDER   checks the tree in FOLDER
set -eu

folders='core kernels include library models tasks harness tests'
source_lines=600 # at most, in a source
room_lines=4000  # at most, of the sources of a folder, without its subfolders

# Folders whose headers a folder may include.
allowed() {
    case $1 in
    core) echo core ;;
    kernels) echo core kernels ;;
    include) echo include ;;
    library) echo core kernels include library ;;
    models) echo core kernels models ;;
    tasks) echo core tasks ;;
    harness) echo core kernels models tasks harness ;;
    tests) echo core kernels include library models tasks harness tests ;;
    esac
}

# Rooms of a folder in their order: a room may include itself and those before it. A header in the folder itself counts
# as before all rooms, a source or a list as after them.
rooms() {
    case $1 in
    core) echo file plan cuda ;;
    kernels) echo lib dense norm move token gated flow matrix stable route links plstm tree train ;;
    tasks) echo data own language mad image series graph ;;
    harness) echo store study run rows sheet plot table perf pool site gate cli ;;
    esac
}

# awk_over_sources TREE ARGUMENT...: runs awk over all files of the tree that include others.
awk_over_sources() {
    cd "$1"
    shift
    # shellcheck disable=SC2086 # $folders is meant to fall into words
    find $folders \( -name '*.[ch]' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' -o -name '*.def' \) -print0 \
        2>/dev/null | sort -z | xargs -0 -r awk "$@"
}

# Prints each forbidden include of the tree in $1, one sentence a line.
violations() {
    table=$(for folder in $folders; do printf '%s:%s:%s;' "$folder" "$(allowed "$folder")" "$(rooms "$folder")"; done)
    # shellcheck disable=SC2016 # the $ are those of awk
    (awk_over_sources "$1" -v table="$table" '
        function top(path) {
            sub(/\/.*$/, "", path)
            return path
        }
        function holds(words, word) {
            return index(" " words " ", " " word " ") > 0
        }
        # The place of a path in the order of its folder; -1: its room is not in the order.
        function rank(path,   part, room, n, i) {
            n = split(path, part, "/")
            if (rooms[part[1]] == "") return 0
            count = split(rooms[part[1]], room, " ")
            if (n == 2) return path ~ /\.(c|cc|cu|def)$/ ? count + 1 : 0
            for (i = 1; i <= count; i++) if (room[i] == part[2]) return i
            return -1
        }
        BEGIN {
            for (n = split(table, line, ";"); n > 0; n--) {
                split(line[n], column, ":")
                may[column[1]] = column[2]
                rooms[column[1]] = column[3]
            }
        }
        FNR == 1 {
            folder = top(FILENAME)
            if (rank(FILENAME) < 0) print FILENAME ": lies in no room of " folder "/: " rooms[folder]
        }
        /^[ \t]*#[ \t]*include[ \t]*["<]/ {
            quoted = $0 ~ /include[ \t]*"/
            path = $0
            sub(/^[^"<]*["<]/, "", path)
            sub(/[">].*$/, "", path)
            from = top(path)
            ours = from in may && path ~ /\//
            says = FILENAME ":" FNR ": includes \"" path "\"; "
            if (path ~ /(^|\/)\.\.?\//)
                print says "write the path from the root"
            else if (ours && !holds(may[folder], from))
                print says "this folder may include only " may[folder]
            else if (path == "harness/main.c")
                print says "nothing may"
            else if (quoted && !ours)
                print says "write the path from the root, or <> for a library"
            else if (from == folder && rank(path) > rank(FILENAME))
                print says "the rooms of " folder "/ stand in the order " rooms[folder]
        }')
}

# Prints each circle of modules of the tree in $1, a line each.
circles() {
    # shellcheck disable=SC2016 # the $ are those of awk
    (awk_over_sources "$1" '
        function module(path) {
            sub(/\.[a-z]+$/, "", path)
            return path
        }
        /^[ \t]*#[ \t]*include[ \t]*"/ {
            split($0, part, "\"")
            if (module(part[2]) != module(FILENAME)) print module(FILENAME), module(part[2])
        }') | tsort 2>&1 >/dev/null |
        sed -n 's/^tsort: //p' | awk '
            function flush() {
                if (modules != "") print modules ": include each other in a circle"
                modules = ""
            }
            /input contains a loop/ { flush(); next }
            { modules = modules (modules == "" ? "" : ", ") $0 }
            END { flush() }'
}

# Prints each missing source that a comment of the tree in $1 names, a line each. Exceptions: <name.h> is a file of
# others, "name.h" an example, and NAME and ROOM are placeholders.
named_in_vain() {
    # shellcheck disable=SC2016 # the $ are those of awk
    (awk_over_sources "$1" '
        # The comment in a line; `inside` tells whether it goes on in the next.
        function comment(line,   text, at) {
            for (text = ""; line != ""; inside = !inside) {
                at = index(line, inside ? "*/" : "/*")
                if (inside) text = text " " (at ? substr(line, 1, at - 1) : line)
                if (!at) break
                line = substr(line, at + 2)
            }
            return text
        }
        BEGIN {
            for (i = 1; i < ARGC; i++) {
                path = ARGV[i]
                do there[path] = 1
                while (sub(/^[^\/]*\//, "", path))
            }
        }
        FNR == 1 { inside = 0 }
        {
            text = comment($0)
            while (match(text, /[A-Za-z0-9_.\/<"-]+\.(c|h|cc|cu|cuh|def)([^A-Za-z0-9_]|$)/)) {
                name = substr(text, RSTART, RLENGTH)
                text = substr(text, RSTART + RLENGTH)
                sub(/[^A-Za-z0-9_]$/, "", name)
                if (!(name in there) && name !~ /[<"]|NAME|ROOM/) print FILENAME ":" FNR ": there is no " name
            }
        }')
}

# Prints each header of the tree in $1 whose guard is not its path, a line each. So no two headers share a guard.
misguarded() {
    # shellcheck disable=SC2016 # the $ are those of awk
    (awk_over_sources "$1" '
        FNR == 1 {
            guard = toupper("LRNN_" FILENAME)
            gsub(/[^A-Z0-9]/, "_", guard)
            seen = FILENAME !~ /\.(h|cuh)$/
        }
        !seen && /^#ifndef / {
            seen = 1
            if ($2 != guard) print FILENAME ": has the guard " $2 ", expected " guard
        }')
}

# Prints each function that a header of the tree in $1 declares and only its own source names, a line each; it should
# be static there. A header that names it twice uses it. CUDA headers are left out, as most of their functions are
# inline.
lonely() {
    # shellcheck disable=SC2016 # the $ are those of awk
    (awk_over_sources "$1" '
        FNR == 1 { header = FILENAME ~ /\.(h|cuh)$/ }
        FILENAME ~ /\.h$/ && /^[a-z].*[ *][a-z_0-9]+\(/ && !/^(static|typedef)/ && FILENAME !~ /^tests\/cuda\// {
            name = $0
            sub(/\(.*/, "", name)
            sub(/.*[ *]/, "", name)
            declared[name] = FILENAME
        }
        {
            text = $0
            while (match(text, /[A-Za-z_][A-Za-z_0-9]*/)) {
                word = substr(text, RSTART, RLENGTH)
                text = substr(text, RSTART + RLENGTH)
                if (header) named[word]++
                else if (in_source[word] != FILENAME) {
                    in_source[word] = FILENAME
                    sources[word]++
                }
            }
        }
        END {
            for (name in declared)
                if (sources[name] < 2 && named[name] < 2)
                    print declared[name] ": declares " name ", which no source uses but its own; make it static"
        }') | sort
}

# Prints each call through a struct, x->name(...), below the harness, if a header there declares a function of that
# name: a reader who follows the name would arrive at another module.
two_meanings() {
    # shellcheck disable=SC2016 # the $ are those of awk
    (awk_over_sources "$1" '
        FILENAME !~ /^(core|kernels|models|tasks)\/.*\.[ch]$/ { next }
        FILENAME ~ /\.h$/ && /^[a-zA-Z].*[ *][a-z_0-9]+\(/ && !/^typedef/ {
            name = $0
            sub(/\(.*/, "", name)
            sub(/.*[ *]/, "", name)
            declared[name] = FILENAME
        }
        {
            text = $0
            while (match(text, /(->|\.)[a-z_0-9]+\(/)) {
                name = substr(text, RSTART, RLENGTH - 1)
                text = substr(text, RSTART + RLENGTH)
                sub(/^(->|\.)/, "", name)
                at[FILENAME ":" FNR] = name
            }
        }
        END {
            for (place in at)
                if (at[place] in declared)
                    print place ": calls a member " at[place] ", and " declared[at[place]] \
                        " declares a function of that name; rename one"
        }') | sort
}

# Prints each source and each room of the tree in $1 that is too long, a line each.
too_long() {
    # shellcheck disable=SC2016 # the $ are those of awk
    (awk_over_sources "$1" -v most="$source_lines" -v room_most="$room_lines" '
        function flush() {
            if (lines > most) print path ": has " lines " lines, expected at most " most
            room = path
            sub(/\/[^\/]*$/, "", room)
            total[room] += lines
        }
        FNR == 1 { if (path != "") flush(); path = FILENAME }
        { lines = FNR }
        END {
            flush()
            for (room in total)
                if (total[room] > room_most)
                    print room ": has " total[room] " lines, expected at most " room_most "; make two rooms of it"
        }') | sort
}

# try VERDICT FOLDER SUFFIX LINE: adds a file with one line to the made-up tree. The file's name holds the verdict.
tried=0
try() {
    tried=$((tried + 1))
    mkdir -p "$tree/$2"
    printf '/* x */\n%s\n' "$4" >"$tree/$2/$1$tried.$3"
}

# Every forbidden pair of folders and of rooms must be found once, and no allowed pair.
self_test() {
    tree=$(mktemp -d)
    trap 'rm -rf "$tree"' EXIT
    for from in $folders; do
        for to in $folders; do
            case " $(allowed "$from") " in
            *" $to "*) verdict=good ;;
            *) verdict=bad ;;
            esac
            try $verdict "$from" c "#include \"$to/x.h\""
            try $verdict "$from" c "# include <$to/x.h>"
        done
        before=''
        for to in $(rooms "$from"); do
            for room in $before; do
                try good "$from/$to" c "#include \"$from/$room/x.h\""
                try bad "$from/$room" c "#include \"$from/$to/x.h\""
                try bad "$from/$room" h "#include \"$from/$to/x.h\""
            done
            try good "$from/$to" h "#include \"$from/$to/x.h\""
            try good "$from/$to" h "#include \"$from/x.h\""
            try good "$from" c "#include \"$from/$to/x.h\""
            try bad "$from" h "#include \"$from/$to/x.h\""
            before="$before $to"
        done
        if [ -n "$before" ]; then try bad "$from/attic" c ''; fi
    done
    for line in '#include "harness/main.c"' '#include "x.h"' '#include "../core/x.h"' '#include "./core/x.h"'; do
        try bad tests c "$line"
    done
    violations "$tree" | sed 's/:.*//' | sort >"$tree/found"
    (cd "$tree" && find . -name 'bad*' | sed 's/^..//' | sort) >"$tree/expected"
    if ! diff "$tree/expected" "$tree/found" >"$tree/difference"; then
        sed -n 's/^[<>] //p' "$tree/difference" | while read -r file; do
            echo "layers: self-test: $(sed -n 2p "$tree/$file") in $file is wrongly judged" >&2
        done
        return 1
    fi
    rm -r "${tree:?}"/*
    mkdir -p "$tree/core"
    while read -r file includes; do
        printf '#include "core/%s"\n' "$includes" >"$tree/core/$file"
    done <<EOF
a.c b.h
b.c a.h
p.h q.h
q.c r.h
r.h p.h
x.c x.h
y.c x.h
z.h x.h
EOF
    circles "$tree" >"$tree/found"
    if [ "$(wc -l <"$tree/found")" -ne 2 ] || ! grep -q '^core/[ab], core/[ab]:' "$tree/found" ||
        ! grep -q '^core/[pqr], core/[pqr], core/[pqr]:' "$tree/found"; then
        echo "layers: self-test: a, b and p, q, r are circles; found: $(cat "$tree/found")" >&2
        return 1
    fi
    rm -r "${tree:?}"/*
    mkdir -p "$tree/core/file"
    cat >"$tree/core/a.c" <<EOF
/* a.c - as core/file/b.h and b.h, <stdio.h>, "c.h", NAME.c and e.g. c say; not 2.h. */
#include "core/gone.h" /* in file/b.h (c.c)
 * file/a.c */ int gone.c; /* a.c */ /* d.def */
EOF
    echo '/* b.h - none of core/b.h. */' >"$tree/core/file/b.h"
    named_in_vain "$tree" | sed 's/.*no //' >"$tree/found"
    if [ "$(tr '\n' ' ' <"$tree/found")" != '2.h c.c file/a.c d.def core/b.h ' ]; then
        echo "layers: self-test: 2.h c.c file/a.c d.def core/b.h are named in vain; found: $(cat "$tree/found")" >&2
        return 1
    fi
    rm -r "${tree:?}"/*
    mkdir -p "$tree/core/file"
    printf '/* x */\n#ifndef LRNN_CORE_FILE_A_H\n' | tee "$tree/core/file/a.h" "$tree/core/a.h" >"$tree/core/a.c"
    if [ "$(misguarded "$tree")" != 'core/a.h: has the guard LRNN_CORE_FILE_A_H, expected LRNN_CORE_A_H' ]; then
        echo "layers: self-test: core/a.h alone has the guard of another; found: $(misguarded "$tree")" >&2
        return 1
    fi
    rm -r "${tree:?}"/*
    mkdir -p "$tree/core"
    printf 'int used(void);\nint *own(int a,\n         int b);\nint in_macro(void);\n#define M in_macro()\n' \
        >"$tree/core/a.h"
    printf 'int used(void) {\n    return *own(1, in_macro());\n}\n' >"$tree/core/a.c"
    echo 'int other = used();' >"$tree/core/b.c"
    if [ "$(lonely "$tree")" != 'core/a.h: declares own, which no source uses but its own; make it static' ]; then
        echo "layers: self-test: own is used by core/a.c alone; found: $(lonely "$tree")" >&2
        return 1
    fi
    rm -r "${tree:?}"/*
    mkdir -p "$tree/core" "$tree/kernels"
    printf 'LRNN_INLINE void put(int a) {\n}\nvoid get(void);\n' >"$tree/kernels/a.h"
    printf 'void f(void) {\n    p->put(1);\n    p->other();\n    get();\n}\n' >"$tree/core/b.c"
    if [ "$(two_meanings "$tree" | sed 's/, .*//')" != 'core/b.c:2: calls a member put' ]; then
        echo "layers: self-test: put alone has two meanings; found: $(two_meanings "$tree")" >&2
        return 1
    fi
    rm -r "${tree:?}"/*
    mkdir -p "$tree/core/full" "$tree/core/over"
    for room in full over; do
        for i in $(seq $((room_lines / 500))); do yes x | head -n 500 >"$tree/core/$room/$i.c"; done
    done
    echo x >"$tree/core/over/more.h"
    yes x | head -n "$source_lines" >"$tree/core/long.c"
    yes x | head -n $((source_lines + 1)) >"$tree/core/longer.c"
    too_long "$tree" | sed 's/:.*//' >"$tree/found"
    if [ "$(tr '\n' ' ' <"$tree/found")" != 'core/longer.c core/over ' ]; then
        echo "layers: self-test: core/longer.c and core/over are too long; found: $(cat "$tree/found")" >&2
        return 1
    fi
}

if [ $# -eq 0 ]; then
    self_test
    cd "$(dirname "$0")/.."
fi
here=${1:-.}
found=$(violations "$here" && circles "$here" && named_in_vain "$here" && misguarded "$here" && lonely "$here" &&
    two_meanings "$here" && too_long "$here")
if [ -n "$found" ]; then
    printf '%s\n' "$found" >&2
    echo "layers: $(printf '%s\n' "$found" | wc -l) findings" >&2
    exit 1
fi
echo "layers: no forbidden include, no circle, no comment names a file that is not there, each guard" \
    "is its path, no function is declared for one source, no called member" \
    "has a function's name, no room over $room_lines lines, no source over $source_lines"

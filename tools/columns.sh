#!/bin/sh
# columns.sh FILE... - names every line of over 120 columns, and fails if there is one. In Markdown, rows of tables,
# code, marks of figures and printed output between marks (tools/tables.sh) may be wider.
set -eu

awk '
    FNR == 1 {
        markdown = FILENAME ~ /\.md$/
        fenced = printed = 0
    }
    markdown && /^```/ { fenced = !fenced }
    markdown && /^<!-- table/ { printed = 1 }
    markdown && /^<!-- end of table/ { printed = 0 }
    length > 120 && !(markdown && (fenced || printed || /^(    |\||<!-- figure)/)) {
        print FILENAME ":" FNR ": has " length " columns, expected at most 120"
        wide++
    }
    END { exit wide > 0 }' "$@"

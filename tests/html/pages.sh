#!/usr/bin/env bash
# pages.sh - the pages of `lrnn report --html` in headless Chromium: they load without a word on the console, pictures
# are there, nothing comes from elsewhere, they fit a telephone and can be read by day and in the dark. Exit 0: all
# held; 1: something did not, named; 2: no Chromium (apt-get install chromium).
#
#   tests/html/pages.sh LRNN [FOLDER]      make test-html; FOLDER keeps the pages and screenshots of them
set -euo pipefail
lrnn=$(readlink -f "${1:-./lrnn}")
cd "$(dirname "$0")/../.."
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
    echo "pages.sh: no chromium; apt-get install chromium" >&2
    exit 2
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
keep=${2:-$work/kept}
mkdir -p "$keep"
keep=$(readlink -f "$keep")

# browse ARGUMENT...: what it says of the page on stderr goes to a file.
browse() {
    "$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --allow-file-access-from-files \
        --user-data-dir="$work/profile" --enable-logging=stderr --virtual-time-budget=30000 "$@" 2>"$work/console"
    if grep ':CONSOLE' "$work/console"; then
        echo "pages.sh: the page has said this on the console" >&2
        exit 1
    fi
}

"$lrnn" report results/baseline --task 's3 s5 parity:n_val=1024,n_test=4096' --html "$keep/pages"
cp tests/html/check.html "$keep/pages/.check.html"
cd "$keep/pages"
mapfile -t runs < <(find . -name 'run-*.html' -printf '%f\n' | sort | head -n 3)
mapfile -t tables < <(find . -name '*.html' ! -name 'run-*' ! -name '.check.html' -printf '%f\n' | sort)
list=$(IFS=';'; echo "${tables[*]};${runs[*]}")
status=0
# Chromium's name of the reader's wish: 0 dark, 1 light.
for scheme in 1 0; do
    name=$([ $scheme = 0 ] && echo dark || echo light)
    browse --blink-settings=preferredColorScheme=$scheme --dump-dom "file://$PWD/.check.html#$name;$list" >"$work/dom"
    sed -n '/<pre id="said">/,/<\/pre>/p' "$work/dom" | sed 's/.*<pre id="said">//; s/<[^>]*>//g' |
        sed "s/^/$name: /" | grep -v ': $' | tee "$work/said"
    grep -q 'looked at [1-9]' "$work/said" || { echo "pages.sh: the check did not end" >&2; status=1; }
    if grep -q WRONG "$work/said"; then status=1; fi
    for page in index.html "${tables[1]}" "${runs[0]}"; do
        for width in 360 1200; do
            browse --blink-settings=preferredColorScheme=$scheme --window-size=$width,1400 \
                --screenshot="$keep/${page%.html}-$width-$name.png" "file://$PWD/$page" >/dev/null
        done
    done
done
rm -f .check.html
[ $status = 0 ] && echo "pages.sh: all held"
exit $status

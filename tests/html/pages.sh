#!/usr/bin/env bash
# pages.sh - the pages of `lrnn report --html` in headless Chromium: they load without a word on the console, nothing
# comes from elsewhere, links lead somewhere, they fit a telephone and a wide screen and can be read by day and in the
# dark, and filter, sort and compare do what they say. Exit 0: all held; 1: something did not, named; 2: no Chromium
# (apt-get install chromium). Where they are installed, tidy looks at the HTML and axe-core at the access: AXE names
# axe.min.js (npm install axe-core, or pip download axe-core-python).
#
#   tests/html/pages.sh LRNN [FOLDER]      make test-html; FOLDER keeps the pages and screenshots of them
set -euo pipefail
lrnn=$(readlink -f "${1:-./lrnn}")
axe=${AXE:+$(readlink -f "$AXE")}
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
status=0

# browse ARGUMENT...: what it says of the page on stderr goes to a file.
browse() {
    "$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --allow-file-access-from-files \
        --user-data-dir="$work/profile" --enable-logging=stderr --virtual-time-budget=120000 "$@" 2>"$work/console"
    if grep ':CONSOLE' "$work/console"; then
        echo "pages.sh: the page has said this on the console" >&2
        exit 1
    fi
}

# Gates of two machines, slower from the 25th on, a line of a later version and one that is none.
awk 'BEGIN {
    for (i = 1; i <= 40; i++)
        for (m = 0; m < 2; m++) {
            printf "{\"gate\":1,\"date\":\"2026-%02d-%02dT10:00:00Z\",", 1 + i / 28, 1 + i % 28
            printf "\"commit\":\"commit-%d\",", i
            printf "\"machine\":\"machine%d\",\"name\":\"words\",\"verdict\":\"same\",\"figures\":[", m
            printf "{\"name\":\"<b>s3</b> lstm\",\"figure\":\"tokens/s\",\"value\":%d,\"verdict\":\"same\"},",
                (i < 25 ? 1000 : 880) + i * 37 % 23 - 300 * m
            printf "{\"name\":\"s3 lstm\",\"figure\":\"acc\",\"value\":%g,\"verdict\":\"same\"}]}\n",
                0.99 + i * 13 % 9 / 1e3
        }
    print "{\"gate\":2}\nno line"
}' >"$work/gate.jsonl"
"$lrnn" report results/baseline --html "$keep/pages" --history "$work/gate.jsonl"
cp tests/html/check.html "$keep/pages/.check.html"
cd "$keep/pages"
front=$(cat index.html site.css site.js pages.js data/index.js | wc -c)
echo "the front page has $front bytes"
if [ "$front" -gt 300000 ]; then echo "pages.sh: WRONG the front page has more than 300000 bytes" >&2; status=1; fi
run=$(sed -n 's/^"run_id":\["\([0-9a-f]\{12\}\).*/\1/p' data/task-s5.js)
pages=(index.html task.html "task.html#task=s5" "task.html#task=s3-250&mixer=bdlru-m3" mixer.html
    "mixer.html#mixer=bdlru" compare.html
    "compare.html#a=bdlru-m3&b=lstm&task=s3-250" "run.html#task=s5&run=$run" papers.html history.html
    "papers.html#paper=hlru-table2")
list=$(IFS=';'; echo "${pages[*]//#/%23}")
# Chromium's name of the reader's wish: 0 dark, 1 light.
for scheme in 1 0; do
    name=$([ $scheme = 0 ] && echo dark || echo light)
    browse --blink-settings=preferredColorScheme=$scheme --dump-dom \
        "file://$PWD/.check.html#$name;${axe:+file://$axe};$list" >"$work/dom"
    sed -n '/<pre id="said">/,/<\/pre>/p' "$work/dom" | sed 's/.*<pre id="said">//; s/<[^>]*>//g' |
        sed "s/^/$name: /" | grep -v ': $' | tee "$work/said"
    grep -q 'looked at [1-9]' "$work/said" || { echo "pages.sh: the check did not end" >&2; status=1; }
    if grep -q WRONG "$work/said"; then status=1; fi
    if [ -z "${2:-}" ]; then continue; fi
    for page in "${pages[@]}"; do
        for width in 390 1280 1920; do
            shot=$(echo "$page" | tr -c 'a-z0-9\n' - | cut -c -50)
            browse --blink-settings=preferredColorScheme=$scheme --window-size=$width,1600 \
                --screenshot="$keep/$shot-$width-$name.png" "file://$PWD/$page" >/dev/null
        done
    done
done
if command -v tidy >/dev/null; then
    for page in "${pages[@]}"; do
        browse --dump-dom "file://$PWD/$page" >"$work/page"
        tidy -quiet -errors -utf8 --drop-empty-elements no "$work/page" 2>&1 | sed "s|^|$page: |" >"$work/tidy" || true
        if grep -v 'proprietary attribute "aria-current\|trimming empty' "$work/tidy"; then status=1; fi
    done
    echo "tidy has looked at ${#pages[@]} pages"
fi
rm -f .check.html
[ $status = 0 ] && echo "pages.sh: all held"
exit $status

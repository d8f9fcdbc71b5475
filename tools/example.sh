#!/bin/sh
# example.sh - fills examples/hlru-table2/ from the folder in which `make example` has trained the runs of a paper's
# table: the report in every format, the cells and rows for programs, the pictures, and the commands that made them.
#
#   tools/example.sh LRNN PAPER PROFILE RESULTS [TO]
set -eu
if [ $# -lt 4 ]; then
    echo "example.sh: expected tools/example.sh LRNN PAPER PROFILE RESULTS [TO]" >&2
    exit 2
fi
lrnn=$1 paper=$2 profile=$3 results=$4 to=${5:-examples/hlru-table2}

report() {
    "$lrnn" report --paper "$paper" --profile "$profile" --out "$results" --format "$1" >"$work/$paper.$2"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
report md md
report latex tex
report html html
report csv csv
mkdir "$work/plots"
for kind in accuracy table; do
    "$lrnn" plot $kind --paper "$paper" --profile "$profile" --out "$results" --to "$work/plots" --format svg
done

# The value of a key in the records of the table's runs, a line for each run.
said() {
    "$lrnn" report --paper "$paper" --profile "$profile" --out "$results" --format csv --columns run_ids |
        tr -d '"' | tr ' ' '\n' | grep -E '^[0-9a-f]{32}$' | sort -u | while read -r id; do
        sed -n 's/^ "'"$1"'": "\{0,1\}\([^",]*\)"\{0,1\},$/\1/p' "$results/runs/${id%"${id#??}"}/$id.json"
    done
}
minutes() { echo "$(($1 / 60)) minutes $(($1 % 60)) seconds"; }
begun=$(said started | sort | sed -n 1p)
ended=$(said finished | sort | sed -n '$p')
passed=$(($(date -d "$ended" +%s) - $(date -d "$begun" +%s)))
added=$(said wall_s | awk '{ sum += $1 } END { printf "%d", sum }')
cpu=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | sed -n 1p)
cat >"$work/README.md" <<END
# An example

\`make paper PAPER=$paper PROFILE=$profile\` wrote these files on $(nproc) cores of this processor: $cpu.
\`make example\` writes them again. The first run began $(minutes $passed) before the last one ended; the times of
all $(said started | wc -l) runs sum to $(minutes "$added") (\`started\`, \`finished\` and \`wall_s\` of their records).

- The table, and each cell with its interval, runs, steps and verdict: [Markdown]($paper.md),
  [LaTeX]($paper.tex), [HTML]($paper.html), and unrounded for programs: [CSV]($paper.csv).
- [plots/](plots): curves and bars of every task.
- [slurm.log](slurm.log): the last output of \`make test-slurm\`.

    ./lrnn sweep $paper --profile $profile --out results
    ./lrnn report --paper $paper --profile $profile --out results --format md
    ./lrnn plot accuracy --paper $paper --profile $profile --out results --to examples/hlru-table2/plots --format svg
END
mkdir -p "$to/plots"
cp "$work/README.md" "$work/$paper".* "$to/"
cp "$work"/plots/*.svg "$to/plots/"
echo "example.sh: $to has $(find "$to" -type f | wc -l) files"

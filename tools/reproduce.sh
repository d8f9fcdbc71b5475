#!/bin/sh
# reproduce.sh - trains committed runs again and says whether the second runs agree with the records.
#
#   tools/reproduce.sh LRNN cell PLAN TASK MODEL [PROFILE]   the recorded runs of one cell of a paper's table
#   tools/reproduce.sh LRNN sample COUNT SEED MOST           COUNT random records of runs that took at most MOST seconds
#
# RECORDS names the folder of the records (results/baseline), OUT the folder for second runs, TO a CSV file that gets a
# row per run. `bits` is yes if every number of the curve and the evaluations agrees. Only a processor with the same
# vectors and the same library of matrix products gives the same bits (column `products`), so elsewhere the test
# accuracies are compared: `near` is yes if they differ by at most .02. A run that cannot be repeated has a row without
# a second accuracy. Ends with 1 if there is such a run, if equal products gave other bits, or if a cell's second value
# lies outside the 95 % interval of the first (.02 to either side for fewer than 5 seeds).
set -eu

usage() {
    sed -n '4,5s/^#   //p' "$0" >&2
    exit 2
}
[ $# -ge 4 ] || usage
lrnn=$(realpath "$1") kind=$2
records=${RECORDS:-results/baseline} out=${OUT:-build/reproduce} to=${TO:-/dev/null}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# A copy of the records in a file each, without weights.
cp -r "$records/runs" "$work/runs"
"$lrnn" store unpack "$work" >/dev/null

path_of() { echo "$1/runs/${2%"${2#??}"}/$2.json"; }
value() { sed -n 's/^ "'"$1"'": "\{0,1\}\([^"]*[^",]\)"\{0,1\},\{0,1\}$/\1/p' "$2" | sed -n 1p; }

case $kind in
    cell)
        [ $# -ge 5 ] || usage
        plan=$3 task=$4 model=$5 profile=${6:-paper}
        "$lrnn" bench "$plan" "$task" --models "$model" --profile "$profile" --dry-run >"$work/plan" \
            2>"$work/errors" || { cat "$work/errors" >&2; exit 2; }
        sed -n 's/^\([0-9a-f]\{32\}\) .*/\1/p' "$work/plan" | while read -r id; do
            if [ -f "$(path_of "$work" "$id")" ]; then echo "$id"; fi
        done >"$work/ids"
        planned=$(grep -cE '^[0-9a-f]{32} ' "$work/plan")
        echo "$plan, $task, $model: $(wc -l <"$work/ids") of $planned runs on record in $records"
        ;;
    sample)
        [ $# = 5 ] || usage
        find "$work/runs" -name '*.json' -print0 | sort -z | xargs -0 awk -F '[ ":,]+' -v most="$5" '
            $2 == "run_id" { id = $3 }
            $2 == "status" { ended = $3 == "ok" }
            $2 == "wall_s" { short = $3 <= most }
            $2 == "backend" && $3 == "cpu" && ended && short { print id }' >"$work/all"
        awk -v seed="$4" 'BEGIN { srand(seed) } { print rand() "\t" $0 }' "$work/all" | sort | head -n "$3" |
            cut -f 2 >"$work/ids"
        echo "$3 of $(wc -l <"$work/all") runs that took at most $5 s (seed $4)"
        ;;
    *) usage ;;
esac
[ -s "$work/ids" ] || { echo "reproduce.sh: no such run is on record in $records" >&2; exit 2; }

echo "run,task,model,seed,commit_then,commit,machine_then,machine,products_then,products,acc_then,acc,bits,near,said" \
    >"$work/csv"
fails=0 refused=0
while read -r id; do
    file=$(path_of "$work" "$id") second=$(path_of "$out/rerun" "$id")
    mkdir -p "$(dirname "$(path_of "$out" "$id")")"
    cp "$file" "$(path_of "$out" "$id")"
    rm -f "$second" "$out/rerun/weights/$id.safetensors" "$out/rerun/weights/$id.last.safetensors"
    bits=no
    "$lrnn" rerun "$id" --out "$out" --keep --threads 1 >"$work/said" 2>"$work/errors" && bits=yes
    if [ ! -f "$second" ]; then
        said=$(sed -n '1s/^lrnn: //p' "$work/errors" | tr '"' "'")
        printf '%s,"%s","%s",%s,%.8s,,%s,,,,%s,,no,no,"%s"\n' "$id" "$(value task "$file")" "$(value layers "$file")" \
            "$(value seed "$file")" "$(value git_commit "$file")" "$(value machine_id "$file")" \
            "$(value metric_value "$file")" "$said" >>"$work/csv"
        cp "$work/csv" "$to"
        echo "${id%"${id#????????}"}  not repeated: $said"
        refused=$((refused + 1))
        continue
    fi
    then=$(value metric_value "$file") now=$(value metric_value "$second")
    made=$(value kernel "$file") makes=$(value kernel "$second")
    near=$(awk "BEGIN { d = (0$then) - (0$now); print (d <= .02 && d >= -.02) ? \"yes\" : \"no\" }")
    said=$(sed -n '1s/^run [0-9a-f]*: //p' "$work/said")
    printf '%s,"%s","%s",%s,%.8s,%.8s,%s,%s,%s,%s,%s,%s,%s,%s,"%s"\n' "$id" "$(value task "$file")" \
        "$(value layers "$file")" "$(value seed "$file")" "$(value git_commit "$file")" \
        "$(value git_commit "$second")" "$(value machine_id "$file")" "$(value machine_id "$second")" \
        "${made##*, }" "${makes##*, }" "$then" "$now" "$bits" "$near" "$said" >>"$work/csv"
    if [ "${made##*, }" = "${makes##*, }" ] && [ $bits = no ]; then fails=$((fails + 1)); fi
    printf '%.8s  %s  %s: ' "$id" "$(value task "$file")" "$(value layers "$file")"
    if [ $bits = yes ]; then echo "$said"; else echo "$then on record, $now now ($said)"; fi
    cp "$work/csv" "$to"
done <"$work/ids"

awk -F, -v fails=$fails -v refused=$refused 'NR > 1 { n++; bits += / *,yes,(yes|no),"/ } END {
    printf "%d runs: %d with the same bits; %d with other bits by the same products; %d not repeated\n", n, bits, fails,
        refused }' "$work/csv"
if [ "$kind" = cell ]; then
    # The cell's line in the table of the records, and of the second runs.
    number() { sed -n 's/.*"'"$1"'":\([^,}]*\).*/\1/p'; }
    first=$(sed -n 1p "$work/ids")
    cell() {
        "$lrnn" report --paper "$plan" --profile "$profile" --out "$1" --format json | grep -F "$first" | sed -n 1p
    }
    cell "$records" >"$work/then"
    cell "$out/rerun" >"$work/now"
    ours=$(number ours <"$work/then") again=$(number ours <"$work/now")
    low=$(number ci_lo <"$work/then") high=$(number ci_hi <"$work/then")
    if [ "${low:-null}" = null ]; then
        low=$(awk "BEGIN { print $ours - .02 }") high=$(awk "BEGIN { print $ours + .02 }")
    fi
    within=$(awk "BEGIN { print ($again >= $low && $again <= $high) ? \"agrees\" : \"differs\" }")
    echo "the cell is $ours on record ($low to $high) and $again by the second runs: it $within"
    if [ "$within" = differs ]; then fails=$((fails + 1)); fi
fi
[ $((fails + refused)) = 0 ]

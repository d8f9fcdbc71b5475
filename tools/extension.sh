#!/usr/bin/env bash
# extension.sh - proves the promise of docs/extend.md: a mixer, a task, an op, a command and a report are each one
# new file and one line in a list, a profile is one file, and a schedule, a flag and a reason to stop are one row of a
# table each. Copies the tree, adds a visible copy of every template under a new name, builds, writes the golden
# traces of the new mixer, trains with the new schedule, the new flag and the new reason to stop, and runs the suites
# that walk the lists. Fails if anything else has to change.
#
#   tools/extension.sh [FOLDER]     works in FOLDER (default: a temporary one, removed at the end)
set -euo pipefail
cd "$(dirname "$0")/.."
# The suite export needs a program of the other precision, which need not have the new names.
make --no-print-directory REAL=double CUDA=0 all
here=$PWD
double=$here/lrnn-f64
if [ $# -gt 0 ]; then
    tree=$1
    mkdir -p "$tree"
else
    tree=$(mktemp -d)
    trap 'rm -rf "$tree"' EXIT
fi
# The files keep their times, and the objects come along, so that only what reads the lists is compiled again.
make --no-print-directory CUDA=0 programs
git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -T - -cf - | tar -xf - -C "$tree"
mkdir -p "$tree/build"
cp -a build/float build/float-cpu "$tree/build/"
cd "$tree"

# add TEMPLATE FILE LIST LINE: copies TEMPLATE to FILE under the name of FILE, and lists it by LINE.
add() {
    local name
    name=$(basename "$2" .c)
    echo "/* ${2##*/} - a copy of the template under a banner of its own. */" >"$2"
    sed -e '1,/\*\//d' -e "s/template/${name#cmd_}/g" -e '/\.hidden = true,/d' "$1" >>"$2"
    printf '%s\n' "$4" >>"$3"
    echo "extension: $2 and '$4' in $3"
}
add models/template.c models/newmixer.c models/list.def 'MODEL(newmixer)'
add tasks/template.c tasks/language/newtask.c tasks/list.def 'TASK(newtask)'
add kernels/template.c kernels/gated/newop.c kernels/gated/list.def 'OP(newop) KERNEL(newop_ref)'
add harness/cli/template.c harness/cli/cmd_newcommand.c harness/cli/commands.def 'COMMAND(newcommand)'
add harness/table/template.c harness/table/newreport.c harness/table/reports.def 'REPORT(newreport)'
cat >profiles/newtask.plan <<'PLAN'
profiles=smoke
models=newmixer

smoke.dim=16
smoke.steps=4
smoke.lr=0.01
smoke.schedule=newschedule
smoke.note=smoke: four steps
PLAN
echo "extension: profiles/newtask.plan"
row='ROW(NEWSCHEDULE, "newschedule", RATE_PER_STEP, 0.0001, 0, rate_cosine, "a cosine to 0.0001")'
sed -i "s/^    ROW(CONSTANT, .*/&\n    $row \\\\/" core/schedule.h
echo "extension: '$row' in core/schedule.h"

make --no-print-directory CUDA=0 programs
tools/layers.sh
./lrnn list models | grep '^newmixer ' >/dev/null
./lrnn list tasks | grep '^newtask ' >/dev/null
./lrnn list ops | grep '^newop ' >/dev/null
./lrnn --help | grep ' newcommand ' >/dev/null
./lrnn report --help | grep newreport >/dev/null
./lrnn newcommand >/dev/null
./lrnn info newtask/smoke | grep 'profiles/newtask.plan'
./lrnn bench newtask --profile smoke --no-speed --no-plots --quiet --out build/trained | grep newmixer
# The golden rows of the new mixer alone, for this build; `make golden MODELS=newmixer` writes those of all builds.
make --no-print-directory CUDA=0 golden-here MODELS=newmixer
grep ' newmixer' tests/golden/traces.tsv
[ "$(grep -vc newmixer tests/golden/traces.tsv)" = "$(wc -l <"$here/tests/golden/traces.tsv")" ]
# Among the ops only the new one is walked; the suites of this tree have walked the others.
CHECK_OP=newop LRNN=./lrnn LRNN_F64=$double build/check ops models backbone sizes tasks cli report export

# A flag is known to every object that sees a run, so the program alone is built with it, once the suites are through.
row='{"newflag", OPT_INT, AT(newflag), "0", 0, 1e9, NULL, "step after which a run ends as newstop; 0 = none", 0},'
sed -i "s/^    {\"seed\", .*/    $row\n&/" harness/study/config.c
sed -i 's/^    struct backbone net; .*/&\n    int64_t newflag;/' harness/study/config.h
echo "extension: '$row' in harness/study/config.c, its field in harness/study/config.h"
sed -i -e '/^static bool at_end(/i\
static bool at_newflag(const struct running *r) {\
    int64_t step = r->trainer.setup->spec.config.newflag;\
    return r->validated \&\& step \&\& r->trainer.state.step >= step;\
}\
' -e 's/^    {"nan", has_nan}, .*/    {"newstop", at_newflag},\n&/' harness/run/train.c
echo "extension: '{\"newstop\", at_newflag}' and its function in harness/run/train.c"
make --no-print-directory CUDA=0 all
./lrnn train --help all | grep -e '--newflag '
./lrnn train newtask newmixer --dim 16 --steps 4 --eval-every 1 --newflag 2 --quiet --out build/trained |
    grep 'after 2 steps (newstop)'

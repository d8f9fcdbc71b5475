#!/usr/bin/env bash
# compile.sh - what `lrnn report --format latex` writes is compiled by pdflatex, as an author would take it: every
# report of the committed records, the table of a paper that is finished and of one that is not, names with every
# character that LaTeX reads otherwise, and a table for a float of the author's. Exit 0: all held; 1: something did not,
# named; 2: no pdflatex (apt-get install texlive-latex-recommended).
#
#   tests/latex/compile.sh LRNN [FOLDER]      make test-latex; FOLDER keeps the document
set -euo pipefail
lrnn=$(readlink -f "${1:-./lrnn}")
cd "$(dirname "$0")/../.."
command -v pdflatex >/dev/null || {
    echo "compile.sh: no pdflatex; apt-get install texlive-latex-recommended" >&2
    exit 2
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
keep=${2:-$work/kept}
mkdir -p "$keep"
keep=$(readlink -f "$keep")

# input NAME COMMAND...: what the command prints is a part of the document.
input() {
    local name=$1
    shift
    "$@" >"$keep/$name.tex"
    [ -s "$keep/$name.tex" ] || { echo "compile.sh: nothing from: $*" >&2; exit 1; }
    printf '\\input{%s}\n\\clearpage\n' "$name" >>"$keep/body.tex"
}

: >"$keep/body.tex"
for what in tables layers settings across suites lengths each; do
    input "$what" "$lrnn" report results/baseline --what "$what" --format latex
done
input table2 "$lrnn" report results/baseline --paper hlru-table2 --format latex
input figure5 "$lrnn" report results/baseline --paper hlru-fig5 --format latex
mkdir "$work/odd"
# shellcheck disable=SC2016 # nothing in it is to expand
printf '%s\n' 'paper,arxiv,table,row,task,model,metric,value' \
    'P,1234,Table 1,"a_b & 5% #1 $x$ {y} ~ ^ \z <u> |v| ""w"" `q`",s3,lstm,acc,0.5' >"$work/odd/published.csv"
printf '%s\n' 'title=_ & % # $ { } ~ ^ \ < > | " and all' paper=1234 'source=Table 1' profile=smoke tasks=s3 \
    'models=lstm:hidden=4' >"$work/odd/odd-names.plan"
input odd "$lrnn" report --paper "$work/odd/odd-names.plan" --out "$work/odd" --format latex
grep -q 'a\\_b' "$keep/odd.tex" || { echo "compile.sh: the odd name is not in the table" >&2; exit 1; }
input compare "$lrnn" compare results/baseline results/baseline --format latex

cd "$keep"
export TEXMFVAR="$work/texmf" # where TeX keeps a font that it had to make
cat >document.tex <<'END'
\documentclass[a4paper]{article}
\usepackage[landscape,margin=1cm]{geometry}
\usepackage{booktabs,graphicx,longtable}
\extrafloats{500}
\maxdeadcycles=1000
\begin{document}
Table \ref{tab:hlru-table2} is before table \ref{tab:hlru-fig5} and table \ref{tab:odd-names}.
\input{body}
\end{document}
END
cat >plain.tex <<'END'
\documentclass{article}
\usepackage{booktabs,graphicx,longtable}
\begin{document}
Table \ref{tab:hlru-table2-cells} is longer than a page.
\input{table2}
\input{figure5}
\input{odd}
\end{document}
END

# compile DOCUMENT: the third pass is for the columns of longtables.
compile() {
    for pass in 1 2 3; do
        if ! pdflatex -interaction=nonstopmode -halt-on-error "$1" >said 2>&1; then
            echo "compile.sh: pass $pass of pdflatex failed on $1:" >&2
            grep -A 6 '^!' said >&2 || tail -20 said >&2
            exit 1
        fi
    done
    if grep -e 'undefined references' -e 'multiply defined' -e 'Missing character' -e 'Float too large' "$1.log"; then
        echo "compile.sh: pdflatex has complained of $1" >&2
        exit 1
    fi
}
compile document
compile plain
if grep 'Overfull .hbox' plain.log; then
    echo "compile.sh: a table of a paper is wider than the text of a plain article" >&2
    exit 1
fi
grep -q 'begin{longtable}' table2.tex || { echo "compile.sh: the cells of table2 are not in a longtable" >&2; exit 1; }
captions=$(cat ./*.tex | grep -c '^\\caption') labels=$(cat ./*.tex | grep -c '^\\label{tab:')
if [ "$captions" -ne "$labels" ]; then
    echo "compile.sh: $captions tables have a caption, $labels of them a label" >&2
    exit 1
fi
bare=$(($(cat ./*.tex | grep -c '^\\begin{tabular}{[lr]') - $(cat ./*.tex | grep -c '^\\resizebox')))
wide=$(grep -c 'Overfull .hbox' document.log) || true
if [ "$wide" -gt "$bare" ]; then # a table for a float of the author's is as wide as it is
    echo "compile.sh: $wide tables are wider than the text, and $bare have no float" >&2
    exit 1
fi
tables=$(cat ./*.tex | grep -c '^\\toprule')
pages=$(sed -n 's/^Output written on document.pdf (\([0-9]*\) pages.*/\1/p' document.log)
[ -n "$pages" ] || { echo "compile.sh: pdflatex has written nothing" >&2; exit 1; }
echo "compile.sh: $tables tables on $pages pages: all held"

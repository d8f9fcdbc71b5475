/* format_latex.c - a sheet as a LaTeX table with booktabs, its notes below it in a smaller size. */
#include <string.h>

#include "harness/report/sheet.h"

static void print_latex(FILE *f, const char *text) {
    for (const char *p = text; *p; p++) {
        if (strchr("&%$#_{}", *p))
            fprintf(f, "\\%c", *p);
        else if (*p == '\\')
            fputs("\\textbackslash{}", f);
        else if (*p == '~')
            fputs("\\textasciitilde{}", f);
        else if (*p == '^')
            fputs("\\textasciicircum{}", f);
        else if (*p == '<' || *p == '>' || *p == '|')
            fprintf(f, "$%c$", *p);
        else
            fputc((unsigned char)*p < 0x20 ? ' ' : *p, f);
    }
}

/* Behind a \\ LaTeX would take a [ or a * for an argument of it. */
static void print_guard(FILE *f, char first) {
    if (first == '[' || first == '*') fputs("{}", f);
}

/* A number with a sign is set in maths, where '-' is a minus. */
static void print_cell(FILE *f, const struct sheet_cell *cell) {
    const char *text = cell->text;
    char mark[SHEET_MARK_BYTES];
    sheet_mark(cell, mark);
    if (cell->strong) fputs("\\textbf{", f);
    if (cell->kind != SHEET_TEXT && (*text == '-' || *text == '+') && text[1])
        fprintf(f, "$%s$", text);
    else
        print_latex(f, text);
    if (cell->strong) fputc('}', f);
    print_latex(f, mark);
}

/* What is wider than the text is made as wide as the text is; LaTeX alone knows either width. */
#define AT_MOST_LINEWIDTH "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"

static void print_tabular(FILE *f, const struct sheet *s) {
    if (!s->bare) fputs(AT_MOST_LINEWIDTH, f);
    fputs("\\begin{tabular}{", f);
    for (int c = 0; c < s->n_columns; c++) fputc(s->columns[c].align == SHEET_LEFT ? 'l' : 'r', f);
    fputs("}\n\\toprule\n", f);
    for (int c = 0; c < s->n_columns; c++) {
        fputs(c ? " & " : "", f);
        print_latex(f, s->columns[c].heading);
    }
    fputs(" \\\\\n\\midrule\n", f);
    for (int i = 0; i < s->n_cells; i++) {
        if (i % s->n_columns == 0) print_guard(f, *s->cells[i].text);
        fputs(i % s->n_columns ? " & " : "", f);
        print_cell(f, &s->cells[i]);
        if ((i + 1) % s->n_columns == 0) fputs(" \\\\\n", f);
    }
    fputs("\\bottomrule\n\\end{tabular}", f);
    fputs(s->bare ? "\n" : "}\n", f);
}

static void print_notes(FILE *f, const struct sheet *s) {
    if (s->n_notes) fputs("\n\\footnotesize\n", f);
    for (int i = 0; i < s->n_notes; i++) {
        print_guard(f, s->notes[i].number ? '[' : *s->notes[i].text);
        if (s->notes[i].number) fprintf(f, "[%d] ", s->notes[i].number);
        print_latex(f, s->notes[i].text);
        fputs("\\\\\n", f);
    }
}

static void write_sheet(const struct sheet *s, FILE *f) {
    if (s->bare && s->caption) {
        fputs("% ", f);
        print_plain(f, s->caption);
        fputs("\n\n", f);
    }
    fprintf(f, "%% needs \\usepackage{booktabs%s}\n", s->bare ? "" : ",graphicx");
    if (!s->bare) fputs("\\begin{table}\n", f);
    if (!s->bare && s->caption) {
        fputs("\\caption{", f);
        print_latex(f, s->caption);
        fputs("}\n", f);
    }
    if (!s->bare && s->name) fprintf(f, "\\label{tab:%s}\n", s->name);
    print_tabular(f, s);
    print_notes(f, s);
    if (!s->bare) fputs("\\end{table}\n", f);
}

const struct sheet_format format_latex = {.name = "latex", .write = write_sheet};

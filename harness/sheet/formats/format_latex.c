/* format_latex.c - a sheet as a LaTeX table with booktabs, with its notes below in a smaller size. It is a float, or a
 * longtable over several pages if a float would be higher than a page. A table that is also too wide for a longtable,
 * which cannot be resized, becomes several floats with some rows each. */
#include <ctype.h>
#include <string.h>

#include "core/paragraph.h"
#include "harness/sheet/sheet.h"

/* Prints text with LaTeX's special characters escaped. "--" is kept from becoming a dash; "+-" becomes \pm. */
static void print_latex(FILE *f, const char *text) {
    for (const char *p = text; *p; p++) {
        int control = control_bytes(p);
        if (control) {
            fputc(' ', f);
            p += control - 1;
        } else if (strncmp(p, "+-", 2) == 0 && !isalpha((unsigned char)p[2])) {
            fputs("$\\pm$", f);
            p++;
        } else if (strncmp(p, "--", 2) == 0)
            fputs("-{}", f);
        else if (strchr("&%$#_{}", *p))
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
            fputc(*p, f);
    }
}

/* Prints {} before a [ or a *, which LaTeX would take for an argument of a \\ before it. */
static void print_guard(FILE *f, char first) {
    if (first == '[' || first == '*') fputs("{}", f);
}

/* Returns the length of the signed number at the beginning of the text; 0: there is none. */
static size_t signed_number(const char *text) {
    static const char digits[] = "0123456789.";
    if ((*text != '-' && *text != '+') || !isdigit((unsigned char)text[1])) return 0;
    size_t n = 1 + strspn(text + 1, digits);
    if (text[n] == 'e' && text[n + 1] && strchr("+-", text[n + 1])) n += 2 + strspn(text + n + 2, digits);
    return n;
}

/* Prints text with signed numbers in maths mode, where '-' is a minus. */
static void print_numbers(FILE *f, const char *text) {
    while (*text) {
        char part[256];
        size_t number = signed_number(text), n = number ? number : strcspn(text, " [,");
        if (!number && !n) n = 1; /* a blank, '[' or ',' before a number */
        snprintf(part, sizeof part, "%.*s", (int)n, text);
        if (number)
            fprintf(f, "$%s$", part);
        else
            print_latex(f, part);
        text += strlen(part);
    }
}

static void print_cell(FILE *f, const struct sheet_cell *cell) {
    char mark[SHEET_MARK_BYTES];
    sheet_mark(cell, mark);
    if (cell->strong) fputs("\\textbf{", f);
    if (cell->kind == SHEET_TEXT)
        print_latex(f, cell->text);
    else
        print_numbers(f, cell->text);
    if (cell->strong) fputc('}', f);
    print_latex(f, mark);
}

static void print_alignment(FILE *f, const struct sheet *s) {
    for (int c = 0; c < s->n_columns; c++) fputc(s->columns[c].align == SHEET_LEFT ? 'l' : 'r', f);
}

static void print_heading(FILE *f, const struct sheet *s) {
    fputs("\\toprule\n", f);
    for (int c = 0; c < s->n_columns; c++) {
        fputs(c ? " & " : "", f);
        print_latex(f, s->columns[c].heading);
    }
    fputs(" \\\\\n\\midrule\n", f);
}

/* Prints rows [from, to). */
static void print_rows(FILE *f, const struct sheet *s, int from, int to) {
    for (int i = from * s->n_columns; i < to * s->n_columns; i++) {
        if (i % s->n_columns == 0) print_guard(f, *s->cells[i].text);
        fputs(i % s->n_columns ? " & " : "", f);
        print_cell(f, &s->cells[i]);
        if ((i + 1) % s->n_columns == 0) fputs(" \\\\\n", f);
    }
}

static void print_tabular(FILE *f, const struct sheet *s, int from, int to) {
    fputs("\\begin{tabular}{", f);
    print_alignment(f, s);
    fputs("}\n", f);
    print_heading(f, s);
    print_rows(f, s, from, to);
    fputs("\\bottomrule\n\\end{tabular}", f);
}

static void print_note(FILE *f, const struct sheet_note *note) {
    print_guard(f, note->number ? '[' : *note->text);
    if (note->number) fprintf(f, "[%d] ", note->number);
    print_latex(f, note->text);
}

static void print_caption(FILE *f, const struct sheet *s) {
    fputs("\\caption{", f);
    print_latex(f, s->caption);
    fputs("}\n", f);
}

/* Prints notes inside a float. */
static void print_notes(FILE *f, const struct sheet *s) {
    if (s->n_notes) fputs("\n\\footnotesize\n", f);
    for (int i = 0; i < s->n_notes; i++) {
        print_note(f, &s->notes[i]);
        fputs("\\\\\n", f);
    }
}

/* Prints notes in the text after a longtable, where pages may break. */
static void print_notes_below(FILE *f, const struct sheet *s) {
    if (s->n_notes) fputs("{\\footnotesize\\sloppy\\parindent=0pt\n", f);
    for (int i = 0; i < s->n_notes; i++) {
        print_note(f, &s->notes[i]);
        fputs("\\par\n", f);
    }
    if (s->n_notes) fputs("}\n", f);
}

/* --- floats ------------------------------------------------------------------------------------------------------- */

/* Shrinks a table that is wider than the text to the text's width. Only LaTeX knows both widths. */
#define AT_MOST_LINEWIDTH "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"
#define FLOAT_LINES       30  /* with a caption these fit a page of LaTeX's standard classes */
#define NOTE_COLUMNS      100 /* characters in a line of notes */

/* Prints rows [from, to) of the sheet as a float, with its notes if `notes`. */
static void print_float(FILE *f, const struct sheet *s, int from, int to, bool notes) {
    fputs("\\begin{table}\n", f);
    if (from) {
        fprintf(f, "Table \\ref{tab:%s}, continued\\par\\medskip\n", s->name ? s->name : "");
    } else {
        if (s->caption) print_caption(f, s);
        if (s->name) fprintf(f, "\\label{tab:%s}\n", s->name);
    }
    fputs(AT_MOST_LINEWIDTH, f);
    print_tabular(f, s, from, to);
    fputs("}\n", f);
    if (notes) print_notes(f, s);
    fputs("\\end{table}\n", f);
}

static void print_floats(FILE *f, const struct sheet *s) {
    for (int from = 0; from == 0 || from < s->n_rows; from += FLOAT_LINES) {
        int to = from + FLOAT_LINES;
        print_float(f, s, from, to < s->n_rows ? to : s->n_rows, false);
    }
    print_notes_below(f, s);
}

static bool fits_a_float(const struct sheet *s) {
    int lines = s->n_rows;
    for (int i = 0; i < s->n_notes; i++) lines += 1 + text_width(s->notes[i].text) / NOTE_COLUMNS;
    return lines <= FLOAT_LINES;
}

/* --- longtables --------------------------------------------------------------------------------------------------- */

/* Chooses the largest type size in which the rows are no wider than the text, because a longtable cannot be resized. */
static const char type_that_fits[] = "\\LTcapwidth=\\linewidth\n"
                                     "\\setbox0\\hbox to\\maxdimen{}%\n"
                                     "\\def\\tabletype#1{\\ifdim\\wd0>\\linewidth#1\\tabcolsep=.4em\\setbox0\\hbox{%\n"
                                     "\\begin{tabular}{\\tablecolumns}\\tableheading\\tablerows\\end{tabular}}\\fi}\n"
                                     "\\tabletype\\normalsize\\tabletype\\small\\tabletype\\footnotesize"
                                     "\\tabletype\\scriptsize\\tabletype\\tiny\n";

#define TINY_COLUMNS 100 /* characters across an article's text in \tiny */

static bool fits_a_longtable(const struct sheet *s) {
    int width = 0;
    for (int c = 0; c < s->n_columns; c++) {
        int widest = text_width(s->columns[c].heading);
        for (int i = c; i < s->n_cells; i += s->n_columns) {
            char mark[SHEET_MARK_BYTES];
            sheet_mark(&s->cells[i], mark);
            int cell = text_width(s->cells[i].text) + text_width(mark);
            widest = cell > widest ? cell : widest;
        }
        width += widest + 2;
    }
    return width <= TINY_COLUMNS;
}

static void print_longtable(FILE *f, const struct sheet *s) {
    fputs("\\begingroup\n\\def\\tablecolumns{", f);
    print_alignment(f, s);
    fputs("}\n\\def\\tableheading{", f);
    print_heading(f, s);
    fputs("}\n\\def\\tablerows{", f);
    print_rows(f, s, 0, s->n_rows);
    fputs("}\n", f);
    fputs(type_that_fits, f);
    fputs("\\begin{longtable}{\\tablecolumns}\n", f);
    if (s->caption) print_caption(f, s);
    if (s->caption && s->name) fprintf(f, "\\label{tab:%s}", s->name);
    fputs(s->caption ? "\\\\\n" : "", f);
    fputs("\\tableheading\n\\endfirsthead\n\\tableheading\n\\endhead\n\\bottomrule\n\\endfoot\n", f);
    fputs("\\tablerows\n\\end{longtable}\n\\endgroup\n", f);
    print_notes_below(f, s);
}

/* --- either ------------------------------------------------------------------------------------------------------- */

/* Prints only a tabular, for the author's own float, with the caption as a LaTeX comment. */
static void print_bare(FILE *f, const struct sheet *s) {
    if (s->caption) {
        fputs("% ", f);
        print_plain(f, s->caption);
        fputs("\n\n", f);
    }
    fputs("% needs \\usepackage{booktabs}\n", f);
    print_tabular(f, s, 0, s->n_rows);
    fputc('\n', f);
    print_notes(f, s);
}

static void write_sheet(const struct sheet *s, FILE *f) {
    if (s->bare) {
        print_bare(f, s);
        return;
    }
    bool one = fits_a_float(s), is_long = !one && s->n_rows > FLOAT_LINES && fits_a_longtable(s);
    fprintf(f, "%% needs \\usepackage{booktabs,%s}\n", is_long ? "longtable" : "graphicx");
    if (one)
        print_float(f, s, 0, s->n_rows, true);
    else if (is_long)
        print_longtable(f, s);
    else
        print_floats(f, s);
}

const struct sheet_format format_latex = {.name = "latex", .write = write_sheet};

/* format_md.c - a sheet as a Markdown table with its notes as a list below. The format "details" folds it under its
 * caption, for pages with many tables. */
#include <string.h>

#include "core/paragraph.h"
#include "harness/sheet/sheet.h"

static void print_md(FILE *f, const char *text) {
    for (const char *p = text; *p;) {
        int control = control_bytes(p);
        if (strchr("\\|`*_<>[]$", *p)) fputc('\\', f);
        fputc(control ? ' ' : *p, f);
        p += control ? control : 1;
    }
}

static void print_cell(FILE *f, const struct sheet_cell *cell) {
    char mark[SHEET_MARK_BYTES];
    sheet_mark(cell, mark);
    fputs(cell->strong ? "| **" : "| ", f);
    print_md(f, cell->text);
    if (cell->strong) fputs("**", f);
    print_md(f, mark);
    fputc(' ', f);
}

static void print_caption(FILE *f, const struct sheet *s) {
    if (!s->caption) return;
    fputs("### ", f);
    if (s->bare)
        print_plain(f, s->caption);
    else
        print_md(f, s->caption);
    fputs("\n\n", f);
}

static void write_sheet(const struct sheet *s, FILE *f) {
    print_caption(f, s);
    for (int c = 0; c < s->n_columns; c++) {
        fputs("| ", f);
        print_md(f, s->columns[c].heading);
        fputc(' ', f);
    }
    fputs("|\n", f);
    for (int c = 0; c < s->n_columns; c++) fputs(s->columns[c].align == SHEET_LEFT ? "|:--" : "|--:", f);
    fputs("|\n", f);
    for (int i = 0; i < s->n_cells; i++) {
        print_cell(f, &s->cells[i]);
        if ((i + 1) % s->n_columns == 0) fputs("|\n", f);
    }
    if (s->n_notes) fputc('\n', f);
    for (int i = 0; i < s->n_notes; i++) {
        fputs("- ", f);
        if (s->notes[i].number) fprintf(f, "\\[%d\\] ", s->notes[i].number);
        print_md(f, s->notes[i].text);
        fputc('\n', f);
    }
}

const struct sheet_format format_md = {.name = "md", .write = write_sheet};

static void write_folded(const struct sheet *s, FILE *f) {
    struct sheet body = *s;
    body.caption = NULL;
    fputs("<details>\n<summary>", f);
    print_html_text(f, s->caption ? s->caption : "table");
    fputs("</summary>\n\n", f);
    write_sheet(&body, f);
    fputs("\n</details>\n", f);
}

const struct sheet_format format_details = {.name = "details", .write = write_folded};

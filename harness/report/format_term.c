/* format_term.c - a sheet on a terminal: columns as wide as their widest cell.
 *
 * A table goes to terminals, pipes and files alike, so what stands out has no colour here. */
#include "harness/report/sheet.h"

/* Columns of the terminal: UTF-8 continuation bytes take none. */
static int width_of(const char *text) {
    int n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

static int cell_width(const struct sheet_cell *cell) {
    char mark[SHEET_MARK_BYTES];
    sheet_mark(cell, mark);
    return width_of(cell->text) + width_of(mark);
}

static int column_width(const struct sheet *s, int column) {
    int width = width_of(s->columns[column].heading);
    for (int i = column; i < s->n_cells; i += s->n_columns) {
        int cell = cell_width(&s->cells[i]);
        if (cell > width) width = cell;
    }
    return width;
}

/* Text and mark in a field of `width`; nothing behind the last column of a line. */
static void print_field(FILE *f, const struct sheet *s, int column, const char *text, const char *mark, int width) {
    int padding = width - width_of(text) - width_of(mark);
    bool left = s->columns[column].align == SHEET_LEFT;
    if (column) fputs("  ", f);
    if (!left) fprintf(f, "%*s", padding, "");
    print_plain(f, text);
    print_plain(f, mark);
    if (left && column + 1 < s->n_columns) fprintf(f, "%*s", padding, "");
    if (column + 1 == s->n_columns) fputc('\n', f);
}

static void write_sheet(const struct sheet *s, FILE *f) {
    int width[s->n_columns];
    for (int c = 0; c < s->n_columns; c++) width[c] = column_width(s, c);
    if (s->caption) {
        print_plain(f, s->caption);
        fputs("\n\n", f);
    }
    for (int c = 0; c < s->n_columns; c++) print_field(f, s, c, s->columns[c].heading, "", width[c]);
    for (int c = 0; c < s->n_columns; c++)
        for (int i = 0; i < width[c] + (c ? 2 : 0); i++) fputc('-', f);
    fputc('\n', f);
    for (int i = 0; i < s->n_cells; i++) {
        char mark[SHEET_MARK_BYTES];
        int column = i % s->n_columns;
        sheet_mark(&s->cells[i], mark);
        print_field(f, s, column, s->cells[i].text, mark, width[column]);
    }
    if (s->n_notes) fputc('\n', f);
    for (int i = 0; i < s->n_notes; i++) {
        if (s->notes[i].number) fprintf(f, "[%d] ", s->notes[i].number);
        print_plain(f, s->notes[i].text);
        fputc('\n', f);
    }
}

const struct sheet_format format_term = {.name = "term", .write = write_sheet};

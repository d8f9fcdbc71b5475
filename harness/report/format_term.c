/* format_term.c - a sheet on a terminal: columns as wide as their widest cell.
 *
 * A table goes to terminals, pipes and files alike: what stands out is bold on a terminal alone, and told of there. */
#include "core/paragraph.h"
#include "harness/report/sheet.h"

static int cell_width(const struct sheet_cell *cell) {
    char mark[SHEET_MARK_BYTES];
    sheet_mark(cell, mark);
    return text_width(cell->text) + text_width(mark);
}

static int column_width(const struct sheet *s, int column) {
    int width = text_width(s->columns[column].heading);
    for (int i = column; i < s->n_cells; i += s->n_columns) {
        int cell = cell_width(&s->cells[i]);
        if (cell > width) width = cell;
    }
    return width;
}

/* Columns of a sheet that are written side by side: the first, and [from, to). */
struct part {
    const struct sheet *s;
    const int *width;
    int from, to;
    bool bold; /* what stands out is */
};

static bool is_in(const struct part *p, int column) {
    return column == 0 || (column >= p->from && column < p->to);
}

/* Text and mark in a field; nothing behind the last column of a line. */
static void print_field(FILE *f, const struct part *p, int column, const char *text, const char *mark, bool strong) {
    if (!is_in(p, column)) return;
    const struct sheet *s = p->s;
    int width = p->width[column];
    bool last = column + 1 == (p->to > 1 ? p->to : 1);
    int padding = width - text_width(text) - text_width(mark);
    bool left = s->columns[column].align == SHEET_LEFT;
    if (column) fputs("  ", f);
    if (!left) fprintf(f, "%*s", padding, "");
    if (strong && p->bold) fputs("\033[1m", f);
    print_plain(f, text);
    if (strong && p->bold) fputs("\033[0m", f);
    print_plain(f, mark);
    if (left && !last) fprintf(f, "%*s", padding, "");
    if (last) fputc('\n', f);
}

static void write_part(const struct part *p, FILE *f) {
    const struct sheet *s = p->s;
    for (int c = 0; c < s->n_columns; c++) print_field(f, p, c, s->columns[c].heading, "", false);
    for (int c = 0; c < s->n_columns; c++)
        for (int i = 0; is_in(p, c) && i < p->width[c] + (c ? 2 : 0); i++) fputc('-', f);
    fputc('\n', f);
    for (int i = 0; i < s->n_cells; i++) {
        char mark[SHEET_MARK_BYTES];
        sheet_mark(&s->cells[i], mark);
        print_field(f, p, i % s->n_columns, s->cells[i].text, mark, s->cells[i].strong);
    }
}

/* Where the terminal is narrower than the table, its columns go on below, behind the first once more. */
static void write_sheet(const struct sheet *s, FILE *f) {
    int width[s->n_columns], room = terminal_width(f);
    for (int c = 0; c < s->n_columns; c++) width[c] = column_width(s, c);
    if (s->caption) {
        paragraph_print(f, room, 0, 0, s->caption);
        fputs("\n\n", f);
    }
    struct part p = {s, width, 1, 1, terminal_has_bold(f)};
    do {
        int used = width[0];
        for (p.to = p.from; p.to < s->n_columns; p.to++) {
            used += width[p.to] + 2;
            if (room && used > room && p.to > p.from) break;
        }
        if (p.from > 1) fputc('\n', f);
        write_part(&p, f);
        p.from = p.to;
    } while (p.from < s->n_columns);
    if (s->n_notes) fputc('\n', f);
    for (int i = 0; i < s->n_notes; i++) {
        if (s->notes[i].on_strong && !p.bold) continue;
        int column = s->notes[i].number ? fprintf(f, "[%d] ", s->notes[i].number) : 0;
        paragraph_print(f, room, column, column, s->notes[i].text);
        fputc('\n', f);
    }
}

const struct sheet_format format_term = {.name = "term", .write = write_sheet};

/* format_term.c - a sheet on a terminal. Columns are as wide as their widest cell, but a first column that would leave
 * little room for the others is broken into lines.
 *
 * The table is the same in pipes and files, except that highlighted cells are bold, and explained, only on a
 * terminal. */
#include <stdlib.h>
#include <string.h>

#include "core/paragraph.h"
#include "harness/sheet/sheet.h"

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

/* The columns of one block of the table: the first column, and [from, to). */
struct part {
    const struct sheet *s;
    const int *width;
    int from, to;
    bool bold; /* print highlighted cells in bold */
};

static bool is_in(const struct part *p, int column) {
    return column == 0 || (column >= p->from && column < p->to);
}

/* Prints text and mark in a field, without blanks after the last column of a line. */
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

#define FURTHER_LINES 2 /* indent of further lines */

/* Returns the bytes of the text's first line within `room` columns: up to the end of a word, or after a comma or
 * semicolon (names of models have these), else as many as fit. */
static size_t line_bytes(const char *text, int room) {
    size_t bytes = 0, last_end = 0;
    for (int columns = 0; text[bytes]; columns++) {
        if (columns == room) return last_end ? last_end : bytes;
        do bytes++;
        while (((unsigned char)text[bytes] & 0xC0) == 0x80);
        if (strchr(" ,;", text[bytes - 1])) last_end = bytes;
    }
    return bytes;
}

/* Returns the first line of *text without blanks around it, and moves *text past it. The caller frees the line. NULL:
 * no memory, or no line is left. */
static char *next_line(const char **text, int room) {
    *text += strspn(*text, " ");
    size_t bytes = line_bytes(*text, room), shown = bytes;
    while (shown && (*text)[shown - 1] == ' ') shown--;
    char *line = shown ? strndup(*text, shown) : NULL;
    *text += bytes;
    return line;
}

/* Prints the further lines of the first column. */
static void print_further(FILE *f, const char *text, int width) {
    for (char *line; (line = next_line(&text, width - FURTHER_LINES)); free(line)) {
        fprintf(f, "%*s", FURTHER_LINES, "");
        print_plain(f, line);
        fputc('\n', f);
    }
}

/* Prints a row, or the headings as a row of texts. */
static void print_row(FILE *f, const struct part *p, const struct sheet_cell *cells) {
    char mark[SHEET_MARK_BYTES], *whole = NULL, *line = NULL;
    sheet_mark(&cells[0], mark);
    bool broken = cell_width(&cells[0]) > p->width[0];
    if (broken) {
        size_t size = strlen(cells[0].text) + sizeof mark;
        whole = malloc(size);
        if (whole) snprintf(whole, size, "%s%s", cells[0].text, mark);
    }
    const char *rest = whole ? whole : "";
    if (broken) line = next_line(&rest, p->width[0]);
    for (int c = 0; c < p->s->n_columns; c++) {
        sheet_mark(&cells[c], mark);
        bool part = c == 0 && line;
        print_field(f, p, c, part ? line : cells[c].text, part ? "" : mark, cells[c].strong);
    }
    print_further(f, rest, p->width[0]);
    free(line);
    free(whole);
}

static void write_part(const struct part *p, FILE *f) {
    const struct sheet *s = p->s;
    struct sheet_cell headings[s->n_columns];
    for (int c = 0; c < s->n_columns; c++) headings[c] = (struct sheet_cell){.text = s->columns[c].heading};
    print_row(f, p, headings);
    for (int c = 0; c < s->n_columns; c++)
        for (int i = 0; is_in(p, c) && i < p->width[c] + (c ? 2 : 0); i++) fputc('-', f);
    fputc('\n', f);
    for (int i = 0; i < s->n_rows; i++) print_row(f, p, &s->cells[i * s->n_columns]);
}

/* Returns the width of the first column, which is repeated in each block. It may use the room that the other columns
 * leave, but at least half of the terminal; or the room that the widest of them leaves, but at least a third. */
static int first_width(const struct sheet *s, const int *width, int room) {
    const int least = 8;
    int beside = 0, widest = 0;
    for (int c = 1; c < s->n_columns; c++) {
        beside += width[c] + 2;
        if (width[c] + 2 > widest) widest = width[c] + 2;
    }
    int most = room - beside > room / 2 ? room - beside : room / 2;
    if (room - widest < most) most = room - widest > room / 3 ? room - widest : room / 3;
    if (most < least) most = least;
    return room == 0 || width[0] <= most ? width[0] : most;
}

/* Prints the columns of a table that is wider than the terminal in several blocks, each after the first column. */
static void write_sheet(const struct sheet *s, FILE *f) {
    int width[s->n_columns], room = terminal_width(f);
    for (int c = 0; c < s->n_columns; c++) width[c] = column_width(s, c);
    width[0] = first_width(s, width, room);
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

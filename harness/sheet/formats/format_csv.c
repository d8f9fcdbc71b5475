/* format_csv.c - a sheet as CSV (RFC 4180): headings and unrounded values, without caption, notes and marks. */
#include "harness/sheet/sheet.h"
#include "harness/store/csv.h"

static void print_cell(FILE *f, const struct sheet_cell *cell) {
    switch (cell->kind) {
    case SHEET_TEXT:
        csv_text(f, cell->text);
        break;
    case SHEET_INT:
        csv_int(f, cell->whole);
        break;
    case SHEET_REAL:
        csv_real(f, cell->real);
        break;
    }
}

static void write_sheet(const struct sheet *s, FILE *f) {
    for (int c = 0; c < s->n_columns; c++) {
        csv_text(f, s->columns[c].heading);
        fputc(c + 1 < s->n_columns ? ',' : '\n', f);
    }
    for (int i = 0; i < s->n_cells; i++) {
        print_cell(f, &s->cells[i]);
        fputc((i + 1) % s->n_columns ? ',' : '\n', f);
    }
}

const struct sheet_format format_csv = {.name = "csv", .for_programs = true, .write = write_sheet};

/* format_json.c - a sheet for programs as JSON lines: an object a row, its keys the headings, nothing rounded; a number
 * that does not apply is null. */
#include <math.h>

#include "core/option.h"
#include "harness/table/sheet.h"

static bool is_continuation(unsigned char c) {
    return (c & 0xc0) == 0x80;
}

/* Bytes of the character of UTF-8 at c; 0: none is there, or one in a form that the standard forbids. */
static int length_of_character(const unsigned char *c) {
    int n = *c < 0x80 ? 1 : *c < 0xc2 ? 0 : *c < 0xe0 ? 2 : *c < 0xf0 ? 3 : *c < 0xf5 ? 4 : 0;
    for (int i = 1; i < n; i++)
        if (!is_continuation(c[i])) return 0;
    bool too_long = (*c == 0xe0 && c[1] < 0xa0) || (*c == 0xf0 && c[1] < 0x90);
    bool no_character = (*c == 0xed && c[1] > 0x9f) || (*c == 0xf4 && c[1] > 0x8f);
    return too_long || no_character ? 0 : n;
}

/* A byte of no character, as names of files may have, becomes U+FFFD: JSON is UTF-8. */
static void print_string(FILE *f, const char *text) {
    fputc('"', f);
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        int n = length_of_character(c);
        if (*c == '"' || *c == '\\')
            fprintf(f, "\\%c", *c);
        else if (*c < 0x20)
            fprintf(f, "\\u%04x", *c);
        else if (n == 0)
            fputs("\\ufffd", f);
        else
            fwrite(c, 1, (size_t)n, f);
        c += n ? n : 1;
    }
    fputc('"', f);
}

static void print_cell(FILE *f, const struct sheet_cell *cell) {
    char number[64];
    switch (cell->kind) {
    case SHEET_TEXT:
        print_string(f, cell->text);
        break;
    case SHEET_INT:
        if (cell->whole == -1)
            fputs("null", f);
        else
            fprintf(f, "%lld", (long long)cell->whole);
        break;
    case SHEET_REAL:
        format_double(cell->real, number, sizeof number);
        fputs(isfinite(cell->real) ? number : "null", f);
        break;
    }
}

static void write_sheet(const struct sheet *s, FILE *f) {
    for (int i = 0; i < s->n_cells; i++) {
        fputc(i % s->n_columns ? ',' : '{', f);
        print_string(f, s->columns[i % s->n_columns].heading);
        fputc(':', f);
        print_cell(f, &s->cells[i]);
        if ((i + 1) % s->n_columns == 0) fputs("}\n", f);
    }
}

const struct sheet_format format_json = {.name = "json", .for_programs = true, .write = write_sheet};

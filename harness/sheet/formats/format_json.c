/* format_json.c - a sheet for programs as JSON lines: an object per row with the headings as keys and unrounded values;
 * a number that does not apply is null. */
#include <math.h>

#include "core/option.h"
#include "core/paragraph.h"
#include "harness/sheet/sheet.h"

/* Returns the code of a control character of so many bytes. */
static int code_of(const char *text, int bytes) {
    const unsigned char *c = (const unsigned char *)text;
    if (bytes == 1) return c[0];
    int code = c[0] & (bytes == 2 ? 0x1f : 0x0f);
    for (int i = 1; i < bytes; i++) code = code << 6 | (c[i] & 0x3f);
    return code;
}

void print_json_text(FILE *f, const char *text) {
    fputc('"', f);
    for (const char *c = text; *c;) {
        int n = utf8_bytes(c), control = control_bytes(c);
        if (*c == '"' || *c == '\\')
            fprintf(f, "\\%c", *c);
        else if (control)
            fprintf(f, "\\u%04x", code_of(c, control));
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
        print_json_text(f, cell->text);
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
        print_json_text(f, s->columns[i % s->n_columns].heading);
        fputc(':', f);
        print_cell(f, &s->cells[i]);
        if ((i + 1) % s->n_columns == 0) fputs("}\n", f);
    }
}

const struct sheet_format format_json = {.name = "json", .for_programs = true, .write = write_sheet};

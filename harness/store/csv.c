/* csv.c - CSV as RFC 4180 says; see csv.h. */
#include "harness/store/csv.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/option.h"
#include "core/paragraph.h"
#include "harness/store/files.h"

#define CSV_MOST_BYTES ((size_t)1 << 30)

static bool looks_like_formula(const char *text) {
    return *text && strchr("=+-@'\t\r", *text) != NULL;
}

/* Control characters become '?', because a terminal that shows the file would obey them. */
static void print_cell(FILE *f, const char *before, const char *text) {
    bool quoted = strpbrk(text, ",\"\r\n") != NULL;
    if (quoted) fputc('"', f);
    fputs(before, f);
    for (const char *p = text; *p;) {
        int control = strchr("\t\r\n", *p) ? 0 : control_bytes(p);
        if (*p == '"') fputc('"', f);
        fputc(control ? '?' : *p, f);
        p += control ? control : 1;
    }
    if (quoted) fputc('"', f);
}

void csv_text(FILE *f, const char *text) {
    print_cell(f, looks_like_formula(text) ? "'" : "", text);
}

void csv_cell_again(FILE *f, const char *cell) {
    print_cell(f, "", cell);
}

const char *csv_text_plain(const char *cell) {
    return cell[0] == '\'' && looks_like_formula(cell + 1) ? cell + 1 : cell;
}

void csv_int(FILE *f, int64_t value) {
    if (value != -1) fprintf(f, "%lld", (long long)value);
}

void csv_real(FILE *f, double value) {
    char text[40];
    if (isnan(value)) return;
    format_double(value, text, sizeof text);
    fputs(text, f);
}

/* Reads one cell at *p, unquotes it in place, and moves *p past the separator. Returns the separator: ',' or '\n'; 0:
 * the text ended; '"': the quoting is wrong. */
static char take_cell(char **p, char **cell, int *line) {
    char *in = *p, *out = *p;
    *cell = out;
    if (*in == '"') {
        for (in++; *in && !(in[0] == '"' && in[1] != '"'); in++) {
            if (*in == '"') in++;
            if (*in == '\n') ++*line;
            *out++ = *in;
        }
        if (!*in) return in[-1] == '\n' ? '"' : 0; /* else the file was cut inside the cell */
        in++;
        if (*in == '\r') in++;
        if (*in && *in != ',' && *in != '\n') return '"';
    } else {
        while (*in && *in != ',' && *in != '\n') *out++ = *in++;
        if (*in == '\n' && out > *cell && out[-1] == '\r') out--;
    }
    char separator = *in;
    *out = 0;
    *p = in + (separator != 0);
    return separator;
}

/* Splits the text into cells, the header first, and counts whole rows. */
static enum status split(struct csv_table *t, const char *path, struct error *e) {
    char *p = t->bytes;
    int n = 0, capacity = 0, line = 1, in_row = 0, row_line = 1;
    while (*p) {
        char *cell;
        char separator = take_cell(&p, &cell, &line);
        if (separator == '"')
            return fail(e, ST_DATA, "%s, line %d: a quoted cell does not end properly", path, row_line);
        if (separator == 0) break; /* no line feed: the last row was not finished */
        if (n == capacity) {
            capacity = capacity ? 2 * capacity : 256;
            char **longer = realloc(t->cells, (size_t)capacity * sizeof *longer);
            if (!longer) return fail(e, ST_MEMORY, "no memory to read %s", path);
            t->cells = longer;
        }
        t->cells[n++] = cell;
        in_row++;
        if (separator == ',') continue;
        if (t->columns == 0) t->columns = in_row;
        if (in_row != t->columns)
            return fail(e, ST_DATA, "%s, line %d: expected %d cells as in the header, got %d", path, row_line,
                        t->columns, in_row);
        in_row = 0;
        row_line = ++line;
    }
    if (t->columns == 0) return fail(e, ST_DATA, "%s has no header row", path);
    t->header = t->cells;
    t->rows = n / t->columns - 1;
    return ST_OK;
}

static enum status read_table(struct csv_table *t, const char *path, bool edited, struct error *e) {
    *t = (struct csv_table){0};
    size_t size;
    TRY(file_read(path, CSV_MOST_BYTES, &t->bytes, &size, e));
    enum status status = ST_OK;
    if (edited && size > 0 && t->bytes[size - 1] != '\n') { /* ends the last row */
        char *longer = realloc(t->bytes, size + 2);
        if (longer) memcpy(longer + size, "\n", 2);
        if (longer) t->bytes = longer;
        if (!longer) status = fail(e, ST_MEMORY, "no memory to read %s", path);
    }
    if (status == ST_OK) status = split(t, path, e);
    if (status != ST_OK) csv_free(t);
    return status;
}

enum status csv_read(struct csv_table *t, const char *path, struct error *e) {
    return read_table(t, path, false, e);
}

enum status csv_read_edited(struct csv_table *t, const char *path, struct error *e) {
    return read_table(t, path, true, e);
}

void csv_free(struct csv_table *t) {
    free(t->cells);
    free(t->bytes);
    *t = (struct csv_table){0};
}

const char *csv_cell(const struct csv_table *t, int row, const char *column) {
    for (int i = 0; i < t->columns; i++)
        if (strcmp(t->header[i], column) == 0) return t->cells[(size_t)(row + 1) * (size_t)t->columns + (size_t)i];
    return "";
}

void csv_cell_text(const struct csv_table *t, int row, const char *column, char *text, size_t size) {
    snprintf(text, size, "%s", csv_text_plain(csv_cell(t, row, column)));
}

double csv_cell_real(const struct csv_table *t, int row, const char *column) {
    double value;
    return parse_double(csv_cell(t, row, column), &value) ? value : NAN;
}

int64_t csv_cell_int(const struct csv_table *t, int row, const char *column) {
    int64_t value;
    return parse_int64(csv_cell(t, row, column), &value) ? value : -1;
}

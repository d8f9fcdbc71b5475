/* trace_file.c - see trace_file.h. */
#include "tests/golden/trace_file.h"

#include <stdio.h>
#include <string.h>

/* Reads the next row, past comments. *more is false at the end. */
static enum status next_row(FILE *f, struct trace_row *row, bool *more, struct error *e) {
    char line[TRACE_LINE];
    do {
        *more = fgets(line, sizeof line, f);
        if (!*more) return ST_OK;
    } while (line[0] == '#');
    return trace_parse(line, row) ? ST_OK : fail(e, ST_DATA, "%s: not a row of golden traces: %s", TRACE_FILE, line);
}

enum status trace_find_row(const char *name, const char *precision, const char *arithmetic, struct trace_row *row,
                           struct error *e) {
    enum status status = ST_OK;
    bool more = true, found = false;
    FILE *f = fopen(TRACE_FILE, "r");
    if (!f) return fail(e, ST_DATA, "cannot read %s; run from the top of the repository", TRACE_FILE);
    while (status == ST_OK && more && !found) {
        status = next_row(f, row, &more, e);
        found =
            more && !strcmp(row->name, name) && !strcmp(row->real, precision) && !strcmp(row->arithmetic, arithmetic);
    }
    fclose(f);
    if (status != ST_OK || found) return status;
    return fail(e, ST_DATA, "%s, %s, %s has no row in %s; make golden writes it", name, precision, arithmetic,
                TRACE_FILE);
}

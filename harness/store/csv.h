/* csv.h - CSV as RFC 4180 says: UTF-8, LF, comma, cells quoted only where they must be, a header row.
 *
 * A text cell that begins with = + - @ ' tab or carriage return gets one ' in front, so that no spreadsheet takes it
 * for a formula; csv_text_plain takes it off again. Numbers are written as they are. */
#ifndef LRNN_HARNESS_STORE_CSV_H
#define LRNN_HARNESS_STORE_CSV_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/status.h"

/* One cell each; the caller writes the commas and the line feed. */
void csv_text(FILE *f, const char *text);
void csv_int(FILE *f, int64_t value); /* empty if -1 */
void csv_real(FILE *f, double value); /* empty if NAN; inf, -inf; else the shortest text that reads back the same */

/* A cell as csv_cell gives it, which reads back as the same. */
void csv_cell_again(FILE *f, const char *cell);

/* A whole file in memory. Rows are counted from 0 after the header. */
struct csv_table {
    char *bytes;       /* owns the text of all cells */
    char **cells;      /* (rows + 1) * columns, row-major, the header first; csv_cell knows */
    int rows, columns; /* rows without the header */
    char **header;     /* columns */
};

/* Reads a file. ST_DATA with path and line: no such file, a quoted cell that something follows or that never
 * ends, or a row of another width than the header's. A last row without its line feed (a torn write) is left out,
 * wherever it ends. */
enum status csv_read(struct csv_table *t, const char *path, struct error *e);

/* Like csv_open, for a file that people edit: its last row counts without a line feed, too. */
enum status csv_read_edited(struct csv_table *t, const char *path, struct error *e);
void csv_free(struct csv_table *t);

const char *csv_cell(const struct csv_table *t, int row, const char *column); /* "" if there is no such column */
const char *csv_text_plain(const char *cell);                                 /* without the ' of csv_text */

/* A cell's text without that ', cut to fit; its number, NAN or -1 where it is none. */
void csv_cell_text(const struct csv_table *t, int row, const char *column, char *text, size_t size);
double csv_cell_real(const struct csv_table *t, int row, const char *column);
int64_t csv_cell_int(const struct csv_table *t, int row, const char *column);

#endif

/* csv.h - CSV as RFC 4180 says: UTF-8, LF, comma, cells quoted only where they must be, a header row.
 *
 * A text cell that begins with = + - @ ' tab or carriage return gets one ' in front, so that no spreadsheet takes it
 * for a formula; csv_text_plain removes it. Numbers are written without it. */
#ifndef LRNN_HARNESS_STORE_CSV_H
#define LRNN_HARNESS_STORE_CSV_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/status.h"

/* Each writes one cell; the caller writes the commas and the line feed. */
void csv_text(FILE *f, const char *text);
void csv_int(FILE *f, int64_t value); /* empty if -1 */
void csv_real(FILE *f, double value); /* empty if NAN; inf, -inf; else the shortest text that reads back the same */

/* Writes a cell that csv_cell has read, so that it reads back the same. */
void csv_cell_again(FILE *f, const char *cell);

/* A whole file in memory. Rows are counted from 0 after the header. */
struct csv_table {
    char *bytes;       /* owns the texts of all cells */
    char **cells;      /* (rows + 1) * columns, row-major, the header first; use csv_cell */
    int rows, columns; /* rows without the header */
    char **header;     /* columns */
};

/* Reads a file. ST_DATA with path and line: no such file, wrong quoting, or a row with another number of cells than the
 * header. A last row without a line feed (an interrupted write) is left out. */
enum status csv_read(struct csv_table *t, const char *path, struct error *e);

/* Like csv_read, for a file that people edit: the last row counts even without a line feed. */
enum status csv_read_edited(struct csv_table *t, const char *path, struct error *e);
void csv_free(struct csv_table *t);

const char *csv_cell(const struct csv_table *t, int row, const char *column); /* "" if there is no such column */
const char *csv_text_plain(const char *cell);                                 /* without the ' of csv_text */

/* Give a cell's text without that ', cut to fit, or its number; NAN or -1: the cell is no number. */
void csv_cell_text(const struct csv_table *t, int row, const char *column, char *text, size_t size);
double csv_cell_real(const struct csv_table *t, int row, const char *column);
int64_t csv_cell_int(const struct csv_table *t, int row, const char *column);

#endif

/* sheet.h - a sheet is a table to print: columns, rows of cells, notes and a caption, built once and written in any
 * format.
 *
 * A sheet is built in reading order: its columns, then for each row sheet_row and a cell per column. Every cell has
 * text for people and, if it is a number, an unrounded value for programs. The building functions return nothing. The
 * first error (no memory, a row with too many or too few cells) is stored, later calls do nothing, and sheets_write
 * returns the error before anything is written. Texts may have any length. */
#ifndef LRNN_HARNESS_SHEET_SHEET_H
#define LRNN_HARNESS_SHEET_SHEET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/status.h"

enum sheet_align { SHEET_LEFT, SHEET_RIGHT };
enum sheet_kind { SHEET_TEXT, SHEET_INT, SHEET_REAL };

struct sheet_column {
    char *heading;
    enum sheet_align align;
    bool on_request; /* shown only if the user names it (sheet_pick.h) */
    bool names_rows; /* always shown, whatever columns the user names */
};

struct sheet_cell {
    char *text; /* as people read it */
    enum sheet_kind kind;
    int64_t whole;  /* of SHEET_INT; -1: does not apply */
    double real;    /* of SHEET_REAL; not finite: does not apply */
    int first_note; /* first of the n_notes consecutive footnotes of the cell */
    int n_notes;    /* 0: none */
    int n_value;    /* bytes of the text that belong to the number */
    bool strong;    /* highlighted: the best of its column */
    bool has_key;   /* a text that is sorted by `key` */
    double key;
};

struct sheet_note {
    char *text;
    bool on_strong; /* explains highlighting: only for formats that show it */
    int number;     /* of a footnote, from 1; 0: a remark on the table */
    const char *of; /* headings of the columns it explains, comma-separated; NULL: the whole table. Borrowed */
};

struct sheet {
    char *caption; /* NULL: none */
    char *name;    /* label for references: letters, digits, hyphens; NULL: none */
    /* Set by the caller: LaTeX gets only a tabular, for the author's own float, with the caption as a comment. */
    bool bare;
    struct sheet_column *columns;
    struct sheet_cell *cells; /* rows * columns, row-major; the last row may not be full yet */
    struct sheet_note *notes;
    int n_columns, n_rows, n_cells, n_notes, n_footnotes;
    struct error problem; /* status ST_OK: none so far */
};

/* --- building. `format` and its arguments are printf's ------------------------------------------------------------ */

void sheet_caption(struct sheet *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sets the sheet's name to the text's letters and digits, with hyphens for all other characters. */
void sheet_name(struct sheet *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sheet_column(struct sheet *s, enum sheet_align align, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Adds columns with headings separated by '|'; '>' before a heading aligns the column right: "model|>params|>state". */
void sheet_columns(struct sheet *s, const char *headings);
/* Shows the latest column only if the user names it. */
void sheet_on_request(struct sheet *s);
/* Always shows the latest column, since it names the rows. */
void sheet_names_rows(struct sheet *s);
void sheet_row(struct sheet *s);

/* Add the next cell of the row. sheet_text: a text; sheet_int: an integer, "-" if it is -1; sheet_real: a number
 * printed by a format of one double, "-" if it is not finite; sheet_difference: a number with a sign, also for 0;
 * sheet_count: 950, 12.3k or 1.38M, "-" if it is not finite or below 0. */
void sheet_text(struct sheet *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sheet_int(struct sheet *s, int64_t value);
void sheet_real(struct sheet *s, const char *format, double value) __attribute__((format(printf, 2, 0)));
void sheet_difference(struct sheet *s, int decimals, double value);
void sheet_count(struct sheet *s, double value);

/* Change the latest cell: append text; highlight it; give a text ("553..15800/15800") a number by which rows are
 * sorted; add a footnote. */
void sheet_append(struct sheet *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sheet_strong(struct sheet *s);
void sheet_sort_key(struct sheet *s, double key);
void sheet_footnote(struct sheet *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Highlights the largest number of a column and all that print alike, unless the column has only one number. All rows
 * must be full. */
void sheet_strong_best(struct sheet *s, int column);

/* Add a remark below the table. sheet_note_on_strong: on highlighting, left out by formats without bold; sheet_note_on:
 * on columns, left out if none of them is shown. */
void sheet_note(struct sheet *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sheet_note_on_strong(struct sheet *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sheet_note_on(struct sheet *s, const char *columns, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* --- sheets that are written together ----------------------------------------------------------------------------- */

/* Starts as zeros. */
struct sheets {
    struct sheet **list; /* owned, with the sheets */
    int n;
    bool incomplete; /* there was no memory for a sheet */
};

/* Adds an empty sheet after the others. NULL: no memory; all functions above accept NULL, and sheets_write returns the
 * error. */
struct sheet *sheets_add(struct sheets *sheets);
void sheets_free(struct sheets *sheets);

/* --- formats ------------------------------------------------------------------------------------------------------ */

struct sheet_format {
    const char *name;
    bool for_programs; /* writes values, not text: gets a report's data (report.h) */
    void (*write)(const struct sheet *s, FILE *f);
    void (*begin)(FILE *f), (*end)(FILE *f); /* around all sheets; or NULL */
};

/* harness/sheet/formats/format_*.c define `const struct sheet_format format_NAME` for each format in the list. */
#define FORMAT(name) extern const struct sheet_format format_##name;
#include "harness/sheet/formats.def"
#undef FORMAT

const struct sheet_format *const *sheet_formats(void); /* NULL-terminated, in the order of the list */

extern const char sheet_format_names[];             /* " term md ..." */
#define SHEET_FORMAT_NAMES (sheet_format_names + 1) /* choices of an option, in the same order */

/* Writes all sheets with empty lines between them. ST_FAIL: the error of their building; nothing is written then. */
enum status sheets_write(const struct sheets *sheets, const struct sheet_format *format, FILE *f, struct error *e);

/* Writes the mark of a cell's footnotes as plain text: " [1-3]", or "". */
#define SHEET_MARK_BYTES 32
void sheet_mark(const struct sheet_cell *cell, char mark[SHEET_MARK_BYTES]);

/* Returns the bytes of the UTF-8 character at the beginning of the text; 0: it is invalid (RFC 3629 excludes overlong
 * forms, surrogates, and values above U+10FFFF). */
int utf8_bytes(const char *text);

/* Prints the text on one line for HTML, with special characters escaped and invalid bytes as U+FFFD. */
void print_html_text(FILE *f, const char *text);

/* Prints the text as a string of JSON. Control characters and bidi marks are escaped. Invalid bytes, which names of
 * files may have, become U+FFFD, since JSON is UTF-8. */
void print_json_text(FILE *f, const char *text);

/* Prints the text on one line. Control characters, which could end the line or move the cursor, become blanks. */
void print_plain(FILE *f, const char *text);

#endif

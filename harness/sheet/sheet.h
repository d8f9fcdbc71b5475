/* sheet.h - a table as it is to be read: columns, rows of cells, notes and a caption, built once and written in any
 * format.
 *
 * A sheet is built from left to right and from the top down: its columns, then for each row sheet_row and a cell a
 * column. Every cell is text for people and, where it is a number, a value for programs, which is not rounded. Building
 * returns nothing: the first thing that goes wrong (no memory, a row with too many or too few cells) is kept, later
 * calls do nothing, and sheets_write tells it before anything is written. Text is of any length, nothing is cut off. */
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
    bool on_request; /* only for readers who name it (sheet_pick.h) */
    bool names_rows; /* stays, whatever columns a reader names */
};

struct sheet_cell {
    char *text; /* as people read it */
    enum sheet_kind kind;
    int64_t whole;  /* of SHEET_INT; -1: does not apply */
    double real;    /* of SHEET_REAL; not finite: does not apply, or is no number */
    int first_note; /* footnotes that the cell refers to: this one and the next ones */
    int n_notes;    /* 0: none */
    int n_value;    /* bytes of the text that are the number */
    bool strong;    /* stands out: the best of its column */
    bool has_key;   /* a text that is sorted by a number: */
    double key;
};

struct sheet_note {
    char *text;
    bool on_strong; /* says what stands out: only for readers who see it */
    int number;     /* of a footnote, from 1; 0: a remark on the table */
    const char *of; /* the headings of the columns that it is on, by commas; NULL: on the whole table. Borrowed */
};

struct sheet {
    char *caption; /* NULL: none */
    char *name;    /* what other pages call it by: letters, digits, hyphens; NULL: nothing */
    /* To be set by the caller: the caption is a remark, which nothing typesets, and LaTeX gets a tabular alone, for a
     * float of the author's. */
    bool bare;
    struct sheet_column *columns;
    struct sheet_cell *cells; /* rows * columns, row-major; the last row may not be full yet */
    struct sheet_note *notes;
    int n_columns, n_rows, n_cells, n_notes, n_footnotes;
    struct error problem; /* status ST_OK: none so far */
};

/* --- building. `format` and its arguments are printf's ------------------------------------------------------------ */

void sheet_caption(struct sheet *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Names the sheet by the text's letters and digits, with a hyphen for all between. */
void sheet_name(struct sheet *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sheet_column(struct sheet *s, enum sheet_align align, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Adds columns whose headings are separated by '|'; one after '>' is aligned right: "model|>params|>state". */
void sheet_columns(struct sheet *s, const char *headings);
/* Shows the latest column to readers who name it alone. */
void sheet_on_request(struct sheet *s);
/* Keeps the latest column whatever columns a reader names, since it says what a row is. */
void sheet_names_rows(struct sheet *s);
void sheet_row(struct sheet *s);

/* Add the next cell of the row: a text; a whole number, "-" to people where it is -1; a number printed by a format of
 * one double, "-" where it is not finite; one with a sign, which is + where it prints as nothing; a number as 950,
 * 12.3k or 1.38M, "-" where it is not finite or below 0. */
void sheet_text(struct sheet *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sheet_int(struct sheet *s, int64_t value);
void sheet_real(struct sheet *s, const char *format, double value) __attribute__((format(printf, 2, 0)));
void sheet_difference(struct sheet *s, int decimals, double value);
void sheet_count(struct sheet *s, double value);

/* Change the latest cell: append text; make it stand out; sort rows by a number where it
 * is a text ("553..15800/15800"); add a footnote. */
void sheet_append(struct sheet *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sheet_strong(struct sheet *s);
void sheet_sort_key(struct sheet *s, double key);
void sheet_footnote(struct sheet *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Makes the largest numbers of a column stand out, all that print alike; none where it has one number. Its rows are
 * full. */
void sheet_strong_best(struct sheet *s, int column);

/* Add a remark below the table; one on what stands out, which a format without bold leaves out; one on those columns,
 * which goes where a reader leaves all of them out. */
void sheet_note(struct sheet *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sheet_note_on_strong(struct sheet *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sheet_note_on(struct sheet *s, const char *columns, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* --- sheets that are written together ----------------------------------------------------------------------------- */

/* Starts as zeros. */
struct sheets {
    struct sheet **list; /* owned, as is what they hold */
    int n;
    bool incomplete; /* there was no memory for one */
};

/* Adds an empty sheet after the others; NULL without memory, which every function above passes over and sheets_write
 * tells. */
struct sheet *sheets_add(struct sheets *sheets);
void sheets_free(struct sheets *sheets);

/* --- formats ------------------------------------------------------------------------------------------------------ */

struct sheet_format {
    const char *name;
    bool for_programs; /* values, not text: a report hands it its data (report.h) */
    void (*write)(const struct sheet *s, FILE *f);
    void (*begin)(FILE *f), (*end)(FILE *f); /* around all sheets; or NULL */
};

/* harness/sheet/formats/format_*.c define `const struct sheet_format format_NAME` of each format in the list. */
#define FORMAT(name) extern const struct sheet_format format_##name;
#include "harness/sheet/formats.def"
#undef FORMAT

const struct sheet_format *const *sheet_formats(void); /* NULL-terminated, in the order of the list */

extern const char sheet_format_names[];             /* " term md ..." */
#define SHEET_FORMAT_NAMES (sheet_format_names + 1) /* choices of an option, in the same order */

/* Writes all sheets, an empty line between two. ST_FAIL: what went wrong while they were built; nothing is written
 * then. */
enum status sheets_write(const struct sheets *sheets, const struct sheet_format *format, FILE *f, struct error *e);

/* The mark of a cell's footnotes after its text, in plain text: " [1-3]", or "". */
#define SHEET_MARK_BYTES 32
void sheet_mark(const struct sheet_cell *cell, char mark[SHEET_MARK_BYTES]);

/* Bytes of the UTF-8 character that the text begins with (RFC 3629: neither longer than need be, nor a surrogate, nor
 * above U+10FFFF); 0: it begins with none. */
int utf8_bytes(const char *text);

/* Prints the text for HTML, which no character of it can leave, on one line. What is not UTF-8 is U+FFFD. */
void print_html_text(FILE *f, const char *text);

/* Prints the text as a string of JSON. A byte of no character, as names of files may have, becomes U+FFFD: JSON is
 * UTF-8. */
void print_json_text(FILE *f, const char *text);

/* Prints the text on one line: control characters, which would end it or move a cursor, become blanks. */
void print_plain(FILE *f, const char *text);

#endif

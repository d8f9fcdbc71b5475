/* text_source.h - the characters and numbers of a text file, plain or gzip, with their line.
 *
 * Carriage returns are left out, so CR LF ends a line like LF. A failure to read is kept, and the text then ends: a
 * reader that meets an unexpected end calls text_fail, which returns the kept failure. */
#ifndef LRNN_TASKS_DATA_TEXT_SOURCE_H
#define LRNN_TASKS_DATA_TEXT_SOURCE_H

#include <string.h>

#include "tasks/data/byte_source.h"

#define TEXT_END    (-1)
#define TEXT_NUMBER 64 /* characters of a number at most */

struct text_source {
    struct byte_source *from; /* borrowed */
    struct error *e;          /* where a failure goes; borrowed */
    int64_t line;             /* from 1 */
    enum status status;
    bool ended;
    size_t at, n; /* of the window */
    uint8_t window[SOURCE_WINDOW];
};

void text_open(struct text_source *t, struct byte_source *from, struct error *e);

/* Reads more characters into the window, at least `least` unless the text ends. */
void text_fill(struct text_source *t, size_t least);

/* The next character, or TEXT_END; text_take moves on. */
static inline int text_peek(struct text_source *t) {
    if (t->at == t->n) text_fill(t, 1);
    return t->at < t->n ? t->window[t->at] : TEXT_END;
}
static inline int text_take(struct text_source *t) {
    int c = text_peek(t);
    if (c != TEXT_END) t->at++;
    t->line += c == '\n';
    return c;
}

/* Skips the mark of UTF-8 that some editors put at the start of a file. */
void text_skip_mark(struct text_source *t);

/* Skips blanks and tabs. */
static inline void text_skip_blanks(struct text_source *t) {
    for (int c = text_peek(t); c == ' ' || c == '\t'; c = text_peek(t)) t->at++;
}

/* Number of characters in the window before `stop`, or of all that are left if `stop` is not among them. 0 if `stop`
 * comes next, and at the end of the text. */
static inline size_t text_span(struct text_source *t, int stop) {
    if (text_peek(t) == TEXT_END) return 0;
    const uint8_t *at = t->window + t->at, *found = memchr(at, stop, t->n - t->at);
    return found ? (size_t)(found - at) : t->n - t->at;
}

/* Skips the rest of the line and its end. */
void text_skip_line(struct text_source *t);

/* Ends a line with only blanks left, usually none. ST_DATA: something else follows. */
enum status text_end_blank_line(struct text_source *t);
static inline enum status text_end_line(struct text_source *t) {
    if (t->at == t->n || t->window[t->at] != '\n') return text_end_blank_line(t);
    t->at++;
    t->line++;
    return t->status;
}

/* Reads a word up to a blank, a tab, an end of line or one of `stops`; the word is empty if one of them comes first.
 * false: it has `size` characters or more; it is cut off at `size` - 1, and the rest is left. */
bool text_word(struct text_source *t, const char *stops, char *word, size_t size);

/* Reads a decimal number, with or without fraction and exponent. false: none begins here, it has over TEXT_NUMBER
 * characters, or it overflows a double. */
bool text_number(struct text_source *t, double *value);

/* Reads a whole number from least to most; false if none begins here. */
bool text_integer(struct text_source *t, int64_t least, int64_t most, int64_t *value);

/* Reads the next plain lines, `lines` at most; nearly all lines of such files are plain. A plain line is n numbers
 * separated by a comma, or a comma and a blank. Integers lie in least..most and have at most 8 digits and no sign;
 * numbers have at most 15 digits and no exponent. Returns the number of lines read. The next line has another form or
 * an error, or does not fit into the window; it is not read. */
int64_t text_plain_integers(struct text_source *t, int64_t n, int64_t least, int64_t most, int64_t lines,
                            int32_t *values);
int64_t text_plain_numbers(struct text_source *t, int64_t n, int64_t lines, float *values);

/* Returns ST_DATA, "NAME, line N: expected `what`, found ...", or the failure to read that has ended the text. `what`
 * may end with a comma. */
enum status text_fail(struct text_source *t, const char *what);

#endif

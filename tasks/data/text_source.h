/* text_source.h - the characters and numbers of a text file, plain or gzip, with the line they stand on.
 *
 * Carriage returns are no characters: CR LF ends a line like LF. A failure to read is kept, and the text then ends:
 * whoever meets an end where there should be none answers with text_fail, which gives that failure where there is one.
 */
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

/* More characters into the window, at least `least` if there are as many. */
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

/* The mark of UTF-8 that some editors put at the beginning of a file. */
void text_skip_mark(struct text_source *t);

/* Blanks and tabs. */
static inline void text_skip_blanks(struct text_source *t) {
    for (int c = text_peek(t); c == ' ' || c == '\t'; c = text_peek(t)) t->at++;
}

/* How many characters of the window come next up to `stop`, or of them all if it is not among them; 0 where it comes
 * next, and at the end of the text. */
static inline size_t text_span(struct text_source *t, int stop) {
    if (text_peek(t) == TEXT_END) return 0;
    const uint8_t *at = t->window + t->at, *found = memchr(at, stop, t->n - t->at);
    return found ? (size_t)(found - at) : t->n - t->at;
}

/* Up to and with the end of the line. */
void text_skip_line(struct text_source *t);

/* Nothing but blanks up to the end of the line, or of the file, and then the next line; mostly there are none.
 * ST_DATA. */
enum status text_end_blank_line(struct text_source *t);
static inline enum status text_end_line(struct text_source *t) {
    if (t->at == t->n || t->window[t->at] != '\n') return text_end_blank_line(t);
    t->at++;
    t->line++;
    return t->status;
}

/* A word up to a blank, a tab, an end of line or one of `stops`, cut off at `size` - 1 characters, which it may not
 * have: false, and the rest is left. Empty where one of those comes first. */
bool text_word(struct text_source *t, const char *stops, char *word, size_t size);

/* A decimal number, with a fraction and an exponent or without; false if none begins here, or one of over TEXT_NUMBER
 * characters, or of which no finite double is nearest. */
bool text_number(struct text_source *t, double *value);

/* A whole number from least to most; false if none begins here. */
bool text_integer(struct text_source *t, int64_t least, int64_t most, int64_t *value);

/* The next plain lines, `lines` at most: n numbers with a comma between them, or a comma and a blank, and nothing else,
 * which nearly all lines of such files are. Integers are from least to most and have at most 8 digits and no sign,
 * numbers at most 15 digits and no exponent. Returns how many; the line behind them has another form, or a fault, or
 * does not lie in the window as a whole, and nothing of it is taken. */
int64_t text_plain_integers(struct text_source *t, int64_t n, int64_t least, int64_t most, int64_t lines,
                            int32_t *values);
int64_t text_plain_numbers(struct text_source *t, int64_t n, int64_t lines, float *values);

/* ST_DATA: "NAME, line N: expected `what`, found ...", or the failure to read that has ended the text. `what` may end
 * with a comma of its own. */
enum status text_fail(struct text_source *t, const char *what);

#endif

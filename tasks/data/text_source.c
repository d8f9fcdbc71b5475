/* text_source.c - see text_source.h. */
#include "tasks/data/text_source.h"

#include <endian.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void text_open(struct text_source *t, struct byte_source *from, struct error *e) {
    t->from = from;
    t->e = e;
    t->line = 1;
    t->status = ST_OK;
    t->ended = false;
    t->at = t->n = 0;
}

/* Removes the carriage returns of the window from there on; returns its new end. */
static size_t drop_returns(uint8_t *window, size_t from, size_t end) {
    const uint8_t *first = memchr(window + from, '\r', end - from);
    size_t to = first ? (size_t)(first - window) : end;
    for (size_t at = to; at < end;) {
        const uint8_t *next = memchr(window + at, '\r', end - at);
        size_t n = next ? (size_t)(next - window) - at : end - at;
        memmove(window + to, window + at, n);
        to += n;
        at += n + 1; /* after the carriage return */
    }
    return to;
}

void text_fill(struct text_source *t, size_t least) {
    while (t->n - t->at < least && !t->ended) {
        size_t got = 0, kept = t->n - t->at;
        memmove(t->window, t->window + t->at, kept);
        t->status = source_read(t->from, t->window + kept, SOURCE_WINDOW - kept, &got, t->e);
        if (t->status != ST_OK) got = 0;
        t->ended = got == 0;
        t->at = 0;
        t->n = drop_returns(t->window, kept, kept + got);
    }
}

void text_skip_mark(struct text_source *t) {
    text_fill(t, 3);
    if (t->n - t->at >= 3 && memcmp(t->window + t->at, "\xef\xbb\xbf", 3) == 0) t->at += 3;
}

void text_skip_line(struct text_source *t) {
    int c;
    do c = text_take(t);
    while (c != '\n' && c != TEXT_END);
}

enum status text_end_blank_line(struct text_source *t) {
    text_skip_blanks(t);
    int c = text_peek(t);
    if (c != '\n' && c != TEXT_END) return text_fail(t, "the end of the line");
    text_take(t);
    return t->status;
}

bool text_word(struct text_source *t, const char *stops, char *word, size_t size) {
    size_t n = 0;
    for (int c = text_peek(t); c > ' ' && !strchr(stops, c); c = text_peek(t)) {
        if (n + 1 == size) {
            word[n] = 0;
            return false;
        }
        word[n++] = (char)text_take(t);
    }
    word[n] = 0;
    return true;
}

/* Characters that a number may have. */
static const bool part[256] = {
    ['+'] = true, ['-'] = true, ['.'] = true, ['0'] = true, ['1'] = true, ['2'] = true, ['3'] = true, ['4'] = true,
    ['5'] = true, ['6'] = true, ['7'] = true, ['8'] = true, ['9'] = true, ['e'] = true, ['E'] = true};

/* Number of such characters that come next in the window. */
static size_t number_length(const struct text_source *t) {
    size_t n = t->at, end = t->n - t->at > TEXT_NUMBER ? t->at + TEXT_NUMBER + 1 : t->n;
    while (n < end && part[t->window[n]]) n++;
    return n - t->at;
}

static bool is_digit(uint8_t c) {
    return c >= '0' && c <= '9';
}

/* Number of digits at the start of 8 characters, and their value; 8: more may follow. A character less '0' is a digit
 * if adding 0x76 leaves bit 7 clear; a carry reaches only characters past the first non-digit. Neighbours are then
 * added up two by two (Lemire 2021, arXiv 2101.11408, for exactly 8 digits), after shifting in zeros for the characters
 * that are no digits. */
static size_t leading_digits(const uint8_t *at, int64_t *value) {
    uint64_t x;
    memcpy(&x, at, sizeof x);
    x = le64toh(x) ^ 0x3030303030303030;
    uint64_t others = ((x + 0x7676767676767676) | x) & 0x8080808080808080;
    size_t n = others ? (size_t)__builtin_ctzll(others) / 8 : 8;
    if (n == 0) return 0;
    x <<= 8 * (8 - n);
    x = (x * (1 + (10 << 8))) >> 8 & 0x00ff00ff00ff00ff;
    x = (x * (1 + (100 << 16))) >> 16 & 0x0000ffff0000ffff;
    *value = (int64_t)((x * (1 + ((uint64_t)10000 << 32))) >> 32);
    return n;
}

/* Number of digits that come next, `most` at most, and their value. */
static inline size_t take_digits(const uint8_t *at, size_t left, size_t most, int64_t *value) {
    size_t n = 0;
    *value = 0;
    if (left >= 8) n = leading_digits(at, value);
    if (n == 8 || left < 8)
        for (most = most < left ? most : left; n < most && is_digit(at[n]); n++) *value = 10 * *value + (at[n] - '0');
    return n;
}

/* Reads the number at *at, of n characters in the window, if it has at most 15 digits and a power of ten up to 22: both
 * factors are then exact, and one rounding gives the nearest double (Clinger 1990). Returns its characters; 0: it has
 * another form. */
static inline size_t read_short(const uint8_t *at, size_t n, double *value) {
    static const double power[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    int64_t whole, behind_point = 0;
    size_t minus = n > 0 && *at == '-', fraction = 0, used = minus;
    used += take_digits(at + used, n - used, 16, &whole);
    size_t digits = used - minus;
    if (used < n && at[used] == '.') {
        fraction = take_digits(at + used + 1, n - used - 1, 16, &behind_point);
        used += 1 + fraction;
        digits += fraction;
    }
    if (digits == 0 || digits > 15 || (used < n && part[at[used]])) return 0;
    double all = (double)whole * power[fraction] + (double)behind_point;
    *value = (minus ? -all : all) / power[fraction];
    return used;
}

/* Number of characters of the next number; 0: none comes. */
static size_t read_number(struct text_source *t, double *value) {
    char word[TEXT_NUMBER + 1], *end;
    if (t->n - t->at <= TEXT_NUMBER) text_fill(t, TEXT_NUMBER + 1);
    size_t n = read_short(t->window + t->at, t->n - t->at, value);
    if (n > 0) return n;
    n = number_length(t);
    if (n == 0 || n > TEXT_NUMBER) return 0;
    memcpy(word, t->window + t->at, n);
    word[n] = 0;
    *value = strtod(word, &end);
    return end == word + n && isfinite(*value) ? n : 0;
}

bool text_number(struct text_source *t, double *value) {
    size_t n = read_number(t, value);
    t->at += n;
    return n > 0;
}

/* Returns the characters of the next number if it has only digits, at most 18, which cannot overflow; else 0. */
static size_t read_digits(struct text_source *t, int64_t *value) {
    if (t->n - t->at <= TEXT_NUMBER) text_fill(t, TEXT_NUMBER + 1);
    const uint8_t *at = t->window + t->at;
    size_t left = t->n - t->at, n = take_digits(at, left, 18, value);
    return n < left && part[at[n]] ? 0 : n;
}

/* Reads numbers with only digits, nearly all integers, in a shorter way. */
bool text_integer(struct text_source *t, int64_t least, int64_t most, int64_t *value) {
    double number;
    size_t n = read_digits(t, value);
    if (n == 0) {
        n = read_number(t, &number);
        if (n == 0 || number != floor(number) || number < (double)least || number > (double)most) return false;
        *value = (int64_t)number;
    }
    if (*value < least || *value > most) return false;
    t->at += n;
    return true;
}

/* Returns the place after the separator that follows a number of a plain line; NULL: other bytes follow. */
static inline const uint8_t *plain_gap(const uint8_t *at, bool last) {
    if (*at != (last ? '\n' : ',')) return NULL;
    return at + 1 + (!last && at[1] == ' ');
}

/* Returns the place after a plain line; NULL: the line has another form. */
static inline const uint8_t *plain_integers(const uint8_t *at, const uint8_t *end, int64_t n, int64_t least,
                                            int64_t most, int32_t *values) {
    int64_t value;
    for (int64_t i = 0; at && i < n; i++) {
        size_t digits = end - at < TEXT_NUMBER ? 0 : leading_digits(at, &value);
        if (digits == 0 || value < least || value > most) return NULL;
        values[i] = (int32_t)value;
        at = plain_gap(at + digits, i + 1 == n);
    }
    return at;
}

static inline const uint8_t *plain_numbers(const uint8_t *at, const uint8_t *end, int64_t n, float *values) {
    double value;
    for (int64_t i = 0; at && i < n; i++) {
        size_t used = end - at < TEXT_NUMBER ? 0 : read_short(at, TEXT_NUMBER, &value);
        if (used == 0) return NULL;
        values[i] = (float)value;
        at = plain_gap(at + used, i + 1 == n);
    }
    return at;
}

static void move_on(struct text_source *t, const uint8_t *at, int64_t lines) {
    t->at = (size_t)(at - t->window);
    t->line += lines;
}

int64_t text_plain_integers(struct text_source *t, int64_t n, int64_t least, int64_t most, int64_t lines,
                            int32_t *values) {
    const uint8_t *at = t->window + t->at, *end = t->window + t->n, *next;
    int64_t taken = 0;
    for (; taken < lines && (next = plain_integers(at, end, n, least, most, values + n * taken)); taken++) at = next;
    move_on(t, at, taken);
    return taken;
}

int64_t text_plain_numbers(struct text_source *t, int64_t n, int64_t lines, float *values) {
    const uint8_t *at = t->window + t->at, *end = t->window + t->n, *next;
    int64_t taken = 0;
    for (; taken < lines && (next = plain_numbers(at, end, n, values + n * taken)); taken++) at = next;
    move_on(t, at, taken);
    return taken;
}

enum status text_fail(struct text_source *t, const char *what) {
    char found[32];
    size_t n = 0;
    text_fill(t, sizeof found);
    if (t->status != ST_OK) return t->status;
    while (n + 1 < sizeof found && t->at + n < t->n && t->window[t->at + n] >= ' ') n++;
    for (size_t i = 0; i < n; i++) found[i] = (char)(t->window[t->at + i] < 127 ? t->window[t->at + i] : '?');
    found[n] = 0;
    const char *comma = what[strlen(what) - 1] == ',' ? "" : ",";
    if (n > 0)
        return fail(t->e, ST_DATA, "%s, line %" PRId64 ": expected %s%s found '%s'", t->from->name, t->line, what,
                    comma, found);
    if (t->at < t->n && t->window[t->at] != '\n')
        return fail(t->e, ST_DATA, "%s, line %" PRId64 ": expected %s%s found a byte %d", t->from->name, t->line, what,
                    comma, t->window[t->at]);
    return fail(t->e, ST_DATA, "%s, line %" PRId64 ": expected %s%s found the end of the %s", t->from->name, t->line,
                what, comma, t->at < t->n ? "line" : "file");
}

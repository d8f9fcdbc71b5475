/* listops_tsv.c - see listops_tsv.h.
 *
 *   file        header, then lines; each ends in LF or CR LF
 *   line        words separated by blanks, TAB, one digit
 *   expression  digit | operator expression.. "]"      "(" and ")" anywhere between words
 *
 * One pass over a window of the file. A line is checked while it is read, in a buffer of the longest expression allowed
 * and a stack of the deepest, and moves to the arena once its length is known. */
#include "tasks/language/listops_tsv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tasks/language/listops_operation.h"

#define WINDOW_BYTES 65536
#define MAX_NESTED   64 /* operators; released files nest 9 deep */
#define WORD_BYTES   16 /* longer than any word of the format; messages show as much of another word */
#define END_OF_FILE  (-1)

struct reader {
    const char *file;
    struct arena *arena;
    struct error *e;
    int64_t line;

    const unsigned char *at, *end; /* not yet read, in memory */
    unsigned char *window;         /* refilled from fd; NULL: the bytes in memory are all there is */
    int fd, failure;               /* errno of a read that failed, 0 before */
    XXH3_state_t *content;         /* hash of all bytes of the file; or NULL */

    /* the last word, and the byte that ended it */
    char word[WORD_BYTES + 1];
    int64_t word_bytes; /* of the word, including those that did not fit */
    int stop;

    /* the expression so far */
    uint8_t *tokens; /* (max_length) */
    int64_t n, max_length;
    int64_t parentheses; /* open */
    int level;           /* open operators */
    bool complete;
    int32_t value; /* if complete */
    struct operation stack[MAX_NESTED];
};

/* --- bytes and words ---------------------------------------------------------------------------------------------- */

static void refill(struct reader *r) {
    ssize_t got;
    do got = read(r->fd, r->window, WINDOW_BYTES);
    while (got < 0 && errno == EINTR);
    if (got < 0) r->failure = errno;
    r->at = r->window;
    r->end = r->window + (got > 0 ? got : 0);
    if (r->content && got > 0) XXH3_128bits_update(r->content, r->window, (size_t)got);
}

/* Whether no byte is left, or none can be read. */
static bool exhausted(struct reader *r) {
    if (r->at == r->end && r->window && !r->failure) refill(r);
    return r->at == r->end;
}

static bool ends_word(unsigned char c) {
    return c <= ' ' && (c == ' ' || c == '\t' || c == '\n' || c == '\r'); /* most bytes are above all four */
}

/* Reads the next word if it is one character and a blank, as nearly all words are; else returns false. */
static inline bool next_short_word(struct reader *r) {
    const unsigned char *at = r->at;
    if (r->end - at < 2 || at[1] != ' ' || *at <= ' ' || *at >= 127) return false;
    r->word[0] = (char)*at;
    r->word[1] = '\0';
    r->word_bytes = 1;
    r->stop = ' ';
    r->at = at + 2;
    return true;
}

/* Reads up to and including the next byte that ends a word. Control characters are kept as '?': no word has one. */
static void next_word(struct reader *r) {
    int64_t n = 0;
    int c = END_OF_FILE;
    for (bool ended = false; !ended && !exhausted(r);) {
        const unsigned char *at = r->at, *end = r->end;
        for (; at < end && !ends_word(*at); at++, n++)
            if (n < WORD_BYTES) r->word[n] = (char)(*at < ' ' || *at >= 127 ? '?' : *at);
        ended = at < end;
        if (ended) c = *at++;
        r->at = at;
    }
    r->word_bytes = n;
    r->word[n < WORD_BYTES ? n : WORD_BYTES] = '\0';
    r->stop = c;
}

static bool word_is(const struct reader *r, const char *text) {
    return strcmp(r->word, text) == 0; /* a word that is cut is longer than any valid one */
}

static const char *stop_name(int stop) {
    switch (stop) {
    case END_OF_FILE:
        return "the end of the file";
    case '\n':
        return "the end of the line";
    case '\r':
        return "a carriage return";
    case '\t':
        return "a tab";
    default:
        return "a blank";
    }
}

/* Reports what was expected in place of the last word, or of the byte after it if there is no word. */
static enum status unexpected(const struct reader *r, const char *expected) {
    if (r->failure)
        return fail(r->e, ST_DATA, "%s, line %" PRId64 ": cannot read on: %s", r->file, r->line, strerror(r->failure));
    if (r->word_bytes == 0)
        return fail(r->e, ST_DATA, "%s, line %" PRId64 ": expected %s, found %s", r->file, r->line, expected,
                    stop_name(r->stop));
    return fail(r->e, ST_DATA, "%s, line %" PRId64 ": expected %s, found '%s%s'%s", r->file, r->line, expected, r->word,
                r->word_bytes > WORD_BYTES ? ".." : "", r->stop == END_OF_FILE ? " and the end of the file" : "");
}

/* Checks that the line ends after the last word, with LF or CR LF. */
static enum status end_line(struct reader *r) {
    if (r->stop == '\r') {
        next_word(r);
        if (r->word_bytes > 0 || r->stop != '\n') return unexpected(r, "a line feed after the carriage return");
    }
    if (r->stop == '\n') return ST_OK;
    r->word_bytes = 0; /* the word is right; its end is not */
    return unexpected(r, "the end of the line");
}

/* --- expressions -------------------------------------------------------------------------------------------------- */

static enum status add_token(struct reader *r, int id) {
    if (r->complete)
        return fail(r->e, ST_DATA, "%s, line %" PRId64 ": expected a tab after the complete expression, found '%s'",
                    r->file, r->line, r->word);
    if (r->n + 1 >= r->max_length)
        return fail(r->e, ST_DATA,
                    "%s, line %" PRId64 ": expected an expression of fewer than %" PRId64
                    " tokens, found a longer one; raise max_length",
                    r->file, r->line, r->max_length);
    r->tokens[r->n++] = (uint8_t)id;
    return ST_OK;
}

/* Takes a finished subexpression: an argument of the innermost operator, or the whole. */
static void add_value(struct reader *r, int32_t value) {
    if (r->level > 0) {
        operation_add(&r->stack[r->level - 1], value);
        return;
    }
    r->complete = true;
    r->value = value;
}

static enum status add_digit(struct reader *r, int32_t digit) {
    TRY(add_token(r, LISTOPS_DIGIT + digit));
    add_value(r, digit);
    return ST_OK;
}

static enum status add_operator(struct reader *r, int32_t id) {
    TRY(add_token(r, id));
    if (r->level == MAX_NESTED)
        return fail(r->e, ST_DATA, "%s, line %" PRId64 ": expected at most %d nested operators, found one more",
                    r->file, r->line, MAX_NESTED);
    operation_start(&r->stack[r->level++], id);
    return ST_OK;
}

static enum status close_operator(struct reader *r) {
    TRY(add_token(r, LISTOPS_CLOSE));
    if (r->level == 0) return unexpected(r, "an expression");
    const struct operation *o = &r->stack[--r->level];
    if (o->arguments == 0) return unexpected(r, "an argument of the operator");
    add_value(r, operation_value(o));
    return ST_OK;
}

/* Compares four bytes of each word; zeros follow a shorter one. */
static enum status add_long_word(struct reader *r) {
    static const struct {
        char text[5];
        int32_t id;
    } operators[] = {{"[MAX", LISTOPS_MAX}, {"[MED", LISTOPS_MED}, {"[MIN", LISTOPS_MIN}, {"[SM", LISTOPS_SM}};
    for (size_t i = 0; i < sizeof operators / sizeof *operators && r->word_bytes <= 4; i++)
        if (memcmp(r->word, operators[i].text, 4) == 0) return add_operator(r, operators[i].id);
    return unexpected(r, "a digit or one of ( ) ] [MAX [MED [MIN [SM");
}

static inline enum status add_word(struct reader *r) {
    char only = r->word_bytes == 1 ? r->word[0] : '\0';
    if (only == '(') {
        r->parentheses++;
        return ST_OK;
    }
    if (only == ')') {
        if (r->parentheses-- > 0) return ST_OK;
        return fail(r->e, ST_DATA, "%s, line %" PRId64 ": expected '(' before it, found ')'", r->file, r->line);
    }
    if (only == ']') return close_operator(r);
    if (only >= '0' && only <= '9') return add_digit(r, only - '0');
    return add_long_word(r);
}

/* Reads up to and including the tab. */
static enum status read_expression(struct reader *r) {
    r->n = r->parentheses = r->level = 0;
    r->complete = false;
    do {
        while (next_short_word(r)) TRY(add_word(r));
        next_word(r);
        if (r->word_bytes > 0) TRY(add_word(r));
    } while (r->stop == ' ');
    r->word_bytes = 0;
    if (r->level > 0) return unexpected(r, "']' for each operator");
    if (!r->complete) return unexpected(r, "an expression");
    if (r->parentheses > 0) return unexpected(r, "')' for each '('");
    if (r->stop != '\t') return unexpected(r, "a tab and the label");
    return ST_OK;
}

static enum status read_label(struct reader *r) {
    next_word(r);
    if (r->word_bytes != 1 || r->word[0] < '0' || r->word[0] > '9') return unexpected(r, "a label from 0 to 9");
    if (r->word[0] - '0' == r->value) return ST_OK;
    return fail(r->e, ST_DATA, "%s, line %" PRId64 ": expected the value of the expression, %d, as its label, found %s",
                r->file, r->line, r->value, r->word);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static enum status read_header(struct reader *r) {
    r->line = 1;
    next_word(r);
    bool first = word_is(r, "Source") && r->stop == '\t';
    if (first) next_word(r);
    if (!first || !word_is(r, "Target")) return unexpected(r, "the header 'Source<TAB>Target'");
    return end_line(r);
}

static enum status no_room(const struct reader *r) {
    return fail(r->e, ST_MEMORY, "%s, line %" PRId64 ": no room for more; the %zu MB for tables of a task are full",
                r->file, r->line, r->arena->size >> 20);
}

/* Appends the line just read to the list and moves *tail. */
static enum status keep_row(struct reader *r, struct listops_row ***tail) {
    struct listops_row *row = arena_alloc(r->arena, sizeof *row + (size_t)r->n);
    if (!row) return no_room(r);
    *row = (struct listops_row){.length = (int32_t)r->n, .label = r->value};
    memcpy(row->tokens, r->tokens, (size_t)r->n);
    **tail = row;
    *tail = &row->next;
    return ST_OK;
}

static enum status read_rows(struct reader *r, struct listops_rows *rows) {
    struct listops_row *first = NULL, **tail = &first;
    r->tokens = arena_alloc(r->arena, (size_t)r->max_length);
    if (!r->tokens) return no_room(r);
    TRY(read_header(r));
    for (; !exhausted(r) || r->failure; rows->n++) {
        r->line++;
        TRY(read_expression(r));
        TRY(read_label(r));
        TRY(end_line(r));
        TRY(keep_row(r, &tail));
    }
    if (rows->n == 0)
        return fail(r->e, ST_DATA, "%s, line 2: expected an expression, found the end of the file", r->file);
    rows->row = arena_alloc(r->arena, (size_t)rows->n * sizeof *rows->row);
    if (!rows->row) return no_room(r);
    int64_t i = 0;
    for (const struct listops_row *row = first; row; row = row->next) rows->row[i++] = row;
    return ST_OK;
}

enum status listops_tsv_parse(struct listops_rows *rows, const void *bytes, size_t size, const char *name,
                              int64_t max_length, struct arena *arena, struct error *e) {
    struct reader r = {.file = name, .arena = arena, .e = e, .line = 1, .fd = -1, .max_length = max_length};
    r.at = bytes;
    r.end = r.at + size;
    *rows = (struct listops_rows){NULL, 0};
    return read_rows(&r, rows);
}

/* Reads an open file, which the caller closes. */
static enum status read_file(struct listops_rows *rows, int fd, const char *path, int64_t max_length,
                             struct arena *arena, XXH3_state_t *content, struct error *e) {
    struct reader r = {
        .file = path, .arena = arena, .e = e, .line = 1, .fd = fd, .content = content, .max_length = max_length};
    struct stat info;
    if (fstat(fd, &info) != 0) return fail(e, ST_DATA, "cannot read %s: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode)) return fail(e, ST_DATA, "cannot read %s: it is not a regular file", path);
    r.window = arena_alloc(arena, WINDOW_BYTES);
    if (!r.window) return no_room(&r);
    r.at = r.end = r.window;
    return read_rows(&r, rows);
}

enum status listops_tsv_read(struct listops_rows *rows, const char *path, int64_t max_length, struct arena *arena,
                             XXH3_state_t *content, struct error *e) {
    *rows = (struct listops_rows){NULL, 0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not block before it is refused */
    if (fd < 0)
        return fail(e, ST_DATA, "cannot open %s: %s; expected a file of the released ListOps", path, strerror(errno));
    enum status status = read_file(rows, fd, path, max_length, arena, content, e);
    close(fd);
    return status;
}

/* sheet.c - see sheet.h. */
#include "harness/sheet/sheet.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/paragraph.h"

/* --- memory and errors -------------------------------------------------------------------------------------------- */

static bool broken(const struct sheet *s) {
    return !s || s->problem.status != ST_OK;
}

static const char *name_of(const struct sheet *s) {
    return s->caption ? s->caption : "without a caption";
}

static void no_memory(struct sheet *s) {
    if (s->problem.status == ST_OK) fail(&s->problem, ST_MEMORY, "no memory for the table %.200s", name_of(s));
}

/* Appends the formatted text to `before` (may be NULL), which it frees or reuses. NULL: no memory. */
__attribute__((format(printf, 2, 0))) static char *text_of(char *before, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    size_t used = before ? strlen(before) : 0;
    int wanted = vsnprintf(NULL, 0, format, args);
    char *text = wanted < 0 ? NULL : realloc(before, used + (size_t)wanted + 1);
    if (text)
        vsnprintf(text + used, (size_t)wanted + 1, format, again);
    else
        free(before);
    va_end(again);
    return text;
}

/* Replaces *to by a formatted text, or with `append` adds the text to it. */
__attribute__((format(printf, 4, 0))) static void put_text(struct sheet *s, char **to, bool append, const char *format,
                                                           va_list args) {
    if (!append) free(*to);
    *to = text_of(append ? *to : NULL, format, args);
    if (!*to) no_memory(s);
}

/* Makes room for one more entry of `size` bytes, zeroed, in a list of n. The list grows by doubling. NULL: no memory,
 * and the list is unchanged. */
static void *with_room(void *list, int n, size_t size) {
    if ((n & (n - 1)) == 0) list = realloc(list, (n ? 2 * (size_t)n : 1) * size);
    if (list) memset((char *)list + (size_t)n * size, 0, size);
    return list;
}

/* --- building ----------------------------------------------------------------------------------------------------- */

void sheet_caption(struct sheet *s, const char *format, ...) {
    if (broken(s)) return;
    va_list args;
    va_start(args, format);
    put_text(s, &s->caption, false, format, args);
    va_end(args);
}

static bool is_of_a_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

void sheet_name(struct sheet *s, const char *format, ...) {
    if (broken(s)) return;
    va_list args;
    va_start(args, format);
    put_text(s, &s->name, false, format, args);
    va_end(args);
    if (!s->name) return;
    char *end = s->name;
    for (const char *c = s->name; *c; c++) {
        if (is_of_a_name(*c))
            *end++ = *c;
        else if (end > s->name && is_of_a_name(c[1]))
            *end++ = '-';
    }
    *end = 0;
}

void sheet_column(struct sheet *s, enum sheet_align align, const char *format, ...) {
    if (broken(s)) return;
    if (s->n_rows) {
        fail(&s->problem, ST_FAIL, "the table %.200s gets a column after its first row", name_of(s));
        return;
    }
    struct sheet_column *columns = with_room(s->columns, s->n_columns, sizeof *columns);
    va_list args;
    va_start(args, format);
    char *heading = text_of(NULL, format, args);
    va_end(args);
    if (columns) s->columns = columns;
    if (columns && heading)
        columns[s->n_columns++] = (struct sheet_column){.heading = heading, .align = align};
    else {
        free(heading);
        no_memory(s);
    }
}

void sheet_columns(struct sheet *s, const char *headings) {
    for (const char *at = headings; *at; at += *at == '|') {
        bool right = *at == '>';
        int n = (int)strcspn(at + right, "|");
        sheet_column(s, right ? SHEET_RIGHT : SHEET_LEFT, "%.*s", n, at + right);
        at += right + n;
    }
}

void sheet_on_request(struct sheet *s) {
    if (!broken(s) && s->n_columns) s->columns[s->n_columns - 1].on_request = true;
}

void sheet_names_rows(struct sheet *s) {
    if (!broken(s) && s->n_columns) s->columns[s->n_columns - 1].names_rows = true;
}

/* Whether all rows begun so far are full. */
static bool rows_are_full(struct sheet *s) {
    if (s->n_cells == s->n_rows * s->n_columns) return true;
    fail(&s->problem, ST_FAIL, "row %d of the table %.200s has %d cells, its columns are %d", s->n_rows, name_of(s),
         s->n_cells - (s->n_rows - 1) * s->n_columns, s->n_columns);
    return false;
}

void sheet_row(struct sheet *s) {
    if (!broken(s) && rows_are_full(s)) s->n_rows++;
}

/* Returns the next cell, with its text and all else zero; NULL: the row is full, or no memory. */
__attribute__((format(printf, 2, 3))) static struct sheet_cell *next_cell(struct sheet *s, const char *format, ...) {
    if (broken(s)) return NULL;
    if (s->n_cells == s->n_rows * s->n_columns) {
        fail(&s->problem, ST_FAIL, "row %d of the table %.200s gets more cells than the %d columns", s->n_rows,
             name_of(s), s->n_columns);
        return NULL;
    }
    struct sheet_cell *cells = with_room(s->cells, s->n_cells, sizeof *cells);
    va_list args;
    va_start(args, format);
    char *text = text_of(NULL, format, args);
    va_end(args);
    if (cells) s->cells = cells;
    if (!cells || !text) {
        free(text);
        no_memory(s);
        return NULL;
    }
    cells[s->n_cells].text = text;
    return &cells[s->n_cells++];
}

static struct sheet_cell *latest_cell(struct sheet *s) {
    if (broken(s)) return NULL;
    if (s->n_cells) return &s->cells[s->n_cells - 1];
    fail(&s->problem, ST_FAIL, "the table %.200s has no cell yet", name_of(s));
    return NULL;
}

void sheet_text(struct sheet *s, const char *format, ...) {
    struct sheet_cell *cell = next_cell(s, "%s", "");
    if (!cell) return;
    va_list args;
    va_start(args, format);
    put_text(s, &cell->text, false, format, args);
    va_end(args);
}

void sheet_int(struct sheet *s, int64_t value) {
    struct sheet_cell *cell = value == -1 ? next_cell(s, "-") : next_cell(s, "%lld", (long long)value);
    if (!cell) return;
    cell->kind = SHEET_INT;
    cell->whole = value;
}

static void put_real(struct sheet *s, const char *text, double value) {
    struct sheet_cell *cell = next_cell(s, "%s", isfinite(value) ? text : "-");
    if (!cell) return;
    cell->kind = SHEET_REAL;
    cell->real = value;
    cell->n_value = (int)strlen(cell->text);
}

void sheet_real(struct sheet *s, const char *format, double value) {
    char text[512]; /* enough for every finite double as %f */
    snprintf(text, sizeof text, format, value);
    put_real(s, text, value);
}

void sheet_difference(struct sheet *s, int decimals, double value) {
    char text[512];
    snprintf(text, sizeof text, "%+.*f", decimals, value);
    if (*text == '-' && strtod(text, NULL) == 0) *text = '+';
    put_real(s, text, value);
}

void sheet_count(struct sheet *s, double value) {
    if (value < 1e4)
        sheet_real(s, "%.0f", value < 0 ? NAN : value);
    else {
        char text[512];
        if (value < 1e5)
            snprintf(text, sizeof text, "%.1fk", value / 1e3);
        else if (value < 999.5e3)
            snprintf(text, sizeof text, "%.0fk", value / 1e3);
        else
            snprintf(text, sizeof text, "%.2fM", value / 1e6);
        put_real(s, text, value);
    }
}

void sheet_append(struct sheet *s, const char *format, ...) {
    struct sheet_cell *cell = latest_cell(s);
    if (!cell) return;
    va_list args;
    va_start(args, format);
    put_text(s, &cell->text, true, format, args);
    va_end(args);
}

void sheet_sort_key(struct sheet *s, double key) {
    struct sheet_cell *cell = latest_cell(s);
    if (!cell) return;
    cell->has_key = true;
    cell->key = key;
}

void sheet_strong(struct sheet *s) {
    struct sheet_cell *cell = latest_cell(s);
    if (cell) cell->strong = true;
}

/* Whether two numbers of a column print alike. */
static bool prints_alike(const struct sheet_cell *a, const struct sheet_cell *b) {
    return a->n_value == b->n_value && strncmp(a->text, b->text, (size_t)a->n_value) == 0;
}

void sheet_strong_best(struct sheet *s, int column) {
    const struct sheet_cell *best = NULL;
    int n = 0;
    if (broken(s) || !rows_are_full(s)) return;
    for (int i = column; i < s->n_cells; i += s->n_columns) {
        const struct sheet_cell *cell = &s->cells[i];
        if (cell->kind != SHEET_REAL || !isfinite(cell->real)) continue;
        if (n++ == 0 || cell->real > best->real) best = cell;
    }
    for (int i = column; n > 1 && i < s->n_cells; i += s->n_columns)
        s->cells[i].strong = s->cells[i].kind == SHEET_REAL && prints_alike(&s->cells[i], best);
}

__attribute__((format(printf, 4, 0))) static void add_note(struct sheet *s, int number, const char *columns,
                                                           const char *format, va_list args) {
    struct sheet_note *notes = with_room(s->notes, s->n_notes, sizeof *notes);
    char *text = text_of(NULL, format, args);
    if (notes) s->notes = notes;
    if (notes && text)
        notes[s->n_notes++] = (struct sheet_note){.text = text, .number = number, .of = columns};
    else {
        free(text);
        no_memory(s);
    }
}

void sheet_footnote(struct sheet *s, const char *format, ...) {
    struct sheet_cell *cell = latest_cell(s);
    if (!cell) return;
    va_list args;
    va_start(args, format);
    if (cell->n_notes++ == 0) cell->first_note = s->n_footnotes + 1;
    add_note(s, ++s->n_footnotes, NULL, format, args);
    va_end(args);
}

void sheet_note(struct sheet *s, const char *format, ...) {
    if (broken(s)) return;
    va_list args;
    va_start(args, format);
    add_note(s, 0, NULL, format, args);
    va_end(args);
}

void sheet_note_on_strong(struct sheet *s, const char *format, ...) {
    if (broken(s)) return;
    va_list args;
    va_start(args, format);
    add_note(s, 0, NULL, format, args);
    va_end(args);
    if (s->n_notes) s->notes[s->n_notes - 1].on_strong = true;
}

void sheet_note_on(struct sheet *s, const char *columns, const char *format, ...) {
    if (broken(s)) return;
    va_list args;
    va_start(args, format);
    add_note(s, 0, columns, format, args);
    va_end(args);
}

/* --- sheets ------------------------------------------------------------------------------------------------------- */

struct sheet *sheets_add(struct sheets *sheets) {
    struct sheet *s = calloc(1, sizeof *s);
    struct sheet **list = with_room(sheets->list, sheets->n, sizeof(struct sheet *));
    if (list) sheets->list = list;
    if (!s || !list) {
        free(s);
        sheets->incomplete = true;
        return NULL;
    }
    list[sheets->n++] = s;
    return s;
}

static void sheet_free(struct sheet *s) {
    for (int i = 0; i < s->n_columns; i++) free(s->columns[i].heading);
    for (int i = 0; i < s->n_cells; i++) {
        free(s->cells[i].text);
    }
    for (int i = 0; i < s->n_notes; i++) free(s->notes[i].text);
    free(s->columns);
    free(s->cells);
    free(s->notes);
    free(s->caption);
    free(s->name);
    free(s);
}

void sheets_free(struct sheets *sheets) {
    for (int i = 0; i < sheets->n; i++) sheet_free(sheets->list[i]);
    free(sheets->list);
    *sheets = (struct sheets){0};
}

/* --- formats ------------------------------------------------------------------------------------------------------ */

const char sheet_format_names[] =
#define FORMAT(name) " " #name
#include "harness/sheet/formats.def"
#undef FORMAT
    ;

const struct sheet_format *const *sheet_formats(void) {
    static const struct sheet_format *const list[] = {
#define FORMAT(name) &format_##name,
#include "harness/sheet/formats.def"
#undef FORMAT
        NULL};
    return list;
}

enum status sheets_write(const struct sheets *sheets, const struct sheet_format *format, FILE *f, struct error *e) {
    if (sheets->incomplete) return fail(e, ST_MEMORY, "no memory for another table");
    for (int i = 0; i < sheets->n; i++) {
        struct sheet *s = sheets->list[i];
        if (!broken(s) && rows_are_full(s) && !s->n_columns)
            fail(&s->problem, ST_FAIL, "the table %.200s has no column", name_of(s));
        if (broken(s)) return fail(e, s->problem.status, "%s", s->problem.text);
    }
    if (format->begin) format->begin(f);
    for (int i = 0; i < sheets->n; i++) {
        if (i) fputc('\n', f);
        format->write(sheets->list[i], f);
    }
    if (format->end) format->end(f);
    return ST_OK;
}

int utf8_bytes(const char *text) {
    const unsigned char *c = (const unsigned char *)text;
    int n = c[0] < 0x80 ? 1 : c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : c[0] < 0xf5 ? 4 : 0;
    for (int i = 1; i < n; i++)
        if ((c[i] & 0xc0) != 0x80) return 0;
    bool too_long = (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xf0 && c[1] < 0x90);
    bool no_character = (c[0] == 0xed && c[1] > 0x9f) || (c[0] == 0xf4 && c[1] > 0x8f);
    return too_long || no_character ? 0 : n;
}

void print_plain(FILE *f, const char *text) {
    paragraph_print(f, 0, 0, 0, text);
}

void sheet_mark(const struct sheet_cell *cell, char mark[SHEET_MARK_BYTES]) {
    mark[0] = 0;
    if (cell->n_notes == 1) snprintf(mark, SHEET_MARK_BYTES, " [%d]", cell->first_note);
    if (cell->n_notes > 1)
        snprintf(mark, SHEET_MARK_BYTES, " [%d-%d]", cell->first_note, cell->first_note + cell->n_notes - 1);
}

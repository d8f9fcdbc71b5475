/* sheet_pick.c - see sheet_pick.h. */
#include "harness/table/sheet_pick.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/label.h"

static int column_of(const struct sheet *s, const char *name) {
    for (int c = 0; c < s->n_columns; c++)
        if (!strcmp(s->columns[c].heading, name)) return c;
    return -1;
}

static bool is_usable(const struct sheet *s) {
    return s->problem.status == ST_OK && s->n_columns > 0 && s->n_cells == s->n_rows * s->n_columns;
}

/* What the reader has to write before names to have them behind the columns that a table has unasked. */
#define AND_THESE '+'

static const char *without_plus(const char *names) {
    return names + (*names == AND_THESE);
}

/* The column whose heading the list has at *at, which moves behind it and the comma; a heading may have commas itself,
 * so that the longest that fits is meant. -1: none, *at stays. *last: no comma follows. */
static int next_column(const struct sheet *s, const char **at, bool *last) {
    const char *name = *at + strspn(*at, " ");
    size_t longest = 0;
    int found = -1;
    for (int c = 0; c < s->n_columns; c++) {
        size_t n = strlen(s->columns[c].heading);
        if (n <= longest || strncmp(name, s->columns[c].heading, n) != 0) continue;
        if (name[n + strspn(name + n, " ")] && name[n + strspn(name + n, " ")] != ',') continue;
        longest = n;
        found = c;
    }
    if (found < 0) return -1;
    name += longest;
    name += strspn(name, " ");
    *last = !*name;
    *at = name + !*last;
    return found;
}

/* Whether it has every column of the list. */
static bool has_columns(const struct sheet *s, const char *names) {
    const char *at = without_plus(names);
    for (bool last = false; !last;)
        if (next_column(s, &at, &last) < 0) return false;
    return true;
}

/* --- no such column ----------------------------------------------------------------------------------------------- */

static bool has_same_columns(const struct sheet *a, const struct sheet *b) {
    if (a->n_columns != b->n_columns) return false;
    for (int c = 0; c < a->n_columns; c++)
        if (strcmp(a->columns[c].heading, b->columns[c].heading) != 0) return false;
    return true;
}

/* The headings of every kind of table: "model, acc; row, column"; as many whole ones as there is room for. */
static void list_columns(const struct sheets *sheets, char *text, size_t size) {
    static const char more[] = ", ...";
    *text = 0;
    for (int i = 0; i < sheets->n; i++) {
        const struct sheet *s = sheets->list[i];
        bool told = !is_usable(s);
        for (int k = 0; k < i; k++) told = told || has_same_columns(sheets->list[k], s);
        for (int c = 0; c < s->n_columns && !told; c++) {
            size_t used = strlen(text);
            if (used + 2 + strlen(s->columns[c].heading) + sizeof more > size) {
                snprintf(text + used, size - used, "%s", more);
                return;
            }
            snprintf(text + used, size - used, "%s%s", c ? ", " : used ? "; " : "", s->columns[c].heading);
        }
    }
}

static bool is_anywhere(const struct sheets *sheets, const char *name) {
    for (int i = 0; i < sheets->n; i++)
        if (is_usable(sheets->list[i]) && column_of(sheets->list[i], name) >= 0) return true;
    return false;
}

static enum status check_column(const struct sheets *sheets, const char *name, struct error *e) {
    char known[768];
    if (is_anywhere(sheets, name)) return ST_OK;
    list_columns(sheets, known, sizeof known);
    return fail(e, ST_USAGE, "no column '%.60s'; there are: %s", name, known);
}

/* Moves over the longest heading that some table has at *at, or says that none has what stands there. */
static enum status skip_column(const struct sheets *sheets, const char **at, bool *last, struct error *e) {
    const char *furthest = *at;
    for (int i = 0; i < sheets->n; i++) {
        const char *behind = *at;
        bool end;
        if (!is_usable(sheets->list[i]) || next_column(sheets->list[i], &behind, &end) < 0) continue;
        if (behind > furthest) *last = end, furthest = behind;
    }
    if (furthest > *at) {
        *at = furthest;
        return ST_OK;
    }
    char name[128], known[768];
    *at += strspn(*at, " ");
    TRY(text_part(at, ",", name, sizeof name, e));
    list_columns(sheets, known, sizeof known);
    return fail(e, ST_USAGE, "no column '%.60s'; there are: %s", name, known);
}

/* Some table has to have them all. ST_USAGE: the first that none has, or that they are of several. */
static enum status check_columns(const struct sheets *sheets, const char *names, struct error *e) {
    char known[768];
    for (int i = 0; i < sheets->n; i++)
        if (is_usable(sheets->list[i]) && has_columns(sheets->list[i], names)) return ST_OK;
    const char *at = without_plus(names);
    for (bool last = false; !last;) TRY(skip_column(sheets, &at, &last, e));
    list_columns(sheets, known, sizeof known);
    return fail(e, ST_USAGE, "no table has all of the columns '%.60s'; there are: %s", names, known);
}

/* --- columns ------------------------------------------------------------------------------------------------------ */

static bool is_picked(const int *picked, int n, int column) {
    for (int i = 0; i < n; i++)
        if (picked[i] == column) return true;
    return false;
}

static bool names_column(const char *names, const char *heading) {
    size_t n = strlen(heading);
    for (const char *at = names; *at; at += strspn(at, ",")) {
        size_t length = strcspn(at, ",");
        if (length == n && strncmp(at, heading, n) == 0) return true;
        at += length;
    }
    return false;
}

/* Takes away the remarks on columns that are not there. */
static void drop_notes(struct sheet *s) {
    int n = 0;
    for (int i = 0; i < s->n_notes; i++) {
        bool shown = !s->notes[i].of;
        for (int c = 0; c < s->n_columns && !shown; c++) shown = names_column(s->notes[i].of, s->columns[c].heading);
        if (shown)
            s->notes[n++] = s->notes[i];
        else
            free(s->notes[i].text);
    }
    s->n_notes = n;
}

/* The texts of what is left out are freed, those of what stays move. */
static enum status keep_columns(struct sheet *s, const int *picked, int n, struct error *e) {
    struct sheet_cell *cells = calloc((size_t)s->n_rows * (size_t)n + 1, sizeof *cells);
    struct sheet_column *columns = calloc((size_t)n + 1, sizeof *columns);
    if (!cells || !columns) {
        free(cells);
        free(columns);
        return fail(e, ST_MEMORY, "no memory for a table");
    }
    for (int c = 0; c < s->n_columns; c++)
        if (!is_picked(picked, n, c)) free(s->columns[c].heading);
    for (int i = 0; i < s->n_cells; i++)
        if (!is_picked(picked, n, i % s->n_columns)) free(s->cells[i].text);
    for (int k = 0; k < n; k++) columns[k] = s->columns[picked[k]];
    for (int r = 0; r < s->n_rows; r++)
        for (int k = 0; k < n; k++) cells[r * n + k] = s->cells[r * s->n_columns + picked[k]];
    free(s->cells);
    free(s->columns);
    s->cells = cells;
    s->columns = columns;
    s->n_columns = n;
    s->n_cells = s->n_rows * n;
    drop_notes(s);
    return ST_OK;
}

/* All but those that are shown on request. */
static enum status pick_usual(struct sheet *s, struct error *e) {
    int picked[s->n_columns], n = 0;
    for (int c = 0; c < s->n_columns; c++)
        if (!s->columns[c].on_request) picked[n++] = c;
    return n < s->n_columns ? keep_columns(s, picked, n, e) : ST_OK;
}

/* Whether a list of columns that the table has names number c. */
static bool is_named(const struct sheet *s, const char *names, int c) {
    const char *at = without_plus(names);
    for (bool last = false; !last;)
        if (next_column(s, &at, &last) == c) return true;
    return false;
}

/* Whether the column stands before those that the reader names: all that there are unasked, or what names the rows. */
static bool comes_first(const struct sheet *s, const char *names, int c) {
    bool kept = *names == AND_THESE ? !s->columns[c].on_request : s->columns[c].names_rows;
    return kept && !is_named(s, names, c);
}

/* The table has them all. */
static enum status pick(struct sheet *s, const char *names, struct error *e) {
    int picked[64], n = 0, most = (int)(sizeof picked / sizeof *picked);
    for (int c = 0; c < s->n_columns && n < most; c++)
        if (comes_first(s, names, c)) picked[n++] = c;
    const char *at = without_plus(names);
    for (bool last = false; !last; n++) {
        if (n == most) return fail(e, ST_USAGE, "more than %d columns are named", n);
        picked[n] = next_column(s, &at, &last);
        if (is_picked(picked, n, picked[n]))
            return fail(e, ST_USAGE, "column '%.60s' is named twice", s->columns[picked[n]].heading);
    }
    return keep_columns(s, picked, n, e);
}

/* A table of another kind has what it has unasked. */
static enum status pick_columns(struct sheets *sheets, const char *names, struct error *e) {
    if (*names) TRY(check_columns(sheets, names, e));
    for (int i = 0; i < sheets->n; i++) {
        struct sheet *s = sheets->list[i];
        if (is_usable(s)) TRY(*names && has_columns(s, names) ? pick(s, names, e) : pick_usual(s, e));
    }
    return ST_OK;
}

/* --- order -------------------------------------------------------------------------------------------------------- */

static double number_of(const struct sheet_cell *c) {
    if (c->has_key) return c->key;
    if (c->kind == SHEET_INT) return c->whole == -1 ? NAN : (double)c->whole;
    return c->real;
}

static bool is_text(const struct sheet_cell *c) {
    return c->kind == SHEET_TEXT && !c->has_key;
}

/* Whether a stands before b; a text, "-" for one, behind the numbers of its column, whichever way it is sorted. */
static bool is_before(const struct sheet_cell *a, const struct sheet_cell *b, bool reverse) {
    if (is_text(a) != is_text(b)) return is_text(b);
    if (is_text(a)) {
        int order = strcmp(a->text, b->text);
        return reverse ? order > 0 : order < 0;
    }
    double x = number_of(a), y = number_of(b);
    if (!isfinite(x) || !isfinite(y)) return isfinite(x) && !isfinite(y);
    return reverse ? x < y : x > y;
}

static void sort(struct sheet *s, int column, bool reverse) {
    int n = s->n_columns;
    for (int i = 1; i < s->n_rows; i++) /* few rows, and equal ones keep their order */
        for (int k = i; k > 0; k--) {
            struct sheet_cell *below = &s->cells[k * n], *above = below - n;
            if (!is_before(&below[column], &above[column], reverse)) break;
            for (int c = 0; c < n; c++) {
                struct sheet_cell swap = above[c];
                above[c] = below[c];
                below[c] = swap;
            }
        }
}

static enum status sort_rows(struct sheets *sheets, const char *name, struct error *e) {
    bool reverse = *name == '-';
    TRY(check_column(sheets, name + reverse, e));
    for (int i = 0; i < sheets->n; i++) {
        struct sheet *s = sheets->list[i];
        int column = is_usable(s) ? column_of(s, name + reverse) : -1;
        if (column >= 0) sort(s, column, reverse);
    }
    return ST_OK;
}

static bool any_is_usable(const struct sheets *sheets) {
    for (int i = 0; i < sheets->n; i++)
        if (is_usable(sheets->list[i])) return true;
    return false;
}

enum status sheets_view(struct sheets *sheets, const struct sheet_view *view, struct error *e) {
    if (!any_is_usable(sheets)) return ST_OK; /* sheets_write tells why */
    if (view->sort && *view->sort) TRY(sort_rows(sheets, view->sort, e));
    return pick_columns(sheets, view->columns ? view->columns : "", e);
}

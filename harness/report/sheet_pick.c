/* sheet_pick.c - see sheet_pick.h. */
#include "harness/report/sheet_pick.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/label.h"

static enum status find_column(const struct sheet *s, const char *name, int *column, struct error *e) {
    char known[512] = "";
    for (*column = 0; *column < s->n_columns; ++*column)
        if (!strcmp(s->columns[*column].heading, name)) return ST_OK;
    for (int c = 0; c < s->n_columns; c++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", c ? ", " : "", s->columns[c].heading);
    }
    return fail(e, ST_USAGE, "no column '%.60s'; there are: %s", name, known);
}

static bool is_usable(const struct sheet *s) {
    return s->problem.status == ST_OK && s->n_columns > 0 && s->n_cells == s->n_rows * s->n_columns;
}

/* Whether it has every column of the list. */
static bool has_columns(const struct sheet *s, const char *names) {
    struct error e;
    char name[128];
    int column;
    for (const char *at = names;; at++) {
        if (text_part(&at, ",", name, sizeof name, &e) != ST_OK || find_column(s, name, &column, &e) != ST_OK)
            return false;
        if (!*at) return true;
    }
}

/* Whether that sheet is to be changed: it has the columns, or no other one has them and it says so. */
static bool is_meant(const struct sheets *sheets, int i, const char *names) {
    bool any = false;
    for (int k = 0; k < sheets->n && !any; k++) any = is_usable(sheets->list[k]) && has_columns(sheets->list[k], names);
    return is_usable(sheets->list[i]) && (!any || has_columns(sheets->list[i], names));
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

/* The column that names the rows comes first where the reader has not named it. */
static enum status pick(struct sheet *s, const char *names, struct error *e) {
    int picked[64], n = 0;
    for (int c = 0; c < s->n_columns && n == 0; c++)
        if (s->columns[c].names_rows && !names_column(names, s->columns[c].heading)) picked[n++] = c;
    for (const char *at = names;; at++) {
        char name[128];
        TRY(text_part(&at, ",", name, sizeof name, e));
        if (n == (int)(sizeof picked / sizeof *picked)) return fail(e, ST_USAGE, "more than %d columns are named", n);
        TRY(find_column(s, name, &picked[n], e));
        if (is_picked(picked, n, picked[n])) return fail(e, ST_USAGE, "column '%.60s' is named twice", name);
        n++;
        if (!*at) return keep_columns(s, picked, n, e);
    }
}

/* Which sheets are meant is asked before the first of them loses a column. */
static enum status pick_columns(struct sheets *sheets, const char *names, struct error *e) {
    bool *meant = calloc((size_t)sheets->n + 1, sizeof *meant);
    enum status status = meant ? ST_OK : fail(e, ST_MEMORY, "no memory for a table");
    for (int i = 0; i < sheets->n && meant; i++) meant[i] = *names && is_meant(sheets, i, names);
    for (int i = 0; i < sheets->n && status == ST_OK; i++) {
        struct sheet *s = sheets->list[i];
        if (is_usable(s)) status = meant[i] ? pick(s, names, e) : pick_usual(s, e);
    }
    free(meant);
    return status;
}

/* --- order -------------------------------------------------------------------------------------------------------- */

static double number_of(const struct sheet_cell *c) {
    if (c->kind == SHEET_INT) return c->whole == -1 ? NAN : (double)c->whole;
    return c->real;
}

/* Whether a stands before b. */
static bool is_before(const struct sheet_cell *a, const struct sheet_cell *b, bool reverse) {
    if (a->kind == SHEET_TEXT || b->kind == SHEET_TEXT) {
        int order = strcmp(a->text, b->text);
        return reverse ? order > 0 : order < 0;
    }
    double x = number_of(a), y = number_of(b);
    if (!isfinite(x) || !isfinite(y)) return isfinite(x) && !isfinite(y);
    return reverse ? x < y : x > y;
}

static enum status sort(struct sheet *s, const char *name, bool reverse, struct error *e) {
    int column, n = s->n_columns;
    TRY(find_column(s, name, &column, e));
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
    return ST_OK;
}

static enum status sort_rows(struct sheets *sheets, const char *name, struct error *e) {
    bool reverse = *name == '-';
    for (int i = 0; i < sheets->n; i++)
        if (is_meant(sheets, i, name + reverse)) TRY(sort(sheets->list[i], name + reverse, reverse, e));
    return ST_OK;
}

enum status sheets_view(struct sheets *sheets, const struct sheet_view *view, struct error *e) {
    if (view->sort && *view->sort) TRY(sort_rows(sheets, view->sort, e));
    return pick_columns(sheets, view->columns ? view->columns : "", e);
}

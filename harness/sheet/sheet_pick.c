/* sheet_pick.c - see sheet_pick.h. */
#include "harness/sheet/sheet_pick.h"

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

/* Finds the column whose heading begins the list. Headings may contain commas, so the longest match counts. Returns the
 * bytes up to the next heading; 0: the sheet has no such column. */
static size_t first_column(const struct sheet *s, const char *list, int *column) {
    const char *name = list + strspn(list, " ");
    size_t longest = 0;
    for (int c = 0; c < s->n_columns; c++) {
        size_t n = strlen(s->columns[c].heading);
        if (n <= longest || strncmp(name, s->columns[c].heading, n) != 0) continue;
        const char *end = name + n + strspn(name + n, " ");
        if (*end && *end != ',') continue;
        longest = n;
        *column = c;
    }
    if (!longest) return 0;
    name += longest;
    name += strspn(name, " ");
    return (size_t)(name + (*name == ',') - list);
}

#define AND_THESE   '+' /* before names: add them after the columns that are always shown */
#define MOST_PICKED 64

/* Reads a list of columns into `picked`. Returns their number; 0: the sheet lacks a column. */
static int read_list(const struct sheet *s, const char *names, int picked[MOST_PICKED + 2]) {
    const char *at = names + (*names == AND_THESE);
    int n = 0;
    do {
        size_t length = first_column(s, at, &picked[n]);
        if (!length) return 0;
        at += length;
        n += n <= MOST_PICKED;
    } while (*at || at[-1] == ',');
    return n;
}

/* --- no such column ----------------------------------------------------------------------------------------------- */

static bool has_same_columns(const struct sheet *a, const struct sheet *b) {
    bool same = a->n_columns == b->n_columns;
    for (int c = 0; c < a->n_columns && same; c++) same = !strcmp(a->columns[c].heading, b->columns[c].heading);
    return same;
}

/* Lists the headings of every kind of table, as many as fit: "model, acc; row, column". */
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

static enum status no_column(const struct sheets *sheets, const char *name, struct error *e) {
    char known[768];
    list_columns(sheets, known, sizeof known);
    return fail(e, ST_USAGE, "no column '%.60s'; there are: %s", name, known);
}

/* Checks that some table has all columns of the list. ST_USAGE names the first column that no table has, or says that
 * no single table has them all. */
static enum status check_columns(const struct sheets *sheets, const char *names, struct error *e) {
    char known[768], name[128];
    int picked[MOST_PICKED + 2];
    for (int i = 0; i < sheets->n; i++)
        if (is_usable(sheets->list[i]) && read_list(sheets->list[i], names, picked)) return ST_OK;
    const char *at = names + (*names == AND_THESE);
    do {
        size_t furthest = 0;
        for (int i = 0; i < sheets->n; i++) {
            size_t length = is_usable(sheets->list[i]) ? first_column(sheets->list[i], at, picked) : 0;
            furthest = length > furthest ? length : furthest;
        }
        if (!furthest) {
            at += strspn(at, " ");
            TRY(text_part(&at, ",", name, sizeof name, e));
            return no_column(sheets, name, e);
        }
        at += furthest;
    } while (*at || at[-1] == ',');
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

/* Removes the remarks on columns that are not shown. */
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

/* Keeps the picked columns in their order, and frees the texts of the others. */
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

/* Reduces the table to the columns that the user names. A table that lacks one of them, or without named columns, keeps
 * the columns not marked on_request. With '+' these come before the named columns; without, only the columns that name
 * the rows do. */
static enum status pick(struct sheet *s, const char *names, struct error *e) {
    int named[MOST_PICKED + 2], picked[s->n_columns + MOST_PICKED + 1], n = 0;
    int n_named = *names ? read_list(s, names, named) : 0;
    bool all = !n_named || *names == AND_THESE;
    if (n_named > MOST_PICKED) return fail(e, ST_USAGE, "more than %d columns are named", MOST_PICKED);
    for (int c = 0; c < s->n_columns; c++)
        if ((all ? !s->columns[c].on_request : s->columns[c].names_rows) && !is_picked(named, n_named, c))
            picked[n++] = c;
    for (int i = 0; i < n_named; i++) {
        if (is_picked(named, i, named[i]))
            return fail(e, ST_USAGE, "column '%.60s' is named twice", s->columns[named[i]].heading);
        picked[n++] = named[i];
    }
    return n_named || n < s->n_columns ? keep_columns(s, picked, n, e) : ST_OK;
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

/* Whether a comes before b. In either direction a text such as "-" comes after the numbers of its column. */
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
    for (int i = 1; i < s->n_rows; i++) /* insertion sort: few rows, and ties keep their order */
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

enum status sheets_view(struct sheets *sheets, const struct sheet_view *view, struct error *e) {
    const char *names = view->columns ? view->columns : "", *by = view->sort ? view->sort : "";
    bool any = false, found = !*by, reverse = *by == '-';
    for (int i = 0; i < sheets->n; i++) {
        struct sheet *s = sheets->list[i];
        if (!is_usable(s)) continue;
        any = true;
        int column = *by ? column_of(s, by + reverse) : -1;
        if (column >= 0) sort(s, column, reverse);
        found = found || column >= 0;
    }
    if (!any) return ST_OK; /* sheets_write reports why */
    if (!found) return no_column(sheets, by + reverse, e);
    if (*names) TRY(check_columns(sheets, names, e));
    for (int i = 0; i < sheets->n; i++)
        if (is_usable(sheets->list[i])) TRY(pick(sheets->list[i], names, e));
    return ST_OK;
}

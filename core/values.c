/* values.c - see values.h. */
#include "core/values.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/label.h"
#include "core/option.h"

#define MAX_TEXTS 1000 /* a task may have so many settings, an axis so many values */

void texts_free(struct texts *t) {
    for (int i = 0; i < t->n; i++) free(t->list[i]);
    free(t->list);
    *t = (struct texts){0};
}

enum status texts_add(struct texts *t, const char *text, struct error *e) {
    if (t->n == MAX_TEXTS) return fail(e, ST_USAGE, "'%.200s' and others are more than %d values", text, MAX_TEXTS);
    char **longer = realloc(t->list, (size_t)(t->n + 1) * sizeof *longer);
    if (longer) t->list = longer;
    char *copy = longer ? strdup(text) : NULL;
    if (!copy) return fail(e, ST_MEMORY, "no memory for a list of values");
    t->list[t->n++] = copy;
    return ST_OK;
}

enum status texts_count(struct texts *t, int64_t n, struct error *e) {
    char number[32];
    t->list = calloc((size_t)n, sizeof *t->list);
    for (int64_t i = 0; t->list && i < n; i++) {
        snprintf(number, sizeof number, "%" PRId64, i + 1);
        if (!(t->list[i] = strdup(number))) break;
        t->n++;
    }
    return t->n == n ? ST_OK : fail(e, ST_MEMORY, "no memory for a list of %" PRId64 " values", n);
}

bool range_parse(const char *text, int64_t *from, int64_t *to) {
    char low[64];
    const char *dots = strstr(text, "..");
    if (!dots || (size_t)(dots - text) >= sizeof low) return false;
    snprintf(low, sizeof low, "%.*s", (int)(dots - text), text);
    return parse_int64(low, from) && parse_int64(dots + 2, to);
}

static enum status range_check(const char *what, int64_t from, int64_t to, struct error *e) {
    if (from <= to && (uint64_t)to - (uint64_t)from < MAX_TEXTS) return ST_OK;
    return fail(e, ST_USAGE, "%s: the range %" PRId64 "..%" PRId64 " has %s", what, from, to,
                from > to ? "no value; the smaller number stands first" : "too many values");
}

enum status values_expand(const char *name, const char *list, struct texts *values, struct error *e) {
    for (const char *at = list;; at++) {
        char item[OPTION_TEXT], number[32];
        int64_t from = 0, to = 0;
        TRY(text_part(&at, ",", item, sizeof item, e));
        bool range = range_parse(item, &from, &to);
        if (range) TRY(range_check(name, from, to, e));
        if (!range) TRY(texts_add(values, item, e));
        /* it does not compare with `to`, because at INT64_MAX such a loop would never end */
        for (int64_t v = 0; range && v <= to - from; v++) {
            snprintf(number, sizeof number, "%" PRId64, from + v);
            TRY(texts_add(values, number, e));
        }
        if (!*at) return ST_OK;
    }
}

bool values_hold(const char *list, const char *value) {
    struct texts values = {0};
    bool held = false;
    enum status status = values_expand("", list, &values, NULL);
    for (int i = 0; i < values.n && status == ST_OK; i++) held = held || strcmp(values.list[i], value) == 0;
    texts_free(&values);
    return held;
}

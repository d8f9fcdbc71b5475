/* row_label.c - see row_label.h. */
#include "harness/rows/row_label.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/study/numerics.h"
#include "harness/study/row_key.h"

/* --- the mixer ---------------------------------------------------------------------------------------------------- */

/* Makes the label of the mixer from the pairs "model.KEY=VALUE" of a key. */
static enum status mixer_of(const struct label *key, struct label *mixer, struct error *e) {
    const char *name = label_get(key, "model");
    if (!name) return fail(e, ST_USAGE, "the configuration names no model");
    TRY(label_parse(mixer, "model", name, e));
    for (int i = 0; i < key->n; i++)
        if (strncmp(label_key(key, i), "model.", 6) == 0)
            TRY(label_add(mixer, label_key(key, i) + 6, label_value(key, i), e));
    return ST_OK;
}

bool row_outdated(const struct run_record *r) {
    char now[NUMERICS_TEXT];
    if (!r->run.numerics[0] || numerics_of_stored(r->config, now, sizeof now, NULL) != ST_OK) return false;
    return strcmp(now, r->run.numerics) != 0;
}

bool key_sees_future(const struct label *key) {
    const char *name = label_get(key, "model");
    const struct model *model = name ? model_find(name) : NULL;
    bool causal = model && model->causal && strcmp(row_key_value(key, "bidirectional"), "yes") != 0;
    return !causal && !strcmp(row_key_value(key, "allow-non-causal"), "yes");
}

void row_mixer(const struct run_record *r, char *text, size_t size) {
    const struct model *model = model_find(r->run.model);
    struct label asked, mixer;
    bool read = row_key(r->config, &asked, NULL) == ST_OK && mixer_of(&asked, &mixer, NULL) == ST_OK;
    if (read && model) (void)label_shorten(&mixer, model->options, OPT_ORDER, NULL);
    if (!read || label_format(&mixer, text, size, NULL) != ST_OK) snprintf(text, size, "%s", r->run.layers);
    size_t used = strlen(text);
    if (read && key_sees_future(&asked)) used += (size_t)snprintf(text + used, size - used, "%s", FUTURE_MARK);
    if (row_outdated(r)) snprintf(text + used, size - used, " numerics=%s", r->run.numerics);
}

/* --- options that distinguish rows -------------------------------------------------------------------------------- */

static bool differ(const struct row_name *a, const struct row_name *b, const char *key) {
    return strcmp(row_key_value(a->key, key), row_key_value(b->key, key)) != 0;
}

static bool read_alike(const struct row_name *a, const struct row_name *b) {
    return strcmp(a->table, b->table) == 0 && strcmp(a->text, b->text) == 0;
}

static void append(struct row_name *row, const char *key) {
    size_t used = strlen(row->text);
    snprintf(row->text + used, row->size - used, " %s=%s", key, row_key_value(row->key, key));
}

/* Whether the user chooses the key (it has no OPT_AUTO) and it is not an option of the mixer, whose label already has
 * it. */
static bool is_chosen(const char *key) {
    const struct option *o = row_key_flag(key);
    return o ? !(o->flags & OPT_AUTO) : strncmp(key, "task.", 5) == 0;
}

/* Shows a key in all rows if at least two rows differ in it. */
static void show_everywhere(struct row_name *rows, int n, const char *key) {
    bool any = false;
    for (int i = 1; i < n && !any; i++) any = differ(&rows[0], &rows[i], key);
    for (int i = 0; i < n && any; i++)
        if (label_get(rows[i].key, key)) append(&rows[i], key);
}

/* Shows a key only in rows that would otherwise have equal texts. No text changes before all rows have been
 * compared. */
static void show_where_needed(struct row_name *rows, int n, const char *key) {
    for (int i = 0; i < n; i++) {
        bool needed = false;
        for (int j = 0; j < n; j++)
            needed = needed || (read_alike(&rows[i], &rows[j]) && differ(&rows[i], &rows[j], key));
        rows[i].needed = needed;
    }
    for (int i = 0; i < n; i++)
        if (rows[i].needed) append(&rows[i], key);
}

static bool has_earlier(const struct row_name *rows, int n, const char *key) {
    for (int i = 0; i < n; i++)
        if (label_get(rows[i].key, key)) return true;
    return false;
}

void row_names_tell_apart(struct row_name *rows, int n, bool (*skip)(const void *context, const char *key),
                          const void *context) {
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < n; i++)
            for (int k = 0; k < rows[i].key->n; k++) {
                const char *key = label_key(rows[i].key, k);
                if (is_chosen(key) != (pass == 0) || has_earlier(rows, i, key) || (skip && skip(context, key)))
                    continue;
                if (pass == 0)
                    show_everywhere(rows, n, key);
                else
                    show_where_needed(rows, n, key);
            }
}

int row_label_compare(const char *a, const char *b) {
    while (*a && *b) {
        if (!isdigit((unsigned char)*a) || !isdigit((unsigned char)*b)) {
            if (*a != *b) break;
            a++;
            b++;
            continue;
        }
        char *after_a, *after_b;
        double x = strtod(a, &after_a), y = strtod(b, &after_b);
        if (x != y) return x < y ? -1 : 1;
        a = after_a;
        b = after_b;
    }
    return strcmp(a, b);
}

/* option.c - option tables; see option.h. */
#include "core/option.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/paragraph.h"

#define MOST_NAMED 24 /* most names in an error; `lrnn list` and `lrnn --help` show longer lists */

bool parse_int64(const char *text, int64_t *value) {
    if (!*text || isspace((unsigned char)*text)) return false;
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text) return false;
    int64_t factor = *end == 'k' ? 1000 : *end == 'M' ? 1000000 : *end == 'G' ? 1000000000 : 1;
    if (factor > 1) end++;
    if (errno || *end || v > INT64_MAX / factor || v < INT64_MIN / factor) return false;
    *value = (int64_t)v * factor;
    return true;
}

bool parse_double(const char *text, double *value) {
    if (!*text || isspace((unsigned char)*text)) return false;
    char *end;
    errno = 0;
    double v = strtod(text, &end);
    bool vanished = v == 0 && errno == ERANGE;
    if (end == text || *end || !isfinite(v) || vanished) return false;
    *value = v + 0.0; /* turns -0 into 0, so that each number has a single text */
    return true;
}

int format_double(double value, char *buffer, size_t size) {
    if (isnan(value)) return snprintf(buffer, size, "nan");
    if (isinf(value)) return snprintf(buffer, size, value < 0 ? "-inf" : "inf");
    if (fabs(value) < 1e15 && value == floor(value)) return snprintf(buffer, size, "%.0f", value);
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    return snprintf(buffer, size, "%s", text);
}

static bool parse_time(const char *text, double *seconds) {
    size_t n = strlen(text);
    char number[64];
    if (n < 1 || n >= sizeof number) return false;
    double unit = text[n - 1] == 's' ? 1 : text[n - 1] == 'm' ? 60 : text[n - 1] == 'h' ? 3600 : 0;
    memcpy(number, text, n + 1);
    if (unit > 0) number[n - 1] = 0;
    if (!parse_double(number, seconds)) return false;
    *seconds *= unit > 0 ? unit : 1;
    return true;
}

/* Returns the index of `name` among the choices, which blanks separate; -1 if it is absent. With name == NULL it
 * returns the number of choices. */
static int choice_index(const char *choices, const char *name) {
    int i = 0;
    for (const char *at = choices; *at; i++) {
        size_t n = strcspn(at, " ");
        if (name && strlen(name) == n && !strncmp(at, name, n)) return i;
        at += n;
        at += strspn(at, " ");
    }
    return name ? -1 : i;
}

static void choice_name(const char *choices, int index, char *buffer, size_t size) {
    const char *at = choices;
    while (index-- > 0) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    snprintf(buffer, size, "%.*s", (int)strcspn(at, " "), at);
}

const struct option *option_find(const struct option *table, const char *name) {
    for (; table->name; table++)
        if (!strcmp(table->name, name)) return table;
    return NULL;
}

/* Returns the Levenshtein distance. Names that are longer than the buffer count as far away. */
static int edit_distance(const char *a, const char *b) {
    int row[65];
    size_t n = strlen(b);
    if (n > 64) return 1000;
    for (size_t j = 0; j <= n; j++) row[j] = (int)j;
    for (size_t i = 0; a[i]; i++) {
        int diagonal = row[0];
        row[0] = (int)i + 1;
        for (size_t j = 1; j <= n; j++) {
            int above = row[j], best = diagonal + (a[i] != b[j - 1]);
            if (above + 1 < best) best = above + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            row[j] = best;
            diagonal = above;
        }
    }
    return row[n];
}

const char *nearest_name(const char *name, int count, const char *(*name_of)(const void *list, int i),
                         const void *list) {
    const char *best = NULL;
    int best_distance = 1000;
    for (int i = 0; i < count; i++) {
        const char *candidate = name_of(list, i);
        int distance = edit_distance(name, candidate);
        size_t n = strlen(name);
        if (n >= 2 && !strncmp(candidate, name, n)) distance = 1; /* the beginning of a name counts as near */
        if (distance < best_distance) {
            best = candidate;
            best_distance = distance;
        }
    }
    int n = (int)strlen(name), most = n < 4 ? 2 : n / 2;
    /* at least one letter of `name` must be right */
    return best_distance <= most && best_distance < n ? best : NULL;
}

enum status name_choose(const char *kind, const char *name, int count, const char *(*name_of)(const void *list, int i),
                        const void *list, int *index, struct error *e) {
    for (*index = 0; *index < count; ++*index)
        if (strcmp(name_of(list, *index), name) == 0) return ST_OK;
    const char *near = nearest_name(name, count, name_of, list);
    if (near) return fail(e, ST_USAGE, "unknown %s '%.100s'; did you mean '%s'?", kind, name, near);
    bool listed = !strcmp(kind, "model") || !strcmp(kind, "task") || !strcmp(kind, "op") || !strcmp(kind, "kernel");
    if (count > MOST_NAMED && listed)
        return fail(e, ST_USAGE, "unknown %s '%.100s'; `lrnn list %ss` names what there is", kind, name, kind);
    if (count > MOST_NAMED)
        return fail(e, ST_USAGE, "unknown %s '%.100s'; `lrnn list` and `lrnn --help` name what there is", kind, name);
    char names[32 * MOST_NAMED] = "";
    int used = 0;
    for (int i = 0; i < count && used < (int)sizeof names; i++)
        if (strcmp(name_of(list, i), "template") != 0)
            used += snprintf(names + used, sizeof names - (size_t)used, " %s", name_of(list, i));
    return fail(e, ST_USAGE, "unknown %s '%.100s'; there are:%s", kind, name, names);
}

static const char *option_name(const void *list, int i) {
    return ((const struct option *)list)[i].name;
}

static int option_count(const struct option *table) {
    int n = 0;
    while (table[n].name) n++;
    return n;
}

/* Whether `lrnn info` describes the owner: "model bdlru", "mixer bdlru", "task s5". */
static bool is_described(const char *owner) {
    return !strncmp(owner, "model ", 6) || !strncmp(owner, "mixer ", 6) || !strncmp(owner, "task ", 5);
}

static enum status unknown_option(const struct option *table, const char *owner, const char *name, struct error *e) {
    const char *near = nearest_name(name, option_count(table), option_name, table);
    if (near) return fail(e, ST_USAGE, "%s has no option '%.60s'; did you mean '%s'?", owner, name, near);
    if (is_described(owner))
        return fail(e, ST_USAGE, "%s has no option '%.60s'; `lrnn info%s` lists what there is", owner, name,
                    strchr(owner, ' '));
    char names[32 * MOST_NAMED] = "";
    int used = 0, n = option_count(table);
    if (n > MOST_NAMED)
        return fail(e, ST_USAGE, "%s has no option '%.60s'; `lrnn train --help` lists them", owner, name);
    for (int i = 0; i < n && used < (int)sizeof names; i++)
        used += snprintf(names + used, sizeof names - (size_t)used, " %s", table[i].name);
    return fail(e, ST_USAGE, "%s has no option '%.60s'; there are:%s", owner, name, names);
}

/* Fails with a message such as "lr=abc (papers/x.plan line 7): expected a number from 0 to 10, got 'abc'". The owner is
 * in brackets. */
static enum status bad_value(const struct option *o, const char *owner, const char *value, struct error *e) {
    char low[40], high[40], what[512];
    format_double(o->min, low, sizeof low);
    format_double(o->max, high, sizeof high);
    const char *or_auto = o->flags & OPT_AUTO ? ", or auto" : "";
    if (o->type == OPT_TEXT_FIELD)
        return fail(e, ST_USAGE, "%s=%.40s... (%s): expected at most %d bytes, got %zu", o->name, value, owner,
                    OPTION_TEXT - 1, strlen(value));
    if (o->type == OPT_INT)
        snprintf(what, sizeof what, "a whole number from %s to %s%s", low, high, or_auto);
    else if (o->type == OPT_REAL)
        snprintf(what, sizeof what, "a number from %s to %s%s", low, high, or_auto);
    else if (o->type == OPT_TIME)
        snprintf(what, sizeof what, "a time from %s to %s s, such as 90s, 30m or 2h%s", low, high, or_auto);
    else
        snprintf(what, sizeof what, o->type == OPT_BOOL ? "yes or no" : "one of: %s", o->choices);
    return fail(e, ST_USAGE, "%s=%.40s (%s): expected %s, got '%.30s'", o->name, value, owner, what, value);
}

static enum status set_value(const struct option *o, void *object, const char *owner, const char *value,
                             struct error *e) {
    void *field = (char *)object + o->offset;
    int64_t whole;
    double number;
    switch (o->type) {
    case OPT_INT:
        if ((o->flags & OPT_AUTO) && !strcmp(value, "auto")) {
            *(int64_t *)field = 0;
            return ST_OK;
        }
        if (!parse_int64(value, &whole) || (double)whole < o->min || (double)whole > o->max) break;
        *(int64_t *)field = whole;
        return ST_OK;
    case OPT_REAL:
    case OPT_TIME:
        if ((o->flags & OPT_AUTO) && !strcmp(value, "auto")) {
            *(double *)field = 0;
            return ST_OK;
        }
        if (!(o->type == OPT_TIME ? parse_time : parse_double)(value, &number)) break;
        if (number < o->min || number > o->max) break;
        *(double *)field = number;
        return ST_OK;
    case OPT_BOOL:
        if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0) break;
        *(bool *)field = value[0] == 'y';
        return ST_OK;
    case OPT_CHOICE:
        if (!*value || choice_index(o->choices, value) < 0) break;
        *(int *)field = choice_index(o->choices, value);
        return ST_OK;
    case OPT_TEXT_FIELD:
        if (strlen(value) >= OPTION_TEXT) break;
        snprintf(field, OPTION_TEXT, "%s", value);
        return ST_OK;
    }
    return bad_value(o, owner, value, e);
}

enum status option_filled(const struct option *option, const char *owner, const char *value, struct error *e) {
    if (*value || !(option->flags & OPT_FILLED)) return ST_OK;
    return fail(e, ST_USAGE, "%s: %s is empty, as a shell's unset variable makes it; name it, or leave it out", owner,
                option->name);
}

enum status options_set(const struct option *table, void *object, const char *owner, const char *name,
                        const char *value, struct error *e) {
    const struct option *o = option_find(table, name);
    if (!o) return unknown_option(table, owner, name, e);
    TRY(option_filled(o, owner, value, e));
    return set_value(o, object, owner, value, e);
}

enum status options_default(const struct option *table, void *object, struct error *e) {
    for (const struct option *o = table; o->name; o++) TRY(set_value(o, object, "default", o->value, e));
    return ST_OK;
}

int option_format_value(const struct option *o, const void *object, char *buffer, size_t size) {
    const void *field = (const char *)object + o->offset;
    switch (o->type) {
    case OPT_INT:
        if ((o->flags & OPT_AUTO) && *(const int64_t *)field == 0) return snprintf(buffer, size, "auto");
        return snprintf(buffer, size, "%" PRId64, *(const int64_t *)field);
    case OPT_REAL:
    case OPT_TIME:
        if ((o->flags & OPT_AUTO) && *(const double *)field == 0) return snprintf(buffer, size, "auto");
        return format_double(*(const double *)field, buffer, size);
    case OPT_BOOL:
        return snprintf(buffer, size, "%s", *(const bool *)field ? "yes" : "no");
    case OPT_CHOICE: {
        char name[64];
        choice_name(o->choices, *(const int *)field, name, sizeof name);
        return snprintf(buffer, size, "%s", name);
    }
    case OPT_TEXT_FIELD:
        return snprintf(buffer, size, "%s", (const char *)field);
    }
    return 0;
}

bool option_same(const struct option *o, const void *a, const void *b) {
    static const size_t bytes[] = {[OPT_INT] = sizeof(int64_t),
                                   [OPT_REAL] = sizeof(double),
                                   [OPT_BOOL] = sizeof(bool),
                                   [OPT_CHOICE] = sizeof(int),
                                   [OPT_TIME] = sizeof(double)};
    const char *x = (const char *)a + o->offset, *y = (const char *)b + o->offset;
    return o->type == OPT_TEXT_FIELD ? strcmp(x, y) == 0 : memcmp(x, y, bytes[o->type]) == 0;
}

/* Returns the option whose value "auto" means, or NULL. */
static const struct option *auto_of(const struct option *table, const struct option *o) {
    return o->type == OPT_INT && o->flags & OPT_AUTO && o->choices ? option_find(table, o->choices) : NULL;
}

static int64_t whole_of(const struct option *o, const void *object) {
    return *(const int64_t *)(const void *)((const char *)object + o->offset);
}

void options_plain(const struct option *table, void *object) {
    for (const struct option *o = table; o->name; o++) {
        const struct option *other = auto_of(table, o);
        if (other && whole_of(o, object) == whole_of(other, object))
            *(int64_t *)(void *)((char *)object + o->offset) = 0;
    }
}

enum status option_canonical(const struct option *table, const char *owner, const char *name, const char *value,
                             char *buffer, size_t size, struct error *e) {
    const struct option *o = option_find(table, name);
    if (!o) return unknown_option(table, owner, name, e);
    union {
        int64_t whole;
        double number;
        char text[OPTION_TEXT];
    } field;
    struct option alone = *o;
    alone.offset = 0;
    TRY(set_value(&alone, &field, owner, value, e));
    option_format_value(&alone, &field, buffer, size);
    return ST_OK;
}

int options_format(const struct option *table, const void *object, const char *separator, unsigned skip_flags,
                   char *buffer, size_t size) {
    int total = 0;
    for (const struct option *o = table; o->name; o++) {
        char value[OPTION_TEXT + 1];
        if (o->flags & skip_flags) continue;
        option_format_value(o, object, value, sizeof value);
        size_t room = (size_t)total < size ? size - (size_t)total : 0;
        total += snprintf(room ? buffer + total : NULL, room, "%s%s=%s", total ? separator : "", o->name, value);
    }
    if (total == 0 && size) buffer[0] = 0;
    return total;
}

#define OPTION_HELP_COLUMN 19 /* column where the help text of a flag begins, unless the flag's name is longer */

void options_print_help(const struct option *table, const char *prefix, FILE *out) {
    for (const struct option *o = table; o->name; o++) {
        char range[160] = "", low[40], high[40];
        format_double(o->min, low, sizeof low);
        format_double(o->max, high, sizeof high);
        if (o->type == OPT_CHOICE) snprintf(range, sizeof range, " (%s)", o->choices);
        if (o->type == OPT_BOOL) snprintf(range, sizeof range, " (yes no)");
        if (o->type == OPT_INT || o->type == OPT_REAL) snprintf(range, sizeof range, " (%s..%s)", low, high);
        if (o->type == OPT_TIME) snprintf(range, sizeof range, " (%s..%s s)", low, high);
        char name[80];
        snprintf(name, sizeof name, "%s%s", prefix, o->name);
        int column = fprintf(out, "  %-16s ", name);
        char text[1024];
        bool says = *o->value; /* else the help text says what happens without the flag */
        snprintf(text, sizeof text, "%s%s%s%s", o->help, range, says ? "; default: " : "", o->value);
        paragraph_print(out, terminal_width(out), column, OPTION_HELP_COLUMN, text);
        fputc('\n', out);
    }
}

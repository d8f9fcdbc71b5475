/* label.c - see label.h. A label's strings take as many bytes as the formatted label: where that has ':', '=' or ',', a
 * string ends with a 0. */
#include "core/label.h"

#include <string.h>

#define SHOWN 60 /* most characters of a text that a message quotes */

/* --- strings: the name, then key and value of each pair ----------------------------------------------------------- */

static const char *string_at(const struct label *l, int index) {
    const char *at = l->text;
    while (index-- > 0) at += strlen(at) + 1;
    return at;
}

static enum status too_long(const struct label *l, struct error *e) {
    return fail(e, ST_USAGE, "'%.*s:...' with its options is longer than %d characters; shorten them", SHOWN,
                label_name(l), LABEL_TEXT - 1);
}

/* Makes the error for a text that is no pair. After a comma it may be meant as another value of the option before
 * it. */
static enum status no_pair(const struct label *l, const char *owner, const char *text, struct error *e) {
    bool of_sweep = l->n && (!strncmp(owner, "model ", 6) || !strncmp(owner, "task ", 5));
    if (!of_sweep) return fail(e, ST_USAGE, "%s: '%.*s' is not of the form name=value", owner, SHOWN, text);
    return fail(e, ST_USAGE,
                "%s: '%.*s' is not of the form name=value; a sweep takes several values by --grid "
                "'%.*s.%.40s=A,B'",
                owner, SHOWN, text, (int)strcspn(owner, " "), owner, label_key(l, l->n - 1));
}

static enum status given_twice(const char *owner, const char *key, struct error *e) {
    return fail(e, ST_USAGE, "%s: option '%.*s' is given twice", owner, SHOWN, key);
}

/* Replaces the `old` bytes at offset `at` by `text`. */
static enum status splice(struct label *l, size_t at, size_t old, const char *text, size_t bytes, struct error *e) {
    if (bytes > old && bytes - old > sizeof l->text - l->used) return too_long(l, e);
    memmove(l->text + at + bytes, l->text + at + old, l->used - at - old);
    if (bytes) memcpy(l->text + at, text, bytes);
    l->used = l->used - old + bytes;
    return ST_OK;
}

static enum status replace(struct label *l, int index, const char *text, struct error *e) {
    const char *old = string_at(l, index);
    return splice(l, (size_t)(old - l->text), strlen(old) + 1, text, strlen(text) + 1, e);
}

/* Returns the number of the pair with that key; -1 if there is none. */
static int find(const struct label *l, const char *key) {
    const char *at = string_at(l, 1);
    for (int i = 0; i < l->n; i++) {
        if (!strcmp(at, key)) return i;
        at += strlen(at) + 1;
        at += strlen(at) + 1;
    }
    return -1;
}

static void clear(struct label *l) {
    l->used = 1;
    l->n = 0;
    l->text[0] = 0;
}

const char *label_name(const struct label *l) {
    return l->text;
}

const char *label_key(const struct label *l, int i) {
    return string_at(l, 1 + 2 * i);
}

const char *label_value(const struct label *l, int i) {
    return string_at(l, 2 + 2 * i);
}

const char *label_get(const struct label *l, const char *key) {
    int i = find(l, key);
    return i < 0 ? NULL : label_value(l, i);
}

/* --- changes ------------------------------------------------------------------------------------------------------ */

enum status label_set_name(struct label *l, const char *name, struct error *e) {
    if (!l->used) clear(l);
    return replace(l, 0, name, e);
}

static enum status append(struct label *l, const char *key, const char *value, struct error *e) {
    size_t bytes = strlen(key) + 1, more = strlen(value) + 1;
    if (!l->used) clear(l);
    if (bytes + more > sizeof l->text - l->used) return too_long(l, e);
    memcpy(l->text + l->used, key, bytes);
    memcpy(l->text + l->used + bytes, value, more);
    l->used += bytes + more;
    l->n++;
    return ST_OK;
}

enum status label_add(struct label *l, const char *key, const char *value, struct error *e) {
    return find(l, key) < 0 ? append(l, key, value, e) : given_twice(label_name(l), key, e);
}

enum status label_set(struct label *l, const char *key, const char *value, struct error *e) {
    int i = find(l, key);
    return i < 0 ? append(l, key, value, e) : replace(l, 2 + 2 * i, value, e);
}

void label_remove(struct label *l, const char *key) {
    int i = find(l, key);
    if (i < 0) return;
    const char *from = label_key(l, i), *to = string_at(l, 3 + 2 * i);
    splice(l, (size_t)(from - l->text), (size_t)(to - from), NULL, 0, NULL);
    l->n--;
}

/* --- text --------------------------------------------------------------------------------------------------------- */

enum status text_part(const char **at, const char *stops, char *part, size_t size, struct error *e) {
    size_t n = strcspn(*at, stops);
    if (n >= size)
        return fail(e, ST_USAGE, "'%.*s...' is longer than %zu characters; shorten it", SHOWN, *at, size - 1);
    memcpy(part, *at, n);
    part[n] = 0;
    *at += n;
    return ST_OK;
}

enum status text_copy(const char *text, char *copy, size_t size, struct error *e) {
    return text_part(&text, "", copy, size, e);
}

void text_trim(char *text) {
    size_t n = strlen(text);
    while (n && strchr(" \t\r", text[n - 1])) text[--n] = 0;
}

bool text_ends(const char *text, const char *ending) {
    size_t n = strlen(text), m = strlen(ending);
    return n > m && strcmp(text + n - m, ending) == 0;
}

/* Whether the text after a comma starts with a whole number, so that it belongs to the list before the comma: "256" in
 * "test_length=128,256". */
static bool starts_number(const char *text) {
    size_t digits = strspn(text, "0123456789");
    return digits && strchr(", \t", text[digits]); /* or at the end of the text */
}

/* Whether a number follows each comma of the value. Only then can parse_pairs read it. */
static bool is_list(const char *value) {
    while ((value = strchr(value, ',')))
        if (!starts_number(++value)) return false;
    return true;
}

static enum status parse_pairs(struct label *l, const char *owner, const char *text, const char *separators,
                               struct error *e) {
    char pair[LABEL_TEXT];
    for (const char *at = text + strspn(text, separators); *at; at += strspn(at, separators)) {
        TRY(text_part(&at, separators, pair, sizeof pair, e));
        for (size_t used = strlen(pair); *at == ',' && starts_number(at + 1); used = strlen(pair)) {
            pair[used++] = *at++;
            TRY(text_part(&at, separators, pair + used, sizeof pair - used, e));
        }
        char *equals = strchr(pair, '=');
        if (!equals) return no_pair(l, owner, pair, e);
        *equals = 0;
        if (find(l, pair) >= 0) return given_twice(owner, pair, e);
        TRY(append(l, pair, equals + 1, e));
    }
    return ST_OK;
}

enum status label_parse_pairs(struct label *l, const char *owner, const char *text, const char *separators,
                              struct error *e) {
    clear(l);
    return text ? parse_pairs(l, owner, text, separators, e) : ST_OK;
}

enum status label_parse(struct label *l, const char *kind, const char *text, struct error *e) {
    char name[LABEL_TEXT], owner[SHOWN + 32];
    clear(l);
    TRY(text_part(&text, ":", name, sizeof name, e));
    TRY(label_set_name(l, name, e));
    snprintf(owner, sizeof owner, "%.20s %.*s", kind, SHOWN, name);
    return *text ? parse_pairs(l, owner, text + 1, ",", e) : ST_OK;
}

enum status label_format(const struct label *l, char *buffer, size_t size, struct error *e) {
    size_t skip = l->used && !*label_name(l); /* the end of the name */
    if (l->used - skip > size)
        return fail(e, ST_USAGE, "'%.*s:...' with its options is longer than %zu characters; shorten them", SHOWN,
                    label_name(l), size - 1);
    if (l->used == skip) buffer[0] = 0;
    memcpy(buffer, l->text + skip, l->used - skip);
    for (int i = 0; i < 2 * l->n; i++) {
        const char *string = string_at(l, i + 1);
        if (!is_list(string))
            return fail(e, ST_USAGE, "%.*s: '%.*s' holds a comma, which separates options", SHOWN, label_name(l), SHOWN,
                        string);
        size_t start = (size_t)(string - l->text);
        if (start > skip) buffer[start - skip - 1] = i % 2 ? '=' : i ? ',' : ':';
    }
    return ST_OK;
}

/* --- options ------------------------------------------------------------------------------------------------------ */

enum status label_apply(const struct label *l, const struct option *table, void *object, const char *owner,
                        struct error *e) {
    for (int i = 0; i < l->n; i++) TRY(options_set(table, object, owner, label_key(l, i), label_value(l, i), e));
    return ST_OK;
}

enum status label_of(struct label *l, const char *name, const struct option *table, const void *object,
                     unsigned skip_flags, struct error *e) {
    char value[OPTION_TEXT + 1];
    clear(l);
    TRY(label_set_name(l, name, e));
    for (const struct option *o = table; o->name; o++) {
        if (o->flags & skip_flags) continue;
        option_format_value(o, object, value, sizeof value);
        TRY(append(l, o->name, value, e));
    }
    return ST_OK;
}

enum status label_normalise(struct label *l, const struct option *table, struct error *e) {
    char value[OPTION_TEXT + 1];
    for (int i = 0; i < l->n; i++) {
        TRY(option_canonical(table, label_name(l), label_key(l, i), label_value(l, i), value, sizeof value, e));
        TRY(replace(l, 2 + 2 * i, value, e));
    }
    return ST_OK;
}

enum status label_canonical(struct label *l, const struct option *table, struct error *e) {
    struct label given = *l;
    TRY(label_normalise(&given, table, e));
    l->n = 0;
    l->used = strlen(label_name(l)) + 1;
    for (const struct option *o = table; o->name; o++) {
        char standard[OPTION_TEXT + 1];
        const char *value = label_get(&given, o->name);
        TRY(option_canonical(o, label_name(l), o->name, o->value, standard, sizeof standard, e));
        TRY(append(l, o->name, value ? value : standard, e));
    }
    return ST_OK;
}

enum status label_shorten(struct label *l, const struct option *table, unsigned always, struct error *e) {
    struct label standard = {0};
    TRY(label_canonical(l, table, e));
    TRY(label_canonical(&standard, table, e));
    for (const struct option *o = table; o->name; o++)
        if (!(o->flags & always) && !strcmp(label_get(l, o->name), label_get(&standard, o->name)))
            label_remove(l, o->name);
    return ST_OK;
}

static bool has_pair(const struct label *l, const char *key, const char *value) {
    const char *own = label_get(l, key);
    return own && !strcmp(own, value);
}

bool label_includes(const struct label *l, const struct label *wanted) {
    if (strcmp(label_name(l), label_name(wanted)) != 0) return false;
    for (int i = 0; i < wanted->n; i++)
        if (!has_pair(l, label_key(wanted, i), label_value(wanted, i))) return false;
    return true;
}

enum status label_difference(const struct label *l, const struct label *base, struct label *difference,
                             struct error *e) {
    clear(difference);
    TRY(label_set_name(difference, label_name(base), e));
    for (int i = 0; i < l->n; i++)
        if (!has_pair(base, label_key(l, i), label_value(l, i)))
            TRY(append(difference, label_key(l, i), label_value(l, i), e));
    return ST_OK;
}

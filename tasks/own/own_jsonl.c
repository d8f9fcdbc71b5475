/* own_jsonl.c - reads own examples, one JSON object per line (own_file.h). */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/option.h"
#include "tasks/own/own_pack.h"

struct line {
    struct own_pack *pack;
    const json_t *object;
    char where[40]; /* "line 3" */
    struct error *e;
};

static enum status wrong(const struct line *l, const char *what) {
    return fail(l->e, ST_DATA, "%s, %s: %s", l->pack->name, l->where, what);
}

/* Returns the member with the first of these names that the object has. */
static const json_t *member(const struct line *l, const char *name, const char *other, const char *third) {
    const json_t *value = json_object_get(l->object, name);
    if (!value && other) value = json_object_get(l->object, other);
    return !value && third ? json_object_get(l->object, third) : value;
}

/* Reads a number as a double, NAN for null; anything else is an error. */
static enum status number(const struct line *l, const json_t *value, const char *of, double *out) {
    *out = NAN;
    if (json_is_number(value)) *out = json_number_value(value);
    if (json_is_number(value) || json_is_null(value)) return ST_OK;
    return fail(l->e, ST_DATA, "%s, %s: %s has something that is no number; names and words need numbers from 0",
                l->pack->name, l->where, of);
}

/* Adds the first `length` positions of the input. */
static enum status add_input(const struct line *l, const json_t *input, int64_t length, int64_t channels) {
    for (int64_t t = 0; t < length; t++) {
        const json_t *position = json_array_get(input, (size_t)t);
        if (json_is_array(position) ? (int64_t)json_array_size(position) != channels : channels != 1)
            return wrong(l, "positions of the input have different numbers of channels");
        for (int64_t c = 0; c < channels; c++) {
            double value;
            const json_t *one = json_is_array(position) ? json_array_get(position, (size_t)c) : position;
            TRY(number(l, one, "\"input\"", &value));
            TRY(own_pack_input(l->pack, value, l->where, l->e));
        }
    }
    return ST_OK;
}

/* Adds the targets: one label, or one per position. */
static enum status add_targets(const struct line *l, const json_t *target, const json_t *mask, int64_t length) {
    double value, scored = 1;
    if (!json_is_array(target)) {
        if (mask) return wrong(l, "\"mask\" says which positions are scored, and the example has one label");
        TRY(number(l, target, "\"target\"", &value));
        if (value == IGNORED || isnan(value)) return wrong(l, "the one label is missing");
        return own_pack_target(l->pack, value, true, l->where, l->e);
    }
    for (int64_t t = 0; t < length; t++) {
        TRY(number(l, json_array_get(target, (size_t)t), "\"target\"", &value));
        if (mask) TRY(number(l, json_array_get(mask, (size_t)t), "\"mask\"", &scored));
        if (scored != 0 && scored != 1) return wrong(l, "\"mask\" has a number that is neither 0 nor 1");
        if (isnan(value)) return wrong(l, "a target is null; write -100 where nothing is scored");
        TRY(own_pack_target(l->pack, value, scored == 1 && value != IGNORED, l->where, l->e));
    }
    return ST_OK;
}

static enum status same_length(const struct line *l, const char *name, const json_t *list, int64_t wanted) {
    if (!json_is_array(list)) return ST_OK;
    if ((int64_t)json_array_size(list) == wanted) return ST_OK;
    return fail(l->e, ST_DATA, "%s, %s: \"input\" has %lld positions and \"%s\" %zu; they must be equal", l->pack->name,
                l->where, (long long)wanted, name, json_array_size(list));
}

static enum status read_split(const struct line *l, int *split) {
    static const char *const names[] = {"train", "val", "test", "validation", "valid", "dev"};
    const json_t *value = member(l, "split", NULL, NULL);
    const char *text = json_string_value(value);
    *split = -1;
    for (int i = 0; text && i < 6; i++)
        if (strcmp(text, names[i]) == 0) *split = i < 3 ? i : SPLIT_VAL;
    if (!value || *split >= 0) return ST_OK;
    return wrong(l, "\"split\" is none of \"train\", \"val\" and \"test\"");
}

static const char *key_name(const void *keys, int i) {
    return ((const char *const *)keys)[i];
}

/* Refuses a key that looks like a misspelt one: "maks" would leave every position scored. Other keys are the user's. */
static enum status check_keys(const struct line *l) {
    static const char *const keys[] = {"input",  "target",  "label",  "mask",   "length", "split",
                                       "inputs", "targets", "labels", "second", "edges",  "index"};
    const int n = sizeof keys / sizeof *keys;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)l->object, key, value) {
        int known = 0;
        while (known < n && strcmp(keys[known], key) != 0) known++;
        const char *near = known < n ? NULL : nearest_name(key, n, key_name, keys);
        if (near && !json_object_get(l->object, near))
            return fail(l->e, ST_DATA, "%s, %s: unknown key \"%.60s\"; did you mean \"%s\"? If not, leave it out",
                        l->pack->name, l->where, key, near);
    }
    return ST_OK;
}

static enum status read_example(const struct line *l) {
    if (!json_is_object(l->object))
        return wrong(l, "expected a JSON object, as {\"input\":[1,2],\"target\":[0,1]}, and found something else");
    const json_t *input = member(l, "input", "inputs", NULL), *first = json_array_get(input, 0);
    const json_t *target = member(l, "target", "targets", member(l, "label", NULL, NULL) ? "label" : "labels");
    const json_t *mask = member(l, "mask", NULL, NULL), *given = member(l, "length", NULL, NULL);
    int64_t all = (int64_t)json_array_size(input), length = given ? json_integer_value(given) : all;
    int64_t channels = json_is_array(first) ? (int64_t)json_array_size(first) : 1;
    int split;
    TRY(check_keys(l));
    if (member(l, "second", "edges", NULL))
        return wrong(l, "pairs of documents (\"second\") and graphs (\"edges\") are not read; leave them out");
    if (member(l, "time", "times", "timestamps"))
        return wrong(l, "times are not read; put them into a channel of \"input\", or leave them out");
    if (all == 0) return wrong(l, "there is no \"input\", or it is no list with a position at least");
    if (channels < 1 || channels > OWN_MOST_CHANNEL) return wrong(l, "a position has no channel, or too many");
    if (!target) return wrong(l, "there is no \"target\"");
    if (length < 1 || length > all)
        return wrong(l, "\"length\" is no whole number from 1 to the positions of \"input\"");
    TRY(same_length(l, "target", target, all));
    TRY(same_length(l, "mask", mask, all));
    if (mask && !json_is_array(mask)) return wrong(l, "\"mask\" is no list");
    TRY(read_split(l, &split));
    TRY(add_input(l, input, length, channels));
    TRY(add_targets(l, target, mask, length));
    return own_pack_example(l->pack, length, channels, !json_is_array(target), split, l->where, l->e);
}

static bool is_blank(const char *at, size_t n) {
    while (n && (*at == ' ' || *at == '\t' || *at == '\r')) at++, n--;
    return n == 0;
}

enum status own_jsonl_read(struct own_pack *p, const char *bytes, size_t size, struct error *e) {
    struct line l = {.pack = p, .e = e};
    int64_t n = 0;
    for (const char *at = bytes, *end = bytes + size; at < end; at++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((stop ? stop : end) - at);
        json_error_t reason;
        snprintf(l.where, sizeof l.where, "line %lld", (long long)++n);
        if (!is_blank(at, length)) {
            json_t *object = json_loadb(at, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &reason);
            if (!object)
                return fail(e, ST_DATA, "%s, %s: it is no JSON: %s, at byte %d; each line is one object", p->name,
                            l.where, reason.text, reason.position);
            l.object = object;
            enum status status = read_example(&l);
            json_decref(object);
            TRY(status);
        }
        at += length;
    }
    return ST_OK;
}

/* numerics.c - see numerics.h. */
#include "harness/plan/numerics.h"

#include <string.h>

#define NUMERICS_BASE "1" /* of every run; raised when a change reaches all of them */

static bool model_is(const struct setup *s, const char *name) {
    return strcmp(s->model.model->name, name) == 0;
}

/* Heads that lay side by side read the first one's state in the chunk kernel of the delta rule. */
static bool uses_delta(const struct setup *s) {
    return model_is(s, "deltanet") || model_is(s, "deltaproduct");
}

/* The value of a model's option, or "" if it has none of that name. */
static void option_of(const struct setup *s, const char *name, char *value, size_t size) {
    const struct option *o = option_find(s->model.model->options, name);
    value[0] = 0;
    if (o) option_format_value(o, s->model.inst, value, size);
}

static bool option_is(const struct setup *s, const char *name, const char *wanted) {
    char value[OPTION_TEXT + 1];
    option_of(s, name, value, sizeof value);
    return strcmp(value, wanted) == 0;
}

/* Several states a head started all alike, on a saddle. */
static bool uses_track(const struct setup *s) {
    return model_is(s, "plstm") && !option_is(s, "track", "1") && !option_is(s, "track-init", "0");
}

/* The norm stood alone under the clip. */
static bool uses_clip(const struct setup *s) {
    return s->config.clip > 0;
}

/* The first step of a warm-up ran at lr / warmup. */
static bool uses_warmup(const struct setup *s) {
    return s->config.warmup > 0;
}

/* A part starts at version 1, which is not written. */
static const struct {
    const char *name;
    int version;
    bool (*used)(const struct setup *s);
} parts[] = {
    {"delta", 2, uses_delta},
    {"track", 2, uses_track},
    {"clip", 2, uses_clip},
    {"warmup", 2, uses_warmup},
};

enum status numerics_of(const struct setup *s, char *text, size_t size, struct error *e) {
    size_t used = (size_t)snprintf(text, size, "%s", NUMERICS_BASE);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!parts[i].used(s)) continue;
        used += (size_t)snprintf(text + used, size - used, "+%s.%d", parts[i].name, parts[i].version);
        if (used >= size)
            return fail(e, ST_FAIL, "the numerics version of a run has more than %zu characters", size - 1);
    }
    return ST_OK;
}

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

/* A part starts at version 1, which is not written. */
static const struct {
    const char *name;
    int version;
    bool (*used)(const struct setup *s);
} parts[] = {
    {"delta", 2, uses_delta},
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

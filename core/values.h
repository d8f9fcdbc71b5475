/* values.h - the several values that a flag, or an option of a task, may be given: "1..4", "0,0.1". */
#ifndef LRNN_CORE_VALUES_H
#define LRNN_CORE_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

/* A list that owns its texts; zeros are an empty one. */
struct texts {
    char **list;
    int n;
};

void texts_free(struct texts *t);

/* Adds a copy. ST_USAGE: the list is full; ST_MEMORY. */
enum status texts_add(struct texts *t, const char *text, struct error *e);

/* "3..20" */
bool range_parse(const char *text, int64_t *from, int64_t *to);

/* Adds the values of a flag: "1..4", "0,0.1", "2". Errors: as texts_add; ST_USAGE, in its name: a range without a
 * value, or with more than a list can hold. */
enum status values_expand(const char *name, const char *list, struct texts *values, struct error *e);

/* Whether the list has the value, in canonical form. */
bool values_hold(const char *list, const char *value);

#endif

/* values.h - lists of values, for flags and for options of tasks: "1..4", "0,0.1". */
#ifndef LRNN_CORE_VALUES_H
#define LRNN_CORE_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

/* A list that owns its texts. All zeros is the empty list. */
struct texts {
    char **list;
    int n;
};

void texts_free(struct texts *t);

/* Adds a copy of the text. ST_USAGE: the list is full; ST_MEMORY. */
enum status texts_add(struct texts *t, const char *text, struct error *e);

/* Adds the numbers 1 to n to an empty list, which then may be longer than other lists. ST_MEMORY. */
enum status texts_count(struct texts *t, int64_t n, struct error *e);

/* Parses "3..20"; false if the text is no such range. */
bool range_parse(const char *text, int64_t *from, int64_t *to);

/* Adds the values of the flag `name`, such as "1..4", "0,0.1" or "2". Errors as texts_add; ST_USAGE, with the flag's
 * name, also if a range is empty or has more values than a list may have. */
enum status values_expand(const char *name, const char *list, struct texts *values, struct error *e);

/* Whether the list has the value, which is in canonical form. */
bool values_hold(const char *list, const char *value);

#endif

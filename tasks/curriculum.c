/* curriculum.c - see curriculum.h. */
#include "tasks/curriculum.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/label.h"

enum status curriculum_check(const struct task_choice *task, const char *text, struct error *e) {
    const struct length_range range = task->shape.curriculum;
    int64_t length = range.least - 1;
    if (*text && !range.most)
        return fail(e, ST_USAGE, "--curriculum is for word problems, regular languages and mqar; leave it out for %s",
                    task->name);
    for (const char *at = text; *text; at++) { /* past the colon */
        char number[32];
        int64_t before = length;
        TRY(text_part(&at, ":", number, sizeof number, e));
        if (!parse_int64(number, &length) || length <= before || length > range.most)
            return fail(e, ST_USAGE,
                        "--curriculum %.60s is no list of lengths that ascend from %" PRId64 " to %" PRId64
                        ", between which %s trains; write for example %" PRId64 ":%" PRId64,
                        text, range.least, range.most, task->name, (range.least + range.most) / 2, range.most);
        if (!*at) return ST_OK;
    }
    return ST_OK;
}

int64_t curriculum_longest(const char *text, int64_t step, int64_t steps) {
    int64_t stages = 1;
    for (const char *c = text; *c; c++) stages += *c == ':';
    for (int64_t stage = step * stages / steps; stage > 0 && strchr(text, ':'); stage--) text = strchr(text, ':') + 1;
    return strtoll(text, NULL, 10);
}

/* listops_operation.h - ids of ListOps, and the value of one operator applied to digits. */
#ifndef LRNN_TASKS_LANGUAGE_LISTOPS_OPERATION_H
#define LRNN_TASKS_LANGUAGE_LISTOPS_OPERATION_H

#include <stdint.h>

/* Our fixed numbering; the reference numbers symbols by frequency. */
enum listops_id {
    LISTOPS_PAD,
    LISTOPS_UNKNOWN, /* in the reference; no input here has it */
    LISTOPS_EOS,
    LISTOPS_DIGIT, /* 0, and nine more */
    LISTOPS_MAX = LISTOPS_DIGIT + 10,
    LISTOPS_MED,
    LISTOPS_MIN,
    LISTOPS_SM,
    LISTOPS_CLOSE,
    LISTOPS_VOCAB
};

/* An operator and its arguments so far, without their order. */
struct operation {
    int32_t name; /* LISTOPS_MAX, MED, MIN or SM */
    int32_t arguments;
    int32_t count[10]; /* number of arguments of each value */
};

void operation_start(struct operation *o, int32_t name);
void operation_add(struct operation *o, int32_t digit);

/* The largest, smallest, median (of an even number: the mean of the middle two, rounded down), or sum mod 10. At least
 * one argument. */
int32_t operation_value(const struct operation *o);

#endif

/* mad_view.h - what tests of the MAD tasks and MQAR share: an opened task with one example; counts against chance. */
#ifndef LRNN_TESTS_TASKS_MAD_MAD_VIEW_H
#define LRNN_TESTS_TASKS_MAD_MAD_VIEW_H

#include "tests/tasks/task_examples.h"

#define MAX_T 16384

/* An opened task and one example of it. */
struct view {
    struct task_choice c;
    struct example x;
    const struct task_shape *s;
    int64_t index;
};

void view_open(struct view *v, const char *text, uint64_t seed);
void view_close(struct view *v);

/* The example, for loops over many of them: no assertion, no guards (fill_example of check_tasks.c has them). */
void view_fill(struct view *v, enum split split, int64_t index);

/* ck_assert for loops over positions: libcheck writes a message for every assertion that it passes. */
void require(const struct view *v, bool ok, const char *what);

/* `count` of `n` independent events of probability p, within 3 sigma and what the given p was rounded by. */
void check_share(const char *what, int64_t count, int64_t n, double p, double rounding);

/* Counts of `bins` equally likely bins, within 3 sigma. */
void check_uniform(const char *what, const int64_t *count, int bins, int64_t draws);

#endif

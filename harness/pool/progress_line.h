/* progress_line.h - shows the progress of a sweep on one line of a terminal. */
#ifndef LRNN_HARNESS_POOL_PROGRESS_LINE_H
#define LRNN_HARNESS_POOL_PROGRESS_LINE_H

#include <stddef.h>
#include <stdint.h>

struct progress_view {
    int done, total;   /* numbers of runs */
    double share;      /* share of the work done, 0..1 */
    double best;       /* the best validation metric so far; NAN: none yet */
    double left_s;     /* remaining seconds; NAN: not known */
    const char *model; /* a run in progress */
    double lr, loss, acc, tok_per_s;
    int64_t seed, step, steps;
};

/* Returns how many columns a line on standard error may have that is rewritten: one less than the terminal has, for the
 * cursor. 0: standard error is no terminal or cannot overwrite a line; lines are then printed one below another. */
int progress_width(void);

/* Writes such as "[####......] 3/70 12m left, best 0.998 | bdlru:m=5 lr 0.001 seed 1: 100/1500 loss 1.2 acc 0.53 98k
 * tok/s", as much as fits into `width` columns. Runs done, step, loss and speed have priority. It writes no line
 * feed. */
void progress_line(const struct progress_view *v, int width, char *text, size_t size);

/* The remaining time of a sweep. Before the first update, set `began`, and set left_s to NAN. */
struct time_left {
    double began, left_s, at; /* at: when left_s was last updated */
};

/* Updates the remaining time. work: FLOPs of all runs; done: FLOPs that are done; done_before: the part of `done` from
 * before this sweep, whose time is unknown. The estimate uses the mean speed so far. It changes slowly, because runs
 * that stop early make the work less than planned. */
void time_left_update(struct time_left *t, double now, double work, double done, double done_before);

/* Writes a time such as "90s", "12m05s", "3h20m" or "2d04h". */
void time_format(double s, char *text, size_t size);

#endif

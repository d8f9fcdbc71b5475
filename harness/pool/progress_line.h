/* progress_line.h - how far a sweep is, on one line of a terminal. */
#ifndef LRNN_HARNESS_POOL_PROGRESS_LINE_H
#define LRNN_HARNESS_POOL_PROGRESS_LINE_H

#include <stddef.h>
#include <stdint.h>

struct progress_view {
    int done, total;   /* runs */
    double share;      /* of the work, done; 0..1 */
    double best;       /* the best validation metric so far; NAN: none yet */
    double left_s;     /* NAN: not known */
    const char *model; /* of a run in work */
    double lr, loss, acc, tok_per_s;
    int64_t seed, step, steps;
};

/* Columns of a line that is written on standard error again and again: one less than its terminal has, for the cursor.
 * 0: standard error is no terminal, or cannot take a line back; lines then stand below each other. */
int progress_width(void);

/* Writes "[####......] 3/70 12m left, best 0.998 | bdlru:m=5 lr 0.001 seed 1: 100/1500 loss 1.2 acc 0.53 98k tok/s", as
 * much of it as `width` columns hold, the runs done, step, loss and rate first; no line feed. */
void progress_line(const struct progress_view *v, int width, char *text, size_t size);

/* Time that a sweep still takes. Set `began` before the first update, and left_s to NAN: not known yet. */
struct time_left {
    double began, left_s, at; /* at: when it was told last */
};

/* Updates the time that is left: work is all FLOPs, done those that are done, done_before the part of these that was
 * done when the sweep began, by sittings whose time it did not see. Runs that stop early make the work less than
 * planned, so the estimate follows all work done so far, and moves slowly. */
void time_left_update(struct time_left *t, double now, double work, double done, double done_before);

/* "90s", "12m05s", "3h20m", "2d04h" */
void time_format(double s, char *text, size_t size);

#endif

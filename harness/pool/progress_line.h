/* progress_line.h - how far a sweep is, on one line of a terminal. */
#ifndef LRNN_HARNESS_POOL_PROGRESS_LINE_H
#define LRNN_HARNESS_POOL_PROGRESS_LINE_H

#include <stddef.h>
#include <stdint.h>

struct progress_view {
    int done, total;   /* runs */
    double share;      /* of the work that is done, 0..1 */
    double best;       /* the best validation metric so far; NAN: none yet */
    double left_s;     /* NAN: not known */
    const char *model; /* of a run in work */
    double lr, loss, acc, tok_per_s;
    int64_t seed, step, steps;
};

/* What a line may take that is written on standard error again and again: a column less than its terminal has, behind
 * which the cursor stays; 0: it is none, or one that cannot take a line back, and lines stand below each other. */
int progress_width(void);

/* Writes "[####......] 3/70 12m left, best 0.998 | bdlru:m=5 lr 0.001 seed 1: 100/1500 loss 1.2 acc 0.53 98k tok/s", as
 * much of it as `width` columns hold; no line feed. */
void progress_line(const struct progress_view *v, int width, char *text, size_t size);

/* How long a sweep still takes. Set `began` before the first update, and left_s to NAN: not known yet. */
struct time_left {
    double began, left_s, at; /* at: when it was told last */
};

/* From how far the sweep is at a time: of all work the part that is done, and of that part the one that was done
 * already when the sweep took the runs up, by sittings whose time it did not see. Runs that stop early make the work
 * less than planned, so the rest is told from what was done in all, and moves slowly towards it. */
void time_left_update(struct time_left *t, double now, double work, double done, double done_before);

/* "90s", "12m05s", "3h20m", "2d04h" */
void time_format(double s, char *text, size_t size);

#endif

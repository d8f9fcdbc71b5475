/* progress_line.h - how far a sweep is, on one line of a terminal. */
#ifndef LRNN_HARNESS_RUNNER_PROGRESS_LINE_H
#define LRNN_HARNESS_RUNNER_PROGRESS_LINE_H

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

/* Writes "[####......] 3/70 12m left, best 0.998 | bdlru:m=5 lr 0.001 seed 1: 100/1500 loss 1.2 acc 0.53 98k tok/s", as
 * much of it as `width` columns hold; no line feed. */
void progress_line(const struct progress_view *v, int width, char *text, size_t size);

/* "90s", "12m05s", "3h20m", "2d04h" */
void time_format(double s, char *text, size_t size);

#endif

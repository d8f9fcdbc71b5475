/* live.h - the progress of a run so far, for people who watch it. The run's process writes it beside its claim
 * (store/claim.h), and `lrnn top` reads it.
 *
 * The text begins with the line "steps N", the most steps of the run. A line per point follows, in order of time: wall
 * time in seconds, steps done, loss of the latest batch, latest validation metric (nan before the first), tokens per
 * second. There are at most LIVE_POINTS points; the longer the run, the larger the gaps. The last point is the
 * latest. */
#ifndef LRNN_HARNESS_RUN_LIVE_H
#define LRNN_HARNESS_RUN_LIVE_H

#include "harness/run/running.h"
#include "harness/store/claim.h"

#define LIVE_EVERY  2.0 /* seconds between two texts */
#define LIVE_POINTS 64

/* Starts as zeros. */
struct live {
    struct progress points[LIVE_POINTS];
    int n;
    double gap, told; /* least seconds between two points; wall time of the latest text */
};

/* Adds a point, and writes the text if the last text is LIVE_EVERY old. Allocates nothing. */
void live_tell(struct live *l, const struct progress *now, const struct claim *claim);

/* Reads the text of a run up to the first malformed line. False: there is no point. */
bool live_read(struct live *l, const char *out, const char *run_id);

/* The remaining seconds of the run, at the speed of the later half of its points, and half the width of their 90 %
 * interval, from how much the speed varies between points. A run may end earlier, by its stop criteria. NAN: not known,
 * or (half) there are only two points. */
struct live_left {
    double seconds, half;
};
struct live_left live_left(const struct live *l);

#endif

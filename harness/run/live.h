/* live.h - the progress of a run in progress, for `lrnn top`. The run's process writes it into a file beside its claim
 * (store/claim.h), the lock file of the run.
 *
 * The file begins with the line "steps N", where N is the most steps of the run. Each further line is a point, in order
 * of time: wall time in seconds, steps done, loss of the latest batch, latest validation metric (nan before the first),
 * tokens per second. There are at most LIVE_POINTS points; in a longer run they are further apart. The last point is
 * the latest state. */
#ifndef LRNN_HARNESS_RUN_LIVE_H
#define LRNN_HARNESS_RUN_LIVE_H

#include "harness/run/running.h"
#include "harness/store/claim.h"

#define LIVE_EVERY  2.0 /* seconds between two times that the file is written */
#define LIVE_POINTS 64

/* All zeros at the start of a run. */
struct live {
    struct progress points[LIVE_POINTS];
    int n;
    double gap, told; /* gap: least seconds between two points; told: wall time when the file was last written */
};

/* Adds a point, and writes the file if it was last written LIVE_EVERY seconds ago. Allocates nothing. */
void live_tell(struct live *l, const struct progress *now, const struct claim *claim);

/* Reads a run's file up to the first malformed line. False: it has no point. */
bool live_read(struct live *l, const char *out, const char *run_id);

/* The remaining seconds of the run, at the speed of the later half of its points. `half` is half the width of their 90
 * % interval, which follows from how much the speed varies between points. A run may end earlier, by its stop criteria.
 * NAN: not known; `half` is also NAN if there are only two points. */
struct live_left {
    double seconds, half;
};
struct live_left live_left(const struct live *l);

#endif

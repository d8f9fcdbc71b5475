/* live.h - how a run in progress has gone so far, for those who watch it: its process tells it beside its claim
 * (store/claim.h), and `lrnn top` reads it.
 *
 * The text begins with the line "steps N", the steps that the run takes at most. A line a point follows, in the order
 * of time: wall time in seconds, steps done, loss of the latest batch, latest validation metric (nan before the first),
 * tokens a second. There are at most LIVE_POINTS, as far apart as the run is long, and the last one is the latest. */
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
    double gap, told; /* seconds between two points at least; wall time of the latest text */
};

/* Notes how far the run is, and tells it if it is time to. Allocates nothing. */
void live_tell(struct live *l, const struct progress *now, const struct claim *claim);

/* Reads the text of a run. What does not fit the form ends the points; false: there is no point. */
bool live_read(struct live *l, const char *out, const char *run_id);

/* Seconds that the run still takes at the pace of the later half of its points, and half of the 90 % interval of that,
 * by how much the pace differs between points. A run may end earlier, by its stop criteria. NAN: not known, or the pace
 * is of one stretch alone. */
struct live_left {
    double seconds, half;
};
struct live_left live_left(const struct live *l);

#endif

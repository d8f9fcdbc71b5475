/* place_stream.h - a CUDA device as a place in a process whose other parts use it too: work goes to a stream of theirs.
 * A build without CUDA has the same functions, whose errors say so. */
#ifndef LRNN_CORE_PLACE_STREAM_H
#define LRNN_CORE_PLACE_STREAM_H

#include "core/place.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens CUDA device `index` for work on a stream of the caller (cudaStream_t; NULL: the default stream). Flags of the
 * device and the environment stay as they are. It waits for the stream. Errors: ST_USAGE (built without CUDA, no
 * such device, cudaStreamPerThread), ST_DEVICE (a call of CUDA failed, too old a device), ST_MEMORY. */
enum status place_open_stream(struct place *p, int index, void *stream, struct error *e);

/* Work on such a place is queued between place_enter and place_leave, by one thread at a time. place_enter makes the
 * device the calling thread's current one and returns the one that was; place_leave makes that current again, and
 * returns the first failure in between. Neither waits for the work. */
int place_enter(const struct place *p);
enum status place_leave(const struct place *p, int before, struct error *e);

#ifdef __cplusplus
}
#endif
#endif

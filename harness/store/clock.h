/* clock.h - the time of day for people, and a clock that only runs forward for measuring. */
#ifndef LRNN_HARNESS_STORE_CLOCK_H
#define LRNN_HARNESS_STORE_CLOCK_H

#include <stddef.h>

/* Writes the time now: UTC, RFC 3339 with seconds. */
void time_now_text(char *buffer, size_t size);

/* Returns monotonic seconds. */
double time_now_s(void);

/* Returns the CPU seconds of this thread. */
double time_run_s(void);

#endif

/* clock.c - see clock.h. */
#include "harness/store/clock.h"

#include <time.h>

void time_now_text(char *buffer, size_t size) {
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    if (strftime(buffer, size, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0 && size > 0) buffer[0] = 0;
}

double time_now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double time_run_s(void) {
    struct timespec run;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &run);
    return (double)run.tv_sec + 1e-9 * (double)run.tv_nsec;
}

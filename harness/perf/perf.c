/* perf.c - what all of perf.h says of where it is from. */
#include "harness/perf/perf.h"

#include "harness/store/machine.h"
#include "harness/store/version.h"

void perf_print_origin(void) {
    struct machine machine;
    machine_read(&machine);
    printf("\"commit\":\"%.12s%s\",\"machine\":\"%s\"", build_info()->commit, build_info()->dirty ? "+" : "",
           machine.id);
}

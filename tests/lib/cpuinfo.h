/* cpuinfo.h - what the kernel says of the processor. */
#ifndef LRNN_TESTS_LIB_CPUINFO_H
#define LRNN_TESTS_LIB_CPUINFO_H

#include <stdbool.h>

/* Whether /proc/cpuinfo lists that flag, "avx2". */
bool cpuinfo_has(const char *flag);

#endif

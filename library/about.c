/* about.c - version and ops of the library. */
#include "include/lrnn.h"

const char *lrnn_version(void) {
    return LRNN_LIBRARY_VERSION;
}

const char *lrnn_ops(void) {
#define LIBRARY(op) #op "\n"
    return
#include "library/list.def"
        "";
#undef LIBRARY
}

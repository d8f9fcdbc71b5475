/* version.h - what this binary was built from, as `lrnn --version` prints it and run records store it. */
#ifndef LRNN_HARNESS_STORE_VERSION_H
#define LRNN_HARNESS_STORE_VERSION_H

#include <stdbool.h>

struct build_info {
    const char *version;   /* "0.1.0" */
    const char *commit;    /* full git hash, or "unknown" outside a git checkout */
    bool dirty;            /* tracked files differed from the commit */
    const char *sources;   /* 16 hex digits of the SHA-256 of the program's sources, committed or not */
    const char *flags;     /* flags that affect numbers: optimisation, instruction set, contraction, precision */
    const char *compiler;  /* first line of the compiler's --version */
    const char *real_name; /* "fp32" or "fp64" */
};

/* Returns the facts of this build, static. Neither the struct nor its strings are NULL. */
const struct build_info *build_info(void);

/* Whether a run was made by a build with equal sources, flags and compiler. */
struct run;
bool build_made(const struct run *run);

#endif

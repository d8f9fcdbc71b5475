/* verify.h - compares a mixer's output and every gradient with the numbers in a case file (docs/extend.md). */
#ifndef LRNN_HARNESS_RUN_VERIFY_H
#define LRNN_HARNESS_RUN_VERIFY_H

#include <stdio.h>

#include "core/real.h"
#include "core/status.h"
#include "models/model.h"

#define VERIFY_BOUND (REAL_IS_DOUBLE ? 1e-9 : 1e-4) /* largest error that passes */

/* Counts over all files; the caller starts with zeros. */
struct verify_total {
    const struct model *model; /* the model of the latest file that names a known model */
    /* numbers of files and tensors compared; of tensors that failed; of files to which `kernel` does not apply */
    int files, tensors, failed, skipped;
    double worst; /* the largest error; NAN or infinite if an error was */
    bool quiet;   /* set by the caller: only lines of failures are printed */
};

/* Builds the mixer that the file names, loads its parameters, and runs it forward on x and backward on dy. For y, dx
 * and each gradient g.* it prints one line "FILE TENSOR error pass|FAIL" to `out`. The error is max|got-want| /
 * max|want|, or only the numerator if max|want| < 1e-12. An error that is not finite fails. `kernel` forces that
 * kernel, or "reference"; NULL or "" forces none. If it does not apply, the lines say so in place of the error. place
 * NULL: the CPU. Errors: ST_USAGE, naming the tensor, the mixer or the key, if the file is not a complete case;
 * ST_MEMORY. */
enum status verify_file(const char *path, const char *kernel, const struct place *place, struct verify_total *total,
                        FILE *out, struct error *e);

#endif

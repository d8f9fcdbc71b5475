/* products.h - the file of the cache folder in which a device's products keep the algorithms that were fastest
 * (kernels/lib/algorithms.h): cublas.products. All runs of all processes share it. It is replaced as a whole, so a
 * process that reads it sees one state. If two processes replace it at the same time, one of them times its products
 * again the next time. Without a cache folder, every process times its products itself. */
#ifndef LRNN_HARNESS_RUN_PRODUCTS_H
#define LRNN_HARNESS_RUN_PRODUCTS_H

#include <stdbool.h>

#include "core/place.h"

/* Begins with a run at the place. The process's first run on a device reads the file. If it is damaged, or another
 * kind of file, stderr says so in one sentence, and products_save replaces it. */
void products_begin(const struct place *p);

/* Writes the file if products were timed since it was read or written. Call it after a graph's first walk. stderr says
 * in one sentence why it cannot be written; then the process does not try again. */
void products_save(const struct place *p);

/* Returns whether the products of an earlier part of a run, as products_name gave them, have the same algorithms here.
 * Those that did not fit into the text are not compared, nor are those of the CPU's library, which a checkpoint's
 * build covers. */
bool products_are(const struct place *p, const char *names);

/* Gives the library of a run's matrix products, as records have it: "cuBLAS" and the names of the algorithms that the
 * run has used, or the CPU's library. */
void products_name(const struct place *p, char *text, size_t size);

#endif

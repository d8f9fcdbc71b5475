/* npz.h - writes arrays in NumPy's .npz format: a ZIP file of .npy members without compression.
 *
 * Members have NumPy's format 1.0: 6 bytes of magic, the version, the length of the header, the header (a Python
 * dictionary), the values in row-major order. The file is below 4 GiB, since ZIP64 is not written. */
#ifndef LRNN_HARNESS_CLI_DATA_NPZ_H
#define LRNN_HARNESS_CLI_DATA_NPZ_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

#define NPZ_MOST_BYTES  ((int64_t)4 << 30) /* of the file */
#define NPZ_MOST_ARRAYS 8
#define NPZ_MOST_RANK   4

struct npz_array {
    const char *name;  /* without ".npy"; at most 32 letters */
    const char *dtype; /* "<i4", "<i8", "<f4", "<f8" */
    int rank;
    int64_t dims[NPZ_MOST_RANK];
    const void *bytes;
};

/* Replaces the file at `path` atomically. ST_USAGE: too large; ST_FAIL with path and reason. */
enum status npz_write(const char *path, const struct npz_array *arrays, int n, struct error *e);

#endif

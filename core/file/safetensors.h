/* safetensors.h - files for exchanging tensors: 8 bytes with the length of the header (little-endian), a JSON header,
 * then raw little-endian data.
 *
 * The reader trusts nothing: it checks header length, duplicate keys, dtypes, overflowing shapes, overlaps and gaps,
 * and names the fault. It reads F16, BF16, F32 and F64, and returns elements as double, which is exact. The writer
 * writes F32 and F64. */
#ifndef LRNN_CORE_FILE_SAFETENSORS_H
#define LRNN_CORE_FILE_SAFETENSORS_H

#include "core/arena.h"
#include "core/tensor.h"

#define SAFETENSORS_MAX_HEADER (100u << 20) /* bytes; the limit of the format itself */

struct st_tensor {
    const char *name;
    bool f64; /* stored as F64; else `half` tells whether it is a 16-bit type or F32 */
    enum st_half { ST_NO_HALF, ST_F16, ST_BF16 } half;
    int rank;
    int64_t dims[TENSOR_MAX_RANK];
    int64_t count;
    const unsigned char *bytes; /* in the file's image */
};

struct st_pair {
    const char *key, *value;
};

struct safetensors {
    struct st_tensor *tensors;
    int n;
    struct st_pair *metadata;
    int n_metadata;
    struct arena arena; /* owns everything above */
};

/* Reads and checks a complete file. ST_DATA with path, reason and, where it matters, offset. */
enum status safetensors_read(struct safetensors *st, const char *path, struct error *e);

/* Like safetensors_read, for a file in memory. In messages, `name` replaces the path. The bytes are copied. */
enum status safetensors_parse(struct safetensors *st, const void *bytes, size_t size, const char *name,
                              struct error *e);

void safetensors_free(struct safetensors *st);

const struct st_tensor *safetensors_find(const struct safetensors *st, const char *name);
const char *safetensors_metadata(const struct safetensors *st, const char *key); /* NULL if absent */

/* Returns element i as double. */
double st_value(const struct st_tensor *t, int64_t i);

/* Writes "(3,4)", for messages. */
void st_shape_text(int rank, const int64_t *dims, char *text, size_t size);

/* A tensor to be written. Its values are in the order of its contract (core/params.h). */
struct st_source {
    const char *name;
    int rank;
    int64_t dims[TENSOR_MAX_RANK];
    bool f64;
    const double *values;
};

/* Writes the file under a temporary name in the same folder, calls fsync and renames it. So an old file stays complete
 * until the end. ST_FAIL with path and the system's reason; ST_USAGE: the name is that of a device, a pipe or a
 * link. */
enum status safetensors_write(const char *path, const struct st_source *sources, int n, const struct st_pair *metadata,
                              int n_metadata, struct error *e);

#endif

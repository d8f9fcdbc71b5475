/* own_pack.h - examples of an own file (own_file.h) while its readers collect them. */
#ifndef LRNN_TASKS_OWN_OWN_PACK_H
#define LRNN_TASKS_OWN_OWN_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/batch.h"
#include "core/status.h"

#define OWN_MOST_BYTES   (INT64_C(4) << 30) /* of a file at most, which is read into memory as a whole */
#define OWN_MOST_LENGTH  (1 << 20)
#define OWN_MOST_LABELS  65536
#define OWN_MOST_CHANNEL 4096

struct own_example {
    int64_t input, target; /* where they begin in the file's arrays */
    int32_t length, split; /* enum split; -1: the file does not say */
};

struct own_pack {
    const char *name; /* of the file */
    struct own_example *example;
    float *input;
    int32_t *target;
    int64_t n, n_input, n_target;            /* so far */
    int64_t have, have_input, have_target;   /* room */
    int64_t longest, channels, labels, kind; /* kind: 0 not known yet, 1 a target per example, 2 per position */
    double largest;                          /* input */
    bool values;                             /* some input is not a token */
};

/* own_pack_input adds a number to the inputs, own_pack_target a target; own_pack_example ends the example that was
 * added since the last end. `where` ("line 3") is for messages. ST_DATA: out of range, lengths differ, or another kind
 * of example than before; ST_MEMORY. */
enum status own_pack_input(struct own_pack *p, double value, const char *where, struct error *e);
enum status own_pack_target(struct own_pack *p, double value, bool scored, const char *where, struct error *e);
enum status own_pack_example(struct own_pack *p, int64_t length, int64_t channels, bool per_sequence, int split,
                             const char *where, struct error *e);

/* Frees the collected examples. */
void own_pack_free(struct own_pack *p);

/* Readers of the two forms. */
enum status own_jsonl_read(struct own_pack *p, const char *bytes, size_t size, struct error *e);
enum status own_npz_read(struct own_pack *p, const unsigned char *bytes, size_t size, struct error *e);

#endif

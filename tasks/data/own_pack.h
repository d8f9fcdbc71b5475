/* own_pack.h - examples of an own file (own_file.h) as its readers collect them. */
#ifndef LRNN_TASKS_DATA_OWN_PACK_H
#define LRNN_TASKS_DATA_OWN_PACK_H

#include "tasks/data/own_file.h"

struct own_pack {
    const char *name; /* of the file */
    struct own_example *example;
    float *input;
    int32_t *target;
    int64_t n, n_input, n_target;            /* so far */
    int64_t have, have_input, have_target;   /* room */
    int64_t longest, channels, labels, kind; /* kind: 0 not known yet, 1 a target an example, 2 one a position */
    double largest;                          /* input */
    bool values;                             /* some input is no token */
};

/* Adds a number to the inputs, a target, and the example that those since the last one are: `targets` of them, 0 for
 * one label. `where` ("line 3") stands in messages. ST_DATA: it is out of range, lengths differ, or it is of another
 * kind than the examples before; ST_MEMORY. */
enum status own_pack_input(struct own_pack *p, double value, const char *where, struct error *e);
enum status own_pack_target(struct own_pack *p, double value, bool scored, const char *where, struct error *e);
enum status own_pack_example(struct own_pack *p, int64_t length, int64_t channels, bool per_sequence, int split,
                             const char *where, struct error *e);

/* Readers of the two forms. */
enum status own_jsonl_read(struct own_pack *p, const char *bytes, size_t size, struct error *e);
enum status own_npz_read(struct own_pack *p, const unsigned char *bytes, size_t size, struct error *e);

#endif

/* buckets.h - buckets: the parts of a batch that are computed one by one, sorted by length, so that short examples lie
 * in graphs of calls that are short as well. Here the sizes that these graphs have. */
#ifndef LRNN_HARNESS_STUDY_BUCKETS_H
#define LRNN_HARNESS_STUDY_BUCKETS_H

#include "harness/study/setup.h"

/* What a graph of calls has room for: positions of a sequence and, where examples are graphs, links. */
struct bucket_size {
    int64_t T;
    struct links_size links;
};

#define BUCKET_SIZES 20

/* The sizes for the examples of a run's split, ascending: the last has room for all, each other one is five sixths of
 * the next, so that a sequence fills eleven twelfths of its graph on average; without those that the mixer does not
 * fit, such as one with given edges. Returns how many. */
int bucket_sizes(const struct setup *s, enum split split, struct bucket_size sizes[BUCKET_SIZES]);

/* A batch is cut into that many parts of that many examples; the first may have fewer. */
int64_t bucket_rows(const struct setup *s);
int64_t bucket_parts(const struct setup *s);

/* What is asked of the net of a bucket of that size. */
struct net_shape bucket_shape(const struct setup *s, enum split split, const struct bucket_size *size);

#endif

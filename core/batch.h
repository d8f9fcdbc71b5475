/* batch.h - examples in memory. They are the only data that tasks and models share. */
#ifndef LRNN_CORE_BATCH_H
#define LRNN_CORE_BATCH_H

#include "core/real.h"

#define IGNORED  (-100) /* a target that is neither scored nor part of the loss */
#define NO_CLASS (-1)   /* a prediction from logits that are not all finite; it differs from every target */

enum split { SPLIT_TRAIN, SPLIT_VAL, SPLIT_TEST, SPLIT_COUNT };

/* One example: pointers into the rows of a batch. A task fills only the fields that its shape names. */
struct example {
    int32_t *tokens; /* (T) ids, or NULL for real-valued inputs; with two documents (2,T) */
    real *values;    /* (T,C), or NULL for token inputs */
    /* (T), or (1) for one label per sequence; IGNORED where not scored. All are IGNORED before the task fills them */
    int32_t *targets;
    int32_t *links; /* the links (core/links.h) if the example is a graph; else NULL */
    int32_t most;   /* under a curriculum, the longest length that the example may have; 0: the task's own lengths */
    int32_t length; /* set by the task: number of positions in use, <= T; the task fills the rest with padding */
    int32_t second; /* with two documents, the length of the second one */
};

#endif

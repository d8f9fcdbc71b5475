/* batch.h - examples in memory, the only data that tasks and models share. */
#ifndef LRNN_CORE_BATCH_H
#define LRNN_CORE_BATCH_H

#include "core/real.h"

#define IGNORED  (-100) /* a target that is neither scored nor in the loss */
#define NO_CLASS (-1)   /* a prediction from logits that are not all finite; equals no target */

enum split { SPLIT_TRAIN, SPLIT_VAL, SPLIT_TEST, SPLIT_COUNT };

/* One example: pointers into the rows of a batch. A task fills the fields that its shape names and no others. */
struct example {
    int32_t *tokens;  /* (T) ids, or NULL for real-valued inputs; two documents: (2,T) */
    real *values;     /* (T,C), or NULL for token inputs */
    int32_t *targets; /* (T) or (1) for one label per sequence; IGNORED where not scored. Arrives filled with IGNORED */
    int32_t *links;   /* the links (core/links.h) if the example is a graph; else NULL */
    int32_t most;     /* under a curriculum: the longest length that it may have; 0: the task's own */
    int32_t length;   /* set by the task: positions in use, <= T; the task fills the rest with padding */
    int32_t second;   /* two documents: the length of the second one */
};

#endif

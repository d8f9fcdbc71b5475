/* batch.h - examples in memory: all that tasks and models share. */
#ifndef LRNN_CORE_BATCH_H
#define LRNN_CORE_BATCH_H

#include "core/real.h"

#define IGNORED  (-100) /* a target that is neither scored nor in the loss */
#define NO_CLASS (-1)   /* a prediction from logits that are not all finite; equals no target */

enum split { SPLIT_TRAIN, SPLIT_VAL, SPLIT_TEST, SPLIT_COUNT };

/* One example, borrowed rows of a batch. A task fills what its shape names and leaves the rest. */
struct example {
    int32_t *tokens;  /* (T) ids, or NULL for real-valued inputs; two documents: (2,T) */
    real *values;     /* (T,C), or NULL for token inputs */
    int32_t *targets; /* (T) or (1) for one label per sequence; IGNORED where not scored. Arrives filled with IGNORED */
    int32_t *links;   /* where the example is a graph: its links (core/links.h); else NULL */
    int32_t length;   /* set by the task: positions in use, <= T; the rest is padding the task has filled */
    int32_t second;   /* two documents: the length of the second one */
};

#endif

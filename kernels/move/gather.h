/* gather.h - attributes of gather_pairs and l1_groups, shared by their twins. */
#ifndef LRNN_KERNELS_GATHER_H
#define LRNN_KERNELS_GATHER_H

#include "kernels/lib/infer.h"

struct gather_pairs_attr {
    const int32_t *index; /* [rows][columns][2] */
    int64_t rows, columns;
};

struct l1_groups_attr {
    const int32_t *group; /* [rows] */
    int64_t rows;
};

#endif

/* columns.h - attributes of the ops that move columns, shared by their twins. */
#ifndef LRNN_KERNELS_COLUMNS_H
#define LRNN_KERNELS_COLUMNS_H

#include "kernels/lib/infer.h"

struct split_attr {
    int64_t from; /* first column of the first part */
    int parts;
    int64_t widths[OP_MAX_OUT];
};

struct repeat_each_attr {
    int64_t n;
};

struct prepend_one_attr {
    double factor;
};

#endif

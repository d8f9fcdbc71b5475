/* scan.h - what the twins of the gated scans share: attributes, and how a CPU kernel cuts its work. */
#ifndef LRNN_KERNELS_SCAN_H
#define LRNN_KERNELS_SCAN_H

#include "kernels/kernel.h"

struct scan_block_attr {
    int64_t N, m;
    enum gate gate;
};

struct scan_companion_attr {
    int64_t N, m;
    enum gate gate;
    enum companion_layout layout;
};

/* Scans are independent over batch and channels. A task is one batch element times one strip of neighbouring channels,
 * whose m states a channel fit a stack buffer in L1. */
#define SCAN_STATE_MAX 2048 /* m * width of a strip */
#define SCAN_ORDER_MAX 8    /* largest m the CPU kernels are compiled for; beyond, the reference computes */
#define SCAN_VECTOR 16      /* strip widths are multiples of this many channels, but for the last */

struct scan_strips {
    int64_t width, count, tasks; /* tasks = B * count */
};

/* Whole rows when there is batch enough to share out, else strips to make at least 16 tasks. Sizes alone decide. */
LRNN_INLINE struct scan_strips scan_strips(int64_t B, int64_t N, int64_t m) {
    int64_t least = B < 16 ? (16 + B - 1) / B : 1;
    int64_t width = (N + least - 1) / least, most = SCAN_STATE_MAX / m;
    if (width > most) width = most;
    width = (width + SCAN_VECTOR - 1) / SCAN_VECTOR * SCAN_VECTOR;
    if (width > most) width -= SCAN_VECTOR;
    int64_t count = (N + width - 1) / width;
    return (struct scan_strips){width, count, B * count};
}

#endif

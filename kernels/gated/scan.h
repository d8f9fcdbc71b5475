/* scan.h - what the twins of the gated scans (scan_block, scan_companion) share: how a CPU kernel cuts
 * its work. A part is one batch element times one strip of neighbouring channels; parts do not depend on each other. */
#ifndef LRNN_KERNELS_GATED_SCAN_H
#define LRNN_KERNELS_GATED_SCAN_H

#include "kernels/gated/gate.h"
#include "kernels/lib/fetch.h"

#define SCAN_ORDER_MAX      64  /* largest m of the CPU kernels, as of the models */
#define SCAN_UNROLLED       8   /* largest m of those with a row of gates in registers, and of the device's kernels */
#define SCAN_VECTOR         16  /* strips are multiples of this many channels, but for the last */
#define SCAN_WIDTH          256 /* most channels of a strip, so that a time step stays in L1 */
#define SCAN_STRIDE         272 /* of rows of channels in stack buffers; constant, and no power of two for L1's sets */
#define SCAN_STATES         (SCAN_ORDER_MAX * SCAN_STRIDE)       /* m rows */
#define SCAN_GATES          ((SCAN_ORDER_MAX + 1) * SCAN_STRIDE) /* m + 1 rows */
#define SCAN_PREFETCH_BYTES 2048 /* how far ahead of use gates are asked for; more evicts, less comes late */

/* Helpers that all specialised walks call: inlined into each they would double its size. */
#define SCAN_CALLED static __attribute__((noinline, unused))

struct scan_strips {
    int64_t width, count, parts; /* parts = B * count */
};

/* Whole rows when there is batch enough to share out, else strips to make about 16 parts. Sizes alone decide. */
LRNN_INLINE struct scan_strips scan_strips(int64_t B, int64_t N) {
    int64_t parts = (N + SCAN_WIDTH - 1) / SCAN_WIDTH, wanted = (16 + B - 1) / B;
    if (parts < wanted) parts = wanted;
    int64_t width = ((N + parts - 1) / parts + SCAN_VECTOR - 1) / SCAN_VECTOR * SCAN_VECTOR;
    int64_t count = (N + width - 1) / width;
    return (struct scan_strips){width, count, B * count};
}

/* The pointers stand at element 0 of the part's strip at t = 0; dz, dv, dh are NULL where there is none. A time step is
 * gate_rows * (m + 1) rows of N gates, m rows of N states and value_rows rows of N values. */
struct scan_part {
    const real *z, *v, *dh;
    real *h, *dz, *dv;
    bool add_dz, add_dv; /* add to the gradient instead of overwriting it */
    int64_t T, N, width;
    int m;
};

LRNN_INLINE struct scan_part scan_part_of(const struct call *c, struct scan_strips strips, int64_t index,
                                          int64_t gate_rows, int64_t value_rows) {
    const struct scan_attr *a = scan_attr(c);
    int64_t T = c->in[1]->dims[1], b = index / strips.count, k = index % strips.count * strips.width;
    int64_t gates = b * T * gate_rows * (a->m + 1) * a->N + k, states = b * T * a->m * a->N + k;
    int64_t values = b * T * value_rows * a->N + k;
    struct scan_part s;
    s.z = tensor_real(c->in[0]) + gates;
    s.v = tensor_real(c->in[1]) + values;
    s.h = tensor_real(c->out[0]) + states;
    s.dh = call_dout(c, 0) ? call_dout(c, 0) + states : NULL;
    s.dz = c->din[0] ? c->din[0] + gates : NULL;
    s.dv = c->din[1] ? c->din[1] + values : NULL;
    s.add_dz = call_accumulates(c, 0);
    s.add_dv = call_accumulates(c, 1);
    s.T = T;
    s.N = a->N;
    s.width = a->N - k < strips.width ? a->N - k : strips.width;
    s.m = (int)a->m;
    return s;
}

/* How many gate rows of m + 1 ahead of use to prefetch. */
LRNN_INLINE int64_t scan_rows_ahead(const struct scan_part *s) {
    return SCAN_PREFETCH_BYTES / ((s->m + 1) * s->width * (int64_t)sizeof(real)) + 1;
}

/* Asks for gate row `row` of `rows`: the hardware does not follow m + 1 short runs by itself. Nothing outside them. */
SCAN_CALLED void scan_prefetch(const struct scan_part *s, int64_t row, int64_t rows) {
    if (row < 0 || row >= rows) return;
    for (int j = 0; j <= s->m; j++)
        for (int64_t k = 0; k < s->width; k += SCAN_VECTOR) {
            __builtin_prefetch(s->z + (row * (s->m + 1) + j) * s->N + k);
            __asm__ volatile(""); /* else gcc takes the function for one without effect and drops its calls */
        }
}

/* To be called at each step of a walk back in time, before step t is read (kernels/lib/fetch.h): prefetch instructions
 * do not make up for it. Gradients are fetched as well, for a line is read before a part of it is written. A time step
 * is gate_rows rows of m + 1 gates. */
LRNN_INLINE void scan_fetch_back(const struct scan_part *s, int64_t t, int64_t gate_rows, int64_t value_rows) {
    int64_t rows = gate_rows * (s->m + 1), first;
    if (!fetch_is_due(t, s->T, rows * s->width, &first)) return;
    fetch_rows(s->z + first * rows * s->N, (t + 1 - first) * rows, s->width, s->N);
    fetch_rows(s->h + first * s->m * s->N, (t + 1 - first) * s->m, s->width, s->N);
    fetch_rows(s->dh + first * s->m * s->N, (t + 1 - first) * s->m, s->width, s->N);
    fetch_rows(s->v + first * value_rows * s->N, (t + 1 - first) * value_rows, s->width, s->N);
    if (s->dz) fetch_written(s->dz + first * rows * s->N, (t + 1 - first) * rows, s->width, s->N);
    if (s->dv) fetch_written(s->dv + first * value_rows * s->N, (t + 1 - first) * value_rows, s->width, s->N);
}

SCAN_CALLED void scan_add(real *d, const real *x, int64_t n) {
#pragma omp simd
    for (int64_t k = 0; k < n; k++) d[k] += x[k];
}

typedef void part_walk(const struct scan_part *s);

/* Defines the table name[gate][m] of functions that call walk(m, gate, layout, s) with m, gate and layout as constants,
 * without which the loops over channels would stay scalar. That at m = 0 is for all larger m: it keeps a row of gates
 * in memory, and takes m from s. */
#define SCAN_TABLE(name, walk, layout)                                                                                 \
    SCAN_GATE(name, walk, softmax, GATE_SOFTMAX, layout)                                                               \
    SCAN_GATE(name, walk, sigmoid, GATE_SIGMOID, layout)                                                               \
    SCAN_GATE(name, walk, relu, GATE_RELU, layout)                                                                     \
    SCAN_GATE(name, walk, none, GATE_NONE, layout)                                                                     \
    static part_walk *const name[GATE_COUNT][SCAN_UNROLLED + 1] = {SCAN_ROW(name##_softmax), SCAN_ROW(name##_sigmoid), \
                                                                   SCAN_ROW(name##_relu), SCAN_ROW(name##_none)};
#define SCAN_ROW(f)                                                                                                    \
    { f##0, f##1, f##2, f##3, f##4, f##5, f##6, f##7, f##8 }
#define SCAN_GATE(name, walk, suffix, gate, layout)                                                                    \
    static void name##_##suffix##0(const struct scan_part *s) {                                                        \
        walk(0, gate, layout, s);                                                                                      \
    }                                                                                                                  \
    static void name##_##suffix##1(const struct scan_part *s) {                                                        \
        walk(1, gate, layout, s);                                                                                      \
    }                                                                                                                  \
    static void name##_##suffix##2(const struct scan_part *s) {                                                        \
        walk(2, gate, layout, s);                                                                                      \
    }                                                                                                                  \
    static void name##_##suffix##3(const struct scan_part *s) {                                                        \
        walk(3, gate, layout, s);                                                                                      \
    }                                                                                                                  \
    static void name##_##suffix##4(const struct scan_part *s) {                                                        \
        walk(4, gate, layout, s);                                                                                      \
    }                                                                                                                  \
    static void name##_##suffix##5(const struct scan_part *s) {                                                        \
        walk(5, gate, layout, s);                                                                                      \
    }                                                                                                                  \
    static void name##_##suffix##6(const struct scan_part *s) {                                                        \
        walk(6, gate, layout, s);                                                                                      \
    }                                                                                                                  \
    static void name##_##suffix##7(const struct scan_part *s) {                                                        \
        walk(7, gate, layout, s);                                                                                      \
    }                                                                                                                  \
    static void name##_##suffix##8(const struct scan_part *s) {                                                        \
        walk(8, gate, layout, s);                                                                                      \
    }

/* The walk of such a table that the call takes. */
LRNN_INLINE part_walk *part_walk_of(const struct call *c, part_walk *const table[GATE_COUNT][SCAN_UNROLLED + 1]) {
    const struct scan_attr *a = scan_attr(c);
    return table[a->gate][a->m <= SCAN_UNROLLED ? a->m : 0];
}

/* For op->infer of z (B,T,`gates`) and v (B,T,`values`), `of_gates` and `of_values` saying how wide they are, with N
 * states named `count`. Sets the error if they are not. */
bool infer_scan(struct graph *g, const struct call *c, const char *count, int64_t gates, const char *of_gates,
                int64_t values, const char *of_values);

/* op->heads: each of the N blocks or channels is one. */
struct heads scan_heads(const struct call *c);

LRNN_INLINE bool scan_applicable(const struct call *c, const char **why) {
    *why = "m is larger than 64";
    return scan_attr(c)->m <= SCAN_ORDER_MAX;
}

#endif

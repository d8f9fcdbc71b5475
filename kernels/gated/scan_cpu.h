/* scan_cpu.h - parts that the CPU kernels of the gated scans share: how the work is divided, the gates of one row, and
 * the choice of a function that is compiled for one m and one gate.
 *
 * A part is one batch element and one strip of neighbouring channels. Parts do not depend on each other, and every
 * channel does the same arithmetic, so bits do not depend on the division. At a time step, a part has `rows` rows (m in
 * scan_block, 1 in scan_companion), each with m + 1 gates and one value per channel, and m rows of states. */
#ifndef LRNN_KERNELS_GATED_SCAN_CPU_H
#define LRNN_KERNELS_GATED_SCAN_CPU_H

#include <omp.h>

#include "kernels/gated/scan.h"
#include "kernels/lib/fetch.h"
#include "kernels/lib/parallel.h"

#define SCAN_ORDER_MAX 64  /* largest m of the CPU kernels, and of the models */
#define SCAN_VECTOR    16  /* strips are multiples of this many channels; only the last may be shorter */
#define SCAN_WIDTH     256 /* most channels of a strip; its time step then stays in L1 */
/* distance of rows in stack buffers; it is no power of two, so that rows use all sets of L1 */
#define SCAN_STRIDE 272
#define SCAN_STATES (SCAN_ORDER_MAX * SCAN_STRIDE)       /* m rows */
#define SCAN_GATES  ((SCAN_ORDER_MAX + 1) * SCAN_STRIDE) /* m + 1 rows */
/* how far ahead gates are prefetched: more would evict lines in use, less would come late */
#define SCAN_PREFETCH_BYTES 2048

/* For helpers that all compiled copies of a scan call. Inlining them would double the size of each copy. */
#define SCAN_CALLED static __attribute__((noinline, unused))

/* --- the cut ------------------------------------------------------------------------------------------------------ */

struct scan_strips {
    int64_t width, count, parts; /* parts = B * count */
};

/* Cuts N channels into strips of the same width. They are as wide as possible if the batch already gives 16 parts, else
 * narrower, so that there are about 16 parts. The cut depends only on sizes. */
LRNN_INLINE struct scan_strips scan_strips(int64_t B, int64_t N) {
    int64_t parts = (N + SCAN_WIDTH - 1) / SCAN_WIDTH, wanted = (16 + B - 1) / B;
    if (parts < wanted) parts = wanted;
    int64_t width = ((N + parts - 1) / parts + SCAN_VECTOR - 1) / SCAN_VECTOR * SCAN_VECTOR;
    int64_t count = (N + width - 1) / width;
    return (struct scan_strips){width, count, B * count};
}

/* The data for a walk over one part. Pointers point to the strip's first channel at t = 0. dz and dv are NULL if that
 * gradient is not wanted. */
struct scan_part {
    const real *z;       /* (T, rows, m + 1, N) raw gates */
    const real *v;       /* (T, rows, N) */
    const real *dh;      /* (T, m, N); NULL in a forward pass */
    real *h;             /* (T, m, N) */
    real *dz, *dv;       /* like z and v */
    bool add_dz, add_dv; /* the gradient is added to dz or dv instead of overwriting it */
    int64_t T, N, width; /* width: channels of this strip */
    int64_t rows;
    int64_t ahead; /* number of rows of gates from the row in use to the row that is prefetched */
    int m;
    enum gate gate;
    enum companion_layout layout;
};

/* Calls walk(part) for all parts of a call. Strips are only as narrow as the number of threads requires, because some
 * work is done once per row of a strip. */
LRNN_INLINE void scan_parts(const struct call *c, int64_t rows, void (*walk)(const struct scan_part *s)) {
    const struct scan_attr *a = scan_attr(c);
    int64_t B = c->in[1]->dims[0], T = c->in[1]->dims[1], N = a->N, m = a->m;
    int threads = omp_get_max_threads();
    int64_t fewer = threads == 1 ? 16 : threads < 8 ? 8 / threads : 1;
    struct scan_strips strips = scan_strips(B * fewer, N);
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) > PARALLEL_MIN)
    for (int64_t part = 0; part < B * strips.count; part++) {
        int64_t b = part / strips.count, k = part % strips.count * strips.width;
        int64_t gates = b * T * rows * (m + 1) * N + k, values = b * T * rows * N + k, states = b * T * m * N + k;
        struct scan_part s = {
            .z = tensor_real(c->in[0]) + gates,
            .v = tensor_real(c->in[1]) + values,
            .dh = call_dout(c, 0) ? call_dout(c, 0) + states : NULL,
            .h = tensor_real(c->out[0]) + states,
            .dz = c->din[0] ? c->din[0] + gates : NULL,
            .dv = c->din[1] ? c->din[1] + values : NULL,
            .add_dz = call_accumulates(c, 0),
            .add_dv = call_accumulates(c, 1),
            .T = T,
            .N = N,
            .width = N - k < strips.width ? N - k : strips.width,
            .rows = rows,
            .ahead = SCAN_PREFETCH_BYTES / ((m + 1) * strips.width * (int64_t)sizeof(real)) + 1,
            .m = (int)m,
            .gate = a->gate,
            .layout = a->layout,
        };
        walk(&s);
    }
}

/* Runs walk(m, gate, s) with the part's m and gate as constants. So the loops over channels become vector code, with a
 * row of gates in registers. Every m above 8 is passed as 0; then the walk reads m from s and keeps the row in memory.
 * The macro is the body of a function; each gate has one such function. */
#define SCAN_BY_ORDER(walk, gate, s)                                                                                   \
    switch ((s)->m) {                                                                                                  \
    case 1:                                                                                                            \
        walk(1, gate, s);                                                                                              \
        break;                                                                                                         \
    case 2:                                                                                                            \
        walk(2, gate, s);                                                                                              \
        break;                                                                                                         \
    case 3:                                                                                                            \
        walk(3, gate, s);                                                                                              \
        break;                                                                                                         \
    case 4:                                                                                                            \
        walk(4, gate, s);                                                                                              \
        break;                                                                                                         \
    case 5:                                                                                                            \
        walk(5, gate, s);                                                                                              \
        break;                                                                                                         \
    case 6:                                                                                                            \
        walk(6, gate, s);                                                                                              \
        break;                                                                                                         \
    case 7:                                                                                                            \
        walk(7, gate, s);                                                                                              \
        break;                                                                                                         \
    case 8:                                                                                                            \
        walk(8, gate, s);                                                                                              \
        break;                                                                                                         \
    default:                                                                                                           \
        walk(0, gate, s);                                                                                              \
        break;                                                                                                         \
    }

/* --- one row of gates --------------------------------------------------------------------------------------------- */

/* One row of a strip of channels at one time step. Every pointer points to the strip's first channel. */
struct scan_row {
    const real *z;      /* (m + 1) rows of gates, N apart */
    const real *v;      /* one row */
    const real *before; /* (m) rows: the states of step t - 1, `stride` apart; zeros with stride 0 at t = 0 */
    real *h;            /* the computed state: in scan_block one row, in scan_companion m rows, N apart */
    int64_t N, stride;
    /* Only the backward pass has the following. */
    real *carry;   /* (m) rows, SCAN_STRIDE apart: A_{t+1}^T G_{t+1}, which becomes A_t^T G_t */
    real *dz, *dv; /* dz: (m + 1) rows, dz_stride apart; dv: one row */
    int64_t dz_stride;
};

static const real scan_zeros[SCAN_WIDTH]; /* the state before the first step */

/* Buffers for a row's gradients, if they must be added to earlier values or are not wanted. */
struct scan_buffers {
    real dz[SCAN_GATES], dv[SCAN_WIDTH];
};

/* Returns row i of step t. `buffers` is NULL in a forward pass. The caller then sets h, and in a backward pass also
 * carry. */
LRNN_INLINE struct scan_row scan_row_at(const struct scan_part *s, int64_t t, int64_t i, struct scan_buffers *buffers) {
    int64_t row = t * s->rows + i, m = s->m;
    struct scan_row r = {
        .z = s->z + row * (m + 1) * s->N,
        .v = s->v + row * s->N,
        .before = t ? s->h + (t - 1) * m * s->N : scan_zeros,
        .N = s->N,
        .stride = t ? s->N : 0,
    };
    if (!buffers) return r;
    bool in_place = s->dz && !s->add_dz;
    r.dz = in_place ? s->dz + row * (m + 1) * s->N : buffers->dz;
    r.dz_stride = in_place ? s->N : SCAN_STRIDE;
    r.dv = s->dv && !s->add_dv ? s->dv + row * s->N : buffers->dv;
    return r;
}

SCAN_CALLED void scan_add(real *d, const real *x, int64_t n) {
#pragma omp simd
    for (int64_t k = 0; k < n; k++) d[k] += x[k];
}

/* Adds the buffered gradients of row i of step t to dz and dv, where these must be added to. */
LRNN_INLINE void scan_row_add(const struct scan_part *s, int64_t t, int64_t i, const struct scan_buffers *buffers) {
    int64_t row = t * s->rows + i, m = s->m;
    for (int64_t j = 0; s->dz && s->add_dz && j <= m; j++)
        scan_add(s->dz + (row * (m + 1) + j) * s->N, buffers->dz + j * SCAN_STRIDE, s->width);
    if (s->dv && s->add_dv) scan_add(s->dv + row * s->N, buffers->dv, s->width);
}

/* Prefetches the gates that a forward pass needs soon after row i of step t. The hardware's prefetcher does not follow
 * m + 1 short runs. */
SCAN_CALLED void scan_prefetch(const struct scan_part *s, int64_t t, int64_t i) {
    int64_t row = t * s->rows + i + s->ahead;
    if (row >= s->T * s->rows) return;
    for (int j = 0; j <= s->m; j++)
        for (int64_t k = 0; k < s->width; k += SCAN_VECTOR) {
            __builtin_prefetch(s->z + (row * (s->m + 1) + j) * s->N + k);
            /* without this, gcc would think that the function has no effect and drop its calls */
            __asm__ volatile("");
        }
}

/* Brings step t and some steps before it into the cache, if that is due (kernels/lib/fetch.h). A backward pass calls it
 * at each step before it reads anything; prefetch instructions cannot replace it. It also fetches gradients, because
 * the processor reads a cache line before it writes a part of it. */
LRNN_INLINE void scan_fetch_back(const struct scan_part *s, int64_t t) {
    int64_t gates = s->rows * (s->m + 1), values = s->rows, first;
    if (!fetch_is_due(t, s->T, gates * s->width, &first)) return;
    int64_t steps = t + 1 - first;
    fetch_rows(s->z + first * gates * s->N, steps * gates, s->width, s->N);
    fetch_rows(s->h + first * s->m * s->N, steps * s->m, s->width, s->N);
    fetch_rows(s->dh + first * s->m * s->N, steps * s->m, s->width, s->N);
    fetch_rows(s->v + first * values * s->N, steps * values, s->width, s->N);
    if (s->dz) fetch_written(s->dz + first * gates * s->N, steps * gates, s->width, s->N);
    if (s->dv) fetch_written(s->dv + first * values * s->N, steps * values, s->width, s->N);
}

/* --- softmax ------------------------------------------------------------------------------------------------------ */

/* Returns e^d for d <= 0. These exponentials limit the speed of the scans. Because d <= 0, and because a factor common
 * to a row cancels, it can be shorter than real_exp: it has no upper clamp, log2(e) is one constant, and 2^f has five
 * terms. */
#ifdef LRNN_DOUBLE

FORCE_INLINE real softmax_exp(real d) {
    return real_exp(d);
}

#else

/* Computes e^d = 2^n 2^f, with n = round(d log2 e) and |f| <= 1/2. Adding `magic` = 1.5 * 2^23 + 126 rounds, and leaves
 * n + 126 in the low bits, which is the exponent field of 2^(n-1). The missing factor 2 is in the coefficients. For d <
 * -87.3 this field is 0, and so is the result. 2^f is a minimax polynomial of relative error 9.1e-8 that is 1 at f = 0.
 * The total error is 1.4 units for d > -1. For smaller d it is |d| / 5 units more, but such an element is also a
 * smaller share of its row. */
FORCE_INLINE real softmax_exp(real d) {
    const real magic = 12582912.0f + 126.0f, log2_e = 1.44269504088896341f;
    d = -87.3f > d ? -87.3f : d; /* NaN stays NaN */
    real t = real_fma(d, log2_e, magic);
    real f = real_fma(d, log2_e, magic - t);
    real p = real_fma(2 * 0.0013264728477224708f, f, 2 * 0.009671513922512531f);
    p = real_fma(p, f, 2 * 0.05550733581185341f);
    p = real_fma(p, f, 2 * 0.24022242426872253f);
    p = real_fma(p, f, 2 * 0.6931470036506653f);
    p = real_fma(p, f, 2.0f);
    return p * real_of_bits(real_bits(t) << 23);
}

#endif

/* Computes one channel's row of n gates in registers: p[n] = f(z[j * stride]). Returns 1 / S (kernels/gated/gate.h). */
FORCE_INLINE real scan_gates(enum gate gate, int n, const real *z, int64_t stride, real *p) {
    if (gate != GATE_SOFTMAX) return gate_lane(gate, n, z, stride, p);
    real top = z[0], sum = 0;
    UNROLLED(n, p[j] = z[j * stride]);
    UNROLLED(n, top = p[j] > top ? p[j] : top);
    UNROLLED(n, p[j] = softmax_exp(p[j] - top));
    UNROLLED(n, sum += p[j]);
    return 1 / sum;
}

/* Like scan_gates, but for any n, for `width` channels at once, and in memory: p[j * SCAN_STRIDE + k] from z[j * stride
 * + k], and scale[k] = 1 / S. */
FORCE_INLINE void scan_gates_in_memory(enum gate gate, int n, int64_t width, const real *z, int64_t stride, real *p,
                                       real *scale) {
    real top[SCAN_WIDTH], sum[SCAN_WIDTH];
    for (int64_t k = 0; k < width; k++) top[k] = z[k], sum[k] = 0;
    for (int j = 1; j < n && (gate == GATE_SOFTMAX || gate == GATE_SIGMOID); j++)
#pragma omp simd
        for (int64_t k = 0; k < width; k++) top[k] = z[j * stride + k] > top[k] ? z[j * stride + k] : top[k];
    for (int j = 0; j < n; j++)
#pragma omp simd
        for (int64_t k = 0; k < width; k++) {
            real x = z[j * stride + k];
            p[j * SCAN_STRIDE + k] = gate == GATE_SOFTMAX ? softmax_exp(x - top[k]) : gate_value(gate, x, top[k]);
            sum[k] += p[j * SCAN_STRIDE + k];
        }
#pragma omp simd
    for (int64_t k = 0; k < width; k++) scale[k] = gate == GATE_SOFTMAX ? 1 / sum[k] : gate_scale(gate, sum[k]);
}

LRNN_INLINE bool scan_applicable(const struct call *c, const char **why) {
    *why = "m is larger than 64";
    return scan_attr(c)->m <= SCAN_ORDER_MAX;
}

#endif

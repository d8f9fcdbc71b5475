/* dag_state.h - parts that the twins of recurrences with a dk x dv matrix per head share.
 *
 * All are one recurrence on the edges of a directed acyclic graph (pLSTM, Eq. 1 and 2):
 *   C_e = sum over in-edges e' of tail(e) of T_{e'e} C_{e'} + S_e k_tail v_tail^T
 *   y_n = scale * ( sum over in-edges e of n of M_e C_e^T q_n + D_n (q_n . k_n) v_n )
 * scan_plstm is the path (one edge per step, J states coupled by a J x J transition), grid_scan the grid in four
 * directions, dag_scan any graph. The path with one state is scan_outer (kernels/matrix/state.h), which Mamba2 shares.
 * Tests compare the special cases with dag_scan. Memory: q, k (B,T,H*dk), v, y (B,T,H*dv), head-major; a state is
 * [dk][dv], dv fastest. */
#ifndef LRNN_KERNELS_PLSTM_DAG_STATE_H
#define LRNN_KERNELS_PLSTM_DAG_STATE_H

#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"
#include "kernels/plstm/plstm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sizes of one call, read off its inputs q and v. */
struct dag_sizes {
    int64_t B, T, H, dk, dv;
};

LRNN_INLINE struct dag_sizes dag_sizes_of(const struct call *c, int64_t H) {
    const struct tensor *q = c->in[0], *v = c->in[2];
    struct dag_sizes z = {q->dims[0], q->dims[1], H, q->dims[2] / H, v->dims[2] / H};
    return z;
}

/* For op->infer: q, k, v are inputs 0 to 2, (B,T,H*dk) twice and (B,T,H*dv). Sets the error if they are not. */
bool infer_dag_state(struct graph *g, const struct call *c, int64_t H);

/* Input i must be (B,rows,width); `what` names it. Sets the error if it is not. */
bool infer_gate(struct graph *g, const struct call *c, int i, int64_t rows, int64_t width, const char *what);

/* Address of the values of head h of token `row` in input i, where a head is `width` wide; and of their gradient, NULL
 * if it is not wanted. */
LRNN_INLINE const real *head_in(const struct call *c, int i, int64_t row, int64_t h, int64_t width) {
    return tensor_real(c->in[i]) + row * tensor_cols(c->in[i]) + h * width;
}

LRNN_INLINE real *head_din(const struct call *c, int i, int64_t row, int64_t h, int64_t width) {
    return c->din[i] ? c->din[i] + row * tensor_cols(c->in[i]) + h * width : NULL;
}

/* put(), unless the gradient is not wanted (d NULL). */
LRNN_INLINE void put_wanted(const struct call *c, int i, real *d, int64_t at, real v) {
    if (d) put(d + at, call_accumulates(c, i), v);
}

/* --- CPU twins: pairs of a sequence and a head are cut into a few groups of one scratch area each ------------ */

/* One pass of head h of sequence b, with its group's scratch; `shared` is the argument of dag_each_head. */
typedef void dag_head(const struct call *c, enum pass pass, const void *shared, int64_t b, int64_t h,
                      struct scratch own);

/* Number of groups for H heads. A kernel's `workspace` asks for the arrays of so many groups. */
int64_t dag_groups(const struct call *c, int64_t H);

/* Calls `head` for all heads of all sequences, in parallel if `work` (about the number of multiplications) is large
 * enough. The groups divide the rest of the scratch `all` among them. */
void dag_each_head(const struct call *c, enum pass pass, int64_t H, int64_t work, struct scratch all, dag_head *head,
                   const void *shared);

/* Like dag_each_head, for a pass that needs no shared data; takes the whole scratch of the call. */
typedef void dag_pass(const struct call *c, int64_t b, int64_t h, struct scratch own);
void dag_each_pass(const struct call *c, enum pass pass, int64_t H, dag_pass *one);

/* States are cut into tiles of LANES rows and LANES columns (kernels/lib/simd.h), padded with zeros. */
#define TILE (LANES * LANES)

/* sum_i a[i] b[i] */
FORCE_INLINE real dot_product(int64_t n, const real *a, const real *b) {
    real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum = real_fma(a[i], b[i], sum);
    return sum;
}

/* y[i] += a x[i] */
FORCE_INLINE void add_scaled(int64_t n, real a, const real *x, real *y) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] = real_fma(a, x[i], y[i]);
}

/* d[i] = or += x[i]; does nothing if d is NULL. */
FORCE_INLINE void put_row(real *d, bool accumulate, int64_t n, const real *x) {
    if (!d) return;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) d[i] = accumulate ? d[i] + x[i] : x[i];
}

#ifdef __cplusplus
}
#endif
#endif

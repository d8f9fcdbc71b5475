/* dag_state.h - code that the kernels of the pLSTM recurrences share.
 *
 * All are one recurrence on the edges of a directed acyclic graph (pLSTM, Eq. 1 and 2). Edge e leads from the node
 * tail(e) to a node n. It has the gates S, M and a state C_e of dk x dv numbers per head. A pair of edges e', e has the
 * gate T_{e'e}. Node n has the vectors q, k, v and the gate D:
 *   C_e = sum over the edges e' into tail(e) of T_{e'e} C_{e'} + S_e k_tail v_tail^T
 *   y_n = scale * ( sum over the edges e into n of M_e C_e^T q_n + D_n (q_n . k_n) v_n )
 * scan_plstm is for a path: one edge per step, with J states that a J x J transition couples. grid_scan is for a grid
 * in four directions, dag_scan for any graph. A path with one state is scan_outer (kernels/matrix/state.h); Mamba2 uses
 * this op too. Tests compare the special cases with dag_scan. Memory: q, k (B,T,H*dk), v, y (B,T,H*dv), where the
 * numbers of a head are neighbours; a state is [dk][dv]. */
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

/* For op->infer: checks inputs 0 to 2, which must be q and k (B,T,H*dk) and v (B,T,H*dv). Sets the graph's error and
 * returns false if they are not. */
bool infer_dag_state(struct graph *g, const struct call *c, int64_t H);

/* Checks that input i is (B,rows,width). `what` is its name in the error message. */
bool infer_gate(struct graph *g, const struct call *c, int i, int64_t rows, int64_t width, const char *what);

/* Return the address of the values of head h of token `row` in input i, or of their gradient (NULL: not wanted). A head
 * has `width` values. */
LRNN_INLINE const real *head_in(const struct call *c, int i, int64_t row, int64_t h, int64_t width) {
    return tensor_real(c->in[i]) + row * tensor_cols(c->in[i]) + h * width;
}

LRNN_INLINE real *head_din(const struct call *c, int i, int64_t row, int64_t h, int64_t width) {
    return c->din[i] ? c->din[i] + row * tensor_cols(c->in[i]) + h * width : NULL;
}

/* Stores v by put(). Does nothing if d is NULL, because then the gradient is not wanted. */
LRNN_INLINE void put_wanted(const struct call *c, int i, real *d, int64_t at, real v) {
    if (d) put(d + at, call_accumulates(c, i), v);
}

/* --- CPU: all heads of all sequences are divided into a few groups, each with its own scratch memory -------------- */

/* Computes one pass of head h of sequence b. `own` is its group's scratch; `shared` is the argument of dag_each_head.
 */
typedef void dag_head(const struct call *c, enum pass pass, const void *shared, int64_t b, int64_t h,
                      struct scratch own);

/* Returns the number of groups for H heads. A kernel's `workspace` asks for the arrays of so many groups. */
int64_t dag_groups(const struct call *c, int64_t H);

/* Calls `head` for all heads of all sequences, in parallel if `work` (about the number of multiplications) is large
 * enough. Each group gets an equal part of the scratch `all`. */
void dag_each_head(const struct call *c, enum pass pass, int64_t H, int64_t work, struct scratch all, dag_head *head,
                   const void *shared);

/* Like dag_each_head, for a pass that needs no shared data. It divides the whole scratch of the call. */
typedef void dag_pass(const struct call *c, int64_t b, int64_t h, struct scratch own);
void dag_each_pass(const struct call *c, enum pass pass, int64_t H, dag_pass *one);

/* States are cut into tiles of LANES rows and LANES columns (kernels/lib/simd.h), padded with zeros. */
#define TILE (LANES * LANES)

/* Returns sum_i a[i] b[i]. */
FORCE_INLINE real dot_product(int64_t n, const real *a, const real *b) {
    real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum = real_fma(a[i], b[i], sum);
    return sum;
}

/* Computes y[i] += a x[i]. */
FORCE_INLINE void add_scaled(int64_t n, real a, const real *x, real *y) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] = real_fma(a, x[i], y[i]);
}

/* Computes d[i] = x[i], or d[i] += x[i] if `accumulate`. Does nothing if d is NULL. */
FORCE_INLINE void put_row(real *d, bool accumulate, int64_t n, const real *x) {
    if (!d) return;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) d[i] = accumulate ? d[i] + x[i] : x[i];
}

#ifdef __cplusplus
}
#endif
#endif

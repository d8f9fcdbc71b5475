/* flow.h - homogeneous recurrences y_t = (I + A_t) y_{t-1} without an input term (SLiCE); y_0 is given. Also the ops
 * that make their generators A: log-signatures, brackets, exponentials. Shapes as in kernels/kernel.h. With s = A_t
 * y_{t-1}, a step moves each element by c tanh(s / c), where c = `clip`; if `clip` is 0, by s (clip.h). */
#ifndef LRNN_KERNELS_FLOW_FLOW_H
#define LRNN_KERNELS_FLOW_FLOW_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/flow/list.def"

/* A_t is block diagonal with N blocks of m (m = 1: diagonal, N = 1: dense): a (B,T,m*m*N), element (i*m+j)*N + k is row
 * i, column j of block k; y0 (B, N*m) -> y (B,T, N*m), both with element k*m + i. At t = 0, a is not read. */
struct tensor *scan_flow(struct graph *g, struct tensor *a, struct tensor *y0, int64_t N, int64_t m, double clip);

/* A_t = diag(d_t) + U_t V_t^T of rank r: d (B,T,D); u, v (B,T,r*D), element q*D + i; y0 (B,D) -> y (B,T,D). */
struct tensor *scan_dplr(struct graph *g, struct tensor *d, struct tensor *u, struct tensor *v, struct tensor *y0,
                         double clip);

/* A_t = H diag(d_t), where H is the symmetric orthogonal Sylvester-Hadamard matrix H[i][j] = (-1)^popcount(i & j) /
 * sqrt(D), and D a power of two: d (B,T,D), y0 (B,D) -> y (B,T,D). */
struct tensor *scan_hadamard(struct graph *g, struct tensor *d, struct tensor *y0, double clip);

/* E = exp(L) - I of every block: l (rows,m*m*N), blocks as above -> e likewise. With E as its generators, scan_flow
 * computes the exact flows exp(L). */
struct tensor *expm_flow(struct graph *g, struct tensor *l, int64_t N, int64_t m);

/* The log-signature of depth 1 or 2 of a piecewise-linear path, for each interval of `interval` steps; the last one may
 * be shorter. Row t >= 1 of w (B,T,C) is the increment of step t; row 0, where the path starts, is not read. ->
 * (B,1+K,S), K = ceil((T-1) / interval): row k >= 1 is for interval k, and row 0 is 0, as scan_flow needs it. An
 * interval with points p_0 .. p_n has the C letters l = p_n - p_0. At depth 2 the signed areas a_ij = 1/2 sum_k ((p_k -
 * p_0)_i d_j - (p_k - p_0)_j d_i), d = p_{k+1} - p_k, follow for i < j in lexicographic order (S = C + C(C-1)/2). */
struct tensor *log_signature(struct graph *g, struct tensor *w, int64_t interval, int depth);
int64_t log_signature_size(int64_t C, int depth);             /* S */
int64_t log_signature_intervals(int64_t T, int64_t interval); /* K */

/* The generators for a log-signature of depth 2: a (m*m*N,C), column c the generator A_c in scan_flow's layout ->
 * (m*m*N,S), the generators of the letters, then the brackets A_j A_i - A_i A_j of each block. Like a, the result is
 * the weight of a linear map. */
struct tensor *brackets(struct graph *g, struct tensor *a, int64_t N, int64_t m);

/* Turns diagonal-plus-low-rank generators into dense ones: A_c = diag(d_c) + U_c V_c^T for each letter c. d (D,C); u, v
 * (r*D,C), row q*D + i -> a (D*D,C), one block of D as `brackets` takes it: the weight of a linear map. */
struct tensor *dense_generators(struct graph *g, struct tensor *d, struct tensor *u, struct tensor *v);

#define EXPM_MAX 16 /* largest J of expm_skew and sandwich */

/* U = expm(A - A^T), orthogonal: a (rows,n*J*J), n matrices per row -> u as a. */
struct tensor *expm_skew(struct graph *g, struct tensor *a, int64_t J);

/* T = U diag(e) W: u, w (rows,n*J*J), e (rows,n*J) -> t as u. */
struct tensor *sandwich(struct graph *g, struct tensor *u, struct tensor *e, struct tensor *w, int64_t J);

/* --- attributes of a call, for its kernels ------------------------------------------------------------------------ */

struct flow_attr {
    int64_t N, m; /* scan_flow: blocks and their size; 0 in the other scans */
    double clip;
};

LRNN_INLINE const struct flow_attr *flow_attr(const struct call *c) {
    return (const struct flow_attr *)c->attr;
}

struct log_signature_attr {
    int64_t interval;
    int depth;
};

LRNN_INLINE const struct log_signature_attr *log_signature_attr(const struct call *c) {
    return (const struct log_signature_attr *)c->attr;
}

struct brackets_attr {
    int64_t N, m;
};

LRNN_INLINE const struct brackets_attr *brackets_attr(const struct call *c) {
    return (const struct brackets_attr *)c->attr;
}

/* Attributes for matrices of n = J*J elements. N neighbours are interleaved: element e of matrix number q is at expm_at
 * + e*N. With `flow` the result is exp(A) - I, else exp(A - A^T). */
struct expm_attr {
    int64_t J, N;
    bool flow;
};

LRNN_INLINE const struct expm_attr *expm_attr(const struct call *c) {
    return (const struct expm_attr *)c->attr;
}

#ifdef __cplusplus
}
#endif
#endif

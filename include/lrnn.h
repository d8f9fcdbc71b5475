/* lrnn.h - scans of structured linear recurrences as a library: forward and gradient, on arrays of the caller.
 *
 * An op is a descriptor and three functions:
 *
 *     lrnn_scan_block d;                                 sizes, pointers and strides
 *     LRNN_INIT(d);
 *     lrnn_scan_block_workspace(&d, LRNN_FORWARD, &n);   bytes of workspace that this call needs
 *     lrnn_scan_block_forward(&d);                       reads data, writes data of outputs
 *     lrnn_scan_block_backward(&d);                      reads data, gradients of outputs; writes gradients of inputs
 *
 * The gradient of some ops needs values that are not among the outputs: the states of scan_lstm and scan_outer, and in
 * all ops values at an initial state. Backward computes them again, unless the forward pass stores them in an array
 * `kept` of the bytes that lrnn_scan_block_workspace(&d, LRNN_KEPT, &n) gives; 0: there is nothing to keep.
 *
 * Shapes: B batch, T length, N blocks or channels, m block size, H heads, dk and dv width of keys and values. An array
 * of shape (B,T,W) has one stride for each of its three axes, in elements; W joins the remaining axes, which are
 * contiguous. If W has parts, their index order is given.
 *
 * Every function returns LRNN_OK or an error, for which lrnn_last_error() gives a sentence to the calling thread. After
 * an error nothing was written. Nothing is printed. The caller owns all memory, arrays and workspace; only the matrix
 * products of scan_lstm and grid_scan allocate, inside oneDNN or OpenBLAS. Any number of threads may call at once.
 * Results are the same bits at any number of threads.
 *
 * On LRNN_CUDA all arrays, the workspace and `kept` are in memory of the device, offsets in the host's. A call queues
 * its work on the stream and returns; a failure of that work is told by a later call of CUDA. The first call with a
 * stream waits for it and takes 32 MB of device memory, so it belongs before the capture of a graph. A library that was
 * built without CUDA returns LRNN_UNSUPPORTED.
 *
 * liblrnn.so works in float and takes LRNN_F32 and LRNN_BF16; liblrnn-f64.so has the same functions in double and takes
 * LRNN_F64. */
#ifndef LRNN_INCLUDE_LRNN_H
#define LRNN_INCLUDE_LRNN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LRNN_API __attribute__((visibility("default")))
#else
#define LRNN_API
#endif

typedef enum lrnn_status {
    LRNN_OK = 0,
    LRNN_BAD_ARGUMENT = 1, /* an invalid size, stride, pointer or dtype, or arrays that overlap */
    LRNN_UNSUPPORTED = 2,  /* valid, but not in this library: a dtype, a device, a size without a kernel */
    LRNN_NO_WORKSPACE = 3, /* the workspace is missing, too small or not aligned to 64 bytes */
    LRNN_DEVICE_FAILED = 4 /* a call of CUDA failed: the device, its driver or its memory */
} lrnn_status;

typedef enum lrnn_dtype { LRNN_F32 = 0, LRNN_BF16 = 1, LRNN_F64 = 2 } lrnn_dtype;
typedef enum lrnn_device { LRNN_CPU = 0, LRNN_CUDA = 1 } lrnn_device;
typedef enum lrnn_pass { LRNN_FORWARD = 0, LRNN_BACKWARD = 1, LRNN_KEPT = 2 } lrnn_pass;

/* The last error of the calling thread as one sentence; "" if there was none. Valid until the thread's next call. */
LRNN_API const char *lrnn_last_error(void);

/* "0.1.0" */
LRNN_API const char *lrnn_version(void);

/* Names of the ops, one per line, in the order of this header. */
LRNN_API const char *lrnn_ops(void);

/* An array of the caller, and its gradient. data NULL: an optional array is absent. grad NULL: the gradient is not
 * wanted (inputs) or zero (outputs). Strides are in elements; all zero means a dense array, last axis fastest. Written
 * arrays must not overlap any other array of the call. */
typedef struct lrnn_array {
    void *data, *grad;
    int64_t strides[3], grad_strides[3];
} lrnn_array;

/* The common beginning of all descriptors. */
typedef struct lrnn_call {
    size_t size;     /* sizeof of the whole descriptor, so that later versions can add fields: LRNN_INIT sets it */
    int32_t dtype;   /* lrnn_dtype of all arrays */
    int32_t device;  /* lrnn_device of all arrays and the workspace */
    int32_t index;   /* of the CUDA device */
    int32_t threads; /* on the CPU; 0: OpenMP's default */
    void *stream;    /* CUDA stream (cudaStream_t); NULL: the default stream */
    void *workspace; /* aligned to 64 bytes; may be NULL if 0 bytes are needed */
    size_t workspace_bytes;
    int64_t batch, length; /* B, T */
    /* NULL, or batch + 1 non-decreasing numbers in host memory, from 0: sequences of unequal length, one after another.
     * Sequence b has the tokens offsets[b] to offsets[b + 1] - 1 of arrays (T,W), where T = length = offsets[batch].
     * The first stride of such an array, for the batch, is not read. Not for grid_scan, dag_scan and tree_solve.
     */
    const int64_t *offsets;
    void *kept; /* aligned to 64 bytes: written by the forward pass, read by the backward pass of the same
                           descriptor; NULL: backward computes the values again */
    size_t kept_bytes;
    void *reserved[2]; /* NULL: room for later versions */
} lrnn_call;

/* Initialises a descriptor: zeros, except its size. */
#define LRNN_INIT(d) lrnn_init(&(d), sizeof(d))
static inline void lrnn_init(void *descriptor, size_t size) {
    memset(descriptor, 0, size);
    *(size_t *)descriptor = size;
}

/* The functions of an op. workspace: the bytes that a pass needs; it reads no array, but it needs the addresses, which
 * decide what is copied. forward writes outputs and last states, backward gradients of inputs and of first states.
 * Written arrays, workspace and `kept` must not overlap each other or another array; arrays that a pass only reads may.
 *   LRNN_BAD_ARGUMENT   a size or choice out of its range; an address that is NULL, or not aligned to its elements;
 *                       strides that let a written array overlap itself, or that reach too far; offsets or links that
 *                       are not as described; `kept` of another call; backward without the gradient of any output
 *   LRNN_UNSUPPORTED    a dtype or device that this library has not; offsets where the op takes none; a field of a
 *                       later version
 *   LRNN_NO_WORKSPACE, LRNN_DEVICE_FAILED: as above; the first also of `kept`
 * Sizes are at least 1, and at most 2^31 - 1: m, rank and the numbers of heads 2^15, key, value, rows, columns and the
 * width of scan_lstm, arity and levels 2^22, edges and pairs 2^28 - 1. A descriptor names smaller limits. */
#define LRNN_OP(op)                                                                                                    \
    LRNN_API lrnn_status lrnn_##op##_workspace(const lrnn_##op *d, lrnn_pass pass, size_t *bytes);                     \
    LRNN_API lrnn_status lrnn_##op##_forward(const lrnn_##op *d);                                                      \
    LRNN_API lrnn_status lrnn_##op##_backward(const lrnn_##op *d)

/* --- gated recurrences ---------------------------------------------------------------------------------------------*/

/* h_t = a_t * h_{t-1} + x_t, elementwise (minGRU, arXiv 2410.01201). */
typedef struct lrnn_scan_diag {
    lrnn_call call;
    int64_t width;    /* W */
    int32_t constant; /* 1: a is one vector (W) for all tokens; 0: a is (B,T,W) */
    int32_t reserved;
    lrnn_array a, x; /* in: transition; input (B,T,W) */
    lrnn_array h;    /* out: (B,T,W) */
    lrnn_array h0;   /* in, optional: state before the first token (B,W), else 0 */
    lrnn_array last; /* out, optional: state after the last token (B,W) */
} lrnn_scan_diag;
LRNN_OP(scan_diag);

/* Like scan_diag over complex numbers, with a separate array for each plane (LRU, Orvieto et al. 2023; S5, arXiv
 * 2208.04933). */
typedef struct lrnn_scan_diag_complex {
    lrnn_call call;
    int64_t width;
    int32_t constant;
    int32_t reserved;
    lrnn_array a_re, a_im, x_re, x_im;
    lrnn_array h_re, h_im;
    lrnn_array h0_re, h0_im, last_re, last_im; /* as in scan_diag; h0_re and h0_im both or none */
} lrnn_scan_diag_complex;
LRNN_OP(scan_diag_complex);

/* Normalisers of a row of m + 1 raw gates z: a_j = f(z_j) / sum_l f(z_l), f = exp, logistic, max(0, .); none: a = z
 * (BD-LRU and H-LRU, arXiv 2602.12021, Eq. 6). */
typedef enum lrnn_gate { LRNN_SOFTMAX = 0, LRNN_SIGMOID = 1, LRNN_RELU = 2, LRNN_NONE = 3 } lrnn_gate;

/* BD-LRU (arXiv 2602.12021, section 2), blocks of m states:
 *     h_t[i] = sum_j a_t[i][j] h_{t-1}[j] + a_t[i][m] v_t[i]
 * z (B,T, m*(m+1)*N): element (i*(m+1) + j)*N + k is gate j of row i of block k. v, h (B,T, m*N): element i*N + k. */
typedef struct lrnn_scan_block {
    lrnn_call call;
    int64_t blocks, m; /* N >= 1, m >= 1 */
    int32_t gate;      /* lrnn_gate */
    int32_t reserved;
    lrnn_array z, v;     /* in */
    lrnn_array h;        /* out */
    lrnn_array h0, last; /* as in scan_diag: (B, m*N) */
} lrnn_scan_block;
LRNN_OP(scan_block);

/* H-LRU (arXiv 2602.12021, Eq. 3), m states per channel:
 *     companion: s_t[0] = sum_i a_t[i] s_{t-1}[i] + a_t[m] v_t;  s_t[i] = s_{t-1}[i-1]
 *     observer:  s_t[i] = a_t[i] s_{t-1}[0] + s_{t-1}[i+1] (+ a_t[m] v_t where i = 0)
 * z (B,T, (m+1)*N): element j*N + k is the gate of lag j + 1 of channel k, j = m the input's gate. v (B,T,N).
 * s (B,T, m*N): element i*N + k. */
typedef struct lrnn_scan_companion {
    lrnn_call call;
    int64_t channels, m;
    int32_t gate;
    int32_t observer; /* 1: the observer layout */
    lrnn_array z, v;
    lrnn_array s;
    lrnn_array s0, last; /* (B, m*N); s0 costs m more tokens per sequence, in the observer layout m + 1 */
} lrnn_scan_companion;
LRNN_OP(scan_companion);

/* LSTM (Hochreiter & Schmidhuber 1997) with PyTorch's gates i, f, g, o: p_t = u_t + wh h_{t-1} + bh, c_t = sig(f)
 * c_{t-1} + sig(i) tanh(g), h_t = sig(o) tanh(c_t). u (B,T,4W) = wx x_t + bx, wh (4W,W), bh (4W) -> h (B,T,W). The
 * state after a token is its h and its c. */
typedef struct lrnn_scan_lstm {
    lrnn_call call;
    int64_t width; /* W */
    lrnn_array u, wh, bh;
    lrnn_array h;
    lrnn_array h0, c0; /* in, optional, both or none: state before the first token (B,W), else 0 */
    lrnn_array c;      /* out, optional: (B,T,W) */
} lrnn_scan_lstm;
LRNN_OP(scan_lstm);

/* --- matrix states -------------------------------------------------------------------------------------------------*/

/* One dk x dv matrix per head, updated by outer products (linear attention; Mamba2, Dao & Gu 2024):
 *     C_t = decay_t C_{t-1} + source_t k_t v_t^T;  o_t = scale C_t^T q_t
 * q, k (B,T, G*dk), each of the G groups shared by H / G neighbouring heads; v, o (B,T, H*dv), head after head;
 * decay (B,T,H); source (B,T,H), or absent: 1. */
typedef struct lrnn_scan_outer {
    lrnn_call call;
    int64_t heads, groups, key, value; /* H, G, dk, dv */
    double scale;
    lrnn_array q, k, v, decay, source;
    lrnn_array o;
    lrnn_array c0, last; /* (B, H*dk*dv): element (h*dk + i)*dv + j. Each costs dk more tokens per sequence. Not with
                            groups < heads */
} lrnn_scan_outer;
LRNN_OP(scan_outer);

/* Delta rules, one dk x dv matrix S per head. At each token S <- Diag(decay_t) S once, then for the steps j = 0, 1, ...
 *     with beta:            S <- S + k_j (rate beta_j (v_j - S^T k_j))^T
 *     with read:            S <- S + k_j (v_j - rate S^T read_j)^T
 *     with read and erase:  S <- S + k_j v_j^T - erase_j (rate S^T read_j)^T
 *     with none of them:    S <- S + k_j v_j^T
 * then o_t = scale S^T q_t. DeltaNet (arXiv 2406.06484) has beta, Gated DeltaNet (2412.06464) and decay, KDA
 * (2510.26692) one decay per channel, DeltaProduct (2502.10297) several steps; RWKV-7 (2503.14456) has read and erase,
 * GLA (2312.06635) none of these. q (B,T, H*dk); k, read, erase (B,T, steps*H*dk); v (B,T, steps*H*dv); beta (B,T,
 * steps*H), step outermost; decay (B,T,H), or (B,T, H*dk) if channels = 1. beta, decay (1), read and erase may be
 * absent. o (B,T, H*dv). */
typedef struct lrnn_scan_delta {
    lrnn_call call;
    int64_t heads, steps, key, value; /* H, steps <= 64, dk, dv */
    double scale, rate;
    int32_t channels; /* 1: decay has one number per key channel; 0: one per head */
    int32_t reserved;
    lrnn_array q, k, v, beta, decay, read, erase;
    lrnn_array o;
    lrnn_array s0, last; /* as c0 and last of scan_outer; only with steps = 1 */
} lrnn_scan_delta;
LRNN_OP(scan_delta);

/* pLSTM on a sequence (arXiv 2506.11997), J states per head:
 *     y_t = scale (sum_j M_t[j] C_{t-1}[j]^T q_t + D_t (q_t . k_t) v_t)
 *     C_t[i] = sum_j T_t[i][j] C_{t-1}[j] + S_t[i] k_t v_t^T
 * q, k (B,T, H*dk), v, y (B,T, H*dv); source S, mark M (B,T, H*J); transition T (B,T, H*J*J), element (h*J + i)*J + j;
 * direct D (B,T,H). J <= 16. c0 and last as in scan_outer; each costs J*dk more tokens per sequence. */
typedef struct lrnn_scan_plstm {
    lrnn_call call;
    int64_t heads, states, key, value; /* H, J, dk, dv */
    double scale;
    lrnn_array q, k, v, source, transition, mark, direct;
    lrnn_array y;
    lrnn_array c0, last; /* (B, H*J*dk*dv): element ((h*J + j)*dk + i)*dv + v */
} lrnn_scan_plstm;
LRNN_OP(scan_plstm);

/* pLSTM (arXiv 2506.11997) on a grid of X x Y nodes, node (r,s) at r*Y + s, four directions summed; directions are bit
 * 0: first axis flipped, bit 1: second axis flipped:
 *     y = scale (sum (Ml l + Mu u)^T q + D (q.k) v),  Cr = rl l + ru u + Sr k v^T,  Cd = dl l + du u + Sd k v^T
 * where l is Cr of the previous node on the first axis, and u is Cd of the previous node on the second. T = X*Y. q, k
 * (B,T, H*dk), v, y (B,T, H*dv); gates (B,T, 8*4*H): planes Sr, Sd, rl, ru, dl, du, Ml, Mu, in each the element
 * direction*H + h; direct D (B,T,H). */
typedef struct lrnn_grid_scan {
    lrnn_call call;
    int64_t rows, columns, heads, key, value; /* X, Y, H, dk, dv */
    double scale;
    lrnn_array q, k, v, gates, direct;
    lrnn_array y;
} lrnn_grid_scan;
LRNN_OP(grid_scan);

/* pLSTM (arXiv 2506.11997) on a directed acyclic graph of T nodes, another one in each sequence; states C_e on its
 * edges:
 *     C_e = sum over pairs (e',e) of T_{e'e} C_{e'} + S_e k_t v_t^T, t the tail of e
 *     y_n = scale (sum over edges e into n of M_e C_e^T q_n + D_n (q_n . k_n) v_n)
 * links (B, 2*edges + 3*pairs), dense, in the memory of the arrays: for each edge its tail and its head, tail < head,
 * ascending by (tail, head); then for each pair of edges that follow each other their indices e' < e, and -1 if the
 * form `tree` leaves the pair out, else 0. Rows that a graph lacks are -1. Other links are refused; on LRNN_CUDA a
 * forward pass waits for the stream to read them, and a backward pass does not look. reversed: edges lead from head to
 * tail, pairs from e to e'. q, k (B,T, H*dk), v, y (B,T, H*dv), direct D (B,T,H); source S, mark M (B,edges,H);
 * transition T (B,pairs,H). */
typedef struct lrnn_dag_scan {
    lrnn_call call;
    int64_t heads, key, value; /* H, dk, dv */
    int64_t edges, pairs;      /* >= 1: the most that a graph has */
    double scale;
    int32_t reversed, tree;
    const int32_t *links;
    lrnn_array q, k, v, source, mark, transition, direct;
    lrnn_array y;
} lrnn_dag_scan;
LRNN_OP(dag_scan);

/* --- flows (SLiCE, arXiv 2505.17761): y_t = (I + A_t) y_{t-1}, y_{-1} = y0; A at t = 0 is not read -----------------*/

/* A_t block diagonal, N blocks of m (m = 1: diagonal, N = 1: dense). a (B,T, m*m*N): element (i*m + j)*N + k is row i,
 * column j of block k. y0 (B, N*m), y (B,T, N*m): element k*m + i. */
typedef struct lrnn_scan_flow {
    lrnn_call call;
    int64_t blocks, m;
    lrnn_array a, y0;
    lrnn_array y;
} lrnn_scan_flow;
LRNN_OP(scan_flow);

/* A_t = diag(d_t) + U_t V_t^T of rank r: d (B,T,W); u, v (B,T, r*W), element q*W + i; y0 (B,W), y (B,T,W). */
typedef struct lrnn_scan_dplr {
    lrnn_call call;
    int64_t width, rank;
    lrnn_array d, u, v, y0;
    lrnn_array y;
} lrnn_scan_dplr;
LRNN_OP(scan_dplr);

/* A_t = Q diag(d_t), Q[i][j] = (-1)^popcount(i & j) / sqrt(W), W a power of two: d (B,T,W), y0 (B,W), y (B,T,W). */
typedef struct lrnn_scan_hadamard {
    lrnn_call call;
    int64_t width;
    lrnn_array d, y0;
    lrnn_array y;
} lrnn_scan_hadamard;
LRNN_OP(scan_hadamard);

/* --- trees ---------------------------------------------------------------------------------------------------------*/

/* A linear system on a perfect tree of arity k and L levels (Myosotis, arXiv 2509.20503, section 3.5), over complex
 * numbers, W systems side by side: x_v + b_v x_parent(v) + sum over children c of c_c x_c = u_v. Nodes are stored by
 * level, leaves first: the children of node i of a level are nodes k*i to k*i + k-1 of the previous level.
 *     b = beta theta / sqrt(1 + |theta|^2), beta = 0: b = theta
 *     hermitian: c = conj(b); skew: c = -conj(b); free: c from `down` like b from `up`
 * u, x (B,nodes,W); up, down (B,nodes,W): a theta for each child; the root's row is not used.
 * T = nodes = 1 + k + ... */
typedef enum lrnn_tree_form { LRNN_HERMITIAN = 0, LRNN_SKEW = 1, LRNN_FREE = 2 } lrnn_tree_form;
typedef struct lrnn_tree_solve {
    lrnn_call call;
    int64_t arity, levels, width;
    double beta;
    int32_t form; /* lrnn_tree_form */
    int32_t reserved;
    lrnn_array up_re, up_im, down_re, down_im, u_re, u_im; /* down: only in the free form */
    lrnn_array x_re, x_im;
} lrnn_tree_solve;
LRNN_OP(tree_solve);

#ifdef __cplusplus
}
#endif
#endif

/* kernel.h - the ops of the suite, and their registry.
 *
 * Each function records one op on the graph and returns its first output (further outputs where it says so); it computes
 * nothing. Shapes: B batch, T length, D width, N blocks or channels, m block size, V vocabulary. "rows" are all leading
 * axes together. Errors (shapes that do not fit) go to the graph and surface in graph_plan. NULL tensors pass through.
 *
 * Adding an op or a kernel = one new file and one line in list.def. */
#ifndef LRNN_KERNELS_KERNEL_H
#define LRNN_KERNELS_KERNEL_H

#include "core/graph.h"
#include "core/schedule.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- registry -------------------------------------------------------------------------------------------------- */

const struct op *const *op_list(void);         /* NULL-terminated, in the order of list.def */
const struct kernel *const *kernel_list(void); /* NULL-terminated, in order of preference */
const struct op *op_find(const char *name);
const struct kernel *kernel_find(const char *name);
const struct kernel *kernel_reference(const struct op *op);

#define OP(name)          extern const struct op op_##name;
#define KERNEL(name)      extern const struct kernel kernel_##name;
#define KERNEL_CUDA(name) extern const struct kernel kernel_##name;
#include "kernels/list.def"
#undef OP
#undef KERNEL
#undef KERNEL_CUDA

/* --- dense and elementwise ------------------------------------------------------------------------------------- */

/* y = x W^T + b: x (rows,I), w [O][I], b [O] or NULL -> y (rows,O), leading axes as x. */
struct tensor *linear(struct graph *g, struct tensor *x, struct tensor *w, struct tensor *b);

/* y[r][c] = x[r][c] + b[c]: x (rows,C), b [C]. */
struct tensor *bias(struct graph *g, struct tensor *x, struct tensor *b);

/* y[r][c] = x[r][c] * s[c]: x (rows,C), s [C]. */
struct tensor *scale(struct graph *g, struct tensor *x, struct tensor *s);

/* y[b][t][c] = p[c]: p [C] repeated over B x T rows (gates that do not depend on the input). */
struct tensor *repeat_rows(struct graph *g, struct tensor *p, int64_t B, int64_t T);

/* y = a + b, same shape. */
struct tensor *add(struct graph *g, struct tensor *a, struct tensor *b);

/* y = a - b, same shape. */
struct tensor *sub(struct graph *g, struct tensor *a, struct tensor *b);

/* y = a * b elementwise, same shape. */
struct tensor *mul(struct graph *g, struct tensor *a, struct tensor *b);

enum activation {
    ACT_RELU,
    ACT_SIGMOID,
    ACT_TANH,
    ACT_SILU,
    ACT_GELU_TANH,
    ACT_GELU_ERF,
    ACT_SOFTPLUS,
    ACT_EXP,
    ACT_NEG,
    ACT_SIN,
    ACT_COS,
    ACT_COUNT
};
extern const char *const activation_names[ACT_COUNT]; /* "relu", "sigmoid", ... */

/* y = f(x) elementwise. */
struct tensor *activate(struct graph *g, struct tensor *x, enum activation f);

/* y = silu(a) * b elementwise, same shape (the SwiGLU product, one pass over memory). */
struct tensor *silu_mul(struct graph *g, struct tensor *a, struct tensor *b);

/* RMSNorm over the last axis: y = x * rsqrt(mean(x^2) + eps) * w, w [D]. */
struct tensor *rmsnorm(struct graph *g, struct tensor *x, struct tensor *w, double eps);

/* LayerNorm over the last axis, biased variance: y = (x - mean) * rsqrt(var + eps) * w + b, w [D], b [D]. */
struct tensor *layernorm(struct graph *g, struct tensor *x, struct tensor *w, struct tensor *b, double eps);

/* y[r] = table[ids[r]]: ids (B,T) in [0,V), table [V][D] -> (B,T,D). */
struct tensor *embedding(struct graph *g, struct tensor *ids, struct tensor *table);

/* Inverted dropout: y = x * keep/(1-p), keep regenerated from (seed, step, call index, element); the identity (x itself)
 * in evaluation graphs and for p == 0. */
struct tensor *dropout(struct graph *g, struct tensor *x, double p);

/* Mean cross-entropy in nats over targets != IGNORED: logits (rows,V), targets (rows) ids -> loss [1].
 * *predictions, if not NULL, receives an int32 (rows) tensor: argmax of each row, the lowest id on ties. The mean over
 * no scored position is 0. */
struct tensor *cross_entropy(struct graph *g, struct tensor *logits, struct tensor *targets,
                             struct tensor **predictions);

/* --- recurrences ------------------------------------------------------------------------------------------------
 * Gate normalisers (P1 Eq. 6 of spec/lru-slice-baselines.md 4): p = f(z), a = p / sum p over the m+1 entries of a row. */
enum gate { GATE_SOFTMAX, GATE_SIGMOID, GATE_RELU, GATE_NONE, GATE_COUNT };
extern const char *const gate_names; /* "softmax sigmoid relu none" */

/* BD-LRU: h_t[i] = sum_j a_t[i][j] h_{t-1}[j] + a_t[i][m] v_t[i] per block, gates normalised per row i; h_{-1} = 0.
 * z (B,T, m*(m+1)*N) raw gates, element ((i*(m+1)+j)*N + k) of block k: gate-major, block index fastest.
 * v (B,T, m*N) element i*N + k -> h (B,T, m*N) likewise. */
struct tensor *scan_block(struct graph *g, struct tensor *z, struct tensor *v, int64_t N, int64_t m, enum gate gate);

/* H-LRU, state s of m values a channel, s_{-1} = 0; gates z (B,T,(m+1)*N), element j*N + k: lag j+1 for j<m, input gate
 * j=m; v (B,T,N) -> s (B,T, m*N), element i*N + k.
 * companion (P1 Eq. 3): s_t[0] = sum_i a_t[i] s_{t-1}[i] + a_t[m] v_t, s_t[i] = s_{t-1}[i-1].
 * observer (the App. G listing, its transpose): s_t[i] = a_t[i] s_{t-1}[0] + s_{t-1}[i+1] (+ a_t[m] v_t for i=0). */
enum companion_layout { LAYOUT_COMPANION, LAYOUT_OBSERVER };
struct tensor *scan_companion(struct graph *g, struct tensor *z, struct tensor *v, int64_t N, int64_t m, enum gate gate,
                              enum companion_layout layout);

/* Diagonal recurrence h_t = a_t * h_{t-1} + x_t, h_{-1} = 0, elementwise over N channels.
 * x (B,T,N); a (B,T,N), or [N] for a transition that is constant over time and batch -> h (B,T,N). */
struct tensor *scan_diag(struct graph *g, struct tensor *a, struct tensor *x);

/* The same over complex numbers held as two real tensors each (re, im planes); *h_im receives the imaginary plane. */
struct tensor *scan_diag_complex(struct graph *g, struct tensor *a_re, struct tensor *a_im, struct tensor *x_re,
                                 struct tensor *x_im, struct tensor **h_im);

/* LSTM recurrence (PyTorch gates i,f,g,o): p_t = u_t + wh h_{t-1} + bh; c_t = sig(f) c_{t-1} + sig(i) tanh(g);
 * h_t = sig(o) tanh(c_t); zero start. u (B,T,4H) = wx x_t + bx, wh [4H][H], bh [4H] -> h (B,T,H). */
struct tensor *scan_lstm(struct graph *g, struct tensor *u, struct tensor *wh, struct tensor *bh);

/* --- optimiser: ops without gradient, recorded on the update graph ------------------------------------------------ */

/* Global L2 norm of the flat gradient (n floats), summed in a fixed tree in double -> state->grad_norm; reads the loss
 * into state->loss, adds it to loss_sum; sets state->lr from the schedule; freezes the state when loss or norm is not
 * finite. in: loss [1], grad [n]. */
struct step_attr {
    struct schedule schedule;
};
void step_begin(struct graph *g, struct tensor *loss, struct tensor *grad, const struct schedule *schedule);

/* AdamW, decoupled decay (Loshchilov & Hutter 2019), then state->step += 1; nothing but that count happens when frozen:
 * g = grad * min(1, clip / grad_norm) (clip 0 = off); m1 = b1 m1 + (1-b1) g; m2 = b2 m2 + (1-b2) g^2;
 * w -= lr * decay * w (groups PARAM_DECAY); w -= lr * (m1 / (1-b1^t)) / (sqrt(m2 / (1-b2^t)) + eps). */
struct adamw_segment {
    int64_t offset, count; /* in the flat block */
    double decay;          /* weight decay of this segment */
};
struct adamw_attr {
    double beta1, beta2, eps, clip;
    int n_segments;
    const struct adamw_segment *segments; /* ascending, disjoint; lives as long as the graph */
};
void adamw(struct graph *g, struct tensor *value, struct tensor *grad, struct tensor *moment1, struct tensor *moment2,
           const struct adamw_attr *attr);

#ifdef __cplusplus
}
#endif
#endif

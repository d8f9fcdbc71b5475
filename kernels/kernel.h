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

#define OP(name)     extern const struct op op_##name;
#define KERNEL(name) extern const struct kernel kernel_##name;
#ifdef LRNN_CUDA
#define KERNEL_CUDA(name) KERNEL(name)
#else
#define KERNEL_CUDA(name)
#endif
#include "kernels/list.def"
#undef OP
#undef KERNEL
#undef KERNEL_CUDA

/* --- dense and elementwise ------------------------------------------------------------------------------------- */

/* y = x W^T + b: x (rows,I), w [O][I], b [O] or NULL -> y (rows,O), leading axes as x. */
struct tensor *linear(struct graph *g, struct tensor *x, struct tensor *w, struct tensor *b);

/* Block-diagonal linear map, N blocks of m: y[k*m+i] = sum_j w[k*m+i][j] x[k*m+j]. x (rows,N*m), w [N*m][m] stored with the
 * input j before the output i (element (k*m+j)*m + i: struct layout {3, {N, m, m}, {0, 2, 1}}) -> y as x. */
struct tensor *linear_blocks(struct graph *g, struct tensor *x, struct tensor *w);

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

/* y = factor * x. */
struct tensor *scale_by(struct graph *g, struct tensor *x, double factor);

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

/* y = x * rsqrt(sum x^2 + eps) over the last axis; a head is a row of x (...,H,dk). */
struct tensor *l2norm(struct graph *g, struct tensor *x, double eps);

/* RMSNorm of each head: x (rows,H*width), w [H][width] -> y as x. */
struct tensor *rmsnorm_heads(struct graph *g, struct tensor *x, struct tensor *w, double eps);

/* LayerNorm of each head, biased variance, the weight stored as its difference from 1: y = (x - mean) * rsqrt(var + eps) *
 * (1 + w); shapes as rmsnorm_heads. */
struct tensor *layernorm_heads(struct graph *g, struct tensor *x, struct tensor *w, double eps);

/* Batch normalisation of x (B,T,D) over the rows in use: row t of sequence b is in use if first[t] < lengths[b] (first NULL:
 * t < lengths[b]; lengths NULL: all are). Training graphs use the batch's mean and biased variance and move the running ones,
 * running <- momentum running + (1 - momentum) batch; evaluation graphs use the running ones. All vectors [D]; mean and
 * variance are parameters of the group PARAM_CONST that forward writes. `first` [T] lives as long as the graph. */
struct batch_norm {
    struct tensor *weight, *bias, *mean, *variance, *lengths;
    const int32_t *first;
    double eps, momentum;
};
struct tensor *batch_norm(struct graph *g, struct tensor *x, const struct batch_norm *p);

/* Inverted dropout: y = x * keep/(1-p), keep regenerated from (seed, step, call index, element); the identity (x itself)
 * in evaluation graphs and for p == 0. */
struct tensor *dropout(struct graph *g, struct tensor *x, double p);

/* Mean cross-entropy in nats over targets != IGNORED: logits (rows,V), targets (rows) ids -> loss [1].
 * *predictions, if not NULL, receives an int32 (rows) tensor: argmax of each row, the lowest id on ties. The mean over
 * no scored position is 0. */
struct tensor *cross_entropy(struct graph *g, struct tensor *logits, struct tensor *targets,
                             struct tensor **predictions);

/* y [1] = sqrt(sum x^2 + sum z^2) of whole tensors; z may be NULL. The gradient is 0 where y is 0. */
struct tensor *frobenius(struct graph *g, struct tensor *x, struct tensor *z);

/* --- columns -------------------------------------------------------------------------------------------------------- */

/* Cuts x (rows, sum of widths) into `parts` <= OP_MAX_OUT tensors of neighbouring columns, widths[i] wide; leading axes
 * as x. The tensors go to out[]; all NULL after an error. */
void split(struct graph *g, struct tensor *x, int parts, const int64_t *widths, struct tensor **out);

/* y[r][c] = x[r][from + c] for c < count: x (rows,C) -> y (rows,count), leading axes as x. */
struct tensor *columns(struct graph *g, struct tensor *x, int64_t from, int64_t count);

/* y[r] = (a[r], b[r]): a (rows,P), b (rows,Q), equal leading axes -> y (rows,P+Q). */
struct tensor *join_columns(struct graph *g, struct tensor *a, struct tensor *b);

/* y[r] = factor * (1, x[r]): x (rows,C) -> y (rows,C+1). The increment of a path whose first channel is time. */
struct tensor *prepend_one(struct graph *g, struct tensor *x, double factor);

/* y[c*n + i] = p[c], i < n: p [C] -> y [C*n] (one number a head, used by all its channels). */
struct tensor *repeat_each(struct graph *g, struct tensor *p, int64_t n);

/* y[b] = (x[b], p[which]): n rows of the table p [R][D] behind the rows of x (B,T,D), which[i] = -1 for a row of zeros
 * -> (B,T+n,D). `which` lives as long as the graph. */
struct tensor *append_rows(struct graph *g, struct tensor *x, struct tensor *p, const int32_t *which, int64_t n);

/* y (B,rows,columns*D) from x (B,N,D): y[r] = (x[a] + x[b]) / 2 for each pair (a,b) of index [rows][columns][2], side by side. The
 * index lives as long as the graph (its host arena is a good place). */
struct tensor *gather_pairs(struct graph *g, struct tensor *x, const int32_t *index, int64_t rows, int64_t columns);

/* --- whole rows of sequences; lengths: ids (B), rows in use of each sequence, or NULL: all ------------------------------ */

/* y[b] = the last row in use, the mean of those in use, or the last row of all (the root of a tree): x (B,T,D) -> y (B,D); 0 where
 * there is none. */
enum pooling { POOL_LAST, POOL_MEAN, POOL_TOP };
struct tensor *pool(struct graph *g, struct tensor *x, struct tensor *lengths, enum pooling how);

/* The rows in use in reverse order, the others as they are: x (B,T,D) -> y likewise. */
struct tensor *reverse(struct graph *g, struct tensor *x, struct tensor *lengths);

/* y[b][p] = e[b] + PE[p], sinusoids of the position, first half sines, second half cosines (spec/tasks.md 1.1): e (B,D) ->
 * y (B,T,D). */
struct tensor *decode_positions(struct graph *g, struct tensor *e, int64_t T);

/* --- recurrences ------------------------------------------------------------------------------------------------
 * Gate normalisers (P1 Eq. 6 of spec/lru-slice-baselines.md 4): p = f(z), a = p / sum p over the m+1 entries of a row. */
enum gate { GATE_SOFTMAX, GATE_SIGMOID, GATE_RELU, GATE_NONE, GATE_COUNT };

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

/* --- convolution and attention ------------------------------------------------------------------------------------ */

/* Causal depthwise convolution: y_t[c] = b[c] + sum_{j<m} w[c][j] x_{t-m+1+j}[c], zeros before the start.
 * x (B,T,C), w [C][m] stored tap-major (element j*C + c: struct layout {2, {C, m}, {1, 0}}), b [C] or NULL -> (B,T,C). */
struct tensor *conv_depthwise(struct graph *g, struct tensor *x, struct tensor *w, struct tensor *b);

/* Rotary positions (Su et al. 2021): x (B,T,C) holds `heads` heads of dk columns first, dk even; of each, the pair
 * (i, i + dk/2) turns by t * base^(-2i/dk). Columns from heads * dk on are copied. */
struct tensor *rope(struct graph *g, struct tensor *x, int64_t heads, int64_t dk, double base);

/* Causal softmax attention: qkv (B,T,3D), columns (q, k, v), each of `heads` heads of dk = D / heads columns ->
 * y (B,T,D): y_t = sum_{s<=t} softmax_s(q_t . k_s / sqrt(dk)) v_s per head. */
struct tensor *softmax_attention(struct graph *g, struct tensor *qkv, int64_t heads);

/* --- homogeneous recurrences: y_t = (I + A_t) y_{t-1}, y_0 given, no input term (SLiCE) ---------------------------- */

/* A_t block diagonal, N blocks of m (m = 1 diagonal, N = 1 dense): a (B,T,m*m*N), element (i*m+j)*N + k is row i,
 * column j of block k; y0 (B, N*m) -> y (B,T, N*m), both with element k*m + i. a at t = 0 is not read. */
struct tensor *scan_flow(struct graph *g, struct tensor *a, struct tensor *y0, int64_t N, int64_t m);

/* E = exp(L) - I of every block: l (rows,m*m*N), blocks as above -> e likewise. With e as its generators scan_flow takes the exact
 * flows exp(L). */
struct tensor *expm_flow(struct graph *g, struct tensor *l, int64_t N, int64_t m);

/* The log-signature of depth 1 or 2 of a piecewise-linear path over intervals of `interval` steps, the last one perhaps shorter.
 * Row t >= 1 of w (B,T,C) is the increment of step t; row 0, where the path starts, is not read. -> (B,1+K,S), K = ceil((T-1) /
 * interval): row k >= 1 of interval k, row 0 is 0, as scan_flow takes it. Of an interval with points p_0 .. p_n the C letters
 * l = p_n - p_0; at depth 2 behind them, for i < j in lexicographic order (S = C + C(C-1)/2), the signed areas
 * a_ij = 1/2 sum_k ((p_k - p_0)_i d_j - (p_k - p_0)_j d_i), d = p_{k+1} - p_k. */
struct tensor *log_signature(struct graph *g, struct tensor *w, int64_t interval, int depth);
int64_t log_signature_size(int64_t C, int depth);             /* S */
int64_t log_signature_intervals(int64_t T, int64_t interval); /* K */

/* The generators that a log-signature of depth 2 is multiplied by: a (m*m*N,C), column c the generator A_c in scan_flow's layout
 * -> (m*m*N,S), behind the letters the brackets A_j A_i - A_i A_j of each block. The weight of a linear map, like a. */
struct tensor *brackets(struct graph *g, struct tensor *a, int64_t N, int64_t m);

/* A_t = diag(d_t) + U_t V_t^T of rank r: d (B,T,D); u, v (B,T,r*D), element q*D + i; y0 (B,D) -> y (B,T,D). */
struct tensor *scan_dplr(struct graph *g, struct tensor *d, struct tensor *u, struct tensor *v, struct tensor *y0);

/* A_t = H diag(d_t), H the symmetric orthogonal Sylvester-Hadamard matrix, H[i][j] = (-1)^popcount(i & j) / sqrt(D), D a
 * power of two: d (B,T,D), y0 (B,D) -> y (B,T,D). */
struct tensor *scan_hadamard(struct graph *g, struct tensor *d, struct tensor *y0);

/* --- matrix-state recurrences --------------------------------------------------------------------------------------
 * Both recurrences keep one dk x dv matrix a head, update it with outer products and read it with q. Inputs are
 * (B,T,...): all axes behind B and T count as one width. Heads are contiguous: element h*dk + i of q, h*dv + j of v. */

/* Scalar gates a head of scan_outer, each (B,T,H). source NULL: 1. mark and direct are both given or both NULL. */
struct outer_gates {
    struct tensor *decay, *source, *mark, *direct;
};

/* Outer-product state with scalar decay, C_{-1} = 0, C dk x dv:
 *   o_t = scale (mark_t C_{t-1}^T q_t + direct_t (q_t . k_t) v_t);   C_t = decay_t C_{t-1} + source_t k_t v_t^T
 * Without mark and direct the state is read after its update, o_t = scale C_t^T q_t: the same with mark = decay and
 * direct = source. pLSTM gives all four gates; Mamba2 gives decay exp(Delta A) and source Delta.
 * q, k (B,T, groups*dk), each group shared by heads/groups neighbouring heads; v (B,T, heads*dv) -> o (B,T, heads*dv). */
struct tensor *scan_outer(struct graph *g, struct tensor *q, struct tensor *k, struct tensor *v,
                          const struct outer_gates *gates, int64_t heads, int64_t groups, double scale);

/* Exponential input gates and logistic forget gates of raw i, f (B,T,H), kept in range by their running maximum (xLSTM):
 *   m_t = max(logsig(f_t) + m_{t-1}, i_t), m_{-1} = start
 *   decay_t = exp(logsig(f_t) + m_{t-1} - m_t);  source_t = exp(i_t - m_t)
 * A state with these gates is exp(-m_t) times that with decay sig(f_t) and source exp(i_t), and no gate exceeds 1.
 * Returns decay; *source and *m receive the others, all as i. */
struct tensor *stable_gates(struct graph *g, struct tensor *i, struct tensor *f, double start, struct tensor **source,
                            struct tensor **m);

/* What a state with such gates is read as: o (B,T, H*(1+dv)) holds (den, num) of each head, m (B,T,H) ->
 * h = num / (max(|den|, exp(-m)) + eps) (B,T, H*dv). */
struct tensor *stable_readout(struct graph *g, struct tensor *o, struct tensor *m, double eps);

/* Delta rule, S_{-1} = 0, S dk x dv: at each token S <- decay_t S once (decay (B,T,heads), or NULL: 1), then for the steps
 * j = 0, 1, ...:  S <- S + k_j (rate beta_j (v_j - S^T k_j))^T;  then o_t = scale S^T q_t.
 * q (B,T, heads*dk), k (B,T, steps*heads*dk), v (B,T, steps*heads*dv), beta (B,T, steps*heads), step outermost
 * -> o (B,T, heads*dv). steps = 1: DeltaNet, with decay Gated DeltaNet; steps > 1: DeltaProduct. */
struct delta_attr {
    int64_t heads, steps;
    double scale, rate;
};
struct tensor *scan_delta(struct graph *g, struct tensor *q, struct tensor *k, struct tensor *v, struct tensor *beta,
                          struct tensor *decay, const struct delta_attr *attr);

/* --- matrix states on graphs (pLSTM) ------------------------------------------------------------------------------
 * One recurrence on the edges of a directed acyclic graph, a state dk x dv a head (kernels/matrix/state.h). Gates come
 * activated. H heads; q, k (B,T,H*dk), v (B,T,H*dv) -> y (B,T,H*dv), head-major. */

#define SCAN_PLSTM_TRACK_MAX 16 /* most states J a head, and the largest matrices of expm_skew and sandwich */

/* U = expm(A - A^T), orthogonal: a (rows,n*J*J), n matrices a row -> u as a. */
struct tensor *expm_skew(struct graph *g, struct tensor *a, int64_t J);

/* T = U diag(e) W: u, w (rows,n*J*J), e (rows,n*J) -> t as u. */
struct tensor *sandwich(struct graph *g, struct tensor *u, struct tensor *e, struct tensor *w, int64_t J);

/* pLSTM on a sequence: y_t = c (sum_j M_t[j] C_{t-1}[j]^T q_t + D_t (q_t.k_t) v_t), C_t[i] = sum_j T_t[i][j] C_{t-1}[j]
 * + S_t[i] k_t v_t^T, C_{-1} = 0, c = scale_of_qk. source, mark (B,T,H*J); transition (B,T,H*J*J), element
 * (h*J + i)*J + j; direct (B,T,H). */
struct tensor *scan_plstm(struct graph *g, struct tensor *q, struct tensor *k, struct tensor *v, struct tensor *source,
                          struct tensor *transition, struct tensor *mark, struct tensor *direct, int64_t H, int64_t J,
                          double scale_of_qk);

/* The eight gates of a grid node in four directions from raw ones (grid_gates.c has the formulas): grid_raw_count(form) tensors
 * (B,N,4H), element direction*H + h -> (B,N,8*4H), plane after plane Sr, Sd, rl, ru, dl, du, Ml, Mu. */
enum grid_form { GRID_P, GRID_P_REF, GRID_D_LEFT, GRID_D_RIGHT, GRID_FORMS };
int grid_raw_count(enum grid_form form);
struct tensor *grid_gates(struct graph *g, struct tensor *const *raw, enum grid_form form);

/* pLSTM on a grid of X x Y = N nodes, node (r,s) at r*Y + s, four directions (bit 0 flips the first axis, bit 1 the second)
 * summed: y = c (sum (Ml l + Mu u)^T q + D (q.k) v), Cr = rl l + ru u + Sr k v^T, Cd = dl l + du u + Sd k v^T, l the state Cr
 * of the neighbour before on the first axis, u Cd of the one before on the second. gates as of grid_gates; direct (B,N,H). */
struct tensor *grid_scan(struct graph *g, struct tensor *q, struct tensor *k, struct tensor *v, struct tensor *gates,
                         struct tensor *direct, int64_t X, int64_t Y, int64_t H, double scale_of_qk);

/* y_r = t_r / (1/2 + sum of |t| over the rows of the same group): t (B,rows,H), group [rows] in [0,rows), which lives as long as
 * the graph -> y as t. */
struct tensor *l1_groups(struct graph *g, struct tensor *t, const int32_t *group, int64_t rows);

/* A directed acyclic graph and the pairs of edges along which states flow. */
struct dag {
    int64_t nodes, edges, pairs;
    const int32_t *tail, *head; /* [edges]; an edge stands behind all edges that end in its tail */
    const int32_t *from, *to;   /* [pairs]: head of edge `from` is tail of edge `to`; ascending in `to` */
};

/* pLSTM on a graph: C_e = sum over pairs T_{e'e} C_{e'} + S_e k v^T of the tail; y_n = c (sum over in-edges M_e C_e^T q_n + D_n (q_n.k_n)
 * v_n). q, k, v as above with T = nodes; source, mark (B,edges,H), NULL without edges; transition (B,pairs,H), NULL without
 * pairs; direct (B,nodes,H). The dag lives as long as the graph. */
struct tensor *dag_scan(struct graph *g, struct tensor *q, struct tensor *k, struct tensor *v, struct tensor *source,
                        struct tensor *mark, struct tensor *transition, struct tensor *direct, const struct dag *dag,
                        int64_t H, double scale_of_qk);

/* --- trees -------------------------------------------------------------------------------------------------------
 * Perfect k-ary trees, nodes breadth first with the leaves first: level l = 0 .. levels-1 holds k^(levels-1-l) nodes, the
 * children of node i of level l+1 are nodes k*i .. k*i+k-1 of level l. Nodes that have no leaf below `leaves` under them
 * are padding: cut off, u taken as 0, x = 0. */
struct tree {
    int64_t arity, levels;
    int64_t leaves; /* of which real, 0 .. k^(levels-1) */
};

/* Nodes of the tree; -1 if arity or levels is below 1 or there are 2^31 or more. */
int64_t tree_nodes(const struct tree *t);

enum tree_form { TREE_HERMITIAN, TREE_SKEW, TREE_FREE };

/* One equation a node v with parent p(v) and children ch(v), over complex numbers, one system a head
 * (spec/plstm-myosotis.md B1, B3):
 *   x_v + b_v x_p(v) + sum over c in ch(v) of c_c x_c = u_v;  hermitian: c = conj(b), skew: c = -conj(b), free: own c
 * with b = beta theta / sqrt(1 + |theta|^2) (B4; beta 0 = unbounded, b = theta), theta from up, likewise c from down.
 * up, down: real and imaginary planes, [1][P] for all nodes, [levels-1][P] a level of the child, [nodes-1][P] a child, or
 * (B,nodes,P) a child of each sequence, the root's row unused. down only in the free form. All four NULL when levels is 1.
 * u (B,nodes,P) planes. leaves: ids (B), real leaves of each sequence, in place of tree.leaves; or NULL. */
struct tree_system {
    struct tree tree;
    enum tree_form form;
    double beta;
    struct tensor *up_re, *up_im, *down_re, *down_im;
    struct tensor *u_re, *u_im;
    struct tensor *leaves;
};

/* Solves the system -> x_re (B,nodes,P); *x_im receives the imaginary plane. */
struct tensor *tree_solve(struct graph *g, const struct tree_system *s, struct tensor **x_im);

/* y[b][v] = w[b][v] + p[row of v], the root's y = w: w (B,nodes,P), p of the shared shapes above -> (B,nodes,P). */
struct tensor *tree_add(struct graph *g, const struct tree *tree, struct tensor *w, struct tensor *p);

/* --- data: an op without gradient, recorded on a graph of its own -------------------------------------------------- */

/* Arrays of ids with as many rows as there are examples; lengths may be NULL. */
struct batch_tensors {
    struct tensor *tokens, *targets, *lengths;
};

/* Writes the batch of step state->step: its row b is example permute_index(seed, STREAM_SHUFFLE, at / period, at % period)
 * of the split, at = step B + b; where at % period is no example, tokens 0, targets ignored, length 0. A period of whole
 * batches leaves the end of an epoch's last batch empty, one of as many as there are examples goes on. */
struct take_batch_attr {
    uint64_t seed;
    int64_t period;
};
void take_batch(struct graph *g, const struct batch_tensors *split, const struct batch_tensors *batch,
                const struct take_batch_attr *attr);

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

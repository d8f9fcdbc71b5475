/* scan_block.c - BD-LRU, the block-diagonal gated recurrence: the op and its reference.
 *
 *   a_t[i][.] = normalise(z_t[i][.])     (m + 1 entries per row; kernels/gated/gate.h)
 *   h_t[i] = sum_j a_t[i][j] h_{t-1}[j] + a_t[i][m] v_t[i],   h_{-1} = 0
 * Adjoint, o_t the incoming gradient of h_t (the reversed scan of App. G):
 *   G_t = o_t + A_{t+1}^T G_{t+1};  dv_t[i] = a_t[i][m] G_t[i]
 *   da_t[i][j] = G_t[i] h_{t-1}[j];  da_t[i][m] = G_t[i] v_t[i]
 * Layouts as in gated.h: gate-major, the block index k fastest. */
#include <math.h>

#include "kernels/gated/scan.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/scratch.h"
#include "kernels/lib/sizes.h"

struct tensor *scan_block(struct graph *g, struct tensor *z, struct tensor *v, int64_t N, int64_t m, enum gate gate) {
    struct scan_attr attr = {.N = N, .m = m, .gate = gate};
    struct call *c = graph_call(g, &op_scan_block, &attr, sizeof attr, (struct tensor *[]){z, v}, 2);
    return c ? c->out[0] : NULL;
}

static void scan_block_infer(struct graph *g, struct call *c) {
    const struct scan_attr *a = scan_attr(c);
    if (infer_scan(g, c, "blocks", a->m * (a->m + 1) * a->N, "m*(m+1)*blocks", a->m * a->N, "m*blocks"))
        graph_output(g, c, DT_REAL, 3, c->in[1]->dims);
}

/* FLOPs per row entry: exp counts 10, normalising 3, the recurrence 2. Backward computes these again and adds 6. */
static struct cost scan_block_cost(const struct call *c, enum pass pass) {
    double gates = (double)tensor_count(c->in[0]), states = (double)tensor_count(c->in[1]);
    if (pass == PASS_FORWARD) return (struct cost){15 * gates, sizeof(real) * (gates + 2 * states)};
    return (struct cost){19 * gates, sizeof(real) * (2 * gates + 4 * states)};
}

static bool scan_block_build(struct graph *g, const struct op_sizes *s) {
    int64_t N = s->blocks, m = s->m;
    if (s->variant > 0) return false;
    struct tensor *z = input_tokens(g, s, "z", m * (m + 1) * N), *v = input_tokens(g, s, "v", m * N);
    scan_block(g, z, v, N, m, (enum gate)s->gate);
    return true;
}

static double scan_block_terms(const struct call *c, enum pass pass, int j);

const struct op op_scan_block = {
    .name = "scan_block",
    .maths = "a = normalise(z); h_t[i] = sum_j a_t[i][j] h_{t-1}[j] + a_t[i][m] v_t[i]",
    .source = "BD-LRU (arXiv 2602.12021), section 2, Eq. BD-LRU, and Eq. 6",
    .needs_in = 3,
    .needs_out = 1,
    .infer = scan_block_infer,
    .cost = scan_block_cost,
    .heads = scan_heads,
    .terms = scan_block_terms,
    .sizes = "batch length blocks m gate",
    .build = scan_block_build,
};

/* --- reference: one block after the other, any size ------------------------------------------------------------- */

static void scan_block_ref_forward(const struct call *c, const struct exec *x) {
    (void)x;
    const struct scan_attr *at = scan_attr(c);
    int64_t B = c->in[1]->dims[0], T = c->in[1]->dims[1], N = at->N, m = at->m;
    struct scratch scratch = scratch_of(c, PASS_FORWARD);
    struct ref_row r = ref_row_of(c, &scratch);
    for (int64_t b = 0; b < B; b++)
        for (int64_t t = 0; t < T; t++)
            for (int64_t k = 0; k < N; k++) {
                const real *z = tensor_real(c->in[0]) + (b * T + t) * m * (m + 1) * N + k;
                const real *v = tensor_real(c->in[1]) + (b * T + t) * m * N + k;
                real *h = tensor_real(c->out[0]) + (b * T + t) * m * N + k;
                for (int64_t i = 0; i < m; i++) {
                    gate_row(at->gate, m + 1, z + i * (m + 1) * N, N, r.a, r.w);
                    double sum = (double)r.a[m] * v[i * N];
                    for (int64_t j = 0; j < m && t > 0; j++) sum += (double)r.a[j] * h[(j - m) * N];
                    h[i * N] = (real)sum;
                }
            }
}

/* Computes the gradients of one block at one step: reads r->G and stores A_t^T G_t in r->carry. The pointers point to
 * element k of token (b,t). If `terms` is given, it writes no gradient; instead it raises *terms to the largest sum of
 * magnitudes that an element of dz has. */
static void ref_backward_step(const struct call *c, struct ref_row *r, int64_t token, int64_t t, int64_t k,
                              double *terms) {
    const struct scan_attr *at = scan_attr(c);
    int64_t N = at->N, m = at->m;
    const real *z = tensor_real(c->in[0]) + token * m * (m + 1) * N + k;
    const real *v = tensor_real(c->in[1]) + token * m * N + k;
    const real *h_prev = tensor_real(c->out[0]) + (token - 1) * m * N + k; /* read only where t > 0 */
    for (int64_t j = 0; j < m; j++) r->carry[j] = 0;
    for (int64_t i = 0; i < m; i++) {
        gate_row(at->gate, m + 1, z + i * (m + 1) * N, N, r->a, r->w);
        double mean = (double)r->a[m] * v[i * N], size = fabs(mean); /* sum_l a_l da_l / G_t[i] */
        for (int64_t j = 0; j < m && t > 0; j++) {
            mean += (double)r->a[j] * h_prev[j * N];
            size += fabs((double)r->a[j] * h_prev[j * N]);
        }
        if (!gate_divides(at->gate)) mean = size = 0;
        for (int64_t j = 0; j <= m; j++) {
            double value = j == m ? v[i * N] : t > 0 ? h_prev[j * N] : 0;
            double dz = r->w[j] * (r->G[i] * (value - mean));
            if (terms) *terms = fmax(*terms, fabs(r->w[j] * r->G[i]) * (fabs(value) + size));
            if (c->din[0] && !terms)
                put(c->din[0] + (token * m * (m + 1) + i * (m + 1) + j) * N + k, call_accumulates(c, 0), (real)dz);
            if (j < m) r->carry[j] += (double)r->a[j] * r->G[i];
        }
        if (c->din[1] && !terms)
            put(c->din[1] + (token * m + i) * N + k, call_accumulates(c, 1), (real)(r->a[m] * r->G[i]));
    }
}

static void ref_backward(const struct call *c, double *terms) {
    const struct scan_attr *at = scan_attr(c);
    int64_t B = c->in[1]->dims[0], T = c->in[1]->dims[1], N = at->N, m = at->m;
    const real *dh = call_dout(c, 0);
    struct scratch scratch = scratch_of(c, PASS_BACKWARD);
    struct ref_row r = ref_row_of(c, &scratch);
    for (int64_t b = 0; b < B; b++)
        for (int64_t k = 0; k < N; k++) {
            for (int64_t i = 0; i < m; i++) r.carry[i] = 0;
            for (int64_t t = T - 1; t >= 0; t--) {
                int64_t token = b * T + t;
                for (int64_t i = 0; i < m; i++) r.G[i] = (real)(dh[(token * m + i) * N + k] + r.carry[i]);
                ref_backward_step(c, &r, token, t, k, terms);
            }
        }
}

static void scan_block_ref_backward(const struct call *c, const struct exec *x) {
    (void)x;
    ref_backward(c, NULL);
}

/* Returns the scale of rounding errors in dz = w G (x - h). This needs its own scale: x - h cancels if one gate of a
 * row is near 1, and w may be as large as 1 / S with sigmoid and relu gates. */
static double scan_block_terms(const struct call *c, enum pass pass, int j) {
    double terms = 0;
    if (pass == PASS_BACKWARD && j == 0) ref_backward(c, &terms);
    return terms;
}

const struct kernel kernel_scan_block_ref = {
    .name = "scan_block_ref",
    .op = &op_scan_block,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = ref_row_workspace,
    .forward = scan_block_ref_forward,
    .backward = scan_block_ref_backward,
};

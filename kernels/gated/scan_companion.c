/* scan_companion.c - H-LRU, the higher-order gated recurrence, in both layouts: the op and its reference.
 *
 *   a_t = normalise(z_t)     (m + 1 entries per channel; kernels/gated/gate.h)
 *   companion (Eq. 3):           s_t[0] = sum_i a_t[i] s_{t-1}[i] + a_t[m] v_t,   s_t[i] = s_{t-1}[i-1]
 *   observer (App. G listing):   s_t[i] = a_t[i] s_{t-1}[0] + s_{t-1}[i+1] (+ a_t[m] v_t for i = 0)
 * Adjoint, o_t the incoming gradient: G_t = o_t + A_{t+1}^T G_{t+1};
 *   companion: da_t[i] = G_t[0] s_{t-1}[i];  observer: da_t[i] = G_t[i] s_{t-1}[0];  both: da_t[m] = G_t[0] v_t,
 *   dv_t = a_t[m] G_t[0]
 * Layouts of memory as in gated.h: gate-major, the channel index k fastest. */
#include <math.h>

#include "kernels/gated/scan.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/scratch.h"
#include "kernels/lib/sizes.h"

struct tensor *scan_companion(struct graph *g, struct tensor *z, struct tensor *v, int64_t N, int64_t m, enum gate gate,
                              enum companion_layout layout) {
    struct scan_attr attr = {.N = N, .m = m, .gate = gate, .layout = layout};
    struct call *c = graph_call(g, &op_scan_companion, &attr, sizeof attr, (struct tensor *[]){z, v}, 2);
    return c ? c->out[0] : NULL;
}

static void scan_companion_infer(struct graph *g, struct call *c) {
    const struct scan_attr *a = scan_attr(c);
    if (infer_scan(g, c, "channels", (a->m + 1) * a->N, "(m+1)*channels", a->N, "channels"))
        graph_output(g, c, DT_REAL, 3, (int64_t[]){c->in[1]->dims[0], c->in[1]->dims[1], a->m * a->N});
}

/* Counts FLOPs like scan_block: per row entry 10 for exp, 3 for normalising, 2 for the recurrence; backward adds 6. The
 * output has m values per channel and token. */
static struct cost scan_companion_cost(const struct call *c, enum pass pass) {
    double gates = (double)tensor_count(c->in[0]), values = (double)tensor_count(c->in[1]);
    double states = (double)tensor_count(c->out[0]);
    if (pass == PASS_FORWARD) return (struct cost){15 * gates, sizeof(real) * (gates + values + states)};
    return (struct cost){19 * gates, sizeof(real) * (2 * gates + 2 * values + 2 * states)};
}

static bool scan_companion_build(struct graph *g, const struct op_sizes *s) {
    int64_t N = s->blocks, m = s->m;
    if (s->variant > 0) return false;
    struct tensor *z = input_tokens(g, s, "z", (m + 1) * N), *v = input_tokens(g, s, "v", N);
    scan_companion(g, z, v, N, m, (enum gate)s->gate, (enum companion_layout)s->layout);
    return true;
}

static double scan_companion_terms(const struct call *c, enum pass pass, int j);

const struct op op_scan_companion = {
    .name = "scan_companion",
    .maths = "a = normalise(z); s_t = A(a_t) s_{t-1} + a_t[m] v_t e_0, A the companion matrix of a or its transpose",
    .source = "H-LRU (arXiv 2602.12021), Eq. 3, Eq. 6 and App. G",
    .needs_in = 3,
    .needs_out = 1,
    .infer = scan_companion_infer,
    .cost = scan_companion_cost,
    .heads = scan_heads,
    .terms = scan_companion_terms,
    .sizes = "batch length blocks m gate layout",
    .build = scan_companion_build,
};

/* --- reference: one channel after the other, any size ----------------------------------------------------------- */

static void scan_companion_ref_forward(const struct call *c, const struct exec *x) {
    (void)x;
    const struct scan_attr *at = scan_attr(c);
    int64_t B = c->in[1]->dims[0], T = c->in[1]->dims[1], N = at->N, m = at->m;
    struct scratch scratch = scratch_of(c, PASS_FORWARD);
    struct ref_row r = ref_row_of(c, &scratch);
    for (int64_t b = 0; b < B; b++)
        for (int64_t t = 0; t < T; t++)
            for (int64_t k = 0; k < N; k++) {
                const real *z = tensor_real(c->in[0]) + (b * T + t) * (m + 1) * N + k;
                real *s = tensor_real(c->out[0]) + (b * T + t) * m * N + k, *before = s - m * N; /* read if t > 0 */
                gate_row(at->gate, m + 1, z, N, r.a, r.w);
                double first = (double)r.a[m] * tensor_real(c->in[1])[(b * T + t) * N + k];
                for (int64_t i = 0; i < m; i++) {
                    double sum = i == 0 ? first : 0;
                    if (t > 0 && at->layout == LAYOUT_COMPANION) {
                        for (int64_t j = 0; j < m && i == 0; j++) sum += (double)r.a[j] * before[j * N];
                        if (i > 0) sum = before[(i - 1) * N];
                    } else if (t > 0) {
                        sum += (double)r.a[i] * before[0] + (i + 1 < m ? before[(i + 1) * N] : 0);
                    }
                    s[i * N] = (real)sum;
                }
            }
}

/* Computes the gradients of one channel at one step: reads r->G and stores A_t^T G_t in r->carry. If `terms` is given,
 * it writes no gradient; instead it raises *terms to the largest sum of magnitudes that an element of dz has. */
static void ref_backward_step(const struct call *c, struct ref_row *r, int64_t token, int64_t t, int64_t k,
                              double *terms) {
    const struct scan_attr *at = scan_attr(c);
    int64_t N = at->N, m = at->m;
    bool companion = at->layout == LAYOUT_COMPANION;
    const real *before = tensor_real(c->out[0]) + (token - 1) * m * N + k; /* read only where t > 0 */
    double v = tensor_real(c->in[1])[token * N + k];
    gate_row(at->gate, m + 1, tensor_real(c->in[0]) + token * (m + 1) * N + k, N, r->a, r->w);
    double mean = 0, size = 0; /* mean: sum_l a_l da_l, which the normaliser's gradient subtracts from each da_j */
    for (int pass = 0; pass < 2; pass++)
        for (int64_t j = 0; j <= m; j++) {
            double G = companion || j == m ? r->G[0] : r->G[j];
            double value = j == m ? v : t == 0 ? 0 : companion ? before[j * N] : before[0];
            double da = G * value;
            if (pass == 0 && gate_divides(at->gate)) {
                mean += r->a[j] * da;
                size += fabs(r->a[j] * da);
            }
            if (pass == 1 && terms) *terms = fmax(*terms, fabs((double)r->w[j]) * (fabs(da) + size));
            if (pass == 1 && c->din[0] && !terms)
                put(c->din[0] + (token * (m + 1) + j) * N + k, call_accumulates(c, 0), (real)(r->w[j] * (da - mean)));
        }
    if (c->din[1] && !terms) put(c->din[1] + token * N + k, call_accumulates(c, 1), (real)(r->a[m] * r->G[0]));
    for (int64_t j = 0; j < m; j++) {
        if (companion) r->carry[j] = r->a[j] * r->G[0] + (j + 1 < m ? r->G[j + 1] : 0);
        if (!companion) r->carry[j] = j > 0 ? r->G[j - 1] : 0;
        for (int64_t i = 0; i < m && !companion && j == 0; i++) r->carry[0] += r->a[i] * r->G[i];
    }
}

static void ref_backward(const struct call *c, double *terms) {
    const struct scan_attr *at = scan_attr(c);
    int64_t B = c->in[1]->dims[0], T = c->in[1]->dims[1], N = at->N, m = at->m;
    const real *ds = call_dout(c, 0);
    struct scratch scratch = scratch_of(c, PASS_BACKWARD);
    struct ref_row r = ref_row_of(c, &scratch);
    for (int64_t b = 0; b < B; b++)
        for (int64_t k = 0; k < N; k++) {
            for (int64_t i = 0; i < m; i++) r.carry[i] = 0;
            for (int64_t t = T - 1; t >= 0; t--) {
                int64_t token = b * T + t;
                for (int64_t i = 0; i < m; i++) r.G[i] = ds[(token * m + i) * N + k] + r.carry[i];
                ref_backward_step(c, &r, token, t, k, terms);
            }
        }
}

static void scan_companion_ref_backward(const struct call *c, const struct exec *x) {
    (void)x;
    ref_backward(c, NULL);
}

/* Returns the scale of rounding errors in dz = w (da - sum_l a_l da_l). This needs its own scale, because the
 * difference cancels if one gate is near 1. */
static double scan_companion_terms(const struct call *c, enum pass pass, int j) {
    double terms = 0;
    if (pass == PASS_BACKWARD && j == 0) ref_backward(c, &terms);
    return terms;
}

const struct kernel kernel_scan_companion_ref = {
    .name = "scan_companion_ref",
    .op = &op_scan_companion,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = ref_row_workspace,
    .forward = scan_companion_ref_forward,
    .backward = scan_companion_ref_backward,
};

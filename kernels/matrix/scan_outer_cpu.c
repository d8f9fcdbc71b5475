/* scan_outer_cpu.c - outer-product state (scan_outer.c) on the CPU, one token after the other. A head's state C is
 * dk x dv; T (decay), S (source), M (mark) and D (direct) are its gates. A thread computes one head at a time, so that
 * C stays in L1. SIMD vectors run along the rows of C, which are padded with zeros to whole vectors. Backward walks
 * over chunks of 16 tokens from the last to the first, and computes the states inside each chunk again. */
#include <string.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/scratch.h"
#include "kernels/matrix/state_cpu.h"

static real dot_product(int64_t n, const real *a, const real *b) {
    real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* One token of one head. w is the gradient of the output times the scale. v and w are padded to the width of a row. */
struct token {
    struct outer_token_gates a;
    const real *q, *k; /* [dk] */
    const real *v, *w; /* [width]; w only in backward */
};

/* Computes read = C^T q, then after = T C + S k v^T, in one pass over the rows. C and `after` are dk x width. */
FORCE_INLINE void step_forward(int64_t width, int64_t dk, const struct token *x, const real *C, real *after,
                               real *restrict read) {
    const struct outer_token_gates a = x->a;
    const real *q = x->q, *k = x->k, *v = x->v;
    memset(read, 0, (size_t)width * sizeof *read);
    for (int64_t i = 0; i < dk; i++) {
        real qi = q[i], ki = a.S * k[i];
#pragma omp simd
        for (int64_t j = 0; j < width; j++) {
            read[j] = real_fma(qi, C[i * width + j], read[j]);
            after[i * width + j] = real_fma(a.T, C[i * width + j], ki * v[j]);
        }
    }
}

STATE_EACH_WIDTH(forward_any, step_forward,
                 (int64_t width, int64_t dk, const struct token *x, const real *C, real *after, real *read), dk, x, C,
                 after, read)

/* P is C before a token, E the gradient of C after it. Ev = E v (for dS, dk), Pw = P w (dM, dq), Ek = E^T k (dv). */
struct reads {
    real *Ev, *Pw, *Ek; /* [dk], [dk], [width] */
    real EP;            /* <E, P>, for dT */
};

/* The arrays of one head. Rows are padded. */
struct work {
    real *v, *C, *read;    /* forward: [width]; the state; [width] */
    real *w, *E;           /* backward: [width]; the gradient of the state */
    struct scratch_rows P; /* backward: the states before the tokens of a chunk */
    struct reads r;
};

static struct work work_of(const struct state_shape *s, enum pass pass, struct scratch *scratch) {
    int64_t width = padded(s->dv), n = s->dk * width;
    struct work w = {.v = scratch_reals(scratch, width)};
    if (pass == PASS_FORWARD) {
        w.C = scratch_reals(scratch, n);
        w.read = scratch_reals(scratch, width);
        return w;
    }
    w.w = scratch_reals(scratch, width);
    w.E = scratch_reals(scratch, n);
    w.P = scratch_rows(scratch, STATE_CHUNK, n);
    w.r.Ev = scratch_reals(scratch, s->dk);
    w.r.Pw = scratch_reals(scratch, s->dk);
    w.r.Ek = scratch_reals(scratch, width);
    return w;
}

/* Computes all tokens of one head. */
static void forward_head(const struct call *c, const struct state_shape *s, int64_t b, int64_t h,
                         const struct work *work) {
    int64_t width = padded(s->dv), group = h / (s->heads / s->groups);
    real *C = work->C, *v = work->v, *read = work->read;
    real scale = (real)outer_attr(c)->scale;
    memset(C, 0, (size_t)(s->dk * width) * sizeof *C);
    for (int64_t t = 0; t < s->T; t++) {
        int64_t token = b * s->T + t;
        struct token x = {.a = outer_gates_at(c, token, h),
                          .q = value_row(c, OUTER_Q, token, group, s->dk),
                          .k = value_row(c, OUTER_K, token, group, s->dk),
                          .v = v};
        real *o = tensor_real(c->out[0]) + (token * s->heads + h) * s->dv;
        if (t % STATE_CHUNK == 0) pack_rows(s->dk, s->dv, C, width, kept_state(c, s, b, t / STATE_CHUNK, h));
        pad_row(s->dv, width, value_row(c, OUTER_V, token, h, s->dv), v);
        forward_any(width, s->dk, &x, C, C, read);
        real direct = scale * x.a.D * dot_product(s->dk, x.q, x.k), mark = scale * x.a.M;
#pragma omp simd
        for (int64_t j = 0; j < s->dv; j++) o[j] = real_fma(mark, read[j], direct * v[j]);
    }
}

/* Computes Ev = E v, Pw = P w, Ek = E^T k, EP = <E, P>, then E = T E + M q w^T. */
FORCE_INLINE void step_backward(int64_t width, int64_t dk, const struct token *x, const real *P, real *E,
                                struct reads *r) {
    const struct outer_token_gates a = x->a;
    const real *q = x->q, *k = x->k, *v = x->v, *w = x->w;
    real EP = 0, *restrict Ek = r->Ek;
    memset(Ek, 0, (size_t)width * sizeof *Ek);
    for (int64_t i = 0; i < dk; i++) {
        real Ev = 0, Pw = 0, ki = k[i], mq = a.M * q[i], along = 0;
#pragma omp simd reduction(+ : Ev, Pw, along)
        for (int64_t j = 0; j < width; j++) {
            real e = E[i * width + j], p = P[i * width + j];
            Ev += e * v[j];
            Pw += p * w[j];
            along += e * p;
            Ek[j] = real_fma(ki, e, Ek[j]);
            E[i * width + j] = real_fma(a.T, e, mq * w[j]);
        }
        r->Ev[i] = Ev;
        r->Pw[i] = Pw;
        EP += along;
    }
    r->EP = EP;
}

STATE_EACH_WIDTH(backward_any, step_backward,
                 (int64_t width, int64_t dk, const struct token *x, const real *P, real *E, struct reads *r), dk, x, P,
                 E, r)

/* Writes one head's gradients at one token from the sums r; `add`: adds to dq and dk what another head has written. */
static void write_gradients(const struct call *c, const struct state_shape *s, int64_t token, int64_t h, bool add,
                            const struct token *x, const struct reads *r) {
    int64_t dk = s->dk, group = h / (s->heads / s->groups);
    const struct outer_token_gates a = x->a;
    const real *q = x->q, *k = x->k, *v = x->v, *w = x->w;
    real *dq = gradient_row(c, OUTER_Q, token, group, dk), *dkey = gradient_row(c, OUTER_K, token, group, dk);
    real *dv = gradient_row(c, OUTER_V, token, h, s->dv);
    real qk = dot_product(dk, q, k), vw = dot_product(s->dv, v, w), direct = a.D * vw;
    bool add_q = add || call_accumulates(c, OUTER_Q), add_k = add || call_accumulates(c, OUTER_K);
    for (int64_t i = 0; dq && i < dk; i++) put(dq + i, add_q, real_fma(a.M, r->Pw[i], direct * k[i]));
    for (int64_t i = 0; dkey && i < dk; i++) put(dkey + i, add_k, real_fma(a.S, r->Ev[i], direct * q[i]));
    for (int64_t j = 0; dv && j < s->dv; j++)
        put(dv + j, call_accumulates(c, OUTER_V), real_fma(a.S, r->Ek[j], a.D * qk * w[j]));
    real dM = dot_product(dk, q, r->Pw), dD = qk * vw;
    bool after = !c->in[OUTER_MARK];
    real dgates[4] = {r->EP + (after ? dM : 0), dot_product(dk, k, r->Ev) + (after ? dD : 0), dM, dD};
    for (int i = OUTER_DECAY; i < OUTER_INPUTS; i++) {
        real *to = gradient_row(c, i, token, h, 1);
        if (to) put(to, call_accumulates(c, i), dgates[i - OUTER_DECAY]);
    }
}

static void backward_head(const struct call *c, const struct state_shape *s, int64_t b, int64_t h,
                          const struct work *work) {
    int64_t dk = s->dk, width = padded(s->dv), n = dk * width, share = s->heads / s->groups, next = work->P.stride;
    real *E = work->E, *P = work->P.at, *v = work->v, *w = work->w;
    struct reads r = work->r;
    real scale = (real)outer_attr(c)->scale;
    memset(E, 0, (size_t)n * sizeof *E);
    for (int64_t chunk = s->chunks - 1; chunk >= 0; chunk--) {
        int64_t first = chunk * STATE_CHUNK, end = first + STATE_CHUNK < s->T ? first + STATE_CHUNK : s->T;
        unpack_rows(dk, s->dv, kept_state(c, s, b, chunk, h), width, P);
        for (int64_t t = first; t + 1 < end; t++) {
            int64_t token = b * s->T + t;
            const real *k = value_row(c, OUTER_K, token, h / share, dk);
            pad_row(s->dv, width, value_row(c, OUTER_V, token, h, s->dv), v);
            struct token x = {.a = outer_gates_at(c, token, h), .q = k, .k = k, .v = v};
            forward_any(width, dk, &x, P + (t - first) * next, P + (t - first + 1) * next, w);
        }
        for (int64_t t = end - 1; t >= first; t--) {
            int64_t token = b * s->T + t;
            const real *d_o = call_dout(c, 0) + (token * s->heads + h) * s->dv;
            struct token x = {.a = outer_gates_at(c, token, h),
                              .q = value_row(c, OUTER_Q, token, h / share, dk),
                              .k = value_row(c, OUTER_K, token, h / share, dk),
                              .v = v,
                              .w = w};
            pad_row(s->dv, width, value_row(c, OUTER_V, token, h, s->dv), v);
            pad_row(s->dv, width, d_o, w);
            for (int64_t j = 0; j < s->dv; j++) w[j] *= scale;
            backward_any(width, dk, &x, P + (t - first) * next, E, &r);
            write_gradients(c, s, token, h, h % share > 0, &x, &r);
        }
    }
}

static size_t scan_outer_cpu_workspace(const struct call *c, enum pass pass) {
    struct state_shape s = outer_shape(c);
    struct scratch scratch = scratch_measure(c);
    for (int64_t p = 0; p < state_parts(s.B * s.groups); p++) work_of(&s, pass, &scratch);
    return scratch.used;
}

/* One thread computes all heads of a group, because they add to the same dq and dk in a fixed order. */
static void run(const struct call *c, enum pass pass) {
    struct state_shape s = outer_shape(c);
    int64_t groups = s.B * s.groups, parts = state_parts(groups), share = s.heads / s.groups;
    struct scratch all = scratch_of(c, pass);
#pragma omp parallel for schedule(static) if (s.B * s.T * s.heads * s.dk * s.dv > PARALLEL_MIN)
    for (int64_t p = 0; p < parts; p++) {
        struct range part = part_at(groups, parts, p);
        struct scratch own = scratch_part(&all, p, parts);
        struct work w = work_of(&s, pass, &own);
        for (int64_t i = part.begin * share; i < part.end * share; i++) {
            if (pass == PASS_FORWARD)
                forward_head(c, &s, i / s.heads, i % s.heads, &w);
            else
                backward_head(c, &s, i / s.heads, i % s.heads, &w);
        }
    }
}

static void scan_outer_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, PASS_FORWARD);
}

static void scan_outer_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, PASS_BACKWARD);
}

/* Tolerance: the state sums T outer products, and its products with vectors sum dk or dv terms, all in working
 * precision. With gates above 1, rounding errors grow like the state itself. */
const struct kernel kernel_scan_outer_cpu = {
    .name = "scan_outer_cpu",
    .op = &op_scan_outer,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 256,
    .workspace = scan_outer_cpu_workspace,
    .forward = scan_outer_cpu_forward,
    .backward = scan_outer_cpu_backward,
};

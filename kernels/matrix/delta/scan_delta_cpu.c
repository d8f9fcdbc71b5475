/* scan_delta_cpu.c - the delta rule (scan_delta.c) on the CPU, one step after the other. A thread computes one head at
 * a time, so that its state stays in L1. Vector instructions compute the columns of the state (dv): its rows are padded
 * to whole vectors with zeros, which stay zero. A chunk is 16 tokens. Forward stores the state before every chunk.
 * Backward takes the chunks from the last to the first, and recomputes the states of one chunk at a time. */
#include <string.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/scratch.h"
#include "kernels/matrix/state_cpu.h"

/* Computes e = v - f S^T k and after = f S + k (b e)^T. S and `after` may be the same array. */
FORCE_INLINE void step_forward(int64_t width, int64_t dk, real f, real b, const real *k, const real *v, const real *S,
                               real *after, real *restrict e) {
    memcpy(e, v, (size_t)width * sizeof *e);
    for (int64_t i = 0; i < dk; i++) {
        real fk = -f * k[i];
#pragma omp simd
        for (int64_t j = 0; j < width; j++) e[j] = real_fma(fk, S[i * width + j], e[j]);
    }
    for (int64_t i = 0; i < dk; i++) {
        real bk = b * k[i];
#pragma omp simd
        for (int64_t j = 0; j < width; j++) after[i * width + j] = real_fma(bk, e[j], f * S[i * width + j]);
    }
}

STATE_EACH_WIDTH(forward_any, step_forward,
                 (int64_t width, int64_t dk, real f, real b, const real *k, const real *v, const real *S, real *after,
                  real *e),
                 dk, f, b, k, v, S, after, e)

/* Computes o = S^T q. */
FORCE_INLINE void step_read(int64_t width, int64_t dk, const real *q, const real *S, real *restrict o) {
    memset(o, 0, (size_t)width * sizeof *o);
    for (int64_t i = 0; i < dk; i++) {
        real qi = q[i];
#pragma omp simd
        for (int64_t j = 0; j < width; j++) o[j] = real_fma(qi, S[i * width + j], o[j]);
    }
}

STATE_EACH_WIDTH(read_any, step_read, (int64_t width, int64_t dk, const real *q, const real *S, real *o), dk, q, S, o)

/* Computes the gradients of the readout o = S^T q, given w = do: sums = S w is the gradient of q; G += q w^T. */
FORCE_INLINE void step_unread(int64_t width, int64_t dk, const real *q, const real *w, const real *S, real *G,
                              real *sums) {
    for (int64_t i = 0; i < dk; i++) {
        real sum = 0, qi = q[i];
#pragma omp simd reduction(+ : sum)
        for (int64_t j = 0; j < width; j++) {
            sum += S[i * width + j] * w[j];
            G[i * width + j] = real_fma(qi, w[j], G[i * width + j]);
        }
        sums[i] = sum;
    }
}

STATE_EACH_WIDTH(unread_any, step_unread,
                 (int64_t width, int64_t dk, const real *q, const real *w, const real *S, real *G, real *sums), dk, q,
                 w, S, G, sums)

/* Computes the gradients of a step, given be = b e and dv = b G^T k: sums = b G e - f S dv is the gradient of k. Then
 * G -= k dv^T makes G the gradient of f S. */
FORCE_INLINE void step_backward(int64_t width, int64_t dk, real f, const real *k, const real *be, const real *dv,
                                const real *S, real *G, real *sums) {
    for (int64_t i = 0; i < dk; i++) {
        real sum = 0, ki = -k[i];
#pragma omp simd reduction(+ : sum)
        for (int64_t j = 0; j < width; j++) {
            real g = G[i * width + j];
            sum += g * be[j] - f * S[i * width + j] * dv[j];
            G[i * width + j] = real_fma(ki, dv[j], g);
        }
        sums[i] = sum;
    }
}

STATE_EACH_WIDTH(backward_any, step_backward,
                 (int64_t width, int64_t dk, real f, const real *k, const real *be, const real *dv, const real *S,
                  real *G, real *sums),
                 dk, f, k, be, dv, S, G, sums)

/* One head of one batch element. */
struct head {
    const struct call *c;
    struct state_shape s;
    int64_t b, h, width, n; /* width: dv padded; n: elements of a padded state */
    real rate, scale;
};

/* Arrays of one head. All but `sums` have rows padded to width. */
struct work {
    real *v;               /* one row */
    real *sums, *G;        /* only for backward: dk sums, and the gradient of the state */
    struct scratch_rows S; /* forward: one state; backward: the state before each step of a chunk and after the last */
    struct scratch_rows e; /* forward: one error; backward: the error of each step of a chunk */
};

static struct work work_of(const struct state_shape *s, enum pass pass, struct scratch *scratch) {
    int64_t width = padded(s->dv), steps = pass == PASS_FORWARD ? 1 : STATE_CHUNK * s->steps;
    struct work w = {.v = scratch_reals(scratch, width)};
    w.S = scratch_rows(scratch, pass == PASS_FORWARD ? 1 : steps + 1, s->dk * width);
    w.e = scratch_rows(scratch, steps, width);
    if (pass == PASS_FORWARD) return w;
    w.sums = scratch_reals(scratch, s->dk);
    w.G = scratch_reals(scratch, s->dk * width);
    return w;
}

static real decay_at(const struct head *d, int64_t token) {
    return d->c->in[DELTA_DECAY] ? *value_row(d->c, DELTA_DECAY, token, d->h, 1) : 1;
}

/* Computes step j of a token: the state `after` from the state S before it, and the error e. v is scratch for a padded
 * row. */
static void forward_step(const struct head *d, int64_t token, int64_t j, const real *S, real *after, real *v, real *e) {
    int64_t row = j * d->s.heads + d->h;
    real b = d->rate * *value_row(d->c, DELTA_BETA, token, row, 1);
    pad_row(d->s.dv, d->width, value_row(d->c, DELTA_V, token, row, d->s.dv), v);
    forward_any(d->width, d->s.dk, j ? 1 : decay_at(d, token), b, value_row(d->c, DELTA_K, token, row, d->s.dk), v, S,
                after, e);
}

static void forward_head(const struct head *d, const struct work *w) {
    const struct call *c = d->c;
    const struct state_shape *s = &d->s;
    real *S = w->S.at, *v = w->v, *e = w->e.at;
    memset(S, 0, (size_t)d->n * sizeof *S);
    for (int64_t t = 0; t < s->T; t++) {
        int64_t token = d->b * s->T + t;
        real *o = tensor_real(c->out[0]) + (token * s->heads + d->h) * s->dv;
        if (t % STATE_CHUNK == 0) pack_rows(s->dk, s->dv, S, d->width, kept_state(c, s, d->b, t / STATE_CHUNK, d->h));
        for (int64_t j = 0; j < s->steps; j++) forward_step(d, token, j, S, S, v, e);
        read_any(d->width, s->dk, value_row(c, DELTA_Q, token, d->h, s->dk), S, v);
        for (int64_t j = 0; j < s->dv; j++) o[j] = d->scale * v[j];
    }
}

static void write_row(const struct call *c, int i, int64_t token, int64_t row, int64_t n, const real *from) {
    real *to = gradient_row(c, i, token, row, n);
    for (int64_t j = 0; to && j < n; j++) put(to + j, call_accumulates(c, i), from[j]);
}

/* Computes the gradients of step j of a token. S is the state before the step, and e the step's error, which this
 * function multiplies by b. */
static void backward_step(const struct head *d, int64_t token, int64_t j, const real *S, real *e,
                          const struct work *w) {
    const struct call *c = d->c;
    int64_t row = j * d->s.heads + d->h, dk = d->s.dk;
    const real *k = value_row(c, DELTA_K, token, row, dk);
    real b = d->rate * *value_row(c, DELTA_BETA, token, row, 1), *dv = w->v, along = 0;
    read_any(d->width, dk, k, w->G, dv);
#pragma omp simd reduction(+ : along)
    for (int64_t i = 0; i < d->width; i++) {
        along += dv[i] * e[i];
        dv[i] *= b;
        e[i] *= b;
    }
    along *= d->rate;
    write_row(c, DELTA_BETA, token, row, 1, &along);
    write_row(c, DELTA_V, token, row, d->s.dv, dv);
    backward_any(d->width, dk, j ? 1 : decay_at(d, token), k, e, dv, S, w->G, w->sums);
    write_row(c, DELTA_K, token, row, dk, w->sums);
}

/* Computes the gradients of a token, which is token t of the chunk whose states and errors are in w. */
static void backward_token(const struct head *d, int64_t token, int64_t t, const struct work *w) {
    const struct call *c = d->c;
    int64_t steps = d->s.steps, dk = d->s.dk, dv = d->s.dv;
    const real *d_o = call_dout(c, 0) + (token * d->s.heads + d->h) * dv;
    real *S = w->S.at + t * steps * w->S.stride, *e = w->e.at + t * steps * w->e.stride, *G = w->G;
    pad_row(dv, d->width, d_o, w->v);
    for (int64_t j = 0; j < dv; j++) w->v[j] *= d->scale;
    unread_any(d->width, dk, value_row(c, DELTA_Q, token, d->h, dk), w->v, S + steps * w->S.stride, G, w->sums);
    write_row(c, DELTA_Q, token, d->h, dk, w->sums);
    for (int64_t j = steps - 1; j >= 0; j--) backward_step(d, token, j, S + j * w->S.stride, e + j * w->e.stride, w);
    if (!c->in[DELTA_DECAY]) return;
    real f = decay_at(d, token), along = 0;
#pragma omp simd reduction(+ : along)
    for (int64_t i = 0; i < d->n; i++) {
        along += G[i] * S[i];
        G[i] *= f;
    }
    write_row(c, DELTA_DECAY, token, d->h, 1, &along);
}

static void backward_head(const struct head *d, const struct work *w) {
    const struct state_shape *s = &d->s;
    int64_t steps = s->steps;
    real *S = w->S.at;
    memset(w->G, 0, (size_t)d->n * sizeof *w->G);
    for (int64_t chunk = s->chunks - 1; chunk >= 0; chunk--) {
        int64_t first = chunk * STATE_CHUNK, end = first + STATE_CHUNK < s->T ? first + STATE_CHUNK : s->T;
        unpack_rows(s->dk, s->dv, kept_state(d->c, s, d->b, chunk, d->h), d->width, S);
        for (int64_t i = 0; i < (end - first) * steps; i++)
            forward_step(d, d->b * s->T + first + i / steps, i % steps, S + i * w->S.stride, S + (i + 1) * w->S.stride,
                         w->v, w->e.at + i * w->e.stride);
        for (int64_t t = end - 1; t >= first; t--) backward_token(d, d->b * s->T + t, t - first, w);
    }
}

static bool scan_delta_cpu_applicable(const struct call *c, const char **why) {
    *why = DELTA_NOT_SCALAR;
    return delta_is_scalar(c);
}

static size_t scan_delta_cpu_workspace(const struct call *c, enum pass pass) {
    struct state_shape s = delta_shape(c);
    struct scratch scratch = scratch_measure(c);
    for (int64_t p = 0; p < state_parts(s.B * s.heads); p++) work_of(&s, pass, &scratch);
    return scratch.used;
}

static void run(const struct call *c, enum pass pass) {
    const struct delta_attr *a = delta_attr(c);
    struct state_shape s = delta_shape(c);
    int64_t pairs = s.B * s.heads, parts = state_parts(pairs), width = padded(s.dv);
    struct scratch all = scratch_of(c, pass);
#pragma omp parallel for schedule(static) if (s.B * s.T * s.heads * s.dk * s.dv > PARALLEL_MIN)
    for (int64_t p = 0; p < parts; p++) {
        struct range part = part_at(pairs, parts, p);
        struct scratch own = scratch_part(&all, p, parts);
        struct work w = work_of(&s, pass, &own);
        for (int64_t i = part.begin; i < part.end; i++) {
            struct head d = {c, s, i / s.heads, i % s.heads, width, s.dk * width, (real)a->rate, (real)a->scale};
            if (pass == PASS_FORWARD)
                forward_head(&d, &w);
            else
                backward_head(&d, &w);
        }
    }
}

static void scan_delta_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, PASS_FORWARD);
}

static void scan_delta_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, PASS_BACKWARD);
}

/* Tolerance: products of the state with vectors are sums of dk or dv terms in working precision, the error e of each
 * step subtracts such a sum, and the state carries rounding errors through T steps. */
const struct kernel kernel_scan_delta_cpu = {
    .name = "scan_delta_cpu",
    .op = &op_scan_delta,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 256,
    .applicable = scan_delta_cpu_applicable,
    .workspace = scan_delta_cpu_workspace,
    .forward = scan_delta_cpu_forward,
    .backward = scan_delta_cpu_backward,
};

/* scan_plstm_cpu.c - pLSTM on sequences. A thread computes one head of one sequence at a time. The head's J states fit
 * into the L1 cache; a SIMD vector has neighbouring columns of a row.
 *
 * A token has vectors q, k, v and gates S, T, M, D; a head has J states C[i] (dk x dv). Forward reads from the states
 * with M and q, then writes into them with S and k. E[i] is the gradient of C[i] and w = scale dy. Backward runs from
 * the last token to the first in the same form: it reads with S and k, writes with M and q, and transposes T:
 *   forward  out = sum_i M[i] C[i]^T q,  C[i] <- sum_j T[i][j] C[j] + S[i] k v^T,  y = scale (out + D (q.k) v)
 *   backward out = sum_i S[i] E[i]^T k,  E[i] <- sum_j T[j][i] E[j] + M[i] q w^T,  dv = out + D (q.k) w
 * Rows are padded with zeros, which stay zero.
 *
 * Backward computes the states again, in two passes, so that it stores only about 2 sqrt(T) states. The first pass runs
 * over all tokens and stores the states before every `stride`-th token. The second pass takes one stretch of `stride`
 * tokens at a time, the last stretch first: it computes all states of the stretch, then their gradients. */
#include "kernels/lib/scratch.h"
#include "kernels/plstm/dag_state.h"
#include "kernels/matrix/chunk.h"

enum { TRACK = SCAN_PLSTM_TRACK_MAX };

struct sizes {
    int64_t T, H, J, dk, dv, KW, VW, stride; /* KW, VW: dk and dv, padded to whole vectors */
    real scale;
};

/* The inputs of one head at one token, with padded vectors, and w = scale dy. */
struct token {
    const real *q, *k, *v, *S, *T, *M;
    real *w;
    real D;
    int64_t row, h;
};

/* Returns the number of reals in the J states. */
static int64_t state_reals(const struct sizes *z) {
    return z->J * z->KW * z->VW;
}

/* Padded vectors and sums of one token. Ev[i] = E[i] v and Cw[i] = C[i] w. */
struct rows {
    real *q, *k, *v, *w;
    real *out;     /* VW */
    real *Ev, *Cw; /* [J][KW] */
    real *dq, *dk; /* KW */
    real *dS, *dT; /* J, J x J */
    real *dM;      /* J */
};

static struct rows rows_of(const struct sizes *z, struct scratch *s) {
    struct rows rows, *r = &rows;
    int64_t J = z->J;
    const struct scratch_array list[] = {{&r->q, z->KW},   {&r->k, z->KW},      {&r->v, z->VW},      {&r->w, z->VW},
                                         {&r->out, z->VW}, {&r->Ev, J * z->KW}, {&r->Cw, J * z->KW}, {&r->dq, z->KW},
                                         {&r->dk, z->KW},  {&r->dS, J},         {&r->dT, J * J},     {&r->dM, J}};
    scratch_take(s, list, sizeof list / sizeof *list);
    return rows;
}

/* The arrays of one head. */
struct work {
    struct rows r;
    real *X;                             /* the states C in forward, their gradient E in backward */
    struct scratch_rows copies, stretch; /* backward: states before every stride-th token; states of one stretch */
};

static struct work work_of(const struct sizes *z, enum pass pass, struct scratch *s) {
    struct work w = {.r = rows_of(z, s)};
    w.X = scratch_reals(s, state_reals(z));
    if (pass == PASS_FORWARD) return w;
    w.copies = scratch_rows(s, (z->T - 1) / z->stride + 1, state_reals(z));
    w.stretch = scratch_rows(s, z->stride, state_reals(z));
    return w;
}

static struct sizes sizes_of(const struct call *c) {
    const struct scan_plstm_attr *a = scan_plstm_attr(c);
    struct dag_sizes d = dag_sizes_of(c, a->H);
    struct sizes z = {d.T, d.H, a->J, d.dk, d.dv, padded(d.dk), padded(d.dv), 1, (real)a->scale};
    while (z.stride * z.stride < z.T) z.stride++;
    return z;
}

/* Returns the vector `from` if it needs no padding, else its padded copy. */
static const real *whole_row(int64_t n, int64_t width, const real *from, real *copy) {
    if (n == width) return from;
    pad_row(n, width, from, copy);
    return copy;
}

static struct token token_at(const struct call *c, const struct sizes *z, const struct rows *r, int64_t row,
                             int64_t h) {
    int64_t J = z->J;
    return (struct token){.q = whole_row(z->dk, z->KW, head_in(c, 0, row, h, z->dk), r->q),
                          .k = whole_row(z->dk, z->KW, head_in(c, 1, row, h, z->dk), r->k),
                          .v = whole_row(z->dv, z->VW, head_in(c, 2, row, h, z->dv), r->v),
                          .S = head_in(c, 3, row, h, J),
                          .T = head_in(c, 4, row, h, J * J),
                          .M = head_in(c, 5, row, h, J),
                          .D = *head_in(c, 6, row, h, 1),
                          .w = r->w,
                          .row = row,
                          .h = h};
}

/* One step of the walk, where X are the states in forward and their gradients in backward:
 *   out += sum_i read[i] X[i]^T a,   X[i] <- sum_j through[i * row + j * column] X[j] + write[i] b u^T */
struct step {
    const real *read, *a, *through, *write, *b, *u;
    int64_t row, column;
};

/* Applies a step to one vector of columns in all rows and returns the new `out`. A row has `width` reals, a state has
 * n. X has the old states, `after` receives the new ones; both may be the same array. */
FORCE_INLINE lanes walk_columns(int64_t J, int64_t n, int64_t width, struct step s, const real *X, real *after, lanes u,
                                lanes out) {
    const real *a = s.a, *b = s.b;
    for (int64_t r = 0; r < n; r += width, a++, b++) {
        lanes old[TRACK], seen = {0}, bu = *b * u;
        for (int64_t i = 0; i < J; i++) {
            old[i] = lanes_at(X + i * n + r);
            seen = lanes_axpy(s.read[i], old[i], seen);
        }
        out = lanes_axpy(*a, seen, out);
        for (int64_t i = 0; i < J; i++) {
            lanes sum = s.write[i] * bu;
            for (int64_t j = 0; j < J; j++) sum = lanes_axpy(s.through[i * s.row + j * s.column], old[j], sum);
            lanes_to(after + i * n + r, sum);
        }
    }
    return out;
}

/* Like walk_columns for one state, whose three gates stay in registers. */
FORCE_INLINE lanes walk_single(int64_t n, int64_t width, struct step s, const real *X, real *after, lanes u,
                               lanes out) {
    const real *a = s.a, *b = s.b;
    lanes through = *s.through - (lanes){0}, write = *s.write * u, seen = {0};
    for (int64_t r = 0; r < n; r += width, a++, b++) {
        lanes old = lanes_at(X + r);
        seen = lanes_axpy(*a, old, seen);
        lanes_to(after + r, lanes_axpy(*b, write, through * old));
    }
    return lanes_axpy(*s.read, seen, out);
}

/* Applies a step to all columns. J is passed as a constant, so that the loops over states are unrolled. */
static void walk_token(const struct sizes *z, struct step s, const real *X, real *after, real *out) {
    int64_t J = z->J, width = z->VW, n = z->KW * width;
    for (int64_t e = 0; e < width; e += LANES) {
        lanes sum = lanes_at(out + e), u = lanes_at(s.u + e);
        switch (J) {
        case 1:
            sum = walk_single(n, width, s, X + e, after + e, u, sum);
            break;
        case 2:
            sum = walk_columns(2, n, width, s, X + e, after + e, u, sum);
            break;
        case 3:
            sum = walk_columns(3, n, width, s, X + e, after + e, u, sum);
            break;
        case 4:
            sum = walk_columns(4, n, width, s, X + e, after + e, u, sum);
            break;
        default:
            sum = walk_columns(J, n, width, s, X + e, after + e, u, sum);
            break;
        }
        lanes_to(out + e, sum);
    }
}

static struct step step_forward(const struct sizes *z, const struct token *t) {
    return (struct step){t->M, t->q, t->T, t->S, t->k, t->v, z->J, 1};
}

static struct step step_backward(const struct sizes *z, const struct token *t) {
    return (struct step){t->S, t->k, t->T, t->M, t->q, t->w, 1, z->J};
}

static void forward_head(const struct call *c, const struct sizes *z, int64_t b, int64_t h, struct scratch own) {
    struct work w = work_of(z, PASS_FORWARD, &own);
    struct rows r = w.r;
    real *C = w.X;
    memset(C, 0, (size_t)state_reals(z) * sizeof *C);
    for (int64_t row = b * z->T; row < (b + 1) * z->T; row++) {
        struct token t = token_at(c, z, &r, row, h);
        scale_row(z->VW, t.D * dot_product(z->dk, t.q, t.k), t.v, r.out);
        walk_token(z, step_forward(z, &t), C, C, r.out);
        scale_row(z->VW, z->scale, r.out, r.out);
        copy_row(z->dv, r.out, tensor_real(c->out[0]) + (row * z->H + h) * z->dv);
    }
}

/* Computes Ev, Cw, dS, dM and dT of a token. C has the states before the token, E the gradient of the states after it.
 */
static void state_gradients(const struct sizes *z, const struct token *t, const real *C, const real *E,
                            const struct rows *r) {
    int64_t KW = z->KW, VW = z->VW, n = KW * VW, J = z->J;
    for (int64_t i = 0; i < J; i++) {
        real *Ev = r->Ev + i * KW, *Cw = r->Cw + i * KW;
        for (int64_t k = 0; k < KW; k += STATE_CHUNK) {
            row_dots(VW, E + i * n + k * VW, VW, t->v, 0, Ev + k);
            row_dots(VW, C + i * n + k * VW, VW, t->w, 0, Cw + k);
        }
        r->dS[i] = dot_product(KW, t->k, Ev);
        r->dM[i] = dot_product(KW, t->q, Cw);
        for (int64_t j = 0; j < J; j++) r->dT[i * J + j] = state_dot(n, E + i * n, C + j * n);
    }
}

static void put_gradients(const struct call *c, const struct sizes *z, const struct token *t, const struct rows *r) {
    int64_t J = z->J, KW = z->KW;
    real qk = dot_product(KW, t->q, t->k), vw = dot_product(z->VW, t->v, t->w), dD = qk * vw;
    scale_row(KW, t->D * vw, t->k, r->dq);
    scale_row(KW, t->D * vw, t->q, r->dk);
    for (int64_t i = 0; i < J; i++) {
        add_row(KW, t->M[i], r->Cw + i * KW, r->dq);
        add_row(KW, t->S[i], r->Ev + i * KW, r->dk);
    }
    add_row(z->VW, t->D * qk, t->w, r->out);
    const real *from[7] = {r->dq, r->dk, r->out, r->dS, r->dT, r->dM, &dD};
    int64_t widths[7] = {z->dk, z->dk, z->dv, J, J * J, J, 1};
    for (int i = 0; i < 7; i++)
        put_row(head_din(c, i, t->row, t->h, widths[i]), call_accumulates(c, i), widths[i], from[i]);
}

static void backward_token(const struct call *c, const struct sizes *z, const struct rows *r, int64_t row, int64_t h,
                           const real *C, real *E) {
    struct token t = token_at(c, z, r, row, h);
    pad_row(z->dv, z->VW, call_dout(c, 0) + (row * z->H + h) * z->dv, t.w);
    scale_row(z->VW, z->scale, t.w, t.w);
    state_gradients(z, &t, C, E, r);
    clear_row(z->VW, r->out);
    walk_token(z, step_backward(z, &t), E, E, r->out);
    put_gradients(c, z, &t, r);
}

/* Computes the states after token `row` from the states before it. */
static void next_states(const struct call *c, const struct sizes *z, const struct rows *r, int64_t row, int64_t h,
                        const real *before, real *after) {
    struct token t = token_at(c, z, r, row, h);
    walk_token(z, step_forward(z, &t), before, after, r->out);
}

static void backward_head(const struct call *c, const struct sizes *z, int64_t b, int64_t h, struct scratch own) {
    struct work w = work_of(z, PASS_BACKWARD, &own);
    struct rows r = w.r;
    int64_t n = state_reals(z), first_row = b * z->T, last = (z->T - 1) / z->stride;
    int64_t copy = w.copies.stride, next = w.stretch.stride;
    real *copies = w.copies.at, *stretch = w.stretch.at, *E = w.X;
    memset(copies, 0, (size_t)n * sizeof *copies);
    memset(E, 0, (size_t)n * sizeof *E);
    clear_row(z->VW, r.out);
    for (int64_t t = 0; t < last * z->stride; t++) {
        real *from = t % z->stride ? stretch : copies + t / z->stride * copy;
        real *to = (t + 1) % z->stride ? stretch : copies + (t + 1) / z->stride * copy;
        next_states(c, z, &r, first_row + t, h, from, to);
    }
    for (int64_t first = last * z->stride; first >= 0; first -= z->stride) {
        int64_t end = first + z->stride < z->T ? first + z->stride : z->T;
        memcpy(stretch, copies + first / z->stride * copy, (size_t)n * sizeof *stretch);
        for (int64_t t = first; t + 1 < end; t++)
            next_states(c, z, &r, first_row + t, h, stretch + (t - first) * next, stretch + (t + 1 - first) * next);
        for (int64_t t = end - 1; t >= first; t--)
            backward_token(c, z, &r, first_row + t, h, stretch + (t - first) * next, E);
    }
}

static size_t scan_plstm_cpu_workspace(const struct call *c, enum pass pass) {
    struct sizes z = sizes_of(c);
    struct scratch s = scratch_measure(c);
    for (int64_t i = 0; i < dag_groups(c, z.H); i++) work_of(&z, pass, &s);
    return s.used;
}

static void run_head(const struct call *c, enum pass pass, const void *sizes, int64_t b, int64_t h,
                     struct scratch own) {
    (pass == PASS_FORWARD ? forward_head : backward_head)(c, sizes, b, h, own);
}

static void run(const struct call *c, enum pass pass) {
    struct sizes z = sizes_of(c);
    int64_t work = c->in[0]->dims[0] * z.H * z.T * z.dk * z.dv;
    dag_each_head(c, pass, z.H, work, scratch_of(c, pass), run_head, &z);
}

static void scan_plstm_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, PASS_FORWARD);
}

static void scan_plstm_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, PASS_BACKWARD);
}

/* Tolerance: each of T steps rounds the state, and gradients are sums of dk dv products that cancel. At the lengths of
 * the tests the error reaches some hundred roundings of the largest value. */
const struct kernel kernel_scan_plstm_cpu = {
    .name = "scan_plstm_cpu",
    .op = &op_scan_plstm,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 512,
    .workspace = scan_plstm_cpu_workspace,
    .forward = scan_plstm_cpu_forward,
    .backward = scan_plstm_cpu_backward,
};

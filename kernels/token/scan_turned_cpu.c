/* scan_turned_cpu.c - scan_turned on the CPU; scan_turned.c has the equations.
 *
 * The work is cut into parts; a part has some sequences and some states. It takes its tokens in blocks of about 64, so
 * that only one block's angles are in memory, and they stay in the cache. One matrix product gives the angles. Backward
 * then walks over the block twice: from the first token to the last, to compute the turned states, and from the last to
 * the first, to replace each angle by its gradient. Two matrix products give du and dW from these gradients. If several
 * parts contribute to a result, their sums are added in the order of the parts: y, dx and du over states, and dW, db
 * and dK over sequences. */
#include <string.h>

#include "kernels/lib/gemm.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"
#include "kernels/token/half_turns.h"
#include "kernels/token/scan_turned.h"

#define MAX_TILES 8 /* most parts into which the sequences are cut */
#define MAX_CUTS  4 /* most parts into which the states are cut if there are few sequences */

struct cut {
    struct turned_size s;
    int64_t tiles, cuts;
};

static struct cut cut_of(const struct call *c) {
    struct cut k = {turned_size_of(c), 0, 0};
    int64_t blocks = turned_blocks(&k.s, k.s.B, TURNED_CHUNK);
    int64_t units = blocks < k.s.B ? blocks : k.s.B; /* a unit has several short sequences, or one */
    k.tiles = units < MAX_TILES ? units : MAX_TILES;
    k.cuts = k.tiles < MAX_CUTS ? MAX_CUTS : 1;
    if (k.cuts > k.s.N) k.cuts = k.s.N;
    return k;
}

/* The sequences and states of a part. `first` and `count` are its range of channels, where a channel is one state. */
struct part {
    struct range sequences;
    int64_t cut, first, count;
};

static struct part part_of(const struct cut *k, int64_t i) {
    struct range states = part_at(k->s.N, k->cuts, i % k->cuts);
    return (struct part){part_at(k->s.B, k->tiles, i / k->cuts), i % k->cuts, states.begin * k->s.D,
                         (states.end - states.begin) * k->s.D};
}

/* Scratch arrays of a part: the angles of a block's tokens, and h of a sequence. Backward also has the turned states p
 * of the block's tokens, G and the sums for dK and db of each channel, the sums for dW, and the sums of one block for
 * db. */
struct walk {
    real *theta, *p_re, *p_im, *h_re, *h_im, *G_re, *G_im, *dk_re, *dk_im, *db, *db_block, *dW;
};

static struct walk walk_of(const struct cut *k, enum pass pass, struct scratch *scratch) {
    int64_t n = (k->s.N + k->cuts - 1) / k->cuts * k->s.D;
    struct walk w = {0};
    scratch_take(scratch, (struct scratch_array[]){{&w.theta, TURNED_CHUNK * n}, {&w.h_re, n}, {&w.h_im, n}}, 3);
    if (pass == PASS_FORWARD) return w;
    scratch_take(scratch,
                 (struct scratch_array[]){{&w.p_re, TURNED_CHUNK * n},
                                          {&w.p_im, TURNED_CHUNK * n},
                                          {&w.G_re, n},
                                          {&w.G_im, n},
                                          {&w.dk_re, n},
                                          {&w.dk_im, n},
                                          {&w.db, n},
                                          {&w.db_block, n},
                                          {&w.dW, n * k->s.I}},
                 9);
    return w;
}

/* If the states are cut, each range of states has its own copy of y (backward: of dx and du). The copies are added in
 * order. */
struct shares {
    struct scratch_rows y, dx, du;
};

static struct shares shares_of(const struct cut *k, enum pass pass, struct scratch *scratch) {
    int64_t tokens = k->s.B * k->s.T;
    struct shares h = {0};
    if (pass == PASS_FORWARD) {
        h.y = scratch_rows(scratch, k->cuts, tokens * k->s.D);
    } else {
        h.dx = scratch_rows(scratch, k->cuts, tokens * k->s.D);
        h.du = scratch_rows(scratch, k->cuts, tokens * k->s.I);
    }
    return h;
}

static size_t scan_turned_cpu_workspace(const struct call *c, enum pass pass) {
    struct cut k = cut_of(c);
    struct scratch s = scratch_measure(c);
    shares_of(&k, pass, &s);
    for (int64_t i = 0; i < k.tiles * k.cuts; i++) walk_of(&k, pass, &s);
    return s.used;
}

/* Computes W u of a block's tokens, which is theta without b. */
static void angles(const struct call *c, const struct turned_size *s, struct part p, struct turned_block k,
                   real *theta) {
    real_gemm(false, true, k.n * k.length, p.count, s->I, 1, tensor_real(c->in[TURNED_U]) + (k.b * s->T + k.t) * s->I,
              s->I, tensor_real(c->in[TURNED_W]) + p.first * s->I, s->I, false, theta, p.count);
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

static void step_forward(const struct call *c, const struct turned_size *s, struct part p, const struct walk *w,
                         const real *theta, int64_t token, real *y) {
    const real *x = tensor_real(c->in[TURNED_X]) + token * s->D;
    memset(y, 0, (size_t)s->D * sizeof *y);
    for (int64_t first = 0; first < p.count; first += s->D) {
        const real *b = tensor_real(c->in[TURNED_B]) + p.first + first, *angle = theta + first;
        real k_re = tensor_real(c->in[TURNED_K_RE])[(p.first + first) / s->D];
        real k_im = tensor_real(c->in[TURNED_K_IM])[(p.first + first) / s->D];
        real *h_re = w->h_re + first, *h_im = w->h_im + first;
#pragma omp simd
        for (int64_t i = 0; i < s->D; i++) {
            real sine, cosine;
            sine_cosine(angle[i] + b[i], &sine, &cosine);
            real re = real_fma(cosine, h_re[i], real_fma(-sine, h_im[i], x[i]));
            real im = real_fma(sine, h_re[i], cosine * h_im[i]);
            h_re[i] = re;
            h_im[i] = im;
            y[i] += real_fma(k_re, re, -k_im * im);
        }
    }
}

static void forward_part(const struct call *c, const struct cut *k, struct part p, struct walk w, real *y) {
    const struct turned_size *s = &k->s;
    int64_t blocks = turned_blocks(s, p.sequences.end - p.sequences.begin, TURNED_CHUNK);
    size_t bytes = (size_t)p.count * sizeof(real);
    for (int64_t i = 0; i < blocks; i++) {
        struct turned_block at = turned_block_at(s, p.sequences.begin, p.sequences.end, TURNED_CHUNK, i);
        angles(c, s, p, at, w.theta);
        for (int64_t r = 0; r < at.n * at.length; r++) {
            int64_t b = at.b + r / at.length, t = at.t + r % at.length, token = b * s->T + t;
            if (t == 0) memset(w.h_re, 0, bytes), memset(w.h_im, 0, bytes);
            step_forward(c, s, p, &w, w.theta + r * p.count, token, y + token * s->D);
            if (turned_keeps(s, t)) {
                real *kept = tensor_real(c->out[TURNED_KEPT]) + turned_kept_at(s, b, t) + p.first;
                memcpy(kept, w.h_re, bytes);
                memcpy(kept + s->channels, w.h_im, bytes);
            }
        }
    }
}

static void scan_turned_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    struct cut k = cut_of(c);
    struct scratch all = scratch_of(c, PASS_FORWARD);
    struct shares h = shares_of(&k, PASS_FORWARD, &all);
    int64_t parts = k.tiles * k.cuts, tokens = k.s.B * k.s.T;
#pragma omp parallel for schedule(static) if (tokens * k.s.channels > PARALLEL_MIN)
    for (int64_t i = 0; i < parts; i++) {
        struct scratch own = scratch_part(&all, i, parts);
        struct part p = part_of(&k, i);
        forward_part(c, &k, p, walk_of(&k, PASS_FORWARD, &own), h.y.at + p.cut * h.y.stride);
    }
    sum_partials(tokens * k.s.D, k.cuts, h.y.at, h.y.stride, tensor_real(c->out[TURNED_Y]), false);
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

/* Computes p = e^(i theta) h, then h = p + x. */
static void step_again(const struct call *c, const struct turned_size *s, struct part p, const struct walk *w,
                       int64_t row, int64_t token) {
    const real *x = tensor_real(c->in[TURNED_X]) + token * s->D;
    for (int64_t first = 0; first < p.count; first += s->D) {
        const real *b = tensor_real(c->in[TURNED_B]) + p.first + first, *angle = w->theta + row * p.count + first;
        real *p_re = w->p_re + row * p.count + first, *p_im = w->p_im + row * p.count + first;
        real *h_re = w->h_re + first, *h_im = w->h_im + first;
#pragma omp simd
        for (int64_t i = 0; i < s->D; i++) {
            real sine, cosine;
            sine_cosine(angle[i] + b[i], &sine, &cosine);
            p_re[i] = real_fma(cosine, h_re[i], -sine * h_im[i]);
            p_im[i] = real_fma(sine, h_re[i], cosine * h_im[i]);
            h_re[i] = p_re[i] + x[i];
            h_im[i] = p_im[i];
        }
    }
}

/* Replaces theta by its gradient, and G by the gradient that flows to the previous token. */
static void step_backward(const struct call *c, const struct turned_size *s, struct part p, const struct walk *w,
                          int64_t row, int64_t token, real *dx) {
    const real *x = tensor_real(c->in[TURNED_X]) + token * s->D, *dy = call_dout(c, TURNED_Y) + token * s->D;
    memset(dx, 0, (size_t)s->D * sizeof *dx);
    for (int64_t first = 0; first < p.count; first += s->D) {
        const real *b = tensor_real(c->in[TURNED_B]) + p.first + first;
        real k_re = tensor_real(c->in[TURNED_K_RE])[(p.first + first) / s->D];
        real k_im = tensor_real(c->in[TURNED_K_IM])[(p.first + first) / s->D];
        const real *p_re = w->p_re + row * p.count + first, *p_im = w->p_im + row * p.count + first;
        real *angle = w->theta + row * p.count + first, *G_re = w->G_re + first, *G_im = w->G_im + first;
        real *dk_re = w->dk_re + first, *dk_im = w->dk_im + first;
#pragma omp simd
        for (int64_t i = 0; i < s->D; i++) {
            real sine, cosine, d = dy[i];
            sine_cosine(angle[i] + b[i], &sine, &cosine);
            real g_re = real_fma(k_re, d, G_re[i]), g_im = real_fma(-k_im, d, G_im[i]);
            dk_re[i] = real_fma(d, p_re[i] + x[i], dk_re[i]);
            dk_im[i] = real_fma(-d, p_im[i], dk_im[i]);
            dx[i] += g_re;
            angle[i] = real_fma(p_re[i], g_im, -p_im[i] * g_re);
            G_re[i] = real_fma(cosine, g_re, sine * g_im);
            G_im[i] = real_fma(cosine, g_im, -sine * g_re);
        }
    }
}

static void backward_part(const struct call *c, const struct cut *k, struct part p, struct walk w, real *dx, real *du) {
    const struct turned_size *s = &k->s;
    int64_t blocks = turned_blocks(s, p.sequences.end - p.sequences.begin, TURNED_CHUNK);
    size_t bytes = (size_t)p.count * sizeof(real);
    memset(w.dk_re, 0, bytes);
    memset(w.dk_im, 0, bytes);
    memset(w.db, 0, bytes);
    for (int64_t i = blocks - 1; i >= 0; i--) {
        struct turned_block at = turned_block_at(s, p.sequences.begin, p.sequences.end, TURNED_CHUNK, i);
        int64_t rows = at.n * at.length, before = at.b * s->T + at.t;
        angles(c, s, p, at, w.theta);
        if (at.t > 0) {
            const real *kept = tensor_real(c->out[TURNED_KEPT]) + turned_kept_at(s, at.b, at.t - 1) + p.first;
            memcpy(w.h_re, kept, bytes);
            memcpy(w.h_im, kept + s->channels, bytes);
        }
        for (int64_t r = 0; r < rows; r++) {
            int64_t b = at.b + r / at.length, t = at.t + r % at.length;
            if (t == 0) memset(w.h_re, 0, bytes), memset(w.h_im, 0, bytes);
            step_again(c, s, p, &w, r, b * s->T + t);
        }
        for (int64_t r = rows - 1; r >= 0; r--) {
            int64_t b = at.b + r / at.length, t = at.t + r % at.length, token = b * s->T + t;
            if (t == s->T - 1) memset(w.G_re, 0, bytes), memset(w.G_im, 0, bytes);
            step_backward(c, s, p, &w, r, token, dx + token * s->D);
        }
        const real *u = tensor_real(c->in[TURNED_U]) + before * s->I;
        if (c->din[TURNED_U])
            real_gemm(false, false, rows, s->I, p.count, 1, w.theta, p.count,
                      tensor_real(c->in[TURNED_W]) + p.first * s->I, s->I, false, du + before * s->I, s->I);
        if (c->din[TURNED_W])
            real_gemm(true, false, p.count, s->I, rows, 1, w.theta, p.count, u, s->I, i < blocks - 1, w.dW, s->I);
        if (c->din[TURNED_B]) {
            chunk_sums((struct range){0, rows}, p.count, w.theta, NULL, w.db_block);
            for (int64_t e = 0; e < p.count; e++) w.db[e] += w.db_block[e];
        }
    }
}

/* Writes, or adds, dK of a part's states: the sums over their channels. */
static void put_read_out(const struct call *c, int input, int64_t D, struct part p, const real *sums, bool add) {
    for (int64_t first = 0; first < p.count && c->din[input]; first += D) {
        double sum = 0;
        for (int64_t i = 0; i < D; i++) sum += sums[first + i];
        put(c->din[input] + (p.first + first) / D, add || call_accumulates(c, input), (real)sum);
    }
}

static void scan_turned_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    struct cut k = cut_of(c);
    struct scratch all = scratch_of(c, PASS_BACKWARD);
    struct shares h = shares_of(&k, PASS_BACKWARD, &all);
    int64_t parts = k.tiles * k.cuts, tokens = k.s.B * k.s.T, I = k.s.I;
#pragma omp parallel for schedule(static) if (tokens * k.s.channels > PARALLEL_MIN)
    for (int64_t i = 0; i < parts; i++) {
        struct scratch own = scratch_part(&all, i, parts);
        struct part p = part_of(&k, i);
        backward_part(c, &k, p, walk_of(&k, PASS_BACKWARD, &own), h.dx.at + p.cut * h.dx.stride,
                      h.du.at + p.cut * h.du.stride);
    }
    if (c->din[TURNED_X])
        sum_partials(tokens * k.s.D, k.cuts, h.dx.at, h.dx.stride, c->din[TURNED_X], call_accumulates(c, TURNED_X));
    if (c->din[TURNED_U])
        sum_partials(tokens * I, k.cuts, h.du.at, h.du.stride, c->din[TURNED_U], call_accumulates(c, TURNED_U));
    for (int64_t i = 0; i < parts; i++) {
        struct scratch own = scratch_part(&all, i, parts);
        struct part p = part_of(&k, i);
        struct walk w = walk_of(&k, PASS_BACKWARD, &own);
        bool add = i >= k.cuts;
        put_read_out(c, TURNED_K_RE, k.s.D, p, w.dk_re, add);
        put_read_out(c, TURNED_K_IM, k.s.D, p, w.dk_im, add);
        if (c->din[TURNED_W])
            sum_partials(p.count * I, 1, w.dW, 0, c->din[TURNED_W] + p.first * I, add || call_accumulates(c, TURNED_W));
        if (c->din[TURNED_B])
            sum_partials(p.count, 1, w.db, 0, c->din[TURNED_B] + p.first, add || call_accumulates(c, TURNED_B));
    }
}

/* Tolerance: an angle is a sum of products in working precision, and a state turns by the sum of up to T angles. */
const struct kernel kernel_scan_turned_cpu = {
    .name = "scan_turned_cpu",
    .op = &op_scan_turned,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 512,
    .tiles =
        "angles come from products of a block's tokens, and the library takes other tiles for other numbers of rows",
    .workspace = scan_turned_cpu_workspace,
    .forward = scan_turned_cpu_forward,
    .backward = scan_turned_cpu_backward,
};

/* grid_gates_cpu.c - the gates of grid nodes, with chunks of nodes on threads, directions and heads in vectors. The
 * equations are in grid_gates.c. */
#include "core/real_math.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"
#include "kernels/lib/unroll.h"
#include "kernels/plstm/grid/grid.h"

#define RAW_MAX 7

/* The raw values of one node, and the places of their gradients; NULL: not wanted. */
struct raw {
    const real *z[RAW_MAX];
    real *dz[RAW_MAX];
    bool add[RAW_MAX];
};

static struct raw raw_of(const struct call *c, int64_t at) {
    struct raw r = {{0}, {0}, {0}};
    for (int j = 0; j < RAW_MAX; j++) /* a form with fewer raw values does not read the rest */
        r.z[j] = tensor_real(c->in[j < c->n_in ? j : 0]) + at;
    for (int j = 0; j < c->n_in; j++) {
        r.dz[j] = c->din[j] ? c->din[j] + at : NULL;
        r.add[j] = call_accumulates(c, j);
    }
    return r;
}

/* --- P-mode ------------------------------------------------------------------------------------------------------- */

FORCE_INLINE void node_p(bool ref, int64_t width, struct raw r, real *gate) {
    const real *s = r.z[0], *t = r.z[1], *m = r.z[2], *o = r.z[3];
#pragma omp simd
    for (int64_t k = 0; k < width; k++) {
        real S = real_sigmoid(s[k]), T = real_tanh(5 * t[k]), a = real_sigmoid(o[k]), M = real_sigmoid(m[k]);
        real right = T * a, down = ref ? 1 - T * a : T * (1 - a);
        gate[GRID_SR * width + k] = S * a;
        gate[GRID_SD * width + k] = ref ? 1 - S * a : S * (1 - a);
        gate[GRID_RL * width + k] = right;
        gate[GRID_RU * width + k] = right;
        gate[GRID_DL * width + k] = down;
        gate[GRID_DU * width + k] = down;
        gate[GRID_ML * width + k] = M;
        gate[GRID_MU * width + k] = M;
    }
}

/* Computes dz of the four raw values in four rows. */
FORCE_INLINE void node_p_gradient(bool ref, int64_t width, struct raw r, const real *d, struct scratch_rows rows) {
    const real *s = r.z[0], *t = r.z[1], *m = r.z[2], *o = r.z[3];
    real *dz = rows.at;
    int64_t row = rows.stride;
#pragma omp simd
    for (int64_t k = 0; k < width; k++) {
        real S = real_sigmoid(s[k]), T = real_tanh(5 * t[k]), a = real_sigmoid(o[k]), M = real_sigmoid(m[k]);
        real sr = d[GRID_SR * width + k], sd = d[GRID_SD * width + k];
        real right = d[GRID_RL * width + k] + d[GRID_RU * width + k];
        real down = d[GRID_DL * width + k] + d[GRID_DU * width + k];
        real source = ref ? a * (sr - sd) : real_fma(a, sr, (1 - a) * sd);
        real carry = ref ? a * (right - down) : real_fma(a, right, (1 - a) * down);
        dz[k] = source * (S * (1 - S));
        dz[row + k] = carry * (5 * (1 - T) * (1 + T));
        dz[2 * row + k] = (d[GRID_ML * width + k] + d[GRID_MU * width + k]) * (M * (1 - M));
        dz[3 * row + k] = real_fma(T, right - down, S * (sr - sd)) * (a * (1 - a));
    }
}

/* --- D-mode: each gate has its own raw value ---------------------------------------------------------------------- */

static void sigmoid_row(int64_t width, const real *z, real *gate) {
#pragma omp simd
    for (int64_t k = 0; k < width; k++) gate[k] = real_sigmoid(z[k]);
}

static void tanh_row(int64_t width, const real *z, real *gate) {
#pragma omp simd
    for (int64_t k = 0; k < width; k++) gate[k] = real_tanh(5 * z[k]);
}

static void sigmoid_row_gradient(int64_t width, const real *z, const real *d, real *dz) {
#pragma omp simd
    for (int64_t k = 0; k < width; k++) {
        real s = real_sigmoid(z[k]);
        dz[k] = d[k] * (s * (1 - s));
    }
}

static void tanh_row_gradient(int64_t width, const real *z, const real *d, real *dz) {
#pragma omp simd
    for (int64_t k = 0; k < width; k++) {
        real t = real_tanh(5 * z[k]);
        dz[k] = d[k] * (5 * (1 - t) * (1 + t));
    }
}

/* Plane of the gate that raw value j of D-mode makes. */
static int plane_of(enum grid_form form, int j) {
    static const int planes[RAW_MAX] = {GRID_SR, GRID_SD, GRID_RL, GRID_DU, GRID_RU, GRID_ML, GRID_MU};
    return j == 4 && form == GRID_D_RIGHT ? GRID_DL : planes[j];
}

static bool is_logistic(int j) {
    return j < 2 || j > 4;
}

static void node_d(enum grid_form form, int64_t width, struct raw r, real *gate) {
    for (int j = 0; j < RAW_MAX; j++)
        (is_logistic(j) ? sigmoid_row : tanh_row)(width, r.z[j], gate + plane_of(form, j) * width);
    real *unused = gate + (form == GRID_D_LEFT ? GRID_DL : GRID_RU) * width;
    for (int64_t k = 0; k < width; k++) unused[k] = 0;
}

static void node_d_gradient(enum grid_form form, int64_t width, struct raw r, const real *d, struct scratch_rows dz) {
    for (int j = 0; j < RAW_MAX; j++)
        (is_logistic(j) ? sigmoid_row_gradient : tanh_row_gradient)(width, r.z[j], d + plane_of(form, j) * width,
                                                                    dz.at + j * dz.stride);
}

/* --- all nodes ---------------------------------------------------------------------------------------------------- */

static void grid_gates_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    enum grid_form form = grid_gates_attr(c)->form;
    int64_t rows = tensor_rows(c->in[0]), width = tensor_cols(c->in[0]), chunks = row_chunks(rows);
#pragma omp parallel for schedule(static) if (tensor_count(c->out[0]) > PARALLEL_MIN)
    for (int64_t i = 0; i < chunks; i++) {
        struct range part = part_at(rows, chunks, i);
        for (int64_t row = part.begin; row < part.end; row++) {
            struct raw r = raw_of(c, row * width);
            real *gate = tensor_real(c->out[0]) + row * GRID_PLANES * width;
            if (form == GRID_P)
                node_p(false, width, r, gate);
            else if (form == GRID_P_REF)
                node_p(true, width, r, gate);
            else
                node_d(form, width, r, gate);
        }
    }
}

/* Seven rows for each chunk of nodes. */
static size_t grid_gates_cpu_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    int64_t chunks = pass == PASS_FORWARD ? 0 : row_chunks(tensor_rows(c->in[0]));
    for (int64_t i = 0; i < chunks; i++) scratch_rows(&s, RAW_MAX, tensor_cols(c->in[0]));
    return s.used;
}

static void put_rows(int n, int64_t width, struct raw r, struct scratch_rows dz) {
    for (int j = 0; j < n; j++) {
        if (!r.dz[j]) continue;
        real *to = r.dz[j];
        const real *from = dz.at + j * dz.stride;
        bool add = r.add[j];
#pragma omp simd
        for (int64_t k = 0; k < width; k++) put(&to[k], add, from[k]);
    }
}

static void grid_gates_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    enum grid_form form = grid_gates_attr(c)->form;
    int64_t rows = tensor_rows(c->in[0]), width = tensor_cols(c->in[0]), chunks = row_chunks(rows);
    struct scratch all = scratch_of(c, PASS_BACKWARD);
#pragma omp parallel for schedule(static) if (tensor_count(c->out[0]) > PARALLEL_MIN)
    for (int64_t i = 0; i < chunks; i++) {
        struct range part = part_at(rows, chunks, i);
        struct scratch own = scratch_part(&all, i, chunks);
        struct scratch_rows dz = scratch_rows(&own, RAW_MAX, width);
        for (int64_t row = part.begin; row < part.end; row++) {
            struct raw r = raw_of(c, row * width);
            const real *d = call_dout(c, 0) + row * GRID_PLANES * width;
            if (form == GRID_P)
                node_p_gradient(false, width, r, d, dz);
            else if (form == GRID_P_REF)
                node_p_gradient(true, width, r, d, dz);
            else
                node_d_gradient(form, width, r, d, dz);
            put_rows(c->n_in, width, r, dz);
        }
    }
}

/* Tolerance: exponentials with errors of a few units in the last place, and a few roundings; slopes cancel once, in
 * 1 - s and 1 - T. */
const struct kernel kernel_grid_gates_cpu = {
    .name = "grid_gates_cpu",
    .op = &op_grid_gates,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 32,
    .workspace = grid_gates_cpu_workspace,
    .forward = grid_gates_cpu_forward,
    .backward = grid_gates_cpu_backward,
};

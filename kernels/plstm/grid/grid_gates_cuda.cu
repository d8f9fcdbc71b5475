/* grid_gates_cuda.cu - the gates of grid nodes on CUDA: one direction and head of a node per thread. The equations are
 * in grid_gates.c. */
#include "core/real_math.h"
#include "kernels/lib/cuda.cuh"
#include "kernels/plstm/grid/grid.h"

#define RAW_MAX 7

namespace {

/* Raw values (rows,width), as many as the form has; gates (rows, GRID_PLANES * width). */
struct raw_gates {
    enum grid_form form;
    int64_t width;
    const real *z[RAW_MAX];

    __device__ bool per_node() const { /* P-mode */
        return form == GRID_P || form == GRID_P_REF;
    }
    /* Index of plane 0 of element i of the raw values. */
    __device__ int64_t gate_at(int64_t i) const {
        struct quotient at = divide(i, width);
        return at.whole * GRID_PLANES * width + at.rest;
    }
    /* The plane of the gate that raw value j of D-mode makes. */
    __device__ int plane_of(int j) const {
        constexpr int planes[RAW_MAX] = {GRID_SR, GRID_SD, GRID_RL, GRID_DU, GRID_RU, GRID_ML, GRID_MU};
        return j == 4 && form == GRID_D_RIGHT ? GRID_DL : planes[j];
    }
};

__device__ __forceinline__ bool is_logistic(int j) {
    return j < 2 || j > 4;
}

struct make_gates {
    struct raw_gates k;
    real *gates;

    __device__ void of_p(int64_t i, real *gate) const {
        real S = real_sigmoid(k.z[0][i]), T = real_tanh(5 * k.z[1][i]), M = real_sigmoid(k.z[2][i]);
        real a = real_sigmoid(k.z[3][i]);
        bool ref = k.form == GRID_P_REF;
        gate[GRID_SR * k.width] = S * a;
        gate[GRID_SD * k.width] = ref ? 1 - S * a : S * (1 - a);
        gate[GRID_RL * k.width] = gate[GRID_RU * k.width] = T * a;
        gate[GRID_DL * k.width] = gate[GRID_DU * k.width] = ref ? 1 - T * a : T * (1 - a);
        gate[GRID_ML * k.width] = gate[GRID_MU * k.width] = M;
    }
    __device__ void operator()(int64_t i) const {
        real *gate = gates + k.gate_at(i);
        if (k.per_node()) {
            of_p(i, gate);
            return;
        }
        for (int j = 0; j < RAW_MAX; j++)
            gate[k.plane_of(j) * k.width] = is_logistic(j) ? real_sigmoid(k.z[j][i]) : real_tanh(5 * k.z[j][i]);
        gate[(k.form == GRID_D_LEFT ? GRID_DL : GRID_RU) * k.width] = 0;
    }
};

struct gate_gradients {
    struct raw_gates k;
    const real *d;
    real *dz[RAW_MAX]; /* NULL: not wanted */
    bool add[RAW_MAX];

    __device__ void write(int j, int64_t i, real value) const {
        if (dz[j]) put(dz[j] + i, add[j], value);
    }
    __device__ void of_p(int64_t i, const real *g) const {
        real S = real_sigmoid(k.z[0][i]), T = real_tanh(5 * k.z[1][i]), M = real_sigmoid(k.z[2][i]);
        real a = real_sigmoid(k.z[3][i]), sr = g[GRID_SR * k.width], sd = g[GRID_SD * k.width];
        real right = g[GRID_RL * k.width] + g[GRID_RU * k.width], down = g[GRID_DL * k.width] + g[GRID_DU * k.width];
        bool ref = k.form == GRID_P_REF;
        real source = ref ? a * (sr - sd) : real_fma(a, sr, (1 - a) * sd);
        real carry = ref ? a * (right - down) : real_fma(a, right, (1 - a) * down);
        write(0, i, source * (S * (1 - S)));
        write(1, i, carry * (5 * (1 - T) * (1 + T)));
        write(2, i, (g[GRID_ML * k.width] + g[GRID_MU * k.width]) * (M * (1 - M)));
        write(3, i, real_fma(T, right - down, S * (sr - sd)) * (a * (1 - a)));
    }
    __device__ void operator()(int64_t i) const {
        const real *g = d + k.gate_at(i);
        if (k.per_node()) {
            of_p(i, g);
            return;
        }
        for (int j = 0; j < RAW_MAX; j++) {
            real s = is_logistic(j) ? real_sigmoid(k.z[j][i]) : real_tanh(5 * k.z[j][i]);
            write(j, i, g[k.plane_of(j) * k.width] * (is_logistic(j) ? s * (1 - s) : 5 * (1 - s) * (1 + s)));
        }
    }
};

struct raw_gates raw_gates_of(const struct call *c) {
    struct raw_gates k = {grid_gates_attr(c)->form, tensor_cols(c->in[0])};
    for (int j = 0; j < c->n_in; j++) k.z[j] = tensor_real(c->in[j]);
    return k;
}

} // namespace

static void grid_gates_cuda_forward(const struct call *c, const struct exec *x) {
    each_value(c, x, tensor_count(c->in[0]), make_gates{raw_gates_of(c), tensor_real(c->out[0])});
}

static void grid_gates_cuda_backward(const struct call *c, const struct exec *x) {
    struct gate_gradients g = {raw_gates_of(c), call_dout(c, 0)};
    for (int j = 0; j < c->n_in; j++) {
        g.dz[j] = c->din[j];
        g.add[j] = call_accumulates(c, j);
    }
    each_value(c, x, tensor_count(c->in[0]), g);
}

/* Tolerance: as grid_gates_cpu. */
const struct kernel kernel_grid_gates_cuda = {
    .name = "grid_gates_cuda",
    .op = &op_grid_gates,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 32,
    .forward = grid_gates_cuda_forward,
    .backward = grid_gates_cuda_backward,
};

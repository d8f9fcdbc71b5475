/* discretise_cuda.cu - discretise on CUDA, with one state per thread, in double as on the CPU. Equations:
 * discretise.c. */
#include "kernels/dense/discretise.h"
#include "kernels/lib/cuda.cuh"

namespace {

struct states {
    struct discretise_attr attr;
    const real *re, *im, *step;

    __device__ struct discrete_state at(int64_t k) const {
        return discrete_state_of(&attr, re[k], im[k], step[k]);
    }
};

struct steps_of {
    struct states x;
    real *out[DISCRETISE_OUTPUTS];

    __device__ void operator()(int64_t k) const {
        struct discrete_state s = x.at(k);
        struct discrete_step d = discrete_step_of(x.attr.form, s.lambda, s.step);
        out[0][k] = (real)d.a.re;
        out[1][k] = (real)d.a.im;
        out[2][k] = (real)d.b.re;
        out[3][k] = (real)d.b.im;
    }
};

struct gradients_of {
    struct states x;
    const real *dout[DISCRETISE_OUTPUTS]; /* NULL means a gradient of 0 */
    real *din[3];
    bool accumulates[3];

    __device__ double given(int i, int64_t k) const {
        return dout[i] ? (double)dout[i][k] : 0;
    }
    __device__ void operator()(int64_t k) const {
        struct discrete_state s = x.at(k);
        struct discrete Ga = {given(0, k), given(1, k)}, Gb = {given(2, k), given(3, k)};
        double d[3];
        discrete_gradients(&x.attr, &s, Ga, Gb, d);
        for (int i = 0; i < 3; i++)
            if (din[i]) put(din[i] + k, accumulates[i], (real)d[i]);
    }
};

struct states states_of(const struct call *c) {
    return {*discretise_attr(c), tensor_real(c->in[0]), tensor_real(c->in[1]), tensor_real(c->in[2])};
}

} // namespace

static void discretise_cuda_forward(const struct call *c, const struct exec *x) {
    steps_of f = {states_of(c), {}};
    for (int i = 0; i < DISCRETISE_OUTPUTS; i++) f.out[i] = tensor_real(c->out[i]);
    each_value(c, x, tensor_count(c->in[0]), f);
}

static void discretise_cuda_backward(const struct call *c, const struct exec *x) {
    gradients_of f = {states_of(c), {}, {}, {}};
    for (int i = 0; i < DISCRETISE_OUTPUTS; i++) f.dout[i] = call_dout(c, i);
    for (int i = 0; i < 3; i++) {
        f.din[i] = c->din[i];
        f.accumulates[i] = call_accumulates(c, i);
    }
    each_value(c, x, tensor_count(c->in[0]), f);
}

/* Tolerance: functions of the device's library may differ in the last digits of double, so results may round to a
 * neighbouring number. At |z| = 1/2 the quotients lose two digits of double. */
const struct kernel kernel_discretise_cuda = {
    .name = "discretise_cuda",
    .op = &op_discretise,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 32,
    .forward = discretise_cuda_forward,
    .backward = discretise_cuda_backward,
};

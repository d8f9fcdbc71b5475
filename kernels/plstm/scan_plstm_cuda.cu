/* scan_plstm_cuda.cu - scan_plstm on CUDA: outer_strip.cuh with J matrices a head. Equations: scan_plstm.c. */
#include "kernels/matrix/outer_strip.cuh"
#include "kernels/plstm/dag_state.h"

enum { Q, K, V, SOURCE, TRANSITION, MARK, DIRECT };

static struct outer_inputs inputs_of(const struct call *c) {
    const struct scan_plstm_attr *a = (const struct scan_plstm_attr *)c->attr;
    struct dag_sizes z = dag_sizes_of(c, a->H);
    struct outer_inputs in = {tensor_real(c->in[Q]),
                              tensor_real(c->in[K]),
                              tensor_real(c->in[V]),
                              tensor_real(c->in[SOURCE]),
                              tensor_real(c->in[TRANSITION]),
                              tensor_real(c->in[MARK]),
                              tensor_real(c->in[DIRECT]),
                              z.H,
                              z.H,
                              (int)z.dk,
                              (int)a->J,
                              (real)a->scale};
    return in;
}

static bool scan_plstm_cuda_applicable(const struct call *c, const char **why) {
    struct outer_inputs in = inputs_of(c);
    return strip_fits((int64_t)in.J * in.dk, outer_matrices(in.J, PASS_BACKWARD), outer_vectors(in.dk, in.J), why);
}

static void scan_plstm_cuda_forward(const struct call *c, const struct exec *x) {
    struct dag_sizes z = dag_sizes_of(c, ((const struct scan_plstm_attr *)c->attr)->H);
    outer_forward(x, inputs_of(c), z.B, z.T, z.dv, tensor_real(c->out[0]), nullptr, 1, 0);
}

static size_t scan_plstm_cuda_workspace(const struct call *c, enum pass pass) {
    struct scratch scratch = scratch_measure(c);
    struct outer_inputs in = inputs_of(c);
    struct dag_sizes z = dag_sizes_of(c, in.H);
    if (pass == PASS_BACKWARD) outer_scratch_of(in, outer_strips(in, z.B, z.T, z.dv, pass), &scratch);
    return scratch.used;
}

static void scan_plstm_cuda_backward(const struct call *c, const struct exec *x) {
    struct outer_inputs in = inputs_of(c);
    struct dag_sizes z = dag_sizes_of(c, in.H);
    struct outer_gradients d = {c->din[Q],
                                c->din[K],
                                c->din[V],
                                c->din[SOURCE],
                                c->din[TRANSITION],
                                c->din[MARK],
                                c->din[DIRECT],
                                call_accumulates(c, Q),
                                call_accumulates(c, K),
                                call_accumulates(c, V),
                                call_accumulates(c, SOURCE),
                                call_accumulates(c, TRANSITION),
                                call_accumulates(c, MARK),
                                call_accumulates(c, DIRECT)};
    outer_backward(c, x, in, z.B, z.T, z.dv, d);
}

/* Tolerance: as scan_plstm_cpu. */
const struct kernel kernel_scan_plstm_cuda = {
    .name = "scan_plstm_cuda",
    .op = &op_scan_plstm,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 512,
    .applicable = scan_plstm_cuda_applicable,
    .workspace = scan_plstm_cuda_workspace,
    .forward = scan_plstm_cuda_forward,
    .backward = scan_plstm_cuda_backward,
};

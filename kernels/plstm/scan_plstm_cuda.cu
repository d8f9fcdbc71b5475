/* scan_plstm_cuda.cu - scan_plstm on CUDA: outer_strip.cuh with J matrices per head. Equations: scan_plstm.c. */
#include "kernels/matrix/outer_strip.cuh"
#include "kernels/plstm/scan_plstm_call.cuh"

static bool scan_plstm_cuda_applicable(const struct call *c, const char **why) {
    struct outer_inputs in = plstm_inputs(c);
    return strip_fits((int64_t)in.J * in.dk, outer_matrices(in.J, PASS_BACKWARD), outer_vectors(in.dk, in.J), why);
}

static void scan_plstm_cuda_forward(const struct call *c, const struct exec *x) {
    struct dag_sizes z = plstm_sizes(c);
    outer_forward(x, plstm_inputs(c), z.B, z.T, z.dv, tensor_real(c->out[0]), nullptr, 1, 0);
}

static size_t scan_plstm_cuda_workspace(const struct call *c, enum pass pass) {
    struct scratch scratch = scratch_measure(c);
    struct outer_inputs in = plstm_inputs(c);
    struct dag_sizes z = plstm_sizes(c);
    if (pass == PASS_BACKWARD) outer_scratch_of(in, outer_strips(in, z.B, z.T, z.dv, pass), &scratch);
    return scratch.used;
}

static void scan_plstm_cuda_backward(const struct call *c, const struct exec *x) {
    struct dag_sizes z = plstm_sizes(c);
    outer_backward(c, x, plstm_inputs(c), z.B, z.T, z.dv, plstm_gradients(c));
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

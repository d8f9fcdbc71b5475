/* scan_outer_cuda.cu - scan_outer on CUDA: outer_strip.cuh with one matrix per head. Equations: scan_outer.c. */
#include "kernels/matrix/outer_call.cuh"
#include "kernels/matrix/outer_strip.cuh"

static bool scan_outer_cuda_applicable(const struct call *c, const char **why) {
    int64_t dk = outer_shape(c).dk;
    return strip_fits(dk, outer_matrices(1, PASS_BACKWARD), outer_vectors(dk, 1), why);
}

static void scan_outer_cuda_forward(const struct call *c, const struct exec *x) {
    struct state_shape s = outer_shape(c);
    outer_forward(x, outer_inputs_of(c), s.B, s.T, s.dv, tensor_real(c->out[0]), tensor_real(c->out[1]), STATE_CHUNK,
                  s.chunks);
}

static size_t scan_outer_cuda_workspace(const struct call *c, enum pass pass) {
    struct scratch scratch = scratch_measure(c);
    struct state_shape s = outer_shape(c);
    struct outer_inputs in = outer_inputs_of(c);
    if (pass == PASS_BACKWARD) outer_scratch_of(in, outer_strips(in, s.B, s.T, s.dv, pass), &scratch);
    return scratch.used;
}

static void scan_outer_cuda_backward(const struct call *c, const struct exec *x) {
    struct state_shape s = outer_shape(c);
    outer_backward(c, x, outer_inputs_of(c), s.B, s.T, s.dv, outer_gradients_of(c));
}

/* Tolerance: the state sums T outer products, and its products sum dk or dv terms, all in working precision. */
const struct kernel kernel_scan_outer_cuda = {
    .name = "scan_outer_cuda",
    .op = &op_scan_outer,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 256,
    .applicable = scan_outer_cuda_applicable,
    .workspace = scan_outer_cuda_workspace,
    .forward = scan_outer_cuda_forward,
    .backward = scan_outer_cuda_backward,
};

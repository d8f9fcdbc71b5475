/* scan_outer_chunk_cpu.c - outer-product state (scan_outer.c) on the CPU, a chunk of tokens at a time (outer_chunk.h).
 * A head has one state, heads may share q and k, and forward stores the states before the chunks. */
#include "kernels/matrix/state_cpu.h"
#include "kernels/matrix/outer_chunk.h"

static struct outer_rows rows_of(const struct call *c, int i, int64_t b, int64_t index, int64_t width) {
    struct outer_rows none = {0};
    if (!c->in[i]) return none;
    int64_t token = b * c->in[0]->dims[1];
    return (struct outer_rows){value_row(c, i, token, index, width), gradient_row(c, i, token, index, width),
                               token_width(c->in[i]), call_accumulates(c, i)};
}

static struct outer_head head_at(const struct call *c, int64_t b, int64_t h) {
    struct state_shape s = outer_shape(c);
    int64_t group = h / (s.heads / s.groups), o = (b * s.T * s.heads + h) * s.dv;
    return (struct outer_head){.q = rows_of(c, OUTER_Q, b, group, s.dk),
                               .k = rows_of(c, OUTER_K, b, group, s.dk),
                               .v = rows_of(c, OUTER_V, b, h, s.dv),
                               .transition = rows_of(c, OUTER_DECAY, b, h, 1),
                               .source = rows_of(c, OUTER_SOURCE, b, h, 1),
                               .mark = rows_of(c, OUTER_MARK, b, h, 1),
                               .direct = rows_of(c, OUTER_DIRECT, b, h, 1),
                               .o = tensor_real(c->out[0]) + o,
                               .d_o = call_dout(c, 0) ? call_dout(c, 0) + o : NULL,
                               .o_step = s.heads * s.dv,
                               .kept = kept_state(c, &s, b, 0, h),
                               .kept_step = s.heads * s.dk * s.dv};
}

static struct outer_sizes sizes_of(const struct call *c) {
    struct state_shape s = outer_shape(c);
    return (struct outer_sizes){.B = s.B,
                                .T = s.T,
                                .heads = s.heads,
                                .share = s.heads / s.groups,
                                .J = 1,
                                .dk = s.dk,
                                .dv = s.dv,
                                .scale = (real)outer_attr(c)->scale,
                                .keeps = true};
}

/* Measured for forward + backward (`lrnn perf crossover`): a chunk takes the same time for any number of its tokens,
 * and for dk = 4 and 16. The time of scan_outer_cpu grows with dk rows per token. */
static bool scan_outer_chunk_preferred(const struct call *c) {
    struct state_shape s = outer_shape(c);
    return s.T >= 4 && s.dk >= 4 && s.T * s.dk >= 64;
}

static size_t scan_outer_chunk_workspace(const struct call *c, enum pass pass) {
    struct outer_sizes s = sizes_of(c);
    return outer_chunks_bytes(c, &s, pass);
}

static void scan_outer_chunk_forward(const struct call *c, const struct exec *x) {
    (void)x;
    struct outer_sizes s = sizes_of(c);
    outer_chunks_run(c, &s, PASS_FORWARD, head_at);
}

static void scan_outer_chunk_backward(const struct call *c, const struct exec *x) {
    (void)x;
    struct outer_sizes s = sizes_of(c);
    outer_chunks_run(c, &s, PASS_BACKWARD, head_at);
}

/* Tolerance: the state sums T outer products, and its products sum dk or dv terms, all in working precision. */
const struct kernel kernel_scan_outer_chunk = {
    .name = "scan_outer_chunk",
    .op = &op_scan_outer,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 256,
    .preferred = scan_outer_chunk_preferred,
    .workspace = scan_outer_chunk_workspace,
    .forward = scan_outer_chunk_forward,
    .backward = scan_outer_chunk_backward,
};

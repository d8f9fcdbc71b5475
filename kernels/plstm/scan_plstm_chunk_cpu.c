/* scan_plstm_chunk_cpu.c - pLSTM on sequences on the CPU, a chunk of tokens at a time. outer_chunk.h has the method,
 * for J states per head. Inside a chunk the J x J transitions only change one number per pair of tokens, so all J
 * states share one matrix product of queries and keys. Between chunks each state needs its own products. Backward
 * computes the state before each chunk again. */
#include "kernels/plstm/dag_state.h"
#include "kernels/matrix/outer_chunk.h"

enum plstm_input { PLSTM_Q, PLSTM_K, PLSTM_V, PLSTM_SOURCE, PLSTM_TRANSITION, PLSTM_MARK, PLSTM_DIRECT };

static struct outer_rows rows_of(const struct call *c, enum plstm_input i, int64_t b, int64_t h, int64_t width) {
    int64_t row = b * c->in[0]->dims[1];
    return (struct outer_rows){head_in(c, (int)i, row, h, width), head_din(c, (int)i, row, h, width),
                               tensor_cols(c->in[i]), call_accumulates(c, (int)i)};
}

static struct outer_head head_at(const struct call *c, int64_t b, int64_t h) {
    const struct scan_plstm_attr *a = scan_plstm_attr(c);
    struct dag_sizes z = dag_sizes_of(c, a->H);
    int64_t J = a->J, y = (b * z.T * z.H + h) * z.dv;
    return (struct outer_head){.q = rows_of(c, PLSTM_Q, b, h, z.dk),
                               .k = rows_of(c, PLSTM_K, b, h, z.dk),
                               .v = rows_of(c, PLSTM_V, b, h, z.dv),
                               .transition = rows_of(c, PLSTM_TRANSITION, b, h, J * J),
                               .source = rows_of(c, PLSTM_SOURCE, b, h, J),
                               .mark = rows_of(c, PLSTM_MARK, b, h, J),
                               .direct = rows_of(c, PLSTM_DIRECT, b, h, 1),
                               .o = tensor_real(c->out[0]) + y,
                               .d_o = call_dout(c, 0) ? call_dout(c, 0) + y : NULL,
                               .o_step = z.H * z.dv};
}

static struct outer_sizes sizes_of(const struct call *c) {
    const struct scan_plstm_attr *a = scan_plstm_attr(c);
    struct dag_sizes z = dag_sizes_of(c, a->H);
    return (struct outer_sizes){
        .B = z.B, .T = z.T, .heads = z.H, .share = 1, .J = a->J, .dk = z.dk, .dv = z.dv, .scale = (real)a->scale};
}

/* The limits are measured for forward + backward (`lrnn perf crossover`). They do not depend on dv, because this kernel
 * and scan_plstm_cpu pad keys and values to whole vectors. A chunk takes the same time if some of its rows are missing.
 */
static bool scan_plstm_chunk_preferred(const struct call *c) {
    struct outer_sizes s = sizes_of(c);
    return s.T >= 8 || (s.T >= 4 && (s.J > 1 || s.dk > 16));
}

static size_t scan_plstm_chunk_workspace(const struct call *c, enum pass pass) {
    struct outer_sizes s = sizes_of(c);
    return outer_chunks_bytes(c, &s, pass);
}

static void scan_plstm_chunk_forward(const struct call *c, const struct exec *x) {
    (void)x;
    struct outer_sizes s = sizes_of(c);
    outer_chunks_run(c, &s, PASS_FORWARD, head_at);
}

static void scan_plstm_chunk_backward(const struct call *c, const struct exec *x) {
    (void)x;
    struct outer_sizes s = sizes_of(c);
    outer_chunks_run(c, &s, PASS_BACKWARD, head_at);
}

/* Tolerance: results are sums of T outer products, and of dk or dv terms that cancel, in working precision. */
const struct kernel kernel_scan_plstm_chunk = {
    .name = "scan_plstm_chunk",
    .op = &op_scan_plstm,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 512,
    .preferred = scan_plstm_chunk_preferred,
    .workspace = scan_plstm_chunk_workspace,
    .forward = scan_plstm_chunk_forward,
    .backward = scan_plstm_chunk_backward,
};

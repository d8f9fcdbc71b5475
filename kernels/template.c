/* template.c - a working op to copy: y = x, with its reference kernel. To make a copy your own:
 *
 *  1. cp kernels/template.c kernels/ROOM/NAME.c, replace "template" by NAME everywhere, and append the line
 *     OP(NAME) KERNEL(NAME_ref) to kernels/ROOM/list.def. Build and run `make test`: the unchanged copy passes.
 *  2. Write this banner: the equation, its adjoint (the gradient of every input) and the paper with equation number.
 *  3. Make the function that calls the op public: drop `static`, declare it in kernels/ROOM/ROOM.h with the shapes of
 *     all tensors, and include that header, which declares the op, instead of the line "extern" below. Attributes
 *     (sizes, choices) go into a struct that you pass to graph_call, which copies it. An absent optional input is NULL.
 *  4. infer: check every shape and attribute, in sentences that name both numbers; create the outputs.
 *  5. needs_in, needs_out: the tensors whose VALUES your gradient reads; the memory of others is reused before it runs.
 *  6. cost: FLOPs and the fewest bytes that can be moved; `lrnn perf op NAME` divides by them.
 *  7. build, sizes: inputs and a call of this op at given sizes, and the names of the sizes that it reads
 *     (core/op_sizes.h, with the usual inputs in kernels/lib/sizes.h); one variant for every optional input and every
 *     attribute value that is no size. The tests run all variants; `lrnn perf op NAME` has the sizes as flags.
 *  8. The reference kernel: plain loops, sums in double, never tuned. The gradient skips inputs whose din is NULL and
 *     writes the others with put(), which adds where call_accumulates says so. `make test-double` compares it with
 *     finite differences.
 *  9. Tuned twins go into kernels/ROOM/NAME_cpu.c (and NAME_cuda.cu), listed before the reference; the tests compare
 *     them with the reference. Cut the work by sizes only (kernels/lib/parallel.h), so that the result does not depend
 *     on the number of threads. Scratch memory comes from kernel->workspace and is laid out with kernels/lib/scratch.h,
 *     whose guards the tests check. */
#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"

extern const struct op op_template;

static struct tensor *template(struct graph *g, struct tensor *x) {
    return call1(g, &op_template, NULL, 0, (struct tensor *[]){x}, 1);
}

static void template_infer(struct graph *g, struct call *c) {
    if (!infer_present(g, c, 1)) return;
    graph_output(g, c, DT_REAL, c->in[0]->rank, c->in[0]->dims);
}

/* One element read and one written, in both passes. */
static struct cost template_cost(const struct call *c, enum pass pass) {
    (void)pass;
    return (struct cost){.flops = 0, .bytes = 2 * sizeof(real) * (double)tensor_count(c->in[0])};
}

/* Only one variant. */
static bool template_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 0) return false;
    template(g, input_tokens(g, s, "x", s->dim));
    return true;
}

const struct op op_template = {
    .name = "template",
    .hidden = true,
    .maths = "y = x",
    .source = "",
    .infer = template_infer,
    .cost = template_cost,
    .sizes = "batch length dim",
    .build = template_build,
};

static void template_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const real *x = tensor_real(c->in[0]);
    real *y = tensor_real(c->out[0]);
    for (int64_t i = 0; i < tensor_count(c->in[0]); i++) y[i] = x[i];
}

static void template_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const real *dy = call_dout(c, 0);
    for (int64_t i = 0; i < tensor_count(c->in[0]) && c->din[0]; i++) put(&c->din[0][i], call_accumulates(c, 0), dy[i]);
}

const struct kernel kernel_template_ref = {
    .name = "template_ref",
    .op = &op_template,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = template_ref_forward,
    .backward = template_ref_backward,
};

/* op.h - ops, kernels, and the calls of a graph.
 *
 * An op is a piece of mathematics. It is declared once: its shapes, its cost, and which values its gradient needs. A
 * kernel is one way to compute it on one device, forward and gradient. The reference, the CPU kernel and the CUDA
 * kernel of an op all read the same struct call. */
#ifndef LRNN_CORE_OP_H
#define LRNN_CORE_OP_H

#include "core/place.h"
#include "core/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define OP_MAX_IN  8
#define OP_MAX_OUT 4

enum pass { PASS_FORWARD, PASS_BACKWARD };

/* Rounding of factors in products of linear maps (activations, weights, gradients of outputs), to the nearest
 * number, ties to even: not at all (`real`), to tf32 (10 bits of fraction), or to bf16 (7 bits). Sums and all other
 * arithmetic are in `real`. The order is that of the choices of --precision. */
enum precision { PRECISION_FULL, PRECISION_TF32, PRECISION_BF16, PRECISION_COUNT };

/* Returns "fp32" ("fp64" in the double build), "tf32" or "bf16". */
LRNN_INLINE const char *precision_name(enum precision p) {
    return p == PRECISION_TF32 ? "tf32" : p == PRECISION_BF16 ? "bf16" : REAL_NAME;
}

/* Returns the bytes of a number that a device stores rounded to p for products: 2 in bf16, which are the upper half of
 * a float. */
LRNN_INLINE size_t precision_bytes(enum precision p) {
    return p == PRECISION_BF16 && !REAL_IS_DOUBLE ? sizeof(uint16_t) : sizeof(real);
}

struct graph;
struct op;
struct op_sizes;
struct kernel;
struct deferred;

/* The numbers that change from step to step. They are in device memory, and only ops change them, so that a step can be
 * captured once and replayed. */
struct step_state {
    uint64_t seed;    /* of the run; for dropout masks */
    int64_t step;     /* number of completed optimiser steps */
    double lr;        /* learning rate of the current update */
    double grad_norm; /* global L2 norm of the current update's gradient, before clipping */
    double loss;      /* of the current step */
    double loss_sum;  /* since the host last reset it */
    int64_t loss_steps;
    int32_t frozen; /* 1 after a loss or gradient norm that no update can use; all later updates are then skipped */
    int64_t frozen_step; /* the step in which this happened */
};

/* Where and how a walk runs. */
struct exec {
    const struct place *place; /* NULL: the CPU */
    bool training;             /* dropout acts; false in evaluation graphs */
    struct step_state *state;  /* in the place's memory; NULL if no op reads it */
};

/* visit() gets each zone between the arrays of a call's scratch: bytes `begin` to `end` - 1 (kernels/lib/scratch.h). */
struct zone_visitor {
    void (*visit)(struct zone_visitor *v, size_t begin, size_t end);
};

/* Notes of the planner on a call (core/graph_plan.h). */
struct call_plan {
    bool active;    /* its gradient is part of the backward walk */
    bool zero_dout; /* no call writes the gradient of out[0], so the walk zeroes it before this call's gradient runs */
    int workspace_buffer[2], table_buffer; /* indices of buffers, by pass; -1: none */
};

/* Parameters that the first product of a forward walk rounds for all products of the graph. In all other calls n is
 * 0. */
struct rounded_params {
    const real *from;
    void *to;
    int64_t n;
};

/* One use of an op in a graph, with everything that a kernel needs. graph_plan sets the pointers in its tensors. */
struct call {
    const struct op *op;
    const struct kernel *kernel;
    const void *attr; /* the op's own attribute struct, or NULL; the op's accessor gives it its type: scan_attr(c) */
    size_t attr_bytes;
    const struct place *place; /* where it will run; NULL: the CPU */
    int n_in, n_out;
    struct tensor *in[OP_MAX_IN]; /* NULL for an optional input that is absent */
    struct tensor *out[OP_MAX_OUT];
    real *din[OP_MAX_IN]; /* where the gradient of input i goes; NULL: not wanted */
    uint32_t accumulate;  /* bit i: add to din[i] instead of overwriting it */
    /* by pass: as many bytes as kernel->workspace asks for, with undefined values; NULL for 0 bytes */
    void *scratch[2];
    size_t scratch_bytes[2]; /* by pass */
    /* precision of this call's products, or of the products that read what it stores rounded */
    enum precision precision;
    struct rounded_params rounds;
    /* The other call of a pair whose products are computed together (kernel->joins). Row r of the later call's output
     * follows row r of the earlier call's output in memory; so do their gradients (tensor_pitch). NULL: none. */
    const struct call *joined;
    bool deferred;        /* kernel->finish computes the gradients of its parameters, not kernel->backward */
    bool guards;          /* for tests: after each array of scratch there is a zone that nothing may read or write */
    int index;            /* position in the graph */
    int stream;           /* number of the dropout stream: the call's position if no call before it were fused */
    const int32_t *table; /* on a device, the numbers of op->table in the graph's memory there; else NULL */
    struct zone_visitor *zones; /* set while a plan with guards asks kernel->workspace for the zones; else NULL */
    struct call_plan plan;
};

/* Returns the gradient of output j. NULL means that the gradient is zero. out[0] always has a gradient when the
 * backward kernel runs. */
LRNN_INLINE const real *call_dout(const struct call *c, int j) {
    return c->out[j]->grad;
}

LRNN_INLINE bool call_accumulates(const struct call *c, int i) {
    return (c->accumulate >> i) & 1u;
}

/* Calls of one kernel, in the order of the graph, whose parameters get their gradients at the end of a backward walk.
 */
struct deferred {
    const struct call **calls;
    int n;
    void *scratch; /* as many bytes as kernel->finish_workspace asks for */
};

/* The cost of one pass: FLOPs (a multiply-add counts 2), and the smallest possible memory traffic in bytes. An op that
 * reads factors of products counts them as they are stored; call_cost (core/graph.h) corrects what kernels write. */
struct cost {
    double flops, bytes;
};

/* Heads (blocks, channels) of a sequence that are computed independently. Element e of input i belongs to head (e /
 * in[i]) % count; outputs likewise. in[i] = 0: the tensor belongs to all heads. */
struct heads {
    int64_t count, in[OP_MAX_IN], out[OP_MAX_OUT];
};

struct op {
    const char *name;    /* "scan_block" */
    const char *maths;   /* the equation, in one line of ASCII */
    const char *source;  /* paper and equation number, or "" */
    bool hidden;         /* for the template op: tested like the others, but not shown by `lrnn list` */
    int version;         /* raised if the bits of all its kernels change; 0 means 1 (harness/study/numerics.h) */
    uint32_t needs_in;   /* bit i: the gradient reads the VALUE of input i */
    uint32_t needs_out;  /* bit j: the gradient reads the VALUE of output j */
    uint32_t no_grad_in; /* bit i: input i never has a gradient (such as tokens, targets) */
    uint32_t mutates;    /* bit i: forward writes input i in place (optimiser, running statistics) */
    int fuses; /* number of other ops that it replaces; with it dropout masks are the same when ops are fused */

    /* Returns how many whole numbers of the attributes a device's kernels read (for example which row goes where), and
     * writes them to `to` unless it is NULL. A device needs this copy because attributes are in host memory. NULL:
     * none. */
    int64_t (*table)(const struct call *c, int32_t *to);

    /* Checks the shapes of the inputs and the attributes, and creates the outputs with graph_output(g, c, ...). If they
     * do not fit, it calls graph_fail(g, ST_USAGE, ...) with both numbers. */
    void (*infer)(struct graph *g, struct call *c);

    struct cost (*cost)(const struct call *c, enum pass pass);

    /* Gives the heads of a sequence. NULL: it has none. */
    struct heads (*heads)(const struct call *c);

    /* For the tests: the scale of rounding errors if terms may cancel. It sums the magnitudes of the terms of each
     * element of output j (forward), or of the gradient of input j (backward), and returns the largest sum. 0 or NULL:
     * the scale is the largest magnitude of the result. c->scratch[pass] is as in the reference's run. */
    double (*terms)(const struct call *c, enum pass pass, int j);

    /* Makes inputs and a call of this op at those sizes, for `lrnn perf op` and the tests. `sizes` names the options
     * that it reads (core/op_sizes.h). Every op also reads s->variant, which chooses optional inputs, and attributes
     * that are no size. Returns false and makes nothing if the op has no such variant. */
    bool (*build)(struct graph *g, const struct op_sizes *s);
    const char *sizes; /* "batch length dim" */
};

struct kernel {
    const char *name; /* "scan_block_cpu"; run records store it, and --kernel forces it */
    const struct op *op;
    enum device device;
    int version;    /* raised if its bits change; 0 means 1 (harness/study/numerics.h) */
    bool reference; /* plain C on the CPU, for any size, never made faster; one per op */
    bool inexact;   /* its result may differ from the reference by rounding; false: bit-equal */
    /* largest difference from the reference, relative to the largest magnitude, in units of the machine epsilon of
     * `real`; a comment in the kernel's file gives the reason */
    double tolerance;
    /* The reason why the last digits of a row depend on the number of other rows (tiles of products cause this). NULL:
     * a sequence has the same bits in any batch. */
    const char *tiles;
    /* The reason why the last digits of a gradient depend on which other gradients are wanted, or on whether it is
     * added to an earlier one (a product may do that addition itself). NULL: they do not. */
    const char *together;

    /* Whether this kernel can compute that call at its place; a pure function. If not, *why is a short reason. NULL: it
     * always can. */
    bool (*applicable)(const struct call *c, const char **why);
    /* Whether the kernel is fast for this call. It depends only on sizes and processor. If not, a later kernel of the
     * list is used, unless this one is forced. NULL: always; the last kernel of a device has NULL. */
    bool (*preferred)(const struct call *c);
    /* Returns the bytes of scratch of one pass; NULL: none. They depend only on shapes, attributes, precision and
     * c->guards (scratch.h adds the zones). */
    size_t (*workspace)(const struct call *c, enum pass pass);
    /* Whether the kernel reads input i (-1: the gradient of output 0) only as a factor of products in the call's
     * precision. Then it reads the rounded copy, if there is one. NULL: it does not. */
    bool (*is_factor)(const struct call *c, int i);
    /* Whether the kernel reads the gradient of output 0 as a factor, and unrounded too. As a factor it reads the
     * rounded copy, if there is one. NULL: it does not. */
    bool (*copies_dout)(const struct call *c);
    /* rounds_out, bit j: it stores output j rounded if c->out[j]->rounded asks for this. rounds_din, bit i: it stores
     * the gradient of input i rounded if c->in[i]->grad_rounded asks for this. copies_out, bit j, and copies_din, bit
     * i: it also stores a rounded copy in c->out[j]->factor or c->in[i]->grad_factor, unless the pointer is NULL. What
     * is stored rounded has precision_bytes(c->precision) per number. */
    uint32_t rounds_out, rounds_din, copies_out, copies_din;
    /* Whether calls a and b of this kernel, a before b, can be a pair whose products are computed together. Then the
     * forward of `a` writes both outputs and that of `b` nothing; the backward of `b`, which runs first, writes what
     * both give to the gradient of their common input. NULL: they cannot. */
    bool (*joins)(const struct call *a, const struct call *b);
    /* It reads inputs 0 and 1, and writes their gradients, by rows of tensor_pitch. */
    bool takes_joined;
    /* Writes all outputs. It allocates nothing, is asynchronous on CUDA, and gives the same bits at any thread
     * count. */
    void (*forward)(const struct call *c, const struct exec *x);
    /* Writes every din[i] that is not NULL, or adds to it (call_accumulates). NULL for ops without a gradient. */
    void (*backward)(const struct call *c, const struct exec *x);
    /* Whether the gradients of the call's parameters, which no other call of the backward walk reads, may be left to
     * `finish`: it computes those of all such calls at once, after the walk. Until then the graph keeps the values of
     * the call's inputs, or their rounded copies, and the gradient of its output. NULL: never. */
    bool (*defers)(const struct call *c);
    size_t (*finish_workspace)(const struct deferred *d);
    void (*finish)(const struct deferred *d, const struct exec *x);
};

#ifdef __cplusplus
}
#endif
#endif

/* op.h - ops, kernels, and the calls of a graph.
 *
 * An op is a piece of mathematics, declared once: shapes, cost, which values its gradient needs. A kernel is one way to
 * compute it on one device, forward and gradient. The reference, the CPU kernel and the CUDA kernel of an op read the
 * same struct call. */
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

/* Rounding of the factors in products of linear maps (activations, weights, gradients of outputs), to the nearest, ties
 * to even: none (`real`), tf32 (10 bits of fraction), bf16 (7 bits). Sums and all other arithmetic are in `real`. The
 * order is the order of the choices of --precision. */
enum precision { PRECISION_FULL, PRECISION_TF32, PRECISION_BF16, PRECISION_COUNT };

/* "fp32" ("fp64" in the double build), "tf32", "bf16" */
LRNN_INLINE const char *precision_name(enum precision p) {
    return p == PRECISION_TF32 ? "tf32" : p == PRECISION_BF16 ? "bf16" : REAL_NAME;
}

struct graph;
struct op;
struct op_sizes;
struct kernel;

/* The numbers that change from step to step. They live in device memory and only ops change them, so that a step can be
 * captured once and replayed. */
struct step_state {
    uint64_t seed;    /* of the run; dropout masks */
    int64_t step;     /* completed optimiser steps */
    double lr;        /* of the current update */
    double grad_norm; /* global L2 norm before clipping, of the current update */
    double loss;      /* of the current step */
    double loss_sum;  /* since the host last reset it */
    int64_t loss_steps;
    int32_t frozen;      /* 1 after a loss or gradient norm that no update can take: all later updates are skipped */
    int64_t frozen_step; /* the step that froze it */
};

/* The place and the manner of a walk. */
struct exec {
    const struct place *place; /* NULL: the CPU */
    bool training;             /* dropout acts; false in evaluation graphs */
    struct step_state *state;  /* memory of the place; NULL where no op reads it */
};

/* visit() gets each zone between the arrays of a call's scratch: its bytes `begin` to `end` (kernels/lib/scratch.h). */
struct zone_visitor {
    void (*visit)(struct zone_visitor *v, size_t begin, size_t end);
};

/* The planner's notes on a call (core/graph_plan.h). */
struct call_plan {
    bool active;    /* its gradient is part of the backward walk */
    bool zero_dout; /* no call writes the gradient of out[0], so the walk zeroes it before this call's gradient runs */
    int workspace_buffer[2], table_buffer; /* index of the buffer, by pass; -1 = none */
};

/* Parameters that the first product of a forward walk rounds for all products of the graph; n 0: it is another call. */
struct rounded_params {
    const real *from;
    real *to;
    int64_t n;
};

/* One use of an op in a graph, with everything a kernel needs. Pointers in tensors are bound by graph_plan. */
struct call {
    const struct op *op;
    const struct kernel *kernel;
    const void *attr; /* the op's own attribute struct, or NULL; the accessor of the op types it: scan_attr(c) */
    size_t attr_bytes;
    const struct place *place; /* where it will run; NULL: the CPU */
    int n_in, n_out;
    struct tensor *in[OP_MAX_IN]; /* NULL where an optional input is absent */
    struct tensor *out[OP_MAX_OUT];
    real *din[OP_MAX_IN];     /* where the gradient of input i goes; NULL = not wanted */
    uint32_t accumulate;      /* bit i: add to din[i] instead of overwriting it */
    void *scratch[2];         /* by pass: as many bytes as kernel->workspace asks for, undefined; NULL if 0 */
    size_t scratch_bytes[2];  /* by pass */
    enum precision precision; /* of the graph's products: of its own, or of those that read what it stores rounded */
    struct rounded_params rounds;
    bool guards;                /* tests: after each array of scratch lies a zone that nothing may read or write */
    int index;                  /* position in the graph */
    int stream;                 /* the dropout sub-stream: its position if no call before it were fused */
    const int32_t *table;       /* on a device: the numbers of op->table, in the graph's memory there; else NULL */
    struct zone_visitor *zones; /* set while a plan with guards asks kernel->workspace for the zones; else NULL */
    struct call_plan plan;
};

/* Gradient of output j. NULL means a gradient of zero. out[0] always has a gradient when the backward kernel runs. */
LRNN_INLINE const real *call_dout(const struct call *c, int j) {
    return c->out[j]->grad;
}

LRNN_INLINE bool call_accumulates(const struct call *c, int i) {
    return (c->accumulate >> i) & 1u;
}

/* Bookkeeping cost of one pass: FLOPs (a multiply-add counts 2) and the smallest possible memory traffic. */
struct cost {
    double flops, bytes;
};

/* Heads (blocks, channels) of a sequence that are computed independently. Element e of input i belongs to head
 * (e / in[i]) % count, and in the same way for outputs. in[i] = 0: the tensor belongs to all heads. */
struct heads {
    int64_t count, in[OP_MAX_IN], out[OP_MAX_OUT];
};

struct op {
    const char *name;    /* "scan_block" */
    const char *maths;   /* the equation, one ASCII line */
    const char *source;  /* paper and equation number, or "" */
    bool hidden;         /* the template: tested like the others, not shown by `lrnn list` */
    int version;         /* raised when the bits of all its kernels change; 0 means 1 (harness/study/numerics.h) */
    uint32_t needs_in;   /* bit i: the gradient reads the VALUE of input i */
    uint32_t needs_out;  /* bit j: the gradient reads the VALUE of output j */
    uint32_t no_grad_in; /* bit i: input i never has a gradient (tokens, targets) */
    uint32_t mutates;    /* bit i: forward writes input i in place (optimiser, running statistics) */
    int fuses;           /* number of other ops that it also does; so dropout masks are the same when ops are fused */

    /* Returns how many whole numbers of the attributes a device's kernels read (which row goes where), and writes them
     * to `to` unless it is NULL. A device needs this copy because attributes lie in host memory. NULL: none. */
    int64_t (*table)(const struct call *c, int32_t *to);

    /* Checks shapes of the inputs and attributes, and creates the outputs with graph_output(g, c, ...).
     * On a misfit: graph_fail(g, ST_USAGE, ...) naming both numbers. */
    void (*infer)(struct graph *g, struct call *c);

    struct cost (*cost)(const struct call *c, enum pass pass);

    /* NULL: a sequence has no heads. */
    struct heads (*heads)(const struct call *c);

    /* For the tests: the scale of rounding errors where terms may cancel. Sums the magnitudes of the terms of each
     * element of output j (forward) or of the gradient of input j (backward), and returns the largest sum. 0 or NULL:
     * the scale is the largest magnitude of the result. c->scratch[pass] is as in the reference's run. */
    double (*terms)(const struct call *c, enum pass pass, int j);

    /* Makes inputs and a call of this op at those sizes, for `lrnn perf op` and the tests. `sizes` names the options
     * that it reads (core/op_sizes.h). s->variant, which every op reads, chooses optional inputs and attributes that
     * are no size. Returns false and makes nothing if the op has no such variant at any sizes. */
    bool (*build)(struct graph *g, const struct op_sizes *s);
    const char *sizes; /* "batch length dim" */
};

struct kernel {
    const char *name; /* "scan_block_cpu"; stored in run records, forced by --kernel */
    const struct op *op;
    enum device device;
    int version;      /* raised when its bits change; 0 means 1 (harness/study/numerics.h) */
    bool reference;   /* plain C, CPU, any size, never tuned; one per op */
    bool inexact;     /* result may differ from the reference in rounding; false = bit-equal */
    double tolerance; /* against the reference, relative to the largest magnitude, in units of the machine epsilon of
                         `real`; the kernel's file says why */
    /* The reason why a row's last digits depend on the number of other rows (tiles of products cause this). NULL: a
     * sequence has the same bits in any batch. */
    const char *tiles;
    /* The reason why a gradient's last digits depend on which other gradients are wanted, or on whether it is added to
     * an earlier one (a product may do that sum itself). NULL: they do not. */
    const char *together;

    /* Whether this kernel can compute that call at its place; a pure function. If not, *why is a short reason. NULL =
     * always. */
    bool (*applicable)(const struct call *c, const char **why);
    /* Whether the kernel is fast for this call; depends only on sizes and processor. If not, a later kernel of the list
     * is taken unless this one is forced. NULL = always; the last kernel of a device has NULL. */
    bool (*preferred)(const struct call *c);
    /* Bytes of scratch of one pass; NULL = none. Depends only on shapes, attributes, precision and c->guards (scratch.h
     * adds the zones). */
    size_t (*workspace)(const struct call *c, enum pass pass);
    /* Whether the kernel reads input i (-1: the gradient of output 0) only as a factor of products in the call's
     * precision: then it takes it from where it is rounded already, if it is. NULL: no. */
    bool (*is_factor)(const struct call *c, int i);
    /* Bit j: it stores output j rounded where c->out[j]->rounded asks for it; bit i: the gradient of input i, where
     * c->in[i]->grad_rounded does. */
    uint32_t rounds_out, rounds_din;
    /* Writes all outputs. Allocates nothing; async on CUDA. Bit-identical at any thread count. */
    void (*forward)(const struct call *c, const struct exec *x);
    /* Writes (or adds to, see call_accumulates) every din[i] that is not NULL. NULL for ops that have no gradient. */
    void (*backward)(const struct call *c, const struct exec *x);
};

#ifdef __cplusplus
}
#endif
#endif

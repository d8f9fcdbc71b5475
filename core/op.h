/* op.h - what an op is and what a kernel is.
 *
 * An op is a piece of mathematics, declared once: shapes, cost, which values its gradient needs. A kernel is one way to
 * compute it on one device: forward and gradient, the same struct call for the reference, the CPU and the CUDA twin. */
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

/* What the factors of the products of linear maps (activations, weights, gradients of outputs) are rounded to, to the
 * nearest, ties to even: to nothing (`real`), to tf32 (10 bits behind the point), to bf16 (7 bits). Sums, and all that
 * is no such product, are in `real`. In the order of the choices of --precision. */
enum precision { PRECISION_FULL, PRECISION_TF32, PRECISION_BF16, PRECISION_COUNT };

/* "fp32" ("fp64" in the double build), "tf32", "bf16" */
LRNN_INLINE const char *precision_name(enum precision p) {
    return p == PRECISION_TF32 ? "tf32" : p == PRECISION_BF16 ? "bf16" : REAL_NAME;
}

struct graph;
struct op;
struct op_sizes;
struct kernel;

/* What changes from step to step. Lives in device memory and is changed only by ops, so that a step can be captured
 * once and replayed. */
struct step_state {
    uint64_t seed;    /* of the run; dropout masks */
    int64_t step;     /* completed optimiser steps */
    double lr;        /* of the current update */
    double grad_norm; /* global L2 norm before clipping, of the current update */
    double loss;      /* of the current step */
    double loss_sum;  /* since the host last reset it */
    int64_t loss_steps;
    int32_t frozen;      /* 1 after a loss or gradient norm that no update can take: all are skipped from then on */
    int64_t frozen_step; /* the step that froze it */
};

/* Where and how a walk runs. */
struct exec {
    const struct place *place; /* NULL: the CPU */
    bool training;             /* dropout acts; false in evaluation graphs */
    struct step_state *state;  /* memory of the place; NULL where no op reads it */
};

/* Told of each zone between the arrays of a call's scratch: bytes `begin` to `end` of it (kernels/lib/scratch.h). */
struct zone_visitor {
    void (*visit)(struct zone_visitor *v, size_t begin, size_t end);
};

/* What the planner knows of a call (core/graph_plan.h). */
struct call_plan {
    bool active;    /* its gradient is part of the backward walk */
    bool zero_dout; /* no gradient flows into out[0], which is zeroed before the call's own runs */
    int workspace_buffer[2], table_buffer; /* index of the buffer, by pass; -1 = none */
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
    real *din[OP_MAX_IN];       /* where the gradient of input i goes; NULL = not wanted */
    uint32_t accumulate;        /* bit i: add to din[i] instead of overwriting it */
    void *scratch[2];           /* by pass: bytes as kernel->workspace says, contents undefined; NULL if 0 bytes */
    size_t scratch_bytes[2];    /* that many */
    enum precision precision;   /* of its products, where it is one that rounds (linear) */
    bool guards;                /* tests: behind each array of scratch lies a zone that nothing may read or write */
    int index;                  /* position in the graph */
    int stream;                 /* that position if no call before it were fused: the dropout sub-stream */
    const int32_t *table;       /* on a device: op->table's numbers, in the graph's memory there; else NULL */
    struct zone_visitor *zones; /* set while a plan with guards asks kernel->workspace for the zones; else NULL */
    struct call_plan plan;
};

/* Gradient of output j; NULL means that none flows into it (treat as zero). out[0] always has one in a backward
 * call. */
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

/* Heads (blocks, channels) of a sequence that are computed each by itself: element e of input i belongs to head
 * e / in[i] % count, likewise of outputs. 0: that tensor is every head's. */
struct heads {
    int64_t count, in[OP_MAX_IN], out[OP_MAX_OUT];
};

struct op {
    const char *name;    /* "scan_block" */
    const char *maths;   /* the equation, one ASCII line */
    const char *source;  /* paper and equation number, or "" */
    bool hidden;         /* the template: tested like the others, not shown by `lrnn list` */
    uint32_t needs_in;   /* bit i: the gradient reads the VALUE of input i */
    uint32_t needs_out;  /* bit j: the gradient reads the VALUE of output j */
    uint32_t no_grad_in; /* bit i: input i never has a gradient (tokens, targets) */
    uint32_t mutates;    /* bit i: forward writes input i in place (optimiser, running statistics) */
    int fuses;           /* ops that it does beside one: dropout masks do not depend on what is fused */

    /* Whole numbers among the attributes that a device's kernels read (which row goes where): how many; written to `to`
     * unless that is NULL. Attributes are the host's memory. NULL: none. */
    int64_t (*table)(const struct call *c, int32_t *to);

    /* Checks shapes of the inputs and attributes, and creates the outputs with graph_output(g, c, ...).
     * On a misfit: graph_fail(g, ST_USAGE, ...) naming both numbers; returns nothing else. */
    void (*infer)(struct graph *g, struct call *c);

    struct cost (*cost)(const struct call *c, enum pass pass);

    /* NULL: a sequence has no heads. */
    struct heads (*heads)(const struct call *c);

    /* For the tests: of output j (forward), or of the gradient of input j (backward), the largest sum of the magnitudes
     * of the terms of one element. Rounding is measured by it where terms may cancel; 0 and NULL: by the largest
     * magnitude of the result. c->scratch[pass] is as in the reference's run. */
    double (*terms)(const struct call *c, enum pass pass, int j);

    /* Makes inputs and a call of this op at those sizes, for `lrnn perf op` and the tests. `sizes` names the options of
     * them that it reads (core/op_sizes.h), s->variant apart, which chooses optional inputs and attributes that are no
     * size. False, with nothing made: there is no such variant; that does not depend on the sizes. */
    bool (*build)(struct graph *g, const struct op_sizes *s);
    const char *sizes; /* "batch length dim" */
};

struct kernel {
    const char *name; /* "scan_block_cpu"; stored in run records, forced by --kernel */
    const struct op *op;
    enum device device;
    bool reference;   /* plain C, CPU, any size, never tuned; one per op */
    bool inexact;     /* result may differ from the reference in rounding; false = bit-equal */
    double tolerance; /* against the reference, relative to the largest magnitude, in units of machine epsilon of
                              `real`; the kernel's file says why */
    /* Why a row's last digits depend on how many rows stand beside it (tiles of products do); NULL: a sequence has the
     * same bits alone and in any batch. */
    const char *tiles;
    /* Why a gradient's last digits depend on which others are wanted and whether it is added (a sum that a product
     * brings along); NULL: they do not depend on the others. */
    const char *together;

    /* Whether this kernel computes that call, on that place; pure. On false *why is a short reason. NULL = always. */
    bool (*applicable)(const struct call *c, const char **why);
    /* Whether it is worth taking unasked, by sizes and processor alone; if not, a later kernel of the list is taken,
     * and this one only when forced. NULL = always, as the last kernel of a device has to be. */
    bool (*preferred)(const struct call *c);
    /* Bytes of scratch of one pass; NULL = none. Depends on shapes, attributes and precision alone (and on
     * c->guards, which scratch.h minds). */
    size_t (*workspace)(const struct call *c, enum pass pass);
    /* Writes all outputs. Allocates nothing; async on CUDA. Bit-identical at any thread count. */
    void (*forward)(const struct call *c, const struct exec *x);
    /* Writes (or adds to, see call_accumulates) every din[i] that is not NULL. NULL for ops that have no gradient. */
    void (*backward)(const struct call *c, const struct exec *x);
};

#ifdef __cplusplus
}
#endif
#endif

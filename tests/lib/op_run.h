/* op_run.h - one op of the registry, run: what the tests of CPU and of CUDA kernels share.
 *
 * Each example is built with a loss that is linear in the op's outputs, L = sum_j <out[j], w_j>, so that L's
 * gradient is the op's own. */
#ifndef LRNN_TESTS_LIB_OP_RUN_H
#define LRNN_TESTS_LIB_OP_RUN_H

#include "tests/lib/op_walk.h"
#include "tests/lib/support.h"

/* A call that is made again, on inputs of its own. */
struct imitation {
    const struct call *of;
    uint32_t cut; /* bit i: the first axis of input i is `batch` instead */
    int64_t batch;
};

struct trial_op {
    const struct op *op;
    const char *kernel; /* its name, or "reference" */
    struct op_sizes sizes;
    unsigned outputs; /* bit j: output j flows into the loss */
    bool prefilled;   /* the inputs flow into it too, later than the op: their gradients arrive with w_i in them */
    bool guards;
    bool may_overflow; /* results beyond the range of reals are no failure, but show nothing */
    /* Inputs at random may be so: no kernel is nearer than what the last bits of its inputs decide. */
    bool ill_conditioned;
    int nudge; /* > 0: each real input differs by its last bit, in that draw of ups and downs */
    enum fill fill;
    double scale;                                             /* times what fills the op's inputs; 0: 1 */
    int64_t draw;                                             /* of those values */
    const struct place *place;                                /* NULL: the CPU */
    bool (*build)(struct graph *g, const struct op_sizes *s); /* NULL: the op's */
    const struct imitation *like;                             /* instead of what the op makes */
};

#define RUN_TENSORS 64

/* Elsewhere than on the CPU the tensors' pointers lead, but during a walk, to host copies. */
struct op_run {
    struct trial_op what;
    struct graph g;
    struct call *call;
    bool differentiable;
    struct step_state state;
    struct tensor *weight_in[OP_MAX_IN]; /* of prefilled inputs */
    struct tensor *weight_out[OP_MAX_OUT];
    struct arena state_there;
    void *data_there[RUN_TENSORS], *data_here[RUN_TENSORS];
    real *grad_there[RUN_TENSORS], *grad_here[RUN_TENSORS];
};

int op_count(void);

/* The outputs of a call that a gradient can flow into, as bits. */
unsigned real_outputs(const struct call *c);

/* The optimiser's ops have no gradient: they change their inputs and the step state in place. */
bool differentiable(const struct op *op);
bool input_has_grad(const struct call *c, int i);

/* Outputs that a gradient can flow into at these sizes, as bits; 1 of an op without gradient. */
unsigned output_bits(const struct op *op, const struct op_sizes *s);

/* Makes the call again on a graph, which may refuse its shapes (g->error). */
struct call *imitate(struct graph *g, const struct imitation *like);

/* Builds, plans and fills. False if the op has not that many outputs. */
bool run_open(struct op_run *r, const struct trial_op *what);
void run_walk(struct op_run *r); /* forward and, of a differentiable op, backward */
void run_close(struct op_run *r);

/* The first input that a walk has changed and does not say it mutates, or -1. */
int run_input_changed(const struct op_run *r);

/* "batch=3 length=33": flags of `lrnn perf op`. Static; overwritten by the next call. */
const char *trial_sizes(const struct trial_op *what);

/* Whether the kernel computes it, and its device has kernels for whatever else is called. */
bool kernel_applies(const struct kernel *k, const struct trial_op *what);

#endif

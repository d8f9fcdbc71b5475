/* op_run.h - one op of the registry, run and compared: what the tests of CPU and of CUDA kernels share.
 *
 * Each example is built with a loss that is linear in the op's outputs, L = sum_j <out[j], w_j>, so that L's
 * gradient is the op's own. */
#ifndef LRNN_TESTS_OP_RUN_H
#define LRNN_TESTS_OP_RUN_H

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
struct run {
    struct trial_op what;
    struct graph g;
    struct call *call;
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

/* Records the call again on a graph, which may refuse its shapes (g->error). */
struct call *imitate(struct graph *g, const struct imitation *like);

/* Records, plans and fills. False if the op has not that many outputs. */
bool run_open(struct run *r, const struct trial_op *what);
void run_walk(struct run *r); /* forward and, of a differentiable op, backward */
void run_close(struct run *r);

/* Whether the kernel computes it, and its device has kernels for whatever else is called. */
bool kernel_applies(const struct kernel *k, const struct trial_op *what);

/* Opens and walks the reference. A recurrence over thousands of steps grows, and what is far below the largest value
 * would not be seen: where outputs or gradients pass `largest` on inputs that are smaller (what->scale) they do not,
 * those are taken. Ends the test if no inputs give finite results. */
void reference_within(struct run *want, struct trial_op *what, double largest);

/* "(3,20,64) (32,64) -": the shapes of the inputs. */
#define SHAPES_TEXT 512
const char *call_shapes(const struct call *c, char text[SHAPES_TEXT]);

struct difference;
_Noreturn void report_difference(const struct run *got, const char *tensor, const struct difference *d, double bound);

/* Ends the test if g and want differ by more than `tolerance` epsilons of the largest |want|, or of `least` if that is
 * larger; 0: the bits. */
void expect_agreement(const struct run *got, const real *g, const real *want, int64_t n, double tolerance, double least,
                      const char *tensor);

/* op->terms of output j or of the gradient of input j; 0 if the op has none or the run is not one of the reference. On
 * scratch of its own: that of the walk is in use again. */
double terms_of(const struct run *want, enum pass pass, int j);

/* Each ends the test if the runs differ by more than the tolerance (in epsilons; 0: the bits). */
void expect_same_outputs(const struct run *got, const struct run *want, double tolerance);
void expect_same_gradients(const struct run *got, const struct run *want, double tolerance, int except);
void expect_same_effects(const struct run *got, const struct run *want, double tolerance);

/* A walk leaves its inputs alone (those that it does not say it mutates), and writes nothing behind its outputs. */
void expect_clean(const struct run *r);

/* Calls visit for all sizes of the walks (op_walk.h) where the kernel applies: of the edges with every set of outputs,
 * of the others with all at once. Ends the test if no visit returns true: that it showed something. */
void each_example(const struct kernel *k, unsigned walks, enum fill fill, const struct place *place,
                  bool (*visit)(const struct kernel *k, const struct trial_op *what));

/* What to visit: against the reference, twice; gradients added to what is there; each input's
 * gradient unwanted in turn. False: the recurrence overflows. */
bool compare_twin(const struct kernel *k, const struct trial_op *what);
bool compare_accumulated(const struct kernel *k, const struct trial_op *what);
bool compare_unwanted(const struct kernel *k, const struct trial_op *what);

#endif

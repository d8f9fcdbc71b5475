/* support.h - what several suites share: a test-only op that makes any tensors a loss, filling, comparing, and small
 * trainings. Everything aborts the running test with a message when it cannot do its work. */
#ifndef LRNN_TESTS_LIB_SUPPORT_H
#define LRNN_TESTS_LIB_SUPPORT_H

#include "core/graph_plan.h"
#include "core/philox.h"
#include "kernels/train/train.h"
#include "models/net.h"
#include "models/small.h"
#include "tests/lib/scratch.h"
#include "tests/testing.h"

/* For tcase_add_checked_fixture: what main() does for the program, and one thread until the test asks for more. */
void start_kernels(void);

/* Like start_kernels, with a temporary folder of the test's own, which is removed at its end. */
extern char own_folder[SCRATCH_BYTES];
void own_folder_begin(void);
void own_folder_end(void);

/* Like start_kernels, with the first CUDA device, or CUDA on the host. */
extern struct place own_device;
void own_device_begin(void);
void own_device_end(void);

/* --- graphs ------------------------------------------------------------------------------------------------------ */

/* y[0] = before[0] + sum_i x_i w_i; before may be NULL. Gradients flow to x and before, none to w. With it any set of
 * tensors becomes one scalar root, and a tensor gets a second consumer. */
struct tensor *dot(struct graph *g, struct tensor *x, struct tensor *w, struct tensor *before);

/* kernel_list() and after it the kernel of dot; NULL-terminated. */
const struct kernel *const *test_kernels(void);

/* An empty graph over test_kernels(); kernel "" = first applicable. Ends the test on an error. */
void open_graph(struct graph *g, struct params *p, bool training, bool guards, const char *kernel);

/* graph_plan, ending the test on an error. */
void plan_graph(struct graph *g);

/* Real input of up to three axes; a size of 0 ends them. */
struct tensor *input3(struct graph *g, const char *name, int64_t a, int64_t b, int64_t c, bool needs_grad);

/* FLOPs of both passes of a call, and for each byte that they move some more, which is what filling and comparing
 * costs. */
double call_work(const struct call *c);

/* --- values ------------------------------------------------------------------------------------------------------ */

enum fill {
    FILL_SMALL, /* magnitude in [0.1, 0.9), either sign: away from the kinks at 0, no growth in recurrences */
    FILL_WIDE,  /* the same, but up to 30 in tensors of rank 3 (not in weights): gates and activations saturate */
    FILL_WHOLE, /* whole numbers -2..2: sums of products are exact in any order */
    /* Like FILL_SMALL, with matrices (rank 2) divided by the root of their columns, as weights are: long recurrences
     * of many units would be chaotic, and rounding grow without bound. */
    FILL_NET
};

/* Element i of the input with that id, in draw number `draw` >= 0: a pure function, so that two graphs hold the same
 * and nobody keeps a copy. Ids lie below the tensor's limit, about every fourth is IGNORED where that is allowed.
 * `positive`: magnitudes only. */
double fill_value(const struct tensor *t, int64_t draw, enum fill fill, bool positive, int64_t i);

/* Fills one tensor, or all inputs of a planned graph, with draw number 0. */
void fill_tensor(struct tensor *t, enum fill fill, bool positive);
void fill_inputs(struct graph *g, enum fill fill, bool positive);

/* Element i of values, real or id. */
double value_at(const struct tensor *t, int64_t i);
void set_value(struct tensor *t, int64_t i, double value);

/* A copy to be freed by the caller. */
real *copy_reals(const real *x, int64_t n);

/* A step state as the first step of a run has it. */
struct step_state first_state(void);

/* --- comparing --------------------------------------------------------------------------------------------------- */

struct difference {
    int64_t at;                     /* where |got - want| is largest; a value that is not finite beats all others */
    double got, want, error, scale; /* scale: largest |want| */
};

struct difference compare_reals(const real *got, const real *want, int64_t n);

/* Fails the test unless every |got - want| <= bound * max(1, largest |want|). `what` names the tensor. */
void expect_close(const real *got, const real *want, int64_t n, double bound, const char *what);

/* Single values, and the likes of ck_assert for loops over elements: libcheck writes a message for every ck_assert that
 * it passes, which there takes longer than the work. NaN fails. */
void expect_near(double got, double want, double bound, const char *what);
void expect_at_most(double value, double bound, const char *what);

/* Fails the test unless the bits agree. */
void expect_same_bits(const void *got, const void *want, int64_t n, const char *what);

/* --- nets -------------------------------------------------------------------------------------------------------- */

/* A net, its parameters, and an optimiser step over them. */
struct trial {
    struct params params;
    struct graph graph, update;
    struct net net;
    struct step_state state;
    struct adamw_segment segments[1];
};

struct trial_shape {
    const char *model; /* "bdlru:m=2,blocks=4" */
    int64_t B, T, V, D, layers;
    int mlp, norm;
    double dropout, layer_scale;
    int64_t top_levels;
    const char *kernel; /* "" or "reference" */
    enum precision precision;
    bool guards, evaluation;
    int kind, pool; /* of the backbone */
    bool bidirectional;
    enum readout readout;
    int64_t channels;        /* of an input of values; 0: tokens out of V */
    struct links_size links; /* of examples that are graphs, which arrive without edges; 0: they are none */
    int encoder;             /* of values, by enum encoder */
    bool degree_code;
    int64_t height, width; /* of the image that an example is; 0: it is none */
    int positions;         /* of the backbone */
};

/* Builds, plans and initialises (parameters and tokens from `seed`). */
void trial_open(struct trial *t, const struct trial_shape *shape, uint64_t seed);

/* New inputs and targets, a function of (seed, step); one target in eight is IGNORED. */
void trial_fill(struct trial *t, uint64_t seed, int64_t step);

/* forward, backward, update. */
void trial_step(struct trial *t, uint64_t seed);

void trial_close(struct trial *t);

/* Double build: the gradient of each trained parameter, six elements by `draw`, against differences of the loss, unless
 * the parameter reaches a choice (route_chooses). Moves the parameters away from their initial values first. */
void expect_gradients(struct trial *t, uint64_t draw);

#endif

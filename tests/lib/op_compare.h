/* op_compare.h - runs of one op (op_run.h) held against each other: kernel against reference, accumulated and unwanted
 * gradients, and the bounds of what may differ. */
#ifndef LRNN_TESTS_LIB_OP_COMPARE_H
#define LRNN_TESTS_LIB_OP_COMPARE_H

#include "tests/lib/op_run.h"

/* Opens and walks the reference. A recurrence over thousands of steps grows, and what is far below the largest value
 * would not be seen: where outputs or gradients pass `largest` on inputs that are smaller (what->scale) they do not,
 * those are taken. Ends the test if no inputs give finite results. */
void reference_within(struct op_run *want, struct trial_op *what, double largest);

/* "(3,20,64) (32,64) -": the shapes of the inputs. */
#define SHAPES_TEXT 512
const char *call_shapes(const struct call *c, char text[SHAPES_TEXT]);

struct difference;
_Noreturn void report_difference(const struct op_run *got, const char *tensor, const struct difference *d,
                                 double bound);

/* Ends the test if g and want differ by more than `tolerance` epsilons of the largest |want|, or of `least` if that is
 * larger; 0: the bits. */
void expect_agreement(const struct op_run *got, const real *g, const real *want, int64_t n, double tolerance,
                      double least, const char *tensor);

/* Each ends the test if the runs differ by more than the tolerance (in epsilons; 0: the bits). */
void expect_same_outputs(const struct op_run *got, const struct op_run *want, double tolerance);
void expect_same_gradients(const struct op_run *got, const struct op_run *want, double tolerance, int except);
void expect_same_effects(const struct op_run *got, const struct op_run *want, double tolerance);

/* All of these that the op has: outputs, then gradients or effects. */
void expect_same_run(const struct op_run *got, const struct op_run *want, double tolerance);

/* Whether outputs and gradients of a walked run are so small that it shows something. */
bool run_in_range(const struct op_run *r);

/* A walk leaves its inputs alone (those that it does not say it mutates), and writes nothing past its outputs. */
void expect_clean(const struct op_run *r);

/* With LRNN_CUDA_EVERY=n, n > 1, the walks of CUDA kernels take every n-th size from LRNN_CUDA_FIRST (0) on,
 * and all before the first that shows something: on the host, where threads run one after the other, all sizes take
 * long (EVERY in the Makefile). */
bool walk_leaves_out(const struct place *place, int index, int shown);

/* Calls visit for all sizes of the walks (op_walk.h) where the kernel applies: of the edges with every set of outputs,
 * of the others with all at once. Ends the test if no visit returns true: that it showed something. */
void each_example(const struct kernel *k, unsigned walks, enum fill fill, const struct place *place,
                  bool (*visit)(const struct kernel *k, const struct trial_op *what));

/* Does so for every CPU kernel of the op. */
void each_cpu_kernel(const struct op *op, unsigned walks, enum fill fill,
                     bool (*visit)(const struct kernel *k, const struct trial_op *what));

/* Visits: against the reference, twice; gradients added to what is there; each input's
 * gradient unwanted in turn. False: the recurrence overflows. */
bool compare_twin(const struct kernel *k, const struct trial_op *what);
bool compare_accumulated(const struct kernel *k, const struct trial_op *what);
bool compare_unwanted(const struct kernel *k, const struct trial_op *what);

#endif

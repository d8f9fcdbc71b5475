/* op_apart.h - sequences and heads that an op maps each by itself: the result of one depends on none that ran beside
 * it. */
#ifndef LRNN_TESTS_LIB_OP_APART_H
#define LRNN_TESTS_LIB_OP_APART_H

#include "tests/lib/op_compare.h"

/* The inputs that hold one entry per sequence along their first axis, as bits: the fewest that can be cut to one
 * sequence so that the outputs are cut likewise. 0: the op has no sequences, or they cannot be had alone. */
uint32_t sequence_inputs(const struct call *c);

/* Whether the op says something of each sequence that holds for it alone. If not *why is the reason. */
bool sequences_are_apart(const struct op *op, const char **why);

/* Visits; each returns whether there are several sequences, or several heads.
 * Some sequences alone, with the values that they have in the batch: outputs and gradients of their inputs keep their
 * bits, or their value within rounding where kernel->tiles says why. */
bool compare_alone(const struct kernel *k, const struct trial_op *what);

/* Compares with other values in all heads but one: its outputs and gradients keep their bits, the gradients of weights
 * too. */
bool compare_beside_others(const struct kernel *k, const struct trial_op *what);

/* Calls compare for all sizes of the walks (op_walk.h) where the kernel applies. Returns how many said true. */
int each_example_apart(const struct kernel *k, unsigned walks, const struct place *place,
                       bool (*compare)(const struct kernel *k, const struct trial_op *what));

#endif

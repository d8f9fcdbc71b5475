/* op_walk.h - the sizes at which the tests walk every op: one list for all of them. */
#ifndef LRNN_TESTS_LIB_OP_WALK_H
#define LRNN_TESTS_LIB_OP_WALK_H

#include "core/op_sizes.h"
#include "kernels/kernel.h"

/* Small sizes, changed as the text says: "length=33 variant=1". */
struct op_sizes sizes_at(const char *text);

/* Edges: small sizes, of which one at a time is 1, a block's edge, or a prime beyond it. Real: as in trainings, several
 * (sequence, head) pairs per part, several chunks with the last of them short, and odd widths at the same time. Long:
 * small sizes but one, so that kernels share out what they do not at other sizes. Wide: several at once, so that those
 * do that have work enough at none of the others. Large: what few ops do at sizes alone that take long. */
enum { WALK_EDGES = 1, WALK_REAL = 2, WALK_LONG = 4, WALK_WIDE = 8, WALK_LARGE = 16 };

/* All different sizes of those walks that the op reads, each with every choice (gate, layout) and every variant. */
struct op_walk {
    int n;
    struct op_sizes *at; /* owned */
};
struct op_walk walk_of(const struct op *op, unsigned walks);
void walk_free(struct op_walk *w);

/* Number of values of a choice ("gate", "layout") that the op reads, else 1. */
int choices_of(const struct op *op, const char *name);

#endif

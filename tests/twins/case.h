/* case.h - what the kernel fuzzer tries: one kernel at one choice of sizes, drawn at random, against its reference. */
#ifndef LRNN_TESTS_TWINS_CASE_H
#define LRNN_TESTS_TWINS_CASE_H

#include "core/op_sizes.h"
#include "kernels/kernel.h"

struct twin_case {
    const struct kernel *kernel;
    struct op_sizes sizes;
    int64_t outputs; /* bit j: output j flows into the loss; 0: all that can */
    int fill;        /* enum fill */
    int64_t draw;    /* of the inputs' values */
};

/* The flags --outputs, --fill and --draw of a struct twin_case; op_sizes_options has the flags of its sizes. */
extern const struct option twin_case_options[];

/* Case number `index` of a seed: sizes log-uniform, within a budget of work that is drawn as well; any variant, choice,
 * set of outputs and filling. Pure. False: in so many draws there was none where the kernel applies. */
bool case_draw(struct twin_case *c, const struct kernel *kernel, uint64_t seed, int64_t index);

/* Whether the op takes these sizes and the kernel applies to them. */
bool case_applies(const struct twin_case *c);

/* Compares kernel and reference: outputs and gradients, at 1 and 3 threads with equal bits, gradients added to what is
 * there, guard zones, inputs untouched. For the body of a test, which it ends at the first difference. */
void case_compare(const struct twin_case *c);

/* "--op linear --kernel linear_cpu --batch 3 --length 17 --outputs 1 --fill small --draw 9" */
#define CASE_TEXT 512
const char *case_flags(const struct twin_case *c, char text[CASE_TEXT]);

#endif

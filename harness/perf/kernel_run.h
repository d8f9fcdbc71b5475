/* kernel_run.h - one kernel at one shape, with filled inputs, ready to be timed. */
#ifndef LRNN_HARNESS_PERF_KERNEL_RUN_H
#define LRNN_HARNESS_PERF_KERNEL_RUN_H

#include "core/arena.h"
#include "core/graph.h"
#include "core/op_sizes.h"
#include "harness/perf/measure.h"
#include "kernels/kernel.h"

enum { PASS_BOTH = 2 }; /* after PASS_FORWARD and PASS_BACKWARD */

struct kernel_run {
    enum precision precision;  /* of products; set before kernel_run_open */
    const struct place *place; /* where it runs: set before kernel_run_open; NULL: the CPU */
    struct step_state *live;   /* state that ops read: &state, or its copy in the place's memory */
    struct arena there;        /* owns `live` if it is not &state */
    struct graph graph;
    struct call *call;
    struct step_state state;
    struct cost cost[3]; /* forward, backward, both */
    struct samples time[3];
    char shape[256];
};

/* Builds, plans and fills the op with that kernel, or with the default kernel (NULL). If the kernel does not apply,
 * *why says why, and nothing is planned; else *why is NULL. r starts zeroed. Call kernel_run_close also after an
 * error. */
enum status kernel_run_open(struct kernel_run *r, const struct op *op, const struct kernel *kernel,
                            const struct op_sizes *sizes, const char **why, struct error *e);
void kernel_run_sample(struct kernel_run *r); /* forward, and backward if the op has one */
void kernel_run_forward(void *run);           /* untimed; a void pointer, for struct device_work */
void kernel_run_close(struct kernel_run *r);

#endif

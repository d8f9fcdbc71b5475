/* graphs.h - the graphs of a run, built from its setup: those that a trainer walks, and of which a plan counts the
 * FLOPs.
 *
 * Each function creates its graph, which the caller frees, also after an error. All of them run on `place` and have the
 * kernel that the run forces (--kernel), if it is one of their ops'. */
#ifndef LRNN_HARNESS_STUDY_GRAPHS_H
#define LRNN_HARNESS_STUDY_GRAPHS_H

#include "core/graph.h"
#include "harness/study/setup.h"
#include "kernels/train/train.h"

/* Builds the graph of a training step: the net and, if the task has a second batch, a second net on the same parameters
 * (else *second is zeros). The root is then the sum of both losses; the reported loss stays the main batch's. */
enum status graphs_build_training(struct graph *g, const struct setup *s, const struct place *place,
                                  struct params *params, struct net *net, struct net *second, struct error *e);

/* FLOPs of the forward and backward walks of a step, from the graph of graphs_build_training. */
double graphs_step_flops(const struct graph *train);

/* Builds the graph of a batch of validation or test. */
enum status graphs_build_evaluation(struct graph *g, const struct setup *s, const struct place *place,
                                    struct params *params, struct net *net, struct error *e);

/* Builds the optimiser's update of all declared parameters. Its inputs are the parameters' arrays and `loss`, [1] of
 * the same place; before params_reserve there are none, and the graph can be measured alone. */
enum status graphs_build_update(struct graph *g, const struct setup *s, const struct place *place,
                                const struct params *params, real *loss, struct error *e);

/* Builds the graph that takes the batch of a step out of training data that lies there whole. split[0] and, for the
 * second batch, split[1] are inputs that the caller fills; the inputs of the nets are written. */
enum status graphs_build_take(struct graph *g, const struct setup *s, const struct place *place, const struct net *net,
                              const struct net *second, struct batch_tensors split[2], struct error *e);

/* Tells whether the training data may lie on a device whole: the run uses a whole epoch of it, and the second batch, if
 * there is one, has a number of examples that memory may hold. */
bool graphs_can_take(const struct setup *s);

/* Graphs of a run, planned or measured. */
struct graph_list {
    const struct graph *list[4];
    int n;
};

/* Checks that the kernel that the run forces computes an op of one of its graphs. ST_USAGE: it does not exist, or is of
 * another op or device; the message names it, its op and what to try. */
enum status graphs_check_forced(const struct graph_list *graphs, const struct setup *s, struct error *e);

/* Names the kernels that the graphs take, each once, in the order of their calls: "embedding_cpu linear_cpu". ST_FAIL:
 * the text is too short for them. */
enum status graphs_kernels(const struct graph_list *graphs, char *text, size_t size, struct error *e);

/* Size of a run, from its graphs. */
struct run_size {
    double flops;   /* of the whole run */
    int64_t params; /* that it trains */
    size_t memory;  /* bytes of its largest graph, which are asked for at once */
};

/* Nothing is reserved, and no device is asked. Errors, with sizes of zeros: as graphs_check_forced, and what keeps the
 * graphs from being planned. */
enum status graphs_size(const struct setup *s, struct run_size *size, struct error *e);

#endif

/* graphs.h - builds the graphs of a run. A trainer runs them; a plan only counts their FLOPs.
 *
 * Each function creates a graph, which the caller must free, also after an error. Where the kernel that the run forces
 * (--kernel) computes one of the graph's ops, it is used. */
#ifndef LRNN_HARNESS_STUDY_GRAPHS_H
#define LRNN_HARNESS_STUDY_GRAPHS_H

#include "core/graph.h"
#include "harness/study/setup.h"
#include "kernels/train/train.h"

/* A run, and the place on which its graphs run. */
struct graph_source {
    const struct spec *spec;
    const struct shapes *shapes;
    const struct place *place;
};

/* The nets of a training step, which share their parameters. `second`, for the second batch, is all zeros if the task
 * has none. */
struct step_nets {
    struct net main, second;
};

/* Builds the graph of a training step. With two nets, gradients are those of the sum of both losses, but the reported
 * loss is the main batch's. */
enum status graphs_build_training(struct graph *g, const struct graph_source *from, struct params *params,
                                  struct step_nets *nets, struct error *e);

/* Returns the FLOPs of the forward and backward pass of a step, from the graph of graphs_build_training. */
double graphs_step_flops(const struct graph *train);

/* Builds the graph of a batch of validation or test. */
enum status graphs_build_evaluation(struct graph *g, const struct graph_source *from, struct params *params,
                                    struct net *net, struct error *e);

/* Whether --decay acts on a parameter of a net with the mixer `m`. */
bool graphs_decays(const struct config *c, const struct model *m, const struct param *p);

/* Builds the optimiser's update of all declared parameters. Its inputs are the parameters' arrays and `loss`, one
 * number on the same place. Before params_reserve, these arrays do not exist, and the graph can only be measured. */
enum status graphs_build_update(struct graph *g, const struct graph_source *from, const struct params *params,
                                real *loss, struct error *e);

/* Builds the graph that copies the batch of a step out of training data on the device, into the inputs of the nets. The
 * caller fills the graph's inputs with the data: split[0] and, for the second batch, split[1]. */
enum status graphs_build_take(struct graph *g, const struct graph_source *from, const struct step_nets *nets,
                              struct batch_tensors split[2], struct error *e);

/* Tells whether all training data may be kept on a device: the run lasts at least an epoch, and the examples of a
 * second batch can be counted by 32 bits. */
bool graphs_can_take(const struct spec *s, const struct shapes *shapes);

/* The graphs of a run, after they were planned or measured. */
struct graph_list {
    const struct graph *list[4];
    int n;
};

/* Checks that the forced kernel computes an op of at least one of the graphs. ST_USAGE: the kernel does not exist, or
 * it is for another op or device; the message names it, its op and what to try. */
enum status graphs_check_forced(const struct graph_list *graphs, const struct spec *s, struct error *e);

/* Names the kernels that the graphs use, each once, in the order of their calls. ST_FAIL: `text` is too short. */
enum status graphs_kernels(const struct graph_list *graphs, char *text, size_t size, struct error *e);

/* Computes the estimate of a run from its graphs. Nothing is allocated, and no device is used. Errors, with an estimate
 * of zeros: as graphs_check_forced and graph planning. */
enum status graphs_estimate(const struct spec *s, const struct shapes *shapes, struct estimate *size, struct error *e);

#endif

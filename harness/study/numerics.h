/* numerics.h - the version of the program's numbers that a run has, part of its identity.
 *
 * Whoever changes the bits of a part of the program raises the number beside it: `version` of an op, a kernel
 * (core/op.h), a model (models/model.h) or a backbone (models/backbone.h), or NUMERICS_BASE for a change that reaches
 * every run, as one of the training loop does. Runs that use the part are then done again, and all others stay. Golden
 * traces (tests/golden/) hold the bits of small trainings and fail where bits change without a raised number. */
#ifndef LRNN_HARNESS_STUDY_NUMERICS_H
#define LRNN_HARNESS_STUDY_NUMERICS_H

#include "harness/study/setup.h"

struct graph;

#define NUMERICS_BASE "1"

/* Appends the raised ops and kernels of a graph that are not in the text. ST_FAIL: the text is too short. */
enum status numerics_add_graph(const struct graph *g, char *text, size_t size, struct error *e);

/* Resolves a run from a task and a model as they are written, and gives its version. Errors as setup_resolve. */
enum status numerics_of_labels(const struct config *config, const char *task_label, const char *model_label, char *text,
                               size_t size, struct error *e);

/* The version that this program gives to a stored configuration (config_read_text). A program in which nothing has been
 * raised does not read it. ST_USAGE: it names a task, a model or flags that this program does not have. */
enum status numerics_of_stored(const char *config, char *text, size_t size, struct error *e);

#endif

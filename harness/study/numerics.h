/* numerics.h - the version of the computations of a run, which is part of the run's identity.
 *
 * A change that alters the bits of some part of the program must raise that part's number: `version` of an op, a kernel
 * (core/op.h), a model (models/model.h) or a backbone (models/backbone.h). NUMERICS_BASE is for changes that affect
 * every run, such as changes of the training loop. Then only the runs that use the part have a new id and are done
 * again. Golden traces (tests/golden/) store the bits of small trainings; they fail if bits change without a raised
 * number. */
#ifndef LRNN_HARNESS_STUDY_NUMERICS_H
#define LRNN_HARNESS_STUDY_NUMERICS_H

#include "harness/study/setup.h"

struct graph;

#define NUMERICS_BASE "1"

/* Appends the ops and kernels of a graph with a raised version that are not in `text`. ST_FAIL: it is too short. */
enum status numerics_add_graph(const struct graph *g, char *text, size_t size, struct error *e);

/* Resolves a run from the texts of a task and a model, and gives its version. Errors as setup_resolve. */
enum status numerics_of_labels(const struct config *config, const char *task_label, const char *model_label, char *text,
                               size_t size, struct error *e);

/* Gives the version that this program computes for a stored configuration (config_read_text). If no version was ever
 * raised, it does not read the configuration. ST_USAGE: it names a task, a model or flags that this program does not
 * have. */
enum status numerics_of_stored(const char *config, char *text, size_t size, struct error *e);

#endif

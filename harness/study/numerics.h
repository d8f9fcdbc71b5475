/* numerics.h - which version of the program's numbers a run has, part of its identity.
 *
 * Golden traces (tests/golden/) hold the bits of small trainings. Whoever changes bits raises the version of the part
 * of the program that changed, so that the runs which use that part are done again and all others stay what they
 * are. */
#ifndef LRNN_HARNESS_STUDY_NUMERICS_H
#define LRNN_HARNESS_STUDY_NUMERICS_H

#include "harness/study/config.h"
#include "tasks/task.h"

#define NUMERICS_TEXT 96

/* Writes "1", or behind it the parts that a run of this task and model with these flags uses and that have changed
 * since: "1+delta.2". ST_FAIL: more parts than the text holds. */
enum status numerics_of(const struct config *config, const struct task *task, const struct model_choice *model,
                        char *text, size_t size, struct error *e);

/* The same of a task and a model as they are written. ST_USAGE: there are none such. */
enum status numerics_of_labels(const struct config *config, const char *task_label, const char *model_label, char *text,
                               size_t size, struct error *e);

/* The same of a stored configuration (config_read_text), by the program as it is now. ST_USAGE: it names no model, or a
 * task, a model or flags that this program does not have. */
enum status numerics_of_stored(const char *config, char *text, size_t size, struct error *e);

#endif

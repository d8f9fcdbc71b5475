/* weights.h - the weights of a net in safetensors files, under the contract's names (spec/mixers.md).
 *
 * A finished run keeps its best weights as OUT/weights/<run_id>.safetensors, and its record holds that file's hash.
 * `lrnn export` checks them and adds what says which net they belong to; `lrnn import` reads the result. Values are
 * stored in the program's own precision, so nothing is rounded on either way. */
#ifndef LRNN_HARNESS_WEIGHTS_H
#define LRNN_HARNESS_WEIGHTS_H

#include "core/params.h"
#include "core/safetensors.h"
#include "harness/store/record.h"

#define WEIGHTS_FOLDER  "weights" /* below the output folder */
#define WEIGHTS_VERSION "1"       /* value of the metadata "lrnn_weights" */

/* Writes `params` as OUT/weights/<run_id>.safetensors and notes path and hash in *row, whose run_id is set. The bytes are
 * a function of id and weights alone: processes that do the same run write the same file. Errors: ST_FAIL. */
enum status weights_keep(const struct params *params, const char *out, struct run *row, struct error *e);

struct weights_count {
    int tensors;
    int64_t values;
};

/* Copies what the run of `record` kept below OUT to `target`, with metadata from the record: run_id, task, task_version,
 * model, config (the stored configuration), dtype, numerics, best_step and the accuracies and losses. *count, if not
 * NULL, tells how much. Errors: ST_DATA: nothing was kept, it is gone, or its hash is wrong; ST_FAIL: `target` cannot be
 * written. */
enum status weights_export(const struct run_record *record, const char *out, const char *target,
                           struct weights_count *count, struct error *e);

/* Loads every parameter from the file's tensor of that name. ST_DATA names what is missing, extra, of another shape or
 * dtype, or not finite; nothing is loaded then. `path` is for messages. */
enum status weights_load(struct params *params, const struct safetensors *file, const char *path, struct error *e);

#endif

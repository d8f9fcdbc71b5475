/* weights.h - the weights of a net in safetensors files, under the contract's names (docs/weights.md).
 *
 * A finished run keeps its best weights as OUT/weights/<run_id>.safetensors, and its record holds that file's hash; a
 * run that was done again has the number of the attempt in the name, <run_id>.2.safetensors. Where it was asked to
 * (--keep-weights all), the weights of its last step lie beside them as <run_id>.last.safetensors, and the first file's
 * metadata holds the hash of the second ("last_xxh3"). `lrnn export` checks them and adds what says
 * which net they belong to; `lrnn import` reads the result. Values are stored in the program's own precision, so
 * nothing is rounded on either way. */
#ifndef LRNN_HARNESS_RUN_WEIGHTS_H
#define LRNN_HARNESS_RUN_WEIGHTS_H

#include "core/file/safetensors.h"
#include "core/params.h"
#include "harness/store/files.h"
#include "harness/store/record.h"

#define WEIGHTS_VERSION "1" /* value of the metadata "lrnn_weights" */

/* Files that are written and have not got their names yet, because somebody else may do the same run. */
struct weights_kept {
    char best[PATH_BYTES], last[PATH_BYTES];           /* where they lie; "" = none */
    char best_name[PATH_BYTES], last_name[PATH_BYTES]; /* where they belong */
};

/* Writes `params`, and the array `last`, if not NULL, under names of their own in OUT/weights; notes in *row, whose
 * run_id and attempt are set, path and hash that the best weights will have. Errors: ST_FAIL, ST_MEMORY; nothing is
 * left then. */
enum status weights_write(const struct params *params, const real *last, const char *out, struct run *row,
                          struct weights_kept *kept, struct error *e);

/* Once the run's record is on disk: gives the files their names if that record is the one they were written for
 * (`won`), else removes them. A process that dies between record and names leaves files which weights_export finds.
 * Errors: ST_FAIL. */
enum status weights_settle(const struct weights_kept *kept, bool won, struct error *e);

struct weights_count {
    int tensors;
    int64_t values;
};

enum weights_of { WEIGHTS_BEST, WEIGHTS_LAST, WEIGHTS_INITIAL };

/* Copies what the run of `record` kept below OUT to `target`, the best weights or the last, with metadata from the
 * record: run_id, task, task_version, model, config (the stored configuration), dtype, numerics, readout, which weights
 * and of which step; of the best also accuracies and losses. *count, if not NULL, tells how much. Errors: ST_DATA:
 * nothing was kept, it is gone, or its hash is wrong; ST_FAIL: `target` cannot be written; ST_MEMORY. */
enum status weights_export(const struct run_record *record, enum weights_of which, const char *out, const char *target,
                           struct weights_count *count, struct error *e);

/* XXH3-128 of all values as doubles, tensors in the order of their names. Exported weights carry it as "values_xxh3",
 * so that altered ones are told even where they score as before. ST_MEMORY. */
enum status weights_hash(const struct safetensors *file, char hex[HASH_HEX], struct error *e);

/* Like weights_export, for `params` as they are before the run's first step. */
enum status weights_export_initial(const struct run_record *record, const struct params *params, const char *target,
                                   struct weights_count *count, struct error *e);

/* Loads every parameter from the file's tensor of that name. F32 may be loaded where the program computes in double,
 * which is exact; F64 into float would round and is refused. ST_DATA names what is missing, extra, of another shape or
 * dtype, or not finite; nothing is loaded then, nor after ST_MEMORY. `path` is for messages. */
enum status weights_load(struct params *params, const struct safetensors *file, const char *path, struct error *e);

/* Loads what a run starts from: the file of --from, whose XXH3-128 is `hash`. Errors as weights_load, and ST_USAGE:
 * `path` is empty; ST_DATA: the file is not there, or has another content. */
enum status weights_start(struct params *params, const char *path, const char *hash, struct error *e);

#endif

/* weights.h - the weights of a net in safetensors files, with the names of docs/weights.md.
 *
 * The best weights of a finished run are in OUT/weights/<run_id>.safetensors, and its record has that file's hash. If
 * the run was done again, the name also has the number of the attempt: <run_id>.2.safetensors. With --keep-weights all,
 * the weights of the last step are in <run_id>.last.safetensors, and the metadata of the first file have the hash of
 * the second ("last_xxh3"). `lrnn export` checks the weights and adds metadata that describe the net; `lrnn import`
 * reads the result. Values are stored in the program's own precision, so nothing is rounded. */
#ifndef LRNN_HARNESS_RUN_WEIGHTS_H
#define LRNN_HARNESS_RUN_WEIGHTS_H

#include "core/file/safetensors.h"
#include "core/params.h"
#include "harness/store/files.h"
#include "harness/store/record.h"

#define WEIGHTS_VERSION "1" /* value of the metadata "lrnn_weights" */

/* Files that have been written under temporary names. They get their final names only when the run's record is on disk,
 * because another process may do the same run. */
struct weights_kept {
    char best[PATH_BYTES], last[PATH_BYTES];           /* temporary paths; "" = no file */
    char best_name[PATH_BYTES], last_name[PATH_BYTES]; /* final paths */
};

/* Writes `params` and, if not NULL, the array `last` under temporary names in OUT/weights. Sets path and hash of the
 * best weights in *row, whose run_id and attempt must be set. Errors: ST_FAIL, ST_MEMORY; then no files are left. */
enum status weights_write(const struct params *params, const real *last, const char *out, struct run *row,
                          struct weights_kept *kept, struct error *e);

/* Call it when the run's record is on disk. If this process wrote the record (`won`), gives the files their final
 * names, else removes them. If a process dies before that, weights_export still finds its files. Errors: ST_FAIL. */
enum status weights_settle(const struct weights_kept *kept, bool won, struct error *e);

struct weights_count {
    int tensors;
    int64_t values;
};

enum weights_of { WEIGHTS_BEST, WEIGHTS_LAST, WEIGHTS_INITIAL };

/* Copies the best or the last weights of the record's run to `target`, with metadata from the record: run_id, task,
 * task_version, model, config (the stored configuration), dtype, numerics, readout, which weights and their step; for
 * the best also accuracies and losses. *count, if not NULL, gets the numbers of tensors and values. Errors: ST_DATA: no
 * weights were kept, the file is missing, or its hash is wrong; ST_FAIL: `target` cannot be written; ST_MEMORY. */
enum status weights_export(const struct run_record *record, enum weights_of which, const char *out, const char *target,
                           struct weights_count *count, struct error *e);

/* Gives the XXH3-128 of all values as doubles, with tensors in the order of their names. Exported weights have it as
 * "values_xxh3", so that any change of values is found. ST_MEMORY. */
enum status weights_hash(const struct safetensors *file, char hex[HASH_HEX], struct error *e);

/* Like weights_export, for `params`, the values before the run's first step. */
enum status weights_export_initial(const struct run_record *record, const struct params *params, const char *target,
                                   struct weights_count *count, struct error *e);

/* Loads every parameter from the file's tensor of that name. A program that computes in double also loads F32, which is
 * exact. A program that computes in float refuses F64, which it would have to round. ST_DATA names parameters that are
 * missing, extra, of another shape or dtype, or not finite. After an error nothing is loaded. `path` is for
 * messages. */
enum status weights_load(struct params *params, const struct safetensors *file, const char *path, struct error *e);

/* Loads the weights that a run starts from: the file of --from, whose XXH3-128 is `hash`. Errors as weights_load, and
 * ST_USAGE: `path` is empty; ST_DATA: the file is missing or has another hash. */
enum status weights_start(struct params *params, const char *path, const char *hash, struct error *e);

#endif

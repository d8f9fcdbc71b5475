/* record.h - the record of a run as a struct. record_files.h stores records, one immutable JSON file per run.
 *
 * schema.h describes every field: the JSON writer and reader, runs.csv and `lrnn schema runs` walk that table. */
#ifndef LRNN_HARNESS_STORE_RECORD_H
#define LRNN_HARNESS_STORE_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "core/label.h"

#define RECORD_SCHEMA 3   /* raised when a column of a record is removed or changes its meaning */
#define RECORD_TEXT   512 /* bytes of a text field, terminator included */
#define RUN_ID_HEX    33  /* 32 hex digits and terminator */

enum run_status { RUN_OK, RUN_DIVERGED, RUN_NAN, RUN_OOM, RUN_TIMEOUT, RUN_KILLED, RUN_ERROR, RUN_STATUS_COUNT };
extern const char *const run_status_names[RUN_STATUS_COUNT + 1]; /* ok diverged ...; NULL-terminated */

/* One attempted run: the columns of runs.csv (`lrnn schema runs`) in their order. Numbers that do not apply are NAN or
 * -1 and become empty cells. */
struct run {
    int64_t schema;
    char run_id[RUN_ID_HEX], cell_id[RUN_ID_HEX];
    char suite[64], task[RECORD_TEXT];
    int64_t task_version;
    char model[64], layers[RECORD_TEXT]; /* "bdlru", "bdlru:m=4,blocks=64;swiglu" */
    uint64_t seed, data_seed;
    char split_hash[RUN_ID_HEX];
    int64_t n_train, n_val, n_test, vocab, len_train, len_test;
    int64_t d_model, n_layers, block, order;
    int64_t params, params_nonemb, state_floats;
    char optimizer[32];
    double lr;
    char schedule[32];
    int64_t warmup_steps;
    double weight_decay, beta1, beta2, grad_clip;
    int64_t batch, max_steps;
    char dtype[16];
    int64_t status; /* enum run_status */
    char status_detail[RECORD_TEXT], stop_reason[32];
    int64_t steps, tokens, best_step, solved_step;
    double train_loss, val_loss, test_loss;
    double val_acc, test_acc, test_macro_acc, test_seq_acc, test_last_acc;
    char profile[32], backbone[32], mlp[32], norm[32];
    int64_t metric; /* enum metric (tasks/task.h) */
    double metric_value;
    int64_t solved;
    double wall_s, train_s, eval_s, data_s;
    double step_ms_med, step_ms_mad, step_ms_p95, tok_per_s;
    double flop_step, tflops;
    int64_t peak_dev_bytes, peak_host_bytes;
    char backend[16], device[RECORD_TEXT], machine_id[17];
    int64_t threads, deterministic;
    char version[32], numerics[96], git_commit[64];
    int64_t git_dirty;
    char build_id[RECORD_TEXT], compiler[RECORD_TEXT], driver[64], kernel[2 * RECORD_TEXT], env_epoch[32];
    char started[32], finished[32];
    int64_t attempt, resumed;
    char ckpt[RECORD_TEXT], ckpt_xxh3[RUN_ID_HEX];
    double chance;
    char source_id[17];
    int64_t mixed_builds;
    double val_metric, seq_chance, test_nonfinite;
    char former_id[RUN_ID_HEX];
    int64_t walked, beside;
};

/* One point of a learning curve: a row of curves.csv. */
struct curve_point {
    int64_t step, tokens;
    double wall_s;
    int64_t split; /* enum split: train, val, test */
    double loss, acc, macro_acc, seq_acc, last_acc, lr, grad_norm, tok_per_s;
    char event[12]; /* eval, nan */
    int64_t length; /* of the test examples, all of one length; 0: of any */
};

/* Kinds of evaluations: by length, the test examples of that length; by position, the positions after those of the
 * previous point up to this one. */
#define EVAL_BY_LENGTH   "length"
#define EVAL_BY_POSITION "position"

/* One evaluation length: a row of evals.csv. */
struct eval_point {
    int64_t step, split;
    int64_t length, n;
    char difficulty[64];
    double loss, acc, macro_acc, seq_acc, last_acc;
};

struct run_record {
    struct run run;
    char config[4096];         /* the full resolved configuration, as a config file (key=value lines) */
    char identity[4096];       /* the text whose hash is run_id */
    struct curve_point *curve; /* borrowed */
    int64_t n_curve;
    struct eval_point *evals; /* borrowed */
    int64_t n_evals;
    int replaced;   /* number of earlier results that --force set aside; only set by records_load */
    bool set_aside; /* a failed attempt at a run that was done again; only set by records_load */
    bool again;     /* the run is to be done again, and this is its latest result; likewise */
    bool custom;    /* this program's profile of that name does not have the run; only set by report_load */
};

/* Gives the mixer with its options as a label, from the part of `layers` before the MLP. ST_USAGE: it is no label. */
enum status run_mixer(const struct run *run, struct label *mixer, struct error *e);

/* Names the library of the run's matrix products, the end of the column `kernel`: "oneDNN AVX512_CORE"; "": the record
 * does not say. */
const char *run_products(const struct run *run);

/* Give the XXH3-128 of a text, of bytes, or of a label's name and pairs, as 32 hex digits. */
void record_hash(const char *text, char hex[RUN_ID_HEX]);
void record_hash_bytes(const void *bytes, size_t size, char hex[RUN_ID_HEX]);
void record_hash_label(const struct label *l, char hex[RUN_ID_HEX]);

/* Gives the path of a run's record: OUT/runs/<ab>/<run_id>.json. */
void record_path(const char *out, const char *run_id, char *path, size_t size);

#endif

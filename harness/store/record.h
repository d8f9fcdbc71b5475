/* record.h - the truth: one immutable JSON file a run, results/runs/<ab>/<run_id>.json, and what is exported from them.
 *
 * One table describes every field: the JSON writer and reader, runs.csv and `lrnn schema runs` walk it. A record is
 * written under a temporary name, fsynced, and linked into place without overwriting, then its folder is fsynced. */
#ifndef LRNN_HARNESS_RECORD_H
#define LRNN_HARNESS_RECORD_H

#include "core/arena.h"
#include "core/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define RECORD_SCHEMA 1
#define RECORD_TEXT   512 /* bytes of a text field, terminator included */
#define RUN_ID_HEX    33  /* 32 hex digits and terminator */

enum run_status { RUN_OK, RUN_DIVERGED, RUN_NAN, RUN_OOM, RUN_TIMEOUT, RUN_KILLED, RUN_ERROR, RUN_STATUS_COUNT };
extern const char *const run_status_names[RUN_STATUS_COUNT]; /* ok diverged nan oom timeout killed error */

/* One attempted run: the columns of runs.csv (spec/harness.md 3.1) in their order. Numbers that do not apply are NAN or
 * -1 and become empty cells. */
struct run {
    int64_t schema;
    char run_id[RUN_ID_HEX], cell_id[RUN_ID_HEX], sweep[64];
    char suite[64], task[RECORD_TEXT];
    int64_t task_version;
    char model[64], layers[RECORD_TEXT]; /* "bdlru", "bdlru:m=4,blocks=64;swiglu" */
    uint64_t seed, data_seed;
    char split_hash[RUN_ID_HEX];
    int64_t n_train, n_val, n_test, vocab, len_train, len_test;
    int64_t d_model, n_layers, block, rank, order;
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
    double train_acc, val_acc, test_acc, test_macro_acc, test_seq_acc, test_last_acc;
    char profile[32], backbone[32], mlp[32], norm[32];
    char metric[32];
    double metric_value;
    int64_t solved;
    double wall_s, train_s, eval_s, data_s;
    double step_ms_med, step_ms_mad, step_ms_p95, tok_per_s;
    double flop_step, tflops;
    int64_t peak_dev_bytes, peak_host_bytes;
    double energy_j;
    char backend[16], device[RECORD_TEXT], machine_id[17];
    int64_t threads, deterministic;
    char version[32], numerics[32], git_commit[64];
    int64_t git_dirty;
    char build_id[RECORD_TEXT], compiler[RECORD_TEXT], cuda[32], driver[64], kernel[RECORD_TEXT], env_epoch[32];
    char started[32], finished[32];
    int64_t attempt, resumed;
    char ckpt[RECORD_TEXT], ckpt_xxh3[RUN_ID_HEX];
    double chance;
};

/* One point of a learning curve: a row of curves.csv. */
struct curve_point {
    int64_t step, tokens;
    double wall_s;
    int split; /* enum split: train, val, test */
    double loss, acc, macro_acc, seq_acc, last_acc, lr, grad_norm, tok_per_s;
    char event[12]; /* eval, ckpt, resume, nan, stop */
};

/* One evaluation length: a row of evals.csv. */
struct eval_point {
    int64_t step;
    int split;
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
};

/* XXH3-128 of the text as 32 hex digits. */
void record_hash(const char *text, char hex[RUN_ID_HEX]);

/* A record whose numbers do not apply yet (NAN, -1), schema set, texts empty. */
void record_init(struct run_record *r);

/* OUT/runs/<ab>/<run_id>.json */
void record_path(const char *out, const char *run_id, char *path, size_t size);

/* Writes the record; an existing one of that id is kept and counts as success. Errors: ST_FAIL with path and reason
 * (unwritable, disk full); nothing half-written is left visible. */
enum status record_write(const char *out, const struct run_record *r, struct error *e);

/* Reads one record; texts and arrays live on `arena`. ST_DATA: damaged (the first line holds the XXH3-128 of all bytes
 * behind it), of another run than its name says, or of a later schema; ST_FAIL: it cannot be read. Both with path and
 * reason. */
enum status record_read(const char *path, struct run_record *r, struct arena *arena, struct error *e);

enum record_state { RECORD_ABSENT, RECORD_DONE, RECORD_WAS_CORRUPT };

/* Whether the run is on disk. A corrupt record is renamed to <name>.corrupt, or .corrupt.2, .3 (never deleted), named on
 * stderr, and the answer is RECORD_WAS_CORRUPT: the run is to be done again. */
enum record_state record_check(const char *out, const char *run_id);

/* All records under OUT/runs, sorted by started then run_id. Corrupt ones are treated as in record_check and skipped. */
struct record_set {
    struct run_record *list;
    int n;
    struct arena arena;
};
enum status records_load(struct record_set *set, const char *out, struct error *e);
void records_free(struct record_set *set);

/* Writes OUT/runs.csv, OUT/curves.csv and OUT/evals.csv from the records, each through a temporary name. */
enum status records_export_csv(const struct record_set *set, const char *out, struct error *e);

/* Prints name, type, unit and meaning of every column of runs, curves, evals, perf or machines, one a line, from the
 * table the writer uses. ST_USAGE: no such table. */
enum status schema_print(const char *what, FILE *f, struct error *e);

/* Makes a folder and its parents. */
enum status make_folder(const char *path, struct error *e);

/* Replaces a file atomically: temporary name in the same folder, fsync, rename. */
enum status write_file_atomic(const char *path, const void *bytes, size_t size, struct error *e);

/* --- perf.csv: speed is measured apart from training (runs share the machine) ------------------------------------- */

struct perf_row {
    char sitting[32], bench[64], shape[256], dtype[16], pass[8];
    int64_t samples; /* steps measured */
    double time_ns_med, time_ns_mad, time_ns_p95, tok_per_s;
    int64_t threads;
    char commit[64], build_id[RECORD_TEXT], machine_id[17], started[32];
    char cell_id[RUN_ID_HEX]; /* joins the table's row; empty if none */
};

/* Appends one row to OUT/perf.csv (header written first), flushed and fsynced. */
enum status perf_append(const char *out, const struct perf_row *row, struct error *e);

/* Latest row of that cell, or false. */
bool perf_latest(const char *out, const char *cell_id, struct perf_row *row);

/* --- the machine ---------------------------------------------------------------------------------------------------- */

struct machine {
    char id[17]; /* hash of the stable facts: CPU model, cores, RAM in GiB */
    char cpu[128];
    int64_t cores;
    double ram_gib;
    char kernel[128], os[128], governor[32], libc[64], blas[128];
    char env_epoch[17]; /* hash of the facts that may change under it: the line above */
};
void machine_read(struct machine *m);

/* OUT/machines.csv: adds this machine's row unless it is there. */
enum status machines_export(const char *out, const struct machine *m, struct error *e);

/* Now, UTC, RFC 3339 with seconds. */
void time_now_text(char *buffer, size_t size);

/* Monotonic seconds. */
double time_now_s(void);

#endif

/* schema.c - the fields of run records, their curves and evaluations, perf.csv, limits.csv and machines.csv: name,
 * type, unit and meaning, in the order of the columns. */
#include "harness/store/schema.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/batch.h"
#include "core/paragraph.h"
#include "harness/store/csv.h"
#include "tasks/task.h"

const char *const split_names[SPLIT_COUNT + 1] = {"train", "val", "test", NULL};

/* A column for the member at PATH in OBJECT. */
#define COLUMN(object, path, name, type, unit, meaning)                                                                \
    { name, type, offsetof(object, path), sizeof(((object *)0)->path), unit, meaning, NULL }
#define SCHEMA                                                                                                         \
    { "schema", FIELD_SCHEMA, 0, 0, "1", "version of this list of columns", NULL }
#define END                                                                                                            \
    { .name = NULL }

/* Columns named like a member of OBJECT; PLACE(member) is the path to it. */
#define FIELD(member, type, unit, meaning) COLUMN(OBJECT, PLACE(member), #member, type, unit, meaning)
#define INT(member, unit, meaning)         FIELD(member, FIELD_INT, unit, meaning)
#define U64(member, unit, meaning)         FIELD(member, FIELD_U64, unit, meaning)
#define REAL(member, unit, meaning)        FIELD(member, FIELD_REAL, unit, meaning)
#define TEXT(member, unit, meaning)        FIELD(member, FIELD_TEXT, unit, meaning)
#define NAME(member, unit, meaning, names)                                                                             \
    { #member, FIELD_NAME, offsetof(OBJECT, PLACE(member)), sizeof(int64_t), unit, meaning, names }

#define OBJECT        struct run
#define PLACE(member) member

static const struct field run_fields[] = {
    INT(schema, "1", "version of this list of columns"),
    TEXT(run_id, "hex32", "hash of configuration, seed, task version, device kind, dtype and numerics version"),
    TEXT(cell_id, "hex32", "the same without the seed"),
    TEXT(suite, "text", "family of the task"),
    TEXT(task, "text", "task as published tables call it, else task:options"),
    INT(task_version, "1", "raised when the task's examples change"),
    TEXT(model, "text", "name of the sequence mixer"),
    TEXT(layers, "text", "mixer with its options; MLP"),
    U64(seed, "1", "seed of weights and order of examples"),
    U64(data_seed, "1", "seed of the examples"),
    TEXT(split_hash, "hex32", "hash of the test examples"),
    INT(n_train, "examples", "training examples"),
    INT(n_val, "examples", "validation examples"),
    INT(n_test, "examples", "test examples"),
    INT(vocab, "symbols", "symbols a prediction is chosen from"),
    INT(len_train, "tokens", "length of a training example"),
    INT(len_test, "tokens", "length of a test example"),
    INT(d_model, "channels", "width"),
    INT(n_layers, "1", "layers of the net"),
    INT(block, "1", "blocks or channels of the mixer"),
    INT(order, "1", "m: block size, or order of the recurrence"),
    INT(params, "count", "trained parameters"),
    INT(params_nonemb, "count", "the same without embedding and head"),
    INT(state_floats, "count", "recurrent state of a sequence, all layers"),
    TEXT(optimizer, "text", "optimiser"),
    REAL(lr, "1", "peak learning rate"),
    TEXT(schedule, "text", "learning rate over time"),
    INT(warmup_steps, "steps", "linear warm-up"),
    REAL(weight_decay, "1", "decoupled weight decay"),
    REAL(beta1, "1", "decay of the first moment"),
    REAL(beta2, "1", "decay of the second moment"),
    REAL(grad_clip, "1", "largest global norm of the gradient"),
    INT(batch, "sequences", "batch size"),
    INT(max_steps, "steps", "of the whole schedule"),
    TEXT(dtype, "fp32 bf16 tf32 fp64", "precision of matrix products"),
    NAME(status, "ok diverged nan oom timeout killed error", "how the run ended", run_status_names),
    TEXT(status_detail, "text", "first bad tensor, or reason"),
    TEXT(stop_reason, "steps target patience budget", "why training stopped; else the status"),
    INT(steps, "steps", "done"),
    INT(tokens, "tokens", "positions of the training batches so far, with padding and rows that fill the last batch"),
    INT(best_step, "steps", "of the best validation metric"),
    INT(solved_step, "steps", "first evaluation at or above the solved threshold"),
    REAL(train_loss, "nats", "per scored token"),
    REAL(val_loss, "nats", "per scored token"),
    REAL(test_loss, "nats", "per scored token"),
    REAL(val_acc, "0..1", "micro: correct of all scored tokens"),
    REAL(test_acc, "0..1", "micro: correct of all scored tokens"),
    REAL(test_macro_acc, "0..1", "mean of the classes' recalls"),
    REAL(test_seq_acc, "0..1", "sequences without an error"),
    REAL(test_last_acc, "0..1", "correct at the last position"),
    TEXT(profile, "smoke quick paper", "preset of sizes and budget"),
    TEXT(backbone, "text", "what surrounds the mixers"),
    TEXT(mlp, "swiglu gelu none", "channel MLP of --mlp; none: the net has its own or none"),
    TEXT(norm, "rmsnorm layernorm none", "of --norm; none: the net has its own or none"),
    NAME(metric, "acc macro_acc", "primary metric of the task", metric_names),
    REAL(metric_value, "0..1", "its value on the test split"),
    INT(solved, "0/1", "metric_value reaches the task's threshold"),
    REAL(wall_s, "s", "training and evaluation of all sittings, without making the data before; monotonic"),
    REAL(train_s, "s", "training steps"),
    REAL(eval_s, "s", "evaluation"),
    REAL(data_s, "s", "training steps waiting for batches"),
    REAL(step_ms_med, "ms", "a training step, median"),
    REAL(step_ms_mad, "ms", "median absolute deviation"),
    REAL(step_ms_p95, "ms", "95th percentile"),
    REAL(tok_per_s, "tokens/s", "positions of a batch over step_ms_med, while other runs may have shared the machine"),
    REAL(flop_step, "FLOP", "a training step, from the model's equations"),
    REAL(tflops, "1e12/s", "flop_step over step_ms_med"),
    INT(peak_dev_bytes, "bytes", "device memory"),
    INT(peak_host_bytes, "bytes", "resident memory, in a sweep with what its process was begun with: the list of runs"),
    TEXT(backend, "cpu cuda", "kind of device"),
    TEXT(device, "text", "name of the device"),
    TEXT(machine_id, "hex16", "joins machines.csv"),
    INT(threads, "1", "threads"),
    INT(deterministic, "0/1", "1: the same seed gives the same bits, as on the CPU; 0: nobody promises it"),
    TEXT(version, "text", "version of the program"),
    TEXT(numerics, "text", "version of the program's numbers; 0: earlier than the first, not to be repeated"),
    TEXT(git_commit, "hex", "source"),
    INT(git_dirty, "0/1", "source differed from the commit"),
    TEXT(build_id, "text", "flags that decide the numbers"),
    TEXT(compiler, "text", "compiler"),
    TEXT(driver, "text", "versions of the device's driver and runtime"),
    TEXT(kernel, "text", "kernels of its graphs, in the order of their calls, and what multiplies matrices"),
    TEXT(env_epoch, "hex16", "joins machines.csv: kernel, governor, libraries"),
    TEXT(started, "UTC", "RFC 3339"),
    TEXT(finished, "UTC", "RFC 3339"),
    INT(attempt, "1", "1 for the first; a failed one stays a row when the run is done again"),
    INT(resumed, "1", "times continued from a checkpoint"),
    TEXT(ckpt, "path", "best weights (`lrnn export`), relative to the output folder"),
    TEXT(ckpt_xxh3, "hex32", "its hash; empty: not known"),
    REAL(chance, "0..1", "primary metric of uniform guessing"),
    TEXT(source_id, "hex16", "hash of the program's sources; empty: not known"),
    INT(mixed_builds, "0/1",
        "1: resumed from a checkpoint of another build or other products (--force-resume); its bits are no one's"),
    REAL(val_metric, "0..1", "primary metric on the validation split, by which the learning rate is chosen"),
    REAL(seq_chance, "0..1", "test_seq_acc of uniform guessing, over the positions that are scored"),
    REAL(test_nonfinite, "0..1", "scored test positions whose logits are not all finite, which count as wrong"),
    TEXT(former_id, "hex32", "run_id under which pages and commits may name the run; empty: it has the first one"),
    INT(walked, "0/1",
        "1: each step on the device launched its kernels, 0: a captured step was replayed; empty: on a CPU"),
    INT(beside, "runs", "other runs that were on the device in the same process meanwhile; empty: on a CPU"),
    END,
};
const struct table runs_table = {"runs", run_fields};

#undef OBJECT
#undef PLACE
#define OBJECT        struct curve_row
#define PLACE(member) point.member

static const struct field curve_fields[] = {
    SCHEMA,
    COLUMN(OBJECT, run_id, "run_id", FIELD_TEXT, "hex32", "joins runs.csv"),
    INT(step, "steps", "training steps done"),
    INT(tokens, "tokens", "positions of the training batches so far, padding included"),
    REAL(wall_s, "s", "since the start, monotonic"),
    NAME(split, "train val test", "what was measured", split_names),
    REAL(loss, "nats", "per scored token"),
    REAL(acc, "0..1", "micro: correct of all scored tokens"),
    REAL(seq_acc, "0..1", "sequences without an error"),
    COLUMN(OBJECT, ppl, "ppl", FIELD_REAL, "1", "perplexity: exp(loss)"),
    REAL(lr, "1", "learning rate"),
    REAL(grad_norm, "1", "global norm before clipping"),
    REAL(tok_per_s, "tokens/s", "over the steps so far, while other runs may have shared the machine"),
    TEXT(event, "eval nan", "a validation, or the step that ended the run"),
    REAL(macro_acc, "0..1", "mean of the classes' recalls"),
    REAL(last_acc, "0..1", "correct at the last position"),
    INT(length, "tokens", "of the test examples, all of one length; 0: of any"),
    END,
};
_Static_assert(sizeof curve_fields / sizeof *curve_fields <= LIST_MOST_COLUMNS, "a record's list holds them all");
const struct table curves_table = {"curves", curve_fields};

#undef OBJECT
#define OBJECT struct eval_row

static const struct field eval_fields[] = {
    SCHEMA,
    COLUMN(OBJECT, run_id, "run_id", FIELD_TEXT, "hex32", "joins runs.csv"),
    INT(step, "steps", "training steps done"),
    NAME(split, "train val test", "what was measured", split_names),
    INT(length, "tokens", "length of the examples; by position: inputs read at the last of its positions"),
    TEXT(difficulty, "text", "\"length\": examples of one length; \"position\": positions after the last point's"),
    INT(n, "examples", "measured; by position: scored positions"),
    REAL(loss, "nats", "per scored token"),
    REAL(acc, "0..1", "micro: correct of all scored tokens"),
    REAL(seq_acc, "0..1", "sequences without an error"),
    REAL(macro_acc, "0..1", "mean of the classes' recalls"),
    REAL(last_acc, "0..1", "correct at the last position"),
    END,
};
_Static_assert(sizeof eval_fields / sizeof *eval_fields <= LIST_MOST_COLUMNS, "a record's list holds them all");
const struct table evals_table = {"evals", eval_fields};

#undef OBJECT
#undef PLACE
#define OBJECT        struct perf_row
#define PLACE(member) member

static const struct field perf_fields[] = {
    SCHEMA,
    TEXT(sitting, "text", "measurements made together"),
    TEXT(bench, "text", "what was measured"),
    TEXT(shape, "text", "its sizes"),
    TEXT(dtype, "fp32 bf16 tf32 fp64", "precision of matrix products"),
    TEXT(pass, "step fwd+bwd read unpack", "part; of examples that are drawn their split: train val test"),
    REAL(time_ns, "ns", "median of the samples"),
    TEXT(commit, "hex", "source"),
    TEXT(build_id, "text", "flags that decide the numbers"),
    TEXT(machine_id, "hex16", "joins machines.csv"),
    TEXT(started, "UTC", "RFC 3339"),
    INT(samples, "1", "measurements; on a device of as many steps each as are queued at once"),
    REAL(time_ns_mad, "ns", "median absolute deviation"),
    REAL(time_ns_p95, "ns", "95th percentile"),
    REAL(tok_per_s, "tokens/s", "positions of a step, padding among them, over time_ns"),
    INT(threads, "1", "threads"),
    TEXT(cell_id, "hex32", "joins runs.csv"),
    REAL(foreign, "0..1", "share of all cores' time that other processes used meanwhile"),
    INT(warm_up, "windows", "of ten steps until three agreed within 1 %; empty: they did not"),
    INT(quiet, "0/1", "1: warm, foreign at most 0.03, 95th percentile at most 1.3 medians"),
    TEXT(source_id, "hex16", "hash of the program's sources; empty: not known"),
    TEXT(compiler, "text", "first line of its version; empty: not known"),
    TEXT(device, "cpu cuda", "what was measured; empty: not known"),
    TEXT(env_epoch, "hex16", "joins machines.csv; empty: not known"),
    REAL(best_ns, "ns", "least of the samples, of an op"),
    REAL(floor_ns, "ns", "least time of an op here: its bytes at the rate of a copy, its FLOPs at that of registers"),
    REAL(flops, "1", "of an op, both passes where pass is fwd+bwd"),
    REAL(bytes, "bytes", "that an op must read or write"),
    END,
};
const struct table perf_table = {"perf", perf_fields};

#undef OBJECT
#define OBJECT struct limit_row

static const struct field limit_fields[] = {
    SCHEMA,
    TEXT(run_id, "hex32", "the run without those steps: as without --limit; --budget is a part of it"),
    REAL(seconds, "s", "of training that it was given"),
    INT(steps, "steps", "that it takes in them: decided once, before it starts"),
    REAL(time_ns, "ns", "of a step, on which this rests: mean of the last 5 of 10"),
    INT(threads, "1", "threads"),
    TEXT(commit, "hex", "source"),
    TEXT(machine_id, "hex16", "joins machines.csv"),
    TEXT(started, "UTC", "RFC 3339"),
    END,
};
const struct table limits_table = {"limits", limit_fields};

#undef OBJECT
#undef PLACE
#define OBJECT        struct machine_row
#define PLACE(member) machine.member

static const struct field machine_fields[] = {
    COLUMN(OBJECT, machine.id, "machine_id", FIELD_TEXT, "hex16", "hash of processor, cores and memory"),
    TEXT(env_epoch, "hex16", "hash of kernel, os, governor, libc and blas"),
    COLUMN(OBJECT, first_seen, "first_seen", FIELD_TEXT, "UTC", "RFC 3339"),
    TEXT(cpu, "text", "processor"),
    INT(cores, "1", "logical processors"),
    REAL(ram_gib, "GiB", "memory"),
    TEXT(kernel, "text", "operating system's kernel"),
    TEXT(os, "text", "distribution"),
    TEXT(governor, "text", "of the processor's clock"),
    TEXT(libc, "text", "C library"),
    TEXT(blas, "text", "matrix library"),
    END,
};
const struct table machines_table = {"machines", machine_fields};

void field_clear(const struct field *field, void *object) {
    void *value = (char *)object + field->offset;
    memset(value, 0, field->size);
    if (field->type == FIELD_INT) *(int64_t *)value = -1;
    if (field->type == FIELD_REAL) *(double *)value = NAN;
}

void record_init(struct run_record *r) {
    memset(r, 0, sizeof *r);
    for (const struct field *field = runs_table.fields; field->name; field++) field_clear(field, &r->run);
    r->run.schema = RECORD_SCHEMA;
}

bool field_within(const struct field *field, size_t object_size) {
    return field->type != FIELD_SCHEMA && field->offset + field->size <= object_size;
}

const struct field *table_field(const struct table *table, const char *name) {
    for (const struct field *field = table->fields; field->name; field++)
        if (strcmp(field->name, name) == 0) return field;
    return NULL;
}

bool field_equal(const struct field *field, const void *a, const void *b) {
    const char *left = (const char *)a + field->offset, *right = (const char *)b + field->offset;
    return field->type == FIELD_TEXT ? strcmp(left, right) == 0 : memcmp(left, right, field->size) == 0;
}

static bool same_object(const struct table *table, const void *a, const void *b, size_t size) {
    for (const struct field *field = table->fields; field->name; field++)
        if (field_within(field, size) && strcmp(field->name, "schema") != 0 && !field_equal(field, a, b)) return false;
    return true;
}

static bool same_list(const struct table *table, const void *a, const void *b, int64_t n, size_t size) {
    for (int64_t i = 0; i < n; i++)
        if (!same_object(table, (const char *)a + (size_t)i * size, (const char *)b + (size_t)i * size, size))
            return false;
    return true;
}

bool record_equal(const struct run_record *a, const struct run_record *b) {
    return same_object(&runs_table, &a->run, &b->run, sizeof a->run) && strcmp(a->config, b->config) == 0 &&
           strcmp(a->identity, b->identity) == 0 && a->n_curve == b->n_curve && a->n_evals == b->n_evals &&
           same_list(&curves_table, a->curve, b->curve, a->n_curve, sizeof *a->curve) &&
           same_list(&evals_table, a->evals, b->evals, a->n_evals, sizeof *a->evals);
}

struct run run_shown(const struct run *run) {
    struct run shown = *run;
    for (const struct field *field = runs_table.fields; field->name; field++) {
        char *text = (char *)&shown + field->offset;
        if (field->type == FIELD_TEXT) text_shown(text, text, field->size);
    }
    return shown;
}

void table_csv_header(const struct table *table, FILE *f) {
    for (const struct field *field = table->fields; field->name; field++)
        fprintf(f, "%s%s", field == table->fields ? "" : ",", field->name);
    fputc('\n', f);
}

const char *field_text(const struct field *field, const void *object, char *number, size_t size) {
    const void *value = (const char *)object + field->offset;
    switch (field->type) {
    case FIELD_SCHEMA:
        snprintf(number, size, "%d", RECORD_SCHEMA);
        return number;
    case FIELD_INT:
        snprintf(number, size, "%" PRId64, *(const int64_t *)value);
        return *(const int64_t *)value == -1 ? NULL : number;
    case FIELD_U64:
        snprintf(number, size, "%" PRIu64, *(const uint64_t *)value);
        return number;
    case FIELD_REAL:
        format_double(*(const double *)value, number, size);
        return isnan(*(const double *)value) ? NULL : number;
    case FIELD_NAME:
        for (int64_t i = 0; field->names[i]; i++)
            if (i == *(const int64_t *)value) return field->names[i];
        return NULL;
    default:
        return *(const char *)value ? value : NULL;
    }
}

void table_csv_row(const struct table *table, const void *object, FILE *f) {
    for (const struct field *field = table->fields; field->name; field++) {
        char number[40];
        const char *text = field_text(field, object, number, sizeof number);
        if (field->type == FIELD_TEXT)
            csv_text(f, text ? text : "");
        else
            fputs(text ? text : "", f);
        fputc(field[1].name ? ',' : '\n', f);
    }
}

void table_from_csv(const struct table *table, const struct csv_table *t, int row, void *object) {
    for (const struct field *field = table->fields; field->name; field++) {
        void *value = (char *)object + field->offset;
        field_clear(field, object);
        if (field->type == FIELD_INT) *(int64_t *)value = csv_cell_int(t, row, field->name);
        if (field->type == FIELD_REAL) *(double *)value = csv_cell_real(t, row, field->name);
        if (field->type == FIELD_TEXT) csv_cell_text(t, row, field->name, value, field->size);
    }
}

enum status schema_print(const char *what, FILE *f, struct error *e) {
    static const char *const types[] = {
        [FIELD_INT] = "int",   [FIELD_U64] = "u64",   [FIELD_REAL] = "f64",
        [FIELD_TEXT] = "text", [FIELD_NAME] = "enum", [FIELD_SCHEMA] = "int",
    };
    const struct table *const tables[] = {&runs_table, &curves_table, &evals_table,
                                          &perf_table, &limits_table, &machines_table};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        if (strcmp(tables[i]->name, what) != 0) continue;
        for (const struct field *field = tables[i]->fields; field->name; field++)
            fprintf(f, "%-16s %-5s %-24s %s\n", field->name, types[field->type], field->unit, field->meaning);
        return ST_OK;
    }
    return fail(e, ST_USAGE, "there is no table %s; there are runs, curves, evals, perf, limits and machines", what);
}

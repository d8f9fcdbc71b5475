/* cmd_export.c - lrnn export RUN FILE: writes the best, the last or the first weights of a run as a safetensors file,
 * or its curve for TensorBoard or as an MLPerf log. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/batch.h"
#include "harness/cli/cli.h"
#include "harness/rows/rows.h"
#include "harness/run/trainer.h"
#include "harness/run/weights.h"
#include "harness/store/files.h"
#include "harness/store/record_files.h"
#include "harness/store/schema.h"
#include "harness/study/study.h"

struct export_flags {
    char out[OPTION_TEXT];
    bool initial, last;
    int as;
};

enum { AS_WEIGHTS, AS_TENSORBOARD, AS_MLLOG };

#define AT(field) offsetof(struct export_flags, field)
static const struct option flags[] = {
    {"out", OPT_TEXT_FIELD, AT(out), "results", 0, 0, NULL, "folder of run records in which RUN is searched",
     OPT_FILLED},
    {"initial", OPT_BOOL, AT(initial), "no", 0, 0, NULL,
     "write the weights before the first step, drawn again from the configuration", 0},
    {"last", OPT_BOOL, AT(last), "no", 0, 0, NULL,
     "write the weights after the last step, if the run had --keep-weights all; default: the best on validation", 0},
    {"as", OPT_CHOICE, AT(as), "weights", 0, 0, "weights tensorboard mllog",
     "weights: a safetensors file; tensorboard: the curve as an event file, which TensorBoard finds if FILE has "
     "\"tfevents\" in its name; mllog: the curve as lines of MLPerf's log",
     0},
    {0}};

/* --- curves ------------------------------------------------------------------------------------------------------- */

/* Returns seconds since 1970 at which the run began; 0: its record does not say. */
static double time_of(const char *text) {
    struct tm t = {0};
    if (sscanf(text, "%d-%d-%dT%d:%d:%d", &t.tm_year, &t.tm_mon, &t.tm_mday, &t.tm_hour, &t.tm_min, &t.tm_sec) != 6)
        return 0;
    t.tm_year -= 1900;
    t.tm_mon -= 1;
    return (double)timegm(&t);
}

/* --- TensorBoard -------------------------------------------------------------------------------------------------- */

#define EVENT_BYTES 256

/* Computes the masked CRC-32C (Castagnoli) of TFRecord. */
static uint32_t masked_crc(const unsigned char *bytes, size_t n) {
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void put_little(unsigned char *to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) to[i] = (unsigned char)(value >> 8 * i);
}

/* A Protocol Buffers message under construction. */
struct message {
    unsigned char bytes[EVENT_BYTES];
    size_t used;
};

static void put_varint(struct message *m, uint64_t value) {
    do {
        m->bytes[m->used++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value);
}

static void put_bytes(struct message *m, int field, const void *bytes, size_t n) {
    put_varint(m, (uint64_t)field << 3 | 2);
    put_varint(m, n);
    memcpy(m->bytes + m->used, bytes, n);
    m->used += n;
}

static void put_fixed(struct message *m, int field, const void *number, int bytes) {
    uint64_t bits = 0;
    memcpy(&bits, number, (size_t)bytes);
    put_varint(m, (uint64_t)field << 3 | (bytes == 8 ? 1 : 5));
    put_little(m->bytes + m->used, bits, bytes);
    m->used += (size_t)bytes;
}

static void write_event(FILE *f, const struct message *m) {
    unsigned char length[12], crc[4];
    put_little(length, m->used, 8);
    put_little(length + 8, masked_crc(length, 8), 4);
    put_little(crc, masked_crc(m->bytes, m->used), 4);
    fwrite(length, 1, sizeof length, f);
    fwrite(m->bytes, 1, m->used, f);
    fwrite(crc, 1, sizeof crc, f);
}

/* Writes Event {wall_time = 1, step = 2, summary = 5 {value = 1 {tag = 1, simple_value = 2}}} */
static void write_scalar(FILE *f, double time, int64_t step, const char *tag, double number) {
    struct message event = {.used = 0}, summary = {.used = 0}, value = {.used = 0};
    float single = (float)number;
    if (!isfinite(number)) return;
    put_bytes(&value, 1, tag, strlen(tag));
    put_fixed(&value, 2, &single, 4);
    put_bytes(&summary, 1, value.bytes, value.used);
    put_fixed(&event, 1, &time, 8);
    put_varint(&event, 2 << 3);
    put_varint(&event, (uint64_t)step);
    put_bytes(&event, 5, summary.bytes, summary.used);
    write_event(f, &event);
}

/* Writes a file for TensorBoard, whose name must contain "tfevents": loss and the task's metric on validation, rate and
 * gradient norm at each evaluation. The format is TFRecord (length, masked CRC-32C, bytes, masked CRC-32C) of
 * tensorflow.Event messages. */
static enum status export_tensorboard(const struct run_record *r, const char *path, struct error *e) {
    static const char version[] = "brain.Event:2";
    struct printed log;
    TRY(printed_begin(&log, path, e));
    FILE *f = log.f;
    double began = time_of(r->run.started);
    struct message first = {.used = 0};
    put_fixed(&first, 1, &began, 8);
    put_bytes(&first, 3, version, strlen(version));
    write_event(f, &first);
    for (int64_t i = 0; i < r->n_curve; i++) {
        const struct curve_point *p = &r->curve[i];
        double now = began + (isfinite(p->wall_s) ? p->wall_s : 0);
        if (p->split == SPLIT_TEST) continue;
        write_scalar(f, now, p->step, p->split == SPLIT_VAL ? "loss/validation" : "loss/training", p->loss);
        if (p->split == SPLIT_VAL) write_scalar(f, now, p->step, "accuracy/validation", run_point_metric(&r->run, p));
        write_scalar(f, now, p->step, "rate", p->lr);
        write_scalar(f, now, p->step, "gradient norm", p->grad_norm);
    }
    write_scalar(f, began + (isfinite(r->run.wall_s) ? r->run.wall_s : 0), r->run.steps, "accuracy/test",
                 run_test_metric(&r->run));
    return printed_write(&log, ST_OK, path, e);
}

/* --- MLPerf ------------------------------------------------------------------------------------------------------- */

/* Writes a line; releases the value and the metadata. */
static void log_line(FILE *f, double time, const char *type, const char *key, json_t *value, json_t *metadata) {
    json_t *line = json_pack("{s:s, s:I, s:s, s:s, s:o?, s:o}", "namespace", "", "time_ms", (json_int_t)(1000 * time),
                             "event_type", type, "key", key, "value", value ? value : json_null(), "metadata",
                             metadata ? metadata : json_object());
    char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
    if (text) fprintf(f, ":::MLLOG %s\n", text);
    free(text);
    json_decref(line);
}

/* Writes ":::MLLOG {...}" lines of MLPerf's logging (mlcommons/logging, mllog): what was trained and how, eval_accuracy
 * at each validation, run_start and run_stop. */
static enum status export_mllog(const struct run_record *r, const char *path, struct error *e) {
    struct printed log;
    TRY(printed_begin(&log, path, e));
    FILE *f = log.f;
    const struct run *run = &r->run;
    double began = time_of(run->started);
    const struct {
        const char *key;
        json_t *value;
    } settings[] = {{"submission_benchmark", json_string(run->task)},
                    {"submission_platform", json_string(run->device)},
                    {"model", json_string(run->layers)},
                    {"seed", json_integer((json_int_t)run->seed)},
                    {"global_batch_size", json_integer(run->batch)},
                    {"train_samples", json_integer(run->n_train)},
                    {"eval_samples", json_integer(run->n_val)},
                    {"opt_name", json_string(run->optimizer)},
                    {"opt_base_learning_rate", json_real(run->lr)},
                    {"opt_weight_decay", json_real(run->weight_decay)},
                    {"opt_learning_rate_warmup_steps", json_integer(run->warmup_steps)}};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        log_line(f, began, "POINT_IN_TIME", settings[i].key, settings[i].value, NULL);
    log_line(f, began, "INTERVAL_START", "run_start", NULL, NULL);
    for (int64_t i = 0; i < r->n_curve; i++) {
        const struct curve_point *p = &r->curve[i];
        double metric = run_point_metric(run, p), now = began + (isfinite(p->wall_s) ? p->wall_s : 0);
        if (p->split != SPLIT_VAL || !isfinite(metric)) continue;
        double epoch = (double)p->step * run_step_epochs(run);
        json_t *at = json_object();
        if (isfinite(epoch)) json_object_set_new(at, "epoch_num", json_real(epoch));
        json_object_set_new(at, "step_num", json_integer(p->step));
        log_line(f, now, "POINT_IN_TIME", "eval_accuracy", json_real(metric), at);
    }
    log_line(f, began + (isfinite(run->wall_s) ? run->wall_s : 0), "INTERVAL_END", "run_stop", NULL,
             json_pack("{s:s, s:s}", "status", run_failed(run) ? "aborted" : "success", "reason", run->stop_reason));
    return printed_write(&log, ST_OK, path, e);
}

/* --- weights ------------------------------------------------------------------------------------------------------ */

/* Exports the weights before the first step, drawn again from the configuration. Only a program that gives the run the
 * same id (same versions of task and numerics) draws the same weights. */
static enum status export_initial(const struct run_record *record, const char *target, struct weights_count *count,
                                  struct error *e) {
    const char *id = record->run.run_id;
    char name[RUN_ID_HEX + 8];
    if (REAL_IS_DOUBLE != !strcmp(record->run.dtype, "fp64"))
        return fail(e, ST_DATA, "export: run %s computed in %s, and this program in %s; %s draws its initial weights",
                    id, record->run.dtype, REAL_NAME, REAL_IS_DOUBLE ? "lrnn" : "lrnn-f64");
    snprintf(name, sizeof name, "run %s", id);
    struct setup *s = setup_stored(record->config, name, 0, e);
    if (!s) return e->status;
    enum status status = ST_OK;
    if (strcmp(s->id.run_id, id) != 0)
        status = fail(e, ST_DATA,
                      "export: the configuration of run %s is that of run %s in this program: its task or the numerics "
                      "have another version, so the initial weights may be others",
                      id, s->id.run_id);
    else if (*s->spec.config.from_xxh3)
        status = fail(e, ST_DATA,
                      "export: run %s started from a file, of XXH3-128 %.40s: that file holds its initial weights", id,
                      s->spec.config.from_xxh3);
    struct trainer *t = status == ST_OK ? trainer_open(trainer_create_initial, s, e) : NULL;
    if (status == ST_OK) status = t ? weights_export_initial(record, &t->params, target, count, e) : e->status;
    trainer_close(t);
    setup_free(s);
    return status;
}

static enum status export_run(const char *out, const char *id, enum weights_of which, const char *target,
                              struct error *e) {
    static const char *const names[] = {"best", "last", "initial"};
    struct open_record *open;
    struct weights_count count = {0};
    TRY(run_record_open("export", out, id, &open, e));
    const struct run_record *record = &open->record;
    enum status status = which == WEIGHTS_INITIAL ? export_initial(record, target, &count, e)
                                                  : weights_export(record, which, out, target, &count, e);
    const struct run run = run_shown(&record->run);
    if (status == ST_OK)
        printf("exported run %s (%s, %s), %s weights: %d tensors, %" PRId64 " values, %s, to %s\n", id, run.task,
               run.layers, names[which], count.tensors, count.values, run.dtype, target);
    record_close(open);
    return status;
}

static enum status export_curve(const char *out, const char *id, int as, const char *target, struct error *e) {
    struct open_record *open;
    TRY(run_record_open("export", out, id, &open, e));
    const struct run_record *record = &open->record;
    enum status status = (as == AS_MLLOG ? export_mllog : export_tensorboard)(record, target, e);
    const struct run run = run_shown(&record->run);
    if (status == ST_OK)
        printf("exported run %.8s (%s, %s): %" PRId64 " points of its curve to %s\n", id, run.task, run.layers,
               record->n_curve, target);
    if (status == ST_OK && as == AS_TENSORBOARD && !strstr(target, "tfevents"))
        fprintf(stderr, "lrnn: TensorBoard reads only files that have \"tfevents\" in their names\n");
    record_close(open);
    return status;
}

static enum status run(int argc, char **argv, struct error *e) {
    struct export_flags f;
    const char *words[2] = {NULL, NULL};
    const struct flag_set set = {flags, &f};
    struct cli cli = {.command = &command_export, .sets = &set, .n_sets = 1, .positional = words, .max_positional = 2};
    char out[PATH_BYTES], id[RUN_ID_HEX] = "";
    TRY(options_default(flags, &f, e));
    TRY(cli_parse(&cli, argc, argv, e));
    if (!words[1]) return fail(e, ST_USAGE, "export: say which run and where to; usage: lrnn %s", command_export.usage);
    if (f.initial && f.last)
        return fail(e, ST_USAGE, "export: --initial and --last are two sets of weights; ask for one at a time");
    if (f.as != AS_WEIGHTS && (f.initial || f.last))
        return fail(e, ST_USAGE, "export: --initial and --last are of weights; a curve is whole");
    snprintf(out, sizeof out, "%s", f.out);
    TRY(run_find("export", words[0], out, id, e));
    if (f.as != AS_WEIGHTS) return export_curve(out, id, f.as, words[1], e);
    enum weights_of which = f.initial ? WEIGHTS_INITIAL : f.last ? WEIGHTS_LAST : WEIGHTS_BEST;
    return export_run(out, id, which, words[1], e);
}

const struct command command_export = {
    .name = "export",
    .usage = "export RUN FILE [flags]",
    .summary = "write the weights of a finished run as a safetensors file, or its curve; RUN: an id, its first digits "
               "or a path",
    .run = run,
};

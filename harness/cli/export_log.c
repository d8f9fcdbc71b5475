/* export_log.c - see export_log.h. */
#include "harness/cli/export_log.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/batch.h"
#include "harness/rows/rows.h"
#include "harness/store/files.h"

/* Seconds since 1970 at which the run began; 0: its record does not say. */
static double time_of(const char *text) {
    struct tm t = {0};
    if (sscanf(text, "%d-%d-%dT%d:%d:%d", &t.tm_year, &t.tm_mon, &t.tm_mday, &t.tm_hour, &t.tm_min, &t.tm_sec) != 6)
        return 0;
    t.tm_year -= 1900;
    t.tm_mon -= 1;
    return (double)timegm(&t);
}

/* Writes what a stream in memory has got, and frees it. */
static enum status finish(FILE *f, char **text, const size_t *size, const char *path, struct error *e) {
    bool whole = !ferror(f);
    whole = fclose(f) == 0 && whole;
    enum status status =
        whole ? write_file_atomic(path, *text, *size, e) : fail(e, ST_MEMORY, "no memory for %s", path);
    free(*text);
    return status;
}

/* --- TensorBoard -------------------------------------------------------------------------------------------------- */

#define EVENT_BYTES 256

/* CRC-32C (Castagnoli), masked as TFRecord wants it. */
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

/* A message of Protocol Buffers as it grows. */
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

/* Event {wall_time = 1, step = 2, summary = 5 {value = 1 {tag = 1, simple_value = 2}}} */
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

enum status export_tensorboard(const struct run_record *r, const char *path, struct error *e) {
    static const char version[] = "brain.Event:2";
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f) return fail(e, ST_MEMORY, "no memory for %s", path);
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
    return finish(f, &text, &size, path, e);
}

/* --- MLPerf ------------------------------------------------------------------------------------------------------- */

/* One line; takes the value and the metadata over. */
static void log_line(FILE *f, double time, const char *type, const char *key, json_t *value, json_t *metadata) {
    json_t *line = json_pack("{s:s, s:I, s:s, s:s, s:o?, s:o}", "namespace", "", "time_ms", (json_int_t)(1000 * time),
                             "event_type", type, "key", key, "value", value ? value : json_null(), "metadata",
                             metadata ? metadata : json_object());
    char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
    if (text) fprintf(f, ":::MLLOG %s\n", text);
    free(text);
    json_decref(line);
}

static void log_settings(FILE *f, const struct run *run, double began) {
    static const char point[] = "POINT_IN_TIME";
    log_line(f, began, point, "submission_benchmark", json_string(run->task), NULL);
    log_line(f, began, point, "submission_platform", json_string(run->device), NULL);
    log_line(f, began, point, "model", json_string(run->layers), NULL);
    log_line(f, began, point, "seed", json_integer((json_int_t)run->seed), NULL);
    log_line(f, began, point, "global_batch_size", json_integer(run->batch), NULL);
    log_line(f, began, point, "train_samples", json_integer(run->n_train), NULL);
    log_line(f, began, point, "eval_samples", json_integer(run->n_val), NULL);
    log_line(f, began, point, "opt_name", json_string(run->optimizer), NULL);
    log_line(f, began, point, "opt_base_learning_rate", json_real(run->lr), NULL);
    log_line(f, began, point, "opt_weight_decay", json_real(run->weight_decay), NULL);
    log_line(f, began, point, "opt_learning_rate_warmup_steps", json_integer(run->warmup_steps), NULL);
}

enum status export_mllog(const struct run_record *r, const char *path, struct error *e) {
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f) return fail(e, ST_MEMORY, "no memory for %s", path);
    const struct run *run = &r->run;
    double began = time_of(run->started);
    log_settings(f, run, began);
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
    return finish(f, &text, &size, path, e);
}

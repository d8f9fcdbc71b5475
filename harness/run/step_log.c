/* step_log.c - see step_log.h. */
#include "harness/run/step_log.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "core/option.h"

#define HEADER "step,loss,grad_norm,lr\n"

static enum status cannot_write(const struct step_log *log, struct error *e) {
    return fail(e, ST_FAIL, "--log-steps: cannot write %s: %s", log->path, strerror(errno));
}

static enum status lines_missing(const struct step_log *log, int64_t done, struct error *e) {
    return fail(e, ST_DATA,
                "--log-steps: the run goes on behind step %" PRId64 " of its checkpoint, and %s does not hold the "
                "steps up to there; go on without a log, or begin anew in another folder (--out)",
                done, log->path);
}

/* Leaves the file behind the line of step `done`. */
static enum status keep_lines(struct step_log *log, int64_t done, struct error *e) {
    char line[256];
    int64_t step, kept = 0;
    bool header = fgets(line, sizeof line, log->file) && !strcmp(line, HEADER);
    while (header && kept < done && fgets(line, sizeof line, log->file) && strchr(line, '\n') &&
           sscanf(line, "%" SCNd64 ",", &step) == 1 && step == kept + 1)
        kept++;
    if (kept < done || !header) return lines_missing(log, done, e);
    long end = ftell(log->file);
    bool cut = end >= 0 && fseek(log->file, end, SEEK_SET) == 0 && ftruncate(fileno(log->file), end) == 0;
    return cut ? ST_OK : cannot_write(log, e);
}

enum status step_log_open(struct step_log *log, const char *path, int64_t done, struct error *e) {
    log->path = path;
    log->file = fopen(path, done ? "r+e" : "we");
    if (!log->file && done && errno == ENOENT) return lines_missing(log, done, e);
    if (!log->file) return cannot_write(log, e);
    setvbuf(log->file, log->buffer, _IOLBF, sizeof log->buffer);
    if (done) return keep_lines(log, done, e);
    return fputs(HEADER, log->file) >= 0 ? ST_OK : cannot_write(log, e);
}

enum status step_log_add(struct step_log *log, const struct step_state *state, struct error *e) {
    char loss[40], norm[40], rate[40];
    if (!log->file) return ST_OK;
    format_double(state->loss, loss, sizeof loss);
    format_double(state->grad_norm, norm, sizeof norm);
    format_double(state->lr, rate, sizeof rate);
    int n = fprintf(log->file, "%" PRId64 ",%s,%s,%s\n", state->step, loss, norm, rate);
    return n > 0 ? ST_OK : cannot_write(log, e);
}

enum status step_log_close(struct step_log *log, struct error *e) {
    FILE *file = log->file;
    log->file = NULL;
    return !file || fclose(file) == 0 ? ST_OK : cannot_write(log, e);
}

void step_log_discard(struct step_log *log) {
    struct error ignored;
    (void)step_log_close(log, &ignored);
}

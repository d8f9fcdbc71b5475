/* running.c - what a run tells of itself while it goes: points of its curve, progress, the log of steps. See
 * running.h. */
#include "harness/run/running.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "core/option.h"
#include "harness/store/clock.h"

#define PROGRESS_EVERY 0.2 /* seconds */
#define LOG_HEADER     "step,loss,grad_norm,lr\n"

double running_wall_s(const struct running *r) {
    return r->sitting_wall_s + time_now_s() - r->began;
}

int64_t running_step_tokens(const struct setup *s) {
    return s->spec.config.batch * task_documents(&s->spec.task.shape) * s->spec.task.shape.T;
}

enum status running_written(const struct train_hooks *hooks, enum status status) {
    if (status == ST_FAIL && hooks && hooks->unwritten) *hooks->unwritten = true;
    return status;
}

void running_add_point(struct running *r, enum split split, const struct scores *s, const char *event) {
    const struct trainer *t = &r->trainer;
    struct run_progress *p = &r->progress;
    if (p->n_curve == p->curve_capacity) return; /* cannot happen: sized for every validation */
    int64_t tokens = t->state.step * running_step_tokens(t->setup);
    struct curve_point point = {.step = t->state.step,
                                .tokens = tokens,
                                .wall_s = running_wall_s(r),
                                .split = split,
                                .loss = s->loss,
                                .acc = s->acc,
                                .macro_acc = s->macro_acc,
                                .seq_acc = s->seq_acc,
                                .last_acc = s->last_acc,
                                .lr = t->state.lr,
                                .grad_norm = t->state.grad_norm,
                                .tok_per_s = t->step_s > 0 ? (double)tokens / t->step_s : NAN};
    snprintf(point.event, sizeof point.event, "%s", event);
    p->curve[p->n_curve++] = point;
}

void running_report(struct running *r, bool now) {
    double time = time_now_s();
    if (!r->hooks || !r->hooks->progress || (!now && time - r->last_progress < PROGRESS_EVERY)) return;
    const struct trainer *t = &r->trainer;
    const struct run_progress *p = &r->progress;
    const struct curve_point *latest = p->n_curve ? &p->curve[p->n_curve - 1] : NULL;
    bool macro = t->setup->spec.task.shape.metric == METRIC_MACRO_ACC;
    int64_t tokens_here = r->n_steps_here * running_step_tokens(t->setup);
    struct progress progress = {.step = t->state.step,
                                .steps = t->setup->shapes.steps,
                                .loss = t->state.loss,
                                .acc = !latest ? NAN
                                       : macro ? latest->macro_acc
                                               : latest->acc,
                                .tok_per_s = (double)tokens_here / (time - r->began),
                                .wall_s = running_wall_s(r)};
    r->hooks->progress(r->hooks->context, &progress);
    r->last_progress = time;
}

/* --- the log of steps --------------------------------------------------------------------------------------------- */

static enum status cannot_write(const struct step_log *log, struct error *e) {
    return fail(e, ST_FAIL, "--log-steps: cannot write %s: %s", log->path, strerror(errno));
}

static enum status lines_missing(const struct step_log *log, int64_t done, struct error *e) {
    return fail(e, ST_DATA,
                "--log-steps: the run goes on after step %" PRId64 " of its checkpoint, and %s does not hold the "
                "steps up to there; go on without a log, or begin anew in another folder (--out)",
                done, log->path);
}

enum status step_log_open(struct step_log *log, const char *path, int64_t done, struct error *e) {
    char line[256];
    int64_t step, kept = 0;
    log->path = path;
    log->file = fopen(path, done ? "r+e" : "we");
    if (!log->file && done && errno == ENOENT) return lines_missing(log, done, e);
    if (!log->file) return cannot_write(log, e);
    setvbuf(log->file, log->buffer, _IOLBF, sizeof log->buffer);
    if (!done) return fputs(LOG_HEADER, log->file) >= 0 ? ST_OK : cannot_write(log, e);
    bool header = fgets(line, sizeof line, log->file) && !strcmp(line, LOG_HEADER);
    while (header && kept < done && fgets(line, sizeof line, log->file) && strchr(line, '\n') &&
           sscanf(line, "%" SCNd64 ",", &step) == 1 && step == kept + 1)
        kept++;
    if (kept < done || !header) return lines_missing(log, done, e);
    long end = ftell(log->file);
    bool cut = end >= 0 && fseek(log->file, end, SEEK_SET) == 0 && ftruncate(fileno(log->file), end) == 0;
    return cut ? ST_OK : cannot_write(log, e);
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

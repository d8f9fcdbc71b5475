/* progress_line.c - see progress_line.h. */
#include "harness/pool/progress_line.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/paragraph.h"

#define BAR_LEAST   10
#define BAR_MOST    30
#define MODEL_LEAST 8 /* least columns to which a model's label is shortened */

void time_format(double s, char *text, size_t size) {
    if (s < 90)
        snprintf(text, size, "%.0fs", s);
    else if (s < 5400)
        snprintf(text, size, "%.0fm%02.0fs", floor(s / 60), floor(fmod(s, 60)));
    else if (s < 172800)
        snprintf(text, size, "%.0fh%02.0fm", floor(s / 3600), floor(fmod(s, 3600) / 60));
    else
        snprintf(text, size, "%.0fd%02.0fh", floor(s / 86400), floor(fmod(s, 86400) / 3600));
}

void time_left_update(struct time_left *t, double now, double work, double done, double done_before) {
    double here = done - done_before, elapsed = now - t->began, passed = now - t->at;
    /* the first second is slow, so it gives no estimate */
    double left = here > 0 && elapsed >= 1 ? elapsed * (work - done) / here : NAN;
    if (isfinite(left) && isfinite(t->left_s)) {
        double old = t->left_s - passed, slow = fmin(elapsed / 4, 30), weight = passed / (passed + slow);
        left = old + weight * (left - old);
    }
    t->left_s = isfinite(left) && left < 0 ? 0 : left;
    t->at = now;
}

/* Appends to a text of 256 bytes. */
static void add(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(char *text, const char *format, ...) {
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, 256 - used, format, args);
    va_end(args);
}

int progress_width(void) {
    int columns = terminal_has_codes(stderr) ? terminal_width(stderr) : 0;
    if (columns > 1) return columns - 1;
    return terminal_has_codes(stderr) ? 79 : 0;
}

static void add_bar(const struct progress_view *v, int width, char *text) {
    char bar[BAR_MOST + 1];
    int n = width / 5 < 16 ? BAR_LEAST : width / 5 > BAR_MOST ? BAR_MOST : width / 5;
    double share = v->share < 0 ? 0 : v->share > 1 ? 1 : v->share;
    int full = (int)(share * n);
    for (int i = 0; i < n; i++) bar[i] = i < full ? '#' : '.';
    bar[n] = 0;
    add(text, "[%s] ", bar);
}

/* The parts of the line from left to right. Their order of priority for space is below. */
enum part { BAR, DONE, LEFT, BEST, MODEL, RUN, STEP, LOSS, ACC, SPEED, PARTS };
static const int by_rank[PARTS] = {DONE, STEP, LOSS, SPEED, LEFT, MODEL, BAR, ACC, RUN, BEST};

void progress_line(const struct progress_view *v, int width, char *text, size_t size) {
    char parts[PARTS][256] = {""}, left[32];
    size_t room = width < (int)size ? (size_t)width : size - 1;
    bool shown[PARTS] = {false};
    if (width >= 40) add_bar(v, width, parts[BAR]);
    add(parts[DONE], "%d/%d", v->done, v->total);
    if (isfinite(v->left_s)) {
        time_format(v->left_s, left, sizeof left);
        add(parts[LEFT], " %s left", left);
    }
    if (isfinite(v->best)) add(parts[BEST], ", best %.3f", v->best);
    if (v->model) {
        add(parts[MODEL], " | %.40s", v->model);
        add(parts[RUN], " lr %g seed %" PRId64, v->lr, v->seed);
        add(parts[STEP], " | %" PRId64 "/%" PRId64, v->step, v->steps);
        if (isfinite(v->loss)) add(parts[LOSS], " loss %.3f", v->loss);
        if (isfinite(v->acc)) add(parts[ACC], " acc %.3f", v->acc);
        if (isfinite(v->tok_per_s)) add(parts[SPEED], " %.*fk tok/s", v->tok_per_s < 1e4, v->tok_per_s / 1e3);
    }
    for (int i = 0; i < PARTS; i++) {
        size_t length = strlen(parts[by_rank[i]]);
        /* only the label's beginning is kept */
        if (by_rank[i] == MODEL && length > room && room > MODEL_LEAST) length = room;
        if (length > room || (by_rank[i] == MODEL && !shown[STEP])) continue;
        parts[by_rank[i]][length] = 0;
        shown[by_rank[i]] = true;
        room -= length;
    }
    text[0] = 0;
    for (int i = 0; i < PARTS; i++) {
        bool of_model =
            /* a step follows a name as ": 100/1500", else as " | 100/1500" */
            i == STEP && shown[STEP] && shown[MODEL] && v->model;
        if (of_model) strcat(text, ": ");
        if (shown[i]) strcat(text, parts[i] + (of_model ? strlen(" | ") : 0));
    }
}

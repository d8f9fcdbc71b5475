/* progress_line.c - see progress_line.h. */
#include "harness/pool/progress_line.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/paragraph.h"

#define BAR_LEAST 10
#define BAR_MOST  30

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
    double left = here > 0 && elapsed >= 1 ? elapsed * (work - done) / here : NAN; /* the first steps are slow */
    if (isfinite(left) && isfinite(t->left_s)) {
        double old = t->left_s - passed, slow = fmin(elapsed / 4, 30), weight = passed / (passed + slow);
        left = old + weight * (left - old);
    }
    t->left_s = isfinite(left) && left < 0 ? 0 : left;
    t->at = now;
}

/* Appends the part if the whole of it fits into `width` columns; a model's label, of one byte a column, may be cut. */
static void add(char *text, size_t size, int width, const char *format, ...) __attribute__((format(printf, 4, 5)));
static void add(char *text, size_t size, int width, const char *format, ...) {
    char part[256];
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(part, sizeof part, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof part || used + (size_t)n > (size_t)width || used + (size_t)n >= size) return;
    memcpy(text + used, part, (size_t)n + 1);
}

int progress_width(void) {
    int columns = terminal_has_codes(stderr) ? terminal_width(stderr) : 0;
    if (columns > 1) return columns - 1;
    return terminal_has_codes(stderr) ? 79 : 0;
}

static void add_bar(const struct progress_view *v, int width, char *text, size_t size) {
    char bar[BAR_MOST + 1];
    int n = width / 5 < BAR_LEAST ? BAR_LEAST : width / 5 > BAR_MOST ? BAR_MOST : width / 5;
    double share = v->share < 0 ? 0 : v->share > 1 ? 1 : v->share;
    int full = (int)(share * n);
    for (int i = 0; i < n; i++) bar[i] = i < full ? '#' : '.';
    bar[n] = 0;
    add(text, size, width, "[%s] ", bar);
}

void progress_line(const struct progress_view *v, int width, char *text, size_t size) {
    char left[32];
    text[0] = 0;
    if (width >= 40) add_bar(v, width, text, size);
    add(text, size, width, "%d/%d", v->done, v->total);
    if (isfinite(v->left_s)) {
        time_format(v->left_s, left, sizeof left);
        add(text, size, width, " %s left", left);
    }
    if (isfinite(v->best)) add(text, size, width, ", best %.3f", v->best);
    if (!v->model) return;
    add(text, size, width, " | %.40s", v->model);
    add(text, size, width, " lr %g seed %" PRId64, v->lr, v->seed);
    add(text, size, width, ": %" PRId64 "/%" PRId64, v->step, v->steps);
    if (isfinite(v->loss)) add(text, size, width, " loss %.3f", v->loss);
    if (isfinite(v->acc)) add(text, size, width, " acc %.3f", v->acc);
    if (isfinite(v->tok_per_s)) add(text, size, width, " %.0fk tok/s", v->tok_per_s / 1e3);
}

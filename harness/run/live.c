/* live.c - see live.h. */
#include "harness/run/live.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 160

/* Removes every second point, beginning with the second. */
static void thin_out(struct live *l) {
    int kept = 0;
    for (int i = 0; i < l->n; i += 2) l->points[kept++] = l->points[i];
    l->n = kept;
    l->gap *= 2;
}

static void tell(const struct live *l, const struct claim *claim) {
    char text[(LIVE_POINTS + 1) * LINE_BYTES];
    int used = snprintf(text, sizeof text, "steps %" PRId64 "\n", l->points[l->n - 1].steps);
    for (int i = 0; i < l->n; i++) {
        const struct progress *p = &l->points[i];
        used += snprintf(text + used, sizeof text - (size_t)used, "%.3f %" PRId64 " %.6g %.6g %.6g\n", p->wall_s,
                         p->step, p->loss, p->acc, p->tok_per_s);
    }
    claim_tell(claim, text, (size_t)used);
}

/* Adds a point. If the previous point is closer to the one before it than the gap, the new point replaces it. */
void live_tell(struct live *l, const struct progress *now, const struct claim *claim) {
    if (l->n && now->wall_s - l->told < LIVE_EVERY) return;
    if (l->gap <= 0) l->gap = LIVE_EVERY;
    if (l->n > 1 && l->points[l->n - 1].wall_s - l->points[l->n - 2].wall_s < l->gap) l->n--;
    if (l->n == LIVE_POINTS) thin_out(l);
    l->points[l->n++] = *now;
    l->told = now->wall_s;
    tell(l, claim);
}

bool live_read(struct live *l, const char *out, const char *run_id) {
    char *text = claim_told(out, run_id);
    int64_t steps;
    int end = 0;
    *l = (struct live){.n = 0};
    if (!text) return false;
    bool whole = sscanf(text, "steps %" SCNd64 "\n%n", &steps, &end) == 1 && end > 0 && steps > 0;
    for (const char *line = text + end; whole && *line && l->n < LIVE_POINTS; line = strchr(line, '\n') + 1) {
        struct progress p = {.steps = steps};
        whole = strchr(line, '\n') &&
                sscanf(line, "%lf %" SCNd64 " %lf %lf %lf", &p.wall_s, &p.step, &p.loss, &p.acc, &p.tok_per_s) == 5;
        const struct progress *before = l->n ? &l->points[l->n - 1] : NULL;
        whole = whole && isfinite(p.wall_s) && p.step >= 0 && p.step <= steps;
        if (before) whole = whole && p.wall_s >= before->wall_s && p.step >= before->step;
        if (!whole) break;
        l->points[l->n++] = p;
    }
    free(text);
    return l->n > 0;
}

/* The time per step is a ratio of sums: the time of all intervals over the steps of all intervals. Its error is the
 * standard error of a ratio. */
struct live_left live_left(const struct live *l) {
    const double normal_90 = 1.645;
    struct live_left none = {NAN, NAN};
    int first = l->n > 4 ? l->n / 2 : 0, k = l->n - 1 - first;
    if (k < 1) return none;
    const struct progress *last = &l->points[l->n - 1], *begin = &l->points[first];
    double steps = (double)(last->step - begin->step), left = (double)(last->steps - last->step), squares = 0;
    if (steps <= 0) return none;
    double pace = (last->wall_s - begin->wall_s) / steps;
    for (int i = first; i + 1 < l->n; i++) {
        double took = l->points[i + 1].wall_s - l->points[i].wall_s;
        double error = took - pace * (double)(l->points[i + 1].step - l->points[i].step);
        squares += error * error;
    }
    double error = k > 1 ? sqrt(squares * k / (k - 1)) / steps : NAN;
    return (struct live_left){left * pace, normal_90 * error * left};
}

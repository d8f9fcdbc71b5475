/* run_lines.c - see run_lines.h. */
#include "harness/pool/run_lines.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/paragraph.h"
#include "harness/pool/progress_line.h"
#include "harness/run/checkpoint.h"
#include "harness/run/live.h"
#include "harness/sheet/sheet.h"

#define CURVE_MOST  24 /* columns */
#define CURVE_LEAST 8
#define PART        128 /* bytes */

bool run_look_utf8(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (int i = 0; i < 3; i++) {
        const char *value = getenv(names[i]);
        if (!value || !*value) continue;
        const char *dot = strchr(value, '.');
        return dot && (!strncasecmp(dot, ".UTF-8", 6) || !strncasecmp(dot, ".utf8", 5));
    }
    return false;
}

/* --- a line ------------------------------------------------------------------------------------------------------- */

void print_cut(FILE *f, int width, const char *text) {
    for (int columns = 1; *text; columns++) {
        int bytes = utf8_bytes(text);
        if (columns == width && text[bytes ? bytes : 1]) {
            fputc('~', f);
            break;
        }
        if (bytes == 0 || control_bytes(text))
            fputc(bytes ? ' ' : '?', f);
        else
            fprintf(f, "%.*s", bytes, text);
        text += bytes ? bytes : 1;
    }
    fputc('\n', f);
}

/* --- the curve ---------------------------------------------------------------------------------------------------- */

/* Divides the run so far into `columns` equal intervals, and computes the mean loss of the points in each; NAN if it
 * has no point. */
static void bin_losses(const struct live *l, int columns, double *bins) {
    double begin = l->points[0].wall_s, span = l->points[l->n - 1].wall_s - begin;
    int counts[CURVE_MOST] = {0};
    for (int i = 0; i < columns; i++) bins[i] = 0;
    for (int i = 0; i < l->n; i++) {
        int at = span > 0 ? (int)((l->points[i].wall_s - begin) / span * columns) : 0;
        if (at >= columns) at = columns - 1;
        bins[at] += l->points[i].loss;
        counts[at]++;
    }
    for (int i = 0; i < columns; i++) bins[i] = counts[i] ? bins[i] / counts[i] : NAN;
}

/* Appends the curve in at most `columns` columns. If there are fewer points, each has its own column. */
static void add_curve(char *text, size_t size, const struct live *l, int columns, bool utf8) {
    static const char *const blocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                         "\u2585", "\u2586", "\u2587", "\u2588"},
                             *const ascii[] = {"_", ".", "-", "~", "=", "+", "*", "#"};
    double bins[CURVE_MOST], low = INFINITY, high = -INFINITY;
    if (columns > l->n) columns = l->n;
    bin_losses(l, columns, bins);
    for (int i = 0; i < columns; i++) {
        if (!isfinite(bins[i])) continue;
        low = fmin(low, bins[i]);
        high = fmax(high, bins[i]);
    }
    for (int i = 0; i < columns; i++) {
        size_t used = strlen(text);
        double share = high > low ? (bins[i] - low) / (high - low) : 0;
        const char *mark = isfinite(bins[i]) ? (utf8 ? blocks : ascii)[(int)(share * 7 + 0.5)] : " ";
        snprintf(text + used, size - used, "%s", mark);
    }
}

/* --- a run -------------------------------------------------------------------------------------------------------- */

/* The parts of the second line from left to right. Their order of priority for space is below. */
enum part { STEP, SHARE, LOSS, ACC, CURVE, SPEED, LEFT, PARTS };
static const int by_rank[PARTS] = {STEP, LEFT, LOSS, CURVE, ACC, SPEED, SHARE};

static void fill_parts(char parts[PARTS][PART], const struct live *l, int curve, bool utf8) {
    const struct progress *p = &l->points[l->n - 1];
    const struct live_left left = live_left(l);
    char time[32], half[32];
    snprintf(parts[STEP], PART, "%" PRId64 "/%" PRId64, p->step, p->steps);
    snprintf(parts[SHARE], PART, " %.0f %%", floor(100 * (double)p->step / (double)p->steps));
    snprintf(parts[LOSS], PART, " loss %.4g", p->loss);
    if (isfinite(p->acc)) snprintf(parts[ACC], PART, " acc %.3f", p->acc);
    snprintf(parts[CURVE], PART, " ");
    add_curve(parts[CURVE], PART, l, curve, utf8);
    if (isfinite(p->tok_per_s)) snprintf(parts[SPEED], PART, " %.*fk tok/s", p->tok_per_s < 1e4, p->tok_per_s / 1e3);
    if (!isfinite(left.seconds)) return;
    time_format(left.seconds, time, sizeof time);
    time_format(left.half, half, sizeof half);
    if (isfinite(left.half))
        snprintf(parts[LEFT], PART, " %s +-%s left", time, half);
    else
        snprintf(parts[LEFT], PART, " %s left", time);
}

static void print_progress(FILE *f, const struct run_look *look, const struct live *l) {
    char parts[PARTS][PART] = {""}, line[PARTS * PART + 8] = "  ";
    int room = look->width ? look->width - 2 : PARTS * PART;
    fill_parts(parts, l, look->width && look->width < 60 ? CURVE_LEAST : CURVE_MOST, look->utf8);
    bool shown[PARTS] = {false};
    for (int i = 0; i < PARTS; i++) {
        int columns = text_width(parts[by_rank[i]]);
        if (columns > room) continue;
        room -= columns;
        shown[by_rank[i]] = true;
    }
    for (int i = 0; i < PARTS; i++)
        if (shown[i]) strcat(line, parts[i]);
    print_cut(f, look->width, line);
}

void run_lines_print(FILE *f, const struct run_look *look, const char *out, const struct claim_info *c) {
    char line[2 * RECORD_TEXT];
    struct live live;
    snprintf(line, sizeof line, "%.8s %s, %s %ld%s", c->run_id, c->what, c->host, c->pid,
             c->live ? "" : " (gone; its next start goes on with it)");
    print_cut(f, look->width, line);
    if (c->live && live_read(&live, out, c->run_id)) {
        print_progress(f, look, &live);
        return;
    }
    int64_t step = checkpoint_step(out, c->run_id);
    if (step >= 0)
        snprintf(line, sizeof line, "  since %s, saved at step %" PRId64, c->since, step);
    else
        snprintf(line, sizeof line, "  since %s, no step told yet", c->since);
    print_cut(f, look->width, line);
}

/* op_sheet.c - see op_sheet.h. */
#include "harness/perf/op_sheet.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/graph.h"
#include "harness/plot/gnuplot.h"

#define APART      1.2 /* a median above this multiple of the best time gets a note */
#define SHAPE_TEXT 256

/* --- names of shapes ---------------------------------------------------------------------------------------------- */

static bool differs(const struct op_shapes *s, const struct option *o) {
    char first[64], other[64];
    option_format_value(o, &s->list[0], first, sizeof first);
    for (int i = 1; i < s->n; i++) {
        option_format_value(o, &s->list[i], other, sizeof other);
        if (strcmp(first, other) != 0) return true;
    }
    return false;
}

/* Writes the sizes of shape i that all shapes share, or those in which they differ: "length=64 m=5". */
static void shape_words(const struct op_times *t, int i, bool differing, char text[SHAPE_TEXT]) {
    char value[64];
    text[0] = 0;
    for (const struct option *o = op_sizes_options; o->name; o++) {
        size_t used = strlen(text);
        bool read = op_reads_size(t->op, o->name) || (!strcmp(o->name, "variant") && t->shapes->list[i].variant);
        if (!read || differs(t->shapes, o) != differing) continue;
        option_format_value(o, &t->shapes->list[i], value, sizeof value);
        snprintf(text + used, SHAPE_TEXT - used, "%s%s=%s", used ? " " : "", o->name, value);
    }
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

static void add_columns(struct sheet *s, bool old) {
    static const char *const always[] = {"best ms", "floor ms", "ratio"}, *const rates[] = {"GFLOP/s", "GB/s"},
                             *const more[] = {"median ms", "mad ms", "fraction"};
    sheet_columns(s, "kernel");
    for (int i = 0; i < 3; i++) sheet_column(s, SHEET_RIGHT, "%s", always[i]);
    for (int i = 0; i < 2; i++) {
        sheet_column(s, SHEET_RIGHT, "%s", rates[i]);
        if (old) sheet_on_request(s);
    }
    sheet_columns(s, "by");
    if (old) sheet_on_request(s);
    if (old) sheet_columns(s, ">old ms|>change %|>+- %");
    for (int i = 0; i < 3; i++) {
        sheet_column(s, SHEET_RIGHT, "%s", more[i]);
        sheet_on_request(s);
    }
}

static void add_row(struct sheet *s, const struct op_times *t, const struct op_time *m, const struct perf_rows *old) {
    const struct perf_row *r = &m->row, *before = old ? perf_rows_find(old, r) : NULL;
    char words[SHAPE_TEXT];
    double ns[2] = {NAN, NAN};
    bool several = t->shapes->n > 1, measured = !m->why;
    shape_words(t, m->shape, true, words);
    if (before && measured) perf_pair_ns(before, r, ns);
    sheet_row(s);
    sheet_text(s, "%s%s%s%s%s", words, several ? " " : "", r->bench, several ? "" : " ", several ? "" : r->pass);
    if (!measured) sheet_footnote(s, "%s", m->why);
    sheet_real(s, "%.4f", measured ? r->best_ns * 1e-6 : NAN);
    sheet_real(s, "%.4f", measured ? r->floor_ns * 1e-6 : NAN);
    sheet_real(s, "%.2f", measured ? r->best_ns / r->floor_ns : NAN);
    sheet_real(s, "%.2f", measured ? r->flops / r->best_ns : NAN);
    sheet_real(s, "%.2f", measured ? r->bytes / r->best_ns : NAN);
    sheet_text(s, "%s", !measured ? "-" : m->by_bytes ? "bytes" : "flops");
    if (old) {
        sheet_real(s, "%.4f", ns[0] * 1e-6);
        sheet_real(s, "%+.1f", 100 * (ns[1] / ns[0] - 1));
        sheet_real(s, "%.1f", before && measured ? 100 * perf_pair_error(before, r) : NAN);
    }
    sheet_real(s, "%.4f", measured ? r->time_ns * 1e-6 : NAN);
    sheet_real(s, "%.4f", measured ? r->time_ns_mad * 1e-6 : NAN);
    sheet_real(s, "%.2f", measured ? r->floor_ns / r->best_ns : NAN);
}

/* Adds a note on the row with the largest ratio of median to best time, if it exceeds APART. */
static void note_disturbed(struct sheet *s, const struct op_times *t) {
    const struct op_time *worst = NULL;
    double most = APART;
    for (int i = 0; i < t->n; i++) {
        const struct perf_row *r = &t->list[i].row;
        if (t->list[i].why || r->time_ns <= most * r->best_ns) continue;
        most = r->time_ns / r->best_ns;
        worst = &t->list[i];
    }
    if (worst)
        sheet_note(s,
                   "The median of %s is %.2f times its best: other work disturbed it; measure again, or give more "
                   "--seconds.",
                   worst->row.bench, most);
}

static void note_old(struct sheet *s, const struct op_times *t, const struct perf_rows *old) {
    const char *names[2] = {old->path, "this"};
    const struct perf_row *apart[2] = {NULL, NULL};
    int alone = 0, n = 0;
    for (int i = 0; i < t->n; i++) {
        const struct perf_row *r = &t->list[i].row, *before = perf_rows_find(old, r);
        if (t->list[i].why) continue;
        n++;
        alone += !before;
        if (before && !apart[0] && strcmp(before->machine_id, r->machine_id) != 0) apart[0] = before, apart[1] = r;
    }
    sheet_note(s, "change: of the best time, against %s. +-: " PERF_ERROR_NOTE ".", old->path);
    if (apart[0]) perf_note_machines(s, names, apart[0], apart[1]);
    if (alone) sheet_note(s, "Without a partner in %s: %d of %d times.", old->path, alone, n);
}

void op_sheet(struct sheet *s, const struct op_times *t, const struct perf_rows *old) {
    char shared[SHAPE_TEXT], rates[64];
    int64_t threads = t->n ? t->list[0].row.threads : 0;
    bool several = t->shapes->n > 1, backward = false;
    shape_words(t, 0, false, shared);
    for (int i = 0; i < t->n; i++) backward = backward || !strcmp(t->list[i].row.pass, "fwd+bwd");
    sheet_caption(s, "%s %s, %" PRId64 " thread%s, " REAL_NAME "%s%s", t->op->name, shared, threads,
                  threads == 1 ? "" : "s", several ? ", " : "",
                  !several   ? ""
                  : backward ? "forward and backward"
                             : "forward");
    sheet_name(s, "perf op %s", t->op->name);
    add_columns(s, old != NULL);
    for (int i = 0; i < t->n; i++)
        if (t->list[i].why || t->list[i].whole || !several) add_row(s, t, &t->list[i], old);
    snprintf(rates, sizeof rates, t->least.bytes < 0.95 * t->best.bytes ? "%.1f to %.1f" : "%.1f", t->least.bytes / 1e9,
             t->best.bytes / 1e9);
    if (t->best.bytes > 0)
        sheet_note(
            s,
            "floor: the larger of an op's bytes at the rate of a copy of as many (%s GB/s, read and written both "
            "counted) and its FLOPs at that of multiply-adds on registers (%.1f GFLOP/s). ratio: best over floor.",
            rates, t->best.flops / 1e9);
    if (old) note_old(s, t, old);
    note_disturbed(s, t);
}

/* --- the roofline ------------------------------------------------------------------------------------------------- */

static bool is_drawn(const struct op_time *m) {
    return m->whole && !m->why && m->row.bytes > 0 && m->row.flops > 0;
}

/* Writes the name of a mark: "length=64 scan_block_cpu". */
static void mark_name(const struct op_times *t, const struct op_time *m, char name[2 * SHAPE_TEXT]) {
    char words[SHAPE_TEXT];
    shape_words(t, m->shape, true, words);
    snprintf(name, 2 * SHAPE_TEXT, "%s%s%s", words, *words ? " " : "", m->row.bench);
}

/* Returns the characters of the longest name of a mark; *n: the number of marks. */
static int longest_mark(const struct op_times *t, int *n) {
    char name[2 * SHAPE_TEXT];
    size_t longest = 0;
    *n = 0;
    for (int i = 0; i < t->n; i++) {
        if (!is_drawn(&t->list[i])) continue;
        mark_name(t, &t->list[i], name);
        longest = strlen(name) > longest ? strlen(name) : longest;
        ++*n;
    }
    return (int)longest;
}

static void print_roofline(FILE *script, FILE *data, const void *context) {
    const struct op_times *t = context;
    const double ridge = t->best.flops / t->least.bytes; /* FLOPs per byte above which arithmetic is the limit */
    double left = ridge, right = ridge, low = INFINITY;
    char text[2 * SHAPE_TEXT];
    int n = 0;
    fprintf(script, "array name[%d]\n", t->n + 1);
    for (int i = 0; i < t->n; i++) {
        const struct perf_row *r = &t->list[i].row;
        if (!is_drawn(&t->list[i])) continue;
        double intensity = r->flops / r->bytes, rate = r->flops / r->best_ns;
        mark_name(t, &t->list[i], text);
        gnuplot_element(script, "name", ++n, "%s", text);
        gnuplot_row(data, 2, (double[]){intensity, rate});
        gnuplot_end_block(data);
        left = fmin(left, intensity);
        right = fmax(right, intensity);
        low = fmin(low, rate);
    }
    fprintf(script, "feet = 0\nn = %d\nleft = %g\nright = %g\nlow = %g\npeak = %g\nfast = %g\nslow = %g\n", n, left / 2,
            right * 2, low / 2, t->best.flops / 1e9, t->best.bytes / 1e9, t->least.bytes / 1e9);
    gnuplot_longest(script, longest_mark(t, &n));
    gnuplot_setting(script, "heading", "%s under the roof of this machine", t->op->name);
    shape_words(t, 0, false, text);
    gnuplot_setting(script, "subheading", "%s, %" PRId64 " thread%s, " REAL_NAME, text, t->list[0].row.threads,
                    t->list[0].row.threads == 1 ? "" : "s");
}

enum status op_roofline(const struct op_times *t, const char *to, struct error *e) {
    char stem[128];
    int n, longest = longest_mark(t, &n);
    if (n == 0) return fail(e, ST_USAGE, "perf op: %s has no FLOPs, so that no roofline can be drawn", t->op->name);
    snprintf(stem, sizeof stem, "roofline-%s", t->op->name);
    return gnuplot_draw(
        &(struct figure){.stem = stem, .kind = "roofline", .height = figure_height(n, longest), .told = stderr},
        print_roofline, t, to, e);
}

/* plot_settings.c - the common parts of figures of tables (plot_kinds.h): title, sizes, names with marks, files. */
#include "harness/plot/plot_kinds.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "harness/plot/gnuplot.h"
#include "harness/rows/facts.h"
#include "harness/rows/row_label.h"

const char *const plot_axis_titles[] = {"",
                                        "training steps",
                                        "training tokens",
                                        "seconds",
                                        "epochs",
                                        "parameters",
                                        "state (numbers per sequence)",
                                        "FLOPs a training step"};

int longest_name(const struct report_table *t) {
    size_t longest = 0;
    for (int k = 0; k < t->n_rows; k++) {
        size_t length = strlen(t->rows[k].label);
        longest = length > longest ? length : longest;
    }
    return (int)longest;
}

/* Adds the sizes that are equal in all rows: "; D = 64, 2 layers, batch 32". */
static void add_sizes(char *text, size_t size, const struct report_table *t) {
    static const struct {
        size_t at; /* in struct run */
        const char *before, *after;
    } sizes[] = {{offsetof(struct run, d_model), "D = ", ""},
                 {offsetof(struct run, n_layers), "", " layer"},
                 {offsetof(struct run, batch), "batch ", ""}};
    const char *separator = "; ";
    for (int i = 0; i < 3; i++) {
        int64_t first = *(const int64_t *)((const char *)t->rows[0].run + sizes[i].at);
        bool shared = true;
        for (int k = 1; k < t->n_rows; k++)
            shared = shared && *(const int64_t *)((const char *)t->rows[k].run + sizes[i].at) == first;
        if (!shared) continue;
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s%" PRId64 "%s%s", separator, sizes[i].before, first, sizes[i].after,
                 *sizes[i].after && first != 1 ? "s" : "");
        separator = ", ";
    }
}

/* Whether the estimate has a failed run. The best of a grid has one only if every run failed. */
static bool estimate_failed(const struct report_row *row, enum report_protocol protocol) {
    return protocol == PROTOCOL_BEST_OF_GRID ? row->n_failed_all == row->n_all : row->n_failed > 0;
}

/* Marks of a row: whether runs were cut off or failed, and numbers of failed and all runs. */
struct marks {
    bool cut_off, failed;
    int n_failed, n;
};

static struct marks marks_of(const struct report_row *row, const struct plot_view *v, enum marked_runs marked) {
    struct marks every = {row->n_cut_all > 0, row->n_failed_all > 0, row->n_failed_all, row->n_all};
    if (marked == MARK_EVERY) return every;
    if (marked == MARK_CHOSEN) return (struct marks){row->n_cut > 0, row->n_failed > 0, row->n_failed, row->n};
    return (struct marks){row->estimate_cut, estimate_failed(row, v->protocol), row->n_estimate_failed,
                          row->n_estimate};
}

void print_plot_name(FILE *f, const struct report_table *t, int k, const struct plot_view *v, enum marked_runs marked,
                     const char *more) {
    struct marks marks = marks_of(&t->rows[k], v, marked);
    gnuplot_element(f, "name", k + 1, "%s%s%s%s%s", t->rows[k].label, marks.cut_off || marks.failed ? " " : "",
                    marks.cut_off ? CUT_OFF_MARK : "", marks.failed ? FAILED_MARK : "", more);
}

#define FOOT_WIDTH 150 /* characters of a line */
#define FOOT_MOST  4   /* lines */

/* Returns the bytes of the text's first line, up to a blank. A word longer than a line is cut between two
 * characters. */
static size_t line_end(const char *text) {
    size_t end = FOOT_WIDTH;
    if (strlen(text) <= FOOT_WIDTH) return strlen(text);
    while (end && text[end] != ' ') end--;
    for (end = end ? end : FOOT_WIDTH; end > 1 && ((unsigned char)text[end] & 0xc0) == 0x80;) end--;
    return end;
}

/* Prints the lines below the picture, like a table's notes: the source of published numbers, the user's choice of runs,
 * and facts of all runs (facts.h). A long text loses its end. */
static void print_foot(FILE *f, const struct report_table *t, const struct plot_view *v) {
    struct facts facts = {0};
    char foot[2 * FACT_TEXT] = "", sentence[FACT_TEXT];
    bool published = false;
    int n = 0, sentences = 0;
    for (int k = 0; k < t->n_rows; k++) facts_add(&facts, &t->rows[k]);
    for (int k = 0; k < t->n_rows; k++) published = published || isfinite(t->rows[k].published.value);
    while (facts_sentence(&facts, sentences, sentence)) sentences++;
    int choice = facts.asked && facts.asked->where && *facts.asked->where; /* its sentence is the last */
    if (published && v->own_numbers) snprintf(foot, sizeof foot, "%s. ", OWN_NUMBERS_NOTE);
    for (int i = 0; i < sentences; i++) {
        size_t used = strlen(foot);
        facts_sentence(&facts, (i + sentences - choice) % sentences, sentence);
        snprintf(foot + used, sizeof foot - used, "%s. ", sentence);
    }
    if (*foot) foot[strlen(foot) - 1] = 0;
    fprintf(f, "array foot[%d]\n", FOOT_MOST);
    for (const char *at = foot; *at && n < FOOT_MOST;) {
        size_t end = line_end(at);
        bool cut = n + 1 == FOOT_MOST && at[end];
        gnuplot_element(f, "foot", ++n, "%.*s%s", (int)end, at, cut ? " ..." : "");
        at += end + strspn(at + end, " ");
    }
    fprintf(f, "feet = %d\n", n);
}

void print_plot_settings(FILE *f, const struct report_table *t, const struct plot_view *v, enum marked_runs marked,
                         const char *heading, const char *what) {
    const struct run *run = t->rows[0].run;
    char sizes[256] = "", confirm[96] = "", failed[64] = "";
    struct marks any = {.n = 0};
    bool sees_future = false;
    for (int k = 0; k < t->n_rows; k++) {
        struct marks marks = marks_of(&t->rows[k], v, marked);
        any.cut_off = any.cut_off || marks.cut_off;
        any.failed = any.failed || marks.failed;
        any.n_failed += marks.n_failed;
        any.n += marks.n;
        sees_future = sees_future || key_sees_future(&t->rows[k].key);
    }
    if (any.failed) snprintf(failed, sizeof failed, "; " FAILED_MARK " %d of %d runs failed", any.n_failed, any.n);
    gnuplot_setting(f, "heading", "%s%s%s, profile %s: %s", t->task, v->plan ? " of " : "", v->plan ? v->plan : "",
                    v->plan ? v->profile : t->profile, heading);
    add_sizes(sizes, sizeof sizes, t);
    if (v->confirm && marked != MARK_EVERY)
        snprintf(confirm, sizeof confirm, "; the %" PRId64 " largest seeds, the others chose the rate", v->confirm);
    gnuplot_setting(f, "subheading", "%s%s%s%s%s, %" PRId64 " training sequences of length %" PRId64 "%s", what,
                    any.cut_off ? "; " CUT_OFF_MARK " cut off" : "", failed,
                    sees_future ? "; " FUTURE_MARK " saw later inputs" : "", sizes, run->n_train, run->len_train,
                    confirm); /* marks come first, because a long line loses its end */
    print_foot(f, t, v);
    gnuplot_longest(f, longest_name(t));
    fprintf(f, "n = %d\narray name[%d]\n", t->n_rows, t->n_rows);
    for (int k = 0; k < t->n_rows; k++) print_plot_name(f, t, k, v, marked, "");
}

/* --- files -------------------------------------------------------------------------------------------------------- */

/* Names a table's files in the k-th way: by the task's name alone (0), with its profile (1), its options (2) or both
 * (3). */
static void name_files(const struct report_table *t, int k, char stem[PLOT_STEM_BYTES]) {
    struct label label;
    bool whole = k & 2 || label_parse(&label, "task", t->task, NULL) != ST_OK;
    snprintf(stem, PLOT_STEM_BYTES, "%.150s%s%s", whole ? t->task : label_name(&label), k & 1 ? "-" : "",
             k & 1 ? t->profile : "");
    for (char *p = stem; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("._=,+", *p)) *p = '-';
    if (*stem == '.') *stem = '-';
}

void plot_stem(const struct report_tables *tables, int i, const char *kind, char stem[PLOT_STEM_BYTES]) {
    bool alone = false;
    char other[PLOT_STEM_BYTES], text[RECORD_TEXT + 64], hash[RUN_ID_HEX];
    for (int k = 0; k < 4 && !alone; k++) {
        alone = true;
        name_files(&tables->list[i], k, stem);
        for (int j = 0; j < tables->n; j++) {
            name_files(&tables->list[j], k, other);
            alone = alone && (i == j || strcmp(stem, other) != 0);
        }
    }
    size_t used = strlen(stem);
    snprintf(text, sizeof text, "%s %s", tables->list[i].task, tables->list[i].profile);
    record_hash(text, hash);
    snprintf(stem + used, PLOT_STEM_BYTES - used, "%s%.*s-%s", alone ? "" : "-", alone ? 0 : 6, hash, kind);
}

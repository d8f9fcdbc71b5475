/* plot.c - accuracy over steps, the table as bars, accuracy by test length, through gnuplot.
 *
 * A complete script is written beside the output: settings, then the text of plots/KIND.gp. Names reach gnuplot only as
 * single-quoted strings drawn without enhanced text, numbers through a data file; gnuplot is started without a
 * shell. */
#include "harness/report/plot.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/batch.h"
#include "harness/store/files.h"
#include "tasks/task.h"

const char *const plot_kinds = "accuracy table length";

#define GNUPLOT_MISSING 127 /* exit code of a child that could not start it, as a shell's */

/* --- text for gnuplot --------------------------------------------------------------------------------------------- */

/* In single quotes nothing is expanded, and a quote is doubled; control characters would end the line. */
static void print_quoted(FILE *f, const char *text) {
    fputc('\'', f);
    for (const char *p = text; *p; p++) {
        if (*p == '\'') fputc('\'', f);
        fputc((unsigned char)*p < 0x20 || *p == 0x7f ? ' ' : *p, f);
    }
    fputc('\'', f);
}

static void print_setting(FILE *f, const char *name, const char *text) {
    fprintf(f, "%s = ", name);
    print_quoted(f, text);
    fputc('\n', f);
}

static void print_number(FILE *f, double value, const char *end) {
    if (isfinite(value))
        fprintf(f, "%.9g%s", value, end);
    else
        fprintf(f, "NaN%s", end);
}

static const char *metric_name(const struct report_table *t) {
    return t->rows[0].run->metric == METRIC_MACRO_ACC ? "macro accuracy" : "token accuracy";
}

/* What all plots of a table say: names and sizes; which rows were cut off. */
static void print_settings(FILE *f, const struct report_table *t, const char *heading, const char *what) {
    const struct run *run = t->rows[0].run;
    char text[2 * RECORD_TEXT], name[sizeof t->rows->label + 4];
    bool cut_off = false;
    for (int k = 0; k < t->n_rows; k++) cut_off = cut_off || t->rows[k].n_cut;
    snprintf(text, sizeof text, "%s, profile %s: %s", t->task, t->profile, heading);
    print_setting(f, "heading", text);
    snprintf(text, sizeof text, "%s; D = %lld, %lld layer%s, batch %lld, %lld training sequences of length %lld%s",
             what, (long long)run->d_model, (long long)run->n_layers, run->n_layers == 1 ? "" : "s",
             (long long)run->batch, (long long)run->n_train, (long long)run->len_train,
             cut_off ? "; " CUT_OFF_MARK " cut off" : "");
    print_setting(f, "subheading", text);
    fprintf(f, "n = %d\narray name[%d]\n", t->n_rows, t->n_rows);
    for (int k = 0; k < t->n_rows; k++) {
        fprintf(f, "name[%d] = ", k + 1);
        snprintf(name, sizeof name, "%s%s", t->rows[k].label, t->rows[k].n_cut ? " " CUT_OFF_MARK : "");
        print_quoted(f, name);
        fputc('\n', f);
    }
}

/* --- accuracy over steps ------------------------------------------------------------------------------------------ */

/* Validation metric of a run when `step` steps were done: its last evaluation until then. After its end a run that
 * stopped well keeps its last value, and one that failed counts as chance. NAN before the first evaluation. */
static double metric_at(const struct run_record *r, int64_t step) {
    double value = NAN;
    int64_t last = -1;
    for (int64_t i = 0; i < r->n_curve; i++) {
        const struct curve_point *p = &r->curve[i];
        if (p->split != SPLIT_VAL || !isfinite(run_point_metric(&r->run, p))) continue;
        last = p->step;
        if (p->step <= step) value = run_point_metric(&r->run, p);
    }
    return run_failed(&r->run) && step > last ? run_chance(&r->run) : value;
}

static int by_step(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* The steps at which any run of the row was evaluated, in order; returns their number. *steps is the caller's to
 * free. */
static int64_t evaluation_steps(const struct report_row *row, int64_t **steps) {
    int64_t most = 1, n = 0, kept = 0;
    for (int i = 0; i < row->n; i++) most += row->chosen[i]->n_curve;
    *steps = malloc((size_t)most * sizeof **steps);
    if (!*steps) return 0;
    for (int i = 0; i < row->n; i++)
        for (int64_t k = 0; k < row->chosen[i]->n_curve; k++)
            if (row->chosen[i]->curve[k].split == SPLIT_VAL) (*steps)[n++] = row->chosen[i]->curve[k].step;
    qsort(*steps, (size_t)n, sizeof **steps, by_step);
    for (int64_t i = 0; i < n; i++)
        if (kept == 0 || (*steps)[i] != (*steps)[kept - 1]) (*steps)[kept++] = (*steps)[i];
    return kept;
}

/* The step at which the first of a row's runs was cut off: behind it nothing is known of the row. */
static int64_t end_of_curve(const struct report_row *row) {
    int64_t end = INT64_MAX;
    for (int i = 0; i < row->n; i++) {
        const struct run *run = &row->chosen[i]->run;
        if (run_cut_off(run) && run->steps < end) end = run->steps;
    }
    return end;
}

/* One block of the data file: step, mean, smallest, largest. Returns the number of its lines. */
static int print_curve(FILE *f, const struct report_row *row) {
    int64_t *steps, n = evaluation_steps(row, &steps), end = end_of_curve(row);
    int lines = 0;
    for (int64_t k = 0; k < n && steps[k] <= end; k++) {
        double sum = 0, low = INFINITY, high = -INFINITY;
        for (int i = 0; i < row->n; i++) {
            double value = metric_at(row->chosen[i], steps[k]);
            sum += value;
            low = fmin(low, value);
            high = fmax(high, value);
        }
        if (!isfinite(sum)) continue; /* some seed has not been evaluated yet */
        fprintf(f, "%lld\t", (long long)steps[k]);
        print_number(f, sum / row->n, "\t");
        print_number(f, row->n > 1 ? low : NAN, "\t");
        print_number(f, row->n > 1 ? high : NAN, "\n");
        lines++;
    }
    free(steps);
    if (lines == 0) fputs("0\tNaN\tNaN\tNaN\n", f); /* an empty block would shift the ones behind it */
    fputs("\n\n", f);
    return lines;
}

static void print_accuracy(FILE *script, FILE *data, const struct report_table *t) {
    int most = 1, seeds = 1;
    for (int k = 0; k < t->n_rows; k++) {
        int lines = print_curve(data, &t->rows[k]);
        most = lines > most ? lines : most;
        seeds = t->rows[k].n > seeds ? t->rows[k].n : seeds;
    }
    char metric[64];
    snprintf(metric, sizeof metric, "validation %s", metric_name(t));
    print_settings(script, t, "accuracy over training",
                   seeds > 1 ? "mean over seeds, band from smallest to largest" : "one seed");
    print_setting(script, "metric", metric);
    fprintf(script, "chance = %.9g\nevery = %d\n", run_chance(t->rows[0].run), 1 + most / 16);
}

/* --- the table as bars -------------------------------------------------------------------------------------------- */

static void print_bars(FILE *script, FILE *data, const struct report_table *t) {
    int most = 1, least = t->rows[0].n;
    for (int k = 0; k < t->n_rows; k++) {
        const struct report_row *row = &t->rows[k];
        double low = row->interval.low, high = row->interval.high;
        for (int i = 0; row->interval.kind == INTERVAL_NONE && i < row->n; i++) {
            low = i ? fmin(low, row->value[i]) : row->value[i];
            high = i ? fmax(high, row->value[i]) : row->value[i];
        }
        fprintf(data, "%d\t", k + 1);
        print_number(data, row->mean, "\t");
        print_number(data, row->n > 1 ? low : NAN, "\t");
        print_number(data, row->n > 1 ? high : NAN, "\t");
        print_number(data, row->best, "\t");
        print_number(data, row->published.settings ? NAN : row->published.value, "\n");
        most = row->n_all > most ? row->n_all : most;
        least = row->n < least ? row->n : least;
    }
    char best[64], metric[64];
    snprintf(best, sizeof best, most == 1 ? "best of %d run" : "best of %d runs", most);
    snprintf(metric, sizeof metric, "test %s", metric_name(t));
    print_settings(script, t, "ours beside the published numbers", "a failed run counts as chance");
    print_setting(script, "metric", metric);
    print_setting(script, "best", best);
    print_setting(script, "interval", least < 5 ? "seeds, min to max" : "95 % interval");
}

/* --- accuracy by length ------------------------------------------------------------------------------------------- */

/* Neighbouring lengths share a point, so that it rests on some dozens of sequences. */
#define LENGTH_BIN 8

static bool by_length(const struct eval_point *p) {
    return strcmp(p->difficulty, "length") == 0;
}

static bool has_lengths(const struct report_table *t) {
    for (int k = 0; k < t->n_rows; k++)
        for (int i = 0; i < t->rows[k].n; i++)
            for (int64_t j = 0; j < t->rows[k].chosen[i]->n_evals; j++)
                if (by_length(&t->rows[k].chosen[i]->evals[j])) return true;
    return false;
}

/* Mean accuracy of all seeds' sequences of the lengths in a bin, weighted by their number; NAN without any. */
static double accuracy_in_bin(const struct report_row *row, int64_t bin) {
    double sum = 0, n = 0;
    for (int i = 0; i < row->n; i++)
        for (int64_t j = 0; j < row->chosen[i]->n_evals; j++) {
            const struct eval_point *p = &row->chosen[i]->evals[j];
            if (!by_length(p) || p->length / LENGTH_BIN != bin) continue;
            sum += p->acc * (double)p->n;
            n += (double)p->n;
        }
    return n > 0 ? sum / n : NAN;
}

static void print_lengths(FILE *script, FILE *data, const struct report_table *t) {
    for (int k = 0; k < t->n_rows; k++) {
        int lines = 0;
        int64_t bins = t->rows[k].n ? t->rows[k].chosen[0]->run.len_test / LENGTH_BIN + 1 : 0;
        for (int64_t bin = 0; bin < bins; bin++) {
            double value = accuracy_in_bin(&t->rows[k], bin);
            if (!isfinite(value)) continue;
            fprintf(data, "%g\t", ((double)bin + 0.5) * LENGTH_BIN);
            print_number(data, value, "\n");
            lines++;
        }
        if (lines == 0) fputs("0\tNaN\n", data);
        fputs("\n\n", data);
    }
    print_settings(script, t, "accuracy by length", "mean over seeds, eight neighbouring lengths a point");
    print_setting(script, "metric", "test token accuracy");
    fprintf(script, "chance = %.9g\ntrained = %lld\n", run_chance(t->rows[0].run),
            (long long)t->rows[0].run->len_train);
}

/* --- kinds -------------------------------------------------------------------------------------------------------- */

static bool always(const struct report_table *t) {
    (void)t;
    return true;
}

static const struct plot_kind {
    const char *name;
    void (*print)(FILE *script, FILE *data, const struct report_table *t);
    bool (*applies)(const struct report_table *t);
} kinds[] = {
    {"accuracy", print_accuracy, always}, {"table", print_bars, always}, {"length", print_lengths, has_lengths}};

#define N_KINDS (sizeof kinds / sizeof kinds[0])

/* --- running gnuplot ---------------------------------------------------------------------------------------------- */

/* Runs it in `folder`, what it says going to the file `log`; returns its exit code, or -1. */
static int run_gnuplot(const char *folder, const char *script, const char *log) {
    pid_t child = fork();
    if (child == 0) {
        int fd = chdir(folder) == 0 ? open(log, O_CREAT | O_WRONLY | O_TRUNC, 0666) : -1;
        char *const arguments[] = {"gnuplot", "-d", (char *)script, NULL}; /* -d: no settings of the user's */
        if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0) _exit(1);
        execvp("gnuplot", arguments);
        _exit(errno == ENOENT ? GNUPLOT_MISSING : 126);
    }
    int state;
    while (child > 0 && waitpid(child, &state, 0) < 0)
        if (errno != EINTR) return -1;
    return child > 0 && WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

/* The last line of what gnuplot said. */
static void last_words(const char *path, char *text, size_t size) {
    char *bytes;
    size_t n;
    snprintf(text, size, "no reason given");
    if (file_read(path, 1 << 20, &bytes, &n, NULL) != ST_OK) return;
    while (n > 0 && isspace((unsigned char)bytes[n - 1])) bytes[--n] = 0;
    char *line = strrchr(bytes, '\n');
    if (n > 0) snprintf(text, size, "%s", line ? line + 1 : bytes);
    free(bytes);
}

/* The k-th way to name a table's files: the task's name, with its options, its profile, or both. */
static void name_files(const struct report_table *t, int k, char *stem, size_t size) {
    struct label label;
    bool whole = k & 2 || label_parse(&label, "task", t->task, NULL) != ST_OK;
    snprintf(stem, size, "%.150s%s%s", whole ? t->task : label_name(&label), k & 1 ? "-" : "", k & 1 ? t->profile : "");
    for (char *p = stem; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("._=,+", *p)) *p = '-';
    if (*stem == '.') *stem = '-';
}

/* The shortest of these names that no other table has. */
static void make_stem(const struct report_tables *tables, int i, const char *kind, char *stem, size_t size) {
    bool alone = false;
    char other[256];
    for (int k = 0; k < 4 && !alone; k++) {
        alone = true;
        name_files(&tables->list[i], k, stem, size);
        for (int j = 0; j < tables->n; j++) {
            name_files(&tables->list[j], k, other, sizeof other);
            alone = alone && (i == j || strcmp(stem, other) != 0);
        }
    }
    size_t used = strlen(stem);
    snprintf(stem + used, size - used, "-%s", kind);
}

/* The files of one plot while it is made, all in OUT. gnuplot runs there and sees their last part only. */
struct drawing {
    char data[PATH_BYTES], script[PATH_BYTES], log[PATH_BYTES + 8], svg[PATH_BYTES + 8], png[PATH_BYTES + 8];
};

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static enum status write_script(struct drawing *d, const char *out, const char *kind, const char *settings,
                                struct error *e) {
    char shipped[PATH_BYTES], name[64], target[PATH_BYTES], *body, *text = NULL;
    size_t size;
    snprintf(name, sizeof name, "plots/%s.gp", kind);
    TRY(shipped_file_find(name, shipped, sizeof shipped, e));
    TRY(file_read(shipped, 1 << 20, &body, &size, e));
    FILE *f = open_memstream(&text, &size);
    if (f) {
        print_setting(f, "data", base_name(d->data));
        print_setting(f, "svg", base_name(d->svg));
        print_setting(f, "png", base_name(d->png));
        fprintf(f, "%s%s", settings, body);
        fclose(f);
    }
    free(body);
    enum status status = path_format(target, sizeof target, e, "%s/script.gp", out);
    if (status == ST_OK && !f) status = fail(e, ST_MEMORY, "no memory to plot");
    if (status == ST_OK) status = temporary_write(target, text, size, d->script, e);
    free(text);
    return status;
}

static enum status finish(const struct drawing *d, const char *out, const char *stem, struct error *e) {
    char path[PATH_BYTES];
    for (int i = 0; i < 2; i++) {
        TRY(path_format(path, sizeof path, e, "%s/%s.%s", out, stem, i ? "png" : "svg"));
        if (rename(i ? d->png : d->svg, path) != 0)
            return fail(e, ST_FAIL, "cannot write %s: %s", path, strerror(errno));
    }
    return ST_OK;
}

static enum status draw(struct drawing *d, const char *out, const char *stem, const char *kind, const char *settings,
                        struct error *e) {
    TRY(write_script(d, out, kind, settings, e));
    char reason[512];
    int code = run_gnuplot(out, base_name(d->script), base_name(d->log));
    if (code == GNUPLOT_MISSING)
        return fail(e, ST_FAIL,
                    "plots need gnuplot, which is not installed: run ./bootstrap.sh, or apt-get install gnuplot-nox");
    last_words(d->log, reason, sizeof reason);
    if (code != 0) return fail(e, ST_FAIL, "gnuplot could not draw %s/%s (exit %d): %s", out, stem, code, reason);
    return finish(d, out, stem, e);
}

/* Writes the data file, draws, and leaves nothing but the plots. */
static enum status plot_streams(const char *out, const char *stem, const char *kind, const char *settings,
                                const char *numbers, struct error *e) {
    struct drawing d;
    char target[PATH_BYTES];
    d.script[0] = 0;
    TRY(path_format(target, sizeof target, e, "%s/data.tsv", out));
    TRY(temporary_write(target, numbers, strlen(numbers), d.data, e));
    snprintf(d.log, sizeof d.log, "%s.log", d.data);
    snprintf(d.svg, sizeof d.svg, "%s.svg", d.data);
    snprintf(d.png, sizeof d.png, "%s.png", d.data);
    enum status status = draw(&d, out, stem, kind, settings, e);
    const char *const made[] = {d.data, d.script, d.log, d.svg, d.png};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        if (made[i][0]) unlink(made[i]);
    return status;
}

static enum status plot_one(const struct report_tables *tables, int i, const struct plot_kind *kind, const char *out,
                            struct error *e) {
    char stem[256], *settings = NULL, *numbers = NULL;
    size_t settings_size, numbers_size;
    make_stem(tables, i, kind->name, stem, sizeof stem);
    FILE *script = open_memstream(&settings, &settings_size), *data = open_memstream(&numbers, &numbers_size);
    if (script && data) kind->print(script, data, &tables->list[i]);
    bool whole = script && data;
    if (script) whole = fclose(script) == 0 && whole;
    if (data) whole = fclose(data) == 0 && whole;
    enum status status =
        whole ? plot_streams(out, stem, kind->name, settings, numbers, e) : fail(e, ST_MEMORY, "no memory to plot");
    free(settings);
    free(numbers);
    return status;
}

enum status report_plot(const struct record_set *set, const struct report_filter *filter, const char *kind,
                        const char *out, const char *to, struct error *e) {
    struct report_tables tables;
    bool known = !kind;
    for (size_t k = 0; k < N_KINDS; k++) known = known || strcmp(kind, kinds[k].name) == 0;
    if (!known) return fail(e, ST_USAGE, "unknown plot '%s'; there are: %s", kind, plot_kinds);
    TRY(make_folder(to, e));
    TRY(report_tables_make(&tables, set, filter, out, e));
    enum status status = ST_OK;
    int drawn = 0;
    for (int i = 0; i < tables.n && status == ST_OK; i++)
        for (size_t k = 0; k < N_KINDS && status == ST_OK; k++) {
            if ((kind && strcmp(kind, kinds[k].name) != 0) || !kinds[k].applies(&tables.list[i])) continue;
            status = plot_one(&tables, i, &kinds[k], to, e);
            drawn++;
        }
    if (status == ST_OK && tables.n > 0 && drawn == 0)
        status = fail(e, ST_USAGE, "no run here was tested at several lengths, so there is no plot by length");
    report_tables_free(&tables);
    return status;
}

/* site_task.c - the data file of a task: what it is with one example, the papers' numbers, each row with its settings,
 * curves and accuracy by length, all runs, and rows paired seed by seed. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/batch.h"
#include "harness/plot/picture.h"
#include "harness/rows/facts.h"
#include "harness/rows/test_lengths.h"
#include "harness/run/rerun.h"
#include "harness/site/script.h"
#include "harness/site/site_parts.h"
#include "harness/study/profile.h"
#include "harness/study/row_key.h"
#include "harness/sheet/sheet.h"
#include "tasks/task.h"

#define CURVE_POINTS  48 /* of a curve, at most */
#define EXAMPLE_SHOWN 128
#define PICTURED      8 /* examples of images */

/* --- the task ----------------------------------------------------------------------------------------------------- */

/* Fills test example number i; its targets arrive as not scored. */
static void fill(const struct task_choice *choice, int64_t i, struct example *x) {
    for (int64_t t = 0; t < task_targets(&choice->shape, SPLIT_TEST); t++) x->targets[t] = IGNORED;
    x->length = (int32_t)task_length(&choice->shape, SPLIT_TEST);
    task_fill(choice, SPLIT_TEST, i, x);
}

/* Draws some test images to DIR/data/STEM.png; false: the examples are none. */
static bool draw_images(struct site *site, const struct task_choice *choice, struct example *x, const char *stem) {
    struct picture p;
    char path[PATH_BYTES];
    struct stat file;
    bool drawn = choice->shape.examples[SPLIT_TEST] >= PICTURED &&
                 picture_make(&p, &choice->shape, SPLIT_TEST, PICTURED, NULL) == ST_OK;
    if (!drawn) return false;
    for (int i = 0; i < PICTURED; i++) {
        fill(choice, i, x);
        picture_add(&p, i, x);
    }
    drawn = path_format(path, sizeof path, NULL, "%s/data/%s.png", site->dir, stem) == ST_OK &&
            picture_write(&p, path, NULL) == ST_OK && stat(path, &file) == 0;
    if (drawn) site->bytes += (double)file.st_size;
    site->files += drawn;
    picture_free(&p);
    return drawn;
}

static void put_example(FILE *f, struct site *site, const struct task_choice *choice, struct arena *host,
                        const char *stem) {
    const struct task_shape *s = &choice->shape;
    int64_t targets = task_targets(s, SPLIT_TEST), inputs = task_inputs(s, SPLIT_TEST);
    struct example x = {.targets = arena_alloc(host, (size_t)targets * sizeof *x.targets)};
    if (s->vocab_in)
        x.tokens = arena_alloc(host, (size_t)inputs * sizeof *x.tokens);
    else
        x.values = arena_alloc(host, (size_t)inputs * sizeof *x.values);
    if (s->links.edges) x.links = arena_alloc(host, (size_t)links_words(s->links) * sizeof *x.links);
    if (!x.targets || (!x.tokens && !x.values) || s->examples[SPLIT_TEST] < 1) return;
    if (draw_images(site, choice, &x, stem)) {
        put_int(f, "pictures", PICTURED);
        return;
    }
    fill(choice, 0, &x);
    int64_t used = x.length * (s->vocab_in ? 1 : s->channels);
    put_open(f, "input", '[');
    for (int64_t i = 0; i < used && i < EXAMPLE_SHOWN; i++)
        if (s->vocab_in)
            put_int(f, NULL, x.tokens[i]);
        else
            put_real(f, NULL, (double)x.values[i]);
    put_close(f, ']');
    put_open(f, "target", '[');
    for (int64_t i = 0; i < targets && i < EXAMPLE_SHOWN; i++)
        put_real(f, NULL, x.targets[i] == IGNORED ? (double)NAN : x.targets[i]); /* null: not scored */
    put_close(f, ']');
}

/* Describes the task; of one that this program does not have, or whose data are missing, nothing or a part. */
static void put_task(FILE *f, struct site *site, const char *label, const char *stem) {
    struct arena host = {0};
    struct task_choice *choice = calloc(1, sizeof *choice);
    if (choice && task_parse(choice, label, NULL) == ST_OK) {
        const struct task_shape *s = &choice->shape;
        put_text(f, "summary", choice->task->summary);
        for (const struct task_alias *a = choice->task->aliases; a && a->name; a++)
            if (strlen(a->name) == strcspn(label, ":") && !strncmp(a->name, label, strlen(a->name)))
                put_text(f, "alias", a->summary);
        if (choice->task->about) put_text(f, "about", choice->task->about);
        if (arena_reserve(&host, TASK_TABLE_BYTES, NULL) == ST_OK && task_open(choice, 1, &host, NULL) == ST_OK) {
            put_int(f, "T", s->T);
            put_int(f, "T_test", task_length(s, SPLIT_TEST));
            put_int(f, "vocab", s->vocab_in);
            put_int(f, "labels", s->vocab_out);
            put_int(f, "per_sequence", s->per_sequence);
            put_real(f, "floor", s->floor);
            put_real(f, "solved_at", s->solved);
            put_example(f, site, choice, &host, stem);
        }
    }
    arena_free(&host);
    free(choice);
}

/* The papers' numbers of the task, as results/published.csv has them. */
static void put_published(FILE *f, const struct csv_table *t, const char *task) {
    static const char *const columns[] = {"paper", "arxiv",  "table", "row",     "metric",
                                          "value", "spread", "n",     "protocol"};
    put_open(f, "published", '[');
    for (int row = 0; row < t->rows; row++) {
        const char *name = csv_text_plain(csv_cell(t, row, "task"));
        size_t n = strlen(name);
        if (strncmp(name, task, n) != 0 || (task[n] && task[n] != ':')) continue;
        put_open(f, NULL, '[');
        for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
            put_text(f, NULL, csv_text_plain(csv_cell(t, row, columns[c])));
        put_close(f, ']');
    }
    put_close(f, ']');
}

/* --- settings ----------------------------------------------------------------------------------------------------- */

static bool is_word_of(const char *list, const char *word) {
    size_t n = strlen(word);
    for (const char *at = list; n && (at = strstr(at, word)); at += n)
        if ((at == list || strchr(" ,", at[-1])) && strchr(" ,", at[n])) return true; /* or at the end */
    return false;
}

/* The profile that a row's settings are compared with: its run's own, else the task's paper or quick. */
static const struct profile *profile_beside(const struct report_row *row) {
    const struct run *run = row->run;
    int own = 0;
    while (&row->all[own]->run != run) own++;
    const char *const names[] = {record_profile(row->all[own]), "paper", "quick"};
    char task[RECORD_TEXT];
    const struct profile *p;
    snprintf(task, sizeof task, "%.*s", (int)strcspn(run->task, ":"), run->task);
    for (int i = 0; i < 3; i++)
        if (profile_find(task, run->suite, names[i], &p, NULL) == ST_OK) return p;
    return NULL;
}

/* Whether a setting is neither what the profile says nor, where it says nothing, the flag's default. What follows from
 * the sizes, and the options of task and model, which stand in the row's name, are not told. */
static bool is_unlike_profile(const struct profile *p, const char *key, const char *value) {
    const struct option *o = row_key_flag(key);
    const char *said = p ? profile_get(p, key) : "";
    char usual[OPTION_TEXT + 1];
    if (!o || (!*said && o->flags & OPT_AUTO)) return false;
    const struct option alone[] = {*o, {0}};
    if (option_canonical(alone, "", key, o->value, usual, sizeof usual, NULL) != ST_OK) return false;
    return *said ? !is_word_of(said, value) : strcmp(value, usual) != 0;
}

/* Settings of the row that not all rows of the task share, and the keys of those that are unlike its profile's. */
static void put_settings(FILE *f, const struct report_row *row, const struct label *same) {
    const struct profile *p = profile_beside(row);
    put_open(f, "own", '{');
    for (int i = 0; i < row->key.n; i++)
        if (!label_get(same, label_key(&row->key, i))) put_text(f, label_key(&row->key, i), label_value(&row->key, i));
    put_close(f, '}');
    put_text(f, "beside", p ? p->name : "");
    put_open(f, "unlike_profile", '[');
    for (int i = 0; i < row->key.n; i++)
        if (is_unlike_profile(p, label_key(&row->key, i), label_value(&row->key, i)))
            put_text(f, NULL, label_key(&row->key, i));
    put_close(f, ']');
}

/* --- curves ------------------------------------------------------------------------------------------------------- */

/* The validation metric when `step` steps were done, as `lrnn plot` draws it: a run that ended keeps its last value, a
 * failed one counts as chance after its last evaluation. NAN before the first. */
static double value_at(const struct run_record *r, int64_t step) {
    double value = NAN;
    int64_t last = -1;
    for (int64_t i = 0; i < r->n_curve; i++) {
        double own = run_point_metric(&r->run, &r->curve[i]);
        if (r->curve[i].split != SPLIT_VAL || !isfinite(own)) continue;
        last = r->curve[i].step;
        if (last <= step) value = own;
    }
    return run_failed(&r->run) && step > last ? run_chance(&r->run) : value;
}

/* Mean, least and largest value over the chosen rate's seeds, at the steps at which the longest of them was evaluated,
 * up to where the first was cut off. */
static void put_band(FILE *f, const struct report_row *row) {
    const struct run_record *longest = row->chosen[0];
    int64_t end = INT64_MAX, points = 0, seen = 0;
    for (int i = 0; i < row->n; i++) {
        const struct run *run = &row->chosen[i]->run;
        if (run->steps > longest->run.steps) longest = row->chosen[i];
        if (run_cut_off(run) && run->steps < end) end = run->steps;
    }
    for (int64_t i = 0; i < longest->n_curve; i++) points += longest->curve[i].split == SPLIT_VAL;
    int64_t every = points / CURVE_POINTS + 1;
    put_open(f, "band", '[');
    for (int64_t k = 0; k < longest->n_curve && longest->curve[k].step <= end; k++) {
        if (longest->curve[k].split != SPLIT_VAL || (++seen % every && seen < points)) continue;
        double sum = 0, low = INFINITY, high = -INFINITY;
        for (int i = 0; i < row->n; i++) {
            double value = value_at(row->chosen[i], longest->curve[k].step);
            sum += value;
            low = fmin(low, value);
            high = fmax(high, value);
        }
        if (!isfinite(sum)) continue;
        fprintf(f, "[%" PRId64 ",%.4g,%.4g,%.4g],", longest->curve[k].step, sum / row->n, low, high);
    }
    put_close(f, ']');
}

/* Points [step, metric, loss] of a split, as many as a figure shows. */
static void put_curve(FILE *f, const char *key, const struct run_record *r, enum split split) {
    int64_t points = 0, seen = 0;
    for (int64_t i = 0; i < r->n_curve; i++) points += r->curve[i].split == (int64_t)split;
    int64_t every = points / CURVE_POINTS + 1;
    put_open(f, key, '[');
    for (int64_t i = 0; i < r->n_curve; i++) {
        const struct curve_point *p = &r->curve[i];
        double metric = run_point_metric(&r->run, p);
        if (p->split != (int64_t)split || (++seen % every && seen < points)) continue;
        fprintf(f, "[%" PRId64, p->step);
        fprintf(f, isfinite(metric) ? ",%.4g" : ",null", metric);
        fprintf(f, isfinite(p->loss) ? ",%.4g]," : ",null],", p->loss);
    }
    put_close(f, ']');
}

/* Points [first, last, accuracy, sequences, low, high] of the row's accuracy by length or by position. */
static void put_lengths(FILE *f, const struct length_bins *b, const struct report_row *row) {
    if (!b->n) return;
    put_open(f, b->by, '[');
    for (int i = 0; i < b->n; i++) {
        struct lengths_mean mean = lengths_mean(row, b->by, b->first[i], b->last[i]);
        if (!isfinite(mean.value)) continue;
        put_open(f, NULL, '[');
        put_int(f, NULL, b->first[i]);
        put_int(f, NULL, b->last[i]);
        put_real(f, NULL, mean.value);
        put_int(f, NULL, mean.n_measured);
        put_real(f, NULL, mean.interval.low);
        put_real(f, NULL, mean.interval.high);
        put_close(f, ']');
    }
    put_close(f, ']');
}

/* --- runs --------------------------------------------------------------------------------------------------------- */

/* The records, a list a column; a hole stands for the value before it. */
static void put_runs(FILE *f, const struct run_record *const *runs, int n) {
    put_open(f, "runs", '{');
    for (const struct field *field = runs_table.fields; field->name; field++) {
        char number[64];
        put_open(f, field->name, '[');
        for (int i = 0; i < n; i++) {
            const char *text = field_text(field, &runs[i]->run, number, sizeof number);
            if (i && field_equal(field, &runs[i - 1]->run, &runs[i]->run))
                fputc(',', f);
            else if (!text)
                fputs("null,", f);
            else if (field->type == FIELD_INT)
                fprintf(f, "%s,", text);
            else if (field->type == FIELD_REAL)
                put_real(f, NULL, strtod(text, NULL));
            else
                put_text(f, NULL, text);
        }
        put_close(f, ']');
    }
    put_close(f, '}');
    put_open(f, "curves", '[');
    for (int i = 0; i < n; i++) {
        put_open(f, NULL, '{');
        put_curve(f, "val", runs[i], SPLIT_VAL);
        put_curve(f, "train", runs[i], SPLIT_TRAIN);
        if (runs[i]->set_aside) put_int(f, "set_aside", 1);
        put_close(f, '}');
    }
    put_close(f, ']');
}

/* --- pairs -------------------------------------------------------------------------------------------------------- */

/* Adds the pairs of rows i and k: their number, the mean difference and its interval. */
static void put_pair(FILE *f, const struct report_row *rows, int i, int k) {
    const struct report_row *const both[2] = {&rows[i], &rows[k]};
    double *difference = malloc((size_t)rows[i].n * sizeof *difference);
    int n = 0;
    for (int at[2] = {-1, -1}; difference && row_pair_next(both, at);)
        difference[n++] = rows[i].value[at[0]] - rows[k].value[at[1]];
    if (n > 1) {
        struct interval interval = stats_t_interval(difference, n, REPORT_LEVEL);
        fprintf(f, "[%d,%d,%d,%.5g,%.5g,%.5g],", i, k, n, stats_mean(difference, n), interval.low, interval.high);
    }
    free(difference);
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

/* Settings that all rows of the task share. */
static void find_same(const struct task_rows *task, struct label *same) {
    *same = task->rows[0].key;
    for (int k = 1; k < task->n; k++)
        for (int i = same->n - 1; i >= 0; i--) {
            const char *own = label_get(&task->rows[k].key, label_key(same, i));
            if (!own || strcmp(own, label_value(same, i)) != 0) label_remove(same, label_key(same, i));
        }
}

/* Writes a row. bins: those of its table, by length and by position. */
static void put_row(FILE *f, const struct length_bins bins[2], const struct report_row *row, const struct label *same,
                    int first_run) {
    char command[8192];
    struct error why;
    put_open(f, NULL, '{');
    put_int(f, "first", first_run);
    put_int(f, "all", row->n_all);
    put_int(f, "chosen", first_run + (int)(row->chosen - row->all));
    put_settings(f, row, same);
    bool can = rerun_command(row->all[0], command, sizeof command, &why) == ST_OK;
    put_text(f, can ? "command" : "no_command", can ? command : why.text);
    put_text(f, "unlike", row->unlike);
    put_band(f, row);
    for (int i = 0; i < 2; i++) put_lengths(f, &bins[i], row);
    put_close(f, '}');
}

/* The sentences below a table of all rows: what they share, how their runs were made, whose numbers the paper's are. */
static void put_facts(FILE *f, const struct site *site, const struct task_rows *task) {
    struct facts facts = {0};
    char text[FACT_TEXT];
    for (int k = 0; k < task->n; k++) facts_add(&facts, &task->rows[k]);
    put_open(f, "facts", '[');
    for (int i = 0; facts_sentence(&facts, i, text); i++) put_text(f, NULL, text);
    if (site->tables.published.own) put_text(f, NULL, OWN_NUMBERS_NOTE);
    put_close(f, ']');
}

static void put_all(FILE *f, struct site *site, const struct task_rows *task, const char *stem,
                    const struct run_record **runs, struct label *same) {
    int n = 0;
    struct length_bins bins[2];
    const struct report_table *t = task->tables;
    find_same(task, same);
    put_task(f, site, t->task, stem);
    put_published(f, &site->tables.published.table, t->task);
    put_pairs(f, "same", same);
    put_facts(f, site, task);
    put_open(f, "rows", '[');
    for (int k = 0; k < task->n; k++) {
        const struct report_row *row = &task->rows[k];
        if (row == t->rows + t->n_rows) t++;
        if (row == t->rows)
            for (int i = 0; i < 2; i++) bins[i] = length_bins_of(t, i ? EVAL_BY_POSITION : EVAL_BY_LENGTH, false);
        put_row(f, bins, row, same, n);
        for (int i = 0; i < row->n_all; i++) runs[n++] = row->all[i];
    }
    put_close(f, ']');
    put_runs(f, runs, n);
    put_open(f, "pairs", '[');
    for (int i = 0; i < task->n; i++)
        for (int k = 0; k < i; k++) put_pair(f, task->rows, i, k);
    put_close(f, ']');
}

enum status site_write_task(struct site *site, const struct task_rows *task, struct error *e) {
    struct printed data;
    char stem[STEM_BYTES], name[STEM_BYTES + 8];
    struct label *same = calloc(1, sizeof *same);
    const struct run_record **runs = calloc((size_t)task->n_runs, sizeof *runs);
    task_stem(task->tables->task, stem);
    snprintf(name, sizeof name, "task-%s", stem);
    enum status status = same && runs ? script_begin(&data, name, e) : fail(e, ST_MEMORY, "no memory for a page");
    if (status == ST_OK) {
        put_all(data.f, site, task, stem, runs, same);
        status = script_write(site, &data, name, e);
    }
    free(runs);
    free(same);
    return status;
}

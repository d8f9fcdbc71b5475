/* check_report.c - tables and plots of fixture records whose numbers were worked out by hand. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/batch.h"
#include "core/option.h"
#include "harness/report/plot.h"
#include "harness/report/published.h"
#include "harness/report/report.h"
#include "harness/report/summary.h"
#include "harness/store/csv.h"
#include "harness/store/files.h"
#include "harness/store/perf_log.h"
#include "harness/store/record_files.h"
#include "harness/store/schema.h"
#include "tests/lib/scratch.h"
#include "tests/testing.h"

#define MOST 64

static char out[SCRATCH_BYTES];
static struct error problem;
static struct run_record records[MOST];
static struct curve_point curves[MOST][3];
static struct record_set set;

static void ck_ok(enum status status) {
    ck_assert_msg(status == ST_OK, "status %d: %s", status, problem.text);
}

static void open_fixture(void) {
    scratch_make(out);
    set = (struct record_set){.list = records};
}

static void close_fixture(void) {
    scratch_remove(out);
}

/* One finished run of task s5 (120 symbols); the tests change what they are about. Its curve ends in its val_acc. */
static struct run *add_run(const char *layers, double lr, uint64_t seed, double val, double test) {
    struct run_record *r = &records[set.n];
    struct run *run = &r->run;
    char text[RECORD_TEXT + 64];
    record_init(r);
    snprintf(text, sizeof text, "%s %g", layers, lr);
    record_hash(text, run->cell_id);
    snprintf(text, sizeof text, "%s %g %d", layers, lr, (int)seed);
    record_hash(text, run->run_id);
    strcpy(run->task, "s5");
    strcpy(run->profile, "quick");
    strcpy(run->metric, "acc");
    strcpy(run->mlp, "swiglu");
    snprintf(run->layers, sizeof run->layers, "%s", layers);
    snprintf(run->model, sizeof run->model, "%.*s", (int)strcspn(layers, ":;"), layers);
    run->lr = lr;
    run->seed = seed;
    run->status = RUN_OK;
    run->vocab = 120;
    run->n_train = 100000;
    run->len_train = run->len_test = 16;
    run->d_model = run->batch = 128;
    run->n_layers = 1;
    run->params = 123456;
    run->state_floats = 320;
    run->val_acc = val;
    run->val_loss = 1 - val;
    run->test_acc = test;
    run->test_seq_acc = test / 2;
    run->solved = test >= 0.99;
    r->curve = curves[set.n];
    r->n_curve = 3;
    for (int i = 0; i < 3; i++)
        curves[set.n][i] = (struct curve_point){.step = 100 * (i + 1), .split = SPLIT_VAL, .acc = val * (i + 1) / 3};
    set.n++;
    return run;
}

/* As a run that ended badly is recorded. */
static void spoil(struct run *run, enum run_status status, const char *detail) {
    run->status = status;
    strcpy(run->status_detail, detail);
    run->val_acc = run->val_loss = run->test_acc = run->test_seq_acc = NAN;
    run->solved = 0;
}

/* Two rates, three seeds: validation prefers 0.001, the test split would have preferred 0.003. */
static void add_grid(void) {
    static const double val[] = {0.9, 0.9, 0.9, 0.8, 0.8, 0.99}, test[] = {0.5, 0.6, 0.7, 0.9, 0.95, 1.0};
    for (int i = 0; i < 6; i++)
        add_run("bdlru:m=5,blocks=64;swiglu", i < 3 ? 1e-3 : 3e-3, (uint64_t)(i % 3), val[i], test[i]);
}

/* Not inlined: gcc 12 takes a pointer into the stream's text for one to the variable that holds it. */
__attribute__((noinline)) static char *render(const struct sheet_format *format, const struct report_filter *filter) {
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    ck_ok(report_print(&report_tables, &set, filter, format, out, f, &problem));
    fclose(f);
    return text;
}

static void ck_holds(const char *text, const char *part) {
    ck_assert_msg(strstr(text, part) != NULL, "\"%s\" is not in\n%s", part, text);
}

static struct report_row *only_row(struct report_tables *tables) {
    ck_ok(report_tables_make(tables, &set, NULL, out, &problem));
    ck_assert_int_eq(tables->n, 1);
    ck_assert_int_eq(tables->list[0].n_rows, 1);
    return tables->list[0].rows;
}

/* --- numbers -------------------------------------------------------------------------------------------------------- */

START_TEST(the_rate_is_chosen_by_validation_not_by_test) {
    struct report_tables tables;
    add_grid();
    const struct report_row *row = only_row(&tables);
    ck_assert_double_eq(row->lr, 1e-3);
    ck_assert_int_eq(row->n, 3);
    ck_assert_int_eq(row->n_all, 6);
    ck_assert_int_eq(row->n_rates, 2);
    ck_assert_double_eq_tol(row->mean, 0.6, 1e-12);
    ck_assert_double_eq_tol(row->median, 0.6, 1e-12);
    ck_assert_double_eq_tol(row->seq_acc, 0.3, 1e-12);
    ck_assert_int_eq(row->interval.kind, INTERVAL_NONE); /* fewer than 5 seeds */
    ck_assert_int_eq(row->solved, 0);
    report_tables_free(&tables);
}
END_TEST

START_TEST(best_of_grid_is_the_largest_test_value_and_the_difference_is_taken_from_it) {
    struct report_tables tables;
    add_grid();
    records[5].run.test_acc = 0.97; /* the largest of all six, at the rate that was not chosen */
    const struct report_row *row = only_row(&tables);
    ck_assert_double_eq(row->best, 0.97);
    ck_assert_double_eq(row->published, 1.0); /* results/published.csv: bdlru m=5 on s5 */
    ck_assert_double_eq_tol(row->delta, -0.03, 1e-12);
    report_tables_free(&tables);
}
END_TEST

START_TEST(equal_validation_accuracies_are_settled_by_validation_loss) {
    struct report_tables tables;
    add_run("bdlru:m=5;swiglu", 1e-3, 0, 1.0, 0.2)->val_loss = 0.02;
    add_run("bdlru:m=5;swiglu", 3e-3, 0, 1.0, 0.3)->val_loss = 0.01;
    add_run("bdlru:m=5;swiglu", 1e-2, 0, 1.0, 0.4)->val_loss = 0.03;
    ck_assert_double_eq(only_row(&tables)->lr, 3e-3);
    report_tables_free(&tables);
}
END_TEST

START_TEST(a_failed_run_counts_as_chance) {
    struct report_tables tables;
    for (uint64_t seed = 0; seed < 5; seed++) add_run("hlru:m=2;swiglu", 1e-3, seed, 0.3, 0.3);
    spoil(&records[0].run, RUN_NAN, "layers.0.mixer.gates.weight");
    records[0].run.params = -1;
    const struct report_row *row = only_row(&tables);
    ck_assert_int_eq(row->n, 5);
    ck_assert_int_eq(row->n_failed, 1);
    ck_assert_double_eq_tol(row->mean, (4 * 0.3 + 1.0 / 120) / 5, 1e-12);
    ck_assert_double_eq_tol(row->seq_acc, 4 * 0.15 / 5, 1e-12); /* (1/120)^16 is nothing */
    ck_assert_double_eq(row->best, 0.3);
    ck_assert_int_eq(row->run->params, 123456); /* which a failed run may not have got to know */
    ck_assert_double_eq_tol(row->delta, 0.3 - 0.26, 1e-12);
    ck_assert_int_eq(row->interval.kind, INTERVAL_T);
    /* mean -+ t(.975, 4) sd / sqrt 5 = 0.2416667 -+ 2.7764451 * 0.1304373 / 2.2360680 */
    ck_assert_double_eq_tol(row->interval.low, 0.2416667 - 0.1619593, 1e-6);
    ck_assert_double_eq_tol(row->interval.high, 0.2416667 + 0.1619593, 1e-6);
    report_tables_free(&tables);
}
END_TEST

START_TEST(a_rate_at_which_runs_fail_is_not_chosen_for_the_seed_that_survived) {
    struct report_tables tables;
    for (uint64_t seed = 0; seed < 3; seed++) add_run("lru;swiglu", 1e-3, seed, 0.5, 0.5);
    for (uint64_t seed = 0; seed < 3; seed++) add_run("lru;swiglu", 1e-2, seed, 0.9, 0.9);
    spoil(&records[3].run, RUN_DIVERGED, "");
    spoil(&records[4].run, RUN_OOM, "");
    const struct report_row *row = only_row(&tables); /* (0.9 + 2/120) / 3 = 0.3056 < 0.5 */
    ck_assert_double_eq(row->lr, 1e-3);
    ck_assert_int_eq(row->n_failed, 0);
    ck_assert_int_eq(row->n_failed_all, 2);
    ck_assert_double_eq(row->best, 0.9);
    report_tables_free(&tables);
}
END_TEST

START_TEST(every_status_but_ok_is_a_failure_with_a_footnote) {
    static const char *const reason[] = {"a sum, of parts", "", "", "", "", "disk full"};
    for (int i = 0; i < 6; i++) {
        struct run *run = add_run("lstm;swiglu", 1e-3, (uint64_t)i, 0.9, 0.9);
        run->status = RUN_DIVERGED + i; /* its numbers stay, and must not be used */
        strcpy(run->status_detail, reason[i]);
    }
    add_run("lstm;swiglu", 1e-3, 6, NAN, NAN);
    char *text = render(&format_term, NULL);
    ck_holds(text, "[1] lstm, lr 0.001, seed 0: diverged (a sum, of parts); counted as chance, 0.0083");
    ck_holds(text, "[2] lstm, lr 0.001, seed 1: nan; counted");
    ck_holds(text, "[3] lstm, lr 0.001, seed 2: oom; counted");
    ck_holds(text, "[4] lstm, lr 0.001, seed 3: timeout; counted");
    ck_holds(text, "[5] lstm, lr 0.001, seed 4: killed; counted");
    ck_holds(text, "[6] lstm, lr 0.001, seed 5: error (disk full); counted");
    ck_holds(text, "[7] lstm, lr 0.001, seed 6: no test result; counted");
    ck_holds(text, "lstm [1-7]");
    ck_holds(text, "0.0083 (7)"); /* best of grid: chance too */
    free(text);
}
END_TEST

START_TEST(solved_runs_are_counted_at_the_chosen_rate_with_the_exact_interval) {
    struct report_tables tables;
    for (uint64_t seed = 0; seed < 5; seed++) add_run("lstm;swiglu", 1e-3, seed, 1.0, 1.0);
    const struct report_row *row = only_row(&tables);
    ck_assert_int_eq(row->solved, 5);
    ck_assert_double_eq_tol(row->solve_rate.low, 0.478176, 1e-5); /* 0.025^(1/5) */
    ck_assert_double_eq(row->solve_rate.high, 1.0);
    report_tables_free(&tables);
}
END_TEST

START_TEST(macro_accuracy_is_used_where_it_is_the_primary_metric) {
    struct report_tables tables;
    struct run *run = add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.25);
    strcpy(run->metric, "macro_acc");
    strcpy(run->task, "hlru-compress");
    run->test_macro_acc = 0.75;
    const struct report_row *row = only_row(&tables);
    ck_assert_double_eq(row->mean, 0.75);
    ck_assert_double_eq(row->published, 0.75); /* and not one of metric acc */
    report_tables_free(&tables);
}
END_TEST

/* --- rows ----------------------------------------------------------------------------------------------------------- */

START_TEST(rows_differ_in_anything_but_rate_and_seed) {
    struct report_tables tables;
    add_grid();
    add_run("bdlru:m=5,blocks=64;swiglu", 1e-3, 0, 0.1, 0.1)->batch = 64;
    add_run("bdlru:m=5,blocks=32;swiglu", 1e-3, 0, 0.2, 0.2);
    strcpy(add_run("lstm;swiglu", 1e-3, 0, 0.3, 0.3)->task, "s3");
    strcpy(add_run("lstm;swiglu", 1e-3, 0, 0.3, 0.3)->profile, "smoke");
    ck_ok(report_tables_make(&tables, &set, NULL, out, &problem));
    ck_assert_int_eq(tables.n, 3); /* s3 quick, s5 quick, s5 smoke */
    ck_assert_str_eq(tables.list[0].task, "s3");
    ck_assert_int_eq(tables.list[1].n_rows, 3);
    ck_assert_int_eq(tables.list[1].n_runs, 8);
    ck_assert_str_eq(tables.list[2].profile, "smoke");
    int with_batch = 0;
    for (int i = 0; i < 3; i++) with_batch += strstr(tables.list[1].rows[i].label, " batch=") != NULL;
    ck_assert_int_eq(with_batch, 2); /* the two of one label tell why they are two */
    report_tables_free(&tables);
}
END_TEST

START_TEST(the_filter_chooses_task_profile_and_cells_in_the_callers_order) {
    struct report_tables tables;
    const char *cells[3];
    add_run("bdlru:m=1;swiglu", 1e-3, 0, 0.1, 0.1);
    add_run("bdlru:m=2;swiglu", 1e-3, 0, 0.1, 0.1);
    add_run("lstm;swiglu", 1e-3, 0, 0.1, 0.1);
    strcpy(add_run("lru;swiglu", 1e-3, 0, 0.1, 0.1)->task, "s3");
    cells[0] = records[2].run.cell_id;
    cells[1] = records[0].run.cell_id;
    cells[2] = "not there";
    ck_ok(report_tables_make(&tables, &set, &(struct report_filter){"s5", "quick", cells, 3}, out, &problem));
    ck_assert_int_eq(tables.n, 1);
    ck_assert_int_eq(tables.list[0].n_rows, 2);
    ck_assert_str_eq(tables.list[0].rows[0].run->model, "lstm");
    ck_assert_str_eq(tables.list[0].rows[1].run->layers, "bdlru:m=1;swiglu");
    report_tables_free(&tables);
    ck_assert_int_eq(report_tables_make(&tables, &set, &(struct report_filter){.task = "s4"}, out, &problem), ST_DATA);
    ck_holds(problem.text, "s4");
}
END_TEST

START_TEST(labels_leave_out_defaults_but_never_m) {
    struct report_tables tables;
    add_run("lstm:hidden=77;swiglu", 1e-3, 0, 0.1, 0.1);
    add_run("bdlru:m=5,gate=softmax,selective=no;swiglu", 1e-3, 0, 0.1, 0.1);
    add_run("unheard-of:a=1,b=2;swiglu", 1e-3, 0, 0.1, 0.1);
    ck_ok(report_tables_make(&tables, &set, NULL, out, &problem));
    ck_assert_int_eq(tables.list[0].n_rows, 3);
    ck_assert_str_eq(tables.list[0].rows[2].label, "unheard-of:a=1,b=2"); /* not in the list of models: last */
    for (int i = 0; i < 2; i++)
        ck_assert_str_eq(tables.list[0].rows[i].label, strcmp(tables.list[0].rows[i].run->model, "lstm") == 0
                                                           ? "lstm:hidden=77"
                                                           : "bdlru:m=5,selective=no");
    report_tables_free(&tables);
}
END_TEST

START_TEST(speed_comes_from_perf_csv_alone) {
    struct perf_row perf = {.tok_per_s = 250000};
    add_grid();
    for (int i = 0; i < set.n; i++) records[i].run.tok_per_s = 1; /* while others shared the machine */
    char *text = render(&format_term, NULL);
    ck_assert_ptr_null(strstr(text, "250k"));
    ck_holds(text, "tok/s: measured alone");
    free(text);
    strcpy(perf.cell_id, records[4].run.cell_id); /* of the other rate: the speed is the same */
    ck_ok(perf_append(out, &perf, &problem));
    text = render(&format_term, NULL);
    ck_holds(text, "250k");
    free(text);
}
END_TEST

/* --- published numbers ---------------------------------------------------------------------------------------------- */

static double published_of(const struct published *p, const char *task, const char *metric, const char *layers) {
    struct run run = {0};
    strcpy(run.task, task);
    strcpy(run.metric, metric);
    strcpy(run.layers, layers);
    snprintf(run.model, sizeof run.model, "%.*s", (int)strcspn(layers, ":;"), layers);
    return published_value(p, &run);
}

START_TEST(published_numbers_are_found_by_mixer_and_m) {
    struct published p;
    ck_ok(published_read(&p, out, &problem));
    ck_assert_double_eq(published_of(&p, "s5", "acc", "bdlru:m=4,blocks=64,gate-init=5;swiglu"), 0.87);
    ck_assert_double_eq(published_of(&p, "s5", "acc", "bdlru:blocks=8,m=3;none"), 0.48);
    ck_assert_double_eq(published_of(&p, "s3-250", "acc", "bdlru:m=3"), 1);
    ck_assert_double_eq(published_of(&p, "s3", "acc", "hlru:m=5,layout=observer;swiglu"), 0.61);
    ck_assert_double_eq(published_of(&p, "s4-3k", "acc", "lstm;swiglu"), 0.37);
    ck_assert_double_eq(published_of(&p, "s4", "acc", "deltaproduct:heads=4,steps=4"), 1);
    ck_assert_double_eq(published_of(&p, "hlru-copy", "macro_acc", "hlru:m=2"), 0.855);
    ck_assert_double_eq(published_of(&p, "overall", "acc", "mamba2"), 0.35);
    ck_assert_double_nan(published_of(&p, "s5", "acc", "deltaproduct:steps=2"));
    ck_assert_double_nan(published_of(&p, "s5", "acc", "lru;swiglu"));
    ck_assert_double_nan(published_of(&p, "s5", "macro_acc", "lstm"));
    ck_assert_double_nan(published_of(&p, "a5", "acc", "lstm"));
    ck_assert_double_nan(published_of(&p, "s5", "acc", "bdlru:m=50")); /* not the row of m=5 */
    published_free(&p);
}
END_TEST

/* Every mean the paper prints is that of its row, up to its rounding (it cuts off some, so a whole unit of the third
 * digit). This is what fixes the one cell that the text copy of the paper lacks. */
START_TEST(a_default_matches_whether_it_is_written_or_not) {
    static const char text[] = "task,model,metric,value\n"
                               "s5,slice:structure=block,acc,0.25\n"
                               "s5,bdlru:blocks=64,acc,0.5\n"
                               "s5,bdlru:gate-init=5e0,acc,0.75\n"
                               "s5,gone:depth=2,acc,0.125\n";
    static const struct {
        const char *layers;
        double value; /* NAN: none */
    } cases[] = {
        {"slice;swiglu", 0.25},
        {"slice:block=8;none", 0.25},
        {"slice:structure=block,block=4", 0.25},
        {"slice:structure=dense", NAN},
        {"bdlru:m=5", 0.5},
        {"bdlru:m=5,gate=softmax", 0.5},
        {"bdlru:blocks=8,m=5", NAN},
        {"gone:depth=2;none", 0.125},
        {"bdlru:m=2,blocks=8,gate-init=5", 0.75},
        {"gone;none", NAN},
        {"gone:depth=3;none", NAN},
        {"bdlru:blocks=64,lost=1", 0.5},
    };
    char path[128];
    struct published p;
    snprintf(path, sizeof path, "%s/published.csv", out);
    spill(path, text, sizeof text - 1);
    ck_ok(published_read(&p, out, &problem));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double value = published_of(&p, "s5", "acc", cases[i].layers);
        ck_assert_msg(value == cases[i].value || (isnan(value) && isnan(cases[i].value)), "%s: %g, expected %g",
                      cases[i].layers, value, cases[i].value);
    }
    published_free(&p);
}
END_TEST

START_TEST(published_means_are_those_of_their_rows) {
    struct published p;
    ck_ok(published_read(&p, out, &problem));
    ck_assert_int_eq(p.table.columns, 14);
    ck_assert_int_eq(p.table.rows, 14 * (6 + 4) + 10 + 10 + 11); /* SLiCE: two figures; ListOps of Myosotis */
    int means = 0;
    for (int i = 0; i < p.table.rows; i++) {
        const char *task = csv_cell(&p.table, i, "task"), *row = csv_cell(&p.table, i, "row"),
                   *in = csv_cell(&p.table, i, "table");
        double value, sum = 0, mean;
        int n = 0;
        ck_assert(parse_double(csv_cell(&p.table, i, "value"), &mean));
        ck_assert(mean >= 0 && mean <= 1);
        if (!strstr(task, "overall")) continue;
        for (int k = 0; k < p.table.rows; k++)
            if (strcmp(csv_cell(&p.table, k, "row"), row) == 0 && strcmp(csv_cell(&p.table, k, "table"), in) == 0 &&
                !strstr(csv_cell(&p.table, k, "task"), "overall")) {
                ck_assert(parse_double(csv_cell(&p.table, k, "value"), &value));
                sum += value;
                n++;
            }
        ck_assert_int_eq(n, strcmp(task, "overall") == 0 ? 5 : 3);
        ck_assert_msg(fabs(sum / n - mean) <= 0.0010001, "%s, %s: %g, mean of its row %g", row, task, mean, sum / n);
        means++;
    }
    ck_assert_int_eq(means, 28);
    published_free(&p);
}
END_TEST

START_TEST(an_output_folders_own_published_csv_comes_first) {
    static const char text[] = "task,model,metric,value\ns5,lstm,acc,0.125\n";
    struct report_tables tables;
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/published.csv", out);
    ck_ok(write_file_atomic(path, text, strlen(text), &problem));
    add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5);
    ck_assert_double_eq(only_row(&tables)->delta, 0.375);
    report_tables_free(&tables);
}
END_TEST

/* --- formats -------------------------------------------------------------------------------------------------------- */

START_TEST(the_terminal_table_is_aligned_and_fits) {
    add_grid();
    for (int m = 1; m <= 5; m++) {
        char layers[64];
        snprintf(layers, sizeof layers, "hlru:m=%d,channels=100;swiglu", m);
        for (uint64_t seed = 0; seed < 5; seed++)
            add_run(layers, 1e-3, seed, 0.2 + 0.01 * m, 0.25 + 0.001 * (double)seed);
    }
    char *text = render(&format_term, NULL), *line = strstr(text, "model "), *end;
    ck_holds(text, "s5, profile quick: 6 models, 31 runs, 100000 training sequences of length 16");
    ck_holds(text, "123k"); /* parameters */
    ck_holds(text, "0.6000  0.500 0.600 0.700  0/3 [0.00, 0.71]   0.3000");
    ck_holds(text, "1.0000 (6)      1.000  +0.000");
    ck_assert_ptr_nonnull(line);
    size_t width = strcspn(line, "\n");
    for (int i = 0; i < 8; i++, line = end + 1) { /* header, rule, rows */
        end = strchr(line, '\n');
        ck_assert_uint_eq((size_t)(end - line), width);
    }
    for (line = text; *line; line = end + 1) {
        end = strchr(line, '\n');
        ck_assert_msg(end - line <= 140, "%.*s", (int)(end - line), line);
    }
    ck_assert_uint_le(width, 140);
    free(text);
}
END_TEST

START_TEST(markdown_and_latex_escape_what_they_must) {
    struct run *run = add_run("odd|name_x:a=1%;swiglu", 1e-3, 0, 0.5, 0.5);
    strcpy(run->task, "a_b|c$d&e");
    char *text = render(&format_md, NULL);
    ck_holds(text, "### a\\_b\\|c\\$d&e, profile quick");
    ck_holds(text, "| odd\\|name\\_x:a=1% |");
    free(text);
    text = render(&format_latex, NULL);
    ck_holds(text, "\\caption{a\\_b$|$c\\$d\\&e, profile quick");
    ck_holds(text, "odd$|$name\\_x:a=1\\% & ");
    ck_holds(text, "\\toprule");
    ck_holds(text, "\\bottomrule\n\\end{tabular}");
    free(text);
}
END_TEST

/* Two lengths of a task, a failed run among them: every report of the list finds something. */
START_TEST(every_listed_report_prints_in_every_format) {
    for (int i = 0; i < 2; i++) {
        struct run *run = add_run("lstm;swiglu", 1e-3, (uint64_t)i, 0.5, 0.25);
        run->len_train = 8 + i;
        snprintf(run->task, sizeof run->task, "s5:length=%d", 8 + i);
    }
    spoil(add_run("lstm;swiglu", 1e-3, 7, 0.5, 0.5), RUN_OOM, "");
    strcpy(records[2].run.task, records[0].run.task);
    records[2].run.len_train = 8;
    for (const struct report *const *report = report_list(); *report; report++)
        for (const struct sheet_format *const *format = sheet_formats(); *format; format++) {
            char *text = NULL;
            size_t size;
            FILE *f = open_memstream(&text, &size);
            ck_ok(report_print(*report, &set, NULL, *format, out, f, &problem));
            fclose(f);
            ck_assert_msg(size > 20 && strchr(text, '\n') && text[size - 1] == '\n', "%s, %s:\n%s", (*report)->name,
                          (*format)->name, text);
            free(text);
        }
}
END_TEST

START_TEST(a_report_that_finds_nothing_writes_nothing) {
    add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5);
    for (const struct sheet_format *const *format = sheet_formats(); *format; format++) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);
        ck_assert_int_eq(report_print(&report_layers, &set, NULL, *format, out, f, &problem), ST_DATA);
        fclose(f);
        ck_assert_uint_eq(size, 0);
        free(text);
    }
}
END_TEST

START_TEST(summary_csv_has_the_rows_numbers) {
    static const char *const golden = "schema,cell_id,model,task,task_version,profile,layers,d_model,n_layers,backbone,"
                                      "mlp,norm,n_train,len_train,len_test,"
                                      "optimizer,schedule,warmup_steps,weight_decay,beta1,beta2,grad_clip,batch,max_"
                                      "steps,dtype,backend,numerics,protocol,n,"
                                      "n_failed,mean,ci_lo,ci_hi,ci_kind,median,iqm,best,solve_k,solve_n,solve_lo,"
                                      "solve_hi,lr_chosen,published,delta,verdict,"
                                      "n_grid,n_failed_grid,seq_acc,params,state_floats,tok_per_s,chance\n";
    struct csv_table t;
    char path[PATH_BYTES];
    add_grid();
    strcpy(add_run("lstm;swiglu", 1e-3, 0, 1, 1)->task, "=cmd()");
    ck_ok(summary_write(&set, out, &problem));
    snprintf(path, sizeof path, "%s/summary.csv", out);
    char *text;
    size_t size;
    ck_ok(file_read(path, 1 << 20, &text, &size, &problem));
    ck_assert_int_eq(strncmp(text, golden, strlen(golden)), 0);
    free(text);
    ck_ok(csv_read(&t, path, &problem));
    ck_assert_int_eq(t.rows, 2);
    ck_assert_str_eq(csv_cell(&t, 0, "task"), "'=cmd()");
    ck_assert_str_eq(csv_cell(&t, 0, "published"), "");
    ck_assert_str_eq(csv_cell(&t, 0, "verdict"), "solved");
    ck_assert_str_eq(csv_cell(&t, 1, "protocol"), "val-mean");
    ck_assert_str_eq(csv_cell(&t, 1, "n"), "3");
    ck_assert_str_eq(csv_cell(&t, 1, "n_grid"), "6");
    ck_assert_double_eq_tol(atof(csv_cell(&t, 1, "mean")), 0.6, 1e-12);
    ck_assert_str_eq(csv_cell(&t, 1, "ci_lo"), "");
    ck_assert_str_eq(csv_cell(&t, 1, "ci_kind"), "none");
    ck_assert_str_eq(csv_cell(&t, 1, "best"), "1");
    ck_assert_str_eq(csv_cell(&t, 1, "lr_chosen"), "0.001");
    ck_assert_str_eq(csv_cell(&t, 1, "published"), "1");
    ck_assert_str_eq(csv_cell(&t, 1, "delta"), "0");
    ck_assert_str_eq(csv_cell(&t, 1, "verdict"), "unsolved");
    csv_free(&t);
}
END_TEST

/* --- plots ---------------------------------------------------------------------------------------------------------- */

static void ck_is_image(const char *name) {
    char path[PATH_BYTES], *bytes;
    size_t size;
    snprintf(path, sizeof path, "%s/%s", out, name);
    ck_ok(file_read(path, 1 << 24, &bytes, &size, &problem));
    ck_assert_uint_gt(size, 5000);
    if (strstr(name, ".png"))
        ck_assert_int_eq(memcmp(bytes, "\x89PNG\r\n\x1a\n", 8), 0);
    else
        ck_assert(strstr(bytes, "<svg") && strstr(bytes, "</svg>"));
    free(bytes);
}

START_TEST(plots_are_drawn_and_nothing_else_is_left) {
    add_grid();
    add_run("lstm;swiglu", 1e-3, 0, 0.9, 0.9);
    spoil(add_run("lru;swiglu", 1e-3, 0, 0.9, 0.9), RUN_NAN, "loss");
    records[set.n - 1].n_curve = 0;
    ck_ok(report_plot(&set, NULL, NULL, out, &problem));
    ck_is_image("s5-table.svg");
    ck_is_image("s5-table.png");
    ck_is_image("s5-accuracy.svg");
    ck_is_image("s5-accuracy.png");
    ck_assert_int_eq(scratch_count(out, ""), 5); /* and summary.csv */
}
END_TEST

START_TEST(lengths_are_plotted_where_there_are_several) {
    static struct eval_point evals[5] = {{.step = 9, .split = SPLIT_TEST, .length = 32, .n = 40, .acc = 0.5}};
    for (int i = 1; i < 5; i++) {
        evals[i] = (struct eval_point){.split = SPLIT_TEST, .length = 8 * i + i, .n = 10, .acc = 0.25 * i};
        strcpy(evals[i].difficulty, "length");
    }
    strcpy(add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5)->profile, "smoke");
    records[set.n - 1].run.len_test = 32;
    ck_assert_int_eq(report_plot(&set, NULL, "length", out, &problem), ST_USAGE);
    ck_holds(problem.text, "several lengths");
    records[set.n - 1].evals = evals;
    records[set.n - 1].n_evals = 5;
    ck_ok(report_plot(&set, NULL, "length", out, &problem));
    ck_is_image("s5-length.svg");
    ck_is_image("s5-length.png");
}
END_TEST

START_TEST(names_that_mean_something_to_a_shell_or_to_gnuplot_are_harmless) {
    struct run *run = add_run("a'b\"`touch owned`$(touch owned)\n'.system('touch owned').'{/x}^y_z@5%d%%n%;swiglu",
                              1e-3, 0, 0.5, 0.5);
    strcpy(run->task, "../x'\n`touch owned`$(touch owned)|\"");
    ck_ok(report_plot(&set, NULL, "table", out, &problem));
    ck_ok(report_plot(&set, NULL, "accuracy", out, &problem));
    ck_assert_int_eq(scratch_count(out, "owned"), 4); /* in the names of the four images only */
    ck_assert_int_eq(scratch_count(out, ""), 5);
    ck_assert_int_ne(access("owned", F_OK), 0);
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/owned", out);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(tables_of_one_task_have_plots_of_their_own) {
    add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5);
    strcpy(add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5)->profile, "smoke");
    ck_ok(report_plot(&set, NULL, "table", out, &problem));
    ck_is_image("s5-quick-table.png");
    ck_is_image("s5-smoke-table.png");
    ck_ok(report_plot(&set, &(struct report_filter){.profile = "quick"}, "table", out, &problem));
    ck_is_image("s5-table.png");
    strcpy(add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5)->task, "s5:length=8");
    ck_ok(report_plot(&set, NULL, "table", out, &problem));
    ck_is_image("s5-length=8-table.png");
    ck_ok(report_plot(&set, &(struct report_filter){.task = "s5:length=8"}, "accuracy", out, &problem));
    ck_is_image("s5-accuracy.png");
    ck_assert_int_eq(report_plot(&set, NULL, "pie", out, &problem), ST_USAGE);
}
END_TEST

START_TEST(without_gnuplot_the_sentence_says_what_to_install) {
    add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5);
    setenv("PATH", "/nowhere", 1);
    ck_assert_int_eq(report_plot(&set, NULL, "table", out, &problem), ST_FAIL);
    ck_holds(problem.text, "gnuplot-nox");
    ck_assert_int_eq(scratch_count(out, ""), 1); /* summary.csv needs no gnuplot */
}
END_TEST

Suite *check_report(void) {
    const TTest *const tests[] = {
        the_rate_is_chosen_by_validation_not_by_test,
        best_of_grid_is_the_largest_test_value_and_the_difference_is_taken_from_it,
        equal_validation_accuracies_are_settled_by_validation_loss,
        a_failed_run_counts_as_chance,
        a_rate_at_which_runs_fail_is_not_chosen_for_the_seed_that_survived,
        every_status_but_ok_is_a_failure_with_a_footnote,
        solved_runs_are_counted_at_the_chosen_rate_with_the_exact_interval,
        macro_accuracy_is_used_where_it_is_the_primary_metric,
        rows_differ_in_anything_but_rate_and_seed,
        the_filter_chooses_task_profile_and_cells_in_the_callers_order,
        labels_leave_out_defaults_but_never_m,
        speed_comes_from_perf_csv_alone,
        published_numbers_are_found_by_mixer_and_m,
        a_default_matches_whether_it_is_written_or_not,
        published_means_are_those_of_their_rows,
        an_output_folders_own_published_csv_comes_first,
        the_terminal_table_is_aligned_and_fits,
        markdown_and_latex_escape_what_they_must,
        every_listed_report_prints_in_every_format,
        a_report_that_finds_nothing_writes_nothing,
        summary_csv_has_the_rows_numbers,
        plots_are_drawn_and_nothing_else_is_left,
        lengths_are_plotted_where_there_are_several,
        names_that_mean_something_to_a_shell_or_to_gnuplot_are_harmless,
        tables_of_one_task_have_plots_of_their_own,
        without_gnuplot_the_sentence_says_what_to_install,
    };
    Suite *s = suite_create("report");
    TCase *c = tcase_create("report");
    tcase_add_checked_fixture(c, open_fixture, close_fixture);
    tcase_set_timeout(c, 120);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) tcase_add_test(c, tests[i]);
    suite_add_tcase(s, c);
    return s;
}

/* check_report.c - tables of fixture records whose numbers were worked out by hand. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/study/config.h"
#include "harness/table/summary.h"
#include "harness/store/csv.h"
#include "harness/store/files.h"
#include "harness/store/logs.h"
#include "harness/store/version.h"
#include "tests/harness/table/fixture.h"

/* --- numbers ------------------------------------------------------------------------------------------------------ */

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
    fixture_records[5].run.test_acc = 0.97; /* the largest of all six, at the rate that was not chosen */
    const struct report_row *row = only_row(&tables);
    ck_assert_double_eq(row->best, 0.97);
    ck_assert_double_eq(row->published.value, 1.0); /* results/published.csv: bdlru m=5 on s5 */
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
    spoil(&fixture_records[0].run, RUN_NAN, "layers.0.mixer.gates.weight");
    fixture_records[0].run.params = -1;
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
    spoil(&fixture_records[3].run, RUN_DIVERGED, "");
    spoil(&fixture_records[4].run, RUN_OOM, "");
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

/* The sweep that has just ended asks for it: some of its runs may have been on record before. */
START_TEST(runs_of_another_build_have_a_footnote_where_it_is_asked_for) {
    struct report_filter filter = {.tell_builds = true};
    const struct build_info *b = build_info();
    struct run *own = add_run("lstm;swiglu", 1e-3, 0, 0.9, 0.5);
    snprintf(own->source_id, sizeof own->source_id, "%s", b->sources);
    snprintf(own->build_id, sizeof own->build_id, "%s", b->flags);
    snprintf(own->compiler, sizeof own->compiler, "%s", b->compiler);
    strcpy(add_run("lstm;swiglu", 1e-3, 1, 0.9, 0.5)->source_id, "0123456789abcdef");
    char *text = render(&format_term, &filter);
    ck_holds(text, "[1] lstm: 1 of 2 runs are of another build of the program; --force does them again");
    free(text);
    text = render(&format_term, NULL);
    ck_assert_ptr_null(strstr(text, "another build"));
    free(text);
}
END_TEST

/* A record that has their share, and one without that column. */
START_TEST(logits_that_are_not_finite_have_a_footnote) {
    struct run *counted = add_run("lstm;swiglu", 1e-3, 0, 0.9, 0.5);
    counted->test_nonfinite = 0.25;
    counted->test_loss = NAN;
    struct run *earlier = add_run("lstm;swiglu", 1e-3, 1, 0.9, 0.5);
    earlier->test_nonfinite = earlier->test_loss = NAN;
    struct run *finite = add_run("lstm;swiglu", 1e-3, 2, 0.9, 0.5);
    finite->test_nonfinite = 0;
    char *text = render(&format_term, NULL);
    ck_holds(text, "[1] lstm, lr 0.001, seed 0: 25 % of the scored test positions have logits that are not finite and "
                   "count as wrong");
    ck_holds(text, "[2] lstm, lr 0.001, seed 1: some scored test positions have logits that are not finite and were "
                   "read as label 0 then");
    ck_holds(text, "lstm [1-2]");
    ck_assert_ptr_null(strstr(text, "seed 2:"));
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
    run->metric = METRIC_MACRO_ACC;
    strcpy(run->task, "hlru-compress");
    run->test_macro_acc = 0.75;
    const struct report_row *row = only_row(&tables);
    ck_assert_double_eq(row->mean, 0.75);
    ck_assert_double_eq(row->published.value, 0.75); /* and not one of metric acc */
    ck_assert(row->published.settings);              /* of four settings, where this is one */
    ck_assert_double_nan(row->delta);
    report_tables_free(&tables);
}
END_TEST

/* MAD's means over four settings: beside one of them they are shown and not compared with. */
START_TEST(published_means_over_settings_have_no_difference_to_one) {
    struct run *run = add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.25);
    run->metric = METRIC_MACRO_ACC;
    run->test_macro_acc = 0.75;
    strcpy(run->task, "hlru-copy");
    char *text = render(&format_term, NULL);
    ck_holds(text, "0.7500 (1)     1.000~     -\n");
    ck_holds(text, "~ the paper's setting differs, so there is no diff: ");
    free(text);
}
END_TEST

/* The base and its three changes are what the paper's mean is over; with one of them missing it is another mean. */
START_TEST(means_over_the_papers_settings_are_compared) {
    static const char *const tasks[] = {"hlru-recall", "hlru-recall:vocab=32", "hlru-recall:length=128",
                                        "hlru-recall:n_train=10000", "hlru-recall:vocab=64"};
    for (int i = 0; i < 4; i++) {
        struct run *run = add_run("mamba2;swiglu", 1e-3, 0, 0.5, 0.5);
        strcpy(run->task, tasks[i]);
        run->metric = METRIC_MACRO_ACC;
        run->test_macro_acc = 0.25 * i;
        fixture_records[i].run.params = i;
        as_planned(run, "hlru-table1");
    }
    char *text = render_report(&report_settings, &format_term);
    ck_holds(text, "0.375      1.000  -0.625\n"); /* (0 + .25 + .5 + .75) / 4 */
    ck_holds(text, "0.000 (1)");                  /* of so many runs */
    ck_assert_ptr_null(strchr(text, '~'));
    free(text);
    strcpy(fixture_records[3].run.task, tasks[4]);
    text = render_report(&report_settings, &format_term);
    ck_holds(text, "0.375     1.000~     -\n");
    ck_holds(text, "~ the paper's setting differs, so there is no diff: a mean over other settings (`lrnn bench");
    free(text);
    strcpy(fixture_records[3].run.task, tasks[3]);
    identify(&fixture_records[2].run, "decay", "0.1"); /* of one change alone */
    text = render_report(&report_settings, &format_term);
    ck_holds(text, "0.375     1.000~     -\n");
    ck_holds(text, "so there is no diff: decay=0.1 (0 there).\n");
    free(text);
}
END_TEST

/* Folds have one set of examples, so their spread is shown; settings have several, and theirs is not. */
START_TEST(the_spread_of_folds_is_shown) {
    for (int i = 0; i < 3; i++) {
        struct run *run = add_run("gin;gelu", 1e-3, 0, 0.5, 0.5);
        snprintf(run->task, sizeof run->task, i ? "molecules:fold=%d" : "molecules", i);
        run->metric = METRIC_ACC;
        run->test_acc = 0.25 * i;
        fixture_records[i].run.params = i;
    }
    char *text = render_report(&report_settings, &format_term);
    ck_holds(text, "fold=2   mean     sd  published  diff\n");
    ck_holds(text, "0.500 (1)  0.250  0.250          -     -\n");
    ck_holds(text, "sd: of the folds");
    free(text);
    text = render_report(&report_tables, &format_term); /* they are one table there, not one each */
    ck_holds(text, "fold=2   mean     sd  published  diff\n");
    ck_assert_ptr_null(strstr(text, "tok/s"));
    free(text);
    strcpy(fixture_records[2].run.task, "molecules:distance=1");
    text = render_report(&report_settings, &format_term);
    ck_assert_ptr_null(strstr(text, "sd"));
    free(text);
}
END_TEST

/* A task's name chooses every fold, a fold's name this one alone. */
START_TEST(a_task_is_chosen_with_its_folds) {
    const struct report_filter whole = {.task = "s3 molecules:distance=3"}, one = {.task = "molecules:fold=2"};
    struct filter f;
    struct error e = {ST_OK, ""};
    ck_assert_msg(filter_read(&f, &whole, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(filter_task_rank(&f, "molecules:distance=3"), 1);
    ck_assert_int_eq(filter_task_rank(&f, "molecules:distance=3,fold=7"), 1);
    ck_assert_int_eq(filter_task_rank(&f, "molecules:fold=7"), -1);
    ck_assert_msg(filter_read(&f, &one, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(filter_task_rank(&f, "molecules:fold=2"), 0);
    ck_assert_int_eq(filter_task_rank(&f, "molecules"), -1);
    ck_assert_int_eq(filter_task_rank(&f, "molecules:fold=1"), -1);
}
END_TEST

/* --- protocols ---------------------------------------------------------------------------------------------------- */

/* Macro accuracy ranks the rates the other way round than micro accuracy. */
START_TEST(the_rate_is_chosen_by_the_tasks_own_metric) {
    struct report_tables tables;
    for (int i = 0; i < 2; i++) {
        struct run *run = add_run("lstm;swiglu", i ? 3e-3 : 1e-3, 1, i ? 0.6 : 0.9, 0.5);
        run->metric = METRIC_MACRO_ACC;
        run->test_macro_acc = 0.5;
        run->val_metric = i ? 0.7 : 0.2;
    }
    ck_assert_double_eq(only_row(&tables)->lr, 3e-3);
    report_tables_free(&tables);
    for (int i = 0; i < 2; i++) {
        fixture_records[i].run.metric = METRIC_ACC;
        fixture_records[i].run.val_metric = fixture_records[i].run.val_acc;
    }
    ck_assert_double_eq(only_row(&tables)->lr, 1e-3);
    report_tables_free(&tables);
}
END_TEST

static struct report_row *row_by(enum report_protocol protocol, int64_t confirm, struct report_tables *tables) {
    struct report_filter filter = {.protocol = protocol, .confirm = confirm};
    ck_ok(report_tables_make(tables, &fixture_set, &filter, fixture_folder, &fixture_problem));
    ck_assert_int_eq(tables->n, 1);
    ck_assert_int_eq(tables->list->n_rows, 1);
    return tables->list->rows;
}

START_TEST(every_protocol_has_its_number_and_interval) {
    struct report_tables tables;
    add_grid(); /* at the rate of the best validation 0.5, 0.6, 0.7 */
    const struct report_row *row = row_by(PROTOCOL_VAL_MEAN, 0, &tables);
    ck_assert_double_eq_tol(row->estimate, 0.6, 1e-12);
    ck_assert_int_eq(row->interval.kind, INTERVAL_NONE);
    report_tables_free(&tables);
    row = row_by(PROTOCOL_BEST_OF_GRID, 0, &tables);
    ck_assert_double_eq(row->estimate, 1.0);
    ck_assert_int_eq(row->interval.kind, INTERVAL_NONE);
    report_tables_free(&tables);
    row = row_by(PROTOCOL_MEAN_CI90, 0, &tables); /* 0.6 -+ t(.95, 2) 0.1 / sqrt 3 = 2.9199856 * 0.0577350 */
    ck_assert_double_eq_tol(row->estimate, 0.6, 1e-12);
    ck_assert_double_eq_tol(row->interval.low, 0.6 - 0.1685855, 1e-6);
    ck_assert_double_eq_tol(row->interval.high, 0.6 + 0.1685855, 1e-6);
    ck_assert_double_eq(row->interval.level, 0.9);
    report_tables_free(&tables);
    fixture_set.n = 0;
    static const double values[] = {0.1, 0.2, 0.3, 0.4, 1.0};
    for (uint64_t seed = 0; seed < 5; seed++) add_run("lstm;swiglu", 1e-3, seed, 0.5, values[seed]);
    row = row_by(PROTOCOL_IQM, 0, &tables); /* without one value at each end */
    ck_assert_double_eq_tol(row->estimate, 0.3, 1e-12);
    ck_assert_int_eq(row->interval.kind, INTERVAL_PERCENTILE);
    ck_assert(row->interval.low >= 0.1 && row->interval.low < 0.3 && row->interval.high > 0.3);
    report_tables_free(&tables);
}
END_TEST

START_TEST(tables_say_their_protocol) {
    static const struct {
        enum report_protocol protocol;
        const char *heading, *row, *sentence;
        bool few;
    } cases[] = {
        {PROTOCOL_VAL_MEAN, "95% CI or values", "0.6000  0.500 0.600 0.700",
         "acc (protocol val-mean): test token accuracy averaged", true},
        {PROTOCOL_BEST_OF_GRID, "grid", "1.0000  best of 6", "acc (protocol best-of-grid): the largest test token",
         false},
        {PROTOCOL_MEAN_CI90, "90% CI or values", "0.6000    [0.431, 0.769]",
         "acc (protocol mean-ci90): test token accuracy averaged", false},
        {PROTOCOL_IQM, "95% CI or values", "0.6000  0.500 0.600 0.700",
         "acc (protocol iqm): the interquartile mean of test", true},
    };
    add_grid();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct report_filter filter = {.protocol = cases[i].protocol};
        char *text = render(&format_term, &filter);
        ck_holds(text, cases[i].heading);
        ck_holds(text, cases[i].row);
        ck_holds(text, cases[i].sentence);
        ck_assert_int_eq(strstr(text, "With fewer than 5 seeds the seeds' values") != NULL, cases[i].few);
        free(text);
        text = render(&format_csv, &filter);
        ck_holds(text, protocol_of(cases[i].protocol)->name);
        free(text);
    }
}
END_TEST

/* Seeds 1 to 3 choose 0.001; what the other rate does with the fresh ones decides nothing. */
START_TEST(fresh_seeds_confirm_what_others_chose) {
    struct report_tables tables;
    static const double test[] = {0.9, 0.9, 0.9, 0.2, 0.4};
    for (uint64_t seed = 1; seed <= 5; seed++) add_run("lstm;swiglu", 1e-3, seed, 0.8, test[seed - 1]);
    for (uint64_t seed = 1; seed <= 4; seed++) add_run("lstm;swiglu", 3e-3, seed, seed < 4 ? 0.7 : 1.0, 1.0);
    const struct report_row *row = row_by(PROTOCOL_VAL_MEAN, 2, &tables);
    ck_assert_double_eq(row->lr, 1e-3);
    ck_assert_int_eq(row->n, 2);
    ck_assert_double_eq_tol(row->estimate, 0.3, 1e-12);
    ck_assert(!row->uneven);
    report_tables_free(&tables);
    char *text = render(&format_term, &(struct report_filter){.confirm = 2});
    ck_holds(text, "Each row reports its 2 largest seeds; the others chose the rate");
    free(text);
    struct report_filter all = {.confirm = 5};
    ck_assert_int_eq(report_tables_make(&tables, &fixture_set, &all, fixture_folder, &fixture_problem), ST_USAGE);
    ck_holds(fixture_problem.text, "--confirm-seeds 5: lstm on s5 has 5 seeds, so no seed is left");
    for (int i = 0; i < 5; i++) fixture_records[i].run.val_metric = 0.1; /* now 0.003, which has seed 4 and not 5 */
    all.confirm = 1;
    ck_assert_int_eq(report_tables_make(&tables, &fixture_set, &all, fixture_folder, &fixture_problem), ST_DATA);
    ck_holds(fixture_problem.text, "has its best rate at 0.003, but the seeds to report have no run at this rate");
    for (all.confirm = 1; all.confirm <= 5; all.confirm += 4) {
        all.confirm_if_enough = true; /* all rows together need not have as many */
        ck_ok(report_tables_make(&tables, &fixture_set, &all, fixture_folder, &fixture_problem));
        ck_assert_int_eq(tables.list[0].rows[0].confirm, 0);
        ck_assert_int_eq(tables.list[0].rows[0].n, 4);
        ck_assert(tables.list[0].rows[0].uneven);
        report_tables_free(&tables);
    }
}
END_TEST

/* --- cut off ------------------------------------------------------------------------------------------------------ */

/* In every table a sign at each number, and no difference to what somebody trained to the end. */
START_TEST(numbers_of_runs_that_were_cut_off_are_marked) {
    struct report_tables tables;
    cut_off(add_run("bdlru:m=5;swiglu", 1e-3, 0, 0.5, 0.25), 123);
    strcpy(add_run("bdlru:m=5;swiglu", 1e-3, 1, 0.5, 0.75)->stop_reason, "target");
    fixture_records[1].run.steps = 299;
    add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5);
    char *text = render(&format_term, NULL);
    ck_holds(text, "  123..299/300  1 budget, 1 target  0.5000*      0.250* 0.750  0/2* [0.00, 0.84]  0.2500*      -  "
                   "0.7500 (2)      1.000       -\n");
    ck_holds(text, "       300/300  steps                0.5000             0.500   0/1 [0.00, 0.97]   0.2500      -  "
                   "0.5000 (1)      1.000  -0.500\n");
    ck_holds(text, "* cut off: a limit of steps or time ended the run");
    free(text);
    ck_ok(report_tables_make(&tables, &fixture_set, NULL, fixture_folder, &fixture_problem));
    ck_assert_int_eq(tables.list->rows->n_cut, 1);
    ck_assert_double_nan(tables.list->rows->delta);
    report_tables_free(&tables);
    strcpy(fixture_records[0].run.stop_reason, "patience"); /* its protocol ended it */
    text = render(&format_term, NULL);
    ck_assert_ptr_null(strchr(text, '*'));
    free(text);
}
END_TEST

START_TEST(sweeps_mark_runs_that_were_cut_off) {
    static const char *const tasks[] = {"hlru-recall", "hlru-recall:vocab=32"};
    for (int i = 0; i < 4; i++) {
        struct run *run = add_run(i < 2 ? "lstm;swiglu" : "lru;swiglu", 1e-3, 1, 0.5, 0.5);
        strcpy(run->task, tasks[i % 2]);
        run->len_train = 8 + i % 2;
        run->metric = METRIC_MACRO_ACC;
        run->test_macro_acc = 0.5;
        if (i == 1) cut_off(run, 12);
    }
    char *text = render_report(&report_settings, &format_term);
    ck_holds(text, "lstm   0.500 (1)  0.500* (1)  0.500*     1.000~     -\n");
    ck_holds(text, "lru    0.500 (1)   0.500 (1)   0.500          -     -\n");
    ck_holds(text, "* cut off");
    free(text);
    text = render_report(&report_settings, &format_csv);
    ck_holds(text, "lstm,vocab=32,0.5,1,1,0.5,0,\n");
    ck_holds(text, "lstm,mean,0.5,2,1,0.5,0,\n");
    ck_holds(text, "lru,mean,0.5,2,0,0.5,0,\n");
    free(text);
    for (int i = 0; i < 4; i++) strcpy(fixture_records[i].run.task, i % 2 ? "s5:length=9" : "s5:length=8");
    text = render_report(&report_layers, &format_term);
    ck_holds(text, "lstm            >1 (0.50)  >1 (0.50)*\n");
    ck_holds(text, "* cut off");
    free(text);
}
END_TEST

/* --- formats ------------------------------------------------------------------------------------------------------ */

START_TEST(the_terminal_table_is_aligned_and_fits) {
    add_grid();
    for (int m = 1; m <= 5; m++) {
        char layers[64];
        snprintf(layers, sizeof layers, "hlru:m=%d,channels=128;swiglu", m);
        for (uint64_t seed = 0; seed < 5; seed++)
            add_run(layers, 1e-3, seed, 0.2 + 0.01 * m, 0.25 + 0.001 * (double)seed);
    }
    char *text = render(&format_term, NULL), *line = strstr(text, "model "), *end;
    ck_holds(text, "s5, profile paper: 6 rows, 31 runs, 100000 training sequences of length 16");
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
        ck_assert_msg(end - line <= 160, "%.*s", (int)(end - line), line);
    }
    ck_assert_uint_le(width, 160); /* with an average label on 140 columns */
    free(text);
}
END_TEST

START_TEST(markdown_and_latex_escape_what_they_must) {
    struct run *run = add_run("odd|name_x:a=1%;swiglu", 1e-3, 0, 0.5, 0.5);
    strcpy(run->task, "a_b|c$d&e");
    char *text = render(&format_md, NULL);
    ck_holds(text, "### a\\_b\\|c\\$d&e, profile paper");
    ck_holds(text, "| odd\\|name\\_x:a=1% |");
    free(text);
    text = render(&format_latex, NULL);
    ck_holds(text, "\\caption{a\\_b$|$c\\$d\\&e, profile paper");
    ck_holds(text, "odd$|$name\\_x:a=1\\% & ");
    ck_holds(text, "\\toprule");
    ck_holds(text, "\\bottomrule\n\\end{tabular}");
    free(text);
}
END_TEST

/* Two lengths of a task, a failed run among them, test sequences of two lengths: every report of the list finds
 * something. */
START_TEST(every_listed_report_prints_in_every_format) {
    static struct eval_point evals[] = {
        {.split = SPLIT_TEST, .length = 8, .n = 10, .acc = 1, .difficulty = "length"},
        {.split = SPLIT_TEST, .length = 9, .n = 10, .acc = 0, .difficulty = "length"},
        {.split = SPLIT_TEST, .length = 1, .n = 10, .acc = 1, .difficulty = "position"},
        {.split = SPLIT_TEST, .length = 2, .n = 10, .acc = 0.5, .difficulty = "position"},
    };
    for (int i = 0; i < 2; i++) {
        struct run *run = add_run("lstm;swiglu", 1e-3, (uint64_t)i, 0.5, 0.25);
        run->len_train = 8 + i;
        snprintf(run->task, sizeof run->task, "s5:length=%d", 8 + i);
        fixture_records[i].evals = evals;
        fixture_records[i].n_evals = 4;
    }
    spoil(add_run("lstm;swiglu", 1e-3, 7, 0.5, 0.5), RUN_OOM, "");
    strcpy(fixture_records[2].run.task, fixture_records[0].run.task);
    fixture_records[2].run.len_train = 8;
    for (const struct report *const *report = report_list(); *report; report++)
        for (const struct sheet_format *const *format = sheet_formats(); *format && !(*report)->make_plan; format++) {
            char *text = render_report(*report, *format);
            size_t size = strlen(text);
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
        ck_assert_int_eq(
            report_print(&report_layers, &fixture_set, NULL, NULL, *format, fixture_folder, f, &fixture_problem),
            ST_DATA);
        fclose(f);
        ck_assert_uint_eq(size, 0);
        free(text);
    }
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
        runs_of_another_build_have_a_footnote_where_it_is_asked_for,
        logits_that_are_not_finite_have_a_footnote,
        solved_runs_are_counted_at_the_chosen_rate_with_the_exact_interval,
        macro_accuracy_is_used_where_it_is_the_primary_metric,
        published_means_over_settings_have_no_difference_to_one,
        means_over_the_papers_settings_are_compared,
        the_spread_of_folds_is_shown,
        a_task_is_chosen_with_its_folds,
        the_rate_is_chosen_by_the_tasks_own_metric,
        every_protocol_has_its_number_and_interval,
        tables_say_their_protocol,
        fresh_seeds_confirm_what_others_chose,
        numbers_of_runs_that_were_cut_off_are_marked,
        sweeps_mark_runs_that_were_cut_off,
        the_terminal_table_is_aligned_and_fits,
        markdown_and_latex_escape_what_they_must,
        every_listed_report_prints_in_every_format,
        a_report_that_finds_nothing_writes_nothing,
    };
    return fixture_suite("report", tests, (int)(sizeof tests / sizeof tests[0]));
}

/* check_across.c - reports that show tables side by side, by length, and run by run: numbers worked out by hand. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/sheet/sheet_pick.h"
#include "harness/rows/test_lengths.h"
#include "tests/harness/table/fixture.h"

static struct run *add_of(const char *task, const char *layers, const char *dim, const char *epochs, double test) {
    struct run *run = add_run(layers, 1e-3, 1, test, test);
    strcpy(run->task, task);
    identify(run, "dim", dim);
    identify(run, "epochs", epochs);
    return run;
}

/* Renders the report as text; the caller frees it. NULL: the error is in fixture_problem. */
static char *render_by(const struct report *report, const struct report_filter *filter) {
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    enum status status =
        report_print(report, &fixture_set, filter, NULL, &format_term, fixture_folder, f, &fixture_problem);
    fclose(f);
    if (status == ST_OK) return text;
    free(text);
    return NULL;
}

/* The run had its matrices multiplied by a library that this program does not have. */
static void with_other_products(struct run *run) {
    strcpy(run->kernel, "linear_cpu, otherBLAS Zen");
    strcpy(run->dtype, REAL_NAME);
    strcpy(run->backend, "cpu");
}

/* S3 and S5 have published numbers of bdlru m = 5 and the LSTM, none of lru. */
START_TEST(tasks_stand_side_by_side_with_the_published_numbers) {
    add_of("s5", "bdlru:m=5;swiglu", "64", "3", 0.25);
    add_of("s5", "lstm;swiglu", "64", "3", 0.5);
    add_of("s3", "lstm;swiglu", "64", "20", 0.75);
    add_of("s3", "lru;swiglu", "64", "20", 0.125);
    cut_off(&fixture_records[1].run, 200);
    with_other_products(&fixture_records[0].run);
    char *text = render_report(&report_across, &format_term);
    ck_holds(text, "1 of 4 runs " OTHER_PRODUCTS_NOTE);
    ck_holds(text, "2 tasks, profile paper: 3 models");
    ck_holds(text, "model      s3 / published   s5 / published");
    ck_holds(text, "lru             0.125 / -                -");
    ck_holds(text, "lstm       0.750 / 1.000~  0.500* / 1.000~");
    ck_holds(text, "bdlru:m=5               -   0.250 / 1.000~");
    ck_holds(text, "s3: test token accuracy, chance 0.0083, at most 300 steps; epochs=20.");
    ck_holds(text, "s5: test token accuracy, chance 0.0083, at most 300 steps; epochs=3.");
    ck_holds(text, CUT_OFF_NOTE);
    free(text);
    text = render_report(&report_across, &format_csv);
    ck_holds(text, "profile,model,task,protocol,estimate,n,n_cut_off,published,n_grid,n_failed,n_failed_grid,published_"
                   "setting,flags\n");
    ck_holds(text, "paper,lstm,s5,val-mean,0.5,1,1,1,1,0,0,other,dim=64 epochs=3\n");
    ck_holds(text, "paper,lru,s3,val-mean,0.125,1,0,,1,0,0,");
    free(text);
    text = render_report(&report_across, &format_latex);
    ck_holds(text, "\\label{tab:across-2-tasks-profile-paper}\n");
    free(text);
}
END_TEST

/* Remarks above and below a table speak of its own rows. */
START_TEST(remarks_are_on_what_is_there) {
    const struct sheet_view means = {.columns = "model,mean"};
    char *text = NULL;
    size_t size;
    add_of("s3", "lstm;swiglu", "64", "3", 0.75);
    add_of("s5", "lstm;swiglu", "64", "3", 0.5);
    text = render_report(&report_across, &format_term);
    ck_holds(text, "2 tasks, profile paper: 1 model\n");
    ck_holds(text, "\nMean over the seeds at the learning rate that validation chose, 1 seed / the paper's number.\n");
    ck_holds(text, "\nSome of the papers' numbers are the best of their runs, ours are not ");
    free(text);
    text = render_by(&report_across, &(struct report_filter){.protocol = PROTOCOL_BEST_OF_GRID});
    ck_assert_ptr_null(strstr(text, "are the best of their runs"));
    free(text);
    fixture_set.n = 0;
    add_of("s3", "conv;swiglu", "64", "3", 0.75);
    add_of("s5", "conv;swiglu", "64", "3", 0.5);
    text = render_report(&report_across, &format_term);
    ck_holds(text, "\nMean over the seeds at the learning rate that validation chose, 1 seed.\n");
    ck_assert_ptr_null(strstr(text, "the paper"));
    free(text);
    text = render(&format_term, &(struct report_filter){.protocol = PROTOCOL_MEAN_CI90});
    ck_holds(text, "With fewer than 2 seeds the seeds' values are shown instead of an interval.");
    free(text);
    fixture_set.n = 0;
    for (int i = 0; i < 2; i++) {
        struct run *run = add_run("conv;swiglu", 1e-3, 1, 0.5, 0.5); /* of which nobody has published anything */
        strcpy(run->task, i ? "molecules:fold=2" : "molecules");
        identify(run, "task.fold", i ? "2" : "1");
    }
    text = render_report(&report_settings, &format_term);
    ck_holds(text, "sd: of the folds.");
    ck_assert_ptr_null(strstr(text, "~ of"));
    free(text);
    FILE *f = open_memstream(&text, &size);
    ck_ok(
        report_print(&report_settings, &fixture_set, NULL, &means, &format_term, fixture_folder, f, &fixture_problem));
    fclose(f);
    ck_assert_ptr_null(strstr(text, "sd: of"));
    free(text);
}
END_TEST

/* The mark belongs to the runs that give the number: under best-of-grid one of another rate than the chosen. */
START_TEST(the_mark_follows_the_protocol) {
    add_of("s3", "lstm;swiglu", "64", "3", 0.75);
    add_of("s5", "lstm;swiglu", "64", "3", 0.5);
    struct run *best = add_run("lstm;swiglu", 3e-3, 1, 0.25, 0.875); /* validation does not choose it */
    identify(best, "dim", "64");
    identify(best, "epochs", "3");
    cut_off(best, 200);
    for (int i = 0; i < 2; i++) {
        struct report_filter filter = {.protocol = i ? PROTOCOL_BEST_OF_GRID : PROTOCOL_VAL_MEAN};
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);
        ck_ok(report_print(&report_across, &fixture_set, &filter, NULL, &format_term, fixture_folder, f,
                           &fixture_problem));
        fclose(f);
        ck_holds(text, i ? "0.875* / 1.000~" : "0.500 / 1.000~");
        free(text);
    }
}
END_TEST

/* One seed fails, of two on one of two settings: each table of several rows shows it, and each file for programs counts
 * it. */
START_TEST(failed_runs_are_marked_in_every_summary) {
    static const struct report *const reports[] = {&report_across, &report_suites, &report_layers, &report_settings};
    static const char *const wanted[] = {"0.254#", "0.254#", ">1 (0.25)#", "0.500# (2)"},
                             *const columns[] = {"n_failed,", "n_failed,", ",n_failed,flags\n", ",n_failed,flags\n"},
                             *const lines[] = {",2,1,1,same,\n", ",2,1,1,same,\n", ",2,0,1,\n", ",2,0,0.254"};
    for (int i = 0; i < 4; i++) {
        struct run *run = add_run("lstm;swiglu", 1e-3, (uint64_t)(i % 2), 0.5, 0.5);
        if (i == 1) spoil(run, RUN_NAN, "");
        if (i < 2) continue;
        strcpy(run->task, "s5:length=8");
        run->len_train = 8;
        identify(run, "task.length", "8");
    }
    for (int i = 0; i < 4; i++) {
        char *text = render_report(reports[i], &format_term);
        ck_holds(text, wanted[i]);
        ck_holds(text, "#: 1 of 4 runs failed and count as chance.");
        free(text);
        text = render_report(reports[i], &format_csv);
        ck_holds(text, columns[i]);
        ck_holds(text, lines[i]);
        free(text);
    }
}
END_TEST

/* Widths differ within S5, so that they tell rows apart everywhere: one model in one setting a row. */
START_TEST(what_differs_within_a_task_keeps_rows_apart_in_all) {
    add_of("s5", "lstm;swiglu", "64", "3", 0.25);
    add_of("s5", "lstm;swiglu", "128", "3", 0.5);
    add_of("s3", "lstm;swiglu", "64", "20", 0.75);
    char *text = render_report(&report_across, &format_term);
    ck_holds(text, "lstm dim=64   0.750 / 1.000~  0.250 / 1.000~");
    ck_holds(text, "lstm dim=128               -  0.500 / 1.000~");
    free(text);
}
END_TEST

/* A matrix of five columns with a hundred characters each is read by nobody: what all tables of a task share stands in
 * its note. */
START_TEST(headings_have_what_tells_tasks_apart) {
    add_of("arrow:size=48,patch=8,n_test=2000", "lstm;swiglu", "64", "3", 0.25);
    add_of("arrow:size=48,patch=4,n_test=2000", "lstm;swiglu", "64", "3", 0.5);
    add_of("arrow:size=48,n_test=2000", "lstm;swiglu", "64", "3", 0.75);
    add_of("digits:n_test=9", "lstm;swiglu", "64", "3", 0.125);
    add_of("s3", "lstm;swiglu", "64", "3", 0.625);
    add_of("s3:n_train=7", "lstm;swiglu", "64", "3", 0.875);
    char *text = render_report(&report_across, &format_term);
    ck_holds(text, "model  arrow:...  arrow:patch=4,...  arrow:patch=8,...  digits:...  s3 / published  s3:n_train=7");
    ck_holds(text, "lstm       0.750              0.500              0.250       0.125  0.625 / 1.000~         0.875");
    ck_holds(text, "arrow:... is arrow:size=48,n_test=2000: test token accuracy, ");
    ck_holds(text, "arrow:patch=8,... is arrow:size=48,patch=8,n_test=2000: test token accuracy, ");
    ck_holds(text, "digits:... is digits:n_test=9: test token accuracy, ");
    ck_holds(text, "\ns3:n_train=7: test token accuracy, ");
    free(text);
}
END_TEST

START_TEST(profiles_are_not_mixed_and_one_task_alone_is_nothing) {
    add_of("s5", "lstm;swiglu", "64", "3", 0.25);
    strcpy(add_of("s3", "lstm;swiglu", "64", "3", 0.25)->profile, "quick");
    FILE *f = fopen("/dev/null", "w");
    ck_assert_int_eq(
        report_print(&report_across, &fixture_set, NULL, NULL, &format_term, fixture_folder, f, &fixture_problem),
        ST_DATA);
    ck_assert_int_eq(
        report_print(&report_lengths, &fixture_set, NULL, NULL, &format_term, fixture_folder, f, &fixture_problem),
        ST_DATA);
    ck_holds(fixture_problem.text, "several lengths");
    fclose(f);
}
END_TEST

/* The paper has, over folds, means at the rate that validation chose: here rate 0.001, and 0.003 is the best on the
 * test examples. */
START_TEST(of_folds_the_protocol_makes_the_numbers) {
    static const double val[] = {0.9, 0.9, 0.1, 0.1}, test[] = {0.25, 0.375, 0.5, 1};
    for (int i = 0; i < 8; i++) {
        struct run *run = add_run("gin;gelu", i % 4 < 2 ? 1e-3 : 3e-3, (uint64_t)(i % 2), val[i % 4], test[i % 4]);
        strcpy(run->task, i < 4 ? "molecules" : "molecules:fold=1");
    }
    char *text = render_report(&report_tables, &format_term);
    ck_holds(text, "val-mean in each fold, and the mean");
    ck_holds(text, "gin    0.312 (4)  0.312 (4)  0.312  0.000          -     -\n");
    ck_holds(text, "Mean over the seeds at the learning rate that validation chose, of several decays");
    free(text);
    text = render(&format_term, &(struct report_filter){.protocol = PROTOCOL_BEST_OF_GRID});
    ck_holds(text, "gin    1.000 (4)  1.000 (4)  1.000  0.000          -     -\n");
    ck_holds(text, "(n): the best of n runs");
    free(text);
    text = render_report(&report_settings, &format_csv);
    ck_holds(text, ",n_cut_off,estimate,n_failed,flags\n");
    ck_holds(text, ",base,1,4,0,0.3125,0,");
    ck_holds(text, ",mean,1,8,0,0.3125,0,");
    free(text);
}
END_TEST

/* Seed 0 chooses, seed 1 is reported on. The best of all rates and seeds is of no protocol but its own. */
START_TEST(seeds_that_confirm_are_told_in_every_table_or_refused) {
    static const struct report *const reports[] = {&report_across, &report_suites, &report_layers, &report_lengths};
    static struct eval_point evals[2] = {{.split = SPLIT_TEST, .length = 8, .n = 10, .acc = 1},
                                         {.split = SPLIT_TEST, .length = 16, .n = 30, .acc = 0.5}};
    static const struct report_filter confirmed = {.confirm = 1}, named = {.protocol_given = true},
                                      best = {.protocol = PROTOCOL_BEST_OF_GRID, .protocol_given = true};
    for (int i = 0; i < 4; i++) {
        struct run *run = add_run("gin;gelu", 1e-3, (uint64_t)(i % 2), 0.5, 0.5);
        strcpy(run->task, i < 2 ? "s5" : "s5:length=8");
        run->len_train = i < 2 ? 16 : 8;
        strcpy(evals[i % 2].difficulty, "length");
        fixture_records[i].evals = evals;
        fixture_records[i].n_evals = 2;
    }
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++) {
        char *text = render_by(reports[i], &confirmed);
        ck_assert_msg(text != NULL, "%s: %s", reports[i]->name, fixture_problem.text);
        ck_holds(text, "Each row reports its 1 largest seeds; the others chose the rate (--confirm-seeds).\n");
        free(text);
    }
    ck_assert_ptr_null(render_by(&report_settings, &confirmed));
    ck_assert_int_eq(fixture_problem.status, ST_USAGE);
    ck_holds(fixture_problem.text, "s5 is the best of the grid, all rates and seeds, so that --confirm-seeds changes");
    ck_assert_ptr_null(render_by(&report_settings, &named));
    ck_holds(fixture_problem.text, "so that --protocol changes none; leave it out");
    free(render_by(&report_settings, &best));
    for (int i = 0; i < 4; i++) strcpy(fixture_records[i].run.task, i < 2 ? "molecules" : "molecules:fold=1");
    char *text = render_by(&report_settings, &confirmed);
    ck_assert_msg(text != NULL, "%s", fixture_problem.text);
    ck_holds(text, "Each row reports its 1 largest seeds");
    free(text);
}
END_TEST

/* Their paper's number is no best, so ours is none; no model of MAD's changes is without one that is. */
START_TEST(beside_a_published_mean_over_settings_stands_no_best) {
    static const char published[] = "arxiv,table,row,task,model,metric,value,spread,spread_kind,n,protocol,settings\n"
                                    "1,T,GIN,s5,gin,acc,0.5,,none,5,mean,variants\n";
    char path[PATH_BYTES];
    for (int i = 0; i < 4; i++)
        strcpy(add_run("gin;gelu", 1e-3, (uint64_t)(i % 2), 0.5, 0.25 * (i % 2))->task, i < 2 ? "s5" : "s5:length=8");
    char *text = render_report(&report_settings, &format_term);
    ck_holds(text, "best of the grid in each setting");
    ck_holds(text, "gin    0.250 (2)  0.250 (2)  0.250");
    free(text);
    snprintf(path, sizeof path, "%s/published.csv", fixture_folder);
    spill(path, published, sizeof published - 1);
    text = render_report(&report_settings, &format_term);
    ck_holds(text, "val-mean in each setting");
    ck_holds(text, "gin    0.125 (2)  0.125 (2)  0.125");
    free(text);
}
END_TEST

/* 10 and 30 sequences of lengths 40 and 47, 40 of length 256, and of `more` lengths from 100 on none is right. */
static void add_by_length(int more) {
    static struct eval_point evals[12] = {
        {.split = SPLIT_TEST, .length = 256, .n = 80, .acc = 0.5},
        {.split = SPLIT_TEST, .length = 256, .n = 40, .acc = 0.25, .difficulty = "length"},
        {.split = SPLIT_TEST, .length = 40, .n = 10, .acc = 1, .difficulty = "length"},
        {.split = SPLIT_TEST, .length = 47, .n = 30, .acc = 0.5, .difficulty = "length"},
    };
    for (int i = 0; i < more; i++)
        evals[4 + i] = (struct eval_point){.split = SPLIT_TEST, .length = 100 + i, .n = 10, .difficulty = "length"};
    for (int i = 0; i < 2; i++) {
        add_run("lstm;swiglu", 1e-3, (uint64_t)i, 0.5, 0.5)->train_loss = 0.25;
        fixture_records[i].evals = evals;
        fixture_records[i].n_evals = 4 + more;
    }
}

/* Nine lengths, the longest of which ends the last bin; a second seed failed: chance, 1/120. */
START_TEST(accuracy_by_length_is_the_mean_over_sequences_and_seeds) {
    add_by_length(6);
    with_other_products(&fixture_records[1].run);
    char *text = render_report(&report_lengths, &format_term);
    ck_holds(text, "1 of 2 runs " OTHER_PRODUCTS_NOTE);
    ck_holds(text, "40-47  48-63  64-95           96-127  128-191          192-256  .9 up to    all  training loss");
    ck_holds(text, "lstm   0.625 0.47-0.76      -      -  0.000 0.00-0.06        -  0.250 0.14-0.40         -  0.500 ");
    free(text);
    spoil(&fixture_records[1].run, RUN_NAN, "");
    text = render_report(&report_lengths, &format_term);
    ck_holds(text, "lstm   0.317#");
    ck_holds(text, "#: 1 of 2 runs failed and count as chance.");
    free(text);
    text = render_report(&report_lengths, &format_csv);
    ck_holds(text, ",n,n_cut_off,n_failed,n_measured,wilson_low,wilson_high,followed_to,flags\n");
    ck_holds(text, ",2,0,1,40,");
    ck_holds(text, "s5,paper,lstm,40,47,0.3166666"); /* (0.625 + 1/120) / 2 */
    ck_holds(text, "s5,paper,lstm,192,256,0.1291666");
    free(text);
}
END_TEST

/* The mean is of the seeds that have sequences of that length, and the table says of how many. */
START_TEST(a_seed_without_a_length_takes_nothing_from_the_others) {
    add_by_length(0);
    fixture_records[1].n_evals = 3; /* not the last one, of length 47 */
    char *text = render_report(&report_lengths, &format_term);
    ck_holds(text, "lstm   1.000 0.72-1.00  0.500 0.33-0.67 [1]  0.250 0.14-0.40        40  0.500");
    ck_holds(text, "[1] of 1 of 2 seeds, for the others have no such test sequences");
    free(text);
    text = render_report(&report_lengths, &format_csv);
    ck_holds(text, "s5,paper,lstm,47,47,0.5,0.25,1,0,0,30,0.33154");
    ck_holds(text, "s5,paper,lstm,40,40,1,0.25,2,0,0,10,0.72246");
    free(text);
}
END_TEST

START_TEST(a_protocol_counts_the_runs_that_have_the_length) {
    add_by_length(0);
    fixture_records[1].n_evals = 3;
    const struct run_record *runs[] = {&fixture_records[0], &fixture_records[1]};
    struct report_row row = {.chosen = runs, .all = runs, .n = 2, .n_all = 2};
    for (int p = PROTOCOL_VAL_MEAN; p <= PROTOCOL_IQM; p++) {
        struct length_estimate of_one, of_none;
        ck_ok(length_estimate(&row, (enum report_protocol)p, 47, &of_one, &fixture_problem));
        ck_assert(of_one.value == 0.5 && of_one.without == 1);
        ck_ok(length_estimate(&row, (enum report_protocol)p, 48, &of_none, &fixture_problem));
        ck_assert(isnan(of_none.value) && of_none.without == 2);
    }
}
END_TEST

START_TEST(of_up_to_eight_lengths_each_has_a_column) {
    add_by_length(0);
    char *text = render_report(&report_lengths, &format_term);
    ck_holds(text, "model               40               47              256  .9 up to    all  training loss  steps");
    ck_holds(text, "lstm   1.000 0.72-1.00  0.500 0.33-0.67  0.250 0.14-0.40        40  0.500          0.250    300");
    free(text);
    text = render_report(&report_lengths, &format_csv);
    ck_holds(text, "s5,paper,lstm,47,47,0.5");
    free(text);
    fixture_set.n = 0;
    add_by_length(5);
    text = render_report(&report_lengths, &format_term);
    ck_holds(text, "256  .9 up to    all");
    free(text);
}
END_TEST

START_TEST(each_run_has_its_row_and_its_curve) {
    add_run("lstm;swiglu", 1e-3, 3, 0.9, 0.75)->train_loss = 1.5;
    add_run("lstm;swiglu", 2e-3, 4, 0.3, 0.25)->train_loss = 2;
    cut_off(&fixture_records[1].run, 200);
    char *text = render_report(&report_each, &format_term);
    ck_holds(text, "lstm   fbc0cede  0.001     3  300/300  steps           1.500  0.300 0.600 0.900");
    ck_holds(text, "0.7500   0.3750");
    ck_holds(text, "lstm   14e17963  0.002     4  200/300  budget          2.000  0.100 0.200 0.300");
    ck_holds(text, "0.2500*  0.1250*");
    free(text);
    text = render_report(&report_each, &format_csv);
    ck_holds(text, "s5,paper,lstm,0.002,4,300,0.3\n");
    free(text);
}
END_TEST

/* Beside one that was cut off. */
START_TEST(chance_is_told_from_a_result_of_each_run) {
    cut_off(add_run("lstm;swiglu", 1e-3, 3, 0.9, 0.75), 200);
    char *text = render_report(&report_each, &format_term);
    ck_assert_ptr_null(strstr(text, FAILED_MARK));
    free(text);
    spoil(add_run("lstm;swiglu", 1e-3, 4, 0.9, 0.75), RUN_NAN, "loss");
    text = render_report(&report_each, &format_term);
    ck_holds(text, "0.7500*  0.3750*\n");
    ck_holds(text, "0.0083#        -\n");
    ck_holds(text, "\n" CUT_OFF_NOTE ".\n" FAILED_NOTE ".\n");
    free(text);
}
END_TEST

/* The seed of a run that another program made. */
START_TEST(the_largest_seeds_are_whole_numbers) {
    add_run("lstm;swiglu", 1e-3, 1, 0.9, 0.75)->seed = UINT64_MAX;
    char *text = render_report(&report_each, &format_csv);
    ck_holds(text, "lstm,0.001,18446744073709551615,");
    free(text);
    text = render_report(&report_each, &format_term);
    ck_holds(text, " 18446744073709551615 ");
    free(text);
}
END_TEST

/* 100 evaluations: every fifth and the last. */
START_TEST(a_long_curve_is_thinned) {
    static struct curve_point curve[101];
    for (int i = 0; i < 101; i++) curve[i] = (struct curve_point){.step = i + 1, .split = SPLIT_VAL, .acc = 0.001 * i};
    add_run("lstm;swiglu", 1e-3, 3, 0.9, 0.75);
    fixture_records[0].curve = curve;
    fixture_records[0].n_curve = 101;
    char *text = render_report(&report_each, &format_term);
    ck_holds(text, "  0.004 0.009 0.014 ");
    ck_holds(text, " 0.099 0.100  ");
    free(text);
}
END_TEST

static char *render_by_iqm(void) {
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    struct report_filter filter = {.protocol = PROTOCOL_IQM};
    ck_ok(report_print(&report_across, &fixture_set, &filter, NULL, &format_term, fixture_folder, f, &fixture_problem));
    fclose(f);
    return text;
}

/* Agarwal et al. 2021: over all runs of all tasks, each task a stratum. A model that lacks a task has no such
 * number. */
START_TEST(one_number_over_all_tasks_is_an_interquartile_mean) {
    for (int i = 0; i < 6; i++) {
        struct run *run = add_of(i < 3 ? "s3" : "s5", "lstm;swiglu", "64", "3", i < 3 ? 0 : 1);
        run->seed = (uint64_t)i % 3;
        char id[RUN_ID_HEX];
        snprintf(id, sizeof id, "%032d", i);
        memcpy(run->run_id, id, sizeof id);
    }
    add_of("s5", "lru;swiglu", "64", "3", 0.5);
    char *text = render_by_iqm();
    ck_holds(text, "0.000 / 1.000~  1.000 / 1.000~  0.500 [0.500, 0.500]\n");
    ck_holds(text, "-       0.500 / -                     -\n");
    ck_holds(text, "Interquartile mean over the seeds at the learning rate that validation chose, 1 to 3 seeds / the "
                   "paper's number.\n");
    ck_assert_ptr_null(strstr(text, "Bold")); /* which no text file has */
    free(text);
    cut_off(&fixture_records[3].run, 200); /* has its part in the numbers of S5 and of all */
    text = render_by_iqm();
    ck_holds(text, "0.000 / 1.000~  1.000* / 1.000~  0.500* [0.500, 0.500]\n");
    free(text);
}
END_TEST

/* A suite may have one task; the legend stands once, below the last matrix. */
START_TEST(suites_have_a_matrix_each_and_one_legend) {
    strcpy(add_of("s5", "lstm;swiglu", "64", "3", 0.5)->suite, "word-problem");
    struct run *cut = add_of("s3", "lstm;swiglu", "64", "20", 0.75);
    strcpy(cut->suite, "word-problem");
    cut_off(cut, 200);
    strcpy(add_of("parity", "lru;swiglu", "64", "20", 0.125)->suite, "regular");
    char *text = render_report(&report_suites, &format_term);
    const char *first = strstr(text, "Suite word-problem, profile paper: 1 model\n"),
               *second = strstr(text, "Suite regular, profile paper: 1 model\n"),
               *legend = strstr(text, " / the paper's number.");
    ck_assert_msg(first && second && legend && legend > first && legend > second, "%s", text);
    ck_assert_ptr_null(strstr(legend + 1, " / the paper's number."));
    ck_holds(legend, CUT_OFF_NOTE);
    free(text);
    text = render_report(&report_suites, &format_csv);
    ck_holds(text, "paper,lru,parity,val-mean,0.125,1,0,,1,0,0,,dim=64 ");
    free(text);
}
END_TEST

/* Markdown that a page can fold: the caption is HTML, the table is not. */
START_TEST(details_are_folded_under_their_captions) {
    strcpy(add_of("s5", "lstm;swiglu", "64", "3", 0.5)->profile, "a<b&c");
    char *text = render_report(&report_tables, &format_details);
    ck_assert_int_eq(strncmp(text, "<details>\n<summary>s5, profile a&lt;b&amp;c: 1 row, ", 51), 0);
    ck_holds(text, "</summary>\n\n| model | params |");
    ck_holds(text, "\n</details>\n");
    ck_assert_ptr_null(strstr(text, "###"));
    free(text);
}
END_TEST

/* The accuracy of one sequence is 0 or 1: it joins its neighbours, and each number has its interval. */
START_TEST(sparse_lengths_are_taken_together) {
    static struct eval_point evals[] = {
        {.split = SPLIT_TEST, .length = 8, .n = 30, .acc = 0.9, .difficulty = "length"},
        {.split = SPLIT_TEST, .length = 9, .n = 1, .acc = 0, .difficulty = "length"},
        {.split = SPLIT_TEST, .length = 10, .n = 11, .acc = 1, .difficulty = "length"},
        {.split = SPLIT_TEST, .length = 11, .n = 1, .acc = 0, .difficulty = "length"},
    };
    add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.25);
    fixture_records[0].evals = evals;
    fixture_records[0].n_evals = 4;
    char *text = render_by(&report_lengths, NULL);
    ck_holds(text, "    8             9-11  .9 up to");
    ck_holds(text, " 0.900 0.74-0.97  0.846 0.58-0.96  ");
    ck_holds(text, "the fewest: 8: 30, 9-11: 13.");
    free(text);
}
END_TEST

Suite *check_across(void) {
    const TTest *const tests[] = {
        tasks_stand_side_by_side_with_the_published_numbers,
        remarks_are_on_what_is_there,
        the_mark_follows_the_protocol,
        failed_runs_are_marked_in_every_summary,
        what_differs_within_a_task_keeps_rows_apart_in_all,
        headings_have_what_tells_tasks_apart,
        profiles_are_not_mixed_and_one_task_alone_is_nothing,
        accuracy_by_length_is_the_mean_over_sequences_and_seeds,
        a_seed_without_a_length_takes_nothing_from_the_others,
        a_protocol_counts_the_runs_that_have_the_length,
        of_up_to_eight_lengths_each_has_a_column,
        sparse_lengths_are_taken_together,
        of_folds_the_protocol_makes_the_numbers,
        seeds_that_confirm_are_told_in_every_table_or_refused,
        beside_a_published_mean_over_settings_stands_no_best,
        each_run_has_its_row_and_its_curve,
        chance_is_told_from_a_result_of_each_run,
        the_largest_seeds_are_whole_numbers,
        a_long_curve_is_thinned,
        one_number_over_all_tasks_is_an_interquartile_mean,
        suites_have_a_matrix_each_and_one_legend,
        details_are_folded_under_their_captions,
    };
    return fixture_suite("across", tests, (int)(sizeof tests / sizeof tests[0]));
}

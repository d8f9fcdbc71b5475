/* check_published.c - the papers' numbers, and which run each is compared with. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/option.h"
#include "harness/store/csv.h"
#include "harness/store/files.h"
#include "tests/harness/table/fixture.h"

static double published_of(const struct published *p, const char *task, enum metric metric, const char *layers) {
    struct run run = {0};
    strcpy(run.task, task);
    run.metric = metric;
    strcpy(run.layers, layers);
    snprintf(run.model, sizeof run.model, "%.*s", (int)strcspn(layers, ":;"), layers);
    return published_of_run(p, &run, NULL).value;
}

START_TEST(published_numbers_are_found_by_mixer_and_m) {
    struct published p;
    ck_ok(published_read(&p, fixture_folder, &fixture_problem));
    ck_assert_double_eq(published_of(&p, "s5", METRIC_ACC, "bdlru:m=4,blocks=64,gate-init=5;swiglu"), 0.87);
    ck_assert_double_eq(published_of(&p, "s5", METRIC_ACC, "bdlru:blocks=8,m=3;none"), 0.48);
    ck_assert_double_eq(published_of(&p, "s3-250", METRIC_ACC, "bdlru:m=3"), 1);
    ck_assert_double_eq(published_of(&p, "s3", METRIC_ACC, "hlru:m=5,layout=observer;swiglu"), 0.61);
    ck_assert_double_eq(published_of(&p, "s4-3k", METRIC_ACC, "lstm;swiglu"), 0.37);
    ck_assert_double_eq(published_of(&p, "s4", METRIC_ACC, "deltaproduct:heads=4,steps=4"), 1);
    ck_assert_double_eq(published_of(&p, "hlru-copy", METRIC_MACRO_ACC, "hlru:m=2"), 0.855);
    ck_assert_double_eq(published_of(&p, "overall", METRIC_ACC, "mamba2"), 0.35);
    ck_assert_double_nan(published_of(&p, "s5", METRIC_ACC, "deltaproduct:steps=2"));
    ck_assert_double_nan(published_of(&p, "s5", METRIC_ACC, "lru;swiglu"));
    ck_assert_double_nan(published_of(&p, "s5", METRIC_MACRO_ACC, "lstm"));
    ck_assert_double_nan(published_of(&p, "a5", METRIC_ACC, "lstm"));
    ck_assert_double_nan(published_of(&p, "s5", METRIC_ACC, "bdlru:m=50")); /* not the row of m=5 */
    published_free(&p);
}
END_TEST

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
    snprintf(path, sizeof path, "%s/published.csv", fixture_folder);
    spill(path, text, sizeof text - 1);
    ck_ok(published_read(&p, fixture_folder, &fixture_problem));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double value = published_of(&p, "s5", METRIC_ACC, cases[i].layers);
        ck_assert_msg(value == cases[i].value || (isnan(value) && isnan(cases[i].value)), "%s: %g, expected %g",
                      cases[i].layers, value, cases[i].value);
    }
    published_free(&p);
}
END_TEST

/* The tasks whose mean a row of that name has. */
static int columns_of(const char *overall) {
    static const struct {
        const char *name;
        int columns;
    } others[] = {{"overall", 5}, {"mad-overall", 3}, {"uea-overall", 6}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(overall, others[i].name)) return others[i].columns;
    return 4;
}

/* Every printed mean of the paper fits its row, up to its rounding (it cuts off some, so a whole unit of the third
 * digit). This fixes the one cell that the text copy of the paper lacks. */
START_TEST(published_means_are_those_of_their_rows) {
    struct published p;
    ck_ok(published_read(&p, fixture_folder, &fixture_problem));
    ck_assert_int_eq(p.table.columns, 15);
    ck_assert_int_eq(
        p.table.rows,
        14 * (6 + 4) + 10 + 10 + 17 * 5 + 11 + 24 + 17 + 18 + /* SLiCE: two figures, a table; Myosotis: three */
            8 * 6 + 6 * 2 + 6 * 2 +                           /* SLiCE: time series; S5: texts; pLSTM: arrows */
            6 * 5 + 18 + 4 + 4 * 2 +                          /* pLSTM: graphs; PD-SSM: automata; DeltaProduct: steps */
            4 * 7 + 7 * 3 + 2 * 3 + 5 * 3 + /* PD-SSM: series; negative eigenvalues, xLSTM, Mamba-3: languages */
            5 * 6 + 6 * 4 + 3);             /* RWKV-7 and MesaNet: MAD; minGRU: copying */
    int means = 0;
    for (int i = 0; i < p.table.rows; i++) {
        const char *task = csv_cell(&p.table, i, "task"), *row = csv_cell(&p.table, i, "row"),
                   *in = csv_cell(&p.table, i, "table");
        double value, sum = 0, mean;
        int n = 0;
        ck_assert(parse_double(csv_cell(&p.table, i, "value"), &mean));
        ck_assert(mean >= 0 && (mean <= 1 || !strcmp(csv_cell(&p.table, i, "metric"), "least")));
        if (!strstr(task, "overall")) continue;
        for (int k = 0; k < p.table.rows; k++)
            if (strcmp(csv_cell(&p.table, k, "row"), row) == 0 && strcmp(csv_cell(&p.table, k, "table"), in) == 0 &&
                !strstr(csv_cell(&p.table, k, "task"), "overall")) {
                ck_assert(parse_double(csv_cell(&p.table, k, "value"), &value));
                sum += value;
                n++;
            }
        ck_assert_int_eq(n, columns_of(task));
        ck_assert_msg(fabs(sum / n - mean) <= 0.0010001, "%s, %s: %g, mean of its row %g", row, task, mean, sum / n);
        means++;
    }
    ck_assert_int_eq(means, 55);
    published_free(&p);
}
END_TEST

static bool stands_in(const struct published *p, int i, const char *table, const char *row) {
    return strcmp(csv_cell(&p->table, i, "table"), table) == 0 && strcmp(csv_cell(&p->table, i, "row"), row) == 0;
}

/* SLiCE's table of single languages and the figure of their averages are one set of runs. */
START_TEST(published_languages_have_the_published_average) {
    static const char *const rows[][2] = {{"LSTM", "LSTM"},
                                          {"BD4", "BD"},
                                          {"D-DE16", "D-DE"},
                                          {"Mamba", "Mamba"},
                                          {"Transformer", "Transformer"},
                                          {"DeltaNet", "DeltaNet"},
                                          {"Gated DeltaProduct", "Gated DeltaProduct"}};
    struct published p;
    ck_ok(published_read(&p, fixture_folder, &fixture_problem));
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        double value, sum = 0, average = NAN;
        int n = 0;
        for (int i = 0; i < p.table.rows; i++) {
            ck_assert(parse_double(csv_cell(&p.table, i, "value"), &value));
            if (stands_in(&p, i, "repository figure (May 2025)", rows[r][1])) average = value;
            if (!stands_in(&p, i, "Table 2 (fsa_table.png of its repository)", rows[r][0]) ||
                strstr(csv_cell(&p.table, i, "task"), "overall"))
                continue;
            sum += value;
            n++;
        }
        ck_assert_int_eq(n, 4);
        ck_assert_msg(fabs(sum / n - average) <= 0.0010001, "%s: %g, the figure has %g", rows[r][0], sum / n, average);
    }
    ck_assert_double_eq(published_of(&p, "parity", METRIC_ACC, "slice:block=4;none"), 0.884);
    ck_assert_double_eq(published_of(&p, "cycle-navigation", METRIC_ACC, "lstm;none"), 1);
    published_free(&p);
}
END_TEST

START_TEST(sizes_of_validation_and_test_sets_keep_no_number_away) {
    struct published p;
    ck_ok(published_read(&p, fixture_folder, &fixture_problem));
    ck_assert_double_eq(published_of(&p, "parity:n_val=1024,n_test=4096", METRIC_ACC, "slice;none"), 0.884);
    ck_assert_double_eq(published_of(&p, "cycle-navigation:n_val=1024,n_test=4096", METRIC_ACC, "lstm;none"), 1);
    ck_assert_double_eq(published_of(&p, "s5:n_test=100", METRIC_ACC, "bdlru:m=4;swiglu"), 0.87);
    ck_assert_double_nan(published_of(&p, "parity:max_length=12,n_val=1024,n_test=4096", METRIC_ACC, "lstm;none"));
    ck_assert_double_nan(published_of(&p, "parity:n_train=1000,n_test=4096", METRIC_ACC, "lstm;none"));
    published_free(&p);
}
END_TEST

/* A number that is a mean over settings says so, and what is no mean does not. */
START_TEST(means_over_settings_are_marked) {
    struct published p;
    struct run run = {.metric = METRIC_MACRO_ACC, .task = "hlru-recall", .model = "lstm", .layers = "lstm"};
    ck_ok(published_read(&p, fixture_folder, &fixture_problem));
    ck_assert(published_of_run(&p, &run, NULL).settings);
    strcpy(run.task, "s5");
    run.metric = METRIC_ACC;
    ck_assert(published_of_run(&p, &run, NULL).value == 1 && !published_of_run(&p, &run, NULL).settings);
    for (int i = 0; i < p.table.rows; i++)
        ck_assert_int_eq(*csv_cell(&p.table, i, "settings") != 0,
                         strstr(csv_cell(&p.table, i, "note"), "mean over the base setting") != NULL);
    published_free(&p);
}
END_TEST

/* A paper that reports the best of its runs has ours beside it, one that reports a mean ours. */
START_TEST(the_difference_is_from_what_the_paper_reports) {
    static const char table[] = "arxiv,table,task,model,metric,value,protocol\n2602.12021,Table 2,s5,lstm,acc,0.5,%s\n";
    static const char *const protocols[] = {"best-of-grid", "mean", ""};
    static const double differences[] = {0.4, 0.2, 0.2};
    char path[PATH_BYTES], text[256];
    snprintf(path, sizeof path, "%s/published.csv", fixture_folder);
    add_run("lstm;swiglu", 1e-3, 0, 0.9, 0.8);
    add_run("lstm;swiglu", 1e-3, 1, 0.9, 0.6);
    add_run("lstm;swiglu", 3e-3, 0, 0.1, 0.9); /* the largest, at the rate that validation does not choose */
    add_run("lstm;swiglu", 3e-3, 1, 0.1, 0.1);
    for (int i = 0; i < 3; i++) {
        struct report_tables tables;
        snprintf(text, sizeof text, table, protocols[i]);
        ck_ok(write_file_atomic(path, text, strlen(text), &fixture_problem));
        ck_assert_double_eq_tol(only_row(&tables)->delta, differences[i], 1e-12);
        report_tables_free(&tables);
    }
}
END_TEST

START_TEST(an_output_folders_own_published_csv_comes_first) {
    static const char text[] = "arxiv,table,task,model,metric,value\n2602.12021,Table 2,s5,lstm,acc,0.125\n";
    struct report_tables tables;
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/published.csv", fixture_folder);
    ck_ok(write_file_atomic(path, text, strlen(text), &fixture_problem));
    add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5);
    ck_assert_double_eq(only_row(&tables)->delta, 0.375);
    report_tables_free(&tables);
}
END_TEST

/* An editor that ends the file without a line feed takes no number away; a last line that is cut off is named. */
START_TEST(the_last_number_counts_without_a_line_feed) {
    static const char *const texts[] = {"task,model,metric,value\ns5,lstm,acc,0.125\ns5,lru,acc,0.25",
                                        "task,model,metric,value\ns5,lstm,acc,0.125\ns5,lru"};
    char path[PATH_BYTES];
    struct published p;
    snprintf(path, sizeof path, "%s/published.csv", fixture_folder);
    spill(path, texts[0], strlen(texts[0]));
    ck_ok(published_read(&p, fixture_folder, &fixture_problem));
    ck_assert_int_eq(p.table.rows, 2);
    ck_assert_double_eq(published_of(&p, "s5", METRIC_ACC, "lru"), 0.25);
    published_free(&p);
    spill(path, texts[1], strlen(texts[1]));
    ck_assert_int_eq(published_read(&p, fixture_folder, &fixture_problem), ST_DATA);
    ck_holds(fixture_problem.text, "line 3: expected 4 cells as in the header, got 2");
}
END_TEST

/* Only runs on whole released files are compared; a part of them, or files of one's own, are other data. */
START_TEST(a_number_of_other_data_is_not_compared) {
    static const struct {
        const char *task;
        int64_t n[3];
        bool fits;
    } cases[] = {{"mutag", {150, 19, 19}, true},
                 {"mutag:fold=3", {151, 18, 19}, true},
                 {"mutag", {20, 3, 3}, false},
                 {"mutag", {15000, 1900, 1900}, false},
                 {"eigenworms", {165, 35, 36}, true}, /* 236 of 259 differ */
                 {"heartbeat", {14, 3, 3}, false},
                 {"psmnist", {54000, 6000, 10000}, true},
                 {"smnist:order=snake", {36, 4, 12}, false},
                 {"pathfinder:released=yes", {160, 20, 20}, false},
                 {"pathfinder", {160, 20, 20}, true}, /* drawn, as many as one likes */
                 {"s5", {100, 10, 10}, true},
                 {"mutag", {-1, -1, -1}, true}}; /* nobody knows */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct run on = {.n_train = cases[i].n[0], .n_val = cases[i].n[1], .n_test = cases[i].n[2]};
        strcpy(on.task, cases[i].task);
        ck_assert_msg(published_data_fits(&on) == cases[i].fits, "%s, case %d", on.task, (int)i);
    }
}
END_TEST

/* With the zeros: half a unit of the last digit is no difference from ours. */
START_TEST(values_have_the_digits_that_their_papers_round_to) {
    static const struct {
        const char *arxiv, *table, *task, *mixer;
        double value, rounding;
        const char *printed;
    } cases[] = {
        {"2602.12021", "Table 2", "s3", "bdlru:m=2", 1, 0.0005, "1.000"},
        {"2602.12021", "Table 2", "s3-250", "lstm", 0.32, 0.0005, "0.320"},
        {"2602.12021", "Table 2", "overall", "lstm", 0.738, 0.0005, "0.738"},
        {"2602.12021", "Table 1", "hlru-copy", "bdlru:m=5", 0.985, 0.0005, "0.985"},
        {"2509.20503", "LRA table", "listops", "s4-legs", 0.596, 0.00005, "0.5960"},
    };
    struct published p;
    ck_ok(published_read(&p, fixture_folder, &fixture_problem));
    for (int i = 0; i < p.table.rows; i++) {
        const char *value = csv_cell(&p.table, i, "value"), *point = strchr(value, '.');
        bool counted = !strcmp(csv_cell(&p.table, i, "metric"), "least");
        ck_assert_msg(counted || (point && strlen(point) > 2), "row %d: %s has fewer than two decimals", i + 1, value);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct label mixer;
        const char *row, *metric = strcmp(cases[i].table, "Table 1") != 0 ? "acc" : "macro_acc";
        ck_ok(label_parse(&mixer, "mixer", cases[i].mixer, &fixture_problem));
        struct published_value v = published_find(&p,
                                                  &(struct published_query){.arxiv = cases[i].arxiv,
                                                                            .source = cases[i].table,
                                                                            .task = cases[i].task,
                                                                            .metric = metric,
                                                                            .mixer = &mixer},
                                                  &row);
        char format[PUBLISHED_FORMAT_BYTES], printed[32];
        published_format(&v, format);
        snprintf(printed, sizeof printed, format, v.value);
        ck_assert_str_eq(printed, cases[i].printed);
        ck_assert_double_eq(v.value, cases[i].value);
        ck_assert_double_eq_tol(v.rounding, cases[i].rounding, 1e-12);
    }
    published_free(&p);
}
END_TEST

Suite *check_published(void) {
    const TTest *const tests[] = {
        published_numbers_are_found_by_mixer_and_m,
        a_default_matches_whether_it_is_written_or_not,
        published_means_are_those_of_their_rows,
        published_languages_have_the_published_average,
        sizes_of_validation_and_test_sets_keep_no_number_away,
        means_over_settings_are_marked,
        the_difference_is_from_what_the_paper_reports,
        an_output_folders_own_published_csv_comes_first,
        the_last_number_counts_without_a_line_feed,
        a_number_of_other_data_is_not_compared,
        values_have_the_digits_that_their_papers_round_to,
    };
    return fixture_suite("published", tests, (int)(sizeof tests / sizeof tests[0]));
}

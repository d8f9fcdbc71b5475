/* check_rows.c - how run records become the rows of tables: what tells rows apart, what a label says, what a filter
 * takes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness/study/row_key.h"
#include "harness/store/logs.h"
#include "kernels/lib/gemm.h"
#include "tests/harness/table/fixture.h"

/* Another value than the default of an option of a run's flags. */
static const char *other_value(const struct option *o) {
    static char text[64];
    switch (o->type) {
    case OPT_INT:
        return "7";
    case OPT_REAL:
        return "0.125";
    case OPT_TIME:
        return "7s";
    case OPT_BOOL:
        return strcmp(o->value, "no") ? "no" : "yes";
    case OPT_CHOICE: { /* the last; precision may have one alone */
        const char *last = strrchr(o->choices, ' ');
        snprintf(text, sizeof text, "%s", last ? last + 1 : "another");
        return strcmp(text, o->value) ? text : "another";
    }
    case OPT_TEXT_FIELD:
        break;
    }
    return "something";
}

/* Whatever a run's flags are, and whichever join them: three seeds that differ in one of them are no three of a row. */
START_TEST(rows_differ_in_every_flag_but_rate_and_seed) {
    const struct option *const tables[] = {backbone_options, config_options};
    int compared = 0;
    for (int t = 0; t < 2; t++)
        for (const struct option *o = tables[t]; o->name; o++) {
            struct report_tables made;
            if (o->flags & OPT_RUNTIME) continue;
            fixture_set.n = 0;
            bool grid = !strcmp(o->name, "lr") || !strcmp(o->name, "seed");
            for (uint64_t seed = 1; seed <= 2; seed++) {
                struct run *run = add_run("bdlru:m=5;swiglu", 1e-3, seed, 0.5, 0.5);
                identify(run, "mlp", "swiglu"); /* its default, which nets without that choice have */
                if (!grid) identify(run, o->name, o->value);
            }
            if (!grid) {
                struct run *other = add_run("bdlru:m=5;swiglu", 1e-3, 1, 0.9, 0.9);
                identify(other, "mlp", "swiglu");
                identify(other, o->name, other_value(o));
            }
            ck_ok(report_tables_make(&made, &fixture_set, NULL, fixture_folder, &fixture_problem));
            ck_assert_int_eq(made.n, 1);
            ck_assert_msg(made.list->n_rows == (grid ? 1 : 2), "--%s: %d rows", o->name, made.list->n_rows);
            for (int i = 0; i < made.list->n_rows && !grid; i++) {
                char part[64];
                snprintf(part, sizeof part, " %s=", o->name);
                ck_holds(made.list->rows[i].label, part);
                ck_assert_msg(strstr(made.list->rows[i].label, part) == strchr(made.list->rows[i].label, ' '), "%s",
                              made.list->rows[i].label);
                ck_assert_ptr_null(strchr(strchr(made.list->rows[i].label, ' ') + 1, ' ')); /* and no more */
            }
            compared++;
            report_tables_free(&made);
        }
    ck_assert_int_ge(compared, 25);
}
END_TEST

START_TEST(tables_are_cut_by_task_and_profile) {
    struct report_tables tables;
    add_grid();
    add_run("bdlru:m=5,blocks=32;swiglu", 1e-3, 0, 0.2, 0.2);
    strcpy(add_run("lstm;swiglu", 1e-3, 0, 0.3, 0.3)->task, "s3");
    strcpy(add_run("lstm;swiglu", 1e-3, 0, 0.3, 0.3)->profile, "smoke");
    ck_ok(report_tables_make(&tables, &fixture_set, NULL, fixture_folder, &fixture_problem));
    ck_assert_int_eq(tables.n, 3); /* s3 paper, s5 paper, s5 smoke */
    ck_assert_str_eq(tables.list[0].task, "s3");
    ck_assert_int_eq(tables.list[1].n_rows, 2);
    ck_assert_int_eq(tables.list[1].n_runs, 7);
    ck_assert_str_eq(tables.list[2].profile, "smoke");
    report_tables_free(&tables);
}
END_TEST

/* The records stay as they are, whatever key their rows come together by. */
START_TEST(a_key_that_the_caller_states_joins_rows_of_several_profiles) {
    static const struct {
        const char *together, *profile, *of_s3;
        int n;
    } cases[] = {{NULL, "paper", NULL, 3}, {"", "custom", "paper", 2}, {"own", "own", "own", 2}};
    struct report_tables tables;
    add_grid();
    strcpy(add_run("lstm;swiglu", 1e-3, 0, 0.3, 0.3)->task, "s3");
    strcpy(add_run("lstm;swiglu", 1e-3, 0, 0.3, 0.3)->profile, "smoke");
    for (int i = 0; i < 3; i++) {
        struct report_filter filter = {.together = cases[i].together};
        ck_ok(report_tables_make(&tables, &fixture_set, &filter, fixture_folder, &fixture_problem));
        ck_assert_int_eq(tables.n, cases[i].n);
        ck_assert_str_eq(tables.list[1].profile, cases[i].profile);
        if (cases[i].of_s3) ck_assert_str_eq(tables.list[0].profile, cases[i].of_s3);
        if (cases[i].together) ck_assert_int_eq(tables.list[1].n_rows, 2);
        report_tables_free(&tables);
    }
    ck_assert_str_eq(fixture_records[0].run.profile, "paper");
    ck_assert_str_eq(fixture_records[fixture_set.n - 1].run.profile, "smoke");
}
END_TEST

/* A rate beside the profile's own takes its run out of it, but not out of the grid that its row's rate is chosen
 * over. */
START_TEST(a_grid_of_rates_is_one_row_whatever_profiles_its_runs_are_of) {
    static const char *const asked[] = {NULL, "custom"};
    struct report_tables tables;
    struct report_filter filter = {.profile = "paper"};
    add_grid(); /* validation prefers 0.001 */
    for (int i = 0; i < 3; i++) strcpy(fixture_records[i].run.profile, "custom");
    for (int i = 0; i < 2; i++) {
        struct report_filter own = {.profile = asked[i]};
        ck_ok(report_tables_make(&tables, &fixture_set, &own, fixture_folder, &fixture_problem));
        ck_assert_int_eq(tables.n, 1);
        ck_assert_str_eq(tables.list->profile, "custom");
        ck_assert_int_eq(tables.list->n_rows, 1);
        ck_assert_int_eq(tables.list->rows->n_all, 6);
        ck_assert_double_eq(tables.list->rows->lr, 1e-3);
        report_tables_free(&tables);
    }
    ck_assert_int_eq(report_tables_make(&tables, &fixture_set, &filter, fixture_folder, &fixture_problem), ST_DATA);
    ck_holds(fixture_problem.text, "every row with runs of profile paper also has other runs");
    filter.where = "lr=0.003";
    ck_ok(report_tables_make(&tables, &fixture_set, &filter, fixture_folder, &fixture_problem));
    ck_assert_int_eq(tables.list->rows->n_all, 3);
    report_tables_free(&tables);
}
END_TEST

/* A run that was killed and done again: both attempts count, the killed one as chance. */
START_TEST(a_failure_stays_when_the_run_is_done_again) {
    struct report_tables tables;
    add_run("lstm;swiglu", 1e-3, 1, 0.5, 0.5)->attempt = 2;
    spoil(add_run("lstm;swiglu", 1e-3, 1, 0.5, 0.5), RUN_KILLED, "signal 9");
    fixture_records[1].run.attempt = 1;
    fixture_records[1].set_aside = true;
    const struct report_row *row = only_row(&tables);
    ck_assert_int_eq(row->n, 2);
    ck_assert_int_eq(row->n_failed, 1);
    ck_assert_double_eq_tol(row->mean, (0.5 + 1.0 / 120) / 2, 1e-12);
    ck_assert(!row->uneven);
    report_tables_free(&tables);
    char *text = render(&format_term, NULL);
    ck_holds(text, "[1] lstm, lr 0.001, seed 1, attempt 1: killed (signal 9); counted as chance, 0.0083");
    free(text);
}
END_TEST

/* Whole sequences: right by chance at the positions that are scored, not at all. */
START_TEST(a_failed_runs_sequences_count_scored_positions) {
    struct report_tables tables;
    struct run *run = add_run("lstm;swiglu", 1e-3, 1, 0.5, 0.5);
    spoil(run, RUN_NAN, "");
    run->chance = 0.25;
    run->seq_chance = 0.125;
    ck_assert_double_eq(only_row(&tables)->seq_acc, 0.125);
    report_tables_free(&tables);
}
END_TEST

/* The sums over such runs are infinite; one rate is chosen all the same. */
START_TEST(the_lowest_numbers_of_validation_choose_a_rate) {
    struct report_tables made;
    fixture_set.n = 0;
    for (int i = 0; i < 6; i++)
        add_run("lstm;gelu", i < 3 ? 1e-3 : 3e-3, (uint64_t)(i % 3), 0.5, 0.5)->val_metric = -1e308;
    ck_ok(report_tables_make(&made, &fixture_set, NULL, fixture_folder, &fixture_problem));
    ck_assert_int_eq(made.n, 1);
    ck_assert_int_eq(made.list->n_rows, 1);
    ck_assert_int_eq(made.list->rows[0].n, 3);
    report_tables_free(&made);
    fixture_set.n = 0;
}
END_TEST

START_TEST(a_seed_counts_once) {
    struct report_tables tables;
    add_run("lstm;swiglu", 1e-3, 3, 0.3, 0.3);
    identify(add_run("lstm;swiglu", 1e-3, 3, 0.9, 0.9), "bidirectional", "no"); /* the default, written */
    strcpy(fixture_records[1].run.run_id, "00000000000000000000000000000002");
    ck_assert_int_eq(report_tables_make(&tables, &fixture_set, NULL, fixture_folder, &fixture_problem), ST_DATA);
    ck_holds(fixture_problem.text, "runs 00000000000000000000000000000002 and ");
    ck_holds(fixture_problem.text, fixture_records[0].run.run_id);
    ck_holds(fixture_problem.text, "(s5, lstm), and both have rate 0.001 and seed 3");
}
END_TEST

/* Three runs of equal numbers in another order: their means are equal, though their sums in floating point are not. */
START_TEST(equal_rates_are_told_apart_by_the_loss) {
    static const double val[2][3] = {{0.91, 0.91, 0.97}, {0.91, 0.97, 0.91}}, rates[] = {1e-3, 3e-3};
    for (int order = 0; order < 2; order++)
        for (int better = 0; better < 2; better++) {
            struct report_tables tables;
            fixture_set.n = 0;
            for (int i = 0; i < 6; i++)
                add_run("lstm;swiglu", rates[i / 3], (uint64_t)(i % 3), val[(i / 3) ^ order][i % 3], 0.5)->val_loss =
                    i / 3 == better ? 0.1 : 0.2;
            ck_assert_double_eq(only_row(&tables)->lr, rates[better]);
            report_tables_free(&tables);
        }
}
END_TEST

/* A row's id depends on the runs' sizes, but not on their rate and seed. */
START_TEST(a_row_has_one_id_whatever_its_rate_and_seed) {
    struct report_tables tables;
    char ids[3][RUN_ID_HEX];
    add_run("lstm;swiglu", 1e-3, 1, 0.5, 0.5);
    add_run("lstm;swiglu", 3e-3, 2, 0.5, 0.5);
    const struct report_row *row = only_row(&tables);
    identify(add_run("lstm;swiglu", 1e-3, 1, 0.5, 0.5), "dim", "24");
    for (int i = 0; i < 3; i++) {
        struct label key;
        ck_ok(row_key(fixture_records[i].identity, &key, &fixture_problem));
        record_hash_label(&key, ids[i]);
    }
    ck_assert_str_eq(ids[0], row->id);
    ck_assert_str_eq(ids[1], row->id);
    ck_assert_str_ne(ids[2], row->id);
    report_tables_free(&tables);
}
END_TEST

START_TEST(a_record_whose_identity_cannot_be_read_is_named) {
    struct report_tables tables;
    add_run("lstm;swiglu", 1e-3, 3, 0.3, 0.3);
    strcpy(fixture_records[0].identity, "task\n");
    ck_assert_int_eq(report_tables_make(&tables, &fixture_set, NULL, fixture_folder, &fixture_problem), ST_DATA);
    ck_holds(fixture_problem.text, fixture_records[0].run.run_id);
    ck_holds(fixture_problem.text, "'task' is not of the form name=value");
}
END_TEST

/* Settings that follow from the sizes or the program are shown only if nothing else tells rows apart. */
START_TEST(labels_say_what_differs_and_no_more) {
    static const struct {
        const char *layers, *key, *value, *label;
    } cases[][3] = {
        {{"lstm:hidden=16;swiglu", NULL, NULL, "lstm:hidden=16"},
         {"lstm:hidden=32;swiglu", NULL, NULL, "lstm:hidden=32"}},
        {{"lstm;swiglu", "steps", "100", "lstm steps=100"},
         {"lstm;swiglu", "steps", "200", "lstm steps=200"},
         {"lru;swiglu", "steps", "300", "lru"}},
        {{"lstm;swiglu", "numerics", "1", "lstm numerics=1"},
         {"lstm;swiglu", "numerics", "1+clip.2", "lstm numerics=1+clip.2"},
         {"deltanet;swiglu", "numerics", "1+delta.2", "deltanet"}},
        {{"lstm;swiglu", "dim", "64", "lstm dim=64"},
         {"lru;swiglu", "dim", "128", "lru dim=128"},
         {"bdlru:m=2;swiglu", "dim", "128", "bdlru:m=2 dim=128"}},
        {{"lstm;swiglu", NULL, NULL, "lstm"}, {"lru:state=4;swiglu", NULL, NULL, "lru:state=4"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct report_tables tables;
        int n = 0;
        fixture_set.n = 0;
        for (; n < 3 && cases[i][n].layers; n++) {
            struct run *run = add_run(cases[i][n].layers, 1e-3, 1, 0.1, 0.1);
            if (cases[i][n].key) identify(run, cases[i][n].key, cases[i][n].value);
            run->params = n; /* the order of equal models */
        }
        ck_ok(report_tables_make(&tables, &fixture_set, NULL, fixture_folder, &fixture_problem));
        ck_assert_int_eq(tables.list->n_rows, n);
        for (int k = 0; k < n; k++) {
            bool found = false;
            for (int row = 0; row < n; row++) found = found || !strcmp(tables.list->rows[row].label, cases[i][k].label);
            ck_assert_msg(found, "%s is not in the table", cases[i][k].label);
        }
        report_tables_free(&tables);
    }
}
END_TEST

START_TEST(the_filter_chooses_task_profile_and_runs_in_the_callers_order) {
    struct report_tables tables;
    const char *runs[3];
    add_run("bdlru:m=1;swiglu", 1e-3, 0, 0.1, 0.1);
    add_run("bdlru:m=2;swiglu", 1e-3, 0, 0.1, 0.1);
    add_run("lstm;swiglu", 1e-3, 0, 0.1, 0.1);
    strcpy(add_run("lru;swiglu", 1e-3, 0, 0.1, 0.1)->task, "s3");
    runs[0] = fixture_records[2].run.run_id;
    runs[1] = fixture_records[0].run.run_id;
    runs[2] = "not there";
    ck_ok(report_tables_make(&tables, &fixture_set,
                             &(struct report_filter){.task = "s5", .profile = "paper", .runs = runs, .n_runs = 3},
                             fixture_folder, &fixture_problem));
    ck_assert_int_eq(tables.n, 1);
    ck_assert_int_eq(tables.list[0].n_rows, 2);
    ck_assert_str_eq(tables.list[0].rows[0].run->model, "lstm");
    ck_assert_str_eq(tables.list[0].rows[1].run->layers, "bdlru:m=1;swiglu");
    report_tables_free(&tables);
    ck_assert_int_eq(report_tables_make(&tables, &fixture_set, &(struct report_filter){.task = "s4"}, fixture_folder,
                                        &fixture_problem),
                     ST_DATA);
    ck_holds(fixture_problem.text, "s4");
}
END_TEST

static void ck_tables(const char *task, const char *where, int n_tables, const char *first_task,
                      const char *first_model) {
    struct report_tables tables;
    struct report_filter filter = {.task = task, .where = where};
    ck_ok(report_tables_make(&tables, &fixture_set, &filter, fixture_folder, &fixture_problem));
    ck_assert_int_eq(tables.n, n_tables);
    ck_assert_str_eq(tables.list[0].task, first_task);
    ck_assert_str_eq(tables.list[0].rows[0].run->model, first_model);
    report_tables_free(&tables);
}

/* By the value of the flag in which they differ, whatever order their runs are read in. */
START_TEST(rows_that_differ_in_a_flag_come_in_its_order) {
    static const char *const stops[] = {"6000", "800", "12000", "3000"}, *const sorted[] = {"800", "3000", "6000",
                                                                                            "12000"};
    struct report_tables tables;
    for (int i = 0; i < 4; i++) identify(add_run("lstm;swiglu", 1e-3, 0, 0.1, 0.1), "dropout", stops[i]);
    ck_ok(report_tables_make(&tables, &fixture_set, NULL, fixture_folder, &fixture_problem));
    ck_assert_int_eq(tables.list[0].n_rows, 4);
    for (int i = 0; i < 4; i++) {
        char label[64];
        snprintf(label, sizeof label, "dropout=%s", sorted[i]);
        ck_holds(tables.list[0].rows[i].label, label);
    }
    report_tables_free(&tables);
}
END_TEST

static void ck_finds_nothing(const char *where, enum status status, const char *sentence) {
    struct report_tables tables;
    struct report_filter filter = {.where = where};
    ck_assert_int_eq(report_tables_make(&tables, &fixture_set, &filter, fixture_folder, &fixture_problem), status);
    ck_holds(fixture_problem.text, sentence);
}

/* Several tasks in the caller's order; options in the form in which a configuration has them, however they are
 * written. */
START_TEST(the_filter_chooses_several_tasks_and_runs_by_their_options) {
    identify(add_run("lstm:hidden=16;swiglu", 1e-3, 0, 0.1, 0.1), "dim", "64");
    struct run *block = add_run("bdlru:m=2;swiglu", 1e-3, 0, 0.1, 0.1);
    identify(block, "dim", "128");
    identify(block, "task.n_train", "100000");
    struct run *other = add_run("lru;swiglu", 1e-3, 0, 0.1, 0.1);
    identify(other, "dim", "64");
    identify(other, "numerics", "1+clip.2");
    strcpy(other->task, "s3");
    ck_tables(NULL, NULL, 2, "s3", "lru");
    ck_tables("s5 s3", NULL, 2, "s5", "bdlru");
    ck_tables("s3  s5", NULL, 2, "s3", "lru");
    ck_tables("s5", "dim=64", 1, "s5", "lstm");
    ck_tables(NULL, "dim=064", 2, "s3", "lru");
    ck_tables(NULL, "dim=64 model.hidden=16", 1, "s5", "lstm");
    ck_tables(NULL, "model.hidden=016", 1, "s5", "lstm");
    ck_tables("s5", "task.n_train=100k model.m=02", 1, "s5", "bdlru");
    ck_tables(NULL, "numerics=1+clip.2", 1, "s3", "lru");
    ck_tables(NULL, "dim=32|0128", 1, "s5", "bdlru");
    ck_tables(NULL, "dim=128|64 numerics=1+clip.2|2", 1, "s3", "lru");
    ck_tables("s5", "model.hidden=8|16", 1, "s5", "lstm");
    ck_finds_nothing("dim=6|12|1280", ST_DATA, "no finished run where dim=6|12|1280");
    ck_finds_nothing("dim=32|much", ST_USAGE, "dim=much (--where): expected a whole number");
    char many[4 + 5 * 800 + 1] = "dim=1k"; /* each of its values is longer in keys */
    while (strlen(many) + 3 < sizeof many) strcat(many, "|1k");
    ck_finds_nothing(many, ST_USAGE, "--where dim: its values are longer than 4095 characters; name fewer");
    ck_finds_nothing("dim=32", ST_DATA, "no finished run where dim=32");
    ck_finds_nothing("dim=64 numerics=2", ST_DATA, "where dim=64 numerics=2");
    ck_finds_nothing("width=64", ST_USAGE, "--where width=64: no run");
    ck_finds_nothing("task=s3", ST_USAGE, "has that; tables are chosen by --task s3");
    ck_finds_nothing("profile=paper", ST_USAGE, "has that; tables are chosen by --profile paper");
    ck_finds_nothing("task=word-problem dim=32", ST_DATA, "no finished run where task=word-problem dim=32");
    ck_finds_nothing("dim=much", ST_USAGE, "dim=much (--where): expected a whole number");
    ck_finds_nothing("bidirectional=false", ST_USAGE, "bidirectional=false (--where): expected yes or no");
    ck_finds_nothing("dim", ST_USAGE, "'dim' is not of the form name=value");
    ck_finds_nothing("dim=64 dim=128", ST_USAGE, "dim");
    struct report_tables tables;
    struct report_filter several = {.task = "s5 nope s3"},
                         confirmed = {.confirm = 1, .protocol = PROTOCOL_BEST_OF_GRID};
    ck_assert_int_eq(report_tables_make(&tables, &fixture_set, &several, fixture_folder, &fixture_problem), ST_DATA);
    ck_holds(fixture_problem.text, "no finished run of task nope in ");
    ck_assert_int_eq(report_tables_make(&tables, &fixture_set, &confirmed, fixture_folder, &fixture_problem), ST_USAGE);
    ck_holds(fixture_problem.text, "--confirm-seeds with --protocol best-of-grid: ");
}
END_TEST

/* Runs with numbers of another version are seen as such, also of a model that the program does not have. */
START_TEST(runs_of_other_numerics_than_the_programs_are_labelled) {
    static const struct {
        const char *layers, *numerics, *label;
    } cases[] = {{"lstm;swiglu", "0", "lstm numerics=0"},
                 {"lru;swiglu", "1", "lru"},
                 {"bdlru:m=2;swiglu", "1", "bdlru:m=2"},
                 {"deltanet;swiglu", "1+scan_delta.2", "deltanet numerics=1+scan_delta.2"},
                 {"unheard-of;swiglu", "0", "unheard-of numerics=0"},
                 {"unheard-of;gelu", "1", "unheard-of"}};
    enum { CASES = sizeof cases / sizeof *cases };
    for (int i = 0; i < CASES; i++) {
        struct run *run = add_run(cases[i].layers, 1e-3, 1, 0.1, 0.1);
        strcpy(run->numerics, cases[i].numerics);
        snprintf(run->task, sizeof run->task, "s5:length=%d", i); /* tables of their own: nothing to tell apart from */
    }
    struct report_tables tables;
    ck_ok(report_tables_make(&tables, &fixture_set, NULL, fixture_folder, &fixture_problem));
    ck_assert_int_eq(tables.n, CASES);
    for (int i = 0; i < CASES; i++) {
        ck_assert_str_eq(tables.list[i].rows[0].label, cases[i].label);
        ck_assert_int_eq(tables.list[i].rows[0].outdated, strstr(cases[i].label, "numerics") != NULL);
    }
    report_tables_free(&tables);
    char *text = render(&format_term, &(struct report_filter){.task = "s5:length=0"});
    ck_holds(text, OUTDATED_NOTE);
    free(text);
    text = render(&format_term, &(struct report_filter){.task = "s5:length=1"});
    ck_assert_ptr_null(strstr(text, OUTDATED_NOTE));
    free(text);
}
END_TEST

/* A record says what multiplied its matrices, and a table how many of its runs had them multiplied by another library
 * than this program's. */
START_TEST(runs_with_other_products_are_counted_below_each_table) {
    static const struct {
        const char *kernel, *backend, *products;
        bool other;
    } cases[] = {{"linear_cpu adamw_cpu, otherBLAS Zen", "cpu", "otherBLAS Zen", true},
                 {"default, otherBLAS", "cpu", "otherBLAS", true},
                 {"linear_cuda adamw_cuda, cuBLAS", "cuda", "cuBLAS", false},
                 {"default", "cpu", "", false}};
    enum { CASES = sizeof cases / sizeof *cases };
    static const struct report *const reports[] = {&report_tables, &report_each};
    for (int i = 0; i < CASES + 2; i++) {
        struct run *run = add_run("lstm;swiglu", 1e-3, (uint64_t)i, 0.1, 0.1);
        strcpy(run->dtype, REAL_NAME);
        strcpy(run->backend, i < CASES ? cases[i].backend : "cpu");
        if (i < CASES) {
            strcpy(run->kernel, cases[i].kernel);
            ck_assert_str_eq(run_products(run), cases[i].products);
        } else /* this program's library, on this processor and on another one */
            snprintf(run->kernel, sizeof run->kernel, "linear_cpu, %s%s", gemm_library(), i > CASES ? "+" : "");
    }
    for (int i = 0; i < 2; i++) {
        char *text = render_report(reports[i], &format_md);
        ck_holds(text, "2 of 6 runs " OTHER_PRODUCTS_NOTE);
        ck_assert_ptr_null(strstr(text, "walked their steps"));
        free(text);
    }
    fixture_records[1].run.walked = 1;
    char *walked = render_report(&report_tables, &format_md);
    ck_holds(walked, "1 of 6 runs walked their steps on the device instead of replaying a captured step");
    free(walked);
    fixture_set.n = 1;
    strcpy(fixture_records[0].run.dtype, REAL_IS_DOUBLE ? "fp32" : "fp64"); /* the other program's */
    char *text = render_report(&report_tables, &format_md);
    ck_assert_ptr_null(strstr(text, OTHER_PRODUCTS_NOTE));
    free(text);
}
END_TEST

START_TEST(labels_leave_out_defaults_but_never_m) {
    struct report_tables tables;
    add_run("lstm:hidden=77;swiglu", 1e-3, 0, 0.1, 0.1);
    add_run("bdlru:m=5,gate=softmax,selective=no;swiglu", 1e-3, 0, 0.1, 0.1);
    add_run("unheard-of:a=1,b=2;swiglu", 1e-3, 0, 0.1, 0.1);
    ck_ok(report_tables_make(&tables, &fixture_set, NULL, fixture_folder, &fixture_problem));
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
    for (int i = 0; i < fixture_set.n; i++) fixture_records[i].run.tok_per_s = 1; /* while others shared the machine */
    char *text = render(&format_term, NULL);
    ck_assert_ptr_null(strstr(text, "250k"));
    ck_holds(text, "tok/s: measured by lrnn bench");
    free(text);
    strcpy(perf.cell_id, fixture_records[4].run.cell_id); /* of the other rate: the speed is the same */
    ck_ok(perf_append(fixture_folder, &perf, &fixture_problem));
    text = render(&format_term, NULL);
    ck_holds(text, "  250k!  ");
    ck_holds(text, "! disturbed measurement: another process");
    free(text);
    perf.quiet = 1;
    ck_ok(perf_append(fixture_folder, &perf, &fixture_problem));
    text = render(&format_term, NULL);
    ck_holds(text, "  250k  ");
    ck_assert_ptr_null(strchr(text, '!'));
    free(text);
}
END_TEST

/* Two settings of a task: decay is part of MAD's sweep, dropout makes another model. */
START_TEST(a_sweep_takes_rows_together_over_its_axis_alone) {
    static const char *const tasks[] = {"hlru-recall", "hlru-recall:vocab=32"};
    for (int i = 0; i < 8; i++) {
        struct run *run = add_run("lstm;swiglu", 1e-3, 1, 0.5, i < 4 ? 0.1 * i : 0.5);
        strcpy(run->task, tasks[i % 2]);
        identify(run, "task.vocab", i % 2 ? "32" : "16");
        identify(run, "decay", i / 2 % 2 ? "0.1" : "0");
        identify(run, "dropout", i < 4 ? "0" : "0.25");
    }
    char *text = render_report(&report_settings, &format_term);
    ck_holds(text, "lstm dropout=0     0.200 (2)  0.300 (2)  0.250");
    ck_holds(text, "lstm dropout=0.25  0.500 (2)  0.500 (2)  0.500");
    free(text);
}
END_TEST

/* Two rows of many seeds, of which a third is in both. All are found in one pass: 10^8
 * comparisons would take a second, and a site compares every pair of rows. */
START_TEST(pairs_of_many_seeds_are_found_in_one_pass) {
    enum { SEEDS = 10000 };
    struct run_record *records = calloc(2 * SEEDS, sizeof *records);
    const struct run_record **chosen = malloc(2 * SEEDS * sizeof *chosen);
    ck_assert(records && chosen);
    for (int i = 0; i < 2 * SEEDS; i++) {
        chosen[i] = &records[i];
        records[i].run.seed = (uint64_t)(i < SEEDS ? 2 * i : 3 * (i - SEEDS));
    }
    records[SEEDS].set_aside = true; /* an attempt at seed 0 */
    records[SEEDS + 1].run.seed = 0;
    struct report_row rows[2] = {{.chosen = chosen, .n = SEEDS}, {.chosen = chosen + SEEDS, .n = SEEDS}};
    const struct report_row *const both[2] = {&rows[0], &rows[1]};
    int pairs = 0;
    clock_t begin = clock();
    for (int at[2] = {-1, -1}; row_pair_next(both, at); pairs++) {
        ck_assert_uint_eq(chosen[at[0]]->run.seed, chosen[SEEDS + at[1]]->run.seed);
        ck_assert(!chosen[SEEDS + at[1]]->set_aside);
    }
    double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    ck_assert_int_eq(pairs, 3334); /* multiples of 6 below 20 000 */
    ck_assert_msg(seconds < .1, "%g s", seconds);
    free(chosen);
    free(records);
}
END_TEST

Suite *check_rows(void);
Suite *check_rows(void) {
    const TTest *const tests[] = {
        rows_differ_in_every_flag_but_rate_and_seed,
        tables_are_cut_by_task_and_profile,
        a_key_that_the_caller_states_joins_rows_of_several_profiles,
        a_grid_of_rates_is_one_row_whatever_profiles_its_runs_are_of,
        a_failure_stays_when_the_run_is_done_again,
        a_failed_runs_sequences_count_scored_positions,
        the_lowest_numbers_of_validation_choose_a_rate,
        a_seed_counts_once,
        equal_rates_are_told_apart_by_the_loss,
        a_row_has_one_id_whatever_its_rate_and_seed,
        a_record_whose_identity_cannot_be_read_is_named,
        labels_say_what_differs_and_no_more,
        the_filter_chooses_task_profile_and_runs_in_the_callers_order,
        rows_that_differ_in_a_flag_come_in_its_order,
        the_filter_chooses_several_tasks_and_runs_by_their_options,
        runs_of_other_numerics_than_the_programs_are_labelled,
        runs_with_other_products_are_counted_below_each_table,
        labels_leave_out_defaults_but_never_m,
        speed_comes_from_perf_csv_alone,
        a_sweep_takes_rows_together_over_its_axis_alone,
        pairs_of_many_seeds_are_found_in_one_pass,
    };
    return fixture_suite("rows", tests, (int)(sizeof tests / sizeof tests[0]));
}

/* check_setting.c - legal commands that would make a table say something false: what it says in their place. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/store/csv.h"
#include "harness/table/summary.h"
#include "tests/harness/table/fixture.h"

/* A run of S5 in the paper's setting but for one pair. A number of the paper's stands beside it without a difference
 * where that is a setting, and the foot says it. */
START_TEST(a_number_stands_beside_a_papers_in_its_setting_alone) {
    static const struct {
        const char *key, *value;
        bool other;       /* there is no difference from the paper's number */
        const char *says; /* the foot */
    } cases[] = {
        {"decay", "0", false, NULL},
        {"model.gate", "none", true, "model.gate=none (softmax there)"},
        {"model.blocks", "1", true, "model.blocks=1 (64 there)"},
        {"model.gate-init", "5", true, "model.gate-init=5 (1 there)"},
        {"model.selective", "no", true, "model.selective=no (yes there)"},
        {"task.n_test", "1", true, "task.n_test=1 ("},
        {"task.n_val", "1", true, "task.n_val=1 ("},
        {"task.n_train", "10", true, "task.n_train=10 (100000 there)"},
        {"task.length", "4", true, "task.length=4 (16 there)"},
        {"dim", "64", true, "dim=64 (128 there)"},
        {"layers", "2", true, "layers=2 (1 there)"},
        {"dropout", "0.1", true, "dropout=0.1 (0 there)"},
        {"decay", "0.1", true, "decay=0.1 (0 there)"},
        {"mlp", "none", true, "mlp=none (gelu there)"},
        {"norm", "layernorm", true, "norm=layernorm (rmsnorm there)"},
        {"batch", "32", true, "batch=32 (128 there)"},
        {"epochs", "20", true, "epochs=20 (200 there)"},
        {"steps", "100", true, "steps=100 (156400 there)"},
        {"schedule", "constant", true, "schedule=constant (cosine-epoch there)"},
        {"lr-min", "0", true, "lr-min=0 (1e-05 there)"},
        {"warmup", "100", true, "warmup=100 (0 there)"},
        {"clip", "1", true, "clip=1 (0 there)"},
        {"beta1", "0.5", true, "beta1=0.5 (0.9 there)"},
        {"beta2", "0.5", true, "beta2=0.5 (0.999 there)"},
        {"stop-at", "0.5", true, "stop-at=0.5 (0.999 there)"},
        {"patience", "3", true, "patience=3 (0 there)"},
        {"bidirectional", "yes", true, "bidirectional=yes (no there)"},
        {"from-xxh3", "ab", true, "from-xxh3=ab (none there)"},
        {"precision", "bf16", false, "All rows: precision=bf16."},
        {"device", "cuda", false, "All rows: device=cuda."},
        {"kernel", "reference", false, "All rows: kernel=reference."},
        {"budget", "60", false, "budget="},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct report_tables tables;
        fixture_set.n = 0;
        identify(add_run("bdlru:m=5;gelu", 1e-3, 1, 0.5, 0.5), cases[i].key, cases[i].value);
        struct report_row *row = only_row(&tables);
        ck_assert_msg(row->published.value == 1 && row->unlike_published == cases[i].other, "%s=%s: %s", cases[i].key,
                      cases[i].value, row->unlike);
        ck_assert_msg(isnan(row->delta) == cases[i].other, "%s", cases[i].key);
        report_tables_free(&tables);
        if (!cases[i].says) continue;
        char *text = render(&format_term, NULL);
        ck_holds(text, cases[i].says);
        free(text);
    }
}
END_TEST

/* At the second rate all runs became NaN and count as chance, here above the healthy rate's. */
START_TEST(a_rate_with_failed_runs_comes_after_every_rate_without) {
    struct report_tables tables;
    for (uint64_t seed = 1; seed <= 2; seed++) add_run("lru;gelu", 1e-3, seed, 0.45, 0.45);
    for (uint64_t seed = 1; seed <= 2; seed++) spoil(add_run("lru;gelu", 3e-3, seed, 0.9, 0.9), RUN_NAN, "");
    for (int i = 0; i < 4; i++) fixture_records[i].run.chance = 0.5;
    const struct report_row *row = only_row(&tables);
    ck_assert_double_eq(row->lr, 1e-3);
    ck_assert_double_eq(row->mean, 0.45);
    ck_assert_double_eq(row->best, 0.45); /* and not what stands in for a failed run */
    report_tables_free(&tables);
}
END_TEST

/* The making of runs, and the reader's choice among them. */
START_TEST(the_foot_counts_unusual_runs_and_echoes_the_choice) {
    for (uint64_t seed = 1; seed <= 3; seed++) add_run("bdlru:m=5;gelu", 1e-3, seed, 0.5, 0.5);
    fixture_records[0].run.git_dirty = 1;
    fixture_records[1].run.mixed_builds = 1;
    fixture_records[2].replaced = 2;
    char *text = render(&format_term, &(struct report_filter){.where = "lr=0.001"});
    ck_holds(text, "1 of 3 runs were made by a program whose sources differed from their commit.\n");
    ck_holds(text, "1 of 3 runs went on from a checkpoint of another build (--force-resume)");
    ck_holds(text, "1 of 3 runs were done again (--force); their earlier results are in no number here.\n");
    ck_holds(text, "Of all runs those alone with --where 'lr=0.001'.\n");
    free(text);
}
END_TEST

START_TEST(a_best_of_more_runs_than_the_papers_says_so) {
    for (uint64_t seed = 1; seed <= 16; seed++) add_run("bdlru:m=5;gelu", 1e-3, seed, 0.5, 0.5);
    char *text = render(&format_term, NULL);
    ck_holds(text, "0.5000 (16, paper: of 15)");
    free(text);
}
END_TEST

START_TEST(numbers_of_the_readers_are_named) {
    static const char own[] = "arxiv,table,task,model,metric,value\n2602.12021,Table 2,s5,bdlru:m=5,acc,0.370\n";
    char path[PATH_BYTES];
    add_run("bdlru:m=5;gelu", 1e-3, 1, 0.5, 0.5);
    snprintf(path, sizeof path, "%s/published.csv", fixture_folder);
    spill(path, own, sizeof own - 1);
    char *text = render(&format_term, NULL);
    ck_holds(text, "      0.370  +0.130"); /* as printed */
    ck_holds(text, "The papers' numbers are of published.csv in the folder of the records, not the program's.\n");
    free(text);
}
END_TEST

START_TEST(summary_csv_has_the_rows_numbers) {
    static const char *const golden =
        "schema,cell_id,model,task,task_version,profile,layers,d_model,n_layers,backbone,mlp,norm,n_train,"
        "len_train,len_test,optimizer,schedule,warmup_steps,weight_decay,beta1,beta2,grad_clip,batch,max_steps,"
        "dtype,backend,numerics,protocol,n,n_failed,mean,ci_lo,ci_hi,ci_kind,median,iqm,best,solve_k,solve_n,"
        "solve_lo,solve_hi,lr_chosen,published,delta,verdict,n_grid,n_failed_grid,seq_acc,params,state_floats,"
        "tok_per_s,chance,row_id,label,n_cut_off,n_cut_off_grid,estimate,published_setting,speed_quiet,"
        "confirm_seeds,flags,published_differs\n";
    struct csv_table t;
    char path[PATH_BYTES], *text;
    size_t size;
    add_grid();
    strcpy(add_run("lstm;swiglu", 1e-3, 0, 1, 1)->task, "=cmd()");
    ck_ok(summary_format(&fixture_set, NULL, fixture_folder, &text, &size, &fixture_problem));
    ck_ok(summary_write(text, size, fixture_folder, &fixture_problem));
    free(text);
    snprintf(path, sizeof path, "%s/summary.csv", fixture_folder);
    ck_ok(file_read(path, 1 << 20, &text, &size, &fixture_problem));
    ck_assert_int_eq(strncmp(text, golden, strlen(golden)), 0);
    free(text);
    ck_ok(csv_read(&t, path, &fixture_problem));
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

Suite *check_setting(void) {
    const TTest *const tests[] = {a_number_stands_beside_a_papers_in_its_setting_alone,
                                  a_rate_with_failed_runs_comes_after_every_rate_without,
                                  the_foot_counts_unusual_runs_and_echoes_the_choice,
                                  a_best_of_more_runs_than_the_papers_says_so,
                                  numbers_of_the_readers_are_named,
                                  summary_csv_has_the_rows_numbers};
    return fixture_suite("setting", tests, (int)(sizeof tests / sizeof tests[0]));
}

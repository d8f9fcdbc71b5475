/* check_sweeps.c - benches of several tasks: ranges, lists of flags, one-at-a-time changes, MAD's schedules, and the
 * reports on what they were run together for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/schedule.h"
#include "harness/study/study.h"
#include "harness/rows/rows.h"
#include "harness/store/csv.h"
#include "harness/store/schema.h"
#include "tasks/variants.h"
#include "tests/lib/program.h"
#include "tests/tasks/task_examples.h"
#include "tests/testing.h"

/* Runs `lrnn arguments --out FOLDER/r`. */
static int run_out(const char *arguments) {
    char all[2048];
    snprintf(all, sizeof all, "%s --out %s/r", arguments, program_folder);
    return run(all);
}

static int count(const char *text, const char *part) {
    int n = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part)) n++;
    return n;
}

static void expect_plan(const char *arguments, int runs, const char *const parts[]) {
    char all[1024];
    snprintf(all, sizeof all, "bench %s --dry-run", arguments);
    expect_status(run(all), 0, all);
    ck_assert_msg(count(out, " steps ") == runs, "%s: %d runs, expected %d\n%s", all, count(out, " steps "), runs, out);
    for (int i = 0; parts && parts[i]; i++) expect_text(out, parts[i], all);
}

/* --- plans -------------------------------------------------------------------------------------------------------- */

START_TEST(ranges_and_lists_make_every_combination) {
    expect_plan(
        "s3:length=3..5,n_train=20..21,n_val=5,n_test=5 --models 'lstm lru@layers=4' --layers 1..2,7 --lr 0.1,0.2",
        3 * 2 * 3 * 2 + 3 * 2 * 2, (const char *[]){" s3:length=3,n_train=20,", " s3:length=5,n_train=21,", NULL});
    expect_plan("s3 --models lstm --decay 0,0.1,0.1", 2, NULL); /* the same run once */
    expect_plan("s3:length=3,n_train=20,n_val=5,n_test=5 --models lstm:hidden=4 --profile smoke --steps 1", 1, NULL);
    expect_text(err, ": 1 run, seed 1, 1 at a time, under a second and ", "a small run");
    expect_plan("a5-slice --profile paper", 18 * 4 * 11,
                (const char *[]){" a5-slice:length=3 ", " a5-slice lstm", NULL});
    expect_plan("a5-slice:length=4..5 --profile paper --layers 2", 2 * 11, NULL);
    expect_plan("a5-slice:length=4 --profile paper --layers 2..3 --models lstm", 2, NULL);
    expect_plan("hlru-recall --profile hlru-paper --models lstm --seeds 2", 4 * 3 * 2,
                (const char *[]){" hlru-recall lstm", " hlru-recall:vocab=32 ", " hlru-recall:length=128 ",
                                 " hlru-recall:n_train=10000 ", NULL});
    expect_plan("in-context-recall --profile hlru-paper --models lstm --decay 0 --seeds 1", 4 * 3,
                (const char *[]){" hlru-recall lstm", " hlru-recall:vocab=32 ", NULL});
    expect_plan("noisy-recall --profile mad --models lstm --lr 0.1", 14 * 2,
                (const char *[]){" noisy-recall lstm", " noisy-recall:noise=0.8 ", NULL});
}
END_TEST

static const char *const misfits[][2] = {
    {"s3:length=5..3", "length: the range 5..3 has no value"},
    {"s3:length=1..2000", "too many values"},
    {"s3 --layers 2..1", "layers: the range 2..1 has no value"},
    {"s3 --layers ,", "layers= (command line): expected a whole number"},
    {"s3 --layers 1,x", "layers=x (command line): expected a whole number"},
    {"s3 --layers 1,0", "layers=0"},
    {"s3 --variants", "task s3 has no list of one-at-a-time changes"},
    {"s3 --profile mad", "of s3 there are: quick paper smoke"},
    {"compression --profile fast", "of compression there are: smoke quick paper mad hlru-paper"},
    {"s3 --models lstm@dim", "lstm@dim: 'dim' is not of the form name=value"},
    {"s3 --models lstm@width=3", "has no option 'width'"},
    {"s3 --models lstm@dim=3,dim=4", "lstm@dim=3,dim=4: option 'dim' is given twice"},
    {"s3 --layers 1..1000,1001", "'1001' and others are more than 1000 values"},
};

START_TEST(misfits_are_refused) {
    char all[512];
    snprintf(all, sizeof all, "bench %s --dry-run", misfits[_i][0]);
    expect_status(run(all), ST_USAGE, all);
    expect_text(err, misfits[_i][1], all);
}
END_TEST

START_TEST(every_change_of_every_task_is_another_task) {
    struct error e;
    import_data();
    for (int i = 0; task_with_variants(i); i++) {
        const char *name = task_with_variants(i);
        struct task_choice base, changed;
        ck_assert_msg(task_parse(&base, name, &e) == ST_OK, "%s", e.text);
        ck_assert_str_eq(base.name, name);
        for (const char *const *change = task_variants(name); *change; change++) {
            char text[256];
            struct arena host = {0};
            snprintf(text, sizeof text, "%s:%s", name, *change);
            ck_assert_msg(task_parse(&changed, text, &e) == ST_OK, "%s: %s", text, e.text);
            ck_assert_int_eq(arena_reserve(&host, 1 << 24, &e), ST_OK);
            ck_assert_msg(task_open(&changed, 1, &host, &e) == ST_OK, "%s: %s", text, e.text);
            ck_assert_str_ne(changed.name, base.name);
            arena_free(&host);
        }
    }
    ck_assert_ptr_null(task_variants("s3"));
    drop_data();
}
END_TEST

/* --- schedules ---------------------------------------------------------------------------------------------------- */

/* Rate of a step under --schedule NAME: 10 steps per epoch, 4 epochs, peak 1e-3, --lr-min 1e-5. */
static double rate_of(const char *name, int64_t step) {
    static struct setup s;
    struct error e;
    ck_assert_int_eq(config_default(&s.spec.config, &e), ST_OK);
    ck_assert_msg(config_set(&s.spec.config, "schedule", name, &e) == ST_OK, "%s", e.text);
    s.shapes.steps_per_epoch = 10;
    s.shapes.steps = 40;
    struct schedule schedule = setup_schedule(&s.spec.config, &s.shapes);
    return schedule_rate(&schedule, step);
}

START_TEST(mads_schedules_are_those_of_its_protocol) {
    for (int64_t step = 0; step < 40; step++) {
        int64_t epoch = step / 10;
        ck_assert_double_eq_tol(rate_of("mad-cosine", step),
                                1e-6 + 0.5 * (1e-3 - 1e-6) * (1 + cos(M_PI * (double)epoch / 200)), 1e-15);
    }
    ck_assert_double_eq_tol(rate_of("mad-cosine", 2000), 1e-6, 1e-15);
    ck_assert_double_eq_tol(rate_of("cosine-epoch", 40), 1e-5, 1e-15); /* as before */
}
END_TEST

/* --- reports ------------------------------------------------------------------------------------------------------ */

/* bdlru m = 3 solves products of a few elements of S3 in these steps; a model without a state cannot. */
START_TEST(fewest_layers_at_each_length_from_one_command) {
    const char *bench =
        "bench a5-slice:group=s3,length=4..6,n_train=1000 --profile smoke --models "
        "'bdlru:m=3,blocks=16 conv:channels=4,m=1' --layers 1..2 --steps 400 --lr 0.01 --dim 24 --jobs 1 --quiet";
    struct csv_table t;
    struct error e;
    char path[SCRATCH_BYTES + 16];
    expect_status(run_out(bench), 0, bench);
    expect_text(out, "fewest layers above 90 % at each length, chance 0.1667", bench);
    expect_status(run_out("report --what layers --format csv"), 0, "report");
    snprintf(path, sizeof path, "%s/out", program_folder);
    ck_assert_msg(csv_read(&t, path, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(t.rows, 6);
    for (int i = 0; i < t.rows; i++) {
        bool solves = !strcmp(csv_cell(&t, i, "model"), "bdlru");
        char length[8];
        snprintf(length, sizeof length, "%d", 4 + i % 3);
        ck_assert_str_eq(csv_cell(&t, i, "length"), length);
        ck_assert_str_eq(csv_cell(&t, i, "fewest_layers"), solves ? "1" : "");
        ck_assert_str_eq(csv_cell(&t, i, "most_layers"), "2");
        ck_assert_str_eq(csv_cell(&t, i, "n_runs"), "2");
        ck_assert(solves == (atof(csv_cell(&t, i, "acc")) > 0.9));
    }
    csv_free(&t);
    expect_status(run_out("report --what layers --format md"), 0, "report");
    expect_text(out, "| model, length: | 4 | 5 | 6 |", "report --what layers");
    expect_text(out, "| \\>2 (0.", "report --what layers");
    expect_status(run_out("report --what layers --format latex"), 0, "report");
    expect_text(out, "model, length: & 4 & 5 & 6 \\\\", "report --what layers");
}
END_TEST

START_TEST(the_mean_over_settings_is_that_of_the_best_of_each) {
    const char *bench = "bench hlru-recall --variants --profile smoke --models 'lstm:hidden=8 lru:state=4' --steps 3 "
                        "--lr 0.01,0.001 --jobs 1 --quiet";
    struct csv_table t;
    struct error e;
    char path[SCRATCH_BYTES + 16];
    expect_status(run_out(bench), 0, bench);
    expect_text(out, "best of the grid in each setting, and the mean", bench);
    expect_status(run_out("report --what settings --format csv"), 0, "report");
    snprintf(path, sizeof path, "%s/out", program_folder);
    ck_assert_msg(csv_read(&t, path, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(t.rows, 2 * 5); /* base, three changes, mean */
    for (int model = 0; model < 2; model++) {
        double sum = 0;
        for (int i = 5 * model; i < 5 * model + 4; i++) {
            ck_assert_str_eq(csv_cell(&t, i, "n_runs"), "2");
            sum += atof(csv_cell(&t, i, "best"));
        }
        ck_assert_str_eq(csv_cell(&t, 5 * model, "setting"), "base");
        ck_assert_str_eq(csv_cell(&t, 5 * model + 4, "setting"), "mean");
        ck_assert_double_eq_tol(atof(csv_cell(&t, 5 * model + 4, "best")), sum / 4, 1e-12);
        ck_assert_str_eq(csv_cell(&t, 5 * model + 4, "n_runs"), "8");
    }
    csv_free(&t);
    expect_status(run_out("report --what settings"), 0, "report");
    expect_text(out, "vocab=32", "report --what settings");
    expect_status(run_out("report --what settings --protocol val-mean"), ST_USAGE, "report");
    expect_text(err, "so that --protocol changes none; leave it out", "report --what settings");
    bench = "bench hlru-recall --variants --profile smoke --models lru:state=4 --steps 3 --lr 0.01 --seeds 2 "
            "--confirm-seeds 1 --jobs 1 --no-plots --no-speed";
    expect_status(run_out(bench), 0, bench); /* the tables are of those seeds, the mean over settings of all */
    expect_text(out, "Each row reports its 1 largest seeds", bench);
    expect_text(out, "best of the grid in each setting, and the mean", bench);
}
END_TEST

/* Two rates by two seeds, then three fresh seeds at one of them; the same command finds nothing left to do. */
START_TEST(fresh_seeds_are_run_at_the_chosen_rate_alone) {
    const char *bench =
        "bench s3:length=3,n_train=50,n_val=10,n_test=10 --profile smoke --models lru:state=4 --steps 2 "
        "--lr 0.01,0.001 --seeds 2 --confirm-seeds 3 --no-plots --no-speed --jobs 1";
    char runs[SCRATCH_BYTES + 16];
    snprintf(runs, sizeof runs, "%s/r/runs", program_folder);
    for (int i = 0; i < 2; i++) {
        expect_status(run_out(bench), 0, bench);
        ck_assert_int_eq(scratch_count(runs, ".json"), 2 * 2 + 3);
        expect_text(out, "profile custom: 1 row, 7 runs", bench);
        expect_text(out, "  0/3 [", bench);
        expect_text(out, "Each row reports its 3 largest seeds", bench);
        expect_text(err, "/r/summary.csv (val-mean of all seeds there) and runs.csv; again: lrnn report --out ", bench);
        expect_text(err, " --task s3:length=3,n_train=50,n_val=10,n_test=10 --confirm-seeds 3\n", bench);
    }
    char forced[512];
    snprintf(forced, sizeof forced, "%s --force", bench);
    expect_status(run_out(forced), 0, forced);
    ck_assert_int_eq(scratch_count(runs, ".json.replaced"), 2 * 2 + 3); /* each once */
    ck_assert_int_eq(scratch_count(runs, ".json"), 2 * (2 * 2 + 3));
    expect_status(run_out("report --confirm-seeds 3 --protocol mean-ci90"), 0, "report --confirm-seeds 3");
    expect_text(out, "  0/3 [", "report --confirm-seeds 3");
    expect_status(run_out("report --confirm-seeds 5"), ST_USAGE, "report --confirm-seeds 5");
    expect_status(run_out("report --what lengths --protocol iqm"), ST_USAGE, "report --what lengths");
    expect_text(err, "report --what lengths has no use for --protocol; leave it out", "report");
    expect_status(run_out("report --what each --confirm-seeds 1"), ST_USAGE, "report --what each");
    expect_text(err, "report --what each has no use for --confirm-seeds; leave it out", "report");
    expect_status(run_out("report --format csv --confirm-seeds 3"), 0, "report --format csv");
    expect_text(out, ",speed_quiet,confirm_seeds,", "report");
    expect_status(run_out("report --format csv --confirm-seeds 3 --columns confirm_seeds"), 0, "report --columns");
    ck_assert_str_eq(out, "confirm_seeds\n3\n");
}
END_TEST

START_TEST(chance_is_the_records) {
    static struct run_record r;
    record_init(&r);
    ck_assert_double_eq(run_chance(&r.run), 0); /* where the record does not say it */
    r.run.chance = 0.25;
    ck_assert_double_eq(run_chance(&r.run), 0.25);
}
END_TEST

START_TEST(a_single_task_has_no_such_report) {
    const char *bench =
        "bench s3:length=3,n_train=50,n_val=10,n_test=10 --profile smoke --models lru:state=4 --steps 2 "
        "--no-plots --quiet";
    expect_status(run_out(bench), 0, bench);
    expect_text(out, "training sequences of length 3, chance 0.1667", bench);
    expect_status(run_out("report --what layers"), ST_DATA, "report --what layers");
    expect_text(err, "no task has been run at several lengths; `lrnn bench a5-slice` does", "report --what layers");
    expect_status(run_out("report --what settings"), ST_DATA, "report --what settings");
}
END_TEST

Suite *check_sweeps(void) {
    Suite *suite = suite_create("sweeps");
    TCase *c = tcase_create("sweeps");
    tcase_add_checked_fixture(c, program_begin, program_end);
    tcase_add_test(c, ranges_and_lists_make_every_combination);
    tcase_add_loop_test(c, misfits_are_refused, 0, (int)(sizeof misfits / sizeof *misfits));
    tcase_add_test(c, every_change_of_every_task_is_another_task);
    tcase_add_test(c, mads_schedules_are_those_of_its_protocol);
    tcase_add_test(c, fewest_layers_at_each_length_from_one_command);
    tcase_add_test(c, the_mean_over_settings_is_that_of_the_best_of_each);
    tcase_add_test(c, fresh_seeds_are_run_at_the_chosen_rate_alone);
    tcase_add_test(c, chance_is_the_records);
    tcase_add_test(c, a_single_task_has_no_such_report);
    suite_add_tcase(suite, c);
    return suite;
}

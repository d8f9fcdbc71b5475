/* check_runs.c - what can be done with a run on record: shown, repeated, compared; and help on everything. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/rows/rows.h"
#include "harness/run/rerun.h"
#include "harness/study/config.h"
#include "harness/study/profile.h"
#include "harness/store/record_files.h"
#include "tests/lib/not_run.h"
#include "tests/lib/program.h"
#include "tests/testing.h"

static char id[RUN_ID_HEX], path[512];

static void expect(const char *format, int status) {
    char arguments[4096];
    /* cppcheck-suppress wrongPrintfScanfArgNum ; formats have one to three */
    snprintf(arguments, sizeof arguments, format, program_folder, program_folder, program_folder);
    expect_status(run(arguments), status, arguments);
}

/* One small run in FOLDER/r: its id and its record's path. */
static void train(void) {
    char folder[256];
    struct record_set set;
    struct error e;
    expect("train s3:n_train=200,n_val=20,n_test=20,length=4 hlru:channels=4,gate=sigmoid --dim 8 --epochs 4 --lr 0.02 "
           "--seed 3 --eval-every 5 --quiet --out %s/r",
           0);
    snprintf(folder, sizeof folder, "%s/r", program_folder);
    ck_assert_int_eq(records_load(&set, folder, &e), ST_OK);
    ck_assert_int_eq(set.n, 1);
    memcpy(id, set.list[0].run.run_id, sizeof id);
    record_path(folder, id, path, sizeof path);
    records_free(&set);
}

START_TEST(a_run_is_shown_with_the_command_that_repeats_it) {
    char arguments[4096];
    train();
    snprintf(arguments, sizeof arguments, "show %.6s --out %s/r", id, program_folder);
    expect_status(run(arguments), 0, arguments);
    expect_text(out, "run_id           ", arguments);
    expect_text(out, id, arguments);
    expect_text(out, "step, loss, accuracy in validation", arguments);
    ck_assert_ptr_null(strstr(out, "bit for bit")); /* its products are this program's */
    const char *again = strstr(out, "again: lrnn train ");
    ck_assert_ptr_nonnull(again);
    again += strlen("again: lrnn ");
    snprintf(arguments, sizeof arguments, "%.*s --json --out %s/again", (int)strcspn(again, "\n"), again,
             program_folder);
    expect_status(run(arguments), 0, arguments);
    expect_text(out, id, arguments); /* the same run */
    snprintf(arguments, sizeof arguments, "mv %s/r '%s/my r'", program_folder, program_folder);
    ck_assert_int_eq(system(arguments), 0);
    snprintf(arguments, sizeof arguments, "show %.6s --out '%s/my r'", id, program_folder);
    expect_status(run(arguments), 0, arguments);
    expect_text(out, "again: lrnn train s3:length=4,", arguments); /* quoted is what a shell would read otherwise */
    expect_text(out, "/my r'\n", arguments);
    snprintf(arguments, sizeof arguments, "mv '%s/my r' %s/r", program_folder, program_folder);
    ck_assert_int_eq(system(arguments), 0);
    expect("show nothing --out %s/r", ST_USAGE);
    expect_text(err, "'nothing' is neither a run id", "show");
    expect("show 0000 --out %s/r", ST_DATA);
    expect_text(err, "/r/runs begins with '0000'", "show");
    expect("show", ST_USAGE);
    expect_text(err, "say which run, by the first digits of its id", "show");
}
END_TEST

/* A missing measurement is no zero, a name is the text line's, and a folder may have any name. */
START_TEST(a_run_that_failed_is_a_line_of_json) {
    expect(
        "train s3:n_train=200,n_val=20,n_test=20,length=64 bdlru:m=2,blocks=4,gate=none --dim 16 --epochs 3 --lr 1e6 "
        "--quiet --json --out '%s/a\"b'",
        0);
    json_t *line = parse_line(out);
    ck_assert_str_eq(json_string_value(json_object_get(line, "status")), "nan");
    ck_assert_str_eq(json_string_value(json_object_get(line, "task")), "s3:length=64,n_train=200,n_val=20,n_test=20");
    ck_assert_str_eq(json_string_value(json_object_get(line, "model")), "bdlru");
    ck_assert_str_eq(json_string_value(json_object_get(line, "layers")), "bdlru:blocks=4,m=2,gate=none;swiglu");
    ck_assert(json_is_null(json_object_get(line, "test_acc")));
    ck_assert_ptr_nonnull(strstr(json_string_value(json_object_get(line, "record")), "/a\"b/runs/"));
    json_decref(line);
}
END_TEST

/* Nobody takes what was trained long ago for what was trained now. */
START_TEST(a_run_on_record_says_since_when) {
    static const char again[] = "train s3:n_train=200,n_val=20,n_test=20 lstm:hidden=4 --steps 3 --quiet --out %s/r";
    expect(again, 0);
    ck_assert_ptr_null(strstr(out, "on record"));
    expect(again, 0);
    expect_text(out, ": ok after 3 steps (steps), best at ", again);
    expect_text(out, " s, on record since 2", again);
    expect_text(out, "; nothing was trained now, --force does it again\nrecord ", again);
    expect("train s3:n_train=200,n_val=20,n_test=20 lstm:hidden=4 --steps 3 --quiet --force --out %s/r", 0);
    ck_assert_ptr_null(strstr(out, "on record"));
}
END_TEST

/* The program's output has two numbers after `name`, in digits that tell them apart. */
static void expect_two_numbers(const char *name) {
    double value[2];
    const char *at = strstr(out, name);
    ck_assert_msg(at && sscanf(at + strlen(name), "%lf, now %lf", &value[0], &value[1]) == 2, "%s", out);
    ck_assert_msg(value[0] != value[1], "%s", out);
}

/* The curve is of one point, and there is no accuracy to speak of. */
START_TEST(a_run_that_met_nan_is_repeated_too) {
    char arguments[512];
    static const char nan_run[] = "train s3:n_train=200,n_val=20,n_test=20,length=64 bdlru:m=2,blocks=4,gate=none "
                                  "--dim 16 --steps 3 --lr 1e6 --quiet --out %s/n ";
    expect(nan_run, 0);
    ck_assert_msg(strstr(out, ": nan after ") && strstr(out, " parameters; ") && !strstr(out, "best at") &&
                      !strstr(out, "accuracy"),
                  "%s", out);
    snprintf(arguments, sizeof arguments, "%s--json", nan_run);
    expect(arguments, 0);
    json_t *line = parse_line(out);
    snprintf(arguments, sizeof arguments, "rerun %.8s --out %s/n", json_string_value(json_object_get(line, "run_id")),
             program_folder);
    json_decref(line);
    expect_status(run(arguments), 0, arguments);
    expect_text(out, ": the bits agree: 1 point of the curve, 0 evaluations\n", arguments);
}
END_TEST

START_TEST(a_run_again_has_the_same_bits_and_says_when_not) {
    char arguments[1024];
    train();
    snprintf(arguments, sizeof arguments, "rerun %s --threads 2", path);
    expect_status(run(arguments), 0, arguments);
    expect_text(out, "the bits agree: ", arguments);
    expect_text(out, ", the best weights;", arguments);
    expect_text(out, " 5 evaluations, ", arguments);
    char folder[256];
    snprintf(folder, sizeof folder, "test ! -e %s/r/rerun", program_folder);
    ck_assert_int_eq(system(folder), 0);
    /* A record that --keep has kept stays. */
    snprintf(arguments, sizeof arguments, "rerun %s --keep", path);
    expect_status(run(arguments), 0, arguments);
    snprintf(arguments, sizeof arguments, "rerun %s", path);
    expect_status(run(arguments), ST_USAGE, arguments);
    expect_text(err, "is there already, kept by --keep; move the folder ", arguments);
    snprintf(folder, sizeof folder, "test -e %s/r/rerun/weights/%s.safetensors", program_folder, id);
    ck_assert_int_eq(system(folder), 0);
    /* A copy of the record with another loss at one point, like bits that were not repeated. */
    struct arena arena = {0};
    struct error e;
    struct run_record *r = calloc(1, sizeof *r);
    ck_assert_ptr_nonnull(r);
    ck_assert_int_eq(arena_reserve(&arena, 1 << 24, &e), ST_OK);
    ck_assert_int_eq(record_read(path, r, &arena, &e), ST_OK);
    double loss = r->curve[2].loss;
    r->curve[2].loss *= 1 + 1e-15;
    snprintf(folder, sizeof folder, "%s/s", program_folder);
    ck_assert_msg(record_write(folder, r, NULL, &e) == ST_OK, "%s", e.text);
    snprintf(arguments, sizeof arguments, "rerun %.8s --out %s", id, folder);
    expect_status(run(arguments), ST_FAIL, arguments);
    expect_text(out, "the curves part at step ", arguments);
    expect_two_numbers(": loss ");
    expect_text(err, "is not the first\n", arguments);
    /* And with the products of another library, which explains it. */
    strcpy(r->run.kernel, "linear_cpu, OpenBLAS PDP11");
    snprintf(folder, sizeof folder, "%s/t", program_folder);
    ck_assert_msg(record_write(folder, r, NULL, &e) == ST_OK, "%s", e.text);
    snprintf(arguments, sizeof arguments, "rerun %.8s --out %s", id, folder);
    expect_status(run(arguments), ST_FAIL, arguments);
    expect_text(err, "which was to be expected: its matrices were multiplied by OpenBLAS PDP11, and are by ",
                arguments);
    snprintf(arguments, sizeof arguments, "show %.8s --out %s", id, folder);
    expect_status(run(arguments), 0, arguments);
    expect_text(out, "its matrices were multiplied by OpenBLAS PDP11, and are by ", arguments);
    expect_text(out, ": it repeats to rounding, not bit for bit\n", arguments);
    /* A record of a build that made fewer evaluations. */
    r->curve[2].loss = loss;
    r->n_evals = 1;
    snprintf(folder, sizeof folder, "%s/y", program_folder);
    ck_assert_msg(record_write(folder, r, NULL, &e) == ST_OK, "%s", e.text);
    snprintf(arguments, sizeof arguments, "rerun %.8s --out %s", id, folder);
    expect_status(run(arguments), 0, arguments);
    expect_text(out, ", 1 evaluation (now 5), the best weights;", arguments);
    r->n_evals = 5;
    r->curve[2].loss = 2 * loss;
    /* A run that was ended before anything was looked at, and one whose curve is shorter. */
    int64_t points = r->n_curve;
    r->n_curve = points - 1;
    snprintf(folder, sizeof folder, "%s/u", program_folder);
    ck_assert_msg(record_write(folder, r, NULL, &e) == ST_OK, "%s", e.text);
    snprintf(arguments, sizeof arguments, "rerun %.8s --out %s", id, folder);
    expect_status(run(arguments), ST_FAIL, arguments);
    expect_text(out, "the curves part at step ", arguments); /* its third point is not the first's */
    r->curve[2].loss = loss;
    r->curve[2].lr *= 2; /* no matter which column it is, it is named */
    snprintf(folder, sizeof folder, "%s/x", program_folder);
    ck_assert_msg(record_write(folder, r, NULL, &e) == ST_OK, "%s", e.text);
    snprintf(arguments, sizeof arguments, "rerun %.8s --out %s", id, folder);
    expect_status(run(arguments), ST_FAIL, arguments);
    expect_two_numbers(": lr ");
    r->curve[2].lr /= 2;
    r->n_curve = 2;
    snprintf(folder, sizeof folder, "%s/v", program_folder);
    ck_assert_msg(record_write(folder, r, NULL, &e) == ST_OK, "%s", e.text);
    snprintf(arguments, sizeof arguments, "rerun %.8s --out %s", id, folder);
    expect_status(run(arguments), ST_FAIL, arguments);
    expect_text(out, "the curves agree as far as both go: 2 points, now ", arguments);
    r->n_curve = 0;
    r->run.status = RUN_TIMEOUT;
    r->run.steps = r->run.params = -1;
    snprintf(folder, sizeof folder, "%s/w", program_folder);
    ck_assert_msg(record_write(folder, r, NULL, &e) == ST_OK, "%s", e.text);
    snprintf(arguments, sizeof arguments, "rerun %.8s --out %s", id, folder);
    expect_status(run(arguments), ST_DATA, arguments);
    expect_text(err, " has no curve on record (timeout), so there is nothing to compare; `lrnn show ", arguments);
    expect_text(err, folder, arguments);
    snprintf(arguments, sizeof arguments, "train -c %s/runs/%.2s/%s.json --out %s", folder, id, id, folder);
    expect_status(run(arguments), 0, arguments);
    expect_text(out, ": timeout, on record since ", arguments);
    expect_text(out, "; nothing was trained now, --force does it again\n", arguments);
    strcat(arguments, " --json");
    expect_status(run(arguments), 0, arguments);
    expect_text(out, "\"steps\":null,\"params\":null", arguments);
    arena_free(&arena);
    free(r);
}
END_TEST

/* Only the second run shows which products a device uses. */
START_TEST(other_products_of_a_device_explain_other_bits) {
    struct run device = {.backend = "cuda", .kernel = "add_cuda, cuBLAS 12345678"};
    char why[256];
    ck_assert(!rerun_rounds(&device, NULL, why, sizeof why) && !*why);
    ck_assert(!rerun_rounds(&device, "cuBLAS 12345678", why, sizeof why) && !*why);
    ck_assert(rerun_rounds(&device, "cuBLAS 87654321", why, sizeof why));
    ck_assert_str_eq(why, "its matrices were multiplied by cuBLAS 12345678, and are by cuBLAS 87654321 here");
}
END_TEST

START_TEST(a_record_is_a_config_file) {
    char arguments[1024];
    train();
    snprintf(arguments, sizeof arguments, "train -c %s --json --quiet --out %s/again", path, program_folder);
    expect_status(run(arguments), 0, arguments);
    expect_text(out, id, arguments);
    snprintf(arguments, sizeof arguments, "train -c %s --seed 4 --print-config", path);
    expect_status(run(arguments), 0, arguments);
    expect_text(out, "seed=4                           # command line\n", arguments);
    expect_text(out, "model.gate=sigmoid               # config file\n", arguments);
    snprintf(arguments, sizeof arguments, "train s4 lstm -c %s --print-config", path); /* in place of its own */
    expect_status(run(arguments), 0, arguments);
    expect_text(out, "task.length=16\n", arguments);
    expect_text(out, "dim=8                            # config file\n", arguments);
    snprintf(arguments, sizeof arguments, "%s/r/damaged.json", program_folder);
    spill(arguments, "{}\n", 3);
    snprintf(arguments, sizeof arguments, "train -c %s/r/damaged.json", program_folder);
    expect_status(run(arguments), ST_DATA, arguments);
    expect_text(err, "damaged.json, 3 bytes, does not begin as a run record does", arguments);
}
END_TEST

/* The task keeps the name that it was given; of how the call spoke, which older records have, nothing is taken over. */
START_TEST(a_record_names_its_task_and_leaves_the_talk_to_the_call) {
    char arguments[1024], folder[PATH_BYTES];
    struct open_record *open;
    struct error e;
    snprintf(arguments, sizeof arguments,
             "train s3:n_train=200,n_val=20,n_test=20 lstm:hidden=4 --epochs 1 --json --quiet --out %s/n",
             program_folder);
    expect_status(run(arguments), 0, arguments);
    const char *record = strstr(out, "\"record\":\"");
    ck_assert_ptr_nonnull(record);
    snprintf(path, sizeof path, "%.*s", (int)strcspn(record + 10, "\""), record + 10);
    ck_assert_msg(record_open(path, &open, &e) == ST_OK, "%s", e.text);
    ck_assert_ptr_null(strstr(open->record.config, "quiet="));
    size_t used = strlen(open->record.config);
    snprintf(open->record.config + used, sizeof open->record.config - used, "quiet=yes\njson=yes\n");
    snprintf(folder, sizeof folder, "%s/older", program_folder);
    ck_assert_msg(record_write(folder, &open->record, NULL, &e) == ST_OK, "%s", e.text);
    record_path(folder, open->record.run.run_id, path, sizeof path);
    record_close(open);
    snprintf(arguments, sizeof arguments, "train -c %s --seed 2 --out %s/n", path, program_folder);
    expect_status(run(arguments), 0, arguments);
    expect_text(err, "step ", arguments);
    expect_text(out, "s3:n_train=200,n_val=20,n_test=20 lstm:hidden=4;swiglu: ok after ", arguments);
}
END_TEST

/* A run whose record names a profile that does not have it is in the table of custom runs. Its record is unchanged. */
START_TEST(a_run_of_no_profile_is_grouped_as_custom) {
    char arguments[1024], folder[512];
    struct open_record *open;
    struct record_set set;
    struct error e;
    train();
    ck_assert_msg(record_open(path, &open, &e) == ST_OK, "%s", e.text);
    snprintf(open->record.run.profile, sizeof open->record.run.profile, "paper");
    snprintf(folder, sizeof folder, "%s/named", program_folder);
    ck_assert_msg(record_write(folder, &open->record, NULL, &e) == ST_OK, "%s", e.text);
    record_close(open);
    ck_assert_msg(report_load(&set, folder, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(set.n, 1);
    ck_assert_str_eq(set.list[0].run.profile, "paper");
    ck_assert_str_eq(record_profile(&set.list[0]), "custom");
    records_free(&set);
    snprintf(arguments, sizeof arguments, "report --profile custom --out %s", folder);
    expect_status(run(arguments), 0, arguments);
    expect_text(out, ", profile custom: 1 row", arguments);
}
END_TEST

static void write_config(const char *text) {
    snprintf(path, sizeof path, "%s/run.conf", program_folder);
    spill(path, text, strlen(text));
}

START_TEST(options_of_a_config_file_hold_for_task_and_model_of_the_words) {
    write_config("task.length=7\nmodel.m=3\ndim=16\n");
    expect("train s3 bdlru -c %s/run.conf --print-config", 0);
    expect_text(out, "task.length=7                    # config file\n", "train");
    expect_text(out, "model.m=3                        # config file\n", "train");
    expect("train s3:length=9 bdlru:m=2 -c %s/run.conf --print-config", 0);
    expect_text(out, "task.length=9                    # command line\n", "train");
    expect_text(out, "model.m=2                        # command line\n", "train");
    expect("sweep s3 s4 --models 'bdlru lstm' --profile smoke --dry-run -c %s/run.conf", 0);
    expect_text(out, " s4:length=7,", "sweep");
    expect_text(out, " bdlru:blocks=64,m=3", "sweep");
    write_config("task=s3\ntask.length=7\nmodel=lstm\n");
    expect("train s3 lru -c %s/run.conf --print-config", 0);
    expect_text(out, "task.length=7                    # config file\n", "train");
    expect_text(out, "model=lru\n", "train");
    expect("train s4 lru -c %s/run.conf --print-config", ST_USAGE);
    expect_text(err, "run.conf has options of the task s3, and the command names s4", "train");
    expect("bench s3 -c %s/run.conf --dry-run", ST_USAGE);
    expect_text(err, "run.conf has a line task=s3; a sweep takes its tasks from its words", "bench");
    expect("train s3:length=9 lru --print-config", 0); /* as of word-problem, which s3 is an alias of */
    write_config(out);
    expect("train s3 lru -c %s/run.conf --print-config", 0);
    expect_text(out, "task.length=9                    # config file\n", "train");
    expect("train s4 lru -c %s/run.conf --print-config", ST_USAGE);
    expect_text(err, "run.conf has options of the task word-problem, and the command names s4", "train");
    write_config("task.lenght=5\n");
    expect("train s3 lru -c %s/run.conf --print-config", ST_USAGE);
    expect_text(err, "did you mean 'length'", "train");
    expect("train -c %s/run.conf", ST_USAGE);
    expect_text(err, "train needs a task and a model", "train");
}
END_TEST

START_TEST(folders_are_compared_seed_by_seed) {
    static const char both[] = "bench s3:n_train=200,n_val=20,n_test=20,length=4 --profile smoke --models 'lru:state=4 "
                               "lstm:hidden=4' --no-speed --no-plots --quiet --epochs 2";
    char arguments[1024];
    snprintf(arguments, sizeof arguments, "%s --seeds 3 --out %s/a", both, program_folder);
    expect_status(run(arguments), 0, arguments);
    snprintf(arguments, sizeof arguments, "%s --seeds 2..5 --out %s/b", both, program_folder);
    expect_status(run(arguments), 0, arguments);
    expect("compare %s/a %s/b", 0);
    expect_text(out, ": 4 pairs of runs", "compare");
    expect("compare %s/a %s/b --format csv", 0);
    expect_text(out, ",0,0,0\n", "compare"); /* the same runs: no difference, and an interval of no width */
    train();
    expect("compare %s/a %s/r", ST_DATA);
    expect_text(err, "have no run in common", "compare");
    expect("compare %s/a", ST_USAGE);
    expect_text(err, "say which two folders of run records", "compare");
    expect("compare %s/a %s/none", ST_DATA);
    expect_text(err, "/none/runs; the second folder has to be the --out of runs", "compare");
    expect("compare %s/none %s/a", ST_DATA);
    expect_text(err, "no run records under ", "compare");
    expect_text(err, "/none/runs; the first folder has to be", "compare");
}
END_TEST

/* Runs of one folder: each rate is paired apart, and a value that no run has is no side. */
START_TEST(runs_of_a_folder_are_compared_by_an_option) {
    char arguments[1024];
    snprintf(arguments, sizeof arguments,
             "bench s3:n_train=200,n_val=20,n_test=20,length=4 --profile smoke --models 'lru:state=4 lru:state=6' "
             "--precision fp32,bf16 --lr 0.01,0.02 --seeds 2 --no-speed --no-plots --quiet --epochs 2 --out %s/p",
             program_folder);
    expect_status(run(arguments), 0, arguments);
    expect("compare %s/p --by precision=fp32,bf16", 0);
    expect_text(out, "precision=bf16 against precision=fp32: 8 pairs of runs", "compare");
    expect("compare %s/p --by model.state=4,6", 0);
    expect_text(out, "model.state=6 against model.state=4: 8 pairs of runs", "compare");
    expect("compare %s/p --by lr=1e-2,2e-2 --format md", 0);
    expect_text(out, "lr=2e-2 against lr=1e-2: 8 pairs of runs", "compare");
    expect_text(out, "\n| task | model | pairs | lr=1e-2 | solved |", "compare");
    expect("report %s/p --where 'lr=2e-2 seed=2'", 0);
    expect_text(out, ": 4 rows, 4 runs, ", "report");
    expect("report %s/p --out %s/p", ST_USAGE);
    expect_text(err, "/p and --out both say which folder; leave one of them out", "report");
    expect("compare %s/p --by precision=fp32,tf32", ST_DATA);
    expect_text(err, "--by precision: no run has precision=tf32", "compare");
    expect("compare %s/p --by no-such=1,2", ST_USAGE);
    expect_text(err, "--by no-such: no run has an option of that name", "compare");
    expect("compare %s/p --by model=lstm,lru", ST_USAGE);
    expect_text(err, "an option of one is called model.OPTION", "compare");
    expect("compare %s/p --by seed=1,2", ST_USAGE);
    expect_text(err, "--by seed: runs are paired by their seed", "compare");
    expect("compare %s/p --by lr=fast,slow", ST_USAGE);
    expect_text(err, "lr=fast", "compare");
    expect("compare %s/p --by lr=0.01,1e-2", ST_USAGE);
    expect_text(err, "--by lr: both values are 0.01; write two", "compare");
    expect("compare %s/p --by model.state=04,6", 0);
    expect("compare %s/p --by lr=9,8", ST_DATA);
    expect_text(err, "--by lr: no run has lr=9", "compare");
    expect("compare %s/p --by precision=fp32", ST_USAGE);
    expect_text(err, "expected an option and two of its values", "compare");
    expect("compare %s/p --by precision=fp32,tf32,bf16", ST_USAGE);
    expect_text(err, "expected an option and two of its values", "compare");
}
END_TEST

/* The spellings of each flag that the help in `out` names, "--jobs" and "-j" of "  -j, --jobs  runs in parallel"; their
 * number. */
static int spellings(char names[][64], int most) {
    int n = 0;
    for (const char *line = strstr(out, "\n  -"); line; line = strstr(line + 1, "\n  -")) {
        for (const char *at = line + 3; *at == '-'; at += strcspn(at, " ") + 1) {
            ck_assert_int_lt(n, most);
            snprintf(names[n++], 64, "%.*s", (int)strcspn(at, " ,"), at);
            if (at[strcspn(at, " ,")] != ',') break;
        }
    }
    return n;
}

START_TEST(help_is_found_by_any_name_and_names_each_flag_once) {
    static const char *const commands[] = {"bench", "sweep", "train", "report", "status", "show"};
    expect("help", 0);
    expect_text(out, "usage: lrnn COMMAND", "help");
    expect("help perf op", 0);
    expect_text(out, "usage: lrnn perf op OP", "help perf op");
    expect("help bdlru", 0);
    expect_text(out, "equation", "help bdlru");
    expect("help nothing-like-it", ST_USAGE);
    expect_text(err, "unknown name 'nothing-like-it'", "help");
    expect("help s5 bogus", ST_USAGE);
    expect_text(err, "help: 'bogus' is one word too many", "help");
    expect("help train s5", ST_USAGE);
    expect_text(err, "help: 's5' is one word too many", "help");
    expect_status(
        run("help lstm:hidden=00000000000000000000000000000000000000000000000000000000000000000000000000000000"
            "0000000000000000000000000000000000000000000000000000000000000000000000000000000008"),
        0, "help lstm:hidden=0...8"); /* text after 127 bytes is not cut off */
    expect_text(out, "hidden=8", "help lstm:hidden=0...8");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char arguments[64];
        snprintf(arguments, sizeof arguments, "help %s", commands[i]);
        expect_status(run(arguments), 0, arguments);
        char names[128][64];
        int n = spellings(names, 128);
        ck_assert_int_gt(n, 0);
        for (int k = 0; k < n; k++)
            for (int j = 0; j < k; j++)
                ck_assert_msg(strcmp(names[k], names[j]) != 0, "%s: %s twice", arguments, names[k]);
    }
}
END_TEST

/* One flag of two spellings is one line. The default of what a profile says is not the flag's own. */
START_TEST(help_says_the_default_that_applies) {
    expect("bench --help all", 0);
    expect_text(out, "\n  -j, --jobs ", "bench --help");
    for (char *line = strtok(out, "\n"); line; line = strtok(NULL, "\n")) {
        char flag[64];
        bool run_flag = sscanf(line, "  --%63s", flag) == 1 &&
                        (option_find(config_options, flag) || option_find(backbone_options, flag));
        bool one_of_bench = strstr(" lr profile seed ", flag) != NULL;
        if (run_flag && !one_of_bench)
            ck_assert_msg(profile_sets_flag(flag) == !!strstr(line, "default: from the profile, else "), "%s", line);
    }
    expect("sweep --help all", 0);
    expect_text(out, "passes over the training examples (1..1000000000); default: from the profile, else 20\n",
                "sweep");
    expect_text(out, "AdamW beta1 (0..0.999999); default: 0.9\n", "sweep");
    expect("train --help all", 0);
    expect_text(out, "passes over the training examples (1..1000000000); default: 20\n", "train");
    expect("train s3 lstm -j 2", ST_USAGE);
    expect_text(err, "unknown flag '-j'", "train");
    expect("bench s3 -j 2 --jobs 3", ST_USAGE);
    expect_text(err, "flag '--jobs' is given twice", "bench");
    expect("bench s3 -j none", ST_USAGE);
    expect_text(err, "jobs=none (command line): expected a whole number", "bench");
    expect("bench s3 -j2 --dry-run", 0); /* as make takes it */
    expect_text(err, ", 2 at a time, ", "bench");
}
END_TEST

START_TEST(a_task_without_a_profile_benches_with_one_that_says_so) {
    expect("bench template --profile smoke --no-speed --no-plots --out %s/r", 0);
    expect_text(err, "no profile of its own; taken is: smoke: tiny sizes", "bench");
    expect_text(out, "The task has no profile of its own", "bench");
    expect("bench template --profile fast", ST_USAGE);
    expect_text(err, "unknown profile 'fast'; of template there are: smoke quick paper", "bench");
}
END_TEST

/* The talk of a command in a pipe: whole lines, nothing that moves a cursor. */
static void expect_plain_lines(const char *arguments, const char *progress) {
    expect(arguments, 0);
    expect_text(err, progress, arguments);
    ck_assert_msg(strpbrk(err, "\r\033") == NULL, "%s", err);
    ck_assert_msg(err[strlen(err) - 1] == '\n', "%s", err);
}

START_TEST(progress_is_plain_lines_in_a_pipe) {
#define SMALL_TASK "s3:n_train=200,n_val=20,n_test=20"
    expect_plain_lines("train " SMALL_TASK " lstm:hidden=4 --steps 20 --out %s/r", "step 20/20 loss ");
    expect_plain_lines("sweep " SMALL_TASK " --models lstm:hidden=4 --steps 20 --lr 0.01 --no-speed --no-plots "
                       "--out %s/r",
                       "| lstm:hidden=4;gelu lr 0.01 seed ");
    expect("train " SMALL_TASK " lstm:hidden=4 --steps 21 --quiet --out %s/r", 0);
    ck_assert_str_eq(err, "");
}
END_TEST

/* `lrnn info` counts a training step as a run records it: both documents' tokens of pairs, the strings of length 2 of
 * A5 as well, both states of two directions. */
START_TEST(info_counts_what_a_run_records) {
    static const struct {
        const char *net; /* "MODEL flags" */
        const char *task;
        double more_tokens; /* of a step, which its record does not count */
    } cases[] = {{"lstm:hidden=8 --layers 2 --bidirectional yes",
                  "pairs:min_length=20,max_length=20,passage=6,n_train=40,n_val=8,n_test=8", 0},
                 {"lstm:hidden=8", "a5-slice:length=5,n_train=60,n_val=8,n_test=8", 2 * 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char command[512], folder[256];
        double forward = 0, backward = 0;
        long long state = 0;
        struct record_set set;
        struct error e;
        snprintf(folder, sizeof folder, "%s/r%d", program_folder, (int)i);
        snprintf(command, sizeof command, "train %s %s --batch 20 --steps 2 --quiet --out %s", cases[i].task,
                 cases[i].net, folder);
        expect_status(run(command), 0, command);
        snprintf(command, sizeof command, "info %s --batch 20 --task %s", cases[i].net, cases[i].task);
        expect_status(run(command), 0, command);
        ck_assert_int_eq(records_load(&set, folder, &e), ST_OK);
        const struct run *row = &set.list[0].run;
        double tokens = (double)row->tokens / 2 + cases[i].more_tokens;
        const char *of_state = strstr(out, "\n  state  "), *of_flops = strstr(out, "forward ");
        ck_assert_msg(of_state && sscanf(of_state, " state %lld", &state) == 1, "%s", out);
        ck_assert_msg(of_flops && sscanf(of_flops, "forward %lf, backward %lf", &forward, &backward) == 2, "%s", out);
        ck_assert_int_eq(state, row->state_floats);
        ck_assert_msg(fabs((forward + backward) * tokens - row->flop_step) <= tokens,
                      "%s: %g and %g a token, %g a step", command, forward, backward, row->flop_step);
        records_free(&set);
    }
}
END_TEST

Suite *check_runs(void) {
    Suite *suite = suite_create("runs");
    TCase *c = tcase_create("runs");
    tcase_add_checked_fixture(c, program_begin, program_end);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, a_run_is_shown_with_the_command_that_repeats_it);
    tcase_add_test(c, a_run_that_failed_is_a_line_of_json);
    tcase_add_test(c, a_run_on_record_says_since_when);
    tcase_add_test(c, a_run_that_met_nan_is_repeated_too);
    tcase_add_test(c, a_run_again_has_the_same_bits_and_says_when_not);
    tcase_add_test(c, other_products_of_a_device_explain_other_bits);
    tcase_add_test(c, a_record_is_a_config_file);
    tcase_add_test(c, a_record_names_its_task_and_leaves_the_talk_to_the_call);
    tcase_add_test(c, a_run_of_no_profile_is_grouped_as_custom);
    tcase_add_test(c, options_of_a_config_file_hold_for_task_and_model_of_the_words);
    tcase_add_test(c, folders_are_compared_seed_by_seed);
    tcase_add_test(c, runs_of_a_folder_are_compared_by_an_option);
    tcase_add_test(c, help_is_found_by_any_name_and_names_each_flag_once);
    tcase_add_test(c, help_says_the_default_that_applies);
    tcase_add_test(c, a_task_without_a_profile_benches_with_one_that_says_so);
    tcase_add_test(c, progress_is_plain_lines_in_a_pipe);
    tcase_add_test(c, info_counts_what_a_run_records);
    suite_add_tcase(suite, c);
    return suite;
}

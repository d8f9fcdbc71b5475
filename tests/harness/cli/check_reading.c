/* check_reading.c - commands that read a folder of records: they leave it as it is, and say in one sentence what keeps
 * them from telling the truth. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/table/report.h"
#include "harness/store/files.h"
#include "harness/store/record_json.h"
#include "harness/store/schema.h"
#include "tests/lib/program.h"
#include "tests/testing.h"

static char results[SCRATCH_BYTES + 8];

/* Two rates of a model at two lengths. */
static void begin(void) {
    char command[512];
    program_begin();
    snprintf(results, sizeof results, "%s/r", program_folder);
    snprintf(command, sizeof command,
             "bench a5-slice:group=s3,length=4..5,n_train=50,n_val=10 --profile smoke --models lru:state=4 --layers 1 "
             "--steps 2 --lr 0.01,0.001 --quiet --out %s",
             results);
    expect_status(run(command), 0, command);
}

static int on_results(const char *arguments) {
    char command[4 * PATH_BYTES];
    snprintf(command, sizeof command, "%s --out %s", arguments, results);
    return run(command);
}

/* Names, sizes and times of all below a folder. */
static void list(const char *path, FILE *f) {
    struct dirent **entries;
    struct stat info;
    ck_assert_int_eq(lstat(path, &info), 0);
    fprintf(f, "%s %lld %lld.%09ld\n", path, (long long)info.st_size, (long long)info.st_mtim.tv_sec,
            info.st_mtim.tv_nsec);
    int n = S_ISDIR(info.st_mode) ? scandir(path, &entries, NULL, alphasort) : 0;
    for (int i = 0; i < n; i++) {
        char below[PATH_BYTES];
        snprintf(below, sizeof below, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' || strlen(entries[i]->d_name) > 2) list(below, f);
        free(entries[i]);
    }
    if (S_ISDIR(info.st_mode)) free(entries);
}

static char *listing(void) {
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    list(results, f);
    fclose(f);
    return text;
}

/* Runs a command on the folder, which stays as it is; its exit status. */
static int reads_only(const char *arguments) {
    char *before = listing();
    int status = on_results(arguments);
    char *after = listing();
    ck_assert_msg(strcmp(before, after) == 0, "%s changed the folder:\n%s\n%s", arguments, before, after);
    free(before);
    free(after);
    return status;
}

/* One sentence on stderr, nothing on stdout, exit 5. */
static void refused(const char *arguments, const char *sentence) {
    expect_status(reads_only(arguments), ST_DATA, arguments);
    expect_text(err, sentence, arguments);
    ck_assert_str_eq(out, "");
    ck_assert_ptr_eq(strchr(err, '\n'), err + strlen(err) - 1);
}

/* The path of one of the records. */
static void any_record(char path[PATH_BYTES]) {
    struct record_set set;
    struct error e;
    ck_assert_msg(records_load(&set, results, &e) == ST_OK, "%s", e.text);
    record_path(results, set.list[0].run.run_id, path, PATH_BYTES);
    records_free(&set);
}

/* With a task whose tests have several lengths beside it, which one report is about. */
START_TEST(every_report_finds_something_and_leaves_the_folder_alone) {
    const char *parity = "bench parity:eval_max_length=50,n_val=20,n_test=20 --profile smoke --models lru:state=4 "
                         "--steps 2 --quiet --no-speed --no-plots";
    char command[512];
    expect_status(on_results(parity), 0, parity);
    for (const struct report *const *r = report_list(); *r; r++)
        for (const struct sheet_format *const *f = sheet_formats(); *f && !(*r)->make_plan; f++) {
            snprintf(command, sizeof command, "report --what %s --format %s", (*r)->name, (*f)->name);
            expect_status(reads_only(command), 0, command);
            ck_assert_msg(*out, "%s printed nothing", command);
        }
}
END_TEST

START_TEST(reports_and_plots_leave_the_folder_alone) {
    char command[512];
    snprintf(command, sizeof command, "report --to %s/csv", program_folder);
    expect_status(reads_only(command), 0, command);
    expect_text(out, "length=4,n_train=50,n_val=10, profile custom: 1 row, 2 runs",
                command); /* its flags are not smoke's */
    snprintf(command, sizeof command, "%s/csv", program_folder);
    ck_assert_int_eq(scratch_count(command, ".csv"), 4);
    snprintf(command, sizeof command, "plot table --to %s/figures", program_folder);
    expect_status(reads_only(command), 0, command);
    expect_text(err, "/figures/a5-slice", command); /* a line names each file */
    expect_text(err, ".svg\n", command);
    snprintf(command, sizeof command, "%s/figures", program_folder);
    ck_assert_int_eq(scratch_count(command, ""), 4); /* two lengths, SVG and PNG */
}
END_TEST

/* The rows of the other tasks there have one seed or two. */
START_TEST(tables_of_all_records_need_not_have_the_reports_seeds) {
    char command[512], path[SCRATCH_BYTES + 64];
    struct csv_table t;
    struct error e;
    int confirmed = 0, whole = 0;
    snprintf(command, sizeof command,
             "report results/baseline --task s3-250 --profile paper --confirm-seeds 2 --to %s/csv", program_folder);
    expect_status(run(command), 0, command);
    expect_text(out, "Each row reports its 2 largest seeds", command);
    snprintf(path, sizeof path, "%s/csv/summary.csv", program_folder);
    ck_assert_msg(csv_read(&t, path, &e) == ST_OK, "%s", e.text);
    for (int i = 0; i < t.rows; i++) {
        bool is = !strcmp(csv_cell(&t, i, "confirm_seeds"), "2");
        ck_assert_str_eq(csv_cell(&t, i, "confirm_seeds"), is ? "2" : "0");
        if (is) ck_assert_int_le(atoi(csv_cell(&t, i, "n")), 2);
        confirmed += is;
        whole += !is;
    }
    ck_assert(confirmed >= 14 && whole > 0);
    csv_free(&t);
}
END_TEST

/* One that somebody else wrote keeps all four from being written. */
START_TEST(no_table_is_written_beside_a_foreign_one) {
    char command[512], folder[SCRATCH_BYTES + 32], path[SCRATCH_BYTES + 64];
    snprintf(folder, sizeof folder, "%s/theirs", program_folder);
    snprintf(path, sizeof path, "%s/summary.csv", folder);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    spill(path, "mine\n", 5);
    snprintf(command, sizeof command, "report --to %s", folder);
    expect_status(reads_only(command), ST_USAGE, command);
    ck_assert_str_eq(out, "");
    ck_assert_int_eq(scratch_count(folder, ""), 1);
}
END_TEST

START_TEST(a_flag_that_a_plot_does_not_take_is_refused) {
    static const struct {
        const char *arguments, *sentence;
    } cases[] = {
        {"plot heat --x tokens", "plot heat has no use for --x; it takes out to format task profile where paper"},
        {"plot table --log-y", "plot table has no use for --log-y;"},
        {"plot length --y loss", "plot length has no use for --y;"},
        {"plot cost --x params --log-x", "plot cost has no use for --log-x;"},
        {"plot throughput --task s3", "plot throughput has no use for --task; it takes out to format paper"},
        {"plot --x params", "over params there is no curve"},
        {"plot acuracy", "unknown plot 'acuracy'; did you mean 'accuracy'?"},
        {"plot pie --x params", "unknown plot 'pie'; there are: accuracy table length "
                                "position position-map cost heat throughput\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_status(on_results(cases[i].arguments), ST_USAGE, cases[i].arguments);
        expect_text(err, cases[i].sentence, cases[i].arguments);
    }
    expect_status(run("plot --help"), 0, "plot --help");
    expect_text(out, "plot [accuracy|table|length|position|position-map|cost|heat|throughput] ",
                "the help names each of them");
}
END_TEST

START_TEST(commands_that_look_at_runs_leave_the_folder_alone) {
    char path[PATH_BYTES], commands[6][2 * PATH_BYTES];
    any_record(path);
    snprintf(commands[0], sizeof commands[0], "show %s", path);
    snprintf(commands[1], sizeof commands[1], "export %s %s/curve.csv", path, program_folder);
    snprintf(commands[2], sizeof commands[2], "report --html %s/pages", program_folder);
    snprintf(commands[3], sizeof commands[3], "status");
    snprintf(commands[4], sizeof commands[4], "status --watch"); /* all is done, so that it looks once */
    for (int i = 0; i < 5; i++) expect_status(reads_only(commands[i]), 0, commands[i]);
    snprintf(commands[2], sizeof commands[2], "report --html %s/pages --history nowhere.jsonl", program_folder);
    expect_status(run(commands[2]), 5, commands[2]);
    expect_text(err, "--history nowhere.jsonl: No such file or directory", commands[2]);
    char *before = listing();
    snprintf(commands[5], sizeof commands[5], "compare %s %s", results, results);
    expect_status(run(commands[5]), 0, commands[5]);
    char *after = listing();
    ck_assert_str_eq(before, after);
    free(before);
    free(after);
}
END_TEST

/* A claim of another machine, one of a process here that is gone, and one that was left when its run's record was
 * written. */
START_TEST(status_tells_of_claims_and_leaves_them_alone) {
    char path[PATH_BYTES], record[PATH_BYTES];
    any_record(record);
    const char *const ids[] = {"00000000000000000000000000000000", "11111111111111111111111111111111",
                               strrchr(record, '/') + 1};
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/claims/%.32s.1", results, ids[i]);
        spill(path, "elsewhere 7 1 boot/space 2026-01-01T00:00:00Z s3 lstm\n", 53);
        struct timespec long_ago[2] = {{1000, 0}, {1000, 0}};
        if (i > 0) ck_assert_int_eq(utimensat(AT_FDCWD, path, long_ago, 0), 0);
    }
    expect_status(reads_only("status"), 0, "status");
    expect_text(out, "00000000 s3 lstm: elsewhere 7, since 2026-01-01T00:00:00Z\n", "status");
    expect_text(out, "11111111 s3 lstm: elsewhere 7, since 2026-01-01T00:00:00Z; gone", "status");
    char id[16];
    snprintf(id, sizeof id, "%.8s", ids[2]);
    ck_assert_msg(strstr(out, id) == NULL, "%s", out);
}
END_TEST

START_TEST(a_damaged_record_is_named_and_left_where_it_is) {
    char path[PATH_BYTES];
    any_record(path);
    ck_assert_int_eq(truncate(path, 1000), 0);
    refused("report", path);
    refused("report --what layers --format csv", "is cut off or altered");
    refused("plot", "let `lrnn bench` set it aside and do its run again");
}
END_TEST

START_TEST(a_record_of_a_later_schema_is_named) {
    char path[PATH_BYTES], *text;
    struct run_record r;
    struct arena arena = {0};
    struct error e;
    size_t size;
    any_record(path);
    ck_assert_int_eq(arena_reserve(&arena, 1 << 24, &e), ST_OK);
    ck_assert_msg(record_read(path, &r, &arena, &e) == ST_OK, "%s", e.text);
    r.run.schema = RECORD_SCHEMA + 1;
    ck_assert_msg(record_format(&r, &text, &size, &e) == ST_OK, "%s", e.text);
    spill(path, text, size);
    free(text);
    arena_free(&arena);
    refused("report", "use the program that wrote it");
    expect_text(err, path, "report");
}
END_TEST

START_TEST(what_cannot_be_read_is_named) {
    char path[PATH_BYTES], runs[PATH_BYTES];
    any_record(path);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkdir(path, 0777), 0); /* a folder in the place of a file: refused to root as well */
    refused("report", path);
    snprintf(runs, sizeof runs, "%s/runs", results);
    snprintf(path, sizeof path, "%s/elsewhere", results);
    ck_assert_int_eq(rename(runs, path), 0);
    refused("report", "no run records under");
    spill(runs, "", 0);
    refused("report", "cannot read the folder");
    refused("plot", "cannot read the folder");
}
END_TEST

Suite *check_reading(void);
Suite *check_reading(void) {
    Suite *suite = suite_create("reading");
    TCase *c = tcase_create("reading");
    tcase_add_checked_fixture(c, begin, program_end);
    tcase_set_timeout(c, 120);
    tcase_add_test(c, every_report_finds_something_and_leaves_the_folder_alone);
    tcase_add_test(c, reports_and_plots_leave_the_folder_alone);
    tcase_add_test(c, tables_of_all_records_need_not_have_the_reports_seeds);
    tcase_add_test(c, no_table_is_written_beside_a_foreign_one);
    tcase_add_test(c, a_flag_that_a_plot_does_not_take_is_refused);
    tcase_add_test(c, commands_that_look_at_runs_leave_the_folder_alone);
    tcase_add_test(c, status_tells_of_claims_and_leaves_them_alone);
    tcase_add_test(c, a_damaged_record_is_named_and_left_where_it_is);
    tcase_add_test(c, a_record_of_a_later_schema_is_named);
    tcase_add_test(c, what_cannot_be_read_is_named);
    suite_add_tcase(suite, c);
    return suite;
}

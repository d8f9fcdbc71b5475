/* check_bench.c - the bench as a process: what survives kills, corrupt records, full disks and Ctrl-C. */
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/philox.h"
#include "harness/store/clock.h"
#include "harness/store/csv.h"
#include "harness/store/record.h"
#include "harness/store/record_files.h"
#include "tests/lib/process.h"
#include "tests/lib/scratch.h"
#include "tests/testing.h"

#define MODELS "bdlru:m=1,blocks=4 lru:state=4"
#define RUNS   20 /* two models, ten seeds */

static char folder[SCRATCH_BYTES], log_path[SCRATCH_BYTES + 8];
static const char *last_flag, *retry; /* further flags for the next bench, or NULL; the second only after a first */
static const char *models = MODELS;
static const char *seeds = "10", *epochs = "20", *checkpoint_every = "0.05s";

static void set_up(void) {
    scratch_make(folder);
    snprintf(log_path, sizeof log_path, "%s/log", folder);
}

static void tear_down(void) {
    scratch_remove(folder);
}

static const char *program(void) {
    const char *path = getenv("LRNN");
    return path ? path : "./lrnn";
}

/* Starts `lrnn bench s3` over the 20 runs, in a process group of its own. file_limit: largest file it may write, 0 =
 * any. */
static pid_t start_bench(const char *out, rlim_t file_limit) {
    pid_t pid = fork();
    if (pid != 0) return pid;
    setpgid(0, 0);
    int fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    if (file_limit) {
        struct rlimit limit = {file_limit, file_limit};
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    execl(program(), program(), "bench", "s3:n_train=400,n_val=40,n_test=40,length=6", "--profile", "smoke", "--models",
          models, "--seeds", seeds, "--jobs", "2", "--epochs", epochs, "--checkpoint-every", checkpoint_every,
          "--no-plots", "--no-speed", "--out", out, last_flag, retry, NULL);
    _exit(127);
}

/* The log's text, cut to fit. */
static const char *log_text(void) {
    static char text[4096];
    FILE *f = fopen(log_path, "r");
    size_t n = 0;
    if (f) {
        fseek(f, 0, SEEK_END);
        long size = ftell(f);
        fseek(f, size > 4000 ? size - 4000 : 0, SEEK_SET);
        n = fread(text, 1, sizeof text - 1, f);
        fclose(f);
    }
    text[n] = 0;
    return text;
}

/* Checkpoints that are there. A kill can leave a hidden temporary file, but none under a checkpoint's name. */
static int checkpoints(void) {
    glob_t found;
    char pattern[256];
    snprintf(pattern, sizeof pattern, "%s/checkpoints/*", folder);
    int n = glob(pattern, 0, NULL, &found) == 0 ? (int)found.gl_pathc : 0;
    globfree(&found);
    return n;
}

/* Number of the records that count: no run has two. */
static int valid_records(void) {
    struct record_set set;
    struct error e;
    ck_assert_msg(records_load(&set, folder, &e) == ST_OK, "%s", e.text);
    int n = 0; /* failed attempts at runs that were done again lie beside them */
    for (int i = 0; i < set.n; i++) {
        n += !set.list[i].set_aside;
        for (int j = 0; j < i; j++)
            ck_assert(set.list[i].set_aside || set.list[j].set_aside ||
                      strcmp(set.list[i].run.run_id, set.list[j].run.run_id) != 0);
    }
    records_free(&set);
    return n;
}

/* Finished work: the runs on record, and a hash of each file's bytes. */
struct finished {
    int n;
    char id[RUNS][RUN_ID_HEX], bytes[RUNS][RUN_ID_HEX];
};

static void read_finished(struct finished *f) {
    struct record_set set;
    struct error e;
    ck_assert_msg(records_load(&set, folder, &e) == ST_OK, "%s", e.text);
    ck_assert_int_le(set.n, RUNS);
    f->n = set.n;
    for (int i = 0; i < set.n; i++) {
        char path[256];
        size_t size;
        memcpy(f->id[i], set.list[i].run.run_id, RUN_ID_HEX);
        record_path(folder, f->id[i], path, sizeof path);
        char *text = slurp(path, &size);
        record_hash_bytes(text, size, f->bytes[i]);
        free(text);
    }
    records_free(&set);
}

/* All that was finished before is there, byte for byte. */
static void expect_kept(const struct finished *before, const struct finished *now) {
    for (int i = 0; i < before->n; i++) {
        int j = 0;
        while (j < now->n && strcmp(before->id[i], now->id[j]) != 0) j++;
        ck_assert_msg(j < now->n, "run %s was on record and is not any more", before->id[i]);
        ck_assert_msg(!strcmp(before->bytes[i], now->bytes[j]), "the record of run %s was changed", before->id[i]);
    }
}

/* Kills after a further record every second time, so that some kills fall between the first record and the last,
 * however slow the machine is. */
START_TEST(kill_at_any_moment_loses_no_finished_run) {
    struct rng r = rng_at(7, STREAM_TEST, 0);
    struct finished before = {.n = 0}, now;
    int between = 0;
    for (int kills = 0; kills < 12 && before.n < RUNS; kills++) {
        pid_t pid = start_bench(folder, 0);
        if (kills % 2) wait_for_files(folder, ".json", before.n + 1);
        sleep_ms(kills % 2 ? (long)rng_below(&r, 50) : 60 + (long)rng_below(&r, 500));
        kill(-pid, SIGKILL); /* parent and workers at once */
        wait_for(pid);
        read_finished(&now);
        expect_kept(&before, &now);
        between += now.n > 0 && now.n < RUNS;
        before = now;
    }
    ck_assert_int_gt(between, 0);
    ck_assert_int_eq(scratch_count(folder, ".corrupt"), 0);
    int status = wait_for(start_bench(folder, 0));
    ck_assert_msg(status == 0, "exit %d: %s", status, log_text());
    read_finished(&now);
    expect_kept(&before, &now);
    ck_assert_int_eq(valid_records(), RUNS);
    ck_assert_int_eq(checkpoints(), 0);
}
END_TEST

/* Waits until a run is at work, which makes the folder of records when it begins. */
static void wait_for_a_run(void) {
    char records[SCRATCH_BYTES + 8];
    snprintf(records, sizeof records, "%s/runs", folder);
    for (long ms = 0; access(records, F_OK) != 0 && ms < patience_ms(); ms++) sleep_ms(1);
}

/* A process that dies before it has its run is replaced without a word. */
START_TEST(a_killed_worker_becomes_a_row_and_retry_does_it_again) {
    seeds = "3";
    epochs = "100"; /* long enough for a kill to find it at work */
    pid_t pid = start_bench(folder, 0);
    wait_for_a_run();
    kill(first_child(pid), SIGKILL);
    int status = wait_for(pid);
    ck_assert_msg(status == 0, "exit %d: %s", status, log_text());
    ck_assert_int_eq(valid_records(), 6);
    ck_assert_msg(strstr(log_text(), "signal 9") != NULL, "%s", log_text());
    last_flag = "--retry-failed";
    ck_assert_int_eq(wait_for(start_bench(folder, 0)), 0);
    ck_assert_int_eq(scratch_count(folder, ".retried"), 1);
    ck_assert_int_eq(valid_records(), 6);
    ck_assert_msg(strstr(log_text(), ", attempt 1: killed (") != NULL, "%s", log_text()); /* it still counts */
}
END_TEST

/* Row of the run without an end, out of the two on record. */
static struct run endless_row(void) {
    struct record_set set;
    struct error e;
    struct run row = {.status = -1};
    ck_assert_msg(records_load(&set, folder, &e) == ST_OK, "%s", e.text);
    for (int i = 0; i < set.n; i++) {
        const struct run *run = &set.list[i].run;
        if (set.list[i].set_aside)
            ck_assert_int_eq(run->status, RUN_TIMEOUT);
        else if (!strcmp(run->model, "lru"))
            row = *run;
        else
            ck_assert_int_eq(run->status, RUN_OK);
    }
    records_free(&set);
    return row;
}

START_TEST(a_run_that_takes_too_long_is_a_row_and_retry_does_it_again) {
    models = "lru:state=4@epochs=1000000 bdlru:m=1,blocks=4@epochs=2";
    epochs = "1";
    seeds = "1";
    checkpoint_every = "0";
    double before = time_now_s();
    last_flag = "--timeout=3s";
    int status = wait_for(start_bench(folder, 0));
    ck_assert_msg(status == 0, "exit %d: %s", status, log_text());
    ck_assert(time_now_s() - before >= 3);
    ck_assert_int_eq(valid_records(), 2);
    struct run row = endless_row();
    ck_assert_int_eq(row.status, RUN_TIMEOUT);
    ck_assert_str_eq(row.stop_reason, "timeout");
    ck_assert_str_eq(row.status_detail, "longer than the time-out");
    ck_assert_int_eq(wait_for(start_bench(folder, 0)), 0);
    ck_assert_msg(strstr(log_text(), "2 of 2 runs are on record") != NULL, "%s", log_text());
    retry = "--retry-failed";
    ck_assert_int_eq(wait_for(start_bench(folder, 0)), 0);
    ck_assert_msg(strstr(log_text(), ", 1 left to do") != NULL, "%s", log_text());
    ck_assert_int_eq(scratch_count(folder, ".retried"), 1);
    ck_assert_int_eq(valid_records(), 2);
    ck_assert_int_eq(endless_row().status, RUN_TIMEOUT);
}
END_TEST

/* The id of the first run that the bench would do. */
static void first_run(char id[33]) {
    last_flag = "--dry-run";
    ck_assert_int_eq(wait_for(start_bench(folder, 0)), 0);
    last_flag = NULL;
    for (const char *line = log_text(); line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strspn(line, "0123456789abcdef") != 32) continue;
        snprintf(id, 33, "%.32s", line);
        return;
    }
    ck_abort_msg("no run is listed: %s", log_text());
}

/* The run fails, but results are still written. */
START_TEST(a_run_that_cannot_begin_is_a_row_and_the_others_are_done) {
    char id[33], path[SCRATCH_BYTES + 64];
    first_run(id);
    snprintf(path, sizeof path, "%s/checkpoints", folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/checkpoints/%s.ckpt", folder, id);
    ck_assert_int_eq(symlink(path, path), 0); /* which nobody can open, root neither */
    int status = wait_for(start_bench(folder, 0));
    ck_assert_msg(status == 0, "exit %d: %s", status, log_text());
    ck_assert_int_eq(valid_records(), RUNS);
    ck_assert_msg(strstr(log_text(), path) != NULL, "%s", log_text());
}
END_TEST

START_TEST(a_second_bench_runs_nothing) {
    ck_assert_int_eq(wait_for(start_bench(folder, 0)), 0);
    ck_assert_int_eq(wait_for(start_bench(folder, 0)), 0);
    ck_assert_msg(strstr(log_text(), "20 of 20 runs are on record") != NULL, "%s", log_text());
}
END_TEST

START_TEST(a_corrupt_record_is_set_aside_and_done_again) {
    glob_t found;
    char pattern[256];
    ck_assert_int_eq(wait_for(start_bench(folder, 0)), 0);
    snprintf(pattern, sizeof pattern, "%s/runs/*/*.json", folder);
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
    ck_assert_int_eq((int)found.gl_pathc, RUNS);
    ck_assert_int_eq(truncate(found.gl_pathv[3], 100), 0);
    ck_assert_int_eq(wait_for(start_bench(folder, 0)), 0);
    ck_assert_msg(strstr(log_text(), found.gl_pathv[3]) != NULL, "%s", log_text());
    ck_assert_int_eq(scratch_count(folder, ".json.corrupt"), 1);
    ck_assert_int_eq(valid_records(), RUNS);
    globfree(&found);
}
END_TEST

START_TEST(a_full_disk_is_an_error_and_earlier_results_stay) {
    ck_assert_int_eq(wait_for(start_bench(folder, 4096)), ST_FAIL);
    ck_assert_int_eq(valid_records(), 0);
    ck_assert_int_eq(scratch_count(folder, ".json"), 0);
    ck_assert_int_eq(wait_for(start_bench(folder, 0)), 0);
    int before = valid_records();
    ck_assert_int_eq(before, RUNS);
    ck_assert_int_eq(wait_for(start_bench(folder, 4096)), ST_FAIL); /* the exports do not fit */
    ck_assert_int_eq(valid_records(), before);
}
END_TEST

/* Steps of all runs on record, each of which stopped at its limit. */
static int64_t steps_of_only(const char *flag) {
    struct record_set set;
    struct error e;
    int64_t steps = 0;
    last_flag = flag;
    int status = wait_for(start_bench(folder, 0));
    ck_assert_msg(status == 0, "exit %d: %s", status, log_text());
    ck_assert_msg(records_load(&set, folder, &e) == ST_OK, "%s", e.text);
    for (int i = 0; i < set.n; i++) {
        ck_assert_str_eq(set.list[i].run.stop_reason, "budget");
        steps += set.list[i].run.steps;
    }
    records_free(&set);
    return steps;
}

/* Steps of the runs in limits.csv that were given so many seconds, of which there are four: what their step takes goes
 * that often into their time. */
static int64_t steps_given(double seconds) {
    char path[SCRATCH_BYTES + 16];
    struct csv_table t;
    struct error e;
    int64_t steps = 0;
    int n = 0;
    snprintf(path, sizeof path, "%s/limits.csv", folder);
    ck_assert_msg(csv_read(&t, path, &e) == ST_OK, "%s", e.text);
    for (int i = 0; i < t.rows; i++) {
        if (csv_cell_real(&t, i, "seconds") != seconds) continue;
        int64_t own = csv_cell_int(&t, i, "steps");
        ck_assert_int_eq(own, (int64_t)(seconds / (1e-9 * csv_cell_real(&t, i, "time_ns"))));
        steps += own;
        n++;
    }
    csv_free(&t);
    ck_assert_msg(n == 4, "%d runs of 4 have %g s", n, seconds);
    return steps;
}

/* Runs that would take hours: each of the four on two processes has half of the limit, in steps that are decided once,
 * so the same command has nothing left to do, and another limit makes other runs. */
START_TEST(a_limit_is_shared_so_that_every_run_has_a_row) {
    seeds = "2";
    epochs = "1000000";
    int64_t steps = steps_of_only("--limit=2s");
    ck_assert_int_eq(valid_records(), 4);
    ck_assert_int_eq(steps, steps_given(1));
    ck_assert_int_eq(steps_of_only("--limit=2s"), steps);
    ck_assert_int_eq(valid_records(), 4);
    int64_t later = steps_of_only("--limit=1s") - steps;
    ck_assert_int_eq(valid_records(), 8);
    ck_assert_int_eq(later, steps_given(0.5));
}
END_TEST

/* The steps are the run's own: it can be asked for by their number alone, and is on record already. */
START_TEST(a_limited_run_is_the_run_of_its_steps) {
    char flag[64];
    seeds = "1";
    epochs = "1000000";
    int64_t both = steps_of_only("--limit=1s");
    struct record_set set;
    struct error e;
    ck_assert_msg(records_load(&set, folder, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(set.n, 2);
    snprintf(flag, sizeof flag, "--stop-after=%" PRId64, set.list[0].run.steps);
    ck_assert_int_eq(set.list[0].run.steps + set.list[1].run.steps, both);
    records_free(&set);
    steps_of_only(flag); /* one of the two models again, which is not done anew */
    ck_assert_msg(strstr(log_text(), "1 of 2 runs are on record") != NULL, "%s", log_text());
    ck_assert_int_eq(valid_records(), 3);
}
END_TEST

START_TEST(an_unwritable_output_is_said_before_training) {
    char out[SCRATCH_BYTES + 16];
    snprintf(out, sizeof out, "%s/file", folder);
    FILE *f = fopen(out, "w"); /* a file where a folder is wanted: refused to root as well */
    ck_assert(f != NULL);
    fclose(f);
    ck_assert_int_eq(wait_for(start_bench(out, 0)), ST_FAIL);
    ck_assert_msg(strstr(log_text(), out) != NULL, "%s", log_text());
}
END_TEST

/* Waits until the folder holds two claims. A claim is written under a name that begins with a dot, and then linked. */
static void wait_for_two_claims(const char *claims) {
    int found = 0;
    for (long ms = 0; found < 2 && ms < patience_ms(); ms++) {
        DIR *d = opendir(claims);
        found = 0;
        for (struct dirent *entry; d && (entry = readdir(d)) != NULL;) found += entry->d_name[0] != '.';
        if (d) closedir(d);
        if (found < 2) sleep_ms(1);
    }
    ck_assert_int_eq(found, 2);
}

/* Starts four runs that write no checkpoint by themselves, and stops them when two are at work. */
static void stop_two_of_four(int signal_number) {
    char claims[SCRATCH_BYTES + 8];
    snprintf(claims, sizeof claims, "%s/claims", folder);
    checkpoint_every = "0";
    seeds = "2";
    epochs = "300";
    pid_t pid = start_bench(folder, 0);
    wait_for_two_claims(claims);
    wait_for_a_run();
    double before = time_now_s();
    kill(-pid, signal_number);
    int status = wait_for(pid);
    ck_assert_msg(status == 128 + signal_number, "exit %d: %s", status, log_text());
    ck_assert_msg(time_now_s() - before < 5, "it took %g s to stop", time_now_s() - before);
    ck_assert_int_eq(valid_records(), 0);
    ck_assert_int_eq(checkpoints(), 2);
}

START_TEST(ctrl_c_saves_and_the_same_command_goes_on) {
    static const int signals[] = {SIGINT, SIGTERM};
    struct record_set set;
    struct error e;
    stop_two_of_four(signals[_i]);
    int status = wait_for(start_bench(folder, 0));
    ck_assert_msg(status == 0, "exit %d: %s", status, log_text());
    ck_assert_int_eq(checkpoints(), 0);
    ck_assert_msg(records_load(&set, folder, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(set.n, 4);
    int resumed = 0;
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(set.list[i].run.status, RUN_OK);
        resumed += set.list[i].run.resumed == 1;
    }
    ck_assert_int_eq(resumed, 2);
    records_free(&set);
}
END_TEST

Suite *check_bench(void) {
    Suite *suite = suite_create("bench");
    TCase *c = tcase_create("bench");
    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_test(c, kill_at_any_moment_loses_no_finished_run);
    tcase_add_test(c, a_killed_worker_becomes_a_row_and_retry_does_it_again);
    tcase_add_test(c, a_run_that_takes_too_long_is_a_row_and_retry_does_it_again);
    tcase_add_test(c, a_run_that_cannot_begin_is_a_row_and_the_others_are_done);
    tcase_add_test(c, a_second_bench_runs_nothing);
    tcase_add_test(c, a_corrupt_record_is_set_aside_and_done_again);
    tcase_add_test(c, a_full_disk_is_an_error_and_earlier_results_stay);
    tcase_add_test(c, a_limit_is_shared_so_that_every_run_has_a_row);
    tcase_add_test(c, a_limited_run_is_the_run_of_its_steps);
    tcase_add_test(c, an_unwritable_output_is_said_before_training);
    tcase_add_loop_test(c, ctrl_c_saves_and_the_same_command_goes_on, 0, 2);
    suite_add_tcase(suite, c);
    return suite;
}

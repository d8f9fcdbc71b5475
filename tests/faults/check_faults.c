/* check_faults.c - the short forms of what `make torture` does for an hour. */
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/store/files.h"
#include "harness/store/record_files.h"
#include "tests/faults/exercise.h"
#include "tests/lib/process.h"
#include "tests/lib/program.h"
#include "tests/testing.h"

static void expect_nothing_lost(const struct tally *t) {
    ck_assert_msg(t->bad == 0, "%lld of %lld: %s", (long long)t->bad, (long long)t->tried, t->first);
    ck_assert_int_gt(t->tried, 0);
}

/* Training: every call of the kinds that are few, some of those that are many. */
START_TEST(a_call_that_fails_is_said_and_loses_nothing) {
    for (int k = 0; fault_kinds[k]; k++) {
        struct tally t = {0};
        fault_exercise(0, fault_kinds[k], FAULT_ONCE, 5, 0, &t);
        expect_nothing_lost(&t);
        ck_assert_msg(t.failed > 0, "%s: nothing failed", fault_kinds[k]);
    }
}
END_TEST

/* A disk that stays full, memory that stays short. */
START_TEST(calls_that_fail_for_ever_are_said_and_lose_nothing) {
    static const char *const kinds[] = {"write", "malloc"};
    for (int k = 0; k < 2; k++) {
        struct tally t = {0};
        fault_exercise(0, kinds[k], FAULT_FOR_EVER, 2, 0, &t);
        expect_nothing_lost(&t);
        ck_assert_int_gt(t.failed, 0);
    }
}
END_TEST

/* Kills before a record has its name, and just after. */
START_TEST(a_kill_at_a_call_that_changes_files_loses_nothing) {
    static const char *const kinds[] = {"write", "link", "fsync"};
    for (int k = 0; k < 3; k++) {
        struct tally t = {0};
        fault_exercise(0, kinds[k], FAULT_KILL, 2, 0, &t);
        expect_nothing_lost(&t);
        ck_assert_int_eq(t.failed, t.tried);
    }
}
END_TEST

/* The other commands: memory. */
START_TEST(memory_that_is_refused_is_said) {
    for (int c = 1; c < fault_commands(); c++) {
        struct tally t = {0};
        fault_exercise(c, "malloc", FAULT_ONCE, 5, 0, &t);
        expect_nothing_lost(&t);
        ck_assert_int_gt(t.failed, 0);
    }
}
END_TEST

/* A run whose size is not known would have another place in the list. */
START_TEST(a_list_of_runs_is_whole_or_refused) {
    struct tally t = {0};
    fault_exercise(3, "mmap", FAULT_ONCE, 40, 0, &t);
    expect_nothing_lost(&t);
    ck_assert_int_gt(t.failed, 0);
}
END_TEST

START_TEST(power_that_goes_takes_no_finished_run) {
    struct tally t = {0};
    power_exercise(3, 0, &t);
    expect_nothing_lost(&t);
    ck_assert_int_gt(t.tried, 100);
    t = (struct tally){0};
    power_exercise(2, 1, &t);
    ck_assert_int_gt(t.bad, 0); /* without fsync runs would be lost */
}
END_TEST

START_TEST(power_that_goes_during_a_bench_takes_no_finished_run) {
    struct tally t = {0};
    power_bench_exercise(2, 3, 40, 0, &t);
    expect_nothing_lost(&t);
    ck_assert_int_gt(t.tried, 100);
    ck_assert_int_gt(t.failed, 2);
    t = (struct tally){0};
    power_bench_exercise(2, 2, 1 << 20, 1, &t);
    ck_assert_int_gt(t.bad, 0);
}
END_TEST

START_TEST(kills_take_no_finished_run) {
    struct tally t = {0};
    for (uint64_t seed = 1; seed <= 10 && t.failed == 0; seed++) kill_exercise(4, 8, seed, 0, &t);
    expect_nothing_lost(&t);
    ck_assert_msg(t.failed > 0, "none of %lld kills fell between the first record and the last", (long long)t.tried);
}
END_TEST

START_TEST(a_damaged_file_is_told_or_gives_the_same) {
    struct tally t = {0};
    damage_exercise(45, 1, 0, &t);
    expect_nothing_lost(&t);
    ck_assert_int_gt(t.failed, 20);
}
END_TEST

START_TEST(writers_of_the_same_runs_and_weights_mix_nothing) {
    struct tally t = {0};
    writers_exercise(5, 2, &t);
    expect_nothing_lost(&t);
}
END_TEST

START_TEST(a_bench_that_stops_and_wakes_doubles_no_run) {
    struct tally t = {0};
    pause_exercise(2, 4, 6, 1, &t);
    expect_nothing_lost(&t);
}
END_TEST

START_TEST(a_value_that_no_run_has_stops_no_command) {
    struct tally t = {0};
    value_exercise(14, 0, &t);
    expect_nothing_lost(&t);
}
END_TEST

START_TEST(odd_surroundings_are_no_surprise) {
    struct tally t = {0};
    surroundings_exercise(&t);
    expect_nothing_lost(&t);
}
END_TEST

START_TEST(a_low_limit_of_memory_is_said_at_every_height) {
    struct tally t = {0};
    space_exercise(80, &t);
    expect_nothing_lost(&t);
    ck_assert_int_eq(t.tried, 80);
}
END_TEST

START_TEST(the_time_of_many_records_grows_with_their_number) {
    struct tally t = {0};
    scale_exercise(1000, &t);
    expect_nothing_lost(&t);
}
END_TEST

START_TEST(an_interrupted_validation_is_done_again) {
    struct tally t = {0};
    interrupt_exercise(4, 1, &t);
    expect_nothing_lost(&t);
    ck_assert_msg(t.failed > 0, "none of %lld interrupts fell into a validation", (long long)t.tried);
}
END_TEST

/* getent asks for the names of a host through sockets, so the filter that ends it would end the program. */
START_TEST(no_command_opens_a_socket_or_writes_elsewhere) {
    struct tally t = {0};
    char folder[SCRATCH_BYTES], command[512];
    audit_exercise(&t);
    expect_nothing_lost(&t);
    ck_assert_int_gt(t.failed, 10); /* changes were seen at all */
    scratch_make(folder);
    snprintf(command, sizeof command, "LRNN_NO_SOCKET=1 LD_PRELOAD=$(realpath %s) exec getent ahosts localhost >%s/out",
             named_program("LRNN_FAULTS", "build/faults.so"), folder);
    int status = system(command);
    scratch_remove(folder);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}
END_TEST

static const char *const clock_steps[] = {"1", "365"}; /* days */

/* The time of day jumps by a day or a year at each look, durations do not. */
START_TEST(steps_of_the_clock_change_no_duration) {
    struct record_set set;
    struct error e = {0};
    char arguments[512];
    program_begin();
    snprintf(arguments, sizeof arguments,
             "LRNN_CLOCK_STEPS=%s LD_PRELOAD=$(realpath %s) %s train s3:length=4,n_train=64,n_val=16,n_test=16 "
             "lstm --dim 8 --layers 1 --batch 8 --steps 20 --threads 1 --quiet --out %s/store",
             clock_steps[_i], named_program("LRNN_FAULTS", "build/faults.so"), named_program("LRNN", "./lrnn"),
             program_folder);
    expect_status(run_program(program_folder, "env", arguments), 0, arguments);
    snprintf(arguments, sizeof arguments, "%s/store", program_folder);
    ck_assert_msg(records_load(&set, arguments, &e) == ST_OK && set.n == 1, "%s", e.text);
    const struct run *r = &set.list[0].run;
    ck_assert_msg(r->wall_s > 0 && r->wall_s < 600 && r->train_s > 0 && r->train_s < 600 && r->eval_s >= 0 &&
                      r->eval_s < 600 && r->step_ms_med > 0 && r->step_ms_med < 60000,
                  "wall %g s, training %g s, evaluation %g s, a step %g ms", r->wall_s, r->train_s, r->eval_s,
                  r->step_ms_med);
    records_free(&set);
    program_end();
}
END_TEST

/* Half a minute between two touches goes by in half a second. Other machines tell a live owner by them alone. */
START_TEST(a_claim_is_touched_as_long_as_its_run_lasts) {
    char command[1024], pattern[SCRATCH_BYTES + 16];
    glob_t found;
    struct stat first, now;
    program_begin();
    snprintf(command, sizeof command,
             "LRNN_CLOCK_SPEED=60 LD_PRELOAD=$(realpath %s) exec %s bench s3:n_train=200,n_val=20,n_test=20,length=4 "
             "--profile smoke --models lru:state=4 --seeds 1 --epochs 1000000 --quiet --out %s/r >%s/out 2>&1",
             named_program("LRNN_FAULTS", "build/faults.so"), named_program("LRNN", "./lrnn"), program_folder,
             program_folder);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    snprintf(pattern, sizeof pattern, "%s/r/claims/*.1", program_folder);
    int missing = 1;
    for (long ms = 0; missing && ms < patience_ms(); ms++) {
        missing = glob(pattern, 0, NULL, &found);
        if (missing) sleep_ms(1);
    }
    ck_assert_int_eq(missing, 0);
    ck_assert_int_eq(stat(found.gl_pathv[0], &first), 0);
    now = first;
    for (long ms = 0; now.st_mtim.tv_sec == first.st_mtim.tv_sec && ms < patience_ms(); ms++) {
        sleep_ms(1);
        ck_assert_int_eq(stat(found.gl_pathv[0], &now), 0);
    }
    kill(pid, SIGTERM);
    ck_assert_int_eq(wait_for(pid), 128 + SIGTERM);
    ck_assert_int_gt(now.st_mtim.tv_sec, first.st_mtim.tv_sec);
    globfree(&found);
    program_end();
}
END_TEST

/* Training with a rate that has a point. */
static void train_words(char arguments[1024], const char *variables, const char *store) {
    snprintf(arguments, 1024,
             "%s %s train s3:length=4,n_train=64,n_val=16,n_test=16 lstm --dim 8 --layers 1 --batch 8 --steps 4 "
             "--lr 0.0015 --threads 1 --quiet --out %s",
             variables, named_program("LRNN", "./lrnn"), store);
}

/* The record of it. */
static struct run trained(const char *variables, const char *store) {
    struct record_set set;
    struct error e = {0};
    char arguments[1024];
    train_words(arguments, variables, store);
    expect_status(run_program(program_folder, "env", arguments), 0, arguments);
    ck_assert_msg(records_load(&set, store, &e) == ST_OK && set.n == 1, "%s", e.text);
    struct run r = set.list[0].run;
    records_free(&set);
    return r;
}

/* Else the next checkpoint would take the damaged one's place. */
START_TEST(a_damaged_checkpoint_that_cannot_be_renamed_stops_its_run) {
    char variables[512], store[256], path[512], command[1024];
    struct error e = {0};
    size_t size;
    program_begin();
    snprintf(store, sizeof store, "%s/whole", program_folder);
    struct run whole = trained("", store);
    snprintf(store, sizeof store, "%s/cut/checkpoints", program_folder);
    ck_assert_int_eq(make_folder(store, &e), ST_OK);
    snprintf(path, sizeof path, "%s/%s.ckpt", store, whole.run_id);
    spill(path, "half", 4);
    snprintf(variables, sizeof variables, "LRNN_FAIL=link:3 LD_PRELOAD=$(realpath %s)",
             named_program("LRNN_FAULTS", "build/faults.so"));
    snprintf(store, sizeof store, "%s/cut", program_folder);
    train_words(command, variables, store);
    expect_status(run_program(program_folder, "env", command), ST_FAIL, command);
    expect_text(err, "is not usable: it is too short; it cannot be renamed to", command);
    char *kept = slurp(path, &size);
    ck_assert_str_eq(kept, "half");
    free(kept);
    ck_assert_str_eq(trained("", store).ckpt_xxh3, whole.ckpt_xxh3);
    ck_assert_int_eq(scratch_count(store, ".ckpt.corrupt"), 1);
    program_end();
}
END_TEST

/* Makes the temporary file of a claim or a checkpoint old. Returns whether it is a checkpoint's. */
static bool age_left(const char *store) {
    char pattern[512];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/c*/.*.tmp", store);
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
    ck_assert_int_eq((int)found.gl_pathc, 1);
    struct timespec times[2] = {{1000, 0}, {1000, 0}};
    ck_assert_int_eq(utimensat(AT_FDCWD, found.gl_pathv[0], times, 0), 0);
    bool checkpoint = strstr(found.gl_pathv[0], "/checkpoints/.") && strstr(found.gl_pathv[0], ".ckpt.");
    globfree(&found);
    return checkpoint;
}

/* A file that a killed process has not renamed would stay for ever: the run in words for `lrnn top`, a checkpoint.
 * While it is young, it may be another machine's. */
START_TEST(what_a_kill_leaves_is_named_and_a_checkpoint_removed) {
    char arguments[1024], store[256], command[1024], path[512], library[4096], wish[64];
    const char *variables[] = {wish, preload(library), NULL};
    int checkpoints = 0;
    program_begin();
    for (int n = 1; n <= 3; n++) {
        snprintf(wish, sizeof wish, "LRNN_FAIL=rename:%d!", n);
        snprintf(store, sizeof store, "%s/%d", program_folder, n);
        train_words(command, "", store);
        snprintf(arguments, sizeof arguments, "%s --checkpoint-every 0.000001s", strstr(command, " train ") + 1);
        ck_assert_int_eq(run_words(program_folder, variables, arguments), 128 + SIGKILL);
        ck_assert_int_eq(scratch_count(store, ".tmp"), 1);
        snprintf(command, sizeof command, "store check %s", store);
        expect_status(run(command), ST_DATA, command);
        ck_assert_ptr_null(strstr(out, "killed"));
        bool removed = age_left(store);
        checkpoints += removed;
        expect_status(run(command), ST_DATA, command);
        expect_text(err, "no run records under", command);
        expect_text(out, ": a killed process has left ", command);
        expect_text(out, ".tmp; it may be deleted\n", command);
        expect_status(run(arguments), 0, arguments);
        ck_assert_int_eq(scratch_count(store, ".tmp"), removed ? 0 : 1);
        snprintf(path, sizeof path, "%s/runs/zz", store);
        spill(path, "", 0); /* no folder */
        expect_status(run(command), 0, command);
        ck_assert_int_eq(strstr(out, "killed") != NULL, !removed);
    }
    ck_assert(checkpoints > 0 && checkpoints < 3);
    program_end();
}
END_TEST

/* Whatever file is written on the way, the user asked for a picture. */
START_TEST(a_picture_that_cannot_be_written_is_named) {
    static const char *const kinds[] = {"open", "write", "fsync", "rename"};
    char arguments[1024], store[256], path[256], library[4096], wish[64];
    const char *variables[] = {wish, preload(library), NULL};
    size_t size;
    program_begin();
    snprintf(path, sizeof path, "%s/p/s3-table.svg", program_folder);
    snprintf(store, sizeof store, "%s/r", program_folder);
    trained("", store);
    snprintf(arguments, sizeof arguments, "plot table --format svg --out %s --to %s/p", store, program_folder);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        int named = 0;
        for (int n = 1, status = 1; status != 0; n++) {
            ck_assert_int_lt(n, 100);
            snprintf(wish, sizeof wish, "LRNN_FAIL=%s:%d", kinds[k], n);
            status = run_words(program_folder, variables, arguments);
            char *text = said(program_folder, "err");
            named += strstr(text, "/p/s3-table.svg") != NULL;
            ck_assert_msg(!strstr(text, ".tmp") && !strstr(text, "data.tsv") && !strstr(text, "script"), "%s: %s", wish,
                          text);
            free(text);
            ck_assert_int_eq(scratch_count(program_folder, ".tmp"), 0);
        }
        char *picture = slurp(path, &size);
        ck_assert_msg(strstr(picture, "</svg>") != NULL, "%s: half a picture", wish);
        free(picture);
        ck_assert_int_gt(named, 0);
    }
    program_end();
}
END_TEST

/* A record has its name by a link: where there are none, nothing is trained. */
START_TEST(a_folder_without_links_is_said_before_training) {
    char variables[512], store[256], command[1024], steps[256];
    program_begin();
    snprintf(variables, sizeof variables, "LRNN_NO_LINKS=1 LD_PRELOAD=$(realpath %s)",
             named_program("LRNN_FAULTS", "build/faults.so"));
    snprintf(store, sizeof store, "%s/r", program_folder);
    snprintf(steps, sizeof steps, "%s/steps.csv", program_folder);
    train_words(command, variables, store);
    snprintf(command + strlen(command), sizeof command - strlen(command), " --log-steps %s", steps);
    expect_status(run_program(program_folder, "env", command), ST_FAIL, command);
    expect_text(err, "; results need a file system with hard links, --out names another folder", command);
    ck_assert_int_ne(access(steps, F_OK), 0);
    ck_assert_int_eq(scratch_count(store, ""), 0);
    program_end();
}
END_TEST

/* A file system, say one on a network, may do so. A run's record is its own there too, and its weights stay. */
START_TEST(calls_that_succeed_and_say_otherwise_lose_nothing) {
    static const char *const wishes[] = {"LRNN_LINK_UNSURE=1", "LRNN_NO_FOLDER_SYNC=1"};
    char variables[512], store[256], path[1024];
    program_begin();
    for (int i = 0; i < 2; i++) {
        snprintf(variables, sizeof variables, "%s LD_PRELOAD=$(realpath %s)", wishes[i],
                 named_program("LRNN_FAULTS", "build/faults.so"));
        snprintf(store, sizeof store, "%s/%d", program_folder, i);
        struct run r = trained(variables, store);
        snprintf(path, sizeof path, "%s/%s", store, r.ckpt);
        ck_assert_msg(access(path, F_OK) == 0, "%s: there is no %s", wishes[i], path);
    }
    program_end();
}
END_TEST

/* Runs the program with one refusal of memory, the nth. */
static int run_short_of_memory(long nth, const char *arguments) {
    char words[2048];
    snprintf(words, sizeof words, "LRNN_FAIL=malloc:%ld LD_PRELOAD=$(realpath %s) %s %s", nth,
             named_program("LRNN_FAULTS", "build/faults.so"), named_program("LRNN", "./lrnn"), arguments);
    return run_program(program_folder, "env", words);
}

/* The number of calls to refuse. */
static long count_memory(const char *arguments) {
    char words[2048], path[512], name[32];
    long calls = 0, n;
    snprintf(path, sizeof path, "%s/counts", program_folder);
    snprintf(words, sizeof words, "LRNN_FAIL_COUNT=%s LD_PRELOAD=$(realpath %s) %s %s", path,
             named_program("LRNN_FAULTS", "build/faults.so"), named_program("LRNN", "./lrnn"), arguments);
    expect_status(run_program(program_folder, "env", words), 0, arguments);
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    while (fscanf(f, "%31s %ld", name, &n) == 2)
        if (!strcmp(name, "malloc")) calls = n;
    fclose(f);
    return calls;
}

/* The C library's streams into memory end without an error and without a text if their last call is refused. */
START_TEST(a_pack_is_whole_or_refused) {
    char train[512], pack[256], unpack[256], store[SCRATCH_BYTES + 16];
    int refused = 0;
    program_begin();
    snprintf(store, sizeof store, "%s/store", program_folder);
    snprintf(train, sizeof train, TRAIN, store, 1L);
    snprintf(pack, sizeof pack, "store pack %s", store);
    snprintf(unpack, sizeof unpack, "store unpack %s", store);
    expect_status(run(train), 0, train);
    long calls = count_memory(pack);
    for (long i = calls > 60 ? calls - 60 : 1; i <= calls; i++) {
        struct record_set set;
        struct error e = {0};
        expect_status(run(unpack), 0, unpack);
        int status = run_short_of_memory(i, pack);
        ck_assert_msg(status == 0 || status == 6, "refusal %ld of %ld: status %d, %s", i, calls, status, err);
        refused += status != 0;
        ck_assert_msg(records_load(&set, store, &e) == ST_OK && set.n == 1, "refusal %ld: %s", i, e.text);
        records_free(&set);
    }
    ck_assert_int_gt(refused, 20);
    program_end();
}
END_TEST

/* For want of memory at the last of them it would end early and look whole. */
START_TEST(a_list_of_plans_is_whole_or_refused) {
    program_begin();
    long calls = count_memory("list papers");
    char *all = strdup(out);
    int refused = 0;
    for (long i = 1; i <= calls; i++) {
        int status = run_short_of_memory(i, "list papers");
        refused += status != 0;
        ck_assert_msg(status != 0 || strcmp(out, all) == 0, "refusal %ld of %ld: %s", i, calls, out);
    }
    ck_assert_int_gt(refused, 0);
    free(all);
    program_end();
}
END_TEST

/* Two with a comma; in Turkish the small form of I is no i. */
static const char *const locales[] = {"de_DE", "tr_TR"};

/* The locale is made here; faults.so ends the program if it is not in force. */
START_TEST(numbers_have_a_point_in_every_locale) {
    char variables[512], store[512], command[512];
    program_begin();
    snprintf(command, sizeof command, "localedef -i %s -f UTF-8 %s/%s.UTF-8 >%s/out 2>&1", locales[_i], program_folder,
             locales[_i], program_folder);
    ck_assert_msg(system(command) == 0, "%s: is the package locales there? bootstrap.sh installs it", command);
    snprintf(variables, sizeof variables, "LOCPATH=%s LC_ALL=%s.UTF-8 LRNN_LOCALE=1 LD_PRELOAD=$(realpath %s)",
             program_folder, locales[_i], named_program("LRNN_FAULTS", "build/faults.so"));
    snprintf(store, sizeof store, "%s/there", program_folder);
    struct run there = trained(variables, store);
    snprintf(store, sizeof store, "%s/plain", program_folder);
    struct run plain = trained("LC_ALL=C", store);
    ck_assert_str_eq(there.run_id, plain.run_id);
    ck_assert_str_eq(there.ckpt_xxh3, plain.ckpt_xxh3);
    ck_assert_double_eq(there.lr, 0.0015);
    ck_assert_double_eq(there.test_loss, plain.test_loss);
    program_end();
}
END_TEST

Suite *check_faults(void);
Suite *check_faults(void) {
    const TTest *const tests[] = {a_call_that_fails_is_said_and_loses_nothing,
                                  calls_that_fail_for_ever_are_said_and_lose_nothing,
                                  a_kill_at_a_call_that_changes_files_loses_nothing,
                                  memory_that_is_refused_is_said,
                                  a_list_of_runs_is_whole_or_refused,
                                  power_that_goes_takes_no_finished_run,
                                  power_that_goes_during_a_bench_takes_no_finished_run,
                                  kills_take_no_finished_run,
                                  a_damaged_file_is_told_or_gives_the_same,
                                  writers_of_the_same_runs_and_weights_mix_nothing,
                                  a_bench_that_stops_and_wakes_doubles_no_run,
                                  a_value_that_no_run_has_stops_no_command,
                                  odd_surroundings_are_no_surprise,
                                  a_low_limit_of_memory_is_said_at_every_height,
                                  an_interrupted_validation_is_done_again,
                                  no_command_opens_a_socket_or_writes_elsewhere,
                                  a_claim_is_touched_as_long_as_its_run_lasts,
                                  a_damaged_checkpoint_that_cannot_be_renamed_stops_its_run,
                                  a_folder_without_links_is_said_before_training,
                                  calls_that_succeed_and_say_otherwise_lose_nothing,
                                  a_list_of_plans_is_whole_or_refused,
                                  a_pack_is_whole_or_refused};
    Suite *suite = suite_create("faults");
    TCase *c = tcase_create("faults");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) tcase_add_test(c, tests[i]);
    tcase_add_loop_test(c, steps_of_the_clock_change_no_duration, 0, 2);
    tcase_add_loop_test(c, numbers_have_a_point_in_every_locale, 0, 2);
    suite_add_tcase(suite, c);
    TCase *files = tcase_create("files");
    tcase_add_test(files, the_time_of_many_records_grows_with_their_number);
    tcase_add_test(files, what_a_kill_leaves_is_named_and_a_checkpoint_removed);
    tcase_add_test(files, a_picture_that_cannot_be_written_is_named);
    suite_add_tcase(suite, files);
    return suite;
}

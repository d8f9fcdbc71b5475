/* check_claim.c - claims: one owner a run, whoever asks, and none for ever; and temporary files that killed processes
 * have left. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/store/claim.h"
#include "harness/store/files.h"
#include "harness/store/leftovers.h"
#include "tests/lib/scratch.h"
#include "tests/testing.h"

#define RUN_ID "0123456789abcdef0123456789abcdef"

static char folder[SCRATCH_BYTES];

static void set_up(void) {
    scratch_make(folder);
}

static void tear_down(void) {
    scratch_remove(folder);
}

static enum claim_state take(struct claim *c) {
    enum claim_state state;
    struct error e = {0};
    ck_assert_msg(claim_take(c, folder, RUN_ID, "s3 lstm", &state, &e) == ST_OK, "%s", e.text);
    return state;
}

static void set_age(const char *path, int age_s) {
    struct timespec times[2] = {{time(NULL) - age_s, 0}, {time(NULL) - age_s, 0}};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* A claim file by other hands. */
static void write_claim(int number, const char *text, int age_s) {
    char path[SCRATCH_BYTES + 64];
    snprintf(path, sizeof path, "%s/claims", folder);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/claims/" RUN_ID ".%d", folder, number);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
    set_age(path, age_s);
}

START_TEST(a_run_is_claimed_once_until_it_is_released) {
    struct claim first, second;
    ck_assert_int_eq(take(&first), CLAIM_MINE);
    ck_assert_int_eq(take(&second), CLAIM_OTHERS);
    ck_assert_str_eq(second.path, "");
    claim_release(&first);
    ck_assert_int_eq(take(&second), CLAIM_MINE);
    ck_assert_int_eq(take(&first), CLAIM_OTHERS);
    claim_done(&second, folder, RUN_ID);
    ck_assert_int_eq(scratch_count(folder, RUN_ID), 0);
    ck_assert_int_eq(take(&first), CLAIM_MINE);
}
END_TEST

START_TEST(the_claim_of_a_dead_process_is_taken_over_at_once) {
    struct claim mine;
    pid_t pid = fork();
    if (pid == 0) _exit(take(&mine) != CLAIM_MINE);
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(take(&mine), CLAIM_MINE);
}
END_TEST

/* It is dead while its parent has not asked for its exit status. */
START_TEST(the_claim_of_a_zombie_is_taken_over_at_once) {
    struct claim mine;
    siginfo_t info;
    pid_t pid = fork();
    if (pid == 0) _exit(take(&mine) != CLAIM_MINE);
    ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    ck_assert_int_eq(info.si_status, 0);
    ck_assert_int_eq(take(&mine), CLAIM_MINE);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

START_TEST(another_machines_claim_grows_stale_by_its_age) {
    static const char elsewhere[] = "elsewhere 1 1 boot/space 2026-01-01T00:00:00Z s3 lstm\n";
    struct claim mine;
    struct claim_info *list;
    int n;
    struct error e = {0};
    write_claim(1, elsewhere, 5);
    ck_assert_int_eq(take(&mine), CLAIM_OTHERS);
    ck_assert_int_eq(claims_list(folder, &list, &n, &e), ST_OK);
    ck_assert_int_eq(n, 1);
    ck_assert(list[0].live);
    ck_assert_str_eq(list[0].host, "elsewhere");
    ck_assert_str_eq(list[0].what, "s3 lstm");
    free(list);
    write_claim(1, elsewhere, (int)CLAIM_STALE_S + 60);
    ck_assert_int_eq(take(&mine), CLAIM_MINE);
    ck_assert_int_eq(claims_list(folder, &list, &n, &e), ST_OK);
    ck_assert_int_eq(n, 1);
    ck_assert_int_eq(list[0].pid, getpid());
    free(list);
}
END_TEST

/* The word of a claim that nobody has is no machine's name. */
START_TEST(a_machine_may_be_called_free) {
    struct claim mine;
    write_claim(1, "free 1 1 boot/space 2026-01-01T00:00:00Z s3 lstm\n", 5);
    ck_assert_int_eq(take(&mine), CLAIM_OTHERS);
    write_claim(2, "free 0 0 - - -\n", 5);
    ck_assert_int_eq(take(&mine), CLAIM_MINE);
}
END_TEST

/* "./././." makes a path as long as wanted: twenty names fit after it, and one a byte longer does not. */
START_TEST(a_list_that_fails_leaves_nothing_to_free) {
    char out[PATH_BYTES] = ".", path[SCRATCH_BYTES + 64];
    struct claim_info *list;
    int n;
    struct error e = {0};
    write_claim(10, "host 1 1 place then what\n", 5);
    for (unsigned i = 0; i < 20; i++) {
        snprintf(path, sizeof path, "%s/claims/%032x.1", folder, i);
        spill(path, "host 1 1 place then what\n", 25);
    }
    size_t length = sizeof out - sizeof "/claims/" RUN_ID ".1";
    for (size_t i = 1; i < length; i++) out[i] = i % 2 ? '/' : '.';
    ck_assert_int_eq(chdir(folder), 0);
    ck_assert_int_eq(claims_list(out, &list, &n, &e), ST_FAIL);
    ck_assert_ptr_null(list);
    ck_assert_int_eq(n, 0);
}
END_TEST

static const char *const senseless[] = {"", "\n", "host", "host x y z w\n", "\xff\xfe\x01\x02"};

/* An empty file, as a full disk may leave one, and bytes of anything. */
START_TEST(a_claim_that_says_nothing_holds_nobody_up) {
    struct claim mine;
    write_claim(1, senseless[_i], 0);
    ck_assert_int_eq(take(&mine), CLAIM_MINE);
    ck_assert_int_eq(take(&mine), CLAIM_OTHERS);
}
END_TEST

START_TEST(a_beat_keeps_a_claim_young) {
    struct claim mine;
    struct stat before, after;
    ck_assert_int_eq(take(&mine), CLAIM_MINE);
    struct timespec times[2] = {{1000, 0}, {1000, 0}};
    ck_assert_int_eq(utimensat(AT_FDCWD, mine.path, times, 0), 0);
    ck_assert_int_eq(stat(mine.path, &before), 0);
    claim_beat(&mine);
    ck_assert_int_eq(stat(mine.path, &after), 0);
    ck_assert(after.st_mtime > before.st_mtime + 1000);
}
END_TEST

enum { PROCESSES = 8, RUNS = 12 };

/* Wants every run, tells which it has got, and lives until all have tried. */
static _Noreturn void want_all(int tell, int go) {
    for (int i = 0; i < RUNS; i++) {
        char id[RUN_ID_HEX];
        struct claim c;
        enum claim_state state;
        unsigned char got = (unsigned char)i;
        snprintf(id, sizeof id, "%032x", (unsigned)i);
        if (claim_take(&c, folder, id, "", &state, NULL) != ST_OK) _exit(1);
        if (state == CLAIM_MINE && write(tell, &got, 1) != 1) _exit(1);
    }
    close(tell);
    char byte;
    _exit(read(go, &byte, 1) != 0);
}

/* Half of the runs have a claim of a dead process before. */
START_TEST(of_many_who_want_a_run_one_gets_it) {
    int results[2], go[2], owners[RUNS] = {0}, status;
    unsigned char got;
    pid_t pids[PROCESSES];
    ck_assert_int_eq(pipe(results), 0);
    ck_assert_int_eq(pipe(go), 0);
    for (int i = 0; i < RUNS; i += 2) {
        char path[SCRATCH_BYTES + 64];
        write_claim(1, "host 1 1 place then what\n", (int)CLAIM_STALE_S + 60);
        snprintf(path, sizeof path, "%s/claims/%032x.1", folder, (unsigned)i);
        char from[SCRATCH_BYTES + 64];
        snprintf(from, sizeof from, "%s/claims/" RUN_ID ".1", folder);
        ck_assert_int_eq(rename(from, path), 0);
    }
    for (int p = 0; p < PROCESSES; p++) {
        pids[p] = fork();
        if (pids[p] != 0) continue;
        close(results[0]);
        close(go[1]);
        want_all(results[1], go[0]);
    }
    close(results[1]);
    close(go[0]);
    while (read(results[0], &got, 1) == 1) {
        ck_assert_int_lt(got, RUNS);
        owners[got]++;
    }
    close(go[1]);
    for (int p = 0; p < PROCESSES; p++) {
        ck_assert_int_eq(waitpid(pids[p], &status, 0), pids[p]);
        ck_assert_int_eq(status, 0);
    }
    for (int i = 0; i < RUNS; i++) ck_assert_msg(owners[i] == 1, "run %d has %d owners", i, owners[i]);
}
END_TEST

/* --- leftovers ---------------------------------------------------------------------------------------------------- */

enum { YOUNG = (int)LEFTOVER_S - 60, OLD = (int)LEFTOVER_S + 60 };

#define NOBODY 99999999L /* Linux numbers no process above 4194304 */

/* A temporary file of a process. */
static void write_left(const char *name, long pid, int age_s) {
    char path[PATH_BYTES], in[PATH_BYTES];
    struct error e = {0};
    snprintf(in, sizeof in, "%s/%.*s", folder, (int)(strrchr(name, '/') - name), name);
    ck_assert_msg(make_folder(in, &e) == ST_OK, "%s", e.text);
    snprintf(path, sizeof path, "%s/%s.%ld.1a.0.tmp", folder, name, pid);
    spill(path, "half", 4);
    set_age(path, age_s);
}

/* A process that this machine does not have may live on another. */
START_TEST(only_old_files_of_no_process_and_of_no_claim_are_removed) {
    write_left("runs/01/." RUN_ID ".json", NOBODY, OLD);
    write_left("checkpoints/." RUN_ID ".ckpt", NOBODY, OLD);
    write_left("weights/." RUN_ID ".safetensors", NOBODY, OLD);
    leftovers_remove(folder, RUN_ID);
    ck_assert_int_eq(scratch_count(folder, ".tmp"), 0);
    write_left("runs/01/." RUN_ID ".json", NOBODY, YOUNG);
    write_left("checkpoints/." RUN_ID ".ckpt", getpid(), OLD);
    write_left("weights/.other.safetensors", NOBODY, OLD);
    write_left("claims/." RUN_ID ".2", NOBODY, OLD);
    write_left("claims/.." RUN_ID ".live", NOBODY, OLD);
    leftovers_remove(folder, RUN_ID);
    ck_assert_int_eq(scratch_count(folder, ".tmp"), 5);
}
END_TEST

START_TEST(leftovers_are_counted_by_the_same_rules_and_claims_with_them) {
    char first[PATH_BYTES], wanted[PATH_BYTES];
    struct error e = {0};
    int n;
    write_left("runs/01/." RUN_ID ".json", NOBODY, YOUNG);
    write_left("checkpoints/." RUN_ID ".ckpt", getpid(), OLD);
    ck_assert_int_eq(leftovers_count(folder, &n, first, &e), ST_OK);
    ck_assert_int_eq(n, 0);
    write_left("claims/.now", NOBODY, OLD);
    write_left("runs/01/." RUN_ID ".json", NOBODY, OLD);
    ck_assert_int_eq(leftovers_count(folder, &n, first, &e), ST_OK);
    ck_assert_int_eq(n, 2);
    snprintf(wanted, sizeof wanted, "%s/runs/01/." RUN_ID ".json.%ld.1a.0.tmp", folder, NOBODY);
    ck_assert_str_eq(first, wanted);
}
END_TEST

START_TEST(leftovers_are_counted_beside_what_is_no_folder) {
    char first[PATH_BYTES], path[PATH_BYTES];
    struct error e = {0};
    int n;
    write_left("runs/01/." RUN_ID ".json", NOBODY, OLD);
    write_left("weights/." RUN_ID ".safetensors", NOBODY, OLD);
    snprintf(path, sizeof path, "%s/runs/00", folder);
    spill(path, "", 0);
    ck_assert_msg(leftovers_count(folder, &n, first, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(n, 2);
    snprintf(path, sizeof path, "%s/checkpoints", folder);
    spill(path, "", 0);
    ck_assert_int_eq(leftovers_count(folder, &n, first, &e), ST_DATA);
    ck_assert_msg(strstr(e.text, "cannot read the folder") && strstr(e.text, "/checkpoints"), "%s", e.text);
    ck_assert_int_eq(n, 2);
    ck_assert_int_eq(leftovers_count(folder, &n, first, NULL), ST_DATA);
}
END_TEST

Suite *check_claim(void) {
    Suite *suite = suite_create("claim");
    TCase *c = tcase_create("claim");
    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_test(c, a_run_is_claimed_once_until_it_is_released);
    tcase_add_test(c, the_claim_of_a_dead_process_is_taken_over_at_once);
    tcase_add_test(c, the_claim_of_a_zombie_is_taken_over_at_once);
    tcase_add_test(c, another_machines_claim_grows_stale_by_its_age);
    tcase_add_test(c, a_machine_may_be_called_free);
    tcase_add_test(c, a_list_that_fails_leaves_nothing_to_free);
    tcase_add_loop_test(c, a_claim_that_says_nothing_holds_nobody_up, 0, (int)(sizeof senseless / sizeof *senseless));
    tcase_add_test(c, a_beat_keeps_a_claim_young);
    tcase_add_test(c, of_many_who_want_a_run_one_gets_it);
    tcase_add_test(c, only_old_files_of_no_process_and_of_no_claim_are_removed);
    tcase_add_test(c, leftovers_are_counted_by_the_same_rules_and_claims_with_them);
    tcase_add_test(c, leftovers_are_counted_beside_what_is_no_folder);
    suite_add_tcase(suite, c);
    return suite;
}

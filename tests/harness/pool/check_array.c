/* check_array.c - `lrnn sweep --slurm`: the array job of a sweep, with a stand-in for sbatch. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "core/status.h"
#include "tests/lib/own_plan.h"
#include "tests/testing.h"

#define TASK  "s3:n_train=200,n_val=20,n_test=20,length=4"
#define FLAGS "--profile smoke --models 'lru:state=4 lstm:hidden=4' --no-speed --no-plots --seeds 4 --epochs 3"
#define SMALL TASK " " FLAGS
#define RUNS  8

/* Instead of sbatch: keeps the script, says a number or refuses, and may complain on its output of errors. */
static void stand_in_for_sbatch(const char *answer, const char *complaint, int status) {
    char path[256], text[512];
    snprintf(path, sizeof path, "%s/bin", program_folder);
    ck_assert(mkdir(path, 0755) == 0 || errno == EEXIST);
    snprintf(path, sizeof path, "%s/bin/sbatch", program_folder);
    int n = snprintf(text, sizeof text, "#!/bin/sh\ncat >%s/script\nprintf '%%s' '%s' >&2\necho '%s'\nexit %d\n",
                     program_folder, complaint, answer, status);
    spill(path, text, (size_t)n);
    ck_assert_int_eq(chmod(path, 0755), 0);
    snprintf(text, sizeof text, "%s/bin:/usr/bin:/bin", program_folder);
    setenv("PATH", text, 1);
}

/* Runs the job's script here as Slurm would run its tasks. */
START_TEST(a_job_of_slurm_does_the_whole_in_shards) {
    char command[1024];
    stand_in_for_sbatch("17;cluster", "", 0);
    expect("sweep " SMALL " --slurm 2 --gres gpu:1 --sbatch='--mem=1G --time=5' --out %s/r", 0);
    ck_assert_str_eq(out, "17\n");
    expect_text(err, "submitted: job 17, 2 tasks, 8 runs", "sweep");
    ck_assert(is_in_folder("r/slurm/17.sh"));
    expect("status %s/r", 0);
    expect_text(out, "0 of 8 runs done", "status");
    snprintf(command, sizeof command,
             "cmp %s/script %s/r/slurm/17.sh && grep -q '^#SBATCH --gres=gpu:1$' %s/script && "
             "grep -q '^#SBATCH --mem=1G --time=5$' %s/script && "
             "SLURM_ARRAY_TASK_ID=1 bash %s/script 2>/dev/null && SLURM_ARRAY_TASK_ID=2 bash %s/script 2>/dev/null",
             program_folder, program_folder, program_folder, program_folder, program_folder, program_folder);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(records_in("r"), RUNS);
    expect("sweep " SMALL " --slurm 2 --force --out %s/r", ST_USAGE);
    expect_text(err, "--force", "sweep --slurm");
    expect("sweep " SMALL " --slurm 2 --dry-run --out %s/r", 0);
    expect_text(out, "#SBATCH --array=1-2", "sweep");
    expect("sweep " SMALL " --slurm 2 --threads 4 --dry-run --out %s/r",
           0); /* 4 at a time have room on 19 processors */
    snprintf(command, sizeof command, "%s/threads", program_folder);
    spill(command, out, strlen(out));
    snprintf(command, sizeof command,
             "cd %s && grep '^jobs=' threads >jobs && for n in '' 3 19 5000; do SLURM_CPUS_ON_NODE=$n bash -c "
             "'. ./jobs; echo $jobs'; done | tr '\\n' ' ' | grep -qx '1 1 4 256 '",
             program_folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

/* sbatch has taken the job where its exit status is 0: what plugins of a site warn of there changes nothing. */
START_TEST(a_job_that_slurm_has_taken_is_kept) {
    stand_in_for_sbatch("4712", "sbatch: Warning: no account was given", 0);
    expect("sweep " SMALL " --slurm 2 --out %s/r", 0);
    ck_assert_str_eq(out, "4712\n");
    expect_text(err, "sbatch: Warning: no account was given\nsubmitted: job 4712", "sweep");
    ck_assert(is_in_folder("r/slurm/4712.sh"));
    stand_in_for_sbatch("no number", "", 0);
    expect("sweep " SMALL " --slurm 2 --out %s/s", ST_FAIL);
    expect_text(err, "sbatch answers \"no number\" instead of a job's number", "sweep");
    ck_assert(is_in_folder("s/slurm"));
}
END_TEST

START_TEST(without_slurm_or_where_it_refuses_nothing_is_left) {
    setenv("PATH", "/nowhere", 1);
    char path[512];
    size_t size;
    const char *program = named_program("LRNN", "./lrnn");
    snprintf(path, sizeof path, "%s sweep " SMALL " --slurm 2 --out %s/r 2>%s/said", program, program_folder,
             program_folder);
    ck_assert_int_eq(WEXITSTATUS(system(path)), ST_DATA);
    snprintf(path, sizeof path, "%s/said", program_folder);
    char *said = slurp(path, &size);
    expect_text(said, "there is no sbatch in PATH", "sweep --slurm");
    free(said);
    ck_assert(!is_in_folder("r"));
    stand_in_for_sbatch("", "error: invalid partition specified: gpu", 1);
    expect("sweep " SMALL " --slurm 2 --out %s/r", ST_USAGE);
    expect_text(err, "sbatch refuses the job: error: invalid partition", "sweep");
    ck_assert(!is_in_folder("r"));
    expect("sweep " SMALL " --slurm 9 --out %s/r", ST_USAGE);
    expect_text(err, "there are 8 runs", "sweep");
    expect("sweep " SMALL " --slurm 2 --shard 1/2 --out %s/r", ST_USAGE);
    expect_text(err, "--slurm gives each of its tasks a shard; leave --shard out", "sweep");
    expect("sweep " SMALL " --slurm 2 --limit 5m --out %s/r", ST_USAGE);
    expect_text(err, "tasks of an array do runs that the plan alone decides; --limit", "sweep");
    expect("sweep " SMALL " --slurm 2 --sbatch='--time=1\nrm' --out %s/r", ST_USAGE);
    expect_text(err, "--sbatch has a line end or another control character", "sweep");
    static const char *const devices[] = {"gpu:1 --time=1", "gpu:1\n#SBATCH --time=1", "gpu:\"1\"", "gpu:1#"};
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "sweep " SMALL " --slurm 2 --gres '%s' --out %%s/r", devices[i]);
        expect(path, ST_USAGE);
        expect_text(err, "expected what sbatch takes, letters, digits and", path);
    }
    static const char *const alone[] = {"sbatch", "gres"};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "sweep " SMALL " --%s=--x --out %%s/r", alone[i]);
        expect(path, ST_USAGE);
        expect_text(err, " is of a job of Slurm; give --slurm N", path);
        expect_text(err, alone[i], path);
    }
    expect("sweep " SMALL " --slurm 2 --out %s/a%%b", ST_USAGE);
    expect_text(err, "/a%b: Slurm would not read \" and % in a folder's name", "sweep");
    ck_assert(!is_in_folder("a%b"));
    ck_assert(!is_in_folder("r"));
}
END_TEST

/* A job that could not be watched is not submitted; a submitted job's number is told, whatever fails after it. */
START_TEST(a_number_of_a_job_is_never_lost) {
    char command[512];
    stand_in_for_sbatch("17", "", 0);
    snprintf(command, sizeof command, "mkdir -p %s/r/slurm/18.sh %s/s && touch %s/s/sweeps", program_folder,
             program_folder, program_folder);
    ck_assert_int_eq(system(command), 0);
    expect("sweep " SMALL " --slurm 2 --out %s/s", ST_FAIL);
    expect_text(err, "/s/sweeps", "sweep --slurm");
    ck_assert_str_eq(out, "");
    ck_assert(!is_in_folder("script"));
    stand_in_for_sbatch("18", "", 0);
    expect("sweep " SMALL " --slurm 2 --out %s/r", ST_FAIL);
    ck_assert_str_eq(out, "18\n");
    expect_text(err, "18.sh", "sweep --slurm");
    expect("status %s/r", 0);
    expect_text(out, "0 of 8 runs done", "status"); /* it is queued */
}
END_TEST

/* A refusal takes away what it made, and no list of an earlier job. */
START_TEST(a_list_goes_with_its_job_alone) {
    stand_in_for_sbatch("", "error: no", 1);
    expect("sweep " SMALL " --slurm 2 --out %s/r", ST_USAGE);
    ck_assert(!is_in_folder("r"));
    stand_in_for_sbatch("17", "", 0);
    expect("sweep " SMALL " --slurm 2 --out %s/r", 0);
    stand_in_for_sbatch("", "error: no", 1);
    expect("sweep " SMALL " --slurm 2 --out %s/r", ST_USAGE);
    expect("status %s/r", 0);
    expect_text(out, "0 of 8 runs done", "status");
}
END_TEST

/* "--" also ends the flags of a task's command, so the job's own flags stand before it; after it no word is a flag. */
START_TEST(words_behind_a_double_dash_are_those_of_the_tasks) {
    char command[1024];
    stand_in_for_sbatch("17", "", 0);
    expect("sweep --slurm 2 --out '%s/my runs' " FLAGS " -- " TASK, 0);
    expect_text(err, "lrnn status '", "sweep --slurm");
    expect_text(err, "/my runs' --watch shows", "sweep --slurm");
    snprintf(command, sizeof command, "SLURM_ARRAY_TASK_ID=2 bash %s/script >%s/said 2>&1", program_folder,
             program_folder);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(records_in("my runs"), RUNS / 2);
}
END_TEST

Suite *check_array(void);
Suite *check_array(void) {
    Suite *suite = suite_create("array");
    TCase *c = tcase_create("array");
    tcase_add_checked_fixture(c, program_begin, program_end);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, a_job_of_slurm_does_the_whole_in_shards);
    tcase_add_test(c, a_job_that_slurm_has_taken_is_kept);
    tcase_add_test(c, without_slurm_or_where_it_refuses_nothing_is_left);
    tcase_add_test(c, a_number_of_a_job_is_never_lost);
    tcase_add_test(c, a_list_goes_with_its_job_alone);
    tcase_add_test(c, words_behind_a_double_dash_are_those_of_the_tasks);
    suite_add_tcase(suite, c);
    return suite;
}

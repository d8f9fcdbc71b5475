/* check_sweep.c - sweeps as processes: two on one folder, shards, what is told of them, folders taken together. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/store/record_files.h"
#include "tests/lib/own_plan.h"
#include "tests/testing.h"

#define SMALL                                                                                                          \
    "s3:n_train=200,n_val=20,n_test=20,length=4 --profile smoke --models 'lru:state=4 lstm:hidden=4' --no-speed "      \
    "--no-plots --seeds 4 --epochs 3"
#define RUNS 8

static int count(const char *text, const char *part) {
    int n = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part)) n++;
    return n;
}

/* Both end with the whole table, and no run was done twice. */
START_TEST(two_sweeps_on_one_folder_share_the_work) {
    char command[4096], *log;
    size_t size;
    const char *program = named_program("LRNN", "./lrnn");
    int n = snprintf(command, sizeof command,
                     "%s sweep " SMALL " -j 1 --out %s/r >%s/a 2>%s/log & %s sweep " SMALL
                     " -j 1 --out %s/r >%s/b 2>>%s/log2; s=$?; wait $! && exit $s",
                     program, program_folder, program_folder, program_folder, program, program_folder, program_folder,
                     program_folder);
    ck_assert_int_lt(n, (int)sizeof command);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(records_in("r"), RUNS);
    int done = 0;
    for (int i = 0; i < 2; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", program_folder, i ? "log2" : "log");
        log = slurp(path, &size);
        done += count(log, " done in ");
        free(log);
        snprintf(path, sizeof path, "%s/%s", program_folder, i ? "b" : "a");
        log = slurp(path, &size);
        expect_text(log, "2 rows, 8 runs", path);
        free(log);
    }
    ck_assert_int_eq(done, RUNS);
    char claims[256];
    snprintf(claims, sizeof claims, "%s/r/claims", program_folder);
    ck_assert_int_eq(access(claims, F_OK), 0);
    ck_assert_int_eq(scratch_count(claims, ""), 0);
}
END_TEST

START_TEST(shards_make_the_whole_and_status_tells_how_far_they_are) {
    expect("sweep " SMALL " --shard 1/3 --out %s/r", 0);
    ck_assert_str_eq(out, "");
    expect_text(err, "shard 1/3 is done", "sweep");
    ck_assert_int_eq(records_in("r"), 3);
    expect("sweep " SMALL " --shard 3/3 --out %s/r", 0);
    ck_assert_int_eq(records_in("r"), 5);
    expect("status %s/r", 0);
    expect_text(out, "5 of 8 runs done, 3 left", "status"); /* of the whole */
    char command[512];
    snprintf(command, sizeof command,
             "timeout --preserve-status -s TERM 1 ${LRNN:-./lrnn} status %s/r --watch >/dev/null 2>&1", program_folder);
    ck_assert_int_eq(WEXITSTATUS(system(command)), 128 + SIGTERM);
    expect("sweep " SMALL " --dry-run --out %s/r", 0);
    expect_text(err, ": 8 runs, 3 left to do, ", "sweep --dry-run");
    ck_assert_int_eq(count(out, ", on record\n"), 5);
    expect("sweep " SMALL " --dry-run --threads 4096 --out %s/none", 0);
    /* each with as many as there may be */
    expect_text(err, ": 8 runs, seeds 1 to 4, 1 at a time, ", "sweep --threads");
    expect("sweep " SMALL " --dry-run --force --out %s/r", 0);
    ck_assert_int_eq(count(out, ", on record\n"), 0);
    expect("sweep " SMALL " --out %s/r", 0);
    expect_text(err, "5 of 8 runs are on record already", "sweep");
    expect_text(out, "2 rows, 8 runs", "sweep");
    expect("status --out %s/r", 0);
    expect_text(out, "8 of 8 runs done, 0 left", "status");
    expect("sweep " SMALL " --dry-run --out %s/r", 0);
    expect_text(err, ": 8 runs, none left to do\n", "sweep --dry-run");
    expect("sweep " SMALL " --shard 4/3 --out %s/r", ST_USAGE);
    expect_text(err, "--shard 4/3: expected i/n with 1 <= i <= n", "sweep");
    expect("sweep " SMALL " --shard 9/9 --out %s/r", ST_USAGE);
    expect_text(err, "shard 9 of 9 has no run", "sweep");
    expect("sweep " SMALL " --shard 1/3 --limit 5s --out %s/r", ST_USAGE);
    expect_text(err, "--shard with --limit", "sweep");
    expect("status %s/nowhere", ST_DATA);
    expect_text(err, "/nowhere: No such file or directory", "status");
}
END_TEST

START_TEST(a_sweep_in_which_every_run_failed_fails) {
    expect("bench s3:n_train=200,n_val=20,n_test=20 --profile smoke --models lstm:hidden=4 --lr 1e6 --decay 10 "
           "--no-speed --no-plots --out %s/r",
           ST_FAIL);
    expect_text(err, "every one of the 1 runs failed", "bench");
    expect_text(out, "counted as chance", "bench");                                /* the table is there all the same */
    expect("sweep " SMALL " --lr 1e6 --decay 10 --shard 1/2 --out %s/s", ST_FAIL); /* as a task of a cluster's job */
    expect_text(err, "every one of the 4 runs failed; lrnn report --out ", "sweep --shard");
    ck_assert_int_eq(records_in("s"), RUNS / 2);
    expect("sweep " SMALL " --shard 2/2 --out %s/s", 0);
}
END_TEST

/* A table of somebody else's in the folder is said before anything is run. */
START_TEST(tables_of_others_are_left_alone) {
    static const char *const names[] = {"runs.csv", "curves.csv", "evals.csv",   "summary.csv",
                                        "perf.csv", "limits.csv", "machines.csv"};
    static const char theirs[] = "date,weight\n2024-02-29,71\n";
    char folder[256], path[512];
    size_t size;
    snprintf(folder, sizeof folder, "%s/r", program_folder);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        spill(path, theirs, sizeof theirs - 1);
        expect("sweep " SMALL " --out %s/r", ST_USAGE);
        expect_text(err, "is there and was not written by lrnn; move it away", "sweep");
        expect_text(err, path, "sweep");
        ck_assert_int_eq(scratch_count(folder, ""), (int)i + 1);
        char *kept = slurp(path, &size);
        ck_assert_str_eq(kept, theirs);
        free(kept);
        spill(path, "", 0); /* nothing of anybody's, which a full disk leaves */
    }
    expect("sweep " SMALL " --out %s/r", 0);
    expect("sweep " SMALL " --out %s/r", 0); /* over its own */
}
END_TEST

/* So is a picture of the name that one would get; one of another name is in nobody's way. */
START_TEST(pictures_of_others_are_left_alone) {
    static const char theirs[] = "<svg>a cat</svg>\n", equal[] = "s3:n_train=200,n_val=20,n_test=20",
                      unequal[] = "parity:eval_max_length=50,n_val=20,n_test=20",
                      tested[] = "parity:min_length=9,max_length=9,eval_max_length=50,n_val=20,n_test=20",
                      trained[] = "parity:eval_min_length=50,eval_max_length=50,n_val=20,n_test=20",
                      larger[] = "arrow:size=24,patch=4,n_train=200,n_val=20,n_test=20";
    static const struct {
        const char *task, *name;
        int status;
    } cases[] = {{equal, "s3-accuracy.svg", ST_USAGE},
                 {equal, "s3-table.png", ST_USAGE},
                 {unequal, "parity-length.svg", ST_USAGE},
                 {tested, "parity-length.svg", ST_USAGE},
                 {larger, "arrow-length.svg", ST_USAGE},
                 {trained, "parity-length.svg", 0},
                 {equal, "s3-length.svg", 0}};
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        char folder[256], path[512], arguments[512];
        size_t size;
        snprintf(folder, sizeof folder, "%s/r%d", program_folder, i);
        ck_assert_int_eq(mkdir(folder, 0700), 0);
        snprintf(path, sizeof path, "%s/%s", folder, cases[i].name);
        spill(path, theirs, sizeof theirs - 1);
        snprintf(arguments, sizeof arguments,
                 "bench %s --profile smoke --models lstm:hidden=4 --steps 3 --epochs 1 --no-speed --out %%s/r%d",
                 cases[i].task, i);
        expect(arguments, cases[i].status);
        if (cases[i].status) expect_text(err, path, arguments);
        if (cases[i].status) ck_assert_int_eq(scratch_count(folder, ""), 1);
        char *kept = slurp(path, &size);
        ck_assert_str_eq(kept, theirs);
        free(kept);
    }
}
END_TEST

/* A rate or a flag beside the profile's own takes runs out of it, and asks for one table all the same. */
START_TEST(what_is_asked_for_together_stands_in_one_table) {
    expect("bench s3 --profile smoke --models lru:state=4 --lr 0.002,0.004 --no-speed --no-plots --out %s/r", 0);
    expect_text(out, "profile custom: 1 row, 2 runs", "bench");
    ck_assert_ptr_null(strstr(out, "profile smoke"));
    expect("report %s/r", 0); /* the one rate is the profile's own, and is chosen among both */
    expect_text(out, "profile custom: 1 row, 2 runs", "report");
    ck_assert_ptr_null(strstr(out, "profile smoke"));
    expect("bench s3 --profile smoke --models lru:state=4 --layers 1,2 --no-speed --no-plots --out %s/r", 0);
    expect_text(out, "profile custom: 2 rows, 2 runs", "bench");
    expect_text(out, "\nlru:state=4 layers=1 ", "bench");
    expect_text(out, "\nlru:state=4 layers=2 ", "bench");
    expect("bench s3 --profile smoke --models lru:state=4 --no-speed --no-plots --out %s/r", 0);
    expect_text(out, "profile smoke: 1 row, 1 run", "bench");
}
END_TEST

START_TEST(several_tasks_stand_side_by_side) {
    expect("sweep s3:n_train=200,n_val=20,n_test=20 parity:eval_max_length=50,n_val=20,n_test=20 --profile smoke "
           "--models lstm:hidden=4 --steps 3 --epochs 1 --out %s/r",
           0);
    expect_text(out, "2 tasks, profile custom: 1 model", "sweep");
    expect("sweep s3:n_train=200,n_val=20,n_test=20 --profile smoke --models lstm:hidden=4 --epochs 1 --no-speed "
           "--no-plots --json --quiet --out %s/r",
           0);
    json_t *row = parse_line(out);
    ck_assert_int_eq(whole(row, "n"), 1);
    json_decref(row);
    ck_assert_str_eq(err, "");
}
END_TEST

START_TEST(folders_are_taken_together_whole_or_not_at_all) {
    expect("bench " SMALL " --out %s/a", 0);
    expect("bench " SMALL " --epochs 2 --models lru:state=4 --out %s/b", ST_USAGE);
    expect_text(err, "flag '--epochs' is given twice", "bench");
    expect(
        "bench s3:n_train=200,n_val=20,n_test=20,length=5 --profile smoke --models lru:state=4 --no-speed --no-plots "
        "--out %s/b",
        0);
    expect("store check %s/a %s/b", 0);
    expect("store merge %s/a %s/b --out %s/c", 0);
    ck_assert_int_eq(records_in("c"), RUNS + 1);
    expect("store merge %s/a --out %s/c", 0);
    expect_text(out, "0 records and 0 files of weights taken over, 8 records known already\n", "store merge");
    char command[512];
    snprintf(command, sizeof command, "rm $(ls -d %s/c/weights/* | head -1)", program_folder);
    ck_assert_int_eq(system(command), 0);
    expect("store check %s/c", 0);
    expect_text(out, "/c: 9 records, all whole; the weights of 1 are not there\n", "store check");
    expect("store merge %s/a %s/b --out %s/c", 0); /* weights that the other folder had lost */
    snprintf(command, sizeof command,
             "test $(ls %s/c/weights | wc -l) = $(ls %s/a/weights %s/b/weights | grep -c safet)", program_folder,
             program_folder, program_folder);
    ck_assert_int_eq(system(command), 0);
    snprintf(command, sizeof command, "cp -r %s/b %s/e; for f in %s/e/runs/*/*.json; do truncate -s -40 $f; done",
             program_folder, program_folder, program_folder);
    ck_assert_int_eq(system(command), 0);
    expect("store merge %s/b --out %s/e", ST_DATA); /* a folder that is damaged takes nothing */
    expect_text(err, "is cut off or altered", "store merge");
    snprintf(command, sizeof command, "for f in %s/e/weights/*; do truncate -s -4 $f; done; rm -r %s/e/runs",
             program_folder, program_folder);
    ck_assert_int_eq(system(command), 0);
    expect("store merge %s/b --out %s/e", ST_DATA); /* nor one with other weights of that name */
    expect_text(err, "is not what the record of run", "store merge");
    snprintf(command, sizeof command, "for f in %s/b/weights/*; do truncate -s -4 $f; done", program_folder);
    ck_assert_int_eq(system(command), 0);
    expect("store merge %s/a %s/b --out %s/d", ST_DATA); /* half-copied */
    expect_text(err, "is not what the record of run", "store merge");
    snprintf(command, sizeof command, "for f in %s/b/runs/*/*.json; do truncate -s -40 $f; done", program_folder);
    ck_assert_int_eq(system(command), 0);
    expect("store merge %s/a %s/b --out %s/d", ST_DATA);
    expect_text(err, "is cut off or altered", "store merge");
    snprintf(command, sizeof command, "for f in $(ls -d %s/a/runs/*/*.json | head -2); do truncate -s -40 $f; done",
             program_folder);
    ck_assert_int_eq(system(command), 0);
    expect("store check %s/a", ST_DATA); /* both are said */
    ck_assert_msg(strstr(err, ".json") && strstr(strstr(err, ".json") + 1, "\nlrnn"), "%s", err);
    expect("store check %s/a %s/c %s/b", ST_DATA); /* each folder is */
    expect_text(out, "/c: 9 records, all whole\n", "store check");
    ck_assert_ptr_nonnull(strstr(err, "/a/runs"));
    ck_assert_ptr_nonnull(strstr(err, "/b/runs"));
    snprintf(command, sizeof command, "test ! -e %s/d", program_folder);
    ck_assert_int_eq(system(command), 0);
    expect("store merge %s/nothing --out %s/d", ST_DATA);
    expect_text(err, "no run records under", "store merge");
    expect("store merge", ST_USAGE);
    expect_text(err, "say which folders to take over", "store merge");
    expect("store merge %s/a", ST_USAGE);
    expect_text(err, "say which folder takes them, --out FOLDER", "store merge");
}
END_TEST

/* Lists the machines and the sweeps of the runs. */
START_TEST(folders_are_taken_together_with_their_machines_and_sweeps) {
    static const char other[] =
        "machine_id,env_epoch,first_seen,cpu,cores,ram_gib,kernel,os,governor,libc,blas\n"
        "00000000000000aa,00000000000000bb,2024-02-29T01:02:03Z,\"one, two\",4,8,Linux 6,Debian,,glibc 2,none\n";
    char path[512], command[1024];
    expect("sweep " SMALL " --shard 1/2 --out %s/a", 0);
    ck_assert(is_in_folder("a/machines.csv"));
    expect("sweep " SMALL " --shard 2/2 --out %s/b", 0);
    expect("bench " SMALL " --layers 2 --out %s/d", 0);
    snprintf(path, sizeof path, "%s/b/machines.csv", program_folder);
    spill(path, other, sizeof other - 1);
    for (int i = 0; i < 2; i++) { /* again: nothing twice */
        expect("store merge %s/a %s/b --out %s/c", 0);
        expect("store merge %s/d --out %s/c", 0);
        snprintf(command, sizeof command,
                 "cd %s && test $(wc -l <c/machines.csv) = 3 && tail -1 b/machines.csv | "
                 "grep -qxFf - c/machines.csv && head -2 a/machines.csv | tail -1 | grep -qxFf - c/machines.csv && "
                 "for f in a/sweeps/* d/sweeps/*; do cmp $f c/sweeps/${f##*/} || exit 1; done",
                 program_folder);
        ck_assert_int_eq(system(command), 0);
    }
    expect("status %s/c", 0);
    expect_text(out, "8 of 8 runs done, 0 left", "status");
    snprintf(command, sizeof command, "cd %s && cp -r b e && echo torn >>e/sweeps/x.tsv", program_folder);
    ck_assert_int_eq(system(command), 0);
    expect("store merge %s/a %s/e --out %s/f", ST_DATA);
    expect_text(err, "/e/sweeps/x.tsv line 1: expected a run's id and its FLOPs; move the file away", "store merge");
    expect("store merge %s/a --out %s/e", ST_DATA);
    snprintf(path, sizeof path, "%s/e/machines.csv", program_folder);
    spill(path, "machine_id,mine\n1,2\n", 20);
    expect("store merge %s/a %s/e --out %s/f", ST_DATA);
    expect_text(err, "/e/machines.csv has a column 'mine', which this program does not know", "store merge");
    spill(path, "name\nBob\n", 9);
    expect("store merge %s/a --out %s/e", ST_USAGE);
    expect_text(err, "/e/machines.csv is there and was not written by lrnn", "store merge");
    ck_assert(!is_in_folder("f"));
    ck_assert_int_eq(records_in("e"), RUNS / 2);
}
END_TEST

START_TEST(what_a_store_has_in_its_wrong_place_or_twice_is_said) {
    char command[512];
    expect("bench " SMALL " --out %s/a", 0);
    expect("bench " SMALL " --out %s/b", 0); /* the same runs, trained again */
    expect("store merge %s/a --out %s/b", 0);
    expect_text(out, "8 records known already, 8 of them from another training, which stay\n", "store merge");
    snprintf(command, sizeof command,
             "cd %s/a/runs; f=$(ls */*.json | head -1); to=ff; case $f in ff/*) to=ee;; esac; mkdir -p $to; mv $f $to",
             program_folder);
    ck_assert_int_eq(system(command), 0);
    expect("store check %s/a", ST_DATA);
    expect_text(err, ".json: a record is runs/AB/ID.json, AB the first digits of its run's id", "store check");
    expect("store merge %s/a --out %s/c", ST_DATA);
    snprintf(command, sizeof command, "test ! -e %s/c", program_folder);
    ck_assert_int_eq(system(command), 0);
    static const char *const strays[] = {"zz/$(basename $f)", "$(basename $f)", "$(dirname $f)/zz.json"};
    for (int i = 0; i < 3; i++) {
        snprintf(command, sizeof command,
                 "cd %s/b/runs; f=$(ls */*.json | head -1); mkdir -p zz; cp $f %s; "
                 "cd ../..; cp -r b b%d; cd b/runs; rm -r zz; rm -f *.json */zz.json",
                 program_folder, strays[i], i);
        ck_assert_int_eq(system(command), 0);
        snprintf(command, sizeof command, "store check %%s/b%d", i);
        expect(command, ST_DATA);
        expect_text(err, ".json: a record is runs/AB/ID.json, AB the first digits of its run's id; rename", command);
    }
    expect("store check %s/b", 0);
}
END_TEST

/* Within a fifth, of a run whose curve is nearly all that it leaves. */
START_TEST(disk_is_announced_as_it_is_taken) {
    char command[512], *text;
    size_t size;
    expect("sweep s3:n_train=200,n_val=20,n_test=20,length=4 --profile smoke --models lstm:hidden=4 --dim 4 --lr 0.001 "
           "--steps 4000 --eval-every 1 --stop-at 2 --no-speed --no-plots --out %s/r",
           0);
    const char *at = strstr(err, " MB of disk");
    ck_assert_ptr_nonnull(at);
    while (at[-1] != ' ') at--;
    double announced = strtod(at, NULL);
    snprintf(command, sizeof command, "du -sb %s/r >%s/taken", program_folder, program_folder);
    ck_assert_int_eq(system(command), 0);
    snprintf(command, sizeof command, "%s/taken", program_folder);
    text = slurp(command, &size);
    double taken = strtod(text, NULL) / 1e6;
    free(text);
    ck_assert_msg(announced > 0.8 * taken && announced < 1.25 * taken, "announced %g MB, taken %g MB", announced,
                  taken);
}
END_TEST

/* One process a time does the runs in the order of the list. */
START_TEST(a_dry_run_lists_the_runs_as_they_are_done) {
    expect("sweep " SMALL " --dry-run --out %s/r", 0);
    char *list = strdup(out), *rest = NULL;
    expect("sweep " SMALL " -j 1 --out %s/r", 0);
    const char *done = err;
    for (char *line = strtok_r(list, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *steps = strstr(line, " steps "), *model = strchr(strchr(line, ' ') + 1, ' ') + 1;
        *steps = 0;
        done = strstr(done, model);
        ck_assert_msg(done != NULL, "%s is not done after those before it: %s", model, err);
    }
    free(list);
}
END_TEST

/* A dry run lists what a run would do, and refuses what a run would refuse. */
START_TEST(a_dry_run_is_the_run_untrained) {
    expect("sweep " SMALL " --layers 1,2 --dry-run --out %s/r", 0);
    ck_assert_int_eq(count(out, " layers 1 seed 1 steps "), 2);
    ck_assert_int_eq(count(out, " layers 2 seed 1 steps "), 2);
    expect("sweep " SMALL " --dry-run --json --quiet --out %s/r", 0);
    ck_assert_int_eq(count(out, "\n"), RUNS);
    ck_assert(strstr(out, "\"seed\":1,") < strstr(out, "\"seed\":2,") &&
              count(strstr(out, "\"seed\":2,"), "\"seed\":1,") == 0);
    ck_assert_int_eq(count(out, ",\"seed\":4,\"steps\":21,\"on_record\":false,\"config\":\"task=word-problem\\n"),
                     RUNS / 4);
    expect("sweep " SMALL " --confirm-seeds 3 --dry-run --out %s/r", 0);
    expect_text(err, "then 3 seeds more of each row, at the rate that validation will have chosen, not counted above",
                "--confirm-seeds");
    expect("sweep s5 --models bdlru:m=5 --seeds 5 --limit 2m -j 1 --dry-run --out %s/r", 0);
    expect_text(err, "at most about 2.0 minutes", "--limit"); /* hours without */
    expect("sweep s5 --models bdlru:m=5 --seeds 5 --budget 1m -j 1 --dry-run --out %s/r", 0);
    expect_text(err, "at most about 5.0 minutes", "--budget");
    expect("sweep hlru-table2 --profile quick --dry-run --out %s/r", 0);
    ck_assert_msg(strncmp(err, "hlru-table2, profile ", 21) == 0, "%.80s", err);
    static const char *const refused[][2] = {
        {" --shard 9/9", "shard 9 of 9 has no run, for there are 8; take fewer shards"},
        {" --shard 1/2 --limit 10s", "--shard with --limit: the time is shared"},
        {" --shard 1/2 --confirm-seeds 2", "once all rates are compared; a shard compares none; leave it out"},
        {" --protocol best-of-grid --confirm-seeds 2", "--confirm-seeds with --protocol best-of-grid: "}};
    for (int i = 0; i < 4; i++)
        for (int dry = 0; dry < 2; dry++) {
            char arguments[512];
            snprintf(arguments, sizeof arguments, "sweep " SMALL " %s%s --out %%s/r", refused[i][0],
                     dry ? " --dry-run" : "");
            expect(arguments, ST_USAGE);
            expect_text(err, refused[i][1], arguments);
        }
    expect("sweep hlru-fig4 --confirm-seeds 2 --dry-run --out %s/r", ST_USAGE);
    expect_text(err, "this plan trains nothing; leave it out", "sweep");
    expect("sweep " SMALL " --eval-every 5,7 --dry-run --out %s/r", 0);
    ck_assert_int_eq(count(out, " eval-every 5 seed "), RUNS);
    expect("sweep hlru-fig4 --shard 1/2 --dry-run --out %s/r", ST_USAGE);
    expect_text(err, "hlru-fig4 measures speed, each model alone on one machine: it has no shards", "sweep");
    expect("status %s/r", ST_DATA); /* nothing was written */
}
END_TEST

Suite *check_sweep(void) {
    Suite *suite = suite_create("sweep");
    TCase *c = tcase_create("sweep");
    tcase_add_checked_fixture(c, program_begin, program_end);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, two_sweeps_on_one_folder_share_the_work);
    tcase_add_test(c, shards_make_the_whole_and_status_tells_how_far_they_are);
    tcase_add_test(c, a_sweep_in_which_every_run_failed_fails);
    tcase_add_test(c, tables_of_others_are_left_alone);
    tcase_add_test(c, pictures_of_others_are_left_alone);
    tcase_add_test(c, what_is_asked_for_together_stands_in_one_table);
    tcase_add_test(c, several_tasks_stand_side_by_side);
    tcase_add_test(c, folders_are_taken_together_whole_or_not_at_all);
    tcase_add_test(c, folders_are_taken_together_with_their_machines_and_sweeps);
    tcase_add_test(c, what_a_store_has_in_its_wrong_place_or_twice_is_said);
    tcase_add_test(c, disk_is_announced_as_it_is_taken);
    tcase_add_test(c, a_dry_run_lists_the_runs_as_they_are_done);
    tcase_add_test(c, a_dry_run_is_the_run_untrained);
    suite_add_tcase(suite, c);
    return suite;
}

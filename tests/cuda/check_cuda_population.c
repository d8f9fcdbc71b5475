/* check_cuda_population.c - runs that one process trains at once on a device, or on the host (cuda_host.h): the records
 * of the same runs alone, and what becomes of those that have no memory, diverge, or fail. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/place.h"
#include "core/real.h"
#include "harness/store/record_files.h"
#include "tests/cuda/cuda_cases.h"
#include "tests/harness/pool/same_runs.h"
#include "tests/lib/program.h"
#include "tests/testing.h"

/* Three runs, the first of them the longest. */
#define THREE "'bdlru:m=3,blocks=4@epochs=6 bdlru:m=1,blocks=4@epochs=1 hlru:m=2,channels=6@epochs=1' "

/* A bench of these models, and with more flags. */
static const char *population(const char *models, const char *flags, const char *folder) {
    static char line[1024];
    snprintf(line, sizeof line,
             "bench s3:n_train=96,n_val=32,n_test=32,length=4 --dim 8 --threads 1 --device cuda --profile "
             "smoke --seeds 1 --no-plots --no-speed --models %s %s --out %s/%s",
             models, flags, program_folder, folder);
    return line;
}

/* How many runs were beside one of the three at most. */
static int64_t most_beside(const char *folder) {
    struct record_set set;
    struct error e;
    int64_t most = 0;
    ck_assert_msg(records_load(&set, folder, &e) == ST_OK && set.n == 3, "%s", e.text);
    for (int i = 0; i < 3; i++) most = set.list[i].run.beside > most ? set.list[i].run.beside : most;
    records_free(&set);
    return most;
}

/* Replayed or walked, lazily or not, with whomever beside. */
START_TEST(members_leave_the_records_of_runs_alone) {
    static const char *const settings[][2] = {{"LRNN_CUDA_GRAPH", "1"}, {"LRNN_CUDA_HOST_LAZY", "1"}};
    char a[SCRATCH_BYTES + 16], b[SCRATCH_BYTES + 16];
    const char *line = population(THREE, "--population 1", "alone");
    expect_status(run(line), 0, line);
    setenv(settings[_i][0], settings[_i][1], 1);
    line = population(THREE, "", "beside"); /* a population, unless something is said */
    expect_status(run(line), 0, line);
    expect_text(err, "3 runs, seed 1, 3 at a time", line);
    ck_assert_msg(!strstr(err, "cannot be captured"), "a member has ended another one's capture: %s", err);
    snprintf(a, sizeof a, "%s/alone", program_folder);
    snprintf(b, sizeof b, "%s/beside", program_folder);
    expect_same_runs(a, b, 3);
    ck_assert(most_beside(a) == 0 && most_beside(b) > 0 && most_beside(b) <= 2);
}
END_TEST

#ifdef LRNN_CUDA_HOST

static char *statuses(const char *folder) {
    static char text[256];
    struct record_set set;
    struct error e;
    char path[SCRATCH_BYTES + 32];
    snprintf(path, sizeof path, "%s/%s", program_folder, folder);
    ck_assert_msg(records_load(&set, path, &e) == ST_OK, "%s", e.text);
    *text = 0;
    for (int m = 0; m < 3; m++) /* by the first letters that tell the models apart */
        for (int i = 0; i < set.n; i++) {
            static const char *const models_of[] = {"bdlru:blocks=4,m=3", "bdlru:blocks=4,m=1", "hlru"};
            if (strncmp(set.list[i].run.layers, models_of[m], strlen(models_of[m])) != 0) continue;
            strcat(strcat(text, run_status_names[set.list[i].run.status]), " ");
        }
    records_free(&set);
    return text;
}

/* Does the work that one process does for all: the first one that comes here. */
static void once(void) {
    static char path[SCRATCH_BYTES + 16];
    snprintf(path, sizeof path, "%s/once", program_folder);
    spill(path, "", 0);
    setenv("LRNN_CUDA_HOST_FAIL_ONCE", path, 1);
}

/* There is room for two of three, which are done nevertheless, and without a failure. */
START_TEST(members_wait_for_memory) {
    const char *line = population(THREE, "", "results");
    setenv("LRNN_CUDA_HOST_MEMORY", "140000000", 1);
    expect_status(run(line), 0, line);
    expect_text(err,
                "cuda: no memory for another run beside the 2 in progress; the next run waits until one of these ends",
                line);
    ck_assert_str_eq(statuses("results"), "ok ok ok ");
}
END_TEST

static const struct run_record *record_of(const struct record_set *set, const char *run_id) {
    int i = 0;
    while (i < set->n && strcmp(set->list[i].run.run_id, run_id) != 0) i++;
    ck_assert_msg(i < set->n, "no run %s", run_id);
    return &set->list[i];
}

/* Two processes, one on each device, with two members and one: both have trained, and the weights equal those from one
 * device. */
START_TEST(several_devices_share_the_runs) {
    struct record_set alone, shared;
    struct error e = {ST_OK, ""};
    char path[SCRATCH_BYTES + 16];
    const char *models = _i == 0 ? THREE : "'bdlru:m=3,blocks=4@epochs=6 hlru:m=2,channels=6@epochs=1' ";
    const char *line = population(models, "--population 1", "alone");
    expect_status(run(line), 0, line);
    setenv("LRNN_CUDA_HOST_DEVICES", "2", 1);
    line = population(models, "", "shared");
    expect_status(run(line), 0, line);
    expect_text(err, "cuda:0: the run takes", line);
    expect_text(err, "cuda:1: the run takes", line);
    snprintf(path, sizeof path, "%s/alone", program_folder);
    ck_assert_msg(records_load(&alone, path, &e) == ST_OK, "%s", e.text);
    snprintf(path, sizeof path, "%s/shared", program_folder);
    ck_assert_msg(records_load(&shared, path, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(shared.n, alone.n);
    for (int i = 0; i < shared.n; i++) {
        const struct run_record *record = &shared.list[i];
        ck_assert_int_eq(record->run.status, RUN_OK);
        ck_assert_str_eq(record->run.ckpt_xxh3, record_of(&alone, record->run.run_id)->run.ckpt_xxh3);
    }
    records_free(&alone);
    records_free(&shared);
}
END_TEST

START_TEST(devices_of_two_kinds_are_refused) {
    setenv("LRNN_CUDA_HOST_DEVICES", "2", 1);
    setenv("LRNN_CUDA_HOST_KINDS", "2", 1);
    const char *line = population(THREE, "", "results");
    expect_status(run(line), 6, line);
    expect_text(err, "GPUs of two kinds, cuda:0 CUDA on the host and cuda:1 CUDA on another host", line);
    char one[256];
    snprintf(one, sizeof one,
             "train s3:n_train=96,n_val=32,n_test=32 bdlru:m=1,blocks=4 --dim 8 --steps 2 --device cuda:1 "
             "--out %s",
             program_folder);
    expect_status(run(one), 0, one);
}
END_TEST

/* It needs more than there is, alone as well; the others are done. */
START_TEST(a_member_too_large_is_a_row) {
    const char *line =
        population("'bdlru:m=8,blocks=2000 bdlru:m=1,blocks=4 hlru:m=2,channels=6'", "--epochs 1", "results");
    setenv("LRNN_CUDA_HOST_MEMORY", "160000000", 1);
    expect_status(run(line), 0, line);
    expect_text(err, "oom: the run needs", line);
    expect_text(statuses("results"), "ok ok ", line);
}
END_TEST

/* A run finds no memory while one that failed is giving back its own: it is no failure of its own. */
START_TEST(memory_that_is_being_given_back_is_waited_for) {
    const char *line = population("'bdlru:m=8,blocks=2000 bdlru:m=1,blocks=4'", "--epochs 1", "results");
    setenv("LRNN_CUDA_HOST_MEMORY", "130000000", 1);
    setenv("LRNN_CUDA_HOST_SLOW", "1", 1);
    expect_status(run(line), 0, line);
    expect_text(err, "oom: the run needs", line);
    ck_assert_str_eq(statuses("results"), "ok ");
}
END_TEST

/* The long run meets it in every process, the others are short enough, if they are alone. */
START_TEST(a_kernel_failure_falls_upon_its_run_alone) {
    const char *line = population(THREE, "", "results");
    setenv("LRNN_CUDA_HOST_FAIL", "450", 1);
    expect_status(run(line), 0, line);
    expect_text(err, "illegal memory access", line);
    expect_text(err, "done again, each alone", line);
    ck_assert_str_eq(statuses("results"), "error ok ok ");
}
END_TEST

/* A run that finds no memory in the middle, beside others, has it alone. (What fails in a capture is walked.) */
START_TEST(memory_that_runs_out_beside_others_is_tried_alone) {
    const char *line = population(THREE, "", "results");
    once();
    setenv("LRNN_CUDA_HOST_FULL", "250", 1);
    setenv("LRNN_CUDA_GRAPH", "0", 1);
    expect_status(run(line), 0, line);
    expect_text(err, "others and is done again alone: ", line);
    ck_assert_str_eq(statuses("results"), "ok ok ok ");
}
END_TEST

/* A run beside that begins and ends, whose handles of cuBLAS wait for the whole device, and its memory. */
static void *open_and_close(void *unused) {
    struct place p;
    struct arena memory = {0};
    struct error problem;
    (void)unused;
    ck_assert_int_eq(place_open(&p, "cuda", &problem), ST_OK);
    ck_assert_int_eq(place_reserve(&p, &memory, 100, &problem), ST_OK);
    arena_free(&memory);
    place_close(&p);
    return NULL;
}

START_TEST(a_run_that_begins_beside_waits_for_a_capture) {
    struct place p;
    struct error problem;
    pthread_t beside;
    ck_assert_int_eq(place_open(&p, "cuda", &problem), ST_OK);
    ck_assert(place_capture_begin(&p));
    ck_assert_int_eq(pthread_create(&beside, NULL, open_and_close, NULL), 0);
    usleep(100000);
    struct place_capture *capture = place_capture_end(&p);
    ck_assert_msg(capture != NULL, "%s", place_capture_failure(&p));
    pthread_join(beside, NULL);
    place_capture_free(&p, capture);
    place_close(&p);
}
END_TEST

static atomic_bool given_back;

static void *replay_until_given_back(void *unused) {
    struct place p;
    struct error problem;
    struct arena memory = {0};
    (void)unused;
    ck_assert_int_eq(place_open(&p, "cuda", &problem), ST_OK);
    ck_assert_int_eq(place_reserve(&p, &memory, 100, &problem), ST_OK);
    ck_assert(place_capture_begin(&p));
    place_set(&p, memory.base, 1, 100);
    struct place_capture *capture = place_capture_end(&p);
    ck_assert_ptr_nonnull(capture);
    while (!given_back) {
        place_replay(&p, capture);
        ck_assert_int_eq(place_wait(&p, &problem), ST_OK);
    }
    place_capture_free(&p, capture);
    arena_free(&memory);
    place_close(&p);
    return NULL;
}

/* On a device, replays without a pause would keep who reserves memory from it. The host's ends the process at a replay
 * that begins while memory is got or given back, which takes a tenth of a second here. */
START_TEST(replays_hold_back_while_memory_is_given_back) {
    struct place p;
    struct error problem;
    pthread_t beside[3];
    setenv("LRNN_CUDA_HOST_SLOW", "1", 1);
    ck_assert_int_eq(place_open(&p, "cuda", &problem), ST_OK);
    for (int i = 0; i < 3; i++) ck_assert_int_eq(pthread_create(&beside[i], NULL, replay_until_given_back, NULL), 0);
    for (int i = 0; i < 5; i++) {
        struct arena memory = {0};
        ck_assert_int_eq(place_reserve(&p, &memory, 100, &problem), ST_OK);
        arena_free(&memory);
        usleep(20000);
    }
    given_back = true;
    for (int i = 0; i < 3; i++) pthread_join(beside[i], NULL);
    place_close(&p);
}
END_TEST

/* Likewise while a walk loads a kernel. */
START_TEST(replays_hold_back_while_kernels_are_loaded) {
    struct place p;
    struct error problem;
    struct arena memory = {0};
    pthread_t beside[3];
    setenv("LRNN_CUDA_HOST_SLOW", "2", 1);
    ck_assert_int_eq(place_open(&p, "cuda", &problem), ST_OK);
    ck_assert_int_eq(place_reserve(&p, &memory, 100, &problem), ST_OK);
    for (int i = 0; i < 3; i++) ck_assert_int_eq(pthread_create(&beside[i], NULL, replay_until_given_back, NULL), 0);
    usleep(200000);
    place_load_begin(&p);
    place_fill(&p, memory.base, 1, 1);
    place_load_end(&p);
    given_back = true;
    for (int i = 0; i < 3; i++) pthread_join(beside[i], NULL);
    arena_free(&memory);
    place_close(&p);
}
END_TEST

static size_t free_memory(const struct place *p) {
    struct place_info info;
    struct error problem;
    ck_assert_int_eq(place_describe(p, &info, &problem), ST_OK);
    return info.free;
}

/* The next run takes the handles and workspaces of one that has ended. They count as free memory, and are given back
 * where memory is short. */
START_TEST(runs_take_over_queues_of_runs_before) {
    struct place first, second;
    struct error problem;
    struct arena memory = {0};
    setenv("LRNN_CUDA_HOST_MEMORY", "200000000", 1);
    ck_assert_int_eq(place_open(&first, "cuda", &problem), ST_OK);
    size_t alone = free_memory(&first);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(place_open(&second, "cuda", &problem), ST_OK);
        ck_assert_uint_lt(free_memory(&first), alone);
        place_close(&second);
        size_t left = alone - free_memory(&first); /* what is no workspace stays */
        ck_assert_uint_gt(left, 0);
        ck_assert_uint_lt(left, 100000);
    }
    ck_assert_int_eq(place_reserve(&first, &memory, alone - 4096, &problem), ST_OK);
    arena_free(&memory);
    ck_assert_uint_eq(free_memory(&first), alone);
    place_close(&first);
}
END_TEST

/* Later places take the memory and the instance of the graph. No further one can be made here, so that a graph with
 * another number of nodes, which cannot take the instance over, is not captured. */
START_TEST(runs_take_over_memory_and_graphs_of_runs_before) {
    struct place p;
    struct error problem;
    struct arena memory = {0}, other = {0}; /* other: it would get the place of memory that was given back */
    const char *base = NULL;
    for (int run = 0; run < 3; run++) {
        real got = 0;
        ck_assert_int_eq(place_open(&p, "cuda", &problem), ST_OK);
        if (run == 1) ck_assert_int_eq(place_reserve(&p, &other, 5001, &problem), ST_OK);
        ck_assert_int_eq(place_reserve(&p, &memory, 5000, &problem), ST_OK);
        ck_assert(run == 0 || memory.base == base);
        base = memory.base;
        ck_assert(place_capture_begin(&p));
        for (int i = 0; i <= run / 2; i++) place_fill(&p, (real *)memory.base + i, 1, 10 + run);
        struct place_capture *c = place_capture_end(&p);
        ck_assert_int_eq(c != NULL, run < 2);
        if (c) place_replay(&p, c);
        place_get(&p, &got, memory.base, sizeof got);
        ck_assert(got == (real)(run < 2 ? 10 + run : 0));
        place_capture_free(&p, c);
        setenv("LRNN_CUDA_HOST_NO_GRAPH", "1", 1);
        arena_free(&memory);
        if (run == 1) arena_free(&other);
        place_close(&p);
    }
    unsetenv("LRNN_CUDA_HOST_NO_GRAPH");
}
END_TEST

/* Two members do three runs of one shape, so that one takes over what another leaves. */
START_TEST(runs_of_one_shape_equal_those_alone) {
    static const char models[] = "'bdlru:m=1,blocks=4@lr=0.01 bdlru:m=1,blocks=4@lr=0.02 bdlru:m=1,blocks=4@lr=0.03' ";
    char a[SCRATCH_BYTES + 16], b[SCRATCH_BYTES + 16];
    const char *line = population(models, "--population 1", "alone");
    expect_status(run(line), 0, line);
    line = population(models, "--population 2", "beside");
    expect_status(run(line), 0, line);
    snprintf(a, sizeof a, "%s/alone", program_folder);
    snprintf(b, sizeof b, "%s/beside", program_folder);
    expect_same_runs(a, b, 3);
}
END_TEST

/* A launch finds no memory, here and there in a run: a sentence, and never a prediction that no kernel made. */
START_TEST(a_launch_without_memory_ends_the_run_with_a_sentence) {
    char line[1024], n[16];
    int refused = 0;
    for (int i = 7; i < 260; i += 15) {
        snprintf(line, sizeof line,
                 "train s3:length=4,n_train=64,n_val=16,n_test=16 bdlru:m=2,blocks=4 --dim 8 --layers 1 --mlp none "
                 "--batch 8 --steps 4 --quiet --device cuda --out %s/full%d",
                 program_folder, i);
        snprintf(n, sizeof n, "%d", i);
        setenv("LRNN_CUDA_HOST_FULL", n, 1);
        int status = run(line);
        ck_assert_msg(status == 0 || status == status_exit_code(ST_MEMORY), "launch %d, exit %d: %s", i, status, err);
        if (status) expect_text(err, "lrnn: cuda:0: ", line);
        refused += status != 0;
    }
    ck_assert_int_gt(refused, 2);
    unsetenv("LRNN_CUDA_HOST_FULL");
}
END_TEST

#endif

int cuda_population_cases(void) {
    return 2;
}

/* On a device more steps are queued when the host looks, unless each is logged; the record is of the one it happened
 * in. */
START_TEST(a_run_that_diverges_has_the_record_of_its_step) {
    char line[512], status[2][16];
    int64_t steps[2];
    for (int i = 0; i < 2; i++) {
        snprintf(line, sizeof line,
                 "train s3:n_train=200,n_val=20,n_test=20,length=4 lru:state=4 --dim 8 --steps 100 --eval-every 50 "
                 "--lr 1e6 --threads 1 --quiet --json --device cuda --out %s/%d %s",
                 program_folder, i, i ? "--log-steps /dev/null" : "");
        expect_status(run(line), 0, line);
        json_t *row = parse_line(out);
        snprintf(status[i], sizeof status[i], "%s", json_string_value(json_object_get(row, "status")));
        steps[i] = json_integer_value(json_object_get(row, "steps"));
        json_decref(row);
    }
    ck_assert_str_eq(status[0], "nan");
    ck_assert_str_eq(status[0], status[1]);
    ck_assert_int_eq(steps[0], steps[1]);
    ck_assert_int_lt(steps[0], 50);
}
END_TEST

Suite *check_cuda_population(void);
Suite *check_cuda_population(void) {
    Suite *suite = suite_create("cuda_population");
    TCase *tests = tcase_create("populations");
    tcase_add_checked_fixture(tests, program_begin, program_end);
    tcase_add_loop_test(tests, members_leave_the_records_of_runs_alone, 0, 2);
    tcase_add_test(tests, a_run_that_diverges_has_the_record_of_its_step);
#ifdef LRNN_CUDA_HOST
    tcase_add_test(tests, a_run_that_begins_beside_waits_for_a_capture);
    tcase_add_test(tests, replays_hold_back_while_memory_is_given_back);
    tcase_add_test(tests, replays_hold_back_while_kernels_are_loaded);
    tcase_add_test(tests, runs_take_over_queues_of_runs_before);
    tcase_add_test(tests, runs_take_over_memory_and_graphs_of_runs_before);
    tcase_add_test(tests, runs_of_one_shape_equal_those_alone);
    tcase_add_loop_test(tests, several_devices_share_the_runs, 0, 2);
    tcase_add_test(tests, devices_of_two_kinds_are_refused);
    tcase_add_test(tests, members_wait_for_memory);
    tcase_add_test(tests, a_member_too_large_is_a_row);
    tcase_add_test(tests, memory_that_is_being_given_back_is_waited_for);
    tcase_add_test(tests, a_kernel_failure_falls_upon_its_run_alone);
    tcase_add_test(tests, memory_that_runs_out_beside_others_is_tried_alone);
    tcase_add_test(tests, a_launch_without_memory_ends_the_run_with_a_sentence);
#endif
    suite_add_tcase(suite, tests);
    return suite;
}

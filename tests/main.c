/* main.c - runs the test suites: all that the test files define, or those named on the command line.
 *
 * Each test runs in a process of its own (libcheck forks), so a crash or a hang is one failed test. A forked OpenMP
 * run-time can hang: nothing here may start threads, and suites do their work inside tests and checked fixtures.
 *
 * Suites are taken by as many processes as there are cores (CHECK_JOBS changes that), the longest first.
 *
 *   check [--list] [SUITE...]      exit status: 0 all passed, 1 something failed, 2 no such suite */
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "core/place.h"
#include "kernels/lib/libraries.h"
#include "tests/cuda/cuda_cases.h"
#include "tests/lib/workers.h"
#include "tests/testing.h"

/* CHECK_CUDA suites need a device, or CUDA on the host. */
struct entry {
    const char *name;
    Suite *(*make)(void);
    bool cuda;
};

#define CHECK(name)      Suite *check_##name(void);
#define CHECK_CUDA(name) CHECK(name)
#include SUITE_LIST /* written by the Makefile from the test files */
#undef CHECK
#undef CHECK_CUDA

static struct entry suites[] = {
#define CHECK(name)      {#name, check_##name, false},
#define CHECK_CUDA(name) {#name, check_##name, true},
#include SUITE_LIST /* written by the Makefile from the test files */
#undef CHECK
#undef CHECK_CUDA
};

#define N_SUITES (sizeof suites / sizeof suites[0])
/* The suites that take longest, in order: begun last, one of them would keep one process busy while the others idle. */
static const char *const longest[] = {"cuda_run",  "cuda_order",  "cuda",     "ops",     "determinism_tasks",
                                      "gradients", "determinism", "apart",    "golden",  "golden_near",
                                      "bench",     "faults",      "gate",     "plans",   "perf",
                                      "padding",   "sweeps",      "products", "scratch", "export"};
#define N_LONGEST    (sizeof longest / sizeof longest[0])
#define TEST_TIMEOUT "120" /* seconds for one test; libcheck's own default of 4 is too short on a busy machine */

static size_t rank_of(const struct entry *suite) {
    size_t rank = 0;
    while (rank < N_LONGEST && strcmp(longest[rank], suite->name) != 0) rank++;
    return rank;
}

static int by_rank(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    size_t i = rank_of(x), j = rank_of(y);
    return i != j ? (i > j) - (i < j) : strcmp(x->name, y->name);
}

static bool is_wanted(const char *name, int n, char **names) {
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0) return true;
    return n == 0;
}

static bool all_known(int n, char **names) {
    bool known = true;
    for (int i = 0; i < n; i++) {
        bool found = false;
        for (size_t s = 0; s < N_SUITES && !found; s++) found = strcmp(suites[s].name, names[i]) == 0;
        if (!found) fprintf(stderr, "check: there is no suite \"%s\"; check --list names them\n", names[i]);
        known = known && found;
    }
    return known;
}

/* The CPU seconds of this process's children that have ended: its tests and the programs they ran. */
static double cpu_seconds(void) {
    struct rusage use;
    getrusage(RUSAGE_CHILDREN, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

/* Runs one suite, prints its line, adds to the totals. A suite without a test counts as a failure, as it proves
 * nothing. CPU seconds compare suites on a machine that others use. */
static void run(const struct entry *suite, int *passed, int *failed) {
    struct timespec from, to;
    double cpu = cpu_seconds();
    clock_gettime(CLOCK_MONOTONIC, &from);
    SRunner *runner = srunner_create(suite->make());
    srunner_run_all(runner, CK_SILENT);
    int bad = srunner_ntests_failed(runner), good = srunner_ntests_run(runner) - bad;
    if (good + bad == 0) bad = 1;
    if (srunner_ntests_failed(runner) > 0) srunner_print(runner, CK_NORMAL);
    clock_gettime(CLOCK_MONOTONIC, &to);
    double seconds = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
    printf("  %-20s %5d passed %5d failed %7.1f s %7.1f s CPU%s\n", suite->name, good, bad, seconds,
           cpu_seconds() - cpu, srunner_ntests_run(runner) == 0 ? " (no test ran)" : "");
    fflush(stdout);
    srunner_free(runner);
    *passed += good;
    *failed += bad;
}

/* Memory that the processes share. */
struct progress {
    atomic_int next, passed, failed, on_cuda;
};

struct work {
    bool device;
    int n; /* suites asked for by name; 0: all */
    char **names;
    struct progress *shared;
};

/* Takes one suite after the other, until none is left. */
static void take_suites(int process, void *context) {
    struct work *w = context;
    (void)process;
    for (size_t s; (s = (size_t)atomic_fetch_add(&w->shared->next, 1)) < N_SUITES;) {
        int passed = 0, failed = 0;
        if (!is_wanted(suites[s].name, w->n, w->names) || (suites[s].cuda && !w->device)) continue;
        run(&suites[s], &passed, &failed);
        atomic_fetch_add(&w->shared->passed, passed);
        atomic_fetch_add(&w->shared->failed, failed);
        if (suites[s].cuda) atomic_fetch_add(&w->shared->on_cuda, passed + failed);
    }
}

int main(int argc, char **argv) {
    libraries_init(); /* as lrnn does: the tests multiply by the kernels that the program multiplies by */
    qsort(suites, N_SUITES, sizeof suites[0], by_rank);
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t s = 0; s < N_SUITES; s++) puts(suites[s].name);
        return 0;
    }
    if (!all_known(argc - 1, argv + 1)) return 2;
    setenv("CK_DEFAULT_TIMEOUT", TEST_TIMEOUT, 0);
    signal(SIGHUP, SIG_DFL); /* below nohup too: some tests stop a program by it */
    struct error why = {ST_OK, ""};
    struct work w = {.n = argc - 1, .names = argv + 1, .shared = workers_share(sizeof *w.shared)};
    w.device = place_probe("cuda", &why) == ST_OK;
    int processes = workers_wanted();
    if (processes == 1) /* nothing forked: compute-sanitizer judges this process */
        take_suites(0, &w);
    else
        atomic_fetch_add(&w.shared->failed, workers_run(processes, take_suites, &w));
    int skipped = 0;
    for (size_t s = 0; s < N_SUITES; s++)
        skipped += suites[s].cuda && !w.device && is_wanted(suites[s].name, w.n, w.names);
    if (skipped)
        printf("CUDA: %d suites with %d cases not run: %s\n", skipped, cuda_cases(), why.text);
    else
        printf("CUDA: %d cases run\n", w.shared->on_cuda);
    printf("%d passed, %d failed\n", w.shared->passed, w.shared->failed);
    return w.shared->failed > 0 || w.shared->passed + w.shared->failed == 0;
}

/* main.c - fuzz-kernels: every CPU kernel against its reference at random sizes, until the time is up. A difference, a
 * crash or a hang is made as small as it gets, and printed as the command that repeats it.
 *
 *   fuzz-kernels [--op NAME] [--kernel NAME] [--seconds T | --cases N] [--seed N]    random cases
 *   fuzz-kernels --kernel NAME --batch 3 --length 17 ...                 that one case
 *
 * Exit status: 0 all agree, 1 some do not, 2 bad arguments. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness/cli/cli.h"
#include "harness/store/clock.h"
#include "kernels/lib/libraries.h"
#include "tests/lib/support.h"
#include "tests/lib/workers.h"
#include "tests/twins/attempt.h"

#define MOST_KERNELS 256
#define BATCH_S      10  /* of cases in one process */
#define TIMEOUT_S    120 /* for such a batch: its last case may take long */

struct request {
    char op[OPTION_TEXT], kernel[OPTION_TEXT];
    double seconds;
    int64_t seed, cases;
    struct twin_case one;
    bool is_one; /* a size was given: that case alone */
};

/* Memory that the processes share. */
struct shared {
    atomic_int failures;
    atomic_long cases[MOST_KERNELS];
    atomic_bool failed[MOST_KERNELS]; /* not tried any more: one wrong kernel would fill the screen */
};

static const struct kernel *kernels[MOST_KERNELS];
static int n_kernels;
static struct request request;
static struct shared *shared;
static const char *program;
static double begin, deadline;
static int64_t end; /* of the numbers of cases, whatever time is left */

/* --- random cases ------------------------------------------------------------------------------------------------- */

/* The cases that one process takes: index, index + step, ... */
struct stretch {
    int64_t *index; /* shared with the process that forks this one: of the case in hand */
    int step;
    double until;
};

static bool draw(struct twin_case *c, int64_t index) {
    int k = (int)(index % n_kernels);
    return !shared->failed[k] && case_draw(c, kernels[k], (uint64_t)request.seed, index / n_kernels);
}

static void compare_stretch(void *context) {
    const struct stretch *s = context;
    struct twin_case c;
    for (; *s->index < end && time_now_s() < s->until; *s->index += s->step) {
        if (!draw(&c, *s->index)) continue;
        case_compare(&c);
        atomic_fetch_add(&shared->cases[*s->index % n_kernels], 1);
    }
}

static void report(struct twin_case *c, char message[ATTEMPT_TEXT]) {
    char flags[CASE_TEXT];
    printf("\nFAILED %s\n  %s\n  %s %s\n", c->kernel->name, message, program, case_flags(c, flags));
    fflush(stdout);
    int attempts = case_shrink(c, message);
    printf("  after %d attempts the smallest that fails:\n  %s\n  %s %s\n", attempts, message, program,
           case_flags(c, flags));
    fflush(stdout);
}

static void work(int process, void *context) {
    char message[ATTEMPT_TEXT];
    struct stretch s = {.index = workers_share(sizeof *s.index), .step = *(int *)context};
    *s.index = process;
    while (*s.index < end && time_now_s() < deadline) {
        s.until = fmin(time_now_s() + BATCH_S, deadline);
        if (attempt(compare_stretch, &s, TIMEOUT_S, message)) continue;
        struct twin_case c;
        int k = (int)(*s.index % n_kernels);
        if (draw(&c, *s.index) && !atomic_exchange(&shared->failed[k], true)) {
            atomic_fetch_add(&shared->failures, 1);
            report(&c, message);
        }
        *s.index += s.step;
    }
}

static void print_counts(void) {
    long total = 0;
    int ops = 0;
    for (const struct op *const *op = op_list(); *op; op++) {
        long cases = 0;
        int twins = 0;
        for (int k = 0; k < n_kernels; k++) {
            if (kernels[k]->op != *op) continue;
            cases += shared->cases[k];
            twins++;
        }
        if (!twins) continue;
        printf("  %-20s %2d %s %8ld cases\n", (*op)->name, twins, twins == 1 ? "kernel " : "kernels", cases);
        total += cases;
        ops++;
    }
    printf("seed %lld, %s: %ld cases of %d ops, %d kernels; %d kernels failed, %.0f s\n", (long long)request.seed,
           REAL_NAME, total, ops, n_kernels, shared->failures, time_now_s() - begin);
}

static int fuzz(void) {
    int jobs = workers_wanted();
    printf("seed %lld, %s\n", (long long)request.seed, REAL_NAME);
    begin = time_now_s();
    deadline = request.cases ? INFINITY : begin + request.seconds;
    end = request.cases ? request.cases * n_kernels : INT64_MAX;
    atomic_fetch_add(&shared->failures, workers_run(jobs, work, &jobs));
    print_counts();
    int untried = 0;
    for (int k = 0; k < n_kernels; k++) {
        if (shared->cases[k] > 0 || shared->failed[k]) continue;
        printf("no case of %s was tried\n", kernels[k]->name);
        untried++;
    }
    return shared->failures > 0 || (request.cases > 0 && untried > 0);
}

static int repeat(void) {
    char message[ATTEMPT_TEXT], flags[CASE_TEXT];
    request.one.kernel = kernels[0];
    printf("%s\n", case_flags(&request.one, flags));
    if (!case_applies(&request.one)) {
        fprintf(stderr, "fuzz-kernels: %s does not apply at these sizes\n", kernels[0]->name);
        return 2;
    }
    bool agrees = attempt_case(&request.one, message);
    puts(agrees ? "agrees with the reference" : message);
    return !agrees;
}

/* --- the command line --------------------------------------------------------------------------------------------- */

#define AT(field) offsetof(struct request, field)
static const struct option request_options[] = {
    {"op", OPT_TEXT_FIELD, AT(op), "", 0, 0, NULL, "kernels of this op alone", 0},
    {"kernel", OPT_TEXT_FIELD, AT(kernel), "", 0, 0, NULL, "this kernel alone", 0},
    {"seconds", OPT_TIME, AT(seconds), "60s", 1, 1e6, NULL, "how long", 0},
    {"cases", OPT_INT, AT(cases), "auto", 1, 1e9, NULL,
     "draws of each kernel, however long they take: the same ones on every machine; auto = until the time is up",
     OPT_AUTO},
    {"seed", OPT_INT, AT(seed), "auto", 1, 1e15, NULL, "of all draws; auto = from the clock", OPT_AUTO},
    {0}};

static const struct command command_fuzz = {
    .name = "fuzz-kernels",
    .usage = "fuzz-kernels [flags]",
    .summary = "every CPU kernel against its reference at random sizes; with a size, that one case"};

static enum status on_flag(void *context, const char *name, const char *value, bool *done, struct error *e) {
    (void)context, (void)value, (void)done, (void)e;
    if (option_find(op_sizes_options, name)) request.is_one = true;
    return ST_OK;
}

static enum status choose_kernels(struct error *e) {
    for (const struct kernel *const *k = kernel_list(); *k; k++) {
        if ((*k)->device != DEVICE_CPU || (*k)->reference) continue;
        if (*request.op && strcmp((*k)->op->name, request.op) != 0) continue;
        if (*request.kernel && strcmp((*k)->name, request.kernel) != 0) continue;
        kernels[n_kernels++] = *k;
    }
    if (n_kernels == 0)
        return fail(e, ST_USAGE,
                    "no CPU kernel beside the reference is called '%s' (op '%s'); `lrnn list kernels` names them",
                    request.kernel, request.op);
    if (request.is_one && n_kernels > 1)
        return fail(e, ST_USAGE, "%d kernels take those sizes; say which with --kernel", n_kernels);
    return ST_OK;
}

static enum status read_arguments(int argc, char **argv, struct error *e) {
    const struct flag_set sets[] = {
        {request_options, &request}, {op_sizes_options, &request.one.sizes}, {twin_case_options, &request.one}};
    struct cli cli = {.command = &command_fuzz, .sets = sets, .n_sets = 3, .on_flag = on_flag, .alone = true};
    for (int i = 0; i < cli.n_sets; i++) TRY(options_default(sets[i].table, sets[i].object, e));
    TRY(cli_parse(&cli, argc, argv, e));
    if (request.seed == 0) request.seed = (int64_t)time(NULL);
    return choose_kernels(e);
}

int main(int argc, char **argv) {
    struct error e = {0};
    libraries_init();
    program = argv[0];
    enum status status = read_arguments(argc, argv, &e);
    if (status == ST_HELP) return 0;
    if (status != ST_OK) {
        fprintf(stderr, "fuzz-kernels: %s\n", e.text);
        return (int)status;
    }
    shared = workers_share(sizeof *shared);
    return request.is_one ? repeat() : fuzz();
}

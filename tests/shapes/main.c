/* main.c - test-shapes: every CPU kernel against its reference at the shapes that the profiles of `bench` and the plans
 * of papers train, forward and gradient, written and added to what is there.
 *
 * Shapes are compared each in a process of its own (libcheck forks), with inputs of the test's filling.
 *
 *   test-shapes [PROFILE...] [plans] [--op NAME] [--net TEXT] [--list]
 *
 * Exit status: 0 all agree, 1 some do not or there is none, 2 bad arguments. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness/cli/cli.h"
#include "harness/study/plan_file.h"
#include "harness/study/profile.h"
#include "harness/store/clock.h"
#include "kernels/kernel.h"
#include "kernels/lib/libraries.h"
#include "tests/lib/op_compare.h"
#include "tests/lib/workers.h"
#include "tests/shapes/cases.h"

#define TIMEOUT_S 1200 /* for one shape: plstm2d's reference on Path-X alone takes minutes of a processor */
#define N_SLOWEST 8

#define LARGEST 1e3 /* values of recurrences; see reference_within */

static struct shape_cases cases;
static int first_case, case_step; /* of this process */

/* Memory that the processes share. */
struct measured {
    atomic_int begun, failures;
    double begin;
    struct {
        double seconds; /* of a processor */
        double scale;
        int comparisons; /* kernels that apply, twice: written, added */
    } of[];
} * measured;

/* --- one shape ---------------------------------------------------------------------------------------------------- */

/* Seconds of the processor that this process has used. */
static double processor_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A line at each tenth of the shapes. */
static void show_progress(void) {
    int begun = atomic_fetch_add(&measured->begun, 1);
    if (begun * 10 / cases.n == (begun - 1) * 10 / cases.n || begun == 0) return;
    printf("  %d of %d, %.0f s\n", begun, cases.n, time_now_s() - measured->begin);
    fflush(stdout);
}

static void compare_kernel(const struct kernel *k, const struct op_run *want, const struct trial_op *what) {
    struct op_run got;
    struct trial_op own = *what;
    own.kernel = k->name;
    ck_assert(run_open(&got, &own));
    run_walk(&got);
    expect_same_outputs(&got, want, k->inexact ? k->tolerance : 0);
    expect_same_gradients(&got, want, k->inexact ? k->tolerance : 0, -1);
    expect_clean(&got);
    run_close(&got);
    compare_accumulated(k, &own);
}

START_TEST(kernels_agree_with_the_reference) {
    int index = first_case + _i * case_step;
    const struct shape_case *shape = &cases.list[index];
    struct imitation like = {.of = shape->call};
    /* An LSTM of 1 024 units is chaotic on inputs at random: how near a kernel comes is for their last bits to say. */
    struct trial_op what = {.op = shape->call->op,
                            .outputs = real_outputs(shape->call),
                            .guards = true,
                            .ill_conditioned = true,
                            .like = &like};
    struct op_run want = {0};
    const char *why;
    show_progress();
    for (const struct kernel *const *k = kernel_list(); *k; k++) {
        if ((*k)->op != what.op || (*k)->device != DEVICE_CPU || (*k)->reference) continue;
        if ((*k)->applicable && !(*k)->applicable(shape->call, &why)) continue;
        if (!want.call) reference_within(&want, &what, LARGEST);
        compare_kernel(*k, &want, &what);
        measured->of[index].comparisons += 2;
    }
    measured->of[index].seconds = processor_s();
    measured->of[index].scale = what.scale;
}
END_TEST

/* --- all of them -------------------------------------------------------------------------------------------------- */

static void print_case(const struct shape_case *c) {
    char shapes[SHAPES_TEXT];
    printf("%s %s", c->call->op->name, call_shapes(c->call, shapes));
    if (c->batch < c->full_batch) printf(", batch %lld -> %lld", (long long)c->full_batch, (long long)c->batch);
    printf(", of %s\n", c->net);
}

/* Every case_step-th shape from first_case on. */
static void work(int process, void *context) {
    (void)context;
    first_case = process;
    Suite *suite = suite_create("shapes");
    TCase *tests = tcase_create("shapes");
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_set_timeout(tests, TIMEOUT_S);
    tcase_add_loop_test(tests, kernels_agree_with_the_reference, 0, (cases.n - first_case + case_step - 1) / case_step);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_SILENT);
    if (srunner_ntests_failed(runner) > 0) srunner_print(runner, CK_NORMAL);
    atomic_fetch_add(&measured->failures, srunner_ntests_failed(runner));
    srunner_free(runner);
}

/* --- what there was to say ---------------------------------------------------------------------------------------- */

static void print_cuts(void) {
    for (int i = 0; i < cases.n; i++) {
        const struct shape_case *c = &cases.list[i];
        int same = 0;
        bool first = c->batch < c->full_batch;
        for (int j = 0; j < cases.n && first; j++) {
            if (cases.list[j].batch != c->batch || cases.list[j].full_batch != c->full_batch) continue;
            first = j >= i;
            same++;
        }
        if (first) printf("  batch %lld -> %lld: %d shapes\n", (long long)c->full_batch, (long long)c->batch, same);
    }
}

static int slower_first(const void *a, const void *b) {
    double x = measured->of[*(const int *)a].seconds, y = measured->of[*(const int *)b].seconds;
    return (x < y) - (x > y);
}

static void print_slowest(void) {
    int *order = malloc((size_t)cases.n * sizeof *order);
    if (!order) return;
    for (int i = 0; i < cases.n; i++) order[i] = i;
    qsort(order, (size_t)cases.n, sizeof *order, slower_first);
    puts("slowest:");
    for (int i = 0; i < cases.n && i < N_SLOWEST; i++) {
        printf("  %5.1f s  ", measured->of[order[i]].seconds);
        print_case(&cases.list[order[i]]);
    }
    free(order);
}

static void print_totals(void) {
    long comparisons = 0;
    double spent = 0;
    int alone = 0, scaled = 0;
    for (int i = 0; i < cases.n; i++) {
        comparisons += measured->of[i].comparisons;
        spent += measured->of[i].seconds;
        alone += measured->of[i].comparisons == 0;
        scaled += measured->of[i].scale < 1 && measured->of[i].comparisons > 0;
    }
    printf("%d pairs of task and profile or plan, %d more were refused (see above) and not walked\n", cases.walked,
           cases.refused);
    printf("%d nets, %d distinct shapes (%d of them have the reference alone), %ld comparisons, %d shapes on smaller "
           "inputs, "
           "%.0f s, %.0f s of processors\n",
           cases.nets, cases.n, alone, comparisons, scaled, time_now_s() - measured->begin, spent);
    printf("%d passed, %d failed\n", cases.n - measured->failures, measured->failures);
}

/* --- the command line --------------------------------------------------------------------------------------------- */

struct request {
    bool lists;
    char op[OPTION_TEXT], net[OPTION_TEXT];
};

static const struct option request_options[] = {
    {"list", OPT_BOOL, offsetof(struct request, lists), "no", 0, 0, NULL, "name the shapes and stop", 0},
    {"op", OPT_TEXT_FIELD, offsetof(struct request, op), "", 0, 0, NULL, "the shapes of this op alone", 0},
    {"net", OPT_TEXT_FIELD, offsetof(struct request, net), "", 0, 0, NULL,
     "those first met in a net whose name has this text, as the list shows it: 'paper pathx mamba2'", 0},
    {0}};

static const struct command command_shapes = {
    .name = "test-shapes",
    .usage = "test-shapes [PROFILE...] [plans] [flags]",
    .summary = "every CPU kernel against its reference at the shapes of those profiles and of the plans of papers; "
               "quick, paper and plans if none is named"};

static const char all_plans[] = "plans"; /* instead of a profile's name */

/* Names them, each once, as profiles of several suites have the same name. */
static enum status no_profile(const char *name, struct error *e) {
    char known[512];
    size_t used = (size_t)snprintf(known, sizeof known, "%s", all_plans);
    for (const struct profile *p = profile_list(); p->suite && used < sizeof known; p++) {
        bool before = false;
        for (const struct profile *q = profile_list(); q < p; q++) before = before || !strcmp(q->name, p->name);
        if (!before) used += (size_t)snprintf(known + used, sizeof known - used, ", %s", p->name);
    }
    return fail(e, ST_USAGE, "test-shapes: no suite of tasks has a profile '%s'; there are %s", name, known);
}

static enum status collect_named(const char *name, struct error *e) {
    if (!strcmp(name, all_plans))
        cases_collect_plans(&cases);
    else if (plan_file_is_profile(name))
        cases_collect(&cases, name);
    else
        return no_profile(name, e);
    return ST_OK;
}

static enum status collect(struct request *r, int argc, char **argv, struct error *e) {
    const char *names[8] = {"quick", "paper", all_plans};
    const struct flag_set sets[] = {{request_options, r}};
    struct cli cli = {
        .command = &command_shapes, .sets = sets, .n_sets = 1, .positional = names, .max_positional = 8, .alone = true};
    TRY(options_default(request_options, r, e));
    TRY(cli_parse(&cli, argc, argv, e));
    int n = cli.n_positional ? cli.n_positional : 3;
    if (*r->op && !op_find(r->op))
        return fail(e, ST_USAGE, "test-shapes: there is no op '%s'; `lrnn list ops` names them", r->op);
    for (int i = 0; i < n; i++) TRY(collect_named(names[i], e));
    return ST_OK;
}

static void keep_asked(const struct request *r) {
    int n = 0;
    for (int i = 0; i < cases.n; i++) {
        const struct shape_case *c = &cases.list[i];
        if (*r->op && strcmp(c->call->op->name, r->op) != 0) continue;
        if (strstr(c->net, r->net)) cases.list[n++] = *c;
    }
    cases.n = n;
}

int main(int argc, char **argv) {
    struct request r = {0};
    struct error e = {0};
    libraries_init();
    enum status status = collect(&r, argc, argv, &e);
    if (status == ST_HELP) return 0;
    if (status != ST_OK) {
        fprintf(stderr, "%s\n", e.text);
        return (int)status;
    }
    keep_asked(&r);
    for (int i = 0; i < cases.n && r.lists; i++) print_case(&cases.list[i]);
    if (r.lists) return 0;
    measured = workers_share(sizeof *measured + (size_t)cases.n * sizeof *measured->of);
    measured->begin = time_now_s();
    print_cuts();
    case_step = workers_wanted();
    atomic_fetch_add(&measured->failures, workers_run(case_step, work, NULL));
    print_slowest();
    print_totals();
    return measured->failures > 0 || cases.n == 0;
}

/* check_determinism_tasks.c - every task trains and validates to the same bits at any number of threads, those on
 * released data by the small files of tests/data; and a run's bits do not depend on the runs around it. Every mixer:
 * check_determinism.c. */
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "harness/study/study.h"
#include "harness/run/trainer.h"
#include "harness/store/record_files.h"
#include "tasks/task.h"
#include "tests/harness/run/small_run.h"
#include "tests/harness/run/small_task.h"
#include "tests/lib/program.h"
#include "tests/lib/support.h"
#include "tests/tasks/task_examples.h"

/* A bit that differs after any step stays in the weights and moments. Under the sanitizers a step takes some twenty
 * times as long. */
#ifdef __SANITIZE_ADDRESS__
#define STEPS 3
#else
#define STEPS 10
#endif

/* Width times positions of a batch: twice what is done by several threads at least (PARALLEL_MIN). */
#define DIM       32
#define POSITIONS 2048

static const int threads[] = {1, 2, 3, 7, 16};
#define N_THREADS (int)(sizeof threads / sizeof *threads)

/* The setup in which a batch has POSITIONS positions. */
static struct setup *setup_of(const struct task *task) {
    char text[SMALL_TASK_TEXT], batch[32], dim[32];
    const char *model;
    struct task_choice choice;
    struct config c;
    struct error e;
    small_task(task, text, &model);
    open_task(&choice, text, 1);
    int64_t B = POSITIONS / (choice.shape.T * task_documents(&choice.shape));
    snprintf(batch, sizeof batch, "%" PRId64, B > 1 ? B : 1);
    snprintf(dim, sizeof dim, "%d", DIM);
    const char *const flags[][2] = {{"dim", dim}, {"batch", batch}, {"steps", "60"}, {"dropout", "0.1"}};
    ck_assert_int_eq(config_default(&c, &e), ST_OK);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        ck_assert_int_eq(config_set(&c, flags[i][0], flags[i][1], &e), ST_OK);
    struct setup *s = setup_make(&c, text, model, &e);
    ck_assert_msg(s != NULL, "%s %s: %s", text, model, e.text);
    return s;
}

/* The compared numbers: loss and gradient norm of each step, the validation after the last, weights and moments. */
struct trained {
    double curve[STEPS][2];
    struct scores validation;
    real *arrays;
    int64_t n;
};

static struct trained train(const struct setup *s, int n_threads) {
    struct trained r = {0};
    struct trainer t;
    struct error e;
    omp_set_num_threads(n_threads);
    ck_assert_msg(trainer_create(&t, s, &e) == ST_OK, "%s", e.text);
    for (int i = 0; i < STEPS; i++) {
        trainer_step(&t);
        ck_assert_msg(isfinite(t.state.loss) && !t.state.frozen, "%s: step %d: loss %g", s->spec.task.name, i,
                      t.state.loss);
        r.curve[i][0] = t.state.loss;
        r.curve[i][1] = t.state.grad_norm;
    }
    ck_assert(trainer_evaluate(&t, SPLIT_VAL, &r.validation));
    int64_t n = t.params.floats;
    const real *const parts[] = {t.params.value, t.params.moment1, t.params.moment2};
    r.n = 3 * n;
    r.arrays = malloc((size_t)r.n * sizeof *r.arrays);
    ck_assert_ptr_nonnull(r.arrays);
    for (int i = 0; i < 3; i++) memcpy(r.arrays + i * n, parts[i], (size_t)n * sizeof **parts);
    trainer_free(&t);
    return r;
}

START_TEST(threads_do_not_change_a_task) {
    struct setup *s = setup_of(task_list()[_i]);
    struct trained one = train(s, 1);
    char what[256];
    for (int i = 1; i < N_THREADS; i++) {
        struct trained many = train(s, threads[i]);
        snprintf(what, sizeof what, "%.150s, %d steps with %d threads: weights and moments", s->spec.task.name, STEPS,
                 threads[i]);
        expect_same_bits(many.arrays, one.arrays, one.n, what);
        ck_assert_msg(!memcmp(many.curve, one.curve, sizeof one.curve), "%s: losses, gradient norms", what);
        ck_assert_msg(!memcmp(&many.validation, &one.validation, sizeof one.validation), "%s: validation", what);
        free(many.arrays);
    }
    free(one.arrays);
    small_run_free(s);
}
END_TEST

/* --- cells in another order --------------------------------------------------------------------------------------- */

#define CELLS                                                                                                          \
    "sweep s3:n_train=200,n_val=20,n_test=20,length=4 --profile smoke --seeds 2 --epochs 3 --no-speed --no-plots "     \
    "--quiet --models '%s' --lr %s --out %s/%s %s"

static void sweep(const char *models, const char *rates, const char *folder, const char *flags) {
    char line[1024];
    snprintf(line, sizeof line, CELLS, models, rates, program_folder, folder, flags);
    expect_status(run(line), ST_OK, line);
}

static void load(const char *folder, struct record_set *set) {
    char path[512];
    struct error e;
    snprintf(path, sizeof path, "%s/%s", program_folder, folder);
    ck_assert_msg(records_load(set, path, &e) == ST_OK, "%s", e.text);
}

/* All but how long it took. */
static void expect_same_run(const struct run_record *a, const struct run_record *b) {
    ck_assert_str_eq(a->run.ckpt_xxh3, b->run.ckpt_xxh3); /* of the weights */
    ck_assert(a->run.test_acc == b->run.test_acc && a->run.test_loss == b->run.test_loss);
    ck_assert_int_eq(a->n_curve, b->n_curve);
    ck_assert_int_gt(a->n_curve, 0);
    for (int64_t i = 0; i < a->n_curve; i++) {
        const struct curve_point *p = &a->curve[i], *q = &b->curve[i];
        ck_assert(p->step == q->step && p->split == q->split && !memcmp(&p->loss, &q->loss, sizeof p->loss) &&
                  !memcmp(&p->acc, &q->acc, sizeof p->acc) && !memcmp(&p->grad_norm, &q->grad_norm, sizeof p->acc));
    }
}

/* The models and rates the other way round, two at a time, and the second shard first. */
START_TEST(the_order_of_cells_changes_no_run) {
    struct record_set a, b;
    sweep("lru:state=4 lstm:hidden=4", "1e-3,1e-2", "forth", "-j 1");
    sweep("lstm:hidden=4 lru:state=4", "1e-2,1e-3", "back", "-j 2 --shard 2/2");
    sweep("lstm:hidden=4 lru:state=4", "1e-2,1e-3", "back", "-j 2 --shard 1/2");
    load("forth", &a);
    load("back", &b);
    ck_assert_int_eq(a.n, 8);
    ck_assert_int_eq(b.n, 8);
    for (int i = 0; i < a.n; i++) {
        int k = 0;
        while (k < b.n && strcmp(a.list[i].run.run_id, b.list[k].run.run_id) != 0) k++;
        ck_assert_int_lt(k, b.n);
        expect_same_run(&a.list[i], &b.list[k]);
    }
    records_free(&a);
    records_free(&b);
}
END_TEST

Suite *check_determinism_tasks(void);
Suite *check_determinism_tasks(void) {
    Suite *suite = suite_create("determinism_tasks");
    TCase *tasks = tcase_create("tasks"), *cells = tcase_create("cells");
    int n = 0;
    while (task_list()[n]) n++;
    tcase_add_checked_fixture(tasks, start_kernels, NULL);
    tcase_add_checked_fixture(tasks, tasks_begin, tasks_end);
    tcase_add_loop_test(tasks, threads_do_not_change_a_task, 0, n);
    tcase_add_checked_fixture(cells, program_begin, program_end);
    tcase_add_test(cells, the_order_of_cells_changes_no_run);
    suite_add_tcase(suite, tasks);
    suite_add_tcase(suite, cells);
    return suite;
}

/* check_nonfinite.c - NaN and infinity: found in the step that they come up in, wherever they come from, told with step
 * and tensor, a row among others; a failure of the command with --strict alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/run/train.h"
#include "harness/run/trainer.h"
#include "harness/store/record_files.h"
#include "tests/harness/run/small_run.h"
#include "tests/lib/program.h"
#include "tests/lib/support.h"

#define WEIGHT "layers.0.mixer.wh"

/* --- planted in a step -------------------------------------------------------------------------------------------- */

/* The kernel that the one below stands for, where that writes what. */
static const struct kernel *true_kernel;
static real *spot, poison = (real)NAN;

static void forward_and_spoil(const struct call *c, const struct exec *x) {
    true_kernel->forward(c, x);
    *spot = poison;
}

static void backward_and_spoil(const struct call *c, const struct exec *x) {
    true_kernel->backward(c, x);
    *spot = poison;
}

/* Plants one kernel at a time: the call's own kernel, which also spoils `at` after one of its passes. */
static void plant(struct call *c, enum pass pass, real *at) {
    static struct kernel planted;
    true_kernel = c->kernel;
    spot = at;
    planted = *true_kernel;
    if (pass == PASS_FORWARD)
        planted.forward = forward_and_spoil;
    else
        planted.backward = backward_and_spoil;
    c->kernel = &planted;
}

static void plant_in_weight(struct trainer *t) {
    t->params.value[params_find(&t->params, WEIGHT)->offset + 3] = poison;
}

/* Behind the first call's gradient, the last one of the walk. */
static void plant_in_gradient(struct trainer *t) {
    plant(&t->train.calls[0], PASS_BACKWARD, t->params.grad + params_find(&t->params, WEIGHT)->offset);
}

static void plant_in_loss(struct trainer *t) {
    const struct tensor *loss = t->nets.main.loss;
    plant(&t->train.calls[loss->producer], PASS_FORWARD, tensor_real(loss));
}

/* The last is finite, but no second moment holds its square. */
static const struct planting {
    void (*plant)(struct trainer *t);
    double poison;
    const char *found; /* how the name begins; NULL: nothing is named */
} plantings[] = {{plant_in_weight, NAN, WEIGHT},
                 {plant_in_gradient, NAN, WEIGHT},
                 {plant_in_loss, NAN, "cross_entropy"},
                 {plant_in_gradient, REAL_IS_DOUBLE ? 1e160 : 1e25, NULL}};
#define N_PLANTINGS (int)(sizeof plantings / sizeof *plantings)

/* In the step itself, before it changes a weight. */
START_TEST(a_planted_nan_is_found_by_step_and_name) {
    struct setup *s = small_run(own_folder, "swiglu", "lstm", NULL, NULL);
    struct trainer t;
    struct error e;
    ck_assert_msg(trainer_create(&t, s, &e) == ST_OK, "%s", e.text);
    trainer_step(&t);
    trainer_step(&t);
    ck_assert_int_eq(t.state.frozen, 0);
    poison = (real)plantings[_i].poison;
    plantings[_i].plant(&t);
    real *before = copy_reals(t.params.value, t.params.floats);
    trainer_step(&t);
    ck_assert_int_eq(t.state.frozen, 1);
    ck_assert_int_eq(t.state.frozen_step, 2);
    expect_same_bits(t.params.value, before, t.params.floats, "weights after the frozen step");
    const char *found = trainer_find_nonfinite(&t, t.state.frozen_step), *name = plantings[_i].found;
    ck_assert_msg(name ? found && !strncmp(found, name, strlen(name)) : !found, "found in %s, expected %s",
                  found ? found : "nothing", name ? name : "nothing");
    free(before);
    trainer_free(&t);
    small_run_free(s);
}
END_TEST

/* Whatever weight it is in, the step finds it: no op of these nets, some of which have rectifiers, leaves a NaN out. */
static const char *const rectified[] = {"gcn", "gin", "mpnn", "gat", "plstm-graph:heads=2"};

START_TEST(a_nan_in_any_weight_is_found) {
    struct setup *s =
        small_run_of("molecules:graphs=100,min_nodes=8,max_nodes=12", own_folder, "swiglu", rectified[_i], NULL, NULL);
    struct trainer t;
    struct error e;
    ck_assert_msg(trainer_create(&t, s, &e) == ST_OK, "%s", e.text);
    trainer_step(&t);
    for (int i = 0; i < t.params.n; i++) {
        const struct param *p = &t.params.list[i];
        real *last = t.params.value + p->offset + p->count - 1, kept = *last;
        if (p->spec.group == PARAM_CONST) continue;
        *last = (real)NAN;
        trainer_step(&t);
        ck_assert_msg(t.state.frozen == 1, "NaN in %s is not found", p->name);
        *last = kept;
        t.state.frozen = 0;
    }
    trainer_free(&t);
    small_run_free(s);
}
END_TEST

/* --- planted in data ---------------------------------------------------------------------------------------------- */

#define SPOILT_EXAMPLE 17

static void (*true_fill)(const void *inst, enum split split, int64_t index, struct example *x);

static void fill_and_spoil(const void *inst, enum split split, int64_t index, struct example *x) {
    true_fill(inst, split, index, x);
    if (split == SPLIT_TRAIN && index == SPOILT_EXAMPLE) x->values[5] = (real)NAN;
}

/* The row of a run, whose step is the first that takes the spoilt example. */
START_TEST(a_nan_in_the_data_ends_the_run_with_a_row) {
    struct setup *s = small_run_of("spirals:min_length=8,max_length=12,n_train=300,n_val=50,n_test=60", own_folder,
                                   "swiglu", "lstm", NULL, NULL);
    struct task planted = *s->spec.task.task;
    struct run row;
    struct error e;
    char where[64];
    int64_t position = 0;
    true_fill = planted.fill;
    planted.fill = fill_and_spoil;
    s->spec.task.task = &planted;
    while (train_example(&s->spec, 0, position) != SPOILT_EXAMPLE) position++;
    snprintf(where, sizeof where,
             "step %d: ", (int)(position / s->spec.config.batch) + 1); /* counted as in curves.csv */
    ck_assert_msg(train_run(s, NULL, &row, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(row.status, RUN_NAN);
    ck_assert_str_eq(row.stop_reason, "nan");
    ck_assert_msg(strstr(row.status_detail, where) && strstr(row.status_detail, ": loss nan, ") &&
                      strstr(row.status_detail, " in values"),
                  "%s, expected %s", row.status_detail, where);
    small_run_free(s);
}
END_TEST

/* --- a command, strict and not ------------------------------------------------------------------------------------ */

/* Products of gates that nothing normalises leave any range at such a rate; an LSTM's do not. */
#define TASK     "s3:n_train=200,n_val=20,n_test=20,length=64"
#define UNSTABLE "bdlru:m=2,blocks=4,gate=none"
#define SWEEP                                                                                                          \
    "bench " TASK " --profile smoke --models 'lstm:hidden=4 " UNSTABLE "' --lr 1e-3,1e6 --epochs 3 --no-speed "        \
    "--no-plots --quiet --out %s/%s %s"
#define TRAIN "train " TASK " " UNSTABLE " --dim 16 --epochs 3 --quiet --lr %s --out %s/%s %s"

static int sweep(const char *folder, const char *flags) {
    char line[1024];
    snprintf(line, sizeof line, SWEEP, program_folder, folder, flags);
    return run(line);
}

static int train(const char *rate, const char *folder, const char *flags) {
    char line[1024];
    snprintf(line, sizeof line, TRAIN, rate, program_folder, folder, flags);
    return run(line);
}

/* Runs of a folder, and how many of them NaN or infinity ended, each of which tells where. */
static int count_runs(const char *folder, int *bad) {
    char path[512];
    struct record_set set;
    struct error e;
    snprintf(path, sizeof path, "%s/%s", program_folder, folder);
    ck_assert_msg(records_load(&set, path, &e) == ST_OK, "%s", e.text);
    *bad = 0;
    for (int i = 0; i < set.n; i++) {
        const struct run *r = &set.list[i].run;
        if (r->status == RUN_OK) continue;
        ck_assert_msg(r->status == RUN_NAN || r->status == RUN_DIVERGED, "%s: %s", r->layers, r->status_detail);
        ck_assert_msg(strstr(r->status_detail, "step ") && strstr(r->status_detail, " in "), "%s", r->status_detail);
        ck_assert_msg(strstr(r->layers, "gate=none") && r->lr > 1, "%s at rate %g: %s", r->layers, r->lr,
                      r->status_detail);
        ++*bad;
    }
    int n = set.n;
    records_free(&set);
    return n;
}

/* All runs are done, the table is printed, and the exit status is another with --strict alone: also where every run is
 * on record already. */
START_TEST(a_sweep_goes_on_and_fails_where_it_is_strict) {
    int bad;
    expect_status(sweep("r", ""), ST_OK, SWEEP);
    expect_text(out, "counted as chance", SWEEP);
    ck_assert_int_eq(count_runs("r", &bad), 4);
    ck_assert_int_eq(bad, 1);
    expect_status(sweep("r", "--strict"), ST_FAIL, SWEEP);
    expect_status(sweep("s", "--strict"), ST_FAIL, SWEEP);
    expect_text(out, "counted as chance", SWEEP);
    expect_text(err, "--strict: NaN or infinity in 1 of 4 runs; lrnn report --out ", SWEEP);
    ck_assert_int_eq(count_runs("s", &bad), 4);
    expect_status(sweep("s", "--strict no"), ST_OK, SWEEP);
}
END_TEST

/* A shard is judged by its own runs. */
START_TEST(the_shard_with_the_run_fails) {
    int failed = 0, bad;
    for (int i = 1; i <= 2; i++) {
        char flags[64], folder[16];
        snprintf(flags, sizeof flags, "--strict --shard %d/2", i);
        snprintf(folder, sizeof folder, "shard%d", i);
        int status = sweep(folder, flags);
        ck_assert_int_eq(count_runs(folder, &bad), 2);
        expect_status(status, bad ? ST_FAIL : ST_OK, flags);
        failed += bad;
    }
    ck_assert_int_eq(failed, 1);
}
END_TEST

START_TEST(a_training_fails_where_it_is_strict) {
    expect_status(train("1e-3", "fine", "--strict"), ST_OK, TRAIN);
    expect_status(train("1e6", "r", ""), ST_OK, TRAIN);
    expect_text(out, ", first value that is not finite in ", TRAIN);
    expect_status(train("1e6", "s", "--strict"), ST_FAIL, TRAIN);
    expect_text(out, "record ", TRAIN);
    expect_text(err, "--strict: NaN or infinity in run ", TRAIN);
    expect_text(err, ": step ", TRAIN);
    expect_status(train("1e6", "s", "--strict"), ST_FAIL, TRAIN); /* on record */
}
END_TEST

Suite *check_nonfinite(void);
Suite *check_nonfinite(void) {
    Suite *suite = suite_create("nonfinite");
    TCase *steps = tcase_create("steps"), *commands = tcase_create("commands");
    tcase_add_checked_fixture(steps, own_folder_begin, own_folder_end);
    tcase_add_loop_test(steps, a_planted_nan_is_found_by_step_and_name, 0, N_PLANTINGS);
    tcase_add_loop_test(steps, a_nan_in_any_weight_is_found, 0, sizeof rectified / sizeof *rectified);
    tcase_add_test(steps, a_nan_in_the_data_ends_the_run_with_a_row);
    tcase_add_checked_fixture(commands, program_begin, program_end);
    tcase_add_test(commands, a_sweep_goes_on_and_fails_where_it_is_strict);
    tcase_add_test(commands, the_shard_with_the_run_fails);
    tcase_add_test(commands, a_training_fails_where_it_is_strict);
    suite_add_tcase(suite, steps);
    suite_add_tcase(suite, commands);
    return suite;
}

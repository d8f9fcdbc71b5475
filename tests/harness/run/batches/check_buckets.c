/* check_buckets.c - a batch that is walked in buckets teaches what it teaches whole, up to the order of sums: every
 * task of unequal examples, every mixer, every net; at any number of threads to the same bits, over a checkpoint; and
 * what cannot be cut is refused. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_walk.h"
#include "harness/study/study.h"
#include "harness/run/checkpoint.h"
#include "harness/run/trainer.h"
#include "models/small.h"
#include "tests/harness/run/small_run.h"
#include "tests/harness/run/small_task.h"
#include "tests/lib/program.h"
#include "tests/lib/scratch.h"
#include "tests/lib/support.h"
#include "tests/tasks/task_examples.h"

#define WORDS  "parity:max_length=24,eval_max_length=40,n_train=90,n_val=8,n_test=8"
#define SHORT  "parity:max_length=11,eval_min_length=3,eval_max_length=11,n_train=90,n_val=8,n_test=8"
#define GRAPHS "molecules:graphs=100,min_nodes=8,max_nodes=12"
#define MIXER  "bdlru:m=2,blocks=5"

/* Against a whole batch: kernels cut sums and tiles by the sizes of their graphs. The largest difference of all that is
 * walked here is 23 epsilon of the largest gradient. */
#define BOUND (256 * REAL_EPSILON)

/* The setup of 23 examples a batch, of which the last of an epoch is not full, with more flags, "" or "name=value ...".
 * NULL: the error is in *e. */
static struct setup *try_setup(const char *task, const char *model, const char *more, struct error *e) {
    struct config c;
    char flags[256];
    snprintf(flags, sizeof flags, "dim=12 layers=2 batch=23 epochs=9 lr=0.01 stop-at=2 threads=1 out=%s %s", own_folder,
             more);
    ck_assert_int_eq(config_default(&c, e), ST_OK);
    for (char *state, *pair = strtok_r(flags, " ", &state); pair; pair = strtok_r(NULL, " ", &state)) {
        char *value = strchr(pair, '=');
        *value++ = 0;
        ck_assert_msg(config_set(&c, pair, value, e) == ST_OK, "%s", e->text);
    }
    return setup_make(&c, task, model, e);
}

static struct setup *setup_of(const char *task, const char *model, const char *more) {
    struct error e;
    struct setup *s = try_setup(task, model, more, &e);
    ck_assert_msg(s != NULL, "%s %s %s: %s", task, model, more, e.text);
    return s;
}

static void open_trainer(struct trainer *t, const struct setup *s) {
    struct error e;
    ck_assert_msg(trainer_create(t, s, &e) == ST_OK, "%s %s: %s", s->spec.task.name, s->id.model_label, e.text);
}

/* --- the same as a whole batch ------------------------------------------------------------------------------------ */

/* Each parameter's gradient, within a bound of the largest element of all. */
static void expect_same_gradient(const struct trainer *got, const struct trainer *want, const char *what) {
    double scale = compare_reals(want->params.grad, want->params.grad, want->params.floats).scale;
    for (int k = 0; k < want->params.n; k++) {
        const struct param *p = &want->params.list[k];
        if (p->spec.group == PARAM_CONST) continue;
        struct difference d = compare_reals(got->params.grad + p->offset, want->params.grad + p->offset, p->count);
        ck_assert_msg(d.error <= BOUND * scale,
                      "%s: gradient of %s: element %d is %.9g, want %.9g, off by %.3g of %.3g", what, p->name,
                      (int)d.at, d.got, d.want, d.error, scale);
    }
}

/* Loss and right answers of a split, of each length, with the same parameters. */
static void expect_same_scores(struct trainer *got, struct trainer *want, enum split split, const char *what) {
    struct scores cut, whole;
    ck_assert(trainer_evaluate(got, split, &cut) && trainer_evaluate(want, split, &whole));
    ck_assert_msg(whole.scored > 0 && cut.scored == whole.scored, "%s: %d labels scored, want %d", what,
                  (int)cut.scored, (int)whole.scored);
    expect_near(cut.loss, whole.loss, BOUND * whole.loss, what);
    expect_near(cut.macro_acc, whole.macro_acc, 4 * REAL_EPSILON, what);
    size_t bytes = (size_t)(want->metrics.longest + 1) * sizeof *want->metrics.by_length;
    ck_assert_msg(memcmp(got->metrics.by_length, want->metrics.by_length, bytes) == 0, "%s: other answers", what);
}

/* Loss and gradient of steps of both from the same parameters, the last one an epoch's that is not full. */
static void expect_same_steps(const char *task, const char *model, const char *more) {
    char what[512], buckets[256];
    struct trainer whole, cut;
    snprintf(buckets, sizeof buckets, "buckets=4 %s", more);
    struct setup *a = setup_of(task, model, more), *b = setup_of(task, model, buckets);
    open_trainer(&whole, a);
    open_trainer(&cut, b);
    ck_assert(whole.batches.way == &way_sent && cut.batches.way == &way_cut);
    ck_assert(whole.batches.cut.n == 0 && cut.batches.cut.n > 1 && cut.batches.cut.parts == 4);
    ck_assert(whole.looks.cut.n == 0 && cut.looks.cut.n > 1 && cut.looks.cut.parts == 4);
    int64_t steps[] = {0, 1, a->shapes.steps_per_epoch - 1};
    for (int i = 0; i < 3; i++) {
        memcpy(cut.params.value, whole.params.value, (size_t)whole.params.floats * sizeof(real));
        whole.state.step = cut.state.step = steps[i];
        trainer_step(&whole);
        trainer_step(&cut);
        snprintf(what, sizeof what, "%.120s %.120s %.60s, step %d", task, model, more, (int)steps[i]);
        expect_near(cut.state.loss, whole.state.loss, BOUND * whole.state.loss, what);
        expect_same_gradient(&cut, &whole, what);
    }
    memcpy(cut.params.value, whole.params.value, (size_t)whole.params.floats * sizeof(real));
    expect_same_scores(&cut, &whole, SPLIT_VAL, what);
    expect_same_scores(&cut, &whole, SPLIT_TEST, what);
    trainer_free(&whole);
    trainer_free(&cut);
    small_run_free(a);
    small_run_free(b);
}

START_TEST(every_unequal_task_learns_the_same) {
    char text[SMALL_TASK_TEXT];
    const char *model;
    struct task_choice choice;
    const struct task *task = task_list()[_i];
    small_task(task, text, &model);
    open_task(&choice, text, 1);
    if (choice.shape.unequal) expect_same_steps(text, model, "");
}
END_TEST

START_TEST(every_mixer_learns_the_same) {
    const char *model = small_models()[_i];
    expect_same_steps(SHORT, model, "bidirectional=yes");
    if (!strstr(model, "edges=")) expect_same_steps(GRAPHS, model, ""); /* these bring their own */
}
END_TEST

static const char *const nets[] = {"backbone=slice",      "backbone=slice-glu", "backbone=stacked",
                                   "backbone=vision",     "pool=last",          "norm=layernorm mlp=gelu",
                                   "backbone=slice-paper"};
#define N_NETS (int)(sizeof nets / sizeof *nets)

START_TEST(every_net_learns_the_same) {
    expect_same_steps(WORDS, "slice:penalty=0.1", nets[_i]);
    expect_same_steps(GRAPHS, MIXER, nets[_i]);
}
END_TEST

/* As many buckets as examples, and more than there is a size for. */
START_TEST(a_batch_may_be_cut_into_single_examples) {
    struct setup *a = setup_of(WORDS, MIXER, ""), *b = setup_of(WORDS, MIXER, "buckets=23");
    struct trainer whole, cut;
    open_trainer(&whole, a);
    open_trainer(&cut, b);
    ck_assert(cut.batches.cut.rows == 1 && cut.batches.cut.parts == 23);
    trainer_step(&whole);
    trainer_step(&cut);
    expect_same_gradient(&cut, &whole, "single examples");
    trainer_free(&whole);
    trainer_free(&cut);
    small_run_free(a);
    small_run_free(b);
}
END_TEST

/* --- bits --------------------------------------------------------------------------------------------------------- */

/* Losses and weights of `n` steps; from step `again` on in a second trainer that goes on from a checkpoint. */
static real *train(const struct setup *s, int threads, int n, int again, double *losses) {
    struct trainer first, second, *t = &first;
    struct run_progress p = {.curve = calloc(64, sizeof *p.curve), .curve_capacity = 64, .solved_step = -1};
    struct error e;
    bool found;
    omp_set_num_threads(threads);
    open_trainer(&first, s);
    open_trainer(&second, s);
    for (int i = 0; i < n; i++) {
        if (i == again) {
            ck_assert_msg(checkpoint_write(&first, &p, &e) == ST_OK, "%s", e.text);
            ck_assert(checkpoint_read(&second, &p, &found, &e) == ST_OK && found);
            t = &second;
        }
        trainer_step(t);
        losses[i] = t->state.loss;
    }
    real *weights = copy_reals(t->params.value, t->params.floats);
    trainer_free(&first);
    trainer_free(&second);
    free(p.curve);
    return weights;
}

static const char *const cut[][2] = {{WORDS, "slice"}, {GRAPHS, "plstm-graph:heads=2"}};

START_TEST(threads_and_checkpoints_change_no_bit) {
    static const int threads[] = {2, 3, 7, 16};
    struct setup *s = setup_of(cut[_i][0], cut[_i][1], "buckets=4 batch=70 dropout=0.1");
    struct trainer t;
    double want[12], got[12];
    open_trainer(&t, s);
    int64_t floats = t.params.floats;
    trainer_free(&t);
    real *one = train(s, 1, 12, -1, want);
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        real *many = train(s, threads[i], 12, 5, got);
        expect_same_bits(many, one, floats, "weights");
        ck_assert_mem_eq(got, want, sizeof want);
        free(many);
    }
    free(one);
    small_run_free(s);
}
END_TEST

/* Two parts of the same examples with the same weights: with dropout their losses differ. */
START_TEST(parts_have_masks_of_their_own) {
    struct setup *s = setup_of(WORDS, MIXER, "buckets=2 batch=20 dropout=0.5");
    struct trainer t;
    struct walk part;
    double loss[2];
    open_trainer(&t, s);
    struct batch twice = feeder_take(&t.batches.feeder, 0)->main;
    for (int64_t row = 10; row < 20; row++) {
        memcpy(batch_row(&twice, row), batch_row(&twice, row - 10), batch_row_bytes(&twice));
        memcpy(twice.targets + row * twice.labels, twice.targets + (row - 10) * twice.labels,
               (size_t)twice.labels * sizeof *twice.targets);
    }
    for (int64_t row = 0; row < 20; row++) twice.lengths[row] = (int32_t)twice.T; /* the order is theirs */
    cut_take(&t.batches, &twice);
    for (int i = 0; i < 2; i++) {
        ck_assert(batches_walk(&t.batches, &t.state, &part));
        ck_assert(part.weight == 0.5);
        graph_forward(part.graph, part.state);
        loss[i] = tensor_real(part.net->loss)[0];
    }
    ck_assert_msg(loss[0] != loss[1], "both parts have the loss %g", loss[0]);
    trainer_free(&t);
    small_run_free(s);
}
END_TEST

/* --- sizes and memory --------------------------------------------------------------------------------------------- */

START_TEST(sizes_ascend_to_the_whole_and_no_part_is_longer_than_it_needs) {
    struct setup *s = setup_of(_i == 0 ? WORDS : GRAPHS, _i == 0 ? MIXER : "gcn", "buckets=5 batch=50");
    const struct task_shape *shape = &s->spec.task.shape;
    struct bucket_size sizes[BUCKET_SIZES];
    struct walk part;
    struct trainer t;
    int n = bucket_sizes(s, SPLIT_TRAIN, sizes), shorter = 0;
    ck_assert_int_gt(n, 5);
    ck_assert(sizes[n - 1].T == shape->T && sizes[n - 1].links.edges == shape->links.edges &&
              sizes[n - 1].links.pairs == shape->links.pairs);
    for (int i = 1; i < n; i++) ck_assert(sizes[i - 1].T < sizes[i].T && 6 * sizes[i - 1].T >= 5 * sizes[i].T);
    open_trainer(&t, s);
    batches_next(&t.batches, 0);
    int64_t seen = 0, before = 0;
    for (int64_t i = 0; i < t.batches.cut.parts; i++) {
        ck_assert(batches_walk(&t.batches, &t.state, &part));
        int64_t T = part.net->input->dims[1];
        ck_assert(T >= before && (before = T) > 0);
        for (int64_t k = 0; k < t.batches.cut.rows; k++) seen += tensor_i32(part.net->lengths)[k] > 0;
        shorter += T < shape->T;
        ck_assert_msg(part.graph->plan->base == t.train.plan->base, "part %d has memory of its own", (int)i);
    }
    ck_assert_int_eq(seen, 50);
    ck_assert_int_ge(shorter, 2);
    trainer_free(&t);
    small_run_free(s);
}
END_TEST

/* --- what a run is ------------------------------------------------------------------------------------------------ */

START_TEST(buckets_are_part_of_what_a_run_is) {
    struct setup *none = setup_of(WORDS, MIXER, ""), *one = setup_of(WORDS, MIXER, "buckets=1"),
                 *four = setup_of(WORDS, MIXER, "buckets=4");
    ck_assert_str_eq(none->id.run_id, one->id.run_id);
    ck_assert_ptr_null(strstr(none->id.text, "\nbuckets=")); /* an option at its default is left out */
    ck_assert_str_ne(none->id.run_id, four->id.run_id);
    ck_assert_ptr_nonnull(strstr(four->id.text, "\nbuckets=4\n"));
    small_run_free(none);
    small_run_free(one);
    small_run_free(four);
}
END_TEST

static const struct {
    const char *task, *flags, *words; /* words: all of them in the message, '|' between */
} refused[] = {
    {"s3:length=9", "buckets=2",
     "--buckets 2 cuts a batch by length|all training examples of s3:length=9 have length 9"},
    {"parity:min_length=9,max_length=9", "buckets=2", "have length"},
    {WORDS, "buckets=24", "--buckets 24 is more than the 23 examples of a batch"},
    {WORDS, "buckets=2 backbone=s5", "--buckets 2: the batch norm of --backbone s5"},
    {WORDS, "buckets=2 device=cuda", "--buckets 2 is for --device cpu"},
};
#define N_REFUSED (int)(sizeof refused / sizeof *refused)

START_TEST(what_cannot_be_cut_is_refused) {
    struct error e = {ST_OK, ""};
    char words[256];
    snprintf(words, sizeof words, "%s", refused[_i].words);
    ck_assert_ptr_null(try_setup(refused[_i].task, MIXER, refused[_i].flags, &e));
    ck_assert_int_eq(e.status, ST_USAGE);
    for (char *state, *word = strtok_r(words, "|", &state); word; word = strtok_r(NULL, "|", &state))
        ck_assert_msg(strstr(e.text, word), "%s", e.text);
}
END_TEST

START_TEST(the_command_line_refuses_no_buckets) {
    expect_status(run("train " WORDS " " MIXER " --buckets 0"), ST_USAGE, "train --buckets 0");
    ck_assert_msg(strstr(err, "buckets") && strstr(err, "0"), "%s", err);
    expect_status(run("perf step " MIXER " --length 20 --min-length 3 --buckets 4 --profile"), ST_USAGE, "profile");
    ck_assert_msg(strstr(err, "--profile looks on at one graph, and --buckets 4"), "%s", err);
    expect_status(run("perf step " MIXER " --length 20 --min-length 21"), ST_USAGE, "lengths");
    ck_assert_msg(strstr(err, "--min-length 21 is more than --length 20"), "%s", err);
    expect_status(run("perf step " MIXER " --dim 16 --length 20 --min-length 3 --buckets 4 --steps 2 --json"), ST_OK,
                  "perf step");
    ck_assert_msg(strstr(out, "\"min_length\":3,\"buckets\":4,"), "%s", out);
}
END_TEST

Suite *check_buckets(void);
Suite *check_buckets(void) {
    Suite *suite = suite_create("buckets");
    TCase *same = tcase_create("same"), *command = tcase_create("command");
    int tasks = 0, models = 0;
    while (task_list()[tasks]) tasks++;
    while (small_models()[models]) models++;
    tcase_add_checked_fixture(same, own_folder_begin, own_folder_end);
    tcase_add_checked_fixture(same, tasks_begin, tasks_end);
    tcase_add_loop_test(same, every_unequal_task_learns_the_same, 0, tasks);
    tcase_add_loop_test(same, every_mixer_learns_the_same, 0, models);
    tcase_add_loop_test(same, every_net_learns_the_same, 0, N_NETS);
    tcase_add_test(same, a_batch_may_be_cut_into_single_examples);
    tcase_add_loop_test(same, threads_and_checkpoints_change_no_bit, 0, (int)(sizeof cut / sizeof *cut));
    tcase_add_test(same, parts_have_masks_of_their_own);
    tcase_add_loop_test(same, sizes_ascend_to_the_whole_and_no_part_is_longer_than_it_needs, 0, 2);
    tcase_add_test(same, buckets_are_part_of_what_a_run_is);
    tcase_add_loop_test(same, what_cannot_be_cut_is_refused, 0, N_REFUSED);
    tcase_add_checked_fixture(command, program_begin, program_end);
    tcase_add_test(command, the_command_line_refuses_no_buckets);
    suite_add_tcase(suite, same);
    suite_add_tcase(suite, command);
    return suite;
}

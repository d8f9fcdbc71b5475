/* check_feeder.c - training batches made ahead by a thread change no bit, in whatever order steps are asked for; the
 * strings of another length that a step learns from besides; and splits stored for evaluation. */
#include <stdlib.h>
#include <string.h>

#include "core/graph_walk.h"
#include "harness/study/study.h"
#include "harness/run/checkpoint.h"
#include "harness/run/trainer.h"
#include "tests/lib/program.h"
#include "tests/lib/scratch.h"
#include "tests/lib/support.h"

#define WITH_EXTRA "word-problem:group=z5,length=6,n_train=300,n_val=120,n_test=50,extra_length=2"

static struct setup *setup_of(const char *task) {
    static const char *const flags[][2] = {{"dim", "8"},   {"batch", "50"},  {"epochs", "9"},
                                           {"lr", "0.01"}, {"stop-at", "2"}, {"threads", "1"}};
    struct config c;
    struct error e;
    ck_assert_int_eq(config_default(&c, &e), ST_OK);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        ck_assert_int_eq(config_set(&c, flags[i][0], flags[i][1], &e), ST_OK);
    ck_assert_int_eq(config_set(&c, "out", own_folder, &e), ST_OK);
    struct setup *s = setup_make(&c, task, "bdlru:m=2,blocks=3", &e);
    ck_assert_msg(s != NULL, "%s", e.text);
    return s;
}

static void release(struct setup *s) {
    setup_free(s);
}

/* A task of each kind of target: a position, some positions, a sequence, all decoded from one; one whose inputs are
 * values; and one with two lengths. */
static const char *const tasks[] = {"s3:n_train=170,n_val=120,n_test=50,length=5",
                                    "parity:max_length=20,eval_max_length=50,n_train=170,n_val=120,n_test=50",
                                    "listops:min_length=10,max_length=40,n_train=170,n_val=120,n_test=50",
                                    "compression:length=12,n_train=170,n_val=120,n_test=50",
                                    "shapes:size=12,order=morton,n_train=170,n_val=120,n_test=50",
                                    "mqar:vocab=64,length=24,pairs=3,n_train=170,n_val=120,n_test=50",
                                    WITH_EXTRA};
#define N_TASKS (int)(sizeof tasks / sizeof *tasks)

static void expect_same_ids(const int32_t *a, const int32_t *b, int64_t n, const char *what, int64_t step) {
    ck_assert_msg(n == 0 || memcmp(a, b, (size_t)n * sizeof *a) == 0, "%s of step %lld differ", what, (long long)step);
}

static void expect_same_batch(const struct batch *a, const struct batch *b, int64_t step) {
    ck_assert_int_eq(a->B, b->B);
    ck_assert(a->channels == b->channels);
    if (a->B) ck_assert_mem_eq(batch_row(a, 0), batch_row(b, 0), (size_t)a->B * batch_row_bytes(a));
    expect_same_ids(a->targets, b->targets, a->B * a->labels, "targets", step);
    expect_same_ids(a->lengths, b->lengths, a->B, "lengths", step);
}

START_TEST(a_thread_makes_the_batches_that_are_made_without) {
    static const int64_t steps[] = {0, 1, 2, 3, 3, 2, 8, 9, 10, 4, 5, 35, 36, 0, 0, 1}; /* also past the last step */
    struct setup *s = setup_of(tasks[_i]);
    struct feeder f;
    struct error e;
    struct step_batches here = step_sizes(&s->spec);
    char *memory = malloc(step_bytes(&s->spec));
    batch_lay(&here.second, batch_lay(&here.main, memory));
    ck_assert_msg(feeder_start(&f, &s->spec, &s->shapes, &e) == ST_OK, "%s", e.text);
    ck_assert(f.runs);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const struct step_batches *ahead = feeder_take(&f, steps[i]);
        step_fill(&s->spec, &s->shapes, steps[i], &here);
        expect_same_batch(&ahead->main, &here.main, steps[i]);
        expect_same_batch(&ahead->second, &here.second, steps[i]);
    }
    feeder_stop(&f);
    free(memory);
    release(s);
}
END_TEST

/* The examples that a list names are the first rows of a batch, and there are no more. */
static void expect_examples(const struct setup *s, const json_t *indices, bool second, const struct batch *b,
                            int64_t step) {
    struct batch one = {.B = 1, .T = b->T, .channels = b->channels, .labels = b->labels};
    char *memory = malloc(batch_bytes(&one));
    batch_lay(&one, memory);
    for (size_t row = 0; row < json_array_size(indices); row++) {
        int64_t index = json_integer_value(json_array_get(indices, row));
        split_fill(&s->spec, second, index, 1, &one);
        struct batch got = *b;
        got.B = 1;
        got.targets += (int64_t)row * b->labels;
        got.lengths += row;
        expect_same_ids(one.lengths, got.lengths, 1, "lengths", step);
        ck_assert_mem_eq(batch_row(&one, 0), batch_row(b, (int64_t)row),
                         batch_row_bytes(b) / (size_t)b->T * (size_t)one.lengths[0]);
        expect_same_ids(one.targets, got.targets, b->labels, "targets", step);
    }
    for (int64_t row = (int64_t)json_array_size(indices); row < b->B; row++) ck_assert_int_eq(b->lengths[row], 0);
    free(memory);
}

/* `lrnn data show --order` against the batches of a run with the same flags, its last epoch cut off by --steps. */
START_TEST(the_order_shown_is_the_order_trained_in) {
    struct setup *s = setup_of(tasks[_i]);
    int64_t last = s->shapes.steps_per_epoch * 8 + (s->shapes.steps_per_epoch + 1) / 2, seen = 0;
    struct feeder f;
    struct error e;
    ck_assert_msg(feeder_start(&f, &s->spec, &s->shapes, &e) == ST_OK, "%s", e.text);
    for (int64_t epoch = 0; epoch <= 8; epoch += 4) {
        char arguments[512], *state = NULL;
        int64_t step = epoch * s->shapes.steps_per_epoch;
        snprintf(arguments, sizeof arguments, "data show %s --batch 50 --steps %lld --order %lld", tasks[_i],
                 (long long)last, (long long)epoch);
        ck_assert_msg(run_program(own_folder, named_program("LRNN", "./lrnn"), arguments) == 0, "%s", err);
        for (char *line = strtok_r(out, "\n", &state); line; line = strtok_r(NULL, "\n", &state), step++, seen++) {
            json_t *object = parse_line(line);
            const struct step_batches *b = feeder_take(&f, step);
            ck_assert_int_eq(whole(object, "epoch"), epoch);
            ck_assert_int_eq(whole(object, "step"), step + 1);
            expect_examples(s, json_object_get(object, "indices"), false, &b->main, step);
            ck_assert_int_eq(b->second.B, (int64_t)json_array_size(json_object_get(object, "extra")));
            expect_examples(s, json_object_get(object, "extra"), true, &b->second, step);
            json_decref(object);
        }
    }
    ck_assert_int_eq(seen, 2 * s->shapes.steps_per_epoch + (s->shapes.steps_per_epoch + 1) / 2);
    free_output();
    feeder_stop(&f);
    release(s);
}
END_TEST

static void open_trainer(struct trainer *t, const struct setup *s) {
    struct error e;
    ck_assert_msg(trainer_create(t, s, &e) == ST_OK, "%s", e.text);
}

/* Takes a step with batches that this thread makes. */
static void step_by_hand(struct trainer *t) {
    struct step_batches b = step_sizes(&t->setup->spec);
    char *memory = malloc(step_bytes(&t->setup->spec));
    const struct net *nets[] = {&t->nets.main, &t->nets.second};
    const struct batch *batches[] = {&b.main, &b.second};
    batch_lay(&b.second, batch_lay(&b.main, memory));
    step_fill(&t->setup->spec, &t->setup->shapes, t->state.step, &b);
    for (int i = 0; i < 2; i++) {
        const struct batch *from = batches[i];
        if (!from->B) continue;
        graph_put(&t->train, nets[i]->input, batch_row(from, 0));
        graph_put(&t->train, nets[i]->targets, from->targets);
        graph_put(&t->train, nets[i]->lengths, from->lengths);
    }
    graph_forward(&t->train, t->live);
    graph_backward(&t->train, t->live);
    graph_forward(&t->update, t->live);
    free(memory);
}

/* Fifteen steps without a thread against fifteen with one, of which the last eight are in a second trainer that goes on
 * from a checkpoint of the first: loss after loss, and all that is trained. */
START_TEST(a_thread_changes_no_bit_of_training_or_resuming) {
    struct setup *s = setup_of(tasks[_i]);
    struct trainer plain, first, second, *t = &first;
    struct run_progress p = {.curve = calloc(64, sizeof *p.curve), .curve_capacity = 64, .solved_step = -1};
    struct error e;
    bool found;
    open_trainer(&plain, s);
    open_trainer(&first, s);
    open_trainer(&second, s);
    for (int i = 0; i < 15; i++) {
        if (i == 7) {
            ck_assert_msg(checkpoint_write(&first, &p, &e) == ST_OK, "%s", e.text);
            ck_assert(checkpoint_read(&second, &p, &found, &e) == ST_OK && found);
            t = &second;
        }
        step_by_hand(&plain);
        trainer_step(t);
        ck_assert_msg(plain.state.loss == t->state.loss, "step %d: loss %.17g without a thread, %.17g with one", i,
                      plain.state.loss, t->state.loss);
    }
    expect_same_bits(plain.params.value, second.params.value, plain.params.floats, "values");
    expect_same_bits(plain.params.moment2, second.params.moment2, plain.params.floats, "second moments");
    trainer_free(&plain);
    trainer_free(&first);
    trainer_free(&second);
    free(p.curve);
    release(s);
}
END_TEST

/* Row after row as batch_fill makes them, to the last, partial batch; and the net reads those rows. The same of the
 * window that a split is which has no room. */
START_TEST(a_stored_split_is_the_batches_one_by_one) {
    struct setup *s = setup_of(tasks[_i / 2]);
    bool window = _i % 2;
    struct trainer t;
    struct error e;
    open_trainer(&t, s);
    for (enum split split = SPLIT_VAL; split <= SPLIT_TEST; split++) {
        struct split_store *store = split == SPLIT_VAL ? &t.val : &t.test;
        int64_t B = s->spec.config.batch, n = s->spec.task.shape.examples[split], seen = 0;
        if (window) {
            split_store_free(store);
            ck_assert_int_eq(
                split_store_create(store, &s->spec, split, split_store_bytes(&s->spec, split) - 1, &t.place, &e),
                ST_OK);
        }
        ck_assert(store->window == window);
        ck_assert_int_eq(store->rows.B, window ? B : (n + B - 1) / B * B);
        if (!window) ck_assert_uint_eq(split_store_bytes(&s->spec, split), batch_bytes(&store->rows));
        for (int64_t first = 0; first < n; first += B) {
            struct batch got, want;
            int64_t rows = split_store_select(store, first, &t.eval_net, &got);
            want = got;
            char *memory = malloc(batch_bytes(&want));
            batch_lay(&want, memory);
            ck_assert_int_eq(rows, batch_fill(&s->spec, split, first, &want));
            expect_same_batch(&got, &want, first);
            ck_assert(t.eval_net.input->data == batch_row(&got, 0) && t.eval_net.targets->data == got.targets);
            ck_assert(!t.eval_net.lengths || t.eval_net.lengths->data == got.lengths);
            free(memory);
            seen += rows;
        }
        ck_assert_int_eq(seen, n);
    }
    trainer_free(&t);
    release(s);
}
END_TEST

/* A split of 2.9 TB is a window of one batch; the other split, which has room, is kept. */
START_TEST(a_split_that_no_memory_holds_is_made_batch_by_batch) {
    struct setup *s = setup_of("word-problem:group=z1000,length=400,n_train=300,n_val=900000000,n_test=50");
    struct trainer t;
    open_trainer(&t, s);
    ck_assert(t.val.window && t.val.rows.B == s->spec.config.batch && !t.test.window);
    trainer_free(&t);
    release(s);
}
END_TEST

/* Scores to the last bit, whether the split is kept or made anew; twice, for a window is filled over and over. */
START_TEST(a_window_is_evaluated_to_the_same_bits) {
    struct setup *s = setup_of(tasks[_i]);
    struct trainer t;
    struct scores kept, made;
    struct error e;
    open_trainer(&t, s);
    trainer_step(&t);
    for (enum split split = SPLIT_VAL; split <= SPLIT_TEST; split++) {
        struct split_store *store = split == SPLIT_VAL ? &t.val : &t.test;
        ck_assert(trainer_evaluate(&t, split, &kept));
        split_store_free(store);
        ck_assert_int_eq(split_store_create(store, &s->spec, split, 0, &t.place, &e), ST_OK);
        for (int times = 0; times < 2; times++) {
            ck_assert(trainer_evaluate(&t, split, &made));
            ck_assert_mem_eq(&made, &kept, sizeof made);
        }
    }
    trainer_free(&t);
    release(s);
}
END_TEST

START_TEST(each_epoch_of_the_other_length_has_every_string_once) {
    struct setup *s = setup_of(WITH_EXTRA); /* 25 strings of length 2, 5 per step: an epoch is five steps */
    struct feeder f;
    struct error e;
    int orders_differ = 0;
    int32_t first_epoch[25];
    ck_assert_int_eq(feeder_start(&f, &s->spec, &s->shapes, &e), ST_OK);
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        int seen[25] = {0};
        for (int64_t step = 5 * epoch; step < 5 * epoch + 5; step++) {
            const struct batch *b = &feeder_take(&f, step)->second;
            ck_assert(b->B == 5 && b->T == 2 && b->labels == 2);
            for (int64_t row = 0; row < b->B; row++) {
                const int32_t *x = b->tokens + 2 * row, *y = b->targets + 2 * row;
                ck_assert(y[0] == x[0] && y[1] == (x[0] + x[1]) % 5 && b->lengths[row] == 2);
                seen[x[0] * 5 + x[1]]++;
                int64_t place = step % 5 * 5 + row;
                if (epoch == 0) first_epoch[place] = x[0] * 5 + x[1];
                orders_differ += first_epoch[place] != x[0] * 5 + x[1];
            }
        }
        for (int i = 0; i < 25; i++) ck_assert_int_eq(seen[i], 1);
    }
    ck_assert_int_gt(orders_differ, 0);
    feeder_stop(&f);
    release(s);
}
END_TEST

/* With the parameter moved by so much. */
static double sum_of_losses(struct trainer *t, int64_t parameter, double move) {
    t->params.value[parameter] += (real)move;
    graph_forward(&t->train, &t->state);
    return (double)tensor_real(t->nets.main.loss)[0] + (double)tensor_real(t->nets.second.loss)[0];
}

/* The gradient comes from the sum of both mean losses; the reported loss is the main one. */
START_TEST(a_step_descends_the_sum_of_both_losses) {
    struct setup *s = setup_of(WITH_EXTRA);
    struct trainer t;
    open_trainer(&t, s);
    trainer_step(&t);
    trainer_step(&t);
    double main = tensor_real(t.nets.main.loss)[0], extra = tensor_real(t.nets.second.loss)[0];
    ck_assert(t.state.loss == main);
    expect_near(tensor_real(t.train.root)[0], main + extra, 4 * REAL_EPSILON * (main + extra), "sum of losses");
    ck_assert(extra > 0);
    graph_forward(&t.train, &t.state); /* at the parameters that the step has moved */
    graph_backward(&t.train, &t.state);
    if (REAL_IS_DOUBLE) {
        const struct param *head = params_find(&t.params, "head.bias");
        double h = 1e-5, got = t.params.grad[head->offset];
        double above = sum_of_losses(&t, head->offset, h), below = sum_of_losses(&t, head->offset, -2 * h);
        expect_near(got, (above - below) / (2 * h), 1e-8, "d (sum of losses) / d head.bias[0]");
    }
    trainer_free(&t);
    release(s);
}
END_TEST

START_TEST(a_feeder_that_never_started_can_be_stopped) {
    struct feeder f = {0};
    feeder_stop(&f);
    struct setup *s = setup_of(tasks[0]);
    struct error e;
    for (int i = 0; i < 20; i++) { /* stopped before, during and after its first batch */
        ck_assert_int_eq(feeder_start(&f, &s->spec, &s->shapes, &e), ST_OK);
        if (i % 2) feeder_take(&f, i);
        feeder_stop(&f);
        ck_assert(!f.runs && !f.memory);
    }
    release(s);
}
END_TEST

Suite *check_feeder(void) {
    Suite *suite = suite_create("feeder");
    TCase *c = tcase_create("feeder");
    tcase_add_checked_fixture(c, own_folder_begin, own_folder_end);
    tcase_add_loop_test(c, a_thread_makes_the_batches_that_are_made_without, 0, N_TASKS);
    tcase_add_loop_test(c, the_order_shown_is_the_order_trained_in, 0, N_TASKS);
    tcase_add_loop_test(c, a_thread_changes_no_bit_of_training_or_resuming, 0, N_TASKS);
    tcase_add_loop_test(c, a_stored_split_is_the_batches_one_by_one, 0, 2 * N_TASKS);
    tcase_add_test(c, a_split_that_no_memory_holds_is_made_batch_by_batch);
    tcase_add_loop_test(c, a_window_is_evaluated_to_the_same_bits, 0, N_TASKS);
    tcase_add_test(c, each_epoch_of_the_other_length_has_every_string_once);
    tcase_add_test(c, a_step_descends_the_sum_of_both_losses);
    tcase_add_test(c, a_feeder_that_never_started_can_be_stopped);
    suite_add_tcase(suite, c);
    return suite;
}

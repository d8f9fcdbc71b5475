/* check_vision.c - pLSTM on images and the vision transformer beside it: parameters of the published sizes, the table
 * of positions at other sizes than its own, corners, and weights of one size that read images of another. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_walk.h"
#include "harness/study/study.h"
#include "harness/run/trainer.h"
#include "kernels/move/move.h"
#include "tests/lib/layer.h"
#include "tests/lib/support.h"

#define PLSTM_VIS "plstm2d:mode=PD,form=ref,gates=sliced"
#define BOUND     (REAL_IS_DOUBLE ? 1e-12 : 1e-5)

/* --- parameters --------------------------------------------------------------------------------------------------- */

/* The net of ImageNet's images, 224 pixels in patches of 16, and its 1000 labels: trained parameters. */
static int64_t imagenet_parameters(const char *model, int64_t D) {
    const struct backbone b = {.dim = D,
                               .layers = 12,
                               .mlp = MLP_GELU,
                               .kind = BACKBONE_VISION,
                               .pool = FROM_CORNERS,
                               .positions = POSITIONS_LEARNT,
                               .ssm_lr_factor = 1};
    const struct net_shape shape = {
        .B = 1, .T = 196, .channels = 768, .vocab_out = 1000, .height = 14, .width = 14, .readout = READOUT_SEQUENCE};
    const struct dims dims = {.B = 1, .T = 196, .D = D, .height = 14, .width = 14};
    struct model_choice choice;
    struct params params;
    struct graph graph;
    struct net net;
    struct error e = {0};
    ck_assert_msg(model_parse(&choice, model, &e) == ST_OK, "%s", e.text);
    ck_assert_msg(model_fit(&choice, &dims, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(params_create(&params, &e), ST_OK);
    open_graph(&graph, &params, true, false, "");
    ck_assert_msg(net_build(&net, &graph, &b, &choice, &shape, &e) == ST_OK, "%s", e.text);
    int64_t n = params_trained(&params);
    graph_free(&graph);
    params_free(&params);
    return n;
}

static const struct { int64_t D, H, millions; } published[] = {{192, 3, 6}, {384, 6, 23}, {768, 12, 89}};

/* Sizes T, S and B have about 6, 23 and 89 million parameters (pLSTM, table 4), counted here a second time. */
START_TEST(published_sizes_have_the_published_parameters) {
    int64_t D = published[_i].D, H = published[_i].H;
    char model[100];
    snprintf(model, sizeof model, "%s,heads=%d", PLSTM_VIS, (int)H);
    int64_t both = 4 * D * D + 3 * D + D + H + 2 * D + 8 * D * D + 5 * D; /* maps, head norm, direct, norms, MLP */
    int64_t gate = D + 4 * H, p = 3 * gate + 4 * H * D + 4 * H, d = 7 * gate;
    int64_t ends = 768 * D + D + 196 * D + D + 1000 * 4 * D + 1000;
    int64_t n = imagenet_parameters(model, D);
    ck_assert_int_eq(n, 12 * both + 6 * (p + d) + ends);
    ck_assert_msg(llabs((long long)(n - published[_i].millions * 1000000)) < 500000, "%lld parameters", (long long)n);
}
END_TEST

/* P-mode and D-mode layer by layer, and of all parameters the maps alone decay. */
START_TEST(layers_alternate_and_only_maps_decay) {
    struct trial t;
    struct trial_shape s = {.model = PLSTM_VIS ",heads=1",
                            .B = 2,
                            .T = 6,
                            .V = 3,
                            .D = 12,
                            .layers = 3,
                            .mlp = MLP_GELU,
                            .kind = BACKBONE_VISION,
                            .pool = FROM_CORNERS,
                            .readout = READOUT_SEQUENCE,
                            .channels = 5,
                            .height = 2,
                            .width = 3,
                            .positions = POSITIONS_LEARNT};
    const struct backbone b = {.kind = BACKBONE_VISION};
    trial_open(&t, &s, 3);
    ck_assert(params_find(&t.params, "layers.0.mixer.orientation.weight"));
    ck_assert(params_find(&t.params, "layers.1.mixer.source.right.weight"));
    ck_assert(params_find(&t.params, "layers.2.mixer.orientation.weight"));
    ck_assert(!params_find(&t.params, "layers.1.mixer.orientation.weight"));
    for (int i = 0; i < t.params.n; i++) {
        const struct param *p = &t.params.list[i];
        bool is_map = strstr(p->name, ".weight") && !strstr(p->name, "norm");
        ck_assert_msg(backbone_param_rule(&b, p->spec.group).decays == is_map, "%s", p->name);
    }
    trial_close(&t);
}
END_TEST

START_TEST(gradients_match_central_differences) {
    static const char *const models[] = {PLSTM_VIS ",heads=1", "plstm2d:heads=3,gates=bias", "full-attention:heads=3",
                                         "full-attention:heads=3"};
    struct trial t;
    struct trial_shape s = {.model = models[_i / 2],
                            .B = 3,
                            .T = 6,
                            .V = 5,
                            .D = 12,
                            .layers = 2,
                            .mlp = MLP_GELU,
                            .kind = BACKBONE_VISION,
                            .pool = _i == 6  ? FROM_CLASS
                                    : _i % 2 ? FROM_CORNERS
                                             : FROM_MEAN,
                            .readout = READOUT_SEQUENCE,
                            .channels = 4,
                            .height = 2,
                            .width = 3,
                            .positions = POSITIONS_LEARNT};
    trial_open(&t, &s, 5);
    expect_gradients(&t, (uint64_t)_i);
    trial_close(&t);
}
END_TEST

/* --- the table of positions --------------------------------------------------------------------------------------- */

/* Computes a table of one column on the tokens of a grid; x is 0. */
static void resized(const double *table, struct grid trained, struct grid own, int64_t T, const char *kernel,
                    double *to) {
    struct params none = {0};
    struct graph g;
    struct step_state state = first_state();
    open_graph(&g, &none, false, false, kernel);
    struct tensor *x = input3(&g, "x", 1, T, 1, false);
    struct tensor *p = input3(&g, "table", trained.height * trained.width, 1, 0, false);
    struct tensor *y = grid_positions(&g, x, p, NULL, &trained, &own);
    graph_set_root(&g, y);
    plan_graph(&g);
    for (int64_t i = 0; i < tensor_count(p); i++) tensor_real(p)[i] = (real)table[i];
    for (int64_t i = 0; i < T; i++) tensor_real(x)[i] = 0;
    graph_forward(&g, &state);
    for (int64_t i = 0; i < T; i++) to[i] = (double)tensor_real(y)[i];
    graph_free(&g);
}

static const char *const kernels[] = {"reference", ""};
#define N_KERNELS (int)(sizeof kernels / sizeof *kernels)

/* By hand. Twice as many positions of four have centres at a quarter and three quarters between entries: weights of
 * k(5/4), k(1/4), k(3/4), k(7/4) = -9/128, 111/128, 29/128, -3/128, over the sum of those that there are. */
START_TEST(a_larger_grid_has_the_cubic_between) {
    const double entries[] = {0, 1, 4, 9};
    const double want[] = {(111 * 0 - 9 * 1) / 102.0,
                           (111 * 0 + 29 * 1 - 3 * 4) / 137.0,
                           (29 * 0 + 111 * 1 - 9 * 4) / 131.0,
                           (-9 * 0 + 111 * 1 + 29 * 4 - 3 * 9) / 128.0,
                           (-3 * 0 + 29 * 1 + 111 * 4 - 9 * 9) / 128.0,
                           (-9 * 1 + 111 * 4 + 29 * 9) / 131.0,
                           (-3 * 1 + 29 * 4 + 111 * 9) / 137.0,
                           (-9 * 4 + 111 * 9) / 102.0};
    double got[8];
    for (int flat = 0; flat < 2; flat++) {
        struct grid trained = {flat ? 1 : 4, flat ? 4 : 1}, own = {flat ? 1 : 8, flat ? 8 : 1};
        resized(entries, trained, own, 8, kernels[_i], got);
        for (int i = 0; i < 8; i++) expect_near(got[i], want[i], BOUND, "a position between");
    }
}
END_TEST

/* A constant stays one, a plane stays one away from the edge, and on its own grid the table is itself, bit by bit. */
START_TEST(planes_stay_planes) {
    double table[6 * 5], got[12 * 10];
    for (int k = 0; k < 30; k++) table[k] = 3;
    resized(table, (struct grid){6, 5}, (struct grid){12, 10}, 120, kernels[_i], got);
    for (int k = 0; k < 120; k++) expect_near(got[k], 3, 3 * BOUND, "a constant");
    for (int k = 0; k < 30; k++) {
        int row = k / 5;
        table[k] = (real)(2 * row - 3 * (k % 5));
    }
    resized(table, (struct grid){6, 5}, (struct grid){6, 5}, 30, kernels[_i], got);
    for (int k = 0; k < 30; k++) ck_assert(got[k] == table[k]);
    resized(table, (struct grid){6, 5}, (struct grid){12, 10}, 120, kernels[_i], got);
    for (int k = 0; k < 120; k++) {
        int row = k / 10, column = k % 10;
        if (row < 3 || row > 8 || column < 3 || column > 6) continue;
        expect_near(got[k], 2 * (row / 2.0 - 0.25) - 3 * (column / 2.0 - 0.25), 20 * BOUND, "a plane");
    }
}
END_TEST

/* --- corners ------------------------------------------------------------------------------------------------------ */

START_TEST(corners_are_those_of_each_sequence) {
    static const struct {
        int32_t n;
        double corners[4];
    } cases[] = {{9, {0, 6, 2, 8}}, {4, {0, 2, 1, 3}}, {1, {0, 0, 0, 0}}, {5, {0, 3, 2, -1}}};
    struct params none = {0};
    struct graph g;
    struct step_state state = first_state();
    open_graph(&g, &none, false, false, kernels[_i]);
    struct tensor *x = input3(&g, "x", 4, 9, 1, false);
    struct tensor *lengths = graph_input_ids(&g, "lengths", 1, (int64_t[]){4}, 10, false);
    struct tensor *y = rows_of_corners(&g, x, lengths, &(struct grid){0, 0});
    graph_set_root(&g, y);
    plan_graph(&g);
    for (int64_t i = 0; i < 36; i++) {
        int64_t sequence = i / 9;
        tensor_real(x)[i] = (real)(100 * (sequence + 1) + i % 9);
    }
    for (int64_t b = 0; b < 4; b++) tensor_i32(lengths)[b] = cases[b].n;
    graph_forward(&g, &state);
    for (int64_t b = 0; b < 4; b++)
        for (int k = 0; k < 4; k++) {
            double want = cases[b].corners[k] < 0 ? 0 : 100 * (double)(b + 1) + cases[b].corners[k];
            expect_near((double)tensor_real(y)[b * 4 + k], want, 0, "a corner");
        }
    graph_free(&g);
}
END_TEST

/* --- attention ---------------------------------------------------------------------------------------------------- */

/* Every token sees every other one, in no order: reversed tokens have reversed outputs. */
START_TEST(full_attention_knows_no_order) {
    struct layer l;
    layer_open(&l, "full-attention:heads=2", 7, 12);
    layer_run(&l);
    real *before = copy_reals(tensor_real(l.y), tensor_count(l.y));
    for (int64_t b = 0; b < 2; b++)
        for (int64_t t = 0; t < 3; t++)
            for (int64_t d = 0; d < 12; d++) {
                real *a = tensor_real(l.x) + (b * 7 + t) * 12 + d, *z = tensor_real(l.x) + (b * 7 + 6 - t) * 12 + d;
                real kept = *a;
                *a = *z;
                *z = kept;
            }
    layer_run(&l);
    for (int64_t t = 0; t < 14; t++)
        expect_close(tensor_real(l.y) + t * 12, before + (t / 7 * 7 + 6 - t % 7) * 12, 12, 64 * REAL_EPSILON,
                     "a token of the reversed sequence");
    free(before);
    layer_close(&l);
}
END_TEST

/* --- images of another size --------------------------------------------------------------------------------------- */

static const char *const nets[][3] = {{PLSTM_VIS ",heads=1", "learnt", "corners"},
                                      {"plstm2d:heads=2,mode=D", "none", "corners"},
                                      {"full-attention:heads=2", "learnt", "corners"},
                                      {"full-attention:heads=2", "learnt", "class"}};

static struct setup *arrow_setup(const char *model, const char *positions, const char *pool) {
    struct config c;
    struct error e = {0};
    const char *const flags[][2] = {{"dim", "8"},           {"batch", "4"}, {"layers", "2"}, {"mlp", "gelu"},
                                    {"backbone", "vision"}, {"pool", pool}, {"lr", "0.01"},  {"positions", positions}};
    ck_assert_int_eq(config_default(&c, &e), ST_OK);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        ck_assert_msg(config_set(&c, flags[i][0], flags[i][1], &e) == ST_OK, "%s", e.text);
    struct setup *s = setup_make(&c, "arrow:size=24,patch=6,n_train=64,n_val=8,n_test=8", model, &e);
    ck_assert_msg(s != NULL, "%s", e.text);
    return s;
}

/* Weights that were trained on small images read large ones; a small image has the same label whether the graph has
 * room for large ones or not. */
START_TEST(weights_of_one_size_read_another) {
    struct trainer t;
    struct error e = {0};
    struct setup *s = arrow_setup(nets[_i][0], nets[_i][1], nets[_i][2]);
    ck_assert_msg(trainer_create(&t, s, &e) == ST_OK, "%s", e.text);
    int64_t T = t.nets.main.input->dims[1], longer = t.eval_net.input->dims[1], C = t.eval_net.input->dims[2];
    ck_assert(T == 16 && longer == 64 && C == 108);
    for (int step = 0; step < 3; step++) trainer_step(&t);
    ck_assert(isfinite(t.state.loss));
    graph_forward(&t.train, &t.state);
    real *input = copy_reals(tensor_real(t.nets.main.input), 4 * T * C);
    real *logits = copy_reals(tensor_real(t.nets.main.logits), 4 * 2); /* the other graph lies in the same memory */
    for (int64_t i = 0; i < 4 * longer * C; i++) tensor_real(t.eval_net.input)[i] = (real)(i % 7) - 3;
    for (int64_t b = 0; b < 3; b++) {
        memcpy(tensor_real(t.eval_net.input) + b * longer * C, input + b * T * C, (size_t)(T * C) * sizeof *input);
        tensor_i32(t.eval_net.lengths)[b] = (int32_t)T;
    }
    tensor_i32(t.eval_net.lengths)[3] = (int32_t)longer;
    graph_forward(&t.eval, &t.state);
    for (int64_t i = 0; i < 3 * 2; i++)
        expect_near((double)tensor_real(t.eval_net.logits)[i], (double)logits[i], 256 * REAL_EPSILON, "logits");
    double large = (double)tensor_real(t.eval_net.logits)[6];
    ck_assert(isfinite(large));
    tensor_real(t.eval_net.input)[(3 * longer + longer - 1) * C] += 1; /* the last pixels of the large image count */
    graph_forward(&t.eval, &t.state);
    ck_assert((double)tensor_real(t.eval_net.logits)[6] < large || (double)tensor_real(t.eval_net.logits)[6] > large);
    free(input);
    free(logits);
    trainer_free(&t);
    setup_free(s);
}
END_TEST

static void open_digits(struct trainer *t, struct setup **s, const char *task) {
    struct config c;
    struct error e = {0};
    ck_assert_int_eq(config_default(&c, &e), ST_OK);
    c.batch = 4;
    c.net.dim = 8;
    c.net.kind = BACKBONE_VISION;
    c.net.positions = POSITIONS_LEARNT;
    *s = setup_make(&c, task, "full-attention:heads=2", &e);
    ck_assert_msg(*s != NULL, "%s", e.text);
    ck_assert_msg(trainer_create(t, *s, &e) == ST_OK, "%s", e.text);
}

static real *positions_table(struct trainer *t) {
    const struct param *p = params_find(&t->params, "positions");
    ck_assert_int_eq(p->spec.dims[0] * p->spec.dims[1], 16);
    return t->params.value + p->offset;
}

/* Attention knows no order: what it has of an image in Morton order is what it has of it row by row, if the vectors of
 * its 16 patches have moved with them. */
START_TEST(positions_stand_in_the_order_of_reading) {
    struct trainer rows, morton;
    struct setup *of_rows, *of_morton;
    open_digits(&rows, &of_rows, "digits:size=8,patch=2,n_train=8,n_val=4,n_test=4");
    open_digits(&morton, &of_morton, "digits:size=8,patch=2,n_train=8,n_val=4,n_test=4,order=morton");
    const int32_t *visit = of_morton->spec.task.shape.reading.visit;
    real *from = tensor_real(rows.eval_net.input), *to = tensor_real(morton.eval_net.input);
    for (int i = 0; i < 4 * 16 * 4; i++) from[i] = (real)sin(i);
    for (int p = 0; p < 16; p++) {
        memcpy(positions_table(&morton) + p * 8, positions_table(&rows) + visit[p] * 8, 8 * sizeof(real));
        for (int b = 0; b < 4; b++) memcpy(to + (b * 16 + p) * 4, from + (b * 16 + visit[p]) * 4, 4 * sizeof(real));
    }
    graph_forward(&rows.eval, &rows.state);
    graph_forward(&morton.eval, &morton.state);
    expect_close(tensor_real(morton.eval_net.logits), tensor_real(rows.eval_net.logits), 4 * 10, 256 * REAL_EPSILON,
                 "logits");
    trainer_free(&rows);
    trainer_free(&morton);
    setup_free(of_rows);
    setup_free(of_morton);
}
END_TEST

/* --- what does not fit -------------------------------------------------------------------------------------------- */

static const struct {
    const char *task, *model, *flag, *value, *words[3];
} misfits[] = {
    {"brackets", "plstm2d", "positions", "learnt", {"--positions learnt", "are none", "leave it out"}},
    {"brackets", "plstm2d", "pool", "corners", {"--pool corners", "are none", "last or mean"}},
    {"brackets", "lstm", "encoder", "linear", {"--encoder linear", "of tokens", "leave it out"}},
    {"digits:order=morton", "plstm2d", "pool", "corners", {"--pool corners", "row by row", "order"}},
    {"digits", "plstm2d", "pool", "class", {"--pool class", "only full-attention", "last or mean"}},
    {"brackets", "lstm", "degree-code", "yes", {"--degree-code", "are no graphs", "take molecules"}},
    {"arrow:patch=7", "plstm2d", NULL, NULL, {"patch=7", "192 x 192", "divides"}},
    {"arrow:patch=16", "plstm2d:heads=12,gates=sliced", NULL, NULL, {"dim=128", "4 * heads = 48", "gates=dense"}},
    {"arrow:patch=16", "full-attention:heads=5", NULL, NULL, {"heads=5", "dim=128", "full-attention"}},
};

START_TEST(what_does_not_fit_is_refused) {
    struct config c;
    struct error e = {0};
    ck_assert_int_eq(config_default(&c, &e), ST_OK);
    if (misfits[_i].flag) ck_assert_int_eq(config_set(&c, misfits[_i].flag, misfits[_i].value, &e), ST_OK);
    struct setup *s = setup_make(&c, misfits[_i].task, misfits[_i].model, &e);
    struct trainer t;
    ck_assert_msg(s == NULL || trainer_create(&t, s, &e) != ST_OK, "%s on %s", misfits[_i].model, misfits[_i].task);
    ck_assert_int_eq(e.status, ST_USAGE);
    for (int i = 0; i < 3; i++) ck_assert_msg(strstr(e.text, misfits[_i].words[i]) != NULL, "%s", e.text);
    setup_free(s);
}
END_TEST

Suite *check_vision(void);
Suite *check_vision(void) {
    Suite *suite = suite_create("vision");
    TCase *tests = tcase_create("vision");
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_loop_test(tests, published_sizes_have_the_published_parameters, 0,
                        (int)(sizeof published / sizeof *published));
    tcase_add_test(tests, layers_alternate_and_only_maps_decay);
    if (REAL_IS_DOUBLE) tcase_add_loop_test(tests, gradients_match_central_differences, 0, 7);
    tcase_add_loop_test(tests, a_larger_grid_has_the_cubic_between, 0, N_KERNELS);
    tcase_add_loop_test(tests, planes_stay_planes, 0, N_KERNELS);
    tcase_add_loop_test(tests, corners_are_those_of_each_sequence, 0, N_KERNELS);
    tcase_add_test(tests, full_attention_knows_no_order);
    tcase_add_loop_test(tests, weights_of_one_size_read_another, 0, (int)(sizeof nets / sizeof *nets));
    tcase_add_test(tests, positions_stand_in_the_order_of_reading);
    tcase_add_loop_test(tests, what_does_not_fit_is_refused, 0, (int)(sizeof misfits / sizeof *misfits));
    suite_add_tcase(suite, tests);
    return suite;
}

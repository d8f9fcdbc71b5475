/* check_sizes.c - whole nets at sizes that hurt, and at two lengths. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_walk.h"
#include "harness/study/study.h"
#include "harness/run/trainer.h"
#include "tests/lib/support.h"

static const char *const trees[] = {"myosotis:heads=4", "myosotis:heads=4,arity=3,share=node,form=free",
                                    "myosotis:heads=4,levels=8,share=head,selective=yes"};

/* A task that trains short and tests long: one tree, and so one set of parameters, for both. What it makes of a short
 * sequence does not depend on which of the two graphs reads it. */
START_TEST(one_tree_serves_two_lengths) {
    struct config c;
    struct error e;
    struct trainer t;
    ck_assert_int_eq(config_default(&c, &e), ST_OK);
    ck_assert_int_eq(config_set(&c, "dim", "8", &e), ST_OK);
    ck_assert_int_eq(config_set(&c, "batch", "4", &e), ST_OK);
    struct setup *s =
        setup_make(&c, "parity:min_length=2,max_length=5,eval_min_length=6,eval_max_length=21", trees[_i], &e);
    ck_assert_msg(s != NULL, "%s", e.text);
    ck_assert_msg(trainer_create(&t, s, &e) == ST_OK, "%s", e.text);
    int64_t B = t.nets.main.input->dims[0], T = t.nets.main.input->dims[1], V = tensor_cols(t.nets.main.logits);
    int64_t longer = t.eval_net.input->dims[1];
    ck_assert_int_lt(T, longer);
    for (int step = 0; step < 3; step++) trainer_step(&t);
    ck_assert(isfinite(t.state.loss));
    memset(t.eval_net.input->data, 0, tensor_bytes(t.eval_net.input));
    for (int64_t b = 0; b < B; b++)
        memcpy(tensor_i32(t.eval_net.input) + b * longer, tensor_i32(t.nets.main.input) + b * T,
               (size_t)T * sizeof(int32_t));
    memcpy(t.eval_net.lengths->data, t.nets.main.lengths->data, tensor_bytes(t.nets.main.lengths));
    graph_forward(&t.train, &t.state);
    size_t bytes = tensor_bytes(t.nets.main.logits); /* the other graph lies in the same memory */
    real *logits = malloc(bytes);
    int32_t lengths[4];
    ck_assert_ptr_nonnull(logits);
    memcpy(logits, t.nets.main.logits->data, bytes);
    memcpy(lengths, t.nets.main.lengths->data, sizeof lengths);
    graph_forward(&t.eval, &t.state);
    for (int64_t b = 0; b < B; b++)
        for (int64_t i = 0; i < lengths[b] * V; i++)
            expect_near(tensor_real(t.eval_net.logits)[b * longer * V + i], logits[b * T * V + i], 64 * REAL_EPSILON,
                        "logits");
    free(logits);
    trainer_free(&t);
    setup_free(s);
}
END_TEST

/* Sizes at which a strip, a chunk, a tile or a tree has an edge: one token, primes above every chunk, one head and a
 * head per column, grids of one row or one column, leaves left over, one sequence, odd widths. */
static const struct {
    const char *model;
    int64_t B, T, D;
} hard_sizes[] = {
    {"bdlru:m=8,blocks=1", 1, 101, 5},
    {"bdlru:m=5,blocks=67", 2, 1, 7},
    {"hlru:m=8,channels=1", 1, 127, 3},
    {"hlru:m=4,channels=33,layout=observer", 3, 1, 9},
    {"lru:state=1", 1, 127, 5},
    {"slice:structure=block,block=5", 1, 101, 15},
    {"slice:structure=dense", 2, 1, 17},
    {"slice:structure=dplr,rank=3", 1, 101, 7},
    {"slice:structure=hadamard", 1, 101, 16},
    {"slice:structure=diagonal-dense,block=6", 1, 1, 7},
    {"slice:structure=dense,interval=7,depth=2,flow=exp", 1, 101, 18},
    {"slice:structure=block,block=1,interval=200,depth=2", 1, 101, 5},
    {"lstm:hidden=1", 1, 101, 3},
    {"attention:heads=1", 1, 101, 6},
    {"attention:heads=6", 1, 1, 12},
    {"conv:channels=1,m=128", 1, 101, 5},
    {"mamba2:state=1,headdim=1", 1, 101, 3},
    {"mamba2:state=17,headdim=10", 2, 127, 5},
    {"mamba3:state=2,headdim=1,rope=1", 1, 101, 3},
    {"mamba3:state=17,headdim=10,norm=yes", 2, 127, 5},
    {"aussm:state=1", 1, 127, 3},
    {"aussm:state=17,conv=3", 2, 1, 7},
    {"aussm:state=6,rank=2", 3, 101, 10},
    {"deltanet:heads=1", 1, 127, 9},
    {"deltanet:heads=7", 2, 1, 7},
    {"deltaproduct:heads=1,headdim=13,steps=3", 1, 101, 5},
    {"mlstm:heads=1", 1, 127, 6},
    {"mlstm:heads=10,conv=3", 2, 1, 10},
    {"mlstm:heads=2", 1, 101, 34},
    {"slstm:heads=1", 1, 127, 6},
    {"slstm:heads=10,conv=3", 2, 1, 10},
    {"slstm:heads=2,conv=0", 1, 101, 34},
    {"pdssm", 1, 101, 9},
    {"pdssm:form=column", 2, 1, 17},
    {"pdssm:state=33,dict=1,expand=1", 1, 127, 5},
    {"pdssm:state=17,dict=13,form=column", 2, 67, 6},
    {"pdssm:state=35,permute=no", 2, 101, 6},
    {"plstm:heads=1", 1, 127, 9},
    {"plstm:heads=11", 2, 101, 11},
    {"plstm:heads=1,track=5", 1, 101, 6},
    {"plstm:heads=4,track=16", 2, 1, 8},
    {"plstm2d:heads=1,height=1,width=101", 1, 101, 9},
    {"plstm2d:heads=7,height=101,width=1,mode=D", 2, 101, 7},
    {"plstm2d:heads=3,height=13,width=11,form=ref", 1, 143, 6},
    {"plstm2d:heads=2", 1, 1, 10},
    {"plstm-graph:heads=1", 1, 101, 9},
    {"plstm-graph:heads=9,mode=D", 2, 1, 9},
    {"myosotis:heads=1", 1, 101, 5},
    {"myosotis:heads=33,arity=3,share=node", 2, 7, 3},
    {"myosotis:heads=5,arity=7,levels=4,form=free,selective=yes", 1, 101, 5},
    {"myosotis:heads=17,form=skew", 3, 1, 9},
    {"myosotis:heads=4,arity=1", 1, 127, 7},
};

/* Whether a call of the graph can be left to the kernel. */
static bool applies(const struct graph *g, const struct kernel *k) {
    const char *why;
    for (int i = 0; i < g->n_calls; i++)
        if (g->calls[i].op == k->op && (!k->applicable || k->applicable(&g->calls[i], &why))) return true;
    return false;
}

/* Tolerance: a kernel's, carried through norms and products up to a whole net's gradient. */
static void expect_same_net(const struct trial_shape *shape, const struct trial *reference, const char *kernel) {
    struct trial t;
    struct trial_shape s = *shape;
    char what[128];
    s.kernel = kernel;
    snprintf(what, sizeof what, "%s with kernel '%s'", s.model, kernel);
    trial_open(&t, &s, 5);
    graph_forward(&t.graph, &t.state);
    graph_backward(&t.graph, &t.state);
    expect_close(t.net.logits->data, reference->net.logits->data, tensor_count(t.net.logits), 1024 * REAL_EPSILON,
                 what);
    expect_close(t.params.grad, reference->params.grad, t.params.floats, 4096 * REAL_EPSILON, what);
    ck_assert_msg(t.graph.plan->first_guard_failure < 0, "%s: call %d wrote past its output", what,
                  t.graph.plan->first_guard_failure);
    trial_close(&t);
}

/* Every kernel of every op that the mixer calls, forced, against the references. */
START_TEST(kernels_agree_at_hard_sizes) {
    struct trial reference;
    struct trial_shape s = {.model = hard_sizes[_i].model,
                            .B = hard_sizes[_i].B,
                            .T = hard_sizes[_i].T,
                            .D = hard_sizes[_i].D,
                            .V = 11,
                            .layers = 2,
                            .mlp = MLP_NONE,
                            .kernel = "reference",
                            .guards = true};
    trial_open(&reference, &s, 5);
    graph_forward(&reference.graph, &reference.state);
    graph_backward(&reference.graph, &reference.state);
    expect_same_net(&s, &reference, "");
    for (const struct kernel *const *k = kernel_list(); *k; k++)
        if (!(*k)->reference && (*k)->device == DEVICE_CPU && applies(&reference.graph, *k))
            expect_same_net(&s, &reference, (*k)->name);
    trial_close(&reference);
}
END_TEST

#define LONG_TOKENS  16384
#define LONG_BATCH   8
#define LONG_WIDTH   128
#define GIGABYTES(n) ((size_t)(n)*1000 * 1000 * 1000)

/* One layer of each mixer by its default options at 16 384 tokens: what its plan takes, and parameters, gradients and
 * moments, stays under 4 GB (`make test-memory` measures a step), and the plan is at most a tenth above what
 * is live at its fullest moment. */
START_TEST(long_sequences_train_within_4_gigabytes) {
    struct error e = {0};
    struct config c;
    size_t planned;
    ck_assert_int_eq(config_default(&c, &e), ST_OK);
    struct model_choice choice;
    struct params params;
    struct graph g;
    struct net net;
    struct graph_options options = {.training = true, .kernels = kernel_list()};
    struct net_shape shape = {
        .B = LONG_BATCH, .T = LONG_TOKENS, .vocab_in = 120, .vocab_out = 120, .readout = READOUT_POSITIONS};
    struct dims dims = {.B = LONG_BATCH, .T = LONG_TOKENS, .D = LONG_WIDTH};
    const char *name = model_list()[_i]->name;
    ck_assert_int_eq(model_parse(&choice, name, &e), ST_OK);
    ck_assert_msg(model_fit(&choice, &dims, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(params_create(&params, &e), ST_OK);
    ck_assert_int_eq(graph_create(&g, &options, &params, &e), ST_OK);
    ck_assert_msg(net_build(&net, &g, &c.net, &choice, &shape, &e) == ST_OK, "%s", e.text);
    ck_assert_msg(graph_measure(&g, &planned, &e) == ST_OK, "%s", e.text);
    size_t live = graph_live_bytes(&g), state = 4 * (size_t)params.floats * sizeof(real);
    ck_assert_uint_le(live, planned);
    ck_assert_uint_le(planned, live + live / 10);
    ck_assert_msg((planned + state) * sizeof(float) / sizeof(real) < GIGABYTES(4), "%s: %zu bytes", name, planned);
    graph_free(&g);
    params_free(&params);
}
END_TEST

/* Twice each mixer that looks back alone, under the most layers that the flag takes. */
START_TEST(the_most_layers_are_built) {
    struct error e = {0};
    struct model_choice choice;
    struct params params;
    struct graph g;
    struct net net;
    struct graph_options options = {.training = true, .kernels = kernel_list()};
    struct net_shape shape = {.B = 2, .T = 16, .vocab_in = 12, .vocab_out = 12, .readout = READOUT_POSITIONS};
    struct dims dims = {.B = 2, .T = 16, .D = 16};
    const char *name = model_list()[_i]->name;
    ck_assert_int_eq(model_parse(&choice, name, &e), ST_OK);
    ck_assert_msg(model_fit(&choice, &dims, &e) == ST_OK, "%s", e.text);
    struct backbone b;
    ck_assert_int_eq(options_default(backbone_options, &b, &e), ST_OK);
    b.dim = dims.D, b.norm = NORM_LAYER, b.dropout = 0.1;
    b.layers = (int64_t)option_find(backbone_options, "layers")->max;
    b.bidirectional = choice.model->causal;
    ck_assert_int_eq(params_create(&params, &e), ST_OK);
    ck_assert_int_eq(graph_create(&g, &options, &params, &e), ST_OK);
    ck_assert_msg(net_build(&net, &g, &b, &choice, &shape, &e) == ST_OK, "%s: %s", name, e.text);
    ck_assert_msg(2 * g.n_calls <= g.calls_capacity && 2 * g.n_tensors <= g.tensors_capacity,
                  "%s: %d calls, %d tensors: no room for a second net", name, g.n_calls, g.n_tensors);
    graph_free(&g);
    params_free(&params);
}
END_TEST

/* The grid of an image that is visited row by row is the image, unless a side is given. */
START_TEST(a_grid_is_fitted_to_the_image) {
    const struct dims image = {.B = 2, .T = 12, .D = 8, .height = 2, .width = 6}, none = {.B = 2, .T = 12, .D = 8};
    const char *const texts[] = {"plstm2d:heads=2", "plstm2d:heads=2", "plstm2d:heads=2,height=4"};
    const char *const options[] = {"height=2,width=6", "height=auto,width=auto", "height=4,width=auto"};
    for (int i = 0; i < 3; i++) {
        struct model_choice choice;
        struct error e = {0};
        char text[200];
        ck_assert_msg(model_parse(&choice, texts[i], &e) == ST_OK, "%s", e.text);
        ck_assert_msg(model_fit(&choice, i == 1 ? &none : &image, &e) == ST_OK, "%s", e.text);
        options_format(choice.model->options, choice.inst, ",", 0, text, sizeof text);
        ck_assert_msg(strstr(text, options[i]), "%s of %s", text, texts[i]);
    }
}
END_TEST

Suite *check_sizes(void);
Suite *check_sizes(void) {
    Suite *suite = suite_create("sizes");
    TCase *tests = tcase_create("sizes");
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_loop_test(tests, one_tree_serves_two_lengths, 0, (int)(sizeof trees / sizeof *trees));
    tcase_add_loop_test(tests, kernels_agree_at_hard_sizes, 0, (int)(sizeof hard_sizes / sizeof *hard_sizes));
    int models = 0;
    while (model_list()[models]) models++;
    tcase_add_loop_test(tests, the_most_layers_are_built, 0, models);
    tcase_add_loop_test(tests, long_sequences_train_within_4_gigabytes, 0, models);
    tcase_add_test(tests, a_grid_is_fitted_to_the_image);
    suite_add_tcase(suite, tests);
    return suite;
}

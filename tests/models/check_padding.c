/* check_padding.c - what a sequence is told depends neither on what stands after its end nor on the length of the
 * graph that it lies in: logits, loss and gradients of every mixer, read out a sequence and a position, in both
 * directions.
 *
 * With the reference kernels bit for bit: they sum in double, one element after the other, so that rows after the end
 * add zeros. The tuned ones cut sums and tiles by the sizes of the graph and round otherwise. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/batch.h"
#include "core/graph_walk.h"
#include "kernels/move/move.h"
#include "tests/lib/layer.h"

enum { B = 3, V = 11, SHORT = 6, LONG = 8 };

static const int32_t lengths[B] = {1, 4, 6};

/* At width 16: structures that want a power of two, intervals whose ends fall before, at and after the ends of
 * sequences. */
static const char *const wide_models[] = {
    "slice:structure=hadamard",
    "slice:structure=hadamard,interval=2",
    "slice:structure=sparse,keep=0.4,interval=3",
    "slice:structure=dplr,rank=2,interval=4",
    "slice:structure=dense,interval=5,depth=2,dt=0.5",
    "slice:structure=diagonal,interval=7,flow=exp",
};
#define N_WIDE (int)(sizeof wide_models / sizeof *wide_models)

/* Small variants, then the wide ones. */
static const char *model_at(int i, int64_t *D) {
    int n = 0;
    while (small_models()[n]) n++;
    *D = i < n ? 12 : 16;
    return i < n ? small_models()[i] : i < n + N_WIDE ? wide_models[i - n] : NULL;
}

/* Parameters away from their start, where gates are closed and couplings the same everywhere; the same ones in every
 * graph. */
static void move_parameters(struct params *p) {
    for (int i = 0; i < p->n; i++)
        for (int64_t k = 0; k < p->list[i].count && p->list[i].spec.group != PARAM_CONST; k++)
            p->value[p->list[i].offset + k] += (real)(0.1 * sin((double)(k + 3 * i)));
}

/* Fills in the same strings and targets in any graph, and other values after their ends in each. */
static void fill(struct trial *t, uint64_t pads) {
    int64_t T = t->net.input->dims[1], per = t->net.targets->dims[1];
    for (int64_t b = 0; b < B; b++) {
        tensor_i32(t->net.lengths)[b] = lengths[b];
        for (int64_t i = 0; i < T; i++) {
            struct rng real_one = rng_at(17, STREAM_DATA, (uint64_t)(100 * b + i));
            struct rng pad = rng_at(pads, STREAM_DATA, (uint64_t)(100 * b + i));
            bool inside = i < lengths[b];
            tensor_i32(t->net.input)[b * T + i] = (int32_t)rng_below(inside ? &real_one : &pad, V);
            if (i < per) tensor_i32(t->net.targets)[b * per + i] = inside ? (int32_t)rng_below(&real_one, V) : IGNORED;
        }
    }
}

static void open_and_walk(struct trial *t, const struct trial_shape *s, int64_t T, uint64_t pads) {
    struct trial_shape shape = *s;
    shape.T = T;
    trial_open(t, &shape, 5);
    move_parameters(&t->params);
    fill(t, pads);
    graph_forward(&t->graph, &t->state);
    graph_backward(&t->graph, &t->state);
}

/* Compares values for equality (0 is -0), or with a bound within the bound of the largest one. */
static void expect_equal(const real *got, const real *want, int64_t n, double bound, const char *what) {
    if (bound > 0) {
        expect_close(got, want, n, bound, what);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        if (!(got[i] == want[i]))
            ck_abort_msg("%s: element %lld of %lld is %.17g and %.17g", what, (long long)i, (long long)n,
                         (double)got[i], (double)want[i]);
}

static void expect_same_labels(const struct trial *a, const struct trial *b, const struct trial_shape *s,
                               double bound) {
    char what[256];
    snprintf(what, sizeof what, "%s (backbone %d, pool %d, read-out %d, both ways %d, %s)", s->model, s->kind, s->pool,
             (int)s->readout, s->bidirectional, s->kernel);
    int64_t in_a = a->net.targets->dims[1], in_b = b->net.targets->dims[1];
    for (int64_t i = 0; i < B; i++)
        expect_equal(tensor_real(b->net.logits) + i * in_b * V, tensor_real(a->net.logits) + i * in_a * V,
                     V * (in_a == 1 ? 1 : lengths[i]), bound, what);
    expect_equal(tensor_real(b->graph.root), tensor_real(a->graph.root), 1, bound, what);
    ck_assert_int_eq(a->params.n, b->params.n);
    for (int i = 0; i < a->params.n; i++) {
        const struct param *p = &a->params.list[i], *q = &b->params.list[i];
        ck_assert_msg(!strcmp(p->name, q->name) && p->count == q->count, "%s: %s has another size in a longer graph",
                      what, p->name);
        if (p->spec.group == PARAM_CONST) continue;
        snprintf(what, sizeof what, "%.150s: gradient of %.80s", s->model, p->name);
        expect_equal(b->params.grad + q->offset, a->params.grad + p->offset, p->count, bound, what);
    }
}

/* Other pads, then a longer graph. */
static void expect_pads_do_not_matter(const struct trial_shape *s, double bound) {
    struct trial plain, other;
    open_and_walk(&plain, s, SHORT, 1);
    open_and_walk(&other, s, SHORT, 2);
    expect_same_labels(&plain, &other, s, 0);
    trial_close(&other);
    open_and_walk(&other, s, LONG, 3);
    expect_same_labels(&plain, &other, s, bound);
    trial_close(&other);
    trial_close(&plain);
}

START_TEST(labels_depend_neither_on_pads_nor_on_the_length_of_the_graph) {
    static const enum readout readouts[] = {READOUT_SEQUENCE, READOUT_SEQUENCE, READOUT_SEQUENCE, READOUT_POSITIONS};
    struct trial_shape s = {.B = B, .V = V, .layers = 2, .mlp = MLP_SWIGLU};
    struct model_choice choice;
    s.model = model_at(_i, &s.D);
    ck_assert_int_eq(model_parse(&choice, s.model, NULL), ST_OK);
    for (int variant = 0; variant < 2 * 2 * 4; variant++) {
        s.kind = variant % 2 ? BACKBONE_S5 : BACKBONE_MAD_LM;
        s.bidirectional = variant / 2 % 2;
        s.pool = variant / 4 % 3; /* last, mean, top; corners are an image's */
        s.readout = readouts[variant / 4];
        if (s.pool == FROM_ROOT && !choice.model->nodes) s.pool = FROM_MEAN;
        s.kernel = "reference";
        expect_pads_do_not_matter(&s, 0);
        s.kernel = "";
        expect_pads_do_not_matter(&s, 256 * REAL_EPSILON);
    }
}
END_TEST

/* Nothing bounds these states: after a sequence's end they would overflow, and 0 times infinity is in no gradient. */
static const char *const unbounded[] = {
    "bdlru:m=2,blocks=3,gate=none,gate-init=20", "hlru:m=2,channels=3,gate=none,gate-init=20",
    "bdlru:m=2,blocks=3,gate=none,selective=no", "slice:block=4,clip=0,dt=20",
    "slice:structure=diagonal,clip=0,dt=20",     "slice:structure=diagonal,clip=0,dt=20,table=yes"};
#define N_UNBOUNDED (int)(sizeof unbounded / sizeof *unbounded)

START_TEST(states_that_nothing_bounds_end_with_their_sequence) {
    struct trial_shape s = {.B = B, .V = V, .D = 12, .layers = 1, .mlp = MLP_SWIGLU, .model = unbounded[_i]};
    s.readout = READOUT_SEQUENCE;
    s.pool = FROM_MEAN;
    if (strstr(s.model, "table=yes")) s.kind = BACKBONE_SLICE;
    for (int tuned = 0; tuned < 2; tuned++) {
        struct trial plain, other;
        s.kernel = tuned ? "" : "reference";
        open_and_walk(&plain, &s, SHORT, 1);
        open_and_walk(&other, &s, 600, 3);
        ck_assert(isfinite(*tensor_real(plain.graph.root)));
        expect_same_labels(&plain, &other, &s, 256 * REAL_EPSILON);
        trial_close(&other);
        trial_close(&plain);
    }
}
END_TEST

static void open_grid(struct trial *t, const char *model, int64_t T) {
    struct trial_shape s = {.B = B, .T = T, .V = V, .D = 12, .layers = 2, .model = model, .kernel = "reference"};
    s.readout = READOUT_SEQUENCE;
    s.pool = FROM_MEAN;
    open_and_walk(t, &s, T, 7);
}

static const struct {
    const char *given, *grown;
    int64_t nodes, T;
} grids[] = {{"plstm2d:heads=2,height=3,width=4", "plstm2d:heads=2,width=4", 12, 10},
             {"plstm2d:heads=2,height=3,width=4,mode=D", "plstm2d:heads=2,width=4,mode=D", 12, 9},
             {"plstm2d:heads=2,height=4,width=3,form=ref", "plstm2d:heads=2,width=3,form=ref", 12, 7}};

/* A node without a token has gates of 0, the same as none: in a grid of given sides, in one that grows with its tokens,
 * and in each sequence's own, wherever it has the sides that were given. */
START_TEST(missing_nodes_of_a_grid_are_as_beyond_its_edge) {
    struct trial given, grown;
    open_grid(&given, grids[_i].given, grids[_i].nodes);
    open_grid(&grown, grids[_i].grown, grids[_i].T);
    expect_equal(tensor_real(grown.net.logits), tensor_real(given.net.logits), B * V, 0, grids[_i].given);
    for (int64_t i = 0; i < given.params.floats; i++)
        if (!(given.params.grad[i] == grown.params.grad[i])) ck_abort_msg("gradient %lld differs", (long long)i);
    trial_close(&grown);
    trial_close(&given);
    struct layer own, sides; /* twelve tokens make a grid of 3 x 4 */
    layer_open(&own, "plstm2d:heads=2", 12, 12);
    layer_open(&sides, "plstm2d:heads=2,height=3,width=4", 12, 12);
    layer_run(&own);
    layer_run(&sides);
    expect_same_bits(own.y->data, sides.y->data, tensor_count(own.y), "a grid of the sequence's own");
    layer_close(&own);
    layer_close(&sides);
}
END_TEST

Suite *check_padding(void);
Suite *check_padding(void) {
    Suite *suite = suite_create("padding");
    TCase *tests = tcase_create("padding");
    int models = 0;
    int64_t D;
    while (model_at(models, &D)) models++;
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_loop_test(tests, labels_depend_neither_on_pads_nor_on_the_length_of_the_graph, 0, models);
    tcase_add_loop_test(tests, states_that_nothing_bounds_end_with_their_sequence, 0, N_UNBOUNDED);
    tcase_add_loop_test(tests, missing_nodes_of_a_grid_are_as_beyond_its_edge, 0, (int)(sizeof grids / sizeof *grids));
    suite_add_tcase(suite, tests);
    return suite;
}

/* check_matrix_state.c - properties of the matrix-state recurrences and of what surrounds them, of every kernel. */
#include <math.h>
#include <string.h>

#include "core/graph_walk.h"
#include "kernels/matrix/matrix.h"
#include "kernels/token/token.h"
#include "models/matrix/matrix_state.h"
#include "tests/lib/support.h"

static const char *const kernels[] = {"reference", ""};
static const char *const delta_kernels[] = {"reference", "scan_delta_cpu", "scan_delta_chunk"};
static const char *const outer_kernels[] = {"reference", "scan_outer_cpu", "scan_outer_chunk", "scan_outer_long"};

static void walk(struct graph *g) {
    struct step_state state = first_state();
    graph_forward(g, &state);
}

static struct tensor *rows4(struct graph *g, const char *name, int64_t B, int64_t T, int64_t H, int64_t d) {
    return graph_input(g, name, 4, (int64_t[]){B, T, H, d}, true);
}

/* --- scan_delta --------------------------------------------------------------------------------------------------- */

/* One head, scale 1, rate 1. */
struct delta {
    struct graph g;
    struct tensor *q, *k, *v, *beta, *decay, *o, *kept;
};

static void delta_open(struct delta *d, const char *kernel, int64_t B, int64_t T, int64_t steps, int64_t dk, int64_t dv,
                       bool decay) {
    struct delta_attr attr = {.heads = 1, .steps = steps, .scale = 1, .rate = 1};
    *d = (struct delta){0};
    open_graph(&d->g, NULL, false, true, kernel);
    d->q = rows4(&d->g, "q", B, T, 1, dk);
    d->k = rows4(&d->g, "k", B, T, steps, dk);
    d->v = rows4(&d->g, "v", B, T, steps, dv);
    d->beta = rows4(&d->g, "beta", B, T, steps, 1);
    d->decay = decay ? rows4(&d->g, "decay", B, T, 1, 1) : NULL;
    struct delta_gates gates = {.beta = d->beta, .decay = d->decay};
    d->o = scan_delta(&d->g, d->q, d->k, d->v, &gates, &attr);
    d->kept = d->g.calls[0].out[1];
    tensor_keep(d->o);
    tensor_keep(d->kept);
    plan_graph(&d->g);
    fill_inputs(&d->g, FILL_SMALL, false);
    for (int64_t r = 0; r < tensor_rows(d->k); r++) { /* keys of length 1, beta in (0,2) */
        real *k = tensor_real(d->k) + r * dk, squares = 0;
        for (int64_t i = 0; i < dk; i++) squares += k[i] * k[i];
        for (int64_t i = 0; i < dk; i++) k[i] /= (real)sqrt((double)squares);
        tensor_real(d->beta)[r] = 1 + tensor_real(d->beta)[r];
    }
}

/* Writes the same key, query and value into token t; NULL: a value of 0. */
static void set_token(struct delta *d, int64_t t, const real *key, const real *value, real beta) {
    int64_t dk = tensor_cols(d->k), dv = tensor_cols(d->v);
    memcpy(tensor_real(d->k) + t * dk, key, sizeof(real) * (size_t)dk);
    memcpy(tensor_real(d->q) + t * dk, key, sizeof(real) * (size_t)dk);
    memset(tensor_real(d->v) + t * dv, 0, sizeof(real) * (size_t)dv);
    if (value) memcpy(tensor_real(d->v) + t * dv, value, sizeof(real) * (size_t)dv);
    tensor_real(d->beta)[t] = beta;
}

/* beta = 1 overwrites what the key held; beta = 2 with value 0 reflects it, and twice restores it; beta = 0 leaves
 * it. */
START_TEST(beta_overwrites_and_reflects) {
    struct delta d;
    delta_open(&d, delta_kernels[_i], 1, 40, 1, 5, 3, false);
    real key[5] = {(real)0.6, 0, (real)-0.8, 0, 0}, first[3] = {1, 2, -3}, second[3] = {(real)0.5, -1, 4}, minus[3];
    for (int j = 0; j < 3; j++) minus[j] = -second[j];
    set_token(&d, 33, key, first, 1);
    set_token(&d, 34, key, second, 1);
    set_token(&d, 35, key, NULL, 2);
    set_token(&d, 36, key, NULL, 2);
    set_token(&d, 37, key, first, 0);
    walk(&d.g);
    const real *o = d.o->data;
    expect_close(o + 33 * 3, first, 3, 32 * REAL_EPSILON, "value read back");
    expect_close(o + 34 * 3, second, 3, 32 * REAL_EPSILON, "value overwritten");
    expect_close(o + 35 * 3, minus, 3, 32 * REAL_EPSILON, "value reflected");
    expect_close(o + 36 * 3, second, 3, 32 * REAL_EPSILON, "value reflected twice");
    expect_close(o + 37 * 3, second, 3, 32 * REAL_EPSILON, "value left alone");
    graph_free(&d.g);
}
END_TEST

/* ||S_t|| <= ||S_{t-1}|| + sum beta ||v|| in the Frobenius norm, over the 16 tokens between two kept states. */
START_TEST(state_grows_by_the_values_at_most) {
    struct delta d;
    int64_t T = 113, dk = 6, dv = 5, steps = 2;
    delta_open(&d, delta_kernels[_i], 1, T, steps, dk, dv, false);
    walk(&d.g);
    double before = 0;
    for (int64_t chunk = 0; chunk < d.kept->dims[1]; chunk++) {
        double norm = 0, allowed = before;
        for (int64_t i = 0; i < dk * dv; i++) norm += pow(tensor_real(d.kept)[chunk * dk * dv + i], 2);
        for (int64_t r = (chunk - 1) * 16 * steps; chunk > 0 && r < chunk * 16 * steps; r++) {
            double squares = 0;
            for (int64_t j = 0; j < dv; j++) squares += pow(tensor_real(d.v)[r * dv + j], 2);
            allowed += tensor_real(d.beta)[r] * sqrt(squares);
        }
        ck_assert_msg(sqrt(norm) <= allowed * (1 + 1e-5), "chunk %lld: norm %g, allowed %g", (long long)chunk,
                      sqrt(norm), allowed);
        ck_assert(chunk == 0 || norm > 0);
        before = sqrt(norm);
    }
    graph_free(&d.g);
}
END_TEST

/* n steps per token are n tokens of one step each, read at every n-th. */
START_TEST(steps_are_tokens) {
    struct delta many, one;
    int64_t T = 37, n = 3, dk = 4, dv = 7;
    delta_open(&many, delta_kernels[_i], 2, T, n, dk, dv, false);
    delta_open(&one, delta_kernels[_i], 2, T * n, 1, dk, dv, false);
    memcpy(one.k->data, many.k->data, tensor_bytes(one.k));
    memcpy(one.v->data, many.v->data, tensor_bytes(one.v));
    memcpy(one.beta->data, many.beta->data, tensor_bytes(one.beta));
    for (int64_t r = 0; r < 2 * T * n; r++)
        memcpy(tensor_real(one.q) + r * dk, tensor_real(many.q) + r / n * dk, sizeof(real) * (size_t)dk);
    walk(&many.g);
    walk(&one.g);
    for (int64_t r = 0; r < 2 * T; r++)
        expect_close(tensor_real(many.o) + r * dv, tensor_real(one.o) + (r * n + n - 1) * dv, dv, 16 * REAL_EPSILON,
                     "o");
    graph_free(&many.g);
    graph_free(&one.g);
}
END_TEST

/* Decay 1 changes nothing; decay 0 forgets all that was. */
START_TEST(decay_keeps_or_forgets) {
    struct delta with, without, late;
    int64_t T = 35, cut = 20, dk = 4, dv = 3;
    delta_open(&with, delta_kernels[_i], 1, T, 1, dk, dv, true);
    delta_open(&without, delta_kernels[_i], 1, T, 1, dk, dv, false);
    delta_open(&late, delta_kernels[_i], 1, T - cut, 1, dk, dv, false);
    for (int64_t t = 0; t < T; t++) tensor_real(with.decay)[t] = 1;
    walk(&with.g);
    walk(&without.g);
    expect_close(with.o->data, without.o->data, T * dv, 4 * REAL_EPSILON, "o with decay 1");
    tensor_real(with.decay)[cut] = 0;
    memcpy(late.q->data, tensor_real(with.q) + cut * dk, tensor_bytes(late.q));
    memcpy(late.k->data, tensor_real(with.k) + cut * dk, tensor_bytes(late.k));
    memcpy(late.v->data, tensor_real(with.v) + cut * dv, tensor_bytes(late.v));
    memcpy(late.beta->data, tensor_real(with.beta) + cut, tensor_bytes(late.beta));
    walk(&with.g);
    walk(&late.g);
    expect_close(tensor_real(with.o) + cut * dv, late.o->data, (T - cut) * dv, 4 * REAL_EPSILON, "o after decay 0");
    graph_free(&with.g);
    graph_free(&without.g);
    graph_free(&late.g);
}
END_TEST

/* --- scan_outer --------------------------------------------------------------------------------------------------- */

struct outer {
    struct graph g;
    struct tensor *q, *k, *v, *o;
    struct outer_gates gates;
};

static void outer_open(struct outer *x, const char *kernel, int64_t B, int64_t T, int64_t H, int64_t G, bool mark) {
    *x = (struct outer){0};
    open_graph(&x->g, NULL, false, true, kernel);
    x->q = rows4(&x->g, "q", B, T, G, 3);
    x->k = rows4(&x->g, "k", B, T, G, 3);
    x->v = rows4(&x->g, "v", B, T, H, 5);
    x->gates.decay = rows4(&x->g, "decay", B, T, H, 1);
    x->gates.source = rows4(&x->g, "source", B, T, H, 1);
    x->gates.mark = mark ? rows4(&x->g, "mark", B, T, H, 1) : NULL;
    x->gates.direct = mark ? rows4(&x->g, "direct", B, T, H, 1) : NULL;
    x->o = scan_outer(&x->g, x->q, x->k, x->v, &x->gates, H, G, 0.7);
    tensor_keep(x->o);
    plan_graph(&x->g);
    fill_inputs(&x->g, FILL_SMALL, false);
}

static double gate_of(const struct tensor *gate, int64_t H, int64_t t, int64_t h) {
    return tensor_real(gate)[t * H + h];
}

/* Transitions as tanh gives them: 0 forgets, at the edge of a chunk and inside; -1 turns the sign. */
static void hard_decays(struct outer *x, int64_t H) {
    static const struct {
        int64_t t;
        real decay;
    } set[] = {{5, 0}, {11, -1}, {15, 0}, {16, 0}, {20, -1}, {21, -1}, {31, -1}, {32, 1}, {47, 0}, {63, -1}, {64, 0}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        for (int64_t h = 0; h < H; h++)
            if ((h + (int64_t)i) % 3) tensor_real(x->gates.decay)[set[i].t * H + h] = set[i].decay;
}

/* o = scale ((q k^T) o Gate) v with Gate[n][m] = M_n T_{n-1} ... T_{m+1} S_m below the diagonal and D_n on it. */
START_TEST(outer_state_is_gated_attention) {
    struct outer x;
    int64_t T = 83, H = 4, G = 2;
    outer_open(&x, outer_kernels[_i], 1, T, H, G, true);
    hard_decays(&x, H);
    walk(&x.g);
    for (int64_t h = 0; h < H; h++)
        for (int64_t n = 0; n < T; n++) {
            real want[5];
            double sum[5] = {0}, through = 1;
            for (int64_t m = n; m >= 0; m--) {
                double qk = 0, gate = gate_of(x.gates.direct, H, n, h);
                if (m < n) gate = gate_of(x.gates.mark, H, n, h) * through * gate_of(x.gates.source, H, m, h);
                if (m < n) through *= gate_of(x.gates.decay, H, m, h);
                for (int i = 0; i < 3; i++)
                    qk += (double)tensor_real(x.q)[(n * G + h / 2) * 3 + i] * tensor_real(x.k)[(m * G + h / 2) * 3 + i];
                for (int j = 0; j < 5; j++) sum[j] += 0.7 * gate * qk * tensor_real(x.v)[(m * H + h) * 5 + j];
            }
            for (int j = 0; j < 5; j++) want[j] = (real)sum[j];
            expect_close(tensor_real(x.o) + (n * H + h) * 5, want, 5, 16 * REAL_EPSILON, "o");
        }
    graph_free(&x.g);
}
END_TEST

/* Reading after the update is mark = decay and direct = source. */
START_TEST(reading_after_the_update_is_a_choice_of_gates) {
    struct outer after, before;
    int64_t T = 71;
    outer_open(&after, outer_kernels[_i], 2, T, 3, 1, false);
    outer_open(&before, outer_kernels[_i], 2, T, 3, 1, true);
    struct tensor *pairs[][2] = {{before.q, after.q},
                                 {before.k, after.k},
                                 {before.v, after.v},
                                 {before.gates.decay, after.gates.decay},
                                 {before.gates.mark, after.gates.decay},
                                 {before.gates.source, after.gates.source},
                                 {before.gates.direct, after.gates.source}};
    for (int i = 0; i < 7; i++) memcpy(pairs[i][0]->data, pairs[i][1]->data, tensor_bytes(pairs[i][0]));
    walk(&after.g);
    walk(&before.g);
    expect_close(after.o->data, before.o->data, tensor_count(after.o), 4 * REAL_EPSILON, "o");
    graph_free(&after.g);
    graph_free(&before.g);
}
END_TEST

/* --- choice of kernels -------------------------------------------------------------------------------------------- */

static void expect_kernel(const struct graph *g, const char *name) {
    ck_assert_str_eq(g->calls[0].kernel->name, name);
}

/* Chunks are for sequences and states that fill them; who is named computes whatever the size. */
START_TEST(size_chooses_the_kernel) {
    static const struct {
        int64_t T, d;
        bool named, chunk;
    } cases[] = {{2, 32, false, false}, {64, 32, false, true}, {64, 2, false, false}, {2, 2, true, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct delta x;
        delta_open(&x, cases[i].named ? "scan_delta_chunk" : "", 1, cases[i].T, 1, cases[i].d, cases[i].d, false);
        expect_kernel(&x.g, cases[i].chunk ? "scan_delta_chunk" : "scan_delta_cpu");
        graph_free(&x.g);
    }
    struct outer y;
    outer_open(&y, "", 1, 67, 2, 1, true); /* 3 x 5 states */
    expect_kernel(&y.g, "scan_outer_cpu");
    graph_free(&y.g);
    outer_open(&y, "scan_outer_long", 1, 1, 2, 1, true);
    expect_kernel(&y.g, "scan_outer_long");
    graph_free(&y.g);
    outer_open(&y, "scan_outer_chunk", 1, 1, 2, 1, true);
    expect_kernel(&y.g, "scan_outer_chunk");
    graph_free(&y.g);
}
END_TEST

/* A token of more steps than a chunk has rows is beyond the chunkwise kernel, which says so when it is forced. */
START_TEST(too_many_steps_are_not_chunked) {
    struct delta x;
    struct graph g;
    struct error e = {0};
    delta_open(&x, "", 1, 8, 17, 64, 64, false);
    expect_kernel(&x.g, "scan_delta_cpu");
    graph_free(&x.g);
    open_graph(&g, NULL, false, true, "scan_delta_chunk");
    struct delta_attr attr = {.heads = 1, .steps = 17, .scale = 1, .rate = 1};
    struct delta_gates gates = {.beta = rows4(&g, "beta", 1, 2, 17, 1)};
    scan_delta(&g, rows4(&g, "q", 1, 2, 1, 4), rows4(&g, "k", 1, 2, 17, 4), rows4(&g, "v", 1, 2, 17, 4), &gates, &attr);
    ck_assert_int_eq(graph_plan(&g, &e), ST_USAGE);
    ck_assert_msg(strstr(e.text, "scan_delta_chunk does not apply: a token has more than 16 steps"), "%s", e.text);
    graph_free(&g);
}
END_TEST

/* --- convolution -------------------------------------------------------------------------------------------------- */

/* An impulse at token s gives the kernel backwards from s on, in its channel and sequence alone. */
START_TEST(impulse_gives_the_kernel) {
    struct graph g;
    int64_t T = 13, C = 3, m = 6, s = 4;
    open_graph(&g, NULL, false, true, kernels[_i]);
    struct tensor *x = input3(&g, "x", 2, T, C, true), *w = input3(&g, "w", C, m, 0, true);
    struct tensor *y = conv_depthwise(&g, x, w, NULL);
    tensor_keep(y);
    plan_graph(&g);
    fill_inputs(&g, FILL_SMALL, false);
    memset(x->data, 0, tensor_bytes(x));
    tensor_real(x)[(T + s) * C + 1] = 1;
    walk(&g);
    for (int64_t r = 0; r < 2 * T; r++)
        for (int64_t c = 0; c < C; c++) {
            int64_t later = r - T - s;
            bool hit = c == 1 && later >= 0 && later < m;
            ck_assert_double_eq(tensor_real(y)[r * C + c], hit ? tensor_real(w)[(m - 1 - later) * C + c] : 0);
        }
    graph_free(&g);
}
END_TEST

/* --- mixers ------------------------------------------------------------------------------------------------------- */

/* Mamba2 draws A in (1, 16] and Delta in [0.001, 0.1]: every decay starts in (0, 1). */
START_TEST(time_constants_start_in_range) {
    struct trial t;
    struct trial_shape s = {.model = "mamba2:state=2,headdim=1", .B = 1, .T = 2, .V = 5, .D = 64, .layers = 1};
    trial_open(&t, &s, 7);
    const struct param *rate = params_find(&t.params, "layers.0.mixer.A.log");
    const struct param *step = params_find(&t.params, "layers.0.mixer.dt.bias");
    ck_assert_ptr_nonnull(rate);
    ck_assert_ptr_nonnull(step);
    for (int64_t i = 0; i < 128; i++) {
        double A = exp((double)t.params.value[rate->offset + i]),
               dt = log1p(exp((double)t.params.value[step->offset + i]));
        ck_assert_msg(A >= 1 - 1e-6 && A <= 16 + 1e-5, "A is %g", A);
        ck_assert_msg(dt >= 0.001 * (1 - 1e-4) && dt <= 0.1 * (1 + 1e-4), "Delta is %g", dt);
    }
    trial_close(&t);
}
END_TEST

/* exp(89) is infinite in float, exp(-92) of a step is not zero there: their product is exp(-3). */
START_TEST(a_large_rate_of_a_small_step_is_a_decay) {
    struct params params = {0};
    struct graph g;
    struct error e;
    ck_assert_int_eq(params_create(&params, &e), ST_OK);
    open_graph(&g, &params, true, true, "");
    struct tensor *x = input3(&g, "x", 1, 2, 2, true), *raw, *delta = time_step(&g, x, &raw);
    struct tensor *decay = time_decay(&g, delta, raw, 1);
    tensor_keep(decay);
    ck_assert_int_eq(params_reserve(&params, true, &e), ST_OK);
    plan_graph(&g);
    memset(x->data, 0, tensor_bytes(x));
    real *rate = params.value + params_find(&params, "A.log")->offset;
    real *step = params.value + params_find(&params, "dt.bias")->offset;
    rate[0] = 89, rate[1] = 0;
    step[0] = -92, step[1] = 0;
    walk(&g);
    expect_near(tensor_real(decay)[0], exp(-exp(-3)), 1e-5, "exp(-exp(89) softplus(-92))");
    expect_near(tensor_real(decay)[1], 0.5, 2 * REAL_EPSILON, "exp(-exp(0) softplus(0))");
    graph_free(&g);
    params_free(&params);
}
END_TEST

START_TEST(misfits_name_both_numbers) {
    static const struct {
        const char *model, *first, *second;
    } bad[] = {{"deltanet:heads=5", "5", "12"},
               {"deltaproduct:heads=7", "7", "12"},
               {"mamba2:headdim=5", "5", "24"},
               {"mamba2:headdim=7,expand=3", "7", "36"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct model_choice choice;
        struct error e = {0};
        struct dims d = {.B = 2, .T = 6, .D = 12};
        ck_assert_int_eq(model_parse(&choice, bad[i].model, &e), ST_OK);
        ck_assert_int_eq(choice.model->check(choice.inst, &d, &e), ST_USAGE);
        ck_assert_msg(strstr(e.text, bad[i].first) && strstr(e.text, bad[i].second), "%s", e.text);
    }
}
END_TEST

/* --- kept states -------------------------------------------------------------------------------------------------- */

/* Kernels that write the states which forward keeps past the caches, if they are many. */
static const struct {
    const char *kernel;
    bool delta;
} past_caches[] = {{"scan_outer_long", false}, {"scan_delta_chunk", true}, {"scan_delta_vector", true}};

/* One head of 16 x 16 for B sequences, with the gradients of all inputs. */
static void past_caches_open(struct graph *g, int i, int64_t B, int64_t T) {
    int64_t dims[] = {B, T, 1, 16};
    open_graph(g, NULL, true, true, past_caches[i].kernel);
    struct tensor *q = graph_input(g, "q", 4, dims, true), *k = graph_input(g, "k", 4, dims, true);
    struct tensor *v = graph_input(g, "v", 4, dims, true), *decay = rows4(g, "decay", B, T, 1, 1);
    struct delta_attr attr = {.heads = 1, .steps = 1, .scale = 1, .rate = (real)0.25};
    struct delta_gates delta = {.beta = past_caches[i].delta ? rows4(g, "beta", B, T, 1, 1) : NULL, .decay = decay};
    struct outer_gates outer = {.decay = decay};
    if (past_caches[i].delta)
        scan_delta(g, q, k, v, &delta, &attr);
    else
        scan_outer(g, q, k, v, &outer, 1, 1, 1);
    for (int o = 0; o < 2; o++) tensor_keep(g->calls[0].out[o]);
    plan_graph(g);
    fill_inputs(g, FILL_SMALL, false);
}

/* The states of 64 sequences of 2048 tokens take 8 MiB; those of a single sequence stay in the caches. */
START_TEST(states_written_past_the_caches_are_the_same) {
    struct graph many, one;
    int64_t B = 64;
    past_caches_open(&many, _i, B, 2048);
    past_caches_open(&one, _i, 1, 2048);
    walk(&many);
    for (int64_t b = 0; b < B; b += B - 1) {
        for (int i = 0; i < many.calls[0].n_in; i++)
            if (many.calls[0].in[i])
                memcpy(one.calls[0].in[i]->data,
                       (char *)many.calls[0].in[i]->data + (size_t)b * tensor_bytes(one.calls[0].in[i]),
                       tensor_bytes(one.calls[0].in[i]));
        walk(&one);
        for (int o = 0; o < 2; o++) {
            const struct tensor *own = one.calls[0].out[o], *all = many.calls[0].out[o];
            ck_assert_mem_eq((char *)all->data + (size_t)b * tensor_bytes(own), own->data, tensor_bytes(own));
        }
    }
    graph_free(&many);
    graph_free(&one);
}
END_TEST

Suite *check_matrix_state(void);
Suite *check_matrix_state(void) {
    Suite *suite = suite_create("matrix_state");
    TCase *tests = tcase_create("matrix_state");
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_loop_test(tests, beta_overwrites_and_reflects, 0, (int)(sizeof delta_kernels / sizeof *delta_kernels));
    tcase_add_loop_test(tests, state_grows_by_the_values_at_most, 0,
                        (int)(sizeof delta_kernels / sizeof *delta_kernels));
    tcase_add_loop_test(tests, steps_are_tokens, 0, (int)(sizeof delta_kernels / sizeof *delta_kernels));
    tcase_add_loop_test(tests, decay_keeps_or_forgets, 0, (int)(sizeof delta_kernels / sizeof *delta_kernels));
    tcase_add_loop_test(tests, outer_state_is_gated_attention, 0, (int)(sizeof outer_kernels / sizeof *outer_kernels));
    tcase_add_loop_test(tests, reading_after_the_update_is_a_choice_of_gates, 0,
                        (int)(sizeof outer_kernels / sizeof *outer_kernels));
    tcase_add_test(tests, size_chooses_the_kernel);
    tcase_add_test(tests, too_many_steps_are_not_chunked);
    tcase_add_loop_test(tests, impulse_gives_the_kernel, 0, (int)(sizeof kernels / sizeof *kernels));
    tcase_add_test(tests, time_constants_start_in_range);
    tcase_add_test(tests, a_large_rate_of_a_small_step_is_a_decay);
    tcase_add_test(tests, misfits_name_both_numbers);
    tcase_add_loop_test(tests, states_written_past_the_caches_are_the_same, 0,
                        (int)(sizeof past_caches / sizeof *past_caches));
    suite_add_tcase(suite, tests);
    return suite;
}

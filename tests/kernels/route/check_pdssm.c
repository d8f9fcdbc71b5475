/* check_pdssm.c - properties of PD-SSM: the group S5 by weights set by hand, what is left without a choice, and the
 * straight-through gradient of scan_route against one that is made of dense matrices and differences. */
#include <math.h>
#include <stdlib.h>

#include "core/graph_walk.h"
#include "kernels/route/route.h"
#include "tests/lib/layer.h"

static const char *const kernels[] = {"reference", ""};
static const char *const forms[] = {"row", "column"};
#define N_KERNELS (int)(sizeof kernels / sizeof *kernels)

/* --- mixers ------------------------------------------------------------------------------------------------------- */

/* In the contract's order; all zeros if there is no function. */
static void set(struct layer *l, const char *name, double (*value)(int64_t element)) {
    const struct param *p = params_find(&l->params, name);
    ck_assert_msg(p != NULL, "there is no parameter %s", name);
    double *contract = calloc((size_t)p->count, sizeof *contract);
    ck_assert_ptr_nonnull(contract);
    for (int64_t i = 0; value && i < p->count; i++) contract[i] = value(i);
    param_from_contract(p, contract, l->params.value + p->offset);
    free(contract);
}

enum { ORDER = 120, LETTERS = 5, GENERATORS = 2 };

/* Element `index` of S5 in lexicographic order; 0 is the identity. */
static void letters_of(int index, int letters[LETTERS]) {
    static const int below[] = {24, 6, 2, 1, 1};
    bool taken[LETTERS] = {false};
    for (int i = 0; i < LETTERS; index %= below[i], i++) {
        int skip = index / below[i], letter = 0;
        while (taken[letter] || skip-- > 0) letter++;
        taken[letter] = true;
        letters[i] = letter;
    }
}

static int element_of(const int letters[LETTERS]) {
    int tried[LETTERS];
    for (int index = 0; index < ORDER; index++) {
        int same = 0;
        letters_of(index, tried);
        for (int i = 0; i < LETTERS; i++) same += tried[i] == letters[i];
        if (same == LETTERS) return index;
    }
    ck_abort_msg("not a permutation");
}

/* The element after (1 2) or (1 2 3 4 5) has been applied to it. */
static int after(int element, int generator) {
    static const int images[GENERATORS][LETTERS] = {{1, 0, 2, 3, 4}, {1, 2, 3, 4, 0}};
    int letters[LETTERS];
    letters_of(element, letters);
    for (int i = 0; i < LETTERS; i++) letters[i] = images[generator][letters[i]];
    return element_of(letters);
}

static int next_of[ORDER][GENERATORS];

static double of_dict(int64_t e) {
    return next_of[e / GENERATORS % ORDER][e % GENERATORS] == e / (GENERATORS * ORDER);
}

static double of_select(int64_t e) {
    return e % (ORDER + 1) == 0 ? 10 : 0;
}

static double of_magnitude(int64_t e) {
    (void)e;
    return 40;
}

static double of_phase(int64_t e) {
    (void)e;
    return -100;
}

/* The first token alone has a 1 in input 2 or 3: it writes the element that its generator is. */
static double of_entry(int64_t e) {
    int64_t input = e % ORDER - GENERATORS;
    return input >= 0 && input < GENERATORS && next_of[0][input] == e / ORDER;
}

static double of_readout(int64_t e) {
    return e / (2 * ORDER) == e % (2 * ORDER);
}

static double of_C(int64_t e) {
    return e / ORDER == e % ORDER;
}

/* A state a group element, tokens the two generators: y is the one-hot vector of the product, without any error. */
START_TEST(hand_set_weights_track_S5_at_any_length) {
    enum { T = 150 };
    struct layer l;
    char model[64];
    bool row = _i == 0;
    for (int e = 0; e < ORDER; e++)
        for (int s = 0; s < GENERATORS; s++) next_of[e][s] = after(e, s);
    snprintf(model, sizeof model, "pdssm:dict=2,form=%s", forms[_i]);
    layer_open(&l, model, T, ORDER);
    for (int i = 0; i < l.params.n; i++) set(&l, l.params.list[i].name, NULL);
    set(&l, "select.weight", of_select);
    set(&l, "dict", of_dict);
    set(&l, row ? "magnitude.out.bias" : "magnitude.bias", of_magnitude);
    set(&l, row ? "phase.out.bias" : "phase.bias", of_phase);
    if (row) set(&l, "readout.weight", of_readout);
    if (!row) set(&l, "B.re", of_entry);
    if (!row) set(&l, "C.re", of_C);
    int want[2 * T];
    uint32_t noise = 2024;
    for (int64_t i = 0; i < 2 * T * ORDER; i++) tensor_real(l.x)[i] = 0;
    for (int64_t t = 0; t < 2 * T; t++) {
        noise = noise * 1664525u + 1013904223u;
        int generator = (int)(noise >> 31);
        want[t] = next_of[t % T ? want[t - 1] : 0][generator];
        tensor_real(l.x)[t * ORDER + generator] = 1;
        if (t % T == 0) tensor_real(l.x)[t * ORDER + GENERATORS + generator] = 1;
    }
    layer_run(&l);
    for (int64_t t = 0; t < 2 * T; t++)
        for (int64_t e = 0; e < ORDER; e++)
            expect_near(tensor_real(l.y)[t * ORDER + e], e == want[t] ? 1 : 0, 0, "one-hot product");
    layer_close(&l);
}
END_TEST

static double of_identity(int64_t e) {
    return e / 2 / 7 == e / 2 % 7;
}

START_TEST(without_a_choice_it_has_the_identity_in_its_dictionary) {
    enum { T = 37, D = 6 };
    struct layer chosen, fixed;
    char model[64];
    snprintf(model, sizeof model, "pdssm:state=7,dict=2,form=%s", forms[_i]);
    layer_open(&chosen, model, T, D);
    snprintf(model, sizeof model, "pdssm:state=7,permute=no,form=%s", forms[_i]);
    layer_open(&fixed, model, T, D);
    set(&chosen, "dict", of_identity);
    layer_run(&chosen);
    layer_run(&fixed);
    expect_same_bits(chosen.y->data, fixed.y->data, tensor_count(chosen.y), "y");
    layer_close(&chosen);
    layer_close(&fixed);
}
END_TEST

/* --- the straight-through gradient -------------------------------------------------------------------------------- */

enum { B = 2, T = 6, N = 5, K = 3 };

struct route_run {
    struct graph g;
    enum route_form form;
    struct tensor *d[2], *x[2], *dict, *s, *h[2];
};

static void route_open(struct route_run *r, enum route_form form, const char *kernel, int64_t states, int64_t terms) {
    r->form = form;
    open_graph(&r->g, NULL, true, true, kernel);
    r->d[0] = input3(&r->g, "d_re", B, T, states, true);
    r->d[1] = input3(&r->g, "d_im", B, T, states, true);
    r->x[0] = input3(&r->g, "x_re", B, T, states, true);
    r->x[1] = input3(&r->g, "x_im", B, T, states, true);
    r->dict = input3(&r->g, "dict", states, states, terms, true);
    r->s = input3(&r->g, "s", B, T, terms, true);
    r->h[0] = scan_route(&r->g, form, r->d, r->x, r->dict, r->s, &r->h[1]);
    tensor_keep(r->h[1]);
}

static double at(const struct tensor *x, int64_t b, int64_t t, int64_t i) {
    return tensor_real(x)[(b * x->dims[1] + t) * x->dims[2] + i];
}

/* Entry k of the dictionary for the state `chooser` and the one that it may choose. */
static int64_t entry(int64_t chooser, int64_t choice, int64_t k) {
    return (choice * K + k) * N + chooser;
}

/* M of a token, [chooser][choice]. */
static void scores(const struct route_run *r, int64_t b, int64_t t, double M[N][N]) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            M[i][j] = 0;
            for (int k = 0; k < K; k++) M[i][j] += tensor_real(r->dict)[entry(i, j, k)] * at(r->s, b, t, k);
        }
}

/* sum over tokens of Re h by those weights in h[0]->grad, by dense matrices P (T,[chooser][choice]). */
static double dense_loss(const struct route_run *r, int64_t b, double P[T][N][N]) {
    double h[N][2] = {{r->form == ROUTE_ROW, 0}}, loss = 0;
    for (int t = 0; t < T; t++) {
        double next[N][2] = {{0}};
        for (int m = 0; m < N; m++)
            for (int n = 0; n < N; n++) {
                int diagonal = r->form == ROUTE_ROW ? m : n;
                double p = r->form == ROUTE_ROW ? P[t][m][n] : P[t][n][m];
                double re = at(r->d[0], b, t, diagonal), im = at(r->d[1], b, t, diagonal);
                next[m][0] += p * (re * h[n][0] - im * h[n][1]);
                next[m][1] += p * (re * h[n][1] + im * h[n][0]);
            }
        for (int m = 0; m < N; m++)
            for (int plane = 0; plane < 2; plane++) {
                h[m][plane] = next[m][plane] + at(r->x[plane], b, t, m);
                loss += h[m][plane] * (plane ? cos(m + 2 * t) : sin(3 * m + t));
            }
    }
    return loss;
}

/* d loss / dP by differences, which are exact, for a loss has no square of an entry; the softmax's Jacobian then leads
 * to the dictionary and to s. */
START_TEST(the_choice_has_the_gradient_of_a_softmax) {
    struct route_run r;
    double ddict[N * N * K] = {0}, ds[B * T * K] = {0};
    route_open(&r, _i % 2 ? ROUTE_COLUMN : ROUTE_ROW, kernels[_i / 2], N, K);
    struct tensor *w[2] = {input3(&r.g, "w_re", B, T, N, false), input3(&r.g, "w_im", B, T, N, false)};
    graph_set_root(&r.g, dot(&r.g, r.h[1], w[1], dot(&r.g, r.h[0], w[0], NULL)));
    plan_graph(&r.g);
    fill_inputs(&r.g, FILL_SMALL, false);
    for (int b = 0; b < B; b++)
        for (int t = 0; t < T; t++)
            for (int m = 0; m < N; m++) {
                tensor_real(w[0])[(b * T + t) * N + m] = (real)sin(3 * m + t);
                tensor_real(w[1])[(b * T + t) * N + m] = (real)cos(m + 2 * t);
            }
    struct step_state state = first_state();
    graph_forward(&r.g, &state);
    graph_backward(&r.g, &state);
    for (int b = 0; b < B; b++) {
        double P[T][N][N] = {{{0}}}, M[N][N];
        for (int t = 0; t < T; t++) {
            scores(&r, b, t, M);
            for (int i = 0; i < N; i++) {
                int top = 0;
                for (int j = 1; j < N; j++) top = M[i][j] > M[i][top] ? j : top;
                P[t][i][top] = 1;
            }
        }
        for (int t = 0; t < T; t++) {
            scores(&r, b, t, M);
            for (int i = 0; i < N; i++) {
                double p[N], dP[N], sum = 0;
                for (int j = 0; j < N; j++) {
                    double before = P[t][i][j];
                    P[t][i][j] = before + 1;
                    dP[j] = dense_loss(&r, b, P);
                    P[t][i][j] = before - 1;
                    dP[j] = (dP[j] - dense_loss(&r, b, P)) / 2;
                    P[t][i][j] = before;
                    sum += p[j] = exp(M[i][j]);
                }
                for (int j = 0; j < N; j++) {
                    double dM = 0;
                    for (int l = 0; l < N; l++) dM += dP[l] * p[l] / sum * ((l == j) - p[j] / sum);
                    for (int k = 0; k < K; k++) {
                        ddict[entry(i, j, k)] += dM * at(r.s, b, t, k);
                        ds[(b * T + t) * K + k] += dM * tensor_real(r.dict)[entry(i, j, k)];
                    }
                }
            }
        }
    }
    for (int64_t e = 0; e < N * N * K; e++) expect_near(r.dict->grad[e], ddict[e], 256 * REAL_EPSILON, "ddict");
    for (int64_t e = 0; e < B * T * K; e++) expect_near(r.s->grad[e], ds[e], 256 * REAL_EPSILON, "ds");
    graph_free(&r.g);
}
END_TEST

/* Each entry has the terms of the others in another order, so that scores differ by rounding at most. */
START_TEST(twins_choose_alike_where_scores_are_nearly_equal) {
    enum { STATES = 37, TERMS = 11 };
    struct route_run r[2];
    for (int i = 0; i < 2; i++) {
        route_open(&r[i], _i ? ROUTE_COLUMN : ROUTE_ROW, kernels[i], STATES, TERMS);
        graph_set_root(&r[i].g, r[i].h[0]);
        plan_graph(&r[i].g);
        fill_inputs(&r[i].g, FILL_SMALL, false);
        for (int64_t e = 0; e < STATES * STATES * TERMS; e++) {
            int64_t choice = e / (STATES * TERMS), k = e / STATES % TERMS;
            tensor_real(r[i].dict)[e] = (real)(1 / (double)(1 + (k * (1 + choice % (TERMS - 1)) + choice) % TERMS));
        }
        for (int64_t e = 0; e < B * T * TERMS; e++) tensor_real(r[i].s)[e] = 1;
        struct step_state state = first_state();
        graph_forward(&r[i].g, &state);
    }
    const struct call *one = &r[0].g.calls[r[0].h[0]->producer], *other = &r[1].g.calls[r[1].h[0]->producer];
    bool several = false;
    for (int64_t e = 0; e < B * T * STATES; e++) {
        int32_t choice = tensor_i32(one->out[ROUTE_CHOICE])[e];
        several |= choice != 0;
        if (tensor_i32(other->out[ROUTE_CHOICE])[e] != choice)
            ck_abort_msg("state %lld: %d and %d are chosen", (long long)e, choice,
                         tensor_i32(other->out[ROUTE_CHOICE])[e]);
    }
    ck_assert(several);
    for (int i = 0; i < 2; i++) graph_free(&r[i].g);
}
END_TEST

Suite *check_pdssm(void);
Suite *check_pdssm(void) {
    Suite *suite = suite_create("pdssm");
    TCase *tests = tcase_create("pdssm");
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_loop_test(tests, hand_set_weights_track_S5_at_any_length, 0, 2);
    tcase_add_loop_test(tests, without_a_choice_it_has_the_identity_in_its_dictionary, 0, 2);
    tcase_add_loop_test(tests, the_choice_has_the_gradient_of_a_softmax, 0, 2 * N_KERNELS);
    tcase_add_loop_test(tests, twins_choose_alike_where_scores_are_nearly_equal, 0, 2);
    suite_add_tcase(suite, tests);
    return suite;
}

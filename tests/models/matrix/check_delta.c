/* check_delta.c - properties of the mixers with a delta rule: each as its paper prints it, one as another where their
 * weights make them alike, and what weights set by hand compute. */
#include <math.h>
#include <string.h>

#include "core/graph_walk.h"
#include "kernels/matrix/matrix.h"
#include "kernels/matrix/state.h"
#include "tests/lib/layer.h"

/* --- the recurrences as they are printed -------------------------------------------------------------------------- */

enum form { DELTANET, GATED, KDA, GDN2, RWKV7, GLA, FORMS };
static const char *const forms[FORMS] = {"deltanet", "gated-deltanet", "kda", "gdn2", "rwkv7", "gla"};
static const char *const kernels[] = {"reference", "scan_delta_cpu", "scan_delta_chunk", "scan_delta_vector"};
#define N_KERNELS (int)(sizeof kernels / sizeof *kernels)

enum { B = 3, H = 6, DK = 5, DV = 4 }; /* 18 heads of sequences */

/* gate: beta (B,T,H), or b o k; erase: a o kk. */
struct scan {
    struct graph g;
    struct tensor *q, *k, *v, *gate, *erase, *decay, *o;
};

/* Magnitudes, all times `factor`: gates lie in (0, 0.9 factor). */
static void set_gates(struct tensor *t, double factor) {
    for (int64_t e = 0; t && e < tensor_count(t); e++)
        tensor_real(t)[e] = (real)(factor * fabs((double)value_at(t, e)));
}

/* Keys have length 1, and beta goes up to 1.8. */
static void scan_open(struct scan *s, enum form form, const char *kernel, int64_t T) {
    struct delta_attr attr = {.heads = H, .steps = 1, .scale = 1, .rate = 1};
    bool scalar = form <= KDA;
    *s = (struct scan){0};
    open_graph(&s->g, NULL, false, true, kernel);
    s->q = input3(&s->g, "q", B, T, H * DK, false);
    s->k = input3(&s->g, "k", B, T, H * DK, false);
    s->v = input3(&s->g, "v", B, T, H * DV, false);
    if (form != GLA) s->gate = input3(&s->g, "gate", B, T, scalar ? H : H * DK, false);
    if (form == RWKV7) s->erase = input3(&s->g, "erase", B, T, H * DK, false);
    if (form != DELTANET) s->decay = input3(&s->g, "decay", B, T, form == GATED ? H : H * DK, false);
    struct delta_gates gates = {
        .beta = scalar ? s->gate : NULL, .read = scalar ? NULL : s->gate, .erase = s->erase, .decay = s->decay};
    s->o = scan_delta(&s->g, s->q, s->k, s->v, &gates, &attr);
    tensor_keep(s->o);
    plan_graph(&s->g);
    fill_inputs(&s->g, FILL_SMALL, false);
    for (int64_t r = 0; r < B * T * H; r++) {
        real *k = tensor_real(s->k) + r * DK;
        double squares = 0;
        for (int i = 0; i < DK; i++) squares += (double)k[i] * k[i];
        for (int i = 0; i < DK; i++) k[i] = (real)(k[i] / sqrt(squares));
    }
    if (scalar) set_gates(s->gate, 2);
    set_gates(s->decay, 1);
}

/* Gives the T outputs o of head `head` of sequence b, by the recurrences as the papers write them:
 *   deltanet, gated-deltanet, kda   S <- (I - beta k k^T) Diag(a) S + beta k v^T
 *   gdn2                            S <- (I - k (b o k)^T) Diag(a) S + k v^T
 *   rwkv7, transposed               S <- Diag(w) S - (a o kk) (S^T kk)^T + k v^T; kk is here read o w, since the op's
 *                                   `read` is applied to the decayed state
 *   gla                             S <- Diag(a) S + k v^T */
static void printed(const struct scan *s, enum form form, int64_t T, int64_t b, int64_t head, double *o) {
    double S[DK][DV] = {{0}};
    for (int64_t t = 0; t < T; t++) {
        int64_t row = (b * T + t) * H + head;
        const real *k = tensor_real(s->k) + row * DK, *v = tensor_real(s->v) + row * DV;
        double a[DK], read[DK] = {0}, erased[DV] = {0};
        for (int i = 0; i < DK; i++) {
            a[i] = form == DELTANET ? 1 : form == GATED ? value_at(s->decay, row) : value_at(s->decay, row * DK + i);
            if (form <= KDA) read[i] = value_at(s->gate, row) * k[i];
            if (form == GDN2 || form == RWKV7) read[i] = value_at(s->gate, row * DK + i);
            for (int j = 0; j < DV; j++) erased[j] += read[i] * a[i] * S[i][j];
        }
        for (int j = 0; j < DV; j++) o[t * DV + j] = 0;
        for (int i = 0; i < DK; i++) {
            double e = form == RWKV7 ? value_at(s->erase, row * DK + i) : k[i];
            double write = form <= KDA ? value_at(s->gate, row) * k[i] : k[i];
            for (int j = 0; j < DV; j++) {
                S[i][j] = a[i] * S[i][j] - e * erased[j] + write * v[j];
                o[t * DV + j] += S[i][j] * tensor_real(s->q)[row * DK + i];
            }
        }
    }
}

/* At lengths below, at and above a chunk of every kernel, and no multiple of one. */
START_TEST(every_rule_is_the_printed_recurrence) {
    static const int64_t lengths[] = {1, 5, 16, 17, 37, 64, 70};
    for (int form = 0; form < FORMS; form++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            int64_t T = lengths[i];
            struct scan s;
            bool scalar = form <= GATED;
            if (_i > 0 && scalar == (_i == 3)) continue; /* the kernel is for the other decay */
            double o[70 * DV];
            scan_open(&s, (enum form)form, kernels[_i], T);
            struct step_state state = first_state();
            graph_forward(&s.g, &state);
            for (int64_t h = 0; h < B * H; h++) {
                printed(&s, (enum form)form, T, h / H, h % H, o);
                for (int64_t t = 0; t < T; t++)
                    for (int j = 0; j < DV; j++)
                        expect_near(tensor_real(s.o)[((h / H * T + t) * H + h % H) * DV + j], o[t * DV + j],
                                    256 * REAL_EPSILON * fmax(1, fabs(o[t * DV + j])), forms[form]);
            }
            graph_free(&s.g);
        }
}
END_TEST

/* Equal decays of a head's channels are one of the head: KDA's state is then Gated DeltaNet's. Nothing read is nothing
 * erased: GDN-2's state is then GLA's. */
START_TEST(vector_gates_hold_scalar_ones) {
    struct scan kda, gated, gdn2, gla;
    struct step_state state = first_state();
    const int64_t T = 41;
    scan_open(&kda, KDA, "", T);
    scan_open(&gated, GATED, "", T);
    scan_open(&gdn2, GDN2, "", T);
    scan_open(&gla, GLA, "", T);
    for (int64_t e = 0; e < tensor_count(kda.decay); e++) tensor_real(kda.decay)[e] = tensor_real(gated.decay)[e / DK];
    set_gates(gdn2.gate, 0);
    memcpy(gla.decay->data, gdn2.decay->data, tensor_bytes(gla.decay));
    for (int i = 0; i < 4; i++) graph_forward(&(struct scan *[]){&kda, &gated, &gdn2, &gla}[i]->g, &state);
    expect_close(kda.o->data, gated.o->data, tensor_count(kda.o), 256 * REAL_EPSILON, "kda as gated-deltanet");
    expect_close(gdn2.o->data, gla.o->data, tensor_count(gla.o), 64 * REAL_EPSILON, "gdn2 as gla");
    graph_free(&kda.g);
    graph_free(&gated.g);
    graph_free(&gdn2.g);
    graph_free(&gla.g);
}
END_TEST

/* With decay 1: a whole erase puts the value in the key's place, and a double one mirrors the state, twice of which
 * gives it back. The last tokens have one key, which is also their query. The tokens before them decay, else GDN-2's
 * state grows to 45 and so does the rounding. */
START_TEST(an_erase_overwrites_and_reflects) {
    static const enum form both[] = {KDA, GDN2};
    static const double gates[] = {1, 2, 2, 0};
    const int64_t T = 40;
    for (int f = 0; f < 2; f++) {
        struct scan s;
        scan_open(&s, both[f], "", T);
        for (int64_t e = (T - 4) * H * DK; e < T * H * DK; e++) tensor_real(s.decay)[e] = 1;
        for (int64_t r = 0; r < 4 * H; r++) { /* of sequence 0 */
            int64_t row = (T - 4) * H + r, token = r / H;
            real *k = tensor_real(s.k) + row * DK, *v = tensor_real(s.v) + row * DV;
            memcpy(k, tensor_real(s.k) + r % H * DK, DK * sizeof(real));
            memcpy(tensor_real(s.q) + row * DK, k, DK * sizeof(real));
            for (int j = 0; j < DV && token > 0; j++) v[j] = 0;
            for (int i = 0; i < DK && both[f] == GDN2; i++)
                tensor_real(s.gate)[row * DK + i] = (real)gates[token] * k[i];
            if (both[f] == KDA) tensor_real(s.gate)[row] = (real)gates[token];
        }
        struct step_state state = first_state();
        graph_forward(&s.g, &state);
        const real *o = tensor_real(s.o) + (T - 4) * H * DV, *v = tensor_real(s.v) + (T - 4) * H * DV;
        for (int64_t e = 0; e < H * DV; e++) {
            expect_near(o[e], v[e], 64 * REAL_EPSILON, "what was written");
            expect_near(o[H * DV + e], -v[e], 64 * REAL_EPSILON, "mirrored");
            expect_near(o[2 * H * DV + e], v[e], 64 * REAL_EPSILON, "mirrored twice");
            expect_near(o[3 * H * DV + e], v[e], 64 * REAL_EPSILON, "left alone");
        }
        graph_free(&s.g);
    }
}
END_TEST

/* Row i of A = I - beta k k^T, as far as the state's DV columns go: the first DK tokens write the unit vectors under
 * their own keys, the next one erases with beta and writes nothing, and the last DK read a row each. */
static void fill_probe(struct scan *s, double beta, const double *key) {
    const int64_t T = 2 * DK + 1;
    memset(s->q->data, 0, tensor_bytes(s->q));
    memset(s->v->data, 0, tensor_bytes(s->v));
    for (int64_t r = 0; r < B * T * H; r++) {
        int64_t t = r / H % T, i = t % (DK + 1);
        real *k = tensor_real(s->k) + r * DK;
        for (int c = 0; c < DK; c++) k[c] = t == DK ? (real)key[c] : 0;
        if (t != DK) k[i < DK ? i : 0] = 1;
        if (t < DV) tensor_real(s->v)[r * DV + t] = 1;
        tensor_real(s->gate)[r] = (real)(t < DK ? 1 : t == DK ? beta : 0);
        if (t > DK) tensor_real(s->q)[r * DK + t - DK - 1] = 1;
    }
}

/* The singular values of I - beta k k^T lie between |1 - beta|, which k has, and 1, which all that is orthogonal to k
 * has. Here the last component of k is 0, so that the state's DV columns hold k. */
START_TEST(an_erase_shrinks_no_vector_more_than_its_key) {
    static const double betas[] = {0, 0.25, 1, 1.5, 2}, key[DK] = {0.1, -0.7, 0.5, 0.5};
    const int64_t T = 2 * DK + 1;
    for (size_t b = 0; b < sizeof betas / sizeof *betas; b++) {
        struct scan s;
        struct step_state state = first_state();
        double least = fabs(1 - betas[b]);
        scan_open(&s, DELTANET, kernels[_i], T);
        fill_probe(&s, betas[b], key);
        graph_forward(&s.g, &state);
        for (int trial = 0; trial < 20; trial++) {
            double x[DV], length = 0, image = 0;
            for (int j = 0; j < DV; j++) x[j] = trial == 0 ? key[j] : sin(1 + 7.0 * trial + 3 * j);
            for (int j = 0; j < DV; j++) length += x[j] * x[j];
            for (int i = 0; i < DK; i++) {
                double row = 0;
                for (int j = 0; j < DV; j++) row += value_at(s.o, (T - DK + i) * H * DV + j) * x[j];
                image += row * row;
            }
            double factor = sqrt(image / length), rounding = 16 * REAL_EPSILON;
            ck_assert_msg(factor >= least - rounding && factor <= 1 + rounding, "beta %g: a vector is scaled by %g",
                          betas[b], factor);
            if (trial == 0) expect_near(factor, least, 16 * REAL_EPSILON, "scale of the key");
        }
        graph_free(&s.g);
    }
}
END_TEST

/* --- mixers that are alike ---------------------------------------------------------------------------------------- */

/* Parameters of one name start alike, so both have the same. */
static void expect_alike(struct layer *a, struct layer *b, const char *what) {
    layer_run(a);
    layer_run(b);
    ck_assert_int_eq(a->params.floats, b->params.floats);
    expect_close(tensor_real(a->y), tensor_real(b->y), tensor_count(a->y), 64 * REAL_EPSILON, what);
    layer_close(a);
    layer_close(b);
}

START_TEST(gated_deltanet_is_deltaproduct_of_one_step) {
    struct layer a, b;
    layer_open(&a, "gated-deltanet:heads=2,beta=2", 37, 12);
    layer_open(&b, "deltaproduct:heads=2,steps=1,forget=yes,outgate=yes", 37, 12);
    expect_alike(&a, &b, "with its decay");
    layer_open(&a, "gated-deltanet:heads=2,beta=2", 37, 12);
    layer_open(&b, "deltaproduct:heads=2,steps=1,forget=no,outgate=yes", 37, 12);
    layer_set_all(&a, "A.log", -60); /* its decay is 1 */
    layer_run(&a);
    layer_run(&b);
    expect_close(tensor_real(a.y), tensor_real(b.y), tensor_count(a.y), 64 * REAL_EPSILON, "without decay");
    layer_close(&a);
    layer_close(&b);
}
END_TEST

START_TEST(gdn2_with_one_gate_a_head_is_kda) {
    enum { D = 12, HEADS = 2 };
    struct layer a, b;
    layer_open(&a, "gdn2:heads=2", 37, D);
    layer_open(&b, "kda:heads=2", 37, D);
    for (int64_t row = 0; row < D; row++) {
        const real *from = layer_values(&b, "beta.weight") + row / (D / HEADS) * D;
        memcpy(layer_values(&a, "erase.weight") + row * D, from, D * sizeof(real));
        memcpy(layer_values(&a, "write.weight") + row * D, from, D * sizeof(real));
    }
    layer_run(&a);
    layer_run(&b);
    expect_close(tensor_real(a.y), tensor_real(b.y), tensor_count(a.y), 64 * REAL_EPSILON, "y");
    layer_close(&a);
    layer_close(&b);
}
END_TEST

/* --- RWKV-7 ------------------------------------------------------------------------------------------------------- */

/* Tokens are not mixed, keys not scaled, there is no bonus, and the output map is the identity. */
static void rwkv_open(struct layer *l, const char *text, int64_t T, int64_t D) {
    static const char *const zeros[] = {"mix.r", "mix.w", "mix.k", "mix.v", "mix.a", "mix.g", "bonus"};
    layer_open(l, text, T, D);
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++) layer_set_all(l, zeros[i], 0);
    layer_set_all(l, "key.scale", 1);
    for (int64_t i = 0; i < D; i++) layer_values(l, "out.weight")[i * D + i] = 1;
}

/* Biases of +-60 make a and the decay's argument 0 or 1. With a = 1 and no decay it is DeltaNet with beta = 1, unit
 * keys and values times |k|; with a = 0, key.rate = 0 and the least decay, exp(-exp(-1/2)), it is linear attention. */
START_TEST(rwkv7_is_deltanet_or_linear_attention) {
    enum { T = 37, D = 8, HEADS = 2, DH = D / HEADS };
    for (int erases = 0; erases < 2; erases++) {
        struct layer l;
        double w = erases ? 1 : exp(-exp(-0.5));
        rwkv_open(&l, "rwkv7:heads=2", T, D);
        layer_set_all(&l, "rate.bias", erases ? 60 : -60);
        layer_set_all(&l, "decay.bias", erases ? -60 : 60);
        if (!erases) layer_set_all(&l, "key.rate", 0);
        layer_run(&l);
        for (int64_t h = 0; h < 2 * HEADS; h++) {
            double S[DH][DH] = {{0}};
            for (int64_t t = 0; t < T; t++) {
                int64_t token = h / HEADS * T + t, first = h % HEADS * DH;
                const real *x = tensor_real(l.x) + token * D;
                double k[DH], o[DH] = {0}, length = 0, mean = 0, squares = 0;
                for (int i = 0; i < DH; i++) k[i] = mapped(&l, "k.weight", x, D, first + i);
                for (int i = 0; i < DH; i++) length += k[i] * k[i];
                for (int j = 0; j < DH; j++) {
                    double had = 0, v = mapped(&l, "v.weight", x, D, first + j);
                    for (int i = 0; i < DH && erases; i++) had += S[i][j] * k[i] / sqrt(length);
                    for (int i = 0; i < DH; i++) {
                        S[i][j] = w * S[i][j] + k[i] / sqrt(length) * (sqrt(length) * v - had);
                        o[j] += S[i][j] * mapped(&l, "r.weight", x, D, first + i);
                    }
                }
                for (int j = 0; j < DH; j++) mean += o[j] / DH;
                for (int j = 0; j < DH; j++) squares += pow(o[j] - mean, 2) / DH;
                for (int j = 0; j < DH; j++) {
                    double gate = 0;
                    for (int r = 0; r < 8; r++) gate += layer_values(&l, "gate.up")[(first + j) * 8 + r] / 2;
                    double y = (o[j] - mean) / sqrt(squares + 64e-5) * gate;
                    expect_near(tensor_real(l.y)[token * D + first + j], y, 1024 * REAL_EPSILON, "y");
                }
            }
        }
        layer_close(&l);
    }
}
END_TEST

/* The decay of every channel lies between exp(-exp(-1/2)) and 1, whatever the weights. */
START_TEST(rwkv7_forgets_at_most_a_part) {
    enum { T = 37, D = 8 };
    static const double biases[] = {-60, -1, 0, 3, 60};
    const double least = exp(-exp(-0.5));
    for (size_t i = 0; i < sizeof biases / sizeof *biases; i++) {
        struct layer l;
        struct tensor *w = NULL;
        double low = INFINITY, high = 0;
        layer_build(&l, "rwkv7:heads=2", T, D);
        for (int k = 0; k < l.g.n_calls; k++)
            if (l.g.calls[k].op == op_find("scan_delta")) w = l.g.calls[k].in[DELTA_DECAY];
        ck_assert(w && tensor_count(w) == 2 * T * D);
        tensor_keep(w);
        layer_plan(&l);
        layer_set_all(&l, "decay.bias", biases[i]);
        multiply(&l, "decay.up", 100);
        for (int64_t e = 0; e < 8 * D; e++) layer_values(&l, "decay.down")[e] = (real)sin(1.0 + (double)e);
        layer_run(&l);
        for (int64_t e = 0; e < tensor_count(w); e++) {
            low = fmin(low, value_at(w, e));
            high = fmax(high, value_at(w, e));
        }
        ck_assert_msg(low >= least * (1 - 2 * REAL_EPSILON) && high <= 1, "bias %g: decays from %g to %g", biases[i],
                      low, high);
        if (biases[i] > 50) expect_near(low, least, 4 * REAL_EPSILON, "the least decay");
        if (biases[i] < -50) expect_near(high, 1, 4 * REAL_EPSILON, "the largest decay");
        layer_close(&l);
    }
}
END_TEST

START_TEST(rwkv7_without_a_share_of_the_first_values_has_none) {
    struct layer a, b;
    rwkv_open(&a, "rwkv7:heads=2,vmix=yes", 23, 8);
    rwkv_open(&b, "rwkv7:heads=2,vmix=no", 23, 8);
    layer_set_all(&a, "vmix.bias", -60);
    layer_run(&a);
    layer_run(&b);
    expect_close(tensor_real(a.y), tensor_real(b.y), tensor_count(a.y), REAL_EPSILON, "y");
    layer_close(&a);
    layer_close(&b);
}
END_TEST

/* Tokens one-hot: 0 holds, the others write their own value under one key. The state is what was written last, at any
 * length. Such resets are what one layer can track; models/matrix/rwkv7.c says why it cannot track S5. */
START_TEST(rwkv7_tracks_resets_at_any_length) {
    enum { T = 2000, D = 4 };
    struct layer l;
    rwkv_open(&l, "rwkv7:heads=1", T, D);
    static const char *const maps[] = {"r.weight", "k.weight", "v.weight", "key.rate"};
    for (int i = 0; i < 4; i++) layer_set_all(&l, maps[i], 0);
    layer_set_all(&l, "rate.bias", 60);
    layer_set_all(&l, "decay.bias", -60);
    layer_set_all(&l, "gate.up", 1);
    for (int token = 0; token < D; token++) {
        layer_values(&l, "r.weight")[token] = 1;
        if (token > 0) layer_values(&l, "k.weight")[token] = 1;
        layer_values(&l, "v.weight")[token * D + token] = 1;
    }
    uint32_t noise = 12345;
    memset(l.x->data, 0, tensor_bytes(l.x));
    for (int64_t t = 0; t < 2 * T; t++) {
        noise = noise * 1664525u + 1013904223u;
        int64_t token = noise >> 24 > 40 ? 0 : 1 + (noise >> 16) % 3; /* it holds for six of seven tokens */
        tensor_real(l.x)[t * D + token] = 1;
    }
    layer_run(&l);
    for (int64_t b = 0; b < 2; b++)
        for (int64_t t = 0, last = 0; t < T; t++) {
            const real *x = tensor_real(l.x) + (b * T + t) * D, *y = tensor_real(l.y) + (b * T + t) * D;
            for (int token = 1; token < D; token++) last = x[token] > 0 ? token : last;
            for (int token = 1; token < D && last > 0; token++)
                ck_assert_msg(token == last || y[last] > y[token] + 1, "token %lld: %g is not above %g", (long long)t,
                              (double)y[last], (double)y[token]);
        }
    layer_close(&l);
}
END_TEST

Suite *check_delta(void);
Suite *check_delta(void) {
    Suite *suite = suite_create("delta");
    TCase *tests = tcase_create("delta");
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_loop_test(tests, every_rule_is_the_printed_recurrence, 0, N_KERNELS);
    tcase_add_test(tests, vector_gates_hold_scalar_ones);
    tcase_add_test(tests, an_erase_overwrites_and_reflects);
    tcase_add_loop_test(tests, an_erase_shrinks_no_vector_more_than_its_key, 0, N_KERNELS - 1);
    tcase_add_test(tests, gated_deltanet_is_deltaproduct_of_one_step);
    tcase_add_test(tests, gdn2_with_one_gate_a_head_is_kda);
    tcase_add_test(tests, rwkv7_is_deltanet_or_linear_attention);
    tcase_add_test(tests, rwkv7_forgets_at_most_a_part);
    tcase_add_test(tests, rwkv7_without_a_share_of_the_first_values_has_none);
    tcase_add_test(tests, rwkv7_tracks_resets_at_any_length);
    suite_add_tcase(suite, tests);
    return suite;
}

/* check_models.c - walks the registry of mixers: parameter counts, gradients of whole nets, causality, messages, and
 * the ground-truth cases of tests/cases. */
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/batch.h"
#include "core/file/safetensors.h"
#include "core/graph_walk.h"
#include "harness/run/verify.h"
#include "tests/lib/layer.h"

static const struct trial_shape small = {.B = 2, .T = 6, .V = 11, .D = 12, .layers = 2, .mlp = MLP_NONE};

/* Parameter counts of BD-LRU, H-LRU and the LSTM as formulas, at the sizes of the papers' tables. */
START_TEST(parameter_counts_follow_the_formulas) {
    const int64_t D = 128, N = 64;
    for (int64_t m = 1; m <= 5; m++)
        for (int form = 0; form < 2; form++) {
            struct trial t;
            char model[64];
            snprintf(model, sizeof model, form ? "hlru:m=%" PRId64 ",channels=64" : "bdlru:m=%" PRId64 ",blocks=64", m);
            struct trial_shape s = {.model = model, .B = 1, .T = 2, .V = 6, .D = D, .layers = 1, .mlp = MLP_NONE};
            trial_open(&t, &s, 1);
            int64_t rest = 6 * D + 2 * D + 6 * D + 6; /* embedding, two norms, head */
            int64_t mixer =
                form ? N * D + N * (m + 1) * (D + 1) + D * N * m : N * m * D + N * m * (m + 1) * (D + 1) + D * N * m;
            ck_assert_int_eq(params_trained(&t.params), rest + mixer);
            trial_close(&t);
        }
}
END_TEST

START_TEST(every_mixer_is_described_and_tested) {
    for (const struct model *const *m = model_list(); *m; m++) {
        bool tested = false;
        for (const char *const *small_model = small_models(); *small_model; small_model++) {
            struct model_choice choice;
            struct error e = {0};
            ck_assert_msg(model_parse(&choice, *small_model, &e) == ST_OK, "%s", e.text);
            tested |= choice.model == *m;
        }
        ck_assert_msg(tested, "mixer %s names no small variant of its own (.small in models/)", (*m)->name);
        ck_assert((*m)->summary && (*m)->equation && (*m)->check && (*m)->build && (*m)->state_floats);
        ck_assert_uint_le((*m)->inst_bytes, MODEL_INST_BYTES);
        ck_assert_ptr_eq(model_find((*m)->name), *m);
    }
}
END_TEST

/* --- gradients and causality of whole nets ----------------------------------------------------------------------- */

START_TEST(gradients_of_whole_nets_match_central_differences) {
    struct trial t;
    struct trial_shape s = small;
    s.model = small_models()[_i];
    s.mlp = _i % 3;
    s.norm = _i % 2;
    s.dropout = 0.1; /* the same mask in every walk of one step */
    trial_open(&t, &s, 3);
    expect_gradients(&t, (uint64_t)_i);
    trial_close(&t);
}
END_TEST

START_TEST(causal_nets_do_not_look_ahead) {
    struct trial t;
    struct trial_shape s = small;
    s.model = small_models()[_i];
    s.T = 71; /* more than a chunk of any kernel */
    s.evaluation = true;
    s.mlp = MLP_SWIGLU;
    struct model_choice choice;
    ck_assert_int_eq(model_parse(&choice, s.model, NULL), ST_OK);
    if (!choice.model->causal) return;
    trial_open(&t, &s, 3);
    int64_t n = tensor_count(t.net.logits), V = s.V;
    graph_forward(&t.graph, &t.state);
    real *before = copy_reals(t.net.logits->data, n);
    for (int64_t cut = 1; cut < s.T; cut += 14) {
        int32_t *token = tensor_i32(t.net.input) + s.T + cut, kept = *token; /* of sequence 1 */
        *token = (kept + 1) % 11;
        graph_forward(&t.graph, &t.state);
        const real *logits = t.net.logits->data;
        expect_same_bits(logits, before, (s.T + cut) * V, "logits before the changed token");
        ck_assert_int_ne(memcmp(logits + (s.T + cut) * V, before + (s.T + cut) * V, sizeof(real) * (size_t)V), 0);
        *token = kept;
    }
    free(before);
    trial_close(&t);
}
END_TEST

/* Same parameters, same tokens: the evaluation graph computes what the training graph does, dropout off. */
START_TEST(evaluation_equals_training_without_dropout) {
    struct trial train, eval;
    struct trial_shape s = small;
    s.model = small_models()[_i];
    s.mlp = MLP_GELU;
    trial_open(&train, &s, 4);
    s.evaluation = true;
    s.dropout = 0.5; /* must not act */
    trial_open(&eval, &s, 4);
    graph_forward(&train.graph, &train.state);
    graph_forward(&eval.graph, &eval.state);
    expect_same_bits(eval.net.logits->data, train.net.logits->data, tensor_count(eval.net.logits), "logits");
    expect_same_bits(eval.net.loss->data, train.net.loss->data, 1, "loss");
    int64_t V = s.V; /* predictions are the first of the largest logits */
    for (int64_t r = 0; r < s.B * s.T; r++) {
        const real *l = tensor_real(eval.net.logits) + r * V;
        int best = 0;
        for (int v = 1; v < V; v++) best = l[v] > l[best] ? v : best;
        ck_assert_int_eq(tensor_i32(eval.net.predictions)[r], best);
    }
    trial_close(&train);
    trial_close(&eval);
}
END_TEST

/* A target that is ignored neither counts in the mean nor sends a gradient. */
START_TEST(ignored_targets_count_nowhere) {
    struct trial t;
    struct trial_shape s = small;
    s.model = "template";
    trial_open(&t, &s, 4);
    int64_t rows = s.B * s.T, V = s.V;
    for (int64_t r = 0; r < rows; r++) tensor_i32(t.net.targets)[r] = r == 5 ? 3 : IGNORED;
    graph_forward(&t.graph, &t.state);
    const real *l = tensor_real(t.net.logits) + 5 * V;
    double sum = exp((double)l[0]);
    for (int v = 1; v < V; v++) sum += exp((double)l[v]);
    ck_assert_double_eq_tol(tensor_real(t.net.loss)[0], log(sum) - l[3], 16 * REAL_EPSILON);
    tensor_i32(t.net.targets)[5] = IGNORED;
    graph_forward(&t.graph, &t.state);
    graph_backward(&t.graph, &t.state);
    ck_assert_double_eq(tensor_real(t.net.loss)[0], 0);
    for (int64_t i = 0; i < t.params.floats; i++) expect_near(t.params.grad[i], 0, 0, "gradient");
    trial_close(&t);
}
END_TEST

/* --- messages ---------------------------------------------------------------------------------------------------- */

START_TEST(bad_models_are_named) {
    static const struct {
        const char *text, *names;
    } bad[] = {
        {"bdlro", "did you mean 'bdlru'"},
        {"lstmm:hidden=3", "did you mean 'lstm'"},
        {"bdlru:blocks=0", "blocks=0"},
        {"bdlru:m=0", "m=0"},
        {"hlru:m=65", "m=65"},
        {"bdlru:layout=observer", "layout"},
        {"hlru:layout=observr", "companion observer"},
        {"bdlru:block=3", "did you mean 'blocks'"},
        {"", "unknown model ''"},
        {"lru:state=1,state=2", "twice"},
        {"lstm:", NULL},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct model_choice choice;
        struct error e = {0};
        enum status status = model_parse(&choice, bad[i].text, &e);
        ck_assert_int_eq(status, bad[i].names ? ST_USAGE : ST_OK);
        if (bad[i].names) ck_assert_msg(strstr(e.text, bad[i].names) != NULL, "%s: \"%s\"", bad[i].text, e.text);
    }
}
END_TEST

static void expect_no_fit(const char *model, int64_t D, const char *says) {
    struct model_choice choice;
    struct error e = {0};
    struct dims d = {.B = 2, .T = 6, .D = D};
    ck_assert_int_eq(model_parse(&choice, model, &e), ST_OK);
    ck_assert_int_eq(choice.model->check(choice.inst, &d, &e), ST_USAGE);
    ck_assert_str_eq(e.text, says);
}

START_TEST(heads_that_do_not_divide_the_width_are_told_alike) {
    static const char *const mixers[] = {"attention", "full-attention", "deltanet", "deltaproduct",
                                         "gat",       "plstm",          "plstm2d",  "plstm-graph"};
    for (size_t i = 0; i < sizeof mixers / sizeof *mixers; i++) {
        char model[64], says[120];
        snprintf(model, sizeof model, "%s:heads=5", mixers[i]);
        snprintf(says, sizeof says, "%s: heads=5 does not divide dim=12; choose heads that do", mixers[i]);
        expect_no_fit(model, 12, says);
    }
}
END_TEST

START_TEST(heads_with_rotary_positions_have_an_even_width) {
    expect_no_fit("attention:heads=4", 12,
                  "attention: heads=4 of dim=12 are 3 wide; rotary positions need an even width");
}
END_TEST

START_TEST(sizes_beyond_memory_name_both_numbers) {
    static const char *const models[] = {"bdlru:blocks=1048576,m=64", "hlru:channels=1048576,m=64"};
    for (int i = 0; i < 2; i++) {
        struct model_choice choice;
        struct error e = {0};
        struct dims d = {.B = 1024, .T = 65536, .D = 128};
        ck_assert_int_eq(model_parse(&choice, models[i], &e), ST_OK);
        ck_assert_int_eq(choice.model->check(choice.inst, &d, &e), ST_USAGE);
        ck_assert_msg(strstr(e.text, "1048576") && strstr(e.text, "65536") && strstr(e.text, "MB"), "%s", e.text);
    }
}
END_TEST

/* References are serial and sum in double: no order that a mixer takes may be left to them. */
START_TEST(every_order_has_a_kernel_besides_the_reference) {
    static const char *const models[] = {"bdlru:blocks=2", "hlru:channels=2", "hlru:channels=2,layout=observer"};
    for (int i = 0; i < 3; i++) {
        struct model_choice choice;
        ck_assert_int_eq(model_parse(&choice, models[i], NULL), ST_OK);
        int most = (int)option_find(choice.model->options, "m")->max;
        ck_assert_int_ge(most, 16);
        for (int m = 1; m <= most; m++) {
            char text[64];
            struct layer l;
            int scans = 0;
            snprintf(text, sizeof text, "%s,m=%d", models[i], m);
            layer_open(&l, text, 2, 4);
            for (int k = 0; k < l.g.n_calls; k++) {
                const struct kernel *kernel = l.g.calls[k].kernel;
                if (strncmp(kernel->op->name, "scan_", 5) != 0) continue;
                ck_assert_msg(!kernel->reference, "%s: %s", text, kernel->name);
                scans++;
            }
            ck_assert_int_eq(scans, 1);
            layer_close(&l);
        }
    }
}
END_TEST

/* --- ground truth ------------------------------------------------------------------------------------------------ */

#define CASES 87 /* files in tests/cases, each of a mixer that is listed */

/* Path of case file i in name order. */
static int list_cases(char paths[CASES][300]) {
    struct dirent **entries;
    int n = scandir("tests/cases", &entries, NULL, alphasort), cases = 0;
    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.') {
            struct safetensors st;
            struct error e = {0};
            ck_assert_int_lt(cases, CASES);
            snprintf(paths[cases], sizeof paths[cases], "tests/cases/%s", entries[i]->d_name);
            ck_assert_msg(safetensors_read(&st, paths[cases], &e) == ST_OK, "%s", e.text);
            const char *mixer = safetensors_metadata(&st, "mixer");
            ck_assert_msg(mixer && model_find(mixer), "%s is of mixer %s, which is not listed", paths[cases], mixer);
            cases++;
            safetensors_free(&st);
        }
        free(entries[i]);
    }
    if (n >= 0) free(entries);
    return cases;
}

/* Cuts `text` after line n; libcheck takes no message of hundreds of lines. */
static void keep_lines(char *text, int n) {
    while (n-- > 0 && *text) text += strcspn(text, "\n") + (strchr(text, '\n') != NULL);
    *text = 0;
}

START_TEST(mixers_match_the_ground_truth) {
    static char paths[CASES][300], log[1 << 16];
    struct verify_total total = {.quiet = true};
    struct error e = {0};
    int n = list_cases(paths);
    ck_assert_int_eq(n, CASES);
    FILE *out = fmemopen(log, sizeof log, "w");
    for (int i = 0; i < n; i++)
        ck_assert_msg(verify_file(paths[i], _i ? "reference" : "", NULL, &total, out, &e) == ST_OK, "%s", e.text);
    fclose(out);
    keep_lines(log, 8);
    ck_assert_int_eq(total.files, n);
    ck_assert_int_ge(total.tensors, 4 * n); /* y, dx and at least two parameters (attention) */
    ck_assert_msg(total.failed == 0 && total.skipped == 0 && total.worst <= VERIFY_BOUND,
                  "%d of %d tensors failed, %d skipped; the first:\n%s", total.failed, total.tensors, total.skipped,
                  log);
    if (_i == 0) printf("  cases: %d verified (%d tensors, worst %.1e)\n", n, total.tensors, total.worst);
}
END_TEST

Suite *check_models(void);
Suite *check_models(void) {
    Suite *suite = suite_create("models");
    TCase *tests = tcase_create("models");
    int models = 0;
    while (small_models()[models]) models++;
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_test(tests, parameter_counts_follow_the_formulas);
    tcase_add_test(tests, every_mixer_is_described_and_tested);
    if (REAL_IS_DOUBLE) tcase_add_loop_test(tests, gradients_of_whole_nets_match_central_differences, 0, models);
    tcase_add_loop_test(tests, causal_nets_do_not_look_ahead, 0, models);
    tcase_add_loop_test(tests, evaluation_equals_training_without_dropout, 0, models);
    tcase_add_test(tests, ignored_targets_count_nowhere);
    tcase_add_test(tests, bad_models_are_named);
    tcase_add_test(tests, heads_that_do_not_divide_the_width_are_told_alike);
    tcase_add_test(tests, heads_with_rotary_positions_have_an_even_width);
    tcase_add_test(tests, sizes_beyond_memory_name_both_numbers);
    tcase_add_test(tests, every_order_has_a_kernel_besides_the_reference);
    tcase_add_loop_test(tests, mixers_match_the_ground_truth, 0, 2);
    suite_add_tcase(suite, tests);
    return suite;
}

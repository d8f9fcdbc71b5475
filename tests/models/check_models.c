/* check_models.c - walks the registry of mixers: parameters, state, gradients of whole nets, causality, messages, and
 * the ground-truth cases of tests/cases. */
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/batch.h"
#include "core/safetensors.h"
#include "harness/run/verify.h"
#include "tests/lib/support.h"

/* --- parameters -------------------------------------------------------------------------------------------------- */

/* The contract (spec/mixers.md) at D = 12: names with shapes, and the floats of state a sequence. A name with a slash in front
 * belongs to the net, not to each layer's mixer. */
struct expected {
    const char *model;
    int64_t state;
    struct {
        const char *name;
        int64_t rows, columns; /* all axes but the last together; columns 0: a vector */
    } params[20];
};

static const struct expected contract[] = {
    {"bdlru:m=3,blocks=4",
     12,
     {{"gates.weight", 4 * 3 * 4, 12}, {"gates.bias", 48, 0}, {"v.weight", 12, 12}, {"out.weight", 12, 12}}},
    {"bdlru:m=1,blocks=7,gate=relu",
     7,
     {{"gates.weight", 14, 12}, {"gates.bias", 14, 0}, {"v.weight", 7, 12}, {"out.weight", 12, 7}}},
    {"bdlru:m=3,blocks=4,selective=no", 12, {{"gates.bias", 48, 0}, {"v.weight", 12, 12}, {"out.weight", 12, 12}}},
    {"hlru:m=3,channels=6",
     18,
     {{"gates.weight", 24, 12}, {"gates.bias", 24, 0}, {"v.weight", 6, 12}, {"out.weight", 12, 18}}},
    {"hlru:m=2,channels=7,layout=observer",
     14,
     {{"gates.weight", 21, 12}, {"gates.bias", 21, 0}, {"v.weight", 7, 12}, {"out.weight", 12, 14}}},
    {"hlru:m=2,channels=6,selective=no", 12, {{"gates.bias", 18, 0}, {"v.weight", 6, 12}, {"out.weight", 12, 12}}},
    {"lru:state=9",
     18,
     {{"nu.log", 9, 0},
      {"theta.log", 9, 0},
      {"gamma.log", 9, 0},
      {"B.re", 9, 12},
      {"B.im", 9, 12},
      {"C.re", 12, 9},
      {"C.im", 12, 9},
      {"skip", 12, 0}}},
    {"lstm", 24, {{"wx", 48, 12}, {"wh", 48, 12}, {"bx", 48, 0}, {"bh", 48, 0}}},
    {"lstm:hidden=10", 20, {{"wx", 40, 12}, {"wh", 40, 10}, {"bx", 40, 0}, {"bh", 40, 0}, {"out.weight", 12, 10}}},
    {"slice:structure=diagonal", 12, {{"init.weight", 12, 12}, {"init.bias", 12, 0}, {"A", 13, 12}}},
    {"slice:structure=block,block=3", 12, {{"init.weight", 12, 12}, {"init.bias", 12, 0}, {"A", 13, 36}}},
    {"slice:structure=dense", 12, {{"init.weight", 12, 12}, {"init.bias", 12, 0}, {"A", 13, 144}}},
    {"slice:structure=dplr,rank=2",
     12,
     {{"init.weight", 12, 12}, {"init.bias", 12, 0}, {"A", 13, 12}, {"U", 13, 24}, {"V", 13, 24}}},
    {"slice:structure=diagonal-dense,block=5",
     12,
     {{"init.weight", 12, 12}, {"init.bias", 12, 0}, {"A.diagonal", 13, 7}, {"A.dense", 13, 25}}},
    {"attention:heads=2", 144, {{"qkv.weight", 36, 12}, {"out.weight", 12, 12}}},
    {"conv:channels=5,m=4", 15, {{"v.weight", 5, 12}, {"kernel", 5, 4}, {"out.weight", 12, 5}}},
    {"mamba2:state=3,headdim=8",
     72, /* inner width 24, 3 heads: z, x, B, C, dt are 24 + 24 + 3 + 3 + 3 rows */
     {{"in.weight", 57, 12},
      {"conv.weight", 30, 4},
      {"conv.bias", 30, 0},
      {"dt.bias", 3, 0},
      {"A.log", 3, 0},
      {"skip", 3, 0},
      {"norm.weight", 24, 0},
      {"out.weight", 12, 24}}},
    {"deltanet:heads=3",
     48,
     {{"q.weight", 12, 12},
      {"q.conv", 12, 4},
      {"k.weight", 12, 12},
      {"k.conv", 12, 4},
      {"v.weight", 12, 12},
      {"v.conv", 12, 4},
      {"beta.weight", 3, 12},
      {"norm.weight", 4, 0},
      {"out.weight", 12, 12}}},
    {"deltaproduct:heads=2,headdim=5,steps=3",
     50,
     {{"q.weight", 10, 12},
      {"q.conv", 10, 4},
      {"k.weight", 30, 12},
      {"k.conv", 30, 4},
      {"v.weight", 30, 12},
      {"v.conv", 30, 4},
      {"beta.weight", 6, 12},
      {"norm.weight", 5, 0},
      {"out.weight", 12, 10}}},
    {"deltaproduct:heads=4,steps=1,forget=yes,outgate=yes",
     36,
     {{"q.weight", 12, 12},
      {"q.conv", 12, 4},
      {"k.weight", 12, 12},
      {"k.conv", 12, 4},
      {"v.weight", 12, 12},
      {"v.conv", 12, 4},
      {"beta.weight", 4, 12},
      {"a.weight", 4, 12},
      {"dt.bias", 4, 0},
      {"A.log", 4, 0},
      {"g.weight", 12, 12},
      {"norm.weight", 3, 0},
      {"out.weight", 12, 12}}},
    {"mlstm:heads=3",
     3 * (8 * 8 + 8 + 1), /* inner width 24 */
     {{"up.weight", 48, 12},
      {"conv.weight", 24, 4},
      {"conv.bias", 24, 0},
      {"q.weight", 24, 4},
      {"k.weight", 24, 4},
      {"v.weight", 24, 4},
      {"gates.weight", 6, 72},
      {"gates.bias", 6, 0},
      {"norm.weight", 3, 8},
      {"skip", 24, 0},
      {"down.weight", 12, 24}}},
    {"plstm:heads=2",
     72,
     {{"q.weight", 12, 12},
      {"q.bias", 12, 0},
      {"k.weight", 12, 12},
      {"k.bias", 12, 0},
      {"v.weight", 12, 12},
      {"v.bias", 12, 0},
      {"source.weight", 2, 12},
      {"source.bias", 2, 0},
      {"mark.weight", 2, 12},
      {"mark.bias", 2, 0},
      {"transition.weight", 2, 12},
      {"transition.bias", 2, 0},
      {"direct.bias", 2, 0},
      {"norm.weight", 2, 6},
      {"out.weight", 12, 12}}},
    {"plstm:heads=3,track=2,gates=bias",
     96,
     {{"q.weight", 12, 12},
      {"q.bias", 12, 0},
      {"k.weight", 12, 12},
      {"k.bias", 12, 0},
      {"v.weight", 12, 12},
      {"v.bias", 12, 0},
      {"source.bias", 6, 0},
      {"mark.bias", 6, 0},
      {"transition.weight", 6, 12},
      {"transition.bias", 6, 0},
      {"left.weight", 12, 12},
      {"left.bias", 12, 0},
      {"right.weight", 12, 12},
      {"right.bias", 12, 0},
      {"direct.bias", 3, 0},
      {"norm.weight", 3, 4},
      {"out.weight", 12, 12}}},
    {"plstm2d:heads=2",
     4 * (3 + 1) * 12 * 6, /* the grid is 2 x 3 */
     {{"q.weight", 12, 12},
      {"q.bias", 12, 0},
      {"k.weight", 12, 12},
      {"k.bias", 12, 0},
      {"v.weight", 12, 12},
      {"v.bias", 12, 0},
      {"source.weight", 4 * 2, 12},
      {"source.bias", 4, 2},
      {"transition.weight", 4 * 2, 12},
      {"transition.bias", 4, 2},
      {"mark.weight", 4 * 2, 12},
      {"mark.bias", 4, 2},
      {"orientation.weight", 4 * 2, 12},
      {"orientation.bias", 4, 2},
      {"direct.bias", 2, 0},
      {"norm.weight", 2, 6},
      {"out.weight", 12, 12}}},
    {"plstm-graph:heads=2",
     5 * 72,
     {{"q.weight", 12, 12},
      {"q.bias", 12, 0},
      {"k.weight", 12, 12},
      {"k.bias", 12, 0},
      {"v.weight", 12, 12},
      {"v.bias", 12, 0},
      {"source.weight", 2, 24},
      {"source.bias", 2, 0},
      {"mark.weight", 2, 24},
      {"mark.bias", 2, 0},
      {"transition.weight", 2, 36},
      {"transition.bias", 2, 0},
      {"direct.weight", 2, 12},
      {"direct.bias", 2, 0},
      {"norm.weight", 2, 6},
      {"out.weight", 12, 12}}},
    {"myosotis:arity=1,heads=3",
     36,
     {{"up.re", 5, 3},
      {"up.im", 5, 3},
      {"in.re", 3, 12},
      {"in.im", 3, 12},
      {"out.re", 12, 3},
      {"out.im", 12, 3},
      {"skip", 12, 0}}},
    {"myosotis:arity=6,heads=4,form=free,share=node",
     2 * 4 * 7, /* six leaves and a root */
     {{"up.re", 6, 4},
      {"up.im", 6, 4},
      {"down.re", 6, 4},
      {"down.im", 6, 4},
      {"in.re", 4, 12},
      {"in.im", 4, 12},
      {"out.re", 12, 4},
      {"out.im", 12, 4},
      {"skip", 12, 0},
      {"/nodes", 1, 12}}},
    {"myosotis:arity=2,heads=2,selective=yes",
     2 * 2 * 15, /* six of eight leaves, four levels */
     {{"up.re", 3, 2},
      {"up.im", 3, 2},
      {"up.weight.re", 2, 12},
      {"up.weight.im", 2, 12},
      {"in.re", 2, 12},
      {"in.im", 2, 12},
      {"out.re", 12, 2},
      {"out.im", 12, 2},
      {"skip", 12, 0},
      {"/nodes", 3, 12}}},
};
#define N_CONTRACT (int)(sizeof contract / sizeof *contract)

static const struct trial_shape small = {.B = 2, .T = 6, .V = 11, .D = 12, .layers = 2, .mlp = MLP_NONE};

/* Checks one parameter of the net and returns its elements. */
static int64_t expect_param(const struct params *p, const char *name, int64_t rows, int64_t columns) {
    const struct param *param = params_find(p, name);
    ck_assert_msg(param != NULL, "there is no parameter %s", name);
    const struct param_spec *spec = &param->spec;
    bool fits = spec->rank == 1 ? !columns : spec->dims[spec->rank - 1] == columns;
    ck_assert_msg(fits && param->count == rows * (columns ? columns : 1), "%s has another shape than (%lld,%lld)", name,
                  (long long)rows, (long long)columns);
    return rows * (columns ? columns : 1);
}

START_TEST(parameters_are_those_of_the_contract) {
    const struct expected *x = &contract[_i];
    for (int mlp = MLP_NONE; mlp <= MLP_GELU; mlp++) {
        struct trial t;
        struct trial_shape s = small;
        s.model = x->model;
        s.mlp = mlp;
        trial_open(&t, &s, 1);
        int64_t total = expect_param(&t.params, "embedding", 11, 12) + expect_param(&t.params, "head.weight", 11, 12) +
                        expect_param(&t.params, "head.bias", 11, 0) + expect_param(&t.params, "norm.weight", 12, 0);
        int named = 4;
        for (int layer = 0; layer < 2; layer++) {
            char name[80];
            snprintf(name, sizeof name, "layers.%d.norm.weight", layer);
            total += expect_param(&t.params, name, 12, 0);
            for (int i = 0; x->params[i].name; i++) {
                bool once = x->params[i].name[0] == '/';
                if (once && layer > 0) continue;
                if (once)
                    snprintf(name, sizeof name, "%s", x->params[i].name + 1);
                else
                    snprintf(name, sizeof name, "layers.%d.mixer.%s", layer, x->params[i].name);
                total += expect_param(&t.params, name, x->params[i].rows, x->params[i].columns);
                named++;
            }
            named++;
            if (mlp == MLP_NONE) continue;
            snprintf(name, sizeof name, "layers.%d.mlp_norm.weight", layer);
            total += expect_param(&t.params, name, 12, 0);
            int64_t width = mlp == MLP_SWIGLU ? 32 : 48; /* floor(8 * 12 / 3) = 32, a multiple of 16; 4 * 12 */
            for (int w = 1; w <= (mlp == MLP_SWIGLU ? 3 : 2); w++, named++) {
                bool down = w == (mlp == MLP_SWIGLU ? 3 : 2);
                snprintf(name, sizeof name, "layers.%d.mlp.w%d.weight", layer, w);
                total += expect_param(&t.params, name, down ? 12 : width, down ? width : 12);
            }
            named++;
        }
        ck_assert_int_eq(t.params.n, named); /* none beyond those */
        ck_assert_int_eq(params_trained(&t.params), total);
        trial_close(&t);
    }
}
END_TEST

START_TEST(state_is_counted) {
    struct model_choice choice;
    struct error e = {0};
    struct dims d = {2, 6, 12};
    ck_assert_int_eq(model_parse(&choice, contract[_i].model, &e), ST_OK);
    ck_assert_int_eq(model_fit(&choice, &d, &e), ST_OK);
    ck_assert_int_eq(choice.model->state_floats(choice.inst, &d), contract[_i].state);
}
END_TEST

/* P1's parameter counts as formulas (spec/lru-slice-baselines.md 2, 3, 10.1), at the sizes of the papers' tables. */
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
        bool listed = false, under_contract = (*m)->hidden;
        size_t n = strlen((*m)->name);
        for (int i = 0; small_models[i]; i++)
            listed |= !strncmp(small_models[i], (*m)->name, n) && strchr(":", small_models[i][n]);
        for (int i = 0; i < N_CONTRACT; i++)
            under_contract |= !strncmp(contract[i].model, (*m)->name, n) && strchr(":", contract[i].model[n]);
        ck_assert_msg(listed, "mixer %s is missing in small_models of tests/lib/support.c", (*m)->name);
        ck_assert_msg(under_contract, "mixer %s is missing in the contract table of tests/models/check_models.c",
                      (*m)->name);
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
    s.model = small_models[_i];
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
    s.model = small_models[_i];
    s.T = 19;
    s.evaluation = true;
    s.mlp = MLP_SWIGLU;
    struct model_choice choice;
    ck_assert_int_eq(model_parse(&choice, s.model, NULL), ST_OK);
    if (!choice.model->causal) return;
    trial_open(&t, &s, 3);
    int64_t n = tensor_count(t.net.logits), V = s.V;
    graph_forward(&t.graph, &t.state);
    real *before = copy_reals(t.net.logits->data, n);
    for (int64_t cut = 1; cut < s.T; cut += 5) {
        int32_t *token = tensor_i32(t.net.tokens) + s.T + cut, kept = *token; /* of sequence 1 */
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
    s.model = small_models[_i];
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
    double sum = 0;
    for (int v = 0; v < V; v++) sum += exp((double)l[v]);
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

START_TEST(sizes_beyond_memory_name_both_numbers) {
    static const char *const models[] = {"bdlru:blocks=1048576,m=64", "hlru:channels=1048576,m=64"};
    for (int i = 0; i < 2; i++) {
        struct model_choice choice;
        struct error e = {0};
        struct dims d = {1024, 65536, 128};
        ck_assert_int_eq(model_parse(&choice, models[i], &e), ST_OK);
        ck_assert_int_eq(choice.model->check(choice.inst, &d, &e), ST_USAGE);
        ck_assert_msg(strstr(e.text, "1048576") && strstr(e.text, "65536") && strstr(e.text, "MB"), "%s", e.text);
    }
}
END_TEST

/* --- ground truth ------------------------------------------------------------------------------------------------ */

/* Path of case file i in name order, and whether its mixer is registered. */
static int list_cases(char paths[][300], bool *registered) {
    struct dirent **entries;
    int n = scandir("tests/cases", &entries, NULL, alphasort), cases = 0;
    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.') {
            struct safetensors st;
            struct error e = {0};
            snprintf(paths[cases], sizeof paths[cases], "tests/cases/%s", entries[i]->d_name);
            ck_assert_msg(safetensors_read(&st, paths[cases], &e) == ST_OK, "%s", e.text);
            const char *mixer = safetensors_metadata(&st, "mixer");
            ck_assert_ptr_nonnull(mixer);
            registered[cases++] = model_find(mixer) != NULL;
            safetensors_free(&st);
        }
        free(entries[i]);
    }
    if (n >= 0) free(entries);
    return cases;
}

START_TEST(mixers_match_the_ground_truth) {
    static char paths[100][300], log[1 << 16];
    bool registered[100];
    struct verify_total total = {0};
    struct error e = {0};
    int n = list_cases(paths, registered), run = 0;
    ck_assert_int_ge(n, 47);
    FILE *out = fmemopen(log, sizeof log, "w");
    for (int i = 0; i < n; i++) {
        if (!registered[i]) continue;
        ck_assert_msg(verify_file(paths[i], _i ? "reference" : "", NULL, &total, out, &e) == ST_OK, "%s", e.text);
        run++;
    }
    fclose(out);
    ck_assert_int_ge(run, 14); /* bdlru, hlru, lstm and lru alone have that many */
    ck_assert_int_eq(total.files, run);
    ck_assert_int_ge(total.tensors, 4 * run); /* y, dx and at least two parameters (attention) */
    ck_assert_msg(total.failed == 0 && total.skipped == 0 && total.worst <= VERIFY_BOUND,
                  "%d of %d tensors failed, %d skipped:\n%s", total.failed, total.tensors, total.skipped, log);
    if (_i == 0)
        printf("  cases: %d verified (%d tensors, worst %.1e); %d of mixers not registered, not run\n", run,
               total.tensors, total.worst, n - run);
}
END_TEST

Suite *check_models(void);
Suite *check_models(void) {
    Suite *suite = suite_create("models");
    TCase *tests = tcase_create("models");
    int models = 0;
    while (small_models[models]) models++;
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_loop_test(tests, parameters_are_those_of_the_contract, 0, N_CONTRACT);
    tcase_add_loop_test(tests, state_is_counted, 0, N_CONTRACT);
    tcase_add_test(tests, parameter_counts_follow_the_formulas);
    tcase_add_test(tests, every_mixer_is_described_and_tested);
    if (REAL_IS_DOUBLE) tcase_add_loop_test(tests, gradients_of_whole_nets_match_central_differences, 0, models);
    tcase_add_loop_test(tests, causal_nets_do_not_look_ahead, 0, models);
    tcase_add_loop_test(tests, evaluation_equals_training_without_dropout, 0, models);
    tcase_add_test(tests, ignored_targets_count_nowhere);
    tcase_add_test(tests, bad_models_are_named);
    tcase_add_test(tests, sizes_beyond_memory_name_both_numbers);
    tcase_add_loop_test(tests, mixers_match_the_ground_truth, 0, 2);
    suite_add_tcase(suite, tests);
    return suite;
}

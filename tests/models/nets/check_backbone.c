/* check_backbone.c - the nets around the mixers: gradients of each backbone with each read-out, padding that must not
 * matter, both directions, and what the auto-encoder sees. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/batch.h"
#include "core/graph_walk.h"
#include "kernels/move/move.h"
#include "tests/lib/support.h"

static const struct trial_shape small = {.B = 3, .T = 6, .V = 11, .D = 12, .layers = 2, .mlp = MLP_SWIGLU};
static const char *const mixers[] = {"bdlru:m=2,blocks=4", "myosotis:heads=3"};

enum { KINDS = 9, READOUTS = 3 };
static const int kinds[KINDS] = {BACKBONE_MAD_LM, BACKBONE_SLICE,  BACKBONE_SLICE_GLU,   BACKBONE_STACKED,
                                 BACKBONE_S5,     BACKBONE_VISION, BACKBONE_SLICE_XLSTM, BACKBONE_SLICE_TRANSFORMER,
                                 BACKBONE_XLSTM};

START_TEST(gradients_match_central_differences) {
    struct trial t;
    struct trial_shape s = small;
    s.model = mixers[_i % 2];
    s.kind = kinds[_i / 2 % KINDS];
    s.mlp = s.kind == BACKBONE_VISION ? MLP_GELU : MLP_SWIGLU;
    if (s.kind == BACKBONE_XLSTM && _i % 2 == 0) s.model = "slstm:heads=3"; /* which has an MLP there */
    s.readout = (enum readout)(_i / 2 / KINDS % READOUTS);
    s.bidirectional = _i / 2 / KINDS / READOUTS;
    s.pool = _i % 2 ? _i / 2 % 3 : _i / 2 % 2; /* top: of trees */
    s.dropout = 0.1;
    trial_open(&t, &s, 5);
    expect_gradients(&t, (uint64_t)_i);
    trial_close(&t);
}
END_TEST

/* Dropout between the layers of the stacked net alone, as torch's LSTM has it: a single layer has none. */
START_TEST(stacked_layers_have_dropout_between_them) {
    for (int layers = 1; layers <= 2; layers++) {
        struct trial without, with;
        struct trial_shape s = small;
        s.model = "lstm";
        s.kind = BACKBONE_STACKED;
        s.layers = layers;
        trial_open(&without, &s, 5);
        s.dropout = 0.5;
        trial_open(&with, &s, 5);
        graph_forward(&without.graph, &without.state);
        graph_forward(&with.graph, &with.state);
        size_t bytes = tensor_bytes(with.net.logits);
        bool same = !memcmp(with.net.logits->data, without.net.logits->data, bytes);
        ck_assert_msg(same == (layers == 1), "%d layers", layers);
        trial_close(&without);
        trial_close(&with);
    }
}
END_TEST

/* LayerScale in both nets that have it. */
START_TEST(gradients_of_scaled_branches_match_central_differences) {
    struct trial t;
    struct trial_shape s = small;
    s.model = mixers[0];
    s.kind = _i ? BACKBONE_VISION : BACKBONE_MAD_LM;
    s.mlp = MLP_GELU;
    s.layer_scale = 0.5;
    s.dropout = 0.1;
    trial_open(&t, &s, 5);
    ck_assert_ptr_nonnull(params_find(&t.params, "layers.1.mlp_scale"));
    expect_gradients(&t, 17);
    trial_close(&t);
}
END_TEST

/* A scale of 1 changes no bit, one of 0 leaves its branch out. */
START_TEST(a_branch_is_scaled_channel_by_channel) {
    struct trial without, with;
    struct trial_shape s = small;
    s.model = mixers[0];
    s.kind = BACKBONE_VISION;
    s.mlp = MLP_NONE;
    trial_open(&without, &s, 5);
    s.layer_scale = 1;
    trial_open(&with, &s, 5);
    for (int off = 0; off < 2; off++) {
        for (int layer = 0; layer < 2 && off; layer++) {
            char scale[32], out[32];
            snprintf(scale, sizeof scale, "layers.%d.scale", layer);
            snprintf(out, sizeof out, "layers.%d.mixer.out.weight", layer);
            const struct param *p = params_find(&with.params, scale), *w = params_find(&without.params, out);
            ck_assert_int_eq(p->count, s.D);
            memset(with.params.value + p->offset, 0, (size_t)p->count * sizeof(real));
            memset(without.params.value + w->offset, 0, (size_t)w->count * sizeof(real));
        }
        graph_forward(&without.graph, &without.state);
        graph_forward(&with.graph, &with.state);
        expect_same_bits(with.net.logits->data, without.net.logits->data, tensor_count(with.net.logits),
                         "logits with scaled branches");
    }
    trial_close(&without);
    trial_close(&with);
}
END_TEST

/* An input of values: its encoder is the embedding of what is one-hot, and its gradients are right. */
START_TEST(values_are_encoded_by_a_linear_map) {
    struct trial tokens, values;
    struct trial_shape s = small;
    s.model = mixers[_i % 2];
    s.kind = kinds[_i / 2];
    s.readout = READOUT_SEQUENCE;
    trial_open(&tokens, &s, 5);
    s.channels = s.V;
    trial_open(&values, &s, 5);
    const struct param *table = params_find(&tokens.params, "embedding");
    const struct param *w = params_find(&values.params, "encoder.weight");
    ck_assert(table && w && w->count == table->count && w->spec.group == PARAM_WEIGHT);
    ck_assert(!params_find(&values.params, "embedding") && values.net.input->dtype == DT_REAL);
    const struct param *b = params_find(&values.params, "encoder.bias");
    memset(values.params.value + b->offset, 0, sizeof(real) * (size_t)b->count); /* a table has none */
    for (int i = 0; i < values.params.n; i++) {
        const struct param *p = &values.params.list[i], *like = params_find(&tokens.params, p->name);
        if (like)
            memcpy(values.params.value + p->offset, tokens.params.value + like->offset,
                   sizeof(real) * (size_t)p->count);
    }
    for (int64_t c = 0; c < s.V; c++)
        for (int64_t d = 0; d < s.D; d++)
            values.params.value[w->offset + d * s.V + c] = tokens.params.value[table->offset + c * s.D + d];
    for (int64_t i = 0; i < s.B * s.T; i++)
        for (int64_t c = 0; c < s.V; c++)
            tensor_real(values.net.input)[i * s.V + c] = tensor_i32(tokens.net.input)[i] == c;
    memcpy(values.net.lengths->data, tokens.net.lengths->data, tensor_bytes(tokens.net.lengths));
    graph_forward(&tokens.graph, &tokens.state);
    graph_forward(&values.graph, &values.state);
    expect_close(tensor_real(values.net.logits), tensor_real(tokens.net.logits), tensor_count(tokens.net.logits),
                 50 * REAL_EPSILON, "logits of one-hot values");
    if (REAL_IS_DOUBLE) {
        trial_fill(&values, 5, 0);
        expect_gradients(&values, (uint64_t)_i);
    }
    trial_close(&tokens);
    trial_close(&values);
}
END_TEST

/* Without the encoder's bias what is 0 enters the net as 0, and nothing else of the net changes. */
START_TEST(a_linear_encoder_has_no_bias) {
    struct trial affine, linear;
    struct trial_shape s = small;
    s.model = "lstm:hidden=4";
    s.kind = BACKBONE_STACKED;
    s.readout = READOUT_SEQUENCE;
    s.channels = 3;
    trial_open(&affine, &s, 5);
    s.encoder = ENCODER_LINEAR;
    trial_open(&linear, &s, 5);
    const struct param *bias = params_find(&affine.params, "encoder.bias");
    ck_assert(bias && !params_find(&linear.params, "encoder.bias"));
    ck_assert_int_eq(params_trained(&affine.params), params_trained(&linear.params) + bias->count);
    const real *b = affine.params.value + bias->offset;
    double size = 0;
    for (int64_t i = 0; i < bias->count; i++) size += fabs((double)b[i]);
    expect_at_most(0.1, size, "the bias"); /* it starts away from 0 in SLiCE's nets */
    memset(affine.params.value + bias->offset, 0, sizeof(real) * (size_t)bias->count);
    for (int i = 0; i < linear.params.n; i++) {
        const struct param *p = &linear.params.list[i], *like = params_find(&affine.params, p->name);
        ck_assert_ptr_nonnull(like);
        memcpy(linear.params.value + p->offset, affine.params.value + like->offset, sizeof(real) * (size_t)p->count);
    }
    memcpy(linear.net.input->data, affine.net.input->data, tensor_bytes(affine.net.input));
    graph_forward(&affine.graph, &affine.state);
    graph_forward(&linear.graph, &linear.state);
    expect_same_bits(linear.net.logits->data, affine.net.logits->data, tensor_count(linear.net.logits), "logits");
    trial_close(&affine);
    trial_close(&linear);
}
END_TEST

/* Nothing past the length of a sequence reaches its label. */
START_TEST(padding_does_not_matter) {
    struct trial t;
    struct trial_shape s = small;
    s.model = mixers[_i % 2];
    s.readout = READOUT_SEQUENCE;
    s.bidirectional = _i / 2 % 2;
    s.pool = _i / 4 % 2 == 0 ? FROM_LAST : _i % 2 ? FROM_ROOT : FROM_MEAN;
    s.kind = kinds[_i / 8];
    trial_open(&t, &s, 6);
    int32_t *lengths = tensor_i32(t.net.lengths), *tokens = tensor_i32(t.net.input);
    int64_t n = tensor_count(t.net.logits);
    lengths[0] = 1, lengths[1] = 4, lengths[2] = 6;
    graph_forward(&t.graph, &t.state);
    real *before = copy_reals(t.net.logits->data, n);
    for (int64_t b = 0; b < s.B; b++)
        for (int64_t i = lengths[b]; i < s.T; i++) tokens[b * s.T + i] = (tokens[b * s.T + i] + 1) % 11;
    graph_forward(&t.graph, &t.state);
    expect_same_bits(t.net.logits->data, before, n, "logits with other padding");
    tokens[0] = (tokens[0] + 1) % 11;
    graph_forward(&t.graph, &t.state);
    ck_assert_int_ne(memcmp(t.net.logits->data, before, sizeof(real) * (size_t)s.V), 0);
    free(before);
    trial_close(&t);
}
END_TEST

static void copy_param(struct params *p, const char *from, const char *to) {
    const struct param *a = params_find(p, from), *b = params_find(p, to);
    ck_assert(a && b && a->count == b->count);
    memcpy(p->value + b->offset, p->value + a->offset, (size_t)a->count * sizeof(real));
}

/* With the same parameters both ways, a reversed input gives the reversed output. */
START_TEST(both_directions_are_alike) {
    static const char *const names[] = {"gates.weight", "gates.bias", "v.weight", "out.weight"};
    struct trial t;
    struct trial_shape s = small;
    s.model = mixers[0];
    s.layers = 1;
    s.bidirectional = true;
    trial_open(&t, &s, 7);
    for (int i = 0; i < 4; i++) {
        char from[64], to[64];
        snprintf(from, sizeof from, "layers.0.mixer.%s", names[i]);
        snprintf(to, sizeof to, "layers.0.mixer_back.%s", names[i]);
        copy_param(&t.params, from, to);
    }
    int32_t *lengths = tensor_i32(t.net.lengths), *tokens = tensor_i32(t.net.input);
    lengths[0] = 6, lengths[1] = 5, lengths[2] = 1;
    graph_forward(&t.graph, &t.state);
    real *before = copy_reals(t.net.logits->data, tensor_count(t.net.logits));
    for (int64_t b = 0; b < s.B; b++)
        for (int64_t i = 0; i < lengths[b] / 2; i++) {
            int32_t *x = tokens + b * s.T, kept = x[i];
            x[i] = x[lengths[b] - 1 - i];
            x[lengths[b] - 1 - i] = kept;
        }
    graph_forward(&t.graph, &t.state);
    for (int64_t b = 0; b < s.B; b++)
        for (int64_t i = 0; i < lengths[b]; i++)
            expect_close(tensor_real(t.net.logits) + (b * s.T + i) * s.V, before + (b * s.T + lengths[b] - 1 - i) * s.V,
                         s.V, 64 * REAL_EPSILON, "reversed logits");
    free(before);
    trial_close(&t);
}
END_TEST

/* Every position is decoded from the last row in use: a causal net's earlier padding-free rows cannot be copied
 * through. */
START_TEST(the_auto_encoder_sees_one_vector) {
    struct trial t;
    struct trial_shape s = small;
    s.model = mixers[0];
    s.readout = READOUT_DECODED;
    trial_open(&t, &s, 8);
    int32_t *lengths = tensor_i32(t.net.lengths), *tokens = tensor_i32(t.net.input);
    for (int64_t b = 0; b < s.B; b++) lengths[b] = 4;
    graph_forward(&t.graph, &t.state);
    real *before = copy_reals(t.net.logits->data, tensor_count(t.net.logits));
    tokens[5] = (tokens[5] + 1) % 11; /* after the last row in use */
    graph_forward(&t.graph, &t.state);
    expect_same_bits(t.net.logits->data, before, tensor_count(t.net.logits), "logits");
    tokens[3] = (tokens[3] + 1) % 11; /* the last one: changes every position of its sequence, and no other sequence */
    graph_forward(&t.graph, &t.state);
    const real *now = t.net.logits->data;
    for (int64_t i = 0; i < s.T; i++)
        ck_assert_int_ne(memcmp(now + i * s.V, before + i * s.V, sizeof(real) * (size_t)s.V), 0);
    expect_same_bits(now + s.T * s.V, before + s.T * s.V, (s.B - 1) * s.T * s.V, "logits of other sequences");
    free(before);
    trial_close(&t);
}
END_TEST

/* The running statistics approach the batch's, training graph and evaluation graph then agree; rows without a token
 * below them count in neither: the same sequences in a batch with an empty one give the same statistics. */
START_TEST(batch_norm_counts_rows_in_use) {
    struct trial full, padded;
    struct trial_shape s = small;
    s.model = mixers[1];
    s.kind = BACKBONE_S5;
    s.layers = 1;
    s.readout = READOUT_SEQUENCE;
    trial_open(&full, &s, 10);
    s.B = 4;
    trial_open(&padded, &s, 10);
    for (int64_t b = 0; b < 4; b++) tensor_i32(padded.net.lengths)[b] = b < 3 ? 6 - (int32_t)b : 0;
    for (int64_t b = 0; b < 3; b++) {
        tensor_i32(full.net.lengths)[b] = 6 - (int32_t)b;
        memcpy(tensor_i32(padded.net.input) + b * s.T, tensor_i32(full.net.input) + b * s.T, 6 * sizeof(int32_t));
    }
    for (int step = 0; step < 300; step++) {
        graph_forward(&full.graph, &full.state);
        graph_forward(&padded.graph, &padded.state);
    }
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "layers.0.norm.variance" : "layers.0.norm.mean";
        const struct param *a = params_find(&full.params, name), *b = params_find(&padded.params, name);
        ck_assert(a && b);
        expect_close(padded.params.value + b->offset, full.params.value + a->offset, s.D, 16 * REAL_EPSILON, name);
    }
    expect_close(tensor_real(padded.net.logits), tensor_real(full.net.logits), 3 * s.V, 64 * REAL_EPSILON, "logits");
    struct trial eval;
    s.B = 3;
    s.evaluation = true;
    trial_open(&eval, &s, 10);
    memcpy(eval.params.value, full.params.value, (size_t)full.params.floats * sizeof(real));
    memcpy(tensor_i32(eval.net.lengths), tensor_i32(full.net.lengths), 3 * sizeof(int32_t));
    graph_forward(&eval.graph, &eval.state);
    expect_close(tensor_real(eval.net.logits), tensor_real(full.net.logits), 3 * s.V, 1e-4, "evaluation"); /* .95^300 */
    trial_close(&eval);
    trial_close(&padded);
    trial_close(&full);
}
END_TEST

/* A mixer that looks both ways already has no second one. */
START_TEST(only_causal_mixers_are_doubled) {
    for (int i = 0; i < 2; i++) {
        struct trial t;
        struct trial_shape s = small;
        s.model = mixers[i];
        s.bidirectional = true;
        trial_open(&t, &s, 9);
        const char *name = i ? "layers.0.mixer_back.skip" : "layers.0.mixer_back.v.weight";
        ck_assert_int_eq(params_find(&t.params, name) != NULL, i == 0);
        trial_close(&t);
    }
}
END_TEST

/* The backbone of most of the paper's baselines takes other mixers too. */
static const struct {
    const char *model, *has, *lacks;
    int kind;
} wrapped[] = {
    {"slice:block=3", "layers.0.mlp.weight", "layers.0.mlp_gate.weight", BACKBONE_SLICE},
    {"lstm", "layers.0.mixer.wx", "layers.0.mlp.weight", BACKBONE_STACKED},
    {"mamba2:state=3,headdim=8", "layers.0.mlp_gate.weight", "norm.weight", BACKBONE_SLICE_GLU},
    {"deltanet:heads=2", "layers.0.mlp_gate.weight", "norm.weight", BACKBONE_SLICE_GLU},
    {"deltaproduct:heads=2,steps=2", "layers.0.mlp_gate.weight", "norm.weight", BACKBONE_SLICE_GLU},
    {"bdlru:m=2,blocks=4", "layers.0.mlp_gate.weight", "norm.weight", BACKBONE_SLICE_GLU},
    {"mlstm:heads=3", "norm.weight", "layers.0.mlp_norm.weight", BACKBONE_SLICE_XLSTM},
    {"mlstm:heads=3", "layers.1.norm.weight", "layers.1.norm.bias", BACKBONE_SLICE_XLSTM},
    {"slstm:heads=3", "layers.1.mlp.w2.weight", "layers.1.mlp.w1.bias", BACKBONE_SLICE_XLSTM},
    {"xlstm:heads=3", "layers.1.mlp.w2.weight", "layers.0.mlp.w2.weight", BACKBONE_SLICE_XLSTM},
    {"attention:heads=2", "layers.0.mlp.w1.bias", "layers.0.mlp_gate.weight", BACKBONE_SLICE_TRANSFORMER},
    {"attention:heads=2", "norm.bias", "layers.0.mlp.w3.weight", BACKBONE_SLICE_TRANSFORMER},
};

START_TEST(the_slice_paper_wraps_each_mixer_in_its_way) {
    struct trial t, named;
    struct trial_shape s = small;
    s.model = wrapped[_i].model;
    s.dropout = 0.2;
    s.kind = BACKBONE_SLICE_PAPER;
    trial_open(&t, &s, 9);
    ck_assert_msg(params_find(&t.params, wrapped[_i].has), "no %s", wrapped[_i].has);
    ck_assert_msg(!params_find(&t.params, wrapped[_i].lacks), "a %s", wrapped[_i].lacks);
    s.kind = wrapped[_i].kind;
    s.mlp = MLP_NONE; /* no net of that paper looks at it */
    trial_open(&named, &s, 9);
    graph_forward(&t.graph, &t.state);
    graph_forward(&named.graph, &named.state);
    expect_same_bits(named.net.logits->data, t.net.logits->data, tensor_count(t.net.logits), s.model);
    trial_close(&named);
    trial_close(&t);
}
END_TEST

/* xLSTM's norm has its mean and variance by row, whatever its weight's stored difference from 1 leaves of them. */
START_TEST(the_norm_of_xlstm_is_a_layer_norm_around_one) {
    struct trial t, plain;
    struct trial_shape s = small;
    s.model = "mlstm:heads=3";
    s.layers = 1;
    s.mlp = MLP_NONE;
    s.norm = NORM_LAYER;
    trial_open(&plain, &s, 9);
    s.kind = BACKBONE_SLICE_XLSTM;
    trial_open(&t, &s, 9);
    for (int i = 0; i < t.params.n; i++) {
        const struct param *p = &t.params.list[i], *q = params_find(&plain.params, p->name);
        bool norm = !strcmp(p->name, "norm.weight") || !strcmp(p->name, "layers.0.norm.weight");
        ck_assert(q && q->count == p->count);
        for (int64_t k = 0; k < p->count; k++) {
            real *value = t.params.value + p->offset + k;
            if (norm) ck_assert(*value == 0);
            if (norm) *value = (real)(0.1 * (double)(k % 5) - 0.2);
            plain.params.value[q->offset + k] = norm ? 1 + *value : *value;
        }
    }
    graph_forward(&t.graph, &t.state);
    graph_forward(&plain.graph, &plain.state);
    expect_close(tensor_real(t.net.logits), tensor_real(plain.net.logits), tensor_count(t.net.logits),
                 256 * REAL_EPSILON, "logits");
    trial_close(&plain);
    trial_close(&t);
}
END_TEST

/* A mixer that looks both ways has one state per layer, a causal one two. */
START_TEST(a_net_has_the_state_of_all_its_mixers) {
    for (int i = 0; i < 2; i++) {
        struct backbone b = {.dim = 12, .layers = 3, .ssm_lr_factor = 1};
        const struct dims dims = {.B = 2, .T = 6, .D = 12};
        struct model_choice choice;
        struct error e;
        ck_assert_msg(model_parse(&choice, mixers[i], &e) == ST_OK, "%s", e.text);
        int64_t nodes = 6;
        if (choice.model->nodes) ck_assert_int_eq(choice.model->nodes(choice.inst, 6, &nodes, &e), ST_OK);
        ck_assert_msg(model_fit(&choice, &dims, &e) == ST_OK, "%s", e.text);
        int64_t one = choice.model->state_floats(choice.inst, &choice.dims);
        ck_assert_int_eq(net_state_floats(&b, &choice), 3 * one);
        b.bidirectional = true;
        ck_assert_int_eq(net_state_floats(&b, &choice), (i == 0 ? 6 : 3) * one);
    }
}
END_TEST

START_TEST(each_backbone_declares_its_parameters) {
    static const struct {
        int kind;
        const char *has[4], *lacks[4];
    } cases[] = {
        {BACKBONE_MAD_LM, {"norm.weight", "layers.1.mlp_norm.weight", "head.bias"}, {"layers.0.mlp.weight"}},
        {BACKBONE_SLICE, {"layers.1.mlp.weight", "layers.0.norm.bias"}, {"norm.weight", "layers.0.mlp_gate.weight"}},
        {BACKBONE_SLICE_GLU, {"layers.1.mlp_gate.weight", "layers.0.mlp.bias"}, {"norm.weight"}},
        {BACKBONE_STACKED, {"layers.1.mixer.v.weight"}, {"layers.0.norm.weight", "norm.weight", "layers.0.mlp.weight"}},
        {BACKBONE_S5, {"layers.1.glu.weight", "layers.0.norm.variance"}, {"norm.weight", "layers.0.mlp.w1.weight"}},
        {BACKBONE_VISION, {"norm.weight", "layers.1.mlp_norm.weight", "layers.0.mlp.w1.bias"}, {"positions"}},
        {BACKBONE_SLICE_XLSTM, {"norm.weight", "layers.1.norm.weight"}, {"norm.bias", "layers.1.mlp_norm.weight"}},
        {BACKBONE_SLICE_TRANSFORMER, {"norm.bias", "layers.1.mlp_norm.bias", "layers.0.mlp.w2.bias"}, {"mlp_gate"}},
        {BACKBONE_XLSTM,
         {"norm.weight", "layers.1.norm.weight", "head.bias"},
         {"norm.bias", "layers.1.mlp_norm.weight"}},
    };
    struct trial t;
    struct trial_shape s = small;
    s.model = mixers[0];
    s.kind = cases[_i].kind;
    if (s.kind == BACKBONE_VISION) s.mlp = MLP_GELU;
    trial_open(&t, &s, 9);
    ck_assert_int_eq(cases[_i].kind, kinds[_i]);
    for (int i = 0; i < 4; i++) {
        if (cases[_i].has[i]) ck_assert_msg(params_find(&t.params, cases[_i].has[i]), "no %s", cases[_i].has[i]);
        if (cases[_i].lacks[i]) ck_assert_msg(!params_find(&t.params, cases[_i].lacks[i]), "a %s", cases[_i].lacks[i]);
    }
    trial_close(&t);
}
END_TEST

/* A net is built of what it is given: a mixer of other sizes, or one that was never fitted, is a mistake of the
 * caller. */
START_TEST(a_mixer_fitted_to_other_sizes_is_refused) {
    static const struct dims fits[] = {
        {.B = 2, .T = 6, .D = 8}, {.B = 2, .T = 5, .D = 8}, {.B = 3, .T = 6, .D = 8}, {.B = 2, .T = 6, .D = 16}};
    const struct backbone b = {.dim = 8, .layers = 1, .ssm_lr_factor = 1};
    const struct net_shape shape = {.B = 2, .T = 6, .vocab_in = 5, .vocab_out = 5, .readout = READOUT_POSITIONS};
    for (int i = -1; i < 4; i++) {
        struct model_choice choice;
        struct params params;
        struct graph graph;
        struct net net;
        struct error e = {0};
        ck_assert_int_eq(model_parse(&choice, "lstm", &e), ST_OK);
        if (i >= 0) ck_assert_int_eq(model_fit(&choice, &fits[i], &e), ST_OK);
        ck_assert_int_eq(params_create(&params, &e), ST_OK);
        open_graph(&graph, &params, true, false, "");
        ck_assert_int_eq(net_build(&net, &graph, &b, &choice, &shape, &e), i == 0 ? ST_OK : ST_FAIL);
        if (i != 0) ck_assert_msg(strstr(e.text, "a mixer lstm fitted to") != NULL, "%s", e.text);
        graph_free(&graph);
        params_free(&params);
    }
}
END_TEST

static const struct {
    const char *model, *name;
    int kind, inputs; /* 0: it starts at 0 */
} biases[] = {
    {"slice", "head.bias", BACKBONE_SLICE, 64},
    {"slice", "layers.0.mlp.bias", BACKBONE_SLICE, 64},
    {"mamba2:headdim=8", "head.bias", BACKBONE_SLICE_GLU, 64},
    {"mamba2:headdim=8", "layers.0.mlp.bias", BACKBONE_SLICE_GLU, 64},
    {"mamba2:headdim=8", "layers.0.mlp_gate.bias", BACKBONE_SLICE_GLU, 64},
    {"lstm:hidden=64", "head.bias", BACKBONE_STACKED, 64},
    {"lstm:hidden=100", "layers.0.mixer.bx", BACKBONE_STACKED, 100},
    {"lstm:hidden=100", "layers.0.mixer.bh", BACKBONE_MAD_LM, 100},
    {"mamba2:headdim=8", "layers.0.mixer.conv.bias", BACKBONE_MAD_LM, 4},
    {"lstm:hidden=64", "head.bias", BACKBONE_MAD_LM, 0},
    {"lstm:hidden=64", "head.bias", BACKBONE_S5, 0},
    {"lstm:hidden=64", "layers.0.glu.bias", BACKBONE_S5, 0},
    {"lstm:hidden=64", "head.bias", BACKBONE_VISION, 0},
};

/* The biases of linear maps start where the authors' do: uniform within 1 / sqrt(inputs) where the framework's default
 * is left alone (structured-linear-cdes; PyTorch's LSTM and convolution everywhere), at 0 where it is reset (MAD). */
START_TEST(biases_start_where_the_authors_do) {
    struct trial t;
    struct trial_shape s = {.model = biases[_i].model, .kind = biases[_i].kind, .B = 1, .T = 4, .V = 90, .D = 64};
    s.layers = 1;
    trial_open(&t, &s, 11);
    const struct param *p = params_find(&t.params, biases[_i].name);
    ck_assert_msg(p != NULL, "no %s", biases[_i].name);
    double bound = biases[_i].inputs ? 1 / sqrt((double)biases[_i].inputs) : 0, least = 0, most = 0;
    for (int64_t e = 0; e < p->count; e++) {
        double value = (double)t.params.value[p->offset + e];
        least = fmin(least, value);
        most = fmax(most, value);
    }
    ck_assert_msg(-bound <= least && least <= -0.9 * bound && 0.9 * bound <= most && most <= bound,
                  "%s of %s: from %g to %g, expected all within +-%g", p->name, biases[_i].model, least, most, bound);
    trial_close(&t);
}
END_TEST

static const struct {
    const char *model, *name;
    enum readout readout;
    double sd; /* of the values */
} maps[] = {
    {"bdlru:m=2,blocks=32", "layers.0.mixer.gates.weight", READOUT_DECODED, 0.02},
    {"bdlru:m=2,blocks=32,gate-init=5", "layers.0.mixer.gates.weight", READOUT_DECODED, 0.1},
    {"bdlru:m=2,blocks=32", "layers.0.mlp.w3.weight", READOUT_DECODED, 0.02},
    {"bdlru:m=2,blocks=32", "decoder.1.linear.weight", READOUT_DECODED, 0.02},
    {"bdlru:m=2,blocks=32", "head.weight", READOUT_DECODED, 0.02},
    {"deltanet:heads=2", "layers.0.mixer.q.weight", READOUT_DECODED, 0.02},
    {"deltanet:heads=2", "layers.0.mixer.q.conv", READOUT_DECODED, 0.5 / 1.7320508},
    {"lstm:hidden=64", "layers.0.mixer.wh", READOUT_DECODED, 0.125 / 1.7320508},
    {"bdlru:m=2,blocks=32", "layers.0.mixer.gates.weight", READOUT_POSITIONS, 0.125 / 1.7320508},
    {"bdlru:m=2,blocks=32", "layers.0.mlp.w1.weight", READOUT_POSITIONS, 0.125 / 1.7320508},
};

/* MAD's auto-encoder draws all linear maps anew from N(0, .02^2), also in mixers and the MLP; its other nets,
 * convolutions and the LSTM's own maps keep theirs, uniform within 1 / sqrt(inputs). */
START_TEST(linear_maps_start_where_mads_do) {
    struct trial t;
    struct trial_shape s = {.model = maps[_i].model, .B = 1, .T = 4, .V = 90, .D = 64, .mlp = MLP_SWIGLU};
    s.layers = 1;
    s.readout = maps[_i].readout;
    trial_open(&t, &s, 11);
    const struct param *p = params_find(&t.params, maps[_i].name);
    ck_assert_msg(p != NULL, "no %s", maps[_i].name);
    double squares = 0;
    for (int64_t e = 0; e < p->count; e++) squares += pow((double)t.params.value[p->offset + e], 2);
    double sd = sqrt(squares / (double)p->count), tolerance = 4 / sqrt(2 * (double)p->count); /* 4 sigma, relative */
    ck_assert_msg(fabs(sd / maps[_i].sd - 1) < tolerance, "%s of %s: sd %g, expected %g", p->name, maps[_i].model, sd,
                  maps[_i].sd);
    trial_close(&t);
}
END_TEST

Suite *check_backbone(void);
Suite *check_backbone(void) {
    Suite *suite = suite_create("backbone");
    TCase *tests = tcase_create("backbone");
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    if (REAL_IS_DOUBLE) tcase_add_loop_test(tests, gradients_match_central_differences, 0, 2 * KINDS * READOUTS * 2);
    if (REAL_IS_DOUBLE) tcase_add_loop_test(tests, gradients_of_scaled_branches_match_central_differences, 0, 2);
    tcase_add_test(tests, a_branch_is_scaled_channel_by_channel);
    tcase_add_test(tests, stacked_layers_have_dropout_between_them);
    tcase_add_test(tests, a_linear_encoder_has_no_bias);
    tcase_add_loop_test(tests, values_are_encoded_by_a_linear_map, 0, 2 * KINDS);
    tcase_add_loop_test(tests, padding_does_not_matter, 0, 2 * 2 * 2 * KINDS);
    tcase_add_test(tests, a_mixer_fitted_to_other_sizes_is_refused);
    tcase_add_test(tests, both_directions_are_alike);
    tcase_add_test(tests, only_causal_mixers_are_doubled);
    tcase_add_test(tests, the_auto_encoder_sees_one_vector);
    tcase_add_test(tests, batch_norm_counts_rows_in_use);
    tcase_add_loop_test(tests, the_slice_paper_wraps_each_mixer_in_its_way, 0, (int)(sizeof wrapped / sizeof *wrapped));
    tcase_add_test(tests, the_norm_of_xlstm_is_a_layer_norm_around_one);
    tcase_add_test(tests, a_net_has_the_state_of_all_its_mixers);
    tcase_add_loop_test(tests, each_backbone_declares_its_parameters, 0, KINDS);
    tcase_add_loop_test(tests, biases_start_where_the_authors_do, 0, (int)(sizeof biases / sizeof *biases));
    tcase_add_loop_test(tests, linear_maps_start_where_mads_do, 0, (int)(sizeof maps / sizeof *maps));
    suite_add_tcase(suite, tests);
    return suite;
}

/* check_match.c - --match and --decay-all: the size that is chosen, and the parameters that decay. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/study/graphs.h"
#include "harness/study/study.h"
#include "kernels/train/train.h"
#include "tests/testing.h"

/* `flags`: lines of a config file. NULL with *e set. */
static struct setup *setup_on(const char *model, const char *flags, struct error *e) {
    char none[LABEL_TEXT] = "";
    struct config c;
    ck_assert_int_eq(config_default(&c, e), ST_OK);
    ck_assert_msg(config_read_text(flags, "flags", &c, none, none, e) == ST_OK, "%s", e->text);
    return setup_make(&c, "s3:length=8", model, e);
}

static double amount(const struct setup *s, bool state) {
    struct estimate size;
    struct error e = {0};
    if (state) return (double)net_state_floats(&s->spec.config.net, &s->shapes.model);
    ck_assert_msg(graphs_estimate(&s->spec, &s->shapes, &size, &e) == ST_OK, "%s", e.text);
    return (double)size.params;
}

static const struct {
    const char *model, *match;
    double wished, tolerance; /* half of what one more unit of the size would change, as a part */
    const char *named;        /* in the identity: the size that was chosen */
} matched[] = {{"lstm", "params=20k", 20000, 0.03, "\ndim="},
               {"rwkv7", "params=20k", 20000, 0.12, "\ndim="},
               {"slice", "params=20k", 20000, 0.12, "\ndim="},
               {"bdlru:m=3", "params=20k", 20000, 0.05, "\ndim="},
               {"deltanet", "state=400", 400, 0.01, "\ndim="},
               {"lstm", "state=64", 64, 0.01, "\ndim="},
               {"s5", "state=40", 40, 0.01, "\nmodel.state=20\n"},
               {"lru", "state=41", 41, 0.03, "\nmodel.state="},
               {"bdlru:m=3", "state=60", 60, 0.01, "\nmodel.blocks=20\n"},
               {"mamba2", "state=256", 256, 0.01, "\nmodel.state=1\n"},
               {"mamba2:range=signed", "state=1024", 1024, 0.01, "\nmodel.state=4\n"},
               {"mamba2", "state=100", 100, 0.3, "\ndim=64\n"}, /* at width 128 a state has 256 numbers or more */
               {"mamba3", "state=256", 256, 0.3, "\nmodel.state=4\n"}};

START_TEST(the_size_comes_nearest_and_the_run_is_the_one_that_names_it) {
    char flags[80], dim[80];
    struct error e = {0};
    snprintf(flags, sizeof flags, "match=%s\n", matched[_i].match);
    struct setup *s = setup_on(matched[_i].model, flags, &e);
    ck_assert_msg(s != NULL, "%s", e.text);
    double got = amount(s, strstr(matched[_i].match, "state") != NULL);
    ck_assert_msg(fabs(got / matched[_i].wished - 1) <= matched[_i].tolerance, "%s: %g, expected %g", matched[_i].model,
                  got, matched[_i].wished);
    ck_assert_str_eq(s->spec.config.match, "");
    ck_assert_msg(strstr(s->id.text, matched[_i].named) != NULL, "%s", s->id.text);
    if (!strcmp(matched[_i].named, "\ndim=")) {
        snprintf(dim, sizeof dim, "dim=%lld\n", (long long)s->spec.config.net.dim);
        struct setup *plain = setup_on(matched[_i].model, dim, &e);
        ck_assert_msg(plain != NULL, "%s", e.text);
        ck_assert_str_eq(plain->id.run_id, s->id.run_id);
        setup_free(plain);
    }
    setup_free(s);
}
END_TEST

START_TEST(a_wish_that_cannot_be_met_is_refused) {
    static const struct {
        const char *model, *flags, *message;
    } refused[] = {
        {"lstm", "match=params\n", "--match"},
        {"lstm", "match=params=20k,state=3\n", "expected params=N or state=N, one of the two"},
        {"lstm", "match=parms=20k\n", "did you mean 'params'?"},
        {"conv:m=2", "match=state=0\n", "--match"},
        /* a narrower net would neither fit better nor have a larger state */
        {"mamba2:headdim=7", "match=state=640\ndim=128\n",
         "headdim=7 does not divide the inner width expand * width = 256;"},
        {"mamba2", "match=state=999999999\ndim=128\n", "the nearest net of mamba2 has 16777216, at width 128"},
        /* every net that fits has a larger state, down to the width 32 */
        {"mamba2:headdim=64", "match=state=10\ndim=128\n", "mamba2 has 256, at width 128"}};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct error e = {0};
        struct setup *s = setup_on(refused[i].model, refused[i].flags, &e);
        ck_assert_msg(s == NULL, "%s %s", refused[i].model, refused[i].flags);
        ck_assert_int_eq(e.status, ST_USAGE);
        ck_assert_msg(strstr(e.text, refused[i].message) != NULL, "%s", e.text);
    }
}
END_TEST

/* Elements that --decay acts on. */
static int64_t decayed(const char *model, const char *backbone, const char *decay_all) {
    char flags[120];
    struct error e = {0};
    struct params params = {0};
    struct graph train = {0}, update = {0};
    struct step_nets nets;
    struct place cpu = {.device = DEVICE_CPU};
    int64_t n = 0;
    snprintf(flags, sizeof flags, "dim=16\ndecay=0.1\nbackbone=%s\ndecay-all=%s\n", backbone, decay_all);
    struct setup *s = setup_on(model, flags, &e);
    ck_assert_msg(s != NULL, "%s", e.text);
    const struct graph_source from = {&s->spec, &s->shapes, &cpu};
    ck_assert_int_eq(params_create(&params, &e), ST_OK);
    ck_assert_msg(graphs_build_training(&train, &from, &params, &nets, &e) == ST_OK, "%s", e.text);
    ck_assert_msg(graphs_build_update(&update, &from, &params, NULL, &e) == ST_OK, "%s", e.text);
    const struct adamw_attr *attr = adamw_attr(&update.calls[update.n_calls - 1]);
    for (int i = 0; i < attr->n_segments; i++) n += attr->segments[i].decay > 0 ? attr->segments[i].count : 0;
    graph_free(&train);
    graph_free(&update);
    params_free(&params);
    setup_free(s);
    return n;
}

START_TEST(decay_all_says_whether_the_state_decays) {
    const char *mamba2 = "mamba2:headdim=8";
    ck_assert_int_gt(decayed(mamba2, "s5", "yes"), decayed(mamba2, "s5", "auto"));
    ck_assert_int_eq(decayed(mamba2, "s5", "no"), decayed(mamba2, "s5", "auto")); /* S5 exempts them itself */
}
END_TEST

/* In MAD's net, which decays every parameter, `no` exempts what the mixers' authors exempt: here with D = 16.
 * A parameter of fewer than 16 elements counts as 16, to which it is padded. */
START_TEST(decay_all_exempts_what_the_authors_exempt) {
    static const struct {
        const char *model;
        int64_t exempt;
    } cases[] = {{"mamba2:headdim=8", 3 * 16},                     /* dt.bias, A.log and skip of 4 heads */
                 {"slstm:heads=2", 4 * 16 * 8 + 4 * 16 + 16 + 16}, /* recurrent.weight, bias, conv.bias, norm.weight */
                 {"mlstm:heads=2", 16 + 3 * 32},                   /* gates.bias, conv.bias, norm.weight, skip */
                 {"xlstm:heads=2", 16 + 3 * 32},                   /* one layer, an mLSTM */
                 {"rglru:heads=2", 16 + 2 * (16 * 8 + 16) + 4 * 16}, /* A, both gates, four biases */
                 {"mingru", 0},
                 {"gla", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t all = decayed(cases[i].model, "mad-lm", "yes"), most = decayed(cases[i].model, "mad-lm", "no");
        ck_assert_int_eq(decayed(cases[i].model, "mad-lm", "auto"), all);
        ck_assert_msg(all - most == cases[i].exempt, "%s: %lld exempt, expected %lld", cases[i].model,
                      (long long)(all - most), (long long)cases[i].exempt);
    }
}
END_TEST

/* The mixers that list parameters of their own give runs with --decay-all no another version; all others do not. */
START_TEST(decay_all_no_of_such_a_mixer_has_a_version) {
    static const struct {
        const char *model, *flags;
        bool marked;
    } cases[] = {{"slstm", "decay-all=no\n", true},
                 {"slstm", "decay-all=auto\n", false},
                 {"slstm", "decay-all=yes\n", false},
                 {"mamba2", "decay-all=no\n", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error e = {0};
        struct setup *s = setup_on(cases[i].model, cases[i].flags, &e);
        ck_assert_msg(s != NULL, "%s", e.text);
        ck_assert_msg((strstr(s->id.numerics, "+decay-all.2") != NULL) == cases[i].marked, "%s %s: %s", cases[i].model,
                      cases[i].flags, s->id.numerics);
        setup_free(s);
    }
}
END_TEST

Suite *check_match(void);
Suite *check_match(void) {
    Suite *suite = suite_create("match");
    TCase *tests = tcase_create("match");
    tcase_add_loop_test(tests, the_size_comes_nearest_and_the_run_is_the_one_that_names_it, 0,
                        sizeof matched / sizeof *matched);
    tcase_add_test(tests, a_wish_that_cannot_be_met_is_refused);
    tcase_add_test(tests, decay_all_says_whether_the_state_decays);
    tcase_add_test(tests, decay_all_exempts_what_the_authors_exempt);
    tcase_add_test(tests, decay_all_no_of_such_a_mixer_has_a_version);
    suite_add_tcase(suite, tests);
    return suite;
}

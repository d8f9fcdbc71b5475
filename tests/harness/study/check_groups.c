/* check_groups.c - which parameters decay and at which rate they are trained, net by net: what the papers' codes do,
 * looked up in the segments that the optimiser's update goes over. */
#include <string.h>

#include "harness/study/study.h"
#include "harness/study/graphs.h"
#include "tests/harness/run/small_run.h"
#include "tests/lib/support.h"

#define DECAY  0.1
#define FACTOR 0.25

/* Parameters of the net of these flags, "key=value key=value", by the ends of their names. */
static const struct {
    const char *model, *flags, *name;
    double decay, rate;
} wanted[] = {
    /* mad-lab decays all */
    {"lru:state=6", "", "embedding", DECAY, 1},
    {"lru:state=6", "", "norm.weight", DECAY, 1},
    {"lru:state=6", "", "nu.log", DECAY, 1},
    {"mamba2:state=4,headdim=8", "", "A.log", DECAY, 1},
    {"mamba2:state=4,headdim=8", "", "dt.bias", DECAY, 1},
    {"mamba2:state=4,headdim=8", "", "skip", DECAY, 1},
    {"mamba2:state=4,headdim=8", "", "in.weight", DECAY, 1},
    {"deltaproduct:heads=2,forget=yes", "", "A.log", DECAY, 1},
    {"myosotis:heads=2", "", "up.re", DECAY, 1},
    {"myosotis:heads=2", "", "nodes", 0, 1},
    /* structured-linear-cdes decays all but "embedding" */
    {"mamba2:state=4,headdim=8", "backbone=slice-paper", "embedding", 0, 1},
    {"mamba2:state=4,headdim=8", "backbone=slice-paper", "A.log", DECAY, 1},
    {"mamba2:state=4,headdim=8", "backbone=slice-paper", "dt.bias", DECAY, 1},
    {"mamba2:state=4,headdim=8", "backbone=slice-paper", "skip", DECAY, 1},
    {"mamba2:state=4,headdim=8", "backbone=slice-paper", "0.norm.weight", DECAY, 1},
    {"lru:state=6", "backbone=slice-paper", "nu.log", DECAY, 1},
    {"mlstm:heads=2", "backbone=slice-paper", "0.norm.weight", DECAY, 1},
    {"mlstm:heads=2", "backbone=slice-paper", "embedding", 0, 1},
    {"attention:heads=2", "backbone=slice-paper", "mlp.w1.bias", DECAY, 1},
    {"attention:heads=2", "backbone=slice-paper", "embedding", 0, 1},
    {"lru:state=6", "backbone=slice-glu", "theta.log", DECAY, 1},
    {"lru:state=6", "backbone=slice", "gamma.log", DECAY, 1},
    {"deltaproduct:heads=2,forget=yes", "backbone=stacked", "A.log", DECAY, 1},
    {"myosotis:heads=2", "backbone=slice", "nodes", 0, 1},
    {"slice", "backbone=slice-paper", "mixer.A", DECAY, 1},
    {"slice", "backbone=slice-paper", "embedding", 0, 1},
    /* S5: the state's parameters and batch norm have a rate of their own and no decay, everything else decays */
    {"lru:state=6", "backbone=s5 ssm-lr-factor=0.25", "embedding", DECAY, 1},
    {"lru:state=6", "backbone=s5 ssm-lr-factor=0.25", "norm.weight", 0, FACTOR},
    {"lru:state=6", "backbone=s5 ssm-lr-factor=0.25", "norm.bias", 0, FACTOR},
    {"lru:state=6", "backbone=s5 ssm-lr-factor=0.25", "nu.log", 0, FACTOR},
    {"lru:state=6", "backbone=s5 ssm-lr-factor=0.25", "glu.weight", DECAY, 1},
    {"lru:state=6", "backbone=s5 ssm-lr-factor=0.25", "glu.bias", DECAY, 1},
    {"lru:state=6", "backbone=s5 ssm-lr-factor=0.25", "head.weight", DECAY, 1},
    {"lru:state=6", "backbone=s5", "norm.weight", 0, 1},
    {"mamba2:state=4,headdim=8", "backbone=s5 ssm-lr-factor=0.25", "A.log", 0, FACTOR},
    {"mamba2:state=4,headdim=8", "backbone=s5 ssm-lr-factor=0.25", "mixer.norm.weight", DECAY, 1}, /* the mixer's own */
    {"myosotis:heads=2", "backbone=s5 ssm-lr-factor=0.25", "up.re", 0, FACTOR},
    /* pLSTM's images: maps alone decay, and a norm's weight is none, the mixer's own neither */
    {"mlstm:heads=2", "backbone=vision", "up.weight", DECAY, 1},
    {"mlstm:heads=2", "backbone=vision", "mixer.norm.weight", 0, 1},
    {"plstm:heads=2", "backbone=vision", "mixer.norm.weight", 0, 1},
    {"mlstm:heads=2", "backbone=vision layer-scale=1", "0.scale", 0, 1},
    /* xLSTM: matrices, but not the embedding */
    {"slstm:heads=2", "backbone=xlstm", "recurrent.weight", DECAY, 1},
    {"slstm:heads=2", "backbone=xlstm", "conv.weight", DECAY, 1},
    {"slstm:heads=2", "backbone=xlstm", "mlp.w1.weight", DECAY, 1},
    {"slstm:heads=2", "backbone=xlstm", "mixer.bias", 0, 1},
    {"slstm:heads=2", "backbone=xlstm", "mixer.norm.weight", 0, 1},
    {"slstm:heads=2", "backbone=xlstm", "0.norm.weight", 0, 1},
    {"slstm:heads=2", "backbone=xlstm", "embedding", 0, 1},
};
#define N_WANTED ((int)(sizeof wanted / sizeof *wanted))

static struct setup *setup_with(const char *model, const char *flags, struct error *e) {
    struct config c;
    struct label l;
    ck_assert_int_eq(config_default(&c, e), ST_OK);
    ck_assert_int_eq(config_set(&c, "dim", "16", e), ST_OK);
    ck_assert_int_eq(config_set(&c, "decay", "0.1", e), ST_OK);
    ck_assert_msg(label_parse_pairs(&l, "flags", flags, " ", e) == ST_OK, "%s", e->text);
    for (int i = 0; i < l.n; i++)
        ck_assert_msg(config_set(&c, label_key(&l, i), label_value(&l, i), e) == ST_OK, "%s", e->text);
    return setup_make(&c, SMALL_TASK, model, e);
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* The segment that holds the whole parameter. */
static const struct adamw_segment *segment_of(const struct graph *update, const struct param *p) {
    const struct adamw_attr *a = update->calls[update->n_calls - 1].attr;
    for (int i = 0; i < a->n_segments; i++) {
        const struct adamw_segment *s = &a->segments[i];
        if (s->offset <= p->offset && p->offset + p->count <= s->offset + s->count) return s;
    }
    return NULL;
}

static void expect_groups(const struct graph *update, const struct params *params, int i) {
    int found = 0;
    for (int k = 0; k < params->n; k++) {
        const struct param *p = &params->list[k];
        const struct adamw_segment *s = segment_of(update, p);
        ck_assert_msg(!s == (p->spec.group == PARAM_CONST), "%s", p->name);
        if (!ends_with(p->name, wanted[i].name)) continue;
        ck_assert_msg(s && s->decay == wanted[i].decay && s->rate == wanted[i].rate, "%s %s: %s has decay %g, rate %g",
                      wanted[i].model, wanted[i].flags, p->name, s ? s->decay : -1, s ? s->rate : -1);
        found++;
    }
    ck_assert_msg(found > 0, "%s has no parameter %s", wanted[i].model, wanted[i].name);
}

START_TEST(each_net_trains_its_parameters_as_its_paper_does) {
    struct error e = {0};
    struct setup *s = setup_with(wanted[_i].model, wanted[_i].flags, &e);
    ck_assert_msg(s != NULL, "%s", e.text);
    const struct place cpu = {0};
    const struct graph_source from = {&s->spec, &s->shapes, &cpu};
    struct params params;
    struct graph train, update;
    struct step_nets nets;
    ck_assert_int_eq(params_create(&params, &e), ST_OK);
    ck_assert_int_eq(graphs_build_training(&train, &from, &params, &nets, &e), ST_OK);
    ck_assert_int_eq(graphs_build_update(&update, &from, &params, NULL, &e), ST_OK);
    expect_groups(&update, &params, _i);
    graph_free(&train);
    graph_free(&update);
    params_free(&params);
    small_run_free(s);
}
END_TEST

START_TEST(a_rate_of_its_own_is_of_s5_alone) {
    static const char *const others[] = {"mad-lm",      "slice",       "slice-glu",         "stacked",
                                         "slice-paper", "slice-xlstm", "slice-transformer", "xlstm"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct error e = {0};
        char flags[64];
        snprintf(flags, sizeof flags, "ssm-lr-factor=0.25 backbone=%s", others[i]);
        ck_assert_ptr_null(setup_with("lru", flags, &e));
        ck_assert_int_eq(e.status, ST_USAGE);
        ck_assert_msg(strstr(e.text, "--ssm-lr-factor 0.25 is for --backbone s5") != NULL, "%s", e.text);
    }
}
END_TEST

Suite *check_groups(void);
Suite *check_groups(void) {
    Suite *suite = suite_create("groups");
    TCase *tests = tcase_create("groups");
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_loop_test(tests, each_net_trains_its_parameters_as_its_paper_does, 0, N_WANTED);
    tcase_add_test(tests, a_rate_of_its_own_is_of_s5_alone);
    suite_add_tcase(suite, tests);
    return suite;
}

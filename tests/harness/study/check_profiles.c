/* check_profiles.c - a run is of the profile that it is called, or custom. */
#include <stdlib.h>
#include <string.h>

#include "core/schedule.h"
#include "harness/study/request.h"
#include "harness/study/profile.h"
#include "tests/lib/support.h"
#include "tests/tasks/task_examples.h"

/* The runs of a profile of a task, with one more flag or NULL, and models of the caller's or NULL. */
static void make(struct plan *plan, const char *task, const char *name, const char *flag, const char *value,
                 const char *models) {
    static struct request r;
    static struct resolved resolved;
    struct error e = {0};
    bool done = true;
    r = (struct request){.name = ""};
    *plan = (struct plan){.n = 0};
    enum status status = request_flag(&r, "profile", name, &done, &e);
    if (status == ST_OK) status = request_flag(&r, "variants", "no", &done, &e);
    if (status == ST_OK && flag) status = request_flag(&r, flag, value, &done, &e);
    if (status == ST_OK && models) status = request_flag(&r, "models", models, &done, &e);
    if (status == ST_OK) status = request_words(&r, &task, 1, &e);
    if (status == ST_OK) status = request_plan(&r, plan, &resolved, &e);
    ck_assert_msg(status == ST_OK && done, "%s: %s", task, e.text);
    ck_assert_int_gt(plan->n, 0);
}

static void expect_all(const struct plan *plan, const char *name, const char *what) {
    for (int i = 0; i < plan->n; i++)
        ck_assert_msg(strcmp(plan->setups[i]->spec.config.profile, name) == 0, "%s, %s: profile %s, expected %s", what,
                      plan->setups[i]->id.model_label, plan->setups[i]->spec.config.profile, name);
}

static const char *const tasks[] = {"s3",       "s5",      "s4-3k",    "compression", "hlru-recall", "mqar",
                                    "parity",   "listops", "a5-slice", "digits",      "shapes",      "pathfinder",
                                    "brackets", "spirals", "pairs",    "arrow",       "smnist",      "psmnist",
                                    "zmnist",   "scifar",  "zcifar",   "lra-image"};
static const char *const names[] = {"smoke", "quick"};

START_TEST(what_a_profile_makes_is_of_it) {
    struct plan plan;
    make(&plan, tasks[_i], names[0], NULL, NULL, NULL);
    expect_all(&plan, "smoke", tasks[_i]);
    plan_free(&plan);
    make(&plan, tasks[_i], names[1], NULL, NULL, NULL);
    expect_all(&plan, "quick", tasks[_i]);
    plan_free(&plan);
}
END_TEST

/* Myosotis on MNIST has S5's small net, CIFAR-10 S4's; the Long Range Arena's image warms up over 18000 steps. */
START_TEST(released_images_have_the_nets_of_their_papers) {
    static const struct {
        const char *task;
        int64_t dim, layers, warmup;
    } cases[] = {{"smnist", 96, 4, 1080}, {"zmnist", 96, 4, 1080}, {"psmnist", 96, 4, 1080},
                 {"scifar", 512, 6, 900}, {"zcifar", 512, 6, 900}, {"lra-image", 512, 6, 18000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan plan;
        make(&plan, cases[i].task, "paper", NULL, NULL, "myosotis:form=skew");
        const struct config *c = &plan.setups[0]->spec.config;
        ck_assert_int_eq(c->net.dim, cases[i].dim);
        ck_assert_int_eq(c->net.layers, cases[i].layers);
        ck_assert_int_eq(c->warmup, cases[i].warmup);
        expect_all(&plan, "paper", cases[i].task);
        plan_free(&plan);
    }
}
END_TEST

/* The paper's scheduler is called after each epoch, here of 13 steps: 5 epochs of warm-up, the first at a millionth of
 * the rate. */
START_TEST(the_papers_graphs_warm_up_epoch_by_epoch) {
    static const struct {
        int64_t step;
        double rate;
    } cases[] = {{0, 1e-9}, {12, 1e-9}, {13, 2e-4}, {25, 2e-4}, {64, 8e-4}, {65, 1e-3}, {77, 1e-3}};
    struct plan plan;
    make(&plan, "molecules", "paper", NULL, NULL, "gcn");
    struct schedule schedule = setup_schedule(&plan.setups[0]->spec.config, &plan.setups[0]->shapes);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_double_eq_tol(schedule_rate(&schedule, cases[i].step), cases[i].rate, 1e-15);
    plan_free(&plan);
}
END_TEST

/* The configuration of zoology's Figure 2 has no MLP and ends at .99 of the validation or after 64 epochs. */
START_TEST(the_papers_mqar_is_that_of_its_figure) {
    struct plan plan;
    make(&plan, "mqar", "paper", NULL, NULL, "mamba2");
    for (int i = 0; i < plan.n; i++) {
        const struct setup *s = plan.setups[i];
        ck_assert_str_eq(s->id.model_label, "mamba2;none");
        ck_assert_double_eq(s->spec.config.stop_at, 0.99);
        ck_assert_int_eq(s->shapes.steps, 64 * s->shapes.steps_per_epoch);
    }
    expect_all(&plan, "paper", "mqar");
    plan_free(&plan);
}
END_TEST

/* Six layers of SLiCE on 2000 tokens are past fp32 at the first step. */
START_TEST(listops_of_the_papers_length_is_without_slice) {
    const struct profile *p;
    struct error e = {0};
    ck_assert_int_eq(profile_find("listops", "lra", "paper", &p, &e), ST_OK);
    ck_assert_ptr_null(strstr(profile_get(p, "models"), "slice"));
    ck_assert_ptr_nonnull(strstr(p->note, "without slice"));
    ck_assert_int_eq(profile_find("listops", "lra", "quick", &p, &e), ST_OK);
    ck_assert_ptr_nonnull(strstr(profile_get(p, "models"), "slice"));
}
END_TEST

START_TEST(another_flag_makes_it_custom) {
    static const struct {
        const char *flag, *value, *models, *profile;
    } cases[] = {
        {"dim", "24", NULL, "custom"},
        {"epochs", "199", NULL, "custom"},
        {"steps", "100", NULL, "custom"},
        {"dropout", "0.1", NULL, "custom"},
        {"stop-after", "5999", NULL, "custom"},
        {"eval-every", "7", NULL, "custom"},
        {NULL, NULL, "lstm@dim=64", "custom"},
        {NULL, NULL, "bdlru:m=4 conv lstm:hidden=16", "quick"},
        {"device", "cpu", "lstm", "quick"},
        {"budget", "90s", "lstm", "custom"}, /* in place of the profile's --stop-after */
        {"kernel", "reference", "lstm", "quick"},
        {"threads", "2", "lstm", "quick"},
        {"dim", "128", "lstm", "quick"}, /* as it is there */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan plan;
        make(&plan, "s3", "quick", cases[i].flag, cases[i].value, cases[i].models);
        expect_all(&plan, cases[i].profile, cases[i].flag ? cases[i].flag : cases[i].models);
        plan_free(&plan);
    }
}
END_TEST

/* A flag that the profile varies has the profile's values and no other. */
START_TEST(an_axis_has_the_profiles_values) {
    static const char *const cases[][2] = {{"1", "quick"}, {"2", "quick"}, {"3", "custom"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan plan;
        make(&plan, "a5-slice", "quick", "layers", cases[i][0], "lstm");
        expect_all(&plan, cases[i][1], cases[i][0]);
        plan_free(&plan);
    }
}
END_TEST

/* s5: 2500 steps, but of BD-LRU m = 5 5000, also where the command line names that model. */
START_TEST(a_models_own_flags_are_the_profiles) {
    struct plan plan;
    int longer = 0;
    make(&plan, "s5", "quick", NULL, NULL, NULL);
    for (int i = 0; i < plan.n; i++) longer += plan.setups[i]->spec.config.stop_after > 2500;
    ck_assert_int_eq(longer, 1);
    expect_all(&plan, "quick", "s5");
    plan_free(&plan);
    make(&plan, "s5", "quick", NULL, NULL, "bdlru:m=5");
    expect_all(&plan, "quick", "bdlru:m=5");
    ck_assert_int_eq(plan.setups[0]->spec.config.stop_after, 5000);
    plan_free(&plan);
    make(&plan, "s5", "quick", NULL, NULL, "bdlru:m=4");
    ck_assert_int_eq(plan.setups[0]->spec.config.stop_after, 2500);
    plan_free(&plan);
    make(&plan, "s5", "quick", NULL, NULL, "lstm@stop-after=14000");
    expect_all(&plan, "custom", "lstm@stop-after=14000");
    plan_free(&plan);
}
END_TEST

/* Runs that the profile makes only with flags of their own (lstm@dim=1024), or with examples of their own. */
START_TEST(flags_and_task_options_that_the_profile_never_has_make_it_custom) {
    static const struct {
        const char *task, *profile, *models, *is;
    } cases[] = {
        {"a5-slice:length=3", "paper", "lstm", "paper"},
        {"a5-slice:length=3", "paper", "lstm@dim=128", "custom"},
        {"a5-slice:length=3", "paper", "lstm:hidden=16", "custom"},
        {"a5-slice:length=3", "paper", "conv", "paper"},   /* of which it says nothing */
        {"a5-slice:length=21", "paper", "lstm", "custom"}, /* 3 to 20 */
        {"a5-slice:length=20", "paper", "lstm", "paper"},
        {"a5-slice:length=3,n_train=100k", "quick", "lstm", "quick"},
        {"a5-slice:length=3,n_train=90k", "quick", "lstm", "custom"},
        {"digits", "quick", "lru", "quick"},
        {"digits:size=14", "quick", "lru", "custom"},
        {"molecules", "quick", "plstm-graph:mode=PD,direction=both", "quick"},
        {"molecules", "quick", "plstm-graph:mode=PD,direction=both@degree-code=no", "custom"},
        {"hlru-compress", "hlru-paper", "lstm", "hlru-paper"}, /* a base, its changes, and neither */
        {"hlru-compress:vocab=32", "hlru-paper", "lstm", "hlru-paper"},
        {"hlru-compress:length=128", "hlru-paper", "lstm", "hlru-paper"},
        {"hlru-compress:length=96", "hlru-paper", "lstm", "custom"},
        {"hlru-compress:length=128", "smoke", "lstm", "custom"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan plan;
        make(&plan, cases[i].task, cases[i].profile, NULL, NULL, cases[i].models);
        expect_all(&plan, cases[i].is, cases[i].task);
        plan_free(&plan);
    }
}
END_TEST

START_TEST(a_rate_of_another_grid_and_a_name_of_ones_own) {
    struct config c;
    struct error e = {0};
    static const struct {
        const char *called, *lr, *profile;
    } cases[] = {{"quick", "0.001", "quick"}, {"quick", "0.002", "custom"}, {"paper", "0.001", "custom"},
                 {"mine", "0.001", "mine"},   {"", "0.001", "custom"},      {"mad", "0.001", "custom"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(config_default(&c, &e), ST_OK);
        static const char *const flags[][2] = {
            {"epochs", "200"}, {"schedule", "cosine-epoch"}, {"mlp", "gelu"}, {"stop-after", "3000"}};
        for (int f = 0; f < 4; f++) ck_assert_int_eq(config_set(&c, flags[f][0], flags[f][1], &e), ST_OK);
        ck_assert_int_eq(config_set(&c, "lr", cases[i].lr, &e), ST_OK);
        ck_assert_int_eq(config_set(&c, "profile", cases[i].called, &e), ST_OK);
        struct setup *s = setup_make(&c, "s3", "lstm", &e);
        ck_assert_msg(s != NULL, "%s", e.text);
        ck_assert_str_eq(s->spec.config.profile, cases[i].profile);
        ck_assert_ptr_nonnull(strstr(s->id.config_text, "profile="));
        setup_free(s);
    }
}
END_TEST

Suite *check_profiles(void);
Suite *check_profiles(void) {
    Suite *suite = suite_create("profiles");
    TCase *c = tcase_create("profiles");
    tcase_add_unchecked_fixture(c, start_kernels, NULL);
    tcase_add_checked_fixture(c, import_data, drop_data);
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, what_a_profile_makes_is_of_it, 0, (int)(sizeof tasks / sizeof *tasks));
    tcase_add_test(c, released_images_have_the_nets_of_their_papers);
    tcase_add_test(c, the_papers_graphs_warm_up_epoch_by_epoch);
    tcase_add_test(c, the_papers_mqar_is_that_of_its_figure);
    tcase_add_test(c, listops_of_the_papers_length_is_without_slice);
    tcase_add_test(c, another_flag_makes_it_custom);
    tcase_add_test(c, an_axis_has_the_profiles_values);
    tcase_add_test(c, a_models_own_flags_are_the_profiles);
    tcase_add_test(c, flags_and_task_options_that_the_profile_never_has_make_it_custom);
    tcase_add_test(c, a_rate_of_another_grid_and_a_name_of_ones_own);
    suite_add_tcase(suite, c);
    return suite;
}

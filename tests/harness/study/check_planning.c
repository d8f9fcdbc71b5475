/* check_planning.c - the runs of a plan, made from the first of each setting, are those that their words alone make. */
#include <string.h>
#include <time.h>

#include "harness/study/request.h"
#include "tests/lib/support.h"
#include "tests/tasks/task_examples.h"

#define FLAGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct request request;
static struct resolved resolved;

/* Plans one task with flags "name=value" up to a NULL. */
static enum status plan_of(struct plan *plan, const char *task, const char *const *flags, struct error *e) {
    request = (struct request){.name = ""};
    *plan = (struct plan){.n = 0};
    for (; *flags; flags++) {
        char name[64];
        const char *at = *flags;
        bool done;
        TRY(text_part(&at, "=", name, sizeof name, e));
        TRY(request_flag(&request, name, at + 1, &done, e));
    }
    TRY(request_words(&request, &task, 1, e));
    return request_plan(&request, plan, &resolved, e);
}

/* The examples of a planned run, whose tables are made when it is done, and of the run alone. */
static void expect_same_examples(const struct setup *a, const struct setup *b) {
    const struct task_shape *shape = &b->spec.task.shape;
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int k = 0; k < 3; k++) {
            int64_t index = spread(shape, (enum split)split, k, 3);
            struct example x = new_example(shape), y = new_example(shape);
            fill_example(&a->spec.task, (enum split)split, index, 1, &x);
            fill_example(&b->spec.task, (enum split)split, index, 2, &y);
            ck_assert_msg(same_example(shape, (enum split)split, &x, &y), "%s: example %d of split %d",
                          b->spec.task.name, (int)index, split);
            free_example(&x);
            free_example(&y);
        }
}

/* Rates and seeds of a setting are made from its first run, not from the words. */
START_TEST(a_planned_run_is_the_run_that_is_resolved_alone) {
    const char *name;
    int tasks = 0;
    import_data();
    for (int i = 0; (name = task_name_at(i)); i++) {
        struct plan plan;
        struct error e = {0};
        enum status status = plan_of(&plan, name, FLAGS("profile=smoke", "lr=0.001,0.003", "seeds=7,2"), &e);
        if (status != ST_OK) continue; /* its data are not those of the tests, or its lengths are not the profile's */
        tasks++;
        for (int k = 0; k < plan.n; k++) {
            struct setup *s = plan.setups[k];
            char config[CONFIG_TEXT];
            ck_assert_ptr_null(s->shapes.host.base);
            ck_assert_int_eq(setup_config_text(&s->spec, config, &e), ST_OK);
            struct setup *alone = setup_stored(config, "a plan", s->spec.config.threads, &e);
            ck_assert_msg(alone != NULL, "%s", e.text);
            ck_assert_str_eq(s->id.text, alone->id.text);
            ck_assert_str_eq(config, alone->id.config_text);
            ck_assert_str_eq(s->id.run_id, alone->id.run_id);
            ck_assert_str_eq(s->id.cell_id, alone->id.cell_id);
            ck_assert_str_eq(s->id.row_id, alone->id.row_id);
            ck_assert_str_eq(s->id.model_label, alone->id.model_label);
            ck_assert_msg(s->estimate.params > 0 && s->estimate.params == plan.setups[k / 4 * 4]->estimate.params,
                          "%s: %d parameters", s->id.model_label, (int)s->estimate.params);
            if (k < 4) {
                ck_assert_msg(setup_open(s, &e) == ST_OK, "%s", e.text);
                expect_same_examples(s, alone);
            }
            setup_free(alone);
        }
        plan_free(&plan);
    }
    ck_assert_int_gt(tasks, 40);
    drop_data();
}
END_TEST

/* A plan that compares each run with all before it takes a hundred times as long for ten times as many. The bound is
 * ten times what a build under the sanitizers takes. */
START_TEST(a_hundred_thousand_runs_are_planned_in_seconds) {
    const char *const *flags = FLAGS("profile=smoke", "models=lstm lru", "lr=1e-4,2e-4,5e-4,1e-3,2e-3", "seeds=10000");
    struct plan plan;
    struct error e = {0};
    clock_t begin = clock();
    ck_assert_msg(plan_of(&plan, "s3", flags, &e) == ST_OK, "%s", e.text);
    ck_assert_double_lt((double)(clock() - begin) / CLOCKS_PER_SEC, 50);
    ck_assert_int_eq(plan.n, 100000);
    plan_free(&plan);
}
END_TEST

/* --confirm-seeds adds seeds after the largest one of a plan. */
START_TEST(an_added_seed_is_in_the_range_of_seeds) {
    struct plan plan;
    struct error e = {0};
    ck_assert_msg(plan_of(&plan, "s3", FLAGS("profile=smoke", "models=lstm", "seeds=7,8"), &e) == ST_OK, "%s", e.text);
    ck_assert_msg(plan_add_seed(&plan, plan.setups[0], 9, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(plan.n, 3);
    ck_assert_int_eq(plan.setups[2]->spec.config.seed, 9);
    ck_assert_int_eq(plan_add_seed(&plan, plan.setups[0], INT64_MAX, &e), ST_USAGE);
    const char *says = "seed=9223372036854775807 (--confirm-seeds): expected a whole number from 0 to ";
    ck_assert_msg(strstr(e.text, says) != NULL, "%s", e.text);
    ck_assert_int_eq(plan.n, 3);
    plan_free(&plan);
}
END_TEST

Suite *check_planning(void);
Suite *check_planning(void) {
    Suite *suite = suite_create("planning");
    TCase *c = tcase_create("planning");
    tcase_set_timeout(c, 300);
    tcase_add_test(c, a_planned_run_is_the_run_that_is_resolved_alone);
    tcase_add_test(c, a_hundred_thousand_runs_are_planned_in_seconds);
    tcase_add_test(c, an_added_seed_is_in_the_range_of_seeds);
    suite_add_tcase(suite, c);
    return suite;
}

/* check_plans.c - plan files and requests: what is read, what is refused, and which runs it comes to. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/study/request.h"
#include "tests/lib/scratch.h"
#include "tests/lib/support.h"
#include "tests/tasks/task_examples.h"

static void write_plan(const char *name, const char *text) {
    char path[SCRATCH_BYTES + 64];
    snprintf(path, sizeof path, "%s/%s", own_folder, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *text, *message;
} bad[] = {
    {"tasks", "PLAN line 1: 'tasks' is not of the form key=value"},
    {"tasks=s3\nmodle=lstm", "PLAN line 2: unknown key 'modle'; did you mean 'models'?"},
    {"quick.epohcs=3", "unknown key 'epohcs'; did you mean 'epochs'?"},
    {"xyzzyx=3", "unknown key 'xyzzyx'; docs/papers.md lists the keys"},
    {"out=/tmp", "unknown key 'out'"},
    {"threads=2", "unknown key 'threads'"},
    {"seed=2", "unknown key 'seed'; did you mean 'seeds'?"},
    {"task.=3", "unknown key 'task.'"},
    {"models=", "PLAN line 1: models has no value"},
    {"model.gate= \n", "model.gate has no value"},
    {"lr=1e-3\ntasks=s3\nlr=1e-4", "PLAN line 3: lr is given twice"},
    {"  lstm\n", "PLAN line 1: begins with a blank, and no value before it goes on"},
    {"differs=\n", "PLAN line 1: differs has no value"},
    {"differs.lstm= \n", "PLAN line 1: differs.lstm has no value"},
    {"differs.lsmt=narrower", "PLAN line 1: unknown model 'lsmt'; did you mean 'lstm'?"},
    {"paper.differs.bdlru:blocs=2=narrower", "did you mean 'blocks'?"},
    {"differs.lstm@dmi=64=narrower", "unknown key 'dmi'; did you mean 'dim'?"},
    {"differs.bdlru:m=2", "PLAN line 1: "},
    {"differs.slice:structure=diagonal-dense,block=16,interval=12,depth=2=A", "expected at most 63; name fewer"},
    {"tasks=s3\ntitle=a\x01z", "PLAN line 2 has a byte 1, which is no text"},
    {"smoke.base=/nowhere.plan", "PLAN line 1: smoke.base: every profile has the same base"},
    {"tasks=s3\nsmoke.profile=paper", "PLAN line 2: smoke.profile: every profile has the same profile"},
};

START_TEST(bad_lines_are_named) {
    struct plan_file p;
    struct error e = {0};
    enum status status = plan_file_parse(&p, "PLAN", bad[_i].text, strlen(bad[_i].text), &e);
    ck_assert_msg(status == ST_USAGE, "%s: status %d", bad[_i].text, status);
    ck_assert_msg(strstr(e.text, bad[_i].message) != NULL, "'%s', expected '%s'", e.text, bad[_i].message);
}
END_TEST

START_TEST(too_much_text_is_refused) {
    static char text[PLAN_FILE_MOST_BYTES + 2];
    struct plan_file p;
    struct error e = {0};
    memset(text, '#', sizeof text - 1);
    ck_assert_int_eq(plan_file_parse(&p, "PLAN", text, sizeof text - 1, &e), ST_USAGE);
    ck_assert_msg(strstr(e.text, "has 65537 bytes, expected at most 65536") != NULL, "%s", e.text);
    ck_assert_int_eq(plan_file_parse(&p, "PLAN", text, 2000, &e), ST_USAGE);
    ck_assert_msg(strstr(e.text, "line 1 has 2000 bytes") != NULL, "%s", e.text);
    ck_assert_int_eq(plan_file_parse(&p, "PLAN", "a\0b", 3, &e), ST_USAGE);
    ck_assert_msg(strstr(e.text, "a byte 0") != NULL, "%s", e.text);
}
END_TEST

START_TEST(a_profile_has_lines_of_its_own_and_values_go_on) {
    static const char text[] = "# a comment\n\ntasks=s3\r\nquick.epochs = 7\nepochs=9\nmodels=lstm\n  lru:state=4 \n";
    struct plan_file p;
    struct error e = {0};
    struct label settings;
    ck_assert_msg(plan_file_parse(&p, "PLAN", text, sizeof text - 1, &e) == ST_OK, "%s", e.text);
    ck_assert_str_eq(plan_file_get(&p, "quick", "epochs"), "7");
    ck_assert_str_eq(plan_file_get(&p, "paper", "epochs"), "9");
    ck_assert_str_eq(plan_file_get(&p, "paper", "models"), "lstm lru:state=4");
    ck_assert_ptr_null(plan_file_get(&p, "paper", "lr"));
    ck_assert_int_eq(plan_file_settings(&p, "quick", &settings, &e), ST_OK);
    ck_assert_int_eq(settings.n, 3);
    ck_assert_str_eq(label_get(&settings, "epochs"), "7");
}
END_TEST

/* A model's own '=' does not end the key; a profile's line stands over the same line without. */
START_TEST(a_plan_says_in_what_it_differs_from_its_paper) {
    static const char text[] = "tasks=s3\ndiffers=a=b, all\ndiffers.bdlru:m=2,blocks=4@dim=64=narrower, of n=3\n"
                               "differs.lstm=no residual\nquick.differs.lstm=no norm\n";
    static const char *const models[] = {"", "bdlru:m=2,blocks=4@dim=64", "lstm"};
    static const char *const texts[] = {"a=b, all", "narrower, of n=3", "no residual"};
    struct plan_file p;
    struct error e = {0};
    struct label settings;
    const char *model = NULL;
    ck_assert_msg(plan_file_parse(&p, "PLAN", text, sizeof text - 1, &e) == ST_OK, "%s", e.text);
    for (int i = 0; i < 3; i++) {
        ck_assert_str_eq(plan_file_differs(&p, "paper", i, &model), texts[i]);
        ck_assert_str_eq(model, models[i]);
    }
    ck_assert_ptr_null(plan_file_differs(&p, "paper", 3, &model));
    ck_assert_str_eq(plan_file_differs(&p, "quick", 2, &model), "no norm");
    ck_assert_int_eq(plan_file_settings(&p, "quick", &settings, &e), ST_OK);
    ck_assert_int_eq(settings.n, 1); /* no run is another for it */
}
END_TEST

START_TEST(a_plan_may_be_based_on_another_but_not_on_itself) {
    char path[SCRATCH_BYTES + 64], text[SCRATCH_BYTES + 128];
    struct plan_file p;
    struct error e = {0};
    write_plan("base.plan", "title=below\ntasks=s3\nmodels=lstm\ndiffers=narrower\n");
    snprintf(text, sizeof text, "base=%s/base.plan\ntasks=s4\n", own_folder);
    write_plan("above.plan", text);
    snprintf(path, sizeof path, "%s/above.plan", own_folder);
    ck_assert_msg(plan_file_read(&p, path, &e) == ST_OK, "%s", e.text);
    ck_assert_str_eq(p.name, "above");
    ck_assert_str_eq(plan_file_get(&p, "", "tasks"), "s4");
    ck_assert_str_eq(plan_file_get(&p, "", "models"), "lstm");
    ck_assert_str_eq(plan_file_get(&p, "", "differs"), "narrower");
    ck_assert_ptr_null(plan_file_get(&p, "", "title"));
    snprintf(text, sizeof text, "base=%s/above.plan\n", own_folder);
    write_plan("base.plan", text);
    ck_assert_int_eq(plan_file_read(&p, path, &e), ST_USAGE);
    ck_assert_msg(strstr(e.text, "above.plan is based on itself, through ") != NULL, "%s", e.text);
    write_plan("above.plan", "base=./above.plan\n"); /* by another path at each turn */
    ck_assert_int_eq(plan_file_read(&p, path, &e), ST_USAGE);
    ck_assert_msg(strstr(e.text, "above.plan is based on itself, through ") != NULL, "%s", e.text);
    write_plan("base.plan", "models=lstm\n"); /* beside the plan that names it, wherever that is read from */
    write_plan("above.plan", "base=base.plan\ntasks=s4\n");
    ck_assert_msg(plan_file_read(&p, path, &e) == ST_OK, "%s", e.text);
    ck_assert_str_eq(plan_file_get(&p, "", "models"), "lstm");
    write_plan("above.plan", "base=none.plan\n");
    ck_assert_int_eq(plan_file_read(&p, path, &e), ST_DATA);
    snprintf(text, sizeof text, "cannot read %s/none.plan: ", own_folder);
    ck_assert_msg(strstr(e.text, text) == e.text, "%s", e.text);
    snprintf(path, sizeof path, "%s/", own_folder);
    ck_assert_int_eq(plan_file_read(&p, path, &e), ST_DATA);
    ck_assert_msg(strstr(e.text, "it is not a file; expected a plan, a file of key=value lines") != NULL, "%s", e.text);
    ck_assert_int_eq(plan_file_read(&p, "no-such-paper", &e), ST_DATA);
    ck_assert_msg(strstr(e.text, "`lrnn list papers` names them") != NULL, "%s", e.text);
}
END_TEST

START_TEST(a_chain_of_bases_ends) {
    char path[SCRATCH_BYTES + 64], name[16], text[64];
    struct plan_file p;
    struct error e = {0};
    for (int i = 0; i < 9; i++) {
        snprintf(name, sizeof name, "%d.plan", i);
        snprintf(text, sizeof text, i ? "base=%d.plan\n" : "tasks=s3\n", i - 1);
        write_plan(name, text);
    }
    snprintf(path, sizeof path, "%s/6.plan", own_folder);
    ck_assert_msg(plan_file_read(&p, path, &e) == ST_OK, "%s", e.text);
    ck_assert_str_eq(plan_file_get(&p, "", "tasks"), "s3");
    for (int i = 7; i < 9; i++) {
        snprintf(path, sizeof path, "%s/%d.plan", own_folder, i);
        ck_assert_int_eq(plan_file_read(&p, path, &e), ST_USAGE);
        ck_assert_msg(strstr(e.text, ".plan is based on more than 6 plans") != NULL, "%s", e.text);
    }
    write_plan("1.plan", "base=no-such-paper\n");
    ck_assert_int_eq(plan_file_read(&p, path, &e), ST_USAGE);
    snprintf(path, sizeof path, "%s/1.plan", own_folder);
    ck_assert_int_eq(plan_file_read(&p, path, &e), ST_DATA);
    ck_assert_msg(strstr(e.text, "there is no plan 'no-such-paper'; `lrnn list papers` names them") != NULL, "%s",
                  e.text);
}
END_TEST

/* A note for readers is a plan's own, also under a profile. */
START_TEST(a_note_is_not_inherited_under_a_profile_either) {
    char path[SCRATCH_BYTES + 64];
    struct plan_file p;
    struct error e = {0};
    write_plan("base.plan", "tasks=s3\nnote=A\nsmoke.note=B\nsmoke.differs=narrower\nsmoke.differs.lstm=no norm\n");
    write_plan("above.plan", "base=base.plan\n");
    snprintf(path, sizeof path, "%s/above.plan", own_folder);
    ck_assert_msg(plan_file_read(&p, path, &e) == ST_OK, "%s", e.text);
    ck_assert_ptr_null(plan_file_get(&p, "smoke", "note"));
    ck_assert_str_eq(plan_file_get(&p, "smoke", "differs"), "narrower");
    ck_assert_str_eq(plan_file_get(&p, "smoke", "differs.lstm"), "no norm");
}
END_TEST

START_TEST(a_plan_and_its_base_that_are_too_long_together_are_named) {
    static char text[LABEL_TEXT];
    char path[SCRATCH_BYTES + 64];
    struct plan_file p;
    struct error e = {0};
    int used = 0;
    for (int i = 0; i < 4; i++) used += snprintf(text + used, sizeof text - (size_t)used, "task.k%d=%0510d\n", i, i);
    write_plan("base.plan", text);
    used = snprintf(text, sizeof text, "base=base.plan\n");
    for (int i = 0; i < 4; i++) used += snprintf(text + used, sizeof text - (size_t)used, "model.k%d=%0510d\n", i, i);
    write_plan("above.plan", text);
    snprintf(path, sizeof path, "%s/above.plan", own_folder);
    ck_assert_int_eq(plan_file_read(&p, path, &e), ST_USAGE);
    ck_assert_msg(strstr(e.text, "above.plan and its base are longer than 4095 characters together") != NULL, "%s",
                  e.text);
}
END_TEST

/* --- requests ----------------------------------------------------------------------------------------------------- */

static struct request request;
static struct resolved resolved;

/* Plans `words` (up to two) with flags "name=value" up to a NULL. */
static enum status plan_of(struct plan *plan, const char *first, const char *second, const char *const *flags,
                           struct error *e) {
    const char *words[] = {first, second};
    request = (struct request){.name = ""};
    *plan = (struct plan){.n = 0};
    for (; *flags; flags++) {
        char name[64];
        const char *at = *flags;
        bool done;
        ck_assert_int_eq(text_part(&at, "=", name, sizeof name, e), ST_OK);
        TRY(request_flag(&request, name, at + 1, &done, e));
        ck_assert_msg(done, "%s was not taken", name);
    }
    TRY(request_words(&request, words, second ? 2 : 1, e));
    return request_plan(&request, plan, &resolved, e);
}

static void expect_runs(int runs, const char *first, const char *second, const char *const *flags) {
    struct plan plan;
    struct error e = {0};
    enum status status = plan_of(&plan, first, second, flags, &e);
    ck_assert_msg(status == ST_OK, "%s: %s", first, e.text);
    ck_assert_msg(plan.n == runs, "%s: %d runs, expected %d", first, plan.n, runs);
    plan_free(&plan);
}

#define FLAGS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NONE       ((const char *const[]){NULL})

START_TEST(tasks_seeds_and_grids_multiply) {
    expect_runs(1050, "hlru-table2", NULL, NONE); /* 5 tasks, 14 models, 3 rates, 5 seeds */
    expect_runs(2 * 3, "hlru-table2", "s4", FLAGS("models=lstm lru", "seeds=7..9", "lr=0.1"));
    expect_runs(70, "hlru-table2", NULL, FLAGS("profile=quick"));
    expect_runs(4, "hlru-table1", "hlru-recall", FLAGS("models=lstm", "seeds=1", "lr=0.1"));
    expect_runs(1, "hlru-table1", "hlru-recall", FLAGS("models=lstm", "seeds=1", "lr=0.1", "variants=no"));
    expect_runs(4, "hlru-table1", "hlru-recall", FLAGS("models=lstm", "seeds=1", "lr=0.1", "variants=yes"));
    expect_runs(2 * 2 * 3, "s3", "s4", FLAGS("profile=smoke", "models=hlru:m=2..4", "seeds=3,9"));
    expect_runs(
        2 * (4 + 1), "s3", NULL,
        FLAGS("profile=smoke", "models=bdlru lstm", "grid=model.gate=softmax,none model.m=1..2 task.n_train=9,8"));
    expect_runs(1 + 2, "s3", NULL, /* what a label sets itself stays */
                FLAGS("profile=smoke", "models=bdlru:m=3 hlru", "grid=model.m=1..2"));
    expect_runs(6, "s3", NULL, FLAGS("profile=smoke", "models=lstm", "layers=1..3", "decay=0,0.1"));
    expect_runs(4, "s3", NULL, FLAGS("profile=smoke", "models=lstm", "mlp=none,gelu", "norm=layernorm,rmsnorm"));
    expect_runs(14 * 3 * 3, "hlru-decoder", NULL, NONE); /* each with three MLPs and rates */
}
END_TEST

START_TEST(the_command_line_stands_over_the_plan_and_the_plan_over_the_profile) {
    char path[SCRATCH_BYTES + 64];
    struct plan plan;
    struct error e = {0};
    write_plan("own.plan", "tasks=s3\nmodels=lstm@dim=24\nprofile=smoke\nepochs=3\nsmoke.batch=16\nquick.batch=8\n");
    snprintf(path, sizeof path, "%s/own.plan", own_folder);
    ck_assert_msg(plan_of(&plan, path, NULL, NONE, &e) == ST_OK, "%s", e.text);
    ck_assert_str_eq(resolved.profile, "smoke");
    ck_assert_int_eq(plan.n, 1);
    ck_assert_int_eq(plan.setups[0]->spec.config.epochs, 3);
    ck_assert_int_eq(plan.setups[0]->spec.config.batch, 16);
    ck_assert_int_eq(plan.setups[0]->spec.config.net.dim, 24);
    plan_free(&plan);
    ck_assert_msg(plan_of(&plan, path, NULL, FLAGS("epochs=5", "profile=quick", "dim=40"), &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(plan.setups[0]->spec.config.epochs, 5);
    ck_assert_int_eq(plan.setups[0]->spec.config.batch, 8);
    ck_assert_int_eq(plan.setups[0]->spec.config.net.dim, 40);
    ck_assert_int_eq(plan.setups[0]->spec.config.stop_after, 0); /* a length was given, so the profile's is void */
    plan_free(&plan);
}
END_TEST

static int count_rate(const struct plan *plan, double rate) {
    int n = 0;
    for (int i = 0; i < plan->n; i++) n += plan->setups[i]->spec.config.lr == rate;
    return n;
}

/* A rate after a model's '@' is its only one; for the profile's words, unless the command line lists rates. */
START_TEST(a_model_has_a_rate_of_its_own) {
    struct plan plan;
    struct error e = {0};
    expect_runs(1 + 2, "s3", NULL, FLAGS("profile=smoke", "models=lstm@lr=0.03 lru", "lr=0.01,0.02"));
    ck_assert_msg(plan_of(&plan, "s3", NULL, FLAGS("profile=smoke", "models=lru lstm@lr=0.03,dim=24"), &e) == ST_OK,
                  "%s", e.text);
    ck_assert_double_eq(plan.setups[1]->spec.config.lr, 0.03);
    ck_assert_double_ne(plan.setups[0]->spec.config.lr, 0.03);
    plan_free(&plan);
    ck_assert_msg(plan_of(&plan, "digits", NULL, NONE, &e) == ST_OK, "%s", e.text);
    int own = count_rate(&plan, 0.003);
    ck_assert_int_gt(own, 0);
    ck_assert_int_lt(own, plan.n);
    plan_free(&plan);
    ck_assert_msg(plan_of(&plan, "digits", NULL, FLAGS("lr=0.02"), &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(count_rate(&plan, 0.02), plan.n);
    plan_free(&plan);
}
END_TEST

/* a5-slice's quick profile trains one and two layers; a plan that says one trains one. */
START_TEST(one_value_of_a_plan_stands_over_the_profiles_axis) {
    char path[SCRATCH_BYTES + 64];
    struct plan plan;
    struct error e = {0};
    write_plan("own.plan", "tasks=a5-slice\nmodels=lstm\nprofile=quick\nlayers=1\n");
    snprintf(path, sizeof path, "%s/own.plan", own_folder);
    ck_assert_msg(plan_of(&plan, path, NULL, NONE, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(plan.n, 2); /* lengths 3 and 4 */
    for (int i = 0; i < plan.n; i++) ck_assert_int_eq(plan.setups[i]->spec.config.net.layers, 1);
    plan_free(&plan);
}
END_TEST

/* Counts the runs of what plan_of makes that have that value of a flag. */
static int runs_with(const char *flag, const char *value, const char *first, const char *const *flags) {
    struct plan plan;
    struct error e = {0};
    int n = 0;
    const struct option *o = option_find(backbone_options, flag);
    enum status status = plan_of(&plan, first, NULL, flags, &e);
    ck_assert_msg(status == ST_OK, "%s: %s", first, e.text);
    for (int i = 0; i < plan.n; i++) {
        char text[OPTION_TEXT + 1];
        option_format_value(o ? o : option_find(config_options, flag), &plan.setups[i]->spec.config, text, sizeof text);
        n += !strcmp(text, value);
    }
    plan_free(&plan);
    return n;
}

/* The paper's profile of a5-slice has lstm@dim=1024 and an axis of layers. */
START_TEST(what_is_asked_for_stands_over_what_the_profile_has_behind_a_model) {
    static const char *const base[] = {"profile=paper", "models=lstm", "layers=1", "seeds=1"};
    char path[SCRATCH_BYTES + 64], file[SCRATCH_BYTES + 64];
    snprintf(path, sizeof path, "%s/own.plan", own_folder);
    snprintf(file, sizeof file, "c=%s/run.conf", own_folder);
    const char *const *lists = FLAGS(base[0], base[1], base[2], base[3], "dim=32,64");
    ck_assert_int_eq(runs_with("dim", "1024", "a5-slice:length=3", FLAGS(base[0], base[1], base[2], base[3])), 1);
    ck_assert_int_eq(runs_with("dim", "32", "a5-slice:length=3", lists), 1);
    ck_assert_int_eq(runs_with("dim", "64", "a5-slice:length=3", lists), 1);
    ck_assert_int_eq(runs_with("dim", "1024", "a5-slice:length=3", lists), 0);
    write_plan("run.conf", "dim=32\nlayers=2\nlr=0.02\n");
    const char *const *from_file = FLAGS(base[0], base[1], base[3], file);
    ck_assert_int_eq(runs_with("dim", "32", "a5-slice:length=3", from_file), 1);
    ck_assert_int_eq(runs_with("layers", "2", "a5-slice:length=3", from_file), 1); /* in place of the axis, too */
    ck_assert_int_eq(runs_with("lr", "0.02", "a5-slice:length=3", from_file), 1);
    write_plan("own.plan", "tasks=a5-slice:length=3\nmodels=lstm\nprofile=paper\nlayers=1\ndim=32\n");
    ck_assert_int_eq(runs_with("dim", "32", path, NONE), 1);
    write_plan("own.plan", "tasks=a5-slice:length=3\nmodels=lstm\nprofile=paper\nlayers=1,3\ndim=16,48\n");
    ck_assert_int_eq(runs_with("dim", "48", path, NONE), 2);
    ck_assert_int_eq(runs_with("dim", "32", path, FLAGS(file)), 1); /* the file stands over the plan's lists */
}
END_TEST

/* Flags after a model's '@' in a plan overrule its line for all models. */
START_TEST(a_plans_own_models_keep_their_flags) {
    char path[SCRATCH_BYTES + 64], file[SCRATCH_BYTES + 64];
    snprintf(path, sizeof path, "%s/own.plan", own_folder);
    snprintf(file, sizeof file, "c=%s/run.conf", own_folder);
    write_plan("own.plan", "tasks=s3\nmodels=lstm@dim=24 lru\nprofile=smoke\ndim=48\n");
    write_plan("run.conf", "dim=32\n");
    ck_assert_int_eq(runs_with("dim", "24", path, NONE), 1);
    ck_assert_int_eq(runs_with("dim", "48", path, NONE), 1);
    ck_assert_int_eq(runs_with("dim", "32", path, FLAGS(file)), 2);
    ck_assert_int_eq(runs_with("dim", "40", path, FLAGS(file, "dim=40,56")), 2);
    ck_assert_int_eq(runs_with("dim", "20", path, FLAGS(file, "models=lstm@dim=20")), 1);
}
END_TEST

/* The profile of parity trains for so many steps. */
START_TEST(epochs_that_are_asked_for_stand_over_steps) {
    static const char *const models = "models=lstm";
    char path[SCRATCH_BYTES + 64], file[SCRATCH_BYTES + 64];
    struct plan plan;
    struct error e = {0};
    snprintf(path, sizeof path, "%s/own.plan", own_folder);
    snprintf(file, sizeof file, "c=%s/run.conf", own_folder);
    ck_assert_msg(plan_of(&plan, "parity", NULL, FLAGS(models), &e) == ST_OK, "%s", e.text);
    int64_t epoch = plan.setups[0]->shapes.steps_per_epoch, steps = plan.setups[0]->shapes.steps;
    char three[32], five[32], of_profile[32];
    snprintf(three, sizeof three, "%d", (int)(3 * epoch));
    snprintf(five, sizeof five, "%d", (int)(5 * epoch));
    snprintf(of_profile, sizeof of_profile, "%d", (int)steps);
    ck_assert_int_ne(steps, 3 * epoch);
    plan_free(&plan);
    ck_assert_int_eq(runs_with("steps", three, "parity", FLAGS(models, "epochs=3")), 1);
    ck_assert_int_eq(runs_with("steps", five, "parity", FLAGS(models, "epochs=3,5")), 1);
    ck_assert_int_eq(runs_with("steps", three, "parity", FLAGS("models=lstm@epochs=3")), 1);
    ck_assert_int_eq(runs_with("steps", "70", "parity", FLAGS(models, "epochs=3", "steps=70")), 1);
    write_plan("run.conf", "epochs=3\n");
    ck_assert_int_eq(runs_with("steps", three, "parity", FLAGS(models, file)), 1);
    ck_assert_int_eq(runs_with("steps", "70", "parity", FLAGS(models, file, "steps=70")), 1);
    write_plan("run.conf", "steps=80\n");
    ck_assert_int_eq(runs_with("steps", three, "parity", FLAGS(models, file, "epochs=3")), 1);
    write_plan("own.plan", "tasks=parity\nmodels=lstm@steps=90\nsteps=70,80\n");
    ck_assert_int_eq(runs_with("steps", "90", path, NONE), 1);
    ck_assert_int_eq(runs_with("steps", three, path, FLAGS("epochs=3")), 1);
    write_plan("own.plan", "tasks=parity\nmodels=lstm\nepochs=3,5\n");
    ck_assert_int_eq(runs_with("steps", three, path, NONE), 1);
    ck_assert_int_eq(runs_with("steps", of_profile, path, NONE), 0);
}
END_TEST

/* Between a plan and its base, and between a profile's lines and the plain ones, as between a flag and a plan. */
START_TEST(epochs_of_a_plan_stand_over_steps_from_below_and_steps_over_epochs) {
    char path[SCRATCH_BYTES + 64], two[32];
    struct plan plan;
    struct error e = {0};
    snprintf(path, sizeof path, "%s/own.plan", own_folder);
    ck_assert_msg(plan_of(&plan, "s3", NULL, FLAGS("profile=smoke", "models=lstm", "epochs=2"), &e) == ST_OK, "%s",
                  e.text);
    snprintf(two, sizeof two, "%d", (int)plan.setups[0]->shapes.steps);
    ck_assert_str_ne(two, "500");
    plan_free(&plan);
    write_plan("base.plan", "tasks=s3\nmodels=lstm\nprofile=smoke\nsteps=500\n");
    write_plan("own.plan", "base=base.plan\nepochs=2\n");
    ck_assert_int_eq(runs_with("steps", two, path, NONE), 1);
    write_plan("own.plan", "base=base.plan\nepochs=2,3\n");
    ck_assert_int_eq(runs_with("steps", two, path, NONE), 1);
    ck_assert_int_eq(runs_with("steps", "500", path, NONE), 0);
    expect_runs(1, path, NULL, FLAGS("steps=500")); /* a run for each number of epochs would be one training twice */
    write_plan("own.plan", "base=base.plan\nsmoke.epochs=2\n");
    ck_assert_int_eq(runs_with("steps", two, path, NONE), 1);
    write_plan("own.plan", "tasks=s3\nmodels=lstm\nsteps=500\nsmoke.epochs=2\n");
    ck_assert_int_eq(runs_with("steps", two, path, FLAGS("profile=smoke")), 1);
    ck_assert_int_eq(runs_with("steps", "500", path, FLAGS("profile=quick")), 1);
    write_plan("base.plan", "tasks=s3\nmodels=lstm\nprofile=smoke\nepochs=2,3\n");
    write_plan("own.plan", "base=base.plan\nsteps=500\n");
    expect_runs(1, path, NULL, NONE);
}
END_TEST

static const struct {
    const char *first, *flags[5], *message;
    enum status status;
} misfits[] = {
    {"s3", {"seeds=0"}, "seeds=0 (command line): expected a whole number from 1 to 100000", ST_USAGE},
    {"s3", {"seeds=-1"}, "seeds=-1", ST_USAGE},
    {"s3", {"seeds=1000000000"}, "seeds=1000000000 (command line): expected a whole number from 1 to 100000", ST_USAGE},
    {"s3", {"seeds=1..1000000000"}, "has too many values", ST_USAGE},
    {"s3", {"seeds=3,3"}, "seed 3 is given twice", ST_USAGE},
    {"s3", {"seeds=3,9223372036854775807"}, "seed=9223372036854775807 (command line): expected a whole", ST_USAGE},
    {"s3", {"seeds=9100000000000000000..9100000000000000001"}, "seed=9100000000000000000 (command line)", ST_USAGE},
    {"s3", {"seeds=3,x"}, "seeds=3,x (command line): expected", ST_USAGE},
    {"s3", {"seeds="}, "seeds= (command line): expected a whole number", ST_USAGE},
    {"s3", {"lr="}, "lr= (command line): expected a number from 0 to 1000000, got ''", ST_USAGE},
    {"s3", {"lr=1e-3,"}, "lr= (command line): expected a number", ST_USAGE},
    {"s3", {"lr=1e-3,1e30"}, "lr=1e30 (command line): expected a number from 0 to 1000000", ST_USAGE},
    {"s3",
     {"lr=1e-3,5e-6", "schedule=cosine"},
     "--lr 5e-06 is below --lr-min 1e-05, to which the cosine would rise",
     ST_USAGE},
    {"s3", {"variants=some"}, "variants=some (command line): expected yes or no, got 'some'", ST_USAGE},
    {"s3", {"lr=nan"}, "lr=nan (command line): expected a number", ST_USAGE},
    {"s3", {"models= "}, "--models names no model", ST_USAGE},
    {"s3", {"seed=3"}, "use --seeds n", ST_USAGE},
    {"s3", {"models=lstm@seed=3"}, "lstm@seed=3: a seed of one model alone; --seeds lists", ST_USAGE},
    {"s3", {"models=lstm@lr=fast"}, "lr=fast", ST_USAGE},
    {"s3", {"models=lstm@layers=1,2"}, "lstm@layers=1,2: a list after one model's '@'; name the model once", ST_USAGE},
    {"s3", {"grid=gate=none"}, "grid: 'gate' is neither task.OPTION nor model.OPTION", ST_USAGE},
    {"s3", {"grid=model.gaet=none", "profile=smoke"}, "model.gaet: no model here has an option of that name", ST_USAGE},
    {"s3", {"grid=model.gate=none,soft", "profile=smoke"}, "gate=soft", ST_USAGE},
    {"s3", {"seeds=50000", "profile=smoke"}, "the plan has 150000 runs or more, and at most 100000", ST_USAGE},
    {"s3", {"layers=1..256", "dim=1..1000"}, "the plan has 256000 runs or more", ST_USAGE},
    {"s3",
     {"layers=1..100", "dim=1..100", "seeds=100000", "profile=smoke"},
     "the plan has 1000000000 runs or more",
     ST_USAGE},
    {"s3", {"grid=task.n_train=1..1000 task.n_val=1..1000 task.n_test=1..1000"}, "more than 1000 values", ST_USAGE},
    {"s3", {"models=lstm@quiet=yes"}, "lstm@quiet=yes: 'quiet' is of all runs", ST_USAGE},
    {"s3", {"models=lstm@out=elsewhere"}, "'out' is of all runs and cannot stand after one model's '@'", ST_USAGE},
    {"s3", {"models=lstm@device=cuda"}, "give --device instead", ST_USAGE},
    {"s3",
     {"models=bdlru:m=3 bdlru:m=4", "grid=model.m=1,2"},
     "--grid model.m=1,2: every model here that has the option sets it itself",
     ST_USAGE},
    {"s3:n_train=9", {"grid=task.n_train=8", "profile=smoke"}, "every task here that has the option", ST_USAGE},
    {"hlru", {NULL}, "neither a task nor a plan 'hlru'; did you mean", ST_USAGE},
    {"hlru-tabel2", {NULL}, "did you mean 'hlru-table2'? `lrnn list tasks` and `lrnn list papers` name", ST_USAGE},
    {"s33", {NULL}, "did you mean 's3'?", ST_USAGE},
    {"s33:n_train=9", {NULL}, "nor a plan 's33'; did you mean 's3'?", ST_USAGE},
    {"s3:length", {NULL}, "task s3: 'length' is not of the form name=value", ST_USAGE},
    {"s3:length=8,length=9", {NULL}, "given twice", ST_USAGE},
    {"s3", {"models=lstm@from=/x"}, "bench draws the weights of every seed", ST_USAGE},
    {"xylophone-recital", {NULL}, "nor a plan 'xylophone-recital'; `lrnn list tasks`", ST_USAGE},
    {"./no-such.plan", {NULL}, "cannot read ./no-such.plan", ST_DATA},
    {"hlru-table2", {"profile=mad"}, "unknown profile 'mad'; of s3", ST_USAGE},
};

START_TEST(misfits_are_refused_in_one_sentence) {
    struct plan plan;
    struct error e = {0};
    const char *flags[6] = {misfits[_i].flags[0], misfits[_i].flags[1], misfits[_i].flags[2], misfits[_i].flags[3],
                            NULL};
    enum status status = plan_of(&plan, misfits[_i].first, NULL, flags, &e);
    ck_assert_msg(status == misfits[_i].status, "status %d: %s", status, e.text);
    ck_assert_msg(strstr(e.text, misfits[_i].message) != NULL, "'%s', expected '%s'", e.text, misfits[_i].message);
    plan_free(&plan);
}
END_TEST

START_TEST(a_plan_without_tasks_is_told_what_it_lacks) {
    char path[SCRATCH_BYTES + 64];
    struct plan plan;
    struct error e = {0};
    write_plan("own.plan", "title=T\nmodels=lstm\n");
    snprintf(path, sizeof path, "%s/own.plan", own_folder);
    ck_assert_int_eq(plan_of(&plan, path, NULL, FLAGS("profile=smoke"), &e), ST_USAGE);
    ck_assert_msg(strstr(e.text, "the plan own names no tasks; add a line tasks=s3 s5") != NULL, "%s", e.text);
    plan_free(&plan);
}
END_TEST

START_TEST(shards_are_the_plan_and_no_run_is_in_two) {
    struct plan all, part;
    struct error e = {0};
    int found = 0;
    const char *const *flags = FLAGS("profile=smoke", "seeds=3");
    ck_assert_int_eq(plan_of(&all, "s3", "s4", flags, &e), ST_OK);
    for (int64_t shard = 1; shard <= 4; shard++) {
        ck_assert_int_eq(plan_of(&part, "s3", "s4", flags, &e), ST_OK);
        ck_assert_int_eq(plan_keep_shard(&part, shard, 4, &e), ST_OK);
        ck_assert_int_ge(part.n, all.n / 4);
        for (int i = 0; i < part.n; i++)
            for (int k = 0; k < all.n; k++) found += !strcmp(part.setups[i]->id.run_id, all.setups[k]->id.run_id);
        plan_free(&part);
    }
    ck_assert_int_eq(found, all.n);
    plan_free(&all);
}
END_TEST

/* Every plan that ships makes runs, in its own profile (of one rate and seed here), the quick one and the smallest. */
START_TEST(every_shipped_plan_makes_runs) {
    static const char *const profiles[] = {"profile=smoke", "profile=quick", NULL};
    const char *name;
    struct error e = {0};
    ck_assert_ptr_nonnull(plan_file_built_in(PLAN_PAPERS, 10));
    import_data();
    for (int i = 0; (name = plan_file_built_in(PLAN_PAPERS, i)); i++)
        for (int k = 0; k < 3; k++) {
            struct plan plan;
            enum status status = plan_of(&plan, name, NULL, FLAGS("seeds=1", "lr=0.001", profiles[k]), &e);
            bool missing = status == ST_DATA && strstr(e.text, "`lrnn data import pathfinder128 FOLDER`"); /* 16 MB */
            ck_assert_msg((status == ST_OK && plan.n > 1) || (missing && !profiles[k]), "%s, %s: %s", name,
                          profiles[k] ? profiles[k] : "its own", e.text);
            ck_assert_msg(plan_file_get(&request.file, "", "source") != NULL, "%s names no source", name);
            ck_assert_ptr_nonnull(plan_file_get(&request.file, "", "title"));
            plan_free(&plan);
        }
    drop_data();
}
END_TEST

Suite *check_plans(void) {
    Suite *suite = suite_create("plans");
    TCase *c = tcase_create("plans");
    tcase_add_checked_fixture(c, own_folder_begin, own_folder_end);
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, bad_lines_are_named, 0, (int)(sizeof bad / sizeof *bad));
    tcase_add_test(c, too_much_text_is_refused);
    tcase_add_test(c, a_profile_has_lines_of_its_own_and_values_go_on);
    tcase_add_test(c, a_plan_says_in_what_it_differs_from_its_paper);
    tcase_add_test(c, a_plan_may_be_based_on_another_but_not_on_itself);
    tcase_add_test(c, a_chain_of_bases_ends);
    tcase_add_test(c, a_note_is_not_inherited_under_a_profile_either);
    tcase_add_test(c, a_plan_and_its_base_that_are_too_long_together_are_named);
    tcase_add_test(c, tasks_seeds_and_grids_multiply);
    tcase_add_test(c, the_command_line_stands_over_the_plan_and_the_plan_over_the_profile);
    tcase_add_test(c, one_value_of_a_plan_stands_over_the_profiles_axis);
    tcase_add_test(c, a_model_has_a_rate_of_its_own);
    tcase_add_test(c, what_is_asked_for_stands_over_what_the_profile_has_behind_a_model);
    tcase_add_test(c, a_plans_own_models_keep_their_flags);
    tcase_add_test(c, epochs_that_are_asked_for_stand_over_steps);
    tcase_add_test(c, epochs_of_a_plan_stand_over_steps_from_below_and_steps_over_epochs);
    tcase_add_loop_test(c, misfits_are_refused_in_one_sentence, 0, (int)(sizeof misfits / sizeof *misfits));
    tcase_add_test(c, a_plan_without_tasks_is_told_what_it_lacks);
    tcase_add_test(c, shards_are_the_plan_and_no_run_is_in_two);
    tcase_add_test(c, every_shipped_plan_makes_runs);
    suite_add_tcase(suite, c);
    return suite;
}

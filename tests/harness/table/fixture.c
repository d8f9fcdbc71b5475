/* fixture.c - see fixture.h. */
#include "tests/harness/table/fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/batch.h"
#include "harness/store/schema.h"

char fixture_folder[SCRATCH_BYTES];
struct error fixture_problem;
struct run_record fixture_records[FIXTURE_MOST];
struct record_set fixture_set;
static struct curve_point curves[FIXTURE_MOST][3];

void ck_ok(enum status status) {
    ck_assert_msg(status == ST_OK, "status %d: %s", status, fixture_problem.text);
}

void fixture_open(void) {
    scratch_make(fixture_folder);
    fixture_set = (struct record_set){.list = fixture_records};
}

void fixture_close(void) {
    scratch_remove(fixture_folder);
}

static void put_line(char *text, size_t size, const char *key, const char *value) {
    char line[RECORD_TEXT], rest[4096] = "";
    int n = snprintf(line, sizeof line, "%s=", key);
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, "\n") + 1;
        if (strncmp(at, line, (size_t)n) != 0) strncat(rest, at, length);
        at += length;
    }
    ck_assert_int_lt(snprintf(text, size, "%s%s%s\n", rest, line, value), (int)size);
}

void identify(struct run *run, const char *key, const char *value) {
    struct run_record *r = &fixture_records[0];
    while (&r->run != run) r++;
    put_line(r->identity, sizeof r->identity, key, value);
    put_line(r->config, sizeof r->config, key, value);
}

/* Adds a line to the identity alone. */
static void add_line(struct run *run, const char *line) {
    struct run_record *r = &fixture_records[0];
    while (&r->run != run) r++;
    strcat(strcat(r->identity, line), "\n");
}

void as_planned(struct run *run, const char *name) {
    struct request *r = calloc(1, sizeof *r);
    struct plan plan = {0};
    struct resolved resolved;
    struct run_record *record = &fixture_records[0];
    bool found = false;
    while (&record->run != run) record++;
    ck_ok(request_words(r, &name, 1, &fixture_problem));
    ck_ok(request_say(r, "seeds", "1", &fixture_problem));
    ck_ok(request_plan(r, &plan, &resolved, &fixture_problem));
    for (int i = 0; i < plan.n && !found; i++) {
        const struct setup *s = plan.setups[i];
        if (strcmp(s->spec.task.name, run->task) != 0 || strcmp(s->spec.model.model->name, run->model) != 0) continue;
        snprintf(record->identity, sizeof record->identity, "%s", s->id.text);
        ck_ok(setup_config_text(&s->spec, record->config, &fixture_problem));
        found = true;
    }
    ck_assert_msg(found, "%s has no run of %s on %s", name, run->model, run->task);
    plan_free(&plan);
    free(r);
}

/* The lines of a run of S5 with that mixer, in the setting of the paper's Table 2; options that are left out are at
 * their defaults. */
static void identify_all(struct run *run) {
    static const char *const settings[][2] = {{"mlp", "gelu"},       {"epochs", "200"},
                                              {"steps", "156400"},   {"schedule", "cosine-epoch"},
                                              {"eval-every", "782"}, {"task.n_train", "100000"}};
    struct label mixer;
    char number[40], name[128];
    ck_ok(run_mixer(run, &mixer, &fixture_problem));
    identify(run, "task", "word-problem");
    identify(run, "task.group", "s5");
    identify(run, "model", run->model);
    for (int i = 0; i < mixer.n; i++) {
        snprintf(name, sizeof name, "model.%s", label_key(&mixer, i));
        identify(run, name, label_value(&mixer, i));
    }
    if (!strcmp(run->layers, "lstm") || !strncmp(run->layers, "lstm;", 5))
        add_line(run, "model.hidden=128"); /* fitted, which nobody asked for */
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) identify(run, settings[i][0], settings[i][1]);
    snprintf(number, sizeof number, "%.17g", run->lr);
    identify(run, "lr", number);
    snprintf(number, sizeof number, "%d", (int)run->seed);
    identify(run, "seed", number);
}

struct run *add_run(const char *layers, double lr, uint64_t seed, double val, double test) {
    struct run_record *r = &fixture_records[fixture_set.n];
    struct run *run = &r->run;
    char text[RECORD_TEXT + 64];
    record_init(r);
    snprintf(text, sizeof text, "%s %g", layers, lr);
    record_hash(text, run->cell_id);
    snprintf(text, sizeof text, "%s %g %d", layers, lr, (int)seed);
    record_hash(text, run->run_id);
    strcpy(run->task, "s5");
    strcpy(run->profile, "paper");
    strcpy(run->suite, "word-problem");
    run->metric = METRIC_ACC;
    strcpy(run->mlp, "gelu");
    snprintf(run->layers, sizeof run->layers, "%s", layers);
    snprintf(run->model, sizeof run->model, "%.*s", (int)strcspn(layers, ":;"), layers);
    run->lr = lr;
    run->seed = seed;
    run->status = RUN_OK;
    run->vocab = 120;
    run->n_train = 100000;
    run->len_train = run->len_test = 16;
    run->d_model = run->batch = 128;
    run->n_layers = 1;
    run->steps = run->max_steps = 300;
    strcpy(run->stop_reason, "steps");
    run->params = 123456;
    run->state_floats = 320;
    run->val_acc = run->val_metric = val;
    run->chance = 1.0 / 120;
    run->val_loss = 1 - val;
    run->test_acc = test;
    run->test_loss = isfinite(test) ? 1 - test : NAN;
    run->test_seq_acc = test / 2;
    run->solved = test >= 0.99;
    r->run.flop_step = 1e6 * (fixture_set.n + 1);
    r->curve = curves[fixture_set.n];
    r->n_curve = 3;
    for (int i = 0; i < 3; i++)
        curves[fixture_set.n][i] = (struct curve_point){
            .step = 100 * (i + 1), .split = SPLIT_VAL, .loss = 1.0 / (i + 1), .acc = val * (i + 1) / 3};
    identify_all(run);
    fixture_set.n++;
    return run;
}

void cut_off(struct run *run, int64_t steps) {
    run->steps = steps;
    strcpy(run->stop_reason, "budget");
}

void spoil(struct run *run, enum run_status status, const char *detail) {
    run->status = status;
    strcpy(run->status_detail, detail);
    run->val_acc = run->val_loss = run->test_acc = run->test_seq_acc = NAN;
    run->solved = 0;
}

void add_grid(void) {
    static const double val[] = {0.9, 0.9, 0.9, 0.8, 0.8, 0.99}, test[] = {0.5, 0.6, 0.7, 0.9, 0.95, 1.0};
    for (int i = 0; i < 6; i++)
        add_run("bdlru:m=5,blocks=64;swiglu", i < 3 ? 1e-3 : 3e-3, (uint64_t)(i % 3), val[i], test[i]);
}

char *render_report(const struct report *report, const struct sheet_format *format) {
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    ck_ok(report_print(report, &fixture_set, NULL, NULL, format, fixture_folder, f, &fixture_problem));
    fclose(f);
    return text;
}

char *render(const struct sheet_format *format, const struct report_filter *filter) {
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    ck_ok(report_print(&report_tables, &fixture_set, filter, NULL, format, fixture_folder, f, &fixture_problem));
    fclose(f);
    return text;
}

void stand_in_for_gnuplot(void) {
    char path[PATH_BYTES];
    static const char *const script = "#!/bin/sh\nf=$(sed -n \"s/^data = '\\(.*\\)'$/\\1/p\" \"$2\")\n"
                                      "cat \"$2\" >script.kept\ncat \"$f\" >data.kept\n: >\"$f.svg\"\n: >\"$f.png\"\n";
    snprintf(path, sizeof path, "%s/gnuplot", fixture_folder);
    spill(path, script, strlen(script));
    ck_assert_int_eq(chmod(path, 0755), 0);
    snprintf(path, sizeof path, "%s:%s", fixture_folder, getenv("PATH"));
    setenv("PATH", path, 1);
}

void ck_holds(const char *text, const char *part) {
    ck_assert_msg(strstr(text, part) != NULL, "\"%s\" is not in\n%s", part, text);
}

struct report_row *only_row(struct report_tables *tables) {
    ck_ok(report_tables_make(tables, &fixture_set, NULL, fixture_folder, &fixture_problem));
    ck_assert_int_eq(tables->n, 1);
    ck_assert_int_eq(tables->list[0].n_rows, 1);
    return tables->list[0].rows;
}

Suite *fixture_suite(const char *name, const TTest *const *tests, int n) {
    Suite *s = suite_create(name);
    TCase *c = tcase_create(name);
    tcase_add_checked_fixture(c, fixture_open, fixture_close);
    tcase_set_timeout(c, 120);
    for (int i = 0; i < n; i++) tcase_add_test(c, tests[i]);
    suite_add_tcase(s, c);
    return s;
}

/* check_series_profiles.c - the profiles of the UEA archive start where they can learn: at the true length of each
 * problem the first gradient of SLiCE, which multiplies one matrix an interval, is a moderate number. */
#include <math.h>
#include <string.h>

#include "core/graph_walk.h"
#include "harness/study/config.h"
#include "harness/study/profile.h"
#include "tests/lib/support.h"

static const struct problem {
    const char *task;
    int64_t channels, labels, length;
} problems[] = {{"eigenworms", 6, 5, 17984},       {"ethanolconcentration", 3, 4, 1751},
                {"heartbeat", 61, 2, 405},         {"motorimagery", 64, 2, 3000},
                {"selfregulationscp1", 6, 2, 896}, {"selfregulationscp2", 7, 2, 1152}};

#define PROBLEMS (int)(sizeof problems / sizeof *problems)

/* Channels that stand still, and channels that turn once in 200 points; with time=yes time before them, as the task has
 * it (tasks/series/series.h). */
static void fill_path(struct trial *t, const struct problem *p, bool time) {
    real *x = tensor_real(t->net.input);
    int64_t C = p->channels + time;
    for (int64_t i = 0; i < p->length; i++)
        for (int64_t c = 0; c < C; c++) {
            double angle = 2 * acos(-1) * (double)i / 200 + (double)c, before = angle - 2 * acos(-1) / 200;
            double moves = c % 2 ? sin(angle) - (i ? sin(before) : 0) : i ? 0 : 0.5;
            double clock = i ? 1 / (double)p->length : 0;
            x[i * C + c] = (real)(time && c == 0 ? clock : moves);
        }
    tensor_i32(t->net.lengths)[0] = (int32_t)p->length;
    tensor_i32(t->net.targets)[0] = 1;
}

static void expect_a_first_step(const struct problem *problem, const struct profile *p, const char *word) {
    char model[2 * LABEL_TEXT];
    struct config c;
    struct label flags;
    struct trial t;
    struct error e = {0};
    bool time = !strcmp(profile_get(p, "task.time"), "yes");
    ck_assert_int_eq(config_default(&c, &e), ST_OK);
    ck_assert_int_eq(profile_flags(p, &flags, &e), ST_OK);
    for (int i = 0; i < flags.n; i++)
        ck_assert_msg(config_set(&c, label_key(&flags, i), label_value(&flags, i), &e) == ST_OK, "%s", e.text);
    int used = snprintf(model, sizeof model, "%s", word);
    for (int i = 0; i < p->settings.n; i++)
        if (!strncmp(label_key(&p->settings, i), "model.", 6))
            used += snprintf(model + used, sizeof model - (size_t)used, ",%s=%s", label_key(&p->settings, i) + 6,
                             label_value(&p->settings, i));
    trial_open(&t,
               &(struct trial_shape){.model = model,
                                     .B = 1,
                                     .T = problem->length,
                                     .V = problem->labels,
                                     .D = c.net.dim,
                                     .layers = c.net.layers,
                                     .kind = BACKBONE_SLICE,
                                     .encoder = c.net.encoder,
                                     .pool = c.net.pool,
                                     .readout = READOUT_SEQUENCE,
                                     .channels = problem->channels + time},
               1);
    fill_path(&t, problem, time);
    graph_forward(&t.graph, &t.state);
    graph_backward(&t.graph, &t.state);
    double square = 0;
    for (int64_t i = 0; i < t.params.floats; i++) square += (double)t.params.grad[i] * (double)t.params.grad[i];
    double loss = (double)tensor_real(t.net.loss)[0];
    ck_assert_msg(loss < 50 && sqrt(square) < 100, "%s, profile %s, %s: loss %g, gradient %g", problem->task, p->name,
                  model, loss, sqrt(square));
    trial_close(&t);
}

/* Dense brackets of more than width 16 are skipped: they alone take longer than the rest. */
START_TEST(slice_starts_moderately_at_the_true_length) {
    const struct problem *problem = &problems[_i % PROBLEMS];
    const struct profile *p;
    struct error e = {0};
    ck_assert_int_eq(profile_find(problem->task, "uea", _i < PROBLEMS ? "paper" : "quick", &p, &e), ST_OK);
    int n = 0;
    for (const char *at = profile_get(p, "models"); *at; at += strspn(at, " ")) {
        char word[LABEL_TEXT];
        ck_assert_int_eq(text_part(&at, " ", word, sizeof word, &e), ST_OK);
        bool slice = strncmp(word, "slice:", 6) == 0, wide = strcmp(profile_get(p, "dim"), "16") != 0;
        if (!slice || (wide && strstr(word, "structure=dense"))) continue;
        expect_a_first_step(problem, p, word);
        n++;
    }
    ck_assert_int_ge(n, 2);
}
END_TEST

Suite *check_series_profiles(void) {
    Suite *s = suite_create("series_profiles");
    TCase *c = tcase_create("series_profiles");
    tcase_add_checked_fixture(c, start_kernels, NULL);
    tcase_add_loop_test(c, slice_starts_moderately_at_the_true_length, 0, PROBLEMS + 1);
    suite_add_tcase(s, c);
    return s;
}

/* check_numerics.c - which numerics version a run carries, and that it is part of what the run is. */
#include <stdlib.h>
#include <string.h>

#include "harness/study/study.h"
#include "harness/study/numerics.h"
#include "tests/testing.h"

/* `flags`: lines of a config file. */
static struct setup *setup_on(const char *task, const char *model, const char *flags) {
    char none[LABEL_TEXT] = "";
    struct config c;
    struct error e = {0};
    ck_assert_int_eq(config_default(&c, &e), ST_OK);
    ck_assert_int_eq(config_set(&c, "dim", "16", &e), ST_OK);
    ck_assert_msg(config_read_text(flags, "flags", &c, none, none, &e) == ST_OK, "%s", e.text);
    c.allow_non_causal = true;
    struct setup *s = setup_make(&c, task, model, &e);
    ck_assert_msg(s != NULL, "%s", e.text);
    return s;
}

static struct setup *setup_of(const char *model, const char *flags) {
    return setup_on("s3", model, flags);
}

static void expect_numerics(const char *model, const char *flags, const char *want) {
    char line[NUMERICS_TEXT + 16];
    struct setup *s = setup_of(model, flags);
    ck_assert_str_eq(s->id.numerics, want);
    snprintf(line, sizeof line, "\nnumerics=%s\n", want);
    ck_assert_msg(strstr(s->id.text, line) != NULL, "%s", s->id.text);
    setup_free(s);
    free(s);
}

START_TEST(a_run_carries_the_versions_of_the_parts_it_uses) {
    expect_numerics("lru:state=8", "", "1");
    expect_numerics("deltanet:heads=2", "", "1+delta.2");
    expect_numerics("deltaproduct:heads=2,steps=2", "", "1+delta.2");
    expect_numerics("plstm:heads=2", "", "1");
    expect_numerics("plstm:heads=2,track=2", "", "1+track.2");
    expect_numerics("plstm:heads=2,track=2,track-init=0", "", "1");
    expect_numerics("lru:state=8", "clip=1", "1+clip.2");
    expect_numerics("lru:state=8", "warmup=3", "1+warmup.2");
    expect_numerics("deltanet:heads=2", "warmup=3\nclip=0.5\n", "1+delta.2+clip.2+warmup.2");
    expect_numerics("bdlru:blocks=8,m=8", "", "1");
    expect_numerics("bdlru:blocks=8,m=9", "", "1+order.2");
    expect_numerics("bdlru:blocks=8,m=9", "kernel=reference", "1+ref.4");
    expect_numerics("hlru:m=16", "clip=1", "1+clip.2+order.2");
    expect_numerics("conv:m=16", "", "1");
    expect_numerics("slice", "", "1+flow.2");
    expect_numerics("plstm2d:heads=2", "", "1+grid.2");
    expect_numerics("plstm-graph:heads=2", "", "1");
    expect_numerics("plstm-graph:heads=2,edges=0-1+0-2", "", "1+dag.2");
    expect_numerics("myosotis:heads=2", "", "1");
    expect_numerics("myosotis:heads=2,arity=1", "", "1+chain.2");
    expect_numerics("myosotis:heads=2,leaves=9", "", "1+chain.2");
    expect_numerics("slice:interval=3", "", "1+interval.2+flow.2");
    expect_numerics("lru:state=8", "kernel=reference", "1+ref.4");
    expect_numerics("lru:state=8", "kernel=cross_entropy_ref", "1+ref.4");
    expect_numerics("lru:state=8", "kernel=linear_ref", "1");
    expect_numerics("lstm", "backbone=s5\ndecay=0.1", "1+s5.2");
    expect_numerics("lru:state=8", "backbone=s5", "1");
    expect_numerics("lru:state=8", "backbone=slice-paper\ndecay=0.1", "1+tags.2+biases.2");
    expect_numerics("lru:state=8", "decay=0.1", "1+tags.2");
    expect_numerics("lru:state=8", "backbone=vision\ndecay=0.1", "1");
    expect_numerics("lstm", "decay=0.1", "1");
    expect_numerics("lstm", "backbone=slice-paper\ndecay=0.1", "1+biases.2");
    expect_numerics("lstm", "backbone=slice-paper\ndropout=0.1", "1+biases.2+stacked.2");
    expect_numerics("lstm", "backbone=stacked\ndropout=0.1", "1+biases.2+stacked.2");
    expect_numerics("lru:state=8", "backbone=slice-paper\ndropout=0.1", "1+biases.2");
    expect_numerics("lstm", "dropout=0.1", "1");
    expect_numerics("deltaproduct:heads=2,forget=yes", "backbone=slice\ndecay=0.1", "1+delta.2+tags.2+biases.2");
}
END_TEST

START_TEST(a_part_may_be_of_a_task) {
    struct setup *s = setup_on("hlru-compress", "lru:state=8", "");
    char stored[NUMERICS_TEXT];
    struct error e;
    ck_assert_str_eq(s->id.numerics, "1+decoded.2");
    ck_assert_msg(numerics_of_stored(s->id.config_text, stored, sizeof stored, &e) == ST_OK, "%s", e.text);
    ck_assert_str_eq(stored, s->id.numerics);
    ck_assert_int_eq(numerics_of_stored("task=nothing\nmodel=lru\n", stored, sizeof stored, &e), ST_USAGE);
    setup_free(s);
    free(s);
}
END_TEST

START_TEST(a_text_without_room_is_an_error) {
    char text[4];
    struct error e = {0};
    struct setup *s = setup_of("deltanet:heads=2", "");
    ck_assert_int_eq(numerics_of(&s->spec.config, s->spec.task.task, &s->shapes.model, text, sizeof text, &e), ST_FAIL);
    ck_assert_msg(strstr(e.text, "3 characters") != NULL, "%s", e.text);
    setup_free(s);
    free(s);
}
END_TEST

Suite *check_numerics(void);
Suite *check_numerics(void) {
    Suite *suite = suite_create("numerics");
    TCase *tests = tcase_create("numerics");
    tcase_add_test(tests, a_run_carries_the_versions_of_the_parts_it_uses);
    tcase_add_test(tests, a_part_may_be_of_a_task);
    tcase_add_test(tests, a_text_without_room_is_an_error);
    suite_add_tcase(suite, tests);
    return suite;
}

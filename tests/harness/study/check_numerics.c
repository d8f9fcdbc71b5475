/* check_numerics.c - the numerics version of a run: which raised parts it names; it is part of the identity. */
#include <stdlib.h>
#include <string.h>

#include "core/graph.h"
#include "harness/study/study.h"
#include "harness/study/numerics.h"
#include "harness/study/setup.h"
#include "tests/testing.h"

/* `flags`: lines of a config file. */
static struct setup *setup_on(const char *task, const char *model, const char *flags) {
    char none[LABEL_TEXT] = "";
    struct config c;
    struct error e = {0};
    ck_assert_int_eq(config_default(&c, &e), ST_OK);
    ck_assert_int_eq(config_set(&c, "dim", "16", &e), ST_OK);
    ck_assert_msg(config_read_text(flags, "flags", &c, none, none, &e) == ST_OK, "%s", e.text);
    struct setup *s = setup_make(&c, task, model, &e);
    ck_assert_msg(s != NULL, "%s", e.text);
    return s;
}

START_TEST(the_version_is_part_of_the_identity) {
    struct setup *s = setup_on("s3", "deltanet:heads=2", "warmup=3\nclip=0.5\n");
    ck_assert_str_eq(s->id.numerics, "1");
    ck_assert_msg(strstr(s->id.text, "\nnumerics=1\n") != NULL, "%s", s->id.text);
    setup_free(s);
}
END_TEST

START_TEST(a_stored_configuration_has_the_version_of_its_run) {
    struct setup *s = setup_on("hlru-compress", "lru:state=8", "");
    char stored[NUMERICS_TEXT], resolved[NUMERICS_TEXT];
    struct error e = {0};
    ck_assert_msg(numerics_of_stored(s->id.config_text, stored, sizeof stored, &e) == ST_OK, "%s", e.text);
    ck_assert_str_eq(stored, s->id.numerics);
    ck_assert_msg(numerics_of_labels(&s->spec.config, "hlru-compress", "lru:state=8", resolved, sizeof resolved, &e) ==
                      ST_OK,
                  "%s", e.text);
    ck_assert_str_eq(resolved, s->id.numerics);
    ck_assert_int_eq(numerics_of_labels(&s->spec.config, "nothing", "lru", resolved, sizeof resolved, &e), ST_USAGE);
    setup_free(s);
}
END_TEST

/* Two ops of which one and some kernels are raised; each is called twice. */
static struct op ops[2];
static struct kernel kernels[5];
static const struct kernel *const kernel_table[] = {&kernels[0], &kernels[1], &kernels[2],
                                                    &kernels[3], &kernels[4], NULL};

static struct graph raised_graph(const char *forced, const struct place *place) {
    static struct call calls[4];
    ops[0] = (struct op){.name = "mix", .version = 2};
    ops[1] = (struct op){.name = "add"};
    kernels[0] = (struct kernel){.name = "mix_wide", .op = &ops[0], .device = DEVICE_CPU, .version = 3};
    kernels[1] = (struct kernel){.name = "mix_ref", .op = &ops[0], .device = DEVICE_CPU, .reference = true};
    kernels[2] = (struct kernel){.name = "mix_cuda", .op = &ops[0], .device = DEVICE_CUDA, .version = 4};
    kernels[3] = (struct kernel){.name = "add_ref", .op = &ops[1], .reference = true, .version = 5};
    kernels[4] = (struct kernel){.name = "add_cuda", .op = &ops[1], .device = DEVICE_CUDA, .version = 1};
    for (int i = 0; i < 4; i++) calls[i].op = &ops[i % 2];
    return (struct graph){
        .options = {.kernel = forced, .place = place, .kernels = kernel_table}, .calls = calls, .n_calls = 4};
}

START_TEST(raised_ops_and_kernels_are_named_once) {
    static const struct place cpu = {.device = DEVICE_CPU}, cuda = {.device = DEVICE_CUDA};
    const struct {
        const char *forced;
        const struct place *place;
        const char *want;
    } cases[] = {{NULL, NULL, "1+mix.2+mix_wide.3+add_ref.5"},
                 {"", &cpu, "1+mix.2+mix_wide.3+add_ref.5"},
                 {"mix_ref", &cpu, "1+mix.2+mix_wide.3+add_ref.5"},
                 {"reference", &cpu, "1+mix.2+add_ref.5"},
                 {"", &cuda, "1+mix.2+mix_cuda.4"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[NUMERICS_TEXT] = NUMERICS_BASE;
        struct error e = {0};
        struct graph g = raised_graph(cases[i].forced, cases[i].place);
        ck_assert_msg(numerics_add_graph(&g, text, sizeof text, &e) == ST_OK, "%s", e.text);
        ck_assert_msg(numerics_add_graph(&g, text, sizeof text, &e) == ST_OK, "%s", e.text);
        ck_assert_str_eq(text, cases[i].want);
    }
}
END_TEST

START_TEST(a_text_without_room_is_an_error) {
    char text[8] = NUMERICS_BASE;
    struct error e = {0};
    struct graph g = raised_graph(NULL, NULL);
    ck_assert_int_eq(numerics_add_graph(&g, text, sizeof text, &e), ST_FAIL);
    ck_assert_msg(strstr(e.text, "1+mix.2+mix_wide.3 has more than 7 characters") != NULL, "%s", e.text);
}
END_TEST

Suite *check_numerics(void);
Suite *check_numerics(void) {
    Suite *suite = suite_create("numerics");
    TCase *tests = tcase_create("numerics");
    tcase_add_test(tests, the_version_is_part_of_the_identity);
    tcase_add_test(tests, a_stored_configuration_has_the_version_of_its_run);
    tcase_add_test(tests, raised_ops_and_kernels_are_named_once);
    tcase_add_test(tests, a_text_without_room_is_an_error);
    suite_add_tcase(suite, tests);
    return suite;
}

/* small_run.c - see small_run.h. */
#include "tests/harness/run/small_run.h"

#include <stdlib.h>

#include "harness/study/study.h"
#include "tests/testing.h"

static struct setup *make(const char *task, const char *batch, const char *folder, const char *mlp, const char *model,
                          const char *flag, const char *value) {
    struct config c;
    struct error e;
    const char *const flags[][2] = {{"dim", "16"},    {"batch", batch}, {"epochs", "10"}, {"eval-every", "5"},
                                    {"threads", "1"}, {"lr", "0.01"},   {"stop-at", "2"}, {"mlp", mlp}};
    ck_assert_int_eq(config_default(&c, &e), ST_OK);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        ck_assert_int_eq(config_set(&c, flags[i][0], flags[i][1], &e), ST_OK);
    ck_assert_int_eq(config_set(&c, "out", folder, &e), ST_OK);
    if (flag) ck_assert_int_eq(config_set(&c, flag, value, &e), ST_OK);
    struct setup *s = setup_make(&c, task, model, &e);
    ck_assert_msg(s != NULL, "%s", e.text);
    return s;
}

struct setup *small_run_of(const char *task, const char *folder, const char *mlp, const char *model, const char *flag,
                           const char *value) {
    return make(task, "128", folder, mlp, model, flag, value);
}

struct setup *small_run(const char *folder, const char *mlp, const char *model, const char *flag, const char *value) {
    return small_run_of(SMALL_TASK, folder, mlp, model, flag, value);
}

struct setup *smaller_run(const char *folder, const char *mlp, const char *model, const char *flag, const char *value) {
    return make("s3:n_train=96,n_val=20,n_test=20,length=8", "40", folder, mlp, model, flag, value);
}

void small_run_free(struct setup *s) {
    setup_free(s);
}

/* layer.c - see layer.h. */
#include "tests/lib/layer.h"

#include "core/graph_walk.h"

#include <string.h>

void layer_build(struct layer *l, const char *text, int64_t T, int64_t D) {
    struct error e = {0};
    struct model_choice choice;
    struct dims d = {.B = 2, .T = T, .D = D};
    ck_assert_msg(model_parse(&choice, text, &e) == ST_OK, "%s", e.text);
    ck_assert_msg(choice.model->check(choice.inst, &d, &e) == ST_OK, "%s", e.text);
    ck_assert_msg(params_create(&l->params, &e) == ST_OK, "%s", e.text);
    open_graph(&l->g, &l->params, false, false, "");
    l->x = input3(&l->g, "x", d.B, T, D, false);
    l->y = choice.model->build(choice.inst, &l->g, l->x);
    ck_assert_msg(l->y != NULL, "%s", l->g.error.text);
    tensor_keep(l->y);
}

void layer_plan(struct layer *l) {
    struct error e = {0};
    ck_assert_msg(params_reserve(&l->params, false, &e) == ST_OK, "%s", e.text);
    params_init(&l->params, 7);
    plan_graph(&l->g);
    fill_tensor(l->x, FILL_SMALL, false);
}

void layer_open(struct layer *l, const char *text, int64_t T, int64_t D) {
    layer_build(l, text, T, D);
    layer_plan(l);
}

void layer_run(struct layer *l) {
    struct step_state state = first_state();
    graph_forward(&l->g, &state);
}

void layer_close(struct layer *l) {
    graph_free(&l->g);
    params_free(&l->params);
}

static const struct param *param_of(struct layer *l, const char *name) {
    const struct param *p = params_find(&l->params, name);
    ck_assert_msg(p != NULL, "there is no parameter %s", name);
    return p;
}

real *layer_values(struct layer *l, const char *name) {
    return l->params.value + param_of(l, name)->offset;
}

void layer_set_all(struct layer *l, const char *name, double value) {
    real *to = layer_values(l, name);
    for (int64_t i = 0; i < param_of(l, name)->count; i++) to[i] = (real)value;
}

void multiply(struct layer *l, const char *name, real factor) {
    real *to = layer_values(l, name);
    for (int64_t i = 0; i < param_of(l, name)->count; i++) to[i] *= factor;
}

double mapped(struct layer *l, const char *name, const real *x, int64_t D, int64_t i) {
    double sum = 0;
    for (int64_t j = 0; j < D; j++) sum += (double)layer_values(l, name)[i * D + j] * x[j];
    return sum;
}

void expect_layer_refused(const char *text, int64_t D, const char *one, const char *other) {
    struct error e = {0};
    struct model_choice choice;
    ck_assert_msg(model_parse(&choice, text, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(choice.model->check(choice.inst, &(struct dims){.B = 2, .T = 5, .D = D}, &e), ST_USAGE);
    ck_assert_msg(strstr(e.text, one) && strstr(e.text, other), "'%s' lacks %s or %s", e.text, one, other);
}

/* verify.c - compares a mixer with a case file; see verify.h. */
#include "harness/run/verify.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/file/safetensors.h"
#include "core/graph_walk.h"
#include "core/label.h"
#include "kernels/kernel.h"
#include "models/model.h"

#define TINY 1e-12 /* if the wanted values are below this, the error is absolute */

/* A case: the file and the mixer built from it. */
struct check {
    const char *path, *kernel;
    const struct place *place;
    struct safetensors file;
    struct model_choice choice;
    struct dims dims;
    struct params params;
    struct graph graph;
    struct tensor *x, *y;
    struct arena values; /* room for one tensor in the order of the case file */
    size_t values_mark;
    real *reals; /* room for one tensor in the graph's order, in the host's memory */
    FILE *out;
    struct verify_total *total;
};

/* --- reading the case --------------------------------------------------------------------------------------------- */

/* Finds the tensor of that name and of exactly that shape. */
static enum status find_tensor(const struct check *c, const char *name, int rank, const int64_t *dims,
                               const struct st_tensor **found, struct error *e) {
    const struct st_tensor *t = *found = safetensors_find(&c->file, name);
    if (!t) return fail(e, ST_USAGE, "%s: tensor %s is missing", c->path, name);
    bool same = t->rank == rank;
    for (int i = 0; same && i < rank; i++) same = t->dims[i] == dims[i];
    if (same && t->f64) return ST_OK;
    if (same) return fail(e, ST_USAGE, "%s: tensor %s is F32, expected F64", c->path, name);
    char got[128], want[128];
    st_shape_text(t->rank, t->dims, got, sizeof got);
    st_shape_text(rank, dims, want, sizeof want);
    return fail(e, ST_USAGE, "%s: tensor %s is %s, expected %s", c->path, name, got, want);
}

static enum status read_metadata(struct check *c, struct error *e) {
    const char *version = safetensors_metadata(&c->file, "lrnn_case");
    const char *mixer = safetensors_metadata(&c->file, "mixer"), *config = safetensors_metadata(&c->file, "config");
    if (!version || !mixer || !config)
        return fail(e, ST_USAGE, "%s: not a case file: __metadata__ lacks %s", c->path,
                    !version ? "lrnn_case"
                    : !mixer ? "mixer"
                             : "config");
    if (strcmp(version, "1") != 0)
        return fail(e, ST_USAGE, "%s: lrnn_case is \"%s\", expected \"1\"", c->path, version);
    struct error inner = {ST_OK, ""};
    struct label label;
    char owner[128];
    snprintf(owner, sizeof owner, "mixer %.100s", mixer);
    enum status status = label_parse(&label, "mixer", mixer, &inner);
    if (status == ST_OK && label.n)
        status = fail(&inner, ST_USAGE, "%s has its options in config, not in mixer", owner);
    if (status == ST_OK) status = model_parse(&c->choice, label_name(&label), &inner);
    if (status == ST_OK) status = label_parse_pairs(&label, owner, config, " ", &inner);
    if (status == ST_OK) status = label_apply(&label, c->choice.model->options, c->choice.inst, owner, &inner);
    c->total->model = c->choice.model;
    return status == ST_OK ? ST_OK : fail(e, ST_USAGE, "%s: %.900s", c->path, inner.text);
}

static enum status read_shape(struct check *c, struct error *e) {
    const struct st_tensor *x = safetensors_find(&c->file, "x"), *other;
    if (!x) return fail(e, ST_USAGE, "%s: tensor x is missing", c->path);
    if (x->rank != 3) return fail(e, ST_USAGE, "%s: tensor x has %d axes, expected 3 (B,T,D)", c->path, x->rank);
    TRY(find_tensor(c, "x", 3, x->dims, &other, e));
    TRY(find_tensor(c, "y", 3, x->dims, &other, e));
    TRY(find_tensor(c, "dy", 3, x->dims, &other, e));
    TRY(find_tensor(c, "dx", 3, x->dims, &other, e));
    c->dims = (struct dims){.B = x->dims[0], .T = x->dims[1], .D = x->dims[2]};
    return ST_OK;
}

/* --- building ----------------------------------------------------------------------------------------------------- */

static enum status build(struct check *c, struct error *e) {
    struct graph_options options = {.training = true, .place = c->place, .kernel = c->kernel, .kernels = kernel_list()};
    struct error inner = {ST_OK, ""};
    if (c->choice.model->check(c->choice.inst, &c->dims, &inner) != ST_OK)
        return fail(e, ST_USAGE, "%s: %.900s", c->path, inner.text);
    TRY(params_create(&c->params, e));
    c->params.place = c->place;
    TRY(graph_create(&c->graph, &options, &c->params, e));
    c->x = graph_input(&c->graph, "x", 3, (int64_t[]){c->dims.B, c->dims.T, c->dims.D}, true);
    c->y = c->choice.model->build(c->choice.inst, &c->graph, c->x);
    graph_set_root(&c->graph, c->y);
    if (c->graph.error.status != ST_OK || !c->y) return fail(e, ST_USAGE, "%s: %.900s", c->path, c->graph.error.text);
    return ST_OK;
}

/* Checks that the file has every parameter with its gradient, and nothing else. */
static enum status check_tensors(const struct check *c, struct error *e) {
    char name[300];
    const struct st_tensor *found;
    for (int i = 0; i < c->params.n; i++) {
        const struct param *p = &c->params.list[i];
        snprintf(name, sizeof name, "p.%s", p->name);
        TRY(find_tensor(c, name, p->spec.rank, p->spec.dims, &found, e));
        snprintf(name, sizeof name, "g.%s", p->name);
        TRY(find_tensor(c, name, p->spec.rank, p->spec.dims, &found, e));
    }
    for (int i = 0; i < c->file.n; i++) {
        const char *t = c->file.tensors[i].name;
        bool parameter = (t[0] == 'p' || t[0] == 'g') && t[1] == '.' && params_find(&c->params, t + 2);
        bool own = !strcmp(t, "x") || !strcmp(t, "y") || !strcmp(t, "dy") || !strcmp(t, "dx");
        if (!parameter && !own)
            return fail(e, ST_USAGE, "%s: tensor %.99s is not one of mixer %s", c->path, t, c->choice.model->name);
    }
    return ST_OK;
}

/* Says why the forced kernel does not apply to this mixer; NULL if it applies or no kernel is forced. */
static const char *skip_reason(const struct check *c) {
    if (!c->kernel || !*c->kernel || strcmp(c->kernel, "reference") == 0) return NULL;
    const struct kernel *k = kernel_find(c->kernel);
    const char *why = NULL;
    bool used = false;
    for (int i = 0; k && i < c->graph.n_calls; i++) {
        const struct call *call = &c->graph.calls[i];
        if (call->op != k->op) continue;
        used = true;
        if (k->applicable && !k->applicable(call, &why)) return why ? why : "it does not apply";
    }
    return used ? NULL : "the mixer has no such op";
}

/* --- loading and comparing ---------------------------------------------------------------------------------------- */

static double *values_of(struct check *c, int64_t count) {
    arena_release(&c->values, c->values_mark);
    return arena_alloc(&c->values, (size_t)count * sizeof(double));
}

static enum status load(struct check *c, struct error *e) {
    int64_t largest = tensor_count(c->x);
    for (int i = 0; i < c->params.n; i++)
        if (c->params.list[i].count > largest) largest = c->params.list[i].count;
    TRY(arena_reserve(&c->values, 2 * (size_t)largest * sizeof(double) + 2 * ARENA_ALIGN, e));
    c->reals = arena_alloc(&c->values, (size_t)largest * sizeof *c->reals);
    c->values_mark = arena_mark(&c->values);
    TRY(params_reserve(&c->params, true, e));
    TRY(graph_plan(&c->graph, e));
    real *stored = params_fetch(&c->params, c->params.value);
    for (int i = 0; i < c->params.n; i++) {
        const struct param *p = &c->params.list[i];
        char name[300];
        snprintf(name, sizeof name, "p.%s", p->name);
        const struct st_tensor *t = safetensors_find(&c->file, name);
        double *value = values_of(c, p->count);
        for (int64_t j = 0; j < p->count; j++) value[j] = st_value(t, j);
        param_from_contract(p, value, stored + p->offset);
    }
    params_store(&c->params, c->params.value);
    const struct st_tensor *x = safetensors_find(&c->file, "x");
    for (int64_t j = 0; j < x->count; j++) c->reals[j] = (real)st_value(x, j);
    graph_put(&c->graph, c->x, c->reals);
    return ST_OK;
}

/* Compares values, in the order of the case file, with the tensor of that name. The error is max|got-want| / max|want|,
 * or NAN if a value is not finite. */
static void compare(struct check *c, const char *name, const double *got) {
    const struct st_tensor *want = safetensors_find(&c->file, name);
    double difference = 0, size = 0;
    for (int64_t i = 0; i < want->count; i++) {
        double w = st_value(want, i), d = fabs(got[i] - w);
        difference = isfinite(d) ? fmax(difference, d) : INFINITY;
        size = fmax(size, fabs(w));
    }
    double error = isinf(difference) ? NAN : size < TINY ? difference : difference / size;
    bool pass = error <= VERIFY_BOUND; /* false if the error is NAN */
    if (!pass || !c->total->quiet) fprintf(c->out, "%s %s %.3e %s\n", c->path, name, error, pass ? "pass" : "FAIL");
    c->total->tensors++;
    c->total->failed += !pass;
    if (isnan(error) || error > c->total->worst) c->total->worst = error;
}

/* Compares the tensor in c->reals with the tensor of that name. */
static void compare_reals(struct check *c, const char *name, int64_t count) {
    double *value = values_of(c, count);
    for (int64_t i = 0; i < count; i++) value[i] = (double)c->reals[i];
    compare(c, name, value);
}

/* Runs the mixer forward and backward and compares the results. No op of a mixer reads the step state. */
static void run_and_compare(struct check *c) {
    struct step_state state = {0};
    const struct st_tensor *dy = safetensors_find(&c->file, "dy");
    graph_forward(&c->graph, &state);
    for (int64_t i = 0; i < dy->count; i++) c->reals[i] = (real)st_value(dy, i);
    place_put(c->place, c->y->grad, c->reals, (size_t)dy->count * sizeof *c->reals);
    graph_backward(&c->graph, &state);
    graph_get(&c->graph, c->y, c->reals);
    compare_reals(c, "y", dy->count);
    graph_get_grad(&c->graph, c->x, c->reals);
    compare_reals(c, "dx", dy->count);
    const real *grads = params_fetch(&c->params, c->params.grad);
    for (int i = 0; i < c->params.n; i++) {
        const struct param *p = &c->params.list[i];
        char name[300];
        double *value = values_of(c, p->count);
        snprintf(name, sizeof name, "g.%s", p->name);
        if (p->spec.group == PARAM_CONST)
            memset(value, 0, (size_t)p->count * sizeof *value);
        else
            param_to_contract(p, grads + p->offset, value);
        compare(c, name, value);
    }
    c->total->files++;
}

static enum status verify(struct check *c, struct error *e) {
    TRY(read_metadata(c, e));
    TRY(read_shape(c, e));
    TRY(build(c, e));
    TRY(check_tensors(c, e));
    const char *why = skip_reason(c);
    if (!why) {
        TRY(load(c, e));
        run_and_compare(c);
        return place_wait(c->place, e);
    }
    int tensors = 2 + c->params.n; /* y, dx and the gradients of all parameters */
    c->total->skipped += tensors;
    for (int i = 0; i < tensors && !c->total->quiet; i++)
        fprintf(c->out, "%s %s%s skipped: %s%s%s\n", c->path,
                i == 0   ? "y"
                : i == 1 ? "dx"
                         : "g.",
                i < 2 ? "" : c->params.list[i - 2].name, c->kernel ? c->kernel : "",
                c->kernel && *c->kernel ? ", " : "", why);
    return ST_OK;
}

enum status verify_file(const char *path, const char *kernel, const struct place *place, struct verify_total *total,
                        FILE *out, struct error *e) {
    struct check c = {.path = path, .kernel = kernel, .place = place, .out = out, .total = total};
    if (safetensors_read(&c.file, path, e) != ST_OK) return e->status = e->status == ST_MEMORY ? ST_MEMORY : ST_USAGE;
    enum status status = verify(&c, e);
    arena_free(&c.values);
    graph_free(&c.graph);
    params_free(&c.params);
    safetensors_free(&c.file);
    return status;
}

/* case.c - see case.h. */
#include "tests/twins/case.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "tests/lib/op_compare.h"

#define DRAWS      64  /* of sizes for one case */
#define LEAST_WORK 1e5 /* budget of a case (call_work), drawn between these */
#define MOST_WORK  2e7

/* Values of recurrences stay below this, on inputs made smaller where that helps; wide inputs alone make products of
 * 900. */
#define LARGEST      1e3
#define LARGEST_WIDE 1e6

#define AT(field) offsetof(struct twin_case, field)
const struct option twin_case_options[] = {
    {"outputs", OPT_INT, AT(outputs), "auto", 1, 15, NULL, "outputs that flow into the loss, as bits; auto = all",
     OPT_AUTO},
    {"fill", OPT_CHOICE, AT(fill), "small", 0, 0, "small wide whole net", "values of the inputs", 0},
    {"draw", OPT_INT, AT(draw), "0", 0, 1e9, NULL, "number of the draw of those values", 0},
    {0}};

/* The most that a size is drawn; a case's budget bounds them together. */
static const struct {
    const char *option;
    int64_t most;
} sizes[] = {
    {"batch", 64},   {"length", 1100}, {"blocks", 300},   {"m", 16},  {"dim", 600},
    {"out", 600},    {"vocab", 2000},  {"heads", 48},     {"dk", 80}, {"dv", 80},
    {"substeps", 4}, {"interval", 40}, {"examples", 300},
};
#define N_SIZES (int)(sizeof sizes / sizeof *sizes)

static int64_t *size_field(struct op_sizes *s, const char *option) {
    return (int64_t *)(void *)((char *)s + option_find(op_sizes_options, option)->offset);
}

/* The call at those sizes, alone in its graph and not planned; NULL where the op refuses them. The caller frees the
 * graph. Outside of tests too: no ck_assert. */
static struct call *call_alone(struct graph *g, const struct twin_case *c) {
    struct graph_options options = {.training = true, .kernels = kernel_list()};
    struct call *found = NULL;
    struct error e;
    if (graph_create(g, &options, NULL, &e) != ST_OK) return NULL;
    if (!c->kernel->op->build(g, &c->sizes) || g->error.status != ST_OK) return NULL;
    for (int i = 0; i < g->n_calls; i++)
        if (g->calls[i].op == c->kernel->op) found = &g->calls[i];
    return found;
}

bool case_applies(const struct twin_case *c) {
    struct graph g;
    const char *why;
    const struct call *call = call_alone(&g, c);
    bool applies = call && (!c->kernel->applicable || c->kernel->applicable(call, &why));
    graph_free(&g);
    return applies;
}

/* Outputs that a gradient can flow into, as bits; 1 of an op without gradient. */
static int64_t outputs_of(const struct twin_case *c) {
    struct graph g;
    const struct call *call = call_alone(&g, c);
    int64_t bits = call && differentiable(c->kernel->op) ? real_outputs(call) : 1;
    graph_free(&g);
    return bits;
}

/* --- drawing ------------------------------------------------------------------------------------------------------ */

static int64_t log_uniform(struct rng *rng, int64_t most) {
    int64_t value = (int64_t)exp(rng_uniform(rng) * log((double)most + 1));
    return value < 1 ? 1 : value > most ? most : value;
}

static void draw_sizes(struct twin_case *c, struct rng *rng) {
    const struct op *op = c->kernel->op;
    struct op_sizes *s = &c->sizes;
    struct error e;
    options_default(op_sizes_options, s, &e);
    for (int i = 0; i < N_SIZES; i++)
        if (op_reads_size(op, sizes[i].option)) *size_field(s, sizes[i].option) = log_uniform(rng, sizes[i].most);
    s->gate = (int)rng_below(rng, (uint64_t)choices_of(op, "gate"));
    s->layout = (int)rng_below(rng, (uint64_t)choices_of(op, "layout"));
    s->variant = (int64_t)rng_below(rng, (uint64_t)op_variants(op));
}

/* Halves one of the sizes that are larger than 1. */
static void halve_one(struct twin_case *c, struct rng *rng) {
    for (int tries = 0; tries < 100; tries++) {
        const char *option = sizes[rng_below(rng, N_SIZES)].option;
        int64_t *size = size_field(&c->sizes, option);
        if (!op_reads_size(c->kernel->op, option) || *size <= 1) continue;
        *size = (*size + 1) / 2;
        return;
    }
}

/* Whether the sizes are within the budget now, and the op takes them. */
static bool fit_budget(struct twin_case *c, struct rng *rng, double budget) {
    for (;;) {
        struct graph g;
        const struct call *call = call_alone(&g, c);
        double work = call ? call_work(call) : 0;
        graph_free(&g);
        if (!call || work <= budget) return call != NULL;
        halve_one(c, rng);
    }
}

bool case_draw(struct twin_case *c, const struct kernel *kernel, uint64_t seed, int64_t index) {
    struct rng rng = rng_at(seed, STREAM_TEST, (uint64_t)index);
    *c = (struct twin_case){.kernel = kernel, .draw = 1 + (int64_t)rng_below(&rng, 1000)};
    double budget = LEAST_WORK * pow(MOST_WORK / LEAST_WORK, rng_uniform(&rng));
    c->fill = (int)rng_below(&rng, 4);
    for (int i = 0; i < DRAWS; i++) {
        draw_sizes(c, &rng);
        if (!fit_budget(c, &rng, budget) || !case_applies(c)) continue;
        int64_t all = outputs_of(c);
        do c->outputs = 1 + (int64_t)rng_below(&rng, (uint64_t)all);
        while (c->outputs & ~all);
        return true;
    }
    return false;
}

/* --- comparing ---------------------------------------------------------------------------------------------------- */

/* An optimiser's second step starts from moments that it wrote. */
static void walk(struct op_run *r, int threads) {
    omp_set_num_threads(threads);
    run_walk(r);
    if (!differentiable(r->what.op)) run_walk(r);
    omp_set_num_threads(1);
}

void case_compare(const struct twin_case *c) {
    struct op_run want, one, three;
    struct trial_op what = {.op = c->kernel->op,
                            .kernel = c->kernel->name,
                            .sizes = c->sizes,
                            .outputs = c->outputs ? (unsigned)c->outputs : (unsigned)outputs_of(c),
                            .guards = true,
                            .ill_conditioned = true,
                            .fill = (enum fill)c->fill,
                            .draw = c->draw};
    reference_within(&want, &what, what.fill == FILL_WIDE ? LARGEST_WIDE : LARGEST);
    if (!differentiable(what.op)) run_walk(&want);
    ck_assert(run_open(&one, &what));
    ck_assert(run_open(&three, &what));
    walk(&one, 1);
    walk(&three, 3);
    expect_same_run(&one, &want, c->kernel->inexact ? c->kernel->tolerance : 0);
    expect_same_run(&three, &one, 0);
    expect_clean(&one);
    expect_clean(&three);
    run_close(&one);
    run_close(&three);
    run_close(&want);
    if (differentiable(what.op)) compare_accumulated(c->kernel, &what);
}

/* --- as text ------------------------------------------------------------------------------------------------------ */

static void append(char text[CASE_TEXT], const char *flag, const char *value) {
    size_t used = strlen(text);
    snprintf(text + used, CASE_TEXT - used, "%s--%s %s", used ? " " : "", flag, value);
}

const char *case_flags(const struct twin_case *c, char text[CASE_TEXT]) {
    char value[OPTION_TEXT + 1];
    text[0] = 0;
    append(text, "op", c->kernel->op->name);
    append(text, "kernel", c->kernel->name);
    for (const struct option *o = op_sizes_options; o->name; o++) {
        if (strcmp(o->name, "variant") != 0 && !op_reads_size(c->kernel->op, o->name)) continue;
        option_format_value(o, &c->sizes, value, sizeof value);
        append(text, o->name, value);
    }
    for (const struct option *o = twin_case_options; o->name; o++) {
        option_format_value(o, c, value, sizeof value);
        append(text, o->name, value);
    }
    return text;
}

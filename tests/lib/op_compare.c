/* op_compare.c - see op_compare.h. */
#include "tests/lib/op_compare.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define NUDGES 3 /* draws by which a result is asked how far the last bits of its inputs move it */

static void append(char *text, size_t room, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void append(char *text, size_t room, const char *format, ...) {
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, room - used, format, args);
    va_end(args);
}

const char *call_shapes(const struct call *c, char text[SHAPES_TEXT]) {
    text[0] = 0;
    for (int i = 0; i < c->n_in; i++) {
        const struct tensor *t = c->in[i];
        append(text, SHAPES_TEXT, i ? " %s" : "%s", t ? "(" : "-");
        for (int a = 0; t && a < t->rank; a++)
            append(text, SHAPES_TEXT, "%s%lld%s", a ? "," : "", (long long)t->dims[a], a + 1 < t->rank ? "" : ")");
    }
    return text;
}

#define TRIAL_TEXT (SHAPES_TEXT + 256)

/* "op linear kernel linear_cpu (3,20,64) (32,64) -, outputs 1, small inputs" and sizes, flags of `lrnn perf op`. */
static const char *trial_name(const struct op_run *r, char text[TRIAL_TEXT]) {
    static const char *const fills[] = {"small", "wide", "whole", "net"};
    const struct trial_op *w = &r->what;
    char shapes[SHAPES_TEXT];
    snprintf(text, TRIAL_TEXT, "op %s kernel %s %s", w->op->name, r->call->kernel->name, call_shapes(r->call, shapes));
    if (!w->like) append(text, TRIAL_TEXT, ", %s", trial_sizes(w));
    append(text, TRIAL_TEXT, ", outputs %u, %s inputs", w->outputs, fills[w->fill]);
    return text;
}

void report_difference(const struct op_run *got, const char *tensor, const struct difference *d, double bound) {
    char name[TRIAL_TEXT];
    ck_abort_msg("%s: %s[%lld] want %.9g got %.9g, off by %.3g, bound %.3g", trial_name(got, name), tensor,
                 (long long)d->at, d->want, d->got, d->error, bound);
}

static bool all_whole(const real *x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)x[i]) < 0x1p20) || x[i] != (real)rint((double)x[i])) return false;
    return true;
}

static bool all_within(const real *x, int64_t n, double largest) {
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)x[i]) <= largest)) return false;
    return true;
}

/* Not so large that a sum or product on the way, in working precision, may have passed the largest number. */
#define LARGEST_IN_RANGE (REAL_IS_DOUBLE ? 1e280 : 1e30)

static bool all_in_range(const real *x, int64_t n) {
    return all_within(x, n, LARGEST_IN_RANGE);
}

/* Whether outputs and gradients of a walked run are all finite and at most that large. */
static bool run_within(const struct op_run *r, double largest) {
    for (int j = 0; j < r->call->n_out; j++) {
        const struct tensor *t = r->call->out[j];
        if (t->dtype == DT_REAL && !all_within(t->data, tensor_count(t), largest)) return false;
    }
    for (int i = 0; i < r->call->n_in && r->differentiable; i++) {
        const struct tensor *t = r->call->in[i];
        if (input_has_grad(r->call, i) && !all_within(t->grad, tensor_count(t), largest)) return false;
    }
    return true;
}

static bool walk_scaled(struct op_run *want, const struct trial_op *what, double scale, double largest) {
    struct trial_op reference = *what;
    reference.kernel = "reference";
    reference.scale = scale;
    ck_assert(run_open(want, &reference));
    run_walk(want);
    if (run_within(want, largest)) return true;
    run_close(want);
    return false;
}

void reference_within(struct op_run *want, struct trial_op *what, double largest) {
    for (what->scale = 1; what->scale > 1e-6; what->scale /= 4)
        if (walk_scaled(want, what, what->scale, largest)) return;
    what->scale = 1;
    if (!walk_scaled(want, what, 1, LARGEST_IN_RANGE))
        ck_abort_msg("the reference of %s overflows on inputs of any size", what->op->name);
}

static bool any_set(const real *x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (x[i] != 0) return true;
    return false;
}

/* Whether every output is a whole number, and one of them is not 0: whatever an op divides by, 0 stays 0. */
static bool whole_outputs(const struct op_run *r) {
    bool whole = true, any = false;
    for (int j = 0; j < r->call->n_out; j++)
        if (r->call->out[j]->dtype == DT_REAL) {
            const real *y = r->call->out[j]->data;
            int64_t n = tensor_count(r->call->out[j]);
            whole = whole && all_whole(y, n);
            any = any || any_set(y, n);
        }
    return whole && any;
}

/* Whole-number results of whole-number inputs are sums of products, exact in any order: every kernel must be equal. Not
 * so where the op divides and a few numbers are whole by chance: then its outputs are not all whole, or a gradient is 0
 * everywhere, such as that of a softmax over copies of one value. */
static bool is_exact(const struct op_run *got, const real *want, int64_t n) {
    bool whole = got->what.fill == FILL_WHOLE && (got->what.scale == 0 || got->what.scale == 1);
    return whole && all_whole(want, n) && any_set(want, n) && whole_outputs(got);
}

/* -0 is not 0. */
static void expect_bits(const struct op_run *got, const real *g, const real *want, int64_t n, const char *tensor) {
    for (int64_t i = 0; i < n; i++)
        if (memcmp(g + i, want + i, sizeof *g) != 0)
            report_difference(got, tensor, &(struct difference){i, g[i], want[i], 0, 0}, 0);
}

void expect_agreement(const struct op_run *got, const real *g, const real *want, int64_t n, double tolerance,
                      double least, const char *tensor) {
    if (got->what.may_overflow && !all_in_range(want, n)) return;
    struct difference d = compare_reals(g, want, n);
    bool exact = is_exact(got, want, n);
    double bound = exact ? 0 : tolerance * REAL_EPSILON * fmax(d.scale, least);
    if (!(d.error <= bound)) report_difference(got, tensor, &d, bound);
    if (tolerance == 0 && !exact) expect_bits(got, g, want, n, tensor);
}

/* A result of the reference: output j, or the gradient of input j. */
struct result {
    const struct op_run *want;
    enum pass pass;
    int j;
};

static const real *result_values(const struct op_run *r, const struct result *which) {
    return which->pass == PASS_FORWARD ? r->call->out[which->j]->data : r->call->in[which->j]->grad;
}

/* Gives the result's move, in epsilons, when every input of the reference moves by its last bit, up or down; the most
 * of a few draws of these, at most `largest`. */
static double sensitivity_of(const struct result *which, int64_t n, double largest) {
    double most = 0;
    struct op_run moved;
    struct trial_op what = which->want->what;
    for (what.nudge = 1; what.nudge <= NUDGES; what.nudge++) {
        ck_assert(run_open(&moved, &what));
        run_walk(&moved);
        most = fmax(most, compare_reals(result_values(&moved, which), result_values(which->want, which), n).error);
        run_close(&moved);
    }
    return fmin(most / REAL_EPSILON, largest);
}

/* op->terms of output j or of the gradient of input j; 0 if the op has none or the run is not the reference's. It has
 * scratch of its own, because the walk's is in use again. */
static double terms_of(const struct op_run *want, enum pass pass, int j) {
    struct call c = *want->call;
    if (!c.op->terms || !c.kernel->reference) return 0;
    c.guards = false;
    c.scratch_bytes[pass] = c.kernel->workspace ? c.kernel->workspace(&c, pass) : 0;
    c.scratch[pass] = malloc(c.scratch_bytes[pass] + 1);
    ck_assert_ptr_nonnull(c.scratch[pass]);
    double terms = c.op->terms(&c, pass, j);
    free(c.scratch[pass]);
    return terms;
}

/* A share of the largest magnitude, or of `least`; if that is not enough and the reference is the measure, of the
 * terms, and of what inputs make that differ in their last bit, as far as the bound stays below the result itself.
 * These take a while, and are asked only then. Of one kernel twice the bits are asked, whatever they are. */
static void expect_result(const struct op_run *got, const struct result *which, int64_t n, double tolerance,
                          double least, const char *name) {
    const real *g = result_values(got, which), *want = result_values(which->want, which);
    if (tolerance == 0 && got->call->kernel == which->want->call->kernel) {
        expect_bits(got, g, want, n, name);
        return;
    }
    struct difference d = compare_reals(g, want, n);
    bool measured = tolerance > 0 && which->want->call->kernel->reference && !is_exact(got, want, n);
    if (measured && !(d.error <= tolerance * REAL_EPSILON * fmax(d.scale, least)))
        least = fmax(least, terms_of(which->want, which->pass, which->j));
    if (measured && got->what.ill_conditioned && !(d.error <= tolerance * REAL_EPSILON * fmax(d.scale, least)))
        least = fmax(least, sensitivity_of(which, n, d.scale / (tolerance * REAL_EPSILON)));
    expect_agreement(got, g, want, n, tolerance, least, name);
}

static void expect_same_ids(const struct op_run *got, const struct tensor *a, const struct tensor *b,
                            const char *name) {
    for (int64_t i = 0; i < tensor_count(a); i++)
        if (tensor_i32(a)[i] != tensor_i32(b)[i])
            report_difference(got, name, &(struct difference){i, tensor_i32(a)[i], tensor_i32(b)[i], 1, 0}, 0);
}

void expect_same_outputs(const struct op_run *got, const struct op_run *want, double tolerance) {
    char name[32];
    for (int j = 0; j < got->call->n_out; j++) {
        const struct tensor *y = got->call->out[j];
        snprintf(name, sizeof name, "out[%d]", j);
        if (y->dtype == DT_I32)
            expect_same_ids(got, y, want->call->out[j], name);
        else
            expect_result(got, &(struct result){want, PASS_FORWARD, j}, tensor_count(y), tolerance, 0, name);
    }
}

/* Largest weight in the loss: largest gradient that flows into an output. */
static double incoming(const struct op_run *r) {
    double most = 0;
    for (int j = 0; j < r->call->n_out; j++)
        for (int64_t i = 0; r->what.outputs >> j & 1 && i < tensor_count(r->call->out[j]); i++)
            most = fmax(most, fabs((double)r->call->out[j]->grad[i]));
    return most;
}

static bool has_tiny_size(const struct trial_op *what) {
    const struct op_sizes *s = &what->sizes;
    const struct {
        const char *name;
        int64_t value;
    } sizes[] = {{"batch", s->batch}, {"length", s->length}, {"blocks", s->blocks}, {"dim", s->dim}, {"out", s->out},
                 {"vocab", s->vocab}, {"heads", s->heads},   {"dk", s->dk},         {"dv", s->dv}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value <= 2 && op_reads_size(what->op, sizes[i].name)) return true;
    return false;
}

/* Gives the least scale of a gradient. In tensors of very few elements all may be what is left of a cancellation, and
 * where gates and activations saturate all slopes may vanish (1 - y with y rounded): there the incoming gradient is the
 * measure. */
static double least_scale(const struct op_run *got, const struct op_run *want) {
    return (!got->what.like && has_tiny_size(&got->what)) || got->what.fill == FILL_WIDE ? incoming(want) : 0;
}

void expect_same_gradients(const struct op_run *got, const struct op_run *want, double tolerance, int except) {
    double least = least_scale(got, want);
    char name[32];
    for (int i = 0; i < got->call->n_in; i++) {
        if (i == except || !input_has_grad(got->call, i)) continue;
        snprintf(name, sizeof name, "din[%d]", i);
        ck_assert_ptr_nonnull(got->call->in[i]->grad);
        expect_result(got, &(struct result){want, PASS_BACKWARD, i}, tensor_count(got->call->in[i]), tolerance, least,
                      name);
    }
}

/* Mutated inputs and the step state, of an op without gradient. */
void expect_same_effects(const struct op_run *got, const struct op_run *want, double tolerance) {
    char name[32];
    for (int i = 0; i < got->call->n_in; i++) {
        if (!(got->what.op->mutates >> i & 1) || !got->call->in[i]) continue;
        snprintf(name, sizeof name, "in[%d]", i);
        const struct tensor *x = got->call->in[i];
        if (x->dtype == DT_I32)
            expect_same_ids(got, x, want->call->in[i], name);
        else
            expect_agreement(got, x->data, want->call->in[i]->data, tensor_count(x), tolerance, 0, name);
    }
    const struct step_state *a = &got->state, *b = &want->state;
    real x[4] = {(real)a->lr, (real)a->grad_norm, (real)a->loss, (real)a->loss_sum};
    real y[4] = {(real)b->lr, (real)b->grad_norm, (real)b->loss, (real)b->loss_sum};
    expect_agreement(got, x, y, 4, tolerance, 0, "state (lr, grad_norm, loss, loss_sum)");
    ck_assert_msg(a->step == b->step && a->loss_steps == b->loss_steps && a->frozen == b->frozen &&
                      a->frozen_step == b->frozen_step && a->seed == b->seed,
                  "%s: the step state differs from the reference's", got->call->kernel->name);
}

void expect_clean(const struct op_run *r) {
    char name[TRIAL_TEXT];
    int changed = run_input_changed(r);
    ck_assert_msg(changed < 0, "%s: writes into its input %d", trial_name(r, name), changed);
    ck_assert_msg(r->g.plan->first_guard_failure < 0, "%s: call %d wrote past its output", trial_name(r, name),
                  r->g.plan->first_guard_failure);
}

/* --- twin against twin ------------------------------------------------------------------------------------------- */

bool walk_leaves_out(const struct place *place, int index, int shown) {
    const char *text = place ? getenv("LRNN_CUDA_EVERY") : NULL, *from = getenv("LRNN_CUDA_FIRST");
    int every = text ? atoi(text) : 1, first = from ? atoi(from) : 0;
    return every > 1 && shown > 0 && index % every != first;
}

void each_example(const struct kernel *k, unsigned walks, enum fill fill, const struct place *place,
                  bool (*visit)(const struct kernel *k, const struct trial_op *what)) {
    struct op_walk w = walk_of(k->op, walks);
    int shown = 0;
    for (int i = 0; i < w.n; i++) {
        struct trial_op what = {.op = k->op,
                                .kernel = k->name,
                                .sizes = w.at[i],
                                .guards = true,
                                .may_overflow = walks != WALK_EDGES || fill != FILL_SMALL,
                                .fill = fill,
                                .place = place};
        if (walk_leaves_out(place, i, shown) || !kernel_applies(k, &what)) continue;
        unsigned all = output_bits(k->op, &w.at[i]);
        for (what.outputs = walks == WALK_EDGES ? 1 : all; what.outputs <= all; what.outputs++)
            if ((what.outputs & ~all) == 0) shown += visit(k, &what);
    }
    walk_free(&w);
    ck_assert_msg(shown > 0, "of all that %s makes, kernel %s computes nothing in range", k->op->name, k->name);
}

void each_cpu_kernel(const struct op *op, unsigned walks, enum fill fill,
                     bool (*visit)(const struct kernel *k, const struct trial_op *what)) {
    for (const struct kernel *const *k = kernel_list(); *k; k++)
        if ((*k)->op == op && (*k)->device == DEVICE_CPU) each_example(*k, walks, fill, NULL, visit);
}

static double tolerance_of(const struct kernel *k) {
    return k->inexact ? k->tolerance : 0;
}

static void open_both(struct op_run *got, struct op_run *want, const struct trial_op *what) {
    struct trial_op reference = *what;
    reference.kernel = "reference";
    reference.place = NULL;
    ck_assert(run_open(got, what));
    ck_assert(run_open(want, &reference));
    ck_assert_str_eq(got->call->kernel->name, what->kernel);
}

bool run_in_range(const struct op_run *r) {
    return run_within(r, LARGEST_IN_RANGE);
}

void expect_same_run(const struct op_run *got, const struct op_run *want, double tolerance) {
    expect_same_outputs(got, want, tolerance);
    if (got->differentiable)
        expect_same_gradients(got, want, tolerance, -1);
    else
        expect_same_effects(got, want, tolerance);
}

bool compare_twin(const struct kernel *k, const struct trial_op *what) {
    struct op_run got, want;
    open_both(&got, &want, what);
    for (int step = 0; step < 2; step++) { /* an optimiser's second step starts from moments that it wrote */
        run_walk(&got);
        run_walk(&want);
        expect_same_run(&got, &want, tolerance_of(k));
        expect_clean(&got);
    }
    bool in_range = run_in_range(&want);
    run_close(&got);
    run_close(&want);
    return in_range;
}

/* Terms of the gradient of input i where this is made; of a run with the reference, which alone knows them. */
static double gradient_terms(const struct trial_op *what, int i) {
    struct op_run got, reference;
    open_both(&got, &reference, what);
    run_walk(&reference);
    double terms = terms_of(&reference, PASS_BACKWARD, i);
    run_close(&got);
    run_close(&reference);
    return terms;
}

/* Gradients added to what is there already: w_i + din[i]. The kernel's own plain gradient is the measure, a rounding or
 * two of the sum the bound; kernels that add in another order may use their tolerance, of the terms where one is added
 * after the other and they cancel. */
bool compare_accumulated(const struct kernel *k, const struct trial_op *what) {
    struct op_run plain, onto;
    struct trial_op prefilled = *what;
    prefilled.prefilled = true;
    ck_assert(run_open(&plain, what) && run_open(&onto, &prefilled));
    run_walk(&plain);
    run_walk(&onto);
    for (int i = 0; i < plain.call->n_in; i++) {
        if (!input_has_grad(plain.call, i)) continue;
        ck_assert_msg(call_accumulates(onto.call, i), "input %d does not accumulate: the test is void", i);
        int64_t n = tensor_count(plain.call->in[i]);
        if (what->may_overflow && !all_in_range(plain.call->in[i]->grad, n)) continue;
        real *want = malloc((size_t)n * sizeof *want);
        double scale = 0;
        for (int64_t e = 0; e < n; e++) {
            want[e] = plain.call->in[i]->grad[e] + tensor_real(onto.weight_in[i])[e];
            scale =
                fmax(scale, fabs((double)plain.call->in[i]->grad[e]) + fabs((double)tensor_real(onto.weight_in[i])[e]));
        }
        struct difference d = compare_reals(onto.call->in[i]->grad, want, n);
        double bound = fmax(2, tolerance_of(k)) * REAL_EPSILON * scale;
        if (tolerance_of(k) > 0 && !(d.error <= bound))
            bound =
                tolerance_of(k) * REAL_EPSILON * fmax(scale, fmax(least_scale(&onto, &plain), gradient_terms(what, i)));
        char name[32];
        snprintf(name, sizeof name, "accumulated din[%d]", i);
        if (!(d.error <= bound)) report_difference(&onto, name, &d, bound);
        free(want);
    }
    expect_clean(&onto);
    bool in_range = run_in_range(&plain);
    run_close(&plain);
    run_close(&onto);
    return in_range;
}

/* Each input's gradient unwanted in turn: it is not written, and the others keep their bits, or their value within
 * rounding where kernel->together says why. */
bool compare_unwanted(const struct kernel *k, const struct trial_op *what) {
    struct op_run all, some;
    double tolerance = k->together ? tolerance_of(k) : 0;
    ck_assert(run_open(&all, what));
    run_walk(&all);
    for (int i = 0; i < all.call->n_in; i++) {
        if (!input_has_grad(all.call, i)) continue;
        ck_assert(run_open(&some, what));
        some.call->din[i] = NULL;
        run_walk(&some);
        expect_same_gradients(&some, &all, tolerance, i);
        expect_clean(&some);
        run_close(&some);
    }
    bool in_range = run_in_range(&all);
    run_close(&all);
    return in_range;
}

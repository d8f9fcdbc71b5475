/* check_ops.c - walks the registries: every op, every example of it, hard lengths.
 *
 * Each example is recorded with a loss that is linear in the op's outputs, L = sum_j <out[j], w_j>, so that L's
 * gradient is the op's own. The reference is held against central differences (double build), every other CPU kernel
 * against the reference. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support.h"

static const int64_t lengths[] = {1, 2, 16, 31, 33, 64, 67}; /* 16 and 64: block edges; 31, 67: primes */
#define N_LENGTHS (int)(sizeof lengths / sizeof *lengths)

/* --- one example ------------------------------------------------------------------------------------------------- */

struct trial_op {
    const struct op *op;
    const char *kernel; /* its name, or "reference" */
    int64_t n;
    int variant;
    unsigned outputs; /* bit j: output j flows into the loss */
    bool prefilled;   /* the inputs flow into it too, later than the op: their gradients arrive with w_i in them */
    bool guards;
    enum fill fill;
};

struct run {
    struct trial_op what;
    struct graph g;
    struct call *call;
    struct step_state state;
    struct tensor *weight_in[OP_MAX_IN]; /* of prefilled inputs */
};

static int op_count(void) {
    int n = 0;
    while (op_list()[n]) n++;
    return n;
}

/* The optimiser's ops have no gradient: they change their inputs and the step state in place. */
static bool differentiable(const struct op *op) {
    return kernel_reference(op)->backward != NULL;
}

static bool input_has_grad(const struct call *c, int i) {
    return c->in[i] && c->in[i]->needs_grad && !(c->op->no_grad_in >> i & 1);
}

/* The outputs that a gradient can flow into, as bits. */
static unsigned real_outputs(const struct call *c) {
    unsigned bits = 0;
    for (int j = 0; j < c->n_out; j++)
        if (c->out[j]->dtype == DT_REAL && c->out[j]->needs_grad) bits |= 1u << j;
    return bits;
}

static struct tensor *like(struct graph *g, const char *name, const struct tensor *t) {
    return graph_input(g, name, t->rank, t->dims, false);
}

static struct call *call_of(struct graph *g, const struct op *op) {
    for (int i = g->n_calls - 1; i >= 0; i--)
        if (g->calls[i].op == op) return &g->calls[i];
    ck_abort_msg("the example of %s records no call of it", op->name);
    return NULL;
}

static void record_loss(struct run *r) {
    struct call *c = r->call;
    struct tensor *loss = NULL;
    for (int j = 0; j < c->n_out; j++) {
        graph_keep(&r->g, c->out[j]);
        if (r->what.outputs >> j & 1) loss = dot(&r->g, c->out[j], like(&r->g, "w", c->out[j]), loss);
    }
    for (int i = 0; i < c->n_in && r->what.prefilled; i++) {
        if (!input_has_grad(c, i)) continue;
        r->weight_in[i] = like(&r->g, "w_in", c->in[i]);
        loss = dot(&r->g, c->in[i], r->weight_in[i], loss);
    }
    graph_set_root(&r->g, loss);
}

/* Records, plans and fills. False if the op has no such variant, or not that many outputs. */
static bool run_open(struct run *r, const struct trial_op *what) {
    *r = (struct run){.what = *what, .state = first_state()};
    open_graph(&r->g, NULL, true, what->guards, what->kernel);
    if (!what->op->example(&r->g, what->n, what->variant)) {
        graph_free(&r->g);
        return false;
    }
    ck_assert_msg(r->g.error.status == ST_OK, "%s variant %d n %lld: %s", what->op->name, what->variant,
                  (long long)what->n, r->g.error.text);
    r->call = call_of(&r->g, what->op);
    if (differentiable(what->op)) {
        unsigned all = real_outputs(r->call);
        ck_assert_msg(all & 1, "%s variant %d: no gradient flows into output 0", what->op->name, what->variant);
        if (what->outputs & ~all) {
            graph_free(&r->g);
            return false;
        }
        record_loss(r);
    }
    plan_graph(&r->g);
    fill_inputs(&r->g, what->fill, !differentiable(what->op)); /* an optimiser's moments are not negative */
    return true;
}

static void run_walk(struct run *r) {
    graph_forward(&r->g, &r->state);
    if (differentiable(r->what.op)) graph_backward(&r->g, &r->state);
}

static void run_close(struct run *r) {
    graph_free(&r->g);
}

enum verdict { NO_SUCH_VARIANT, DOES_NOT_APPLY, APPLIES };

static enum verdict kernel_verdict(const struct kernel *k, const struct trial_op *what) {
    struct run r;
    const char *why = "";
    struct trial_op probe = *what;
    probe.kernel = "reference";
    if (!run_open(&r, &probe)) return NO_SUCH_VARIANT;
    bool applies = !k->applicable || k->applicable(r.call, &why);
    run_close(&r);
    return applies ? APPLIES : DOES_NOT_APPLY;
}

/* The sets of outputs a loss can be made of: all subsets of the returned bits but the empty one. */
static unsigned output_bits(const struct op *op) {
    struct run r;
    struct trial_op what = {op, "reference", 1, 0, 1, false, false, FILL_SMALL};
    ck_assert(run_open(&r, &what));
    unsigned bits = differentiable(op) ? real_outputs(r.call) : 1;
    run_close(&r);
    return bits;
}

/* --- comparing two runs ------------------------------------------------------------------------------------------ */

static void report(const struct run *got, const char *tensor, const struct difference *d, double bound) {
    const struct trial_op *w = &got->what;
    static const char *const fills[] = {"small", "wide", "whole"};
    ck_abort_msg(
        "op %s kernel %s variant %d n %lld outputs %u %s inputs: %s[%lld] want %.9g got %.9g, off by %.3g, bound %.3g",
        w->op->name, got->call->kernel->name, w->variant, (long long)w->n, w->outputs, fills[w->fill], tensor,
        (long long)d->at, d->want, d->got, d->error, bound);
}

static bool all_whole(const real *x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)x[i]) < 0x1p20) || x[i] != (real)rint((double)x[i])) return false;
    return true;
}

/* Not so large that a sum or product on the way, in working precision, may have passed the largest number. */
static bool all_in_range(const real *x, int64_t n) {
    const double largest = REAL_IS_DOUBLE ? 1e280 : 1e30;
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)x[i]) <= largest)) return false;
    return true;
}

/* `tolerance` in epsilons of the tensor's largest magnitude, or of `least` if that is larger; 0 = the same bits.
 * Whole-number results of whole-number inputs are sums of products, exact in any order: every kernel must be equal. */
static void expect_agreement(const struct run *got, const real *g, const real *want, int64_t n, double tolerance,
                             double least, const char *tensor) {
    if (got->what.fill == FILL_WIDE && !all_in_range(want, n)) return; /* overflown recurrences prove nothing */
    struct difference d = compare_reals(g, want, n);
    bool exact = got->what.fill == FILL_WHOLE && all_whole(want, n);
    double bound = exact ? 0 : tolerance * REAL_EPSILON * fmax(d.scale, least);
    if (!(d.error <= bound)) report(got, tensor, &d, bound);
    if (tolerance > 0 || exact) return;
    for (int64_t i = 0; i < n; i++) /* -0 is not 0 */
        if (memcmp(g + i, want + i, sizeof *g)) report(got, tensor, &(struct difference){i, g[i], want[i], 0, 0}, 0);
}

static void expect_same_outputs(const struct run *got, const struct run *want, double tolerance) {
    char name[32];
    for (int j = 0; j < got->call->n_out; j++) {
        const struct tensor *a = got->call->out[j], *b = want->call->out[j];
        snprintf(name, sizeof name, "out[%d]", j);
        if (a->dtype == DT_REAL) expect_agreement(got, a->data, b->data, tensor_count(a), tolerance, 0, name);
        for (int64_t i = 0; a->dtype == DT_I32 && i < tensor_count(a); i++)
            if (tensor_i32(a)[i] != tensor_i32(b)[i])
                report(got, name, &(struct difference){i, tensor_i32(a)[i], tensor_i32(b)[i], 1, 0}, 0);
    }
}

/* Largest weight in the loss: largest gradient that flows into an output. */
static double incoming(const struct run *r) {
    double most = 0;
    for (int j = 0; j < r->call->n_out; j++)
        for (int64_t i = 0; r->what.outputs >> j & 1 && i < tensor_count(r->call->out[j]); i++)
            most = fmax(most, fabs((double)r->call->out[j]->grad[i]));
    return most;
}

/* In tensors of very few elements all may be what is left of a cancellation, and where gates and activations saturate
 * all slopes may vanish (1 - y with y rounded): there the incoming gradient is the measure. */
static void expect_same_gradients(const struct run *got, const struct run *want, double tolerance, int except) {
    double least = got->what.n <= 2 || got->what.fill == FILL_WIDE ? incoming(want) : 0;
    char name[32];
    for (int i = 0; i < got->call->n_in; i++) {
        if (!input_has_grad(got->call, i) || i == except) continue;
        snprintf(name, sizeof name, "din[%d]", i);
        ck_assert_ptr_nonnull(got->call->in[i]->grad);
        expect_agreement(got, got->call->in[i]->grad, want->call->in[i]->grad, tensor_count(got->call->in[i]),
                         tolerance, least, name);
    }
}

/* Mutated inputs and the step state, of an optimiser's op. */
static void expect_same_effects(const struct run *got, const struct run *want, double tolerance) {
    char name[32];
    for (int i = 0; i < got->call->n_in; i++) {
        if (!(got->what.op->mutates >> i & 1)) continue;
        const struct tensor *t = got->call->in[i];
        snprintf(name, sizeof name, "in[%d]", i);
        expect_agreement(got, t->data, want->call->in[i]->data, tensor_count(t), tolerance, 0, name);
    }
    const struct step_state *a = &got->state, *b = &want->state;
    real x[4] = {(real)a->lr, (real)a->grad_norm, (real)a->loss, (real)a->loss_sum};
    real y[4] = {(real)b->lr, (real)b->grad_norm, (real)b->loss, (real)b->loss_sum};
    expect_agreement(got, x, y, 4, tolerance, 0, "state (lr, grad_norm, loss, loss_sum)");
    ck_assert_msg(a->step == b->step && a->loss_steps == b->loss_steps && a->frozen == b->frozen &&
                      a->frozen_step == b->frozen_step && a->seed == b->seed,
                  "%s: the step state differs from the reference's", got->call->kernel->name);
}

/* A walk leaves its inputs alone (those that it does not say it mutates), and writes nothing behind its outputs. */
static void expect_clean(const struct run *r) {
    const struct call *c = r->call;
    bool positive = !differentiable(r->what.op);
    for (int i = 0; i < c->n_in; i++) {
        const struct tensor *t = c->in[i];
        if (!t || t->producer >= 0 || t->base || (c->op->mutates >> i & 1)) continue;
        for (int64_t k = 0; k < tensor_count(t); k++) {
            double want = fill_value(t, r->what.fill, positive, k);
            if (t->dtype == DT_REAL) want = (real)want;
            if (value_at(t, k) != want) ck_abort_msg("%s writes into its input %d", c->kernel->name, i);
        }
    }
    ck_assert_msg(r->g.first_guard_failure < 0, "op %s kernel %s variant %d n %lld: call %d wrote behind its output",
                  c->op->name, c->kernel->name, r->what.variant, (long long)r->what.n, r->g.first_guard_failure);
}

/* --- coverage ---------------------------------------------------------------------------------------------------- */

START_TEST(every_op_is_declared_and_covered) {
    const struct op *op = op_list()[_i];
    int references = 0;
    for (const struct kernel *const *k = kernel_list(); *k; k++) {
        if ((*k)->op != op) continue;
        references += (*k)->reference;
        ck_assert_msg((*k)->forward != NULL, "kernel %s has no forward", (*k)->name);
        ck_assert_msg(!(*k)->backward == !differentiable(op), "kernel %s and the reference differ in having a gradient",
                      (*k)->name);
        ck_assert_msg(!(*k)->reference || (!(*k)->inexact && !(*k)->applicable), "reference %s makes exceptions",
                      (*k)->name);
        ck_assert_msg(!(*k)->inexact || (*k)->tolerance > 0, "kernel %s states no tolerance", (*k)->name);
        ck_assert_ptr_eq(kernel_find((*k)->name), *k);
    }
    ck_assert_msg(references == 1, "op %s has %d reference kernels", op->name, references);
    ck_assert_ptr_nonnull(kernel_reference(op));
    ck_assert_ptr_eq(op_find(op->name), op);
    ck_assert_msg(op->maths && *op->maths && op->source, "op %s does not say what it computes", op->name);
    ck_assert_msg(op->example != NULL, "op %s has no example", op->name);
    int variants = 0;
    for (int l = 0; l < N_LENGTHS; l++)
        for (int variant = 0;; variant++) {
            struct run r;
            struct trial_op what = {op, "reference", lengths[l], variant, 1, false, false, FILL_SMALL};
            if (!run_open(&r, &what)) break;
            struct cost forward = op->cost(r.call, PASS_FORWARD), backward = op->cost(r.call, PASS_BACKWARD);
            ck_assert_msg(forward.bytes > 0 && forward.flops >= 0, "op %s: forward costs nothing", op->name);
            ck_assert_msg(!differentiable(op) || (backward.bytes > 0 && backward.flops >= 0),
                          "op %s: backward costs nothing", op->name);
            ck_assert_msg(differentiable(op) || r.call->n_out == 0, "op %s has outputs but no gradient", op->name);
            run_close(&r);
            variants++;
        }
    ck_assert_msg(variants >= N_LENGTHS, "op %s has no example", op->name);
}
END_TEST

/* --- gradients against central differences ----------------------------------------------------------------------- */

static double loss_at(struct run *r, real *x, double value) {
    *x = (real)value;
    graph_forward(&r->g, &r->state);
    return tensor_real(r->g.root)[0];
}

/* h = 1e-5 balances the truncation h^2 f'''/6 ~ 1e-10 against the rounding eps |L| / h ~ 2e-11 |L|; the latter is the
 * floor below which a gradient cannot be seen. FILL_SMALL keeps 1e4 h away from the kinks at 0. */
static void difference_input(struct run *r, int i, const real *grad) {
    struct tensor *t = r->call->in[i];
    int64_t n = tensor_count(t), samples = n < 40 ? n : 40;
    double scale = 0, h = 1e-5, loss = fabs((double)tensor_real(r->g.root)[0]);
    for (int64_t k = 0; k < n; k++) scale = fmax(scale, fabs((double)grad[k]));
    double bound = 1e-6 * scale + 1e-9 * fmax(1, loss);
    struct rng rng = rng_at((uint64_t)r->what.n, STREAM_TEST, (uint64_t)i);
    for (int64_t s = 0; s < samples; s++) {
        int64_t k = n == samples ? s : (int64_t)rng_below(&rng, (uint64_t)n);
        real *x = tensor_real(t) + k, before = *x;
        double up = loss_at(r, x, before + h), down = loss_at(r, x, before - h), want = (up - down) / (2 * h);
        *x = before;
        double error = fabs((double)grad[k] - want);
        char name[32];
        snprintf(name, sizeof name, "din[%d]", i);
        if (!(error <= bound)) report(r, name, &(struct difference){k, grad[k], want, error, scale}, bound);
    }
}

/* The gradients are copied first: the forward walks that follow may use their memory. */
static void difference_run(struct run *r) {
    real *grads[OP_MAX_IN] = {0};
    run_walk(r);
    for (int i = 0; i < r->call->n_in; i++)
        if (input_has_grad(r->call, i)) grads[i] = copy_reals(r->call->in[i]->grad, tensor_count(r->call->in[i]));
    for (int i = 0; i < r->call->n_in; i++)
        if (grads[i]) difference_input(r, i, grads[i]);
    for (int i = 0; i < OP_MAX_IN; i++) free(grads[i]);
}

START_TEST(gradients_match_central_differences) {
    const struct op *op = op_list()[_i];
    if (!differentiable(op)) return;
    int checked = 0;
    unsigned all = output_bits(op);
    for (unsigned outputs = 1; outputs <= all; outputs++)
        for (int l = 0; l < N_LENGTHS; l++)
            for (int variant = 0;; variant++) {
                struct run r;
                struct trial_op what = {op, "reference", lengths[l], variant, outputs, false, false, FILL_SMALL};
                if (!run_open(&r, &what)) break;
                difference_run(&r);
                run_close(&r);
                checked++;
            }
    ck_assert_int_gt(checked, 0);
}
END_TEST

/* --- twin against twin ------------------------------------------------------------------------------------------- */

/* Calls visit for every other CPU kernel of the op, length, variant and set of outputs where it applies. */
static void each_twin(const struct op *op, enum fill fill,
                      void (*visit)(const struct kernel *k, const struct trial_op *what)) {
    unsigned all = output_bits(op);
    for (const struct kernel *const *k = kernel_list(); *k; k++) {
        if ((*k)->op != op || (*k)->device != DEVICE_CPU) continue;
        int applied = 0;
        for (unsigned outputs = 1; outputs <= all; outputs++)
            for (int l = 0; l < N_LENGTHS; l++)
                for (int variant = 0;; variant++) {
                    struct trial_op what = {op, (*k)->name, lengths[l], variant, outputs, false, true, fill};
                    enum verdict verdict = kernel_verdict(*k, &what);
                    if (verdict == NO_SUCH_VARIANT) break;
                    if (verdict == DOES_NOT_APPLY) continue;
                    visit(*k, &what);
                    applied++;
                }
        ck_assert_msg(applied > 0, "kernel %s applies to no example of its op", (*k)->name);
    }
}

static double tolerance_of(const struct kernel *k) {
    return k->inexact ? k->tolerance : 0;
}

static void open_both(struct run *got, struct run *want, const struct trial_op *what) {
    struct trial_op reference = *what;
    reference.kernel = "reference";
    ck_assert(run_open(got, what));
    ck_assert(run_open(want, &reference));
    ck_assert_str_eq(got->call->kernel->name, what->kernel);
}

static void compare_twin(const struct kernel *k, const struct trial_op *what) {
    struct run got, want;
    open_both(&got, &want, what);
    for (int step = 0; step < 2; step++) { /* an optimiser's second step starts from moments that it wrote */
        run_walk(&got);
        run_walk(&want);
        expect_same_outputs(&got, &want, tolerance_of(k));
        if (differentiable(what->op))
            expect_same_gradients(&got, &want, tolerance_of(k), -1);
        else
            expect_same_effects(&got, &want, tolerance_of(k));
        expect_clean(&got);
    }
    run_close(&got);
    run_close(&want);
}

START_TEST(kernels_agree_with_the_reference) {
    for (int fill = FILL_SMALL; fill <= FILL_WHOLE; fill++) each_twin(op_list()[_i], (enum fill)fill, compare_twin);
}
END_TEST

/* Gradients added to what is there already: w_i + din[i]. The kernel's own plain gradient is the measure, a rounding or
 * two of the sum the bound; kernels that add in another order may use their tolerance. */
static void compare_accumulated(const struct kernel *k, const struct trial_op *what) {
    struct run plain, onto;
    struct trial_op prefilled = *what;
    prefilled.prefilled = true;
    ck_assert(run_open(&plain, what) && run_open(&onto, &prefilled));
    run_walk(&plain);
    run_walk(&onto);
    for (int i = 0; i < plain.call->n_in; i++) {
        if (!input_has_grad(plain.call, i)) continue;
        ck_assert_msg(call_accumulates(onto.call, i), "input %d does not accumulate: the test is void", i);
        int64_t n = tensor_count(plain.call->in[i]);
        real *want = malloc((size_t)n * sizeof *want);
        double scale = 0;
        for (int64_t e = 0; e < n; e++) {
            want[e] = plain.call->in[i]->grad[e] + tensor_real(onto.weight_in[i])[e];
            scale =
                fmax(scale, fabs((double)plain.call->in[i]->grad[e]) + fabs((double)tensor_real(onto.weight_in[i])[e]));
        }
        struct difference d = compare_reals(onto.call->in[i]->grad, want, n);
        double bound = fmax(2, tolerance_of(k)) * REAL_EPSILON * scale;
        char name[32];
        snprintf(name, sizeof name, "accumulated din[%d]", i);
        if (!(d.error <= bound)) report(&onto, name, &d, bound);
        free(want);
    }
    expect_clean(&onto);
    run_close(&plain);
    run_close(&onto);
}

START_TEST(gradients_accumulate) {
    if (differentiable(op_list()[_i])) each_twin(op_list()[_i], FILL_SMALL, compare_accumulated);
}
END_TEST

/* Each input's gradient unwanted in turn: it is not written, and the others keep their bits. */
static void compare_unwanted(const struct kernel *k, const struct trial_op *what) {
    (void)k;
    struct run all, some;
    ck_assert(run_open(&all, what));
    run_walk(&all);
    for (int i = 0; i < all.call->n_in; i++) {
        if (!input_has_grad(all.call, i)) continue;
        ck_assert(run_open(&some, what));
        some.call->din[i] = NULL;
        run_walk(&some);
        expect_same_gradients(&some, &all, 0, i);
        expect_clean(&some);
        run_close(&some);
    }
    run_close(&all);
}

START_TEST(unwanted_gradients_are_left_out) {
    if (differentiable(op_list()[_i])) each_twin(op_list()[_i], FILL_SMALL, compare_unwanted);
}
END_TEST

/* --- threads ----------------------------------------------------------------------------------------------------- */

/* At a length where kernels do share out their work. */
START_TEST(bits_do_not_depend_on_threads) {
    const struct op *op = op_list()[_i];
    static const int threads[] = {2, 3, 7};
    for (const struct kernel *const *k = kernel_list(); *k; k++) {
        if ((*k)->op != op || (*k)->device != DEVICE_CPU || (*k)->reference) continue;
        for (int variant = 0;; variant++) {
            struct run one, many;
            struct trial_op what = {op, (*k)->name, 400, variant, 1, false, false, FILL_SMALL};
            enum verdict verdict = kernel_verdict(*k, &what);
            if (verdict == NO_SUCH_VARIANT) break;
            if (verdict == DOES_NOT_APPLY) continue;
            ck_assert(run_open(&one, &what));
            omp_set_num_threads(1);
            run_walk(&one);
            for (int i = 0; i < 3; i++) {
                ck_assert(run_open(&many, &what));
                omp_set_num_threads(threads[i]);
                run_walk(&many);
                expect_same_outputs(&many, &one, 0);
                if (differentiable(op))
                    expect_same_gradients(&many, &one, 0, -1);
                else
                    expect_same_effects(&many, &one, 0);
                run_close(&many);
            }
            run_close(&one);
        }
    }
}
END_TEST

Suite *check_ops(void);
Suite *check_ops(void) {
    Suite *suite = suite_create("ops");
    TCase *tests = tcase_create("ops");
    int n = op_count();
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_loop_test(tests, every_op_is_declared_and_covered, 0, n);
    if (REAL_IS_DOUBLE) tcase_add_loop_test(tests, gradients_match_central_differences, 0, n);
    tcase_add_loop_test(tests, kernels_agree_with_the_reference, 0, n);
    tcase_add_loop_test(tests, gradients_accumulate, 0, n);
    tcase_add_loop_test(tests, unwanted_gradients_are_left_out, 0, n);
    tcase_add_loop_test(tests, bits_do_not_depend_on_threads, 0, n);
    suite_add_tcase(suite, tests);
    return suite;
}

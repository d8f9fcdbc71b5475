/* check_ops.c - walks the registries: every op at all sizes of op_walk.h.
 *
 * The reference is held against central differences (double build), every other CPU kernel against the reference. */
#include <dirent.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_walk.h"
#include "kernels/route/route.h"
#include "tests/lib/op_compare.h"

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
    struct op_walk w = walk_of(op, WALK_EDGES);
    ck_assert_msg(w.n > 0, "op %s has no sizes", op->name);
    for (int i = 0; i < w.n; i++) {
        struct op_run r;
        struct trial_op what = {.op = op, .kernel = "reference", .sizes = w.at[i], .outputs = 1};
        ck_assert(run_open(&r, &what));
        struct cost forward = op->cost(r.call, PASS_FORWARD), backward = op->cost(r.call, PASS_BACKWARD);
        ck_assert_msg(forward.bytes > 0 && forward.flops >= 0, "op %s: forward costs nothing", op->name);
        ck_assert_msg(!differentiable(op) || (backward.bytes > 0 && backward.flops >= 0),
                      "op %s: backward costs nothing", op->name);
        bool reals = r.call->n_out > 0 && r.call->out[0]->dtype == DT_REAL; /* whole numbers have no gradient */
        ck_assert_msg(differentiable(op) || !reals, "op %s has outputs but no gradient", op->name);
        run_close(&r);
    }
    walk_free(&w);
}
END_TEST

struct built {
    char shapes[4096]; /* of all tensors, and numbers of ids */
    char attr[512];    /* bytes of the call's attributes */
    size_t attr_bytes;
};

static struct built built_at(const struct op *op, const struct op_sizes *s) {
    struct built r = {.attr_bytes = 0};
    struct graph g;
    size_t used = 0;
    open_graph(&g, NULL, true, false, "reference");
    ck_assert(op->build(&g, s));
    ck_assert_msg(g.error.status == ST_OK, "%s: %s", op->name, g.error.text);
    for (int i = 0; i < g.n_tensors; i++)
        for (int a = 0; a <= g.tensors[i]->rank && used < sizeof r.shapes; a++)
            used += (size_t)snprintf(r.shapes + used, sizeof r.shapes - used, " %lld",
                                     (long long)(a < g.tensors[i]->rank ? g.tensors[i]->dims[a] : g.tensors[i]->limit));
    ck_assert_uint_lt(used, sizeof r.shapes);
    const struct call *c = &g.calls[g.n_calls - 1];
    ck_assert_uint_le(c->attr_bytes, sizeof r.attr);
    if (c->attr_bytes) memcpy(r.attr, c->attr, r.attr_bytes = c->attr_bytes);
    graph_free(&g);
    return r;
}

/* A size that is named changes what some variant makes; one that is not named changes no shape, so it may be left
 * out. */
START_TEST(an_op_names_the_sizes_that_it_reads) {
    const struct op *op = op_list()[_i];
    for (const struct option *o = op_sizes_options; o->name; o++) {
        struct op_sizes small = sizes_at("length=8"), changed = small;
        bool shapes = false, attributes = false;
        struct error e = {0};
        if (strcmp(o->name, "variant") == 0) continue;
        const char *value = strcmp(o->name, "gate") == 0 ? "relu" : strcmp(o->name, "layout") == 0 ? "observer" : "9";
        ck_assert_int_eq(options_set(op_sizes_options, &changed, "sizes", o->name, value, &e), ST_OK);
        for (int variant = 0, n = op_variants(op); variant < n; variant++) {
            small.variant = changed.variant = variant;
            struct built before = built_at(op, &small), after = built_at(op, &changed);
            shapes |= strcmp(before.shapes, after.shapes) != 0;
            attributes |= memcmp(before.attr, after.attr, sizeof before.attr) != 0;
        }
        if (op_reads_size(op, o->name))
            ck_assert_msg(shapes || attributes, "op %s names size %s and does not read it", op->name, o->name);
        else
            ck_assert_msg(!shapes, "op %s reads size %s and does not name it", op->name, o->name);
    }
}
END_TEST

/* --- gradients against central differences ----------------------------------------------------------------------- */

static double loss_at(struct op_run *r, real *x, double value) {
    *x = (real)value;
    graph_forward(&r->g, &r->state);
    return tensor_real(r->g.root)[0];
}

/* h = 1e-5 balances the truncation h^2 f'''/6 ~ 1e-10 against the rounding eps |L| / h ~ 2e-11 |L|; the latter is the
 * floor below which a gradient cannot be seen. FILL_SMALL keeps 1e4 h away from the kinks at 0; sums of inputs, which
 * relu may be of, can lie nearer to one. A kink between x - h and x + h is not between x - h/64 and x + h/64, but where
 * a draw is that unlucky; rounding is 64 times as large there. */
static double slope(struct op_run *r, real *x, double h) {
    real before = *x;
    double up = loss_at(r, x, before + h), down = loss_at(r, x, before - h);
    *x = before;
    return (up - down) / (2 * h);
}

static void difference_input(struct op_run *r, int i, const real *grad) {
    struct tensor *t = r->call->in[i];
    int64_t n = tensor_count(t), samples = n < 40 ? n : 40;
    double scale = 0, h = 1e-5, loss = fabs((double)tensor_real(r->g.root)[0]);
    for (int64_t k = 0; k < n; k++) scale = fmax(scale, fabs((double)grad[k]));
    double floor = 1e-9 * fmax(1, loss);
    struct rng rng = rng_at((uint64_t)r->what.sizes.length, STREAM_TEST, (uint64_t)i);
    for (int64_t s = 0; s < samples; s++) {
        int64_t k = n == samples ? s : (int64_t)rng_below(&rng, (uint64_t)n);
        real *x = tensor_real(t) + k;
        double bound = 1e-6 * scale + floor, want = slope(r, x, h), error = fabs((double)grad[k] - want);
        if (!(error <= bound)) {
            bound += 63 * floor;
            want = slope(r, x, h / 64);
            error = fabs((double)grad[k] - want);
        }
        char name[32];
        snprintf(name, sizeof name, "din[%d]", i);
        if (!(error <= bound)) report_difference(r, name, &(struct difference){k, grad[k], want, error, scale}, bound);
    }
}

/* The gradients are copied first: the forward walks that follow may use their memory. */
static void difference_run(struct op_run *r) {
    real *grads[OP_MAX_IN] = {0};
    run_walk(r);
    for (int i = 0; i < r->call->n_in; i++)
        if (input_has_grad(r->call, i)) grads[i] = copy_reals(r->call->in[i]->grad, tensor_count(r->call->in[i]));
    for (int i = 0; i < r->call->n_in; i++)
        if (grads[i] && !route_chooses(r->call->op, i)) difference_input(r, i, grads[i]);
    for (int i = 0; i < OP_MAX_IN; i++) free(grads[i]);
}

START_TEST(gradients_match_central_differences) {
    const struct op *op = op_list()[_i];
    if (!differentiable(op)) return;
    struct op_walk w = walk_of(op, WALK_EDGES);
    for (int i = 0; i < w.n; i++) {
        unsigned all = output_bits(op, &w.at[i]);
        for (unsigned outputs = 1; outputs <= all; outputs++) {
            struct op_run r;
            struct trial_op what = {.op = op, .kernel = "reference", .sizes = w.at[i], .outputs = outputs};
            if (!run_open(&r, &what)) continue;
            /* A rounded product is a staircase; its gradient is looked at in tests/harness/run/check_precision.c. */
            if (r.g.options.precision == PRECISION_FULL) difference_run(&r);
            run_close(&r);
        }
    }
    walk_free(&w);
}
END_TEST

/* --- twin against twin ------------------------------------------------------------------------------------------- */

static bool is_twin(const struct kernel *k, const struct op *op) {
    return k->op == op && k->device == DEVICE_CPU && !k->reference;
}

/* The reference with itself once: it has the same bits twice, and writes where it may. */
START_TEST(kernels_agree_with_the_reference) {
    const struct op *op = op_list()[_i];
    each_example(kernel_reference(op), WALK_EDGES, FILL_SMALL, NULL, compare_twin);
    for (const struct kernel *const *k = kernel_list(); *k; k++) {
        if (!is_twin(*k, op)) continue;
        for (int fill = FILL_SMALL; fill <= FILL_WHOLE; fill++)
            each_example(*k, WALK_EDGES, (enum fill)fill, NULL, compare_twin);
        each_example(*k, WALK_REAL | WALK_LARGE, FILL_NET, NULL, compare_twin);
    }
}
END_TEST

/* Far beyond where a sigmoid has rounded to 0 or 1; one that passes the largest number there shows nothing. */
START_TEST(activations_agree_on_huge_inputs) {
    const struct op *op = op_find("activate");
    for (const struct kernel *const *k = kernel_list(); *k; k++)
        for (int variant = 0; (*k)->op == op && (*k)->device == DEVICE_CPU && variant < op_variants(op); variant++) {
            struct trial_op what = {.op = op, .kernel = (*k)->name, .sizes = sizes_at("length=8"), .outputs = 1};
            what.sizes.variant = variant;
            what.scale = REAL_IS_DOUBLE ? 1e200 : 1e21;
            what.may_overflow = true;
            compare_twin(*k, &what);
        }
}
END_TEST

/* --- threads ----------------------------------------------------------------------------------------------------- */

/* Looks on at a walk: which passes of the call start threads. Those of the calls before end as it begins. */
struct onlooker {
    const struct call *call;
    int threads; /* that it may take */
    int before;  /* there are as it begins; 0: another call runs */
    enum pass pass;
    bool shared[2];
};

static int threads_now(void) {
    int n = 0;
    DIR *folder = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(folder);
    for (const struct dirent *d; (d = readdir(folder));) n += d->d_name[0] != '.';
    closedir(folder);
    return n;
}

static void look_on(void *watcher, const struct call *c, enum pass pass) {
    struct onlooker *o = watcher;
    if (o->before > 0) o->shared[o->pass] |= threads_now() > o->before;
    o->before = 0;
    if (c != o->call) return;
    ck_assert_int_eq(omp_pause_resource_all(omp_pause_hard), 0);
    omp_set_num_threads(o->threads);
    o->before = threads_now();
    o->pass = pass;
}

static void walk_by(struct op_run *r, const struct trial_op *what, int threads) {
    ck_assert(run_open(r, what));
    omp_set_num_threads(threads);
    run_walk(r);
}

static bool shared_out[2]; /* passes of the kernel that is walked that were, at some size */

/* By seven threads and, where they have something to share, by one, two and three. */
static bool compare_threads(const struct kernel *k, const struct trial_op *what) {
    struct op_run seven, other;
    struct onlooker onlooker = {.threads = 7};
    (void)k;
    ck_assert(run_open(&seven, what));
    onlooker.call = seven.call;
    seven.g.plan->watch = look_on;
    seven.g.plan->watcher = &onlooker;
    run_walk(&seven);
    for (int threads = 1; threads <= 3 && (onlooker.shared[0] || onlooker.shared[1]); threads++) {
        walk_by(&other, what, threads);
        expect_same_run(&other, &seven, 0);
        run_close(&other);
    }
    for (int pass = 0; pass < 2; pass++) shared_out[pass] |= onlooker.shared[pass];
    bool in_range = run_in_range(&seven);
    run_close(&seven);
    return in_range;
}

/* Kernels whose gradient is a copy, which one thread makes. */
static const char *const copied_back[] = {"degree_code_cpu"};

static bool all_shared_out(const struct kernel *k) {
    bool back = !k->backward || shared_out[PASS_BACKWARD];
    for (size_t i = 0; i < sizeof copied_back / sizeof *copied_back; i++)
        back = back || strcmp(k->name, copied_back[i]) == 0;
    return shared_out[PASS_FORWARD] && back;
}

/* At sizes where it does share out its work. */
static void expect_same_by_threads(const struct kernel *k) {
    shared_out[PASS_FORWARD] = shared_out[PASS_BACKWARD] = false;
    each_example(k, WALK_LONG | WALK_REAL, FILL_NET, NULL, compare_threads);
    if (!all_shared_out(k)) each_example(k, WALK_WIDE, FILL_NET, NULL, compare_threads);
    ck_assert_msg(all_shared_out(k),
                  "kernel %s starts threads at no size of the walks forward (%s) or backward (%s): the test is void; "
                  "widen the row in tests/lib/op_walk.c",
                  k->name, shared_out[PASS_FORWARD] ? "yes" : "no", shared_out[PASS_BACKWARD] ? "yes" : "no");
}

START_TEST(bits_do_not_depend_on_threads) {
    for (const struct kernel *const *k = kernel_list(); *k; k++)
        if (is_twin(*k, op_list()[_i])) expect_same_by_threads(*k);
}
END_TEST

/* CHECK_OP=NAME: that op alone, for who has walked the others already. One that is not there leaves no test, which
 * fails the suite. */
static void ops_walked(int *from, int *to) {
    const char *only = getenv("CHECK_OP");
    *from = 0;
    *to = op_count();
    while (only && *from < *to && strcmp(op_list()[*from]->name, only) != 0) (*from)++;
    if (only && *from < *to) *to = *from + 1;
}

Suite *check_ops(void);
Suite *check_ops(void) {
    Suite *suite = suite_create("ops");
    TCase *tests = tcase_create("ops");
    int from, to;
    ops_walked(&from, &to);
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_loop_test(tests, every_op_is_declared_and_covered, from, to);
    tcase_add_loop_test(tests, an_op_names_the_sizes_that_it_reads, from, to);
    if (REAL_IS_DOUBLE) tcase_add_loop_test(tests, gradients_match_central_differences, from, to);
    tcase_add_loop_test(tests, kernels_agree_with_the_reference, from, to);
    tcase_add_loop_test(tests, bits_do_not_depend_on_threads, from, to);
    tcase_add_test(tests, activations_agree_on_huge_inputs);
    suite_add_tcase(suite, tests);
    return suite;
}

/* check_scratch.c - the arrays of a kernel's scratch: what reads or writes across the border of two is found. */
#include <math.h>

#include "core/graph_walk.h"
#include "kernels/dense/dense.h"
#include "kernels/lib/scratch.h"
#include "tests/lib/op_compare.h"

/* --- a kernel that does wrong: y = x through two arrays of scratch, n reals each ---------------------------------- */

enum slip { RIGHT, READS_FORWARD, WRITES_FORWARD, READS_BACKWARD, WRITES_BACKWARD, SLIPS };
static enum slip slip;

#define PIECE 13 /* no whole cache line: the zone begins right after the reals all the same */

static void copies_infer(struct graph *g, struct call *c) {
    graph_output(g, c, DT_REAL, c->in[0]->rank, c->in[0]->dims);
}

static struct cost copies_cost(const struct call *c, enum pass pass) {
    (void)c, (void)pass;
    return (struct cost){1, 1};
}

static const struct op op_copies = {.name = "copies", .infer = copies_infer, .cost = copies_cost};

struct two {
    real *a, *b;
};

static struct two two_of(struct scratch *s) {
    struct two t = {.a = scratch_reals(s, PIECE)};
    t.b = scratch_reals(s, PIECE);
    return t;
}

static size_t copies_workspace(const struct call *c, enum pass pass) {
    (void)pass;
    struct scratch s = scratch_measure(c);
    two_of(&s);
    return s.used;
}

/* Wrong on purpose, so no sanitizer may look on; volatile, or a compiler that sees through it may do anything. */
__attribute__((no_sanitize("address"))) static void copy(const struct call *c, enum pass pass, bool reads, bool writes,
                                                         const real *from, real *to) {
    struct scratch s = scratch_of(c, pass);
    struct two t = two_of(&s);
    real across = 0;
    for (int64_t i = 0; i < PIECE; i++) t.a[i] = t.b[i] = from[i];
    for (int64_t i = 0; reads && i < 2 * PIECE; i++) across += ((const volatile real *)t.a)[i];
    if (writes) ((volatile real *)t.a)[PIECE] = 1;
    for (int64_t i = 0; i < PIECE; i++) to[i] = t.b[i] + 0 * across;
}

static void copies_forward(const struct call *c, const struct exec *x) {
    (void)x;
    copy(c, PASS_FORWARD, slip == READS_FORWARD, slip == WRITES_FORWARD, tensor_real(c->in[0]), tensor_real(c->out[0]));
}

static void copies_backward(const struct call *c, const struct exec *x) {
    (void)x;
    copy(c, PASS_BACKWARD, slip == READS_BACKWARD, slip == WRITES_BACKWARD, call_dout(c, 0), c->din[0]);
}

static const struct kernel kernel_copies = {.name = "copies_ref",
                                            .op = &op_copies,
                                            .reference = true,
                                            .workspace = copies_workspace,
                                            .forward = copies_forward,
                                            .backward = copies_backward};

/* The result of a walk of tanh, copies, tanh. */
struct seen {
    bool nan_forward, nan_backward;
    int failure_forward, failure_backward; /* first_guard_failure after each */
    size_t bytes;                          /* of scratch */
};

static bool any_nan(const real *x) {
    for (int i = 0; i < PIECE; i++)
        if (isnan(x[i])) return true;
    return false;
}

static struct seen walk(enum slip how, bool guards) {
    const struct kernel *kernels[400];
    struct seen seen = {0};
    struct graph g;
    struct error e = {0};
    struct step_state state = first_state();
    int n = 0;
    for (const struct kernel *const *k = test_kernels(); *k; k++) kernels[n++] = *k;
    kernels[n++] = &kernel_copies;
    kernels[n] = NULL;
    slip = how;
    struct graph_options options = {.training = true, .guards = guards, .kernels = kernels};
    ck_assert_int_eq(graph_create(&g, &options, NULL, &e), ST_OK);
    struct tensor *x = input3(&g, "x", PIECE, 0, 0, true), *y = activate(&g, x, ACT_TANH);
    struct call *c = graph_call(&g, &op_copies, NULL, 0, &y, 1);
    graph_set_root(&g, activate(&g, c->out[0], ACT_TANH));
    plan_graph(&g);
    fill_inputs(&g, FILL_SMALL, false);
    for (int i = 0; i < PIECE; i++) g.root->grad[i] = 1;
    graph_forward(&g, &state);
    seen.nan_forward = any_nan(tensor_real(g.root));
    seen.failure_forward = g.plan->first_guard_failure;
    graph_backward(&g, &state);
    seen.nan_backward = any_nan(x->grad);
    seen.failure_backward = g.plan->first_guard_failure;
    seen.bytes = c->scratch_bytes[PASS_FORWARD];
    for (size_t i = 0; i < seen.bytes; i++) /* the zones are the plan's to reuse */
        ck_assert_int_ge(((const char *)c->scratch[PASS_FORWARD])[i], -128);
    graph_free(&g);
    return seen;
}

START_TEST(a_read_across_the_border_of_two_arrays_is_nan) {
    ck_assert(!walk(READS_FORWARD, false).nan_forward); /* nobody would see it */
    struct seen forward = walk(READS_FORWARD, true), backward = walk(READS_BACKWARD, true);
    ck_assert(forward.nan_forward);
    ck_assert(!backward.nan_forward && backward.nan_backward);
    ck_assert_int_eq(backward.failure_backward, -1);
}
END_TEST

START_TEST(a_write_across_the_border_of_two_arrays_is_found) {
    struct seen forward = walk(WRITES_FORWARD, true), backward = walk(WRITES_BACKWARD, true);
    ck_assert_int_eq(forward.failure_forward, 1); /* the call's index */
    ck_assert_int_eq(backward.failure_forward, -1);
    ck_assert_int_eq(backward.failure_backward, 1);
}
END_TEST

START_TEST(a_right_kernel_passes) {
    struct seen guarded = walk(RIGHT, true), plain = walk(RIGHT, false);
    ck_assert(!guarded.nan_forward && !guarded.nan_backward);
    ck_assert_int_eq(guarded.failure_backward, -1);
    size_t line = (PIECE * sizeof(real) + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    ck_assert_uint_eq(plain.bytes, 2 * line);
    ck_assert_uint_eq(guarded.bytes, 2 * (line + ARENA_GUARD));
}
END_TEST

/* --- the cursor --------------------------------------------------------------------------------------------------- */

START_TEST(arrays_begin_on_cache_lines_and_parts_share_out_the_rest) {
    _Alignas(64) char memory[64 * 16];
    for (int guards = 0; guards < 2; guards++) {
        struct call c = {.guards = guards};
        struct scratch s = scratch_measure(&c);
        size_t zone = guards ? ARENA_GUARD : 0;
        ck_assert_ptr_null(scratch_i32(&s, 3));
        for (int part = 0; part < 2; part++) {
            ck_assert_ptr_null(scratch_doubles(&s, 1));
            ck_assert_ptr_null(scratch_rows(&s, 2, 1).at);
        }
        ck_assert_uint_eq(s.used, 7 * (64 + zone));
        c.scratch[PASS_FORWARD] = memory;
        c.scratch_bytes[PASS_FORWARD] = s.used;
        s = scratch_of(&c, PASS_FORWARD);
        ck_assert_ptr_eq((char *)scratch_i32(&s, 3), memory);
        for (int part = 0; part < 2; part++) {
            struct scratch own = scratch_part(&s, part, 2);
            char *first = memory + (size_t)(1 + 3 * part) * (64 + zone);
            ck_assert_ptr_eq((char *)scratch_doubles(&own, 1), first);
            struct scratch_rows rows = scratch_rows(&own, 2, 1);
            ck_assert_ptr_eq((char *)rows.at, first + 64 + zone);
            ck_assert_ptr_eq((char *)(rows.at + rows.stride), first + 2 * (64 + zone));
        }
    }
}
END_TEST

/* --- all kernels -------------------------------------------------------------------------------------------------- */

struct zones {
    struct zone_visitor visitor;
    int n;
    size_t end; /* of the last */
};

static void count_zone(struct zone_visitor *v, size_t begin, size_t end) {
    struct zones *z = (struct zones *)v;
    ck_assert_uint_ge(begin, z->end);
    ck_assert_uint_ge(end, begin + ARENA_GUARD);
    z->n++;
    z->end = end;
}

/* Or its arrays would have no guards between them. */
static bool expect_zones(const struct kernel *k, const struct trial_op *what) {
    struct op_run r;
    char text[256];
    op_sizes_format(k->op, &what->sizes, text, sizeof text);
    ck_assert(run_open(&r, what));
    for (int pass = PASS_FORWARD; pass <= PASS_BACKWARD && k->workspace; pass++) {
        struct zones zones = {{count_zone}, 0, 0};
        r.call->zones = &zones.visitor;
        size_t bytes = k->workspace(r.call, (enum pass)pass);
        r.call->zones = NULL;
        ck_assert_msg(zones.end == bytes, "kernel %s %s: %zu bytes of scratch, the last array ends at %zu", k->name,
                      text, bytes, zones.end);
    }
    run_close(&r);
    return true;
}

START_TEST(every_kernel_takes_its_scratch_from_the_cursor) {
    for (const struct kernel *const *k = kernel_list(); *k; k++)
        if ((*k)->device == DEVICE_CPU) each_example(*k, WALK_EDGES | WALK_REAL, FILL_SMALL, NULL, expect_zones);
}
END_TEST

Suite *check_scratch(void);
Suite *check_scratch(void) {
    Suite *suite = suite_create("scratch");
    TCase *tests = tcase_create("scratch");
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_test(tests, a_read_across_the_border_of_two_arrays_is_nan);
    tcase_add_test(tests, a_write_across_the_border_of_two_arrays_is_found);
    tcase_add_test(tests, a_right_kernel_passes);
    tcase_add_test(tests, arrays_begin_on_cache_lines_and_parts_share_out_the_rest);
    tcase_add_test(tests, every_kernel_takes_its_scratch_from_the_cursor);
    suite_add_tcase(suite, tests);
    return suite;
}

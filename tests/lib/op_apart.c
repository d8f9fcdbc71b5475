/* op_apart.c - see op_apart.h. */
#include "tests/lib/op_apart.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PICKS 4

/* First, second, middle and last of n things. */
static int picks(int64_t n, int64_t pick[MAX_PICKS]) {
    int count = 1;
    const int64_t wanted[MAX_PICKS] = {0, 1, n / 2, n - 1};
    pick[0] = wanted[0];
    for (int i = 1; i < MAX_PICKS; i++)
        if (wanted[i] > pick[count - 1] && wanted[i] < n) pick[count++] = wanted[i];
    return count;
}

/* --- which inputs are a sequence's -------------------------------------------------------------------------------- */

static bool cut_like(const struct tensor *one, const struct tensor *all) {
    if (one->rank != all->rank || one->dims[0] != 1) return false;
    for (int a = 1; a < all->rank; a++)
        if (one->dims[a] != all->dims[a]) return false;
    return true;
}

/* Whether the op takes one sequence of those inputs and makes one of each output. */
static bool can_be_cut(const struct call *c, uint32_t cut) {
    struct imitation like = {c, cut, 1};
    struct graph g;
    open_graph(&g, NULL, true, false, "reference");
    const struct call *one = imitate(&g, &like);
    bool fits = one != NULL && one->n_out == c->n_out;
    for (int j = 0; fits && j < c->n_out; j++) fits = cut_like(one->out[j], c->out[j]);
    graph_free(&g);
    return fits;
}

uint32_t sequence_inputs(const struct call *c) {
    if (c->n_out == 0) return 0;
    int64_t B = c->out[0]->dims[0];
    uint32_t candidates = 0;
    for (int j = 1; j < c->n_out; j++)
        if (c->out[j]->dims[0] != B) return 0;
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i] && c->in[i]->dims[0] == B) candidates |= 1u << i;
    for (int count = 1; count <= c->n_in; count++)
        for (uint32_t cut = 1; cut <= candidates; cut++)
            if ((cut & ~candidates) == 0 && __builtin_popcount(cut) == count && can_be_cut(c, cut)) return cut;
    return 0;
}

bool sequences_are_apart(const struct op *op, const char **why) {
    static const struct {
        const char *op, *why;
    } others[] = {
        {"batch_norm", "its statistics are those of the batch"},
        {"cross_entropy", "its loss is a mean over the batch"},
        {"frobenius", "its result is one number"},
        {"dropout", "the mask is drawn by the place in the batch"},
        {"repeat_rows", "its input is a parameter"},
        {"repeat_each", "its input is a parameter"},
        {"brackets", "its input is a parameter"},
        {"dense_generators", "its inputs are parameters"},
        {"take_batch", "it has no outputs"},
        {"step_begin", "it has no outputs"},
        {"adamw", "it has no outputs"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        *why = others[i].why;
        if (strcmp(others[i].op, op->name) == 0) return false;
    }
    return true;
}

/* --- sequences ---------------------------------------------------------------------------------------------------- */

static size_t element_bytes(const struct tensor *t) {
    return tensor_bytes(t) / (size_t)tensor_count(t);
}

/* to = sequence b of from, or all of it where both have the same size. */
static void copy_sequence(const struct tensor *from, int64_t b, struct tensor *to) {
    int64_t at = tensor_count(from) == tensor_count(to) ? 0 : b * tensor_count(to);
    memcpy(to->data, (const char *)from->data + (size_t)at * element_bytes(from), tensor_bytes(to));
}

static void copy_inputs(const struct op_run *all, int64_t b, const struct op_run *one) {
    for (int i = 0; i < all->call->n_in; i++)
        if (all->call->in[i]) copy_sequence(all->call->in[i], b, one->call->in[i]);
    for (int j = 0; j < all->call->n_out; j++)
        if (all->weight_out[j]) copy_sequence(all->weight_out[j], b, one->weight_out[j]);
}

static void expect_same_numbers(const struct op_run *got, const char *name, const int32_t *g, const int32_t *want,
                                int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (g[i] != want[i]) report_difference(got, name, &(struct difference){i, want[i], g[i], 1, 0}, 0);
}

static void expect_same_sequence(const struct op_run *all, int64_t b, const struct op_run *one, uint32_t cut) {
    const struct kernel *k = one->call->kernel;
    double tolerance = k->tiles ? k->tolerance : 0;
    char name[64];
    for (int j = 0; j < one->call->n_out; j++) {
        const struct tensor *y = one->call->out[j];
        int64_t n = tensor_count(y);
        snprintf(name, sizeof name, "out[%d] of sequence %lld alone", j, (long long)b);
        if (y->dtype == DT_I32) {
            expect_same_numbers(one, name, tensor_i32(y), tensor_i32(all->call->out[j]) + b * n, n);
            continue;
        }
        expect_agreement(one, tensor_real(y), tensor_real(all->call->out[j]) + b * n, n, tolerance, 0, name);
    }
    for (int i = 0; i < one->call->n_in; i++) {
        if (!(cut >> i & 1) || !input_has_grad(one->call, i)) continue;
        int64_t n = tensor_count(one->call->in[i]);
        snprintf(name, sizeof name, "din[%d] of sequence %lld alone", i, (long long)b);
        expect_agreement(one, one->call->in[i]->grad, all->call->in[i]->grad + b * n, n, tolerance, 0, name);
    }
}

bool compare_alone(const struct kernel *k, const struct trial_op *what) {
    (void)k;
    struct op_run all, one;
    int64_t pick[MAX_PICKS];
    ck_assert(run_open(&all, what));
    int64_t B = all.call->out[0]->dims[0];
    uint32_t cut = B > 1 ? sequence_inputs(all.call) : 0;
    ck_assert_msg(B == 1 || cut, "op %s variant %d: no sequence can be had alone", what->op->name,
                  (int)what->sizes.variant);
    if (cut) run_walk(&all);
    for (int i = 0, n = cut ? picks(B, pick) : 0; i < n; i++) {
        struct imitation like = {all.call, cut, 1};
        struct trial_op alone = *what;
        alone.like = &like;
        ck_assert(run_open(&one, &alone));
        copy_inputs(&all, pick[i], &one);
        run_walk(&one);
        expect_same_sequence(&all, pick[i], &one, cut);
        run_close(&one);
    }
    bool shown = cut != 0 && run_in_range(&all);
    run_close(&all);
    return shown;
}

/* --- heads -------------------------------------------------------------------------------------------------------- */

static bool is_of(const struct heads *h, int64_t width, int64_t head, int64_t element) {
    return width == 0 || element / width % h->count == head;
}

/* Other values where it is not that head's, of another element in the same range. */
static void change_others(struct tensor *t, const struct heads *h, int64_t width, int64_t head, enum fill fill) {
    if (!t || t->dtype != DT_REAL) return;
    for (int64_t e = 0; e < tensor_count(t); e++)
        if (!is_of(h, width, head, e)) tensor_real(t)[e] = (real)fill_value(t, 0, fill, false, tensor_count(t) + e);
}

static void expect_same_head(const struct op_run *got, const struct heads *h, int64_t width, int64_t head,
                             const real *g, const real *want, int64_t n, const char *name) {
    for (int64_t e = 0; e < n; e++)
        if (is_of(h, width, head, e) && memcmp(g + e, want + e, sizeof *g) != 0) {
            struct difference d = {e, (double)g[e], (double)want[e], (double)g[e] - (double)want[e], 0};
            report_difference(got, name, &d, 0);
        }
}

static void compare_head(const struct op_run *one, const struct heads *h, int64_t head) {
    struct op_run other;
    char name[64];
    ck_assert(run_open(&other, &one->what));
    for (int i = 0; i < other.call->n_in; i++) change_others(other.call->in[i], h, h->in[i], head, one->what.fill);
    for (int j = 0; j < other.call->n_out; j++) change_others(other.weight_out[j], h, h->out[j], head, one->what.fill);
    run_walk(&other);
    for (int j = 0; j < other.call->n_out; j++) {
        const struct tensor *y = other.call->out[j];
        snprintf(name, sizeof name, "out[%d] of head %lld beside others", j, (long long)head);
        expect_same_head(&other, h, h->out[j], head, tensor_real(y), tensor_real(one->call->out[j]), tensor_count(y),
                         name);
    }
    for (int i = 0; i < other.call->n_in; i++) {
        if (!input_has_grad(other.call, i)) continue;
        const struct tensor *x = other.call->in[i];
        snprintf(name, sizeof name, "din[%d] of head %lld beside others", i, (long long)head);
        expect_same_head(&other, h, h->in[i], head, x->grad, one->call->in[i]->grad, tensor_count(x), name);
    }
    run_close(&other);
}

bool compare_beside_others(const struct kernel *k, const struct trial_op *what) {
    (void)k;
    struct op_run one;
    int64_t pick[MAX_PICKS];
    ck_assert(run_open(&one, what));
    struct heads h = what->op->heads(one.call);
    if (h.count > 1) run_walk(&one);
    for (int i = 0, n = h.count > 1 ? picks(h.count, pick) : 0; i < n; i++) compare_head(&one, &h, pick[i]);
    run_close(&one);
    return h.count > 1;
}

int each_example_apart(const struct kernel *k, unsigned walks, const struct place *place,
                       bool (*compare)(const struct kernel *k, const struct trial_op *what)) {
    struct op_walk w = walk_of(k->op, walks);
    int compared = 0;
    for (int i = 0; i < w.n; i++) {
        struct trial_op what = {.op = k->op,
                                .kernel = k->name,
                                .sizes = w.at[i],
                                .outputs = output_bits(k->op, &w.at[i]),
                                .guards = true,
                                .may_overflow = true,
                                .fill = FILL_NET,
                                .place = place};
        if (!walk_leaves_out(place, i, compared) && kernel_applies(k, &what)) compared += compare(k, &what);
    }
    walk_free(&w);
    return compared;
}

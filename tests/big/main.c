/* main.c - `make test-big`: ops at more than 2^31 elements, so that an index of 32 bits shows.
 *
 * The first and the last sequence of a batch have the same inputs, all others have zeros, whose memory is never
 * touched. So outputs alone take memory, 4 bytes per element. The outputs of the first sequence and the last must be
 * the same bits, and so must those of two others.
 *
 *   test-big [OP...]
 *
 * Exit status: 0 all hold, 1 one does not or crashes, 2 there is no such op. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_walk.h"
#include "core/op_sizes.h"
#include "harness/store/clock.h"
#include "kernels/kernel.h"
#include "tests/lib/op_walk.h"
#include "tests/lib/support.h"

#define ELEMENTS ((int64_t)1 << 31)
#define SIZES    "length=64 dim=256 blocks=128 m=2"
#define SMALL    (1 << 22) /* elements: a smaller tensor is a weight */

static int64_t largest(const struct call *c) {
    int64_t most = 0;
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i] && tensor_count(c->in[i]) > most) most = tensor_count(c->in[i]);
    for (int j = 0; j < c->n_out; j++)
        if (tensor_count(c->out[j]) > most) most = tensor_count(c->out[j]);
    return most;
}

static struct call *build(struct graph *g, const struct op *op, const struct op_sizes *s) {
    open_graph(g, NULL, false, false, "");
    ck_assert(op->build(g, s));
    ck_assert_msg(g->error.status == ST_OK, "%s", g->error.text);
    for (int i = g->n_calls - 1; i >= 0; i--)
        if (g->calls[i].op == op) return &g->calls[i];
    return NULL;
}

static void fill(struct tensor *t, int64_t batch) {
    int64_t n = tensor_count(t) / batch, last = tensor_count(t) - n;
    if (t->producer >= 0 || t->base) return;
    if (tensor_count(t) < SMALL) fill_tensor(t, FILL_SMALL, false);
    for (int64_t k = 0; k < n && tensor_count(t) >= SMALL; k++) {
        double value = fill_value(t, 0, FILL_SMALL, false, k);
        set_value(t, k, value);
        set_value(t, last + k, value);
    }
}

static bool is_zero(const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (bytes[i]) return false;
    return true;
}

/* Whether the sequences' outputs are as they should be. */
static bool holds(const struct tensor *t, int64_t batch) {
    size_t n = tensor_bytes(t) / (size_t)batch;
    const char *first = t->data, *last = first + tensor_bytes(t) - n, *middle = first + (size_t)(batch / 2) * n;
    return !is_zero(first, n) && memcmp(first, last, n) == 0 && memcmp(first + n, middle, n) == 0;
}

static const struct op **chosen;

START_TEST(sequences_are_as_at_the_start_of_the_batch) {
    const struct op *op = chosen[_i];
    struct op_sizes s = sizes_at(SIZES);
    struct step_state state = first_state();
    struct graph g;
    char sizes[256];
    double begin = time_now_s();
    start_kernels();
    s.batch = 1;
    s.batch = ELEMENTS / largest(build(&g, op, &s)) + 2;
    graph_free(&g);
    struct call *c = build(&g, op, &s);
    for (int j = 0; j < c->n_out; j++) tensor_keep(c->out[j]);
    plan_graph(&g);
    for (int i = 0; i < g.n_tensors; i++) fill(g.tensors[i], s.batch);
    graph_forward(&g, &state);
    op_sizes_format(op, &s, sizes, sizeof sizes);
    printf("%s %s, kernel %s: %lld elements, %.0f s\n", op->name, sizes, c->kernel->name, (long long)largest(c),
           time_now_s() - begin);
    fflush(stdout);
    for (int j = 0; j < c->n_out; j++)
        ck_assert_msg(c->out[j]->dtype != DT_REAL || holds(c->out[j], s.batch), "%s: output %d", op->name, j);
    graph_free(&g);
}
END_TEST

int main(int argc, char **argv) {
    const char *const usual[] = {"", "activate", "scan_block"};
    const char *const *names = argc > 1 ? (const char *const *)argv : usual;
    int n = (argc > 1 ? argc : 3) - 1;
    chosen = calloc((size_t)n, sizeof *chosen);
    for (int i = 0; i < n; i++) {
        const struct op *const *op = op_list();
        while (*op && strcmp((*op)->name, names[i + 1]) != 0) op++;
        if (!*op) {
            fprintf(stderr, "test-big: there is no op %s; lrnn list ops names them\n", names[i + 1]);
            return 2;
        }
        chosen[i] = *op;
    }
    Suite *suite = suite_create("big");
    TCase *tests = tcase_create("big");
    tcase_set_timeout(tests, 0);
    tcase_add_loop_test(tests, sequences_are_as_at_the_start_of_the_batch, 0, n);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    free(chosen);
    return failed > 0;
}

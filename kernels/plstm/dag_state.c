/* dag_state.c - shape checks that the matrix-state recurrences share. See dag_state.h. */
#include "kernels/plstm/dag_state.h"

#include <inttypes.h>

bool infer_dag_state(struct graph *g, const struct call *c, int64_t H) {
    static const char *const names[3] = {"q", "k", "v"};
    const struct tensor *q = c->in[0];
    if (!infer_present(g, c, c->n_in)) return false;
    if (H < 1) {
        graph_fail(g, ST_USAGE, "%s: heads=%" PRId64 ", expected at least 1", c->op->name, H);
        return false;
    }
    for (int i = 0; i < 3; i++) {
        const struct tensor *t = c->in[i];
        if (t->rank != 3)
            graph_fail(g, ST_USAGE, "%s: %s has rank %d, expected 3 (B,T,width)", c->op->name, names[i], t->rank);
        else if (t->dims[0] != q->dims[0] || t->dims[1] != q->dims[1])
            graph_fail(g, ST_USAGE,
                       "%s: %s is (%" PRId64 ",%" PRId64 ") and q (%" PRId64 ",%" PRId64
                       ") in batch and length; they must agree",
                       c->op->name, names[i], t->dims[0], t->dims[1], q->dims[0], q->dims[1]);
        else if (t->dims[2] % H != 0)
            graph_fail(g, ST_USAGE, "%s: %s is %" PRId64 " wide, not divisible by heads=%" PRId64, c->op->name,
                       names[i], t->dims[2], H);
        else
            continue;
        return false;
    }
    if (c->in[1]->dims[2] == q->dims[2]) return true;
    graph_fail(g, ST_USAGE, "%s: k is %" PRId64 " wide and q %" PRId64 "; they must agree", c->op->name,
               c->in[1]->dims[2], q->dims[2]);
    return false;
}

bool infer_gate(struct graph *g, const struct call *c, int i, int64_t rows, int64_t width, const char *what) {
    const struct tensor *t = c->in[i];
    if (t->rank == 3 && t->dims[0] == c->in[0]->dims[0] && t->dims[1] == rows && t->dims[2] == width) return true;
    if (t->rank != 3)
        graph_fail(g, ST_USAGE, "%s: %s has rank %d, expected 3 (B,rows,width)", c->op->name, what, t->rank);
    else
        graph_fail(g, ST_USAGE,
                   "%s: %s is (%" PRId64 ",%" PRId64 ",%" PRId64 "), expected (%" PRId64 ",%" PRId64 ",%" PRId64 ")",
                   c->op->name, what, t->dims[0], t->dims[1], t->dims[2], c->in[0]->dims[0], rows, width);
    return false;
}

#define GROUPS 16

int64_t dag_groups(const struct call *c, int64_t H) {
    int64_t pairs = c->in[0]->dims[0] * H;
    return pairs < GROUPS ? pairs : GROUPS;
}

void dag_each_head(const struct call *c, enum pass pass, int64_t H, int64_t work, struct scratch all, dag_head *head,
                   const void *shared) {
    int64_t pairs = c->in[0]->dims[0] * H, groups = dag_groups(c, H);
#pragma omp parallel for schedule(static) if (work > PARALLEL_MIN)
    for (int64_t i = 0; i < groups; i++) {
        struct range part = part_at(pairs, groups, i);
        for (int64_t pair = part.begin; pair < part.end; pair++)
            head(c, pass, shared, pair / H, pair % H, scratch_part(&all, i, groups));
    }
}

static void run_pass(const struct call *c, enum pass pass, const void *shared, int64_t b, int64_t h,
                     struct scratch own) {
    (void)pass;
    (*(dag_pass *const *)shared)(c, b, h, own);
}

void dag_each_pass(const struct call *c, enum pass pass, int64_t H, dag_pass *one) {
    struct dag_sizes z = dag_sizes_of(c, H);
    dag_each_head(c, pass, H, z.B * H * z.T * z.dk * z.dv, scratch_of(c, pass), run_pass, &one);
}

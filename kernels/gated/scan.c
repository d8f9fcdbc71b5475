/* scan.c - checks and scratch that scan_block and scan_companion share. See scan.h. */
#include "kernels/gated/scan.h"

#include <inttypes.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/scratch.h"

bool infer_scan(struct graph *g, const struct call *c, const char *count, int64_t gates, const char *of_gates,
                int64_t values, const char *of_values) {
    const struct scan_attr *a = scan_attr(c);
    const struct tensor *z = c->in[0], *v = c->in[1];
    const char *name = c->op->name;
    if (!infer_present(g, c, 2)) return false;
    if (a->N < 1 || a->m < 1)
        graph_fail(g, ST_USAGE, "%s: %s=%" PRId64 " and m=%" PRId64 " must both be at least 1", name, count, a->N,
                   a->m);
    else if (z->rank != 3 || v->rank != 3)
        graph_fail(g, ST_USAGE, "%s: z and v have rank %d and %d, expected 3 (B,T,width)", name, z->rank, v->rank);
    else if (z->dims[0] != v->dims[0] || z->dims[1] != v->dims[1])
        graph_fail(g, ST_USAGE,
                   "%s: z is (%" PRId64 ",%" PRId64 ") and v (%" PRId64 ",%" PRId64
                   ") in batch and length; they must agree",
                   name, z->dims[0], z->dims[1], v->dims[0], v->dims[1]);
    else if (z->dims[2] != gates)
        graph_fail(g, ST_USAGE, "%s: z is %" PRId64 " wide, expected %s = %" PRId64, name, z->dims[2], of_gates, gates);
    else if (v->dims[2] != values)
        graph_fail(g, ST_USAGE, "%s: v is %" PRId64 " wide, expected %s = %" PRId64, name, v->dims[2], of_values,
                   values);
    else
        return true;
    return false;
}

struct heads scan_heads(const struct call *c) {
    return (struct heads){scan_attr(c)->N, {1, 1}, {1}};
}

struct ref_row ref_row_of(const struct call *c, struct scratch *s) {
    int64_t m = scan_attr(c)->m;
    struct ref_row r = {.a = scratch_reals(s, m + 1)};
    r.w = scratch_reals(s, m + 1);
    r.G = scratch_doubles(s, m);
    r.carry = scratch_doubles(s, m);
    return r;
}

size_t ref_row_workspace(const struct call *c, enum pass pass) {
    (void)pass;
    struct scratch s = scratch_measure(c);
    ref_row_of(c, &s);
    return s.used;
}

/* mad_view.c - see mad_view.h. */
#include "tests/tasks/mad/mad_view.h"

#include <math.h>

#include "tests/lib/chi_square.h"

void view_open(struct view *v, const char *text, uint64_t seed) {
    open_task(&v->c, text, seed);
    v->s = &v->c.shape;
    v->x = new_example(v->s);
    v->index = -1;
    ck_assert_int_le(v->s->T, MAX_T);
}

void view_fill(struct view *v, enum split split, int64_t index) {
    for (int64_t t = 0; t < v->s->T; t++) v->x.targets[t] = IGNORED;
    v->index = index;
    v->c.task->fill(v->c.inst, split, index, &v->x);
}

void view_close(struct view *v) {
    free_example(&v->x);
}

void require(const struct view *v, bool ok, const char *what) {
    if (!ok) ck_abort_msg("%s, example %lld: %s", v->c.name, (long long)v->index, what);
}

void check_share(const char *what, int64_t count, int64_t n, double p, double rounding) {
    double share = (double)count / (double)n, sigma = sqrt(p * (1 - p) / (double)n);
    ck_assert_msg(fabs(share - p) <= 3 * sigma + rounding, "%s: share %g, expected %g, sigma %g", what, share, p,
                  sigma);
}

void check_uniform(const char *what, const int64_t *count, int bins, int64_t draws) {
    double z = chi_square_z(count, bins, draws);
    ck_assert_msg(fabs(z) < 3, "%s: %.1f sigma from uniform", what, z);
}

/* buckets.c - see buckets.h. */
#include "harness/study/buckets.h"

/* Of a room for `all` in a graph of T positions, the share of one of `part` positions, rounded up. */
static int64_t share(int64_t all, int64_t part, int64_t T) {
    return (all * part + T - 1) / T;
}

int64_t bucket_rows(const struct setup *s) {
    return share(s->spec.config.batch, 1, s->spec.config.buckets);
}

int64_t bucket_parts(const struct setup *s) {
    return share(s->spec.config.batch, 1, bucket_rows(s));
}

struct net_shape bucket_shape(const struct setup *s, enum split split, const struct bucket_size *size) {
    struct net_shape shape = setup_net_shape(s, split);
    shape.B = bucket_rows(s);
    shape.T = size->T;
    shape.links = size->links;
    return shape;
}

static bool fits(const struct setup *s, enum split split, const struct bucket_size *size) {
    struct net_shape shape = bucket_shape(s, split, size);
    struct model_choice fitted;
    return setup_fit(s, &shape, &fitted, NULL) == ST_OK;
}

int bucket_sizes(const struct setup *s, enum split split, struct bucket_size sizes[BUCKET_SIZES]) {
    const struct task_shape *whole = &s->spec.task.shape;
    int64_t T[BUCKET_SIZES] = {task_length(whole, split)};
    int all = 1, n = 0;
    while (all < BUCKET_SIZES && share(5, T[all - 1], 6) < T[all - 1]) {
        T[all] = share(5, T[all - 1], 6);
        all++;
    }
    for (int i = all - 1; i >= 0; i--) {
        sizes[n].T = T[i];
        sizes[n].links.edges = share(whole->links.edges, T[i], T[0]);
        sizes[n].links.pairs = share(whole->links.pairs, T[i], T[0]);
        if (i == 0 || fits(s, split, &sizes[n])) n++;
    }
    return n;
}

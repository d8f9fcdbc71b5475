/* scratch.h - lays out a kernel's scratch: arrays are taken one after the other from a cursor.
 *
 * A kernel's `workspace` and its run take the same arrays in the same order, best in one function. A cursor of
 * scratch_measure only counts bytes and returns NULL; a cursor of scratch_of returns arrays. Each begins on a cache
 * line.
 *
 *   static struct rows rows_of(int64_t n, struct scratch *s) {
 *       struct rows r = {.x = scratch_reals(s, n)};
 *       r.sums = scratch_doubles(s, 2); // its own statement, because the order of initialisers is not defined
 *       return r;
 *   }
 *   workspace:  struct scratch s = scratch_measure(c);  rows_of(n, &s);  return s.used;
 *   run:        struct scratch s = scratch_of(c, pass);  struct rows r = rows_of(n, &s);
 *
 * Parts that run on threads have equal arrays: `workspace` takes the arrays `parts` times, and part i takes them from
 * scratch_part(&s, i, parts), where the cursor s is past the shared arrays.
 *
 * In a graph with guards (struct graph_options) a zone of NaN lies after each array. A read past an array's end gives
 * NaN, and the zone must be unchanged after the call. So no kernel may rely on which array follows. */
#ifndef LRNN_KERNELS_LIB_SCRATCH_H
#define LRNN_KERNELS_LIB_SCRATCH_H

#include "core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

struct scratch {
    char *base;                 /* NULL: it only measures */
    size_t used, bytes;         /* used: bytes taken so far; bytes: of the whole scratch */
    bool guards;                /* there are zones between the arrays */
    struct zone_visitor *zones; /* while measuring, gets each zone; or NULL */
};

LRNN_INLINE struct scratch scratch_measure(const struct call *c) {
    struct scratch s = {NULL, 0, 0, c->guards, c->zones};
    return s;
}

LRNN_INLINE struct scratch scratch_of(const struct call *c, enum pass pass) {
    struct scratch s = {(char *)c->scratch[pass], 0, c->scratch_bytes[pass], c->guards, NULL};
    return s;
}

/* Returns part i of the scratch after the arrays of `shared`. That rest is divided into `parts` equal parts. */
LRNN_INLINE struct scratch scratch_part(const struct scratch *shared, int64_t i, int64_t parts) {
    struct scratch s = *shared;
    size_t each = (s.bytes - s.used) / (size_t)parts;
    s.used += (size_t)i * each;
    return s;
}

LRNN_INLINE void *scratch_bytes(struct scratch *s, size_t bytes) {
    size_t begin = s->used, end = (begin + bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    if (s->guards) end += ARENA_GUARD;
    if (s->zones) s->zones->visit(s->zones, begin + bytes, end);
    s->used = end;
/* the analyzer sees one file at a time, and would take the arrays of a run for those of a measurement */
#ifdef __clang_analyzer__
    return s->base + begin;
#else
    return s->base ? s->base + begin : NULL;
#endif
}

LRNN_INLINE real *scratch_reals(struct scratch *s, int64_t n) {
    return (real *)scratch_bytes(s, (size_t)n * sizeof(real));
}

LRNN_INLINE double *scratch_doubles(struct scratch *s, int64_t n) {
    return (double *)scratch_bytes(s, (size_t)n * sizeof(double));
}

LRNN_INLINE int32_t *scratch_i32(struct scratch *s, int64_t n) {
    return (int32_t *)scratch_bytes(s, (size_t)n * sizeof(int32_t));
}

/* An entry of a list of arrays of reals that are taken in order: where to store the array, and its number of elements.
 * Arrays that only backward needs are in their own list. */
struct scratch_array {
    real **to;
    int64_t n;
};

LRNN_INLINE void scratch_take(struct scratch *s, const struct scratch_array *list, size_t count) {
    for (size_t i = 0; i < count; i++) *list[i].to = scratch_reals(s, list[i].n);
}

/* Returns the result of `workspace` for a kernel with a single array, which then is c->scratch[pass]. For 0 bytes it is
 * 0. */
LRNN_INLINE size_t scratch_single(const struct call *c, size_t bytes) {
    struct scratch s = scratch_measure(c);
    if (bytes > 0) scratch_bytes(&s, bytes);
    return s.used;
}

/* `count` arrays of n reals each. Array i begins at `at` + i * stride. */
struct scratch_rows {
    real *at;
    int64_t stride;
};

LRNN_INLINE struct scratch_rows scratch_rows(struct scratch *s, int64_t count, int64_t n) {
    size_t begin = s->used;
    struct scratch_rows rows = {scratch_reals(s, count > 0 ? n : 0), 0};
    rows.stride = (int64_t)((s->used - begin) / sizeof(real));
    for (int64_t i = 1; i < count; i++) scratch_reals(s, n);
    return rows;
}

#ifdef __cplusplus
}
#endif
#endif

/* group.h - finite groups by name, as tables of products; and sets of elements that generate them. */
#ifndef LRNN_TASKS_LANGUAGE_GROUP_H
#define LRNN_TASKS_LANGUAGE_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/status.h"

#define GROUP_MAX_ORDER 1000
#define GROUP_NAMES     "s1..s5, a1..a5, z1..z1000, d1..d500, q8, q12, .. q1000, h2..h10, or a product such as z2xs3"

/* Elements have the ids 0..order-1; 0 is the identity.
 *
 *   sN  permutations of N things in lexicographic order, (a b)(i) = a(b(i))      N! elements
 *   aN  the even ones of them, in the same order
 *   zN  residues modulo N under addition                                          N
 *   dN  symmetries of an N-gon: r^i has the id i, r^i s the id N + i              2 N
 *   qN  dicyclic, q8 the quaternions: a^i has the id i, a^i x the id N/2 + i      N, a multiple of 4
 *   hN  Heisenberg, upper triangular 3 x 3 matrices modulo N with ones on the diagonal: (N u + v) N + w with the rows
 *       1 u w, 0 1 v, 0 0 1                                                       N^3
 *   AxB pairs, the first factor major; more than two factors are read from the left */
struct group {
    int32_t order;
    uint16_t *product; /* (order, order): id of a b at [a * order + b] */
    uint64_t key;      /* tells groups apart: its lower 32 bits are 0 */
};

/* Makes the tables on `host`. ST_USAGE: no such group, or one of more than GROUP_MAX_ORDER elements; ST_MEMORY. */
enum status group_make(struct group *group, const char *name, struct arena *host, struct error *e);

/* Tells whether the products of `n` elements reach the whole group. */
bool group_is_generated(const struct group *group, const uint16_t *elements, int n);

/* Lists the elements in one transposition of exactly two things, or in none (the identity), by ascending id: the moves
 * of two things at most. `list` has room for GROUP_MAX_ORDER. Returns 0 for a group that is not sN. */
int group_transpositions(const struct group *group, const char *name, uint16_t *list);

#endif

/* group.c - products of groups, family by family. A product of two groups is made from their tables. */
#include "tasks/language/group.h"

#include <stdio.h>
#include <string.h>

#include "core/option.h"

#define MAX_DEGREE       5   /* of permutations */
#define MAX_PERMUTATIONS 120 /* MAX_DEGREE! */

struct permutation {
    uint8_t to[MAX_DEGREE];
};

/* The next one-line tuple in lexicographic order; false after the last. */
static bool next_permutation(struct permutation *p, int degree) {
    int i = degree - 2, j = degree - 1;
    while (i >= 0 && p->to[i] > p->to[i + 1]) i--;
    if (i < 0) return false;
    while (p->to[j] < p->to[i]) j--;
    uint8_t swapped = p->to[i];
    p->to[i] = p->to[j];
    p->to[j] = swapped;
    for (int low = i + 1, high = degree - 1; low < high; low++, high--) {
        swapped = p->to[low];
        p->to[low] = p->to[high];
        p->to[high] = swapped;
    }
    return true;
}

static bool is_even(const struct permutation *p, int degree) {
    int inversions = 0;
    for (int i = 0; i < degree; i++)
        for (int j = i + 1; j < degree; j++) inversions += p->to[i] > p->to[j];
    return inversions % 2 == 0;
}

/* Lists all permutations, or the even ones, in lexicographic order; the place in the list is the id. Returns their
 * number. */
static int list_permutations(int degree, bool even_only, struct permutation list[MAX_PERMUTATIONS]) {
    struct permutation p = {{0}};
    int n = 0;
    for (int i = 0; i < degree; i++) p.to[i] = (uint8_t)i;
    do
        if (!even_only || is_even(&p, degree)) list[n++] = p;
    while (next_permutation(&p, degree));
    return n;
}

static int32_t permutation_product(const struct permutation *list, int n, int degree, int32_t a, int32_t b) {
    struct permutation ab = {{0}};
    int i = 0;
    for (; i < degree; i++) ab.to[i] = list[a].to[list[b].to[i]];
    for (i = 0; i < n && memcmp(&list[i], &ab, sizeof ab) != 0; i++) continue;
    return i;
}

/* Dihedral: r^i s^j r^k s^l = r^(i +- k) s^(j+l), because s turns the sense of r. n rotations. */
static int32_t dihedral_product(int32_t n, int32_t a, int32_t b) {
    int32_t flips = (a / n + b / n) % 2;
    return (a % n + (a < n ? b % n : n - b % n)) % n + n * flips;
}

/* Dicyclic: like dihedral, with x^2 = a^(n/2), n the order of a. */
static int32_t dicyclic_product(int32_t n, int32_t a, int32_t b) {
    int32_t turned = dihedral_product(n, a, b);
    return a >= n && b >= n ? (turned + n / 2) % n : turned;
}

/* Heisenberg: (u v w) (u' v' w') = (u + u', v + v', w + w' + u v') modulo n. */
static int32_t heisenberg_product(int32_t n, int32_t a, int32_t b) {
    int32_t ua = a / (n * n), va = a / n % n, wa = a % n, ub = b / (n * n), vb = b / n % n, wb = b % n;
    return ((ua + ub) % n * n + (va + vb) % n) * n + (wa + wb + ua * vb) % n;
}

/* Splits "s5" into family and number, and returns the number of elements; 0 if there is no such group. */
static int32_t parse_group(const char *text, char *family, int32_t *number) {
    int64_t n;
    if (text[0] == '\0' || text[1] == '0' || text[1 + strspn(text + 1, "0123456789")] != '\0') return 0;
    if (!parse_int64(text + 1, &n) || n > GROUP_MAX_ORDER) return 0;
    *family = text[0];
    *number = (int32_t)n;
    struct permutation list[MAX_PERMUTATIONS];
    switch (*family) {
    case 's':
    case 'a':
        return n <= MAX_DEGREE ? list_permutations(*number, *family == 'a', list) : 0;
    case 'z':
        return *number;
    case 'd':
        return n <= GROUP_MAX_ORDER / 2 ? 2 * *number : 0;
    case 'q':
        return n >= 8 && n % 4 == 0 ? *number : 0;
    case 'h':
        return n >= 2 && n <= 10 ? *number * *number * *number : 0;
    default:
        return 0;
    }
}

static enum status unknown(const char *name, struct error *e) {
    return fail(e, ST_USAGE, "word-problem: unknown group '%s'; expected %s", name, GROUP_NAMES);
}

static enum status reserve_product(struct group *group, const char *name, struct arena *host, struct error *e) {
    size_t bytes = (size_t)group->order * (size_t)group->order * sizeof *group->product;
    group->product = arena_alloc(host, bytes);
    if (group->product) return ST_OK;
    return fail(e, ST_MEMORY, "word-problem: no room for the %zu bytes of the product table of group %s", bytes, name);
}

/* Makes a group that is no product. `name` is the whole name, for messages. */
static enum status make_factor(struct group *group, const char *factor, const char *name, struct arena *host,
                               struct error *e) {
    char family;
    int32_t number;
    struct permutation list[MAX_PERMUTATIONS];
    group->order = parse_group(factor, &family, &number);
    if (!group->order) return unknown(name, e);
    TRY(reserve_product(group, name, host, e));
    if (family == 's' || family == 'a') list_permutations(number, family == 'a', list);
    for (int32_t a = 0; a < group->order; a++)
        for (int32_t b = 0; b < group->order; b++) {
            int32_t ab = 0;
            if (family == 's' || family == 'a') ab = permutation_product(list, group->order, number, a, b);
            if (family == 'z') ab = (a + b) % number;
            if (family == 'd') ab = dihedral_product(number, a, b);
            if (family == 'q') ab = dicyclic_product(number / 2, a, b);
            if (family == 'h') ab = heisenberg_product(number, a, b);
            group->product[a * group->order + b] = (uint16_t)ab;
        }
    group->key = (uint64_t)family << 48 | (uint64_t)number << 32;
    return ST_OK;
}

enum status group_make(struct group *group, const char *name, struct arena *host, struct error *e) {
    *group = (struct group){.order = 0};
    for (const char *at = name; at; at = strchr(at, 'x') ? strchr(at, 'x') + 1 : NULL) {
        struct group left = *group, right;
        char factor[16];
        size_t n = strcspn(at, "x");
        if (n >= sizeof factor) return unknown(name, e);
        snprintf(factor, sizeof factor, "%.*s", (int)n, at);
        TRY(make_factor(&right, factor, name, host, e));
        if (left.order == 0) {
            *group = right;
            continue;
        }
        int32_t order = left.order * right.order, g = right.order;
        if (order > GROUP_MAX_ORDER)
            return fail(e, ST_USAGE,
                        "word-problem: group %s has more than %d elements, which is the most; take smaller "
                        "factors",
                        name, GROUP_MAX_ORDER);
        group->order = order;
        TRY(reserve_product(group, name, host, e));
        for (int32_t a = 0; a < order; a++)
            for (int32_t b = 0; b < order; b++)
                group->product[a * order + b] =
                    (uint16_t)(left.product[a / g * left.order + b / g] * g + right.product[a % g * g + b % g]);
        group->key = ((left.key * UINT64_C(0x9E3779B97F4A7C15)) ^ (right.key << 8)) & ~(uint64_t)UINT32_MAX;
    }
    return ST_OK;
}

bool group_is_generated(const struct group *group, const uint16_t *elements, int n) {
    bool seen[GROUP_MAX_ORDER] = {true};
    uint16_t reached[GROUP_MAX_ORDER] = {0};
    int32_t count = 1;
    for (int32_t i = 0; i < count; i++)
        for (int j = 0; j < n; j++) {
            uint16_t next = group->product[reached[i] * group->order + elements[j]];
            if (!seen[next]) reached[count++] = next;
            seen[next] = true;
        }
    return count == group->order;
}

int group_transpositions(const struct group *group, const char *name, uint16_t *list) {
    char family = 0;
    int32_t number = 0;
    struct permutation all[MAX_PERMUTATIONS];
    int n = 0;
    if (parse_group(name, &family, &number) != group->order || family != 's') return 0;
    list_permutations(number, false, all);
    for (int32_t i = 0; i < group->order; i++) {
        int moved = 0;
        for (int t = 0; t < number; t++) moved += all[i].to[t] != t;
        if (moved <= 2) list[n++] = (uint16_t)i;
    }
    return n;
}

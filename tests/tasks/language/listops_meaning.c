/* listops_meaning.c - see listops_meaning.h. */
#include "tests/tasks/language/listops_meaning.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/testing.h"

static int ascending(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

int apply(int operator, const int * values, int n) {
    int sorted[1024] = {0}, sum = 0;
    if (n < 1 || n > 1024) ck_abort_msg("an operator with %d arguments", n);
    memcpy(sorted, values, (size_t)n * sizeof *values);
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    for (int i = 0; i < n; i++) sum += values[i];
    if (operator== MAX) return sorted[n - 1];
    if (operator== MIN) return sorted[0];
    if (operator== SM) return sum % 10;
    int below = sorted[(n - 1) / 2], above = sorted[n / 2]; /* the same one where n is odd */
    return (int)floor((below + above) / 2.0);
}

int value_of(const int32_t **at, int level, struct seen *seen) {
    int32_t token = *(*at)++;
    if (level > seen->deepest) seen->deepest = level;
    if (ZERO <= token && token < ZERO + 10) return token - ZERO;
    if (token < MAX || token > SM) ck_abort_msg("%d begins no expression", token); /* an assertion each would be slow */
    int values[1024], n = 0;
    while (**at != CLOSE) values[n++] = value_of(at, level + 1, seen);
    ++*at;
    if (n > seen->most) seen->most = n;
    if (n < seen->fewest) seen->fewest = n;
    return apply(token, values, n);
}

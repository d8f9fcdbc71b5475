/* listops_operation.c - see listops_operation.h. */
#include "tasks/language/listops_operation.h"

void operation_start(struct operation *o, int32_t name) {
    *o = (struct operation){.name = name};
}

void operation_add(struct operation *o, int32_t digit) {
    o->arguments++;
    o->count[digit]++;
}

/* The argument at `place`, from 0, among the sorted arguments. */
static int32_t sorted_argument(const struct operation *o, int32_t place) {
    int32_t digit = 0;
    while (digit < 9 && place >= o->count[digit]) place -= o->count[digit++];
    return digit;
}

static int32_t sum_mod_10(const struct operation *o) {
    int64_t sum = 0;
    for (int32_t digit = 0; digit < 10; digit++) sum += (int64_t)digit * o->count[digit];
    return (int32_t)(sum % 10);
}

int32_t operation_value(const struct operation *o) {
    int32_t n = o->arguments;
    switch (o->name) {
    case LISTOPS_MAX:
        return sorted_argument(o, n - 1);
    case LISTOPS_MIN:
        return sorted_argument(o, 0);
    case LISTOPS_MED:
        return (sorted_argument(o, (n - 1) / 2) + sorted_argument(o, n / 2)) / 2;
    default:
        return sum_mod_10(o);
    }
}

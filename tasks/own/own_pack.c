/* own_pack.c - see own_pack.h. */
#include "tasks/own/own_pack.h"

#include <math.h>
#include <stdlib.h>

#include "tasks/data/grow.h"

static enum status no_room(const struct own_pack *p, struct error *e) {
    return fail(e, ST_MEMORY, "%s: no memory for more than %lld examples", p->name, (long long)p->n);
}

enum status own_pack_input(struct own_pack *p, double value, const char *where, struct error *e) {
    float *more = grow(p->input, &p->have_input, p->n_input + 1, sizeof *more);
    if (!more) return no_room(p, e);
    p->input = more;
    if (!isfinite((double)(float)value))
        return fail(e, ST_DATA, "%s, %s: an input is missing or not finite; fill it in, or leave the example out",
                    p->name, where);
    p->values = p->values || value < 0 || value != floor(value) || value >= OWN_MOST_LABELS;
    p->largest = fmax(p->largest, value);
    p->input[p->n_input++] = (float)value;
    return ST_OK;
}

enum status own_pack_target(struct own_pack *p, double value, bool scored, const char *where, struct error *e) {
    int32_t *more = grow(p->target, &p->have_target, p->n_target + 1, sizeof *more);
    if (!more) return no_room(p, e);
    p->target = more;
    if (scored && value != floor(value))
        return fail(e, ST_DATA,
                    "%s, %s: the target %g is no whole number; numbers are not predicted here, sort them into classes",
                    p->name, where, value);
    if (scored && !(value >= 0 && value < OWN_MOST_LABELS))
        return fail(e, ST_DATA, "%s, %s: the target %g is neither from 0 to %d nor %d, which is not scored", p->name,
                    where, value, OWN_MOST_LABELS - 1, IGNORED);
    p->target[p->n_target++] = scored ? (int32_t)value : IGNORED;
    if (scored && (int64_t)value + 1 > p->labels) p->labels = (int64_t)value + 1;
    return ST_OK;
}

enum status own_pack_example(struct own_pack *p, int64_t length, int64_t channels, bool per_sequence, int split,
                             const char *where, struct error *e) {
    const struct own_example *last = p->n ? &p->example[p->n - 1] : NULL;
    int64_t input = last ? last->input + last->length * p->channels : 0;
    int64_t target = last ? last->target + (p->kind == 1 ? 1 : last->length) : 0;
    int kind = per_sequence ? 1 : 2;
    if (p->n && channels != p->channels)
        return fail(e, ST_DATA, "%s, %s: a position has %lld numbers, and %lld in the examples before", p->name, where,
                    (long long)channels, (long long)p->channels);
    if (p->n && kind != p->kind)
        return fail(e, ST_DATA, "%s, %s: one example has a target a position and another has one label", p->name,
                    where);
    if (length > OWN_MOST_LENGTH)
        return fail(e, ST_DATA, "%s, %s: %lld positions are more than the %d that an example may have", p->name, where,
                    (long long)length, OWN_MOST_LENGTH);
    struct own_example *more = grow(p->example, &p->have, p->n + 1, sizeof *more);
    if (!more) return no_room(p, e);
    p->example = more;
    p->channels = channels;
    p->kind = kind;
    p->longest = length > p->longest ? length : p->longest;
    p->example[p->n++] = (struct own_example){input, target, (int32_t)length, split};
    return ST_OK;
}

void own_pack_free(struct own_pack *p) {
    free(p->example);
    free(p->input);
    free(p->target);
}

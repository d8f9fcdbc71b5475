/* own_file.c - see own_file.h: examples as they are collected, and the file that becomes of them. */
#include "tasks/data/own_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/label.h"
#include "tasks/data/grow.h"
#include "tasks/data/own_pack.h"

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

static void free_pack(struct own_pack *p) {
    free(p->example);
    free(p->input);
    free(p->target);
}

enum status own_file_parse(void *file, const void *bytes, size_t size, const char *name, struct error *e) {
    struct own_file *f = file;
    struct own_pack p = {.name = name, .largest = -1};
    XXH128_canonical_t digest;
    if ((int64_t)size > OWN_MOST_BYTES)
        return fail(e, ST_DATA,
                    "%s has %.1f GB and is read into memory whole; the most is %.1f GB: take a part of it, or write "
                    "shorter numbers",
                    name, (double)size * 1e-9, (double)OWN_MOST_BYTES * 1e-9);
    enum status status =
        text_ends(name, ".npz") ? own_npz_read(&p, bytes, size, e) : own_jsonl_read(&p, bytes, size, e);
    if (status == ST_OK && p.n == 0) status = fail(e, ST_DATA, "%s holds no example", name);
    if (status == ST_OK && p.labels == 0) status = fail(e, ST_DATA, "%s: no target is scored in any example", name);
    if (status != ST_OK) {
        free_pack(&p);
        return status;
    }
    bool tokens = !p.values && p.channels == 1;
    *f = (struct own_file){.n = p.n,
                           .longest = p.longest,
                           .channels = p.channels,
                           .vocab = tokens ? (int64_t)p.largest + 1 : 0,
                           .labels = p.labels,
                           .per_sequence = p.kind == 1,
                           .example = p.example,
                           .input = p.input,
                           .target = p.target};
    XXH128_canonicalFromHash(&digest, XXH3_128bits(bytes, size));
    cache_hex(digest.digest, f->hash);
    return ST_OK;
}

void own_file_free(struct own_file *file) {
    free((void *)(uintptr_t)file->example);
    free((void *)(uintptr_t)file->input);
    free((void *)(uintptr_t)file->target);
}

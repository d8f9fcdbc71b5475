/* image_set.c - see image_set.h. */
#include "tasks/data/image_set.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SIZES      8 /* where the sizes begin; the hash and the pixels follow */
#define HASH       40
#define HEADER     56
#define HASH_BYTES 16

/* --- reading --------------------------------------------------------------------------------------------------- */

static int64_t number(const uint8_t *at) {
    return (int64_t)at[0] | (int64_t)at[1] << 8 | (int64_t)at[2] << 16 | (int64_t)at[3] << 24;
}

static enum status check_sizes(const struct image_set *s, const char *name, struct error *e) {
    const struct {
        const char *what;
        int64_t value, least, most;
    } sizes[] = {{"rows", s->height, 1, IMAGE_SET_SIDE},
                 {"columns", s->width, 1, IMAGE_SET_SIDE},
                 {"channels", s->channels, 1, 3},
                 {"labels", s->labels, 1, IMAGE_SET_LABELS},
                 {"training images", s->n_train, 1, IMAGE_SET_MOST},
                 {"test images", s->n_test, 0, IMAGE_SET_MOST}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value < sizes[i].least || sizes[i].value > sizes[i].most)
            return fail(e, ST_DATA, "%s, byte %zu: expected %" PRId64 "..%" PRId64 " %s, found %" PRId64, name,
                        8 + 4 * i, sizes[i].least, sizes[i].most, sizes[i].what, sizes[i].value);
    return ST_OK;
}

/* Checks header and size of the file, but not its content. */
static enum status parse_header(struct image_set *s, const uint8_t *bytes, size_t size, const char *name,
                                struct error *e) {
    if (size < HEADER || memcmp(bytes, "LRNNIMG1", 8) != 0)
        return fail(e, ST_DATA,
                    "%s: expected images as `lrnn data import` stores them, found another file of %zu bytes", name,
                    size);
    *s = (struct image_set){.height = number(bytes + 8),
                            .width = number(bytes + 12),
                            .channels = number(bytes + 16),
                            .labels = number(bytes + 20),
                            .n_train = number(bytes + 24),
                            .n_test = number(bytes + 28)};
    TRY(check_sizes(s, name, e));
    size_t pixels = (size_t)(s->height * s->width * s->channels), n = (size_t)(s->n_train + s->n_test);
    if (size != HEADER + n * (pixels + 1))
        return fail(e, ST_DATA, "%s: expected %zu bytes of %zu images, found %zu", name, HEADER + n * (pixels + 1), n,
                    size);
    s->pixels = bytes + HEADER;
    s->label = s->pixels + n * pixels;
    cache_hex(bytes + HASH, s->hash);
    return ST_OK;
}

/* Ends the hash in the state with the sizes of the header. */
static void end_hash(XXH3_state_t *state, const uint8_t *header, uint8_t digest[HASH_BYTES]) {
    XXH128_canonical_t hash;
    XXH3_128bits_update(state, header + SIZES, HASH - SIZES);
    XXH128_canonicalFromHash(&hash, XXH3_128bits_digest(state));
    memcpy(digest, hash.digest, HASH_BYTES);
}

enum status image_set_parse(struct image_set *set, const void *bytes, size_t size, const char *name, struct error *e) {
    uint8_t digest[HASH_BYTES];
    char hex[CACHE_HASH];
    TRY(parse_header(set, bytes, size, name, e));
    XXH3_state_t *state = XXH3_createState();
    if (!state) return fail(e, ST_MEMORY, "%s: no memory to read it", name);
    XXH3_128bits_reset(state);
    XXH3_128bits_update(state, set->pixels, size - HEADER);
    end_hash(state, bytes, digest);
    cache_hex(digest, hex);
    XXH3_freeState(state);
    if (strcmp(hex, set->hash) != 0)
        return fail(e, ST_DATA,
                    "%s: expected images whose XXH3-128 is %s, found %s: the file is damaged, import it again", name,
                    set->hash, hex);
    for (int64_t i = 0; i < set->n_train + set->n_test; i++)
        if (set->label[i] >= set->labels)
            return fail(e, ST_DATA, "%s: expected labels below %" PRId64 ", found %d of image %" PRId64, name,
                        set->labels, set->label[i], i);
    return ST_OK;
}

static cache_parse parse_any;

static enum status parse_any(void *set, const void *bytes, size_t size, const char *name, struct error *e) {
    return image_set_parse(set, bytes, size, name, e);
}

enum status image_set_open(struct image_set *set, const char *path, struct error *e) {
    _Static_assert(sizeof *set <= CACHE_SET, "a set must fit the place that a mapping has for it");
    return cache_open(path, parse_any, set, sizeof *set, e);
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

enum status image_pack_begin(struct image_pack *p, const char *path, struct error *e) {
    static const uint8_t header[HEADER];
    *p = (struct image_pack){.set = p->set, .stop = p->stop};
    TRY(cache_begin(&p->to, path, e));
    p->state = XXH3_createState();
    if (!p->state) return fail(e, ST_MEMORY, "no memory to import %s", path);
    XXH3_128bits_reset(p->state);
    return fwrite(header, 1, HEADER, p->to.file) == HEADER ? ST_OK : cache_cannot_write(&p->to, e);
}

enum status image_pack_add(struct image_pack *p, bool test, int label, const uint8_t *pixels, struct error *e) {
    struct image_set *s = &p->set;
    size_t size = (size_t)(s->height * s->width * s->channels);
    int64_t n = s->n_train + s->n_test;
    TRY(cache_heed(p->stop, e));
    if (n == p->capacity) {
        int64_t capacity = p->capacity ? 2 * p->capacity : 4096;
        uint8_t *more = realloc(p->label, (size_t)capacity);
        if (!more) return fail(e, ST_MEMORY, "no memory for %" PRId64 " labels", capacity);
        p->label = more;
        p->capacity = capacity;
    }
    p->label[n] = (uint8_t)label;
    *(test ? &s->n_test : &s->n_train) += 1;
    XXH3_128bits_update(p->state, pixels, size);
    return fwrite(pixels, 1, size, p->to.file) == size ? ST_OK : cache_cannot_write(&p->to, e);
}

static void put_number(uint8_t *at, int64_t value) {
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> 8 * i);
}

enum status image_pack_end(struct image_pack *p, struct error *e) {
    struct image_set *s = &p->set;
    uint8_t header[HEADER] = "LRNNIMG1";
    size_t n = (size_t)(s->n_train + s->n_test);
    const int64_t sizes[] = {s->height, s->width, s->channels, s->labels, s->n_train, s->n_test};
    TRY(check_sizes(s, p->to.path, e));
    for (int i = 0; i < 6; i++) put_number(header + 8 + 4 * i, sizes[i]);
    XXH3_128bits_update(p->state, p->label, n);
    end_hash(p->state, header, header + HASH);
    cache_hex(header + HASH, s->hash);
    FILE *f = p->to.file;
    bool written =
        fwrite(p->label, 1, n, f) == n && fseek(f, 0, SEEK_SET) == 0 && fwrite(header, 1, HEADER, f) == HEADER;
    TRY(written ? cache_end(&p->to, e) : cache_cannot_write(&p->to, e));
    image_pack_drop(p);
    return ST_OK;
}

void image_pack_drop(struct image_pack *p) {
    cache_drop(&p->to);
    XXH3_freeState(p->state);
    free(p->label);
    p->state = NULL;
    p->label = NULL;
}

/* characters.c - see characters.h. */
#include "tasks/data/characters.h"

#include <stdlib.h>
#include <string.h>

#define CODES   0x110000 /* Unicode's */
#define UNKNOWN UINT32_MAX

enum { PAD, OTHER, END, FIRST };
enum { FIRST_BYTE = 1, BYTE_END = 257, BYTE_VOCAB = 258 };

/* The code point at *text, which moves on; UNKNOWN for a byte that begins none. Overlong forms and surrogates count as
 * none (RFC 3629). */
static uint32_t next_code(const uint8_t **text, const uint8_t *end) {
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    const uint8_t *at = *text;
    uint8_t first = *at++;
    *text = at;
    if (first < 0x80) return first;
    int more = first >= 0xc0 && first < 0xe0   ? 1
               : first >= 0xe0 && first < 0xf0 ? 2
               : first >= 0xf0 && first < 0xf8 ? 3
                                               : 0;
    if (!more || end - at < more) return UNKNOWN;
    uint32_t code = first & (0x3fu >> more);
    for (int i = 0; i < more; i++) {
        if ((at[i] & 0xc0) != 0x80) return UNKNOWN;
        code = code << 6 | (at[i] & 0x3f);
    }
    if (code < least[more] || code >= CODES || (code >= 0xd800 && code < 0xe000)) return UNKNOWN;
    *text = at + more;
    return code;
}

enum status counter_create(struct character_counter *c, struct error *e) {
    c->count = calloc(CODES, sizeof *c->count);
    return c->count ? ST_OK : fail(e, ST_MEMORY, "no memory to count characters");
}

void counter_add(struct character_counter *c, const uint8_t *text, int64_t bytes, int64_t most) {
    for (const uint8_t *at = text, *end = text + bytes; at < end && most > 0; most--) {
        uint32_t code = next_code(&at, end);
        if (code != UNKNOWN) c->count[code]++;
    }
}

void counter_free(struct character_counter *c) {
    free(c->count);
    c->count = NULL;
}

/* A character of the vocabulary. */
struct entry {
    int64_t count;
    uint32_t code;
    int32_t id;
};

static int by_count(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    if (x->count != y->count) return x->count > y->count ? -1 : 1;
    return x->code < y->code ? -1 : x->code > y->code;
}

static int by_code(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    return x->code < y->code ? -1 : x->code > y->code;
}

static int64_t count_kept(const struct character_counter *c, int64_t least) {
    int64_t n = 0;
    for (uint32_t code = 0; code < CODES; code++) n += c->count[code] >= least;
    return n;
}

enum status characters_make(struct characters *v, int level, const struct character_counter *c, int64_t least,
                            struct arena *host, struct error *e) {
    *v = (struct characters){.level = level, .vocab = BYTE_VOCAB};
    if (level == LEVEL_BYTE) return ST_OK;
    int64_t n = count_kept(c, least), i = 0;
    struct entry *entry = arena_alloc(host, (size_t)(n + 1) * sizeof *entry);
    uint32_t *code = arena_alloc(host, (size_t)(n + 1) * sizeof *code);
    int32_t *id = arena_alloc(host, (size_t)(n + 1) * sizeof *id);
    if (!entry || !code || !id) return fail(e, ST_MEMORY, "no room for a vocabulary of %lld characters", (long long)n);
    for (uint32_t k = 0; k < CODES; k++)
        if (c->count[k] >= least) entry[i++] = (struct entry){c->count[k], k, 0};
    qsort(entry, (size_t)n, sizeof *entry, by_count);
    for (i = 0; i < n; i++) entry[i].id = FIRST + (int32_t)i;
    qsort(entry, (size_t)n, sizeof *entry, by_code);
    for (i = 0; i < n; i++) {
        code[i] = entry[i].code;
        id[i] = entry[i].id;
    }
    for (int k = 0; k < 128; k++) v->plain[k] = OTHER;
    for (i = 0; i < n && code[i] < 128; i++) v->plain[code[i]] = id[i];
    v->vocab = FIRST + n;
    v->n = n;
    v->code = code;
    v->id = id;
    return ST_OK;
}

static int32_t id_of(const struct characters *v, uint32_t code) {
    int64_t low = 0, high = v->n;
    if (code < 128) return v->plain[code];
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (v->code[middle] < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < v->n && v->code[low] == code ? v->id[low] : OTHER;
}

int32_t characters_put(const struct characters *v, const uint8_t *text, int64_t bytes, int64_t most, int64_t T,
                       int32_t *tokens) {
    int64_t n = 0;
    for (const uint8_t *at = text, *end = text + bytes; at < end && n < most;)
        tokens[n++] = v->level == LEVEL_BYTE ? FIRST_BYTE + *at++ : id_of(v, next_code(&at, end));
    tokens[n++] = v->level == LEVEL_BYTE ? BYTE_END : END;
    for (int64_t t = n; t < T; t++) tokens[t] = PAD;
    return (int32_t)n;
}

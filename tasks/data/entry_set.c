/* entry_set.c - see entry_set.h. */
#include "tasks/data/entry_set.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "tasks/data/grow.h"

#define MAGIC   "LRNNREC1"
#define KIND    8 /* where it begins in the header; then six numbers; then the hash; then the table */
#define NUMBERS 16
#define HASH    40
#define HEADER  56
#define ROW     16 /* bytes of an entry in the table: label, length, offset */

static int64_t number(const uint8_t *at) {
    return (int64_t)at[0] | (int64_t)at[1] << 8 | (int64_t)at[2] << 16 | (int64_t)at[3] << 24;
}

static void put_number(uint8_t *at, int64_t value) {
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> 8 * i);
}

static int64_t offset_of(const uint8_t *at) {
    return (int64_t)((uint64_t)number(at) | (uint64_t)number(at + 4) << 32);
}

struct entry entry_get(const struct entry_set *s, int64_t i) {
    const uint8_t *row = s->table + i * ROW;
    int64_t at = offset_of(row + 8), end = offset_of(row + ROW + (i + 1 == entry_count(s) ? 0 : 8));
    return (struct entry){number(row), number(row + 4), s->payload + at, end - at};
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static enum status check_numbers(const struct entry_set *s, const char *name, struct error *e) {
    const struct {
        const char *what;
        int64_t value, least, most;
    } all[] = {{"as width", s->width, 0, 1 << 24},
               {"labels", s->labels, 1, ENTRIES_LABELS},
               {"training entries", s->n[SPLIT_TRAIN], 1, ENTRIES_MOST},
               {"validation entries", s->n[SPLIT_VAL], 0, ENTRIES_MOST},
               {"test entries", s->n[SPLIT_TEST], 0, ENTRIES_MOST},
               {"as length of the longest", s->longest, 1, 1 << 30}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].value < all[i].least || all[i].value > all[i].most)
            return fail(e, ST_DATA, "%s, byte %zu: expected %" PRId64 "..%" PRId64 " %s, found %" PRId64, name,
                        NUMBERS + 4 * i, all[i].least, all[i].most, all[i].what, all[i].value);
    return ST_OK;
}

/* Checks header, size and table, but not the hash. */
static enum status parse_header(struct entry_set *s, const uint8_t *bytes, size_t size, const char *name,
                                struct error *e) {
    if (size < HEADER || memcmp(bytes, MAGIC, 8) != 0)
        return fail(e, ST_DATA,
                    "%s: expected entries as `lrnn data import` stores them, found another file of %zu bytes", name,
                    size);
    *s = (struct entry_set){
        .width = number(bytes + NUMBERS),
        .labels = number(bytes + NUMBERS + 4),
        .n = {number(bytes + NUMBERS + 8), number(bytes + NUMBERS + 12), number(bytes + NUMBERS + 16)},
        .longest = number(bytes + NUMBERS + 20)};
    memcpy(s->kind, bytes + KIND, ENTRY_KIND);
    TRY(check_numbers(s, name, e));
    size_t table = (size_t)entry_count(s) * ROW + 8;
    if (size < HEADER + table)
        return fail(e, ST_DATA, "%s: expected at least %zu bytes, found %zu", name, HEADER + table, size);
    s->table = bytes + HEADER;
    s->payload = s->table + table;
    cache_hex(bytes + HASH, s->hash);
    return ST_OK;
}

static enum status check_table(const struct entry_set *s, size_t payload, const char *name, struct error *e) {
    int64_t n = entry_count(s), before = 0, longest = 0;
    for (int64_t i = 0; i <= n; i++) {
        const uint8_t *row = s->table + i * ROW;
        int64_t at = offset_of(i < n ? row + 8 : row);
        if (at < before || at > (int64_t)payload || (i == 0 && at != 0) || (i == n && at != (int64_t)payload) || at % 4)
            return fail(e, ST_DATA, "%s: entry %" PRId64 " cannot begin at byte %" PRId64 " of %zu", name, i, at,
                        payload);
        before = at;
        if (i == n) break;
        if (number(row) >= s->labels)
            return fail(e, ST_DATA, "%s: expected labels below %" PRId64 ", found %" PRId64 " of entry %" PRId64, name,
                        s->labels, number(row), i);
        if (number(row + 4) > longest) longest = number(row + 4);
    }
    if (longest == s->longest) return ST_OK;
    return fail(e, ST_DATA, "%s: expected a longest entry of %" PRId64 ", found %" PRId64, name, s->longest, longest);
}

/* Hashes everything after the header, then the kind and numbers in the header. */
static enum status digest_of(const uint8_t *bytes, size_t table, const uint8_t *payload, size_t size,
                             uint8_t digest[16], struct error *e) {
    XXH3_state_t *state = XXH3_createState();
    XXH128_canonical_t hash;
    if (!state) return fail(e, ST_MEMORY, "no memory for a hash");
    XXH3_128bits_reset(state);
    XXH3_128bits_update(state, bytes + HEADER, table);
    XXH3_128bits_update(state, payload, size);
    XXH3_128bits_update(state, bytes + KIND, HASH - KIND);
    XXH128_canonicalFromHash(&hash, XXH3_128bits_digest(state));
    memcpy(digest, hash.digest, 16);
    XXH3_freeState(state);
    return ST_OK;
}

static enum status parse_any(void *set, const void *bytes, size_t size, const char *name, struct error *e) {
    struct entry_set *s = set;
    uint8_t digest[16];
    char hex[CACHE_HASH];
    TRY(parse_header(s, bytes, size, name, e));
    size_t table = (size_t)(s->payload - s->table), payload = size - HEADER - table;
    TRY(digest_of(bytes, table, s->payload, payload, digest, e));
    cache_hex(digest, hex);
    if (strcmp(hex, s->hash) != 0)
        return fail(e, ST_DATA,
                    "%s: expected entries whose XXH3-128 is %s, found %s: the file is damaged, import it again", name,
                    s->hash, hex);
    return check_table(s, payload, name, e);
}

static enum status check_kind(const struct entry_set *s, const char *kind, const char *name, struct error *e) {
    if (!strcmp(s->kind, kind)) return ST_OK;
    return fail(e, ST_DATA, "%s: expected entries of kind '%s', found '%.8s'", name, kind, s->kind);
}

enum status entry_set_parse(struct entry_set *set, const void *bytes, size_t size, const char *name, const char *kind,
                            struct error *e) {
    TRY(parse_any(set, bytes, size, name, e));
    return check_kind(set, kind, name, e);
}

enum status entry_set_open(struct entry_set *set, const char *path, const char *kind, struct error *e) {
    _Static_assert(sizeof *set <= CACHE_SET, "a set must fit the place that a mapping has for it");
    TRY(cache_open(path, parse_any, set, sizeof *set, e));
    return check_kind(set, kind, path, e);
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

uint8_t *entry_pack_add(struct entry_pack *p, enum split split, int64_t label, int64_t length, int64_t size,
                        struct error *e) {
    struct entry_set *s = &p->set;
    int64_t n = entry_count(s), room = (size + 3) / 4 * 4;
    if (cache_heed(p->stop, e) != ST_OK) return NULL;
    if (n == ENTRIES_MOST || room > ENTRIES_BYTES - p->used) {
        fail(e, ST_DATA, "expected at most %d entries of %" PRId64 " bytes together, found more", ENTRIES_MOST,
             ENTRIES_BYTES);
        return NULL;
    }
    void *rows = grow(p->row, &p->capacity, n + 1, (int64_t)sizeof *p->row);
    if (rows) p->row = rows;
    uint8_t *payload = rows ? grow(p->payload, &p->room, p->used + room, 1) : NULL;
    if (payload) p->payload = payload;
    if (!payload) {
        fail(e, ST_MEMORY, "no memory for %" PRId64 " entries", n + 1);
        return NULL;
    }
    p->row[n].label = label;
    p->row[n].length = length;
    p->row[n].offset = p->used;
    s->n[split]++;
    if (length > s->longest) s->longest = length;
    memset(p->payload + p->used + size, 0, (size_t)(room - size)); /* the rest is the caller's to write */
    p->used += room;
    return p->payload + p->used - room;
}

/* Makes all bytes before the payload except the hash; the caller frees them. */
static uint8_t *head_of(const struct entry_pack *p, size_t table) {
    const struct entry_set *s = &p->set;
    int64_t n = entry_count(s);
    const int64_t numbers[] = {s->width, s->labels, s->n[SPLIT_TRAIN], s->n[SPLIT_VAL], s->n[SPLIT_TEST], s->longest};
    uint8_t *bytes = calloc(1, HEADER + table), *row = bytes ? bytes + HEADER : NULL;
    if (!bytes) return NULL;
    memcpy(bytes, MAGIC, 8); /* NOLINT: bytes, no text */
    memcpy(bytes + KIND, s->kind, ENTRY_KIND);
    for (int i = 0; i < 6; i++) put_number(bytes + NUMBERS + 4 * i, numbers[i]);
    for (int64_t i = 0; i <= n; i++) {
        int64_t at = i < n ? p->row[i].offset : p->used;
        uint8_t *place = i < n ? row + 8 : row;
        put_number(place, at & 0xffffffff);
        put_number(place + 4, at >> 32);
        if (i == n) break;
        put_number(row, p->row[i].label);
        put_number(row + 4, p->row[i].length);
        row += ROW;
    }
    return bytes;
}

/* Writes the file straight from the collected payload, without another copy in memory. */
static enum status write_whole(const uint8_t *head, size_t head_size, const struct entry_pack *p, const char *path,
                               struct error *e) {
    struct cache_writing to;
    size_t size = (size_t)p->used;
    TRY(cache_begin(&to, path, e));
    bool written = fwrite(head, 1, head_size, to.file) == head_size && fwrite(p->payload, 1, size, to.file) == size;
    enum status status = written ? cache_end(&to, e) : cache_cannot_write(&to, e);
    cache_drop(&to);
    return status;
}

enum status entry_pack_write(struct entry_pack *p, const char *path, struct error *e) {
    size_t table = (size_t)entry_count(&p->set) * ROW + 8;
    TRY(check_numbers(&p->set, path, e));
    uint8_t *head = head_of(p, table);
    if (!head) return fail(e, ST_MEMORY, "no memory for the %zu bytes of a table of entries", table);
    enum status status = digest_of(head, table, p->payload, (size_t)p->used, head + HASH, e);
    cache_hex(head + HASH, p->set.hash);
    if (status == ST_OK) status = write_whole(head, HEADER + table, p, path, e);
    free(head);
    return status;
}

void entry_pack_free(struct entry_pack *p) {
    free(p->row);
    free(p->payload);
    *p = (struct entry_pack){0};
}

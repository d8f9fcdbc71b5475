/* entry_set.c - fuzz target: whatever the bytes, a set of entries is refused with one sentence, or every byte and
 * label that it says it has can be read. The hash, which would keep the fuzzer out, is made to fit. */
#include <xxhash.h>

#include "tasks/data/entry_set.h"
#include "tests/fuzz/fuzz.h"

static void make_hash_fit(uint8_t *bytes, size_t size) {
    XXH3_state_t *state = XXH3_createState();
    XXH128_canonical_t hash;
    XXH3_128bits_reset(state);
    XXH3_128bits_update(state, bytes + 56, size - 56);
    XXH3_128bits_update(state, bytes + 8, 32);
    XXH128_canonicalFromHash(&hash, XXH3_128bits_digest(state));
    memcpy(bytes + 40, hash.digest, 16);
    XXH3_freeState(state);
}

FUZZ(entry_set) {
    struct entry_set s;
    struct error e = {ST_OK, ""};
    volatile unsigned sum = 0;
    uint8_t *bytes = malloc(size + 1);
    memcpy(bytes, data, size);
    if (size >= 56) make_hash_fit(bytes, size);
    enum status status = entry_set_parse(&s, bytes, size, "SET", "series", &e);
    if (status != ST_OK && (status != ST_DATA || strncmp(e.text, "SET", 3) != 0 || strchr(e.text, '\n'))) abort();
    for (int64_t i = 0; status == ST_OK && i < entry_count(&s); i++) {
        struct entry r = entry_get(&s, i);
        if (r.label >= s.labels || r.length > s.longest) abort();
        for (int64_t k = 0; k < r.size; k++) sum = sum + r.bytes[k];
    }
    free(bytes);
    return 0;
}

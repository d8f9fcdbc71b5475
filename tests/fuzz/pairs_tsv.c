/* pairs_tsv.c - fuzz target: whatever the bytes, plain or gzip, the reader of pairs of texts refuses them with one
 * sentence or hands on two texts an entry. */

#include "tasks/data/text_files.h"
#include "tests/fuzz/fuzz.h"

FUZZ(pairs_tsv) {
    struct byte_source s = {0};
    struct entry_pack pack = {.set = {.kind = PAIRS_KIND, .labels = 2}};
    struct error e = {ST_OK, ""};
    enum status status = source_open_memory(&s, data, size, "PAIRS", &e);
    if (status == ST_OK) status = pairs_read(&s, SPLIT_TRAIN, &pack, &e);
    if (status != ST_OK && (status != ST_DATA || strncmp(e.text, "PAIRS", 5) != 0 || strchr(e.text, '\n'))) abort();
    for (int64_t i = 0; i < entry_count(&pack.set); i++) {
        const uint8_t *at = pack.payload + pack.row[i].offset;
        uint32_t n[2];
        memcpy(n, at, sizeof n);
        if (pack.row[i].offset + 8 + (int64_t)n[0] + n[1] > pack.used) abort();
    }
    entry_pack_free(&pack);
    source_close(&s);
    return 0;
}

/* tud.c - fuzz target: whatever the bytes of a set's files, the reader of graphs refuses them with one sentence or
 * hands on graphs whose payloads are as long as they say and whose edges lie between their nodes. A form feed ends a
 * file; of an optional one without a byte the set has none. */
#include "tasks/data/tud_files.h"
#include "tests/fuzz/fuzz.h"

static void look(const struct entry_pack *pack, int64_t i) {
    int64_t nodes = pack->row[i].length, at = pack->row[i].offset, kinds, edges;
    int64_t end = i + 1 < entry_count(&pack->set) ? pack->row[i + 1].offset : pack->used;
    const int32_t *number = (const int32_t *)(const void *)(pack->payload + at);
    if (pack->row[i].label < 0 || pack->row[i].label >= pack->set.labels) abort();
    if (nodes < 1 || number[0] < 0 || number[0] > pack->set.width) abort();
    kinds = pack->set.width - number[0];
    edges = (end - at) / 4 - 1 - nodes * (number[0] + 1);
    if (edges < 0 || edges % 2) abort();
    number += 1 + nodes * number[0];
    for (int64_t node = 0; node < nodes; node++)
        if (number[node] < 0 || number[node] >= (kinds ? kinds : 1)) abort();
    for (number += nodes; edges > 0; edges -= 2, number += 2)
        if (number[0] < 0 || number[0] >= number[1] || number[1] >= nodes) abort();
}

FUZZ(tud) {
    struct byte_source source[TUD_FILES] = {{0}}, *file[TUD_FILES] = {NULL};
    struct entry_pack pack = {.set = {.kind = TUD_KIND}};
    struct error e = {ST_OK, ""};
    enum status status = ST_OK;
    for (int i = 0; i < TUD_FILES && status == ST_OK; i++) {
        const uint8_t *end = size ? memchr(data, '\f', size) : NULL;
        size_t n = end ? (size_t)(end - data) : size;
        if (n > 0 || i < TUD_NODE_LABELS) {
            file[i] = &source[i];
            status = source_open_memory(file[i], data, n, "SET", &e);
        }
        data += n + (end != NULL);
        size -= n + (end != NULL);
    }
    if (status == ST_OK) status = tud_read(file, &pack, &e);
    if (status != ST_OK && (status != ST_DATA || strncmp(e.text, "SET", 3) != 0)) abort();
    if (status != ST_OK) fuzz_sentence(&e);
    for (int64_t i = 0; status == ST_OK && i < entry_count(&pack.set); i++) look(&pack, i);
    entry_pack_free(&pack);
    for (int i = 0; i < TUD_FILES; i++) source_close(&source[i]);
    return 0;
}

/* record.c - fuzz target: any bytes after a run record's checksum are either refused with one sentence, or written
 * again as a text that reads back. The checksum is put right, so that the reader looks at the bytes. */
#include "harness/store/record_json.h"
#include "tests/fuzz/fuzz.h"

#define HEAD      "{\"checksum\": \"%s\",\n"
#define HEAD_ROOM 64

FUZZ(record) {
    static struct arena arena;
    static struct run_record record;
    char sum[RUN_ID_HEX];
    struct error e = {ST_OK, ""};
    char *body = fuzz_text(data, size), *text = malloc(size + HEAD_ROOM), *again = NULL;
    size_t again_size;
    record_hash(body, sum);
    if (!text || (!arena.base && arena_reserve(&arena, (size_t)64 << 20, &e) != ST_OK)) abort();
    int length = snprintf(text, size + HEAD_ROOM, HEAD "%s", sum, body);
    arena_release(&arena, 0);
    if (record_parse(text, (size_t)length, "FILE", NULL, &record, &arena, &e) != ST_OK)
        fuzz_sentence(&e);
    else if (record_format(&record, &again, &again_size, &e) == ST_OK) {
        if (record_parse(again, again_size, "FILE", NULL, NULL, NULL, &e) != ST_OK) abort();
    } else
        fuzz_sentence(&e);
    free(again);
    free(text);
    free(body);
    return 0;
}

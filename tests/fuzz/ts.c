/* ts.c - fuzz target: whatever the bytes, plain or gzip, the reader of time series refuses them with one sentence
 * or hands on cases whose payloads are as long as they say. */

#include "tasks/data/ts_files.h"
#include "tests/fuzz/fuzz.h"

FUZZ(ts) {
    struct byte_source s = {0};
    struct entry_pack pack = {.set = {.kind = TS_KIND}};
    struct error e = {ST_OK, ""};
    enum status status = source_open_memory(&s, data, size, "CASES", &e);
    if (status == ST_OK) status = ts_read(&s, SPLIT_TRAIN, &pack, &e);
    if (status != ST_OK && (status != ST_DATA || strncmp(e.text, "CASES", 5) != 0 || strchr(e.text, '\n'))) abort();
    for (int64_t i = 0; i < entry_count(&pack.set); i++) {
        if (pack.row[i].label < 0 || pack.row[i].label >= pack.set.labels) abort();
        if (pack.row[i].offset + pack.row[i].length * pack.set.width * 4 > pack.used) abort();
    }
    entry_pack_free(&pack);
    source_close(&s);
    return 0;
}

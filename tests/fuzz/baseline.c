/* baseline.c - fuzz target: any bytes after the checksum of a gate's baseline are either refused with one sentence that
 * names the line, or make a baseline that can be compared with. The checksum is put right. */
#include "harness/gate/baseline.h"
#include "harness/store/record.h"
#include "tests/fuzz/fuzz.h"

#define HEAD      "lrnn-gate-baseline 1 %s\n"
#define HEAD_ROOM 64

FUZZ(baseline) {
    static struct baseline b;
    struct error e = {ST_OK, ""};
    char sum[RUN_ID_HEX], path[32], *whole = malloc(size + HEAD_ROOM);
    if (!whole) abort();
    record_hash_bytes(data, size, sum);
    int head = snprintf(whole, HEAD_ROOM, HEAD, sum);
    if (size) memcpy(whole + head, data, size);
    int file = fuzz_file(whole, (size_t)head + size, path);
    if (baseline_read(&b, path, &e) != ST_OK) {
        if (e.status != ST_DATA || strncmp(e.text, path, strlen(path)) != 0) abort(); /* the checksum is right */
        fuzz_sentence(&e);
    } else {
        if (b.n_traces > BASELINE_TRACES || b.n_banks > BASELINE_BANKS || b.n_floors > BASELINE_FLOORS) abort();
        if (baseline_check(&b, path, true, &e) != ST_OK) fuzz_sentence(&e);
    }
    fuzz_file_end(file);
    free(whole);
    return 0;
}

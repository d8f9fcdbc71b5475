/* pack.c - fuzz target: any bytes, as a gzip file of records and as the text in one, are either refused with one
 * sentence, or split into records that cover every byte once. */
#include "harness/store/pack/record_pack.h"
#include "tests/fuzz/fuzz.h"

static void check_pack(enum status status, struct record_pack *pack, const struct error *e) {
    size_t at = 0;
    if (status != ST_OK) fuzz_sentence(e);
    for (int i = 0; status == ST_OK && i < pack->n; i++) {
        if (pack->list[i].at != at || strlen(pack->list[i].id) != RUN_ID_HEX - 1) abort();
        at += pack->list[i].size;
    }
    if (status == ST_OK && at != strlen(pack->text)) abort();
    pack_free(pack);
}

FUZZ(pack) {
    struct record_pack pack;
    struct error e = {ST_OK, ""};
    check_pack(pack_parse(&pack, "ab.gz", (const char *)data, size, &e), &pack, &e);
    pack = (struct record_pack){.path = "FILE"};
    check_pack(pack_split(&pack, fuzz_text(data, size), size, "", &e), &pack, &e);
    return 0;
}

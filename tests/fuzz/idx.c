/* idx.c - fuzz target: whatever the bytes of a pair of IDX files, the reader refuses them with one sentence or
 * hands on images with labels that are allowed. The first byte says how many of the others are the file of labels. */
#include "tasks/data/image_files.h"
#include "tests/fuzz/fuzz.h"

static enum status look(struct image_sink *sink, int label, const uint8_t *pixels, struct error *e) {
    volatile unsigned sum = 0;
    (void)e;
    if (label < 0 || label >= sink->labels || sink->most-- <= 0) abort();
    for (int64_t i = 0; i < sink->height * sink->width; i++) sum = sum + pixels[i];
    return ST_OK;
}

FUZZ(idx) {
    struct byte_source s[2] = {{0}, {0}};
    struct image_sink sink = {look, 3, 4, 1, 10, 1000};
    struct error e = {ST_OK, ""};
    char sha[SHA256_HEX];
    if (size == 0) return 0;
    size_t labels = data[0] < size ? data[0] : size - 1;
    enum status status = source_open_memory(&s[0], data + 1 + labels, size - 1 - labels, "IMAGES", &e);
    if (status == ST_OK) status = source_open_memory(&s[1], data + 1, labels, "LABELS", &e);
    if (status == ST_OK) status = idx_read(&s[0], &s[1], &sink, &e);
    for (int i = 0; i < 2 && status == ST_OK; i++) status = source_end(&s[i], sha, &e);
    if (status != ST_OK && (status != ST_DATA || !strstr(e.text, ", byte ") || strchr(e.text, '\n'))) abort();
    for (int i = 0; i < 2; i++) source_close(&s[i]);
    return 0;
}

/* image_files.c - see image_files.h. */
#include "tasks/data/image_files.h"

#include <inttypes.h>
#include <stdlib.h>

#define IDX_IMAGES 0x00000803u
#define IDX_LABELS 0x00000801u
#define CIFAR_RGB  3

/* --- IDX ---------------------------------------------------------------------------------------------------------- */

/* Reads the next number of a header; `what` names it, and it must lie in least..most. */
static enum status idx_number(struct byte_source *s, const char *what, int64_t least, int64_t most, int64_t *value,
                              struct error *e) {
    uint8_t b[4];
    int64_t at = s->bytes;
    TRY(source_take(s, b, sizeof b, what, e));
    *value = (int64_t)b[0] << 24 | (int64_t)b[1] << 16 | (int64_t)b[2] << 8 | b[3];
    if (*value >= least && *value <= most) return ST_OK;
    if (least == most)
        return fail(e, ST_DATA,
                    "%s, byte %" PRId64 ": expected %s %" PRId64 " (0x%08" PRIx64 "), found %" PRId64 " (0x%08" PRIx64
                    ")",
                    s->name, at, what, least, (uint64_t)least, *value, (uint64_t)*value);
    return fail(e, ST_DATA, "%s, byte %" PRId64 ": expected %s from %" PRId64 " to %" PRId64 ", found %" PRId64,
                s->name, at, what, least, most, *value);
}

static enum status idx_headers(struct byte_source *images, struct byte_source *labels, const struct image_sink *sink,
                               int64_t *n, struct error *e) {
    int64_t value;
    TRY(idx_number(images, "the magic number of IDX images,", IDX_IMAGES, IDX_IMAGES, &value, e));
    TRY(idx_number(images, "a number of images", 1, sink->most, n, e));
    TRY(idx_number(images, "rows:", sink->height, sink->height, &value, e));
    TRY(idx_number(images, "columns:", sink->width, sink->width, &value, e));
    TRY(idx_number(labels, "the magic number of IDX labels,", IDX_LABELS, IDX_LABELS, &value, e));
    return idx_number(labels, "as many labels as images,", *n, *n, &value, e);
}

static enum status check_label(const struct byte_source *s, int64_t at, int label, const struct image_sink *sink,
                               struct error *e) {
    if (label < sink->labels) return ST_OK;
    return fail(e, ST_DATA, "%s, byte %" PRId64 ": expected a label from 0 to %" PRId64 ", found %d", s->name, at,
                sink->labels - 1, label);
}

enum status idx_read(struct byte_source *images, struct byte_source *labels, struct image_sink *sink, struct error *e) {
    size_t size = (size_t)(sink->height * sink->width);
    int64_t n;
    TRY(idx_headers(images, labels, sink, &n, e));
    uint8_t *pixels = malloc(size), label;
    if (!pixels) return fail(e, ST_MEMORY, "%s: no memory for an image", images->name);
    enum status status = ST_OK;
    for (int64_t i = 0; i < n && status == ST_OK; i++) {
        int64_t at = labels->bytes;
        status = source_take(images, pixels, size, "an image", e);
        if (status == ST_OK) status = source_take(labels, &label, 1, "a label", e);
        if (status == ST_OK) status = check_label(labels, at, label, sink, e);
        if (status == ST_OK) status = sink->keep(sink, label, pixels, e);
    }
    free(pixels);
    return status;
}

/* --- CIFAR -------------------------------------------------------------------------------------------------------- */

enum status cifar_read(struct byte_source *s, struct image_sink *sink, struct error *e) {
    size_t plane = (size_t)(sink->height * sink->width), size = CIFAR_RGB * plane, got = 0;
    uint8_t *entry = malloc(1 + 2 * size), *pixels = entry ? entry + 1 + size : NULL;
    if (!entry) return fail(e, ST_MEMORY, "%s: no memory for an image", s->name);
    enum status status = ST_OK;
    for (int64_t n = 0; status == ST_OK; n++) {
        int64_t at = s->bytes;
        status = source_read(s, entry, 1, &got, e);
        if (status != ST_OK || got == 0) {
            if (status == ST_OK && n == 0)
                status = fail(e, ST_DATA, "%s, byte 0: expected entries of %zu bytes, found an empty file", s->name,
                              1 + size);
            break;
        }
        if (n == sink->most)
            status = fail(e, ST_DATA, "%s, byte %" PRId64 ": expected at most %" PRId64 " images, found more", s->name,
                          at, sink->most);
        if (status == ST_OK) status = check_label(s, at, entry[0], sink, e);
        if (status == ST_OK) status = source_take(s, entry + 1, size, "the pixels of an entry", e);
        for (size_t c = 0; c < CIFAR_RGB && status == ST_OK; c++)
            for (size_t i = 0; i < plane; i++) pixels[CIFAR_RGB * i + c] = entry[1 + c * plane + i];
        if (status == ST_OK) status = sink->keep(sink, entry[0], pixels, e);
    }
    free(entry);
    return status;
}

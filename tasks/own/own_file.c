/* own_file.c - see own_file.h. */
#include "tasks/own/own_file.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/label.h"
#include "tasks/own/own_pack.h"

enum status own_file_parse(void *file, const void *bytes, size_t size, const char *name, struct error *e) {
    struct own_file *f = file;
    struct own_pack p = {.name = name, .largest = -1};
    XXH128_canonical_t digest;
    if ((int64_t)size > OWN_MOST_BYTES)
        return fail(e, ST_DATA,
                    "%s has %.1f GB and is read into memory whole; the most is %.1f GB: take a part of it, or write "
                    "shorter numbers",
                    name, (double)size * 1e-9, (double)OWN_MOST_BYTES * 1e-9);
    enum status status =
        text_ends(name, ".npz") ? own_npz_read(&p, bytes, size, e) : own_jsonl_read(&p, bytes, size, e);
    if (status == ST_OK && p.n == 0) status = fail(e, ST_DATA, "%s holds no example", name);
    if (status == ST_OK && p.labels == 0) status = fail(e, ST_DATA, "%s: no target is scored in any example", name);
    if (status != ST_OK) {
        own_pack_free(&p);
        return status;
    }
    bool tokens = !p.values && p.channels == 1;
    *f = (struct own_file){.n = p.n,
                           .longest = p.longest,
                           .channels = p.channels,
                           .vocab = tokens ? (int64_t)p.largest + 1 : 0,
                           .labels = p.labels,
                           .per_sequence = p.kind == 1,
                           .example = p.example,
                           .input = p.input,
                           .target = p.target};
    XXH128_canonicalFromHash(&digest, XXH3_128bits(bytes, size));
    cache_hex(digest.digest, f->hash);
    return ST_OK;
}

void own_file_free(struct own_file *file) {
    free((void *)(uintptr_t)file->example);
    free((void *)(uintptr_t)file->input);
    free((void *)(uintptr_t)file->target);
}

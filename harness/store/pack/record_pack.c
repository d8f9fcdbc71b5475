/* record_pack.c - see record_pack.h. */
#include "harness/store/pack/record_pack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "core/file/name.h"
#include "core/label.h"
#include "harness/store/record_json.h"

#define GZIP_LEAST 18   /* bytes of the header and of the end, which are the CRC-32 and the size */
#define GZIP_RATIO 1032 /* deflate compresses to no less than one part in 1 032 */

static const char begins[] = "{\"checksum\": \"", names[] = "\n \"run_id\": \"";

/* --- reading ------------------------------------------------------------------------------------------------------ */

bool is_pack_name(const char *name) {
    return strspn(name, "0123456789abcdef") == 2 && strcmp(name + 2, ".gz") == 0;
}

/* Returns the record after `from`, which begins a line, or the end of the text. */
static const char *next_record(const char *from) {
    const char *next = from;
    while ((next = strstr(next, begins)) && next[-1] != '\n') next++;
    return next ? next : from + strlen(from);
}

enum status pack_split(struct record_pack *pack, char *text, size_t size, const char *ab, struct error *e) {
    const char *next, *path = pack->path;
    pack->text = text;
    if (!text || strlen(text) != size)
        return fail(e, ST_DATA, "%s, byte %zu: a record has no such byte: 0", path, text ? strlen(text) : 0);
    for (const char *at = text; at < text + size; at = next, pack->n++) {
        if (strncmp(at, begins, strlen(begins)) != 0)
            return fail(e, ST_DATA, "%s, byte %zu of what it unfolds to: expected a record, which begins with %s", path,
                        (size_t)(at - text), begins);
        next = next_record(at + strlen(begins));
        const char *name = strstr(at, names), *id = name ? name + strlen(names) : at;
        if (id >= next || strspn(id, "0123456789abcdef") != RUN_ID_HEX - 1 || strncmp(id, ab, strlen(ab)) != 0)
            return fail(e, ST_DATA,
                        "%s, byte %zu of what it unfolds to: expected the record of a run whose id has 32 "
                        "hexadecimal digits and begins with '%s'",
                        path, (size_t)(at - text), ab);
        struct packed *list = pack->n & (pack->n - 1) ? pack->list : NULL; /* full at each power of two: double it */
        if (!list) list = realloc(pack->list, (pack->n ? 2 * (size_t)pack->n : 1) * sizeof *list);
        if (!list) return fail(e, ST_MEMORY, "no memory for the records in %s", path);
        pack->list = list;
        pack->list[pack->n] = (struct packed){.at = (size_t)(at - text), .size = (size_t)(next - at)};
        memcpy(pack->list[pack->n].id, id, RUN_ID_HEX - 1);
    }
    return ST_OK;
}

/* Unfolds a gzip file of one member, which ends with the size of its data. */
static enum status unfold(const char *path, const char *bytes, size_t size, char **text, size_t *n, struct error *e) {
    size_t most = size < PACK_MOST_BYTES / GZIP_RATIO ? size * GZIP_RATIO : PACK_MOST_BYTES;
    if (size < GZIP_LEAST) return fail(e, ST_DATA, "%s: expected gzip data, found %zu bytes", path, size);
    const unsigned char *end = (const unsigned char *)bytes + size - 4;
    *n = end[0] | (size_t)end[1] << 8 | (size_t)end[2] << 16 | (size_t)end[3] << 24;
    if (*n > most)
        return fail(e, ST_DATA, "%s: expected that its %zu bytes unfold to at most %zu, found %zu at its end", path,
                    size, most, *n);
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)bytes, .avail_in = (unsigned)size, .avail_out = (unsigned)*n};
    *text = malloc(*n + 1);
    if (!*text || inflateInit2(&z, PACK_WINDOW) != Z_OK) {
        free(*text);
        *text = NULL;
        return fail(e, ST_MEMORY, "no memory to unfold %s", path);
    }
    z.next_out = (unsigned char *)*text;
    int end_of = inflate(&z, Z_FINISH);
    bool whole = end_of == Z_STREAM_END && z.avail_in == 0 && z.avail_out == 0;
    char why[96];
    snprintf(why, sizeof why, "%s", z.msg ? z.msg : end_of == Z_STREAM_END ? "more or less than it says" : "no end");
    inflateEnd(&z);
    (*text)[*n] = 0;
    if (whole) return ST_OK;
    free(*text);
    *text = NULL;
    return fail(e, ST_DATA, "%s: expected one whole gzip file, found what zlib calls: %s", path, why);
}

enum status pack_parse(struct record_pack *pack, const char *path, const char *bytes, size_t size, struct error *e) {
    char *text = NULL, ab[3] = "";
    size_t n = 0;
    const char *slash = strrchr(path, '/');
    *pack = (struct record_pack){0};
    TRY(path_format(pack->path, sizeof pack->path, e, "%s", path));
    TRY(unfold(path, bytes, size, &text, &n, e));
    snprintf(ab, sizeof ab, "%s", slash ? slash + 1 : path);
    return pack_split(pack, text, n, ab, e);
}

enum status pack_read(const char *path, struct record_pack *pack, struct error *e) {
    char *bytes;
    size_t size;
    *pack = (struct record_pack){0};
    if (access(path, F_OK) != 0 && errno == ENOENT) return path_format(pack->path, sizeof pack->path, e, "%s", path);
    TRY(file_read(path, PACK_MOST_BYTES, &bytes, &size, e));
    struct error why;
    enum status status = pack_parse(pack, path, bytes, size, &why);
    free(bytes);
    if (status == ST_OK) return ST_OK;
    return fail(e, status, "%s%s", why.text, status == ST_DATA ? "; restore the file, or move it away" : "");
}

void pack_free(struct record_pack *pack) {
    free(pack->text);
    free(pack->list);
    *pack = (struct record_pack){0};
}

enum status pack_path(const char *path, char pack[PATH_BYTES], struct error *e) {
    char folder[PATH_BYTES];
    path_folder(path, folder, sizeof folder);
    return path_format(pack, PATH_BYTES, e, "%s.gz", folder);
}

/* Finds the record of that path in its pack; NULL: it is not there. */
static enum status find(const char *path, struct record_pack *pack, const struct packed **found, struct error *e) {
    char of[PATH_BYTES];
    *found = NULL;
    TRY(pack_path(path, of, e));
    if (strcmp(pack->path, of) != 0) {
        pack_free(pack);
        struct error why;
        enum status status = pack_read(of, pack, &why);
        if (status != ST_OK) pack_free(pack);
        if (status != ST_OK) return fail(e, status == ST_DATA ? ST_FAIL : status, "%s", why.text);
    }
    const char *id = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    for (int i = 0; i < pack->n && !*found; i++)
        if (strncmp(id, pack->list[i].id, RUN_ID_HEX - 1) == 0 && strcmp(id + RUN_ID_HEX - 1, ".json") == 0)
            *found = &pack->list[i];
    return ST_OK;
}

enum status record_text(const char *path, struct record_pack *last, char **text, size_t *size, struct error *e) {
    struct record_pack own = {0}, *pack = last ? last : &own;
    const struct packed *found;
    struct error why;
    enum status status = file_read(path, RECORD_MOST_BYTES, text, size, &why);
    if (status != ST_DATA) return status == ST_OK ? ST_OK : fail(e, status, "%s", why.text);
    TRY(find(path, pack, &found, e));
    if (!found) {
        status = fail(e, ST_DATA, "%s", why.text);
    } else if (!(*text = malloc(found->size + 1))) {
        status = fail(e, ST_MEMORY, "no memory for %s", path);
    } else {
        memcpy(*text, pack->text + found->at, found->size);
        (*text)[ *size = found->size] = 0;
        status = ST_OK;
    }
    if (!last) pack_free(pack);
    return status;
}

bool record_is_there(const char *path) {
    struct record_pack pack = {0};
    const struct packed *found = NULL;
    bool there = access(path, F_OK) == 0 || (find(path, &pack, &found, NULL) == ST_OK && found);
    pack_free(&pack);
    return there;
}

/* --- unpacking ---------------------------------------------------------------------------------------------------- */

static enum status unpack_one(const char *out, const char *path, struct pack_count *count, struct error *e) {
    struct record_pack pack;
    char target[PATH_BYTES];
    enum status status = pack_read(path, &pack, e);
    for (int i = 0; i < pack.n && status == ST_OK; i++) {
        const struct packed *packed = &pack.list[i];
        bool is_new = false;
        record_path(out, packed->id, target, sizeof target);
        status = file_put(target, pack.text + packed->at, packed->size, &is_new, e);
        count->records += is_new;
    }
    if (status == ST_OK && pack.n > 0) {
        count->files++;
        if (unlink(path) != 0) status = fail(e, ST_FAIL, "cannot remove %s: %s", path, strerror(errno));
    }
    pack_free(&pack);
    return status;
}

enum status store_unpack(const char *out, const char *ab, struct pack_count *count, struct error *e) {
    char path[PATH_BYTES];
    struct folder_names found;
    *count = (struct pack_count){0};
    TRY(path_format(path, sizeof path, e, "%s/runs", out));
    TRY(folder_names(&found, path, e));
    enum status status = ST_OK;
    for (int i = 0; i < found.n && status == ST_OK; i++) {
        const char *name = found.list[i]->d_name;
        if (!is_pack_name(name) || (ab && strncmp(name, ab, 2) != 0)) continue;
        status = path_format(path, sizeof path, e, "%s/runs/%s", out, name);
        if (status == ST_OK) status = unpack_one(out, path, count, e);
    }
    folder_names_free(&found);
    return status;
}

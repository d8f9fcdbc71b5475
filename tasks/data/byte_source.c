/* byte_source.c - see byte_source.h. */
#include "tasks/data/byte_source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads more of the file into the window; next == end at its end. The file's size tells the end without a system call,
 * but some file systems give no size. */
static enum status refill(struct byte_source *s, struct error *e) {
    ssize_t got;
    if (s->next < s->end || s->fd < 0 || (s->size > 0 && s->file_bytes == s->size)) return ST_OK;
    do got = read(s->fd, s->window, SOURCE_WINDOW);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return fail(e, ST_DATA, "%s, byte %" PRId64 ": cannot read on: %s", s->name, s->file_bytes, strerror(errno));
    s->next = s->window;
    s->end = s->window + got;
    s->file_bytes += got;
    if (s->hashed) sha256_add(&s->sha, s->window, (size_t)got);
    return ST_OK;
}

static int64_t byte_number(const struct byte_source *s) {
    return s->file_bytes - (s->end - s->next);
}

/* Finds out from the first bytes whether the file is gzip. */
static enum status begin(struct byte_source *s, struct error *e) {
    sha256_start(&s->sha);
    if (s->fd < 0) sha256_add(&s->sha, s->next, (size_t)(s->end - s->next));
    TRY(refill(s, e));
    s->gzip = s->end - s->next >= 2 && s->next[0] == 0x1f && s->next[1] == 0x8b;
    if (s->gzip && inflateInit2(&s->z, 15 + 16) != Z_OK) {
        s->gzip = false;
        return fail(e, ST_MEMORY, "%s: no memory to decompress it", s->name);
    }
    return ST_OK;
}

static enum status open_file(struct byte_source *s, int folder, const char *file, struct error *e) {
    struct stat info;
    s->fd = openat(folder, file, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not block before it is refused */
    if (s->fd < 0) return fail(e, ST_DATA, "cannot open %s: %s", s->name, strerror(errno));
    if (fstat(s->fd, &info) != 0) return fail(e, ST_DATA, "cannot read %s: %s", s->name, strerror(errno));
    if (!S_ISREG(info.st_mode)) return fail(e, ST_DATA, "cannot read %s: it is not a regular file", s->name);
    s->size = info.st_size;
    s->window = malloc(SOURCE_WINDOW);
    if (!s->window) return fail(e, ST_MEMORY, "%s: no memory to read it", s->name);
    s->next = s->end = s->window;
    return begin(s, e);
}

enum status source_open(struct byte_source *s, const char *path, struct error *e) {
    *s = (struct byte_source){.name = path, .hashed = true};
    return open_file(s, AT_FDCWD, path, e);
}

enum status source_open_one_of_many(struct byte_source *s, int folder, const char *file, const char *path,
                                    struct error *e) {
    *s = (struct byte_source){.name = path};
    return open_file(s, folder, file, e);
}

enum status source_open_memory(struct byte_source *s, const void *bytes, size_t size, const char *name,
                               struct error *e) {
    static const uint8_t none;
    const uint8_t *at = size ? bytes : &none;
    *s = (struct byte_source){
        .name = name, .fd = -1, .next = at, .end = at + size, .file_bytes = (int64_t)size, .hashed = true};
    return begin(s, e);
}

static enum status read_plain(struct byte_source *s, uint8_t *to, size_t n, size_t *got, struct error *e) {
    for (*got = 0; *got < n;) {
        TRY(refill(s, e));
        size_t left = (size_t)(s->end - s->next), take = left < n - *got ? left : n - *got;
        if (left == 0) break;
        memcpy(to + *got, s->next, take);
        s->next += take;
        *got += take;
    }
    return ST_OK;
}

/* Begins the next member: after the end of one there is nothing, or another one. */
static enum status next_member(struct byte_source *s, struct error *e) {
    if (!s->ended || s->next == s->end) return ST_OK;
    if (*s->next != 0x1f)
        return fail(e, ST_DATA, "%s, byte %" PRId64 ": expected the end of the file after its gzip data, found more",
                    s->name, byte_number(s));
    inflateReset(&s->z);
    s->ended = false;
    return ST_OK;
}

static enum status read_gzip(struct byte_source *s, uint8_t *to, size_t n, size_t *got, struct error *e) {
    for (*got = 0; *got < n;) {
        TRY(refill(s, e));
        TRY(next_member(s, e));
        if (s->next == s->end && s->ended) return ST_OK;
        if (s->next == s->end)
            return fail(e, ST_DATA, "%s, byte %" PRId64 ": expected more gzip data, found the end of the file", s->name,
                        byte_number(s));
        size_t room = n - *got < SOURCE_WINDOW ? n - *got : SOURCE_WINDOW;
        s->z.next_in = (uint8_t *)(uintptr_t)s->next; /* zlib does not write there */
        s->z.avail_in = (unsigned)(s->end - s->next);
        s->z.next_out = to + *got;
        s->z.avail_out = (unsigned)room;
        int result = inflate(&s->z, Z_NO_FLUSH);
        s->next = s->end - s->z.avail_in;
        *got += room - s->z.avail_out;
        s->ended = result == Z_STREAM_END;
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
            return fail(e, ST_DATA, "%s, byte %" PRId64 ": expected gzip data, found what zlib calls: %s", s->name,
                        byte_number(s), s->z.msg ? s->z.msg : "an error");
    }
    return ST_OK;
}

enum status source_read(struct byte_source *s, void *to, size_t n, size_t *got, struct error *e) {
    TRY(s->gzip ? read_gzip(s, to, n, got, e) : read_plain(s, to, n, got, e));
    s->bytes += (int64_t)*got;
    return ST_OK;
}

enum status source_take(struct byte_source *s, void *to, size_t n, const char *what, struct error *e) {
    size_t got;
    int64_t at = s->bytes;
    TRY(source_read(s, to, n, &got, e));
    if (got == n) return ST_OK;
    return fail(e, ST_DATA, "%s, byte %" PRId64 "%s: expected %s of %zu bytes, found the end after %zu", s->name, at,
                s->gzip ? " of what it unfolds to" : "", what, n, got);
}

enum status source_end(struct byte_source *s, char hex[SHA256_HEX], struct error *e) {
    uint8_t more;
    size_t got;
    int64_t at = s->bytes;
    TRY(source_read(s, &more, 1, &got, e));
    if (got > 0)
        return fail(e, ST_DATA, "%s, byte %" PRId64 "%s: expected the end, found more", s->name, at,
                    s->gzip ? " of what it unfolds to" : "");
    sha256_end(&s->sha, hex);
    return ST_OK;
}

void source_close(struct byte_source *s) {
    if (s->gzip) inflateEnd(&s->z);
    if (s->fd > 0) close(s->fd);
    free(s->window);
    *s = (struct byte_source){0};
}

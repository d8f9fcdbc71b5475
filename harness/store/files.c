/* files.c - files that appear whole or not at all: written under a temporary name in their own folder, fsynced, then
 * linked or renamed into place, and the folder fsynced. */
#include "harness/store/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zlib.h>

#include "core/file/name.h"
#include "core/file/target.h"
#include "core/label.h"

#define MARK            "drawn by lrnn"
#define MARK_WITHIN     64 /* bytes from the end of a picture */
#define PNG_END         12 /* bytes of a PNG's last chunk */
#define LARGEST_PICTURE ((size_t)256 << 20)

enum status path_format(char *path, size_t size, struct error *e, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int wanted = vsnprintf(path, size, format, args);
    va_end(args);
    if (wanted < 0 || (size_t)wanted >= size)
        return fail(e, ST_FAIL, "a path is longer than %zu bytes: %.200s...", size - 1, path);
    return ST_OK;
}

/* Makes one folder and syncs its entry, or finds it there. */
static enum status make_one(const char *path, struct error *e) {
    struct stat info;
    char to[PATH_BYTES];
    if (mkdir(path, 0777) == 0) return folder_sync(path, e);
    if (errno != EEXIST) return fail(e, ST_FAIL, "cannot make the folder %s: %s", path, strerror(errno));
    if (stat(path, &info) == 0)
        return S_ISDIR(info.st_mode)
                   ? ST_OK
                   : fail(e, ST_FAIL, "cannot make the folder %s: a file of that name is there", path);
    int why = errno;
    ssize_t n = readlink(path, to, sizeof to - 1);
    if (n < 0) return fail(e, ST_FAIL, "cannot make the folder %s: %s", path, strerror(why));
    to[n] = 0;
    return fail(e, ST_FAIL, "cannot make the folder %s: it is a link to %s: %s; remove the link, or make that folder",
                path, to, strerror(why));
}

enum status make_folder(const char *path, struct error *e) {
    char partial[PATH_BYTES];
    TRY(path_format(partial, sizeof partial, e, "%s", path));
    for (char *p = partial + (*partial != 0); *p; p++) {
        if (*p != '/') continue;
        *p = 0;
        TRY(make_one(partial, e));
        *p = '/';
    }
    return make_one(partial, e);
}

static int write_all(int fd, const char *bytes, size_t size) {
    while (size > 0) {
        ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        bytes += n;
        size -= (size_t)n;
    }
    return 0;
}

enum status temporary_write(const char *path, const void *bytes, size_t size, char *temporary, struct error *e) {
    int fd = temporary_open(path, temporary, PATH_BYTES);
    if (fd < 0) return fail(e, ST_FAIL, "cannot write %s: %s", path, strerror(errno));
    int broken = write_all(fd, bytes, size) != 0 || fsync(fd) != 0;
    int reason = errno;
    if (close(fd) != 0 && !broken) {
        broken = 1;
        reason = errno;
    }
    if (!broken) return ST_OK;
    unlink(temporary);
    return fail(e, ST_FAIL, "cannot write %s: %s", path, strerror(reason));
}

time_t folder_now(const char *folder) {
    char path[PATH_BYTES], temporary[PATH_BYTES];
    struct stat s;
    if (path_format(path, sizeof path, NULL, "%s/now", folder) != ST_OK ||
        temporary_write(path, "", 0, temporary, NULL) != ST_OK)
        return time(NULL);
    bool known = stat(temporary, &s) == 0;
    unlink(temporary);
    return known ? s.st_mtime : time(NULL);
}

enum status write_file_atomic(const char *path, const void *bytes, size_t size, struct error *e) {
    char temporary[PATH_BYTES];
    TRY(file_target_check(path, e));
    TRY(temporary_write(path, bytes, size, temporary, e));
    if (rename(temporary, path) != 0) {
        int reason = errno;
        unlink(temporary);
        return fail(e, ST_FAIL, "cannot replace %s: %s", path, strerror(reason));
    }
    return folder_sync(path, e);
}

enum status file_write_check(const char *path, struct error *e) {
    char temporary[PATH_BYTES];
    struct stat there;
    TRY(file_target_check(path, e));
    if (stat(path, &there) == 0 && S_ISDIR(there.st_mode))
        return fail(e, ST_FAIL, "cannot replace %s: %s", path, strerror(EISDIR));
    TRY(temporary_write(path, "", 0, temporary, e));
    unlink(temporary);
    return ST_OK;
}

bool file_link(const char *from, const char *to) {
    struct stat a, b;
    if (link(from, to) == 0) return true;
    int reason = errno;
    bool same =
        reason == EEXIST && lstat(from, &a) == 0 && lstat(to, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
    errno = reason;
    return same;
}

enum status file_link_refused(const char *path, int reason, struct error *e) {
    bool none = reason == EPERM || reason == EOPNOTSUPP || reason == ENOSYS;
    return fail(e, ST_FAIL, "cannot make %s by a link: %s%s", path, strerror(reason),
                none ? "; results need a file system with hard links, --out names another folder" : "");
}

enum status folder_links_check(const char *folder, struct error *e) {
    char path[PATH_BYTES], first[PATH_BYTES], second[PATH_BYTES];
    TRY(path_format(path, sizeof path, e, "%s/links", folder));
    TRY(temporary_write(path, "", 0, first, e));
    enum status status = path_format(second, sizeof second, e, "%s.2.tmp", first);
    if (status == ST_OK && !file_link(first, second)) status = file_link_refused(second, errno, e);
    if (status == ST_OK) unlink(second);
    unlink(first);
    return status;
}

enum status file_put(const char *path, const void *bytes, size_t size, bool *is_new, struct error *e) {
    char folder[PATH_BYTES], temporary[PATH_BYTES];
    path_folder(path, folder, sizeof folder);
    TRY(make_folder(folder, e));
    TRY(temporary_write(path, bytes, size, temporary, e));
    *is_new = file_link(temporary, path);
    int reason = errno;
    unlink(temporary);
    if (!*is_new && reason != EEXIST) return file_link_refused(path, reason, e);
    return folder_sync(path, e);
}

bool file_move_aside(const char *path, const char *suffix, char *target) {
    bool named = false;
    errno = ENAMETOOLONG;
    for (int i = 1; i < 10000 && !named; i++) {
        int n = i == 1 ? snprintf(target, PATH_BYTES, "%s.%s", path, suffix)
                       : snprintf(target, PATH_BYTES, "%s.%s.%d", path, suffix, i);
        if (n < 0 || n >= PATH_BYTES) break;
        named = file_link(path, target);
        if (!named && errno != EEXIST) break;
    }
    if (!named) return false;
    struct error e; /* the new name must be durable before the old one is removed */
    bool kept = folder_sync(target, &e) == ST_OK;
    int reason = errno;
    unlink(kept ? path : target);
    errno = reason;
    return kept;
}

static enum status read_open_file(FILE *f, const char *path, size_t most, char **bytes, size_t *size, struct error *e) {
    struct stat info;
    if (fstat(fileno(f), &info) != 0 || !S_ISREG(info.st_mode))
        return fail(e, ST_FAIL, "cannot read %s: it is not a file", path);
    if ((size_t)info.st_size > most)
        return fail(e, ST_FAIL, "cannot read %s: it has %zu bytes, more than the limit of %zu", path,
                    (size_t)info.st_size, most);
    *bytes = malloc((size_t)info.st_size + 1);
    if (!*bytes) return fail(e, ST_MEMORY, "cannot read %s: no memory for %zu bytes", path, (size_t)info.st_size);
    *size = fread(*bytes, 1, (size_t)info.st_size, f);
    (*bytes)[*size] = 0;
    if (!ferror(f)) return ST_OK;
    free(*bytes);
    *bytes = NULL;
    return fail(e, ST_FAIL, "cannot read %s: %s", path, strerror(errno));
}

FILE *file_open(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    if (fd >= 0 && !f) close(fd);
    return f;
}

enum status file_read(const char *path, size_t most, char **bytes, size_t *size, struct error *e) {
    *bytes = NULL;
    *size = 0;
    FILE *f = file_open(path);
    if (!f) return fail(e, errno == ENOENT ? ST_DATA : ST_FAIL, "cannot read %s: %s", path, strerror(errno));
    enum status status = read_open_file(f, path, most, bytes, size, e);
    fclose(f);
    return status;
}

enum status file_read_hashed(const char *path, size_t most, char **bytes, size_t *size, char hex[HASH_HEX],
                             struct error *e) {
    TRY(file_read(path, most, bytes, size, e));
    XXH128_hash_t hash = XXH3_128bits(*bytes, *size);
    snprintf(hex, HASH_HEX, "%016llx%016llx", (unsigned long long)hash.high64, (unsigned long long)hash.low64);
    return ST_OK;
}

void file_find_unnamed(char path[PATH_BYTES], const char *hash, size_t most) {
    char folder[PATH_BYTES], other[PATH_BYTES], found[HASH_HEX], *bytes;
    struct folder_names names;
    size_t size;
    if (access(path, F_OK) == 0) return;
    path_folder(path, folder, sizeof folder);
    const char *name = path + strlen(folder) + 1;
    bool is_found = false;
    if (folder_names(&names, folder, NULL) != ST_OK) return;
    for (int i = 0; i < names.n && !is_found; i++) {
        const char *entry = names.list[i]->d_name;
        if (strncmp(entry, name, strlen(name)) != 0 || !text_ends(entry, ".tmp")) continue;
        if (path_format(other, sizeof other, NULL, "%s/%s", folder, entry) != ST_OK) continue;
        if (file_read_hashed(other, most, &bytes, &size, found, NULL) != ST_OK) continue;
        free(bytes);
        is_found = strcmp(found, hash) == 0;
    }
    if (is_found) memcpy(path, other, PATH_BYTES);
    folder_names_free(&names);
}

enum status printed_begin(struct printed *p, const char *path, struct error *e) {
    *p = (struct printed){0};
    p->f = open_memstream(&p->text, &p->size);
    return p->f ? ST_OK : fail(e, ST_MEMORY, "no memory to write %s", path);
}

enum status printed_end(struct printed *p, enum status status, const char *path, struct error *e) {
    bool whole = p->f && !ferror(p->f);
    if (p->f) whole = fclose(p->f) == 0 && whole && p->text; /* glibc's fclose does not say that there is no text */
    p->f = NULL;
    if (status == ST_OK && !whole) status = fail(e, ST_MEMORY, "no memory to write %s", path);
    if (status == ST_OK) return ST_OK;
    free(p->text);
    *p = (struct printed){0};
    return status;
}

enum status printed_write(struct printed *p, enum status status, const char *path, struct error *e) {
    TRY(printed_end(p, status, path, e));
    status = write_file_atomic(path, p->text, p->size, e);
    free(p->text);
    *p = (struct printed){0};
    return status;
}

static int is_no_dot(const struct dirent *entry) {
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

enum status folder_names(struct folder_names *names, const char *folder, struct error *e) {
    names->list = NULL;
    names->n = scandir(folder, &names->list, is_no_dot, by_bytes);
    if (names->n >= 0) return ST_OK;
    names->n = 0;
    if (errno == ENOENT) return ST_OK;
    if (errno == ENOMEM) return fail(e, ST_MEMORY, "no memory to list %s", folder);
    return fail(e, ST_DATA, "cannot read the folder %s: %s", folder, strerror(errno));
}

void folder_names_free(struct folder_names *names) {
    for (int i = 0; i < names->n; i++) free(names->list[i]);
    free(names->list);
    *names = (struct folder_names){0};
}

enum status own_program(char path[PATH_BYTES], struct error *e) {
    ssize_t n = readlink("/proc/self/exe", path, PATH_BYTES - 1);
    path[n > 0 ? n : 0] = 0;
    return n > 0 ? ST_OK : fail(e, ST_FAIL, "/proc/self/exe, the path of this program, cannot be read");
}

enum status shipped_file_find(const char *name, char *path, size_t size, struct error *e) {
    char binary[PATH_BYTES] = "", folder[PATH_BYTES];
    (void)own_program(binary, NULL);
    path_folder(binary, folder, sizeof folder);
    const char *const places[][2] = {{".", ""}, {folder, ""}, {folder, "/../share/lrnn"}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        TRY(path_format(path, size, e, "%s%s/%s", places[i][0], places[i][1], name));
        if (access(path, R_OK) == 0) return ST_OK;
    }
    return fail(e, ST_DATA, "cannot find %s in the working folder, in %s or in %s/../share/lrnn", name, folder, folder);
}

/* --- files of ours ------------------------------------------------------------------------------------------------ */

/* Whether the file begins like one of our tables. A full disk or a killed writer may have left only a part of that. */
static bool begins_as_table(FILE *f) {
    static const char *const firsts[] = {"schema,", "machine_id,"};
    char text[16];
    size_t n = fread(text, 1, sizeof text, f);
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts && !ferror(f); i++) {
        size_t length = strlen(firsts[i]);
        if (memcmp(text, firsts[i], n < length ? n : length) == 0) return true;
    }
    return false;
}

static bool is_marked(FILE *f) {
    char text[MARK_WITHIN];
    if (fseek(f, -(long)sizeof text, SEEK_END) != 0) rewind(f); /* the file is shorter */
    size_t n = fread(text, 1, sizeof text, f), length = strlen(MARK);
    for (size_t i = 0; i + length <= n; i++)
        if (memcmp(text + i, MARK, length) == 0) return true;
    return false;
}

enum status own_file_check(const char *path, struct error *e) {
    FILE *f = file_open(path);
    if (!f && errno == ENOENT) return ST_OK;
    if (!f) return fail(e, ST_USAGE, "cannot read %s: %s", path, strerror(errno));
    bool ours = f && (text_ends(path, ".csv") ? begins_as_table(f) : is_marked(f));
    if (f) fclose(f);
    if (ours) return ST_OK;
    return fail(e, ST_USAGE, "%s is there and was not written by lrnn; move it away, or choose another folder", path);
}

static void put_u32(unsigned char *at, uint32_t value) {
    for (int i = 0; i < 4; i++) at[i] = (unsigned char)(value >> (24 - 8 * i));
}

/* Makes a tEXt chunk: length of the data, type, "Software" 0 mark, CRC-32 of type and data (PNG 1.2, 3.2 and 4.2.3). */
static size_t png_chunk(unsigned char chunk[MARK_WITHIN]) {
    static const char data[] = "Software\0" MARK;
    const size_t n = sizeof data - 1;
    put_u32(chunk, (uint32_t)n);
    memcpy(chunk + 4, "tEXt", 4); /* NOLINT(bugprone-not-null-terminated-result): a chunk's type ends without a 0 */
    memcpy(chunk + 8, data, n);
    put_u32(chunk + 8 + n, (uint32_t)crc32(0, chunk + 4, (unsigned)(4 + n)));
    return 12 + n;
}

enum status own_file_mark(const char *drawn, const char *path, struct error *e) {
    unsigned char mark[MARK_WITHIN];
    char *bytes;
    size_t size, after = 0, n;
    struct error why; /* it would name the inner file */
    enum status drew = file_read(drawn, LARGEST_PICTURE, &bytes, &size, &why);
    if (drew != ST_OK) return fail(e, drew, "cannot write %s: what gnuplot drew cannot be read", path);
    if (text_ends(path, ".png")) {
        n = png_chunk(mark);
        after = size < PNG_END ? size : PNG_END;
    } else {
        const char *text = text_ends(path, ".svg") ? "<!-- " MARK " -->\n" : "% " MARK "\n";
        n = strlen(text);
        memcpy(mark, text, n);
    }
    char *marked = malloc(size + n);
    if (!marked) {
        free(bytes);
        return fail(e, ST_MEMORY, "no memory to plot");
    }
    memcpy(marked, bytes, size - after);
    memcpy(marked + size - after, mark, n);
    memcpy(marked + size - after + n, bytes + size - after, after);
    enum status status = write_file_atomic(path, marked, size + n, e);
    free(marked);
    free(bytes);
    return status;
}

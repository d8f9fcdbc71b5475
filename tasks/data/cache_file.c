/* cache_file.c - see cache_file.h. */
#include "tasks/data/cache_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file/name.h"

enum status cache_path(const char *name, const char *suffix, char path[CACHE_PATH], struct error *e) {
    static const struct {
        const char *variable, *below;
    } places[] = {{"LRNN_CACHE", ""}, {"XDG_CACHE_HOME", "/lrnn"}, {"HOME", "/.cache/lrnn"}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *folder = getenv(places[i].variable);
        if (!folder || !*folder) continue;
        int n = snprintf(path, CACHE_PATH, "%s%s/%s.%s", folder, places[i].below, name, suffix);
        if (n > 0 && n < CACHE_PATH) return ST_OK;
        return fail(e, ST_USAGE, "$%s is longer than a path may be", places[i].variable);
    }
    return fail(e, ST_USAGE, "no cache folder: none of $LRNN_CACHE, $XDG_CACHE_HOME and $HOME is set");
}

static enum status make_folders(const char *path, struct error *e) {
    char folder[CACHE_PATH];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *at = strchr(folder + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = 0;
        if (mkdir(folder, 0777) != 0 && errno != EEXIST)
            return fail(e, ST_FAIL, "cannot make the folder %s: %s", folder, strerror(errno));
        *at = '/';
    }
    return ST_OK;
}

void cache_hex(const uint8_t digest[16], char hex[CACHE_HASH]) {
    for (int i = 0; i < 16; i++) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

/* A file in memory, shared by all runs of the process. Device, inode and time at mapping tell whether the file has
 * changed since. */
struct mapping {
    dev_t device;
    ino_t inode;
    struct timespec changed;
    cache_parse *parse;
    _Alignas(16) unsigned char set[CACHE_SET];
};
static struct mapping mappings[CACHE_FILES];
static int n_mappings;
static pthread_mutex_t mapping_lock = PTHREAD_MUTEX_INITIALIZER;

static const struct mapping *find_mapping(const struct stat *info, cache_parse *parse) {
    for (int i = 0; i < n_mappings; i++) {
        const struct mapping *m = &mappings[i];
        if (m->device == info->st_dev && m->inode == info->st_ino && m->changed.tv_sec == info->st_mtim.tv_sec &&
            m->changed.tv_nsec == info->st_mtim.tv_nsec && m->parse == parse)
            return m;
    }
    return NULL;
}

static enum status map_file(int fd, const struct stat *info, const char *path, cache_parse *parse, struct error *e) {
    size_t size = (size_t)info->st_size;
    struct mapping *m = &mappings[n_mappings];
    if (n_mappings == CACHE_FILES)
        return fail(e, ST_FAIL, "%s: a process reads at most %d files of data", path, CACHE_FILES);
    void *bytes = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    if (bytes == MAP_FAILED) return fail(e, ST_MEMORY, "cannot map %s: %s", path, strerror(errno));
    *m = (struct mapping){info->st_dev, info->st_ino, info->st_mtim, parse, {0}};
    enum status status = parse(m->set, bytes, size, path, e);
    if (status == ST_OK)
        n_mappings++;
    else if (bytes)
        munmap(bytes, size);
    return status;
}

enum status cache_open(const char *path, cache_parse *parse, void *set, size_t set_bytes, struct error *e) {
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return fail(e, ST_DATA, "cannot open %s: %s", path, strerror(errno));
    enum status status = ST_OK;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        status = fail(e, ST_DATA, "cannot read %s: it is not a regular file", path);
    pthread_mutex_lock(&mapping_lock);
    const struct mapping *known = status == ST_OK ? find_mapping(&info, parse) : NULL;
    if (status == ST_OK && !known) {
        status = map_file(fd, &info, path, parse, e);
        if (status == ST_OK) known = &mappings[n_mappings - 1];
    }
    if (status == ST_OK) memcpy(set, known->set, set_bytes);
    pthread_mutex_unlock(&mapping_lock);
    close(fd);
    return status;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

enum status cache_cannot_write(const struct cache_writing *w, struct error *e) {
    return fail(e, ST_FAIL, "cannot write %s: %s", w->path, strerror(errno));
}

enum status cache_heed(int (*stop)(void), struct error *e) {
    int signal = stop ? stop() : 0;
    return signal ? fail(e, (enum status)(128 + signal), "stopped before all was imported; nothing was") : ST_OK;
}

enum status cache_begin(struct cache_writing *w, const char *path, struct error *e) {
    *w = (struct cache_writing){.file = NULL};
    snprintf(w->path, sizeof w->path, "%s", path);
    TRY(make_folders(path, e));
    int fd = temporary_open(path, w->temporary, sizeof w->temporary);
    if (fd < 0) return cache_cannot_write(w, e);
    w->file = fdopen(fd, "wb");
    if (w->file) return ST_OK;
    enum status status = cache_cannot_write(w, e);
    close(fd);
    unlink(w->temporary);
    return status;
}

enum status cache_end(struct cache_writing *w, struct error *e) {
    bool whole = fflush(w->file) == 0 && fsync(fileno(w->file)) == 0 && rename(w->temporary, w->path) == 0;
    if (!whole) return cache_cannot_write(w, e);
    fclose(w->file);
    w->file = NULL;
    return folder_sync(w->path, e);
}

void cache_drop(struct cache_writing *w) {
    if (!w->file) return;
    fclose(w->file);
    unlink(w->temporary);
    w->file = NULL;
}

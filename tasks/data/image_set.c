/* image_set.c - see image_set.h. */
#include "tasks/data/image_set.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZES      8 /* where they begin in the header; then the hash; then the pixels */
#define HASH       40
#define HEADER     56
#define HASH_BYTES 16
#define MAPPINGS   16 /* files that a process reads */

/* --- places ------------------------------------------------------------------------------------------------------- */

enum status image_set_path(const char *name, char path[IMAGE_SET_PATH], struct error *e) {
    static const struct {
        const char *variable, *below;
    } places[] = {{"LRNN_CACHE", ""}, {"XDG_CACHE_HOME", "/lrnn"}, {"HOME", "/.cache/lrnn"}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *folder = getenv(places[i].variable);
        if (!folder || !*folder) continue;
        int n = snprintf(path, IMAGE_SET_PATH, "%s%s/%s.images", folder, places[i].below, name);
        if (n > 0 && n < IMAGE_SET_PATH) return ST_OK;
        return fail(e, ST_USAGE, "$%s is longer than a path may be", places[i].variable);
    }
    return fail(e, ST_USAGE, "no cache folder: none of $LRNN_CACHE, $XDG_CACHE_HOME and $HOME is set");
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static int64_t number(const uint8_t *at) {
    return (int64_t)at[0] | (int64_t)at[1] << 8 | (int64_t)at[2] << 16 | (int64_t)at[3] << 24;
}

static void hex_of(const uint8_t digest[HASH_BYTES], char hex[IMAGE_SET_HASH]) {
    for (int i = 0; i < HASH_BYTES; i++) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

static enum status check_sizes(const struct image_set *s, const char *name, struct error *e) {
    const struct {
        const char *what;
        int64_t value, least, most;
    } sizes[] = {{"rows", s->height, 1, IMAGE_SET_SIDE},
                 {"columns", s->width, 1, IMAGE_SET_SIDE},
                 {"channels", s->channels, 1, 3},
                 {"labels", s->labels, 1, IMAGE_SET_LABELS},
                 {"training images", s->n_train, 1, IMAGE_SET_MOST},
                 {"test images", s->n_test, 0, IMAGE_SET_MOST}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value < sizes[i].least || sizes[i].value > sizes[i].most)
            return fail(e, ST_DATA, "%s, byte %zu: expected %" PRId64 "..%" PRId64 " %s, found %" PRId64, name,
                        8 + 4 * i, sizes[i].least, sizes[i].most, sizes[i].what, sizes[i].value);
    return ST_OK;
}

/* Header and size of the file; not what it holds. */
static enum status parse_header(struct image_set *s, const uint8_t *bytes, size_t size, const char *name,
                                struct error *e) {
    if (size < HEADER || memcmp(bytes, "LRNNIMG1", 8) != 0)
        return fail(e, ST_DATA,
                    "%s: expected images as `lrnn data import` stores them, found another file of %zu bytes", name,
                    size);
    *s = (struct image_set){.height = number(bytes + 8),
                            .width = number(bytes + 12),
                            .channels = number(bytes + 16),
                            .labels = number(bytes + 20),
                            .n_train = number(bytes + 24),
                            .n_test = number(bytes + 28)};
    TRY(check_sizes(s, name, e));
    size_t pixels = (size_t)(s->height * s->width * s->channels), n = (size_t)(s->n_train + s->n_test);
    if (size != HEADER + n * (pixels + 1))
        return fail(e, ST_DATA, "%s: expected %zu bytes of %zu images, found %zu", name, HEADER + n * (pixels + 1), n,
                    size);
    s->pixels = bytes + HEADER;
    s->label = s->pixels + n * pixels;
    hex_of(bytes + HASH, s->hash);
    return ST_OK;
}

/* Over what is in the state, and the sizes of the header. */
static void end_hash(XXH3_state_t *state, const uint8_t *header, uint8_t digest[HASH_BYTES]) {
    XXH128_canonical_t hash;
    XXH3_128bits_update(state, header + SIZES, HASH - SIZES);
    XXH128_canonicalFromHash(&hash, XXH3_128bits_digest(state));
    memcpy(digest, hash.digest, HASH_BYTES);
}

enum status image_set_parse(struct image_set *set, const void *bytes, size_t size, const char *name, struct error *e) {
    uint8_t digest[HASH_BYTES];
    char hex[IMAGE_SET_HASH];
    TRY(parse_header(set, bytes, size, name, e));
    XXH3_state_t *state = XXH3_createState();
    if (!state) return fail(e, ST_MEMORY, "%s: no memory to read it", name);
    XXH3_128bits_reset(state);
    XXH3_128bits_update(state, set->pixels, size - HEADER);
    end_hash(state, bytes, digest);
    hex_of(digest, hex);
    XXH3_freeState(state);
    if (strcmp(hex, set->hash) != 0)
        return fail(e, ST_DATA,
                    "%s: expected images whose XXH3-128 is %s, found %s: the file is damaged, import it again", name,
                    set->hash, hex);
    for (int64_t i = 0; i < set->n_train + set->n_test; i++)
        if (set->label[i] >= set->labels)
            return fail(e, ST_DATA, "%s: expected labels below %" PRId64 ", found %d of image %" PRId64, name,
                        set->labels, set->label[i], i);
    return ST_OK;
}

/* A file in memory, shared by all runs of the process; what it was when it was mapped tells whether it is still that.
 * */
struct mapping {
    dev_t device;
    ino_t inode;
    struct timespec changed;
    struct image_set set;
};
static struct mapping mappings[MAPPINGS];
static int n_mappings;
static pthread_mutex_t mapping_lock = PTHREAD_MUTEX_INITIALIZER;

static const struct mapping *find_mapping(const struct stat *info) {
    for (int i = 0; i < n_mappings; i++) {
        const struct mapping *m = &mappings[i];
        if (m->device == info->st_dev && m->inode == info->st_ino && m->changed.tv_sec == info->st_mtim.tv_sec &&
            m->changed.tv_nsec == info->st_mtim.tv_nsec)
            return m;
    }
    return NULL;
}

static enum status map_file(struct image_set *set, int fd, const struct stat *info, const char *path, struct error *e) {
    size_t size = (size_t)info->st_size;
    if (n_mappings == MAPPINGS)
        return fail(e, ST_FAIL, "%s: a process reads at most %d sets of images", path, MAPPINGS);
    void *bytes = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    if (bytes == MAP_FAILED) return fail(e, ST_MEMORY, "cannot map %s: %s", path, strerror(errno));
    enum status status = image_set_parse(set, bytes, size, path, e);
    if (status != ST_OK) {
        if (bytes) munmap(bytes, size);
        return status;
    }
    mappings[n_mappings++] = (struct mapping){info->st_dev, info->st_ino, info->st_mtim, *set};
    return ST_OK;
}

enum status image_set_open(struct image_set *set, const char *path, struct error *e) {
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return fail(e, ST_DATA, "cannot open %s: %s", path, strerror(errno));
    enum status status = ST_OK;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        status = fail(e, ST_DATA, "cannot read %s: it is not a regular file", path);
    pthread_mutex_lock(&mapping_lock);
    const struct mapping *known = status == ST_OK ? find_mapping(&info) : NULL;
    if (known)
        *set = known->set;
    else if (status == ST_OK)
        status = map_file(set, fd, &info, path, e);
    pthread_mutex_unlock(&mapping_lock);
    close(fd);
    return status;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static enum status cannot_write(const struct image_pack *p, struct error *e) {
    return fail(e, ST_FAIL, "cannot write %s: %s", p->temporary, strerror(errno));
}

/* Makes the folders above a file. */
static enum status make_folders(const char *path, struct error *e) {
    char folder[IMAGE_SET_PATH];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *at = strchr(folder + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = 0;
        if (mkdir(folder, 0777) != 0 && errno != EEXIST)
            return fail(e, ST_FAIL, "cannot make the folder %s: %s", folder, strerror(errno));
        *at = '/';
    }
    return ST_OK;
}

enum status image_pack_begin(struct image_pack *p, const char *path, struct error *e) {
    static const uint8_t header[HEADER];
    struct image_set set = p->set;
    *p = (struct image_pack){.set = set};
    TRY(make_folders(path, e));
    snprintf(p->path, sizeof p->path, "%s", path);
    snprintf(p->temporary, sizeof p->temporary, "%s.%ld", path, (long)getpid());
    p->state = XXH3_createState();
    if (!p->state) return fail(e, ST_MEMORY, "no memory to import %s", path);
    XXH3_128bits_reset(p->state);
    p->file = fopen(p->temporary, "wbe");
    if (!p->file || fwrite(header, 1, HEADER, p->file) != HEADER) return cannot_write(p, e);
    return ST_OK;
}

enum status image_pack_add(struct image_pack *p, bool test, int label, const uint8_t *pixels, struct error *e) {
    struct image_set *s = &p->set;
    size_t size = (size_t)(s->height * s->width * s->channels);
    int64_t n = s->n_train + s->n_test;
    if (n == p->capacity) {
        int64_t capacity = p->capacity ? 2 * p->capacity : 4096;
        uint8_t *more = realloc(p->label, (size_t)capacity);
        if (!more) return fail(e, ST_MEMORY, "no memory for %" PRId64 " labels", capacity);
        p->label = more;
        p->capacity = capacity;
    }
    p->label[n] = (uint8_t)label;
    *(test ? &s->n_test : &s->n_train) += 1;
    XXH3_128bits_update(p->state, pixels, size);
    return fwrite(pixels, 1, size, p->file) == size ? ST_OK : cannot_write(p, e);
}

static void put_number(uint8_t *at, int64_t value) {
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> 8 * i);
}

enum status image_pack_end(struct image_pack *p, struct error *e) {
    struct image_set *s = &p->set;
    uint8_t header[HEADER] = "LRNNIMG1";
    size_t n = (size_t)(s->n_train + s->n_test);
    const int64_t sizes[] = {s->height, s->width, s->channels, s->labels, s->n_train, s->n_test};
    TRY(check_sizes(s, p->path, e));
    for (int i = 0; i < 6; i++) put_number(header + 8 + 4 * i, sizes[i]);
    XXH3_128bits_update(p->state, p->label, n);
    end_hash(p->state, header, header + HASH);
    hex_of(header + HASH, s->hash);
    bool written = fwrite(p->label, 1, n, p->file) == n && fseek(p->file, 0, SEEK_SET) == 0 &&
                   fwrite(header, 1, HEADER, p->file) == HEADER && fflush(p->file) == 0 && fsync(fileno(p->file)) == 0;
    if (!written || rename(p->temporary, p->path) != 0) return cannot_write(p, e);
    fclose(p->file);
    p->file = NULL;
    image_pack_drop(p);
    return ST_OK;
}

void image_pack_drop(struct image_pack *p) {
    if (p->file) {
        fclose(p->file);
        unlink(p->temporary);
    }
    XXH3_freeState(p->state);
    free(p->label);
    p->file = NULL;
    p->state = NULL;
    p->label = NULL;
}

/* safetensors.c - reads and writes tensor exchange files; see safetensors.h.
 *
 *   bytes 0..7          n, length of the header, little-endian
 *   bytes 8..8+n        JSON: {"name": {"dtype": "F64", "shape": [3,4], "data_offsets": [0,96]}, ...,
 *                       "__metadata__": {"key": "value", ...}}
 *   bytes 8+n..         the data section; offsets count from its start, and the tensors cover it without gap or
 *                       overlap */
#include "core/file/safetensors.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <jansson.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file/name.h"
#include "core/file/target.h"

#define PREFIX_BYTES 8
#define MAX_DEPTH    3       /* {"name": {"shape": [...]}} */
#define MAX_VALUES   1000000 /* most JSON values in a header; the JSON parser then allocates at most about 200 MB */
#define METADATA     "__metadata__"

/* A file in memory; its name and *e for messages. */
struct image {
    const char *file;
    const char *header;
    size_t header_bytes;
    const unsigned char *data;
    size_t data_bytes;
    int entry; /* number, from 0, of the key whose value is being read */
    struct error *e;
};

void st_shape_text(int rank, const int64_t *dims, char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "(");
    for (int i = 0; i < rank && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%" PRId64, i ? "," : "", dims[i]);
    if (used < size) snprintf(text + used, size - used, ")");
}

static size_t width_of(const struct st_tensor *t) {
    return t->half ? 2 : t->f64 ? sizeof(double) : sizeof(float);
}

/* Computes the bytes of a tensor, and its number of elements t->count. False if either overflows. */
static bool measure(struct st_tensor *t, int64_t *bytes) {
    t->count = 1;
    for (int i = 0; i < t->rank; i++)
        if (__builtin_mul_overflow(t->count, t->dims[i], &t->count)) return false;
    return !__builtin_mul_overflow(t->count, (int64_t)width_of(t), bytes);
}

/* --- reading ---------------------------------------------------------------------------------------------------- */

/* Refuses a header that is too deep or has too many values, before the JSON parser allocates memory for them. Sets
 * *values to at least the number of values. */
static enum status scan_header(const struct image *im, size_t *values) {
    int depth = 0;
    bool in_string = false;
    *values = 1;
    for (size_t i = 0; i < im->header_bytes; i++) {
        char c = im->header[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
            continue;
        }
        if (c == '"') in_string = true;
        if (c == '{' || c == '[') depth++;
        if (c == '}' || c == ']') depth--;
        if (c == '{' || c == '[' || c == ',') ++*values;
        if (depth > MAX_DEPTH)
            return fail(im->e, ST_DATA, "%s: the header nests deeper than %d at offset %zu", im->file, MAX_DEPTH,
                        PREFIX_BYTES + i);
        if (*values > MAX_VALUES)
            return fail(im->e, ST_DATA, "%s: the header holds more than %d values (offset %zu)", im->file, MAX_VALUES,
                        PREFIX_BYTES + i);
    }
    return ST_OK;
}

/* Returns the offset in the file of key number n of the outermost object. The header must be valid JSON. */
static size_t key_offset(const struct image *im, int n) {
    int depth = 0;
    bool in_string = false, key_next = false;
    for (size_t i = 0; i < im->header_bytes; i++) {
        char c = im->header[i];
        if (in_string) {
            if (c == '\\') i++;
            if (c == '"') in_string = false;
            continue;
        }
        if (c == '"' && key_next && n-- == 0) return PREFIX_BYTES + i;
        in_string = c == '"';
        if (c == '{' || c == '[') depth++;
        if (c == '}' || c == ']') depth--;
        key_next = depth == 1 && (c == '{' || c == ',' || (key_next && c != '"'));
    }
    return PREFIX_BYTES;
}

/* Fails with "FILE: offset N: what is wrong", where N is the offset of the entry that is being read. */
static enum status bad_entry(const struct image *im, const char *format, ...) __attribute__((format(printf, 2, 3)));
static enum status bad_entry(const struct image *im, const char *format, ...) {
    char what[sizeof im->e->text / 2];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return fail(im->e, ST_DATA, "%s: offset %zu: %s", im->file, key_offset(im, im->entry), what);
}

static enum status parse_dtype(struct st_tensor *t, const json_t *dtype, const struct image *im) {
    if (!json_is_string(dtype))
        return bad_entry(im, "tensor \"%.99s\" has no dtype; expected F16, BF16, F32 or F64", t->name);
    const char *text = json_string_value(dtype);
    t->f64 = strcmp(text, "F64") == 0;
    t->half = strcmp(text, "F16") == 0 ? ST_F16 : strcmp(text, "BF16") == 0 ? ST_BF16 : ST_NO_HALF;
    if (!t->f64 && !t->half && strcmp(text, "F32") != 0)
        return bad_entry(im, "tensor \"%.99s\" has dtype \"%.99s\"; expected F16, BF16, F32 or F64", t->name, text);
    return ST_OK;
}

static enum status parse_shape(struct st_tensor *t, const json_t *shape, const struct image *im) {
    if (!json_is_array(shape))
        return bad_entry(im, "tensor \"%.99s\" has no shape; expected an array of sizes", t->name);
    if (json_array_size(shape) > TENSOR_MAX_RANK)
        return bad_entry(im, "tensor \"%.99s\" has rank %zu; at most %d is supported", t->name, json_array_size(shape),
                         TENSOR_MAX_RANK);
    t->rank = (int)json_array_size(shape);
    for (int i = 0; i < t->rank; i++) {
        const json_t *dim = json_array_get(shape, (size_t)i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return bad_entry(im, "size %d of tensor \"%.99s\" is not a whole number of at least 0", i, t->name);
        t->dims[i] = json_integer_value(dim);
    }
    return ST_OK;
}

/* Sets t->bytes. dtype and shape must be known. */
static enum status parse_offsets(struct st_tensor *t, const json_t *offsets, const struct image *im) {
    const json_t *first = json_array_get(offsets, 0), *last = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(first) || !json_is_integer(last))
        return bad_entry(im, "tensor \"%.99s\" has no data_offsets; expected two whole numbers", t->name);
    int64_t begin = json_integer_value(first), end = json_integer_value(last), bytes;
    if (begin < 0 || end < begin || (uint64_t)end > im->data_bytes)
        return bad_entry(
            im, "tensor \"%.99s\" has data_offsets %" PRId64 " to %" PRId64 ", outside the %zu data bytes of the file",
            t->name, begin, end, im->data_bytes);
    if (!measure(t, &bytes)) return bad_entry(im, "the shape of tensor \"%.99s\" overflows 64 bits", t->name);
    if (bytes != end - begin)
        return bad_entry(
            im, "tensor \"%.99s\" has %" PRId64 " bytes at data offset %" PRId64 "; its shape and dtype need %" PRId64,
            t->name, end - begin, begin, bytes);
    t->bytes = im->data + begin;
    return ST_OK;
}

static enum status parse_tensor(struct st_tensor *t, json_t *entry, const struct image *im) {
    if (!json_is_object(entry)) return bad_entry(im, "the entry of tensor \"%.99s\" is not an object", t->name);
    const char *key;
    json_t *value;
    json_object_foreach(entry, key, value) {
        bool known = !strcmp(key, "dtype") || !strcmp(key, "shape") || !strcmp(key, "data_offsets");
        if (!known)
            return bad_entry(im, "tensor \"%.99s\" has the unknown key \"%.99s\"; expected dtype, shape, data_offsets",
                             t->name, key);
    }
    TRY(parse_dtype(t, json_object_get(entry, "dtype"), im));
    TRY(parse_shape(t, json_object_get(entry, "shape"), im));
    return parse_offsets(t, json_object_get(entry, "data_offsets"), im);
}

static enum status parse_metadata(struct safetensors *st, json_t *object, const struct image *im) {
    if (!json_is_object(object)) return bad_entry(im, METADATA " is not an object");
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        if (!json_is_string(value)) return bad_entry(im, "metadata \"%.99s\" is not a string", key);
        struct st_pair *pair = &st->metadata[st->n_metadata++];
        pair->key = arena_strdup(&st->arena, key);
        pair->value = arena_strdup(&st->arena, json_string_value(value));
    }
    return ST_OK;
}

/* Orders tensors by their offset in the file. An empty tensor comes before another tensor at the same offset. */
static int by_place(const void *left, const void *right) {
    const struct st_tensor *a = left, *b = right;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? -1 : 1;
    return (a->count > 0) - (b->count > 0);
}

/* Fails unless the sorted tensors cover the data section exactly. */
static enum status check_cover(const struct safetensors *st, const struct image *im) {
    size_t covered = 0;
    for (int i = 0; i < st->n; i++) {
        const struct st_tensor *t = &st->tensors[i];
        size_t begin = (size_t)(t->bytes - im->data);
        if (begin < covered)
            return fail(im->e, ST_DATA,
                        "%s: tensor \"%.99s\" at data offset %zu overlaps tensor \"%.99s\", which ends at %zu",
                        im->file, t->name, begin, st->tensors[i - 1].name, covered);
        if (begin > covered)
            return fail(im->e, ST_DATA, "%s: data offsets %zu to %zu before tensor \"%.99s\" belong to no tensor",
                        im->file, covered, begin, t->name);
        covered = begin + (size_t)t->count * width_of(t);
    }
    if (covered != im->data_bytes)
        return fail(im->e, ST_DATA, "%s: the last %zu of %zu data bytes belong to no tensor", im->file,
                    im->data_bytes - covered, im->data_bytes);
    return ST_OK;
}

static enum status parse_entries(struct safetensors *st, json_t *root, struct image *im) {
    const char *key;
    json_t *value;
    im->entry = -1;
    json_object_foreach(root, key, value) {
        im->entry++; /* jansson returns entries in the order of the text */
        if (strcmp(key, METADATA) == 0) {
            TRY(parse_metadata(st, value, im));
            continue;
        }
        struct st_tensor *t = &st->tensors[st->n++];
        t->name = arena_strdup(&st->arena, key);
        TRY(parse_tensor(t, value, im));
    }
    if (st->n > 1) qsort(st->tensors, (size_t)st->n, sizeof *st->tensors, by_place);
    return check_cover(st, im);
}

/* Moves the image into the arena together with room for the index, then fills the index. */
static enum status index_image(struct safetensors *st, json_t *root, struct image *im) {
    size_t n_tensors = json_object_size(root), n_pairs = json_object_size(json_object_get(root, METADATA));
    /* for terminators and alignment */
    size_t names = im->header_bytes + (n_tensors + 2 * n_pairs) * 2 * ARENA_ALIGN;
    TRY(arena_reserve(&st->arena,
                      im->data_bytes + names + n_tensors * sizeof *st->tensors + n_pairs * sizeof *st->metadata +
                          4 * ARENA_ALIGN,
                      im->e));
    unsigned char *data = arena_alloc(&st->arena, im->data_bytes);
    st->tensors = arena_alloc(&st->arena, n_tensors * sizeof *st->tensors);
    st->metadata = arena_alloc(&st->arena, n_pairs * sizeof *st->metadata);
    if (im->data_bytes > 0) memcpy(data, im->data, im->data_bytes);
    im->data = data;
    return parse_entries(st, root, im);
}

enum status safetensors_parse(struct safetensors *st, const void *bytes, size_t size, const char *name,
                              struct error *e) {
    *st = (struct safetensors){0};
    if (size < PREFIX_BYTES)
        return fail(e, ST_DATA, "%s: %zu bytes are too few for a safetensors file; expected at least %d", name, size,
                    PREFIX_BYTES);
    uint64_t length;
    memcpy(&length, bytes, sizeof length);
    length = le64toh(length);
    if (length > SAFETENSORS_MAX_HEADER)
        return fail(e, ST_DATA,
                    "%s: this is no safetensors file, which begins with the length of its header, of at most %u bytes",
                    name, SAFETENSORS_MAX_HEADER);
    if (length > size - PREFIX_BYTES)
        return fail(e, ST_DATA, "%s: it is cut off: its header has %" PRIu64 " bytes, and %zu follow its length", name,
                    length, size - PREFIX_BYTES);
    struct image im = {.file = name,
                       .header = (const char *)bytes + PREFIX_BYTES,
                       .header_bytes = (size_t)length,
                       .data = (const unsigned char *)bytes + PREFIX_BYTES + length,
                       .data_bytes = size - PREFIX_BYTES - (size_t)length,
                       .e = e};
    size_t values;
    TRY(scan_header(&im, &values));
    json_error_t why;
    json_t *root = json_loadb(im.header, im.header_bytes, JSON_REJECT_DUPLICATES, &why);
    if (!root)
        return fail(e, ST_DATA, "%s: the header is not valid JSON near offset %d: %.99s", name,
                    PREFIX_BYTES + why.position, why.text);
    enum status status = json_is_object(root) ? index_image(st, root, &im)
                                              : fail(e, ST_DATA, "%s: the header is not a JSON object", name);
    json_decref(root);
    if (status != ST_OK) safetensors_free(st);
    return status;
}

/* Reads all of an open file. The caller frees *bytes. */
static enum status read_all(int fd, const char *path, unsigned char **bytes, size_t *size, struct error *e) {
    struct stat info;
    if (fstat(fd, &info) != 0) return fail(e, ST_DATA, "cannot read %s: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode)) return fail(e, ST_DATA, "cannot read %s: it is not a regular file", path);
    *size = (size_t)info.st_size;
    if (*size > machine_memory_bytes() / 2)
        return fail(e, ST_DATA,
                    "cannot read %s: its %zu bytes are more than half of this machine's %zu bytes of memory", path,
                    *size, machine_memory_bytes());
    *bytes = malloc(*size + 1);
    if (!*bytes) return fail(e, ST_MEMORY, "cannot read %s: no memory for its %zu bytes", path, *size);
    for (size_t done = 0; done < *size;) {
        ssize_t got = read(fd, *bytes + done, *size - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail(e, ST_DATA, "cannot read %s at offset %zu: %s", path, done, strerror(errno));
        if (got == 0)
            return fail(e, ST_DATA, "cannot read %s: it ends at offset %zu of %zu while being read", path, done, *size);
        done += (size_t)got;
    }
    return ST_OK;
}

enum status safetensors_read(struct safetensors *st, const char *path, struct error *e) {
    *st = (struct safetensors){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not make it wait before it is refused */
    if (fd < 0) return fail(e, ST_DATA, "cannot open %s: %s", path, strerror(errno));
    unsigned char *bytes = NULL;
    size_t size = 0;
    enum status status = read_all(fd, path, &bytes, &size, e);
    close(fd);
    if (status == ST_OK) status = safetensors_parse(st, bytes, size, path, e);
    free(bytes);
    return status;
}

void safetensors_free(struct safetensors *st) {
    arena_free(&st->arena);
    *st = (struct safetensors){0};
}

const struct st_tensor *safetensors_find(const struct safetensors *st, const char *name) {
    for (int i = 0; i < st->n; i++)
        if (strcmp(st->tensors[i].name, name) == 0) return &st->tensors[i];
    return NULL;
}

const char *safetensors_metadata(const struct safetensors *st, const char *key) {
    for (int i = 0; i < st->n_metadata; i++)
        if (strcmp(st->metadata[i].key, key) == 0) return st->metadata[i].value;
    return NULL;
}

/* Returns the value of an IEEE 754 binary16 number: a sign, 5 bits of exponent, 10 bits of fraction. */
static double half_value(uint32_t bits) {
    int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023);
    double size = exponent == 0    ? ldexp(fraction, -24)
                  : exponent == 31 ? (fraction ? NAN : INFINITY)
                                   : ldexp(1024 + fraction, exponent - 25);
    return bits >> 15 ? -size : size;
}

double st_value(const struct st_tensor *t, int64_t i) {
    const unsigned char *at = t->bytes + (size_t)i * width_of(t);
    uint32_t half = (uint32_t)at[0] | (uint32_t)at[1] << 8;
    if (t->half == ST_F16) return half_value(half);
    if (t->f64) {
        uint64_t bits;
        double value;
        memcpy(&bits, at, sizeof bits);
        bits = le64toh(bits);
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    uint32_t bits = 0;
    float value;
    if (!t->half) memcpy(&bits, at, sizeof bits);
    bits = t->half ? half << 16 : le32toh(bits); /* BF16 is the upper half of a float */
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* --- writing ---------------------------------------------------------------------------------------------------- */

/* Adds the entry of one tensor to the header, and moves *offset to its end. */
static enum status describe(json_t *root, const struct st_source *s, int64_t *offset, const char *path,
                            struct error *e) {
    struct st_tensor t = {.f64 = s->f64, .rank = s->rank};
    if (s->rank < 0 || s->rank > TENSOR_MAX_RANK)
        return fail(e, ST_FAIL, "cannot write %s: tensor \"%.99s\" has rank %d; 0 to %d is supported", path, s->name,
                    s->rank, TENSOR_MAX_RANK);
    json_t *shape = json_array();
    int64_t bytes = 0, end = 0;
    bool fits = true;
    for (int i = 0; i < s->rank; i++) {
        t.dims[i] = s->dims[i];
        fits = fits && s->dims[i] >= 0;
        json_array_append_new(shape, json_integer(s->dims[i]));
    }
    fits = fits && measure(&t, &bytes) && !__builtin_add_overflow(*offset, bytes, &end);
    bool taken = strcmp(s->name, METADATA) == 0 || json_object_get(root, s->name);
    json_t *entry = json_pack("{s:s, s:o, s:[I,I]}", "dtype", s->f64 ? "F64" : "F32", "shape", shape, "data_offsets",
                              (json_int_t)*offset, (json_int_t)end);
    if (!fits || taken || json_object_set_new(root, s->name, entry) != 0) {
        if (!fits || taken) json_decref(entry);
        return fail(e, ST_FAIL, "cannot write %s: tensor \"%.99s\" has %s", path, s->name,
                    !fits   ? "an impossible shape"
                    : taken ? "a name that is taken"
                            : "a name that is not UTF-8");
    }
    *offset = end;
    return ST_OK;
}

/* Makes the header's text, padded with blanks so that the data section starts at a multiple of 8. The caller frees
 * it. */
static enum status make_header(char **text, const char *path, const struct st_source *sources, int n,
                               const struct st_pair *metadata, int n_metadata, struct error *e) {
    json_t *root = json_object();
    enum status status = ST_OK;
    if (n_metadata > 0) {
        json_t *pairs = json_object();
        for (int i = 0; i < n_metadata && status == ST_OK; i++)
            if (json_object_set_new(pairs, metadata[i].key, json_string(metadata[i].value)) != 0)
                status = fail(e, ST_FAIL, "cannot write %s: metadata number %d is not UTF-8", path, i);
        json_object_set_new(root, METADATA, pairs);
    }
    int64_t offset = 0;
    for (int i = 0; i < n && status == ST_OK; i++) status = describe(root, &sources[i], &offset, path, e);
    char *json = status == ST_OK ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    if (status != ST_OK) return status;
    size_t length = json ? strlen(json) : 0, padded = (length + 7) / 8 * 8;
    *text = json ? realloc(json, padded + 1) : NULL;
    if (!*text) {
        free(json);
        return fail(e, ST_MEMORY, "cannot write %s: no memory for its header", path);
    }
    memset(*text + length, ' ', padded - length);
    (*text)[padded] = '\0';
    if (padded <= SAFETENSORS_MAX_HEADER) return ST_OK;
    free(*text);
    return fail(e, ST_FAIL, "cannot write %s: a header of %zu bytes; at most %u are allowed", path, padded,
                SAFETENSORS_MAX_HEADER);
}

static bool put_value(FILE *f, double value, bool f64) {
    if (f64) {
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        bits = htole64(bits);
        return fwrite(&bits, sizeof bits, 1, f) == 1;
    }
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    bits = htole32(bits);
    return fwrite(&bits, sizeof bits, 1, f) == 1;
}

static bool put_file(FILE *f, const char *header, const struct st_source *sources, int n) {
    uint64_t length = htole64(strlen(header));
    bool good = fwrite(&length, sizeof length, 1, f) == 1 && fputs(header, f) >= 0;
    for (int s = 0; s < n && good; s++) {
        int64_t count = 1;
        for (int i = 0; i < sources[s].rank; i++) count *= sources[s].dims[i];
        for (int64_t i = 0; i < count && good; i++) good = put_value(f, sources[s].values[i], sources[s].f64);
    }
    return good && fflush(f) == 0 && fsync(fileno(f)) == 0;
}

/* Writes a temporary file and renames it to `path`. After a failure it returns false with errno set, and leaves no
 * temporary file. */
static bool write_and_rename(const char *path, const char *header, const struct st_source *sources, int n) {
    char temporary[PATH_MAX];
    int fd = temporary_open(path, temporary, sizeof temporary);
    if (fd < 0) return false;
    FILE *f = fdopen(fd, "wb");
    bool good = f && put_file(f, header, sources, n);
    int reason = errno;
    if ((f ? fclose(f) : close(fd)) != 0 && good) {
        good = false;
        reason = errno;
    }
    if (good && rename(temporary, path) == 0) return true;
    if (good) reason = errno;
    unlink(temporary);
    errno = reason;
    return false;
}

enum status safetensors_write(const char *path, const struct st_source *sources, int n, const struct st_pair *metadata,
                              int n_metadata, struct error *e) {
    char *header;
    TRY(file_target_check(path, e));
    TRY(make_header(&header, path, sources, n, metadata, n_metadata, e));
    bool good = write_and_rename(path, header, sources, n);
    enum status status = good ? folder_sync(path, e) : fail(e, ST_FAIL, "cannot write %s: %s", path, strerror(errno));
    free(header);
    return status;
}

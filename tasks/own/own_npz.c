/* own_npz.c - reads own examples, arrays as np.savez and np.savez_compressed store them (own_file.h): a ZIP file of
 * .npy members, stored as they are or deflated. Its directory at the end says where members are; each is a header, a
 * Python dictionary, and the bytes of an array, little-endian and row-major. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "tasks/own/own_pack.h"

#define RANK_MOST    3
#define STORED       0 /* methods of ZIP */
#define DEFLATED     8
#define SMALL_BYTES  ((size_t)64 << 20) /* to which any array may unpack; deflate packs zeros 1:1030 */
#define RATIO_MOST   100                /* of larger ones: unpacked over packed bytes */
#define END_BYTES    22                 /* of the end of a directory, without its comment */
#define ENTRY_BYTES  46                 /* of an entry of the directory, without its name */
#define MEMBER_BYTES 30                 /* before a member's name */

struct bytes {
    const unsigned char *at;
    size_t size;
};

struct array {
    char type; /* 'i' whole, 'u' whole and not negative, 'f' real; 0: the file has no such array */
    int width; /* bytes of a number */
    int rank;
    int64_t dims[RANK_MOST], count;
    const unsigned char *at;
    unsigned char *unpacked; /* owned; NULL: the numbers lie in the file */
};

static uint64_t little(const unsigned char *at, int n) {
    uint64_t value = 0;
    for (int i = n - 1; i >= 0; i--) value = value << 8 | at[i];
    return value;
}

/* The i-th number of an array. */
static double number_at(const struct array *a, int64_t i) {
    const unsigned char *at = a->at + i * a->width;
    uint64_t bits = little(at, a->width);
    float single;
    double whole;
    if (a->type == 'u') return (double)bits;
    if (a->type == 'i') return (double)((int64_t)(bits << (64 - 8 * a->width)) >> (64 - 8 * a->width));
    if (a->width == 8) memcpy(&whole, at, sizeof whole);
    if (a->width == 4) memcpy(&single, at, sizeof single);
    return a->width == 8 ? whole : (double)single;
}

static enum status bad_array(const struct own_pack *p, const char *name, const char *what, struct error *e) {
    return fail(e, ST_DATA, "%s: the array %s %s", p->name, name, what);
}

/* The value of a key of the header's dictionary; NULL: it has none. */
static const char *header_value(const char *header, const char *key) {
    const char *at = strstr(header, key);
    if (!at) return NULL;
    at += strlen(key);
    return at + strspn(at, ": ");
}

/* Reads a .npy file: magic, version, length of the header, the header, the numbers. */
static enum status read_npy(const struct own_pack *p, struct bytes b, const char *name, struct array *a,
                            struct error *e) {
    char header[512];
    size_t before = b.size > 10 && b.at[6] == 1 ? 10 : 12;
    if (b.size < 12 || memcmp(b.at, "\x93NUMPY", 6) != 0) return bad_array(p, name, "is not NumPy's", e);
    size_t length = little(b.at + 8, before == 10 ? 2 : 4);
    if (length >= sizeof header || length > b.size - before) return bad_array(p, name, "has a header too long", e);
    memcpy(header, b.at + before, length);
    header[length] = 0;
    const char *type = header_value(header, "'descr'"), *order = header_value(header, "'fortran_order'");
    const char *shape = header_value(header, "'shape'");
    if (!type || !order || !shape || *type != '\'' || strlen(type) < 5 || *shape != '(')
        return bad_array(p, name, "has a bad header", e);
    if (strncmp(order, "False", 5) != 0)
        return bad_array(p, name, "has its columns first; store np.ascontiguousarray of it", e);
    int width = type[3] >= '1' && type[3] <= '8' && type[4] == '\'' ? type[3] - '0' : 0;
    bool plain = type[1] == '<' || (type[1] == '|' && width == 1), whole = strchr("iub", type[2]) != NULL && type[2];
    bool known = plain && (whole ? width == 1 || width == 2 || width == 4 || width == 8
                                 : type[2] == 'f' && (width == 4 || width == 8));
    if (type[2] == 'O')
        return bad_array(p, name,
                         "holds pickled Python objects, which are never loaded; make it an array of numbers, with rows "
                         "filled up to one length and the array length",
                         e);
    if (!known)
        return bad_array(p, name,
                         "is not of whole numbers, float32 or float64 in this machine's order of bytes; "
                         "astype gives one that is",
                         e);
    *a = (struct array){.type = type[2] == 'b' ? 'u' : type[2], .width = width, .count = 1, .unpacked = a->unpacked};
    for (shape++; *shape != ')';) {
        char *end;
        long long dim = strtoll(shape, &end, 10);
        if (end == shape || dim < 0 || a->rank == RANK_MOST || (dim && a->count > INT64_MAX / 8 / dim))
            return bad_array(p, name, "has more than three axes, or is too large", e);
        a->dims[a->rank++] = dim;
        a->count *= dim;
        shape = end + strspn(end, ", ");
    }
    a->at = b.at + before + length;
    if ((uint64_t)a->count * (uint64_t)width != b.size - before - length)
        return bad_array(p, name, "has another number of bytes than its shape says", e);
    return ST_OK;
}

/* Unpacks a deflated member whose size and CRC-32 the directory's entry tells, into memory of that size, whatever else
 * it would unpack to. The caller frees *unpacked. */
static enum status unpack(const struct own_pack *p, const char *name, const unsigned char *entry, struct bytes packed,
                          unsigned char **unpacked, struct bytes *member, struct error *e) {
    size_t size = little(entry + 24, 4);
    if (size > SMALL_BYTES && size / RATIO_MOST > packed.size)
        return fail(e, ST_DATA,
                    "%s: the array %s would unpack from %.1f MB to %.1f MB, more than %d times as much; if that is "
                    "meant, write it with np.savez",
                    p->name, name, (double)packed.size * 1e-6, (double)size * 1e-6, RATIO_MOST);
    *unpacked = malloc(size + !size);
    if (!*unpacked) return fail(e, ST_MEMORY, "%s: no memory for the %zu bytes of the array %s", p->name, size, name);
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)packed.at,
                  .avail_in = (uInt)packed.size,
                  .next_out = *unpacked,
                  .avail_out = (uInt)size};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return fail(e, ST_MEMORY, "%s: no memory to unpack", p->name);
    bool whole = inflate(&z, Z_FINISH) == Z_STREAM_END && z.avail_out == 0;
    inflateEnd(&z);
    if (!whole || crc32_z(0, *unpacked, size) != little(entry + 16, 4))
        return bad_array(p, name, "is damaged: it does not unpack to what the directory says; write the file again", e);
    *member = (struct bytes){*unpacked, size};
    return ST_OK;
}

/* Finds the member of that name, which the file may not have (*found). The caller frees *unpacked. */
static enum status find_member(const struct own_pack *p, struct bytes file, const char *name, struct bytes *member,
                               unsigned char **unpacked, bool *found, struct error *e) {
    size_t end = file.size, n = strlen(name);
    *found = false;
    for (size_t back = END_BYTES; back <= file.size && back < 65536 + END_BYTES && end == file.size; back++)
        if (memcmp(file.at + file.size - back, "PK\5\6", 4) == 0) end = file.size - back;
    if (end == file.size) return fail(e, ST_DATA, "%s is no .npz file: the directory at its end is missing", p->name);
    size_t at = little(file.at + end + 16, 4);
    while (at < end && end - at >= ENTRY_BYTES && memcmp(file.at + at, "PK\1\2", 4) == 0) {
        const unsigned char *entry = file.at + at;
        size_t name_bytes = little(entry + 28, 2), begin = little(entry + 42, 4), bytes = little(entry + 20, 4);
        at += ENTRY_BYTES + name_bytes + little(entry + 30, 2) + little(entry + 32, 2);
        if (at > end || name_bytes != n + 4 || memcmp(entry + ENTRY_BYTES, name, n) != 0 ||
            memcmp(entry + ENTRY_BYTES + n, ".npy", 4) != 0)
            continue;
        uint64_t method = little(entry + 10, 2);
        if (method != STORED && method != DEFLATED)
            return bad_array(p, name, "is compressed in a way that NumPy does not use; np.savez writes the file", e);
        if (begin > file.size || file.size - begin < MEMBER_BYTES) return bad_array(p, name, "is cut off", e);
        begin += MEMBER_BYTES + little(file.at + begin + 26, 2) + little(file.at + begin + 28, 2);
        if (begin > file.size || file.size - begin < bytes) return bad_array(p, name, "is cut off", e);
        *member = (struct bytes){file.at + begin, bytes};
        *found = true;
        return method == DEFLATED ? unpack(p, name, entry, *member, unpacked, member, e) : ST_OK;
    }
    return ST_OK;
}

/* Reads the array of the first of the names that the file has; type 0: it has none. The caller frees a->unpacked, after
 * an error too. */
static enum status find_array(const struct own_pack *p, struct bytes file, const char *const names[2], struct array *a,
                              struct error *e) {
    struct bytes member;
    bool found;
    *a = (struct array){0};
    for (int i = 0; i < 2 && names[i]; i++) {
        TRY(find_member(p, file, names[i], &member, &a->unpacked, &found, e));
        if (found) return read_npy(p, member, names[i], a, e);
    }
    return ST_OK;
}

/* Reads all arrays of a file. */
struct arrays {
    struct array input, target, length, mask, split;
};

static enum status check_shapes(const struct own_pack *p, const struct arrays *a, struct error *e) {
    int64_t n = a->input.dims[0], T = a->input.dims[1];
    if (!a->input.type || !a->target.type)
        return fail(e, ST_DATA, "%s has no array %s; np.savez(path, input=..., target=...) writes both", p->name,
                    a->input.type ? "target" : "input");
    if (a->input.rank < 2 || T < 1) return bad_array(p, "input", "has other axes than (n,T) or (n,T,channels)", e);
    if (a->input.rank == 3 && (a->input.dims[2] < 1 || a->input.dims[2] > OWN_MOST_CHANNEL))
        return bad_array(p, "input", "has no channel, or too many", e);
    if (a->target.dims[0] != n || a->target.rank > 2 || a->target.rank < 1 ||
        (a->target.rank == 2 && a->target.dims[1] != 1 && a->target.dims[1] != T))
        return bad_array(p, "target", "has other axes than (n), (n,1) or (n,T) of the inputs", e);
    const struct array *more[] = {&a->length, &a->split};
    for (int i = 0; i < 2; i++)
        if (more[i]->type && (more[i]->rank != 1 || more[i]->dims[0] != n))
            return bad_array(p, i ? "split" : "length", "has other axes than (n) of the inputs", e);
    if (a->mask.type && (a->mask.rank != 2 || a->mask.dims[0] != n || a->mask.dims[1] != T))
        return bad_array(p, "mask", "has other axes than (n,T) of the inputs", e);
    return ST_OK;
}

static enum status add_row(struct own_pack *p, const struct arrays *a, int64_t i, struct error *e) {
    int64_t T = a->input.dims[1], C = a->input.rank == 3 ? a->input.dims[2] : 1;
    bool label = a->target.rank == 1 || (a->target.dims[1] == 1 && T != 1);
    char where[40];
    snprintf(where, sizeof where, "row %lld", (long long)i);
    double length = a->length.type ? number_at(&a->length, i) : (double)T;
    double split = a->split.type ? number_at(&a->split, i) : -1;
    if (!(length >= 1 && length <= (double)T))
        return fail(e, ST_DATA, "%s, %s: the length %g is not from 1 to %lld", p->name, where, length, (long long)T);
    if (a->split.type && split != 0 && split != 1 && split != 2)
        return fail(e, ST_DATA, "%s, %s: the split %g is none of 0, 1 and 2", p->name, where, split);
    int64_t L = (int64_t)length;
    for (int64_t k = 0; k < L * C; k++) TRY(own_pack_input(p, number_at(&a->input, i * T * C + k), where, e));
    for (int64_t t = 0; t < (label ? 1 : L); t++) {
        double value = number_at(&a->target, label ? i : i * T + t);
        bool scored = value != IGNORED && (label || !a->mask.type || number_at(&a->mask, i * T + t) != 0);
        if (label && !scored) return fail(e, ST_DATA, "%s, %s: the one label is missing", p->name, where);
        TRY(own_pack_target(p, value, scored, where, e));
    }
    return own_pack_example(p, L, C, label, (int)split, where, e);
}

/* Refuses arrays with times, which would be left out in silence. */
static enum status refuse_times(const struct own_pack *p, struct bytes file, struct error *e) {
    static const char *const names[] = {"time", "times", "timestamps"};
    enum status status = ST_OK;
    for (int i = 0; i < 3 && status == ST_OK; i++) {
        struct bytes member;
        unsigned char *unpacked = NULL;
        bool found;
        status = find_member(p, file, names[i], &member, &unpacked, &found, e);
        free(unpacked);
        if (status == ST_OK && found)
            status =
                fail(e, ST_DATA,
                     "%s: the array %s: times are not read; put them into a channel of \"input\", or leave them out",
                     p->name, names[i]);
    }
    return status;
}

enum status own_npz_read(struct own_pack *p, const unsigned char *bytes, size_t size, struct error *e) {
    static const char *const names[][2] = {
        {"input", "inputs"}, {"target", "targets"}, {"length", "lengths"}, {"mask", NULL}, {"split", NULL}};
    struct arrays a = {0};
    struct array *const list[] = {&a.input, &a.target, &a.length, &a.mask, &a.split};
    enum status status = refuse_times(p, (struct bytes){bytes, size}, e);
    for (int i = 0; i < 5 && status == ST_OK; i++)
        status = find_array(p, (struct bytes){bytes, size}, names[i], list[i], e);
    if (status == ST_OK) status = check_shapes(p, &a, e);
    for (int64_t i = 0; status == ST_OK && i < a.input.dims[0]; i++) status = add_row(p, &a, i, e);
    for (int i = 0; i < 5; i++) free(list[i]->unpacked);
    return status;
}

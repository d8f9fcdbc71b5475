/* text_files.c - see text_files.h. */
#include "tasks/data/text_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tasks/data/grow.h"

#define FIELDS 4 /* fields of a pair after its label: two ids, two texts */

/* A text while it is read. */
struct bytes {
    uint8_t *at;
    int64_t n, room;
};

/* --- reviews ------------------------------------------------------------------------------------------------------ */

/* A folder of them while it is read. */
struct reviews {
    const char *folder;
    int at; /* the folder, opened */
    enum split split;
    int64_t label;
    struct entry_pack *pack;
    struct read_count *count;
    uint8_t *room; /* of TEXT_BYTES + 1 */
    struct error *e;
};

/* Reads one file; `path` names it in messages. */
static enum status read_review(const struct reviews *r, const char *file, const char *path) {
    struct byte_source s = {0};
    struct error *e = r->e;
    size_t got = 0;
    enum status status = source_open_one_of_many(&s, r->at, file, path, e);
    if (status == ST_OK) status = source_read(&s, r->room, TEXT_BYTES + 1, &got, e);
    if (status == ST_OK && (got == 0 || got > TEXT_BYTES))
        status = fail(e, ST_DATA, "%s: expected a text of 1 to %d bytes, found %s", path, TEXT_BYTES,
                      got ? "more" : "an empty file");
    uint8_t *to = status == ST_OK ? entry_pack_add(r->pack, r->split, r->label, (int64_t)got, (int64_t)got, e) : NULL;
    if (to) memcpy(to, r->room, got);
    if (status == ST_OK && !to) status = e->status;
    read_count_add(r->count, &s);
    source_close(&s);
    return status;
}

/* Whether a name is "NUMBER_RATING.txt", as for all released reviews. Other names belong to a file system (._0_7.txt,
 * .DS_Store). */
static int is_review(const struct dirent *entry) {
    const char *at = entry->d_name;
    size_t number = strspn(at, "0123456789"), rating = at[number] == '_' ? strspn(at + number + 1, "0123456789") : 0;
    return number && rating && strcmp(at + number + 1 + rating, ".txt") == 0;
}

/* Counts files of other names, except the folder itself and the one above it. */
static int is_no_review(const struct dirent *entry) {
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && !is_review(entry);
}

/* Orders names by their bytes, whatever the locale. */
static int by_bytes(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static enum status read_files(const struct reviews *r, struct dirent *const *entry, int n) {
    char path[CACHE_PATH];
    size_t stem = strlen(r->folder) + 1; /* including the slash; the folder's name alone has room */
    if (n == 0) return fail(r->e, ST_DATA, "%s: expected reviews, files NUMBER_RATING.txt, found none", r->folder);
    if (!r->room) return fail(r->e, ST_MEMORY, "%s: no memory to read texts", r->folder);
    memcpy(path, r->folder, stem - 1);
    path[stem - 1] = '/';
    for (int i = 0; i < n; i++) {
        size_t length = strlen(entry[i]->d_name);
        if (stem + length >= CACHE_PATH) return fail(r->e, ST_DATA, "%.200s: the path is too long", r->folder);
        memcpy(path + stem, entry[i]->d_name, length + 1);
        TRY(read_review(r, entry[i]->d_name, path));
    }
    return ST_OK;
}

/* Reads all files of a folder. They are opened relative to it, so the system walks no path for each. */
static enum status read_folder(struct reviews *r) {
    struct dirent **entry = NULL, **other = NULL;
    int n = scandir(r->folder, &entry, is_review, by_bytes), others = scandir(r->folder, &other, is_no_review, NULL);
    r->at = n < 0 ? -1 : open(r->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum status status = r->at < 0 ? fail(r->e, ST_DATA, "cannot read the folder %s: %s", r->folder, strerror(errno))
                                   : read_files(r, entry, n);
    if (r->at >= 0) close(r->at);
    if (others > 0) r->count->passed_over += others;
    for (int i = 0; i < n; i++) free(entry[i]);
    for (int i = 0; i < others; i++) free(other[i]);
    free(entry);
    free(other);
    return status;
}

enum status reviews_read(const char *folder, enum split split, struct entry_pack *pack, struct read_count *count,
                         struct error *e) {
    static const char *const labels[] = {"neg", "pos"};
    char path[CACHE_PATH];
    struct reviews r = {.folder = path, .split = split, .pack = pack, .count = count, .e = e};
    enum status status = ST_OK;
    r.room = malloc(TEXT_BYTES + 1);
    for (r.label = 0; r.label < 2 && status == ST_OK; r.label++) {
        int n =
            snprintf(path, sizeof path, "%s/%s/%s", folder, split == SPLIT_TRAIN ? "train" : "test", labels[r.label]);
        status = n < 0 || n >= CACHE_PATH ? fail(e, ST_DATA, "%.200s: the path is too long", folder) : read_folder(&r);
    }
    free(r.room);
    return status;
}

/* --- pairs -------------------------------------------------------------------------------------------------------- */

/* Reads a field and the tab after it, or the end of the line after the last one. A quote is a character like others,
 * because the benchmark's own loader reads these files without quoting. */
static enum status read_field(struct text_source *t, bool last, struct bytes *b) {
    b->n = 0;
    for (size_t n; (n = text_span(t, '\n')) > 0;) {
        const uint8_t *at = t->window + t->at, *tab = memchr(at, '\t', n);
        if (tab) n = (size_t)(tab - at);
        if (n > (size_t)(TEXT_BYTES - b->n)) return text_fail(t, "a field of at most 16777216 bytes");
        uint8_t *more = grow(b->at, &b->room, b->n + (int64_t)n, 1);
        if (!more) return fail(t->e, ST_MEMORY, "%s: no memory for a text", t->from->name);
        b->at = more;
        memcpy(b->at + b->n, at, n);
        b->n += (int64_t)n;
        t->at += n;
        if (tab) break;
    }
    int end = text_peek(t);
    if (!last && end != '\t') return text_fail(t, "a tab after a field, five fields a line,");
    if (last && end == '\t') return text_fail(t, "the end of the line after five fields");
    text_take(t);
    return t->status;
}

/* Reads the first field, 0 or 1 with a fraction of zeros or without, and the tab after it. */
static enum status read_label(struct text_source *t, int64_t *label) {
    text_fill(t, 4);
    const uint8_t *at = t->window + t->at;
    size_t left = t->n - t->at, n = left >= 2 && at[1] == '\t' ? 2 : left >= 4 && !memcmp(at + 1, ".0\t", 3) ? 4 : 0;
    if (!n || (*at != '0' && *at != '1')) return text_fail(t, "the label 0 or 1 and a tab,");
    *label = *at - '0';
    t->at += n;
    return ST_OK;
}

static enum status read_pair(struct text_source *t, enum split split, struct entry_pack *pack,
                             struct bytes field[FIELDS]) {
    int64_t line = t->line, label = 0;
    TRY(read_label(t, &label));
    for (int i = 0; i < FIELDS; i++) TRY(read_field(t, i == FIELDS - 1, &field[i]));
    const struct bytes *a = &field[FIELDS - 2], *b = &field[FIELDS - 1];
    if (a->n == 0 || b->n == 0)
        return fail(t->e, ST_DATA, "%s, line %" PRId64 ": expected two texts, found an empty one", t->from->name, line);
    uint8_t *to = entry_pack_add(pack, split, label, a->n > b->n ? a->n : b->n, 8 + a->n + b->n, t->e);
    if (!to) return t->e->status;
    for (int i = 0; i < 8; i++) to[i] = (uint8_t)((i < 4 ? a->n : b->n) >> 8 * (i % 4));
    memcpy(to + 8, a->at, (size_t)a->n);
    memcpy(to + 8 + a->n, b->at, (size_t)b->n);
    return ST_OK;
}

enum status pairs_read(struct byte_source *s, enum split split, struct entry_pack *pack, struct error *e) {
    struct bytes field[FIELDS] = {{0}};
    struct text_source *t = malloc(sizeof *t);
    enum status status = ST_OK;
    if (!t) return fail(e, ST_MEMORY, "%s: no memory to read it", s->name);
    text_open(t, s, e);
    if (text_peek(t) == TEXT_END) status = text_fail(t, "a pair of texts");
    for (int c; status == ST_OK && (c = text_peek(t)) != TEXT_END;)
        if (c == '\n')
            text_skip_line(t); /* mostly blank lines at the end */
        else
            status = read_pair(t, split, pack, field);
    if (status == ST_OK) status = t->status;
    for (int i = 0; i < FIELDS; i++) free(field[i].at);
    free(t);
    return status;
}

/* pathfinder_files.c - see pathfinder_files.h. */
#include "tasks/data/pathfinder_files.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file/png.h"

#define LIST_BYTES  (1 << 24) /* of a list at most; released ones have 100 kB */
#define IMAGE_BYTES (1 << 20) /* of a PNG file at most */
#define PATH_BYTES  1024
#define MOST_LISTS  100000

/* --- lists -------------------------------------------------------------------------------------------------------- */

/* Copies the next word of the line into `word` and returns its length, 0 at the end of the line. Control characters
 * become '?'. */
static size_t next_word(const char **at, const char *end, char word[PATHFINDER_NAME]) {
    size_t n = 0;
    while (*at < end && (**at == ' ' || **at == '\t')) ++*at;
    for (; *at < end && **at != ' ' && **at != '\t' && **at != '\n' && **at != '\r'; ++*at, n++)
        if (n + 1 < PATHFINDER_NAME) word[n] = (char)((unsigned char)**at < ' ' || **at == 127 ? '?' : **at);
    word[n + 1 < PATHFINDER_NAME ? n : PATHFINDER_NAME - 1] = 0;
    return n;
}

static enum status expect_name(const char **at, const char *end, const char *name, int64_t line, const char *what,
                               char word[PATHFINDER_NAME], struct error *e) {
    size_t n = next_word(at, end, word);
    if (n == 0)
        return fail(e, ST_DATA, "%s, line %" PRId64 ": expected %s, found the end of the line", name, line, what);
    if (n >= PATHFINDER_NAME || word[0] == '/' || strstr(word, ".."))
        return fail(e, ST_DATA, "%s, line %" PRId64 ": expected %s below the folder, found '%s'", name, line, what,
                    word);
    return ST_OK;
}

enum status pathfinder_list_next(const char **at, const char *end, const char *name, int64_t line,
                                 struct pathfinder_line *out, struct error *e) {
    char word[PATHFINDER_NAME];
    TRY(expect_name(at, end, name, line, "the name of a folder", out->folder, e));
    TRY(expect_name(at, end, name, line, "the name of a file", out->file, e));
    next_word(at, end, word);
    if (next_word(at, end, word) != 1 || (word[0] != '0' && word[0] != '1'))
        return fail(e, ST_DATA, "%s, line %" PRId64 ": expected the label 0 or 1 as the fourth word, found '%s'", name,
                    line, word);
    out->label = word[0] - '0';
    while (*at < end && **at != '\n') ++*at;
    if (*at < end) ++*at;
    return ST_OK;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

/* Reads a whole file of at most `most` bytes; the caller frees it. */
static enum status read_whole(const char *path, size_t most, char **bytes, size_t *size, struct read_count *count,
                              struct error *e) {
    struct byte_source s;
    enum status status = source_open(&s, path, e);
    *size = 0;
    *bytes = status == ST_OK ? malloc(most + 1) : NULL;
    if (status == ST_OK && !*bytes) status = fail(e, ST_MEMORY, "no memory to read %s", path);
    if (status == ST_OK) status = source_read(&s, *bytes, most + 1, size, e);
    if (status == ST_OK && *size > most)
        status = fail(e, ST_DATA, "%s: expected at most %zu bytes, found more", path, most);
    read_count_add(count, &s);
    source_close(&s);
    if (status != ST_OK) free(*bytes);
    return status;
}

static enum status read_image(const char *folder, const struct pathfinder_line *line, struct image_sink *sink,
                              uint8_t *pixels, struct read_count *count, struct error *e) {
    char path[PATH_BYTES], *bytes;
    size_t size;
    if (snprintf(path, sizeof path, "%s/%s/%s", folder, line->folder, line->file) >= PATH_BYTES)
        return fail(e, ST_DATA, "%.200s: the path of an image is too long", folder);
    TRY(read_whole(path, IMAGE_BYTES, &bytes, &size, count, e));
    enum status status = png_read_grey(bytes, size, path, sink->height, sink->width, pixels, e);
    free(bytes);
    return status == ST_OK ? sink->keep(sink, line->label, pixels, e) : status;
}

static enum status read_list(const char *folder, int64_t number, struct image_sink *sink, uint8_t *pixels,
                             struct read_count *count, struct error *e) {
    char path[PATH_BYTES], *bytes;
    struct pathfinder_line line;
    size_t size;
    snprintf(path, sizeof path, "%.900s/metadata/%" PRId64 ".npy", folder, number);
    TRY(read_whole(path, LIST_BYTES, &bytes, &size, count, e));
    const char *at = bytes, *end = bytes + size;
    enum status status = ST_OK;
    if (size == 0) status = fail(e, ST_DATA, "%s, line 1: expected an image, found an empty file", path);
    for (int64_t n = 1; at < end && status == ST_OK; n++) {
        status = pathfinder_list_next(&at, end, path, n, &line, e);
        if (status == ST_OK && sink->most-- <= 0) status = fail(e, ST_DATA, "%s: there are too many images", path);
        if (status == ST_OK) status = read_image(folder, &line, sink, pixels, count, e);
    }
    free(bytes);
    return status;
}

/* The number of a list's name: 17 for "17.npy", else -1. */
static int64_t list_number(const char *name) {
    int64_t number = 0;
    const char *at = name;
    for (; *at >= '0' && *at <= '9' && number < 1000000000; at++) number = 10 * number + (*at - '0');
    return at > name && strcmp(at, ".npy") == 0 ? number : -1;
}

static int by_number(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Lists the numbers of the lists, ascending. */
static enum status find_lists(const char *folder, int64_t *numbers, int *n, struct error *e) {
    char path[PATH_BYTES];
    if (snprintf(path, sizeof path, "%s/metadata", folder) >= PATH_BYTES)
        return fail(e, ST_DATA, "%.200s: the path is too long", folder);
    DIR *lists = opendir(path);
    if (!lists)
        return fail(e, ST_DATA, "cannot open %s: %s; expected the lists 0.npy, 1.npy, ... of the released images", path,
                    strerror(errno));
    enum status status = ST_OK;
    *n = 0;
    for (struct dirent *entry; status == ST_OK && (entry = readdir(lists));) {
        if (list_number(entry->d_name) < 0) continue;
        if (*n == MOST_LISTS)
            status = fail(e, ST_DATA, "%s: expected at most %d lists, found more", path, MOST_LISTS);
        else
            numbers[(*n)++] = list_number(entry->d_name);
    }
    closedir(lists);
    if (status != ST_OK) return status;
    if (*n == 0) return fail(e, ST_DATA, "%s: expected the lists 0.npy, 1.npy, ..., found none", path);
    qsort(numbers, (size_t)*n, sizeof *numbers, by_number);
    for (int i = 1; i < *n; i++) /* "1.npy" and "01.npy" */
        if (numbers[i] == numbers[i - 1])
            return fail(e, ST_DATA, "%s: expected one list of each number, found two of %" PRId64, path, numbers[i]);
    return ST_OK;
}

enum status pathfinder_read(const char *folder, struct image_sink *sink, struct read_count *count, struct error *e) {
    int64_t *numbers = malloc(MOST_LISTS * sizeof *numbers);
    uint8_t *pixels = malloc((size_t)(sink->height * sink->width));
    int n = 0;
    enum status status =
        numbers && pixels ? find_lists(folder, numbers, &n, e) : fail(e, ST_MEMORY, "no memory to read %s", folder);
    for (int i = 0; i < n && status == ST_OK; i++) status = read_list(folder, numbers[i], sink, pixels, count, e);
    free(numbers);
    free(pixels);
    return status;
}

/* own_file.c - see own_file.h. */
#include "harness/store/own_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/label.h"
#include "harness/store/files.h"

#define MARK        "drawn by lrnn"
#define MARK_WITHIN 64 /* bytes from the end of a picture */
#define PNG_END     12 /* bytes of a PNG's last chunk */
#define MOST_BYTES  ((size_t)256 << 20)

/* A full disk or a killed writer leaves the beginning of a table, or nothing. */
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
    if (fseek(f, -(long)sizeof text, SEEK_END) != 0) rewind(f); /* a shorter file */
    size_t n = fread(text, 1, sizeof text, f), length = strlen(MARK);
    for (size_t i = 0; i + length <= n; i++)
        if (memcmp(text + i, MARK, length) == 0) return true;
    return false;
}

enum status own_file_check(const char *path, struct error *e) {
    FILE *f = fopen(path, "re");
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

/* A tEXt chunk: length of the data, type, "Software" 0 mark, CRC-32 of type and data (PNG 1.2, 3.2 and 4.2.3). */
static size_t png_chunk(unsigned char chunk[MARK_WITHIN]) {
    static const char data[] = "Software\0" MARK;
    const size_t n = sizeof data - 1;
    put_u32(chunk, (uint32_t)n);
    memcpy(chunk + 4, "tEXt", 4); /* NOLINT(bugprone-not-null-terminated-result): a chunk's type ends without a 0 */
    memcpy(chunk + 8, data, n);
    put_u32(chunk + 8 + n, (uint32_t)crc32(0, chunk + 4, (unsigned)(4 + n)));
    return 12 + n;
}

enum status own_file_mark(const char *path, struct error *e) {
    unsigned char mark[MARK_WITHIN];
    char *bytes;
    size_t size, after = 0, n;
    TRY(file_read(path, MOST_BYTES, &bytes, &size, e));
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

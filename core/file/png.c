/* png.c - see png.h. libpng's simplified interface: it has its own limits, returns errors, and jumps nowhere. */
#include "core/file/png.h"

#include <inttypes.h>
#include <png.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define LARGEST_SIDE (1 << 20)

static enum status begin(png_image *image, const void *bytes, size_t size, const char *name, struct error *e) {
    memset(image, 0, sizeof *image);
    image->version = PNG_IMAGE_VERSION;
    if (size == 0) return fail(e, ST_DATA, "%s: expected a PNG file, found an empty one", name);
    if (!png_image_begin_read_from_memory(image, bytes, size))
        return fail(e, ST_DATA, "%s: expected a PNG file, found %zu bytes of which libpng says: %.64s", name, size,
                    image->message);
    return ST_OK;
}

enum status png_sides(const void *bytes, size_t size, const char *name, int64_t *height, int64_t *width,
                      struct error *e) {
    png_image image;
    TRY(begin(&image, bytes, size, name, e));
    *height = image.height;
    *width = image.width;
    png_image_free(&image);
    return ST_OK;
}

enum status png_read_grey(const void *bytes, size_t size, const char *name, int64_t height, int64_t width,
                          uint8_t *pixels, struct error *e) {
    png_image image;
    const png_color black = {0, 0, 0};
    TRY(begin(&image, bytes, size, name, e));
    if (image.height != height || image.width != width) {
        fail(e, ST_DATA, "%s: expected an image of %" PRId64 " x %" PRId64 " pixels, found one of %u x %u", name,
             height, width, image.height, image.width);
        png_image_free(&image);
        return ST_DATA;
    }
    image.format = PNG_FORMAT_GRAY;
    if (png_image_finish_read(&image, &black, pixels, 0, NULL)) return ST_OK;
    return fail(e, ST_DATA, "%s: expected a whole PNG file, found one of which libpng says: %.64s", name,
                image.message);
}

const char *png_versions(void) {
    static char text[64];
    snprintf(text, sizeof text, "libpng %.20s, zlib %.20s", png_get_libpng_ver(NULL), zlibVersion());
    return text;
}

enum status png_encode(const uint8_t *pixels, int64_t height, int64_t width, int channels, const char *name,
                       char **bytes, size_t *size, struct error *e) {
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)width,
                       .height = (png_uint_32)height,
                       .format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB};
    *bytes = NULL;
    if (height > LARGEST_SIDE || width > LARGEST_SIDE)
        return fail(e, ST_USAGE, "%s: an image of %" PRId64 " x %" PRId64 " pixels is too large for one file", name,
                    height, width);
    FILE *f = open_memstream(bytes, size);
    bool whole = f && png_image_write_to_stdio(&image, f, 0, pixels, 0, NULL) != 0;
    if (f && fclose(f) == 0 && whole) return ST_OK;
    free(*bytes);
    *bytes = NULL;
    if (image.message[0]) return fail(e, ST_FAIL, "cannot write %s: %.64s", name, image.message);
    return fail(e, ST_MEMORY, "no memory to write %s", name);
}

/* png.c - see png.h. Sides and writing use libpng's simplified interface, which returns errors. Reading uses the full
 * interface, because the simplified one applies gamma to 16-bit samples. */
#include "core/file/png.h"

#include <inttypes.h>
#include <png.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define LARGEST_SIDE (1 << 20)
#define PNG_MESSAGE  128 /* bytes of libpng's message about an error */

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

/* A PNG file in memory while libpng reads it. */
struct png_bytes {
    const unsigned char *at;
    size_t left;
};

static void take_bytes(png_structp png, png_bytep to, size_t n) {
    struct png_bytes *from = png_get_io_ptr(png);
    if (n > from->left) png_error(png, "the file ends early");
    memcpy(to, from->at, n);
    from->at += n;
    from->left -= n;
}

/* libpng reports an error only by a jump, so the message must be stored before. */
static void keep_message(png_structp png, png_const_charp message) {
    snprintf(png_get_error_ptr(png), PNG_MESSAGE, "%s", message);
    png_longjmp(png, 1);
}

static void no_warning(png_structp png, png_const_charp message) {
    (void)png, (void)message;
}

/* Decodes a file whose header states height and width. It uses the samples as stored, because tasks are defined on
 * them: the high 8 bits of 16, and no gamma (gAMA, sRGB, iCCP). */
static bool decode_grey(png_structp png, png_infop info, struct png_bytes *from, int64_t height, int64_t width,
                        uint8_t *pixels) {
    const png_color_16 black = {0};
    if (setjmp(png_jmpbuf(png))) return false;
    png_set_read_fn(png, from, take_bytes);
    png_set_user_limits(png, LARGEST_SIDE, LARGEST_SIDE);
    png_set_chunk_cache_max(png, 64);
    png_set_chunk_malloc_max(png, 1 << 20);
    png_read_info(png, info);
    int type = png_get_color_type(png, info);
    png_set_strip_16(png);
    png_set_expand(png); /* for palettes, fewer than 8 bits, and a transparent colour */
    if (type & PNG_COLOR_MASK_ALPHA || png_get_valid(png, info, PNG_INFO_tRNS))
        png_set_background(png, &black, PNG_BACKGROUND_GAMMA_SCREEN, 0, 1.0);
    if (type & PNG_COLOR_MASK_COLOR) png_set_rgb_to_gray(png, PNG_ERROR_ACTION_NONE, -1, -1);
    int passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    if (png_get_rowbytes(png, info) != (size_t)width) png_error(png, "its rows are no grey pixels");
    for (int pass = 0; pass < passes; pass++)
        for (int64_t y = 0; y < height; y++) png_read_row(png, pixels + y * width, NULL);
    png_read_end(png, NULL);
    return true;
}

enum status png_read_grey(const void *bytes, size_t size, const char *name, int64_t height, int64_t width,
                          uint8_t *pixels, struct error *e) {
    int64_t has_height, has_width;
    char message[PNG_MESSAGE] = "";
    struct png_bytes from = {bytes, size};
    TRY(png_sides(bytes, size, name, &has_height, &has_width, e));
    if (has_height != height || has_width != width)
        return fail(e, ST_DATA,
                    "%s: expected an image of %" PRId64 " x %" PRId64 " pixels, found one of %" PRId64 " x %" PRId64,
                    name, height, width, has_height, has_width);
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, message, keep_message, no_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    bool whole = info && decode_grey(png, info, &from, height, width, pixels);
    png_destroy_read_struct(&png, &info, NULL);
    if (whole) return ST_OK;
    if (!*message) return fail(e, ST_MEMORY, "no memory to read %s", name);
    return fail(e, ST_DATA, "%s: expected a whole PNG file, found one of which libpng says: %.64s", name, message);
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
    if (f && fclose(f) == 0 && whole && *bytes) return ST_OK;
    free(*bytes);
    *bytes = NULL;
    if (image.message[0]) return fail(e, ST_FAIL, "cannot write %s: %.64s", name, image.message);
    return fail(e, ST_MEMORY, "no memory to write %s", name);
}

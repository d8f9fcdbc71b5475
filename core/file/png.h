/* png.h - reads and writes PNG files through libpng, for tasks that read images and commands that draw them. */
#ifndef LRNN_CORE_FILE_PNG_H
#define LRNN_CORE_FILE_PNG_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads the grey pixels of a whole PNG file in memory, row by row. Colours become their brightness; transparent pixels
 * lie on black. Samples are taken as stored: the high 8 bits of 16, no gamma. `name` stands for the file in messages.
 * The image must be height x width, and `pixels` has room for so many bytes. ST_DATA with libpng's reason, or with what
 * the file is instead. */
enum status png_read_grey(const void *bytes, size_t size, const char *name, int64_t height, int64_t width,
                          uint8_t *pixels, struct error *e);

/* The sides that a PNG file in memory says it has. ST_DATA as above. */
enum status png_sides(const void *bytes, size_t size, const char *name, int64_t *height, int64_t *width,
                      struct error *e);

/* Names the libpng and zlib in use: "libpng 1.6.39, zlib 1.2.13". Static text. */
const char *png_versions(void);

/* Makes a PNG file in memory, which the caller frees, of height x width pixels of 1 (grey) or 3 (red, green, blue)
 * bytes. `name` stands for it in messages. ST_USAGE: a side is too large. ST_MEMORY, ST_FAIL with libpng's reason. */
enum status png_encode(const uint8_t *pixels, int64_t height, int64_t width, int channels, const char *name,
                       char **bytes, size_t *size, struct error *e);

#ifdef __cplusplus
}
#endif
#endif

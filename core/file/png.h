/* png.h - PNG files, through libpng: of tasks that read images and of commands that draw some. */
#ifndef LRNN_CORE_FILE_PNG_H
#define LRNN_CORE_FILE_PNG_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads the grey pixels, row by row, of a whole PNG file in memory; colours become their brightness, transparency lies
 * on black. Samples are taken as they are stored: the high 8 bits of 16, and no gamma. `name` stands for the file in
 * messages. `pixels` has room for height x width bytes, the sides that the image must have. ST_DATA: what the file is
 * instead, or what libpng says of it. */
enum status png_read_grey(const void *bytes, size_t size, const char *name, int64_t height, int64_t width,
                          uint8_t *pixels, struct error *e);

/* The sides that a PNG file in memory says it has. ST_DATA as above. */
enum status png_sides(const void *bytes, size_t size, const char *name, int64_t *height, int64_t *width,
                      struct error *e);

/* Names the libpng and zlib in use: "libpng 1.6.39, zlib 1.2.13". Static text. */
const char *png_versions(void);

/* A PNG file in memory, which the caller frees, of height x width pixels of 1 (grey) or 3 (red, green, blue) bytes;
 * `name` stands for it in messages. ST_USAGE: too large a side. ST_MEMORY, ST_FAIL: what libpng says. */
enum status png_encode(const uint8_t *pixels, int64_t height, int64_t width, int channels, const char *name,
                       char **bytes, size_t *size, struct error *e);

#ifdef __cplusplus
}
#endif
#endif

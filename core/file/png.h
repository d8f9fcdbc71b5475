/* png.h - reads and writes PNG files with libpng, for tasks that read images and for commands that draw them. */
#ifndef LRNN_CORE_FILE_PNG_H
#define LRNN_CORE_FILE_PNG_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads the grey pixels of a complete PNG file in memory, row after row. A colour becomes its brightness; transparent
 * pixels are on black. Samples are used as stored: the high 8 bits of 16, and no gamma. In messages, `name` is the
 * file. The image must be height x width, and `pixels` must have room for as many bytes. ST_DATA, with libpng's reason,
 * or with what the file is instead. */
enum status png_read_grey(const void *bytes, size_t size, const char *name, int64_t height, int64_t width,
                          uint8_t *pixels, struct error *e);

/* Gives the sides that a PNG file in memory states. ST_DATA as above. */
enum status png_sides(const void *bytes, size_t size, const char *name, int64_t *height, int64_t *width,
                      struct error *e);

/* Returns the versions of libpng and zlib in use, such as "libpng 1.6.39, zlib 1.2.13". The text is static. */
const char *png_versions(void);

/* Makes a PNG file in memory, which the caller frees. It has height x width pixels of 1 byte (grey) or 3 (red, green,
 * blue). In messages, `name` is the file. ST_USAGE: a side is too large; ST_MEMORY; ST_FAIL, with libpng's reason. */
enum status png_encode(const uint8_t *pixels, int64_t height, int64_t width, int channels, const char *name,
                       char **bytes, size_t *size, struct error *e);

#ifdef __cplusplus
}
#endif
#endif

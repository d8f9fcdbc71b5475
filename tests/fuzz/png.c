/* png.c - fuzz target: whatever the bytes, a PNG file of more pixels than are wanted is not decoded, and another
 * is refused with one sentence or fills its pixels. */
#include "core/file/png.h"
#include "tests/fuzz/fuzz.h"

#define MOST 4096 /* pixels */

FUZZ(png) {
    struct error e = {ST_OK, ""};
    int64_t height, width;
    enum status status = png_sides(data, size, "PNG", &height, &width, &e);
    if (status == ST_OK && height * width <= MOST) {
        uint8_t *pixels = malloc((size_t)(height * width));
        if (!pixels) abort();
        status = png_read_grey(data, size, "PNG", height, width, pixels, &e);
        free(pixels);
    }
    if (status != ST_OK && (status != ST_DATA || strncmp(e.text, "PNG: ", 5) != 0 || strchr(e.text, '\n'))) abort();
    return 0;
}

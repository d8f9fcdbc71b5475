/* image_set.c - fuzz target: whatever the bytes, a set of images is refused with one sentence, or every pixel and
 * label that it says it has can be read. */
#include "tasks/data/image_set.h"
#include "tests/fuzz/fuzz.h"

FUZZ(image_set) {
    struct image_set s;
    struct error e = {ST_OK, ""};
    volatile unsigned sum = 0;
    if (image_set_parse(&s, data, size, "SET", &e) != ST_OK) {
        if (e.status != ST_DATA || strncmp(e.text, "SET", 3) != 0 || strchr(e.text, '\n')) abort();
        return 0;
    }
    for (int64_t i = 0; i < s.n_train + s.n_test; i++) {
        if (s.label[i] >= s.labels) abort();
        for (int64_t k = 0; k < s.height * s.width * s.channels; k++)
            sum = sum + s.pixels[i * s.height * s.width * s.channels + k];
    }
    return 0;
}

/* own.h - what both fuzz targets of own examples ask of what was read. */
#ifndef LRNN_TESTS_FUZZ_OWN_H
#define LRNN_TESTS_FUZZ_OWN_H

#include "tasks/own/own_file.h"
#include "tests/fuzz/fuzz.h"

static inline void check_own_file(const uint8_t *data, size_t size, const char *name) {
    struct own_file f = {0};
    struct error e = {ST_OK, ""};
    enum status status = own_file_parse(&f, data, size, name, &e);
    if (status != ST_OK) {
        if (status != ST_DATA || strncmp(e.text, name, 5) != 0 || strchr(e.text, '\n')) abort();
        return;
    }
    double sum = 0; /* every number that an example names is read */
    for (int64_t i = 0; i < f.n; i++) {
        const struct own_example *x = &f.example[i];
        if (x->length < 1 || x->length > f.longest || x->split < -1 || x->split >= SPLIT_COUNT) abort();
        for (int64_t k = 0; k < x->length * f.channels; k++) {
            float value = f.input[x->input + k];
            if (f.vocab && !(value >= 0 && value < (float)f.vocab)) abort();
            sum += (double)value;
        }
        for (int64_t t = 0; t < (f.per_sequence ? 1 : x->length); t++) {
            int32_t label = f.target[x->target + t];
            if (label != IGNORED && (label < 0 || label >= f.labels)) abort();
            sum += label;
        }
    }
    if (f.n < 1 || f.labels < 1 || sum != sum) abort();
    own_file_free(&f);
}

#endif

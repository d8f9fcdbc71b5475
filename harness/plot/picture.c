/* picture.c - see picture.h. */
#include "harness/plot/picture.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file/png.h"
#include "harness/store/files.h"

#define EDGE       4  /* pixels between images */
#define TEXT_ZOOM  2  /* enlargement of labels */
#define TEXT_ROWS  12 /* pixels for a label below its image */
#define WHOLE_SIDE 96 /* small images are enlarged to about this */

/* Digits of 3 x 5 pixels: each octal digit is a row, from the top. */
static const uint16_t digit_rows[] = {075557, 026227, 071747, 071717, 055711, 074717, 074757, 071244, 075757, 075717};

/* Returns how many times larger the sides of an image with `length` positions are than in training. */
static int64_t times_larger(const struct task_shape *s, int64_t length) {
    int64_t k = 1;
    while (!s->reading.visit && k * k * s->height * s->width < length) k++;
    return k;
}

enum status picture_make(struct picture *p, const struct task_shape *shape, enum split split, int64_t count,
                         struct error *e) {
    int64_t k = shape->height ? times_larger(shape, task_length(shape, split)) : 1;
    int64_t patch = shape->reading.patch > 1 ? shape->reading.patch : 1, C = shape->channels / (patch * patch);
    int64_t H = shape->height * k * patch, W = shape->width * k * patch;
    *p = (struct picture){.shape = shape, .count = count, .rows = H, .across = W, .patch = patch, .channels = C};
    if (!H || shape->vocab_in || (C != 1 && C != 3))
        return fail(e, ST_USAGE, "--png draws images, and the examples of this task are none; show them without it");
    p->zoom = WHOLE_SIDE / (H > W ? H : W);
    if (p->zoom < 1) p->zoom = 1;
    for (p->columns = 1; p->columns * p->columns < count;) p->columns++;
    p->width = EDGE + p->columns * (W * p->zoom + EDGE);
    p->height = EDGE + (count + p->columns - 1) / p->columns * (H * p->zoom + TEXT_ROWS + EDGE);
    p->values = calloc((size_t)(count * H * W * C), sizeof *p->values);
    p->labels = calloc((size_t)count, sizeof *p->labels);
    p->pixels = calloc((size_t)(p->height * p->width), 3);
    for (int64_t i = 0; p->values && i < count * H * W * C; i++) p->values[i] = NAN;
    if (p->values && p->labels && p->pixels) return ST_OK;
    picture_free(p);
    return fail(e, ST_MEMORY, "no memory for a picture of %" PRId64 " images", count);
}

void picture_add(struct picture *p, int64_t index, const struct example *x) {
    const struct task_shape *s = p->shape;
    float *image = p->values + index * p->rows * p->across * p->channels;
    int64_t width = s->width * times_larger(s, x->length), P = p->patch, C = p->channels;
    for (int64_t i = 0; i < x->length * P * P; i++) {
        int64_t t = i / (P * P), place = s->reading.visit ? s->reading.visit[t] : t;
        int64_t row = place / width * P + i % (P * P) / P, column = place % width * P + i % P;
        for (int64_t c = 0; c < C && place >= 0; c++)
            image[(row * p->across + column) * C + c] = (float)x->values[i * C + c];
    }
    p->labels[index] = x->targets[0];
}

/* The least and the largest value of a channel. */
struct range {
    float low, high;
};

static struct range range_of(const struct picture *p, int64_t channel) {
    int64_t n = p->count * p->rows * p->across;
    struct range r = {p->values[channel], p->values[channel]};
    for (int64_t i = 0; i < n; i++) {
        float v = p->values[i * p->channels + channel];
        if (v < r.low) r.low = v;
        if (v > r.high) r.high = v;
    }
    return r;
}

static void draw_image(struct picture *p, int64_t index, int64_t top, int64_t left, const struct range *range) {
    const float *image = p->values + index * p->rows * p->across * p->channels;
    for (int64_t y = 0; y < p->rows * p->zoom; y++)
        for (int64_t x = 0; x < p->across * p->zoom; x++)
            for (int64_t c = 0; c < 3; c++) {
                int64_t from = p->channels == 3 ? c : 0, at = y / p->zoom * p->across + x / p->zoom;
                float span = range[from].high - range[from].low, value = image[at * p->channels + from];
                float v = span > 0 ? (value - range[from].low) / span : 0;
                if (isnan(value)) continue; /* outside a smaller image */
                p->pixels[((top + y) * p->width + left + x) * 3 + c] = (uint8_t)(255 * v + 0.5f);
            }
}

static void draw_label(struct picture *p, int32_t label, int64_t top, int64_t left) {
    char text[16];
    snprintf(text, sizeof text, "%" PRId32, label);
    for (int i = 0; text[i]; i++) {
        uint16_t rows = text[i] >= '0' && text[i] <= '9' ? digit_rows[text[i] - '0'] : 0700; /* minus sign */
        for (int64_t y = 0; y < 5 * TEXT_ZOOM; y++)
            for (int64_t x = 0; x < 3 * TEXT_ZOOM; x++) {
                int bit = 14 - (int)(y / TEXT_ZOOM * 3 + x / TEXT_ZOOM);
                int64_t at = left + i * 4 * TEXT_ZOOM + x;
                if (rows >> bit & 1 && at < p->width) memset(p->pixels + ((top + y) * p->width + at) * 3, 255, 3);
            }
    }
}

enum status picture_write(struct picture *p, const char *path, struct error *e) {
    struct range range[3] = {0};
    for (int64_t c = 0; c < p->channels; c++) range[c] = range_of(p, c);
    memset(p->pixels, 64, (size_t)(p->height * p->width * 3));
    for (int64_t i = 0; i < p->count; i++) {
        int64_t top = EDGE + i / p->columns * (p->rows * p->zoom + TEXT_ROWS + EDGE);
        int64_t left = EDGE + i % p->columns * (p->across * p->zoom + EDGE);
        draw_image(p, i, top, left, range);
        draw_label(p, p->labels[i], top + p->rows * p->zoom + 1, left);
    }
    char *bytes;
    size_t size;
    TRY(png_encode(p->pixels, p->height, p->width, 3, path, &bytes, &size, e));
    enum status status = write_file_atomic(path, bytes, size, e);
    free(bytes);
    return status;
}

void picture_free(struct picture *p) {
    free(p->values);
    free(p->labels);
    free(p->pixels);
    *p = (struct picture){0};
}

/* image.c - see image.h. */
#include "tasks/image/image.h"

#include <string.h>

#include "tasks/examples.h"

enum { ORDER_RASTER, ORDER_SNAKE, ORDER_MORTON, ORDER_HILBERT, ORDER_BITREV, ORDER_NUMPY };

#define NUMPY_SEED 92916

/* --- orders ------------------------------------------------------------------------------------------------------- */

static int64_t power_of_two(int64_t least) {
    int64_t n = 1;
    while (n < least) n *= 2;
    return n;
}

/* Row and column of a pixel; the functions below give those of place d on the curve through a square of side n. */
struct pixel {
    int64_t row, column;
};

static struct pixel morton(int64_t d) {
    struct pixel p = {0, 0};
    for (int bit = 0; d >> 2 * bit; bit++) {
        p.column |= (d >> 2 * bit & 1) << bit;
        p.row |= (d >> (2 * bit + 1) & 1) << bit;
    }
    return p;
}

/* Builds the curve from the smallest square to the largest: each square is turned so that its ends meet the ends of its
 * neighbours (Hilbert 1891). */
static struct pixel hilbert(int64_t d, int64_t n) {
    struct pixel p = {0, 0};
    for (int64_t side = 1; side < n; side *= 2, d /= 4) {
        int64_t down = d / 2 & 1, across = (d ^ down) & 1;
        if (!across) {
            if (down) p = (struct pixel){side - 1 - p.row, side - 1 - p.column};
            p = (struct pixel){p.column, p.row};
        }
        p.row += across * side;
        p.column += down * side;
    }
    return p;
}

static int64_t reversed_bits(int64_t i, int64_t n) {
    int64_t y = 0;
    for (; n > 1; n /= 2, i /= 2) y = 2 * y + (i & 1);
    return y;
}

/* Starts MT19937 (Matsumoto and Nishimura 1998) like numpy.random.RandomState(seed). */
struct twister {
    uint32_t state[624];
    int at;
};

static void twister_start(struct twister *t, uint32_t seed) {
    t->state[0] = seed;
    for (uint32_t i = 1; i < 624; i++) t->state[i] = 1812433253u * (t->state[i - 1] ^ t->state[i - 1] >> 30) + i;
    t->at = 624;
}

static uint32_t twister_next(struct twister *t) {
    if (t->at == 624) {
        for (int i = 0; i < 624; i++) {
            uint32_t y = (t->state[i] & 0x80000000u) | (t->state[(i + 1) % 624] & 0x7fffffffu);
            t->state[i] = t->state[(i + 397) % 624] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
        }
        t->at = 0;
    }
    uint32_t y = t->state[t->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

/* Permutes like RandomState.permutation: a shuffle from the end; numbers below i come from rejection under the next
 * mask of ones. */
static void numpy_permutation(int32_t *order, int64_t n) {
    struct twister t;
    twister_start(&t, NUMPY_SEED);
    for (int64_t i = 0; i < n; i++) order[i] = (int32_t)i;
    for (int64_t i = n - 1; i > 0; i--) {
        uint32_t mask = (uint32_t)power_of_two(i + 1) - 1, j;
        do j = twister_next(&t) & mask;
        while (j > (uint32_t)i);
        int32_t kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* Sides of the walked area in positions: the image, its transpose, or the square of pad=yes. */
struct area {
    int64_t rows, columns;
};

static struct area area_of(const struct image *im) {
    struct area a = {im->height / im->patch, im->width / im->patch};
    if (im->pad) a.rows = a.columns = power_of_two(a.rows > a.columns ? a.rows : a.columns);
    if (im->transpose) a = (struct area){a.columns, a.rows};
    return a;
}

/* The pixel at step i of the walk; false outside the area. */
static bool pixel_of_step(int order, struct area a, int64_t i, struct pixel *p) {
    int64_t side = power_of_two(a.rows > a.columns ? a.rows : a.columns), n = a.rows * a.columns;
    if (order == ORDER_BITREV) i = reversed_bits(i, power_of_two(n));
    *p = (struct pixel){i / a.columns, i % a.columns};
    if (order == ORDER_SNAKE && p->row % 2) p->column = a.columns - 1 - p->column;
    if (order == ORDER_MORTON) *p = morton(i);
    if (order == ORDER_HILBERT) *p = hilbert(i, side);
    return p->row < a.rows && p->column < a.columns;
}

/* Number of steps of the walk, including steps outside the area. */
static int64_t walk_length(int order, struct area a) {
    int64_t side = power_of_two(a.rows > a.columns ? a.rows : a.columns), n = a.rows * a.columns;
    if (order == ORDER_MORTON || order == ORDER_HILBERT) return side * side;
    return order == ORDER_BITREV ? power_of_two(n) : n;
}

static int32_t pixel_number(const struct image *im, struct pixel p) {
    int64_t rows = im->height / im->patch, columns = im->width / im->patch;
    if (im->transpose) p = (struct pixel){p.column, p.row};
    return p.row < rows && p.column < columns ? (int32_t)(p.row * columns + p.column) : -1;
}

static void make_order(const struct image *im, int32_t *visit) {
    struct area a = area_of(im);
    struct pixel p;
    int64_t n = 0;
    if (im->order == ORDER_NUMPY) {
        numpy_permutation(visit, im->T);
        for (; n < im->T; n++) visit[n] = pixel_number(im, (struct pixel){visit[n] / a.columns, visit[n] % a.columns});
        return;
    }
    for (int64_t i = 0; i < walk_length(im->order, a); i++)
        if (pixel_of_step(im->order, a, i, &p)) visit[n++] = pixel_number(im, p);
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

static const char *const split_names[SPLIT_COUNT] = {"train", "val", "test"};

enum status image_open(struct image *im, const char *task, const int64_t most[SPLIT_COUNT], bool bounded,
                       struct arena *host, struct error *e) {
    if (im->height % im->patch || im->width % im->patch)
        return fail(e, ST_USAGE,
                    "%s: patch=%lld does not divide the sides of an image of %lld x %lld pixels; take one that divides "
                    "both",
                    task, (long long)im->patch, (long long)im->height, (long long)im->width);
    struct area a = area_of(im);
    for (int split = 0; split < SPLIT_COUNT; split++) {
        im->examples[split] = im->wanted[split] ? im->wanted[split] : most[split];
        if (bounded && im->examples[split] > most[split])
            return fail(e, ST_USAGE, "%s: n_%s=%lld, but there are only %lld images", task, split_names[split],
                        (long long)im->examples[split], (long long)most[split]);
    }
    im->T = a.rows * a.columns;
    im->visit = NULL;
    if (im->order == ORDER_RASTER && !im->transpose && !im->pad) return ST_OK;
    int32_t *visit = arena_alloc(host, (size_t)im->T * sizeof *visit);
    if (!visit) return fail(e, ST_MEMORY, "%s: no room for the order of %lld pixels", task, (long long)im->T);
    make_order(im, visit);
    im->visit = visit;
    return ST_OK;
}

void image_shape(const struct image *im, int64_t labels, struct task_shape *out) {
    shape_of_labels(out, im->T, labels);
    out->channels = image_values(im);
    out->height = im->height / im->patch;
    out->width = im->width / im->patch;
    out->reading.patch = im->patch;
    out->reading.visit = im->visit;
    memcpy(out->examples, im->examples, sizeof out->examples);
}

/* --- examples ----------------------------------------------------------------------------------------------------- */

struct rng image_rng(const struct image *im, enum split split, int64_t index) {
    return example_rng(im->seed, split, index);
}

/* Channel c of a pixel is pixels[pixel * stride + c * step]. */
static void put_pixels(const struct image *im, const uint8_t *pixels, int64_t stride, int64_t step, struct example *x) {
    real value[IMAGE_CHANNELS][256];
    int64_t C = im->channels, P = im->patch, across = im->width / P;
    for (int64_t c = 0; c < C; c++)
        for (int p = 0; p < 256; p++) value[c][p] = (real)(((double)p / 255 - im->level[c].mean) / im->level[c].sd);
    for (int64_t t = 0; t < im->T; t++) {
        int64_t at = im->visit ? im->visit[t] : t, corner = at / across * P * im->width + at % across * P;
        real *to = x->values + t * P * P * C;
        for (int64_t i = 0; i < P * P; i++) {
            int64_t pixel = corner + i / P * im->width + i % P;
            for (int64_t c = 0; c < C; c++) to[i * C + c] = at < 0 ? 0 : value[c][pixels[pixel * stride + c * step]];
        }
    }
}

static void put_label(const struct image *im, int32_t label, struct example *x) {
    x->targets[0] = label;
    x->length = (int32_t)im->T;
}

void image_put(const struct image *im, const uint8_t *pixels, int32_t label, struct example *x) {
    put_pixels(im, pixels, im->channels, 1, x);
    put_label(im, label, x);
}

void image_put_grey(const struct image *im, const uint8_t *grey, int32_t label, struct example *x) {
    put_pixels(im, grey, 1, 0, x);
    put_label(im, label, x);
}

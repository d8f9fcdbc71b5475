/* digits.c - digits drawn with a pen: our own stand-in for MNIST, never reported as MNIST.
 *
 *   shape     a digit's strokes in one of two ways of writing it: straight lines or Catmull-Rom curves through points
 *             of the unit square, each point moved by up to 0.05 distort
 *   affine    up to 15 degrees of rotation, 0.25 of shear, 0.75..1.05 times the size on each axis, and shifts, times
 *             distort
 *   pen       a disc of radius 0.7..1.5 pixels (at size 28), its edge one pixel soft, of grey 0.7..1
 *   clutter   that many stray strokes of up to a third of the image's size, fainter than the digit
 *   noise     of that standard deviation on each pixel
 *
 * Labels are uniform. Grey is rounded to a byte, and its value is p / 255, as MNIST's (smnist.c). Only sums, products
 * and square roots are used, so that bits are equal on every machine. */
#include <math.h>
#include <string.h>

#include "tasks/image/image.h"

#define MAX_SIDE    64
#define MAX_STROKES 3
#define MAX_POINTS  9
#define PIECES      6 /* straight pieces between two points of a curve */

struct digits {
    struct image image;
    int64_t size, clutter;
    double noise, distort;
};

static const struct option options[] = {
    {"size", OPT_INT, offsetof(struct digits, size), "28", 8, MAX_SIDE, NULL, "pixels a side", OPT_AXIS},
    {"noise", OPT_REAL, offsetof(struct digits, noise), "0.1", 0, 1, NULL, "standard deviation; white is 1", OPT_AXIS},
    {"distort", OPT_REAL, offsetof(struct digits, distort), "1", 0, 2, NULL,
     "variation of strokes, slant, size and place; 0: none", OPT_AXIS},
    {"clutter", OPT_INT, offsetof(struct digits, clutter), "1", 0, 16, NULL, "stray strokes", OPT_AXIS},
    IMAGE_OPTIONS(struct digits, image),
    {0},
};

/* --- shapes ------------------------------------------------------------------------------------------------------- */

struct point {
    double x, y; /* x to the right, y down */
};

struct stroke {
    int n;
    bool curved;
    struct point at[MAX_POINTS];
};

struct glyph {
    int label, n;
    struct stroke stroke[MAX_STROKES];
};

/* Two ways of writing each digit. */
static const struct glyph glyphs[][2] = {
    {{0,
      1,
      {{9, true, {{.5, .07}, {.27, .2}, {.2, .5}, {.28, .82}, {.5, .94}, {.72, .8}, {.8, .5}, {.7, .18}, {.5, .07}}}}},
     {0,
      1,
      {{9,
        true,
        {{.56, .07}, {.33, .2}, {.27, .5}, {.32, .82}, {.46, .94}, {.66, .8}, {.74, .5}, {.7, .2}, {.5, .1}}}}}},
    {{1, 1, {{2, false, {{.5, .07}, {.5, .94}}}}},
     {1, 2, {{3, false, {{.3, .28}, {.54, .08}, {.54, .92}}}, {2, false, {{.34, .93}, {.74, .93}}}}}},
    {{2,
      2,
      {{6, true, {{.24, .28}, {.36, .1}, {.62, .09}, {.75, .28}, {.6, .54}, {.24, .91}}},
       {2, false, {{.24, .91}, {.8, .91}}}}},
     {2,
      1,
      {{9,
        true,
        {{.24, .24}, {.42, .08}, {.68, .14}, {.72, .36}, {.5, .66}, {.24, .9}, {.32, .76}, {.52, .88}, {.8, .9}}}}}},
    {{3,
      2,
      {{5, true, {{.25, .18}, {.48, .07}, {.72, .2}, {.65, .42}, {.44, .48}}},
       {5, true, {{.44, .48}, {.72, .55}, {.76, .78}, {.52, .94}, {.22, .83}}}}},
     {3,
      2,
      {{3, false, {{.25, .1}, {.73, .1}, {.46, .44}}},
       {5, true, {{.46, .44}, {.72, .52}, {.76, .76}, {.52, .94}, {.22, .84}}}}}},
    {{4, 2, {{3, false, {{.58, .07}, {.2, .64}, {.82, .64}}}, {2, false, {{.62, .34}, {.62, .94}}}}},
     {4, 2, {{3, false, {{.28, .1}, {.24, .54}, {.78, .54}}}, {2, false, {{.68, .08}, {.64, .94}}}}}},
    {{5,
      2,
      {{3, false, {{.74, .1}, {.33, .1}, {.29, .46}}},
       {6, true, {{.29, .46}, {.54, .38}, {.76, .58}, {.7, .84}, {.46, .94}, {.23, .84}}}}},
     {5,
      2,
      {{6, true, {{.38, .12}, {.32, .44}, {.56, .42}, {.74, .64}, {.6, .9}, {.26, .9}}},
       {2, false, {{.38, .11}, {.76, .08}}}}}},
    {{6,
      1,
      {{9,
        true,
        {{.68, .1}, {.4, .3}, {.26, .62}, {.36, .88}, {.6, .92}, {.75, .72}, {.6, .54}, {.4, .56}, {.28, .72}}}}},
     {6,
      1,
      {{8, true, {{.44, .06}, {.3, .36}, {.26, .7}, {.42, .93}, {.66, .88}, {.72, .68}, {.52, .56}, {.28, .68}}}}}},
    {{7, 1, {{3, false, {{.22, .12}, {.78, .12}, {.42, .94}}}}},
     {7, 2, {{4, true, {{.24, .14}, {.52, .13}, {.76, .1}, {.4, .94}}}, {2, false, {{.34, .5}, {.74, .48}}}}}},
    {{8,
      1,
      {{9,
        true,
        {{.5, .5}, {.28, .28}, {.5, .07}, {.72, .28}, {.5, .5}, {.25, .72}, {.5, .94}, {.75, .72}, {.5, .5}}}}},
     {8,
      1,
      {{9,
        true,
        {{.7, .16}, {.46, .07}, {.3, .26}, {.5, .46}, {.74, .7}, {.52, .94}, {.26, .76}, {.48, .48}, {.72, .18}}}}}},
    {{9,
      2,
      {{6, true, {{.72, .28}, {.5, .07}, {.27, .26}, {.42, .5}, {.66, .42}, {.72, .28}}},
       {2, false, {{.72, .28}, {.68, .94}}}}},
     {9,
      1,
      {{9,
        true,
        {{.7, .26}, {.52, .07}, {.28, .24}, {.4, .48}, {.62, .44}, {.71, .24}, {.74, .56}, {.6, .88}, {.32, .92}}}}}},
};

/* Returns a point between b and c of a curve through a, b, c, d. */
static struct point between(const struct point *p, double u) {
    double a = ((2 - u) * u - 1) * u / 2, b = ((3 * u - 5) * u * u + 2) / 2, c = ((4 - 3 * u) * u + 1) * u / 2,
           d = (u - 1) * u * u / 2;
    return (struct point){a * p[0].x + b * p[1].x + c * p[2].x + d * p[3].x,
                          a * p[0].y + b * p[1].y + c * p[2].y + d * p[3].y};
}

/* --- drawing ------------------------------------------------------------------------------------------------------ */

/* Squared distances from the pen's line in pixels, near the line only. */
struct canvas {
    int64_t size;
    double reach; /* distance beyond which there is no ink */
    float near[MAX_SIDE * MAX_SIDE];
};

static void clear(struct canvas *c, int64_t size, double reach) {
    c->size = size;
    c->reach = reach;
    for (int64_t i = 0; i < size * size; i++) c->near[i] = 1e9f;
}

static int64_t cut(double x, int64_t size) {
    return x < 0 ? 0 : x > (double)(size - 1) ? size - 1 : (int64_t)x;
}

/* Takes the distances to a straight line from a to b; pixel (row, column) has its centre at (column + 0.5, row +
 * 0.5). */
static void line(struct canvas *c, struct point a, struct point b) {
    double dx = b.x - a.x, dy = b.y - a.y, length2 = dx * dx + dy * dy;
    float inverse = length2 > 0 ? (float)(1 / length2) : 0;
    int64_t top = cut(fmin(a.y, b.y) - c->reach, c->size), bottom = cut(fmax(a.y, b.y) + c->reach, c->size);
    int64_t left = cut(fmin(a.x, b.x) - c->reach, c->size), right = cut(fmax(a.x, b.x) + c->reach, c->size);
    for (int64_t row = top; row <= bottom; row++)
        for (int64_t column = left; column <= right; column++) {
            float px = (float)((double)column + 0.5 - a.x), py = (float)((double)row + 0.5 - a.y);
            float along = (px * (float)dx + py * (float)dy) * inverse;
            along = along < 0 ? 0 : along > 1 ? 1 : along;
            float ex = px - along * (float)dx, ey = py - along * (float)dy, d2 = ex * ex + ey * ey;
            float *near = &c->near[row * c->size + column];
            if (d2 < *near) *near = d2;
        }
}

static void draw_stroke(struct canvas *c, const struct stroke *s) {
    for (int i = 0; i + 1 < s->n; i++) {
        const struct point *first = &s->at[i > 0 ? i - 1 : 0], *last = &s->at[i + 2 < s->n ? i + 2 : s->n - 1];
        struct point through[4] = {*first, s->at[i], s->at[i + 1], *last}, from = s->at[i];
        int pieces = s->curved ? PIECES : 1;
        for (int k = 1; k <= pieces; k++) {
            struct point to = k == pieces ? s->at[i + 1] : between(through, (double)k / pieces);
            line(c, from, to);
            from = to;
        }
    }
}

/* Lays ink of that grey over the pixels, with a pen of radius `pen` and an edge one pixel soft. */
static void ink(const struct canvas *c, double pen, double grey, double *pixels) {
    for (int64_t i = 0; i < c->size * c->size; i++) {
        if (c->near[i] >= (float)(c->reach * c->reach)) continue;
        double cover = pen + 0.5 - sqrt((double)c->near[i]);
        double y = grey * (cover <= 0 ? 0 : cover >= 1 ? 1 : cover);
        if (y > pixels[i]) pixels[i] = y;
    }
}

/* Maps the unit square to pixels. */
struct affine {
    double xx, xy, yx, yy, x, y;
};

static struct affine draw_affine(const struct digits *w, struct rng *r) {
    double by = w->distort, half = 0.1317 * by * rng_signed(r); /* tangent of half the angle: up to 15 degrees */
    double cosine = (1 - half * half) / (1 + half * half), sine = 2 * half / (1 + half * half);
    double shear = 0.25 * by * rng_signed(r), side = (double)w->size * 20 / 28;
    double across = side * (0.9 + 0.15 * by * rng_signed(r)), down = side * (0.95 + 0.1 * by * rng_signed(r));
    struct affine a = {.xx = across * cosine, .yx = across * sine};
    a.xy = -down * sine + shear * across * cosine;
    a.yy = down * cosine + shear * across * sine;
    a.x = (double)w->size * (0.5 + 0.06 * by * rng_signed(r));
    a.y = (double)w->size * (0.5 + 0.06 * by * rng_signed(r));
    return a;
}

static struct point placed(const struct affine *a, struct point p) {
    double x = p.x - 0.5, y = p.y - 0.5;
    return (struct point){a->xx * x + a->xy * y + a->x, a->yx * x + a->yy * y + a->y};
}

static void draw_digit(const struct digits *w, struct rng *r, const struct glyph *glyph, struct canvas *c,
                       double *pixels) {
    double pen = (1.1 + 0.4 * rng_signed(r)) * (double)w->size / 28, grey = 0.85 + 0.15 * rng_signed(r);
    struct affine to = draw_affine(w, r);
    clear(c, w->size, pen + 0.5);
    for (int s = 0; s < glyph->n; s++) {
        struct stroke stroke = glyph->stroke[s];
        for (int i = 0; i < stroke.n; i++) {
            struct point moved = {stroke.at[i].x + 0.05 * w->distort * rng_signed(r),
                                  stroke.at[i].y + 0.05 * w->distort * rng_signed(r)};
            stroke.at[i] = placed(&to, moved);
        }
        draw_stroke(c, &stroke);
    }
    ink(c, pen, grey, pixels);
}

static void draw_clutter(const struct digits *w, struct rng *r, struct canvas *c, double *pixels) {
    for (int64_t i = 0; i < w->clutter; i++) {
        double pen = (0.8 + 0.3 * rng_signed(r)) * (double)w->size / 28, grey = 0.5 + 0.2 * rng_signed(r);
        double side = (double)w->size;
        struct point from = {side * rng_uniform(r), side * rng_uniform(r)};
        struct point to = {from.x + side / 3 * rng_signed(r), from.y + side / 3 * rng_signed(r)};
        clear(c, w->size, pen + 0.5);
        line(c, from, to);
        ink(c, pen, grey, pixels);
    }
}

/* --- the task ----------------------------------------------------------------------------------------------------- */

static enum status digits_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    static const int64_t standard[SPLIT_COUNT] = {54000, 6000, 10000};
    struct digits *w = inst;
    w->image.seed = seed;
    w->image.height = w->image.width = w->size;
    w->image.channels = 1;
    w->image.level[0] = (struct image_level){0, 1};
    return image_open(&w->image, "digits", standard, false, host, e);
}

static void digits_shape(const void *inst, struct task_shape *out) {
    const struct digits *w = inst;
    image_shape(&w->image, 10, out);
}

static void digits_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct digits *w = inst;
    struct rng r = image_rng(&w->image, split, index);
    struct canvas c;
    double pixels[MAX_SIDE * MAX_SIDE];
    uint8_t bytes[MAX_SIDE * MAX_SIDE];
    int64_t n = w->size * w->size;
    int32_t label = (int32_t)rng_below(&r, 10);
    const struct glyph *glyph = &glyphs[label][rng_below(&r, 2)];
    memset(pixels, 0, (size_t)n * sizeof *pixels);
    draw_clutter(w, &r, &c, pixels);
    draw_digit(w, &r, glyph, &c, pixels);
    for (int64_t i = 0; i < n; i++)
        bytes[i] = image_byte(w->noise > 0 ? pixels[i] + w->noise * rng_bell(&r) : pixels[i]);
    image_put(&w->image, bytes, glyph->label, x);
}

_Static_assert(sizeof(struct digits) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_digits = {
    .name = "digits",
    .summary = "digits drawn with a pen, slanted, cluttered and noisy, as sequences of pixels (this project)",
    .suite = "images",
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct digits),
    .open = digits_open,
    .shape = digits_shape,
    .fill = digits_fill,
};

/* shapes.c - coloured, textured shapes on textured ground: our own stand-in for CIFAR, never reported as CIFAR.
 *
 *   label     disc, ring, half disc, crescent, triangle, square, star, cross, an L, arrow; uniform
 *   place     any rotation, mirrored or not, radius 0.28..0.44 of the side, wholly inside the picture
 *   colours   two for the shape, two for the ground, uniform in the cube; the means of both pairs are at least
 *             `contrast` apart
 *   texture   of shape and ground, one of plain, stripes, checks, dots, grain, at any angle and a period of 3..8
 *             pixels; it is independent of the label
 *   noise     of that standard deviation on each value
 *
 * Each pixel has four samples. Values are p / 127.5 - 1 of the rounded byte p. Only sums, products and square roots are
 * used, as in digits.c. */
#include <math.h>

#include "tasks/image/image.h"

#define MAX_SIDE   64
#define LABELS     10
#define MAX_CORNER 10

struct shapes {
    struct image image;
    int64_t size;
    double noise, contrast;
};

static const struct option options[] = {
    {"size", OPT_INT, offsetof(struct shapes, size), "32", 12, MAX_SIDE, NULL, "pixels a side", OPT_AXIS},
    {"noise", OPT_REAL, offsetof(struct shapes, noise), "0.05", 0, 1, NULL, "standard deviation; full intensity is 1",
     OPT_AXIS},
    {"contrast", OPT_REAL, offsetof(struct shapes, contrast), "0.5", 0, 0.8, NULL,
     "least distance between the mean colours of shape and ground; black to white is 1.73", OPT_AXIS},
    IMAGE_OPTIONS(struct shapes, image),
    {0},
};

/* --- shapes, within the unit disc --------------------------------------------------------------------------------- */

struct point {
    double x, y;
};

struct polygon {
    int n; /* 0: none; a round shape */
    struct point corner[MAX_CORNER];
};

enum { DISC, RING, HALF_DISC, CRESCENT };

static const struct polygon polygons[LABELS] = {
    [4] = {3, {{0, -1}, {0.866, 0.5}, {-0.866, 0.5}}},
    [5] = {4, {{0.707, 0.707}, {-0.707, 0.707}, {-0.707, -0.707}, {0.707, -0.707}}},
    [6] = {10,
           {{0, -1},
            {0.235, -0.324},
            {0.951, -0.309},
            {0.38, 0.124},
            {0.588, 0.809},
            {0, 0.4},
            {-0.588, 0.809},
            {-0.38, 0.124},
            {-0.951, -0.309},
            {-0.235, -0.324}}},
    [8] = {6, {{-0.6, -0.8}, {-0.15, -0.8}, {-0.15, 0.35}, {0.6, 0.35}, {0.6, 0.8}, {-0.6, 0.8}}},
    [9] = {7, {{0, -1}, {0.75, -0.1}, {0.25, -0.1}, {0.25, 0.95}, {-0.25, 0.95}, {-0.25, -0.1}, {-0.75, -0.1}}},
};

/* Whether a ray from p to the right crosses the outline an odd number of times. */
static bool in_polygon(const struct polygon *s, struct point p) {
    bool inside = false;
    for (int i = 0, j = s->n - 1; i < s->n; j = i++) {
        struct point a = s->corner[i], b = s->corner[j];
        bool right = (p.x - a.x) * (b.y - a.y) < (b.x - a.x) * (p.y - a.y);
        if ((a.y > p.y) != (b.y > p.y) && right == (b.y > a.y)) inside = !inside;
    }
    return inside;
}

static bool in_shape(int label, struct point p) {
    double r2 = p.x * p.x + p.y * p.y, dx = p.x - 0.45;
    if (r2 > 1) return false;
    switch (label) {
    case DISC:
        return r2 < 0.81;
    case RING:
        return r2 > 0.3;
    case HALF_DISC:
        return p.y > 0;
    case CRESCENT:
        return dx * dx + p.y * p.y > 0.6;
    case 7: /* a cross */
        return (fabs(p.x) < 0.27 && fabs(p.y) < 0.95) || (fabs(p.y) < 0.27 && fabs(p.x) < 0.95);
    default:
        return in_polygon(&polygons[label], p);
    }
}

/* --- colours and textures ----------------------------------------------------------------------------------------- */

enum texture { PLAIN, STRIPES, CHECKS, DOTS, GRAIN, TEXTURES };

struct surface {
    enum texture texture;
    double colour[2][IMAGE_CHANNELS];
    struct point along; /* one period, as steps per pixel */
};

/* A uniform direction, by rejection from the square, without trigonometry. */
static struct point draw_direction(struct rng *r) {
    for (;;) {
        struct point p = {rng_signed(r), rng_signed(r)};
        double n = p.x * p.x + p.y * p.y;
        if (n > 1 || n < 0.01) continue;
        n = sqrt(n);
        return (struct point){p.x / n, p.y / n};
    }
}

static void draw_surface(struct rng *r, struct surface *s) {
    s->texture = (enum texture)rng_below(r, TEXTURES);
    double period = 3 + 5 * rng_uniform(r);
    s->along = draw_direction(r);
    s->along.x /= period;
    s->along.y /= period;
    for (int i = 0; i < 2; i++)
        for (int c = 0; c < IMAGE_CHANNELS; c++) s->colour[i][c] = rng_uniform(r);
}

/* Squared distance of the mean colours. */
static double apart2(const struct surface *a, const struct surface *b) {
    double sum = 0;
    for (int c = 0; c < IMAGE_CHANNELS; c++) {
        double d = (a->colour[0][c] + a->colour[1][c] - b->colour[0][c] - b->colour[1][c]) / 2;
        sum += d * d;
    }
    return sum;
}

/* The share of the second colour at a point of the picture, in pixels. */
static double second_colour(const struct surface *s, struct point p, double grain) {
    double u = p.x * s->along.x + p.y * s->along.y, v = p.y * s->along.x - p.x * s->along.y;
    double fu = u - floor(u), fv = v - floor(v);
    switch (s->texture) {
    case STRIPES:
        return fu < 0.5;
    case CHECKS:
        return (fu < 0.5) != (fv < 0.5);
    case DOTS:
        return (fu - 0.5) * (fu - 0.5) + (fv - 0.5) * (fv - 0.5) < 0.09;
    case GRAIN:
        return grain;
    default:
        return 0;
    }
}

/* --- the picture -------------------------------------------------------------------------------------------------- */

struct scene {
    int32_t label;
    struct point at, turn; /* centre in pixels; cosine and sine over the radius */
    double mirror;
    struct surface surface[2]; /* of ground and shape */
};

static void draw_scene(const struct shapes *w, struct rng *r, struct scene *s) {
    double side = (double)w->size, radius = side * (0.28 + 0.16 * rng_uniform(r));
    s->label = (int32_t)rng_below(r, LABELS);
    s->at.x = radius + (side - 2 * radius) * rng_uniform(r);
    s->at.y = radius + (side - 2 * radius) * rng_uniform(r);
    s->turn = draw_direction(r);
    s->turn.x /= radius;
    s->turn.y /= radius;
    s->mirror = rng_below(r, 2) ? 1 : -1;
    do {
        draw_surface(r, &s->surface[0]);
        draw_surface(r, &s->surface[1]);
    } while (apart2(&s->surface[0], &s->surface[1]) < w->contrast * w->contrast);
}

/* Adds the colour of one sample of a pixel. */
static void sample(const struct scene *s, struct point p, double grain, double *colour) {
    double dx = p.x - s->at.x, dy = p.y - s->at.y;
    struct point q = {s->mirror * (dx * s->turn.x + dy * s->turn.y), dy * s->turn.x - dx * s->turn.y};
    const struct surface *surface = &s->surface[in_shape(s->label, q)];
    double second = second_colour(surface, p, grain);
    for (int c = 0; c < IMAGE_CHANNELS; c++)
        colour[c] += surface->colour[0][c] + second * (surface->colour[1][c] - surface->colour[0][c]);
}

static enum status shapes_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    static const int64_t standard[SPLIT_COUNT] = {45000, 5000, 10000};
    struct shapes *w = inst;
    w->image.seed = seed;
    w->image.height = w->image.width = w->size;
    w->image.channels = IMAGE_CHANNELS;
    for (int c = 0; c < IMAGE_CHANNELS; c++) w->image.level[c] = (struct image_level){0.5, 0.5};
    return image_open(&w->image, "shapes", standard, false, host, e);
}

static void shapes_shape(const void *inst, struct task_shape *out) {
    const struct shapes *w = inst;
    image_shape(&w->image, LABELS, out);
}

static void shapes_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct shapes *w = inst;
    struct rng r = image_rng(&w->image, split, index);
    struct scene s;
    uint8_t bytes[MAX_SIDE * MAX_SIDE * IMAGE_CHANNELS];
    draw_scene(w, &r, &s);
    for (int64_t row = 0; row < w->size; row++)
        for (int64_t column = 0; column < w->size; column++) {
            double colour[IMAGE_CHANNELS] = {0, 0, 0}, grain = rng_uniform(&r);
            for (int k = 0; k < 4; k++) {
                struct point p = {(double)column + 0.25 + 0.5 * (k & 1), (double)row + 0.25 + 0.5 * (k >> 1)};
                sample(&s, p, grain, colour);
            }
            for (int c = 0; c < IMAGE_CHANNELS; c++)
                bytes[(row * w->size + column) * IMAGE_CHANNELS + c] =
                    image_byte(colour[c] / 4 + w->noise * rng_bell(&r));
        }
    image_put(&w->image, bytes, s.label, x);
}

_Static_assert(sizeof(struct shapes) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_shapes = {
    .name = "shapes",
    .summary = "coloured, textured shapes at any angle, as sequences of pixels (this project)",
    .suite = "images",
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct shapes),
    .open = shapes_open,
    .shape = shapes_shape,
    .fill = shapes_fill,
};

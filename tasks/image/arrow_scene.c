/* arrow_scene.c - see arrow_scene.h. Angles are uniform without trigonometry: the bits of a random number choose halves
 * of an arc. Nothing but sums, products and square roots, which are exact to the last bit on every machine. */
#include "tasks/image/arrow_scene.h"

#include <math.h>
#include <string.h>

#define COS_BARB 0.87758256189037271612 /* of 0.5 rad */
#define SIN_BARB 0.47942553860420300027
#define HALVINGS 32 /* of an arc: one per bit */

/* --- directions --------------------------------------------------------------------------------------------------- */

/* Turns a by the angle of the unit vector b. */
static struct pathfinder_point turned(struct pathfinder_point a, struct pathfinder_point b) {
    return (struct pathfinder_point){a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};
}

static struct pathfinder_point mirrored(struct pathfinder_point a) {
    return (struct pathfinder_point){a.x, -a.y};
}

static struct pathfinder_point middle(struct pathfinder_point a, struct pathfinder_point b) {
    double x = a.x + b.x, y = a.y + b.y, n = sqrt(x * x + y * y);
    return (struct pathfinder_point){x / n, y / n};
}

/* A direction, uniform on the shorter arc between two others. */
static struct pathfinder_point draw_between(struct rng *r, struct pathfinder_point a, struct pathfinder_point b) {
    uint32_t bits = rng_u32(r);
    for (int i = 0; i < HALVINGS; i++, bits >>= 1) {
        struct pathfinder_point m = middle(a, b);
        if (bits & 1)
            a = m;
        else
            b = m;
    }
    return middle(a, b);
}

/* --- a picture ---------------------------------------------------------------------------------------------------- */

/* Draws a place on an axis, at least 2 r from the arrow, wrapped round the box. */
static double draw_apart(struct rng *r, double from, double radius, double box) {
    double c = from + 2 * radius + (box - 4 * radius) * rng_uniform(r);
    return c > box ? c - box : c;
}

/* Draws a direction: within the cone that meets the inner part of the disc, or anywhere outside the wider cone. In the
 * frame whose first axis goes from the arrow to the disc, the cone's edge is (sqrt(1 - sin^2), sin), and the outside is
 * symmetric about the opposite direction. */
static struct pathfinder_point draw_way(const struct arrow_sizes *w, struct rng *r, const struct arrow_scene *s) {
    double x = s->disc.x - s->arrow.x, y = s->disc.y - s->arrow.y, d = sqrt(x * x + y * y);
    double sine = (s->label ? s->radius / w->factor : s->radius * w->factor) / d;
    struct pathfinder_point edge = {sqrt(1 - sine * sine), sine}, far = {-1, 0}, ahead = {1, 0};
    bool left = rng_below(r, 2);
    struct pathfinder_point way = s->label ? draw_between(r, edge, ahead) : draw_between(r, edge, far);
    return turned(left ? mirrored(way) : way, (struct pathfinder_point){x / d, y / d});
}

void arrow_draw_scene(const struct arrow_sizes *w, int64_t size, struct rng *r, struct arrow_scene *s) {
    double margin = 2 * w->object, box = (double)size - 2 * margin;
    s->label = rng_uniform(r) < 0.5;
    s->length = floor(w->length * (1 + rng_uniform(r)));
    s->width = floor(w->width * (1 + rng_uniform(r)));
    s->arrow.x = box * rng_uniform(r);
    s->arrow.y = box * rng_uniform(r);
    s->radius = w->object * (1 + rng_uniform(r));
    s->disc.x = draw_apart(r, s->arrow.x, s->radius, box);
    s->disc.y = draw_apart(r, s->arrow.y, s->radius, box);
    s->way = draw_way(w, r, s);
    s->arrow.x += margin, s->arrow.y += margin;
    s->disc.x += margin, s->disc.y += margin;
}

void arrow_draw(const struct arrow_sizes *w, const struct arrow_scene *s, int64_t size, uint8_t *pixels) {
    double half = floor(s->length / 2), barb = floor(s->length / 2.5), edge = w->smooth ? 1 : 0;
    struct pathfinder_point tip = {s->arrow.x + half * s->way.x, s->arrow.y + half * s->way.y};
    struct pathfinder_point tail = {s->arrow.x - half * s->way.x, s->arrow.y - half * s->way.y};
    memset(pixels, 0, (size_t)(size * size));
    pathfinder_draw_dash(size, &(struct pathfinder_dash){tail, tip}, s->width / 2, edge, pixels);
    for (int side = -1; side <= 1; side += 2) {
        struct pathfinder_point back = turned(s->way, (struct pathfinder_point){COS_BARB, side * SIN_BARB});
        struct pathfinder_point end = {tip.x - barb * back.x, tip.y - barb * back.y};
        pathfinder_draw_dash(size, &(struct pathfinder_dash){tip, end}, s->width / 2, edge, pixels);
    }
    pathfinder_draw_dash(size, &(struct pathfinder_dash){s->disc, s->disc}, s->radius, edge, pixels);
    for (int64_t i = 0; i < size * size; i++) pixels[i] = (uint8_t)(255 - pixels[i]);
}

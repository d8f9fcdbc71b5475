/* pathfinder_scene.c - see pathfinder_scene.h. Only sums, products and square roots are used, as in digits.c. */
#include "tasks/image/pathfinder_scene.h"

#include <math.h>
#include <string.h>

#define DEGREE_COSINE 0.99984769515639123916 /* of one degree */
#define DEGREE_SINE   0.01745240643728351282
#define RADIAN        57.29577951308232 /* degrees */
#define STEPS_BACK    2                 /* dashes that each curve takes back if one is stuck */
#define MOST_BACK     150

void pathfinder_table_make(struct pathfinder_table *t) {
    double c = 1, s = 0;
    for (int i = 0; i < PATHFINDER_TURNS; i++) {
        t->direction[i] = (struct pathfinder_point){c, s};
        if (i <= 90) t->cosine_squared[i] = c * c;
        double next = c * DEGREE_COSINE - s * DEGREE_SINE;
        s = s * DEGREE_COSINE + c * DEGREE_SINE;
        c = next;
    }
    t->cosine_squared[90] = 0;
}

struct pathfinder_sizes pathfinder_standard(int64_t side) {
    static const struct pathfinder_sizes known[] = {{32, 14, 5, 4, 7, 1.5, 2, 0.5, 1, 0, 1.0},
                                                    {64, 14, 5, 4, 12, 2.5, 5, 1, 1, 0, 1.8},
                                                    {128, 14, 8, 4, 20, 3, 5, 1.5, 2, 3, 1.8},
                                                    {256, 14, 7, 4, 27, 5, 5, 2, 3, 0, 1.8}};
    int i = 0;
    while (i < 3 && known[i].side < side) i++;
    struct pathfinder_sizes w = known[i];
    double scale = (double)side / (double)w.side;
    if (scale == 1) return w;
    w.side = side;
    w.apart *= scale;
    w.marker = fmax(1, w.marker * scale);
    w.distractors = (int64_t)((double)w.distractors * scale * scale + 0.5);
    /* If a dash would become too small, shortens curves to fit into the image. */
    double dash = (w.length + 2 * w.margin) * scale;
    w.length = fmax(2, w.length * scale);
    w.margin = fmax(1, w.margin * scale);
    w.wide *= scale; /* only sides above 64 have a second margin, which stays above 1 */
    w.thickness = fmax(0.5, w.thickness * scale);
    double room = dash / (w.length + 2 * w.margin);
    w.contour = (int64_t)((double)w.contour * fmin(1, room * room) + 0.5);
    return w;
}

void pathfinder_choose(struct pathfinder_sizes *w, struct rng *r) {
    if (w->wide > 0 && rng_below(r, 2)) w->margin = w->wide;
    w->wide = 0;
}

/* --- distances ---------------------------------------------------------------------------------------------------- */

static double cut(double x) {
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

static double point_to_dash2(struct pathfinder_point p, const struct pathfinder_dash *d) {
    double dx = d->to.x - d->from.x, dy = d->to.y - d->from.y, length2 = dx * dx + dy * dy;
    double u = length2 > 0 ? cut(((p.x - d->from.x) * dx + (p.y - d->from.y) * dy) / length2) : 0;
    double ex = p.x - d->from.x - u * dx, ey = p.y - d->from.y - u * dy;
    return ex * ex + ey * ey;
}

/* Twice the signed area of the triangle. */
static double side_of(struct pathfinder_point a, struct pathfinder_point b, struct pathfinder_point c) {
    return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

static double distance2(const struct pathfinder_dash *a, const struct pathfinder_dash *b) {
    bool cross = side_of(a->from, a->to, b->from) * side_of(a->from, a->to, b->to) < 0 &&
                 side_of(b->from, b->to, a->from) * side_of(b->from, b->to, a->to) < 0;
    if (cross) return 0;
    return fmin(fmin(point_to_dash2(a->from, b), point_to_dash2(a->to, b)),
                fmin(point_to_dash2(b->from, a), point_to_dash2(b->to, a)));
}

double pathfinder_distance(const struct pathfinder_dash *a, const struct pathfinder_dash *b) {
    return sqrt(distance2(a, b));
}

double pathfinder_clearance(const struct pathfinder_sizes *w) {
    return 1.8 * w->margin + w->thickness;
}

/* --- growing ------------------------------------------------------------------------------------------------------ */

static struct pathfinder_point moved(struct pathfinder_point p, struct pathfinder_point direction, double by) {
    return (struct pathfinder_point){p.x + by * direction.x, p.y + by * direction.y};
}

static bool inside(const struct pathfinder_sizes *w, struct pathfinder_point p) {
    double pad = 1 + w->thickness / 2, far = (double)w->side - pad;
    return p.x >= pad && p.y >= pad && p.x <= far && p.y <= far;
}

/* Whether p is nearer to the dash than the root of least2; the dash has length sqrt(1 / inverse2). */
static bool is_near(struct pathfinder_point p, const struct pathfinder_dash *d, double inverse2, double least2) {
    double dx = d->to.x - d->from.x, dy = d->to.y - d->from.y, px = p.x - d->from.x, py = p.y - d->from.y;
    double u = (px * dx + py * dy) * inverse2;
    u = u < 0 ? 0 : u > 1 ? 1 : u;
    double ex = px - u * dx, ey = py - u * dy;
    return ex * ex + ey * ey < least2;
}

/* Whether a dash is inside the image and away from all others except number `follows` (-1: none). The distance of two
 * dashes is the least one from an end of one to the other dash; crossing dashes have an end within half a dash's
 * length, which is less than the clearance. */
static bool is_free(const struct pathfinder_sizes *w, const struct pathfinder_scene *s, const struct pathfinder_dash *d,
                    int follows) {
    double least = pathfinder_clearance(w), least2 = least * least, inverse2 = 1 / (w->length * w->length);
    double reach2 = (least + 2 * w->length) * (least + 2 * w->length);
    if (!inside(w, d->from) || !inside(w, d->to)) return false;
    for (int i = 0; i < s->n; i++) {
        const struct pathfinder_dash *other = &s->dash[i];
        double x = other->from.x - d->from.x, y = other->from.y - d->from.y;
        if (i == follows || x * x + y * y > reach2) continue;
        if (is_near(d->to, other, inverse2, least2) || is_near(d->from, other, inverse2, least2) ||
            is_near(other->from, d, inverse2, least2) || is_near(other->to, d, inverse2, least2))
            return false;
    }
    return true;
}

/* A curve that grows: its last dash and its direction. */
struct growth {
    int last, degrees;
};

static bool begin(const struct pathfinder_sizes *w, const struct pathfinder_table *t, struct pathfinder_scene *s,
                  struct pathfinder_point at, int degrees, struct growth *g) {
    struct pathfinder_dash d = {at, moved(at, t->direction[degrees], w->length)};
    if (!is_free(w, s, &d, -1)) return false;
    *g = (struct growth){s->n, degrees};
    s->dash[s->n++] = d;
    return true;
}

/* Adds a dash. Its direction has weight cos^2(continuity x turn); blocked directions are left out. */
static bool extend(const struct pathfinder_sizes *w, const struct pathfinder_table *t, struct rng *r,
                   struct pathfinder_scene *s, struct growth *g) {
    enum { MOST = 91 }; /* turns of 4 degrees or more, short of a whole one */
    struct pathfinder_dash choice[MOST];
    double weight[MOST], sum = 0;
    int degrees[MOST], n = 0, step = (int)(RADIAN / (w->length + w->margin) + 0.5);
    struct pathfinder_point at = moved(s->dash[g->last].to, t->direction[g->degrees], 2 * w->margin);
    if (step < 4) step = 4;
    int most = w->continuity > 0.5 ? (int)(90 / w->continuity) : PATHFINDER_TURNS / 2;
    for (int turn = -most / step * step; turn <= most && turn < PATHFINDER_TURNS / 2; turn += step) {
        int bent = (int)(w->continuity * (turn < 0 ? -turn : turn) + 0.5);
        if (bent >= 90) continue;
        degrees[n] = (g->degrees + turn + PATHFINDER_TURNS) % PATHFINDER_TURNS;
        choice[n] = (struct pathfinder_dash){at, moved(at, t->direction[degrees[n]], w->length)};
        if (!is_free(w, s, &choice[n], g->last)) continue;
        sum += weight[n] = t->cosine_squared[bent];
        n++;
    }
    if (n == 0) return false;
    double u = sum * rng_uniform(r);
    int i = 0;
    while (i + 1 < n && u >= weight[i]) u -= weight[i++];
    *g = (struct growth){s->n, degrees[i]};
    s->dash[s->n++] = choice[i];
    return true;
}

static int draw_degrees(struct rng *r) {
    return (int)rng_below(r, PATHFINDER_TURNS);
}

/* Grows the two long curves, dash by dash in turn; if one curve is stuck, both go some dashes back. Their dashes
 * alternate in the list until the end. */
static bool grow_targets(const struct pathfinder_sizes *w, const struct pathfinder_table *t, struct rng *r,
                         struct pathfinder_scene *s) {
    double border = 2 * w->apart, room = (double)w->side - 2 * border;
    struct growth g[PATHFINDER_MOST][2]; /* after each step */
    int back = 0;
    struct pathfinder_dash mixed[2 * PATHFINDER_MOST];
    struct pathfinder_point a = {border + room * rng_uniform(r), border + room * rng_uniform(r)};
    struct pathfinder_point b = moved(a, t->direction[draw_degrees(r)], w->apart);
    if (!begin(w, t, s, a, draw_degrees(r), &g[0][0]) || !begin(w, t, s, b, draw_degrees(r), &g[0][1])) return false;
    for (int64_t i = 1; i < w->contour;) {
        g[i][0] = g[i - 1][0];
        g[i][1] = g[i - 1][1];
        if (extend(w, t, r, s, &g[i][0]) && extend(w, t, r, s, &g[i][1])) {
            i++;
            continue;
        }
        if (back++ == MOST_BACK) return false;
        i = i > STEPS_BACK ? i - STEPS_BACK : 1;
        s->n = (int)(2 * i);
    }
    memcpy(mixed, s->dash, (size_t)s->n * sizeof *mixed);
    for (int i = 0; i < s->n; i++) s->dash[i % 2 * w->contour + i / 2] = mixed[i];
    s->first[0] = 0;
    s->first[1] = (int)w->contour;
    s->first[2] = s->n;
    return true;
}

/* Adds short curves anywhere; one that finds no place in five tries is left out. */
static void grow_distractors(const struct pathfinder_sizes *w, const struct pathfinder_table *t, struct rng *r,
                             struct pathfinder_scene *s) {
    for (int64_t i = 0; i < w->distractors; i++) {
        int before = s->n;
        bool whole = false;
        for (int tries = 0; tries < 5 && !whole; tries++) {
            struct growth g;
            struct pathfinder_point at = {(double)w->side * rng_uniform(r), (double)w->side * rng_uniform(r)};
            s->n = before;
            whole = begin(w, t, s, at, draw_degrees(r), &g);
            for (int64_t k = 1; k < w->distractor_length && whole; k++) whole = extend(w, t, r, s, &g);
        }
        if (!whole) s->n = before;
    }
}

bool pathfinder_try(const struct pathfinder_sizes *w, const struct pathfinder_table *t, struct rng *r,
                    struct pathfinder_scene *s) {
    s->n = 0;
    if (!grow_targets(w, t, r, s)) return false;
    grow_distractors(w, t, r, s);
    s->disc[0] = s->dash[s->first[0]].from;
    s->disc[1] = s->dash[s->first[s->label ? 1 : 2] - 1].to;
    return true;
}

/* --- pixels ------------------------------------------------------------------------------------------------------- */

static int64_t bound(double x, int64_t side) {
    return x < 0 ? 0 : x > (double)(side - 1) ? side - 1 : (int64_t)x;
}

/* The covered share of a pixel whose centre is that far from the dash. */
static double covered(double radius, double edge, double distance) {
    return edge > 0 ? cut((radius + 0.5 * edge - distance) / edge) : distance <= radius;
}

void pathfinder_draw_dash(int64_t side, const struct pathfinder_dash *d, double radius, double edge, uint8_t *pixels) {
    double reach = radius + 1;
    int64_t top = bound(fmin(d->from.y, d->to.y) - reach, side), bottom = bound(fmax(d->from.y, d->to.y) + reach, side);
    int64_t left = bound(fmin(d->from.x, d->to.x) - reach, side), right = bound(fmax(d->from.x, d->to.x) + reach, side);
    for (int64_t y = top; y <= bottom; y++)
        for (int64_t x = left; x <= right; x++) {
            struct pathfinder_point p = {(double)x + 0.5, (double)y + 0.5};
            double cover = covered(radius, edge, sqrt(point_to_dash2(p, d)));
            uint8_t bright = (uint8_t)(255 * cover + 0.5), *pixel = &pixels[y * side + x];
            if (bright > *pixel) *pixel = bright;
        }
}

void pathfinder_draw(const struct pathfinder_sizes *w, const struct pathfinder_scene *s, uint8_t *pixels) {
    memset(pixels, 0, (size_t)(w->side * w->side));
    for (int i = 0; i < s->n; i++) pathfinder_draw_dash(w->side, &s->dash[i], w->thickness / 2, 1, pixels);
    for (int i = 0; i < 2; i++)
        pathfinder_draw_dash(w->side, &(struct pathfinder_dash){s->disc[i], s->disc[i]}, w->marker, 1, pixels);
}

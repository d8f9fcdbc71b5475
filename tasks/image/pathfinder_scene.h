/* pathfinder_scene.h - the drawing of a Pathfinder image before it is pixels: dashed curves and two discs.
 *
 * Linsley et al. 2018 (drewlinsley/pathfinder), in the distribution of the Long Range Arena. Differences from that
 * code: dashes keep their distance by geometry, not by masks of pixels; a dash is drawn among all free directions, not
 * by at most three tries; if a curve is stuck, both go two dashes back before they begin anew; curves and distractors
 * are equally bright; sides other than 32, 64, 128 and 256 are scaled from the next larger one. */
#ifndef LRNN_TASKS_IMAGE_PATHFINDER_SCENE_H
#define LRNN_TASKS_IMAGE_PATHFINDER_SCENE_H

#include <stdbool.h>

#include "core/philox.h"

#define PATHFINDER_SIDE  256
#define PATHFINDER_TURNS 360 /* directions, one per degree */
#define PATHFINDER_MOST  32  /* dashes of a curve */
#define PATHFINDER_LOOSE 32  /* distractors */

struct pathfinder_sizes {
    int64_t side, contour, distractors, distractor_length; /* pixels; dashes; curves; dashes of one */
    double apart, marker, length, thickness, margin;       /* pixels: between the two beginnings; of a disc; a dash */
    double wide;       /* margin of a random half of the images; 0: all have the same */
    double continuity; /* larger values give straighter curves */
};

struct pathfinder_point {
    double x, y;
};

struct pathfinder_dash {
    struct pathfinder_point from, to;
};

/* Curves 0 and 1 are the two long ones. */
struct pathfinder_scene {
    int label; /* 1: both discs are at the ends of curve 0; 0: one at the end of each */
    struct pathfinder_point disc[2];
    int n, first[3]; /* dashes; where curves 0 and 1 and the distractors begin */
    struct pathfinder_dash dash[2 * PATHFINDER_MOST + PATHFINDER_LOOSE * PATHFINDER_MOST];
};

/* Directions and weights of turns, equal on every machine. */
struct pathfinder_table {
    struct pathfinder_point direction[PATHFINDER_TURNS];
    double cosine_squared[91]; /* of degrees */
};
void pathfinder_table_make(struct pathfinder_table *t);

/* Gives the sizes of the Long Range Arena's images of that side, or between two of them. */
struct pathfinder_sizes pathfinder_standard(int64_t side);

/* Draws which of the two margins an image has. Without a second margin nothing is drawn. */
void pathfinder_choose(struct pathfinder_sizes *w, struct rng *r);

/* Makes one attempt; false if a long curve gets stuck. */
bool pathfinder_try(const struct pathfinder_sizes *w, const struct pathfinder_table *t, struct rng *r,
                    struct pathfinder_scene *s);

/* The least distance of two dashes that do not follow each other. */
double pathfinder_clearance(const struct pathfinder_sizes *w);

/* The distance of two dashes. */
double pathfinder_distance(const struct pathfinder_dash *a, const struct pathfinder_dash *b);

/* Paints everything within `radius` of the dash white, on a picture (side, side). The edge is `edge` pixels soft, up to
 * 1; 0: a pixel is white if its centre is within. A disc is a dash without length. */
void pathfinder_draw_dash(int64_t side, const struct pathfinder_dash *d, double radius, double edge, uint8_t *pixels);

/* Writes the pixels (side, side) of the scene: white on black, edges one pixel soft. */
void pathfinder_draw(const struct pathfinder_sizes *w, const struct pathfinder_scene *s, uint8_t *pixels);

#endif

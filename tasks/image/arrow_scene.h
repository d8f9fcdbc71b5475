/* arrow_scene.h - the drawing of an arrow pointing image before it is pixels: an arrow and a disc.
 *
 *   label     1 (the arrow's ray passes the disc's centre within radius / factor) with probability 1/2, or 0 (it passes
 *             farther than factor * radius, or points away); distances between never occur
 *   arrow     length floor(U[length, 2 length)), width floor(U[width, 2 width)), barbs back from the tip of
 *             floor(length / 2.5) at 0.5 rad; its centre is uniform in the box of size - 4 object a side
 *   disc      filled, radius r of U[object, 2 object); on both axes at least 2 r from the arrow's centre, wrapped round
 *             the box
 *
 * A pixel is black if its centre lies in an object, or with smooth edges grey by its covered share; the authors draw
 * with PIL, whose lines differ in single pixels. pLSTM paper, App. G.2 (ml-jku/arrow_pointing_dataset). */
#ifndef LRNN_TASKS_IMAGE_ARROW_SCENE_H
#define LRNN_TASKS_IMAGE_ARROW_SCENE_H

#include "tasks/image/pathfinder_scene.h"

/* Least radius of a disc, length and width of an arrow, in pixels. 12 * object < size, length >= 2. */
struct arrow_sizes {
    double object, length, width, factor;
    bool smooth;
};

struct arrow_scene {
    int32_t label;
    double length, width, radius;             /* pixels; whole ones of the arrow */
    struct pathfinder_point arrow, disc, way; /* centres; direction of the arrow */
};

void arrow_draw_scene(const struct arrow_sizes *w, int64_t size, struct rng *r, struct arrow_scene *s);

/* Writes the pixels (size, size) of the scene, black on white. */
void arrow_draw(const struct arrow_sizes *w, const struct arrow_scene *s, int64_t size, uint8_t *pixels);

#endif

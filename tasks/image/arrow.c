/* arrow.c - arrow pointing: does the arrow point at the disc?
 *
 * A net trains at one size and is tested at that size and at a larger one. Objects keep their size in pixels, so
 * distances grow beyond all that the net has seen. arrow_scene.h describes the drawing.
 *
 * Three equal channels with ImageNet's mean and deviation. The defaults at size=192 are the authors' sizes; other sizes
 * have objects scaled with them.
 *
 * pLSTM paper (workshop version), App. G.2; ml-jku/arrow_pointing_dataset, ml-jku/plstm_experiments. */
#include <math.h>
#include <string.h>

#include "tasks/image/arrow_scene.h"
#include "tasks/image/image.h"

#define PAPER_SIDE   192.0
#define PAPER_OBJECT 15
#define PAPER_WIDTH  2
#define CLEAR        1.82 /* an arrow this near to its centre, in least radii, reaches no disc: below 2 sqrt(2) - 1 */

struct arrow {
    struct image image; /* in training */
    int64_t size, scale;
    struct arrow_sizes wanted; /* 0: the paper's, scaled to this size */

    struct arrow_sizes least; /* made by open */
};

static const struct option options[] = {
    {"size", OPT_INT, offsetof(struct arrow, size), "192", 20, IMAGE_SIDE, NULL, "pixels a side in training", OPT_AXIS},
    {"scale", OPT_INT, offsetof(struct arrow, scale), "2", 1, 8, NULL,
     "side of every second test image over `size`; 1: all have one size", OPT_AXIS},
    {"factor", OPT_REAL, offsetof(struct arrow, wanted.factor), "1.2", 1, 2.5, NULL,
     "least distance of the ray from the disc's edge, as a factor of the radius inwards or outwards", OPT_AXIS},
    {"object", OPT_REAL, offsetof(struct arrow, wanted.object), "0", 0, IMAGE_SIDE, NULL,
     "least radius of a disc in pixels, the largest is twice that; 0: 15 at size=192", OPT_AXIS},
    {"length", OPT_REAL, offsetof(struct arrow, wanted.length), "0", 0, IMAGE_SIDE, NULL,
     "least length of an arrow in pixels, the largest is below twice that; 0: 15 at size=192", OPT_AXIS},
    {"width", OPT_REAL, offsetof(struct arrow, wanted.width), "0", 0, IMAGE_SIDE, NULL,
     "least width of a line in pixels, the largest is below twice that; 0: 2 at size=192, at least 1", OPT_AXIS},
    {"smooth", OPT_BOOL, offsetof(struct arrow, wanted.smooth), "no", 0, 0, NULL,
     "edges one pixel soft, which small images need to show an angle", OPT_AXIS},
    IMAGE_OPTIONS(struct arrow, image),
    {0},
};

/* --- the task ----------------------------------------------------------------------------------------------------- */

static enum status check_sizes(const struct arrow *w, struct error *e) {
    if (12 * w->least.object >= (double)w->size)
        return fail(e, ST_USAGE,
                    "arrow: discs of object=%g have radii of up to %g pixels, which have no room beside an arrow in "
                    "size=%lld; object is less than a twelfth of size",
                    w->least.object, 2 * w->least.object, (long long)w->size);
    if (w->least.length < 2 || w->least.length + w->least.width / 2 > CLEAR * w->least.object)
        return fail(e, ST_USAGE,
                    "arrow: an arrow of length=%g and width=%g beside discs of object=%g: expected a length of 2 to "
                    "%g, with which no line but some of the widest reaches a disc",
                    w->least.length, w->least.width, w->least.object, CLEAR * w->least.object - w->least.width / 2);
    if (w->scale * w->size > IMAGE_SIDE)
        return fail(e, ST_USAGE, "arrow: size=%lld times scale=%lld is %lld pixels a side; there is room for %d",
                    (long long)w->size, (long long)w->scale, (long long)(w->scale * w->size), IMAGE_SIDE);
    return ST_OK;
}

static enum status arrow_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    static const int64_t standard[SPLIT_COUNT] = {100000, 5120, 20480};
    static const struct image_level imagenet[] = {{0.485, 0.229}, {0.456, 0.224}, {0.406, 0.225}};
    struct arrow *w = inst;
    double unit = (double)w->size / PAPER_SIDE;
    w->least = w->wanted;
    if (!(w->least.object > 0)) w->least.object = PAPER_OBJECT * unit;
    if (!(w->least.length > 0)) w->least.length = fmax(2, PAPER_OBJECT * unit);
    if (!(w->least.width > 0)) w->least.width = fmax(1, PAPER_WIDTH * unit);
    TRY(check_sizes(w, e));
    w->image.seed = seed;
    w->image.height = w->image.width = w->size;
    w->image.channels = IMAGE_CHANNELS;
    memcpy(w->image.level, imagenet, sizeof imagenet);
    TRY(image_open(&w->image, "arrow", standard, false, host, e));
    if (w->scale == 1 || !w->image.visit) return ST_OK;
    return fail(
        e, ST_USAGE,
        "arrow: scale=%lld has images of two sizes, and an order of visit is of one; leave order, transpose and "
        "pad out, or take scale=1",
        (long long)w->scale);
}

static void arrow_shape(const void *inst, struct task_shape *out) {
    const struct arrow *w = inst;
    image_shape(&w->image, 2, out);
    if (w->scale > 1) out->T_eval = w->image.T * w->scale * w->scale;
    out->unequal_test = w->scale > 1;
    out->solved = 0.95;
}

static void arrow_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct arrow *w = inst;
    struct rng r = image_rng(&w->image, split, index);
    struct arrow_scene s;
    struct image image = w->image;
    uint8_t grey[IMAGE_SIDE * IMAGE_SIDE];
    bool large = split == SPLIT_TEST && index % 2 == 1;
    if (large) {
        image.height = image.width = w->size * w->scale;
        image.T = w->image.T * w->scale * w->scale;
    }
    arrow_draw_scene(&w->least, image.height, &r, &s);
    arrow_draw(&w->least, &s, image.height, grey);
    image_put_grey(&image, grey, s.label, x);
    int64_t room = split == SPLIT_TRAIN ? w->image.T : w->image.T * w->scale * w->scale;
    for (int64_t i = image.T * image_values(&image); i < room * image_values(&image); i++) x->values[i] = 0;
}

_Static_assert(sizeof(struct arrow) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_arrow = {
    .name = "arrow",
    .summary = "does the arrow point at the disc, also in larger images? (pLSTM paper)",
    .suite = "arrow",
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct arrow),
    .open = arrow_open,
    .shape = arrow_shape,
    .fill = arrow_fill,
};

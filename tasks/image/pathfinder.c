/* pathfinder.c - Pathfinder and Path-X of the Long Range Arena: does one dashed curve join the two discs?
 *
 * Two long curves begin near each other and cross the picture among shorter ones. One disc marks the beginning of the
 * first curve, the other disc the end of the first (label 1) or of the second (label 0), by a fair coin. Values are p /
 * 255, neither shifted nor scaled. Images are drawn (pathfinder_scene.h), for any side; with released=yes they come
 * from `lrnn data import pathfinder32` and so on, on which papers report. Of the released images 80 % are for training,
 * 10 % for validation and 10 % for test, by a permutation with seed 42 (S4's split cannot be repeated).
 *
 * Linsley et al. 2018; Tay et al. 2021 (google-research/long-range-arena, lra_benchmarks/data/pathfinder.py). */
#include <stdio.h>
#include <string.h>

#include "tasks/image/file_images.h"
#include "tasks/image/pathfinder_scene.h"

#define PROBE_HITS  5    /* open must draw this many images .. */
#define PROBE_TRIES 2000 /* .. within this many attempts */

struct pathfinder {
    struct file_images from;
    struct pathfinder_sizes sizes; /* as asked for; 0 = auto */
    bool released;

    const struct pathfinder_table *table; /* made by open */
};

static const struct option options[] = {
    {"size", OPT_INT, offsetof(struct pathfinder, sizes.side), "32", 12, PATHFINDER_SIDE, NULL, "pixels a side",
     OPT_AXIS},
    {"released", OPT_BOOL, offsetof(struct pathfinder, released), "no", 0, 0, NULL,
     "images of the Long Range Arena, from `lrnn data import`", 0},
    {"contour", OPT_INT, offsetof(struct pathfinder, sizes.contour), "auto", 2, PATHFINDER_MOST, NULL,
     "dashes of a long curve; auto = 14, fewer where there is no room for them", OPT_AUTO | OPT_AXIS},
    {"distractors", OPT_INT, offsetof(struct pathfinder, sizes.distractors), "auto", 1, PATHFINDER_LOOSE, NULL,
     "short curves; auto = the Long Range Arena's 5 to 8, fewer on smaller images", OPT_AUTO | OPT_AXIS},
    {"continuity", OPT_REAL, offsetof(struct pathfinder, sizes.continuity), "0", 0, 5, NULL,
     "straightness of the curves; 0 = the Long Range Arena's 1 or 1.8", OPT_AXIS},
    FILE_IMAGES_OPTIONS(struct pathfinder, from),
    {0},
};

static const struct task_alias aliases[] = {
    {"pathx", "size=128", "16384 pixels"},
    {NULL, NULL, NULL},
};

static struct pathfinder_sizes sizes_of(const struct pathfinder *w) {
    struct pathfinder_sizes s = pathfinder_standard(w->sizes.side);
    if (w->sizes.contour) s.contour = w->sizes.contour;
    if (w->sizes.distractors) s.distractors = w->sizes.distractors;
    if (w->sizes.continuity > 0) s.continuity = w->sizes.continuity;
    return s;
}

/* --- drawn -------------------------------------------------------------------------------------------------------- */

/* Checks that random attempts succeed at these sizes. */
static enum status check_sizes(const struct pathfinder *w, struct arena *host, struct error *e) {
    struct pathfinder_sizes sizes = sizes_of(w);
    size_t mark = arena_mark(host);
    struct pathfinder_scene *scene = arena_alloc(host, sizeof *scene);
    int hits = 0, tries = 0;
    if (!scene) return fail(e, ST_MEMORY, "pathfinder: no room for an image");
    struct rng r = rng_at(0, STREAM_TABLE, 0);
    if (sizes.wide > 0) sizes.margin = sizes.wide; /* the wider margin leaves less room */
    for (scene->label = 0; hits < PROBE_HITS && tries < PROBE_TRIES; tries++)
        hits += pathfinder_try(&sizes, w->table, &r, scene);
    arena_release(host, mark);
    if (hits == PROBE_HITS) return ST_OK;
    return fail(
        e, ST_USAGE,
        "pathfinder: of %d attempts to draw two curves of contour=%lld dashes with continuity=%g into size=%lld "
        "pixels a side only %d had room; change one of the three",
        tries, (long long)sizes.contour, sizes.continuity, (long long)sizes.side, hits);
}

static enum status open_drawn(struct pathfinder *w, uint64_t seed, struct arena *host, struct error *e) {
    static const int64_t standard[SPLIT_COUNT] = {160000, 20000, 20000};
    struct pathfinder_table *table = arena_alloc(host, sizeof *table);
    struct image *im = &w->from.image;
    if (w->from.file[0] || w->from.content[0])
        return fail(e, ST_USAGE, "pathfinder: file= and content= are of released images; add released=yes");
    if (!table) return fail(e, ST_MEMORY, "pathfinder: no room for its tables");
    pathfinder_table_make(table);
    w->table = table;
    im->seed = seed;
    im->height = im->width = w->sizes.side;
    TRY(check_sizes(w, host, e));
    return image_open(im, "pathfinder", standard, false, host, e);
}

/* Draws the attempts of one stream, one after the other, until one succeeds. */
static void fill_drawn(const struct pathfinder *w, enum split split, int64_t index, struct example *x) {
    struct rng r = image_rng(&w->from.image, split, index);
    struct pathfinder_sizes sizes = sizes_of(w);
    struct pathfinder_scene scene;
    uint8_t pixels[PATHFINDER_SIDE * PATHFINDER_SIDE];
    scene.label = (int)rng_below(&r, 2);
    pathfinder_choose(&sizes, &r);
    while (!pathfinder_try(&sizes, w->table, &r, &scene)) continue;
    pathfinder_draw(&sizes, &scene, pixels);
    image_put(&w->from.image, pixels, scene.label, x);
}

/* --- the task ----------------------------------------------------------------------------------------------------- */

static enum status pathfinder_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    struct pathfinder *w = inst;
    char name[40];
    w->from.image.level[0] = (struct image_level){0, 1};
    w->from.image.channels = 1;
    if (!w->released) return open_drawn(w, seed, host, e);
    if (w->sizes.contour || w->sizes.distractors || w->sizes.continuity > 0)
        return fail(e, ST_USAGE,
                    "pathfinder: contour, distractors and continuity are of images that are drawn; leave "
                    "them out with released=yes");
    snprintf(name, sizeof name, "pathfinder%lld", (long long)w->sizes.side);
    return file_images_open(&w->from, "pathfinder", name, seed, host, e);
}

/* The accuracy of one linear map of the pixels of drawn images, measured at 12, 16, 20 and 32 pixels a side
 * (docs/data.md). A side in between gets the value of the next smaller side, an upper bound. */
static double floor_of(int64_t side) {
    return side < 16 ? 0.71 : side < 20 ? 0.63 : side < 32 ? 0.56 : side < 64 ? 0.52 : 0.5;
}

static void pathfinder_shape(const void *inst, struct task_shape *out) {
    const struct pathfinder *w = inst;
    image_shape(&w->from.image, 2, out);
    if (w->released) return;
    out->floor = floor_of(w->sizes.side);
    if (sizes_of(w).wide > 0) out->version = 2; /* 1: all images had the mean of both margins */
}

static void pathfinder_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct pathfinder *w = inst;
    if (w->released)
        file_images_fill(&w->from, split, index, x);
    else
        fill_drawn(w, split, index, x);
}

_Static_assert(sizeof(struct pathfinder) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_pathfinder = {
    .name = "pathfinder",
    .summary = "are two discs joined by one dashed curve? (Linsley et al. 2018, Long Range Arena, Tay et al. 2021)",
    .suite = "pathfinder",
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct pathfinder),
    .aliases = aliases,
    .open = pathfinder_open,
    .shape = pathfinder_shape,
    .fill = pathfinder_fill,
};

/* image.h - shared by image tasks: the order in which pixels are visited, the splits, values from bytes.
 *
 * An image is a sequence of its pixels with C values each, or with `patch` P a sequence of squares of P x P pixels with
 * their P*P*C values row by row. A linear encoder of these is the patch embedding of vision nets. Orders
 * (docs/data.md):
 *   raster   row by row                           snake      like raster, every second row from right to left
 *   morton   by the code of interleaved bits, column first: (0,0) (0,1) (1,0) (1,1)
 *   hilbert  along Hilbert's curve                bitrev     pixel number with its bits reversed (S4's psMNIST)
 *   numpy    RandomState(92916).permutation(n), which other papers' psMNIST has
 * Orders of powers of two visit the smallest square around the image and skip what lies outside, or with pad=yes stop
 * there at pixels of zeros. */
#ifndef LRNN_TASKS_IMAGE_IMAGE_H
#define LRNN_TASKS_IMAGE_IMAGE_H

#include "core/philox.h"
#include "tasks/task.h"

#define IMAGE_CHANNELS 3   /* at most */
#define IMAGE_SIDE     512 /* most pixels per side */

/* Value of a byte p: (p / 255 - mean) / sd. */
struct image_level {
    double mean, sd;
};

struct image {
    int order; /* options */
    bool transpose, pad;
    int64_t patch;
    int64_t wanted[SPLIT_COUNT]; /* 0 = auto */

    int64_t height, width, channels; /* set by the task before image_open */
    struct image_level level[IMAGE_CHANNELS];
    uint64_t seed;

    int64_t T; /* made by image_open: positions */
    const int32_t *visit;
    int64_t examples[SPLIT_COUNT];
};

#define IMAGE_ROW(NAME, KIND, OFFSET, VALUE, MIN, MAX, CHOICES, HELP, FLAGS)                                           \
    { NAME, KIND, OFFSET, VALUE, MIN, MAX, CHOICES, HELP, FLAGS }

/* Option rows of the struct image that is MEMBER of TYPE. */
#define IMAGE_OPTIONS(TYPE, MEMBER)                                                                                    \
    IMAGE_ROW("order", OPT_CHOICE, offsetof(TYPE, MEMBER.order), "raster", 0, 0,                                       \
              "raster snake morton hilbert bitrev numpy", "order in which pixels are visited", OPT_AXIS),              \
        IMAGE_ROW("transpose", OPT_BOOL, offsetof(TYPE, MEMBER.transpose), "no", 0, 0, NULL,                           \
                  "visit columns as rows, and rows as columns", 0),                                                    \
        IMAGE_ROW("pad", OPT_BOOL, offsetof(TYPE, MEMBER.pad), "no", 0, 0, NULL,                                       \
                  "visit a square with sides of a power of two, with zeros beyond the image", 0),                      \
        IMAGE_ROW("patch", OPT_INT, offsetof(TYPE, MEMBER.patch), "1", 1, 64, NULL,                                    \
                  "pixels a side of the visited squares", OPT_AXIS),                                                   \
        IMAGE_ROW("n_train", OPT_INT, offsetof(TYPE, MEMBER.wanted[SPLIT_TRAIN]), "auto", 1, 1e9, NULL,                \
                  "training images; auto = the standard number, or all of a file", OPT_AUTO | OPT_AXIS),               \
        IMAGE_ROW("n_val", OPT_INT, offsetof(TYPE, MEMBER.wanted[SPLIT_VAL]), "auto", 1, 1e9, NULL,                    \
                  "validation images", OPT_AUTO),                                                                      \
        IMAGE_ROW("n_test", OPT_INT, offsetof(TYPE, MEMBER.wanted[SPLIT_TEST]), "auto", 1, 1e9, NULL, "test images",   \
                  OPT_AUTO)

/* Number of values of a position: its pixels' values, one after the other. */
LRNN_INLINE int64_t image_values(const struct image *im) {
    return im->patch * im->patch * im->channels;
}

/* Makes the order on `host`. `most` is the default number of images of each split. ST_USAGE: the user asks for more
 * images than there are (`bounded`), or patches do not fill the image; ST_MEMORY: no room. */
enum status image_open(struct image *im, const char *task, const int64_t most[SPLIT_COUNT], bool bounded,
                       struct arena *host, struct error *e);

/* The shape of a task with one of `labels` labels per image, all equally frequent. */
void image_shape(const struct image *im, int64_t labels, struct task_shape *out);

/* Random numbers of one example. No two splits share any. */
struct rng image_rng(const struct image *im, enum split split, int64_t index);

/* Writes pixels (height, width, channels) in the order of visit. */
void image_put(const struct image *im, const uint8_t *pixels, int32_t label, struct example *x);

/* Writes grey pixels (height, width) to all channels. */
void image_put_grey(const struct image *im, const uint8_t *grey, int32_t label, struct example *x);

/* --- drawing ------------------------------------------------------------------------------------------------------ */

/* A number uniform in [-1, 1). */
LRNN_INLINE double rng_signed(struct rng *r) {
    return 2 * rng_uniform(r) - 1;
}

/* An almost normal number of mean 0 and variance 1: the sum of four bytes. */
LRNN_INLINE double rng_bell(struct rng *r) {
    uint32_t u = rng_u32(r);
    return ((double)(u & 255) + (double)(u >> 8 & 255) + (double)(u >> 16 & 255) + (double)(u >> 24) - 510) / 147.8;
}

/* Returns the nearest byte to 255 x, with x clipped to [0, 1]. */
LRNN_INLINE uint8_t image_byte(double x) {
    return (uint8_t)(x <= 0 ? 0 : x >= 1 ? 255 : 255 * x + 0.5);
}

#endif

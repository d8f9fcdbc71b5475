/* smnist.c - MNIST, pixel by pixel: which of ten digits is it?
 *
 * Values are p / 255, neither shifted nor scaled (state-spaces/s4, src/dataloaders/basic.py). psmnist visits pixels by
 * the reversed bits of their number, as S4 does; the permutation of other papers is order=numpy. zmnist is Myosotis'
 * Morton order, 784 pixels; with pad=yes 1 024. The images come from `lrnn data import mnist`. */
#include "tasks/image/file_images.h"

struct smnist {
    struct file_images from;
};

static const struct option options[] = {
    FILE_IMAGES_OPTIONS(struct smnist, from),
    {0},
};

static const struct task_alias aliases[] = {
    {"psmnist", "order=bitrev", "pixels permuted"},
    {"zmnist", "order=morton", "pixels in Morton order"},
    {NULL, NULL, NULL},
};

static enum status smnist_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    struct smnist *w = inst;
    w->from.image.level[0] = (struct image_level){0, 1};
    return file_images_open(&w->from, "smnist", "mnist", seed, host, e);
}

static void smnist_shape(const void *inst, struct task_shape *out) {
    const struct smnist *w = inst;
    image_shape(&w->from.image, w->from.set.labels, out);
}

static void smnist_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct smnist *w = inst;
    file_images_fill(&w->from, split, index, x);
}

_Static_assert(sizeof(struct smnist) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_smnist = {
    .name = "smnist",
    .summary = "handwritten digits as sequences of pixels (MNIST, LeCun et al. 1998)",
    .suite = "images",
    .data = "mnist",
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct smnist),
    .aliases = aliases,
    .open = smnist_open,
    .shape = smnist_shape,
    .fill = smnist_fill,
};

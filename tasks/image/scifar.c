/* scifar.c - CIFAR-10, pixel by pixel: which of ten classes is it?
 *
 *   colour   (p / 255 - mean) / sd, means .4914 .4822 .4465, deviations .247 .243 .261
 *   grey     g = .299 R + .587 G + .114 B, rounded; (g / 255 - 122.6 / 255) / (61 / 255): the Long Range Arena's image
 *
 * Values as in state-spaces/s4, src/dataloaders/basic.py. zcifar is Myosotis' Morton order. The images come from
 * `lrnn data import cifar10`. */
#include "tasks/image/file_images.h"

struct scifar {
    struct file_images from;
    bool grey;
};

static const struct option options[] = {
    {"grey", OPT_BOOL, offsetof(struct scifar, grey), "no", 0, 0, NULL, "one channel of brightness instead of colours",
     0},
    FILE_IMAGES_OPTIONS(struct scifar, from),
    {0},
};

static const struct task_alias aliases[] = {
    {"zcifar", "order=morton", "pixels in Morton order"},
    {"lra-image", "grey=yes", "the image task of the Long Range Arena"},
    {NULL, NULL, NULL},
};

static enum status scifar_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    static const struct image_level colour[] = {{.4914, .247}, {.4822, .243}, {.4465, .261}},
                                    grey = {122.6 / 255, 61.0 / 255};
    struct scifar *w = inst;
    for (int c = 0; c < IMAGE_CHANNELS; c++) w->from.image.level[c] = w->grey ? grey : colour[c];
    w->from.image.channels = w->grey ? 1 : IMAGE_CHANNELS;
    TRY(file_images_open(&w->from, "scifar", "cifar10", seed, host, e));
    if (w->from.set.channels == IMAGE_CHANNELS) return ST_OK;
    return fail(e, ST_DATA, "scifar: expected images of 3 channels, found %lld", (long long)w->from.set.channels);
}

static void scifar_shape(const void *inst, struct task_shape *out) {
    const struct scifar *w = inst;
    image_shape(&w->from.image, w->from.set.labels, out);
}

static void scifar_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct scifar *w = inst;
    const struct image_set *set = &w->from.set;
    int64_t i = file_images_index(&w->from, split, index), n = set->height * set->width;
    const uint8_t *colour = set->pixels + i * n * IMAGE_CHANNELS;
    uint8_t bright[IMAGE_SET_SIDE * IMAGE_SET_SIDE];
    for (int64_t p = 0; p < n && w->grey; p++) {
        const uint8_t *rgb = colour + p * IMAGE_CHANNELS;
        bright[p] = (uint8_t)((299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2] + 500) / 1000);
    }
    image_put(&w->from.image, w->grey ? bright : colour, set->label[i], x);
}

_Static_assert(sizeof(struct scifar) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_scifar = {
    .name = "scifar",
    .summary = "photographs of ten classes as sequences of pixels (CIFAR-10, Krizhevsky 2009)",
    .suite = "images",
    .data = "cifar10",
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct scifar),
    .aliases = aliases,
    .open = scifar_open,
    .shape = scifar_shape,
    .fill = scifar_fill,
};

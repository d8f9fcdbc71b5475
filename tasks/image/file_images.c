/* file_images.c - see file_images.h. */
#include "tasks/image/file_images.h"

#include <string.h>

#include "tasks/data/datasets.h"

#define SPLIT_SEED 42

/* Makes the file's content part of a run's identity, independent of its path. */
static enum status check_content(struct file_images *from, const char *task, struct error *e) {
    if (from->content[0] && strcmp(from->content, from->set.hash) != 0)
        return fail(e, ST_DATA, "%s: the XXH3-128 of the images is %s, expected content=%.40s: they are other images",
                    task, from->set.hash, from->content);
    memcpy(from->content, from->set.hash, sizeof from->set.hash);
    return ST_OK;
}

/* Number of images of each split, and where each begins in the order of the permutation; released test images keep
 * their order. */
struct division {
    int64_t n[SPLIT_COUNT], first[SPLIT_COUNT];
};

static struct division divide(const struct image_set *set) {
    int64_t tenth = set->n_train > 10 ? set->n_train / 10 : 1, own = set->n_test > 0 ? 0 : tenth;
    struct division d = {.n = {set->n_train - tenth - own, tenth, set->n_test > 0 ? set->n_test : tenth}};
    d.first[SPLIT_VAL] = d.n[SPLIT_TRAIN];
    d.first[SPLIT_TEST] = d.first[SPLIT_VAL] + tenth;
    return d;
}

enum status file_images_open(struct file_images *from, const char *task, const char *dataset, uint64_t seed,
                             struct arena *host, struct error *e) {
    struct image *im = &from->image;
    TRY(dataset_open(dataset, task, from->file, &from->set, e));
    TRY(check_content(from, task, e));
    const struct image_set *set = &from->set;
    struct division d = divide(set);
    if (d.n[SPLIT_TRAIN] < 1)
        return fail(e, ST_DATA, "%s: expected at least 3 images, found %lld for training and %lld for test", task,
                    (long long)set->n_train, (long long)set->n_test);
    im->seed = seed;
    im->height = set->height;
    im->width = set->width;
    if (!im->channels) im->channels = set->channels;
    return image_open(im, task, d.n, true, host, e);
}

int64_t file_images_index(const struct file_images *from, enum split split, int64_t index) {
    const struct image_set *set = &from->set;
    uint64_t at = (uint64_t)(divide(set).first[split] + index);
    if (split == SPLIT_TEST && set->n_test > 0) return set->n_train + index;
    return (int64_t)permute_index(SPLIT_SEED, STREAM_TABLE, 0, at, (uint64_t)set->n_train);
}

void file_images_fill(const struct file_images *from, enum split split, int64_t index, struct example *x) {
    const struct image_set *set = &from->set;
    int64_t i = file_images_index(from, split, index);
    image_put(&from->image, set->pixels + i * set->height * set->width * set->channels, set->label[i], x);
}

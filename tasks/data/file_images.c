/* file_images.c - see file_images.h. */
#include "tasks/data/file_images.h"

#include <string.h>

#include "tasks/data/datasets.h"

#define SPLIT_SEED 42

/* What is read is part of what a run is, wherever it lies. */
static enum status check_content(struct file_images *from, const char *task, struct error *e) {
    if (from->content[0] && strcmp(from->content, from->set.hash) != 0)
        return fail(e, ST_DATA, "%s: the XXH3-128 of the images is %s, expected content=%.40s: they are other images",
                    task, from->set.hash, from->content);
    memcpy(from->content, from->set.hash, sizeof from->set.hash);
    return ST_OK;
}

static int64_t held_out(const struct image_set *set) {
    return set->n_train > 10 ? set->n_train / 10 : 1;
}

enum status file_images_open(struct file_images *from, const char *task, const char *dataset, uint64_t seed,
                             struct arena *host, struct error *e) {
    struct image *im = &from->image;
    TRY(dataset_open(dataset, task, from->file, &from->set, e));
    TRY(check_content(from, task, e));
    const struct image_set *set = &from->set;
    if (set->n_train < 2 || set->n_test < 1)
        return fail(e, ST_DATA, "%s: expected at least 2 training and 1 test image, found %lld and %lld", task,
                    (long long)set->n_train, (long long)set->n_test);
    const int64_t most[SPLIT_COUNT] = {set->n_train - held_out(set), held_out(set), set->n_test};
    im->seed = seed;
    im->height = set->height;
    im->width = set->width;
    if (!im->channels) im->channels = set->channels;
    return image_open(im, task, most, true, host, e);
}

int64_t file_images_index(const struct file_images *from, enum split split, int64_t index) {
    const struct image_set *set = &from->set;
    if (split == SPLIT_TEST) return set->n_train + index;
    if (split == SPLIT_VAL) index += set->n_train - held_out(set);
    return (int64_t)permute_index(SPLIT_SEED, STREAM_TABLE, 0, (uint64_t)index, (uint64_t)set->n_train);
}

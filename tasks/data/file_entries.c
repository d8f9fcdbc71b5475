/* file_entries.c - see file_entries.h. */
#include "tasks/data/file_entries.h"

#include <string.h>

#include "core/philox.h"
#include "tasks/data/datasets.h"

#define SPLIT_SEED 42

enum status file_entries_open(struct file_entries *from, const char *task, const char *dataset, struct error *e) {
    TRY(dataset_open_entries(dataset, task, from->file, &from->set, e));
    if (from->content[0] && strcmp(from->content, from->set.hash) != 0)
        return fail(e, ST_DATA, "%s: the XXH3-128 of the entries is %s, expected content=%.40s: they are other entries",
                    task, from->set.hash, from->content);
    memcpy(from->content, from->set.hash, sizeof from->set.hash);
    return ST_OK;
}

/* Number of training entries that serve for validation. */
static int64_t held_out(const struct entry_set *s) {
    if (s->n[SPLIT_VAL] || s->n[SPLIT_TRAIN] < 2) return 0;
    return s->n[SPLIT_TRAIN] > 10 ? s->n[SPLIT_TRAIN] / 10 : 1;
}

int64_t file_entries_count(const struct file_entries *from, enum split split) {
    const struct entry_set *s = &from->set;
    int64_t held = held_out(s);
    return s->n[split] + (split == SPLIT_TRAIN ? -held : split == SPLIT_VAL ? held : 0);
}

int64_t file_entries_index(const struct file_entries *from, enum split split, int64_t index) {
    const struct entry_set *s = &from->set;
    int64_t n = s->n[SPLIT_TRAIN], held = held_out(s);
    if (split == SPLIT_TEST) return n + s->n[SPLIT_VAL] + index;
    if (split == SPLIT_VAL && !held) return n + index;
    if (!held) return index;
    return (int64_t)permute_index(SPLIT_SEED, STREAM_TABLE, 0, (uint64_t)(index + (split == SPLIT_VAL ? n - held : 0)),
                                  (uint64_t)n);
}

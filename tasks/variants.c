/* variants.c - one-at-a-time changes of MAD (athms/mad-lab, configs/tasks) and of the BD-LRU/H-LRU paper (arXiv
 * 2602.12021, appendix B), and the other folds of a score over ten folds (pLSTM's graphs). An option that a change does
 * not name stays at the baseline. */
#include "tasks/variants.h"

#include <stddef.h>
#include <string.h>

#define MAX_CHANGES    16
#define FEWER_EXAMPLES "n_train=6400", "n_train=3200", "n_train=1600", "n_train=800"
#define RECALL_LENGTHS "length=256", "length=512", "length=1024"
#define HLRU_CHANGES   "vocab=32", "length=128", "n_train=10k"
#define OTHER_FOLDS    "fold=1", "fold=2", "fold=3", "fold=4", "fold=5", "fold=6", "fold=7", "fold=8", "fold=9"

static const struct {
    const char *name;
    const char *changes[MAX_CHANGES]; /* NULL-terminated */
} variants[] = {
    {"compression", {"vocab=32", "vocab=64", "vocab=128", "length=64", "length=128", "length=256", FEWER_EXAMPLES}},
    {"in-context-recall", {"vocab=32", "vocab=64", "vocab=128", RECALL_LENGTHS, FEWER_EXAMPLES}},
    {"noisy-recall",
     {"vocab=48", "vocab=80", "vocab=144", RECALL_LENGTHS, FEWER_EXAMPLES, "noise=0.4", "noise=0.6", "noise=0.8"}},
    {"fuzzy-recall", {"vocab=32", "vocab=64", "vocab=128", RECALL_LENGTHS, FEWER_EXAMPLES}},
    {"selective-copying",
     {"vocab=32", "vocab=64", "vocab=128", "length=512", "length=1024", FEWER_EXAMPLES, "copy=32", "copy=64",
      "copy=96"}},
    {"memorization", {"vocab=512", "vocab=1024", "vocab=2048", "vocab=4096", "vocab=8192"}},
    {"hlru-recall", {HLRU_CHANGES}},
    {"hlru-copy", {HLRU_CHANGES}},
    {"hlru-compress", {HLRU_CHANGES}},
    {"molecules", {OTHER_FOLDS}},
    {"mutag", {OTHER_FOLDS}},
    {"nci1", {OTHER_FOLDS}},
    {"proteins", {OTHER_FOLDS}},
    {"ptc-fm", {OTHER_FOLDS}},
};

#define COUNT (int)(sizeof variants / sizeof *variants)

const char *const *task_variants(const char *name) {
    for (int i = 0; i < COUNT; i++)
        if (strcmp(variants[i].name, name) == 0) return variants[i].changes;
    return NULL;
}

const char *task_with_variants(int i) {
    return i < COUNT ? variants[i].name : NULL;
}

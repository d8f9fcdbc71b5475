/* lra_text.c - the Long Range Arena's text task: is a film review kind? Characters of the IMDb reviews, as S4 reads
 * them (state-spaces/s4, src/dataloaders/lra.py): the first length - 1 characters of a review and an end mark,
 * with the characters that occur at least 15 times in the training reviews. A tenth of the training reviews is for
 * validation. The files come from `lrnn data import imdb`. */
#include "tasks/language/documents.h"

static const struct option options[] = {DOCUMENTS_OPTIONS("4096", "characters at most, the end mark among them", "15")};

static int64_t lra_text_find(const struct entry *r, struct document text[2]) {
    if (r->length <= r->size) text[0] = (struct document){r->bytes, r->length};
    return r->length;
}

static const struct document_kind kind = {.task = "lra-text",
                                          .dataset = "imdb",
                                          .what = "text as long as it says",
                                          .count = 1,
                                          .least = 15,
                                          .find = lra_text_find};

static enum status lra_text_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    (void)seed;
    return documents_open(inst, &kind, host, e);
}

static void lra_text_shape(const void *inst, struct task_shape *out) {
    documents_shape(inst, &kind, out);
}

static void lra_text_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    documents_fill(inst, &kind, split, index, x);
}

const struct task task_lra_text = {
    .name = "lra-text",
    .summary = "is a film review kind, by its characters? (Long Range Arena, Tay et al. 2021)",
    .suite = "lra-text",
    .data = "imdb",
    .version = 2, /* 1: the vocabulary counted whole documents */
    .options = options,
    .inst_bytes = sizeof(struct documents),
    .open = lra_text_open,
    .shape = lra_text_shape,
    .fill = lra_text_fill,
};

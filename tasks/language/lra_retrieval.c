/* lra_retrieval.c - the Long Range Arena's retrieval task: does one paper cite the other? Characters of pairs of papers
 * of the ACL anthology, as S4 reads them (state-spaces/s4, src/dataloaders/lra.py): the first length - 1 characters of
 * each and an end mark, all characters of the training texts. The files come from `lrnn data import aan`. */
#include "tasks/language/documents.h"

static const struct option options[] = {
    DOCUMENTS_OPTIONS("4000", "characters of a paper at most, the end mark among them", "1")};

/* Finds both texts of an entry: the entry has their lengths in bytes, as two numbers of 32 bits, and then the texts. */
static int64_t number_at(const uint8_t *at) {
    return (int64_t)at[0] | (int64_t)at[1] << 8 | (int64_t)at[2] << 16 | (int64_t)at[3] << 24;
}

static int64_t lra_retrieval_find(const struct entry *r, struct document text[2]) {
    if (r->size < 8) return 8;
    int64_t first = number_at(r->bytes), second = number_at(r->bytes + 4), wanted = 8 + first + second;
    if (wanted > r->size) return wanted;
    text[0] = (struct document){r->bytes + 8, first};
    text[1] = (struct document){r->bytes + 8 + first, second};
    return wanted;
}

static const struct document_kind kind = {.task = "lra-retrieval",
                                          .dataset = "aan",
                                          .what = "pair of texts",
                                          .count = 2,
                                          .least = 1,
                                          .find = lra_retrieval_find};

static enum status lra_retrieval_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    (void)seed;
    return documents_open(inst, &kind, host, e);
}

static void lra_retrieval_shape(const void *inst, struct task_shape *out) {
    documents_shape(inst, &kind, out);
}

static void lra_retrieval_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    documents_fill(inst, &kind, split, index, x);
}

const struct task task_lra_retrieval = {
    .name = "lra-retrieval",
    .summary = "does one paper cite the other, by their characters? (Long Range Arena, Tay et al. 2021)",
    .suite = "lra-retrieval",
    .data = "aan",
    .version = 2, /* 1: the vocabulary counted whole documents */
    .options = options,
    .inst_bytes = sizeof(struct documents),
    .open = lra_retrieval_open,
    .shape = lra_retrieval_shape,
    .fill = lra_retrieval_fill,
};

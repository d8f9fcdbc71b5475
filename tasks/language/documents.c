/* documents.c - see documents.h. */
#include "tasks/language/documents.h"

#include "tasks/examples.h"

static enum status check_entries(const struct documents *d, const struct document_kind *kind, struct error *e) {
    struct document text[2];
    for (int64_t i = 0; i < entry_count(&d->from.set); i++) {
        struct entry r = entry_get(&d->from.set, i);
        if (kind->find(&r, text) > r.size)
            return fail(e, ST_DATA, "%s: entry %lld of %lld bytes is no %s", kind->task, (long long)i,
                        (long long)r.size, kind->what);
    }
    return ST_OK;
}

static enum status count_characters(const struct documents *d, const struct document_kind *kind,
                                    struct character_counter *c, struct error *e) {
    struct document text[2];
    TRY(counter_create(c, e));
    for (int64_t i = 0; i < d->from.set.n[SPLIT_TRAIN]; i++) {
        struct entry r = entry_get(&d->from.set, i);
        kind->find(&r, text);
        for (int which = 0; which < kind->count; which++)
            counter_add(c, text[which].text, text[which].bytes, d->length - 1);
    }
    return ST_OK;
}

enum status documents_open(struct documents *d, const struct document_kind *kind, struct arena *host, struct error *e) {
    struct character_counter c = {NULL};
    if (d->level == LEVEL_BYTE && d->least != kind->least)
        return fail(e, ST_USAGE,
                    "%s: least=%lld leaves rare characters out of the vocabulary, and level=byte has all "
                    "bytes; leave it out, or take level=character",
                    kind->task, (long long)d->least);
    TRY(file_entries_open(&d->from, kind->task, kind->dataset, e));
    TRY(check_entries(d, kind, e));
    enum status status = d->level == LEVEL_BYTE ? ST_OK : count_characters(d, kind, &c, e);
    if (status == ST_OK) status = characters_make(&d->characters, d->level, &c, d->least, host, e);
    counter_free(&c);
    return status;
}

void documents_shape(const struct documents *d, const struct document_kind *kind, struct task_shape *out) {
    shape_of_labels(out, d->length, d->from.set.labels);
    out->unequal_test = true;
    out->reading.documents = kind->count;
    out->vocab_in = d->characters.vocab;
    for (int split = 0; split < SPLIT_COUNT; split++)
        out->examples[split] = file_entries_count(&d->from, (enum split)split);
}

void documents_fill(const struct documents *d, const struct document_kind *kind, enum split split, int64_t index,
                    struct example *x) {
    struct entry r = entry_get(&d->from.set, file_entries_index(&d->from, split, index));
    struct document text[2];
    int32_t length[2] = {0};
    kind->find(&r, text);
    for (int which = 0; which < kind->count; which++)
        length[which] = characters_put(&d->characters, text[which].text, text[which].bytes, d->length - 1, d->length,
                                       x->tokens + which * d->length);
    x->length = length[0];
    x->second = length[1];
    x->targets[0] = (int32_t)r.label;
}

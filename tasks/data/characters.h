/* characters.h - texts as numbers of characters: what the tasks on released texts share.
 *
 * A vocabulary is made of the training texts: the characters (Unicode code points) that are in them at least `least`
 * times, by falling frequency, ties by code point. Ids: 0 padding, 1 any other character, 2 the end of a text, then
 * they. At level `byte` ids are those of bytes plus 1 instead, 0 padding and 257 the end (the Long Range Arena's own
 * pipeline). Bytes that are no UTF-8 are one unknown character each. */
#ifndef LRNN_TASKS_DATA_CHARACTERS_H
#define LRNN_TASKS_DATA_CHARACTERS_H

#include "core/arena.h"
#include "core/option.h"

enum text_level { LEVEL_CHARACTER, LEVEL_BYTE };
#define TEXT_LEVELS "character byte"

struct characters {
    int level;
    int64_t vocab;        /* ids */
    int64_t n;            /* characters in the vocabulary */
    const uint32_t *code; /* (n) ascending */
    const int32_t *id;    /* (n) of each */
    int32_t plain[128];   /* of ASCII */
};

/* Counts while texts are shown to it. Owned by the caller, freed with counter_free. */
struct character_counter {
    int64_t *count; /* by code point */
};
enum status counter_create(struct character_counter *c, struct error *e);

/* Counts the first `most` characters of a text, which are those that a net is shown. */
void counter_add(struct character_counter *c, const uint8_t *text, int64_t bytes, int64_t most);
void counter_free(struct character_counter *c);

/* The vocabulary of what was counted (nothing at LEVEL_BYTE), on `host`. ST_MEMORY: no room. */
enum status characters_make(struct characters *v, int level, const struct character_counter *c, int64_t least,
                            struct arena *host, struct error *e);

/* The first `most` characters of a text as ids and the end's; zeros up to T > most. Returns how many ids there are. */
int32_t characters_put(const struct characters *v, const uint8_t *text, int64_t bytes, int64_t most, int64_t T,
                       int32_t *tokens);

#endif

/* characters.h - texts as ids of characters, for tasks on released texts.
 *
 * The vocabulary comes from the training texts: their characters (Unicode code points) that occur at least `least`
 * times, by falling frequency, ties by code point. Ids: 0 padding, 1 any other character, 2 the end of a text, then the
 * vocabulary. At level `byte` an id is the byte plus 1, with 0 padding and 257 the end (the Long Range Arena's own
 * pipeline). Each byte outside of UTF-8 is one unknown character. */
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

/* Counts of characters, while texts are added. Owned by the caller, freed with counter_free. */
struct character_counter {
    int64_t *count; /* by code point */
};
enum status counter_create(struct character_counter *c, struct error *e);

/* Counts the first `most` characters of a text, all that a net sees of it. */
void counter_add(struct character_counter *c, const uint8_t *text, int64_t bytes, int64_t most);
void counter_free(struct character_counter *c);

/* Makes the vocabulary of the counted characters (empty at LEVEL_BYTE) on `host`. ST_MEMORY: no room. */
enum status characters_make(struct characters *v, int level, const struct character_counter *c, int64_t least,
                            struct arena *host, struct error *e);

/* Writes the first `most` characters of a text as ids, the end's id, and zeros up to T > most. Returns the number of
 * ids. */
int32_t characters_put(const struct characters *v, const uint8_t *text, int64_t bytes, int64_t most, int64_t T,
                       int32_t *tokens);

#endif

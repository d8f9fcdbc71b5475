/* characters.c - fuzz target: whatever the bytes of a review, they become ids of a vocabulary, of this text or of
 * another, one for each character; a byte that is no UTF-8 is a character. The first byte says which vocabulary, or how
 * many characters are wanted. */
#include <stdbool.h>

#include "tasks/data/characters.h"
#include "tests/fuzz/fuzz.h"

#define ROOM ((size_t)8 << 20)
#define MOST 512 /* ids of a text, its end among them */

/* Bytes of the character at `at`, by the table of byte sequences of RFC 3629; of what is none 1, *valid false. */
static int64_t character_bytes(const uint8_t *at, int64_t left, bool *valid) {
    static const uint8_t rows[][4] = {/* first byte from, to; second from, to */
                                      {0xc2, 0xdf, 0x80, 0xbf}, {0xe0, 0xe0, 0xa0, 0xbf}, {0xe1, 0xec, 0x80, 0xbf},
                                      {0xed, 0xed, 0x80, 0x9f}, {0xee, 0xef, 0x80, 0xbf}, {0xf0, 0xf0, 0x90, 0xbf},
                                      {0xf1, 0xf3, 0x80, 0xbf}, {0xf4, 0xf4, 0x80, 0x8f}};
    *valid = at[0] < 0x80;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        int64_t n = at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
        if (at[0] < rows[r][0] || at[0] > rows[r][1] || left < n || at[1] < rows[r][2] || at[1] > rows[r][3]) continue;
        for (int64_t i = 2; i < n; i++)
            if (at[i] < 0x80 || at[i] > 0xbf) return 1;
        *valid = true;
        return n;
    }
    return 1;
}

/* The ids of the first `most` characters of a text are as many as they, known and unknown where they have to be. */
static void check_ids(const struct characters *v, bool own, const uint8_t *text, int64_t bytes, int64_t most) {
    int32_t tokens[MOST], end = v->level == LEVEL_BYTE ? 257 : 2;
    int32_t n = characters_put(v, text, bytes, most, MOST, tokens);
    int64_t at = 0, k = 0;
    for (; at < bytes && k < most; k++) {
        bool valid = true;
        int64_t length = v->level == LEVEL_BYTE ? 1 : character_bytes(text + at, bytes - at, &valid);
        if (tokens[k] < 1 || tokens[k] >= v->vocab) abort();
        if (v->level == LEVEL_BYTE && tokens[k] != text[at] + 1) abort();
        if (v->level == LEVEL_CHARACTER && (tokens[k] == 2 || (!valid && tokens[k] != 1))) abort();
        if (v->level == LEVEL_CHARACTER && own && valid != (tokens[k] != 1)) abort();
        at += length;
    }
    if (n != k + 1 || tokens[k] != end) abort();
    for (k++; k < MOST; k++)
        if (tokens[k] != 0) abort();
}

/* The vocabulary of a text, of characters that are in it at least once. The counter is large, so that there is one,
 * whose counts go back to 0. */
static void make_vocabulary(struct characters *v, const uint8_t *text, int64_t bytes, struct arena *host) {
    static struct character_counter counter;
    struct error e = {ST_OK, ""};
    if (!counter.count && counter_create(&counter, &e) != ST_OK) abort();
    counter_add(&counter, text, bytes, bytes);
    if (characters_make(v, LEVEL_CHARACTER, &counter, 1, host, &e) != ST_OK) abort();
    for (int64_t i = 0; i < v->n; i++) counter.count[v->code[i]] = 0;
}

/* Letters of the corpus' files: o its own vocabulary, f another text's, b bytes. */
FUZZ(characters) {
    static const char other[] = "film na\xc3\xafve 5\xe2\x82\xac \xf0\x9f\x98\x80";
    static struct arena host;
    static struct characters fixed, plain;
    struct characters own;
    struct error e;
    if (size < 1) return 0;
    if (!host.base) {
        if (arena_reserve(&host, ROOM, &e) != ST_OK) abort();
        make_vocabulary(&fixed, (const uint8_t *)other, sizeof other - 1, &host);
        if (characters_make(&plain, LEVEL_BYTE, NULL, 1, &host, &e) != ST_OK) abort();
    }
    const uint8_t *text = data + 1;
    int64_t bytes = (int64_t)size - 1, most = strchr("ofb", data[0]) ? MOST - 1 : data[0];
    size_t mark = arena_mark(&host);
    if (data[0] == 'o') make_vocabulary(&own, text, bytes, &host);
    check_ids(data[0] == 'o' ? &own : data[0] == 'b' ? &plain : &fixed, data[0] == 'o', text, bytes, most);
    arena_release(&host, mark);
    return 0;
}

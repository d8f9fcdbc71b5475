/* algorithms.c - see algorithms.h. */
#include "kernels/lib/algorithms.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file/sha256.h"

#define FIRST_LINE "lrnn algorithms 1\n"
#define LAST_WORD  "sha256 "
#define NAME       9 /* hex digits, terminator included */
#define LINE       (NAME + ALGORITHM_KEY + 32 + 2 * ALGORITHM_BYTES)

struct choice {
    uint64_t hash; /* of the key */
    char key[ALGORITHM_KEY], name[NAME];
    struct algorithm algorithm;
    bool forgotten;
};

/* A user of a choice. */
struct use {
    const void *user;
    size_t choice;
};

static struct {
    pthread_mutex_t lock;
    struct choice *choices;
    struct use *uses;
    size_t n, room, n_uses, uses_room;
    long timed;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Returns the array with room for one more element; NULL: no memory. */
static void *grown(void *array, size_t n, size_t *room, size_t element) {
    if (n < *room) return array;
    size_t more = *room ? 2 * *room : 32;
    void *larger = realloc(array, more * element);
    if (larger) *room = more;
    return larger;
}

/* FNV-1a, 64 bits. A file of many devices may have thousands of long keys that begin alike. */
static uint64_t hash_of(const char *key) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *key; key++) hash = (hash ^ (unsigned char)*key) * 0x100000001b3u;
    return hash;
}

static bool is_of(const struct choice *c, uint64_t hash, const char *key) {
    return c->hash == hash && !c->forgotten && !strcmp(c->key, key);
}

/* Returns the index of the product's choice, or table.n. */
static size_t find(const char *key) {
    uint64_t hash = hash_of(key);
    size_t i = 0;
    while (i < table.n && !is_of(&table.choices[i], hash, key)) i++;
    return i;
}

static void note_use(const void *user, size_t choice) {
    for (size_t i = 0; i < table.n_uses; i++)
        if (table.uses[i].user == user && table.uses[i].choice == choice) return;
    struct use *uses = grown(table.uses, table.n_uses, &table.uses_room, sizeof *uses);
    if (!uses) return;
    table.uses = uses;
    table.uses[table.n_uses++] = (struct use){user, choice};
}

static void hex_of(const unsigned char *code, char hex[2 * ALGORITHM_BYTES + 1]) {
    for (int i = 0; i < ALGORITHM_BYTES; i++) snprintf(hex + 2 * i, 3, "%02x", code[i]);
}

/* The name depends on the product and on the algorithm. */
static void name_choice(struct choice *c) {
    struct sha256 sum;
    char digest[SHA256_HEX];
    sha256_start(&sum);
    sha256_add(&sum, c->key, strlen(c->key) + 1);
    sha256_add(&sum, c->algorithm.code, ALGORITHM_BYTES);
    sha256_end(&sum, digest);
    snprintf(c->name, sizeof c->name, "%.8s", digest);
}

/* Adds a choice for a product without one. False: no memory. */
static bool add(const char *key, const struct algorithm *a) {
    struct choice *choices = grown(table.choices, table.n, &table.room, sizeof *choices);
    if (!choices) return false;
    table.choices = choices;
    struct choice *c = &choices[table.n++];
    *c = (struct choice){.hash = hash_of(key), .algorithm = *a};
    snprintf(c->key, sizeof c->key, "%s", key);
    name_choice(c);
    return true;
}

bool algorithms_find(const char *key, const void *user, struct algorithm *a) {
    pthread_mutex_lock(&table.lock);
    size_t i = find(key);
    bool found = i < table.n;
    if (found) *a = table.choices[i].algorithm;
    if (found) note_use(user, i);
    pthread_mutex_unlock(&table.lock);
    return found;
}

void algorithms_keep(const char *key, const void *user, struct algorithm *a) {
    pthread_mutex_lock(&table.lock);
    size_t i = find(key);
    if (i < table.n)
        *a = table.choices[i].algorithm;
    else if (add(key, a))
        table.timed += a->us > 0;
    if (i < table.n) note_use(user, i);
    pthread_mutex_unlock(&table.lock);
}

void algorithms_forget(const char *key, const struct algorithm *refused) {
    pthread_mutex_lock(&table.lock);
    size_t i = find(key);
    if (i < table.n && !memcmp(table.choices[i].algorithm.code, refused->code, ALGORITHM_BYTES))
        table.choices[i].forgotten = true;
    pthread_mutex_unlock(&table.lock);
}

bool algorithms_have(const char *name) {
    bool has = false;
    pthread_mutex_lock(&table.lock);
    for (size_t i = 0; i < table.n && !has; i++)
        has = !table.choices[i].forgotten && !strcmp(table.choices[i].name, name);
    pthread_mutex_unlock(&table.lock);
    return has;
}

void algorithms_begin_user(const void *user) {
    pthread_mutex_lock(&table.lock);
    size_t kept = 0;
    for (size_t i = 0; i < table.n_uses; i++)
        if (table.uses[i].user != user) table.uses[kept++] = table.uses[i];
    table.n_uses = kept;
    pthread_mutex_unlock(&table.lock);
}

void algorithms_names(const void *user, char *text, size_t size) {
    size_t used = 0, spare = sizeof " and 1000000 more";
    int left = 0;
    *text = '\0';
    pthread_mutex_lock(&table.lock);
    for (size_t i = 0; i < table.n_uses; i++) {
        const struct choice *c = &table.choices[table.uses[i].choice];
        if (table.uses[i].user != user || c->forgotten) continue;
        if (left || used + NAME + spare > size)
            left++;
        else
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? " " : "", c->name);
    }
    pthread_mutex_unlock(&table.lock);
    if (left) snprintf(text + used, size - used, " and %d more", left);
}

/* --- text --------------------------------------------------------------------------------------------------------- */

static void sum_of(const char *text, size_t size, char hex[SHA256_HEX]) {
    struct sha256 sum;
    sha256_start(&sum);
    sha256_add(&sum, text, size);
    sha256_end(&sum, hex);
}

static bool from_hex(const char *hex, unsigned char code[ALGORITHM_BYTES]) {
    if (strspn(hex, "0123456789abcdef") != 2 * ALGORITHM_BYTES) return false;
    for (int i = 0; i < ALGORITHM_BYTES; i++) {
        unsigned byte;
        if (sscanf(hex + 2 * i, "%2x", &byte) != 1) return false;
        code[i] = (unsigned char)byte;
    }
    return true;
}

/* Parses a line without its end. */
static bool parse_line(char *line, char **key, struct algorithm *a) {
    char *rest, *fields[4] = {strtok_r(line, "\t", &rest)}, *end;
    for (int i = 1; i < 4; i++) fields[i] = strtok_r(NULL, "\t", &rest);
    if (!fields[3] || strlen(fields[1]) >= ALGORITHM_KEY) return false;
    *key = fields[1];
    a->us = strtod(fields[2], &end);
    return *end == '\0' && a->us > 0 && from_hex(fields[3], a->code);
}

/* Adds the lines between the first and the last one. */
static enum status add_lines(const char *at, const char *end, const char *name, struct error *e) {
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        char line[LINE], *key;
        struct algorithm a = {.us = 0};
        if (!stop || stop - at >= LINE) return fail(e, ST_DATA, "%s has a line that is too long", name);
        snprintf(line, sizeof line, "%.*s", (int)(stop - at), at);
        if (!parse_line(line, &key, &a)) return fail(e, ST_DATA, "%s has a line that is no timed product", name);
        if (find(key) == table.n && !add(key, &a)) return fail(e, ST_MEMORY, "no memory for the products of %s", name);
        at = stop + 1;
    }
    return ST_OK;
}

enum status algorithms_parse(const char *text, size_t size, const char *name, struct error *e) {
    const size_t first = strlen(FIRST_LINE), last = strlen(LAST_WORD) + SHA256_HEX;
    char hex[SHA256_HEX];
    if (size < first || memcmp(text, FIRST_LINE, first) != 0)
        return fail(e, ST_DATA, "%s is no file of timed products", name);
    const char *sum = size >= first + last ? text + size - last : text;
    sum_of(text, (size_t)(sum - text), hex);
    bool whole = sum > text && memcmp(sum, LAST_WORD, strlen(LAST_WORD)) == 0 &&
                 memcmp(sum + strlen(LAST_WORD), hex, SHA256_HEX - 1) == 0 && text[size - 1] == '\n';
    if (!whole) return fail(e, ST_DATA, "%s is damaged: its checksum does not match", name);
    pthread_mutex_lock(&table.lock);
    size_t before = table.n;
    enum status status = add_lines(text + first, sum, name, e);
    if (status == ST_DATA) table.n = before;
    pthread_mutex_unlock(&table.lock);
    return status;
}

static int by_key(const void *a, const void *b) {
    const struct choice *const *x = a, *const *y = b;
    return strcmp((*x)->key, (*y)->key);
}

static char *write_text(const struct choice **order, size_t *size) {
    size_t n = 0, room = strlen(FIRST_LINE) + table.n * LINE + strlen(LAST_WORD) + SHA256_HEX + 1;
    char *text = malloc(room), hex[2 * ALGORITHM_BYTES + 1], sum[SHA256_HEX];
    if (!text) return NULL;
    for (size_t i = 0; i < table.n; i++)
        if (!table.choices[i].forgotten && table.choices[i].algorithm.us > 0) order[n++] = &table.choices[i];
    qsort(order, n, sizeof *order, by_key);
    size_t used = (size_t)snprintf(text, room, FIRST_LINE);
    for (size_t i = 0; i < n; i++) {
        hex_of(order[i]->algorithm.code, hex);
        used += (size_t)snprintf(text + used, room - used, "%s\t%s\t%.4g\t%s\n", order[i]->name, order[i]->key,
                                 order[i]->algorithm.us, hex);
    }
    sum_of(text, used, sum);
    *size = used + (size_t)snprintf(text + used, room - used, LAST_WORD "%s\n", sum);
    return text;
}

char *algorithms_text(size_t *size) {
    pthread_mutex_lock(&table.lock);
    const struct choice **order = malloc((table.n + 1) * sizeof *order);
    char *text = order ? write_text(order, size) : NULL;
    pthread_mutex_unlock(&table.lock);
    free(order);
    return text;
}

long algorithms_timed(void) {
    pthread_mutex_lock(&table.lock);
    long timed = table.timed;
    pthread_mutex_unlock(&table.lock);
    return timed;
}

/* check_fuzz.c - every fuzz target over its corpus, over all that is left of each file when it is cut off, and over
 * random changes of them: the short form of `make fuzz`, without clang and the same each time. */
#include <dirent.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/philox.h"
#include "harness/store/record_json.h"
#include "tests/lib/scratch.h"
#include "tests/lib/workers.h"
#include "tests/testing.h"

typedef int target_function(const uint8_t *data, size_t size);

#define FUZZ_TARGET(name) target_function fuzz_##name;
#include FUZZ_LIST /* written by the Makefile from the files here */
#undef FUZZ_TARGET

static const struct {
    const char *name;
    target_function *run;
} targets[] = {
#define FUZZ_TARGET(name) {#name, fuzz_##name},
#include FUZZ_LIST
#undef FUZZ_TARGET
};
#define N_TARGETS (int)(sizeof targets / sizeof *targets)

#ifdef __SANITIZE_ADDRESS__
#define CHANGES 500
#else
#define CHANGES 5000
#endif
#define MOST_FILES   128
#define MOST_BYTES   8192 /* of a file that is changed */
#define CUTS         400  /* of a file: every length, or so many of them */
#define MOST_CHANGES 8    /* at once */

struct file {
    char name[256], *bytes;
    size_t size;
};

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct file *)a)->name, ((const struct file *)b)->name);
}

static int read_corpus(const char *target, struct file *files) {
    char folder[128], path[512];
    int n = 0;
    snprintf(folder, sizeof folder, "tests/fuzz/corpus/%s", target);
    DIR *corpus = opendir(folder);
    ck_assert_msg(corpus != NULL, "%s is not there; run from the root of the tree", folder);
    for (struct dirent *entry; (entry = readdir(corpus));) {
        if (entry->d_name[0] == '.') continue;
        ck_assert_int_lt(n, MOST_FILES);
        snprintf(files[n].name, sizeof files[n].name, "%s", entry->d_name);
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        files[n].bytes = slurp(path, &files[n].size);
        n++;
    }
    closedir(corpus);
    ck_assert_msg(n > 0, "%s is empty", folder);
    qsort(files, (size_t)n, sizeof *files, by_name);
    return n;
}

/* A heap copy of the exact size: a sanitizer sees the first byte that is read beyond it. */
static void feed(target_function *run, const char *bytes, size_t size) {
    uint8_t *copy = malloc(size ? size : 1);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, size);
    run(copy, size);
    free(copy);
}

/* One change: a bit, a byte, a number at an end, a span taken out, doubled or taken from another file. */
static size_t change(char *bytes, size_t size, const struct file *other, struct rng *r) {
    static const unsigned char ends[] = {0, 1, 0x7f, 0x80, 0xff, '0', '9', '"', ',', '\n', '-', '='};
    size_t at = size ? rng_below(r, size) : 0, n = 1 + rng_below(r, 16), from;
    switch (size ? rng_below(r, 6) : 5) {
    case 0:
        bytes[at] ^= (char)(1 << rng_below(r, 8));
        return size;
    case 1:
        bytes[at] = (char)rng_below(r, 256);
        return size;
    case 2:
        bytes[at] = (char)ends[rng_below(r, sizeof ends)];
        return size;
    case 3:
        if (n > size - at) n = size - at;
        memmove(bytes + at, bytes + at + n, size - at - n);
        return size - n;
    case 4:
        if (n > size - at) n = size - at;
        if (size + n > MOST_BYTES) return size;
        memmove(bytes + at + n, bytes + at, size - at);
        return size + n;
    default:
        if (other->size == 0) return size;
        from = rng_below(r, other->size);
        if (n > other->size - from) n = other->size - from;
        if (size + n > MOST_BYTES) return size;
        memmove(bytes + at + n, bytes + at, size - at);
        memcpy(bytes + at, other->bytes + from, n);
        return size + n;
    }
}

/* Place of the child, for the parent that finds it dead. */
struct place {
    atomic_int file, cut, change;
};

static void run_all(target_function *run, const struct file *files, int n, struct place *place) {
    char bytes[MOST_BYTES];
    for (int f = 0; f < n; f++) {
        place->file = f;
        feed(run, files[f].bytes, files[f].size);
        size_t step = files[f].size / CUTS + 1;
        for (size_t cut = 0; cut < files[f].size; cut += step) {
            place->cut = (int)cut;
            feed(run, files[f].bytes, cut);
        }
    }
    place->cut = -1;
    for (int c = 0; c < CHANGES; c++) {
        struct rng r = rng_at(1, STREAM_TEST, (uint64_t)c);
        const struct file *f = &files[rng_below(&r, (uint64_t)n)];
        size_t size = f->size < MOST_BYTES ? f->size : MOST_BYTES;
        place->change = c;
        place->file = (int)(f - files);
        memcpy(bytes, f->bytes, size);
        for (uint64_t k = rng_below(&r, MOST_CHANGES) + 1; k > 0; k--)
            size = change(bytes, size, &files[rng_below(&r, (uint64_t)n)], &r);
        feed(run, bytes, size);
    }
}

START_TEST(no_bytes_crash_a_reader) {
    static struct file files[MOST_FILES];
    struct place *place = workers_share(sizeof *place);
    int n = read_corpus(targets[_i].name, files), status;
    place->change = -1;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        run_all(targets[_i].run, files, n, place);
        exit(0); /* what the target has begun ends with it */
    }
    ck_assert(waitpid(child, &status, 0) == child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s ends with %d at %s, cut at %d, change %d",
                  targets[_i].name, status, files[place->file].name, place->cut, place->change);
    for (int f = 0; f < n; f++) free(files[f].bytes);
}
END_TEST

/* Without a record of the present schema the fuzzer would look at little but its number. */
START_TEST(the_corpus_has_a_record_that_is_read) {
    static struct run_record record;
    struct arena arena = {0};
    struct error e = {ST_OK, ""};
    char path[128], sum[RUN_ID_HEX], *text;
    size_t size;
    snprintf(path, sizeof path, "tests/fuzz/corpus/record/schema-%d", RECORD_SCHEMA);
    char *body = slurp(path, &size);
    record_hash_bytes(body, size, sum);
    FILE *f = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(f);
    fprintf(f, "{\"checksum\": \"%s\",\n%s", sum, body);
    fclose(f);
    ck_assert_int_eq(arena_reserve(&arena, (size_t)64 << 20, &e), ST_OK);
    ck_assert_msg(record_parse(text, size, path, NULL, &record, &arena, &e) == ST_OK, "%s", e.text);
    arena_free(&arena);
    free(text);
    free(body);
}
END_TEST

Suite *check_fuzz(void);
Suite *check_fuzz(void) {
    Suite *suite = suite_create("fuzz");
    TCase *c = tcase_create("fuzz");
    tcase_add_loop_test(c, no_bytes_crash_a_reader, 0, N_TARGETS);
    tcase_add_test(c, the_corpus_has_a_record_that_is_read);
    suite_add_tcase(suite, c);
    return suite;
}

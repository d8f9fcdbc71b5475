/* check_safetensors.c - the reader against every way a file can be wrong, the writer against the reader. */
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file/safetensors.h"
#include "core/philox.h"
#include "tests/testing.h"

#define ROOM 4096

/* A file's image in memory. */
struct file {
    unsigned char bytes[ROOM];
    size_t size;
};

/* Header text and n data bytes of value 0. */
static struct file file_of(const char *header, size_t n) {
    struct file f = {.size = 8 + strlen(header) + n};
    ck_assert_uint_le(f.size, sizeof f.bytes);
    f.bytes[0] = (unsigned char)(strlen(header) & 255);
    f.bytes[1] = (unsigned char)(strlen(header) >> 8);
    memcpy(f.bytes + 8, header, strlen(header));
    return f;
}

/* Parses from a heap copy of the exact size, so that a sanitizer sees the first byte read beyond the end. */
static enum status parse(struct safetensors *st, const unsigned char *bytes, size_t size, struct error *e) {
    unsigned char *copy = malloc(size ? size : 1);
    memcpy(copy, bytes, size);
    enum status status = safetensors_parse(st, copy, size, "FILE", e);
    free(copy);
    return status;
}

/* Reads every value, metadata pair and name: what a caller would touch. */
static double touch(const struct safetensors *st) {
    double sum = 0;
    for (int i = 0; i < st->n; i++) {
        sum += (double)strlen(st->tensors[i].name);
        for (int64_t j = 0; j < st->tensors[i].count; j++) sum += st_value(&st->tensors[i], j);
    }
    for (int i = 0; i < st->n_metadata; i++)
        sum += (double)(strlen(st->metadata[i].key) + strlen(st->metadata[i].value));
    return sum;
}

static const double small[] = {1.5, -2.25, 1e-40, 0.1, HUGE_VAL, -0.0};

static const struct st_source sources[] = {
    {.name = "wide", .rank = 2, .dims = {2, 3}, .f64 = true, .values = small},
    {.name = "narrow", .rank = 1, .dims = {5}, .f64 = false, .values = small},
    {.name = "none", .rank = 3, .dims = {4, 0, 2}, .f64 = true, .values = NULL},
    {.name = "gr\xc3\xb6\xc3\x9f"
             "e \"quoted\"\n",
     .rank = 0,
     .f64 = true,
     .values = small},
};
static const struct st_pair pairs[] = {{"lrnn_case", "1"}, {"config", "{\"m\": 5}"}};

#define N_SOURCES ((int)(sizeof sources / sizeof sources[0]))
#define N_PAIRS   ((int)(sizeof pairs / sizeof pairs[0]))

static char folder[64], path[128];

static void enter_folder(void) {
    strcpy(folder, "/tmp/lrnn-check-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/f.safetensors", folder);
}

static void leave_folder(void) {
    unlink(path);
    ck_assert_msg(rmdir(folder) == 0, "something is left in %s", folder);
}

static struct file written(void) {
    struct error e;
    ck_assert_msg(safetensors_write(path, sources, N_SOURCES, pairs, N_PAIRS, &e) == ST_OK, "%s", e.text);
    struct file f = {.size = 0};
    FILE *in = fopen(path, "rb");
    f.size = fread(f.bytes, 1, sizeof f.bytes, in);
    fclose(in);
    return f;
}

START_TEST(what_is_written_is_read_back) {
    written();
    struct safetensors st;
    struct error e;
    ck_assert_msg(safetensors_read(&st, path, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(st.n, N_SOURCES);
    ck_assert_int_eq(st.n_metadata, N_PAIRS);
    ck_assert_str_eq(safetensors_metadata(&st, "config"), "{\"m\": 5}");
    ck_assert_ptr_null(safetensors_metadata(&st, "wide"));
    ck_assert_ptr_null(safetensors_find(&st, "lrnn_case"));
    for (int s = 0; s < N_SOURCES; s++) {
        const struct st_tensor *t = safetensors_find(&st, sources[s].name);
        ck_assert_ptr_nonnull(t);
        ck_assert_int_eq(t->f64, sources[s].f64);
        ck_assert_int_eq(t->rank, sources[s].rank);
        int64_t count = 1;
        for (int i = 0; i < t->rank; i++) {
            ck_assert_int_eq(t->dims[i], sources[s].dims[i]);
            count *= t->dims[i];
        }
        ck_assert_int_eq(t->count, count);
        for (int64_t i = 0; i < count; i++) {
            double want = t->f64 ? small[i] : (double)(float)small[i], got = st_value(t, i);
            ck_assert_msg(memcmp(&want, &got, sizeof want) == 0, "%s[%d]: want %a, got %a", t->name, (int)i, want, got);
        }
    }
    safetensors_free(&st);
    ck_assert_int_eq(st.n, 0);
}
END_TEST

START_TEST(data_section_starts_at_a_multiple_of_eight) {
    struct file f = written();
    ck_assert_uint_eq((f.bytes[0] + 256u * f.bytes[1]) % 8, 0);
}
END_TEST

START_TEST(writing_twice_gives_the_same_bytes) {
    struct file first = written(), second = written();
    ck_assert_uint_eq(first.size, second.size);
    ck_assert_mem_eq(first.bytes, second.bytes, first.size);
}
END_TEST

START_TEST(every_truncation_is_refused) {
    struct file f = written();
    struct error e;
    struct safetensors st;
    ck_assert_int_eq(parse(&st, f.bytes, f.size, &e), ST_OK);
    safetensors_free(&st);
    for (size_t size = 0; size < f.size; size++) {
        ck_assert_msg(parse(&st, f.bytes, size, &e) == ST_DATA, "%zu of %zu bytes were accepted", size, f.size);
        ck_assert_ptr_null(st.tensors);
        ck_assert_msg(strncmp(e.text, "FILE: ", 6) == 0 && !strchr(e.text, '\n'), "%s", e.text);
    }
}
END_TEST

START_TEST(bytes_after_the_end_are_refused) {
    struct file f = written();
    struct error e;
    struct safetensors st;
    ck_assert_int_eq(parse(&st, f.bytes, f.size + 1, &e), ST_DATA);
    ck_assert_msg(strstr(e.text, "the last 1 of 77 data bytes belong to no tensor") != NULL, "%s", e.text);
}
END_TEST

/* 10 000 files with one to four flipped bits: refused with one sentence, or read without leaving the image. */
START_TEST(flipped_bits_never_crash) {
    struct file f = written();
    struct rng r = rng_at(1, STREAM_TEST, 0);
    int refused = 0;
    for (int n = 0; n < 10000; n++) {
        struct file g = f;
        for (uint64_t flips = 1 + rng_below(&r, 4); flips > 0; flips--)
            g.bytes[rng_below(&r, g.size)] ^= (unsigned char)(1u << rng_below(&r, 8));
        struct safetensors st;
        struct error e = {ST_OK, ""};
        if (parse(&st, g.bytes, g.size, &e) == ST_OK) {
            volatile double sum = touch(&st);
            (void)sum;
            safetensors_free(&st);
        } else {
            refused++;
            ck_assert_int_eq(e.status, ST_DATA);
            ck_assert_msg(strncmp(e.text, "FILE: ", 6) == 0 && !strchr(e.text, '\n'), "%s", e.text);
        }
    }
    ck_assert_int_gt(refused, 5000); /* most of the bytes are header, where nearly every flip matters */
}
END_TEST

/* --- malformed headers ------------------------------------------------------------------------------------------ */

#define T(dtype, shape, offsets) "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define BIG                      "9223372036854775807"

static const struct malformed {
    const char *header;
    size_t data_bytes;
    const char *message;
} malformed[] = {
    {"", 0, "not valid JSON near offset 8"},
    {"{", 0, "not valid JSON"},
    {"[]", 0, "the header is not a JSON object"},
    {"{\"a\":1}", 0, "the entry of tensor \"a\" is not an object"},
    {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,8]}}", 8, "tensor \"a\" has no dtype"},
    {"{\"a\":{\"dtype\":\"F64\",\"data_offsets\":[0,8]}}", 8, "tensor \"a\" has no shape"},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1]}}", 8, "tensor \"a\" has no data_offsets"},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8],\"x\":1}}", 8, "has the unknown key \"x\""},
    {"{\"a\":" T("F8_E4M3", "[1]", "[0,1]") "}", 1,
     "tensor \"a\" has dtype \"F8_E4M3\"; expected F16, BF16, F32 or F64"},
    {"{\"a\":" T("BF16", "[2]", "[0,2]") "}", 2, "its shape and dtype need 4"},
    {"{\"a\":" T("F64", "[1,1,1,1,1,1]", "[0,8]") "}", 8, "has rank 6; at most 5"},
    {"{\"a\":" T("F64", "[-1]", "[0,8]") "}", 8, "size 0 of tensor \"a\" is not a whole number"},
    {"{\"a\":" T("F64", "[1,1.0]", "[0,8]") "}", 8, "size 1 of tensor \"a\" is not a whole number"},
    {"{\"a\":" T("F64", "[99999999999999999999]", "[0,8]") "}", 8, "too big integer"},
    {"{\"a\":" T("F64", "[" BIG ",4]", "[0,8]") "}", 8, "the shape of tensor \"a\" overflows"},
    {"{\"a\":" T("F64", "[" BIG "]", "[0,8]") "}", 8, "the shape of tensor \"a\" overflows"},
    {"{\"a\":" T("F64", "[4294967296,4294967296,0]", "[0,0]") "}", 0, "the shape of tensor \"a\" overflows"},
    {"{\"a\":" T("F64", "[2]", "[0,8]") "}", 8, "has 8 bytes at data offset 0; its shape and dtype need 16"},
    {"{\"a\":" T("F64", "[1]", "[0,16]") "}", 8, "data_offsets 0 to 16, outside the 8 data bytes"},
    {"{\"a\":" T("F64", "[1]", "[-8,0]") "}", 8, "data_offsets -8 to 0, outside"},
    {"{\"a\":" T("F64", "[1]", "[8,0]") "}", 8, "data_offsets 8 to 0, outside"},
    {"{\"a\":" T("F64", "[1]", "[0,8,8]") "}", 8, "tensor \"a\" has no data_offsets; expected two whole numbers"},
    {"{\"a\":" T("F64", "[1]", "[0,8.0]") "}", 8, "tensor \"a\" has no data_offsets; expected two whole numbers"},
    {"{\"a\":" T("F64", "[1]", "[0,8]") ",\"b\":" T("F64", "[1]", "[0,8]") "}", 8, "overlaps tensor"},
    {"{\"a\":" T("F64", "[2]", "[0,16]") ",\"b\":" T("F64", "[1]", "[8,16]") "}", 16,
     "tensor \"b\" at data offset 8 overlaps tensor \"a\", which ends at 16"},
    {"{\"a\":" T("F64", "[2]", "[0,16]") ",\"b\":" T("F64", "[0]", "[8,8]") "}", 16, "overlaps tensor \"a\""},
    {"{\"b\":" T("F64", "[1]", "[16,24]") ",\"a\":" T("F64", "[1]", "[0,8]") "}", 24,
     "data offsets 8 to 16 before tensor \"b\" belong to no tensor"},
    {"{}", 3, "the last 3 of 3 data bytes belong to no tensor"},
    {"{\"a\":" T("F64", "[1]", "[0,8]") ",\"a\":" T("F64", "[1]", "[0,8]") "}", 8, "duplicate object key"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "duplicate object key"},
    {"{\"a\":{\"dtype\":\"F64\",\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8, "duplicate object key"},
    {"{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, "duplicate object key"},
    {"{\"a\":1,\"a\":2}", 0, "not valid JSON near offset 18: duplicate object key"},
    {"{\"__metadata__\":[]}", 0, "__metadata__ is not an object"},
    {"{\"__metadata__\":{\"k\":1}}", 0, "metadata \"k\" is not a string"},
    {"{\"a\\u0000b\":" T("F64", "[1]", "[0,8]") "}", 8, "not valid JSON"},
    {"{\"__metadata__\":{\"k\":\"a\\u0000b\"}}", 0, "not valid JSON"},
    {"{\"\xff\":" T("F64", "[1]", "[0,8]") "}", 8, "not valid JSON"},
    {"{\"a\":" T("F64", "[[1]]", "[0,8]") "}", 8, "the header nests deeper than 3 at offset"},
    {"{\"a\\nb\":1}", 0, "the entry of tensor \"a?b\" is not an object"},
    {"{} {}", 0, "not valid JSON"},
};

START_TEST(each_malformed_header_is_refused_with_its_reason) {
    const struct malformed *m = &malformed[_i];
    struct file f = file_of(m->header, m->data_bytes);
    struct safetensors st;
    struct error e = {ST_OK, ""};
    ck_assert_msg(parse(&st, f.bytes, f.size, &e) == ST_DATA, "accepted: %s", m->header);
    ck_assert_msg(strstr(e.text, m->message) != NULL, "%s\n  wanted \"%s\"\n  got    \"%s\"", m->header, m->message,
                  e.text);
    ck_assert_msg(strncmp(e.text, "FILE: ", 6) == 0 && !strchr(e.text, '\n'), "%s", e.text);
}
END_TEST

/* An error of an entry is told with the offset of its name, whatever stands before it. */
/* Bit patterns of both formats and what they are (IEEE 754 binary16; the upper half of binary32). */
START_TEST(halves_are_read_exactly) {
    static const struct {
        unsigned char bits[2];
        double f16, bf16;
    } cases[] = {{{0x00, 0x3c}, 1, 0.0078125},      {{0x00, 0xc0}, -2, -2},     {{0xff, 0x7b}, 65504, 0x1.fep120},
                 {{0x01, 0x00}, 0x1p-24, 0x1p-133}, {{0x00, 0x80}, -0.0, -0.0}, {{0x80, 0x3f}, 1.875, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct st_tensor t = {.half = ST_F16, .bytes = cases[i].bits};
        ck_assert_msg(st_value(&t, 0) == cases[i].f16, "%g", st_value(&t, 0));
        t.half = ST_BF16;
        ck_assert_msg(st_value(&t, 0) == cases[i].bf16, "%a", st_value(&t, 0));
    }
    const unsigned char infinite[] = {0x00, 0xfc, 0x01, 0x7c};
    struct st_tensor t = {.half = ST_F16, .bytes = infinite};
    ck_assert(st_value(&t, 0) == -INFINITY && isnan(st_value(&t, 1)));
    static const char header[] = "{\"a\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]}}";
    unsigned char file[8 + sizeof header - 1 + 4] = {sizeof header - 1};
    memcpy(file + 8, header, sizeof header - 1);
    memcpy(file + 8 + sizeof header - 1, "\x80\x3f\x20\xc1", 4);
    struct safetensors st;
    struct error e;
    ck_assert_msg(safetensors_parse(&st, file, sizeof file, "halves", &e) == ST_OK, "%s", e.text);
    ck_assert(st_value(&st.tensors[0], 0) == 1 && st_value(&st.tensors[0], 1) == -10);
    safetensors_free(&st);
}
END_TEST

START_TEST(a_bad_entry_is_told_by_its_offset) {
    static const char *const before[] = {
        "{",
        "{\"__metadata__\":{\"a\\\"{\":\"],:,\",\"bad\":\"\\\\\"},",
        "{ \"\\\\\" : " T("F64", "[0]", "[0,0]") " ,\t",
        "{\"a\":" T("F64", "[0]", "[0,0]") ",\"b\":" T("F32", "[2,0]", "[0,0]") ",",
    };
    static const char *const entries[][2] = {
        {"1", "the entry of tensor \"bad\" is not an object"},
        {T("I64", "[1]", "[0,8]"), "tensor \"bad\" has dtype \"I64\"; expected F16, BF16, F32 or F64"},
        {T("F64", "[" BIG ",4]", "[0,8]"), "the shape of tensor \"bad\" overflows 64 bits"},
        {T("F64", "[2]", "[0,8]"), "tensor \"bad\" has 8 bytes at data offset 0; its shape and dtype need 16"},
        {T("F64", "[1]", "[0,9]"), "tensor \"bad\" has data_offsets 0 to 9, outside the 8 data bytes"},
        {"{\"dtype\":\"F64\",\"shape\":[1]}", "tensor \"bad\" has no data_offsets"},
    };
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++)
        for (size_t j = 0; j < sizeof entries / sizeof entries[0]; j++) {
            char header[512], wanted[256];
            struct safetensors st;
            struct error e = {ST_OK, ""};
            snprintf(header, sizeof header, "%s\"bad\":%s}", before[i], entries[j][0]);
            struct file f = file_of(header, 8);
            snprintf(wanted, sizeof wanted, "FILE: offset %zu: %s", 8 + strlen(before[i]), entries[j][1]);
            ck_assert_int_eq(parse(&st, f.bytes, f.size, &e), ST_DATA);
            ck_assert_msg(strncmp(e.text, wanted, strlen(wanted)) == 0, "%s\n  wanted \"%s\"\n  got    \"%s\"", header,
                          wanted, e.text);
        }
}
END_TEST

/* The fuzzer's corpus: the names say which files are whole. */
START_TEST(the_corpus_is_read_or_refused_as_it_is_named) {
    const char *place = "tests/fuzz/corpus/safetensors";
    DIR *corpus = opendir(place);
    ck_assert_msg(corpus != NULL, "%s is not there; run from the root of the tree", place);
    int good = 0, bad = 0;
    for (struct dirent *entry; (entry = readdir(corpus));) {
        if (entry->d_name[0] == '.') continue;
        char file[512];
        struct safetensors st;
        struct error e = {ST_OK, ""};
        snprintf(file, sizeof file, "%s/%s", place, entry->d_name);
        enum status status = safetensors_read(&st, file, &e);
        bool whole = strncmp(entry->d_name, "good-", 5) == 0;
        ck_assert_msg(whole || strncmp(entry->d_name, "bad-", 4) == 0, "%s is named neither good nor bad", file);
        ck_assert_msg(status == (whole ? ST_OK : ST_DATA), "%s: status %d %s", file, (int)status, e.text);
        if (!whole) ck_assert_msg(strncmp(e.text, file, strlen(file)) == 0 && !strchr(e.text, '\n'), "%s", e.text);
        if (whole) safetensors_free(&st);
        good += whole;
        bad += !whole;
    }
    closedir(corpus);
    ck_assert_msg(good >= 9 && bad >= 25, "%d good and %d bad files", good, bad);
}
END_TEST

static const char *const wellformed[] = {
    "{}",
    "{}   ",
    "{\"__metadata__\":{}}",
    "{\"a\":" T("F64", "[0]", "[0,0]") "}",
    "{\"a\":" T("F32", "[3,0,5]", "[0,0]") ",\"b\":" T("F64", "[0]", "[0,0]") "}",
};

START_TEST(files_without_data_are_read) {
    struct file f = file_of(wellformed[_i], 0);
    struct safetensors st;
    struct error e;
    ck_assert_msg(parse(&st, f.bytes, f.size, &e) == ST_OK, "%s", e.text);
    safetensors_free(&st);
}
END_TEST

START_TEST(order_in_the_header_is_free_and_empty_tensors_may_stand_between) {
    struct file f = file_of("{\"c\":" T("F32", "[1]", "[8,12]") ",\"b\":" T("F64", "[0]", "[8,8]") //
                            ",\"a\":" T("F64", "[]", "[0,8]") "}",
                            12);
    struct safetensors st;
    struct error e;
    ck_assert_msg(parse(&st, f.bytes, f.size, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(st.n, 3);
    ck_assert_str_eq(st.tensors[0].name, "a");
    ck_assert_str_eq(st.tensors[1].name, "b");
    ck_assert_str_eq(st.tensors[2].name, "c");
    ck_assert_int_eq(st.tensors[0].rank, 0);
    ck_assert_int_eq(st.tensors[0].count, 1);
    safetensors_free(&st);
}
END_TEST

START_TEST(header_length_beyond_the_file_or_the_cap_is_refused) {
    struct file f = file_of("{}", 0);
    struct safetensors st;
    struct error e;
    f.bytes[0] = 3;
    ck_assert_int_eq(parse(&st, f.bytes, f.size, &e), ST_DATA);
    ck_assert_msg(strstr(e.text, "is cut off: its header has 3 bytes, and 2 follow its length") != NULL, "%s", e.text);
    memset(f.bytes, 255, 8);
    ck_assert_int_eq(parse(&st, f.bytes, f.size, &e), ST_DATA);
    ck_assert_msg(strstr(e.text, "this is no safetensors file") != NULL, "%s", e.text);

    size_t length = (size_t)SAFETENSORS_MAX_HEADER + 1;
    unsigned char *big = malloc(8 + length);
    memset(big + 8, ' ', length);
    for (int i = 0; i < 8; i++) big[i] = (unsigned char)((uint64_t)length >> (8 * i));
    ck_assert_int_eq(safetensors_parse(&st, big, 8 + length, "FILE", &e), ST_DATA);
    free(big);
    ck_assert_msg(strstr(e.text, "the length of its header, of at most 104857600") != NULL, "%s", e.text);
}
END_TEST

START_TEST(a_header_of_too_many_values_is_refused_before_it_is_parsed) {
    size_t length = 4u << 20;
    unsigned char *bytes = calloc(1, 8 + length);
    for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)((uint64_t)length >> (8 * i));
    const char start[] = {'{', '"', 'a', '"', ':', '['};
    memcpy(bytes + 8, start, sizeof start);
    for (size_t i = sizeof start; i < length; i++) bytes[8 + i] = i % 2 ? ',' : '1';
    struct safetensors st;
    struct error e;
    ck_assert_int_eq(safetensors_parse(&st, bytes, 8 + length, "FILE", &e), ST_DATA);
    free(bytes);
    ck_assert_msg(strstr(e.text, "more than 1000000 values") != NULL, "%s", e.text);
}
END_TEST

/* --- the file system -------------------------------------------------------------------------------------------- */

START_TEST(unreadable_paths_are_named) {
    struct safetensors st;
    struct error e;
    ck_assert_int_eq(safetensors_read(&st, path, &e), ST_DATA);
    ck_assert_msg(strstr(e.text, path) && strstr(e.text, "No such file"), "%s", e.text);
    ck_assert_int_eq(safetensors_read(&st, folder, &e), ST_DATA);
    ck_assert_msg(strstr(e.text, folder) && strstr(e.text, "not a regular file"), "%s", e.text);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(safetensors_read(&st, path, &e), ST_DATA);
    ck_assert_msg(strstr(e.text, "not a regular file") != NULL, "%s", e.text);
}
END_TEST

/* A limit on the size of files strikes in the middle of the write, as a full disk would. The old file stays whole and
 * no temporary one is left (leave_folder would find it). */
START_TEST(a_failed_write_keeps_the_old_file) {
    struct file before = written();
    enum { N = 10000 };
    static const double values[N];
    struct st_source large = {.name = "large", .rank = 1, .dims = {N}, .f64 = true, .values = values};
    struct rlimit old;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    struct rlimit tight = {.rlim_cur = N, .rlim_max = old.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &tight), 0);
    struct error e;
    enum status status = safetensors_write(path, &large, 1, NULL, 0, &e);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    ck_assert_int_eq(status, ST_FAIL);
    ck_assert_msg(strstr(e.text, path) && strstr(e.text, "File too large"), "%s", e.text);

    struct safetensors st;
    ck_assert_msg(safetensors_read(&st, path, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(st.n, N_SOURCES);
    safetensors_free(&st);
    struct file after = written();
    ck_assert_mem_eq(before.bytes, after.bytes, before.size);
}
END_TEST

START_TEST(an_unwritable_place_is_named) {
    struct error e;
    char nowhere[sizeof path + 8];
    snprintf(nowhere, sizeof nowhere, "%s/no/f", folder);
    ck_assert_int_eq(safetensors_write(nowhere, sources, N_SOURCES, NULL, 0, &e), ST_FAIL);
    ck_assert_msg(strstr(e.text, nowhere) && strstr(e.text, "No such file"), "%s", e.text);
}
END_TEST

static const struct {
    struct st_source second;
    const char *message;
} unwritable[] = {
    {{.name = "first", .rank = 0, .f64 = true, .values = small}, "tensor \"first\" has a name that is taken"},
    {{.name = "__metadata__", .rank = 0, .values = small}, "has a name that is taken"},
    {{.name = "\xff", .rank = 0, .values = small}, "has a name that is not UTF-8"},
    {{.name = "b", .rank = 6, .values = small}, "tensor \"b\" has rank 6"},
    {{.name = "b", .rank = 1, .dims = {-1}, .values = small}, "tensor \"b\" has an impossible shape"},
    {{.name = "b", .rank = 2, .dims = {1LL << 40, 1LL << 40}, .values = small}, "has an impossible shape"},
};

START_TEST(sources_that_could_not_be_read_back_are_not_written) {
    struct st_source two[] = {{.name = "first", .rank = 1, .dims = {2}, .f64 = true, .values = small},
                              unwritable[_i].second};
    struct error e;
    ck_assert_int_eq(safetensors_write(path, two, 2, pairs, N_PAIRS, &e), ST_FAIL);
    ck_assert_msg(strstr(e.text, unwritable[_i].message) != NULL, "%s", e.text);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

/* The ground truth that `lrnn verify` uses: 47 files of another program's making. */
START_TEST(every_case_file_is_read) {
    DIR *cases = opendir("tests/cases");
    ck_assert_msg(cases != NULL, "tests/cases is not there; run from the root of the tree");
    int n = 0;
    for (struct dirent *entry; (entry = readdir(cases));) {
        size_t length = strlen(entry->d_name);
        if (length < 12 || strcmp(entry->d_name + length - 12, ".safetensors") != 0) continue;
        char file[512];
        snprintf(file, sizeof file, "tests/cases/%s", entry->d_name);
        struct safetensors st;
        struct error e;
        ck_assert_msg(safetensors_read(&st, file, &e) == ST_OK, "%s", e.text);
        ck_assert_msg(safetensors_metadata(&st, "lrnn_case") != NULL, "%s has no lrnn_case", file);
        ck_assert_str_eq(safetensors_metadata(&st, "lrnn_case"), "1");
        ck_assert_int_gt(st.n, 0);
        ck_assert_msg(isfinite(touch(&st)), "%s holds a value that is not finite", file);
        for (int i = 0; i < st.n; i++) ck_assert_msg(st.tensors[i].f64, "%s: %s is not F64", file, st.tensors[i].name);
        safetensors_free(&st);
        n++;
    }
    closedir(cases);
    ck_assert_int_ge(n, 47);
}
END_TEST

#define COUNT(list) ((int)(sizeof(list) / sizeof(list)[0]))

Suite *check_safetensors(void) {
    Suite *suite = suite_create("safetensors");

    TCase *bytes = tcase_create("bytes");
    tcase_add_loop_test(bytes, each_malformed_header_is_refused_with_its_reason, 0, COUNT(malformed));
    tcase_add_loop_test(bytes, files_without_data_are_read, 0, COUNT(wellformed));
    tcase_add_test(bytes, order_in_the_header_is_free_and_empty_tensors_may_stand_between);
    tcase_add_test(bytes, header_length_beyond_the_file_or_the_cap_is_refused);
    tcase_add_test(bytes, a_header_of_too_many_values_is_refused_before_it_is_parsed);
    tcase_add_test(bytes, a_bad_entry_is_told_by_its_offset);
    tcase_add_test(bytes, halves_are_read_exactly);
    tcase_add_test(bytes, the_corpus_is_read_or_refused_as_it_is_named);
    tcase_add_test(bytes, every_case_file_is_read);
    suite_add_tcase(suite, bytes);

    TCase *files = tcase_create("files");
    tcase_add_checked_fixture(files, enter_folder, leave_folder);
    tcase_add_test(files, what_is_written_is_read_back);
    tcase_add_test(files, data_section_starts_at_a_multiple_of_eight);
    tcase_add_test(files, writing_twice_gives_the_same_bytes);
    tcase_add_test(files, every_truncation_is_refused);
    tcase_add_test(files, bytes_after_the_end_are_refused);
    tcase_add_test(files, flipped_bits_never_crash);
    tcase_add_test(files, unreadable_paths_are_named);
    tcase_add_test(files, an_unwritable_place_is_named);
    tcase_add_test(files, a_failed_write_keeps_the_old_file);
    tcase_add_loop_test(files, sources_that_could_not_be_read_back_are_not_written, 0, COUNT(unwritable));
    suite_add_tcase(suite, files);
    return suite;
}

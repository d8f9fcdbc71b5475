/* check_cuda_products.c - the file of timed products (harness/run/products.h), by whole runs on the host. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/run/products.h"
#include "harness/store/record_files.h"
#include "kernels/lib/algorithms.h"
#include "tests/lib/program.h"
#include "tests/testing.h"

#if defined LRNN_CUDA_HOST && !REAL_IS_DOUBLE

#define TRAIN                                                                                                          \
    "train s3:n_train=96,n_val=32,n_test=32,length=4 bdlru:m=2,blocks=4 --epochs 1 --batch 32 --threads 1 "            \
    "--device cuda --quiet --out %s/results --seed %d --dim %d"

static char file[SCRATCH_BYTES + 32];

static void begin(void) {
    char folder[SCRATCH_BYTES + 16];
    program_begin();
    snprintf(folder, sizeof folder, "%s/cache", program_folder);
    snprintf(file, sizeof file, "%s/cublas.products", folder);
    setenv("LRNN_CACHE", folder, 1);
    setenv("LRNN_CUDA_HOST_ALGORITHMS", "90000 20000", 1);
}

/* Trains with another seed, and gives the algorithms of its record. */
static void train(int seed, const char *said, char *names, size_t size) {
    char line[1024], store[SCRATCH_BYTES + 16];
    struct record_set set;
    struct error e = {0};
    snprintf(line, sizeof line, TRAIN, program_folder, seed, 8);
    expect_status(run(line), 0, line);
    if (said)
        expect_text(err, said, line);
    else
        ck_assert_str_eq(err, "");
    snprintf(store, sizeof store, "%s/results", program_folder);
    ck_assert_msg(records_load(&set, store, &e) == ST_OK, "%s", e.text);
    for (int i = 0; i < set.n; i++)
        if (set.list[i].run.seed == (uint64_t)seed) snprintf(names, size, "%s", run_products(&set.list[i].run));
    records_free(&set);
    ck_assert_msg(!strncmp(names, "cuBLAS", 6), "%s", names);
}

/* The second process would choose the third algorithm, if it timed them. */
START_TEST(a_second_process_reads_the_first_ones_choices) {
    char first[512], second[512];
    size_t size, again;
    train(1, NULL, first, sizeof first);
    ck_assert_msg(strlen(first) > strlen("cuBLAS 12345678 12345678"), "%s", first);
    char *before = slurp(file, &size);
    for (const char *name = first + strlen("cuBLAS "); strlen(name) >= 8; name += strlen(name) > 8 ? 9 : 8) {
        char one[10];
        snprintf(one, sizeof one, "%.8s\t", name);
        ck_assert_msg(strstr(before, one), "%s", one);
    }
    setenv("LRNN_CUDA_HOST_ALGORITHMS", "90000 20000 10", 1);
    train(2, NULL, second, sizeof second);
    ck_assert_str_eq(first, second);
    char *after = slurp(file, &again);
    ck_assert(size == again && !memcmp(before, after, size));
    unlink(file);
    train(3, NULL, second, sizeof second);
    ck_assert_str_ne(first, second);
    free(before);
    free(after);
}
END_TEST

/* One sentence; the run goes on, and the next one finds a whole file. */
START_TEST(a_damaged_or_foreign_file_is_rebuilt) {
    static const char *const said[] = {"cublas.products is damaged: its checksum does not match; the products of "
                                       "matrices are timed again",
                                       "cublas.products is no file of timed products; the products of matrices are "
                                       "timed again"};
    char names[512], same[512];
    size_t size;
    train(1, NULL, names, sizeof names);
    char *text = slurp(file, &size);
    text[size / 2] ^= 1;
    spill(file, text, size);
    free(text);
    for (int i = 0; i < 2; i++) {
        train(2 + 2 * i, said[i], same, sizeof same);
        ck_assert_str_eq(names, same);
        ck_assert_ptr_null(strchr(strchr(err, '\n') + 1, '\n'));
        train(3 + 2 * i, NULL, same, sizeof same);
        ck_assert_str_eq(names, same);
        spill(file, "{}\n", 3);
    }
}
END_TEST

/* A folder of the file's name can be neither read nor replaced; without a cache folder nothing is written. */
START_TEST(a_run_needs_no_file) {
    char names[512], folder[SCRATCH_BYTES + 16];
    snprintf(folder, sizeof folder, "%s/cache", program_folder);
    ck_assert(mkdir(folder, 0777) == 0 && mkdir(file, 0777) == 0);
    train(1, "cublas.products: Is a directory; the next process times its products again", names, sizeof names);
    ck_assert_int_eq(rmdir(file), 0);
    setenv("LRNN_CUDA_ALGORITHMS", "0", 1);
    train(2, NULL, names, sizeof names);
    ck_assert_int_ne(access(file, F_OK), 0);
    unsetenv("LRNN_CUDA_ALGORITHMS");
    unsetenv("LRNN_CACHE");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    train(3, NULL, names, sizeof names);
    ck_assert_int_ne(access(file, F_OK), 0);
}
END_TEST

/* Both have a width of their own, and so products of their own. What one loses by writing at the same time is timed
 * again; the file is whole. */
START_TEST(two_processes_write_at_the_same_time) {
    char line[4096], said[SCRATCH_BYTES + 16], names[512];
    const char *program = named_program("LRNN", "./lrnn"), *folder = program_folder;
    size_t size;
    snprintf(said, sizeof said, "%s/said", folder);
    snprintf(line, sizeof line, "(%s " TRAIN " & first=$!; %s " TRAIN " && wait $first) >/dev/null 2>%s", program,
             folder, 7, 16, program, folder, 8, 12, said);
    ck_assert_int_eq(system(line), 0);
    char *text = slurp(said, &size);
    ck_assert_msg(size == 0, "%s", text);
    free(text);
    text = slurp(file, &size);
    ck_assert(!strncmp(text, "lrnn algorithms 1\n", 18) && strstr(text, "\nsha256 "));
    free(text);
    train(1, NULL, names, sizeof names);
    text = slurp(file, &size);
    ck_assert_msg(strstr(text, "x12x") || strstr(text, "x16x"), "%s", text); /* it keeps what it found */
    free(text);
}
END_TEST

/* A record of a run that went on with other algorithms says so: its bits are of neither. */
START_TEST(products_of_an_earlier_part_are_compared) {
    struct algorithm first = {.code = {1}, .us = 2}, other = {.code = {3}, .us = 1};
    struct place p = {.device = DEVICE_CUDA, .cuda = (struct cuda_context *)&first};
    char names[64];
    algorithms_begin_user(p.cuda);
    algorithms_keep("a product", p.cuda, &first);
    products_name(&p, names, sizeof names);
    ck_assert_msg(strlen(names) == strlen("cuBLAS 12345678") && products_are(&p, names), "%s", names);
    algorithms_forget("a product", &other);
    ck_assert(products_are(&p, names));
    algorithms_forget("a product", &first);
    ck_assert(!products_are(&p, names));
    algorithms_keep("a product", p.cuda, &other);
    ck_assert(!products_are(&p, names) && products_are(&p, "cuBLAS"));
    p.device = DEVICE_CPU;
    ck_assert(products_are(&p, names));
}
END_TEST

#endif

Suite *check_cuda_products(void);
Suite *check_cuda_products(void) {
    Suite *suite = suite_create("cuda_products");
#if defined LRNN_CUDA_HOST && !REAL_IS_DOUBLE
    TCase *tests = tcase_create("cuda_products");
    tcase_add_checked_fixture(tests, begin, program_end);
    tcase_add_test(tests, a_second_process_reads_the_first_ones_choices);
    tcase_add_test(tests, a_damaged_or_foreign_file_is_rebuilt);
    tcase_add_test(tests, a_run_needs_no_file);
    tcase_add_test(tests, two_processes_write_at_the_same_time);
    tcase_add_test(tests, products_of_an_earlier_part_are_compared);
    suite_add_tcase(suite, tests);
#endif
    return suite;
}

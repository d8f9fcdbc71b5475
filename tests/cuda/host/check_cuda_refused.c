/* check_cuda_refused.c - a short run, each of whose calls of the device's API fails once, through cuda_host.h. */
#include <stdlib.h>
#include <string.h>

#include "harness/store/record_files.h"
#include "tests/lib/program.h"
#include "tests/testing.h"

#ifdef LRNN_CUDA_HOST

#define LINE                                                                                                           \
    "train s3:n_train=96,n_val=32,n_test=32,length=4 bdlru:m=2,blocks=4 --dim 8 --epochs 1 --batch 32 --threads 1 "    \
    "--device cuda --quiet --out %s/results --seed %ld"

static long refusable_calls(void) {
    char path[SCRATCH_BYTES + 16], line[1024];
    size_t size;
    snprintf(path, sizeof path, "%s/calls", program_folder);
    snprintf(line, sizeof line, LINE, program_folder, 1L);
    setenv("LRNN_CUDA_HOST_CALLS", path, 1);
    expect_status(run(line), 0, line);
    unsetenv("LRNN_CUDA_HOST_CALLS");
    char *text = slurp(path, &size);
    long calls = atol(text);
    free(text);
    return calls;
}

/* Memory is lacking, a capture is refused, or the device is lost. The program says so, no record is lost or damaged,
 * and the same command then comes to its end. LRNN_CUDA_EVERY=n takes every nth call; without it every tenth. */
START_TEST(a_call_that_fails_is_said_and_loses_nothing) {
    const char *text = getenv("LRNN_CUDA_EVERY");
    char line[1024], number[32], store[SCRATCH_BYTES + 16];
    long calls = refusable_calls(), every = text && atol(text) > 0 ? atol(text) : 10, tried = 0, told = 0;
    snprintf(store, sizeof store, "%s/results", program_folder);
    ck_assert_int_gt(calls, 100);
    for (long n = 1; n <= calls; n += every) {
        struct record_set set;
        struct error e = {0};
        snprintf(line, sizeof line, LINE, program_folder, 1 + n);
        snprintf(number, sizeof number, "%ld", n);
        setenv("LRNN_CUDA_HOST_REFUSE", number, 1);
        int status = run(line);
        unsetenv("LRNN_CUDA_HOST_REFUSE");
        bool said = strstr(err, "lrnn: ") || strstr(err, "cuda: ");
        ck_assert_msg(status == ST_OK || (status == ST_DEVICE && said), "call %ld of %ld: status %d: %s", n, calls,
                      status, err);
        told += said;
        tried++;
        expect_status(run(line), 0, line);
        ck_assert_msg(records_load(&set, store, &e) == ST_OK, "call %ld: %s", n, e.text);
        ck_assert_int_eq(set.n, 1 + tried);
        records_free(&set);
    }
    ck_assert_msg(told > tried / 2, "%ld of %ld", told, tried);
}
END_TEST

#endif

Suite *check_cuda_refused(void);
Suite *check_cuda_refused(void) {
    Suite *suite = suite_create("cuda_refused");
#ifdef LRNN_CUDA_HOST
    TCase *tests = tcase_create("cuda_refused");
    tcase_set_timeout(tests, 600); /* with every call some 400 runs */
    tcase_add_checked_fixture(tests, program_begin, program_end);
    tcase_add_test(tests, a_call_that_fails_is_said_and_loses_nothing);
    suite_add_tcase(suite, tests);
#endif
    return suite;
}

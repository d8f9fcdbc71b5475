/* refused.c - a device's API refuses a call of a short run (tests/cuda/host/cuda_host.h emulates the device). */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/store/clock.h"
#include "harness/store/record_files.h"
#include "tests/faults/exercise.h"
#include "tests/lib/scratch.h"
#include "tests/testing.h"

#define LINE                                                                                                           \
    "train s3:n_train=96,n_val=32,n_test=32,length=4 bdlru:m=2,blocks=4 --dim 8 --epochs 1 --batch 32 --threads 1 "    \
    "--device cuda --quiet --out %s/store --seed %ld"

static long refusable_calls(const char *folder) {
    char path[SCRATCH_BYTES + 16], wish[SCRATCH_BYTES + 64], arguments[1024];
    const char *variables[] = {wish, NULL};
    size_t size;
    snprintf(path, sizeof path, "%s/calls", folder);
    snprintf(wish, sizeof wish, "LRNN_CUDA_HOST_CALLS=%s", path);
    snprintf(arguments, sizeof arguments, LINE, folder, 1L);
    ck_assert_int_eq(run_words(folder, variables, arguments), 0);
    char *text = slurp(path, &size);
    long calls = atol(text);
    free(text);
    return calls;
}

void refuse_exercise(long every, double seconds, struct tally *t) {
    char folder[SCRATCH_BYTES], store[SCRATCH_BYTES + 16], wish[64], arguments[1024];
    const char *variables[] = {wish, NULL};
    double begin = time_now_s();
    scratch_make(folder);
    snprintf(store, sizeof store, "%s/store", folder);
    t->all = refusable_calls(folder);
    for (long n = 1; n <= t->all && (seconds <= 0 || time_now_s() - begin < seconds); n += every) {
        struct error e = {0};
        snprintf(arguments, sizeof arguments, LINE, folder, 1 + n);
        snprintf(wish, sizeof wish, "LRNN_CUDA_HOST_REFUSE=%ld", n);
        int status = run_words(folder, variables, arguments);
        char *text = said(folder, "err");
        bool told = strstr(text, "lrnn: ") || strstr(text, "cuda: ");
        if (status != ST_OK && !(status == ST_DEVICE && told))
            bad(t, "call %ld of %ld: status %d: %.300s", n, (long)t->all, status, text);
        free(text);
        t->failed += told;
        t->tried++;
        if (run_words(folder, NULL, arguments) != 0) bad(t, "call %ld: the same command then fails", n);
        int64_t records = whole_records(store, &e);
        if (records != 1 + t->tried)
            bad(t, "call %ld: %ld records of %ld. %.300s", n, (long)records, 1 + (long)t->tried, e.text);
    }
    scratch_remove(folder);
}

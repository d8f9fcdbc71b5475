/* files.c - how fast the files of a data set are read: decompression, the reader with all that it checks, SHA-256. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/perf/perf.h"
#include "tasks/data/datasets.h"

struct files_run {
    struct import_log log; /* first */
    struct samples pass;
    int64_t bytes; /* of the files, as they lie there */
    int files;
};

static void count(struct import_log *log, const char *path, int64_t bytes, const char sha256[SHA256_HEX],
                  const struct dataset_file *released) {
    struct files_run *r = (struct files_run *)(void *)log;
    (void)path, (void)sha256, (void)released;
    r->bytes += bytes;
    r->files++;
}

static enum status measure(struct files_run *r, const struct dataset *d, const char *folder, double seconds,
                           struct error *e) {
    double begin = perf_time_s();
    do {
        double start = perf_time_s();
        r->bytes = r->files = 0;
        TRY(dataset_import(d, folder, false, &r->log, e));
        samples_add(&r->pass, perf_time_s() - start);
    } while (perf_time_s() - begin < seconds);
    if (r->files) return ST_OK;
    return fail(e, ST_USAGE,
                "perf data: the bytes of the files of %s are not counted, so there is no rate; those of "
                "mutag are",
                d->name);
}

enum status perf_files(const char *dataset, const char *folder, double seconds, bool json, struct error *e) {
    const struct dataset *d;
    TRY(dataset_find(dataset, &d, e));
    struct files_run *r = calloc(1, sizeof *r);
    if (!r) return fail(e, ST_MEMORY, "no memory for the samples");
    r->log.read = count;
    enum status status = measure(r, d, folder, seconds, e);
    double median = (double)r->bytes / samples_median(&r->pass) / 1e6,
           best = (double)r->bytes / samples_best(&r->pass) / 1e6;
    if (status == ST_OK && json)
        printf("{\"dataset\":\"%s\",\"threads\":1,\"files\":%d,\"bytes\":%" PRId64
               ",\"mb_per_s_med\":%.6g,\"mb_per_s_best\":%.6g}\n",
               d->name, r->files, r->bytes, median, best);
    else if (status == ST_OK)
        printf("%s, one core: %d files of %" PRId64 " bytes read at %.0f MB/s median, best %.0f\n", d->name, r->files,
               r->bytes, median, best);
    free(r);
    return status;
}

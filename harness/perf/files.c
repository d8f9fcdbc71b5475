/* files.c - how fast the files of a data set are read: decompression, the reader with all that it checks, SHA-256. */
#include <inttypes.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/perf/perf.h"
#include "tasks/data/datasets.h"

struct files_run {
    struct import_log log;
    struct samples pass;
};

static void say_nothing(struct import_log *log, const char *path, int64_t bytes, const char sha256[SHA256_HEX],
                        const struct dataset_file *released) {
    (void)log, (void)path, (void)bytes, (void)sha256, (void)released;
}

static enum status measure(struct files_run *r, const struct dataset *d, const char *folder, double seconds,
                           struct error *e) {
    omp_set_num_threads(1); /* the reader has one, and its time is then what it ran (perf_time_s) */
    double begin = perf_time_s();
    do {
        double start = perf_time_s();
        r->log.count = (struct read_count){0, 0};
        TRY(dataset_import(d, folder, false, &r->log, e));
        samples_add(&r->pass, perf_time_s() - start);
    } while (perf_time_s() - begin < seconds);
    return ST_OK;
}

enum status perf_files(const char *dataset, const char *folder, double seconds, bool json, struct error *e) {
    const struct dataset *d;
    TRY(dataset_find(dataset, &d, e));
    struct files_run *r = calloc(1, sizeof *r);
    if (!r) return fail(e, ST_MEMORY, "no memory for the samples");
    r->log.read = say_nothing;
    enum status status = measure(r, d, folder, seconds, e);
    const struct read_count all = r->log.count;
    double median = (double)all.bytes / samples_median(&r->pass) / 1e6,
           best = (double)all.bytes / samples_best(&r->pass) / 1e6;
    if (status == ST_OK && json)
        printf("{\"dataset\":\"%s\",\"threads\":1,\"files\":%" PRId64 ",\"bytes\":%" PRId64
               ",\"mb_per_s_med\":%.6g,\"mb_per_s_best\":%.6g}\n",
               d->name, all.files, all.bytes, median, best);
    else if (status == ST_OK)
        printf("%s, one core: %" PRId64 " files of %" PRId64 " bytes read at %.0f MB/s median, best %.0f\n", d->name,
               all.files, all.bytes, median, best);
    free(r);
    return status;
}

/* files.c - how fast released files are read: decompression, the reader with all that it checks, SHA-256. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/perf/perf.h"
#include "harness/perf/rates.h"
#include "harness/perf/samples.h"
#include "harness/perf/sitting.h"
#include "harness/store/perf_row.h"
#include "tasks/data/datasets.h"
#include "tasks/task.h"

struct files_run {
    struct import_log log; /* first: the import hands it to note_file */
    const char *name, *folder;
    const struct dataset *d; /* NULL: a task reads the files where they lie */
    struct task_choice task;
    struct arena host;
    struct samples read, unpack;
    char path[DATASET_FILES][CACHE_PATH]; /* of files that are no parts of a folder of many */
    int n_paths;
    bool packed; /* one of these is gzip */
    double foreign;
};

/* Tasks that read released files where they lie, by their option `file`. */
static bool reads_in_place(const char *name) {
    return !strcmp(name, "listops");
}

static void note_file(struct import_log *log, const char *path, int64_t bytes, const char sha256[SHA256_HEX],
                      const struct dataset_file *released) {
    struct files_run *r = (struct files_run *)log;
    struct byte_source s;
    struct error e;
    (void)bytes, (void)sha256, (void)released;
    r->packed |= source_open_one_of_many(&s, AT_FDCWD, path, path, &e) == ST_OK && s.gzip;
    source_close(&s);
    if (r->n_paths < DATASET_FILES) snprintf(r->path[r->n_paths++], CACHE_PATH, "%s", path);
}

static void say_nothing(struct import_log *log, const char *path, int64_t bytes, const char sha256[SHA256_HEX],
                        const struct dataset_file *released) {
    (void)log, (void)path, (void)bytes, (void)sha256, (void)released;
}

/* All regular files of the folder, whose bytes the task reads and does not count. */
static enum status count_folder(const char *folder, struct read_count *count, struct error *e) {
    struct stat info;
    DIR *files = opendir(folder);
    if (!files) return fail(e, ST_DATA, "cannot read the folder %s", folder);
    for (struct dirent *entry; (entry = readdir(files));) {
        if (fstatat(dirfd(files), entry->d_name, &info, 0) != 0 || !S_ISREG(info.st_mode)) continue;
        count->files++;
        count->bytes += info.st_size;
        count->unpacked += info.st_size;
    }
    closedir(files);
    return ST_OK;
}

static enum status read_once(struct files_run *r, struct error *e) {
    char text[OPTION_TEXT + 64];
    r->log.count = (struct read_count){0};
    if (r->d) return dataset_import(r->d, r->folder, false, &r->log, e);
    arena_release(&r->host, 0);
    snprintf(text, sizeof text, "%s:file=%s", r->name, r->folder);
    TRY(task_parse(&r->task, text, e));
    TRY(task_open(&r->task, 1, &r->host, e));
    return count_folder(r->folder, &r->log.count, e);
}

/* What there is to do for any reader of packed files. */
static enum status unpack_once(const struct files_run *r, struct error *e) {
    static uint8_t window[SOURCE_WINDOW];
    enum status status = ST_OK;
    for (int i = 0; i < r->n_paths && status == ST_OK; i++) {
        struct byte_source s;
        size_t got = 1;
        status = source_open_one_of_many(&s, AT_FDCWD, r->path[i], r->path[i], e);
        while (status == ST_OK && got > 0) status = source_read(&s, window, sizeof window, &got, e);
        source_close(&s);
    }
    return status;
}

/* A first pass finds out what is packed, and brings the files into the system's memory; the others count. */
static enum status measure(struct files_run *r, double seconds, struct error *e) {
    struct noise noise;
    omp_set_num_threads(1); /* the reader has one, and its time is then what it ran (perf_time_s) */
    r->log.read = note_file;
    TRY(read_once(r, e));
    r->log.read = say_nothing;
    noise_begin(&noise);
    for (double begin = perf_time_s(); r->read.n == 0 || perf_time_s() - begin < seconds;) {
        double start = perf_time_s();
        TRY(read_once(r, e));
        double middle = perf_time_s();
        samples_add(&r->read, middle - start);
        if (!r->packed) continue;
        TRY(unpack_once(r, e));
        samples_add(&r->unpack, perf_time_s() - middle);
    }
    r->foreign = noise_end(&noise);
    return ST_OK;
}

/* The samples as a row of OUT/perf.csv, of which tools/readers_table.awk makes results/tables/speed.md. */
static enum status keep(const struct files_run *r, const char *pass, const struct samples *all, const char *out,
                        struct error *e) {
    struct perf_row row = {.bench = "files"};
    if (all->n == 0) return ST_OK;
    snprintf(row.pass, sizeof row.pass, "%s", pass);
    snprintf(row.shape, sizeof row.shape, "%s files%" PRId64 " bytes%" PRId64 " unpacked%" PRId64, r->name,
             r->log.count.files, r->log.count.bytes, r->log.count.unpacked);
    return sitting_keep(&row, all, r->foreign, NAN, out, e);
}

static void print(const struct files_run *r, bool json) {
    const struct read_count all = r->log.count;
    double median = (double)all.bytes / samples_median(&r->read) / 1e6,
           best = (double)all.bytes / samples_best(&r->read) / 1e6,
           alone = (double)all.bytes / samples_median(&r->unpack) / 1e6;
    if (json)
        printf("{\"dataset\":\"%s\",\"threads\":1,\"files\":%" PRId64 ",\"bytes\":%" PRId64
               ",\"mb_per_s_med\":%.6g,\"mb_per_s_best\":%.6g}\n",
               r->name, all.files, all.bytes, median, best);
    else
        printf("%s, one core: %" PRId64 " files of %" PRId64 " bytes read at %.0f MB/s median, best %.0f\n", r->name,
               all.files, all.bytes, median, best);
    if (!json && r->packed)
        printf("decompression alone: %.0f MB/s median; the files unpack to %" PRId64 " bytes\n", alone, all.unpacked);
}

static enum status open_run(struct files_run *r, const char *name, const char *folder, struct error *e) {
    r->name = name;
    r->folder = folder;
    if (reads_in_place(name)) return arena_reserve(&r->host, TASK_TABLE_BYTES, e);
    TRY(dataset_find(name, &r->d, e));
    r->name = r->d->name;
    return ST_OK;
}

enum status perf_files(const char *name, const char *folder, double seconds, bool json, const char *out,
                       struct error *e) {
    struct files_run *r = calloc(1, sizeof *r);
    if (!r) return fail(e, ST_MEMORY, "no memory for the samples");
    enum status status = open_run(r, name, folder, e);
    if (status == ST_OK) status = measure(r, seconds, e);
    if (status == ST_OK) print(r, json);
    if (status == ST_OK && *out) status = keep(r, "read", &r->read, out, e);
    if (status == ST_OK && *out) status = keep(r, "unpack", &r->unpack, out, e);
    arena_free(&r->host);
    free(r);
    return status;
}

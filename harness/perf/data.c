/* data.c - `lrnn perf data`: measures how fast a task makes its examples, and how fast released files are read. */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/perf/measure.h"
#include "harness/perf/perf.h"
#include "harness/store/clock.h"
#include "harness/store/files.h"
#include "tasks/data/datasets.h"
#include "tasks/task.h"

#define ROUND 64 /* examples between two readings of the clock */

/* Appends samples of one thread as a row of OUT/perf.csv, from which awk scripts in tools/ make
 * results/tables/speed.md. The caller has set bench, pass and shape. tokens: per sample; NAN: not counted. */
static enum status keep(struct perf_row *row, const struct samples *all, double foreign, double tokens, const char *out,
                        struct error *e) {
    struct sitting s = {.warm_up = 1, .foreign = foreign};
    struct machine m;
    if (!*out || all->n == 0) return ST_OK;
    machine_read(&m);
    sitting_describe(row, &m, 1);
    row->dtype[0] = '\0'; /* no products */
    sitting_summarise(&s, all);
    sitting_fill(&s, tokens, row);
    return sitting_append(out, row, &m, e);
}

/* --- examples ----------------------------------------------------------------------------------------------------- */

struct examples_run {
    struct task_choice task;
    struct arena host;
    enum split split;
    struct example example;
    int64_t next; /* index of the next example */
    struct samples round;
};

static enum status open_examples(struct examples_run *r, const char *task, uint64_t seed, struct error *e) {
    const struct task_shape *s = &r->task.shape;
    struct example *x = &r->example;
    TRY(task_parse(&r->task, task, e));
    TRY(arena_reserve(&r->host, TASK_TABLE_BYTES, e));
    TRY(task_open(&r->task, seed, &r->host, e));
    int64_t inputs = task_inputs(s, r->split);
    x->targets = arena_alloc(&r->host, (size_t)task_targets(s, r->split) * sizeof(int32_t));
    if (s->vocab_in)
        x->tokens = arena_alloc(&r->host, (size_t)inputs * sizeof(int32_t));
    else
        x->values = arena_alloc(&r->host, (size_t)inputs * sizeof(real));
    if (s->links.edges) x->links = arena_alloc(&r->host, (size_t)links_words(s->links) * sizeof(int32_t));
    if (x->targets && (x->tokens || x->values) && (x->links || !s->links.edges)) return ST_OK;
    return fail(e, ST_MEMORY, "%s: no memory for an example of length %" PRId64, r->task.name,
                task_length(s, r->split));
}

/* Makes ROUND examples; returns their tokens. */
static int64_t make_round(struct examples_run *r) {
    const struct task_shape *s = &r->task.shape;
    struct example *x = &r->example;
    int64_t tokens = 0, targets = task_targets(s, r->split);
    for (int i = 0; i < ROUND; i++) {
        for (int64_t t = 0; t < targets; t++) x->targets[t] = IGNORED;
        task_fill(&r->task, r->split, r->next++ % s->examples[r->split], x);
        tokens += x->length + x->second;
    }
    return tokens;
}

static enum status run_examples(const char *task, const struct perf_data_request *q, struct error *e) {
    static const char *const splits[SPLIT_COUNT] = {"train", "val", "test"};
    struct perf_row row = {.bench = "examples"};
    struct noise noise;
    int64_t all = 0;
    struct examples_run *r = calloc(1, sizeof *r);
    if (!r) return fail(e, ST_MEMORY, "no memory for the samples");
    r->split = (enum split)q->split;
    enum status status = open_examples(r, task, (uint64_t)q->seed, e);
    if (status == ST_OK) {
        omp_set_num_threads(1); /* with one thread perf_time_s is the thread's CPU time */
        make_round(r);          /* brings code and tables into the caches */
        noise_begin(&noise);
        for (double begin = time_now_s(); samples_due(&r->round, 1, begin, q->seconds);) {
            double start = perf_time_s();
            all += make_round(r);
            samples_add(&r->round, perf_time_s() - start);
        }
        double best = samples_best(&r->round), median = samples_median(&r->round);
        double foreign = noise_end(&noise), tokens = (double)(all / r->round.n);
        printf(q->json ? "{\"task\":\"%s\",\"threads\":1,\"tok_per_s_med\":%.6g,\"tok_per_s_best\":%.6g,"
                         "\"examples_per_s_med\":%.6g,\"examples_per_s_best\":%.6g}\n"
                       : "%s, one core: %.0f tokens/s median, best %.0f; %.0f examples/s median, best %.0f\n",
               r->task.name, tokens / median, tokens / best, ROUND / median, ROUND / best);
        snprintf(row.pass, sizeof row.pass, "%s", splits[r->split]);
        int n = snprintf(row.shape, sizeof row.shape, "%s examples%d", r->task.name, ROUND);
        if (n >= (int)sizeof row.shape && *q->out)
            status = fail(e, ST_USAGE, "%.60s...: the task's text is too long for a row of perf.csv", r->task.name);
        else
            status = keep(&row, &r->round, foreign, tokens, q->out, e);
    }
    arena_free(&r->host);
    free(r);
    return status;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

struct files_run {
    struct import_log log; /* first member, because note_file gets its address */
    const char *name, *folder;
    const struct dataset *d; /* NULL: a task reads the files in place */
    struct task_choice task;
    struct arena host;
    struct samples read, unpack;
    char path[DATASET_FILES][CACHE_PATH]; /* files, except the many files of a folder */
    int n_paths;
    bool packed; /* some of these are gzip files */
    double foreign;
};

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

/* Reads all files once. A task that reads them in place, by its option `file`, does not count their bytes, so the bytes
 * of all regular files of the folder are counted here. */
static enum status read_once(struct files_run *r, struct error *e) {
    char text[OPTION_TEXT + 64];
    struct read_count *count = &r->log.count;
    struct stat info;
    *count = (struct read_count){0};
    if (r->d) return dataset_import(r->d, r->folder, false, &r->log, e);
    arena_release(&r->host, 0);
    snprintf(text, sizeof text, "%s:file=%s", r->name, r->folder);
    TRY(task_parse(&r->task, text, e));
    TRY(task_open(&r->task, 1, &r->host, e));
    struct folder_names names;
    TRY(folder_names(&names, r->folder, e));
    for (int i = 0; i < names.n; i++) {
        char path[PATH_BYTES];
        if (path_format(path, sizeof path, NULL, "%s/%s", r->folder, names.list[i]->d_name) != ST_OK) continue;
        if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) continue;
        count->files++;
        count->bytes += info.st_size;
        count->unpacked += info.st_size;
    }
    folder_names_free(&names);
    return ST_OK;
}

/* Only decompresses the packed files: the least work of any reader. */
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

/* Measures reading the files. The first pass is not counted: it finds the packed files and brings all into the page
 * cache. */
static enum status measure_files(struct files_run *r, double seconds, struct error *e) {
    struct noise noise;
    omp_set_num_threads(1); /* as in measuring examples */
    r->log.read = note_file;
    TRY(read_once(r, e));
    r->log.read = say_nothing;
    noise_begin(&noise);
    for (double begin = time_now_s(); samples_due(&r->read, 1, begin, seconds);) {
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

static enum status run_files(const char *name, const struct perf_data_request *q, struct error *e) {
    struct files_run *r = calloc(1, sizeof *r);
    if (!r) return fail(e, ST_MEMORY, "no memory for the samples");
    bool in_place = strcmp(name, "listops") == 0;
    r->folder = q->files;
    enum status status = in_place ? arena_reserve(&r->host, TASK_TABLE_BYTES, e) : dataset_find(name, &r->d, e);
    r->name = r->d ? r->d->name : name;
    if (status == ST_OK) status = measure_files(r, q->seconds, e);
    if (status == ST_OK) {
        const struct read_count all = r->log.count;
        double mb = (double)all.bytes / 1e6;
        printf(q->json ? "{\"dataset\":\"%s\",\"threads\":1,\"files\":%" PRId64 ",\"bytes\":%" PRId64
                         ",\"mb_per_s_med\":%.6g,\"mb_per_s_best\":%.6g}\n"
                       : "%s, one core: %" PRId64 " files of %" PRId64 " bytes read at %.0f MB/s median, best %.0f\n",
               r->name, all.files, all.bytes, mb / samples_median(&r->read), mb / samples_best(&r->read));
        if (!q->json && r->packed)
            printf("decompression alone: %.0f MB/s median; the files unpack to %" PRId64 " bytes\n",
                   mb / samples_median(&r->unpack), all.unpacked);
        for (int unpack = 0; unpack < 2 && status == ST_OK; unpack++) {
            struct perf_row row = {.bench = "files"};
            snprintf(row.pass, sizeof row.pass, "%s", unpack ? "unpack" : "read");
            snprintf(row.shape, sizeof row.shape, "%s files%" PRId64 " bytes%" PRId64 " unpacked%" PRId64, r->name,
                     all.files, all.bytes, all.unpacked);
            status = keep(&row, unpack ? &r->unpack : &r->read, r->foreign, NAN, q->out, e);
        }
    }
    arena_free(&r->host);
    free(r);
    return status;
}

enum status perf_data(const char *name, const struct perf_data_request *request, struct error *e) {
    return (*request->files ? run_files : run_examples)(name, request, e);
}

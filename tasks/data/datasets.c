/* datasets.c - see datasets.h. Names, sizes and SHA-256 come from the sites and from collections that mirror them. */
#include "tasks/data/datasets.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/label.h"
#include "core/option.h"
#include "tasks/data/pathfinder_files.h"
#include "tasks/data/text_files.h"
#include "tasks/data/ts_files.h"
#include "tasks/data/tud_files.h"

#define MOST_IMAGES 1000000 /* that a file may hold */

/* Receives the images of a reader. */
struct packing {
    struct image_sink sink; /* first */
    struct image_pack *pack;
    bool test;
};

static enum status add(struct image_sink *sink, int label, const uint8_t *pixels, struct error *e) {
    struct packing *p = (struct packing *)(void *)sink;
    return image_pack_add(p->pack, p->test, label, pixels, e);
}

static struct packing packing_of(const struct dataset *d, struct image_pack *pack, bool test) {
    struct image_sink sink = {add, d->height, d->width, d->channels, d->labels, MOST_IMAGES};
    return (struct packing){sink, pack, test};
}

/* Opens the file under its released name, or with ".gz" added or removed, and writes its name into `path`. ST_DATA: it
 * is missing. */
static enum status dataset_open_file(struct byte_source *s, const struct dataset *d, const struct dataset_file *f,
                                     const char *folder, char path[CACHE_PATH], struct error *e) {
    size_t n = strlen(f->name);
    bool packed = n > 3 && strcmp(f->name + n - 3, ".gz") == 0;
    for (int other = 0; other < 2; other++) {
        struct stat info;
        int plain = (int)(packed && other ? n - 3 : n);
        int length = snprintf(path, CACHE_PATH, "%s/%.*s%s", folder, plain, f->name, !packed && other ? ".gz" : "");
        if (length < 0 || length >= CACHE_PATH) return fail(e, ST_USAGE, "%.100s: the path is too long", folder);
        if (stat(path, &info) == 0) return source_open(s, path, e);
    }
    return fail(e, ST_DATA, "cannot find %s in %s, plain or as gzip; `lrnn data urls %s` says where it is", f->name,
                folder, d->name);
}

/* Ends a file: nothing may follow, and the log notes it. */
static enum status dataset_end_file(struct byte_source *s, const struct dataset_file *f, struct import_log *log,
                                    struct error *e) {
    char sha256[SHA256_HEX];
    TRY(source_end(s, sha256, e));
    read_count_add(&log->count, s);
    log->read(log, s->name, s->file_bytes, sha256, f);
    return ST_OK;
}

/* --- MNIST: pairs of files, images and labels --------------------------------------------------------------------- */

static enum status read_pair(struct byte_source s[2], const struct dataset *d, const struct dataset_file *f,
                             struct packing *p, const char *folder, char path[2][CACHE_PATH], struct import_log *log,
                             struct error *e) {
    for (int i = 0; i < 2; i++) TRY(dataset_open_file(&s[i], d, &f[i], folder, path[i], e));
    TRY(idx_read(&s[0], &s[1], &p->sink, e));
    for (int i = 0; i < 2; i++) TRY(dataset_end_file(&s[i], &f[i], log, e));
    return ST_OK;
}

static enum status import_idx(const struct dataset *d, const char *folder, struct image_pack *pack,
                              struct entry_pack *entries, struct import_log *log, struct error *e) {
    (void)entries;
    char path[2][CACHE_PATH];
    enum status status = ST_OK;
    for (const struct dataset_file *f = d->files; f->name && status == ST_OK; f += 2) {
        struct packing p = packing_of(d, pack, f->test);
        struct byte_source s[2] = {{0}, {0}};
        status = read_pair(s, d, f, &p, folder, path, log, e);
        for (int i = 0; i < 2; i++) source_close(&s[i]);
    }
    return status;
}

/* --- CIFAR -------------------------------------------------------------------------------------------------------- */

static enum status import_cifar(const struct dataset *d, const char *folder, struct image_pack *pack,
                                struct entry_pack *entries, struct import_log *log, struct error *e) {
    (void)entries;
    char path[CACHE_PATH];
    enum status status = ST_OK;
    for (const struct dataset_file *f = d->files; f->name && status == ST_OK; f++) {
        struct packing p = packing_of(d, pack, f->test);
        struct byte_source s = {0};
        status = dataset_open_file(&s, d, f, folder, path, e);
        if (status == ST_OK) status = cifar_read(&s, &p.sink, e);
        if (status == ST_OK) status = dataset_end_file(&s, f, log, e);
        source_close(&s);
    }
    return status;
}

/* --- Pathfinder: lists and a PNG file per image ------------------------------------------------------------------- */

/* Opens the folder of the hard images, or the one that holds it. */
static enum status import_pathfinder(const struct dataset *d, const char *folder, struct image_pack *pack,
                                     struct entry_pack *entries, struct import_log *log, struct error *e) {
    (void)entries;
    struct packing p = packing_of(d, pack, false);
    char hard[CACHE_PATH];
    struct stat info;
    int n = snprintf(hard, sizeof hard, "%s/curv_contour_length_14", folder);
    bool within = n > 0 && n < CACHE_PATH && stat(hard, &info) == 0;
    /* Counts the files without checking each: no list of their hashes is published. */
    snprintf(log->folder, sizeof log->folder, "%s", within ? hard : folder);
    return pathfinder_read(log->folder, &p.sink, &log->count, e);
}

/* --- the list ----------------------------------------------------------------------------------------------------- */

#define MNIST_SITE "https://ossci-datasets.s3.amazonaws.com/mnist/"
#define CIFAR_SITE "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"

static const struct dataset mnist = {
    .name = "mnist",
    .summary = "70 000 handwritten digits of 28 x 28, grey (LeCun et al. 1998)",
    .tasks = "smnist psmnist zmnist",
    .examples = 70000,
    .height = 28,
    .width = 28,
    .channels = 1,
    .labels = 10,
    .files = {{"train-images-idx3-ubyte.gz", MNIST_SITE "train-images-idx3-ubyte.gz", 9912422,
               "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609", false},
              {"train-labels-idx1-ubyte.gz", MNIST_SITE "train-labels-idx1-ubyte.gz", 28881,
               "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c", false},
              {"t10k-images-idx3-ubyte.gz", MNIST_SITE "t10k-images-idx3-ubyte.gz", 1648877,
               "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6", true},
              {"t10k-labels-idx1-ubyte.gz", MNIST_SITE "t10k-labels-idx1-ubyte.gz", 4542,
               "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6", true}},
    .import = import_idx,
};

/* The archive with these files has 170 052 171 bytes and the SHA-256
 * c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd. */
static const struct dataset cifar10 = {
    .name = "cifar10",
    .summary = "60 000 photographs of 32 x 32 in ten classes, colour, binary version (Krizhevsky 2009)",
    .tasks = "scifar zcifar lra-image",
    .examples = 60000,
    .height = 32,
    .width = 32,
    .channels = 3,
    .labels = 10,
    .files = {{"data_batch_1.bin", CIFAR_SITE, 30730000,
               "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5", false},
              {"data_batch_2.bin", CIFAR_SITE, 30730000,
               "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed", false},
              {"data_batch_3.bin", CIFAR_SITE, 30730000,
               "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67", false},
              {"data_batch_4.bin", CIFAR_SITE, 30730000,
               "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48", false},
              {"data_batch_5.bin", CIFAR_SITE, 30730000,
               "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add", false},
              {"test_batch.bin", CIFAR_SITE, 30730000,
               "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b", true}},
    .import = import_cifar,
};

#define LRA_SITE "https://storage.googleapis.com/long-range-arena/lra_release.gz"

#define PATHFINDER(SIDE, TASKS)                                                                                        \
    {                                                                                                                  \
        .name = "pathfinder" #SIDE,                                                                                    \
        .summary = "dashed curves of " #SIDE " x " #SIDE ", hard (Long Range Arena, 2021)", .tasks = TASKS,            \
        .examples = 200000, .height = SIDE, .width = SIDE, .channels = 1, .labels = 2,                                 \
        .files = {{"pathfinder" #SIDE "/curv_contour_length_14", LRA_SITE, 0, NULL, false}},                           \
        .import = import_pathfinder,                                                                                   \
    }
static const struct dataset pathfinder32 = PATHFINDER(32, "pathfinder:released=yes");
static const struct dataset pathfinder64 = PATHFINDER(64, "pathfinder:released=yes,size=64");
static const struct dataset pathfinder128 = PATHFINDER(128, "pathx:released=yes");
static const struct dataset pathfinder256 = PATHFINDER(256, "pathfinder:released=yes,size=256");

/* --- series ------------------------------------------------------------------------------------------------------- */

static enum status import_series(const struct dataset *d, const char *folder, struct image_pack *images,
                                 struct entry_pack *pack, struct import_log *log, struct error *e) {
    char path[CACHE_PATH];
    enum status status = ST_OK;
    (void)images;
    for (const struct dataset_file *f = d->files; f->name && status == ST_OK; f++) {
        struct byte_source s = {0};
        status = dataset_open_file(&s, d, f, folder, path, e);
        if (status == ST_OK) status = ts_read(&s, f->test ? SPLIT_TEST : SPLIT_TRAIN, pack, e);
        if (status == ST_OK) status = dataset_end_file(&s, f, log, e);
        source_close(&s);
    }
    return status;
}

#define UEA(NAME, FILE, EXAMPLES, SUMMARY)                                                                             \
    {                                                                                                                  \
        .name = NAME, .summary = SUMMARY " (UEA archive, 2018)", .tasks = NAME, .kind = TS_KIND, .examples = EXAMPLES, \
        .files = {{FILE "_TRAIN.ts", "https://www.timeseriesclassification.com/aeon-toolkit/" FILE ".zip", 0, NULL,    \
                   false},                                                                                             \
                  {FILE "_TEST.ts", "https://www.timeseriesclassification.com/aeon-toolkit/" FILE ".zip", 0, NULL,     \
                   true}},                                                                                             \
        .import = import_series,                                                                                       \
    }
static const struct dataset eigenworms = UEA("eigenworms", "EigenWorms", 259, "movements of worms, 6 channels");
static const struct dataset ethanol = UEA("ethanolconcentration", "EthanolConcentration", 524, "spectra, 3 channels");
static const struct dataset heartbeat = UEA("heartbeat", "Heartbeat", 409, "spectrograms of heart sounds, 61 channels");
static const struct dataset motor = UEA("motorimagery", "MotorImagery", 378, "electrocorticograms, 64 channels");
static const struct dataset scp1 = UEA("selfregulationscp1", "SelfRegulationSCP1", 561, "slow potentials, 6 channels");
static const struct dataset scp2 = UEA("selfregulationscp2", "SelfRegulationSCP2", 380, "slow potentials, 7 channels");

/* --- graphs ------------------------------------------------------------------------------------------------------- */

static enum status import_graphs(const struct dataset *d, const char *folder, struct image_pack *images,
                                 struct entry_pack *pack, struct import_log *log, struct error *e) {
    char path[TUD_FILES][CACHE_PATH];
    struct byte_source source[TUD_FILES] = {{0}}, *file[TUD_FILES] = {NULL};
    enum status status = ST_OK;
    (void)images;
    for (const struct dataset_file *f = d->files; f->name && status == ST_OK; f++) {
        enum tud_file which = tud_file_of(f->name);
        file[which] = &source[which];
        status = dataset_open_file(file[which], d, f, folder, path[which], e);
    }
    if (status == ST_OK) status = tud_read(file, pack, e);
    for (const struct dataset_file *f = d->files; f->name && status == ST_OK; f++)
        status = dataset_end_file(file[tud_file_of(f->name)], f, log, e);
    for (int i = 0; i < TUD_FILES; i++) source_close(&source[i]);
    return status;
}

#define TUD_FILE(FILE, END)                                                                                            \
    { FILE END, "https://www.chrsmrrs.com/graphkerneldatasets/" FILE ".zip", 0, NULL, false }
#define TUD(NAME, FILE, EXAMPLES, SUMMARY, ...)                                                                        \
    {                                                                                                                  \
        .name = NAME, .summary = SUMMARY " (TUDataset, Morris et al. 2020)", .tasks = NAME, .examples = EXAMPLES,      \
        .kind = TUD_KIND, .import = import_graphs,                                                                     \
        .files = {TUD_FILE(FILE, "_A.txt"), TUD_FILE(FILE, "_graph_indicator.txt"),                                    \
                  TUD_FILE(FILE, "_graph_labels.txt"), TUD_FILE(FILE, "_node_labels.txt"), __VA_ARGS__},               \
    }
static const struct dataset mutag =
    TUD("mutag", "MUTAG", 188, "188 molecules, mutagenic or not", TUD_FILE("MUTAG", "_edge_labels.txt"));
static const struct dataset nci1 = TUD("nci1", "NCI1", 4110, "4 110 molecules, active against lung cancer or not", {0});
static const struct dataset proteins =
    TUD("proteins", "PROTEINS", 1113, "1 113 proteins, enzymes or not", TUD_FILE("PROTEINS", "_node_attributes.txt"));
static const struct dataset ptc_fm = TUD("ptc-fm", "PTC_FM", 349, "349 molecules, carcinogenic in female mice or not",
                                         TUD_FILE("PTC_FM", "_edge_labels.txt"));

/* --- texts -------------------------------------------------------------------------------------------------------- */

/* The folder aclImdb, or the one that holds it. */
static enum status import_imdb(const struct dataset *d, const char *folder, struct image_pack *images,
                               struct entry_pack *pack, struct import_log *log, struct error *e) {
    char inner[CACHE_PATH];
    struct stat info;
    (void)images;
    pack->set.labels = d->labels;
    int n = snprintf(inner, sizeof inner, "%s/aclImdb", folder);
    bool within = n > 0 && n < CACHE_PATH && stat(inner, &info) == 0;
    /* Counts the 50 000 files without checking each: no list of their hashes is published. */
    TRY(reviews_read(within ? inner : folder, SPLIT_TRAIN, pack, &log->count, e));
    return reviews_read(within ? inner : folder, SPLIT_TEST, pack, &log->count, e);
}

static enum status import_aan(const struct dataset *d, const char *folder, struct image_pack *images,
                              struct entry_pack *pack, struct import_log *log, struct error *e) {
    char path[CACHE_PATH];
    enum status status = ST_OK;
    (void)images;
    for (int split = 0; split < SPLIT_COUNT && status == ST_OK; split++) {
        struct byte_source s = {0};
        status = dataset_open_file(&s, d, &d->files[split], folder, path, e);
        if (status == ST_OK) status = pairs_read(&s, (enum split)split, pack, e);
        if (status == ST_OK) status = dataset_end_file(&s, &d->files[split], log, e);
        source_close(&s);
    }
    return status;
}

static const struct dataset imdb = {
    .name = "imdb",
    .summary = "50 000 film reviews, kind or not (Maas et al. 2011)",
    .tasks = "lra-text",
    .examples = 50000,
    .kind = TEXTS_KIND,
    .labels = 2,
    .files = {{"aclImdb", "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz", 0, NULL, false}},
    .import = import_imdb,
};

static const struct dataset aan = {
    .name = "aan",
    .summary = "182 613 pairs of papers, citing or not (Long Range Arena, 2021)",
    .tasks = "lra-retrieval",
    .examples = 182613,
    .kind = PAIRS_KIND,
    .labels = 2,
    .files = {{"new_aan_pairs.train.tsv", LRA_SITE, 0, NULL, false},
              {"new_aan_pairs.eval.tsv", LRA_SITE, 0, NULL, false},
              {"new_aan_pairs.test.tsv", LRA_SITE, 0, NULL, true}},
    .import = import_aan,
};

static const struct dataset *const list[] = {&mnist,         &cifar10,    &pathfinder32, &pathfinder64, &pathfinder128,
                                             &pathfinder256, &eigenworms, &ethanol,      &heartbeat,    &motor,
                                             &scp1,          &scp2,       &mutag,        &nci1,         &proteins,
                                             &ptc_fm,        &imdb,       &aan,          NULL};

const struct dataset *const *dataset_list(void) {
    return list;
}

/* --- sets beyond the known ones ----------------------------------------------------------------------------------- */

/* Makes a set of an archive from its name there: "uea:BasicMotions". Each name gets one, which lives as long as the
 * process. */
struct archive_set {
    struct dataset d;
    struct archive_set *next;
    char called[ARCHIVE_NAME], url[160], files[TUD_FILES][ARCHIVE_NAME + 32];
};

static struct archive_set *archive_sets;
static pthread_mutex_t archive_lock = PTHREAD_MUTEX_INITIALIZER;

/* Graphs: each set has three files always; the other files are read if they exist. */
static enum status import_archive_graphs(const struct dataset *d, const char *folder, struct image_pack *images,
                                         struct entry_pack *pack, struct import_log *log, struct error *e) {
    struct dataset there = *d;
    int n = 0;
    for (const struct dataset_file *f = d->files; f->name; f++) {
        char path[CACHE_PATH];
        struct byte_source s = {0};
        bool optional = tud_file_of(f->name) >= TUD_NODE_LABELS;
        if (!optional || dataset_open_file(&s, d, f, folder, path, NULL) == ST_OK) there.files[n++] = *f;
        source_close(&s);
    }
    there.files[n] = (struct dataset_file){0};
    return import_graphs(&there, folder, images, pack, log, e);
}

static void make_archive_set(struct archive_set *s, bool series) {
    static const char *const of_series[] = {"_TRAIN.ts", "_TEST.ts"};
    static const char *const of_graphs[] = {"_A.txt",           "_graph_indicator.txt", "_graph_labels.txt",
                                            "_node_labels.txt", "_node_attributes.txt", "_edge_labels.txt"};
    const char *name = strchr(s->called, ':') + 1;
    snprintf(s->url, sizeof s->url, "https://www.%s/%.64s.zip",
             series ? "timeseriesclassification.com/aeon-toolkit" : "chrsmrrs.com/graphkerneldatasets", name);
    s->d = (struct dataset){.name = s->called,
                            .summary = series ? "a set of the UEA archive" : "a set of TUDataset",
                            .tasks = "",
                            .kind = series ? TS_KIND : TUD_KIND,
                            .import = series ? import_series : import_archive_graphs};
    for (int i = 0; i < (series ? 2 : TUD_FILES); i++) {
        snprintf(s->files[i], sizeof s->files[i], "%.64s%s", name, series ? of_series[i] : of_graphs[i]);
        s->d.files[i] = (struct dataset_file){s->files[i], s->url, 0, NULL, series && i == 1};
    }
}

/* Returns NULL if the text has another form, or there is no memory. */
static const struct dataset *archive_set_find(const char *text) {
    bool series = strncmp(text, "uea:", 4) == 0;
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    size_t n = strlen(text);
    if ((!series && strncmp(text, "tud:", 4) != 0) || n < 5 || n >= ARCHIVE_NAME || text[4 + strspn(text + 4, letters)])
        return NULL;
    pthread_mutex_lock(&archive_lock);
    struct archive_set *s = archive_sets;
    while (s && strcmp(s->called, text) != 0) s = s->next;
    if (!s && (s = calloc(1, sizeof *s))) {
        memcpy(s->called, text, n + 1);
        make_archive_set(s, series);
        s->next = archive_sets;
        archive_sets = s;
    }
    pthread_mutex_unlock(&archive_lock);
    return s ? &s->d : NULL;
}

static const char *name_of(const void *sets, int i) {
    return ((const struct dataset *const *)sets)[i]->name;
}

enum status dataset_find(const char *name, const struct dataset **d, struct error *e) {
    int index;
    *d = archive_set_find(name);
    if (*d) return ST_OK;
    TRY(name_choose("data set", name, (int)(sizeof list / sizeof *list) - 1, name_of, list, &index, e));
    *d = list[index];
    return ST_OK;
}

/* Whether a label ("smnist:order=snake") belongs to a task with options ("pathfinder:released=yes"). */
static bool is_of(const struct label *task, const char *text) {
    struct label wanted;
    return label_parse(&wanted, "task", text, NULL) == ST_OK && label_includes(task, &wanted);
}

bool dataset_is_whole(const char *task, int64_t examples) {
    struct label label;
    if (label_parse(&label, "task", task, NULL) != ST_OK) return true;
    for (const struct dataset *const *d = list; *d; d++)
        for (const char *rest = (*d)->tasks; *rest;) {
            char word[DATASET_TEXT];
            if (text_part(&rest, " ", word, sizeof word, NULL) != ST_OK) break;
            rest += strspn(rest, " ");
            if (is_of(&label, word)) return examples <= (*d)->examples && examples >= (*d)->examples / 10 * 9;
        }
    return true;
}

enum status dataset_path(const struct dataset *d, char path[CACHE_PATH], struct error *e) {
    char name[ARCHIVE_NAME]; /* "uea-BasicMotions" */
    snprintf(name, sizeof name, "%s", d->name);
    if (strchr(name, ':')) *strchr(name, ':') = '-';
    return cache_path(name, d->kind ? "records" : "images", path, e);
}

static enum status import_images(const struct dataset *d, const char *folder, const char *path, bool keep,
                                 struct import_log *log, struct error *e) {
    struct image_pack pack = {
        .set = {.height = d->height, .width = d->width, .channels = d->channels, .labels = d->labels},
        .stop = log->stop};
    enum status status = image_pack_begin(&pack, path, e);
    if (status == ST_OK) status = d->import(d, folder, &pack, NULL, log, e);
    if (status == ST_OK && keep) status = image_pack_end(&pack, e);
    log->examples = pack.set.n_train + pack.set.n_test;
    image_pack_drop(&pack);
    return status;
}

static enum status import_entries(const struct dataset *d, const char *folder, const char *path, bool keep,
                                  struct import_log *log, struct error *e) {
    struct entry_pack pack = {.set = {.labels = d->labels}, .stop = log->stop};
    snprintf(pack.set.kind, sizeof pack.set.kind, "%s", d->kind);
    enum status status = d->import(d, folder, NULL, &pack, log, e);
    if (status == ST_OK && keep) status = entry_pack_write(&pack, path, e);
    log->examples = entry_count(&pack.set);
    entry_pack_free(&pack);
    return status;
}

/* Reports a misspelt name before looking for its files. */
static enum status check_folder(const struct dataset *d, const char *folder, struct error *e) {
    struct stat info;
    if (stat(folder, &info) != 0)
        return fail(e, ST_DATA, "%s: cannot read the folder %s: %s; `lrnn data urls %s` says what belongs into it",
                    d->name, folder, strerror(errno), d->name);
    if (S_ISDIR(info.st_mode)) return ST_OK;
    return fail(e, ST_DATA, "%s: %s is no folder: name the one that its files lie in; `lrnn data urls %s` names them",
                d->name, folder, d->name);
}

enum status dataset_import(const struct dataset *d, const char *folder, bool keep, struct import_log *log,
                           struct error *e) {
    char path[CACHE_PATH];
    TRY(dataset_path(d, path, e));
    TRY(check_folder(d, folder, e));
    return (d->kind ? import_entries : import_images)(d, folder, path, keep, log, e);
}

/* Path of a task's file: its own, or the one in the cache folder. */
static enum status find_file(const struct dataset *d, const char *task, const char *file, char path[CACHE_PATH],
                             struct error *e) {
    struct stat info;
    if (*file)
        snprintf(path, CACHE_PATH, "%s", file);
    else
        TRY(dataset_path(d, path, e));
    if (stat(path, &info) == 0) return ST_OK;
    return fail(e, ST_DATA,
                "%s: there is no %s; `lrnn data urls %s` says where its files are, `lrnn data import %s FOLDER` makes "
                "it of them",
                task, path, d->name, d->name);
}

enum status dataset_open(const char *name, const char *task, const char *file, struct image_set *set, struct error *e) {
    char path[CACHE_PATH];
    struct error why;
    const struct dataset *d;
    TRY(dataset_find(name, &d, e));
    TRY(find_file(d, task, file, path, e));
    if (image_set_open(set, path, &why) != ST_OK) return fail(e, why.status, "%s: %.900s", task, why.text);
    if (set->height == d->height && set->width == d->width && set->channels == d->channels && set->labels == d->labels)
        return ST_OK;
    return fail(e, ST_DATA,
                "%s: %s holds images of %" PRId64 " x %" PRId64 " x %" PRId64 " with %" PRId64
                " labels, and images of %s are of %" PRId64 " x %" PRId64 " x %" PRId64 " with %" PRId64
                ": it is of another data set",
                task, path, set->height, set->width, set->channels, set->labels, d->name, d->height, d->width,
                d->channels, d->labels);
}

enum status dataset_open_entries(const char *name, const char *task, const char *file, struct entry_set *set,
                                 struct error *e) {
    char path[CACHE_PATH];
    struct error why;
    const struct dataset *d;
    TRY(dataset_find(name, &d, e));
    TRY(find_file(d, task, file, path, e));
    if (entry_set_open(set, path, d->kind, &why) != ST_OK) return fail(e, why.status, "%s: %.900s", task, why.text);
    if (d->labels && set->labels != d->labels)
        return fail(e, ST_DATA, "%s: %s has %" PRId64 " labels, and %s has %" PRId64 ": it is of another data set",
                    task, path, set->labels, d->name, d->labels);
    return ST_OK;
}

enum status dataset_describe(const struct dataset *d, char text[DATASET_TEXT], struct error *e) {
    struct image_set images;
    struct entry_set entries;
    if (d->kind) {
        TRY(dataset_open_entries(d->name, d->name, "", &entries, e));
        snprintf(text, DATASET_TEXT,
                 "%" PRId64 " training, %" PRId64 " validation and %" PRId64 " test %s of at most %" PRId64
                 ", width %" PRId64 ", %" PRId64 " labels, content %s",
                 entries.n[SPLIT_TRAIN], entries.n[SPLIT_VAL], entries.n[SPLIT_TEST], d->kind, entries.longest,
                 entries.width, entries.labels, entries.hash);
        return ST_OK;
    }
    TRY(dataset_open(d->name, d->name, "", &images, e));
    snprintf(text, DATASET_TEXT,
             "%" PRId64 " training and %" PRId64 " test images of %" PRId64 " x %" PRId64 " x %" PRId64 ", %" PRId64
             " labels, content %s",
             images.n_train, images.n_test, images.height, images.width, images.channels, images.labels, images.hash);
    return ST_OK;
}

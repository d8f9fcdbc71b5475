/* check_data.c - released data: the readers on files that Python wrote (tests/data) and on bytes written here by hand,
 * what they refuse, and the import from the command line to a run. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "tasks/data/datasets.h"
#include "tasks/data/pathfinder_files.h"
#include "tests/lib/program.h"
#include "tests/tasks/task_examples.h"

START_TEST(sha256_meets_its_examples) {
    static const struct {
        const char *text;
        int times;
        const char *hex;
    } examples[] = {{"", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
                    {"abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
                    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
                     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
                    {"aaaaaaaaaa", 100000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}};
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        struct sha256 s;
        char hex[SHA256_HEX];
        sha256_start(&s);
        for (int k = 0; k < examples[i].times; k++) sha256_add(&s, examples[i].text, strlen(examples[i].text));
        sha256_end(&s, hex);
        ck_assert_str_eq(hex, examples[i].hex);
    }
}
END_TEST

/* --- what Python wrote, as tasks give it -------------------------------------------------------------------------- */

/* The images of all splits of a task are those that `value` makes, each once in its half of the file. */
static void expect_images(const char *task, int n_train, int n_test, double (*value)(int image, int pixel, int channel),
                          int (*label)(int image)) {
    struct task_choice c;
    open_task(&c, task, 1);
    struct example x = new_example(&c.shape);
    int seen[64] = {0}, held = n_train / 10;
    const int64_t sizes[] = {n_train - held - (n_test ? 0 : held), held, n_test ? n_test : held};
    const int64_t C = c.shape.channels;
    for (int split = 0; split < SPLIT_COUNT; split++) {
        ck_assert_int_eq(c.shape.examples[split], sizes[split]);
        for (int i = 0; i < sizes[split]; i++) {
            bool own = split == SPLIT_TEST && n_test;
            int from = own ? n_train : 0, to = own ? n_train + n_test : n_train;
            int found = -1;
            fill_example(&c, (enum split)split, i, -7, &x);
            for (int image = from; image < to; image++) {
                bool same = x.targets[0] == label(image);
                for (int64_t t = 0; t < c.shape.T * C && same; t++) {
                    int64_t at = c.shape.reading.visit ? c.shape.reading.visit[t / C] : t / C;
                    same = fabs((double)x.values[t] - value(image, (int)at, (int)(t % C))) < 1e-6;
                }
                if (same) found = image;
            }
            ck_assert_msg(found >= 0, "%s: split %d, example %d is none of its images", task, split, i);
            if (found >= 0) seen[found]++;
        }
    }
    for (int image = 0; image < n_train + n_test; image++) ck_assert_int_eq(seen[image], 1);
    free_example(&x);
}

static int mnist_label(int image) {
    return image < 40 ? (7 * image + 3) % 10 : (3 * (image - 40) + 1) % 10;
}

static double mnist_value(int image, int pixel, int channel) {
    (void)channel;
    return (image * 37 + pixel * 11 + pixel / 28 * 5) % 256 / 255.0;
}

static int cifar_label(int image) {
    return (3 * image + 2) % 10;
}

static int cifar_byte(int image, int pixel, int channel) {
    return (image * 37 + (channel * 1024 + pixel) * 11 + channel * 50) % 256;
}

static double colour_value(int image, int pixel, int channel) {
    static const double mean[] = {.4914, .4822, .4465}, sd[] = {.247, .243, .261};
    return (cifar_byte(image, pixel, channel) / 255.0 - mean[channel]) / sd[channel];
}

static double grey_value(int image, int pixel, int channel) {
    (void)channel;
    double bright =
        .299 * cifar_byte(image, pixel, 0) + .587 * cifar_byte(image, pixel, 1) + .114 * cifar_byte(image, pixel, 2);
    return (floor(bright + 0.5 + 1e-9) - 122.6) / 61;
}

static double path_value(int image, int pixel, int channel) {
    (void)channel;
    return (image * 37 + pixel / 32 * 5 + pixel % 32 * 11) % 256 / 255.0;
}

static int path_label(int image) {
    return image * 5 / 3 % 2;
}

START_TEST(tasks_have_the_images_of_the_files) {
    expect_images("smnist", 40, 12, mnist_value, mnist_label);
    expect_images("psmnist", 40, 12, mnist_value, mnist_label);
    expect_images("zmnist", 40, 12, mnist_value, mnist_label);
    expect_images("scifar", 20, 4, colour_value, cifar_label);
    expect_images("zcifar", 20, 4, colour_value, cifar_label);
    expect_images("lra-image", 20, 4, grey_value, cifar_label);
    expect_images("pathfinder:released=yes", 12, 0, path_value, path_label);
    expect_images("pathfinder:released=yes,order=hilbert", 12, 0, path_value, path_label);
}
END_TEST

/* --- readers on bytes written by hand ----------------------------------------------------------------------------- */

/* Images of 2 x 3 with labels below 4, at most 5 of them, counted and summed. */
struct counting {
    struct image_sink sink;
    int n, sum;
};

static enum status count(struct image_sink *sink, int label, const uint8_t *pixels, struct error *e) {
    struct counting *c = (struct counting *)(void *)sink;
    (void)e;
    c->n++;
    c->sum += label;
    for (int i = 0; i < sink->height * sink->width * sink->channels; i++) c->sum += (i + 1) * pixels[i];
    return ST_OK;
}

static enum status read_idx(const void *images, size_t image_bytes, const void *labels, size_t label_bytes,
                            struct counting *c, struct error *e) {
    struct byte_source s[2] = {{0}, {0}};
    char sha[SHA256_HEX];
    *c = (struct counting){.sink = {count, 2, 3, 1, 4, 5}};
    enum status status = source_open_memory(&s[0], images, image_bytes, "IMAGES", e);
    if (status == ST_OK) status = source_open_memory(&s[1], labels, label_bytes, "LABELS", e);
    if (status == ST_OK) status = idx_read(&s[0], &s[1], &c->sink, e);
    for (int i = 0; i < 2 && status == ST_OK; i++) status = source_end(&s[i], sha, e);
    for (int i = 0; i < 2; i++) source_close(&s[i]);
    return status;
}

static const uint8_t idx_images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0,
                                     0, 3, 1, 2, 3, 4, 5, 6, 9, 0, 0, 0, 0, 1};
static const uint8_t idx_labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 3, 1};

START_TEST(idx_is_read_and_each_wrong_byte_of_its_headers_named) {
    static const struct {
        bool label;
        uint8_t at, value;
        const char *says;
    } wrong[] = {
        {false, 3, 1, "IMAGES, byte 0: expected the magic number of IDX images, 2051 (0x00000803), found 2049"},
        {false, 7, 0, "IMAGES, byte 4: expected a number of images from 1 to 5, found 0"},
        {false, 7, 6, "IMAGES, byte 4: expected a number of images from 1 to 5, found 6"},
        {false, 4, 0xff, "IMAGES, byte 4: expected a number of images from 1 to 5, found 4278190082"},
        {false, 11, 3, "IMAGES, byte 8: expected rows: 2 (0x00000002), found 3"},
        {false, 15, 2, "IMAGES, byte 12: expected columns: 3 (0x00000003), found 2"},
        {false, 7, 3, "LABELS, byte 4: expected as many labels as images, 3 (0x00000003), found 2"},
        {true, 3, 3, "LABELS, byte 0: expected the magic number of IDX labels, 2049"},
        {true, 7, 1, "LABELS, byte 4: expected as many labels as images, 2 (0x00000002), found 1"},
        {true, 9, 4, "LABELS, byte 9: expected a label from 0 to 3, found 4"}};
    struct counting c;
    struct error e = {ST_OK, ""};
    ck_assert_msg(read_idx(idx_images, sizeof idx_images, idx_labels, sizeof idx_labels, &c, &e) == ST_OK, "%s",
                  e.text);
    ck_assert(c.n == 2 && c.sum == 3 + 1 + (1 + 4 + 9 + 16 + 25 + 36) + 9 + 6);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint8_t images[sizeof idx_images], labels[sizeof idx_labels];
        memcpy(images, idx_images, sizeof images);
        memcpy(labels, idx_labels, sizeof labels);
        (wrong[i].label ? labels : images)[wrong[i].at] = wrong[i].value;
        ck_assert_int_eq(read_idx(images, sizeof images, labels, sizeof labels, &c, &e), ST_DATA);
        ck_assert_msg(strstr(e.text, wrong[i].says), "'%s' is not '%s'", e.text, wrong[i].says);
    }
}
END_TEST

/* Packs bytes by gzip; the caller frees the result. */
static uint8_t *gzipped(const void *bytes, size_t size, size_t *packed) {
    z_stream z = {0};
    size_t room = size + size / 100 + 100;
    uint8_t *to = malloc(room);
    ck_assert_int_eq(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (uint8_t *)(uintptr_t)bytes;
    z.avail_in = (unsigned)size;
    z.next_out = to;
    z.avail_out = (unsigned)room;
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    *packed = room - z.avail_out;
    deflateEnd(&z);
    return to;
}

/* Every beginning of a file but the whole is refused, and so is a byte more; plain and as gzip. */
START_TEST(idx_cut_anywhere_is_refused) {
    size_t sizes[2];
    uint8_t *packed[2] = {gzipped(idx_images, sizeof idx_images, &sizes[0]),
                          gzipped(idx_labels, sizeof idx_labels, &sizes[1])};
    const uint8_t *const files[2][2] = {{idx_images, idx_labels}, {packed[0], packed[1]}};
    const size_t whole[2][2] = {{sizeof idx_images, sizeof idx_labels}, {sizes[0], sizes[1]}};
    struct counting c;
    for (int gz = 0; gz < 2; gz++)
        for (int cut = 0; cut < 2; cut++)
            for (size_t n = 0; n <= whole[gz][cut] + 1; n++) {
                size_t left = n < whole[gz][cut] ? n : whole[gz][cut];
                uint8_t *bytes = malloc(n + 1); /* its own size, so that a read past the end is seen */
                struct error e = {ST_OK, ""};
                memcpy(bytes, files[gz][cut], left);
                memset(bytes + left, 7, n - left);
                const void *images = cut == 0 ? bytes : files[gz][0], *labels = cut == 1 ? bytes : files[gz][1];
                enum status status =
                    read_idx(images, cut == 0 ? n : whole[gz][0], labels, cut == 1 ? n : whole[gz][1], &c, &e);
                enum status want = n == whole[gz][cut] ? ST_OK : ST_DATA;
                const char *name = cut ? "LABELS, byte " : "IMAGES, byte ";
                if (status != want || (want != ST_OK && !strstr(e.text, name)))
                    ck_abort_msg("%zu of %zu bytes of file %d: %d, '%s'", n, whole[gz][cut], cut, status, e.text);
                free(bytes);
            }
    free(packed[0]);
    free(packed[1]);
}
END_TEST

/* Four megabytes of zeros follow a header that announces two images: only the requested bytes are unpacked. */
START_TEST(a_gzip_bomb_is_not_unfolded) {
    size_t size = (size_t)4 << 20, packed;
    uint8_t *bytes = calloc(1, size);
    struct counting c;
    struct error e = {ST_OK, ""};
    memcpy(bytes, idx_images, sizeof idx_images);
    uint8_t *bomb = gzipped(bytes, size, &packed);
    struct byte_source s;
    ck_assert_int_eq(source_open_memory(&s, bomb, packed, "BOMB", &e), ST_OK);
    source_close(&s);
    ck_assert_int_eq(read_idx(bomb, packed, idx_labels, sizeof idx_labels, &c, &e), ST_DATA);
    ck_assert_msg(strstr(e.text, "IMAGES, byte 28 of what it unfolds to: expected the end, found more"), "%s", e.text);
    ck_assert_int_eq(c.n, 2);
    free(bytes);
    free(bomb);
}
END_TEST

START_TEST(gzip_of_two_members_is_one_file_and_damage_is_named) {
    size_t first, second;
    uint8_t *a = gzipped(idx_images, 20, &first), *b = gzipped(idx_images + 20, sizeof idx_images - 20, &second);
    uint8_t *both = malloc(first + second);
    struct counting c;
    struct error e = {ST_OK, ""};
    memcpy(both, a, first);
    memcpy(both + first, b, second);
    ck_assert_msg(read_idx(both, first + second, idx_labels, sizeof idx_labels, &c, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(c.n, 2);
    both[first - 6] ^= 1; /* the checksum of the first member */
    ck_assert_int_eq(read_idx(both, first + second, idx_labels, sizeof idx_labels, &c, &e), ST_DATA);
    ck_assert_msg(strstr(e.text, "expected gzip data, found what zlib calls: incorrect data check"), "%s", e.text);
    free(a);
    free(b);
    free(both);
}
END_TEST

static enum status read_cifar(const void *bytes, size_t size, struct counting *c, struct error *e) {
    struct byte_source s = {0};
    *c = (struct counting){.sink = {count, 1, 2, 3, 4, 3}};
    enum status status = source_open_memory(&s, bytes, size, "BATCH", e);
    if (status == ST_OK) status = cifar_read(&s, &c->sink, e);
    source_close(&s);
    return status;
}

START_TEST(cifar_is_read_and_cut_anywhere_refused) {
    static const uint8_t entries[] = {3, 1, 2, 10, 20, 100, 200, 0, 0, 0, 0, 0, 0, 1,
                                      2, 9, 9, 9,  9,  9,   9,   0, 1, 2, 3, 4, 5, 6};
    struct counting c;
    struct error e = {ST_OK, ""};
    ck_assert_msg(read_cifar(entries, 14, &c, &e) == ST_OK, "%s", e.text);
    /* channels last: 1 10 100 2 20 200 and 0 0 0 0 0 1 */
    ck_assert(c.n == 2 && c.sum == 3 + 1 + 20 + 300 + 8 + 100 + 1200 + 6);
    for (size_t n = 0; n <= 21; n++) {
        uint8_t *bytes = malloc(n + 1);
        memcpy(bytes, entries, n);
        bool cut = n % 7 || n == 0;
        e.text[0] = 0;
        ck_assert_int_eq(read_cifar(bytes, n, &c, &e), cut ? ST_DATA : ST_OK);
        if (cut) ck_assert_msg(strstr(e.text, "BATCH, byte ") && strstr(e.text, ": expected "), "%zu: %s", n, e.text);
        free(bytes);
    }
    ck_assert_int_eq(read_cifar(entries, 0, &c, &e), ST_DATA);
    ck_assert_msg(strstr(e.text, "BATCH, byte 0: expected entries of 7 bytes, found an empty file"), "%s", e.text);
    ck_assert_int_eq(read_cifar(entries, 12, &c, &e), ST_DATA);
    ck_assert_msg(strstr(e.text, "BATCH, byte 8: expected the pixels of an entry of 6 bytes, found the end after 4"),
                  "%s", e.text);
    ck_assert_int_eq(read_cifar(entries, sizeof entries, &c, &e), ST_DATA);
    ck_assert_msg(strstr(e.text, "BATCH, byte 21: expected at most 3 images, found more"), "%s", e.text);
    uint8_t bad[7] = {4};
    ck_assert_int_eq(read_cifar(bad, 7, &c, &e), ST_DATA);
    ck_assert_msg(strstr(e.text, "BATCH, byte 0: expected a label from 0 to 3, found 4"), "%s", e.text);
}
END_TEST

/* --- lists of Pathfinder ------------------------------------------------------------------------------------------ */

static enum status read_line(const char *text, size_t n, struct pathfinder_line *line, struct error *e) {
    const char *at = text;
    return pathfinder_list_next(&at, text + n, "LIST", 7, line, e);
}

START_TEST(lists_are_read_and_refused_by_line) {
    static const char good[] = "imgs/3 sample_9.png 9 1 1.0 14 4 2 0.5 1 0.75\n";
    static const struct {
        const char *text, *says;
    } bad[] = {{"\n", "LIST, line 7: expected the name of a folder, found the end of the line"},
               {"imgs/0\r\n", "LIST, line 7: expected the name of a file, found the end of the line"},
               {"/etc passwd 0 1\n", "expected the name of a folder below the folder, found '/etc'"},
               {"imgs ../x.png 0 1\n", "expected the name of a file below the folder, found '../x.png'"},
               {"imgs x.png 0\n", "expected the label 0 or 1 as the fourth word, found ''"},
               {"imgs x.png 0 2\n", "expected the label 0 or 1 as the fourth word, found '2'"},
               {"imgs x.png 0 01\n", "expected the label 0 or 1 as the fourth word, found '01'"},
               {"\x93NUMPY v {'descr': '<U9'", "expected the label 0 or 1"}};
    struct pathfinder_line line;
    struct error e = {ST_OK, ""};
    ck_assert_msg(read_line(good, sizeof good - 1, &line, &e) == ST_OK, "%s", e.text);
    ck_assert_str_eq(line.folder, "imgs/3");
    ck_assert_str_eq(line.file, "sample_9.png");
    ck_assert_int_eq(line.label, 1);
    static const char crlf[] = "imgs/3 sample_9.png 9 1\r\nimgs/4 sample_8.png 8 0\r\n";
    const char *at = crlf;
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(pathfinder_list_next(&at, crlf + sizeof crlf - 1, "LIST", 1 + i, &line, &e), ST_OK);
        ck_assert_str_eq(line.file, i ? "sample_8.png" : "sample_9.png");
        ck_assert_int_eq(line.label, i ? 0 : 1);
    }
    ck_assert_ptr_eq(at, crlf + sizeof crlf - 1);
    for (size_t n = 0; n < sizeof "imgs/3 sample_9.png 9"; n++) {
        char *bytes = malloc(n + 1);
        memcpy(bytes, good, n);
        e.text[0] = 0;
        ck_assert_int_eq(read_line(bytes, n, &line, &e), ST_DATA);
        ck_assert_msg(strstr(e.text, "LIST, line 7: expected "), "%zu: %s", n, e.text);
        free(bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_int_eq(read_line(bad[i].text, strlen(bad[i].text), &line, &e), ST_DATA);
        ck_assert_msg(strstr(e.text, bad[i].says), "'%s' is not '%s'", e.text, bad[i].says);
    }
}
END_TEST

/* --- the file in the cache folder --------------------------------------------------------------------------------- */

START_TEST(a_set_is_whole_or_refused) {
    size_t size;
    char path[CACHE_PATH];
    struct image_set set;
    struct error e = {ST_OK, ""};
    ck_assert_int_eq(cache_path("cifar10", "images", path, &e), ST_OK);
    char *bytes = slurp(path, &size);
    ck_assert_msg(image_set_parse(&set, bytes, size, "SET", &e) == ST_OK, "%s", e.text);
    ck_assert(set.n_train == 20 && set.n_test == 4 && set.height == 32 && set.width == 32 && set.channels == 3);
    for (size_t n = 0; n < size; n += n < 80 ? 1 : 1777) {
        ck_assert_int_eq(image_set_parse(&set, bytes, n, "SET", &e), ST_DATA);
        ck_assert(strncmp(e.text, "SET", 3) == 0);
    }
    for (size_t at = 0; at < 56; at++) { /* every byte of the header counts */
        bytes[at] ^= 0x11;
        e.text[0] = 0;
        ck_assert_int_eq(image_set_parse(&set, bytes, size, "SET", &e), ST_DATA);
        ck_assert_msg(strncmp(e.text, "SET", 3) == 0, "byte %zu: %s", at, e.text);
        bytes[at] ^= 0x11;
    }
    bytes[size / 2] ^= 1;
    ck_assert_int_eq(image_set_parse(&set, bytes, size, "SET", &e), ST_DATA);
    ck_assert_msg(strstr(e.text, "the file is damaged, import it again"), "%s", e.text);
    free(bytes);
}
END_TEST

/* --- the command line --------------------------------------------------------------------------------------------- */

static int files_in_cache(void) {
    return scratch_count(program_folder, ".images");
}

START_TEST(what_is_imported_is_trained_on_and_names_the_run) {
    expect_status(run("data show smnist"), 5, "data show smnist");
    expect_text(err, "`lrnn data import mnist FOLDER` makes it", "data show smnist");
    expect_status(run("info smnist"), 0, "info smnist");
    expect_text(out, "data mnist", "info smnist");
    expect_text(out, "not known without the data: smnist: there is no ", "info smnist");
    expect_text(out, "`lrnn data import mnist FOLDER` makes it of them", "info smnist");
    expect_status(run("data list"), 0, "data list");
    expect_text(out, "imported  no", "data list");
    expect_status(run("data urls mnist"), 0, "data urls");
    expect_text(out, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609", "data urls");
    expect_status(run("data import mnist tests/data/mnist"), 0, "data import");
    expect_text(out, "40 training and 12 test images of 28 x 28 x 1", "data import");
    expect_status(run("data verify mnist"), 0, "data verify");
    expect_text(out, "mnist: whole", "data verify");
    expect_status(run("data path mnist"), 0, "data path");
    expect_text(out, program_folder, "data path");
    expect_status(run("data stats smnist --count 36"), 0, "data stats");
    expect_text(out, "lengths    784 to 784", "data stats");
    expect_status(run("train smnist:order=morton lru:state=4 --dim 4 --steps 2 --batch 8 --print-config"), 0, "train");
    expect_text(out, "task.content=90c6daaa5d0698e7cf2cfc16516b8cd7", "train");
    expect_status(run("data show smnist:content=00"), 5, "data show");
    expect_text(err, "expected content=00: they are other images", "data show");
    free_output();
}
END_TEST

/* Every released format of images, from the files to a trained model. */
START_TEST(each_format_of_images_is_trained_on) {
    static const char *const sets[] = {"mnist", "cifar10", "pathfinder32"};
    static const char *const tasks[] = {"psmnist",   "zmnist",         "scifar",
                                        "lra-image", "zcifar:patch=4", "pathfinder:released=yes,patch=4"};
    char text[200];
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        snprintf(text, sizeof text, "data import %s tests/data/%s", sets[i], sets[i]);
        expect_status(run(text), 0, text);
    }
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
        snprintf(text, sizeof text, "train %s lru:state=4 --dim 4 --steps 3 --batch 4 --out %s/r", tasks[i],
                 program_folder);
        expect_status(run(text), 0, text);
    }
    ck_assert_int_eq(scratch_count(program_folder, ".json"), (int)(sizeof tasks / sizeof *tasks));
    /* One set in the place of another: its labels would be more than there are logits. */
    expect_status(run("data path mnist"), 0, "data path");
    snprintf(text, sizeof text, "train pathfinder:released=yes,file=%.*s lru:state=4 --steps 1",
             (int)strcspn(out, "\n"), out);
    expect_status(run(text), ST_DATA, text);
    expect_text(err, "holds images of 28 x 28 x 1 with 10 labels, and images of pathfinder32 are of 32 x 32 x 1 with 2",
                text);
    free_output();
}
END_TEST

static void shell(const char *format) {
    char command[400];
    /* cppcheck-suppress wrongPrintfScanfArgNum ; formats have one or two */
    snprintf(command, sizeof command, format, program_folder, program_folder);
    ck_assert_msg(system(command) == 0, "%s", command);
}

#define PATHFINDER "%s/curv_contour_length_14"

/* PIL filters its rows, which make.py does not: the same pixels, so the same content. Lists that end their lines as
 * other systems do are the same lists. */
START_TEST(a_picture_of_pil_and_lists_of_other_systems_are_the_same_images) {
    char text[200];
    expect_status(run("data import pathfinder32 tests/data/pathfinder32"), 0, "data import");
    expect_text(out, "  read from tests/data/pathfinder32/curv_contour_length_14\n", "data import");
    const char *content = strstr(out, "content ");
    ck_assert_ptr_nonnull(content);
    char own[60];
    snprintf(own, sizeof own, "%.40s", content);
    shell("cp -r tests/data/pathfinder32/curv_contour_length_14 %s");
    shell("cp tests/data/pil/sample_0.png " PATHFINDER "/imgs/2");
    shell("sed -i 's/$/\\r/' " PATHFINDER "/metadata/2.npy " PATHFINDER "/metadata/10.npy");
    snprintf(text, sizeof text, "data import pathfinder32 %s", program_folder);
    expect_status(run(text), 0, text);
    expect_text(out, own, "PIL's picture, CRLF");
    shell("cp " PATHFINDER "/metadata/2.npy " PATHFINDER "/metadata/02.npy");
    expect_status(run(text), 5, text);
    expect_text(err, "expected one list of each number, found two of 2", text);
    shell("rm " PATHFINDER "/metadata/02.npy");
    shell("cp tests/fuzz/corpus/png/huge " PATHFINDER "/imgs/10/sample_3.png");
    expect_status(run(text), 5, text);
    expect_text(err, "sample_3.png: expected an image of 32 x 32 pixels, found one of 1000000 x 1000000", text);
    ck_assert_ptr_eq(strchr(err, '\n'), err + strlen(err) - 1);
    free_output();
}
END_TEST

static int looks;

static int signal_at_last(void) {
    return ++looks < 15 ? 0 : SIGINT;
}

static void read_nothing(struct import_log *log, const char *path, int64_t bytes, const char sha256[SHA256_HEX],
                         const struct dataset_file *released) {
    (void)log, (void)path, (void)bytes, (void)sha256, (void)released;
}

/* Images go to the disk as they are read, texts in the end. */
START_TEST(an_import_that_is_stopped_leaves_nothing) {
    static const char *const sets[] = {"cifar10", "imdb"};
    for (int i = 0; i < 2; i++) {
        struct import_log log = {.read = read_nothing, .stop = signal_at_last};
        const struct dataset *d;
        struct error e;
        char folder[64];
        looks = 0;
        snprintf(folder, sizeof folder, "tests/data/%s", sets[i]);
        ck_assert_int_eq(dataset_find(sets[i], &d, &e), ST_OK);
        ck_assert_int_eq(dataset_import(d, folder, true, &log, &e), 128 + SIGINT);
        ck_assert_int_eq(looks, 15);
        ck_assert_int_eq(scratch_count(program_folder, ""), 0);
    }
}
END_TEST

/* A folder with wrong files leaves nothing, and an earlier import stays. */
START_TEST(nothing_is_half_imported) {
    char text[300];
    size_t size;
    char *bytes = slurp("tests/data/cifar10/data_batch_1.bin", &size);
    for (int k = 1; k < 6; k++) {
        snprintf(text, sizeof text, "%s/data_batch_%d.bin", program_folder, k);
        spill(text, bytes, size);
    }
    snprintf(text, sizeof text, "data import cifar10 %s", program_folder);
    expect_status(run(text), 5, text);
    expect_text(err, "cannot find test_batch.bin in", text);
    ck_assert_int_eq(files_in_cache(), 0);
    snprintf(text, sizeof text, "%s/test_batch.bin", program_folder);
    spill(text, bytes, size - 1);
    snprintf(text, sizeof text, "data import cifar10 %s", program_folder);
    expect_status(run(text), 5, text);
    expect_text(err,
                "test_batch.bin, byte 9220: expected the pixels of an entry of 3072 bytes, found the end after 3071",
                text);
    ck_assert_int_eq(files_in_cache(), 0);
    expect_status(run("data import cifar10 tests/data/cifar10"), 0, "a good one");
    expect_status(run(text), 5, text);
    ck_assert_int_eq(files_in_cache(), 1);
    expect_status(run("data verify cifar10"), 0, "data verify");
    expect_text(out, "content e174038694a8e788f7a31a52629e6dc5", "data verify");
    expect_status(run("data import pathfinder64 tests/data/pathfinder32"), 5, "images of another size");
    expect_text(err, "imgs/2/sample_0.png: expected an image of 64 x 64 pixels, found one of 32 x 32", "another size");
    expect_status(run("data import pathfinder32 tests/data/mnist"), 5, "a folder without lists");
    expect_text(err, "expected the lists 0.npy, 1.npy, ... of the released images", "a folder without lists");
    ck_assert_int_eq(files_in_cache(), 1);
    /* Every set is looked at, the damaged ones too. */
    shell("printf half >%s/mnist.images; printf half >%s/cifar10.images");
    expect_status(run("data verify"), ST_DATA, "data verify");
    expect_text(err, "mnist.images: expected images", "data verify");
    expect_text(err, "cifar10.images: expected images", "data verify");
    expect_text(out, "proteins: not imported", "data verify");
    expect_status(run("data import mutag nofolder"), 5, "no folder");
    expect_text(err, "mutag: cannot read the folder nofolder: No such file or directory; `lrnn data urls mutag` says",
                "");
    expect_status(run("data import mutag Makefile"), 5, "a file");
    expect_text(err, "mutag: Makefile is no folder: name the one that its files lie in; `lrnn data urls mutag`", "");
    expect_status(run("data import mutag tests/data/mnist"), 5, "another folder");
    expect_text(err, "cannot find MUTAG_A.txt in tests/data/mnist, plain or as gzip; `lrnn data urls mutag` says", "");
    expect_status(run("data import cifar tests/data/cifar10"), 2, "a wrong name");
    expect_text(err, "did you mean 'cifar10'?", "a wrong name");
    free(bytes);
    free_output();
}
END_TEST

Suite *check_data(void) {
    Suite *suite = suite_create("data");
    TCase *readers = tcase_create("readers"), *tests = tcase_create("data"), *programs = tcase_create("programs");
    tcase_add_test(readers, sha256_meets_its_examples);
    tcase_add_test(readers, idx_is_read_and_each_wrong_byte_of_its_headers_named);
    tcase_add_test(readers, idx_cut_anywhere_is_refused);
    tcase_add_test(readers, a_gzip_bomb_is_not_unfolded);
    tcase_add_test(readers, gzip_of_two_members_is_one_file_and_damage_is_named);
    tcase_add_test(readers, cifar_is_read_and_cut_anywhere_refused);
    tcase_add_test(readers, lists_are_read_and_refused_by_line);
    suite_add_tcase(suite, readers);
    tcase_add_checked_fixture(tests, reserve_task_host, free_task_host);
    tcase_add_checked_fixture(tests, import_data, drop_data);
    tcase_add_test(tests, tasks_have_the_images_of_the_files);
    tcase_add_test(tests, a_set_is_whole_or_refused);
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(programs, program_begin_without_data, program_end);
    tcase_add_test(programs, what_is_imported_is_trained_on_and_names_the_run);
    tcase_add_test(programs, each_format_of_images_is_trained_on);
    tcase_add_test(programs, a_picture_of_pil_and_lists_of_other_systems_are_the_same_images);
    tcase_add_test(programs, an_import_that_is_stopped_leaves_nothing);
    tcase_add_test(programs, nothing_is_half_imported);
    suite_add_tcase(suite, programs);
    return suite;
}

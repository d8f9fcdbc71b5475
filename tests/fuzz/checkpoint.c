/* checkpoint.c - fuzz target: a checkpoint with other bytes, its checksum put right or not, is set aside, refused with
 * one sentence, or gone on with within the room that the run has. The input changes a checkpoint that is written here,
 * because a valid one depends on the build: three bytes each, the place and what is added there; place 65535 cuts. */
#include <xxhash.h>

#include "harness/study/study.h"
#include "harness/run/checkpoint.h"
#include "tests/fuzz/fuzz.h"

#define CURVE 8

static struct ground {
    struct setup *setup;
    struct trainer trainer;
    struct run_progress progress;
    char folder[32], path[256];
    uint8_t *whole;
    size_t size;
} ground = {.folder = "/dev/shm/lrnn-fuzz-XXXXXX"}; /* a damaged checkpoint is renamed, which waits for a disk */

static void must(bool holds) {
    if (!holds) abort();
}

static void ground_remove(void) {
    char aside[300];
    snprintf(aside, sizeof aside, "%s.corrupt", ground.path);
    unlink(ground.path);
    unlink(aside);
    snprintf(aside, sizeof aside, "%s/checkpoints", ground.folder);
    rmdir(aside);
    rmdir(ground.folder);
}

static void ground_make(void) {
    static const char *const flags[][2] = {{"dim", "8"}, {"layers", "1"}, {"mlp", "none"}, {"threads", "1"}};
    struct config c;
    struct error e = {ST_OK, ""};
    if (access("/dev/shm", W_OK) != 0) strcpy(ground.folder, "/tmp/lrnn-fuzz-XXXXXX");
    must(mkdtemp(ground.folder) != NULL && config_default(&c, &e) == ST_OK);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        must(config_set(&c, flags[i][0], flags[i][1], &e) == ST_OK);
    must(config_set(&c, "out", ground.folder, &e) == ST_OK);
    ground.setup = setup_make(&c, "s3:n_train=64,n_val=8,n_test=8,length=4", "lstm", &e);
    must(ground.setup && trainer_create(&ground.trainer, ground.setup, &e) == ST_OK);
    ground.progress = (struct run_progress){.curve = calloc(CURVE, sizeof(struct curve_point)), .n_curve = 2};
    ground.progress.curve_capacity = CURVE;
    must(ground.progress.curve && checkpoint_write(&ground.trainer, &ground.progress, &e) == ST_OK);
    snprintf(ground.path, sizeof ground.path, "%s/checkpoints/%s.ckpt", ground.folder, ground.setup->id.run_id);
    FILE *f = fopen(ground.path, "rb");
    must(f && fseek(f, 0, SEEK_END) == 0 && (ground.size = (size_t)ftell(f)) > sizeof(XXH128_hash_t));
    ground.whole = malloc(ground.size);
    rewind(f);
    must(ground.whole && fread(ground.whole, 1, ground.size, f) == ground.size);
    fclose(f);
    must((stderr = fopen("/dev/null", "w")) != NULL); /* each damage is named there; libFuzzer has its own */
    atexit(ground_remove);
}

static size_t change(uint8_t *bytes, const uint8_t *data, size_t size) {
    size_t n = ground.size, last = sizeof(XXH128_hash_t);
    bool honest = size % 3 == 0; /* the checksum is put right */
    for (; size >= 3; data += 3, size -= 3) {
        size_t at = data[0] | (size_t)data[1] << 8;
        if (at == 65535)
            n -= data[2] < n ? data[2] : n;
        else
            bytes[at % ground.size] = (uint8_t)(bytes[at % ground.size] + data[2]);
    }
    if (honest && n > last) {
        XXH128_hash_t sum = XXH3_128bits(bytes, n - last);
        memcpy(bytes + n - last, &sum, last);
    }
    return n;
}

FUZZ(checkpoint) {
    struct error e = {ST_OK, ""};
    struct run_progress p = ground.progress;
    bool found = false;
    if (!ground.setup) {
        ground_make();
        p = ground.progress;
    }
    uint8_t *bytes = malloc(ground.size);
    if (!bytes) abort();
    memcpy(bytes, ground.whole, ground.size);
    size_t n = change(bytes, data, size);
    FILE *f = fopen(ground.path, "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0) abort();
    if (checkpoint_admit(&ground.setup->spec, ground.setup->id.run_id, &e) != ST_OK) fuzz_sentence(&e);
    if (checkpoint_read(&ground.trainer, &p, &found, &e) != ST_OK)
        fuzz_sentence(&e);
    else if (found && (p.n_curve < 0 || p.n_curve > CURVE))
        abort();
    free(bytes);
    return 0;
}

/* products.c - see products.h. */
#include "harness/run/products.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/lib/algorithms.h"
#include "kernels/lib/gemm.h"
#include "tasks/data/cache_file.h"

static struct {
    pthread_mutex_t lock;
    bool began, off; /* off: there is no file, or it cannot be written */
    long saved;      /* of algorithms_timed */
    char path[CACHE_PATH];
} file = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_off(void) {
    const char *wanted = getenv("LRNN_CUDA_ALGORITHMS");
    return wanted && *wanted == '0';
}

/* Reads all bytes of a file; the caller frees them. NULL with errno. */
static char *bytes_of(const char *path, size_t *size) {
    size_t room = 1 << 16;
    char *text = malloc(room);
    FILE *f = text ? fopen(path, "re") : NULL;
    *size = 0;
    for (size_t n; f && text && (n = fread(text + *size, 1, room - *size, f)) > 0;) {
        *size += n;
        if (*size < room) continue;
        char *larger = realloc(text, room *= 2);
        if (!larger) free(text);
        text = larger;
    }
    bool whole = f && !ferror(f);
    if (f) fclose(f);
    if (whole) return text;
    free(text);
    return NULL;
}

/* Adds the file's choices. A file that is missing has none. */
static enum status read_file(struct error *e) {
    size_t size;
    char *text = bytes_of(file.path, &size);
    if (!text && errno == ENOENT) return ST_OK;
    if (!text) return fail(e, ST_FAIL, "cannot read %s: %s", file.path, strerror(errno));
    enum status status = algorithms_parse(text, size, file.path, e);
    free(text);
    return status;
}

void products_begin(const struct place *p) {
    struct error e = {ST_OK, ""};
    if (p->device == DEVICE_CPU) return;
    algorithms_begin_user(p->cuda);
    pthread_mutex_lock(&file.lock);
    if (!file.began) {
        file.began = true;
        file.off = is_off() || cache_path("cublas", "products", file.path, NULL) != ST_OK;
        if (!file.off && read_file(&e) != ST_OK)
            fprintf(stderr, "lrnn: %s; the products of matrices are timed again\n", e.text);
    }
    pthread_mutex_unlock(&file.lock);
}

/* Writes the process's choices, and those that other processes have added to the file. */
static enum status write_file(struct error *e) {
    struct cache_writing w;
    size_t size;
    read_file(NULL);
    char *text = algorithms_text(&size);
    if (!text) return fail(e, ST_MEMORY, "no memory for %s", file.path);
    enum status status = cache_begin(&w, file.path, e);
    if (status == ST_OK && fwrite(text, 1, size, w.file) != size) status = cache_cannot_write(&w, e);
    if (status == ST_OK) status = cache_end(&w, e);
    cache_drop(&w);
    free(text);
    return status;
}

void products_save(const struct place *p) {
    struct error e = {ST_OK, ""};
    if (p->device == DEVICE_CPU) return;
    long timed = algorithms_timed();
    pthread_mutex_lock(&file.lock);
    if (file.began && !file.off && timed > file.saved) {
        file.saved = timed;
        file.off = write_file(&e) != ST_OK;
        if (file.off) fprintf(stderr, "lrnn: %s; the next process times its products again\n", e.text);
    }
    pthread_mutex_unlock(&file.lock);
}

bool products_are(const struct place *p, const char *names) {
    bool same = true;
    if (p->device == DEVICE_CPU) return true;
    for (const char *at = names; same && *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        char name[9] = "";
        if (n == 8 && strspn(at, "0123456789abcdef") >= 8) snprintf(name, sizeof name, "%.8s", at);
        same = !*name || algorithms_have(name);
        at += n;
    }
    return same;
}

void products_name(const struct place *p, char *text, size_t size) {
    if (p->device == DEVICE_CPU) {
        snprintf(text, size, "%s", gemm_library());
        return;
    }
    int n = snprintf(text, size, "cuBLAS ");
    algorithms_names(p->cuda, text + n, size - (size_t)n);
    if (!text[n]) text[n - 1] = '\0';
}

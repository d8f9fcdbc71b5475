/* place.c - the CPU's half of place.h, and what a build without CUDA says. The other half: core/cuda/place_cuda.cu. */
#include "core/place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/real.h"

enum status place_parse(const char *name, enum device *device, int *index, struct error *e) {
    *device = strncmp(name, "cuda", 4) ? DEVICE_CPU : DEVICE_CUDA;
    *index = 0;
    if (!strcmp(name, "cpu") || !strcmp(name, "cuda")) return ST_OK;
    if (!strncmp(name, "cuda:", 5) && name[5] >= '0' && name[5] <= '9' && strlen(name) < 9) {
        char *end;
        *index = (int)strtol(name + 5, &end, 10);
        if (!*end) return ST_OK;
    }
    return fail(e, ST_USAGE, "unknown device '%.64s'; expected cpu, cuda or cuda:N", name);
}

/* CUDA devices of this machine; 0 without driver or in a build without CUDA, and *why says which. */
static int place_cuda_devices(const char **why) {
#ifdef LRNN_CUDA
    return cuda_place_ops.devices(why);
#else
    *why = "not built";
    return 0;
#endif
}

enum status place_open(struct place *p, const char *name, struct error *e) {
    *p = (struct place){0};
    TRY(place_parse(name, &p->device, &p->index, e));
    if (p->device == DEVICE_CPU) return ST_OK;
#ifdef LRNN_CUDA
    p->ops = &cuda_place_ops;
    enum status status = p->ops->open(p, e);
    if (status != ST_OK) *p = (struct place){0};
    return status;
#else
    *p = (struct place){0};
    return fail(e, ST_DEVICE,
                "--device %s: this lrnn was built without CUDA; install the CUDA toolkit, 12.0 or newer, so that nvcc "
                "is found, and run make again",
                name);
#endif
}

/* What the child process has found. */
struct probed {
    struct error error;
    int devices;
};

static void tell_code(const char *name, const struct place_info *info) {
    char text[PLACE_NOTE];
    if (place_code_note(info, text)) fprintf(stderr, "%s: %s\n", name, text);
}

static void look_at(const char *name, struct probed *found) {
    struct place place;
    struct place_info info;
    found->devices = 1;
    if (place_open(&place, name, &found->error) != ST_OK) return;
    if (place_describe(&place, &info, NULL) == ST_OK) tell_code(name, &info);
    place_close(&place);
}

static enum status describe_device(int index, struct place_info *info, struct error *e) {
    struct place place;
    char name[16];
    snprintf(name, sizeof name, "cuda:%d", index);
    TRY(place_open(&place, name, e));
    enum status status = place_describe(&place, info, e);
    place_close(&place);
    return status;
}

/* All devices, whose names are to be that of the first. */
static void look_at_all(const char *name, struct probed *found) {
    const char *why;
    struct place_info first, info;
    int count = strcmp(name, "cuda") == 0 ? place_cuda_devices(&why) : 1;
    if (count <= 1) {
        look_at(name, found);
        return;
    }
    found->devices = count;
    if (describe_device(0, &first, &found->error) != ST_OK) return;
    tell_code(name, &first);
    for (int i = 1; i < count; i++) {
        if (describe_device(i, &info, &found->error) != ST_OK) return;
        if (strcmp(info.name, first.name) == 0) continue;
        fail(&found->error, ST_DEVICE,
             "--device cuda: this machine has GPUs of two kinds, cuda:0 %s and cuda:%d %s, whose bits and speeds "
             "differ; choose one by --device cuda:N",
             first.name, i, info.name);
        return;
    }
}

static enum status look_in_child(const char *name, void (*look)(const char *name, struct probed *found),
                                 struct probed *found, struct error *e) {
    enum device device;
    int index, channel[2];
    *found = (struct probed){.devices = 1};
    TRY(place_parse(name, &device, &index, e));
    if (device == DEVICE_CPU) return ST_OK;
    if (pipe(channel) != 0) return fail(e, ST_FAIL, "cannot look for device %s: %s", name, strerror(errno));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        look(name, found);
        _exit(write(channel[1], found, sizeof *found) != (ssize_t)sizeof *found);
    }
    int reason = errno;
    close(channel[1]);
    ssize_t n = child > 0 ? read(channel[0], found, sizeof *found) : 0;
    close(channel[0]);
    if (child < 0) return fail(e, ST_FAIL, "cannot look for device %s: %s", name, strerror(reason));
    waitpid(child, NULL, 0);
    if (n != (ssize_t)sizeof *found) return fail(e, ST_DEVICE, "device %s: the process that looked for it ended", name);
    return found->error.status == ST_OK ? ST_OK : fail(e, found->error.status, "%s", found->error.text);
}

enum status place_probe(const char *name, struct error *e) {
    struct probed found;
    return look_in_child(name, look_at, &found, e);
}

enum status place_probe_all(const char *name, int *devices, struct error *e) {
    struct probed found;
    enum status status = look_in_child(name, look_at_all, &found, e);
    *devices = found.devices;
    return status;
}

static bool elsewhere(const struct place *p) {
    return p && p->ops;
}

void place_close(struct place *p) {
    if (elsewhere(p)) p->ops->close(p);
    *p = (struct place){0};
}

enum status place_describe(const struct place *p, struct place_info *info, struct error *e) {
    *info = (struct place_info){.memory = machine_memory_bytes()};
    return elsewhere(p) ? p->ops->describe(p, info, e) : ST_OK;
}

/* The newest that a kernel of ours has instructions for: clusters, launches that overlap. */
#define NEWEST_CODE 90

bool place_code_note(const struct place_info *info, char text[PLACE_NOTE]) {
    int device = info->major * 10 + info->minor, best = device < NEWEST_CODE ? device : NEWEST_CODE;
    if (info->code >= best) return false;
    snprintf(
        text, PLACE_NOTE,
        "the kernels are compiled for compute capability %d.%d and leave unused what %.100s of %d.%d has beyond it, "
        "which may cost much of the speed; `make CUDA_ARCHS=%d` compiles them for it",
        info->code / 10, info->code % 10, info->name, info->major, info->minor, best);
    return true;
}

double place_clock_mhz(const struct place *p) {
    return elsewhere(p) ? p->ops->clock_mhz(p) : 0;
}

enum status place_reserve(const struct place *p, struct arena *a, size_t bytes, struct error *e) {
    if (elsewhere(p)) return p->ops->reserve(p, a, bytes, e);
    size_t machine = machine_memory_bytes();
    if (machine && bytes > machine)
        return fail(e, ST_MEMORY, "%zu MB of memory are needed, the machine has %zu MB; lower batch, length or width",
                    bytes >> 20, machine >> 20);
    TRY(arena_reserve(a, bytes, e));
    arena_huge_pages(a);
    return ST_OK;
}

void place_put(const struct place *p, void *to, const void *from_host, size_t bytes) {
    if (elsewhere(p))
        p->ops->put(p, to, from_host, bytes);
    else
        memcpy(to, from_host, bytes);
}

void place_get(const struct place *p, void *to_host, const void *from, size_t bytes) {
    if (elsewhere(p))
        p->ops->get(p, to_host, from, bytes);
    else
        memcpy(to_host, from, bytes);
}

void place_send(const struct place *p, void *to, const void *from_host, size_t bytes) {
    if (elsewhere(p))
        p->ops->send(p, to, from_host, bytes);
    else
        memcpy(to, from_host, bytes);
}

void place_copy(const struct place *p, void *to, const void *from, size_t bytes) {
    if (elsewhere(p))
        p->ops->copy(p, to, from, bytes);
    else
        memcpy(to, from, bytes);
}

void *place_host_alloc(const struct place *p, size_t bytes) {
    return elsewhere(p) ? p->ops->host_alloc(p, bytes) : calloc(1, bytes);
}

void place_host_free(const struct place *p, void *memory) {
    if (elsewhere(p))
        p->ops->host_free(p, memory);
    else
        free(memory);
}

void place_set(const struct place *p, void *to, int byte, size_t bytes) {
    if (elsewhere(p))
        p->ops->set(p, to, byte, bytes);
    else
        memset(to, byte, bytes);
}

void place_fill(const struct place *p, void *to, int64_t n, double value) {
    if (elsewhere(p)) {
        p->ops->fill(p, to, n, value);
        return;
    }
    for (int64_t i = 0; i < n; i++) ((real *)to)[i] = (real)value;
}

enum status place_wait(const struct place *p, struct error *e) {
    return elsewhere(p) ? p->ops->wait(p, e) : ST_OK;
}

struct place_mark *place_mark_create(const struct place *p) {
    return elsewhere(p) ? p->ops->mark_create(p) : NULL;
}

void place_mark_free(const struct place *p, struct place_mark *m) {
    if (m) p->ops->mark_free(m);
}

void place_mark_set(const struct place *p, struct place_mark *m) {
    if (m) p->ops->mark_set(p, m);
}

void place_mark_wait(const struct place *p, struct place_mark *m) {
    if (m) p->ops->mark_wait(m);
}

double place_mark_seconds(const struct place *p, struct place_mark *from, struct place_mark *to) {
    return from && to ? p->ops->mark_seconds(from, to) : 0;
}

bool place_capture_begin(const struct place *p) {
    return elsewhere(p) && p->ops->capture_begin(p);
}

struct place_capture *place_capture_end(const struct place *p) {
    return elsewhere(p) ? p->ops->capture_end(p) : NULL;
}

const char *place_capture_failure(const struct place *p) {
    return elsewhere(p) ? p->ops->capture_failure(p) : "";
}

void place_replay(const struct place *p, struct place_capture *c) {
    if (c) p->ops->replay(p, c);
}

int64_t place_capture_launches(const struct place *p, const struct place_capture *c) {
    return c ? p->ops->capture_launches(c) : 0;
}

void place_capture_free(const struct place *p, struct place_capture *c) {
    if (c) p->ops->capture_free(c);
}

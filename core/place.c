/* place.c - the CPU's part of place.h, and the messages of a build without CUDA. The CUDA part is in
 * core/cuda/place_cuda.cu. */
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

/* Returns the number of CUDA devices of this machine. 0: there is no driver, or the build has no CUDA; *why says
 * which. */
static int place_cuda_devices(const char **why) {
#ifdef LRNN_WITH_CUDA
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
#ifdef LRNN_WITH_CUDA
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

/* Findings of the child process. */
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

/* Looks at all devices. Fails if their names differ. */
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

/* Kernels use features up to this compute capability: clusters, and launches that overlap. */
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

/* --- the CPU: everything happens at once -------------------------------------------------------------------------- */

static void cpu_close(struct place *p) {
    (void)p;
}

static enum status cpu_describe(const struct place *p, struct place_info *info, struct error *e) {
    (void)p, (void)e;
    info->memory = machine_memory_bytes();
    return ST_OK;
}

static double cpu_clock_mhz(const struct place *p) {
    (void)p;
    return 0;
}

static enum status cpu_reserve(const struct place *p, struct arena *a, size_t bytes, struct error *e) {
    (void)p;
    size_t machine = machine_memory_bytes();
    if (machine && bytes > machine)
        return fail(e, ST_MEMORY, "%zu MB of memory are needed, the machine has %zu MB; lower batch, length or width",
                    bytes >> 20, machine >> 20);
    TRY(arena_reserve(a, bytes, e));
    arena_huge_pages(a);
    return ST_OK;
}

static void cpu_copy(const struct place *p, void *to, const void *from, size_t bytes) {
    (void)p;
    memcpy(to, from, bytes);
}

static void *cpu_host_alloc(const struct place *p, size_t bytes) {
    (void)p;
    return calloc(1, bytes);
}

static void cpu_host_free(const struct place *p, void *memory) {
    (void)p;
    free(memory);
}

static void cpu_set(const struct place *p, void *to, int byte, size_t bytes) {
    (void)p;
    memset(to, byte, bytes);
}

static void cpu_fill(const struct place *p, void *to, int64_t n, double value) {
    (void)p;
    for (int64_t i = 0; i < n; i++) ((real *)to)[i] = (real)value;
}

static enum status cpu_wait(const struct place *p, struct error *e) {
    (void)p, (void)e;
    return ST_OK;
}

static struct place_mark *cpu_mark_create(const struct place *p) {
    (void)p;
    return NULL;
}

static void cpu_load(void) {}

static bool cpu_capture_begin(const struct place *p) {
    (void)p;
    return false;
}

static const char *cpu_capture_failure(const struct place *p) {
    (void)p;
    return "";
}

/* The CPU has no marks and captures nothing, so functions that take a mark or a capture are never called. */
static const struct place_ops cpu_ops = {
    .close = cpu_close,
    .describe = cpu_describe,
    .clock_mhz = cpu_clock_mhz,
    .reserve = cpu_reserve,
    .upload = cpu_copy,
    .download = cpu_copy,
    .send = cpu_copy,
    .copy = cpu_copy,
    .host_alloc = cpu_host_alloc,
    .host_free = cpu_host_free,
    .set = cpu_set,
    .fill = cpu_fill,
    .wait = cpu_wait,
    .mark_create = cpu_mark_create,
    .load_begin = cpu_load,
    .load_end = cpu_load,
    .capture_begin = cpu_capture_begin,
    .capture_failure = cpu_capture_failure,
};

/* --- dispatch to the place's own functions ------------------------------------------------------------------------ */

static const struct place_ops *ops_of(const struct place *p) {
    return p && p->ops ? p->ops : &cpu_ops;
}

void place_close(struct place *p) {
    ops_of(p)->close(p);
    *p = (struct place){0};
}

enum status place_describe(const struct place *p, struct place_info *info, struct error *e) {
    *info = (struct place_info){0};
    return ops_of(p)->describe(p, info, e);
}

double place_clock_mhz(const struct place *p) {
    return ops_of(p)->clock_mhz(p);
}

enum status place_reserve(const struct place *p, struct arena *a, size_t bytes, struct error *e) {
    return ops_of(p)->reserve(p, a, bytes, e);
}

void place_put(const struct place *p, void *to, const void *from_host, size_t bytes) {
    ops_of(p)->upload(p, to, from_host, bytes);
}

void place_get(const struct place *p, void *to_host, const void *from, size_t bytes) {
    ops_of(p)->download(p, to_host, from, bytes);
}

void place_send(const struct place *p, void *to, const void *from_host, size_t bytes) {
    ops_of(p)->send(p, to, from_host, bytes);
}

void place_copy(const struct place *p, void *to, const void *from, size_t bytes) {
    ops_of(p)->copy(p, to, from, bytes);
}

void *place_host_alloc(const struct place *p, size_t bytes) {
    return ops_of(p)->host_alloc(p, bytes);
}

void place_host_free(const struct place *p, void *memory) {
    ops_of(p)->host_free(p, memory);
}

void place_set(const struct place *p, void *to, int byte, size_t bytes) {
    ops_of(p)->set(p, to, byte, bytes);
}

void place_fill(const struct place *p, void *to, int64_t n, double value) {
    ops_of(p)->fill(p, to, n, value);
}

enum status place_wait(const struct place *p, struct error *e) {
    return ops_of(p)->wait(p, e);
}

struct place_mark *place_mark_create(const struct place *p) {
    return ops_of(p)->mark_create(p);
}

void place_mark_free(const struct place *p, struct place_mark *m) {
    if (m) ops_of(p)->mark_free(m);
}

void place_mark_set(const struct place *p, struct place_mark *m) {
    if (m) ops_of(p)->mark_set(p, m);
}

void place_mark_wait(const struct place *p, struct place_mark *m) {
    if (m) ops_of(p)->mark_wait(m);
}

double place_mark_seconds(const struct place *p, struct place_mark *from, struct place_mark *to) {
    return from && to ? ops_of(p)->mark_seconds(from, to) : 0;
}

void place_load_begin(const struct place *p) {
    ops_of(p)->load_begin();
}

void place_load_end(const struct place *p) {
    ops_of(p)->load_end();
}

bool place_capture_begin(const struct place *p) {
    return ops_of(p)->capture_begin(p);
}

struct place_capture *place_capture_end(const struct place *p) {
    return ops_of(p)->capture_end(p);
}

const char *place_capture_failure(const struct place *p) {
    return ops_of(p)->capture_failure(p);
}

void place_replay(const struct place *p, struct place_capture *c) {
    if (c) ops_of(p)->replay(p, c);
}

int64_t place_capture_launches(const struct place *p, const struct place_capture *c) {
    return c ? ops_of(p)->capture_launches(c) : 0;
}

void place_capture_free(const struct place *p, struct place_capture *c) {
    if (c) ops_of(p)->capture_free(c);
}

/* place.h - where graphs run and their memory lies: the CPU, or one CUDA device with a stream of its own.
 *
 * Work on a CUDA place is queued and done in order; a failure is kept by the place and returned by the next place_wait.
 * On the CPU everything happens at once. A program built without CUDA has the same functions, and says so. */
#ifndef LRNN_CORE_PLACE_H
#define LRNN_CORE_PLACE_H

#include <stdint.h>

#include "core/arena.h"

#ifdef __cplusplus
extern "C" {
#endif

enum device { DEVICE_CPU, DEVICE_CUDA, DEVICE_COUNT };

struct cuda_context; /* core/cuda/cuda.cuh */
struct place_ops;

/* All zeros: the CPU. */
struct place {
    enum device device;
    int index; /* of the CUDA device */
    struct cuda_context *cuda;
    const struct place_ops *ops;
};

struct place_info {
    char name[256];                     /* "NVIDIA H200" */
    char driver[64];                    /* versions: "CUDA driver 12.8 / runtime 12.8" */
    size_t memory, free;                /* bytes */
    size_t cache;                       /* bytes of the last one before the memory */
    int major, minor, cores;            /* compute capability; multiprocessors */
    int code;                           /* compute capability x 10 that kernels make use of: of device or build */
    double clock_mhz, memory_clock_mhz; /* the highest */
};

/* Opens "cpu", "cuda" or "cuda:N". Errors: ST_USAGE (no such name), ST_DEVICE (built without CUDA, no driver, no
 * device, no device N, too old a device), each with what to do. */
enum status place_open(struct place *p, const char *name, struct error *e);
void place_close(struct place *p);

/* As place_open and place_close, in a child process: a process that has asked the driver may not fork any more. What
 * place_code_note has to say goes to stderr. */
enum status place_probe(const char *name, struct error *e);

/* The same for a sweep, which "cuda" gives all devices of the machine (*devices; 1 of any other name). ST_DEVICE also
 * where they are of two kinds: whose bits and speeds differ must not share a table unasked. */
enum status place_probe_all(const char *name, int *devices, struct error *e);

/* Whether the name is that of a place, without opening it: ST_USAGE otherwise. */
enum status place_parse(const char *name, enum device *device, int *index, struct error *e);

/* Errors: ST_DEVICE if the device does not answer. The CPU has neither name nor driver. */
enum status place_describe(const struct place *p, struct place_info *info, struct error *e);

/* Whether the kernels are compiled for an older device than this one, as in a build where no GPU was seen, and leave
 * what it has beyond that unused; then `text` says so, and what to do. */
#define PLACE_NOTE 400 /* bytes */
bool place_code_note(const struct place_info *info, char text[PLACE_NOTE]);

/* At which the multiprocessors run now, measured behind all that is queued; 0 on the CPU. */
double place_clock_mhz(const struct place *p);

/* Reserves an arena of zeroed memory there, of which most will be used; arena_free gives it back. ST_MEMORY names what
 * was wanted and what is free, or on the CPU, whose pages are committed when first touched, what the machine has. */
enum status place_reserve(const struct place *p, struct arena *a, size_t bytes, struct error *e);

/* Bytes from the host to the place and back. place_get waits for all that was queued before; after either the host may
 * use its memory again. p NULL: the CPU. */
void place_put(const struct place *p, void *to, const void *from_host, size_t bytes);
void place_get(const struct place *p, void *to_host, const void *from, size_t bytes);

/* As place_put, but `from_host` is memory of place_host_alloc and is read later: the host writes it again only after a
 * place_mark behind this call was waited for. */
void place_send(const struct place *p, void *to, const void *from_host, size_t bytes);

/* Bytes within the place. Queued. On a device slow unless both addresses are multiples of 16. */
void place_copy(const struct place *p, void *to, const void *from, size_t bytes);

/* Pinned host memory, zeroed; place_host_free gives it back. NULL if there is none. */
void *place_host_alloc(const struct place *p, size_t bytes);
void place_host_free(const struct place *p, void *memory);

/* Sets bytes to `byte`; the n values at `to` to `value`. Queued. */
void place_set(const struct place *p, void *to, int byte, size_t bytes);
void place_fill(const struct place *p, void *to, int64_t n, double value);

/* Waits for all that was queued. Errors: ST_DEVICE or ST_MEMORY, the first failure since the place was opened: call,
 * file, line and CUDA's message. */
enum status place_wait(const struct place *p, struct error *e);

/* --- marks: points of the queue ----------------------------------------------------------------------------------- */

struct place_mark;
struct place_mark *place_mark_create(const struct place *p); /* NULL on the CPU */
void place_mark_free(const struct place *p, struct place_mark *m);
void place_mark_set(const struct place *p, struct place_mark *m); /* behind all that is queued now */
void place_mark_wait(const struct place *p, struct place_mark *m);
/* Waits for both; 0 on the CPU. */
double place_mark_seconds(const struct place *p, struct place_mark *from, struct place_mark *to);

/* --- captures: a walk taken down once and replayed ---------------------------------------------------------------- */

struct place_capture;

/* Between begin and end, what is queued is captured instead of done. False: capturing is impossible (the CPU, a device
 * under LRNN_CUDA_SYNC or LRNN_CUDA_GRAPH=0, earlier failures) and everything is done as ever. NULL from end: it
 * failed, place_capture_failure says how, nothing of it was done, and the place captures no more, or once more in the
 * simplest way, which another begin tells. */
bool place_capture_begin(const struct place *p);
struct place_capture *place_capture_end(const struct place *p);
const char *place_capture_failure(const struct place *p); /* "": none */
void place_replay(const struct place *p, struct place_capture *c);
int64_t place_capture_launches(const struct place *p, const struct place_capture *c); /* kernels, copies, fills */
void place_capture_free(const struct place *p, struct place_capture *c);

/* --- the functions above, as a kind of device implements them ----------------------------------------------------- */

struct place_ops {
    int (*devices)(const char **why);
    enum status (*open)(struct place *p, struct error *e);
    void (*close)(struct place *p);
    enum status (*describe)(const struct place *p, struct place_info *info, struct error *e);
    double (*clock_mhz)(const struct place *p);
    enum status (*reserve)(const struct place *p, struct arena *a, size_t bytes, struct error *e);
    void (*upload)(const struct place *p, void *to, const void *from, size_t bytes);
    void (*download)(const struct place *p, void *to, const void *from, size_t bytes);
    void (*send)(const struct place *p, void *to, const void *from, size_t bytes);
    void (*copy)(const struct place *p, void *to, const void *from, size_t bytes);
    void *(*host_alloc)(const struct place *p, size_t bytes);
    void (*host_free)(const struct place *p, void *memory);
    void (*set)(const struct place *p, void *to, int byte, size_t bytes);
    void (*fill)(const struct place *p, void *to, int64_t n, double value);
    enum status (*wait)(const struct place *p, struct error *e);
    struct place_mark *(*mark_create)(const struct place *p);
    void (*mark_free)(struct place_mark *m);
    void (*mark_set)(const struct place *p, struct place_mark *m);
    void (*mark_wait)(struct place_mark *m);
    double (*mark_seconds)(struct place_mark *from, struct place_mark *to);
    bool (*capture_begin)(const struct place *p);
    struct place_capture *(*capture_end)(const struct place *p);
    const char *(*capture_failure)(const struct place *p);
    void (*replay)(const struct place *p, struct place_capture *c);
    int64_t (*capture_launches)(const struct place_capture *c);
    void (*capture_free)(struct place_capture *c);
};

extern const struct place_ops cuda_place_ops; /* core/cuda/place_cuda.cu, in a build with CUDA */

#ifdef __cplusplus
}
#endif
#endif

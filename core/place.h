/* place.h - where graphs run and their memory is: the CPU, or one CUDA device with its own stream.
 *
 * Work on a CUDA place is queued and done in order. The place stores a failure, and the next place_wait returns it. On
 * the CPU all work is done at once. A program built without CUDA has the same functions; their errors say so. */
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

/* All zeros means the CPU. */
struct place {
    enum device device;
    int index; /* of the CUDA device */
    struct cuda_context *cuda;
    const struct place_ops *ops;
};

struct place_info {
    char name[256];          /* "NVIDIA H200" */
    char driver[64];         /* versions: "CUDA driver 12.8 / runtime 12.8" */
    size_t memory, free;     /* bytes */
    size_t cache;            /* bytes of the last-level cache */
    int major, minor, cores; /* compute capability; number of multiprocessors */
    /* compute capability x 10 of the device or of the build, whichever is smaller; kernels are chosen by it */
    int code;
    double clock_mhz, memory_clock_mhz; /* the highest clocks that the device allows */
};

/* Opens "cpu", "cuda" or "cuda:N". Errors: ST_USAGE (no such name); ST_DEVICE (built without CUDA, no driver, no
 * device, no device N, or the device is too old). Each says what to do. */
enum status place_open(struct place *p, const char *name, struct error *e);
void place_close(struct place *p);

/* Opens and closes the place in a child process, because a process that has called the driver cannot fork any more.
 * Prints the text of place_code_note to stderr. Errors as place_open. */
enum status place_probe(const char *name, struct error *e);

/* Like place_probe, for a sweep, where the name "cuda" means all devices of the machine. *devices is their number, or 1
 * for other names. ST_DEVICE also if the devices are of different kinds: bits and speeds differ between kinds, so a
 * table must not mix their numbers unless the user asks for it. */
enum status place_probe_all(const char *name, int *devices, struct error *e);

/* Parses the name of a place without opening it. ST_USAGE: there is no such name. */
enum status place_parse(const char *name, enum device *device, int *index, struct error *e);

/* Describes the place. ST_DEVICE: the device does not answer. The CPU has neither name nor driver. */
enum status place_describe(const struct place *p, struct place_info *info, struct error *e);

/* Whether the kernels are compiled for an older device and so do not use newer features of this one (as in a build on a
 * machine without a GPU). If so, `text` says it, and what to do. */
#define PLACE_NOTE 400 /* bytes */
bool place_code_note(const struct place_info *info, char text[PLACE_NOTE]);

/* Returns the present clock of the multiprocessors, measured after all queued work; 0 on the CPU. */
double place_clock_mhz(const struct place *p);

/* Reserves an arena of zeroed memory at the place; most of it should be used. arena_free gives it back. ST_MEMORY names
 * the bytes wanted and the free bytes; on the CPU, where pages are committed when they are first touched, the machine's
 * bytes. */
enum status place_reserve(const struct place *p, struct arena *a, size_t bytes, struct error *e);

/* place_put copies bytes from the host to the place. place_get copies them back, after all work that was queued before.
 * When either returns, the host may use its memory again. p NULL: the CPU. */
void place_put(const struct place *p, void *to, const void *from_host, size_t bytes);
void place_get(const struct place *p, void *to_host, const void *from, size_t bytes);

/* Like place_put, but queued, for memory of place_host_alloc. The device reads `from_host` later. So before the host
 * writes there again, it must wait for a mark that was set after this call. */
void place_send(const struct place *p, void *to, const void *from_host, size_t bytes);

/* Queues a copy of bytes within the place. On a device it is slow unless both addresses are multiples of 16. */
void place_copy(const struct place *p, void *to, const void *from, size_t bytes);

/* Returns pinned host memory, zeroed; NULL if there is none. place_host_free gives it back. */
void *place_host_alloc(const struct place *p, size_t bytes);
void place_host_free(const struct place *p, void *memory);

/* place_set queues setting bytes to `byte`, place_fill setting n values to `value`. */
void place_set(const struct place *p, void *to, int byte, size_t bytes);
void place_fill(const struct place *p, void *to, int64_t n, double value);

/* Waits for all queued work. Errors: ST_DEVICE or ST_MEMORY for the first failure since the place was opened, with
 * call, file, line and CUDA's message. */
enum status place_wait(const struct place *p, struct error *e);

/* --- marks: points of the queue ----------------------------------------------------------------------------------- */

struct place_mark;
struct place_mark *place_mark_create(const struct place *p); /* returns NULL on the CPU */
void place_mark_free(const struct place *p, struct place_mark *m);
/* Puts the mark after all work that is queued now. */
void place_mark_set(const struct place *p, struct place_mark *m);
void place_mark_wait(const struct place *p, struct place_mark *m);
/* Waits for both marks and returns the time between them; 0 on the CPU. */
double place_mark_seconds(const struct place *p, struct place_mark *from, struct place_mark *to);

/* --- the first walk of a graph ------------------------------------------------------------------------------------ */

/* Keep other runs of the process from capturing, replaying and allocating on a device. They belong around a graph's
 * first walk: it loads kernels, and the driver may load them only when no thread has queued work. Only walks stand
 * between them. */
void place_load_begin(const struct place *p);
void place_load_end(const struct place *p);

/* --- captures: a walk recorded once and replayed ------------------------------------------------------------------ */

struct place_capture;

/* Between begin and end, queued work is captured instead of done. begin returns false if capturing is impossible (on
 * the CPU, on a device under LRNN_CUDA_SYNC or LRNN_CUDA_GRAPH=0, or after earlier failures); then the work is done as
 * usual. end returns NULL after a failure, which place_capture_failure describes; then none of the work was done. In
 * this case call begin again: it returns true if the place can try once more, in its simplest way. */
bool place_capture_begin(const struct place *p);
struct place_capture *place_capture_end(const struct place *p);
const char *place_capture_failure(const struct place *p); /* "": there was no failure */
void place_replay(const struct place *p, struct place_capture *c);
/* Counts kernels, copies and fills. */
int64_t place_capture_launches(const struct place *p, const struct place_capture *c);
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
    void (*load_begin)(void);
    void (*load_end)(void);
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

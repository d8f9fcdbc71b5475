/* place_cuda.cu - a CUDA device as a place: see place.h. It has a stream, and a second stream that branches off it
 * (queue_cuda.cu). It stores the first failure. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include <pthread.h>

#include "core/cuda/cuda.cuh"
#include "core/place_stream.h"

#define OLDEST_DEVICE 75 /* compute capability x 10 that the program is compiled for */
#define FILL_THREADS  256
#define COPY_AHEAD    4 /* vectors that a thread loads before it stores the first */
/* so long because the device's clock of nanoseconds may tick only once per microsecond */
#define CLOCK_NANOSECONDS 2e5

#ifdef LRNN_CUDA_HOST
#define device_nanoseconds cuda_host_nanoseconds
#else
static __device__ uint64_t device_nanoseconds(void) {
    uint64_t t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}
#endif

#ifdef LRNN_CUDA_HOST
#define cudaGraphUpload(exec, stream) cudaSuccess /* in tests on the host, a graph need not be sent anywhere */
#endif

static void keep_failure(struct cuda_context *cuda, const char *call, const char *file, int line, const char *message) {
    if (cuda->failed) return;
    cuda->failed = true;
    snprintf(cuda->failure, sizeof cuda->failure, "%.200s failed at %s:%d: %.200s", call, file, line, message);
}

static enum status failure_kind(const struct cuda_context *cuda) {
    return cuda->full ? ST_MEMORY : ST_DEVICE;
}

bool cuda_check(struct cuda_context *cuda, cudaError_t result, const char *call, const char *file, int line) {
    if (result == cudaSuccess) return true;
    if (!cuda->failed) cuda->full = result == cudaErrorMemoryAllocation;
    keep_failure(cuda, call, file, line, cudaGetErrorString(result));
    return false;
}

bool cublas_check(struct cuda_context *cuda, cublasStatus_t result, const char *call, const char *file, int line) {
    if (result == CUBLAS_STATUS_SUCCESS) return true;
    cudaError_t cause = cudaGetLastError(); /* cuBLAS itself does not say why a launch failed */
    if (!cuda->failed) cuda->full = result == CUBLAS_STATUS_ALLOC_FAILED;
    keep_failure(cuda, call, file, line,
                 cause == cudaSuccess ? cublasGetStatusString(result) : cudaGetErrorString(cause));
    return false;
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

static int devices(const char **why) {
    int count = 0;
    cudaError_t result = cudaGetDeviceCount(&count);
    if (result == cudaSuccess && count > 0) return count;
    *why = result == cudaErrorInsufficientDriver                  ? "no driver, or one older than the toolkit"
           : result == cudaSuccess || result == cudaErrorNoDevice ? "no device"
                                                                  : cudaGetErrorString(result);
    return 0;
}

/* A caller's stream has no second queue: the context then has no branches. */
static bool open_queues(struct cuda_context *cuda) {
    device_alone lock;
    if (cuda->now.blas) return true; /* from an earlier place */
    return cuda_queue_open(cuda, &cuda->now) && (cuda->now.borrowed || cuda_queue_open(cuda, &cuda->beside));
}

static void close_context(struct cuda_context *cuda) {
    device_alone lock;
    cuda_blocks_leave(cuda);
    if (cuda->instance) cudaGraphExecDestroy(cuda->instance);
    cuda_queue_close(&cuda->now);
    cuda_queue_close(&cuda->beside);
    delete cuda;
}

static void close_place(struct place *p) {
    if (!cuda_spare_keep(p->cuda)) {
        close_context(p->cuda);
        return;
    }
    cuda_blocks_leave(p->cuda);
    delete p->cuda;
}

/* Removes environment variables that would change cuBLAS's products without a trace. Only a run's flags may change
 * them. */
static void forget_overrides(void) {
    unsetenv("NVIDIA_TF32_OVERRIDE");
    unsetenv("CUBLAS_EMULATE_SINGLE_PRECISION");
    unsetenv("CUBLAS_EMULATE_DOUBLE_PRECISION");
    unsetenv("CUBLAS_EMULATION_STRATEGY");
    unsetenv("CUBLAS_FIXEDPOINT_EMULATION_MANTISSA_BIT_COUNT");
}

static bool is_off(const char *variable) {
    const char *value = getenv(variable);
    return value && *value == '0';
}

static __global__ void fill_kernel(real *to, int64_t n, real value) {
    await_previous();
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = value;
}

/* Copies `vectors` vectors of 16 bytes. The first block also copies the remaining bytes. */
static __global__ void copy_kernel(char *to, const char *from, size_t vectors, size_t bytes) {
    await_previous();
    const float4 *source = (const float4 *)from;
    float4 *target = (float4 *)to, ahead[COPY_AHEAD];
    size_t first = (size_t)blockIdx.x * COPY_AHEAD * blockDim.x + threadIdx.x;
    for (int i = 0; i < COPY_AHEAD; i++)
        if (first + i * blockDim.x < vectors) ahead[i] = source[first + i * blockDim.x];
    for (int i = 0; i < COPY_AHEAD; i++)
        if (first + i * blockDim.x < vectors) target[first + i * blockDim.x] = ahead[i];
    if (blockIdx.x == 0)
        for (size_t i = vectors * sizeof(float4) + threadIdx.x; i < bytes; i += blockDim.x) to[i] = from[i];
}

/* Loads the place's own kernels, which are also launched outside of walks. False: they are not compiled for this
 * device. */
static bool load_kernels(struct cuda_context *cuda, cudaFuncAttributes *filling) {
    cudaFuncAttributes copying;
    device_alone lock;
    return CUDA_TRY(cuda, cudaFuncGetAttributes(filling, fill_kernel)) &&
           CUDA_TRY(cuda, cudaFuncGetAttributes(&copying, copy_kernel));
}

/* Fills in the place's context. `shared`: other parts of the process use the device, and `stream` is theirs. */
static enum status open_context(struct place *p, bool shared, cudaStream_t stream, struct error *e) {
    cudaFuncAttributes attributes;
    cudaDeviceProp properties;
    struct cuda_context *cuda = new (std::nothrow) cuda_context();
    if (!cuda) return fail(e, ST_MEMORY, "no memory for a device context");
    cuda->index = p->index;
    cuda->now.borrowed = shared;
    cuda->now.stream = stream;
    if (!shared) cuda_spare_take(cuda);
    /* A thread that waits for a stream sleeps. By default it would spin, and each thread of a population would occupy a
     * core. */
    bool good =
        (shared ||
         CUDA_TRY(cuda, cudaInitDevice(p->index, cudaDeviceScheduleBlockingSync, cudaInitDeviceFlagsAreValid))) &&
        CUDA_TRY(cuda, cudaSetDevice(p->index)) && CUDA_TRY(cuda, cudaGetDeviceProperties(&properties, p->index));
    if (good && properties.major * 10 + properties.minor < OLDEST_DEVICE) {
        close_context(cuda);
        return fail(e, ST_DEVICE, "cuda:%d is a %s of compute capability %d.%d; the kernels need %d.%d or newer",
                    p->index, properties.name, properties.major, properties.minor, OLDEST_DEVICE / 10,
                    OLDEST_DEVICE % 10);
    }
    int memory = 0;
    const char *sync = getenv("LRNN_CUDA_SYNC");
    cuda->careful = sync && *sync && *sync != '0';
    cuda->walks = cuda->careful || is_off("LRNN_CUDA_GRAPH");
    good = good && load_kernels(cuda, &attributes) &&
           CUDA_TRY(cuda, cudaDeviceGetAttribute(&memory, cudaDevAttrMaxSharedMemoryPerBlockOptin, p->index)) &&
           open_queues(cuda);
    p->cuda = cuda;
    if (good) {
        int device = properties.major * 10 + properties.minor;
        cuda->capability = attributes.ptxVersion < device ? attributes.ptxVersion : device;
        /* The caller may capture its stream: then neither, as graphs of older drivers do not support them. */
        cuda->overlaps =
            !shared && cuda->capability >= CUDA_OVERLAP_CAPABILITY && !cuda->careful && !is_off("LRNN_CUDA_OVERLAP");
        cuda->branches = !shared && !cuda->overlaps && !cuda->careful && !is_off("LRNN_CUDA_BRANCHES");
        cuda->cores = properties.multiProcessorCount;
        cuda->shared = (size_t)memory;
        return ST_OK;
    }
    enum status status = fail(e, failure_kind(cuda), "cuda:%d cannot be used: %s", p->index, cuda->failure);
    close_context(cuda);
    return status;
}

static enum status open_place(struct place *p, struct error *e) {
    const char *why = "";
    forget_overrides();
    int count = devices(&why);
    if (count == 0)
        return fail(e, ST_DEVICE, "--device cuda: %s; `lrnn doctor` looks further, --device cpu needs none", why);
    if (p->index >= count)
        return fail(e, ST_DEVICE, "--device cuda:%d: this machine has %d CUDA device%s, cuda:0 to cuda:%d", p->index,
                    count, count == 1 ? "" : "s", count - 1);
    return open_context(p, false, nullptr, e);
}

enum status place_open_stream(struct place *p, int index, void *stream, struct error *e) {
    const char *why = "";
    *p = place{DEVICE_CUDA, index, nullptr, &cuda_place_ops};
    int before = 0, count = devices(&why);
    if (count == 0) return fail(e, ST_USAGE, "there is no CUDA device: %s", why);
    if (p->index < 0 || p->index >= count)
        return fail(e, ST_USAGE, "index=%d, expected 0 to %d: this machine has %d CUDA device%s", p->index, count - 1,
                    count, count == 1 ? "" : "s");
    if ((cudaStream_t)stream == cudaStreamPerThread)
        return fail(e, ST_USAGE,
                    "the stream is cudaStreamPerThread, another one in each thread; make one by "
                    "cudaStreamCreate, or use the default stream");
    cudaGetDevice(&before);
    enum status status = open_context(p, true, (cudaStream_t)stream, e);
    cudaSetDevice(before);
    if (status != ST_OK) cudaGetLastError(); /* the caller has the error, and finds no other */
    return status;
}

/* Forgets failures of earlier calls. */
int place_enter(const struct place *p) {
    int before = 0;
    cudaGetDevice(&before);
    p->cuda->failed = p->cuda->full = false;
    CUDA_TRY(p->cuda, cudaSetDevice(p->index));
    return before;
}

enum status place_leave(const struct place *p, int before, struct error *e) {
    cudaSetDevice(before);
    if (p->cuda->failed) cudaGetLastError(); /* the caller has this call's error, and finds no other */
    return p->cuda->failed ? fail(e, failure_kind(p->cuda), "cuda:%d: %s", p->index, p->cuda->failure) : ST_OK;
}

static enum status describe(const struct place *p, struct place_info *info, struct error *e) {
    cudaDeviceProp properties;
    int driver = 0, runtime = 0, clock = 0, memory_clock = 0, cache = 0;
    bool good = CUDA_TRY(p->cuda, cudaGetDeviceProperties(&properties, p->index)) &&
                CUDA_TRY(p->cuda, cudaMemGetInfo(&info->free, &info->memory));
    if (!good) return fail(e, failure_kind(p->cuda), "cuda:%d: %s", p->index, p->cuda->failure);
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, p->index);
    cudaDeviceGetAttribute(&memory_clock, cudaDevAttrMemoryClockRate, p->index);
    cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, p->index);
    snprintf(info->name, sizeof info->name, "%s", properties.name);
    snprintf(info->driver, sizeof info->driver, "CUDA driver %d.%d / runtime %d.%d", driver / 1000, driver % 1000 / 10,
             runtime / 1000, runtime % 1000 / 10);
    info->free += cuda_spare_bytes(p->index);
    info->major = properties.major;
    info->minor = properties.minor;
    info->code = p->cuda->capability;
    info->cores = properties.multiProcessorCount;
    info->clock_mhz = clock / 1e3;
    info->cache = (size_t)cache;
    info->memory_clock_mhz = memory_clock / 1e3;
    return ST_OK;
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static void release(char *base, size_t) {
    if (cuda_block_keep(base)) return;
    device_alone lock;
    cudaFree(base);
}

static cudaError_t reserve_bytes(void **base, size_t bytes) {
    device_alone lock;
    return cudaMalloc(base, bytes);
}

static enum status reserve(const struct place *p, struct arena *a, size_t bytes, struct error *e) {
    size_t size = (bytes ? bytes : 1) + ARENA_ALIGN, available = 0, total = 0;
    void *base = cuda_block_take(p->cuda, size);
    cudaError_t result = base ? cudaSuccess : reserve_bytes(&base, size);
    if (result != cudaSuccess && cuda_spare_bytes(p->index) > 0) {
        cudaGetLastError();
        cuda_spares_close(p->index);
        result = reserve_bytes(&base, size);
    }
    if (result != cudaSuccess) {
        cudaGetLastError(); /* after running out of memory, the device can still be used */
        cudaMemGetInfo(&available, &total);
        return fail(
            e, ST_MEMORY,
            "cuda:%d: %zu MB of device memory are needed, %zu MB of %zu MB are free (%s); lower batch, length or width",
            p->index, size >> 20, available >> 20, total >> 20, cudaGetErrorString(result));
    }
    cuda_block_note(p->cuda, base, size);
    if (!CUDA_TRY(p->cuda, cudaMemsetAsync(base, 0, size, p->cuda->now.stream))) {
        release((char *)base, size);
        return fail(e, failure_kind(p->cuda), "cuda:%d: %s", p->index, p->cuda->failure);
    }
    p->cuda->now.alone = true;
    a->base = (char *)base;
    a->size = size;
    a->used = 0;
    a->release = release;
    return ST_OK;
}

static void upload(const struct place *p, void *to, const void *from, size_t bytes) {
    CUDA_TRY(p->cuda, cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, p->cuda->now.stream));
    CUDA_TRY(p->cuda, cudaStreamSynchronize(p->cuda->now.stream));
}

static void download(const struct place *p, void *to, const void *from, size_t bytes) {
    CUDA_TRY(p->cuda, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, p->cuda->now.stream));
    CUDA_TRY(p->cuda, cudaStreamSynchronize(p->cuda->now.stream));
}

static void send(const struct place *p, void *to, const void *from, size_t bytes) {
    CUDA_TRY(p->cuda, cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, p->cuda->now.stream));
    p->cuda->now.alone = true;
}

/* Copies with our own kernel, in which each thread has COPY_AHEAD loads in flight. In a graph on an H200,
 * cudaMemcpyAsync reaches only 2.8 TB/s, while scan_diag reaches 3.5 (results/device). */
static void copy(const struct place *p, void *to, const void *from, size_t bytes) {
    struct exec x = {};
    x.place = p;
    size_t vectors = ((size_t)to | (size_t)from) % sizeof(float4) ? 0 : bytes / sizeof(float4);
    size_t blocks = (vectors + COPY_AHEAD * FILL_THREADS - 1) / (COPY_AHEAD * FILL_THREADS);
    LAUNCH(&x, copy_kernel, dim3((unsigned)(blocks ? blocks : 1)), dim3(FILL_THREADS), 0, (char *)to,
           (const char *)from, vectors, bytes);
}

static void *host_alloc(const struct place *p, size_t bytes) {
    void *memory = nullptr;
    device_alone lock;
    if (!CUDA_TRY(p->cuda, cudaHostAlloc(&memory, bytes, cudaHostAllocDefault))) return nullptr;
    return memset(memory, 0, bytes);
}

static void host_free(const struct place *, void *memory) {
    device_alone lock;
    cudaFreeHost(memory);
}

static void set(const struct place *p, void *to, int byte, size_t bytes) {
    CUDA_TRY(p->cuda, cudaMemsetAsync(to, byte, bytes, p->cuda->now.stream));
    p->cuda->now.alone = true;
}

static void fill(const struct place *p, void *to, int64_t n, double value) {
    struct exec x = {};
    x.place = p;
    LAUNCH(&x, fill_kernel, dim3((unsigned)((n + FILL_THREADS - 1) / FILL_THREADS)), dim3(FILL_THREADS), 0, (real *)to,
           n, (real)value);
}

static enum status wait(const struct place *p, struct error *e) {
    CUDA_TRY(p->cuda, cudaStreamSynchronize(p->cuda->now.stream));
    return p->cuda->failed ? fail(e, failure_kind(p->cuda), "cuda:%d: %s", p->index, p->cuda->failure) : ST_OK;
}

/* Measures the cycles per nanosecond of a multiprocessor, over about `nanoseconds`. */
static __global__ void clock_kernel(double nanoseconds, double *mhz) {
    await_previous();
    uint64_t start = device_nanoseconds(), end = start;
    long long cycles = clock64();
    while ((double)(end - start) < nanoseconds) end = device_nanoseconds();
    *mhz = 1e3 * (double)(clock64() - cycles) / (double)(end - start);
}

static double clock_mhz(const struct place *p) {
    struct exec x = {};
    struct arena there = {};
    struct error e;
    double mhz = 0;
    x.place = p;
    if (reserve(p, &there, sizeof mhz, &e) != ST_OK) return 0;
    LAUNCH(&x, clock_kernel, dim3(1), dim3(1), 0, CLOCK_NANOSECONDS, (double *)there.base);
    download(p, &mhz, there.base, sizeof mhz);
    arena_free(&there);
    return mhz;
}

/* --- marks and captures ------------------------------------------------------------------------------------------- */

struct place_mark {
    cudaEvent_t event;
};

static struct place_mark *mark_create(const struct place *p) {
    struct place_mark *m = new (std::nothrow) place_mark();
    /* A thread that waits for the event sleeps. The device's flag applies only to streams. */
    if (m && CUDA_TRY(p->cuda, cudaEventCreateWithFlags(&m->event, cudaEventBlockingSync))) return m;
    delete m;
    return nullptr;
}

static void mark_free(struct place_mark *m) {
    cudaEventDestroy(m->event);
    delete m;
}

static void mark_set(const struct place *p, struct place_mark *m) {
    CUDA_TRY(p->cuda, cudaEventRecord(m->event, p->cuda->now.stream));
}

static void mark_wait(struct place_mark *m) {
    cudaEventSynchronize(m->event); /* the next call on the stream reports a failure */
}

static double mark_seconds(struct place_mark *from, struct place_mark *to) {
    float ms = 0;
    cudaEventSynchronize(from->event);
    cudaEventSynchronize(to->event);
    cudaEventElapsedTime(&ms, from->event, to->event);
    return 1e-3 * ms;
}

struct place_capture {
    struct cuda_context *cuda;
    cudaGraphExec_t exec;
    size_t launches;
};

/* Recovers from a failure between the beginning of a capture and its instance, when no work was done yet. The next
 * capture is made without overlapping launches and without branches, which graphs of older drivers do not support. If
 * both are already off, the place makes no more captures. If the device itself has failed, the next walk fails too. */
static void give_up_captures(struct cuda_context *cuda) {
    cudaGetLastError();
    cuda->walks = !cuda->overlaps && !cuda->branches;
    cuda->overlaps = cuda->branches = false;
    snprintf(cuda->capture_failure, sizeof cuda->capture_failure, "%s", cuda->failure);
    cuda->failed = cuda->full = false;
    *cuda->failure = '\0';
}

static void load_begin(void) {
    pthread_rwlock_wrlock(&cuda_device_lock);
}

static void load_end(void) {
    pthread_rwlock_unlock(&cuda_device_lock);
}

static bool capture_begin(const struct place *p) {
    struct cuda_context *cuda = p->cuda;
    if (cuda->walks || cuda->failed) return false;
    cuda->now.alone = true;
    pthread_rwlock_rdlock(&cuda_device_lock);
    if (CUDA_TRY(cuda, cudaStreamBeginCapture(cuda->now.stream, cudaStreamCaptureModeThreadLocal))) return true;
    pthread_rwlock_unlock(&cuda_device_lock);
    give_up_captures(cuda);
    return false;
}

/* Gives the instance of an earlier capture the kernels and arguments of this graph, which is faster than a new one.
 * CUDA refuses that if the graphs have other nodes; the instance is then destroyed. */
static bool take_over(struct cuda_context *cuda, struct place_capture *c, cudaGraph_t graph) {
    cudaGraphExecUpdateResultInfo why = {};
    if (!cuda->instance) return false;
    c->exec = cuda->instance;
    cuda->instance = nullptr;
    if (cudaGraphExecUpdate(c->exec, graph, &why) == cudaSuccess) return true;
    cudaGetLastError();
    cudaGraphExecDestroy(c->exec);
    c->exec = nullptr;
    return false;
}

/* Holds the lock as a writer, because making an instance, and sending it to the device, allocate memory there. Without
 * this, the first replay would send it while other runs work. */
static bool instantiate(struct cuda_context *cuda, struct place_capture *c, cudaGraph_t graph) {
    device_alone lock;
    c->cuda = cuda;
    return (take_over(cuda, c, graph) || CUDA_TRY(cuda, cudaGraphInstantiate(&c->exec, graph, 0))) &&
           CUDA_TRY(cuda, cudaGraphUpload(c->exec, cuda->now.stream));
}

static struct place_capture *capture_end(const struct place *p) {
    cudaGraph_t graph = nullptr;
    struct place_capture *c = new (std::nothrow) place_capture();
    bool queued = !p->cuda->failed;
    bool good = CUDA_TRY(p->cuda, cudaStreamEndCapture(p->cuda->now.stream, &graph)) && queued && c &&
                CUDA_TRY(p->cuda, cudaGraphGetNodes(graph, nullptr, &c->launches));
    pthread_rwlock_unlock(&cuda_device_lock);
    good = good && instantiate(p->cuda, c, graph);
    if (graph) cudaGraphDestroy(graph);
    p->cuda->now.alone = p->cuda->beside.alone = true; /* the captured work is not the last work of the streams */
    if (good) return c;
    delete c;
    give_up_captures(p->cuda);
    return nullptr;
}

static const char *capture_failure(const struct place *p) {
    return p->cuda->capture_failure;
}

static void replay(const struct place *p, struct place_capture *c) {
    pthread_rwlock_rdlock(&cuda_device_lock);
    CUDA_TRY(p->cuda, cudaGraphLaunch(c->exec, p->cuda->now.stream));
    pthread_rwlock_unlock(&cuda_device_lock);
    p->cuda->now.alone = true;
}

static int64_t capture_launches(const struct place_capture *c) {
    return (int64_t)c->launches;
}

/* The context keeps one instance for its next capture. */
static void capture_free(struct place_capture *c) {
    if (!c->cuda->instance) {
        c->cuda->instance = c->exec;
    } else {
        device_alone lock;
        cudaGraphExecDestroy(c->exec);
    }
    delete c;
}

const struct place_ops cuda_place_ops = {
    .devices = devices,
    .open = open_place,
    .close = close_place,
    .describe = describe,
    .clock_mhz = clock_mhz,
    .reserve = reserve,
    .upload = upload,
    .download = download,
    .send = send,
    .copy = copy,
    .host_alloc = host_alloc,
    .host_free = host_free,
    .set = set,
    .fill = fill,
    .wait = wait,
    .mark_create = mark_create,
    .mark_free = mark_free,
    .mark_set = mark_set,
    .mark_wait = mark_wait,
    .mark_seconds = mark_seconds,
    .load_begin = load_begin,
    .load_end = load_end,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .capture_failure = capture_failure,
    .replay = replay,
    .capture_launches = capture_launches,
    .capture_free = capture_free,
};

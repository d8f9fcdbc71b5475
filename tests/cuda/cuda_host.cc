/* cuda_host.cc - see cuda_host.h: fibers, the run-time's functions over them, cuBLAS over real_gemm. */
#include "tests/cuda/cuda_host.h"

#include "kernels/lib/gemm.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define HAVE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAVE_ASAN 1
#endif
#endif
#ifdef HAVE_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#define STACK_BYTES    ((size_t)256 << 10)
#define BLOCK_THREADS  1024u
#define SHARED_BYTES   ((size_t)227 << 10) /* of a block on the largest devices, compute capability 9.0 */
#define SHARED_UNASKED ((size_t)48 << 10)  /* unless the kernel's limit is raised */
#define GRID_X         2147483647u
#define GRID_YZ        65535u
#define POISON         0xFF /* a NaN in both float types */
#define DEFAULT_MEMORY ((size_t)4 << 30)

struct cuda_host_thread cuda_host_now;

[[noreturn]] static void die(const char *what) {
    fprintf(stderr, "cuda_host: block (%u,%u,%u), thread (%u,%u,%u): %s\n", blockIdx.x, blockIdx.y, blockIdx.z,
            threadIdx.x, threadIdx.y, threadIdx.z, what);
    abort();
}

/* --- fibers ----------------------------------------------------------------------------------------------------------
 * A fiber is a stack. A thread that ends or waits passes on to the next ready one, which goes on where it waits or
 * begins on a free fiber; that of an ended thread is free, so threads that never wait share one and cost no switch. */

/* The compiler's own jumps, in functions that it does not instrument: AddressSanitizer takes those of the library for
 * unwinding, and cleans the stack behind a system call each time. */
typedef void *jump_point[5];
#ifdef __clang__
#define UNINSTRUMENTED __attribute__((noinline, no_sanitize("address")))
#else
#define UNINSTRUMENTED __attribute__((noinline, no_sanitize_address))
#endif

struct fiber {
    ucontext_t context; /* how it is entered */
    jump_point place;   /* where it goes on */
    bool entered;
    const void *stack;
    size_t stack_bytes;
    void *fake_stack;
};

enum thread_state { READY, AT_BARRIER, AT_WARP, ENDED };

struct thread {
    fiber *on; /* once begun */
    thread_state state;
    uint3 index;
    int warp, lane;
};

/* What the lanes of a warp give each other. Two sets of slots: a lane may give for the next operation while others have
 * yet to take from this one, but cannot be two ahead. */
struct warp {
    unsigned mask, arrived, lanes; /* of the operation under way; lanes: those that exist */
    unsigned count;                /* operations done */
    unsigned char slot[2][32][16];
    size_t bytes;
};

/* Never destroyed: what fibers hold must be reachable to the end. */
static std::vector<fiber *> &free_fibers = *new std::vector<fiber *>; /* made once, used by every block */
static std::vector<thread> &threads = *new std::vector<thread>;       /* of the block */
static std::vector<warp> &warps = *new std::vector<warp>;
static fiber &host = *new fiber; /* the caller's stack */
static fiber *current = &host, *came_from;
static thread *running;
static const std::function<void()> *body;
static unsigned n_threads, n_waiting, n_ended;
static unsigned turn; /* whose it is: threads come round after round, in the order set */
static bool moved;    /* whether one went on in this round */
static unsigned char *shared_memory;
static size_t shared_bytes;
static int order;
static long launches;

extern "C" void cuda_host_set_order(int o) {
    order = o;
}

extern "C" long cuda_host_launches(void) {
    return launches;
}

/* Does not return, and says so: as a last call that might, it could take over the frame of leave(). */
[[noreturn]] UNINSTRUMENTED static void go_on(fiber *f) {
    if (f->entered) __builtin_longjmp(f->place, 1);
    f->entered = true;
    setcontext(&f->context);
    die("a fiber cannot be entered");
}

UNINSTRUMENTED static void leave(fiber *from, fiber *to) {
    if (!__builtin_setjmp(from->place)) go_on(to);
}

/* On `current` now. Only here is the extent of the host's stack learnt. */
static void arrive(void) {
#ifdef HAVE_ASAN
    const void *stack;
    size_t bytes;
    __sanitizer_finish_switch_fiber(current->fake_stack, &stack, &bytes);
    if (came_from != &host) return;
    host.stack = stack;
    host.stack_bytes = bytes;
#endif
}

static void to_fiber(fiber *f) {
    came_from = current;
    current = f;
#ifdef HAVE_ASAN
    __sanitizer_start_switch_fiber(&came_from->fake_stack, f->stack, f->stack_bytes);
#endif
    leave(came_from, f);
    arrive();
}

/* The i-th of n in the order set. */
static unsigned pick(unsigned i, unsigned n) {
    if (order == 1) return n - 1 - i;
    if (order == 2) return i < n / 2 ? 2 * i + 1 : 2 * (i - n / 2);
    return i;
}

/* NULL when all have ended. */
static thread *next_ready(void) {
    while (n_ended < n_threads) {
        if (turn == n_threads) {
            if (!moved) die("all threads that have not ended wait, for threads that never come");
            turn = 0;
            moved = false;
        }
        thread *t = &threads[pick(turn++, n_threads)];
        if (t->state != READY) continue;
        moved = true;
        return t;
    }
    return nullptr;
}

static fiber *make_fiber(void);

/* The next thread; behind the last, the host. Returns when this fiber's own goes on, or it has got another. */
static void pass_on(void) {
    running = next_ready();
    fiber *next = &host;
    if (running) {
        cuda_host_now.thread = running->index;
        if (!running->on && free_fibers.empty()) free_fibers.push_back(make_fiber());
        if (!running->on) {
            running->on = free_fibers.back();
            free_fibers.pop_back();
        }
        next = running->on;
    }
    if (next != current) to_fiber(next);
}

/* A fiber is never left: it does one thread after the other. */
static void fiber_main(void) {
    arrive();
    for (;;) {
        (*body)();
        running->state = ENDED;
        n_ended++;
        free_fibers.push_back(current);
        pass_on();
    }
}

static fiber *make_fiber(void) {
    fiber *f = new fiber();
    void *stack =
        mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) die("no memory for a stack");
    f->stack = stack;
    f->stack_bytes = STACK_BYTES;
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = stack;
    f->context.uc_stack.ss_size = STACK_BYTES;
    f->context.uc_link = nullptr;
    makecontext(&f->context, fiber_main, 0);
    return f;
}

/* --- waiting ------------------------------------------------------------------------------------------------------ */

void *cuda_host_shared(void) {
    return shared_memory;
}

int cuda_host_lane(void) {
    return running->lane;
}

void __syncthreads(void) {
    if (n_ended) die("__syncthreads after another thread of the block has ended");
    if (++n_waiting == n_threads) { /* the last one opens it */
        n_waiting = 0;
        for (thread &t : threads)
            if (t.state == AT_BARRIER) t.state = READY;
        return;
    }
    running->state = AT_BARRIER;
    pass_on();
}

void cuda_host_exchange(unsigned mask, const void *value, void *result, size_t bytes, int from) {
    thread *self = running;
    warp *w = &warps[(size_t)self->warp];
    mask &= w->lanes;
    if (!(mask >> self->lane & 1)) die("a warp operation whose mask lacks the lane that executes it");
    if (w->arrived && (w->mask != mask || w->bytes != bytes)) die("lanes of a warp are in different operations");
    if (bytes > sizeof w->slot[0][0]) die("a warp exchange of more than 16 bytes");
    unsigned set = w->count & 1;
    w->mask = mask;
    w->bytes = bytes;
    memcpy(w->slot[set][self->lane], value, bytes);
    w->arrived |= 1u << self->lane;
    if (w->arrived == mask) {
        w->arrived = 0;
        w->count++;
        for (thread *t = self - self->lane; t < &threads[0] + n_threads && t->warp == self->warp; t++)
            if (t->state == AT_WARP && (mask >> t->lane & 1)) t->state = READY;
    } else {
        self->state = AT_WARP;
        pass_on();
    }
    if (from < 0) return;
    if (!(mask >> from & 1)) die("a shuffle from a lane that does not take part");
    memcpy(result, w->slot[set][from], bytes);
}

unsigned __ballot_sync(unsigned mask, int predicate) {
    unsigned bits = 0;
    int lane = cuda_host_lane();
    warp *w = &warps[(size_t)running->warp];
    unsigned char vote = predicate != 0, seen = 0;
    unsigned set = w->count & 1;
    cuda_host_exchange(mask, &vote, &seen, 1, lane);
    for (int i = 0; i < 32; i++)
        if (mask & w->lanes & (1u << i)) bits |= (unsigned)w->slot[set][i][0] << i;
    return bits;
}

/* --- a grid ------------------------------------------------------------------------------------------------------- */

static void run_block(void) {
    dim3 d = cuda_host_now.block_dim;
    n_waiting = n_ended = 0;
    for (unsigned w = 0; w < warps.size(); w++) {
        unsigned lanes = n_threads - 32 * w < 32 ? n_threads - 32 * w : 32;
        warps[w] = warp();
        warps[w].lanes = lanes == 32 ? 0xffffffffu : (1u << lanes) - 1;
    }
    for (unsigned i = 0; i < n_threads; i++)
        threads[i] = {nullptr, READY, {i % d.x, i / d.x % d.y, i / (d.x * d.y)}, (int)(i / 32), (int)(i % 32)};
    turn = 0;
    moved = false;
    pass_on();
}

static std::map<const void *, size_t> &raised = *new std::map<const void *, size_t>; /* by kernel */

cudaError_t cuda_host_raise_shared(const void *kernel, size_t bytes) {
    if (bytes > SHARED_BYTES) return cudaErrorInvalidValue;
    raised[kernel] = bytes;
    return cudaSuccess;
}

bool cuda_host_configuration_possible(const void *kernel, dim3 grid, dim3 block, size_t shared) {
    unsigned long long threads = (unsigned long long)block.x * block.y * block.z;
    auto limit = raised.find(kernel);
    if (shared > (limit == raised.end() ? SHARED_UNASKED : limit->second)) return false;
    return threads >= 1 && threads <= BLOCK_THREADS && grid.x >= 1 && grid.y >= 1 && grid.z >= 1 && grid.x <= GRID_X &&
           grid.y <= GRID_YZ && grid.z <= GRID_YZ;
}

/* What kernels declare as shared, all of them together; the linker knows where it is. */
extern "C" unsigned char __start_cuda_shared[] __attribute__((weak)), __stop_cuda_shared[] __attribute__((weak));

UNINSTRUMENTED static void poison_static_shared(void) {
    for (volatile unsigned char *at = __start_cuda_shared; at < __stop_cuda_shared; at++) *at = POISON;
}

/* A kernel's shared memory holds NaNs when a block begins, and ends where the launch says it does. */
void cuda_host_grid(dim3 grid, dim3 block, size_t shared, const std::function<void()> &work) {
    n_threads = block.x * block.y * block.z;
    threads.resize(n_threads);
    host.entered = true;
    warps.resize((n_threads + 31) / 32);
    body = &work;
    shared_bytes = shared;
    shared_memory = (unsigned char *)aligned_alloc(16, (shared + 16) / 16 * 16);
    cuda_host_now.block_dim = block;
    cuda_host_now.grid_dim = grid;
    unsigned long long blocks = (unsigned long long)grid.x * grid.y * grid.z;
    for (unsigned long long i = 0; i < blocks; i++) {
        unsigned b = pick((unsigned)i, (unsigned)blocks);
        cuda_host_now.block = {b % grid.x, b / grid.x % grid.y, b / (grid.x * grid.y)};
        memset(shared_memory, POISON, shared);
        poison_static_shared();
        run_block();
    }
    free(shared_memory);
    shared_memory = nullptr;
    launches++;
}

/* --- streams, captures -------------------------------------------------------------------------------------------- */

struct cuda_host_graph {
    std::vector<std::function<void()>> work;
};

struct cuda_host_stream {
    cuda_host_graph *capture; /* being recorded, or null */
    std::vector<std::function<void()>> queue;
};

struct cuda_host_event {
    double time;
    cudaStream_t stream; /* that it was recorded on last */
};

static int captures; /* under way */

static cudaError_t failure = cudaSuccess; /* sticky, as on a device */

static long setting(const char *name, long fallback) {
    const char *text = getenv(name);
    return text && *text ? atol(text) : fallback;
}

static void run_or_fail(const std::function<void()> &work, bool kernel) {
    static long seen;
    const char *once = getenv("LRNN_CUDA_HOST_FAIL_ONCE");
    long first = setting("LRNN_CUDA_HOST_FAIL", 0);
    if (kernel && ++seen >= first && first > 0 && failure == cudaSuccess && (!once || unlink(once) == 0))
        failure = cudaErrorIllegalAddress;
    if (failure == cudaSuccess) work();
}

/* Nothing queues work from within work. */
static void run_queue(cudaStream_t stream) {
    for (const auto &work : stream->queue) work();
    stream->queue.clear();
}

static void queue(cudaStream_t stream, std::function<void()> work) {
    stream->queue.push_back(work);
    if (!setting("LRNN_CUDA_HOST_LAZY", 0)) run_queue(stream);
}

static cudaError_t enqueue(cudaStream_t stream, std::function<void()> work, bool kernel) {
    std::function<void()> whole = [=] { run_or_fail(work, kernel); };
    if (stream->capture)
        stream->capture->work.push_back(whole);
    else
        queue(stream, whole);
    return failure;
}

static void open_memory(void);
static void close_memory(void);

cudaError_t cuda_host_enqueue(cudaStream_t stream, const char *, std::function<void()> work) {
    return enqueue(
        stream,
        [=] {
            open_memory();
            work();
            close_memory();
        },
        true);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
    *stream = new cuda_host_stream();
    return failure;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    run_queue(stream);
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    if (stream->capture) die("a stream is waited for while it is captured");
    run_queue(stream);
    return failure;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
    stream->capture = new cuda_host_graph();
    captures++;
    return failure;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    *graph = stream->capture;
    stream->capture = nullptr;
    captures--;
    return failure;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long) {
    if (setting("LRNN_CUDA_HOST_NO_GRAPH", 0)) return cudaErrorMemoryAllocation;
    *exec = new cuda_host_graph(*graph);
    return failure;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    delete exec;
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
    for (const auto &work : exec->work) queue(stream, work);
    return failure;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

uint64_t cuda_host_nanoseconds(void) {
    return (uint64_t)(1e9 * now());
}

long long clock64(void) {
    return (long long)cuda_host_nanoseconds();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
    *event = new cuda_host_event();
    return failure;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    event->stream = stream;
    queue(stream, [=] { event->time = now(); });
    return failure;
}

/* Waits for more than it has to, like every device that is late. */
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    if (event->stream && event->stream->capture) die("an event is waited for while its stream is captured");
    if (event->stream) run_queue(event->stream);
    return failure;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
    *ms = (float)(1e3 * (to->time - from->time));
    return failure;
}

/* --- devices and memory ------------------------------------------------------------------------------------------- */

static size_t handed_out;

static size_t device_memory(void) {
    return (size_t)setting("LRNN_CUDA_HOST_MEMORY", (long)DEFAULT_MEMORY);
}

const char *cudaGetErrorString(cudaError_t error) {
    return error == cudaSuccess                     ? "no error"
           : error == cudaErrorMemoryAllocation     ? "out of memory"
           : error == cudaErrorInvalidConfiguration ? "invalid configuration argument"
           : error == cudaErrorNoDevice             ? "no CUDA-capable device is detected"
           : error == cudaErrorInvalidDevice        ? "invalid device ordinal"
           : error == cudaErrorIllegalAddress       ? "an illegal memory access was encountered"
                                                    : "invalid argument";
}

cudaError_t cudaGetLastError(void) {
    return failure;
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = 12000;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = 12000;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count) {
    *count = (int)setting("LRNN_CUDA_HOST_DEVICES", 1);
    return *count ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaSetDevice(int index) {
    return index < setting("LRNN_CUDA_HOST_DEVICES", 1) ? failure : cudaErrorInvalidDevice;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int) {
    *p = cudaDeviceProp();
    snprintf(p->name, sizeof p->name, "CUDA on the host");
    p->totalGlobalMem = device_memory();
    p->major = (int)setting("LRNN_CUDA_HOST_CAPABILITY", 90) / 10;
    p->minor = (int)setting("LRNN_CUDA_HOST_CAPABILITY", 90) % 10;
    p->multiProcessorCount = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
    *value = attribute == cudaDevAttrL2CacheSize ? 1 << 20 : 0;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total) {
    *total = device_memory();
    *free_bytes = *total > handed_out ? *total - handed_out : 0;
    return failure;
}

/* Device memory: whole pages each, by their address; to be reached between open_memory and close_memory alone. */
static std::map<char *, size_t> &allocations = *new std::map<char *, size_t>; /* bytes asked for */
static std::map<char *, size_t> &pinned = *new std::map<char *, size_t>;

static size_t pages_of(size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page) / page * page; /* one byte more than asked for at least: none ends where its pages do */
}

/* Of all pages there are, so that it takes long: where it is asked for. */
static bool protects(void) {
    return setting("LRNN_CUDA_HOST_PROTECT", 0);
}

static void protect(int rights) {
    if (!protects()) return;
    for (const auto &a : allocations)
        if (mprotect(a.first, pages_of(a.second), rights) != 0) die("device memory cannot be protected");
}

static void open_memory(void) {
    protect(PROT_READ | PROT_WRITE);
}

static void close_memory(void) {
    protect(PROT_NONE);
}

/* Whether `at` lies within one of them. */
static bool within(const std::map<char *, size_t> &all, const void *at) {
    auto next = all.upper_bound((char *)at);
    if (next == all.begin()) return false;
    --next;
    return (const char *)at <= next->first + next->second;
}

void cuda_host_check_argument(const char *name, int index, const void *argument, size_t bytes) {
    unsigned char residency;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        uintptr_t word;
        memcpy(&word, (const char *)argument + i, sizeof word);
        if (word >> 47 || word >> 45 == 0) continue; /* no address, two sizes, or the shadow of AddressSanitizer */
        if (within(allocations, (void *)word) || within(pinned, (void *)word)) continue;
        if (mincore((void *)(word / page * page), 1, &residency) != 0) continue; /* nothing is there */
        fprintf(stderr, "cuda_host: %s: argument %d holds %p, an address of the host's\n", name, index, (void *)word);
        abort();
    }
}

static void refuse_while_captured(const char *what) {
    if (!captures) return;
    fprintf(stderr, "cuda_host: memory is %s while a stream is captured\n", what);
    abort();
}

cudaError_t cudaMalloc(void **memory, size_t bytes) {
    refuse_while_captured("reserved");
    if (failure != cudaSuccess) return failure;
    if (handed_out + bytes > device_memory()) return cudaErrorMemoryAllocation;
    size_t size = pages_of(bytes);
    char *block = (char *)mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) return cudaErrorMemoryAllocation;
    memset(block, POISON, bytes);
#ifdef HAVE_ASAN
    __asan_poison_memory_region(block + bytes, size - bytes);
#endif
    allocations[block] = bytes;
    close_memory();
    handed_out += bytes;
    *memory = block;
    return cudaSuccess;
}

/* Nothing that is queued may still use it: a device waits, and so do all streams here, which the caller has. */
cudaError_t cudaFree(void *memory) {
    if (!memory) return cudaSuccess;
    refuse_while_captured("given back");
    auto a = allocations.find((char *)memory);
    if (a == allocations.end()) die("cudaFree of what is no device memory");
    size_t size = pages_of(a->second);
#ifdef HAVE_ASAN
    __asan_unpoison_memory_region(memory, size);
#endif
    handed_out -= a->second;
    allocations.erase(a);
    munmap(memory, size);
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned) {
    refuse_while_captured("pinned");
    *memory = malloc(bytes ? bytes : 1);
    if (!*memory) return cudaErrorMemoryAllocation;
    pinned[(char *)*memory] = bytes;
    return failure;
}

cudaError_t cudaFreeHost(void *memory) {
    pinned.erase((char *)memory);
    free(memory);
    return cudaSuccess;
}

/* What is copied out of memory that is not pinned has been read when the call returns. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    bool now_read = kind == cudaMemcpyHostToDevice && !stream->capture && !within(pinned, from);
    if (kind == cudaMemcpyHostToDevice ? within(allocations, from) : !within(allocations, from))
        return cudaErrorInvalidValue;
    if (kind == cudaMemcpyDeviceToHost ? within(allocations, to) : !within(allocations, to))
        return cudaErrorInvalidValue;
    std::vector<char> staged;
    if (now_read) staged.assign((const char *)from, (const char *)from + bytes);
    return enqueue(
        stream,
        [=] {
            open_memory();
            memcpy(to, now_read ? staged.data() : from, bytes);
            close_memory();
        },
        false);
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream) {
    return enqueue(
        stream,
        [=] {
            open_memory();
            memset(to, byte, bytes);
            close_memory();
        },
        false);
}

/* --- cuBLAS ------------------------------------------------------------------------------------------------------- */

struct cuda_host_blas {
    cudaStream_t stream;
};

const char *cublasGetStatusString(cublasStatus_t status) {
    return status == CUBLAS_STATUS_SUCCESS ? "success" : "execution failed";
}

cublasStatus_t cublasCreate(cublasHandle_t *handle) {
    *handle = new cuda_host_blas();
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle) {
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t, void *, size_t) {
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) {
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t product(cublasHandle_t handle, std::function<void()> work) {
    cudaError_t result = cuda_host_enqueue(handle->stream, "cublas", work);
    return result == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

/* Columns side by side: what real_gemm sees by rows is C^T = op(B)^T op(A)^T. */
cublasStatus_t cuda_host_gemm(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                              const real *alpha, const real *a, int lda, const real *b, int ldb, const real *beta,
                              real *c, int ldc) {
    if (*beta != 0 && *beta != 1) return CUBLAS_STATUS_INVALID_VALUE;
    bool add = *beta != 0;
    real alpha_now = *alpha;
    return product(handle, [=] {
        real_gemm(tb == CUBLAS_OP_T, ta == CUBLAS_OP_T, n, m, k, alpha_now, b, ldb, a, lda, add, c, ldc);
    });
}

/* cuda_host.cc - see cuda_host.h: a grid, whose threads are fibers, one cluster after the other. */
#include "tests/cuda/host/cuda_host.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>
#include <set>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

#ifdef CUDA_HOST_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef CUDA_HOST_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#define STACK_BYTES    ((size_t)256 << 10)
#define BLOCK_THREADS  1024u
#define CLUSTER_BLOCKS 8u                  /* what every device of capability 9.0 or newer takes */
#define SHARED_BYTES   ((size_t)228 << 10) /* more than a block has on the largest devices, in whole pages */
#define SHARED_UNASKED ((size_t)48 << 10)  /* unless the kernel's limit is raised */
#define GRID_X         2147483647u
#define GRID_YZ        65535u

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

void cuda_host_die(const char *what) {
    fprintf(stderr, "cuda_host: block (%u,%u,%u), thread (%u,%u,%u): %s\n", blockIdx.x, blockIdx.y, blockIdx.z,
            threadIdx.x, threadIdx.y, threadIdx.z, what);
    abort();
}

static std::atomic<uint64_t> passed(0); /* nanoseconds, by cuda_host_pass_time */

void cuda_host_pass_time(double seconds) {
    passed += (uint64_t)(1e9 * seconds);
}

uint64_t cuda_host_nanoseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec + passed;
}

/* --- fibers ----------------------------------------------------------------------------------------------------------
 * A fiber is a stack. A thread that ends or waits passes on to the next ready one, which goes on where it waits or
 * begins on a free fiber. An ended thread frees its fiber, so threads that never wait share one and cost no switch. */

/* The compiler's own jumps, in functions that it does not instrument: AddressSanitizer takes the library's jumps for
 * unwinding, and cleans the stack after a system call each time. */
typedef void *jump_point[5];
#ifdef __clang__
#define UNINSTRUMENTED __attribute__((noinline, no_sanitize("address", "thread")))
#else
#define UNINSTRUMENTED __attribute__((noinline, no_sanitize_address, no_sanitize_thread))
#endif

struct fiber {
    ucontext_t context; /* how it is entered */
    jump_point place;   /* where it goes on */
    bool entered;
    const void *stack;
    size_t stack_bytes;
    void *fake_stack;
    void *as_thread; /* ThreadSanitizer's name of it */
};

enum thread_state { READY, AT_BARRIER, AT_WARP, AT_CLUSTER, ENDED };

/* A block of the cluster that runs. What kernels declare as shared is there once, and each block's own contents while
 * its threads run alone; meanwhile `declared` keeps the other blocks' contents. */
struct block {
    uint3 index;
    unsigned char *shared; /* pages: the dynamic memory, as much of it as the launch says */
    std::vector<unsigned char> declared;
    unsigned waiting, ended; /* threads */
    bool begun;
};

/* A copy that a thread has asked for and not waited for, and its group. */
struct copy {
    void *to;
    const void *from;
    size_t bytes;
    unsigned group;
};

struct thread {
    fiber *on; /* once begun */
    thread_state state;
    struct block *of;
    uint3 index;
    int warp, lane;  /* warps are counted through the cluster */
    bool awaited;    /* the launch before has ended */
    bool arrived;    /* at the cluster's barrier, and has not waited there yet */
    unsigned groups; /* of copies, that are closed */
    std::vector<copy> copies;
};

/* Values that the lanes of a warp give each other. Two sets of slots: a lane may give for the next operation while
 * others have yet to take from this one, but cannot be two ahead. */
struct warp {
    unsigned mask, arrived, lanes; /* of the operation under way; lanes: those that exist */
    unsigned count;                /* operations done */
    cuda_host_given slot[2][32];
    size_t bytes;
};

/* Never destroyed: what fibers hold must be reachable to the end. */
static std::vector<fiber *> &free_fibers = *new std::vector<fiber *>; /* made once, used by every block */
static std::vector<thread> &threads = *new std::vector<thread>;       /* of the cluster */
static std::vector<warp> &warps = *new std::vector<warp>;
static block *blocks = new block[CLUSTER_BLOCKS](), *resident; /* resident: whose is what kernels declare */
static fiber &host = *new fiber; /* the caller's stack, whichever thread that is: one grid runs at a time */
static fiber *current = &host, *came_from;
static thread *running;
static const std::function<void()> *body;
static unsigned n_blocks, block_threads;       /* of a cluster, of a block */
static unsigned n_threads, n_waiting, n_ended; /* of the cluster; waiting: at the cluster's barrier */
static unsigned turn;                          /* whose it is: threads come round after round, in the order set */
static bool moved, warp_moved;                 /* whether one went on in this round, or since its warp's turn came */
static size_t shared_bytes, most_shared;
static bool overlaps, reaches; /* the grid: the launch before it; device memory, as one of its threads has waited */
static int order;
static long launches;

extern "C" void cuda_host_set_order(int o) {
    order = o;
}

extern "C" long cuda_host_launches(void) {
    return launches;
}

/* The most that a block was launched with since the last call. */
extern "C" size_t cuda_host_most_shared(void) {
    size_t most = most_shared;
    most_shared = 0;
    return most;
}

/* Does not return, and says so: as a last call that might, it could take over the frame of leave(). */
[[noreturn]] UNINSTRUMENTED static void go_on(fiber *f) {
    if (f->entered) __builtin_longjmp(f->place, 1);
    f->entered = true;
    setcontext(&f->context);
    cuda_host_die("a fiber cannot be entered");
}

UNINSTRUMENTED static void leave(fiber *from, fiber *to) {
    if (!__builtin_setjmp(from->place)) go_on(to);
}

/* On `current` now. Only here is the extent of the host's stack learnt. */
static void arrive(void) {
#ifdef CUDA_HOST_ASAN
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
#ifdef CUDA_HOST_ASAN
    __sanitizer_start_switch_fiber(&came_from->fake_stack, f->stack, f->stack_bytes);
#endif
#ifdef CUDA_HOST_TSAN
    __tsan_switch_to_fiber(f->as_thread, 0);
#endif
    leave(came_from, f);
    arrive();
}

/* The i-th of n in the order set. */
static unsigned pick(unsigned i, unsigned n) {
    if (order == 1 || (order == ORDER_WARPS && n % 32)) return n - 1 - i;
    if (order == 2) return i < n / 2 ? 2 * i + 1 : 2 * (i - n / 2);
    if (order == ORDER_WARPS) return i % 32 + (n - 1 - i) / 32 * 32;
    return i;
}

/* NULL when all have ended. */
static thread *next_ready(void) {
    while (n_ended < n_threads) {
        if (order == ORDER_WARPS && n_threads % 32 == 0 && turn > 0 && turn % 32 == 0) {
            if (warp_moved) turn -= 32;
            warp_moved = false;
        }
        if (turn == n_threads) {
            if (!moved) cuda_host_die("all threads that have not ended wait, for threads that never come");
            turn = 0;
            moved = false;
        }
        thread *t = &threads[pick(turn++, n_threads)];
        if (t->state != READY) continue;
        moved = warp_moved = true;
        return t;
    }
    return nullptr;
}

static fiber *make_fiber(void);
static void make_resident(block *b);
static void close_shared(block *b);

/* Goes on to the next thread; after the last, to the host. Returns when this fiber's own goes on, or it has got
 * another. */
static void pass_on(void) {
    running = next_ready();
    fiber *next = &host;
    if (running) {
        threadIdx = running->index;
        blockIdx = running->of->index;
        running->of->begun = true;
        make_resident(running->of);
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
        if (overlaps && !running->awaited)
            cuda_host_die("a thread that has not waited for the launch before, which this one may overlap");
        if (!running->copies.empty()) cuda_host_die("a thread that has not waited for its copies");
        if (running->arrived) cuda_host_die("a thread that has not waited at a cluster's barrier");
        running->state = ENDED;
        n_ended++;
        if (++running->of->ended == block_threads) close_shared(running->of);
        free_fibers.push_back(current);
        pass_on();
    }
}

static fiber *make_fiber(void) {
    fiber *f = new fiber();
    void *stack =
        mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) cuda_host_die("no memory for a stack");
    f->stack = stack;
    f->stack_bytes = STACK_BYTES;
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = stack;
    f->context.uc_stack.ss_size = STACK_BYTES;
    f->context.uc_link = nullptr;
    makecontext(&f->context, fiber_main, 0);
#ifdef CUDA_HOST_TSAN
    f->as_thread = __tsan_create_fiber(0);
#endif
    return f;
}

/* --- waiting ------------------------------------------------------------------------------------------------------ */

void *cuda_host_shared(void) {
    return running->of->shared;
}

int cuda_host_lane(void) {
    return running->lane;
}

/* Waits at a barrier of n threads, of one block or of all; the last one opens it. */
static void wait_for(unsigned *waiting, unsigned n, thread_state state, const block *of) {
    if (++*waiting == n) {
        *waiting = 0;
        for (thread &t : threads)
            if (t.state == state && (!of || t.of == of)) t.state = READY;
        return;
    }
    running->state = state;
    pass_on();
}

void __syncthreads(void) {
    if (running->of->ended) cuda_host_die("__syncthreads after another thread of the block has ended");
    wait_for(&running->of->waiting, block_threads, AT_BARRIER, running->of);
}

/* The launch before has always ended here: one thing runs at a time. What the first thread to wait does before that,
 * which is what they all do, has no device memory, where that is protected. */
void cuda_host_await_previous(void) {
    running->awaited = true;
    if (overlaps && !reaches) cuda_host_open_memory();
    reaches = true;
}

void cuda_host_copy_async_bytes(void *to, const void *from, size_t bytes) {
    if ((uintptr_t)to % bytes || (uintptr_t)from % bytes) cuda_host_die("cp.async from or to an unaligned address");
    running->copies.push_back({to, from, bytes, running->groups});
}

void cuda_host_copy_async_commit(void) {
    running->groups++;
}

void cuda_host_copy_async_settle(unsigned left) {
    std::vector<copy> &copies = running->copies;
    size_t done = 0;
    for (; done < copies.size() && copies[done].group + left < running->groups; done++)
        memcpy(copies[done].to, copies[done].from, copies[done].bytes);
    copies.erase(copies.begin(), copies.begin() + (ptrdiff_t)done);
}

void cuda_host_cluster_arrive(void) {
    if (running->arrived) cuda_host_die("a thread arrives twice at a cluster's barrier");
    running->arrived = true;
}

void cuda_host_cluster_wait(void) {
    if (!running->arrived) cuda_host_die("a wait at a cluster's barrier at which the thread has not arrived");
    if (n_ended) cuda_host_die("a cluster's barrier after another thread of the cluster has ended");
    running->arrived = false;
    wait_for(&n_waiting, n_threads, AT_CLUSTER, nullptr);
}

void *cuda_host_cluster_shared(void *mine, unsigned rank) {
    unsigned char *at = (unsigned char *)mine, *begin = running->of->shared;
    if (rank >= n_blocks) cuda_host_die("shared memory of a block that the cluster does not have");
    if (running->arrived) cuda_host_die("shared memory of another block between the halves of a cluster's barrier");
    if (at < begin || at > begin + shared_bytes) cuda_host_die("no address of the block's dynamic shared memory");
    if (!blocks[rank].begun) cuda_host_die("shared memory of a block of the cluster that may not have begun");
    if (blocks[rank].ended == block_threads) cuda_host_die("shared memory of a block of the cluster that has ended");
    return blocks[rank].shared + (at - begin);
}

cuda_host_given cuda_host_exchange(unsigned mask, const cuda_host_given &value, size_t bytes, int from) {
    thread *self = running;
    warp *w = &warps[(size_t)self->warp];
    mask &= w->lanes;
    if (!(mask >> self->lane & 1)) cuda_host_die("a warp operation whose mask lacks the lane that executes it");
    if (w->arrived && (w->mask != mask || w->bytes != bytes))
        cuda_host_die("lanes of a warp are in different operations");
    unsigned set = w->count & 1;
    w->mask = mask;
    w->bytes = bytes;
    w->slot[set][self->lane] = value;
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
    if (from < 0) return value;
    if (!(mask >> from & 1)) cuda_host_die("a shuffle from a lane that does not take part");
    return w->slot[set][from];
}

unsigned __ballot_sync(unsigned mask, int predicate) {
    unsigned bits = 0;
    warp *w = &warps[(size_t)running->warp];
    unsigned set = w->count & 1;
    cuda_host_exchange(mask, {{predicate != 0}}, 1, -1);
    for (int i = 0; i < 32; i++)
        if (mask & w->lanes & (1u << i)) bits |= w->slot[set][i].words[0] << i;
    return bits;
}

/* --- tensor cores -------------------------------------------------------------------------------------------------
 * PTX ISA, "Matrix fragments for mma.m16n8k8", .tf32: of lane 4 g + t the registers a0 to a3 are elements (g, t),
 * (g + 8, t), (g, t + 4), (g + 8, t + 4) of A, b0 and b1 elements (t, g), (t + 4, g) of B, c0 to c3 elements (g, 2t),
 * (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1) of the sums. */

struct fragments {
    uint32_t a[4], b[2];
};

uint32_t cuda_host_tf32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7f800000u) == 0x7f800000u) return bits & 0x7fffffu ? bits | 0x400000u : bits;
    return (bits + 0x1000u) & ~0x1fffu;
}

static float tf32_value(uint32_t bits) {
    float x;
    if (bits & 0x1fffu && (bits & 0x7fffffffu) <= 0x7f800000u) cuda_host_die("a factor of mma.sync that is no tf32");
    memcpy(&x, &bits, sizeof x);
    return x;
}

void cuda_host_mma_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    cuda_host_given own = {};
    warp *w = &warps[(size_t)running->warp];
    const fragments *all[32];
    unsigned set = w->count & 1;
    int g = running->lane / 4, t = running->lane % 4;
    if (w->lanes != 0xffffffffu) cuda_host_die("mma.sync in a warp that has not all its lanes");
    memcpy(own.words, a, sizeof a);
    memcpy(own.words + 4, b, sizeof b);
    cuda_host_exchange(0xffffffffu, own, sizeof(fragments), -1);
    for (int lane = 0; lane < 32; lane++) all[lane] = (const fragments *)(const void *)&w->slot[set][lane];
    for (int k = 0; k < 8; k++) {
        const fragments *row = all[g * 4 + k % 4];
        float low = tf32_value(row->a[k / 4 * 2]), high = tf32_value(row->a[1 + k / 4 * 2]);
        float left = tf32_value(all[8 * t + k % 4]->b[k / 4]), right = tf32_value(all[8 * t + 4 + k % 4]->b[k / 4]);
        d[0] += low * left;
        d[1] += low * right;
        d[2] += high * left;
        d[3] += high * right;
    }
}

static bool tensor_cores; /* of the grid that runs */

bool cuda_host_tensor_cores(void) {
    return tensor_cores;
}

/* --- a grid ------------------------------------------------------------------------------------------------------- */

static void run_cluster(void) {
    dim3 d = blockDim;
    unsigned block_warps = (block_threads + 31) / 32;
    n_waiting = n_ended = 0;
    for (unsigned w = 0; w < warps.size(); w++) {
        unsigned before = w % block_warps * 32, lanes = block_threads - before < 32 ? block_threads - before : 32;
        warps[w] = warp();
        warps[w].lanes = lanes == 32 ? 0xffffffffu : (1u << lanes) - 1;
    }
    for (unsigned t = 0; t < n_threads; t++) {
        unsigned rank = t / block_threads, i = t % block_threads;
        threads[t] = {nullptr,
                      READY,
                      &blocks[rank],
                      {i % d.x, i / d.x % d.y, i / (d.x * d.y)},
                      (int)(rank * block_warps + i / 32),
                      (int)(i % 32),
                      false,
                      0,
                      {}};
    }
    turn = 0;
    moved = false;
    pass_on();
}

static std::map<const void *, size_t> &raised = *new std::map<const void *, size_t>; /* by kernel */
static std::mutex &raising = *new std::mutex;

cudaError_t cuda_host_raise_shared(const void *kernel, size_t bytes) {
    if (bytes > cuda_host_shared_most()) return cudaErrorInvalidValue;
    std::lock_guard<std::mutex> lock(raising);
    raised[kernel] = bytes;
    return cudaSuccess;
}

static bool cluster_possible(uint3 cluster, dim3 grid) {
    return cluster.x >= 1 && cluster.x <= CLUSTER_BLOCKS && cluster.y == 1 && cluster.z == 1 &&
           grid.x % cluster.x == 0 && cuda_host_capability() >= 90;
}

static const cudaLaunchAttribute *attribute_of(const cudaLaunchConfig_t *config, cudaLaunchAttributeID id) {
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == id) return &config->attrs[i];
    return nullptr;
}

/* With LRNN_CUDA_HOST_SLOW=2 the first launch of each kernel loads it, for which a tenth of a second the device has to
 * be at rest. */
static void load_kernel(const void *kernel) {
    static std::mutex loading;
    static std::set<const void *> loaded;
    const char *slow = getenv("LRNN_CUDA_HOST_SLOW");
    if (!slow || strcmp(slow, "2") != 0) return;
    std::lock_guard<std::mutex> lock(loading);
    if (!loaded.insert(kernel).second) return;
    cuda_host_rest rest;
    usleep(100000);
}

bool cuda_host_shape_of(const void *kernel, const cudaLaunchConfig_t *config, struct cuda_host_shape *shape) {
    dim3 grid = config->gridDim, block = config->blockDim;
    unsigned long long threads = (unsigned long long)block.x * block.y * block.z;
    const cudaLaunchAttribute *clusters = attribute_of(config, cudaLaunchAttributeClusterDimension);
    const cudaLaunchAttribute *early = attribute_of(config, cudaLaunchAttributeProgrammaticStreamSerialization);
    uint3 cluster = clusters ? clusters->val.clusterDim : uint3{1, 1, 1};
    load_kernel(kernel);
    std::lock_guard<std::mutex> lock(raising);
    auto limit = raised.find(kernel);
    if (config->dynamicSmemBytes > (limit == raised.end() ? SHARED_UNASKED : limit->second)) return false;
    if (clusters && !cluster_possible(cluster, grid)) return false;
    if (early && cuda_host_capability() < 90) return false;
    bool may_overlap = early && early->val.programmaticStreamSerializationAllowed;
    *shape = {grid, block, config->dynamicSmemBytes, cluster.x, may_overlap};
    return threads >= 1 && threads <= BLOCK_THREADS && grid.x >= 1 && grid.y >= 1 && grid.z >= 1 && grid.x <= GRID_X &&
           grid.y <= GRID_YZ && grid.z <= GRID_YZ;
}

/* The memory that all kernels declare as shared; the linker knows where it is. */
extern "C" unsigned char __start_cuda_shared[] __attribute__((weak)), __stop_cuda_shared[] __attribute__((weak));

/* Byte by byte, without the library's functions: AddressSanitizer has zones of its own between these variables. */
UNINSTRUMENTED static void fill_declared(void) {
    for (volatile unsigned char *at = __start_cuda_shared; at < __stop_cuda_shared; at++) *at = CUDA_HOST_POISON;
}

UNINSTRUMENTED static void exchange_declared(unsigned char *leaving, const unsigned char *coming) {
    size_t n = (size_t)(__stop_cuda_shared - __start_cuda_shared);
    volatile unsigned char *at = __start_cuda_shared;
    for (size_t i = 0; i < n; i++) {
        leaving[i] = at[i];
        at[i] = coming[i];
    }
}

static void make_resident(block *b) {
    if (b == resident) return;
    exchange_declared(resident->declared.data(), b->declared.data());
    resident = b;
}

/* Closes a block's shared memory to the other blocks of its cluster; nobody else could reach it. */
static void close_shared(block *b) {
    if (n_blocks > 1 && mprotect(b->shared, SHARED_BYTES, PROT_NONE) != 0)
        cuda_host_die("shared memory cannot be protected");
}

/* Holds NaNs, and ends where the launch says it does. */
static void open_shared(block *b) {
    if (!b->shared) {
        void *pages = mmap(nullptr, SHARED_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (pages == MAP_FAILED) cuda_host_die("no memory for a block's shared memory");
        b->shared = (unsigned char *)pages;
    }
    if (mprotect(b->shared, SHARED_BYTES, PROT_READ | PROT_WRITE) != 0) cuda_host_die("shared memory cannot be opened");
#ifdef CUDA_HOST_ASAN
    __asan_unpoison_memory_region(b->shared, SHARED_BYTES);
    __asan_poison_memory_region(b->shared + shared_bytes, SHARED_BYTES - shared_bytes);
#endif
}

static void begin_block(block *b, dim3 grid, unsigned at) {
    b->index = {at % grid.x, at / grid.x % grid.y, at / (grid.x * grid.y)};
    b->waiting = b->ended = 0;
    b->begun = false;
    if (n_blocks > 1) {
        open_shared(b);
        b->declared.assign((size_t)(__stop_cuda_shared - __start_cuda_shared), CUDA_HOST_POISON);
    }
    memset(b->shared, CUDA_HOST_POISON, shared_bytes);
}

void cuda_host_grid(const struct cuda_host_shape &shape, const std::function<void()> &work) {
    n_blocks = shape.cluster;
    block_threads = shape.block.x * shape.block.y * shape.block.z;
    n_threads = n_blocks * block_threads;
    threads.resize(n_threads);
    host.entered = true;
#ifdef CUDA_HOST_TSAN
    host.as_thread = __tsan_get_current_fiber();
#endif
    warps.resize(n_blocks * ((block_threads + 31) / 32));
    body = &work;
    tensor_cores = cuda_host_capability() >= 80;
    shared_bytes = shape.shared;
    if (shared_bytes > most_shared) most_shared = shared_bytes;
    overlaps = shape.overlaps;
    reaches = false;
    open_shared(blocks);
    blockDim = shape.block;
    gridDim = shape.grid;
    unsigned long long clusters = (unsigned long long)shape.grid.x * shape.grid.y * shape.grid.z / n_blocks;
    for (unsigned long long i = 0; i < clusters; i++) {
        unsigned first = pick((unsigned)i, (unsigned)clusters) * n_blocks;
        for (unsigned rank = 0; rank < n_blocks; rank++) begin_block(&blocks[rank], shape.grid, first + rank);
        resident = blocks;
        fill_declared();
        run_cluster();
    }
    launches++;
}

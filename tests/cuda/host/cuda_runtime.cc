/* cuda_runtime.cc - see cuda_host.h: the run-time's functions over the grids of cuda_host.cc. */
#include "tests/cuda/host/cuda_host.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#ifdef CUDA_HOST_ASAN
#include <sanitizer/asan_interface.h>
#endif

#define DEFAULT_MEMORY ((size_t)4 << 30)

/* --- streams, captures --------------------------------------------------------------------------------------------
 * A stream's items are done in order, each stream's for itself: one that waits for another stream's mark has that one
 * go on until it has passed it. So a stream that is waited for at last comes as late as it may. */

struct mark {
    cudaStream_t on;
    bool passed;
    double time; /* when */
};

struct item {
    std::function<void()> work;
    std::shared_ptr<mark> sets, waits; /* instead of work */
};

typedef std::map<cudaStream_t, std::deque<item>> lanes;

struct cuda_host_graph {
    cudaStream_t origin;
    lanes captured;
    bool overlaps; /* some launch may begin before the one ahead has ended */
    bool ended;    /* by a thread that waited for the whole device meanwhile */
};

struct cuda_host_stream {
    cuda_host_graph *capture; /* being recorded, or null */
    std::deque<item> queued;
};

/* The stream itself; that of NULL, the default stream, is like the others. */
static cudaStream_t own(cudaStream_t stream) {
    static cuda_host_stream unnamed;
    return stream ? stream : &unnamed;
}

struct cuda_host_event {
    cudaStream_t stream;        /* that it was recorded on last */
    cuda_host_graph *capture;   /* and into which capture of it */
    std::shared_ptr<mark> last; /* what waits for it waits for this */
};

static double now(void) {
    return 1e-9 * (double)cuda_host_nanoseconds();
}

/* The device does one thing at a time, whichever thread has asked for it. What has no lock belongs to a stream, and a
 * stream to one thread. */
static std::recursive_mutex &device = *new std::recursive_mutex;
typedef std::lock_guard<std::recursive_mutex> holding;

static thread_local int captures; /* under way, of streams of this thread */
static std::set<cuda_host_graph *> &under_way = *new std::set<cuda_host_graph *>; /* of all threads */

static std::atomic<int> at_rest(0); /* calls under way for which a device has to come to rest */

cuda_host_rest::cuda_host_rest() {
    at_rest++;
}

cuda_host_rest::~cuda_host_rest() {
    at_rest--;
}

void cuda_host_wait_for_device(void) {
    holding lock(device);
    for (cuda_host_graph *graph : under_way) graph->ended = true;
}

static std::atomic<cudaError_t> failure(cudaSuccess); /* sticky, as on a device, and of all its streams */

static long setting(const char *name, long fallback) {
    const char *text = getenv(name);
    return text && *text ? atol(text) : fallback;
}

static long calls;

static void write_calls(void) {
    FILE *f = fopen(getenv("LRNN_CUDA_HOST_CALLS"), "w");
    if (!f) return;
    fprintf(f, "%ld\n", calls);
    fclose(f);
}

/* Counts the calls that a device may refuse. True: this is number LRNN_CUDA_HOST_REFUSE. With LRNN_CUDA_HOST_CALLS=F
 * the process writes at its end into F how many there were. */
static bool refused(void) {
    holding lock(device);
    if (calls++ == 0 && getenv("LRNN_CUDA_HOST_CALLS")) atexit(write_calls);
    return calls == setting("LRNN_CUDA_HOST_REFUSE", 0);
}

/* Returns the answer of a call that may be refused: a refusal means that the device is lost, and it stays lost. */
static cudaError_t answer(void) {
    if (refused()) failure = cudaErrorIllegalAddress;
    return failure;
}

int cuda_host_capability(void) {
    return (int)setting("LRNN_CUDA_HOST_CAPABILITY", 90);
}

static void run_or_fail(const std::function<void()> &work, bool kernel) {
    static long seen;
    holding lock(device);
    const char *once = getenv("LRNN_CUDA_HOST_FAIL_ONCE");
    long first = setting("LRNN_CUDA_HOST_FAIL", 0);
    if (kernel && ++seen >= first && first > 0 && failure == cudaSuccess && (!once || unlink(once) == 0))
        failure = cudaErrorIllegalAddress;
    if (failure == cudaSuccess) work();
}

/* Does the items of a stream, up to its mark `until` or all there are, and the items they wait for: a replay's, or,
 * with `all` NULL, all that streams have queued. False: a mark that never comes. */
static bool go_on(cudaStream_t stream, lanes *all, const std::shared_ptr<mark> &until) {
    std::deque<item> &items = all ? (*all)[stream] : stream->queued;
    while (!items.empty() && !(until && until->passed)) {
        item next = items.front();
        items.pop_front();
        if (next.waits && !next.waits->passed && !go_on(next.waits->on, all, next.waits)) return false;
        if (next.sets) *next.sets = {next.sets->on, true, now()};
        if (next.work) next.work();
    }
    return !until || until->passed;
}

static void run_queue(cudaStream_t stream) {
    if (!go_on(stream, nullptr, nullptr)) cuda_host_die("a stream waits for what never comes");
}

static void queue(cudaStream_t stream, item next) {
    stream->queued.push_back(next);
    if (!setting("LRNN_CUDA_HOST_LAZY", 0)) run_queue(stream);
}

static cudaError_t enqueue(cudaStream_t stream, std::function<void()> work, bool kernel) {
    item whole = {[=] { run_or_fail(work, kernel); }, nullptr, nullptr};
    stream = own(stream);
    if (stream->capture)
        stream->capture->captured[stream].push_back(whole);
    else
        queue(stream, whole);
    return answer();
}

/* Whether this launch is the one that finds no memory. */
static bool launch_finds_no_memory(void) {
    static long seen;
    holding lock(device);
    const char *once = getenv("LRNN_CUDA_HOST_FAIL_ONCE");
    return ++seen == setting("LRNN_CUDA_HOST_FULL", 0) && (!once || unlink(once) == 0);
}

static void close_memory(void);

cudaError_t cuda_host_enqueue(cudaStream_t stream, std::function<void()> work, bool opens) {
    if (launch_finds_no_memory()) return cudaErrorMemoryAllocation;
    stream = own(stream);
    if (stream->capture && opens) stream->capture->overlaps = true;
    return enqueue(
        stream,
        [=] {
            if (!opens) cuda_host_open_memory();
            work();
            close_memory();
        },
        true);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
    *stream = new cuda_host_stream();
    return answer();
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    run_queue(stream);
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    stream = own(stream);
    if (stream->capture) cuda_host_die("a stream is waited for while it is captured");
    run_queue(stream);
    return answer();
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
    holding lock(device);
    if (refused() || failure != cudaSuccess) return cudaErrorStreamCaptureInvalidated;
    stream->capture = new cuda_host_graph{stream, {}, false, false};
    under_way.insert(stream->capture);
    captures++;
    return failure;
}

/* The marks of a replay are its own. */
static lanes fresh_lanes(const cuda_host_graph &graph) {
    lanes fresh = graph.captured;
    std::map<mark *, std::shared_ptr<mark>> renewed;
    for (auto &lane : fresh)
        for (item &i : lane.second)
            for (std::shared_ptr<mark> *m : {&i.sets, &i.waits}) {
                if (!*m) continue;
                std::shared_ptr<mark> &now = renewed[m->get()];
                if (!now) now = std::make_shared<mark>(mark{(*m)->on, false, 0});
                *m = now;
            }
    return fresh;
}

/* Whether the stream that the capture began on waits, at last, for all that the others hold. */
static bool all_joined(const cuda_host_graph &graph) {
    lanes rest = fresh_lanes(graph);
    for (auto &lane : rest)
        for (item &i : lane.second) i.work = nullptr;
    if (!go_on(graph.origin, &rest, nullptr)) return false;
    for (auto &lane : rest)
        if (!lane.second.empty()) return false;
    return true;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    holding lock(device);
    *graph = stream->capture;
    under_way.erase(*graph);
    for (auto &lane : stream->capture->captured) lane.first->capture = nullptr;
    stream->capture = nullptr;
    captures--;
    bool lost = refused() || (*graph)->ended || setting("LRNN_CUDA_HOST_NO_GRAPH", 0) == 3;
    if (!lost && all_joined(**graph)) return failure;
    delete *graph;
    *graph = nullptr;
    return lost ? cudaErrorStreamCaptureInvalidated : cudaErrorStreamCaptureUnjoined;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status) {
    *status = stream->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return failure;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, void *, size_t *count) {
    *count = 0;
    for (const auto &lane : graph->captured)
        for (const item &i : lane.second) *count += i.work != nullptr;
    return failure;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long) {
    cuda_host_rest rest;
    long unwilling = setting("LRNN_CUDA_HOST_NO_GRAPH", 0);
    bool plain = graph->captured.size() == 1 && !graph->overlaps;
    if (unwilling == 1 || (unwilling == 2 && !plain) || refused()) return cudaErrorMemoryAllocation;
    *exec = new cuda_host_graph(*graph);
    return failure;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    return cudaGraphDestroy(exec);
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *) {
    size_t nodes[2];
    for (int i = 0; i < 2; i++) cudaGraphGetNodes(i ? graph : exec, nullptr, &nodes[i]);
    if (nodes[0] != nodes[1] || exec->overlaps != graph->overlaps || refused()) return cudaErrorGraphExecUpdateFailure;
    *exec = *graph;
    return failure;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
    if (at_rest) cuda_host_die("a replay begins while another thread waits for the device to come to rest");
    std::shared_ptr<cuda_host_graph> graph = std::make_shared<cuda_host_graph>(*exec);
    queue(stream, {[=] {
                       lanes all = fresh_lanes(*graph);
                       go_on(graph->origin, &all, nullptr);
                   },
                   nullptr, nullptr});
    return answer();
}

long long clock64(void) {
    return (long long)cuda_host_nanoseconds();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
    *event = new cuda_host_event();
    return answer();
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    if (stream->capture && setting("LRNN_CUDA_HOST_NO_GRAPH", 0) == 3) return cudaErrorStreamCaptureInvalidated;
    event->stream = stream;
    event->capture = stream->capture;
    event->last = std::make_shared<mark>(mark{stream, false, 0});
    if (stream->capture) {
        stream->capture->captured[stream].push_back({nullptr, event->last, nullptr});
        return failure;
    }
    queue(stream, {nullptr, event->last, nullptr});
    return answer();
}

/* A stream that waits for what another one's capture holds is captured with it from there on. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    item wait = {nullptr, nullptr, event->last};
    if (!event->last) return failure; /* never recorded: nothing to wait for */
    if (event->capture && !stream->capture) stream->capture = event->capture;
    if (event->capture != stream->capture) cuda_host_die("a wait across the border of a capture");
    if (stream->capture)
        stream->capture->captured[stream].push_back(wait);
    else
        queue(stream, wait);
    return answer();
}

/* Waits for more than it has to, like every device that is late. */
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    if (event->stream && event->stream->capture) cuda_host_die("an event is waited for while its stream is captured");
    if (event->stream) run_queue(event->stream);
    return answer();
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
    *ms = (float)(1e3 * (to->last->time - from->last->time));
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

cudaError_t cudaInitDevice(int index, unsigned, unsigned) {
    return cudaSetDevice(index);
}

static thread_local int current_device;

cudaError_t cudaSetDevice(int index) {
    if (index < 0 || index >= setting("LRNN_CUDA_HOST_DEVICES", 1)) return cudaErrorInvalidDevice;
    current_device = index;
    return failure.load();
}

cudaError_t cudaGetDevice(int *index) {
    *index = current_device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int index) {
    *p = cudaDeviceProp();
    bool other = index > 0 && setting("LRNN_CUDA_HOST_KINDS", 1) > 1;
    snprintf(p->name, sizeof p->name, "%s", other ? "CUDA on another host" : "CUDA on the host");
    p->totalGlobalMem = device_memory();
    p->major = cuda_host_capability() / 10;
    p->minor = cuda_host_capability() % 10;
    p->multiProcessorCount = (int)setting("LRNN_CUDA_HOST_CORES", 132); /* of an H100 */
    return cudaSuccess;
}

/* CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". */
size_t cuda_host_shared_most(void) {
    int capability = cuda_host_capability();
    size_t kb = capability < 80 ? 64 : capability == 80 || capability == 87 ? 163 : capability < 90 ? 99 : 227;
    return kb << 10;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
    *value = attribute == cudaDevAttrL2CacheSize                    ? 1 << 20
             : attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin ? (int)cuda_host_shared_most()
                                                                    : 0;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total) {
    holding lock(device);
    *total = device_memory();
    *free_bytes = *total > handed_out ? *total - handed_out : 0;
    return answer();
}

/* Device memory: whole pages each, by their address; to be reached between cuda_host_open_memory and close_memory. */
static std::map<char *, size_t> &allocations = *new std::map<char *, size_t>; /* bytes asked for */
static std::map<char *, size_t> &pinned = *new std::map<char *, size_t>;

static size_t pages_of(size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page) / page * page; /* one byte more than asked for at least: none ends where its pages do */
}

/* Whether pages of device memory are protected from the host. It takes long, so it has to be asked for. */
static bool protects(void) {
    return setting("LRNN_CUDA_HOST_PROTECT", 0);
}

static void protect(int rights) {
    if (!protects()) return;
    for (const auto &a : allocations)
        if (mprotect(a.first, pages_of(a.second), rights) != 0) cuda_host_die("device memory cannot be protected");
}

void cuda_host_open_memory(void) {
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
    holding lock(device);
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

/* LRNN_CUDA_HOST_SLOW: before memory is given back, and for longer after it was found lacking, so that the one happens
 * within the other. */
static void wait_tenths(unsigned tenths) {
    if (setting("LRNN_CUDA_HOST_SLOW", 0)) usleep(tenths * 100000);
}

static cudaError_t reserve_memory(void **memory, size_t bytes) {
    holding lock(device);
    refuse_while_captured("reserved");
    if (failure != cudaSuccess) return failure;
    if (refused() || handed_out + bytes > device_memory()) return cudaErrorMemoryAllocation;
    size_t size = pages_of(bytes);
    char *block = (char *)mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) return cudaErrorMemoryAllocation;
    memset(block, CUDA_HOST_POISON, bytes);
#ifdef CUDA_HOST_ASAN
    __asan_poison_memory_region(block + bytes, size - bytes);
#endif
    allocations[block] = bytes;
    close_memory();
    handed_out += bytes;
    *memory = block;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes) {
    cuda_host_rest rest;
    cudaError_t result = reserve_memory(memory, bytes);
    if (result != cudaSuccess) wait_tenths(3);
    return result;
}

/* Nothing that is queued may still use it: a device waits, and so do all streams here, which the caller has. */
cudaError_t cudaFree(void *memory) {
    if (!memory) return cudaSuccess;
    cuda_host_rest rest;
    wait_tenths(1);
    holding lock(device);
    refuse_while_captured("given back");
    auto a = allocations.find((char *)memory);
    if (a == allocations.end()) cuda_host_die("cudaFree of what is no device memory");
    size_t size = pages_of(a->second);
#ifdef CUDA_HOST_ASAN
    __asan_unpoison_memory_region(memory, size);
#endif
    handed_out -= a->second;
    allocations.erase(a);
    munmap(memory, size);
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned) {
    cuda_host_rest rest;
    holding lock(device);
    refuse_while_captured("pinned");
    *memory = refused() ? nullptr : malloc(bytes ? bytes : 1);
    if (!*memory) return cudaErrorMemoryAllocation;
    pinned[(char *)*memory] = bytes;
    return failure;
}

cudaError_t cudaFreeHost(void *memory) {
    cuda_host_rest rest;
    holding lock(device);
    pinned.erase((char *)memory);
    free(memory);
    return cudaSuccess;
}

/* Reads memory that is not pinned before it returns. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    holding lock(device);
    bool now_read = kind == cudaMemcpyHostToDevice && !own(stream)->capture && !within(pinned, from);
    if (kind == cudaMemcpyHostToDevice ? within(allocations, from) : !within(allocations, from))
        return cudaErrorInvalidValue;
    if (kind == cudaMemcpyDeviceToHost ? within(allocations, to) : !within(allocations, to))
        return cudaErrorInvalidValue;
    std::vector<char> staged;
    if (now_read) staged.assign((const char *)from, (const char *)from + bytes);
    return enqueue(
        stream,
        [=] {
            cuda_host_open_memory();
            memcpy(to, now_read ? staged.data() : from, bytes);
            close_memory();
        },
        false);
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream) {
    return enqueue(
        stream,
        [=] {
            cuda_host_open_memory();
            memset(to, byte, bytes);
            close_memory();
        },
        false);
}

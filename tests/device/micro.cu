/* micro.cu - what a device can do, apart from the program: one CSV file on stdout.
 *
 *   copy      a copy of 1 GB within the device, by cudaMemcpyAsync and by a kernel; bytes read and written both counted
 *   chain     1000 empty kernels, each after the one before, replayed: what a node of a graph costs; and where each
 *             lets the next one begin early and waits for the one before (core/cuda/cuda.cuh, await_previous)
 *   branches  the same kernels as 1, 8 and 32 branches side by side that meet again
 *   product   the 21 products of a step of an S5 model of 1.2 million parameters (`lrnn perf device`, step): 7
 *             linear maps, forward and both gradients, at 2048 tokens, in fp32, tf32 and bf16; single; gates with
 *             values and w1 with w2 as one product each (merged); 8 and 32 models at once (batched)
 *   pair      the two gradients of each map one after the other, and as branches
 *   epilogue  the products of a map with a bias, which add it and which sum its gradient, by cublasLt in one launch
 *   algorithm the same products by the first algorithm that cublasLt names, and by the fastest of the first eight
 *
 * bf16 comes first, then tf32, in case there is no time for fp32. Times are the device's, between events, medians after
 * 20 ms of the same work, and each after a run that is not timed, so that its launch is not in it; the clock of the
 * multiprocessors is the one after the samples. What is copied and the factors are random. A product goes over the same
 * memory again and again: `warm` where the device's cache holds that. A program of its own: build/device-micro, `make
 * device-micro`; needs a device. */
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#define SAMPLES       15
#define WALKS         20 /* of a sample */
#define TOKENS        2048
#define SPIN_MS       20
#define ALGORITHMS    8
#define BRANCHES_MOST 32
#define CLOCK_NS      200000 /* the device's clock of nanoseconds may tick once in a microsecond alone */
#ifndef BUILD_COMMIT
#define BUILD_COMMIT "unknown"
#define BUILD_DIRTY  0
#endif

#define TRY(call) check(call, #call, __LINE__)

static void give_up(const char *call, int line, const char *why) {
    fprintf(stderr, "device-micro: %s failed at line %d: %s\n", call, line, why);
    exit(1);
}

static void check(cudaError_t result, const char *call, int line) {
    if (result != cudaSuccess) give_up(call, line, cudaGetErrorString(result));
}

static void check(cublasStatus_t result, const char *call, int line) {
    if (result != CUBLAS_STATUS_SUCCESS) give_up(call, line, cublasGetStatusString(result));
}

static cudaStream_t stream;
static double *clock_mhz; /* in memory that the device writes and the host reads */

/* The beginning of all rows, and the facts that say whether a product's memory is in the cache. */
static struct {
    cudaDeviceProp device;
    char driver[32], cublas[32];
} origin;

static void read_origin(void) {
    int driver = 0, runtime = 0, cublas[3] = {0, 0, 0};
    TRY(cudaGetDeviceProperties(&origin.device, 0));
    TRY(cudaDriverGetVersion(&driver));
    TRY(cudaRuntimeGetVersion(&runtime));
    for (int part = 0; part < 3; part++) TRY(cublasGetProperty((libraryPropertyType)part, &cublas[part]));
    snprintf(origin.driver, sizeof origin.driver, "%d.%d / %d.%d", driver / 1000, driver % 1000 / 10, runtime / 1000,
             runtime % 1000 / 10);
    snprintf(origin.cublas, sizeof origin.cublas, "%d.%d.%d", cublas[0], cublas[1], cublas[2]);
}

/* Cycles of a multiprocessor over nanoseconds. */
static __global__ void clock_kernel(double *mhz) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    long long cycles = clock64();
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < CLOCK_NS);
    *mhz = 1e3 * (double)(clock64() - cycles) / (double)(now - start);
}

static void measure_clock(void) {
    clock_kernel<<<1, 1, 0, stream>>>(clock_mhz);
    TRY(cudaStreamSynchronize(stream));
}

/* Median seconds of one of `walks` runs of the work, captured and replayed. */
static double median_of(int walks, const std::function<void()> &work) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaEvent_t from, to;
    std::vector<double> seconds;
    work();
    TRY(cudaStreamSynchronize(stream));
    TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < walks; i++) work();
    TRY(cudaStreamEndCapture(stream, &graph));
    TRY(cudaGraphInstantiate(&exec, graph, 0));
    TRY(cudaEventCreate(&from));
    TRY(cudaEventCreate(&to));
    auto start = std::chrono::steady_clock::now();
    do {
        TRY(cudaGraphLaunch(exec, stream));
        TRY(cudaStreamSynchronize(stream));
    } while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(SPIN_MS));
    for (int i = 0; i < SAMPLES; i++) {
        float ms;
        TRY(cudaGraphLaunch(exec, stream));
        TRY(cudaEventRecord(from, stream));
        TRY(cudaGraphLaunch(exec, stream));
        TRY(cudaEventRecord(to, stream));
        TRY(cudaEventSynchronize(to));
        TRY(cudaEventElapsedTime(&ms, from, to));
        seconds.push_back(1e-3 * ms / walks);
    }
    measure_clock();
    TRY(cudaEventDestroy(from));
    TRY(cudaEventDestroy(to));
    TRY(cudaGraphExecDestroy(exec));
    TRY(cudaGraphDestroy(graph));
    std::sort(seconds.begin(), seconds.end());
    return seconds[SAMPLES / 2];
}

static void print_head(void) {
    printf("commit,device,driver,cublas,sm_mhz,what,shape,precision,models,cache,time_us,gb_per_s,tflop_per_s\n");
}

static void print_cached_row(const char *what, const char *shape, const char *precision, int models, const char *cache,
                             double seconds, double bytes, double flops) {
    printf("%.12s%s,%s,%s,%s,%.0f,%s,%s,%s,%d,%s,%.6g,%.6g,%.6g\n", BUILD_COMMIT, BUILD_DIRTY ? "+" : "",
           origin.device.name, origin.driver, origin.cublas, *clock_mhz, what, shape, precision, models, cache,
           1e6 * seconds, 1e-9 * bytes / seconds, 1e-12 * flops / seconds);
    fflush(stdout);
}

/* Prints a row of a measurement in which no cache takes part. */
static void print_row(const char *what, const char *shape, double seconds, double bytes) {
    print_cached_row(what, shape, "", 1, "", seconds, bytes, 0);
}

static void print_product(const char *what, const char *shape, const char *precision, int models, double seconds,
                          double bytes, double flops) {
    const char *cache = bytes < origin.device.l2CacheSize ? "warm" : "";
    print_cached_row(what, shape, precision, models, cache, seconds, bytes, flops);
}

static __global__ void fill_floats(float *to, size_t n) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = (float)((i * 2654435761u >> 7) % 20011) / 10005.5f - 1;
}

static __global__ void fill_halves(__nv_bfloat16 *to, size_t n) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = __float2bfloat16((float)((i * 2654435761u >> 7) % 20011) / 10005.5f - 1);
}

/* --- copies and launches ------------------------------------------------------------------------------------------ */

static __global__ void copy_kernel(float4 *to, const float4 *from) {
    float4 ahead[4];
    size_t first = (size_t)blockIdx.x * 4 * blockDim.x + threadIdx.x;
    for (int i = 0; i < 4; i++) ahead[i] = from[first + i * blockDim.x];
    for (int i = 0; i < 4; i++) to[first + i * blockDim.x] = ahead[i];
}

static void measure_copy(void) {
    size_t bytes = (size_t)1 << 30;
    char *memory;
    TRY(cudaMalloc(&memory, 2 * bytes));
    fill_floats<<<(unsigned)(bytes / sizeof(float) / 256), 256, 0, stream>>>((float *)memory, bytes / sizeof(float));
    double seconds =
        median_of(4, [=] { TRY(cudaMemcpyAsync(memory + bytes, memory, bytes, cudaMemcpyDeviceToDevice, stream)); });
    print_row("copy", "1 GB", seconds, 2 * (double)bytes);
    seconds = median_of(4, [=] {
        copy_kernel<<<(unsigned)(bytes / sizeof(float4) / 1024), 256, 0, stream>>>((float4 *)(memory + bytes),
                                                                                   (const float4 *)memory);
    });
    print_row("copy", "1 GB by a kernel", seconds, 2 * (double)bytes);
    TRY(cudaFree(memory));
}

static __global__ void empty_kernel(void) {}

static __global__ void waiting_kernel(void) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
#endif
}

static void measure_chain(void) {
    double seconds = median_of(1000, [] { empty_kernel<<<1, 32, 0, stream>>>(); });
    print_row("chain", "a node of 1000", seconds, 0);
}

/* On a device that has no such launches, or a program compiled for an older one, there is no row. Measured last, as
 * what a driver is most likely to refuse. */
static void measure_overlapping_chain(void) {
    cudaFuncAttributes compiled;
    TRY(cudaFuncGetAttributes(&compiled, waiting_kernel));
    if (origin.device.major < 9 || compiled.ptxVersion < 90) return;
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(32);
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = 1;
    double seconds = median_of(1000, [&] { TRY(cudaLaunchKernelEx(&config, waiting_kernel)); });
    print_row("chain", "an overlapping node of 1000", seconds, 0);
}

/* 32 kernels a branch, so n branches are 32 n nodes; the time covers all. */
static void measure_branches(int n) {
    cudaStream_t branch[BRANCHES_MOST];
    cudaEvent_t fork, join[BRANCHES_MOST];
    char shape[64];
    TRY(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    for (int i = 0; i < n; i++) {
        TRY(cudaStreamCreateWithFlags(&branch[i], cudaStreamNonBlocking));
        TRY(cudaEventCreateWithFlags(&join[i], cudaEventDisableTiming));
    }
    double seconds = median_of(1, [&] {
        TRY(cudaEventRecord(fork, stream));
        for (int i = 0; i < n; i++) {
            TRY(cudaStreamWaitEvent(branch[i], fork, 0));
            for (int k = 0; k < 32; k++) empty_kernel<<<1, 32, 0, branch[i]>>>();
            TRY(cudaEventRecord(join[i], branch[i]));
            TRY(cudaStreamWaitEvent(stream, join[i], 0));
        }
    });
    snprintf(shape, sizeof shape, "%d branches of 32 nodes", n);
    print_row("branches", shape, seconds, 0);
    for (int i = 0; i < n; i++) {
        TRY(cudaStreamDestroy(branch[i]));
        TRY(cudaEventDestroy(join[i]));
    }
    TRY(cudaEventDestroy(fork));
}

/* --- products ----------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int in, out;
} maps[] = {{"gates", 256, 1920},       {"v", 256, 320},  {"out", 320, 256},  {"w1", 256, 688},
            {"w2", 256, 688},           {"w3", 688, 256}, {"head", 256, 120}, {"gates+v merged", 256, 2240},
            {"w1+w2 merged", 256, 1376}};

#define MAPS_SINGLE 7 /* the first ones, which are not merged */

enum { FP32, TF32, BF16 };
static const char *const precisions[] = {"fp32", "tf32", "bf16"};

static cublasHandle_t blas, blas_beside; /* of the stream, of the one that branches off it */
static cudaStream_t beside;
static void *factor[2], *result, *workspace;
#define WORKSPACE ((size_t)32 << 20)

/* C (m,n) = A (m,k) B (k,n) in rows, for `models` of them that lie one after another: to cuBLAS, whose matrices are
 * columns, C^T = B^T A^T. */
static void multiply(cublasHandle_t by, int precision, bool ta, bool tb, int m, int n, int k, int models) {
    cudaDataType type = precision == BF16 ? CUDA_R_16BF : CUDA_R_32F;
    cublasComputeType_t compute = precision == TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    float one = 1, zero = 0, *to = (float *)result + (by == blas ? 0 : (size_t)TOKENS * 2240);
    TRY(cublasGemmStridedBatchedEx(by, tb ? CUBLAS_OP_T : CUBLAS_OP_N, ta ? CUBLAS_OP_T : CUBLAS_OP_N, n, m, k, &one,
                                   factor[1], type, tb ? k : n, (long long)k * n, factor[0], type, ta ? m : k,
                                   (long long)m * k, &zero, to, CUDA_R_32F, n, (long long)m * n, models, compute,
                                   CUBLAS_GEMM_DEFAULT));
}

static void measure_product(int map, int pass, int precision, int models) {
    int in = maps[map].in, out = maps[map].out;
    static const char *const passes[] = {"y = x W^T", "dx = dy W", "dW = dy^T x"};
    int m = pass == 2 ? out : TOKENS, n = pass == 0 ? out : in, k = pass == 0 ? in : pass == 1 ? out : TOKENS;
    char shape[128];
    double seconds = median_of(WALKS, [=] { multiply(blas, precision, pass == 2, pass == 0, m, n, k, models); });
    double bytes = models * ((precision == BF16 ? 2.0 : 4.0) * ((double)m * k + (double)k * n) + 4.0 * m * n);
    snprintf(shape, sizeof shape, "%s %s %dx%dx%d", maps[map].name, passes[pass], m, n, k);
    print_product("product", shape, precisions[precision], models, seconds, bytes, 2.0 * models * m * n * k);
}

/* The bytes of the gradients of one map, and their FLOP. */
static void print_pair(const char *what, const char *shape, int map, int precision, double seconds) {
    double in = maps[map].in, out = maps[map].out, factor_bytes = precision == BF16 ? 2 : 4;
    double bytes = factor_bytes * (TOKENS * (in + 2 * out) + in * out) + 4 * (TOKENS * in + in * out);
    print_product(what, shape, precisions[precision], 1, seconds, bytes, 4.0 * TOKENS * in * out);
}

/* dx and dW of a map, one after the other or as branches that part and meet, as linear_cuda.cu has them. */
static void measure_pair(int map, int precision, bool branches) {
    int in = maps[map].in, out = maps[map].out;
    cudaEvent_t parted, met;
    char shape[128];
    TRY(cudaEventCreateWithFlags(&parted, cudaEventDisableTiming));
    TRY(cudaEventCreateWithFlags(&met, cudaEventDisableTiming));
    double seconds = median_of(WALKS, [=] {
        if (branches) {
            TRY(cudaEventRecord(parted, stream));
            TRY(cudaStreamWaitEvent(beside, parted, 0));
        }
        multiply(branches ? blas_beside : blas, precision, true, false, out, in, TOKENS, 1);
        multiply(blas, precision, false, false, TOKENS, in, out, 1);
        if (branches) {
            TRY(cudaEventRecord(met, beside));
            TRY(cudaStreamWaitEvent(stream, met, 0));
        }
    });
    TRY(cudaEventDestroy(parted));
    TRY(cudaEventDestroy(met));
    snprintf(shape, sizeof shape, "%s dx and dW %s", maps[map].name, branches ? "as branches" : "in a row");
    print_pair("pair", shape, map, precision, seconds);
}

/* C (m,n) = A (m,k) B (k,n) for cublasLt, in columns as above. */
struct lt_product {
    cublasLtMatmulDescOpaque_t product;
    cublasLtMatrixLayoutOpaque_t b, a, c;
    cublasLtMatmulHeuristicResult_t found[ALGORITHMS];
    int count; /* of what was found */
};

/* The product of a map's pass with its first `most` algorithms; `epilogue` does its work on `vector` beside it. */
static struct lt_product describe(int map, int pass, int precision, cublasLtEpilogue_t epilogue, float *vector,
                                  int most) {
    int in = maps[map].in, out = maps[map].out;
    uint64_t m = pass == 2 ? out : TOKENS, n = pass == 0 ? out : in, k = pass == 0 ? in : pass == 1 ? out : TOKENS;
    uint64_t room = WORKSPACE;
    bool ta = pass == 2, tb = pass == 0;
    int32_t op_b = tb ? CUBLAS_OP_T : CUBLAS_OP_N, op_a = ta ? CUBLAS_OP_T : CUBLAS_OP_N;
    cudaDataType type = precision == BF16 ? CUDA_R_16BF : CUDA_R_32F;
    struct lt_product p = {};
    cublasLtMatmulPreferenceOpaque_t wishes;
    TRY(cublasLtMatmulDescInit(&p.product, precision == TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                               CUDA_R_32F));
    TRY(cublasLtMatmulDescSetAttribute(&p.product, CUBLASLT_MATMUL_DESC_TRANSA, &op_b, sizeof op_b));
    TRY(cublasLtMatmulDescSetAttribute(&p.product, CUBLASLT_MATMUL_DESC_TRANSB, &op_a, sizeof op_a));
    TRY(cublasLtMatmulDescSetAttribute(&p.product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
    if (vector)
        TRY(cublasLtMatmulDescSetAttribute(&p.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &vector, sizeof vector));
    TRY(cublasLtMatrixLayoutInit(&p.b, type, tb ? k : n, tb ? n : k, tb ? k : n));
    TRY(cublasLtMatrixLayoutInit(&p.a, type, ta ? m : k, ta ? k : m, ta ? m : k));
    TRY(cublasLtMatrixLayoutInit(&p.c, CUDA_R_32F, n, m, n));
    TRY(cublasLtMatmulPreferenceInit(&wishes));
    TRY(cublasLtMatmulPreferenceSetAttribute(&wishes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room));
    if (cublasLtMatmulAlgoGetHeuristic((cublasLtHandle_t)blas, &p.product, &p.b, &p.a, &p.c, &p.c, &wishes, most,
                                       p.found, &p.count))
        p.count = 0;
    return p;
}

static cublasStatus_t multiply_by(struct lt_product &p, int i) {
    float one = 1, zero = 0;
    return cublasLtMatmul((cublasLtHandle_t)blas, &p.product, &one, factor[1], &p.b, factor[0], &p.a, &zero, result,
                          &p.c, result, &p.c, &p.found[i].algo, workspace, WORKSPACE, stream);
}

/* Seconds by algorithm i; INFINITY: the library names it and refuses it. */
static double time_algorithm(struct lt_product &p, int i) {
    if (multiply_by(p, i) != CUBLAS_STATUS_SUCCESS) return INFINITY;
    return median_of(WALKS, [&] { TRY(multiply_by(p, i)); });
}

/* Prints the time of a map's pass by cublasLt, as `name` says. */
static void print_lt(const char *what, const char *name, int map, int pass, int precision, double seconds) {
    double in = maps[map].in, out = maps[map].out, factor_bytes = precision == BF16 ? 2 : 4;
    double x = TOKENS * in, y = TOKENS * out, w = in * out, of_result = pass == 0 ? y : pass == 1 ? x : w;
    char shape[128];
    snprintf(shape, sizeof shape, "%s %s", maps[map].name, name);
    print_product(what, shape, precisions[precision], 1, seconds,
                  factor_bytes * (x + y + w - of_result) + 4 * of_result, 2 * TOKENS * in * out);
}

/* y = x W^T + b, or dW = dy^T x with the sum of dy's rows, as kernels/lib/cuda_epilogue.cu asks for them. No row where
 * cublasLt has no such product. */
static void measure_epilogue(int map, int precision, cublasLtEpilogue_t epilogue) {
    bool forward = epilogue == CUBLASLT_EPILOGUE_BIAS;
    float *vector = (float *)result + (size_t)TOKENS * 2240;
    struct lt_product p = describe(map, forward ? 0 : 2, precision, epilogue, vector, 1);
    double seconds = p.count ? time_algorithm(p, 0) : INFINITY;
    if (isinf(seconds)) return;
    print_lt("epilogue", forward ? "y = x W^T + b" : "dW = dy^T x, db", map, forward ? 0 : 2, precision, seconds);
}

/* The first and the fastest algorithm of a product: how much asking for more of them gives. */
static void measure_algorithms(int map, int pass, int precision) {
    static const char *const passes[] = {"y = x W^T", "dx = dy W", "dW = dy^T x"};
    struct lt_product p = describe(map, pass, precision, CUBLASLT_EPILOGUE_DEFAULT, nullptr, ALGORITHMS);
    double first = INFINITY, best = INFINITY;
    int at = 0;
    char name[96];
    for (int i = 0; i < p.count; i++) {
        double seconds = time_algorithm(p, i);
        if (i == 0) first = seconds;
        if (seconds < best) {
            best = seconds;
            at = i;
        }
    }
    if (isinf(first)) return;
    snprintf(name, sizeof name, "%s first", passes[pass]);
    print_lt("algorithm", name, map, pass, precision, first);
    snprintf(name, sizeof name, "%s best (number %d of %d)", passes[pass], at + 1, p.count);
    print_lt("algorithm", name, map, pass, precision, best);
}

static void make_handle(cublasHandle_t *handle, cudaStream_t on, void **memory) {
    TRY(cublasCreate(handle));
    TRY(cublasSetStream(*handle, on));
    TRY(cudaMalloc(memory, WORKSPACE));
    TRY(cublasSetWorkspace(*handle, *memory, WORKSPACE));
}

static void measure_products(void) {
    size_t most = (size_t)TOKENS * 2240 * 32;
    make_handle(&blas, stream, &workspace);
    TRY(cudaStreamCreateWithFlags(&beside, cudaStreamNonBlocking));
    void *workspace_beside;
    make_handle(&blas_beside, beside, &workspace_beside);
    for (void *&f : factor) TRY(cudaMalloc(&f, most * sizeof(float)));
    TRY(cudaMalloc(&result, most * sizeof(float)));
    for (int precision : {BF16, TF32, FP32}) {
        unsigned blocks = (unsigned)((most + 255) / 256);
        for (void *f : factor)
            if (precision == BF16)
                fill_halves<<<blocks, 256, 0, stream>>>((__nv_bfloat16 *)f, most);
            else
                fill_floats<<<blocks, 256, 0, stream>>>((float *)f, most);
        for (int models : {1, 8, 32})
            for (int map = 0; map < (int)(sizeof maps / sizeof *maps); map++)
                for (int pass = 0; pass < 3; pass++) measure_product(map, pass, precision, models);
        for (int map = 0; map < MAPS_SINGLE; map++) {
            measure_pair(map, precision, false);
            measure_pair(map, precision, true);
            measure_epilogue(map, precision, CUBLASLT_EPILOGUE_BIAS);
            measure_epilogue(map, precision, CUBLASLT_EPILOGUE_BGRADB);
        }
        for (int map = 0; map < (int)(sizeof maps / sizeof *maps) && precision != FP32; map++)
            for (int pass = 0; pass < 3; pass++) measure_algorithms(map, pass, precision);
    }
}

int main(void) {
    TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    TRY(cudaMallocHost(&clock_mhz, sizeof *clock_mhz));
    read_origin();
    print_head();
    measure_copy();
    measure_chain();
    for (int n : {1, 8, BRANCHES_MOST}) measure_branches(n);
    measure_products();
    measure_overlapping_chain();
    TRY(cudaGetLastError());
    return 0;
}

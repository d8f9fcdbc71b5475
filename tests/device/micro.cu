/* micro.cu - what a device can do, apart from the program: one CSV file on stdout.
 *
 *   copy      a copy of 1 GB within the device, bytes read and written both counted
 *   chain     1000 empty kernels, each behind the one before, replayed: what a node of a graph costs
 *   branches  the same kernels as 1, 8 and 32 branches side by side that meet again
 *   product   the 21 products of a step of an S5 model of 1.2 million parameters (`lrnn perf device`, step): 7
 *             linear maps, forward and both gradients, at 2048 tokens, in fp32, tf32 and bf16; single; gates with
 *             values and w1 with w2 as one product each (merged); 8 and 32 models at once (batched)
 *
 * Times are the device's, between events, medians behind 100 ms of the same work. Factors are random. A program of its
 * own: build/device-micro, `make device-micro`; needs a device. */
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#define SAMPLES       15
#define WALKS         20 /* of a sample */
#define TOKENS        2048
#define SPIN_MS       100
#define BRANCHES_MOST 32

#define TRY(call) check((int)(call), #call, __LINE__)

static void check(int result, const char *call, int line) {
    if (result == 0) return;
    fprintf(stderr, "device-micro: %s failed at line %d: error %d\n", call, line, result);
    exit(1);
}

static cudaStream_t stream;

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
        TRY(cudaEventRecord(from, stream));
        TRY(cudaGraphLaunch(exec, stream));
        TRY(cudaEventRecord(to, stream));
        TRY(cudaEventSynchronize(to));
        TRY(cudaEventElapsedTime(&ms, from, to));
        seconds.push_back(1e-3 * ms / walks);
    }
    TRY(cudaEventDestroy(from));
    TRY(cudaEventDestroy(to));
    TRY(cudaGraphExecDestroy(exec));
    TRY(cudaGraphDestroy(graph));
    std::sort(seconds.begin(), seconds.end());
    return seconds[SAMPLES / 2];
}

static void print_row(const char *what, const char *shape, const char *precision, int models, double seconds,
                      double bytes, double flops) {
    printf("%s,%s,%s,%d,%.6g,%.6g,%.6g\n", what, shape, precision, models, 1e6 * seconds, 1e-9 * bytes / seconds,
           1e-12 * flops / seconds);
    fflush(stdout);
}

/* --- copies and launches ------------------------------------------------------------------------------------------ */

static void measure_copy(void) {
    size_t bytes = (size_t)1 << 30;
    char *memory;
    TRY(cudaMalloc(&memory, 2 * bytes));
    TRY(cudaMemset(memory, 1, 2 * bytes));
    double seconds =
        median_of(4, [=] { TRY(cudaMemcpyAsync(memory + bytes, memory, bytes, cudaMemcpyDeviceToDevice, stream)); });
    print_row("copy", "1 GB", "", 1, seconds, 2 * (double)bytes, 0);
    TRY(cudaFree(memory));
}

static __global__ void empty_kernel(void) {}

static void measure_chain(void) {
    double seconds = median_of(1000, [] { empty_kernel<<<1, 32, 0, stream>>>(); });
    print_row("chain", "a node of 1000", "", 1, seconds, 0, 0);
}

/* 32 kernels a branch, so that n branches are 32 n nodes; the time is that of all. */
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
    print_row("branches", shape, "", 1, seconds, 0, 0);
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

enum { FP32, TF32, BF16 };
static const char *const precisions[] = {"fp32", "tf32", "bf16"};

static cublasHandle_t blas;
static void *factor[2], *result;

/* C (m,n) = A (m,k) B (k,n) in rows, for `models` of them that lie behind each other: to cuBLAS, whose matrices are
 * columns, C^T = B^T A^T. */
static void multiply(int precision, bool ta, bool tb, int m, int n, int k, int models) {
    cudaDataType type = precision == BF16 ? CUDA_R_16BF : CUDA_R_32F;
    cublasComputeType_t compute = precision == TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    float one = 1, zero = 0;
    TRY(cublasGemmStridedBatchedEx(blas, tb ? CUBLAS_OP_T : CUBLAS_OP_N, ta ? CUBLAS_OP_T : CUBLAS_OP_N, n, m, k, &one,
                                   factor[1], type, tb ? k : n, (long long)k * n, factor[0], type, ta ? m : k,
                                   (long long)m * k, &zero, result, CUDA_R_32F, n, (long long)m * n, models, compute,
                                   CUBLAS_GEMM_DEFAULT));
}

static void measure_product(int map, int pass, int precision, int models) {
    int in = maps[map].in, out = maps[map].out;
    static const char *const passes[] = {"y = x W^T", "dx = dy W", "dW = dy^T x"};
    int m = pass == 2 ? out : TOKENS, n = pass == 0 ? out : in, k = pass == 0 ? in : pass == 1 ? out : TOKENS;
    char shape[128];
    double seconds = median_of(WALKS, [=] { multiply(precision, pass == 2, pass == 0, m, n, k, models); });
    double bytes = models * ((precision == BF16 ? 2.0 : 4.0) * ((double)m * k + (double)k * n) + 4.0 * m * n);
    snprintf(shape, sizeof shape, "%s %s %dx%dx%d", maps[map].name, passes[pass], m, n, k);
    print_row("product", shape, precisions[precision], models, seconds, bytes, 2.0 * models * m * n * k);
}

static __global__ void fill_floats(float *to, size_t n) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = (float)((i * 2654435761u >> 7) % 20011) / 10005.5f - 1;
}

static __global__ void fill_halves(__nv_bfloat16 *to, size_t n) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = __float2bfloat16((float)((i * 2654435761u >> 7) % 20011) / 10005.5f - 1);
}

static void measure_products(void) {
    size_t most = (size_t)TOKENS * 2240 * 32;
    void *workspace;
    TRY(cublasCreate(&blas));
    TRY(cublasSetStream(blas, stream));
    TRY(cudaMalloc(&workspace, (size_t)32 << 20));
    TRY(cublasSetWorkspace(blas, workspace, (size_t)32 << 20));
    for (void *&f : factor) TRY(cudaMalloc(&f, most * sizeof(float)));
    TRY(cudaMalloc(&result, most * sizeof(float)));
    for (int precision = FP32; precision <= BF16; precision++) {
        unsigned blocks = (unsigned)((most + 255) / 256);
        for (void *f : factor)
            if (precision == BF16)
                fill_halves<<<blocks, 256, 0, stream>>>((__nv_bfloat16 *)f, most);
            else
                fill_floats<<<blocks, 256, 0, stream>>>((float *)f, most);
        for (int models : {1, 8, 32})
            for (int map = 0; map < (int)(sizeof maps / sizeof *maps); map++)
                for (int pass = 0; pass < 3; pass++) measure_product(map, pass, precision, models);
    }
}

int main(void) {
    TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    printf("what,shape,precision,models,time_us,gb_per_s,tflop_per_s\n");
    measure_copy();
    measure_chain();
    for (int n : {1, 8, BRANCHES_MOST}) measure_branches(n);
    measure_products();
    TRY(cudaGetLastError());
    return 0;
}

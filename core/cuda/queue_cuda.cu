/* queue_cuda.cu - the two streams of a context: see cuda.cuh. Each has a cuBLAS handle with its own workspace, so that
 * captured products are reproducible (cuBLAS, "Results reproducibility"). */
#include <utility>

#include "core/cuda/cuda.cuh"

/* Waits for the fill, so that a place that is closed at once gives back no memory that is still to be written. */
static bool make_counters(struct cuda_context *cuda, struct cuda_queue *queue) {
    size_t bytes = CUDA_COUNTERS * sizeof *queue->counters;
    void *memory = nullptr;
    if (!CUDA_TRY(cuda, cudaMalloc(&memory, bytes))) return false;
    queue->counters = (unsigned *)memory;
    return CUDA_TRY(cuda, cudaMemsetAsync(memory, 0, bytes, queue->stream)) &&
           CUDA_TRY(cuda, cudaStreamSynchronize(queue->stream));
}

bool cuda_queue_open(struct cuda_context *cuda, struct cuda_queue *queue) {
    queue->alone = true;
    return CUDA_TRY(cuda, cudaStreamCreateWithFlags(&queue->stream, cudaStreamNonBlocking)) &&
           CUDA_TRY(cuda, cudaEventCreateWithFlags(&queue->reached, cudaEventDisableTiming)) &&
           make_counters(cuda, queue) && CUBLAS_TRY(cuda, cublasCreate(&queue->blas)) &&
           CUBLAS_TRY(cuda, cublasSetStream(queue->blas, queue->stream)) &&
           CUDA_TRY(cuda, cudaMalloc(&queue->blas_workspace, CUDA_BLAS_WORKSPACE)) &&
           CUBLAS_TRY(cuda, cublasSetWorkspace(queue->blas, queue->blas_workspace, CUDA_BLAS_WORKSPACE)) &&
           CUBLAS_TRY(cuda, cublasSetMathMode(queue->blas, CUBLAS_DEFAULT_MATH));
}

/* Waits for work that a failed run left queued, because that work uses the memory that is given back here. */
void cuda_queue_close(struct cuda_queue *queue) {
    if (queue->stream) cudaStreamSynchronize(queue->stream);
    if (queue->blas) cublasDestroy(queue->blas);
    cudaFree(queue->blas_workspace);
    cudaFree(queue->counters);
    if (queue->reached) cudaEventDestroy(queue->reached);
    if (queue->stream) cudaStreamDestroy(queue->stream);
}

/* Makes work queued on `later` from now on wait for all work on `earlier`; false after a failure. */
static bool wait_for(struct cuda_context *cuda, struct cuda_queue *later, struct cuda_queue *earlier) {
    later->alone = true;
    return CUDA_TRY(cuda, cudaEventRecord(earlier->reached, earlier->stream)) &&
           CUDA_TRY(cuda, cudaStreamWaitEvent(later->stream, earlier->reached, 0));
}

/* If the capture has become invalid, the other stream does not become part of it and would run its work at once. Then
 * all launches go to the current stream. */
void cuda_part(struct cuda_context *cuda) {
    cuda->parted = cuda->branches && !cuda->failed && wait_for(cuda, &cuda->beside, &cuda->now);
    if (cuda->parted) std::swap(cuda->now, cuda->beside);
}

void cuda_return(struct cuda_context *cuda) {
    if (cuda->parted) std::swap(cuda->now, cuda->beside);
}

void cuda_meet(struct cuda_context *cuda) {
    if (cuda->parted) wait_for(cuda, &cuda->now, &cuda->beside);
    cuda->parted = false;
}

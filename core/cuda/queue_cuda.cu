/* queue_cuda.cu - the two streams of a context: see cuda.cuh. Each stream has a cuBLAS handle with its own workspace,
 * so that captured products are reproducible (cuBLAS, "Results reproducibility"). */
#include <utility>

#include "core/cuda/cuda.cuh"

/* Waits until the counters are filled. Otherwise a place that is closed at once would free memory that is still to be
 * written. */
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
    return (queue->borrowed || CUDA_TRY(cuda, cudaStreamCreateWithFlags(&queue->stream, cudaStreamNonBlocking))) &&
           CUDA_TRY(cuda, cudaEventCreateWithFlags(&queue->reached, cudaEventDisableTiming)) &&
           make_counters(cuda, queue) && CUBLAS_TRY(cuda, cublasCreate(&queue->blas)) &&
           CUBLAS_TRY(cuda, cublasSetStream(queue->blas, queue->stream)) &&
           CUDA_TRY(cuda, cudaMalloc(&queue->blas_workspace, CUDA_BLAS_WORKSPACE)) &&
           CUBLAS_TRY(cuda, cublasSetWorkspace(queue->blas, queue->blas_workspace, CUDA_BLAS_WORKSPACE)) &&
           CUBLAS_TRY(cuda, cublasSetMathMode(queue->blas, CUBLAS_DEFAULT_MATH));
}

/* Waits for work that a failed run left in the queue, because that work uses the memory that is freed here. */
void cuda_queue_close(struct cuda_queue *queue) {
    if (queue->stream || queue->borrowed) cudaStreamSynchronize(queue->stream);
    if (queue->blas) cublasDestroy(queue->blas);
    cudaFree(queue->blas_workspace);
    cudaFree(queue->counters);
    if (queue->reached) cudaEventDestroy(queue->reached);
    if (queue->stream && !queue->borrowed) cudaStreamDestroy(queue->stream);
}

/* Makes what is queued on `later` next wait for all work on `earlier`. False after a failure. */
static bool wait_for(struct cuda_context *cuda, struct cuda_queue *later, struct cuda_queue *earlier) {
    later->alone = true;
    return CUDA_TRY(cuda, cudaEventRecord(earlier->reached, earlier->stream)) &&
           CUDA_TRY(cuda, cudaStreamWaitEvent(later->stream, earlier->reached, 0));
}

/* Sends launches to the other stream. If a capture has become invalid, they stay on the current stream, because the
 * other is not part of the capture and would run them at once. */
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

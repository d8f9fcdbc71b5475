/* spares_cuda.cu - what closed places leave for later ones: see cuda.cuh. */
#include "core/cuda/cuda.cuh"

#define SPARES_MOST     64                /* the most runs of a population */
#define BLOCKS_MOST     512               /* pieces of memory, in use or kept */
#define KEPT_BYTES_MOST ((size_t)1 << 30) /* of memory that is kept */

pthread_rwlock_t cuda_device_lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

struct spare {
    int index; /* of the device */
    struct cuda_queue now, beside;
    cudaGraphExec_t instance; /* NULL: none */
};

struct block {
    int index;
    void *base;
    size_t bytes;
    struct cuda_context *user; /* NULL: it is kept, or its user is closed */
    bool kept;
};

static struct {
    pthread_mutex_t lock;
    struct spare list[SPARES_MOST];
    struct block blocks[BLOCKS_MOST];
    int n, n_blocks;
    size_t kept_bytes;
} spares = {PTHREAD_MUTEX_INITIALIZER, {}, {}, 0, 0, 0};

struct spares_locked {
    spares_locked() {
        pthread_mutex_lock(&spares.lock);
    }
    ~spares_locked() {
        pthread_mutex_unlock(&spares.lock);
    }
    spares_locked(const spares_locked &) = delete;
    spares_locked &operator=(const spares_locked &) = delete;
};

static bool is_done(const struct cuda_context *cuda) {
    return !cuda->failed && cudaStreamSynchronize(cuda->now.stream) == cudaSuccess &&
           cudaStreamSynchronize(cuda->beside.stream) == cudaSuccess;
}

/* --- queues and instances ----------------------------------------------------------------------------------------- */

void cuda_spare_take(struct cuda_context *cuda) {
    spares_locked lock;
    for (int i = spares.n - 1; i >= 0 && !cuda->now.stream; i--) {
        if (spares.list[i].index != cuda->index) continue;
        cuda->now = spares.list[i].now;
        cuda->beside = spares.list[i].beside;
        cuda->instance = spares.list[i].instance;
        cuda->now.alone = cuda->beside.alone = true;
        spares.list[i] = spares.list[--spares.n];
    }
}

bool cuda_spare_keep(const struct cuda_context *cuda) {
    if (cuda->now.borrowed || !is_done(cuda)) return false;
    spares_locked lock;
    bool kept = spares.n < SPARES_MOST;
    if (kept) spares.list[spares.n++] = {cuda->index, cuda->now, cuda->beside, cuda->instance};
    return kept;
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static struct block *block_at(const void *base) {
    for (int i = 0; i < spares.n_blocks; i++)
        if (spares.blocks[i].base == base) return &spares.blocks[i];
    return nullptr;
}

void *cuda_block_take(const struct cuda_context *cuda, size_t bytes) {
    spares_locked lock;
    if (cuda->now.borrowed) return nullptr;
    for (int i = 0; i < spares.n_blocks; i++) {
        struct block *b = &spares.blocks[i];
        if (!b->kept || b->index != cuda->index || b->bytes != bytes) continue;
        b->kept = false;
        spares.kept_bytes -= bytes;
        return b->base;
    }
    return nullptr;
}

void cuda_block_note(struct cuda_context *cuda, void *base, size_t bytes) {
    spares_locked lock;
    struct block *b = block_at(base);
    if (cuda->now.borrowed || (!b && spares.n_blocks == BLOCKS_MOST)) return;
    if (!b) b = &spares.blocks[spares.n_blocks++];
    *b = {cuda->index, base, bytes, cuda, false};
}

bool cuda_block_keep(void *base) {
    spares_locked lock;
    struct block *b = block_at(base);
    if (!b) return false;
    b->kept = b->user && spares.kept_bytes + b->bytes <= KEPT_BYTES_MOST && is_done(b->user);
    b->user = nullptr;
    if (b->kept) {
        spares.kept_bytes += b->bytes;
        return true;
    }
    *b = spares.blocks[--spares.n_blocks];
    return false;
}

void cuda_blocks_leave(const struct cuda_context *cuda) {
    spares_locked lock;
    for (int i = 0; i < spares.n_blocks; i++)
        if (spares.blocks[i].user == cuda) spares.blocks[i].user = nullptr;
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

size_t cuda_spare_bytes(int index) {
    spares_locked lock;
    size_t bytes = 0;
    for (int i = 0; i < spares.n; i++)
        if (spares.list[i].index == index) bytes += 2 * CUDA_BLAS_WORKSPACE;
    for (int i = 0; i < spares.n_blocks; i++)
        if (spares.blocks[i].kept && spares.blocks[i].index == index) bytes += spares.blocks[i].bytes;
    return bytes;
}

void cuda_spares_close(int index) {
    device_alone alone;
    spares_locked lock;
    for (int i = spares.n - 1; i >= 0; i--) {
        if (spares.list[i].index != index) continue;
        if (spares.list[i].instance) cudaGraphExecDestroy(spares.list[i].instance);
        cuda_queue_close(&spares.list[i].now);
        cuda_queue_close(&spares.list[i].beside);
        spares.list[i] = spares.list[--spares.n];
    }
    for (int i = spares.n_blocks - 1; i >= 0; i--) {
        if (!spares.blocks[i].kept || spares.blocks[i].index != index) continue;
        cudaFree(spares.blocks[i].base);
        spares.kept_bytes -= spares.blocks[i].bytes;
        spares.blocks[i] = spares.blocks[--spares.n_blocks];
    }
}

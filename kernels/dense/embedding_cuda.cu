/* embedding_cuda.cu - y[r] = table[ids[r]] (embedding.c) on CUDA. In forward, a thread copies four elements. Backward
 * needs no atomics. A warp has 32 columns of a tile of table rows, and keeps their sums in shared memory. It goes
 * through a chunk of the ids in order. A second kernel then adds the chunks in order. (With last_block, a single warp
 * would have to add the chunks of hundreds of rows.) */
#include "kernels/dense/dense.h"
#include "kernels/lib/cuda.cuh"

#define SUM_BYTES  (48 << 10) /* bytes of shared memory with the queue; every launch may have as many */
#define QUEUE      (2 * WARP)
#define TOGETHER   16 /* rows of dy that are loaded at the same time */
#define CHUNK_ROWS 64 /* least rows of a chunk */

namespace {

/* Copies elements of y, which has D columns. */
struct looked_up {
    const int32_t *ids;
    const real *table;
    real *y;
    int64_t D;

    template <int W> __device__ void run(int64_t i) const {
        struct quotient at = divide(i, D);
        lanes<W> u;
        if (W == 4 && D % 4 == 0) {
            u = load_lanes<W>(table + ids[at.whole] * D + at.rest);
        } else {
            for (int k = 0; k < W; k++) {
                u.v[k] = table[ids[at.whole] * D + at.rest];
                if (++at.rest < D) continue;
                at.rest = 0;
                at.whole++;
                if (k + 1 == W) break; /* this may be the last id */
            }
        }
        store_lanes<W>(y + i, u);
    }
};

/* A row of dy that the tile needs, and the row of the tile to which it must be added. */
struct wanted {
    int row, to;
};

/* Division of the gradient: chunks of ids x tiles of table rows x strips of columns, with one warp for each. */
struct cut {
    int64_t rows, V, D, chunks, tiles, strips;
    int tile_rows;
};

} // namespace

static struct cut cut_of(const struct call *c) {
    struct cut k = {};
    int64_t most = (SUM_BYTES - QUEUE * (int64_t)sizeof(struct wanted)) / (WARP * (int64_t)sizeof(real));
    k.rows = tensor_count(c->in[0]);
    k.V = c->in[1]->dims[0];
    k.D = c->in[1]->dims[1];
    k.tiles = (k.V + most - 1) / most;
    k.tile_rows = (int)((k.V + k.tiles - 1) / k.tiles);
    k.tiles = (k.V + k.tile_rows - 1) / k.tile_rows;
    k.strips = (k.D + WARP - 1) / WARP;
    int64_t blocks = SUM_BLOCKS / (k.tiles * k.strips), chunks = k.rows / CHUNK_ROWS;
    k.chunks = chunks < blocks ? chunks : blocks;
    if (k.chunks < 1) k.chunks = 1;
    return k;
}

/* Adds the first n rows of the queue to the sums, in order. `sums` and dy point to this lane's column; `inside` says
 * whether the column exists. */
static __device__ void add_rows(int n, const struct wanted *queue, const real *dy, int64_t D, bool inside, real *sums) {
    for (int first = 0; first < n; first += TOGETHER) {
        real v[TOGETHER];
#pragma unroll
        for (int j = 0; j < TOGETHER; j++) v[j] = inside && first + j < n ? dy[queue[first + j].row * D] : 0;
#pragma unroll
        for (int j = 0; j < TOGETHER; j++)
            if (first + j < n) sums[queue[first + j].to * WARP] += v[j];
    }
}

/* Computes out[chunk][v] (+)= sum of the chunk's dy[r] with ids[r] = v, for the table rows v of a tile. Each lane has
 * its own column of the sums. All lanes together fill and empty the queue of wanted rows. */
static __global__ void __launch_bounds__(WARP)
    embedding_sums_kernel(struct cut k, const int32_t *ids, const real *dy, real *out, bool accumulate) {
    await_previous();
    DYNAMIC_SHARED(struct wanted, queue);
    int lane = (int)threadIdx.x, waiting = 0;
    int64_t column = blockIdx.x % k.strips * WARP + lane, part = blockIdx.x / k.strips, chunk = part / k.tiles;
    int64_t first = part % k.tiles * k.tile_rows, begin = k.rows * chunk / k.chunks;
    int n_sums = (int)(k.V - first < k.tile_rows ? k.V - first : k.tile_rows);
    int n = (int)(k.rows * (chunk + 1) / k.chunks - begin);
    real *sums = reinterpret_cast<real *>(queue + QUEUE) + lane;
    for (int v = 0; v < n_sums; v++) sums[v * WARP] = 0;
    ids += begin;
    dy += begin * k.D + column;
    int64_t id = lane < n ? ids[lane] - first : -1;
    for (int at = 0; at < n; at += WARP) {
        bool mine = id >= 0 && id < n_sums;
        unsigned those = __ballot_sync(FULL_WARP, mine);
        if (mine) queue[waiting + __popc(those & ((1u << lane) - 1))] = {at + lane, (int)id};
        waiting += __popc(those);
        /* loaded while the sums below are computed */
        id = at + WARP + lane < n ? ids[at + WARP + lane] - first : -1;
        __syncwarp();
        if (waiting < WARP) continue;
        add_rows(WARP, queue, dy, k.D, column < k.D, sums);
        waiting -= WARP;
        struct wanted next = queue[WARP + lane];
        __syncwarp();
        queue[lane] = next;
        __syncwarp();
    }
    add_rows(waiting, queue, dy, k.D, column < k.D, sums);
    if (column >= k.D) return;
    for (int v = 0; v < n_sums; v++) put(out + (chunk * k.V + first + v) * k.D + column, accumulate, sums[v * WARP]);
}

static void embedding_cuda_forward(const struct call *c, const struct exec *x) {
    each(c, x, tensor_count(c->out[0]),
         looked_up{tensor_i32(c->in[0]), tensor_real(c->in[1]), tensor_real(c->out[0]), c->in[1]->dims[1]});
}

static size_t embedding_cuda_workspace(const struct call *c, enum pass pass) {
    struct cut k = cut_of(c);
    return pass == PASS_BACKWARD && k.chunks > 1 ? (size_t)(k.chunks * k.V * k.D) * sizeof(real) : 0;
}

static void embedding_cuda_backward(const struct call *c, const struct exec *x) {
    struct cut k = cut_of(c);
    real *scratch = (real *)c->scratch[PASS_BACKWARD], *out = k.chunks > 1 ? scratch : c->din[1];
    size_t shared = QUEUE * sizeof(struct wanted) + (size_t)k.tile_rows * WARP * sizeof(real);
    if (!c->din[1]) return;
    LAUNCH(x, embedding_sums_kernel, dim3((unsigned)(k.chunks * k.tiles * k.strips)), dim3(WARP), shared, k,
           tensor_i32(c->in[0]), call_dout(c, 0), out, k.chunks == 1 && call_accumulates(c, 1));
    if (k.chunks > 1)
        cuda_chunked_sums(c, x, k.chunks, k.V * k.D, 1, matrix_term{scratch}, c->din[1], call_accumulates(c, 1),
                          nullptr);
}

/* Tolerance: the rows of an id are summed one after the other in working precision. */
const struct kernel kernel_embedding_cuda = {
    .name = "embedding_cuda",
    .op = &op_embedding,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .workspace = embedding_cuda_workspace,
    .forward = embedding_cuda_forward,
    .backward = embedding_cuda_backward,
};

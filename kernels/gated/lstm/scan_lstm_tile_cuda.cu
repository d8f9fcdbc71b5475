/* scan_lstm_tile_cuda.cu - scan_lstm on CUDA for nets of up to 256 channels, with all time steps in one launch, whose
 * recurrent products run on tensor cores. Equations: scan_lstm.c.
 *
 * A cluster of thread blocks (cluster.cuh) computes TILE sequences from the first time step to the last. A block has
 * CHANNELS channels, and keeps their rows of wh (in backward: their columns) in its shared memory. At each step it
 * computes a product
 *   forward    4 CHANNELS x depth by depth x TILE, the pre-activations from h of the step before; depth = all channels
 *   backward   CHANNELS x depth by depth x TILE, dh from dp of the step after; depth = the four gates of all channels
 * by mma.sync.m16n8k8, with factors split into parts of tf32 so that sums are as exact as in fp32 (tile_product.cuh).
 * Weights and values are stored in the order in which lanes need them, so that a lane loads four weights, or two
 * values, at once. A warp computes two tiles of 16 rows over a part of the depth; the parts are added in order. Then a
 * thread computes one channel of one sequence, and the block copies its new values to the other blocks of the cluster.
 *
 * `cluster_arrive` would wait for global stores before it. So a step's global stores and the loads for the next step
 * come after it, and overlap with the barrier. Bits depend only on H. */
#include "kernels/gated/lstm/lstm.cuh"
#include "kernels/lib/cluster.cuh"
#include "kernels/lib/tile_product.cuh"

namespace {

#define CHANNELS     32  /* channels of a block */
#define TILE         8   /* sequences of a cluster: the columns of an mma */
#define THREADS      512 /* of a block; the first CHANNELS * TILE of them compute channels */
#define WARPS        (THREADS / WARP)
#define PAIR         (2 * TILE_ROWS) /* rows that a warp computes */
#define LSTM_BATCHES 256             /* with more sequences, a device runs the clusters in more than two waves */

struct lstm_tiles {
    int64_t B, T;
    int H, cluster;

    int64_t tiles() const {
        return (B + TILE - 1) / TILE;
    }
};

struct lstm_tiles tiles_of(const struct call *c) {
    int H = (int)tensor_cols(c->in[1]);
    return {c->in[0]->dims[0], c->in[0]->dims[1], H, (H + CHANNELS - 1) / CHANNELS};
}

/* A block's product: GATES * CHANNELS rows; `depth` counts values of all blocks, GIVEN per channel, so that the values
 * of a block are neighbours. Shared memory has the weights, the values of two steps, and the partial sums. */
template <int GATES, int GIVEN> struct lstm_product {
    static constexpr int ROWS = GATES * CHANNELS, PAIRS = ROWS / PAIR, PARTS = WARPS / PAIRS;
    static constexpr int STRIDE = ROWS + 4; /* of the partial sums of a sequence; lanes then use different banks */
    static constexpr int OWN = GIVEN * CHANNELS * TILE; /* values of a block */
    int cluster;

    __host__ __device__ int depth() const {
        return cluster * GIVEN * CHANNELS;
    }
    __host__ __device__ int weights() const {
        return ROWS * depth();
    }
    __host__ __device__ int values() const {
        return cluster * OWN;
    }
    size_t bytes() const {
        return sizeof(real) * (size_t)(weights() + 2 * values() + PARTS * TILE * STRIDE);
    }

    /* Position of weight (row, k). Lane 4 g + t has (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4) of a tile. */
    __device__ __forceinline__ int weight_at(int row, int k) const {
        int lane = row % 8 * 4 + k % 4, tile = row / TILE_ROWS * (depth() / TILE_DEPTH) + k / TILE_DEPTH;
        return (tile * WARP + lane) * 4 + k % 8 / 4 * 2 + row % TILE_ROWS / 8;
    }
    /* Position of value k of sequence s. Lane 4 g + t has (t, g), (t + 4, g). */
    static __device__ __forceinline__ int value_at(int k, int s) {
        return (k / TILE_DEPTH * WARP + s * 4 + k % 4) * 2 + k % 8 / 4;
    }
};

using lstm_forward_product = lstm_product<4, 1>;
using lstm_backward_product = lstm_product<1, 4>;

/* A thread that computes a channel. The others are only in the products. */
struct lstm_owner {
    bool owns, in; /* in: the channel and the sequence exist */
    int local, s, channel;
    int64_t b;
};

__device__ __forceinline__ struct lstm_owner owner_here(const struct lstm_tiles &k) {
    struct lstm_owner at;
    at.local = (int)threadIdx.x % CHANNELS;
    at.s = (int)threadIdx.x / CHANNELS;
    at.channel = (int)(blockIdx.x % (unsigned)k.cluster) * CHANNELS + at.local;
    at.b = (int64_t)(blockIdx.x / (unsigned)k.cluster) * TILE + at.s;
    at.owns = at.s < TILE;
    at.in = at.owns && at.channel < k.H && at.b < k.B;
    return at;
}

/* Stores weight(row, k) for all weights of the block, and zeros as values. If BY_ROW, neighbouring rows are neighbours
 * in memory, else neighbouring k; the lanes of a warp load neighbours. */
template <bool BY_ROW, class P, class Weight>
__device__ __forceinline__ void fill(const P &n, real *weights, real *values, Weight weight) {
    int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    int inner = BY_ROW ? P::ROWS : n.depth(), outer = BY_ROW ? n.depth() : P::ROWS;
#pragma unroll(BY_ROW ? 8 : 1)
    for (int i = warp; i < outer; i += WARPS)
#pragma unroll 8
        for (int j = lane; j < inner; j += WARP) {
            int row = BY_ROW ? j : i, k = BY_ROW ? i : j;
            weights[n.weight_at(row, k)] = weight(row, k);
        }
    for (int e = (int)threadIdx.x; e < 2 * n.values(); e += THREADS) values[e] = 0;
}

/* Computes this warp's part of the product, and stores it in partial[part][sequence][row]. */
template <class P>
__device__ __forceinline__ void multiply(const P &n, const real *weights, const real *values, real *partial) {
#ifdef TILE_TENSOR_CORES
    int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    int pair = warp % P::PAIRS, part = warp / P::PAIRS, steps = n.depth() / TILE_DEPTH;
    float sum[2][4] = {}, left[2][4] = {}, right[2][4] = {}; /* left, right: the small products */
#pragma unroll 2
    for (int step = steps * part / P::PARTS; step < steps * (part + 1) / P::PARTS; step++) {
        lanes<2> value = load_lanes<2>(values + (step * WARP + lane) * 2);
        uint32_t high_b[2], low_b[2];
#pragma unroll
        for (int e = 0; e < 2; e++) {
            struct tile_split split = tile_split_of(value.v[e]);
            high_b[e] = split.high;
            low_b[e] = split.low;
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            lanes<4> weight = load_lanes<4>(weights + (((pair * 2 + i) * steps + step) * WARP + lane) * 4);
            uint32_t high_a[4], low_a[4];
#pragma unroll
            for (int e = 0; e < 4; e++) {
                struct tile_split split = tile_split_of(weight.v[e]);
                high_a[e] = split.high;
                low_a[e] = split.low;
            }
            tile_mma(sum[i], high_a, high_b);
            tile_mma(left[i], low_a, high_b);
            tile_mma(right[i], high_a, low_b);
        }
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            int row = pair * PAIR + i * TILE_ROWS + g + e / 2 * 8, s = 2 * t + e % 2;
            partial[(part * TILE + s) * P::STRIDE + row] = sum[i][e] + (left[i][e] + right[i][e]);
        }
#else
    (void)n, (void)weights, (void)values, (void)partial;
#endif
}

/* Returns the sum of a row for a sequence, part after part. Call it after a barrier. */
template <class P> __device__ __forceinline__ real sum_parts(const real *partial, int s, int row) {
    real sum = 0;
#pragma unroll
    for (int part = 0; part < P::PARTS; part++) sum += partial[(part * TILE + s) * P::STRIDE + row];
    return sum;
}

/* Copies the block's own new values to all other blocks of the cluster. Call it after a barrier. */
template <class P> __device__ __forceinline__ void share(const P &n, real *values) {
    int rank = (int)(blockIdx.x % (unsigned)n.cluster);
    real *own = values + rank * P::OWN;
    for (int e = (int)threadIdx.x; e < (n.cluster - 1) * (P::OWN / 4); e += THREADS) {
        int to = e / (P::OWN / 4), at = e % (P::OWN / 4) * 4;
        store_lanes<4>(cluster_shared(own + at, to < rank ? to : to + 1), load_lanes<4>(own + at));
    }
}

} // namespace

/* Computes all time steps. u, gates (B,T,4H); wh [4H][H]; bh [4H]; cell, h (B,T,H). */
static __global__ void __launch_bounds__(THREADS, 1)
    lstm_tile_forward(struct lstm_tiles k, const real *u, const real *wh, const real *bh, real *gates, real *cell,
                      real *h) {
    await_previous();
    DYNAMIC_SHARED(real, weights);
    lstm_forward_product n = {k.cluster};
    struct lstm_owner at = owner_here(k);
    struct lstm_channel x = {};
    real *values = weights + n.weights(), *partial = values + 2 * n.values(), bias[4] = {}, next[4] = {};
    int first = at.channel - at.local;
    fill<false>(n, weights, values, [=](int row, int j) {
        int channel = first + row % CHANNELS;
        return channel < k.H && j < k.H ? wh[(int64_t)(row / CHANNELS * k.H + channel) * k.H + j] : 0;
    });
    for (int i = 0; i < 4 && at.in; i++) bias[i] = bh[i * k.H + at.channel];
    auto read = [&](int64_t t) {
        for (int i = 0; i < 4 && at.in; i++) next[i] = u[((at.b * k.T + t) * 4 + i) * k.H + at.channel];
    };
    read(0);
    cluster_sync();
    for (int64_t t = 0; t < k.T; t++) {
        int64_t row = at.b * k.T + t;
        real p[4], out = 0, *now = values + t % 2 * n.values();
        for (int i = 0; i < 4; i++) p[i] = next[i] + bias[i];
        if (t > 0) {
            multiply(n, weights, values + (t - 1) % 2 * n.values(), partial);
            __syncthreads();
            for (int i = 0; i < 4 && at.in; i++)
                p[i] += sum_parts<lstm_forward_product>(partial, at.s, i * CHANNELS + at.local);
        }
        if (at.in) out = lstm_channel_forward(p, &x);
        bool more = t < k.T - 1; /* after the last step, no block accesses another block's memory */
        if (more) {
            if (at.in) now[n.value_at(at.channel, at.s)] = out;
            __syncthreads();
            share(n, now);
            cluster_arrive();
        }
        if (at.in) {
            h[row * k.H + at.channel] = out;
            cell[row * k.H + at.channel] = x.before = x.cell;
            for (int i = 0; i < 4; i++) gates[(row * 4 + i) * k.H + at.channel] = x.gate[i];
        }
        if (more) {
            read(t + 1);
            cluster_wait();
        }
    }
}

/* Computes the gradients of all time steps. dout, d_cell (B,T,H): gradients of h and of c, d_cell NULL: zeros; dp
 * (B,T,4H). `before` (B,T,H) receives h of the previous time step, with zeros at the first step; NULL: not wanted. */
static __global__ void __launch_bounds__(THREADS, 1)
    lstm_tile_backward(struct lstm_tiles k, const real *wh, const real *gates, const real *cell, const real *h,
                       const real *dout, const real *d_cell, real *dp, real *before) {
    await_previous();
    DYNAMIC_SHARED(real, weights);
    lstm_backward_product n = {k.cluster};
    struct lstm_owner at = owner_here(k);
    struct lstm_channel x = {};
    real *values = weights + n.weights(), *partial = values + 2 * n.values(), dc = 0, d = 0, dc_out = 0, h_before = 0;
    int first = at.channel - at.local;
    fill<true>(n, weights, values, [=](int row, int j) {
        int channel = j / (4 * CHANNELS) * CHANNELS + j % CHANNELS, gate = j / CHANNELS % 4;
        bool exists = channel < k.H && first + row < k.H;
        return exists ? wh[(int64_t)(gate * k.H + channel) * k.H + first + row] : 0;
    });
    auto read = [&](int64_t t) {
        int64_t e = (at.b * k.T + t) * k.H + at.channel;
        if (!at.in) return;
        for (int i = 0; i < 4; i++) x.gate[i] = gates[((at.b * k.T + t) * 4 + i) * k.H + at.channel];
        x.cell = cell[e];
        x.before = t > 0 ? cell[e - k.H] : 0;
        d = dout[e];
        if (d_cell) dc_out = d_cell[e];
        if (before) h_before = t > 0 ? h[e - k.H] : 0;
    };
    read(k.T - 1);
    cluster_sync();
    for (int64_t t = k.T - 1; t >= 0; t--) {
        int64_t row = at.b * k.T + t;
        real p[4] = {}, *now = values + t % 2 * n.values();
        if (t < k.T - 1) {
            multiply(n, weights, values + (t + 1) % 2 * n.values(), partial);
            __syncthreads();
            if (at.in) d += sum_parts<lstm_backward_product>(partial, at.s, at.local);
        }
        if (d_cell) dc += dc_out;
        if (at.in) lstm_channel_backward(&x, d, &dc, p);
        bool more = t > 0; /* after the last step, no block accesses another block's memory */
        if (more) {
            for (int i = 0; i < 4 && at.in; i++) now[n.value_at((first * 4 + i * CHANNELS) + at.local, at.s)] = p[i];
            __syncthreads();
            share(n, now);
            cluster_arrive();
        }
        for (int i = 0; i < 4 && at.in; i++) dp[(row * 4 + i) * k.H + at.channel] = p[i];
        if (at.in && before) before[row * k.H + at.channel] = h_before;
        if (more) {
            read(t - 1);
            cluster_wait();
        }
    }
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

static bool scan_lstm_tile_cuda_applicable(const struct call *c, const char **why) {
    const struct cuda_context *cuda = c->place ? c->place->cuda : nullptr;
    struct lstm_tiles k = tiles_of(c);
    *why = "it needs fp32, clusters, which devices have from capability 9.0 on, and at most 256 channels";
    if (REAL_IS_DOUBLE || !cuda || cuda->capability < CLUSTER_CAPABILITY || k.cluster > CLUSTER_BLOCKS ||
        lstm_backward_product{k.cluster}.bytes() > cuda->shared)
        return false;
    *why = "it starts from zero";
    return !lstm_first(c, 0) && lstm_products_fit(c, why);
}

static bool scan_lstm_tile_cuda_preferred(const struct call *c) {
    return tensor_cols(c->in[1]) > LSTM_NARROW && c->in[0]->dims[0] <= LSTM_BATCHES;
}

static void scan_lstm_tile_cuda_forward(const struct call *c, const struct exec *x) {
    struct lstm_tiles k = tiles_of(c);
    LAUNCH_CLUSTERS(x, lstm_tile_forward, (unsigned)k.cluster, dim3((unsigned)(k.tiles() * k.cluster)), dim3(THREADS),
                    lstm_forward_product{k.cluster}.bytes(), k, tensor_real(c->in[0]), tensor_real(c->in[1]),
                    tensor_real(c->in[2]), tensor_real(c->out[2]), tensor_real(c->out[1]), tensor_real(c->out[0]));
}

static void scan_lstm_tile_cuda_backward(const struct call *c, const struct exec *x) {
    struct lstm_tiles k = tiles_of(c);
    lstm_backward_of_all_steps(c, x, [&](real *dp, real *before) {
        LAUNCH_CLUSTERS(x, lstm_tile_backward, (unsigned)k.cluster, dim3((unsigned)(k.tiles() * k.cluster)),
                        dim3(THREADS), lstm_backward_product{k.cluster}.bytes(), k, tensor_real(c->in[1]),
                        tensor_real(c->out[2]), tensor_real(c->out[1]), tensor_real(c->out[0]), call_dout(c, 0),
                        call_dout(c, 1), dp, before);
    });
}

/* Tolerance: scan_lstm_cpu.c explains it. */
const struct kernel kernel_scan_lstm_tile_cuda = {
    .name = "scan_lstm_tile_cuda",
    .op = &op_scan_lstm,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 1024,
    .together = "the product of the weight's gradient sums the bias's",
    .applicable = scan_lstm_tile_cuda_applicable,
    .preferred = scan_lstm_tile_cuda_preferred,
    .workspace = lstm_workspace_of_all_steps,
    .forward = scan_lstm_tile_cuda_forward,
    .backward = scan_lstm_tile_cuda_backward,
};

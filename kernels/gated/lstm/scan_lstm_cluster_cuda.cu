/* scan_lstm_cluster_cuda.cu - scan_lstm on CUDA, with all time steps in one launch. Equations: scan_lstm.c.
 *
 * A cluster of thread blocks (cluster.cuh) computes a tile of LSTM_TILE sequences from the first time step to the last.
 * Each block has some of the channels, and keeps their rows of wh (in backward: their columns) in its shared memory. At
 * each step a block computes the sums of its channels over all channels of the previous step, and stores the new values
 * of its channels in the shared memory of every block of the cluster. `cluster_arrive` would wait for global stores
 * before it. So a step's global stores and the loads for the next step come after it, and overlap with the barrier.
 *
 * Only H determines into which parts a sum is cut, and sequences are independent. So the bits depend neither on the
 * size of the cluster nor on the other sequences. */
#include "kernels/gated/lstm/lstm.cuh"
#include "kernels/lib/cluster.cuh"

#define LSTM_TILE     4 /* sequences per cluster */
#define LSTM_PARTS    8 /* number of parts of a sum over H values; a thread computes one part of four sums */
#define LSTM_CHANNELS 8 /* least channels of a block; a larger cluster with fewer would not be faster */
#define LSTM_THREADS  (REAL_IS_DOUBLE ? 256 : 512) /* most threads of a block; doubles take twice the registers */

namespace {

struct lstm_cut {
    int64_t B, T;
    int H, cluster;

    __host__ __device__ int channels() const { /* channels of a block; the last block may have fewer */
        return (H + cluster - 1) / cluster;
    }
    int64_t tiles() const {
        return (B + LSTM_TILE - 1) / LSTM_TILE;
    }
};

/* The sums that a block computes at each step: for each sequence 4 G sums over K values each. Four sums are a group,
 * and each sum is cut into `parts` parts. */
struct lstm_sums {
    int G, K, parts;

    /* The block's shared memory has the weights (K, G, 4), the values (K, TILE) of two steps, and the partial sums
     * (parts, TILE, G, 4). */
    __host__ __device__ int64_t weights() const {
        return (int64_t)4 * G * K;
    }
    __host__ __device__ int64_t values() const {
        return (int64_t)LSTM_TILE * K;
    }
    size_t bytes() const {
        return (size_t)(weights() + 2 * values() + (int64_t)4 * G * LSTM_TILE * parts) * sizeof(real);
    }
    int threads() const {
        return G * parts;
    }
};

/* Forward: a group is the four pre-activations of a channel. Backward: a group is dh of four channels. */
__host__ __device__ struct lstm_sums forward_sums(const struct lstm_cut &k) {
    return {k.channels(), k.H, LSTM_PARTS};
}

__host__ __device__ struct lstm_sums backward_sums(const struct lstm_cut &k) {
    return {(k.channels() + 3) / 4, 4 * k.H, 4 * LSTM_PARTS};
}

/* The role of a thread: it owns a channel of one sequence, or it only computes sums. */
struct lstm_place {
    bool owns, in; /* in: the thread owns a channel, and its sequence exists */
    int first, local, channel, s;
    int64_t b;
};

__device__ struct lstm_place place_here(const struct lstm_cut &k) {
    struct lstm_place at;
    int n = k.channels();
    at.first = (int)(blockIdx.x % k.cluster) * n;
    at.local = (int)threadIdx.x % n;
    at.s = (int)threadIdx.x / n;
    at.channel = at.first + at.local;
    at.b = (int64_t)(blockIdx.x / k.cluster) * LSTM_TILE + at.s;
    at.owns = at.s < LSTM_TILE && at.channel < k.H;
    at.in = at.owns && at.b < k.B;
    return at;
}

/* Computes this thread's part of the four sums of its group. */
__device__ __forceinline__ void sum_part(const struct lstm_sums &n, const real *w, const real *values, real *partial) {
    int part = (int)threadIdx.x / n.G, g = (int)threadIdx.x % n.G, end = n.K * (part + 1) / n.parts;
    lanes<4> sum[LSTM_TILE] = {};
#pragma unroll 4
    for (int j = n.K * part / n.parts; j < end; j++) {
        lanes<4> weight = load_lanes<4>(w + (j * n.G + g) * 4), value = load_lanes<4>(values + j * LSTM_TILE);
        for (int s = 0; s < LSTM_TILE; s++)
            for (int i = 0; i < 4; i++) sum[s].v[i] = real_fma(weight.v[i], value.v[s], sum[s].v[i]);
    }
    for (int s = 0; s < LSTM_TILE; s++) store_lanes<4>(partial + ((part * LSTM_TILE + s) * n.G + g) * 4, sum[s]);
}
static_assert(LSTM_TILE == 4, "a tile's values are loaded as four lanes");

/* Adds the four sums of group g to p, part after part in order. Call it after a barrier. It loads four sums at once, so
 * that neighbouring threads read neighbouring values. */
__device__ __forceinline__ void add_parts(const struct lstm_sums &n, const real *partial, int s, int g, real p[4]) {
    for (int part = 0; part < n.parts; part++) {
        lanes<4> sum = load_lanes<4>(partial + ((part * LSTM_TILE + s) * n.G + g) * 4);
        for (int i = 0; i < 4; i++) p[i] += sum.v[i];
    }
}

/* Returns sum i of the block's 4 G sums, added part after part in order. Call it after a barrier. */
__device__ __forceinline__ real sum_parts(const struct lstm_sums &n, const real *partial, int s, int i) {
    real sum = 0;
    for (int part = 0; part < n.parts; part++) sum += partial[(part * LSTM_TILE + s) * 4 * n.G + i];
    return sum;
}

/* Stores the value at `at` in the shared memory of every block of the cluster. */
__device__ __forceinline__ void store_in_all(const struct lstm_cut &k, real *at, real value) {
    for (int rank = 0; rank < k.cluster; rank++) *cluster_shared(at, rank) = value;
}

} // namespace

/* Computes all time steps. u, gates (B,T,4H); wh [4H][H]; bh [4H]; cell, h (B,T,H). */
static __global__ void __launch_bounds__(LSTM_THREADS, 1)
    lstm_forward_kernel(struct lstm_cut k, const real *u, const real *wh, const real *bh, real *gates, real *cell,
                        real *h) {
    await_previous();
    DYNAMIC_SHARED(real, w);
    struct lstm_sums n = forward_sums(k);
    struct lstm_place at = place_here(k);
    struct lstm_channel x = {};
    real *values = w + n.weights(), *partial = values + 2 * n.values(), bias[4] = {}, next[4] = {};
    for (int e = (int)threadIdx.x; e < n.K * n.G; e += (int)blockDim.x) {
        int channel = at.first + e % n.G;
        lanes<4> weight = {};
        for (int i = 0; i < 4 && channel < k.H; i++) weight.v[i] = wh[(int64_t)(i * k.H + channel) * k.H + e / n.G];
        store_lanes<4>(w + 4 * e, weight);
    }
    for (int i = 0; i < 4 && at.in; i++) bias[i] = bh[i * k.H + at.channel];
    auto read = [&](int64_t t) {
        for (int i = 0; i < 4 && at.in; i++) next[i] = u[((at.b * k.T + t) * 4 + i) * k.H + at.channel];
    };
    read(0);
    cluster_sync();
    for (int64_t t = 0; t < k.T; t++) {
        int64_t row = at.b * k.T + t;
        real p[4], out = 0;
        for (int i = 0; i < 4; i++) p[i] = next[i] + bias[i];
        if (t > 0) {
            sum_part(n, w, values + (t - 1) % 2 * n.values(), partial);
            __syncthreads();
            if (at.in) add_parts(n, partial, at.s, at.local, p);
        }
        if (at.in) out = lstm_channel_forward(p, &x);
        bool more = t < k.T - 1; /* after the last step, no block accesses another block's memory */
        if (more && at.owns) store_in_all(k, values + t % 2 * n.values() + at.channel * LSTM_TILE + at.s, out);
        if (more) cluster_arrive();
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
static __global__ void __launch_bounds__(LSTM_THREADS, 1)
    lstm_backward_kernel(struct lstm_cut k, const real *wh, const real *gates, const real *cell, const real *h,
                         const real *dout, const real *d_cell, real *dp, real *before) {
    await_previous();
    DYNAMIC_SHARED(real, w);
    struct lstm_sums n = backward_sums(k);
    struct lstm_place at = place_here(k);
    struct lstm_channel x = {};
    real *values = w + n.weights(), *partial = values + 2 * n.values(), dc = 0, d = 0, dc_out = 0, h_before = 0;
    for (int e = (int)threadIdx.x; e < n.K * n.G; e += (int)blockDim.x) {
        int local = e % n.G * 4;
        lanes<4> weight = {};
        for (int i = 0; i < 4 && local + i < k.channels() && at.first + local + i < k.H; i++)
            weight.v[i] = wh[(int64_t)(e / n.G) * k.H + at.first + local + i];
        store_lanes<4>(w + 4 * e, weight);
    }
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
        real p[4] = {};
        if (t < k.T - 1) {
            sum_part(n, w, values + (t + 1) % 2 * n.values(), partial);
            __syncthreads();
            if (at.in) d += sum_parts(n, partial, at.s, at.local);
        }
        if (d_cell) dc += dc_out;
        if (at.in) lstm_channel_backward(&x, d, &dc, p);
        bool more = t > 0; /* after the last step, no block accesses another block's memory */
        for (int i = 0; i < 4 && more && at.owns; i++)
            store_in_all(k, values + t % 2 * n.values() + (i * k.H + at.channel) * LSTM_TILE + at.s, p[i]);
        if (more) cluster_arrive();
        for (int i = 0; i < 4 && at.in; i++) dp[(row * 4 + i) * k.H + at.channel] = p[i];
        if (at.in && before) before[row * k.H + at.channel] = h_before;
        if (more) {
            read(t - 1);
            cluster_wait();
        }
    }
}

/* --- how a call is cut -------------------------------------------------------------------------------------------- */

static bool fits(const struct lstm_cut &k, const struct cuda_context *cuda) {
    struct lstm_sums forward = forward_sums(k), backward = backward_sums(k);
    return forward.bytes() <= cuda->shared && backward.bytes() <= cuda->shared && forward.threads() <= LSTM_THREADS &&
           backward.threads() <= LSTM_THREADS && (k.cluster == 1 || cuda->capability >= CLUSTER_CAPABILITY);
}

/* Chooses the smallest cluster whose shared memory has room for wh. If multiprocessors would then be idle, it chooses a
 * larger one. False: no cluster has room. */
static bool cut(const struct call *c, struct lstm_cut *k) {
    const struct cuda_context *cuda = c->place ? c->place->cuda : nullptr;
    int64_t H = tensor_cols(c->in[1]);
    if (!cuda || H > LSTM_THREADS * CLUSTER_BLOCKS) return false;
    *k = {c->in[0]->dims[0], c->in[0]->dims[1], (int)H, 1};
    while (k->cluster < CLUSTER_BLOCKS && !fits(*k, cuda)) k->cluster *= 2;
    if (!fits(*k, cuda)) return false;
    for (struct lstm_cut more = *k; more.cluster < CLUSTER_BLOCKS; *k = more) {
        more.cluster *= 2;
        bool pays = more.channels() >= LSTM_CHANNELS && more.tiles() * more.cluster <= cuda->cores;
        if (!pays || !fits(more, cuda)) break;
    }
    return true;
}

static bool scan_lstm_cluster_cuda_applicable(const struct call *c, const char **why) {
    struct lstm_cut k;
    bool fits = cut(c, &k);
    if (lstm_first(c, 0)) {
        *why = "it starts from zero";
        return false;
    }
    if (!fits) *why = "the recurrent weights are larger than the shared memory of a cluster's blocks on this device";
    return fits && lstm_products_fit(c, why);
}

/* The limit 128 is a guess, because only width 256 was measured. At width 256, with 128 sequences on an H200, both
 * passes of 16 steps take .72 ms with cuBLAS and 1.17 ms here. Of 128 steps, both passes take 6.3 ms with cuBLAS and
 * 8.6 ms here, but the forward pass 3.1 ms with cuBLAS and 2.7 ms here (results/device/perf-device.csv). Widths 128 and
 * 192 should be measured. */
static bool scan_lstm_cluster_cuda_preferred(const struct call *c) {
    return tensor_cols(c->in[1]) <= LSTM_NARROW;
}

static void scan_lstm_cluster_cuda_forward(const struct call *c, const struct exec *x) {
    struct lstm_cut k;
    cut(c, &k);
    struct lstm_sums n = forward_sums(k);
    LAUNCH_CLUSTERS(x, lstm_forward_kernel, (unsigned)k.cluster, dim3((unsigned)(k.tiles() * k.cluster)),
                    dim3((unsigned)n.threads()), n.bytes(), k, tensor_real(c->in[0]), tensor_real(c->in[1]),
                    tensor_real(c->in[2]), tensor_real(c->out[2]), tensor_real(c->out[1]), tensor_real(c->out[0]));
}

static void scan_lstm_cluster_cuda_backward(const struct call *c, const struct exec *x) {
    struct lstm_cut k;
    cut(c, &k);
    struct lstm_sums n = backward_sums(k);
    lstm_backward_of_all_steps(c, x, [&](real *dp, real *before) {
        LAUNCH_CLUSTERS(x, lstm_backward_kernel, (unsigned)k.cluster, dim3((unsigned)(k.tiles() * k.cluster)),
                        dim3((unsigned)n.threads()), n.bytes(), k, tensor_real(c->in[1]), tensor_real(c->out[2]),
                        tensor_real(c->out[1]), tensor_real(c->out[0]), call_dout(c, 0), call_dout(c, 1), dp, before);
    });
}

/* Tolerance: scan_lstm_cpu.c explains it. */
const struct kernel kernel_scan_lstm_cluster_cuda = {
    .name = "scan_lstm_cluster_cuda",
    .op = &op_scan_lstm,
    .device = DEVICE_CUDA,
    .version = 2,
    .inexact = true,
    .tolerance = 1024,
    .together = "the product of the weight's gradient sums the bias's",
    .applicable = scan_lstm_cluster_cuda_applicable,
    .preferred = scan_lstm_cluster_cuda_preferred,
    .workspace = lstm_workspace_of_all_steps,
    .forward = scan_lstm_cluster_cuda_forward,
    .backward = scan_lstm_cluster_cuda_backward,
};

/* copy_cuda.cu - the copies of copy.h on a CUDA device, one element per thread. The values are copy.c's. */
#include "kernels/lib/cuda.cuh"
#include "kernels/lib/round.h"
#include "library/copy.h"

namespace {

#define OFFSETS_SENT 128 /* numbers that one launch carries as its arguments */

/* One operand of a call, as its kernels need it. Lengths of sequences: offsets, or `length` for all. */
struct copy {
    int64_t batch, length, B, tokens, W, lead, tail, inner, across;
    const int64_t *offsets;
    int dtype;
    struct side array, state;
    struct lead_pattern before, after; /* values of lead and tail tokens */
    struct state_map first, last;
    bool shows_state;
    real *dense;
};

__device__ real fetch(const struct copy &c, const void *base, int64_t at) {
    if (c.dtype != LRNN_BF16) return ((const real *)base)[at];
    uint32_t bits = (uint32_t)((const uint16_t *)base)[at] << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return (real)value;
}

__device__ void store(const struct copy &c, void *base, int64_t at, real value) {
    if (c.dtype == LRNN_BF16)
        ((uint16_t *)base)[at] = (uint16_t)(rounded_bits((float)value, 16) >> 16);
    else
        ((real *)base)[at] = value;
}

__device__ int64_t length_of(const struct copy &c, int64_t b) {
    if (b >= c.batch) return 0;
    return c.offsets ? c.offsets[b + 1] - c.offsets[b] : c.length;
}

/* Index of element e of token t of sequence b in the caller's array. */
__device__ int64_t element_at(const struct copy &c, int64_t b, int64_t t, int64_t e) {
    int64_t row = c.offsets ? (c.offsets[b] + t) * c.array.strides[1] : b * c.array.strides[0] + t * c.array.strides[1];
    return row + e * c.array.strides[2];
}

/* Index, in the state of sequence b, of what element e of the t-th of `tokens` tokens has of it. */
__device__ int64_t state_at(const struct copy &c, const struct state_map &map, int64_t tokens, int64_t b, int64_t t,
                            int64_t e) {
    int64_t token = map.down ? tokens - 1 - t : t;
    return b * c.state.strides[0] + (token * map.step + e / map.I * map.outer + e % map.I) * c.state.strides[1];
}

__device__ real pattern_value(const struct lead_pattern &p, int64_t W, int64_t t, int64_t e) {
    if (!p.count) return 0;
    int64_t which = p.each ? t / p.each % p.count : p.which, period = p.period ? p.period : W;
    int64_t at = e % period / p.inner % p.count;
    return at >= which && at <= which + p.more ? p.on : p.off;
}

/* The first of the tokens that show the final state; below 0: there is none. */
__device__ int64_t last_token(const struct copy &c, int64_t b) {
    return c.lead + length_of(c, b) - (c.tail ? 0 : 1);
}

/* One thread per element of `dense`. */
__global__ void values_in_kernel(struct copy c) {
    await_previous();
    int64_t i = cuda_index(), e = i % c.W, t = i / c.W % c.tokens, b = i / c.W / c.tokens;
    if (b >= c.B) return;
    int64_t length = length_of(c, b), token = t - c.lead;
    real value = 0;
    if (token >= 0 && token < length)
        value = fetch(c, c.array.base, element_at(c, b, token, e));
    else if (token >= length)
        value = token < length + c.tail ? pattern_value(c.after, c.W, token - length, e) : 0;
    else if (c.shows_state && b < c.batch)
        value = t >= c.lead - c.first.idle
                    ? 0
                    : state_scaled(&c.first, fetch(c, c.state.base, state_at(c, c.first, c.lead, b, t, e)));
    else
        value = pattern_value(c.before, c.W, t, e);
    c.dense[i] = value;
}

/* One thread per element of `dense`. */
__global__ void gradient_in_kernel(struct copy c) {
    await_previous();
    int64_t i = cuda_index(), e = i % c.W, t = i / c.W % c.tokens, b = i / c.W / c.tokens;
    if (b >= c.B) return;
    int64_t token = t - c.lead, last = last_token(c, b), shown = c.tail ? c.tail : 1;
    real value = 0;
    if (c.array.base && token >= 0 && token < length_of(c, b))
        value = fetch(c, c.array.base, element_at(c, b, token, e));
    if (c.state.base && c.shows_state && b < c.batch && last >= 0 && t >= last && t < last + shown)
        value += fetch(c, c.state.base, state_at(c, c.last, c.tail, b, t - last, e));
    c.dense[i] = value;
}

/* One thread per element of `dense`. */
__global__ void tokens_out_kernel(struct copy c) {
    await_previous();
    int64_t i = cuda_index(), e = i % c.W, t = i / c.W % c.tokens, b = i / c.W / c.tokens, token = t - c.lead;
    if (b >= c.batch || token < 0 || token >= length_of(c, b)) return;
    store(c, c.array.base, element_at(c, b, token, e), c.dense[i]);
}

/* One thread per element of the final states. */
__global__ void last_state_kernel(struct copy c) {
    await_previous();
    int64_t shown = c.tail ? c.tail : 1, i = cuda_index(), e = i % c.W, t = i / c.W % shown, b = i / c.W / shown;
    if (b >= c.batch) return;
    int64_t last = last_token(c, b);
    store(c, c.state.base, state_at(c, c.last, c.tail, b, t, e),
          last < 0 ? 0 : c.dense[(b * c.tokens + last + t) * c.W + e]);
}

/* One thread per element of the gradients of the initial states. */
__global__ void first_gradient_kernel(struct copy c) {
    await_previous();
    int64_t i = cuda_index(), e = i % c.W, t = i / c.W % c.lead, b = i / c.W / c.lead;
    if (b >= c.batch || t >= c.lead - c.first.idle) return;
    store(c, c.state.base, state_at(c, c.first, c.lead, b, t, e),
          state_scaled(&c.first, c.dense[(b * c.tokens + t) * c.W + e]));
}

/* Arrays without tokens have `tokens` rows, of which `batch` are the caller's and `inner` belong to one sequence. */
__device__ int64_t row_element_at(const struct copy &c, int64_t row, int64_t e) {
    return row / c.inner * c.array.strides[0] + row % c.inner * c.array.strides[1] + e * c.across;
}

__global__ void rows_in_kernel(struct copy c) {
    await_previous();
    int64_t i = cuda_index(), e = i % c.W, row = i / c.W;
    if (row >= c.tokens) return;
    c.dense[i] = row < c.batch ? fetch(c, c.array.base, row_element_at(c, row, e)) : 0;
}

__global__ void rows_out_kernel(struct copy c) {
    await_previous();
    int64_t i = cuda_index(), e = i % c.W, row = i / c.W;
    if (row < c.batch) store(c, c.array.base, row_element_at(c, row, e), c.dense[i]);
}

struct offsets {
    int64_t at[OFFSETS_SENT];
};

__global__ void offsets_kernel(struct offsets from, int64_t n, int64_t *to) {
    await_previous();
    if ((int64_t)threadIdx.x < n) to[threadIdx.x] = from.at[threadIdx.x];
}

struct copy copy_of(const struct recorder *r, const struct operand *o, const struct side *array,
                    const struct side *state, const real *dense) {
    struct copy c = {};
    c.batch = r->call->batch, c.length = r->call->length;
    c.B = r->B, c.tokens = o->axes == AXES_TOKENS ? o->tensor->dims[1] : 0, c.W = tensor_cols(o->tensor);
    c.lead = r->lead, c.tail = r->tail;
    c.offsets = r->offsets;
    c.dtype = r->call->dtype;
    if (array) c.array = *array;
    if (state) c.state = *state;
    c.before = o->lead, c.after = o->tail;
    c.first = r->first, c.last = r->last;
    c.shows_state = o->state != NULL;
    c.dense = const_cast<real *>(dense);
    return c;
}

struct copy rows_of(const struct recorder *r, const struct operand *o, const struct side *array, const real *dense) {
    struct copy c = copy_of(r, o, array, NULL, dense);
    const struct tensor *t = o->tensor;
    c.tokens = t->rank == 1 ? 1 : tensor_rows(t);
    c.inner = t->rank == 3 ? t->dims[1] : 1;
    c.across = array->strides[t->rank - 1];
    c.batch = o->axes == AXES_SEQUENCES ? c.batch * c.inner : c.tokens;
    return c;
}

template <class Kernel> void launch(const struct recorder *r, Kernel kernel, const struct copy &c, int64_t n) {
    struct exec x = {};
    x.place = r->place;
    if (n > 0) LAUNCH(&x, kernel, cuda_blocks(n, CUDA_THREADS), dim3(CUDA_THREADS), 0, c);
}

int64_t count_of(const struct copy &c) {
    return c.B * c.tokens * c.W;
}

void values_in(const struct recorder *r, const struct operand *o, const struct side *from, const struct side *state,
               real *dense) {
    if (o->axes == AXES_TOKENS) {
        struct copy c = copy_of(r, o, from, state, dense);
        launch(r, values_in_kernel, c, count_of(c));
    } else {
        struct copy c = rows_of(r, o, from, dense);
        launch(r, rows_in_kernel, c, c.tokens * c.W);
    }
}

void gradient_in(const struct recorder *r, const struct operand *o, const struct side *from, const struct side *state,
                 real *dense) {
    struct copy c = copy_of(r, o, from, state, dense);
    launch(r, gradient_in_kernel, c, count_of(c));
}

void values_out(const struct recorder *r, const struct operand *o, const real *dense, const struct side *to,
                const struct side *state) {
    struct copy c = copy_of(r, o, to, state, dense);
    if (to->base) launch(r, tokens_out_kernel, c, count_of(c));
    if (state->base && o->state) launch(r, last_state_kernel, c, c.batch * (c.tail ? c.tail : 1) * c.W);
}

void gradient_out(const struct recorder *r, const struct operand *o, real *dense, const struct side *to,
                  const struct side *state) {
    if (o->axes != AXES_TOKENS) {
        struct copy c = rows_of(r, o, to, dense);
        launch(r, rows_out_kernel, c, c.batch * c.W);
        return;
    }
    struct copy c = copy_of(r, o, to, state, dense);
    if (to->base) launch(r, tokens_out_kernel, c, count_of(c));
    if (state->base && o->state) launch(r, first_gradient_kernel, c, c.batch * c.lead * c.W);
}

void send_offsets(const struct recorder *r) {
    struct exec x = {};
    x.place = r->place;
    for (int64_t first = 0, all = r->call->batch + 1; first < all; first += OFFSETS_SENT) {
        struct offsets some = {};
        int64_t n = all - first < OFFSETS_SENT ? all - first : OFFSETS_SENT;
        memcpy(some.at, r->call->offsets + first, (size_t)n * sizeof *some.at);
        LAUNCH(&x, offsets_kernel, dim3(1), dim3(OFFSETS_SENT), 0, some, n, r->offsets + first);
    }
}

} // namespace

extern "C" const struct copier copier_cuda = {
    .values_in = values_in,
    .gradient_in = gradient_in,
    .values_out = values_out,
    .gradient_out = gradient_out,
    .send_offsets = send_offsets,
};

/* call.c - one call of an op on arrays of the caller: checks, workspace, kernel. See library.h. */
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/graph_plan.h"
#include "core/place_stream.h"
#include "kernels/kernel.h"
#include "kernels/lib/gemm.h"
#include "library/device.h"

#define WORKSPACE_ALIGN 64
#define MAX_DESCRIPTOR  2048 /* bytes; twice the largest descriptor of this version */

static _Thread_local char last_error[1024];

const char *lrnn_last_error(void) {
    return last_error;
}

static lrnn_status refuse(lrnn_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
static lrnn_status refuse(lrnn_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(last_error, sizeof last_error, format, args);
    va_end(args);
    return status;
}

/* --- the arrays of the caller ------------------------------------------------------------------------------------- */

static size_t dtype_bytes(int32_t dtype) {
    return dtype == LRNN_BF16 ? 2 : dtype == LRNN_F32 ? 4 : 8;
}

/* Returns the number of axes of the caller's array, and their extents in dims[3]. */
static int array_dims(const struct recorder *r, const struct operand *o, int64_t *dims) {
    const struct lrnn_call *call = r->call;
    int rank = o->tensor->rank;
    for (int i = 0; i < rank; i++) dims[i] = o->tensor->dims[i];
    if (o->axes != AXES_SHARED) dims[0] = call->batch;
    if (o->axes == AXES_TOKENS) {
        dims[1] = call->length;
        if (call->offsets) dims[0] = 1; /* one row of tokens */
    }
    return rank;
}

/* An array that this call reads or writes. */
struct use {
    const struct operand *operand;
    bool gradient, written;
    struct side side;
    const char *low, *high; /* the bytes from its first to its last element */
};

/* Fills in strides and bytes. LRNN_BAD_ARGUMENT: not aligned, too large, or written although two elements coincide. */
static lrnn_status place_use(const struct library_op *op, const struct recorder *r, struct use *u) {
    const struct operand *o = u->operand;
    const lrnn_array *a = o->array;
    const char *part = u->gradient ? "grad" : "data";
    const int64_t *given = u->gradient ? a->grad_strides : a->strides;
    size_t bytes = dtype_bytes(r->call->dtype);
    int64_t dims[TENSOR_MAX_RANK], dense = 1;
    int rank = array_dims(r, o, dims);
    bool unset = true;
    u->side.base = u->gradient ? a->grad : a->data;
    for (int i = 0; i < rank; i++) unset = unset && given[i] == 0;
    for (int i = rank - 1; i >= 0; i--) {
        u->side.strides[i] = unset ? dense : given[i];
        dense *= dims[i] > 0 ? dims[i] : 1;
    }
    if ((uintptr_t)u->side.base % bytes)
        return refuse(LRNN_BAD_ARGUMENT, "%s: %s.%s is not aligned to its elements of %zu bytes", op->name, o->name,
                      part, bytes);
    int64_t low = 0, high = 0, step[TENSOR_MAX_RANK] = {0};
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        step[i] = u->side.strides[i];
        if (dims[i] < 1) empty = true;
        if (fabs((double)step[i]) * (double)dims[i] > 0x1p58)
            return refuse(LRNN_BAD_ARGUMENT, "%s: the stride %" PRId64 " of %s.%s spans more than memory has", op->name,
                          step[i], o->name, part);
        if (step[i] < 0)
            low += step[i] * (dims[i] - 1);
        else
            high += step[i] * (dims[i] - 1);
    }
    /* No two elements coincide if each stride is longer than the span of all smaller strides. */
    for (int i = 0; i < rank && u->written && !empty; i++) {
        int64_t inner = 0, own = llabs(step[i]);
        for (int j = 0; j < rank; j++)
            if (j != i && (llabs(step[j]) < own || (llabs(step[j]) == own && j > i)))
                inner += llabs(step[j]) * (dims[j] - 1);
        if (dims[i] > 1 && own <= inner)
            return refuse(LRNN_BAD_ARGUMENT,
                          "%s: %s.%s is written, and its stride %" PRId64 " of axis %d lets elements overlap", op->name,
                          o->name, part, step[i], i);
    }
    u->low = (const char *)u->side.base + low * (int64_t)bytes;
    u->high = empty ? u->low : (const char *)u->side.base + (high + 1) * (int64_t)bytes;
    return LRNN_OK;
}

/* --- one call ----------------------------------------------------------------------------------------------------- */

#define MAX_USES (2 * MAX_OPERANDS)

struct job {
    _Alignas(16) char descriptor[MAX_DESCRIPTOR];
    struct recorder recorder;
    struct cuda_device *device; /* NULL: the CPU */
    struct graph graph;
    _Alignas(ARENA_ALIGN) char host[16384]; /* the graph's memory: one call and its tensors */
    struct call *call;
    struct use uses[MAX_USES];
    int n_uses;
    bool copies;     /* tokens go through dense copies: there are lead or tail tokens, or padding */
    bool lacks;      /* backward needs values that the outputs lack: at lead or tail tokens, or states */
    bool recomputes; /* lacks, and the values were not kept */
};

/* The head of the array `kept`, which describes the values after it. It has no padding, so that heads compare as
 * bytes. */
struct kept {
    _Alignas(WORKSPACE_ALIGN) char op[32];
    int64_t dtype;
    uint64_t given; /* a bit per input: whether it is present */
    uint64_t bytes; /* of the whole array */
    uint64_t sizes; /* XXH3 of the op's sizes, of B, T, lead and tail tokens, and of the offsets */
};
_Static_assert(sizeof(struct kept) == WORKSPACE_ALIGN, "a gap in struct kept");

/* Whether the outputs are kept too, because they have more tokens or more bits than the caller's arrays. */
static bool keeps_outputs(const struct job *j) {
    const struct recorder *r = &j->recorder;
    return j->lacks && r->kept && (r->lead || r->tail || r->call->dtype == LRNN_BF16);
}

static const struct use *use_of(const struct job *j, const struct operand *o, bool gradient) {
    for (int i = 0; i < j->n_uses; i++)
        if (j->uses[i].operand == o && j->uses[i].gradient == gradient) return &j->uses[i];
    return NULL;
}

static lrnn_status check_call(const struct library_op *op, const lrnn_call *d, lrnn_pass pass) {
    if (pass != LRNN_FORWARD && pass != LRNN_BACKWARD)
        return refuse(LRNN_BAD_ARGUMENT, "%s: pass=%d, expected LRNN_FORWARD, LRNN_BACKWARD or LRNN_KEPT", op->name,
                      (int)pass);
    if (d->dtype < LRNN_F32 || d->dtype > LRNN_F64)
        return refuse(LRNN_BAD_ARGUMENT, "%s: dtype=%d, expected LRNN_F32, LRNN_BF16 or LRNN_F64", op->name,
                      (int)d->dtype);
    if ((d->dtype == LRNN_F64) != REAL_IS_DOUBLE)
        return refuse(LRNN_UNSUPPORTED, "%s: dtype %s belongs to %s", op->name,
                      d->dtype == LRNN_F64    ? "LRNN_F64"
                      : d->dtype == LRNN_BF16 ? "LRNN_BF16"
                                              : "LRNN_F32",
                      REAL_IS_DOUBLE ? "liblrnn.so" : "liblrnn-f64.so");
    if (d->device != LRNN_CPU && d->device != LRNN_CUDA)
        return refuse(LRNN_BAD_ARGUMENT, "%s: device=%d, expected LRNN_CPU or LRNN_CUDA", op->name, (int)d->device);
    if (d->reserved[0] || d->reserved[1])
        return refuse(LRNN_UNSUPPORTED, "%s: call.reserved is set, by a later version; this is version %s", op->name,
                      lrnn_version());
    if (d->threads < 0 || d->threads > 4096)
        return refuse(LRNN_BAD_ARGUMENT, "%s: threads=%d, expected 0 to 4096", op->name, (int)d->threads);
    if (d->batch < 0 || d->length < 0 || d->batch > INT32_MAX || d->length > INT32_MAX)
        return refuse(LRNN_BAD_ARGUMENT, "%s: batch=%" PRId64 " and length=%" PRId64 ", expected 0 to %d", op->name,
                      d->batch, d->length, INT32_MAX);
    if (!d->offsets) return LRNN_OK;
    if (!op->varying)
        return refuse(LRNN_UNSUPPORTED, "%s: offsets are given, and its sequences all have the length of the call",
                      op->name);
    for (int64_t b = 0; b <= d->batch; b++)
        if (d->offsets[b] < (b ? d->offsets[b - 1] : 0) || (b == 0 && d->offsets[0] != 0))
            return refuse(LRNN_BAD_ARGUMENT,
                          "%s: offsets[%" PRId64 "]=%" PRId64 ", expected numbers from 0 that do not fall", op->name, b,
                          d->offsets[b]);
    if (d->offsets[d->batch] != d->length)
        return refuse(LRNN_BAD_ARGUMENT, "%s: offsets end at %" PRId64 ", and length is %" PRId64 "; they must agree",
                      op->name, d->offsets[d->batch], d->length);
    return LRNN_OK;
}

/* Copies the caller's descriptor, which may be of an earlier or a later version. */
static lrnn_status take_descriptor(const struct library_op *op, const lrnn_call *d, struct job *j) {
    if (!d) return refuse(LRNN_BAD_ARGUMENT, "%s: the descriptor is NULL", op->name);
    if (d->size < op->first_size || d->size > MAX_DESCRIPTOR)
        return refuse(LRNN_BAD_ARGUMENT, "%s: call.size=%zu, expected sizeof(lrnn_%s), %zu", op->name, d->size,
                      op->name, op->size);
    memset(j->descriptor, 0, sizeof j->descriptor);
    memcpy(j->descriptor, d, d->size);
    for (size_t i = op->size; i < d->size; i++)
        if (j->descriptor[i])
            return refuse(LRNN_UNSUPPORTED,
                          "%s: the descriptor is of a later version and sets a field at byte %zu; this is "
                          "version %s",
                          op->name, i, lrnn_version());
    return LRNN_OK;
}

static void want(struct job *j, const struct operand *o, bool gradient, bool written) {
    j->uses[j->n_uses++] = (struct use){.operand = o, .gradient = gradient, .written = written};
}

static lrnn_status missing(const struct library_op *op, const struct operand *o, const char *part) {
    return refuse(LRNN_BAD_ARGUMENT, "%s: %s.%s is NULL, and this pass needs it", op->name, o->name, part);
}

/* Whether an array has no elements, so that its address may be NULL. */
static bool is_empty(const struct recorder *r, const struct operand *o) {
    int64_t dims[TENSOR_MAX_RANK], count = 1;
    for (int i = array_dims(r, o, dims) - 1; i >= 0; i--) count *= dims[i];
    return count == 0;
}

/* Lists the arrays of the pass. */
static lrnn_status list_uses(const struct library_op *op, struct job *j) {
    struct recorder *r = &j->recorder;
    bool backward = r->pass == LRNN_BACKWARD, any_gradient = r->call->batch == 0 || r->call->length == 0;
    int outputs = 0;
    for (int i = 0; i < r->n; i++) outputs += r->operands[i].role == ARRAY_OUT;
    bool shown = !r->lead && !r->tail && outputs == j->call->n_out;
    j->lacks = !shown && j->call->op->needs_out;
    j->recomputes = backward && j->lacks && !r->kept;
    int in = -1, out = -1;
    for (struct operand *o = r->operands; o < r->operands + r->n; o++) {
        if (!o->tensor) continue;
        bool is_in = o->role == ARRAY_IN, is_out = o->role == ARRAY_OUT;
        if (is_in)
            for (in = 0; j->call->in[in] != o->tensor;) in++;
        if (is_out) out++;
        bool reads = o->role == ARRAY_FIRST_STATE ||
                     (is_in && (!backward || j->recomputes || (j->call->op->needs_in >> in & 1))) ||
                     (is_out && backward && !j->recomputes && !keeps_outputs(j) && (j->call->op->needs_out >> out & 1));
        bool writes = !backward && (is_out || o->role == ARRAY_LAST_STATE);
        if (reads || writes) {
            if (!o->array->data && !is_empty(r, o)) return missing(op, o, "data");
            want(j, o, false, writes);
        }
        if (!backward || !o->array->grad) continue;
        any_gradient = any_gradient || is_out || o->role == ARRAY_LAST_STATE;
        want(j, o, true, is_in || o->role == ARRAY_FIRST_STATE);
    }
    if (backward && !any_gradient)
        return refuse(LRNN_BAD_ARGUMENT, "%s: no output has a gradient; set grad of at least one", op->name);
    for (int i = 0; i < j->n_uses; i++) {
        lrnn_status status = place_use(op, r, &j->uses[i]);
        if (status != LRNN_OK) return status;
    }
    for (int i = 0; i < j->n_uses; i++)
        for (int k = 0; k < j->n_uses; k++) {
            const struct use *a = &j->uses[i], *b = &j->uses[k];
            if (i == k || !a->written || a->low >= b->high || b->low >= a->high) continue;
            return refuse(LRNN_BAD_ARGUMENT, "%s: %s.%s is written and overlaps %s.%s in memory", op->name,
                          a->operand->name, a->gradient ? "grad" : "data", b->operand->name,
                          b->gradient ? "grad" : "data");
        }
    return LRNN_OK;
}

static lrnn_status find_device(const struct library_op *op, const lrnn_call *d, struct job *j) {
    struct error e;
    j->device = NULL;
    if (d->device == LRNN_CPU) return LRNN_OK;
    enum status status = device_of(d, &j->device, &e);
    if (status == ST_OK) return LRNN_OK;
    return refuse(status == ST_USAGE ? LRNN_UNSUPPORTED : LRNN_DEVICE_FAILED,
                  "%s: the arrays are in CUDA memory, and %s", op->name, e.text);
}

/* The library of matrix products is started by the first call. */
static pthread_once_t products = PTHREAD_ONCE_INIT;

/* Checks the descriptor, and records the call of the op. */
static lrnn_status prepare(const struct library_op *op, const lrnn_call *d, lrnn_pass pass, struct job *j) {
    lrnn_status status = take_descriptor(op, d, j);
    if (status == LRNN_OK) status = check_call(op, d, pass);
    if (status == LRNN_OK) status = find_device(op, d, j);
    if (status != LRNN_OK) return status;
    pthread_once(&products, gemm_init);
    struct recorder *r = &j->recorder;
    *r = (struct recorder){.graph = &j->graph, .call = (const lrnn_call *)(const void *)j->descriptor, .pass = pass};
    r->kept = r->call->kept;
    r->place = j->device ? &j->device->place : NULL;
    r->B = r->call->batch > 0 ? r->call->batch : 1; /* ops have no empty shapes: use one, drop its result */
    r->T = r->call->length;
    if (r->call->offsets) {
        r->T = 0;
        for (int64_t b = 0; b < r->call->batch; b++) {
            int64_t length = r->call->offsets[b + 1] - r->call->offsets[b];
            if (length > r->T) r->T = length;
        }
    }
    if (r->T == 0) r->T = 1;
    memset(j->host, 0, sizeof j->host);
    j->graph =
        (struct graph){.options = {.kernels = kernel_list(), .training = true, .place = r->place}, .calls_capacity = 1};
    j->graph.host = (struct arena){.base = j->host, .size = sizeof j->host};
    j->graph.tensors_capacity = 2 * MAX_OPERANDS;
    j->graph.calls = arena_alloc(&j->graph.host, sizeof *j->graph.calls);
    j->graph.tensors = arena_alloc(&j->graph.host, (size_t)j->graph.tensors_capacity * sizeof *j->graph.tensors);
    op->record(r, j->descriptor);
    struct error e;
    if (graph_status(&j->graph, &e) != ST_OK) return refuse(LRNN_BAD_ARGUMENT, "%s: %s", op->name, e.text);
    j->call = &j->graph.calls[0];
    const char *why = "";
    j->call->kernel = graph_kernel_unasked(&j->graph, j->call, &why);
    if (!j->call->kernel) return refuse(LRNN_UNSUPPORTED, "%s: no kernel takes this call: %s", op->name, why);
    j->n_uses = 0;
    j->copies = r->lead || r->tail || r->call->offsets || r->call->length == 0 || r->call->batch == 0;
    return list_uses(op, j);
}

/* Workspace, taken in the same order when it is measured (base NULL) and when it is used. `clears`: the gaps between
 * its arrays become zeros, so that equal values are equal bytes. */
struct cursor {
    char *base;
    size_t used;
    bool clears;
};

static void *take(struct cursor *c, size_t bytes) {
    size_t at = c->used;
    c->used += (bytes + WORKSPACE_ALIGN - 1) / WORKSPACE_ALIGN * WORKSPACE_ALIGN;
    if (c->base && c->clears) memset(c->base + at + bytes, 0, c->used - at - bytes);
    return c->base ? c->base + at : NULL;
}

static struct side side_of(const struct use *u) {
    return u ? u->side : (struct side){0};
}

/* Finds the state that an operand shows, its values or its gradient; base NULL: it shows none, or the call has not got
 * it. */
static struct side state_side(const struct job *j, const struct operand *o, bool gradient) {
    const struct operand *state = j->recorder.operands, *end = state + j->recorder.n;
    for (; state < end && o->state; state++)
        if (strcmp(state->name, o->state) == 0) return side_of(use_of(j, state, gradient));
    return (struct side){0};
}

/* Whether the kernel can use the caller's array without a copy. */
static bool usable(const struct job *j, const struct use *u) {
    const struct operand *o = u->operand;
    int64_t dims[TENSOR_MAX_RANK], dense = 1;
    if (j->recorder.call->dtype == LRNN_BF16 || (j->copies && o->axes != AXES_SHARED)) return false;
    if (j->device && (uintptr_t)u->side.base % WORKSPACE_ALIGN) return false; /* kernels there load several values */
    /* The last state's gradient is added to the output's gradient, which belongs to the caller and must not change. */
    if (u->gradient && o->role == ARRAY_OUT && state_side(j, o, true).base) return false;
    for (int i = array_dims(&j->recorder, o, dims) - 1; i >= 0; i--) {
        if (dims[i] > 1 && u->side.strides[i] != dense) return false;
        dense *= dims[i];
    }
    return true;
}

/* Binds values or the gradient of a tensor to the caller's array, or to a copy in the workspace or in `kept`. */
static void *bind(const struct job *j, const struct operand *o, bool gradient, struct cursor *c, struct cursor *kept) {
    const struct use *u = use_of(j, o, gradient);
    if (o->role == ARRAY_OUT && !gradient && keeps_outputs(j))
        return take(kept, (size_t)tensor_count(o->tensor) * sizeof(real));
    if (u && usable(j, u)) return u->side.base;
    return take(c, (size_t)tensor_count(o->tensor) * sizeof(real));
}

/* Binds all tensors to the caller's arrays, the workspace c and `kept`. Only measures c and `kept` if their base is
 * NULL. */
static void bind_all(struct job *j, struct cursor *c, struct cursor *kept) {
    struct recorder *r = &j->recorder;
    bool backward = r->pass == LRNN_BACKWARD;
    struct call *call = j->call;
    int out = 0;
    if (j->device && r->call->offsets) r->offsets = take(c, (size_t)(r->call->batch + 1) * sizeof *r->offsets);
    for (struct operand *o = r->operands; o < r->operands + r->n; o++) {
        struct tensor *t = o->tensor;
        if (!t || o->role == ARRAY_FIRST_STATE || o->role == ARRAY_LAST_STATE) continue;
        bool is_out = o->role == ARRAY_OUT;
        out += is_out;
        if (use_of(j, o, false) || (is_out && (j->recomputes || keeps_outputs(j))))
            t->data = bind(j, o, false, c, kept);
        if (!backward) continue;
        if (is_out) {
            bool last = state_side(j, o, true).base;
            /* Output 0 has a gradient in every backward pass. */
            if (o->array->grad || last || t == call->out[0]) t->grad = bind(j, o, true, c, kept);
        } else if (o->array->grad || state_side(j, o, true).base) {
            for (int i = 0; i < call->n_in; i++)
                if (call->in[i] == t) call->din[i] = bind(j, o, true, c, kept);
        }
    }
    /* Outputs that are not in the public interface: states that a kernel stores for its gradient. */
    for (int i = out; i < call->n_out && (!backward || j->lacks); i++)
        call->out[i]->data = take(j->lacks && r->kept ? kept : c, tensor_bytes(call->out[i]));
    for (int pass = 0; pass <= (int)r->pass; pass++) {
        if (pass != (int)r->pass && !j->recomputes) continue;
        size_t bytes = call->kernel->workspace ? call->kernel->workspace(call, (enum pass)pass) : 0;
        call->scratch_bytes[pass] = bytes;
        call->scratch[pass] = bytes ? take(c, bytes) : NULL;
    }
}

lrnn_status library_workspace(const struct library_op *op, const lrnn_call *d, lrnn_pass pass, size_t *bytes) {
    struct job j;
    if (!bytes) return refuse(LRNN_BAD_ARGUMENT, "%s: bytes is NULL", op->name);
    lrnn_status status = prepare(op, d, pass == LRNN_KEPT ? LRNN_FORWARD : pass, &j);
    if (status != LRNN_OK) return status;
    struct cursor c = {0}, kept = {.used = sizeof(struct kept)};
    if (pass == LRNN_KEPT) j.recorder.kept = true;
    bind_all(&j, &c, &kept);
    *bytes = pass != LRNN_KEPT ? c.used : j.lacks ? kept.used : 0;
    return LRNN_OK;
}

static bool is_copy(const struct job *j, const struct operand *o, bool gradient) {
    const struct use *u = use_of(j, o, gradient);
    return !u || !usable(j, u);
}

static void compute(struct job *j) {
    struct recorder *r = &j->recorder;
    struct call *call = j->call;
    bool backward = r->pass == LRNN_BACKWARD;
    const struct copier *copier = j->device ? j->device->copier : &copier_cpu;
    struct exec x = {.place = r->place, .training = true};
    const struct operand *end = r->operands + r->n;
    if (r->offsets) copier->send_offsets(r);
    for (const struct operand *o = r->operands; o < end; o++) {
        if (!o->tensor || o->role == ARRAY_FIRST_STATE || o->role == ARRAY_LAST_STATE) continue;
        struct side values = side_of(use_of(j, o, false)), gradient = side_of(use_of(j, o, true));
        struct side state_values = state_side(j, o, false), state_gradient = state_side(j, o, true);
        bool reads = o->role == ARRAY_IN || (backward && !j->recomputes && !keeps_outputs(j));
        if (o->tensor->data && reads && is_copy(j, o, false))
            copier->values_in(r, o, &values, &state_values, o->tensor->data);
        if (o->role == ARRAY_OUT && o->tensor->grad && is_copy(j, o, true))
            copier->gradient_in(r, o, &gradient, &state_gradient, o->tensor->grad);
    }
    if (!backward || j->recomputes) call->kernel->forward(call, &x);
    if (backward) call->kernel->backward(call, &x);
    for (const struct operand *o = r->operands; o < end; o++) {
        if (!o->tensor || o->role == ARRAY_FIRST_STATE || o->role == ARRAY_LAST_STATE) continue;
        struct side to = side_of(use_of(j, o, backward)), state = state_side(j, o, backward);
        if (!backward && o->role == ARRAY_OUT && (is_copy(j, o, false) || o->state))
            copier->values_out(r, o, o->tensor->data, is_copy(j, o, false) ? &to : &(struct side){0}, &state);
        for (int i = 0; i < call->n_in && backward; i++)
            if (call->in[i] == o->tensor && call->din[i] && is_copy(j, o, true))
                copier->gradient_out(r, o, call->din[i], &to, &state);
    }
}

/* Whether the call has no sequence, and so nothing to write: gradients of shared arrays are zero even then. */
static bool is_idle(const struct job *j) {
    bool shares = false;
    for (int i = 0; i < j->recorder.n; i++) shares = shares || j->recorder.operands[i].axes == AXES_SHARED;
    return j->recorder.call->batch == 0 && !shares;
}

static lrnn_status compute_here(struct job *j) {
    int asked = j->recorder.call->threads, threads = omp_get_max_threads();
    if (asked) omp_set_num_threads(asked);
    compute(j);
    if (asked) omp_set_num_threads(threads);
    return LRNN_OK;
}

/* Computes on the device; with `copy`, only copies bytes from the device, after all work that was queued before. */
static lrnn_status do_there(const struct library_op *op, struct job *j, void *copy, const void *from, size_t bytes) {
    struct error e;
    pthread_mutex_lock(&j->device->busy);
    int before = place_enter(&j->device->place);
    if (copy)
        place_get(&j->device->place, copy, from, bytes);
    else
        compute(j);
    enum status status = place_leave(&j->device->place, before, &e);
    pthread_mutex_unlock(&j->device->busy);
    return status == ST_OK ? LRNN_OK : refuse(LRNN_DEVICE_FAILED, "%s: %s", op->name, e.text);
}

/* Returns the head that a call with this descriptor writes. An op's own sizes are before its first array. */
static struct kept head_of(const struct library_op *op, const struct job *j, size_t bytes) {
    const struct recorder *r = &j->recorder;
    const lrnn_call *call = r->call;
    struct kept head = {.dtype = call->dtype, .bytes = bytes};
    const char *sizes = j->descriptor + sizeof *call, *end = j->descriptor + op->size;
    snprintf(head.op, sizeof head.op, "%s", op->name);
    for (int i = 0; i < r->n; i++) {
        const char *array = (const char *)r->operands[i].array;
        if (array < end) end = array;
        if (r->operands[i].role == ARRAY_IN) head.given = head.given << 1 | (r->operands[i].tensor != NULL);
    }
    int64_t shape[] = {call->batch, call->length, r->lead, r->tail};
    head.sizes = XXH3_64bits_withSeed(shape, sizeof shape, XXH3_64bits(sizes, (size_t)(end - sizes)));
    if (call->offsets)
        head.sizes = XXH3_64bits_withSeed(call->offsets, (size_t)(call->batch + 1) * sizeof *call->offsets, head.sizes);
    return head;
}

/* Checks the array `kept` of `bytes` bytes, with a workspace of `room` bytes. A forward pass writes its head, a
 * backward pass compares it. */
static lrnn_status check_kept(const struct library_op *op, const struct job *j, size_t bytes, size_t room) {
    const struct recorder *r = &j->recorder;
    const lrnn_call *call = r->call;
    if (!j->lacks || !r->kept) return LRNN_OK;
    const char *low = call->kept, *high = low + bytes, *workspace = call->workspace;
    if (call->kept_bytes < bytes || (uintptr_t)call->kept % WORKSPACE_ALIGN)
        return refuse(LRNN_NO_WORKSPACE, "%s: kept has %zu bytes, expected %zu, aligned to %d", op->name,
                      call->kept_bytes, bytes, WORKSPACE_ALIGN);
    for (int i = 0; i < j->n_uses; i++)
        if (j->uses[i].low < high && low < j->uses[i].high)
            return refuse(LRNN_BAD_ARGUMENT, "%s: kept overlaps %s in memory", op->name, j->uses[i].operand->name);
    if (room > 0 && workspace < high && low < workspace + room)
        return refuse(LRNN_BAD_ARGUMENT, "%s: kept overlaps the workspace in memory", op->name);
    struct kept head = head_of(op, j, bytes);
    if (j->device) return LRNN_OK; /* to compare heads would wait for the device */
    if (r->pass == LRNN_FORWARD)
        memcpy(call->kept, &head, sizeof head);
    else if (memcmp(call->kept, &head, sizeof head) != 0)
        return refuse(LRNN_BAD_ARGUMENT, "%s: kept was not written by a forward pass with this descriptor", op->name);
    return LRNN_OK;
}

/* Checks the op's whole numbers. On a device it waits for the stream to read them, and only in a forward pass. */
static lrnn_status check_numbers(const struct library_op *op, struct job *j) {
    const struct recorder *r = &j->recorder;
    size_t bytes = (size_t)(r->call->batch * r->numbers_width) * sizeof *r->numbers;
    if (!r->numbers || bytes == 0 || (j->device && r->pass == LRNN_BACKWARD)) return LRNN_OK;
    const int32_t *rows = r->numbers;
    int32_t *copy = j->device ? malloc(bytes) : NULL;
    if (j->device && !copy) return refuse(LRNN_DEVICE_FAILED, "%s: no memory for %zu bytes", op->name, bytes);
    lrnn_status status = LRNN_OK;
    struct error e;
    if (j->device) {
        status = do_there(op, j, copy, rows, bytes);
        rows = copy;
    }
    for (int64_t b = 0; b < r->call->batch && status == LRNN_OK; b++)
        if (!r->numbers_fit(r, rows + b * r->numbers_width, &e))
            status = refuse(LRNN_BAD_ARGUMENT, "%s: links of sequence %" PRId64 ": %s", op->name, b, e.text);
    free(copy);
    return status;
}

lrnn_status library_run(const struct library_op *op, const lrnn_call *d, lrnn_pass pass) {
    struct job j;
    lrnn_status status = prepare(op, d, pass, &j);
    if (status != LRNN_OK) return status;
    struct cursor measured = {0}, kept = {.used = sizeof(struct kept)};
    bind_all(&j, &measured, &kept);
    const lrnn_call *call = j.recorder.call;
    if (measured.used > 0 && !call->workspace)
        return refuse(LRNN_NO_WORKSPACE, "%s: this pass needs a workspace of %zu bytes, and there is none", op->name,
                      measured.used);
    if (measured.used > call->workspace_bytes)
        return refuse(LRNN_NO_WORKSPACE, "%s: the workspace has %zu bytes, and this pass needs %zu", op->name,
                      call->workspace_bytes, measured.used);
    if ((uintptr_t)call->workspace % WORKSPACE_ALIGN)
        return refuse(LRNN_NO_WORKSPACE, "%s: the workspace is not aligned to %d bytes", op->name, WORKSPACE_ALIGN);
    struct cursor c = {.base = call->workspace};
    for (int i = 0; i < j.n_uses && measured.used > 0; i++)
        if (j.uses[i].low < c.base + measured.used && c.base < j.uses[i].high)
            return refuse(LRNN_BAD_ARGUMENT, "%s: the workspace overlaps %s in memory", op->name,
                          j.uses[i].operand->name);
    status = check_numbers(op, &j);
    if (status == LRNN_OK) status = check_kept(op, &j, kept.used, measured.used);
    if (status != LRNN_OK) return status;
    kept =
        (struct cursor){.base = call->kept, .used = sizeof(struct kept), .clears = pass == LRNN_FORWARD && !j.device};
    bind_all(&j, &c, &kept);
    if (is_idle(&j)) return LRNN_OK;
    return j.device ? do_there(op, &j, NULL, NULL, 0) : compute_here(&j);
}

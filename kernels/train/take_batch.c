/* take_batch.c - takes the batch of a step from a split that is in memory as a whole: the op and its reference.
 *
 *   at = step B + b;  y[b] = x[order of epoch at / period (at % period)], an empty row where at % period >= n
 * The order is permute_index (core/philox.h). The op is for devices, where a whole step, with its data, is captured
 * once. */
#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/train/take_batch.h"
#include "kernels/train/train.h"

#include <inttypes.h>

void take_batch(struct graph *g, const struct batch_tensors *split, const struct batch_tensors *batch,
                const struct take_batch_attr *attr) {
    struct tensor *in[] = {split->input, split->targets, split->lengths, split->links,
                           batch->input, batch->targets, batch->lengths, batch->links};
    graph_call(g, &op_take_batch, attr, sizeof *attr, in, 2 * TAKE_ARRAYS);
}

static void take_batch_infer(struct graph *g, struct call *c) {
    const struct take_batch_attr *a = take_batch_attr(c);
    const struct tensor *const *x = (const struct tensor *const *)c->in, *const *y = x + TAKE_ARRAYS;
    if (!x[TAKE_INPUT] || !x[TAKE_TARGETS] || !y[TAKE_INPUT] || !y[TAKE_TARGETS]) {
        if (g->error.status == ST_OK) graph_fail(g, ST_FAIL, "take_batch: input or targets are missing");
        return;
    }
    if (a->period < x[TAKE_INPUT]->dims[0]) {
        graph_fail(g, ST_FAIL, "take_batch: a period of %" PRId64 " leaves out some of %" PRId64 " examples", a->period,
                   x[TAKE_INPUT]->dims[0]);
        return;
    }
    for (int i = 0; i < TAKE_ARRAYS; i++) {
        if (!x[i] != !y[i]) {
            graph_fail(g, ST_FAIL, "take_batch: the split and the batch do not both have array %d", i);
            return;
        }
        if (!x[i]) continue;
        if (x[i]->dtype == y[i]->dtype && (i == TAKE_INPUT || x[i]->dtype == DT_I32) &&
            x[i]->dims[0] == x[0]->dims[0] && y[i]->dims[0] == y[0]->dims[0] &&
            take_batch_words(x[i]) == take_batch_words(y[i]))
            continue;
        graph_fail(g, ST_FAIL,
                   "take_batch: array %d has %" PRId64 " elements in a split of %" PRId64 " and %" PRId64
                   " in a batch of %" PRId64,
                   i, tensor_count(x[i]), x[0]->dims[0], tensor_count(y[i]), y[0]->dims[0]);
        return;
    }
}

/* Bytes: the batch read and written. */
static struct cost take_batch_cost(const struct call *c, enum pass pass) {
    double bytes = 0;
    for (int i = 0; i < TAKE_ARRAYS; i++)
        if (pass == PASS_FORWARD && c->in[TAKE_ARRAYS + i]) bytes += (double)tensor_bytes(c->in[TAKE_ARRAYS + i]);
    return (struct cost){0, 2 * bytes};
}

static struct tensor *example_ids(struct graph *g, const char *name, int64_t rows, int64_t columns) {
    return graph_input_ids(g, name, 2, (int64_t[]){rows, columns}, 1000, true);
}

/* T ids per example, or 2 T values. */
static struct tensor *example_input(struct graph *g, const char *name, bool values, int64_t rows, int64_t T) {
    if (values) return graph_input(g, name, 3, (int64_t[]){rows, T, 2}, false);
    return example_ids(g, name, rows, T);
}

/* Variants: an epoch whose last batch has empty rows, without and with lengths; one label per example; an epoch that
 * ends within a batch, which the next epoch fills; values; links. A batch may have more rows than there are
 * examples. */
static bool take_batch_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 5) return false;
    int64_t n = s->examples, B = s->batch, T = s->length, labels = s->variant == 2 ? 1 : T;
    bool lengths = s->variant > 0, values = s->variant == 4, links = s->variant == 5;
    struct batch_tensors split = {example_input(g, "input", values, n, T), example_ids(g, "targets", n, labels),
                                  lengths ? example_ids(g, "lengths", n, 1) : NULL,
                                  links ? example_ids(g, "links", n, 2 * T + 3) : NULL};
    struct batch_tensors batch = {example_input(g, "batch_input", values, B, T),
                                  example_ids(g, "batch_targets", B, labels),
                                  lengths ? example_ids(g, "batch_lengths", B, 1) : NULL,
                                  links ? example_ids(g, "batch_links", B, 2 * T + 3) : NULL};
    struct take_batch_attr attr = {.seed = 77, .period = s->variant == 3 ? n : (n + B - 1) / B * B};
    take_batch(g, &split, &batch, &attr);
    return true;
}

const struct op op_take_batch = {
    .name = "take_batch",
    .maths = "y[b] = x[order of the epoch of row step B + b]",
    .source = "",
    .no_grad_in = 255,
    .mutates = 15u << TAKE_ARRAYS,
    .infer = take_batch_infer,
    .cost = take_batch_cost,
    .sizes = "batch length examples",
    .build = take_batch_build,
};

static void take_batch_ref_forward(const struct call *c, const struct exec *exec) {
    int64_t n = c->in[0]->dims[0], B = c->in[TAKE_ARRAYS]->dims[0];
    for (int64_t b = 0; b < B; b++) {
        int64_t example = take_batch_example(take_batch_attr(c), exec->state->step, B, b, n);
        for (int i = 0; i < TAKE_ARRAYS; i++) {
            if (!c->in[i]) continue;
            int64_t columns = take_batch_words(c->in[i]);
            const int32_t *x = tensor_i32(c->in[i]);
            int32_t *y = tensor_i32(c->in[TAKE_ARRAYS + i]) + b * columns;
            for (int64_t k = 0; k < columns; k++) y[k] = example < 0 ? take_batch_empty(i) : x[example * columns + k];
        }
    }
}

const struct kernel kernel_take_batch_ref = {
    .name = "take_batch_ref",
    .op = &op_take_batch,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = take_batch_ref_forward,
};

/* fixed_links.c - the same links in every sequence: the op and its CPU kernel, which copies.
 *
 *   links_b = words, without the edges that lead to a position >= lengths[b]
 * Pairs need no change: pairs of an absent edge have no effect. */
#include "kernels/lib/infer.h"
#include "kernels/links/links_call.h"

#include <inttypes.h>
#include <string.h>

struct links fixed_links(struct graph *g, struct tensor *x, struct tensor *lengths, const int32_t *words,
                         struct links_size size) {
    struct fixed_links_attr attr = {.size = size, .words = words};
    struct links links = {.size = size};
    links.words = call1(g, &op_fixed_links, &attr, sizeof attr, (struct tensor *[]){x, lengths}, 2);
    return links;
}

static void fixed_links_infer(struct graph *g, struct call *c) {
    const struct fixed_links_attr *a = fixed_links_attr(c);
    if (!infer_present(g, c, 1)) return;
    const struct tensor *x = c->in[0], *lengths = c->in[1];
    if (x->rank != 3 || a->size.edges < 1 || a->size.pairs < 1 || (lengths && tensor_count(lengths) != x->dims[0])) {
        graph_fail(g, ST_USAGE,
                   "fixed_links: x of rank %d, %" PRId64 " edges, %" PRId64 " pairs, expected rank 3, at least 1 of "
                   "each, and a length a sequence",
                   x->rank, a->size.edges, a->size.pairs);
        return;
    }
    struct tensor *y = graph_output(g, c, DT_I32, 2, (int64_t[]){x->dims[0], links_words(a->size)});
    if (!y) return;
    y->limit = (int32_t)(x->dims[1] > a->size.edges ? x->dims[1] : a->size.edges);
    y->ignorable = true;
}

static int64_t fixed_links_table(const struct call *c, int32_t *to) {
    const struct fixed_links_attr *a = fixed_links_attr(c);
    int64_t n = links_words(a->size);
    if (to) memcpy(to, a->words, (size_t)n * sizeof *to);
    return n;
}

static struct cost fixed_links_cost(const struct call *c, enum pass pass) {
    return (struct cost){0, pass == PASS_FORWARD ? 2 * (double)tensor_bytes(c->out[0]) : 0};
}

/* Variant 0 has lengths, variant 1 has none. */
static bool fixed_links_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 1) return false;
    struct links_size size = {2 * s->length, s->length};
    int32_t *words = input_table(g, links_words(size));
    for (int64_t i = 0; words && i < links_words(size); i++) words[i] = (int32_t)((i * 7 + i / 3) % s->length);
    fixed_links(g, input_tokens(g, s, "x", s->dim), s->variant ? NULL : input_lengths(g, s), words, size);
    return true;
}

const struct op op_fixed_links = {
    .name = "fixed_links",
    .maths = "links_b = words without the edges that lead past the end of sequence b",
    .source = "",
    .no_grad_in = 3,
    .table = fixed_links_table,
    .infer = fixed_links_infer,
    .cost = fixed_links_cost,
    .sizes = "batch length dim",
    .build = fixed_links_build,
};

static void fixed_links_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct fixed_links_attr *a = fixed_links_attr(c);
    int64_t n = links_words(a->size);
    for (int64_t b = 0; b < c->in[0]->dims[0]; b++) {
        int32_t *y = tensor_i32(c->out[0]) + b * n;
        memcpy(y, a->words, (size_t)n * sizeof *y);
        int32_t length = c->in[1] ? tensor_i32(c->in[1])[b] : (int32_t)c->in[0]->dims[1];
        for (int64_t e = 0; e < a->size.edges; e++)
            if (y[2 * e] >= length || y[2 * e + 1] >= length) y[2 * e] = y[2 * e + 1] = IGNORED;
    }
}

const struct kernel kernel_fixed_links_ref = {
    .name = "fixed_links_ref",
    .op = &op_fixed_links,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = fixed_links_ref_forward,
};

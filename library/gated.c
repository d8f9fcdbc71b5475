/* gated.c - entries of the gated recurrences. */
#include "kernels/gated/gated.h"

#include "library/library.h"

/* The map of ops whose state is a whole row of width W: the last token of the output is the state, and one lead token
 * of the input sets it. */
static struct state_map whole_row(int64_t W) {
    return (struct state_map){.I = W};
}

static void scan_diag_record(struct recorder *r, const lrnn_scan_diag *d) {
    int64_t W = library_size(r, "width", d->width, INT32_MAX);
    library_first_state(r, "h0", &d->h0, W, 1, whole_row(W));
    library_last_state(r, "last", &d->last, W, 0, whole_row(W));
    struct tensor *a = library_choice(r, "constant", d->constant, 2) ? library_shared(r, "a", &d->a, 1, &W)
                                                                     : library_tokens(r, "a", &d->a, W);
    struct tensor *x = library_tokens(r, "x", &d->x, W);
    library_shows_state(r, "h0");
    library_output(r, "h", &d->h, scan_diag(r->graph, a, x));
    library_shows_state(r, "last");
}
LIBRARY_OP(scan_diag, last, true)

static void scan_diag_complex_record(struct recorder *r, const lrnn_scan_diag_complex *d) {
    int64_t W = library_size(r, "width", d->width, INT32_MAX);
    bool constant = library_choice(r, "constant", d->constant, 2);
    if (!d->h0_re.data != !d->h0_im.data)
        graph_fail(r->graph, ST_USAGE, "h0_re and h0_im are one state; give both or none");
    library_first_state(r, "h0_re", &d->h0_re, W, 1, whole_row(W));
    library_first_state(r, "h0_im", &d->h0_im, W, 1, whole_row(W));
    library_last_state(r, "last_re", &d->last_re, W, 0, whole_row(W));
    library_last_state(r, "last_im", &d->last_im, W, 0, whole_row(W));
    struct tensor *a_re =
        constant ? library_shared(r, "a_re", &d->a_re, 1, &W) : library_tokens(r, "a_re", &d->a_re, W);
    struct tensor *a_im =
        constant ? library_shared(r, "a_im", &d->a_im, 1, &W) : library_tokens(r, "a_im", &d->a_im, W);
    struct tensor *x_re = library_tokens(r, "x_re", &d->x_re, W);
    library_shows_state(r, "h0_re");
    struct tensor *x_im = library_tokens(r, "x_im", &d->x_im, W);
    library_shows_state(r, "h0_im");
    struct tensor *h_im = NULL, *h_re = scan_diag_complex(r->graph, a_re, a_im, x_re, x_im, &h_im);
    library_output(r, "h_re", &d->h_re, h_re);
    library_shows_state(r, "last_re");
    library_output(r, "h_im", &d->h_im, h_im);
    library_shows_state(r, "last_im");
}
LIBRARY_OP(scan_diag_complex, h_im, true)

/* Gates that let only the input through, from a zero state: a[m] = 1 and a[j] = 0 under every normaliser. Rows of m + 1
 * gates, N neighbours interleaved. */
static struct lead_pattern input_alone(int64_t N, int64_t m, enum gate gate) {
    bool divides_relu = gate == GATE_RELU || gate == GATE_NONE;
    return (struct lead_pattern){
        .inner = N, .count = m + 1, .which = m, .on = divides_relu, .off = divides_relu ? 0 : -1000};
}

static void scan_block_record(struct recorder *r, const lrnn_scan_block *d) {
    int64_t N = library_size(r, "blocks", d->blocks, INT32_MAX), m = library_size(r, "m", d->m, LIBRARY_SMALL);
    enum gate gate = (enum gate)library_choice(r, "gate", d->gate, GATE_COUNT);
    library_first_state(r, "h0", &d->h0, m * N, 1, whole_row(m * N));
    library_last_state(r, "last", &d->last, m * N, 0, whole_row(m * N));
    struct tensor *z = library_tokens(r, "z", &d->z, m * (m + 1) * N);
    library_lead(r, input_alone(N, m, gate));
    struct tensor *v = library_tokens(r, "v", &d->v, m * N);
    library_shows_state(r, "h0");
    library_output(r, "h", &d->h, scan_block(r->graph, z, v, N, m, gate));
    library_shows_state(r, "last");
}
LIBRARY_OP(scan_block, last, true)

/* Gates that halve the input, and that move half of the first of m states to the last one: a[m-1] = a[m] = 1/2, other
 * a[j] = 0 under every normaliser. Rows of m + 1 gates, N neighbours interleaved. */
static struct lead_pattern input_and_turn(int64_t N, int64_t m, enum gate gate) {
    bool divides_relu = gate == GATE_RELU || gate == GATE_NONE;
    return (struct lead_pattern){.inner = N,
                                 .count = m + 1,
                                 .which = m - 1,
                                 .more = 1,
                                 .on = divides_relu ? (real)0.5 : 0,
                                 .off = divides_relu ? 0 : -1000};
}

/* Lead tokens of the companion layout shift m inputs through the state, its oldest part first. */
static struct state_map companion_shift(int64_t N) {
    return (struct state_map){.I = N, .step = N, .down = true};
}

/* Lead tokens of the observer layout, with gates input_and_turn: each adds half its input to state 0, moves half of
 * state 0 to state m-1, and the others down by one. From zero, the inputs 4 s0[0], ..., 4 s0[m-1], 0 so leave s0. All
 * factors are powers of two, and sums have one term that is not 0; so s0 and its gradient are exact. */
static struct state_map observer_turn(int64_t N) {
    return (struct state_map){.I = N, .step = N, .idle = 1, .factor = 4};
}

static void scan_companion_record(struct recorder *r, const lrnn_scan_companion *d) {
    int64_t N = library_size(r, "channels", d->channels, INT32_MAX), m = library_size(r, "m", d->m, LIBRARY_SMALL);
    enum gate gate = (enum gate)library_choice(r, "gate", d->gate, GATE_COUNT);
    bool observer = library_choice(r, "observer", d->observer, 2);
    library_first_state(r, "s0", &d->s0, m * N, observer ? m + 1 : m, observer ? observer_turn(N) : companion_shift(N));
    library_last_state(r, "last", &d->last, m * N, 0, whole_row(m * N));
    struct tensor *z = library_tokens(r, "z", &d->z, (m + 1) * N);
    library_lead(r, observer ? input_and_turn(N, m, gate) : input_alone(N, m, gate));
    struct tensor *v = library_tokens(r, "v", &d->v, N);
    library_shows_state(r, "s0");
    library_output(r, "s", &d->s,
                   scan_companion(r->graph, z, v, N, m, gate, observer ? LAYOUT_OBSERVER : LAYOUT_COMPANION));
    library_shows_state(r, "last");
}
LIBRARY_OP(scan_companion, last, true)

static void scan_lstm_record(struct recorder *r, const lrnn_scan_lstm *d) {
    int64_t W = library_size(r, "width", d->width, LIBRARY_LARGE);
    struct tensor *u = library_tokens(r, "u", &d->u, 4 * W);
    struct tensor *wh = library_shared(r, "wh", &d->wh, 2, (int64_t[]){4 * W, W});
    struct tensor *bh = library_shared(r, "bh", &d->bh, 1, (int64_t[]){4 * W}), *cell = NULL;
    if (!d->h0.data != !d->c0.data) graph_fail(r->graph, ST_USAGE, "h0 and c0 are one state; give both or none");
    struct tensor *h0 = library_optional_state(r, "h0", &d->h0, W), *c0 = library_optional_state(r, "c0", &d->c0, W);
    library_output(r, "h", &d->h, scan_lstm_from(r->graph, u, wh, bh, h0, c0, &cell));
    if (d->c.data) library_output(r, "c", &d->c, cell);
    if (d->c.grad && !d->c.data) graph_fail(r->graph, ST_USAGE, "c.grad is given and c.data is not");
}
LIBRARY_OP(scan_lstm, h, true)

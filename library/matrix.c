/* matrix.c - entries of the recurrences with a matrix state, on sequences and on grids. */
#include "kernels/matrix/matrix.h"

#include "kernels/plstm/plstm.h"
#include "library/library.h"

/* The state C (dk x dv per head) is set by dk lead tokens, k = e_i and v = row i of C, and read by dk tail tokens, q =
 * e_i / scale. Both have decay 1; source is 1 for lead tokens, 0 for tail tokens. */
static void scan_outer_record(struct recorder *r, const lrnn_scan_outer *d) {
    int64_t H = library_size(r, "heads", d->heads, LIBRARY_SMALL),
            G = library_size(r, "groups", d->groups, LIBRARY_SMALL);
    int64_t dk = library_size(r, "key", d->key, LIBRARY_LARGE), dv = library_size(r, "value", d->value, LIBRARY_LARGE);
    bool states = d->c0.data || d->last.data || d->c0.grad || d->last.grad;
    if (states && G < H)
        graph_fail(r->graph, ST_USAGE, "c0 or last is given and heads=%d share keys in groups=%d; give each its own",
                   (int)H, (int)G);
    if (d->last.data && d->scale == 0) graph_fail(r->graph, ST_USAGE, "scale=0 leaves nothing to read `last` by");
    struct state_map rows = {.I = dv, .outer = dk * dv, .step = dv};
    struct lead_pattern one_key = {.inner = 1, .count = dk, .each = 1, .on = 1};
    struct lead_pattern one_query = {.inner = 1, .count = dk, .each = 1, .on = (real)(1 / d->scale)};
    struct lead_pattern ones = {.inner = 1, .count = 1, .on = 1};
    library_first_state(r, "c0", &d->c0, H * dk * dv, dk, rows);
    library_last_state(r, "last", &d->last, H * dk * dv, dk, rows);
    struct tensor *q = library_tokens(r, "q", &d->q, G * dk);
    library_tail(r, one_query);
    struct tensor *k = library_tokens(r, "k", &d->k, G * dk);
    library_lead(r, one_key);
    struct tensor *v = library_tokens(r, "v", &d->v, H * dv);
    library_shows_state(r, "c0");
    struct outer_gates gates = {.decay = library_tokens(r, "decay", &d->decay, H)};
    library_lead(r, ones);
    library_tail(r, ones);
    gates.source = library_optional(r, "source", &d->source, H);
    library_lead(r, ones);
    library_output(r, "o", &d->o, scan_outer(r->graph, q, k, v, &gates, H, G, d->scale));
    library_shows_state(r, "last");
}
LIBRARY_OP(scan_outer, last, true)

/* Lead and tail tokens are as in scan_outer. The error of a lead token is its value, because its row of S is 0. */
static void scan_delta_record(struct recorder *r, const lrnn_scan_delta *d) {
    int64_t H = library_size(r, "heads", d->heads, LIBRARY_SMALL), n = library_size(r, "steps", d->steps, 64);
    int64_t dk = library_size(r, "key", d->key, LIBRARY_LARGE), dv = library_size(r, "value", d->value, LIBRARY_LARGE);
    bool states = d->s0.data || d->last.data || d->s0.grad || d->last.grad;
    int channels = library_choice(r, "channels", d->channels, 2);
    if (states && n > 1)
        graph_fail(r->graph, ST_USAGE, "s0 or last is given with steps=%d; they go with steps=1", (int)n);
    if (d->beta.data && (d->read.data || d->erase.data))
        graph_fail(r->graph, ST_USAGE, "beta is given with read or erase; give one of the forms");
    if (d->erase.data && !d->read.data) graph_fail(r->graph, ST_USAGE, "erase is given without read");
    if (d->last.data && d->scale == 0) graph_fail(r->graph, ST_USAGE, "scale=0 leaves nothing to read `last` by");
    if (d->s0.data && d->beta.data && d->rate == 0)
        graph_fail(r->graph, ST_USAGE, "rate=0 leaves nothing to set s0 by");
    struct state_map rows = {.I = dv, .outer = dk * dv, .step = dv};
    struct lead_pattern one_key = {.inner = 1, .count = dk, .each = 1, .on = 1};
    struct lead_pattern one_query = {.inner = 1, .count = dk, .each = 1, .on = (real)(1 / d->scale)};
    struct lead_pattern ones = {.inner = 1, .count = 1, .on = 1}, whole = ones;
    whole.on = (real)(1 / d->rate);
    library_first_state(r, "s0", &d->s0, H * dk * dv, dk, rows);
    library_last_state(r, "last", &d->last, H * dk * dv, dk, rows);
    struct tensor *q = library_tokens(r, "q", &d->q, H * dk);
    library_tail(r, one_query);
    struct tensor *k = library_tokens(r, "k", &d->k, n * H * dk);
    library_lead(r, one_key);
    struct tensor *v = library_tokens(r, "v", &d->v, n * H * dv);
    library_shows_state(r, "s0");
    struct delta_gates gates = {.beta = library_optional(r, "beta", &d->beta, n * H)};
    library_lead(r, whole);
    gates.decay = library_optional(r, "decay", &d->decay, channels ? H * dk : H);
    library_lead(r, ones);
    library_tail(r, ones);
    gates.read = library_optional(r, "read", &d->read, n * H * dk);
    gates.erase = library_optional(r, "erase", &d->erase, n * H * dk);
    struct delta_attr attr = {.heads = H, .steps = n, .scale = d->scale, .rate = d->rate};
    library_output(r, "o", &d->o, scan_delta(r->graph, q, k, v, &gates, &attr));
    library_shows_state(r, "last");
}
LIBRARY_OP(scan_delta, last, true)

/* The state C of J matrices per head is set by J*dk lead tokens, as in scan_outer, each with the source of one matrix,
 * and read by as many tail tokens, each with the mark of one matrix. The transition is the identity. */
static void scan_plstm_record(struct recorder *r, const lrnn_scan_plstm *d) {
    int64_t H = library_size(r, "heads", d->heads, LIBRARY_SMALL);
    int64_t J = library_size(r, "states", d->states, SCAN_PLSTM_TRACK_MAX);
    int64_t dk = library_size(r, "key", d->key, LIBRARY_LARGE), dv = library_size(r, "value", d->value, LIBRARY_LARGE);
    if (d->last.data && d->scale == 0) graph_fail(r->graph, ST_USAGE, "scale=0 leaves nothing to read `last` by");
    struct state_map rows = {.I = dv, .outer = J * dk * dv, .step = dv};
    struct lead_pattern one_key = {.inner = 1, .count = dk, .each = 1, .on = 1}, one_query = one_key;
    struct lead_pattern one_matrix = {.inner = 1, .count = J, .each = dk, .on = 1};
    struct lead_pattern identity = {.inner = 1, .count = J + 1, .period = J * J, .on = 1};
    one_query.on = (real)(1 / d->scale);
    library_first_state(r, "c0", &d->c0, H * J * dk * dv, J * dk, rows);
    library_last_state(r, "last", &d->last, H * J * dk * dv, J * dk, rows);
    struct tensor *q = library_tokens(r, "q", &d->q, H * dk);
    library_tail(r, one_query);
    struct tensor *k = library_tokens(r, "k", &d->k, H * dk);
    library_lead(r, one_key);
    struct tensor *v = library_tokens(r, "v", &d->v, H * dv);
    library_shows_state(r, "c0");
    struct tensor *source = library_tokens(r, "source", &d->source, H * J);
    library_lead(r, one_matrix);
    struct tensor *transition = library_tokens(r, "transition", &d->transition, H * J * J);
    library_lead(r, identity);
    library_tail(r, identity);
    struct tensor *mark = library_tokens(r, "mark", &d->mark, H * J);
    library_tail(r, one_matrix);
    struct tensor *direct = library_tokens(r, "direct", &d->direct, H);
    library_output(r, "y", &d->y, scan_plstm(r->graph, q, k, v, source, transition, mark, direct, H, J, d->scale));
    library_shows_state(r, "last");
}
LIBRARY_OP(scan_plstm, y, true)

static void grid_scan_record(struct recorder *r, const lrnn_grid_scan *d) {
    int64_t X = library_size(r, "rows", d->rows, LIBRARY_LARGE),
            Y = library_size(r, "columns", d->columns, LIBRARY_LARGE);
    int64_t H = library_size(r, "heads", d->heads, LIBRARY_SMALL);
    int64_t dk = library_size(r, "key", d->key, LIBRARY_LARGE), dv = library_size(r, "value", d->value, LIBRARY_LARGE);
    library_length(r, X * Y, "rows*columns");
    struct tensor *q = library_tokens(r, "q", &d->q, H * dk), *k = library_tokens(r, "k", &d->k, H * dk);
    struct tensor *v = library_tokens(r, "v", &d->v, H * dv), *gates = library_tokens(r, "gates", &d->gates, 32 * H);
    struct tensor *direct = library_tokens(r, "direct", &d->direct, H);
    library_output(r, "y", &d->y, grid_scan(r->graph, q, k, v, gates, direct, X, Y, H, d->scale));
}
LIBRARY_OP(grid_scan, y, false)

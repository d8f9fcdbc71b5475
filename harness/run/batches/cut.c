/* cut.c - batches cut into parts (--buckets): examples are sorted by the size that they need and cut into parts of as
 * many; each part is walked in the smallest planned graph that has room for its largest example.
 *
 * The loss of a part has the weight of its share of the labels of the batch, and gradients are summed in order, so a
 * step descends the same function as without buckets, up to the order of sums. Terms of parameters alone, which mixers
 * add, have those weights too. All graphs lie in the memory of the largest. Dropout has other masks than in a
 * whole batch, and others in each part. In evaluation the parts go forward only; a row has the predictions that it has
 * in a whole batch, up to the order of sums. */
#include <stdlib.h>
#include <string.h>

#include "core/graph_plan.h"
#include "harness/run/batches/batches.h"

#define SEED_STEP (UINT64_C(1) << 40) /* between the seeds of two parts' masks */

/* --- graphs ------------------------------------------------------------------------------------------------------- */

enum status cut_build(struct batches *b, struct params *params, struct error *e) {
    struct cut *c = &b->cut;
    const struct setup *s = b->setup;
    size_t rows = (size_t)s->spec.config.batch;
    c->fit = malloc(2 * rows * sizeof *c->fit);
    if (!c->fit) return fail(e, ST_MEMORY, "no memory for the order of a batch of %zu", rows);
    c->order = c->fit + rows;
    c->rows = bucket_rows(s);
    c->parts = bucket_parts(s);
    c->n = bucket_sizes(s, b->split, c->size);
    c->net[c->n - 1] = *b->net;
    for (int i = 0; i < c->n - 1; i++)
        TRY(graphs_build_bucket(&c->graph[i], s, b->split, b->graph->options.place, params, &c->size[i], &c->net[i],
                                e));
    return ST_OK;
}

/* Plans the graphs beside the largest, in its memory. */
static enum status start(struct batches *b, const struct params *params, struct error *e) {
    struct cut *c = &b->cut;
    c->grad = params->grad;
    c->n_grad = params->floats;
    for (int i = 0; i < c->n - 1; i++) {
        c->graph[i].options.beside = b->graph;
        TRY(graph_plan(&c->graph[i], e));
        graph_add_gradients(&c->graph[i]);
    }
    graph_add_gradients(b->graph);
    return b->split == SPLIT_TRAIN ? feeder_start(&b->feeder, b->setup, e) : ST_OK;
}

/* --- sorting ------------------------------------------------------------------------------------------------------ */

/* Number of groups of `words` numbers, n at most, up to the last that is not absent. */
static int64_t in_use(const int32_t *first, int64_t n, int64_t words) {
    while (n > 0 && first[(n - 1) * words] < 0) n--;
    return n;
}

/* Words of the pairs, which lie after `edges` edges. */
static const int32_t *pairs_of(const int32_t *links, int64_t edges) {
    return links + LINK_EDGE_WORDS * edges;
}

/* Index of the smallest size that has room for a row. */
static int32_t size_for(const struct cut *c, const struct batch *batch, int64_t row) {
    int64_t documents = batch_documents(batch), T = 0, edges = 0, pairs = 0;
    const struct bucket_size *whole = &c->size[c->n - 1];
    for (int64_t i = 0; i < documents; i++)
        if (batch->lengths[row * documents + i] > T) T = batch->lengths[row * documents + i];
    if (batch->words) {
        const int32_t *links = batch->links + row * batch->words;
        edges = in_use(links, whole->links.edges, LINK_EDGE_WORDS);
        pairs = in_use(pairs_of(links, whole->links.edges), whole->links.pairs, LINK_PAIR_WORDS);
    }
    int32_t i = 0;
    while (T > c->size[i].T || edges > c->size[i].links.edges || pairs > c->size[i].links.pairs) i++;
    return i;
}

static int64_t labels_of(const struct batch *batch, int64_t row) {
    int64_t n = 0;
    for (int64_t i = 0; i < batch->labels; i++) n += batch->targets[row * batch->labels + i] != IGNORED;
    return n;
}

/* Rows of one size stay in their order. */
void cut_take(struct batches *b, const struct batch *batch) {
    struct cut *c = &b->cut;
    int64_t n = 0;
    c->batch = batch;
    c->labels = 0;
    for (int64_t row = 0; row < batch->B; row++) {
        c->fit[row] = size_for(c, batch, row);
        c->labels += labels_of(batch, row);
    }
    for (int32_t size = 0; size < c->n; size++)
        for (int64_t row = 0; row < batch->B; row++)
            if (c->fit[row] == size) c->order[n++] = (int32_t)row;
}

/* --- a part ------------------------------------------------------------------------------------------------------- */

/* Row of the batch at place k of part i, -1 for none: the first part, of the shortest, may not be full. */
static int64_t row_at(const struct cut *c, int64_t i, int64_t k) {
    int64_t place = i * c->rows + k - (c->parts * c->rows - c->batch->B);
    return place < 0 ? -1 : c->order[place];
}

/* Writes an absent row: inputs 0, no label, length 0, no links. */
static void put_nothing(const struct net *net, int64_t k, int64_t rows) {
    int64_t per = net->targets->dims[1], documents = net->lengths->dims[0] / rows;
    size_t bytes = tensor_bytes(net->input) / (size_t)rows;
    memset((char *)net->input->data + (size_t)k * bytes, 0, bytes);
    for (int64_t i = 0; i < per; i++) tensor_i32(net->targets)[k * per + i] = IGNORED;
    for (int64_t i = 0; i < documents; i++) tensor_i32(net->lengths)[k * documents + i] = 0;
    for (int64_t i = 0, words = net->links ? net->links->dims[1] : 0; i < words; i++)
        tensor_i32(net->links)[k * words + i] = IGNORED;
}

/* Copies the beginning of each array of a row, as far as the graph has room; the rest is padding. */
static void put_row(const struct cut *c, const struct net *net, const struct bucket_size *size, int64_t k,
                    int64_t row) {
    const struct batch *from = c->batch;
    int64_t per = net->targets->dims[1], documents = batch_documents(from), whole = c->size[c->n - 1].links.edges;
    size_t bytes = tensor_bytes(net->input) / (size_t)(c->rows * documents);
    for (int64_t i = 0; i < documents; i++) {
        const char *input =
            (const char *)batch_row(from, row) + (size_t)i * (batch_row_bytes(from) / (size_t)documents);
        memcpy((char *)net->input->data + (size_t)(k * documents + i) * bytes, input, bytes);
        tensor_i32(net->lengths)[k * documents + i] = from->lengths[row * documents + i];
    }
    memcpy(tensor_i32(net->targets) + k * per, from->targets + row * from->labels, (size_t)per * sizeof(int32_t));
    if (!net->links) return;
    const int32_t *links = from->links + row * from->words;
    int32_t *to = tensor_i32(net->links) + k * net->links->dims[1];
    int64_t edges = LINK_EDGE_WORDS * size->links.edges, pairs = LINK_PAIR_WORDS * size->links.pairs;
    memcpy(to, links, (size_t)edges * sizeof *to);
    memcpy(to + edges, pairs_of(links, whole), (size_t)pairs * sizeof *to);
}

static int64_t labels_in(const struct cut *c, int64_t i) {
    int64_t n = 0;
    for (int64_t k = 0; k < c->rows; k++)
        if (row_at(c, i, k) >= 0) n += labels_of(c->batch, row_at(c, i, k));
    return n;
}

/* Fills the inputs of the graph for part i and describes its walk; false: the part scores no label. */
static bool begin_part(struct batches *b, int64_t i, const struct step_state *live, struct walk *w) {
    struct cut *c = &b->cut;
    int64_t labels = labels_in(c, i), longest = row_at(c, i, c->rows - 1);
    if (labels == 0) return false;
    int size = c->fit[longest];
    c->walked = &c->net[size];
    c->weight = (double)labels / (double)c->labels;
    *w = (struct walk){.graph = size == c->n - 1 ? b->graph : &c->graph[size],
                       .net = c->walked,
                       .second = b->second,
                       .weight = c->weight,
                       .own = *live,
                       .state = &w->own};
    w->own.seed += (uint64_t)i * SEED_STEP;
    for (int64_t k = 0; k < c->rows; k++) {
        int64_t row = row_at(c, i, k);
        if (row < 0)
            put_nothing(c->walked, k, c->rows);
        else
            put_row(c, c->walked, &c->size[size], k, row);
    }
    return true;
}

/* Takes the results of the part that was walked: its loss and, in evaluation, the predictions of its rows. */
static void end_part(struct batches *b, int64_t i) {
    struct cut *c = &b->cut;
    const struct net *net = c->walked;
    int64_t labels = c->batch->labels, per = net->targets->dims[1];
    c->loss += c->weight * (double)tensor_real(net->loss)[0];
    for (int64_t k = 0; b->predictions && k < c->rows; k++) {
        int64_t row = row_at(c, i, k);
        if (row < 0) continue;
        memcpy(b->predictions + row * labels, tensor_i32(net->predictions) + k * per,
               (size_t)per * sizeof *b->predictions);
    }
}

/* --- the way ------------------------------------------------------------------------------------------------------ */

static void next(struct batches *b, int64_t n) {
    if (b->split != SPLIT_TRAIN) b->in_use = split_store_rows(b->store, n * b->setup->spec.config.batch, &b->batch);
    cut_take(b, b->split == SPLIT_TRAIN ? &feeder_take(&b->feeder, n)->main : &b->batch);
}

static bool walk(struct batches *b, struct step_state *live, struct walk *w) {
    struct cut *c = &b->cut;
    if (b->at) {
        end_part(b, b->at - 1);
    } else {
        c->loss = 0;
        if (b->split == SPLIT_TRAIN)
            memset(c->grad, 0, (size_t)c->n_grad * sizeof *c->grad);
        else
            memset(b->predictions, 0, (size_t)(c->batch->B * c->batch->labels) * sizeof *b->predictions);
    }
    while (b->at < c->parts && !begin_part(b, b->at, live, w)) b->at++;
    b->loss = (real)c->loss;
    return b->at < c->parts;
}

const struct way way_cut = {start, next, walk};

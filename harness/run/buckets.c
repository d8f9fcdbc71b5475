/* buckets.c - see buckets.h. */
#include "harness/run/buckets.h"

#include <stdlib.h>
#include <string.h>

#include "core/graph_walk.h"

#define SEED_STEP (UINT64_C(1) << 40) /* between the seeds of two parts' masks */

enum status buckets_create(struct buckets *b, const struct setup *s, enum split split, struct params *params,
                           struct graph *largest, const struct net *net, struct error *e) {
    size_t rows = (size_t)s->spec.config.batch;
    *b = (struct buckets){0};
    if (s->spec.config.buckets == 1) return ST_OK;
    b->fit = malloc(2 * rows * sizeof *b->fit);
    if (!b->fit) return fail(e, ST_MEMORY, "no memory for the order of a batch of %zu", rows);
    b->order = b->fit + rows;
    b->rows = bucket_rows(s);
    b->parts = bucket_parts(s);
    b->n = bucket_sizes(s, split, b->size);
    b->largest = largest;
    b->net[b->n - 1] = *net;
    for (int i = 0; i < b->n - 1; i++)
        TRY(graphs_build_bucket(&b->graph[i], s, split, largest->options.place, params, &b->size[i], &b->net[i], e));
    return ST_OK;
}

enum status buckets_plan(struct buckets *b, const struct params *params, struct error *e) {
    b->grad = params->grad;
    b->n_grad = params->floats;
    for (int i = 0; i < b->n - 1; i++) {
        b->graph[i].options.beside = b->largest;
        TRY(graph_plan(&b->graph[i], e));
        graph_add_gradients(&b->graph[i]);
    }
    if (b->n) graph_add_gradients(b->largest);
    return ST_OK;
}

void buckets_free(struct buckets *b) {
    for (int i = 0; i < b->n - 1; i++) graph_free(&b->graph[i]);
    free(b->fit);
    *b = (struct buckets){0};
}

/* --- sorting ------------------------------------------------------------------------------------------------------ */

/* How many of `n` groups of `words` numbers there are up to the last that is not absent. */
static int64_t in_use(const int32_t *first, int64_t n, int64_t words) {
    while (n > 0 && first[(n - 1) * words] < 0) n--;
    return n;
}

/* Words of the pairs behind those of `edges` edges. */
static const int32_t *pairs_of(const int32_t *links, int64_t edges) {
    return links + LINK_EDGE_WORDS * edges;
}

/* Index of the smallest size that has room for a row. */
static int32_t size_for(const struct buckets *b, const struct batch *batch, int64_t row) {
    int64_t documents = batch_documents(batch), T = 0, edges = 0, pairs = 0;
    const struct bucket_size *whole = &b->size[b->n - 1];
    for (int64_t i = 0; i < documents; i++)
        if (batch->lengths[row * documents + i] > T) T = batch->lengths[row * documents + i];
    if (batch->words) {
        const int32_t *links = batch->links + row * batch->words;
        edges = in_use(links, whole->links.edges, LINK_EDGE_WORDS);
        pairs = in_use(pairs_of(links, whole->links.edges), whole->links.pairs, LINK_PAIR_WORDS);
    }
    int32_t i = 0;
    while (T > b->size[i].T || edges > b->size[i].links.edges || pairs > b->size[i].links.pairs) i++;
    return i;
}

static int64_t labels_of(const struct batch *batch, int64_t row) {
    int64_t n = 0;
    for (int64_t i = 0; i < batch->labels; i++) n += batch->targets[row * batch->labels + i] != IGNORED;
    return n;
}

/* Rows of one size stay in their order. */
void buckets_sort(struct buckets *b, const struct batch *batch) {
    int64_t n = 0;
    b->batch = batch;
    b->labels = 0;
    for (int64_t row = 0; row < batch->B; row++) {
        b->fit[row] = size_for(b, batch, row);
        b->labels += labels_of(batch, row);
    }
    for (int32_t size = 0; size < b->n; size++)
        for (int64_t row = 0; row < batch->B; row++)
            if (b->fit[row] == size) b->order[n++] = (int32_t)row;
}

/* --- a part ------------------------------------------------------------------------------------------------------- */

/* Row of the batch at place k of part i, -1 for none: the first part, of the shortest, may not be full. */
static int64_t row_at(const struct buckets *b, int64_t i, int64_t k) {
    int64_t place = i * b->rows + k - (b->parts * b->rows - b->batch->B);
    return place < 0 ? -1 : b->order[place];
}

/* An absent row: inputs 0, no label, length 0, no links. */
static void put_nothing(const struct net *net, int64_t k, int64_t rows) {
    int64_t per = net->targets->dims[1], documents = net->lengths->dims[0] / rows;
    size_t bytes = tensor_bytes(net->input) / (size_t)rows;
    memset((char *)net->input->data + (size_t)k * bytes, 0, bytes);
    for (int64_t i = 0; i < per; i++) tensor_i32(net->targets)[k * per + i] = IGNORED;
    for (int64_t i = 0; i < documents; i++) tensor_i32(net->lengths)[k * documents + i] = 0;
    for (int64_t i = 0, words = net->links ? net->links->dims[1] : 0; i < words; i++)
        tensor_i32(net->links)[k * words + i] = IGNORED;
}

/* The beginning of each array of a row that the graph has room for; what is left of it is padding. */
static void put_row(const struct buckets *b, const struct net *net, const struct bucket_size *size, int64_t k,
                    int64_t row) {
    const struct batch *from = b->batch;
    int64_t per = net->targets->dims[1], documents = batch_documents(from), whole = b->size[b->n - 1].links.edges;
    size_t bytes = tensor_bytes(net->input) / (size_t)(b->rows * documents);
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

static int64_t labels_in(const struct buckets *b, int64_t i) {
    int64_t n = 0;
    for (int64_t k = 0; k < b->rows; k++)
        if (row_at(b, i, k) >= 0) n += labels_of(b->batch, row_at(b, i, k));
    return n;
}

bool buckets_begin(struct buckets *b, int64_t i, const struct step_state *now, struct bucket *part) {
    int64_t labels = labels_in(b, i), longest = row_at(b, i, b->rows - 1);
    if (labels == 0) return false;
    int size = b->fit[longest];
    part->graph = size == b->n - 1 ? b->largest : &b->graph[size];
    part->net = &b->net[size];
    part->weight = (double)labels / (double)b->labels;
    part->state = *now;
    part->state.seed += (uint64_t)i * SEED_STEP;
    for (int64_t k = 0; k < b->rows; k++) {
        int64_t row = row_at(b, i, k);
        if (row < 0)
            put_nothing(part->net, k, b->rows);
        else
            put_row(b, part->net, &b->size[size], k, row);
    }
    return true;
}

void buckets_walk(struct buckets *b, const struct step_state *now) {
    double loss = 0;
    struct bucket part;
    memset(b->grad, 0, (size_t)b->n_grad * sizeof *b->grad);
    for (int64_t i = 0; i < b->parts; i++) {
        if (!buckets_begin(b, i, now, &part)) continue;
        graph_forward(part.graph, &part.state);
        graph_backward_weighted(part.graph, &part.state, (real)part.weight);
        loss += part.weight * (double)tensor_real(part.net->loss)[0];
    }
    b->loss = (real)loss;
}

/* The predictions of part i to the places of its rows. */
static void take_predictions(const struct buckets *b, int64_t i, const struct net *net, int32_t *predictions) {
    int64_t labels = b->batch->labels, per = net->targets->dims[1];
    for (int64_t k = 0; k < b->rows; k++) {
        int64_t row = row_at(b, i, k);
        if (row < 0) continue;
        memcpy(predictions + row * labels, tensor_i32(net->predictions) + k * per, (size_t)per * sizeof *predictions);
    }
}

void buckets_predict(struct buckets *b, const struct step_state *now, int32_t *predictions) {
    double loss = 0;
    struct bucket part;
    memset(predictions, 0, (size_t)(b->batch->B * b->batch->labels) * sizeof *predictions);
    for (int64_t i = 0; i < b->parts; i++) {
        if (!buckets_begin(b, i, now, &part)) continue;
        graph_forward(part.graph, &part.state);
        loss += part.weight * (double)tensor_real(part.net->loss)[0];
        take_predictions(b, i, part.net, predictions);
    }
    b->loss = (real)loss;
}

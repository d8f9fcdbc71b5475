/* resident.c - all training data are made once and stay on a device, where a graph copies the batch of each step out of
 * them. The batches have the same bits as those of batches.c. */
#include <stdlib.h>

#include "core/graph_walk.h"
#include "harness/run/batches/batches.h"
#include "harness/run/signals.h"

#define ROWS_AT_ONCE 4096 /* number of examples that the host makes before it sends them */

/* Describes the training data as one batch of all its examples. */
static struct step_batches whole_split(const struct setup *s) {
    struct step_batches whole = step_sizes(s);
    bool second = whole.second.B > 0;
    whole.main.B = s->spec.task.shape.examples[SPLIT_TRAIN];
    if (second) whole.second.B = s->spec.task.shape.second.examples;
    return whole;
}

size_t batches_resident_bytes(const struct setup *s) {
    struct step_batches whole = whole_split(s);
    if (!graphs_can_take(s) || *s->spec.config.curriculum) return 0; /* its examples depend on the step */
    return batch_bytes(&whole.main) + batch_bytes(&whole.second);
}

static void send_rows(const struct place *p, struct tensor *t, int64_t first, int64_t rows, const void *from) {
    size_t bytes = t ? tensor_bytes(t) / (size_t)t->dims[0] : 0;
    if (t) place_put(p, (char *)t->data + (size_t)first * bytes, from, (size_t)rows * bytes);
}

static enum status send_split(const struct setup *s, const struct place *p, const struct batch_tensors *split,
                              struct batch rows, bool second, struct error *e) {
    int64_t n = split->input->dims[0];
    rows.B = n < ROWS_AT_ONCE ? n : ROWS_AT_ONCE;
    char *memory = malloc(batch_bytes(&rows));
    if (!memory) return fail(e, ST_MEMORY, "no memory for %lld examples", (long long)rows.B);
    batch_lay(&rows, memory);
    for (int64_t first = 0; first < n; first += rows.B) {
        if (first && signal_received()) break;
        int64_t count = n - first < rows.B ? n - first : rows.B;
        split_fill(&s->spec, second, first, count, &rows);
        send_rows(p, split->input, first, count, batch_row(&rows, 0));
        send_rows(p, split->targets, first, count, rows.targets);
        send_rows(p, split->lengths, first, count, rows.lengths);
        send_rows(p, split->links, first, count, rows.links);
    }
    free(memory);
    TRY(place_wait(p, e));
    if (!signal_received() || n <= rows.B) return ST_OK;
    return fail(e, (enum status)(128 + signal_received()),
                "stopped while the training examples were made, before a step; the same command goes on");
}

/* Builds the graph that copies a batch into the inputs of the nets, which must be planned before, and sends the
 * data. */
static enum status start(struct batches *b, struct error *e) {
    struct step_batches whole = whole_split(b->setup);
    struct batch_tensors split[2];
    TRY(graphs_build_take(&b->taken, b->setup, b->place, b->net, b->second, split, e));
    TRY(graph_plan(&b->taken, e));
    TRY(send_split(b->setup, b->place, &split[0], whole.main, false, e));
    return split[1].input ? send_split(b->setup, b->place, &split[1], whole.second, true, e) : ST_OK;
}

/* Does nothing, because the device reads the number of the step from its state. */
static void next(struct batches *b, int64_t step) {
    (void)b, (void)step;
}

static void take(struct batches *b, struct step_state *live) {
    graph_forward(&b->taken, live);
}

const struct way way_resident = {start, next, take};

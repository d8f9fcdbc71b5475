/* batches.c - see batches.h. */
#include "harness/run/batches/batches.h"

#include <stdlib.h>

#include "core/graph_plan.h"

enum status batches_build(struct batches *b, const struct setup *s, enum split split, struct params *params,
                          struct graph *graph, const struct net *net, const struct net *second, struct error *e) {
    *b = (struct batches){.way = split == SPLIT_TRAIN ? &way_sent : &way_stored,
                          .setup = s,
                          .split = split,
                          .graph = graph,
                          .net = net,
                          .second = second};
    if (s->spec.config.buckets == 1) return ST_OK;
    b->way = &way_cut;
    return cut_build(b, params, e);
}

void batches_keep_resident(struct batches *b) {
    b->way = &way_resident;
}

enum status batches_start(struct batches *b, const struct params *params, struct error *e) {
    return b->way->start(b, params, e);
}

void batches_next(struct batches *b, int64_t n) {
    b->at = 0;
    b->way->next(b, n);
}

bool batches_walk(struct batches *b, struct step_state *live, struct walk *w) {
    bool more = b->way->walk(b, live, w);
    b->at = more ? b->at + 1 : 0;
    return more;
}

void walk_whole(const struct batches *b, struct step_state *live, struct walk *w) {
    *w = (struct walk){.graph = b->graph, .net = b->net, .second = b->second, .state = live, .weight = 1};
}

real *batches_loss(struct batches *b) {
    return b->cut.n ? &b->loss : tensor_real(b->net->loss);
}

void batches_list_graphs(const struct batches *b, struct graph_list *list) {
    if (b->take.n_calls) list->list[list->n++] = &b->take;
    for (int i = 0; i < b->cut.n - 1; i++) list->list[list->n++] = &b->cut.graph[i];
}

void batches_free(struct batches *b) {
    feeder_stop(&b->feeder);
    for (int i = 0; i < STAGING_SLOTS; i++) place_mark_free(b->staging.place, b->staging.read[i]);
    if (b->staging.memory) place_host_free(b->staging.place, b->staging.memory);
    graph_free(&b->take);
    for (int i = 0; i < b->cut.n - 1; i++) graph_free(&b->cut.graph[i]);
    free(b->cut.fit);
    *b = (struct batches){0};
}

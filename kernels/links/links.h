/* links.h - ops on examples that are graphs (core/links.h): rows of edges and pairs from rows of nodes, sums over
 * neighbours. The nodes are the T positions of a sequence; a node may have no links. Rows of absent edges, and of pairs
 * that are not in effect, are zeros, and they change no node. */
#ifndef LRNN_KERNELS_LINKS_LINKS_H
#define LRNN_KERNELS_LINKS_LINKS_H

#include "core/links.h"
#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/links/list.def"

/* Gives every sequence of x (B,T,D) the same links, but without edges to positions after its end. `words` has the links
 * in the given size, and must live as long as the graph. lengths: ids (B), or NULL: all positions are in use. */
struct links fixed_links(struct graph *g, struct tensor *x, struct tensor *lengths, const int32_t *words,
                         struct links_size size);

/* Features of edges and pairs, side by side, f_e = (x_tail + x_head) / 2: x (B,T,D) -> (B,edges,2D) or (B,pairs,3D). */
enum link_rule {
    LINK_TAILS,         /* edge: x_tail, f_e */
    LINK_HEADS,         /* edge: x_head, f_e */
    LINK_PAIRS,         /* pair: f_from, f_to, x of the node between */
    LINK_PAIRS_OF_TAIL, /* pair: f_from, f_to, x of the tail of `from` */
    LINK_RULES
};
struct tensor *link_rows(struct graph *g, struct tensor *x, const struct links *links, enum link_rule rule);

/* y_p = t_p / (1/2 + sum of |t| over the pairs with the same edge `from` (or `to`)): t (B,pairs,H) -> y as t. */
enum link_side { LINK_SAME_FROM, LINK_SAME_TO, LINK_SIDES };
struct tensor *link_shares(struct graph *g, struct tensor *t, const struct links *links, enum link_side side);

/* Sums over the neighbours u of node n, one term per edge between them, in either direction: x (B,T,D) -> y likewise.
 * NEIGHBOURS_SUM: y_n = sum x_u. NEIGHBOURS_GCN: y_n = sum of x_u / sqrt(d_n d_u) over n itself and its neighbours, d
 * = 1 + the number of neighbours (Kipf & Welling 2017, Eq. 2). */
enum neighbours { NEIGHBOURS_SUM, NEIGHBOURS_GCN, NEIGHBOURS_COUNT };
struct tensor *neighbours(struct graph *g, struct tensor *x, const struct links *links, enum neighbours how);

/* y_n = x_n + code of the number d of n's neighbours: sin(d w_i) in channel 2i, cos(d w_i) in channel 2i+1, w_i =
 * 10000^(-2i/D): x (B,T,D) -> y likewise. */
struct tensor *degree_code(struct graph *g, struct tensor *x, const struct links *links);

/* y_n = sum over the neighbours u of n of relu(a_n + c_u): a, c (B,T,D) -> y likewise (Gilmer et al. 2017). */
struct tensor *edge_messages(struct graph *g, struct tensor *a, struct tensor *c, const struct links *links);

/* y_n = sum over u in N(n) and n itself of p_nu v_u, p_n the softmax over u of leaky_relu(s_n + r_u), slope 0.2: v
 * (B,T,H*dv), s, r (B,T,H) -> y as v (Velickovic et al. 2018). */
struct tensor *edge_attention(struct graph *g, struct tensor *v, struct tensor *s, struct tensor *r,
                              const struct links *links);

/* --- attributes of a call, for its kernels ------------------------------------------------------------------------ */

/* Attributes of every op here: the words are its last input; `rule` is one of the enums above. */
struct links_attr {
    struct links_size size;
    bool reversed;
    int rule;
};

LRNN_INLINE const struct links_attr *links_attr(const struct call *c) {
    return (const struct links_attr *)c->attr;
}

struct fixed_links_attr {
    struct links_size size;
    const int32_t *words;
};

LRNN_INLINE const struct fixed_links_attr *fixed_links_attr(const struct call *c) {
    return (const struct fixed_links_attr *)c->attr;
}

#ifdef __cplusplus
}
#endif
#endif

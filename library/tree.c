/* tree.c - the entry of linear systems on trees. */
#include "kernels/tree/tree.h"

#include "library/library.h"

static void tree_solve_record(struct recorder *r, const lrnn_tree_solve *d) {
    int64_t arity = library_size(r, "arity", d->arity, LIBRARY_LARGE),
            levels = library_size(r, "levels", d->levels, LIBRARY_LARGE);
    int64_t W = library_size(r, "width", d->width, INT32_MAX);
    enum tree_form form = (enum tree_form)library_choice(r, "form", d->form, TREE_FREE + 1);
    struct tree tree = {.arity = arity, .levels = levels};
    int64_t nodes = tree_nodes(&tree);
    if (nodes < 0) graph_fail(r->graph, ST_USAGE, "a tree of these arity and levels has 2^31 nodes or more");
    if (graph_status(r->graph, NULL) != ST_OK) return;
    library_length(r, nodes, "the tree's nodes");
    tree.leaves = tree_places(&tree);
    struct tree_system s = {.tree = tree, .form = form, .beta = d->beta};
    bool couplings = levels > 1, down = couplings && form == TREE_FREE;
    s.up_re = couplings ? library_tokens(r, "up_re", &d->up_re, W) : NULL;
    s.up_im = couplings ? library_tokens(r, "up_im", &d->up_im, W) : NULL;
    s.down_re = down ? library_tokens(r, "down_re", &d->down_re, W) : NULL;
    s.down_im = down ? library_tokens(r, "down_im", &d->down_im, W) : NULL;
    s.u_re = library_tokens(r, "u_re", &d->u_re, W);
    s.u_im = library_tokens(r, "u_im", &d->u_im, W);
    struct tensor *x_im = NULL, *x_re = tree_solve(r->graph, &s, &x_im);
    library_output(r, "x_re", &d->x_re, x_re);
    library_output(r, "x_im", &d->x_im, x_im);
}
LIBRARY_OP(tree_solve, x_im, false)

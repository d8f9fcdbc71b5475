/* tree_sums.cuh - for each row of a table of couplings, a sum over the sequences and over the nodes that share the row.
 * There is a block per chunk of these and strip of heads; chunks are cut and added like in column sums
 * (kernels/lib/cuda.cuh). */
#ifndef LRNN_KERNELS_TREE_TREE_SUMS_CUH
#define LRNN_KERNELS_TREE_TREE_SUMS_CUH

#include "kernels/lib/cuda.cuh"
#include "kernels/tree/tree_walk.h"

/* Sums for a table of `rows` x P. `chunks` is the number for the row that most nodes share; the surplus blocks of other
 * rows do nothing. */
struct table_cut {
    struct tree tree;
    enum tree_sharing sharing;
    int64_t B, P, rows, chunks, tiles;
    int width;

    /* Chunks of a row with so many nodes per sequence. */
    __host__ __device__ struct column_cut of_nodes(int64_t nodes) const {
        return {B * nodes, P, sum_chunks(B * nodes, rows * tiles), tiles, width};
    }
    __host__ __device__ int64_t blocks_of_row(void) const {
        return chunks * tiles;
    }
};

static inline struct table_cut table_cut_of(const struct tree *t, enum tree_sharing sharing, const struct tensor *table,
                                            int64_t B) {
    int64_t P = tensor_cols(table), first, end;
    struct table_cut cut = {*t, sharing, B, P, table->dims[0], 1, column_sums_tiles(P), column_sums_width(P)};
    tree_row_nodes(t, sharing, 0, &first, &end); /* no level has more nodes than the leaves' level */
    cut.chunks = cut.of_nodes(end - first).chunks;
    return cut;
}

/* Whether indices of `nodes` (B,T,..) can be divided as 32-bit numbers. */
static inline bool tree_nodes_fit(const struct tensor *nodes, const char **why) {
    bool fits = tensor_rows(nodes) <= UINT32_MAX;
    if (!fits) *why = "nodes of all sequences go up to 4294967295";
    return fits;
}

/* Bytes of scratch for partial sums of `each` bytes. */
static inline size_t cuda_table_sums_bytes(const struct table_cut &cut, size_t each) {
    return cut.chunks > 1 ? (size_t)(cut.rows * cut.chunks * cut.P) * each : 0;
}

template <class V, class Term, class Out>
__global__ void __launch_bounds__(CUDA_THREADS)
    table_sums_kernel(struct table_cut cut, Term term, V *partial, unsigned *counters, Out out) {
    await_previous();
    DYNAMIC_SHARED(V, sums); /* CUDA_THREADS */
    struct quotient at = divide_narrow(blockIdx.x, cut.blocks_of_row());
    int64_t row = at.whole, block = at.rest, first, end;
    tree_row_nodes(&cut.tree, cut.sharing, row, &first, &end);
    struct column_cut nodes = cut.of_nodes(end - first);
    if (block >= nodes.chunks * nodes.tiles) return;
    auto of_node = [&](int64_t r, int64_t i) {
        struct quotient at = divide_narrow(r, end - first);
        return term(at.whole, first + at.rest, i - r * cut.P);
    };
    auto out_row = [&](int64_t head, const V &sum) { out(row * cut.P + head, sum); };
    column_sums(nodes, block, of_node, cut.chunks > 1 ? partial + row * cut.chunks * cut.P : nullptr,
                counters + row * cut.tiles, out_row, sums);
}

/* out(row * P + head, the sum of term(sequence, node, head)) for all rows and heads. */
template <class V, class Term, class Out>
void cuda_table_sums(const struct call *c, const struct exec *x, struct table_cut cut, Term term, Out out, V *scratch) {
    cuda_launch(x->place->cuda, c->kernel->name, __FILE__, __LINE__, table_sums_kernel<V, Term, Out>,
                dim3((unsigned)(cut.rows * cut.blocks_of_row())), dim3(CUDA_THREADS), CUDA_THREADS * sizeof(V), cut,
                term, scratch, x->place->cuda->now.counters, out);
}

#endif

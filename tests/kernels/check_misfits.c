/* check_misfits.c - shapes and options that an op cannot take: one sentence, by the op, with both numbers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/dense/dense.h"
#include "kernels/flow/flow.h"
#include "kernels/gated/gated.h"
#include "kernels/links/links.h"
#include "kernels/matrix/matrix.h"
#include "kernels/move/move.h"
#include "kernels/norm/norm.h"
#include "kernels/plstm/plstm.h"
#include "kernels/route/route.h"
#include "kernels/stable/stable.h"
#include "kernels/token/token.h"
#include "kernels/train/train.h"
#include "kernels/tree/tree.h"
#include "tests/lib/support.h"

#define ATTR(type, ...) &(const struct type){__VA_ARGS__}, sizeof(struct type)
#define NONE            NULL, 0

static const int32_t rows[] = {0, 3};
static const struct adamw_segment segments[] = {{.offset = 0, .count = 4}, {.offset = 3, .count = 4}};

/* `inputs` in the op's order, blanks between: "2,3,5" is real, "7:2,3" ids below 7, "-" is not given. A sentence calls
 * them a, b, c and so on where the op has no name of its own for them. */
static const struct misfit {
    const struct op *op;
    const void *attr;
    size_t attr_bytes;
    const char *inputs, *says;
} misfits[] = {
    /* dense */
    {&op_linear, NONE, "2,3,5 7,5,1", "linear: w has rank 3, expected 2 (outputs, inputs)"},
    {&op_linear, NONE, "2,3,5 7,6", "linear: x has 5 columns but w has 6; they must agree"},
    {&op_linear, NONE, "2,3,5 7,5 8", "linear: w has 7 rows but the bias has 8 elements; they must agree"},
    {&op_linear_blocks, NONE, "2,3,6 6", "linear_blocks: w has rank 1, expected 2 (outputs, inputs of a block)"},
    {&op_linear_blocks, NONE, "2,3,6 8,2", "linear_blocks: x has 6 columns but w has 8 rows; they must agree"},
    {&op_linear_blocks, NONE, "2,3,6 6,4", "linear_blocks: 6 columns are not made of blocks of 4"},
    {&op_linear_slices, NONE, "2,3,6 2,4",
     "linear_slices: x has 6 columns, w has rank 2 and 8 numbers; expected rank 2 and as many numbers as columns"},
    {&op_bias, NONE, "2,3,5 6", "bias: x has 5 columns but the bias has shape (6); expected (5)"},
    {&op_scale, NONE, "2,3,5 4", "scale: x has 5 columns but the scale has shape (4); expected (5)"},
    {&op_add, NONE, "2,3,5 2,4,5", "add: a has shape (2,3,5) but b has (2,4,5); they must agree"},
    {&op_sub, NONE, "2,3,5 2,3", "sub: a has shape (2,3,5) but b has (2,3); they must agree"},
    {&op_silu_mul, NONE, "2,5 5,2", "silu_mul: a has shape (2,5) but b has (5,2); they must agree"},
    {&op_scale_by, ATTR(scale_by_attr, .factor = INFINITY), "2,3,5",
     "scale_by: the factor is inf, expected a finite number"},
    {&op_mul, NONE, "2,3,5 2,15", "mul: a has shape (2,3,5) but b has (2,15); they must agree"},
    {&op_repeat_rows, ATTR(repeat_rows_attr, 2, 3), "5,4", "repeat_rows: p has rank 2, expected 1"},
    {&op_repeat_rows, ATTR(repeat_rows_attr, 2, 0), "5", "repeat_rows: batch 2 and length 0 must both be at least 1"},
    {&op_dropout, ATTR(dropout_attr, 1.5), "2,3", "dropout: p is 1.5, expected 0 <= p < 1"},
    {&op_embedding, NONE, "9:2,3 8,5", "embedding: ids go up to 8 but the table has 8 rows"},
    /* gated */
    {&op_scan_block, ATTR(scan_attr, .N = 0, .m = 2), "2,3,6 2,3,2",
     "scan_block: blocks=0 and m=2 must both be at least 1"},
    {&op_scan_block, ATTR(scan_attr, .N = 2, .m = 3), "2,24 2,3,6",
     "scan_block: z and v have rank 2 and 3, expected 3 (B,T,width)"},
    {&op_scan_block, ATTR(scan_attr, .N = 2, .m = 3), "2,4,24 2,3,6",
     "scan_block: z is (2,4) and v (2,3) in batch and length; they must agree"},
    {&op_scan_block, ATTR(scan_attr, .N = 2, .m = 3), "2,3,25 2,3,6",
     "scan_block: z is 25 wide, expected m*(m+1)*blocks = 24"},
    {&op_scan_block, ATTR(scan_attr, .N = 2, .m = 3), "2,3,24 2,3,7", "scan_block: v is 7 wide, expected m*blocks = 6"},
    {&op_scan_companion, ATTR(scan_attr, .N = 4, .m = 2), "2,3,11 2,3,4",
     "scan_companion: z is 11 wide, expected (m+1)*channels = 12"},
    {&op_discretise, ATTR(discretise_attr, .clip = false), "5 6 5",
     "discretise: a has shape (5) but b has (6); they must agree"},
    {&op_scan_diag, NONE, "5 2,5", "scan_diag: x has rank 2, expected 3 (B,T,N)"},
    {&op_scan_diag, NONE, "3,5 2,3,5", "scan_diag: a has rank 2, expected 3 (B,T,N) or 1 (N)"},
    {&op_scan_diag, NONE, "6 2,3,5", "scan_diag: a has 6 channels and x 5; they must agree"},
    {&op_scan_diag, NONE, "2,4,5 2,3,5", "scan_diag: a is (2,4) and x (2,3) in batch and length; they must agree"},
    {&op_scan_diag_complex, NONE, "5 2,3,5 2,3,5 2,3,5",
     "scan_diag_complex: the planes of a have rank 1 and 3; they must agree"},
    {&op_scan_diag_complex, NONE, "5 5 2,3,5 2,4,5",
     "scan_diag_complex: the planes of x hold 30 and 40 elements; they must agree"},
    {&op_scan_lstm, NONE, "2,12 12,3 12", "scan_lstm: u, wh, bh have rank 2, 2, 1, expected 3, 2, 1"},
    {&op_scan_lstm, NONE, "2,4,12 13,3 12", "scan_lstm: wh is 13 x 3, expected 4H x H = 12 x 3"},
    {&op_scan_lstm, NONE, "2,4,11 12,3 12", "scan_lstm: u is 11 wide, expected 4H = 12"},
    {&op_scan_lstm, NONE, "2,4,12 12,3 10", "scan_lstm: bh has 10 elements, expected 4H = 12"},
    /* token */
    {&op_conv_depthwise, NONE, "2,3 5,4", "conv_depthwise: x and w have rank 2 and 2, expected 3 (B,T,C) and 2 (C,m)"},
    {&op_conv_depthwise, NONE, "2,3,5 6,4", "conv_depthwise: w has 6 channels but x has 5; they must agree"},
    {&op_conv_depthwise, NONE, "2,3,5 5,4 6",
     "conv_depthwise: x has 5 columns but the bias has shape (6); expected (5)"},
    {&op_rope, ATTR(rope_attr, 2, 4, 1e4), "2,8", "rope: x has rank 2, expected 3 (B,T,C)"},
    {&op_rope, ATTR(rope_attr, 2, 3, 1e4), "2,3,8", "rope: heads=2 of dk=3, expected at least one, of even dk"},
    {&op_rope, ATTR(rope_attr, 3, 4, 1e4), "2,3,8", "rope: 3 heads of dk=4 do not fit into 8 columns"},
    {&op_running_turn, NONE, "2,3 2,3,4", "running_turn: delta and rate have rank 2 and 3, expected 3 (B,T,width)"},
    {&op_running_turn, NONE, "2,3,2 2,4,5",
     "running_turn: delta is (2,3) and rate (2,4) in batch and length; they must agree"},
    {&op_turn_heads, NONE, "2,3,8 8 2,3,4 2,3,4", "turn_heads: x, bias and cosine have rank 3, 1, 3, expected 3, 2, 3"},
    {&op_turn_heads, NONE, "2,3,8 2,7 2,3,4 2,3,4", "turn_heads: x is 8 wide and the bias 7; they must agree"},
    {&op_turn_heads, NONE, "2,3,8 2,8 2,4,4 2,4,4",
     "turn_heads: x is (2,3) and the cosine (2,4) in batch and length; they must agree"},
    {&op_turn_heads, NONE, "2,3,8 2,8 2,3,10 2,3,10",
     "turn_heads: 10 angles are not up to 4 pairs for each of 2 heads"},
    {&op_scan_turned, NONE, "2,3 2,3,4 6,4 6 2 2",
     "scan_turned: x, u, w, b and K have rank 2, 3, 2, 1, 1, expected 3, 3, 2, 1, 1"},
    {&op_scan_turned, NONE, "2,3,3 2,5,4 6,4 6 2 2",
     "scan_turned: x is (2,3) and u (2,5) in batch and length; they must agree"},
    {&op_scan_turned, NONE, "2,3,3 2,3,4 6,5 6 2 2", "scan_turned: u has 4 columns but w has 5; they must agree"},
    {&op_scan_turned, NONE, "2,3,3 2,3,4 6,4 7 2 2",
     "scan_turned: w has 6 rows and b 7 elements, expected 2 states x 3 channels"},
    {&op_softmax_attention, ATTR(attention_attr, .heads = 2), "2,12 -",
     "softmax_attention: qkv has rank 2, expected 3 (B,T,3D)"},
    {&op_softmax_attention, ATTR(attention_attr, .heads = 2), "2,3,16 -",
     "softmax_attention: qkv has 16 columns, expected a multiple of 3 * heads = 6"},
    {&op_softmax_attention, ATTR(attention_attr, .heads = 2), "2,3,12 4:5",
     "softmax_attention: 5 lengths of at most 3 do not fit 2 sequences of 3 tokens"},
    /* train */
    {&op_cross_entropy, NONE, "6,5 5:2,4", "cross_entropy: logits have 6 rows but there are 8 targets"},
    {&op_cross_entropy, NONE, "6,5 7:2,3", "cross_entropy: targets go up to 6 but logits have 5 columns"},
    {&op_adamw, ATTR(adamw_attr, .n_segments = 0), "5 5 6 5 -",
     "adamw: a has shape (5) but c has (6); they must agree"},
    /* links; one edge and one pair are 5 words per sequence */
    {&op_degree_code, ATTR(links_attr, .size = {1, 1}), "2,3 7:2,5", "degree_code: x has rank 2, expected 3 (B,T,D)"},
    {&op_edge_messages, ATTR(links_attr, .size = {1, 1}), "2,3 7:2,5 2,3",
     "edge_messages: a has rank 2, expected 3 (B,T,D)"},
    {&op_edge_messages, ATTR(links_attr, .size = {1, 1}), "2,3,4 7:2,5 2,3,5",
     "edge_messages: a has shape (2,3,4) but c has (2,3,5); they must agree"},
    {&op_edge_attention, ATTR(links_attr, .size = {1, 1}), "2,3,8 7:2,5 2,3,3 2,3,3",
     "edge_attention: v of rank 3, 8 wide, and scores of rank 3, 3 wide, expected (B,T,H*dv) and (B,T,H)"},
    {&op_fixed_links, ATTR(fixed_links_attr, .size = {0, 1}), "2,3,8 -",
     "fixed_links: x of rank 3, 0 edges, 1 pairs, expected rank 3, at least 1 of each, and a length a sequence"},
    {&op_link_rows, ATTR(links_attr, .size = {1, 1}), "2,3 7:2,5", "link_rows: x has rank 2, expected 3 (B,T,D)"},
    {&op_link_rows, ATTR(links_attr, .size = {1, 1}), "2,3,4 7:2,6",
     "link_rows: 2 x 6 words of links, expected 2 x 5, at least one of 1 edges and 1 pairs"},
    {&op_link_rows, ATTR(links_attr, .size = {1, 0}), "2,3,4 7:2,2",
     "link_rows: 2 x 2 words of links, expected 2 x 2, at least one of 1 edges and 0 pairs"},
    {&op_link_shares, ATTR(links_attr, .size = {1, 1}), "2,3,4 7:2,5",
     "link_shares: t has rank 3 and 3 rows, expected rank 3 and 1 rows, one per pair"},
    {&op_neighbours, ATTR(links_attr, .size = {1, 1}), "2,3 7:2,5", "neighbours: x has rank 2, expected 3 (B,T,D)"},
    {&op_neighbours, ATTR(links_attr, .size = {1, 1}), "2,3,4 7:3,5",
     "neighbours: 3 x 5 words of links, expected 2 x 5, at least one of 1 edges and 1 pairs"},
    /* move */
    {&op_append_rows, ATTR(append_rows_attr, .which = rows, .n = 2), "2,3,5 4,6",
     "append_rows: x has rank 3 and 5 columns, the table rank 2 and 6, for 2 rows; expected ranks 3 and 2, equal "
     "columns "
     "and at least 1 row"},
    {&op_append_rows, ATTR(append_rows_attr, .which = rows, .n = 2), "2,3,5 3,5",
     "append_rows: row 1 names entry 3 of a table of 3"},
    {&op_grid_positions, ATTR(grid_positions_attr, .trained = {2, 3}), "2,6,5 7,5 -",
     "grid_positions: x has rank 3 and 5 columns, the table rank 2, 7 rows and 5 columns for 2 x 3 positions; expected "
     "ranks 3 and 2, equal columns and a row for each position"},
    {&op_grid_positions, ATTR(grid_positions_attr, .trained = {2, 3}), "2,6,5 6,5 9:2",
     "grid_positions: 2 lengths of at most 8 do not fit 2 sequences of 6 tokens"},
    {&op_split, ATTR(split_attr, 1, 2, {3, 2}), "2,3,5",
     "split: 5 columns in 2 parts from 1 on were asked of a, which has 5"},
    {&op_join_columns, NONE, "2,3,5 2,4,5", "join_columns: a has 6 rows in 3 axes but b has 8 in 3; they must agree"},
    {&op_join_columns, NONE, "2,3,5 6,5", "join_columns: a has 6 rows in 3 axes but b has 6 in 2; they must agree"},
    {&op_repeat_each, ATTR(repeat_each_attr, 2), "3,5", "repeat_each: p has rank 2, expected 1"},
    {&op_repeat_each, ATTR(repeat_each_attr, 0), "3", "repeat_each: n is 0, expected at least 1"},
    {&op_take_rows, ATTR(take_rows_attr, .rows = 4, .tokens = 4), "2,5,3 -", "take_rows: x has 5 rows, expected 4"},
    {&op_take_rows, ATTR(take_rows_attr, .rows = 0, .tokens = 4), "2,4,3 -",
     "take_rows: rank 3, 0 rows of 4 tokens, expected rank 3 and at least 1 of each, and intervals of at least 1"},
    {&op_take_rows, ATTR(take_rows_attr, .rows = 4, .tokens = 4), "2,4,3 7:2",
     "take_rows: 2 lengths of at most 6 do not fit 2 sequences of 4 tokens"},
    {&op_pool, ATTR(pool_attr, 0), "2,3 -", "pool: x has rank 2, expected 3 (B,T,D)"},
    {&op_reverse, NONE, "2,3,5 9:2", "reverse: 2 lengths of at most 8 do not fit x of 2 sequences of 3"},
    {&op_decode_positions, ATTR(decode_attr, 0), "2,5",
     "decode_positions: e has rank 2 and there are 0 positions, expected rank 2 and at least 1"},
    /* norm */
    {&op_rmsnorm, ATTR(norm_attr, -1), "2,3,5 5", "rmsnorm: eps is -1, expected a number that is not negative"},
    {&op_layernorm, ATTR(norm_attr, 1e-5), "2,3,5 4 5",
     "layernorm: x has 5 columns but the weight has shape (4); expected (5)"},
    {&op_l2norm, ATTR(norm_attr, -1), "2,3,5", "l2norm: eps is -1, expected a number that is not negative"},
    {&op_rmsnorm_heads, ATTR(norm_attr, 1e-5), "2,3,6 6",
     "rmsnorm_heads: the weight has rank 1, expected 2 (heads,width)"},
    {&op_rmsnorm_heads, ATTR(norm_attr, 1e-5), "2,3,6 2,4", "rmsnorm_heads: x has 6 columns but the weight 8 elements"},
    {&op_layernorm_heads, ATTR(norm_attr, -1), "2,3,6 2,3",
     "layernorm_heads: eps is -1, expected a number that is not negative"},
    {&op_add_norm, ATTR(norm_attr, 1e-5), "2,3,5 5 5 2,4,5",
     "add_norm: a has shape (2,3,5) but d has (2,4,5); they must agree"},
    {&op_batch_norm, ATTR(batch_norm_attr, .eps = 1e-5, .momentum = 0.1), "2,5 5 5 5 5 -",
     "batch_norm: x has rank 2, expected 3 (B,T,D)"},
    {&op_batch_norm, ATTR(batch_norm_attr, .eps = 1e-5, .momentum = 0.1), "2,3,5 5 4 5 5 -",
     "batch_norm: x has 5 columns but the bias has shape (4); expected (5)"},
    {&op_batch_norm, ATTR(batch_norm_attr, .eps = 1e-5, .momentum = 0.1), "2,3,5 5 5 5 5 4:3",
     "batch_norm: 3 lengths do not fit 2 sequences"},
    {&op_batch_norm, ATTR(batch_norm_attr, .eps = 1e-5, .momentum = 1.5), "2,3,5 5 5 5 5 -",
     "batch_norm: eps is 1e-05 and momentum 1.5, expected at least 0, and 0 to 1"},
    /* matrix */
    {&op_scan_delta, ATTR(delta_attr, .heads = 2, .steps = 0), "2,3,4 2,3,4 2,3,6 2,3,2 -",
     "scan_delta: heads=2 and steps=0 must both be at least 1"},
    {&op_scan_delta, ATTR(delta_attr, .heads = 3, .steps = 1), "2,3,4 2,3,4 2,3,6 2,3,3 -",
     "scan_delta: q is 4 wide, not divisible by heads=3"},
    {&op_scan_delta, ATTR(delta_attr, .heads = 2, .steps = 2), "2,3,4 2,3,8 2,3,6 2,3,4 -",
     "scan_delta: v is 6 wide, not divisible by steps*heads = 4"},
    {&op_scan_delta, ATTR(delta_attr, .heads = 2, .steps = 1), "2,3,4 2,3,6 2,3,6 2,3,2 -",
     "scan_delta: input 1 is 6 wide, expected steps times the width of q = 4"},
    {&op_scan_delta, ATTR(delta_attr, .heads = 2, .steps = 1), "2,3,4 2,4,4 2,3,6 2,3,2 -",
     "scan_delta: q is (2,3) and input 1 (2,4) in batch and length; they must agree"},
    {&op_scan_delta, ATTR(delta_attr, .heads = 2, .steps = 1), "2,3,4 2,3,4 2,3,6 2,3,3 -",
     "scan_delta: input 3 is 3 wide, expected steps*heads = 2"},
    {&op_scan_delta, ATTR(delta_attr, .heads = 2, .steps = 1), "2,3,4 2,3,4 2,3,6 2,3,2 2,3,5",
     "scan_delta: input 4 is 5 wide, expected heads = 2"},
    {&op_scan_outer, ATTR(outer_attr, .heads = 4, .groups = 3), "2,3,6 2,3,6 2,3,8 2,3,4 - - -",
     "scan_outer: heads=4 is not a multiple of groups=3"},
    {&op_scan_outer, ATTR(outer_attr, .heads = 4, .groups = 2), "2,3,5 2,3,5 2,3,8 2,3,4 - - -",
     "scan_outer: q is 5 wide, not divisible by groups=2"},
    {&op_scan_outer, ATTR(outer_attr, .heads = 4, .groups = 2), "2,3,6 2,3,6 2,3,7 2,3,4 - - -",
     "scan_outer: v is 7 wide, not divisible by heads=4"},
    {&op_scan_outer, ATTR(outer_attr, .heads = 4, .groups = 2), "2,3,6 2,3,6 2,3,8 2,3,5 - - -",
     "scan_outer: input 3 is 5 wide, expected heads = 4"},
    {&op_scan_outer, ATTR(outer_attr, .heads = 4, .groups = 2), "2,3,6 2,6 2,3,8 2,3,4 - - -",
     "scan_outer: b has rank 2, expected at least 3 (B,T,width)"},
    /* stable */
    {&op_stable_gates, ATTR(stable_gates_attr, 0), "2,3 2,3",
     "stable_gates: i has rank 2, expected 3 (batch, length, heads)"},
    {&op_stable_gates, ATTR(stable_gates_attr, 0), "2,3,4 2,3,5",
     "stable_gates: a has shape (2,3,4) but b has (2,3,5); they must agree"},
    {&op_scan_slstm, NONE, "2,12 2,12 2,12 2,12 48,3 48",
     "scan_slstm: raw gates, recurrent, bias have rank 2, 2, 1, expected 3, 2, 1"},
    {&op_scan_slstm, NONE, "2,3,12 2,3,12 2,3,12 2,3,12 48,5 48",
     "scan_slstm: recurrent is 48 x 5, expected 4D = 48 rows, and a number of columns that divides D = 12"},
    {&op_scan_slstm, NONE, "2,3,12 2,3,12 2,3,12 2,3,12 48,3 47", "scan_slstm: bias has 47 elements, expected 4D = 48"},
    {&op_scan_route, ATTR(scan_route_attr, ROUTE_ROW), "2,3 2,3 2,3 2,3 - -",
     "scan_route: d has rank 2, expected 3 (B,T,N)"},
    {&op_scan_route, ATTR(scan_route_attr, ROUTE_ROW), "2,3,5 2,3,5 2,3,5 2,3,4 - -",
     "scan_route: a has shape (2,3,5) but d has (2,3,4); they must agree"},
    {&op_scan_route, ATTR(scan_route_attr, ROUTE_ROW), "2,3,5 2,3,5 2,3,5 2,3,5 5,5,2 -",
     "scan_route: s is missing; give both dict and s, or neither if no state moves"},
    {&op_scan_route, ATTR(scan_route_attr, ROUTE_COLUMN), "2,3,5 2,3,5 2,3,5 2,3,5 4,5,2 2,3,2",
     "scan_route: dict has rank 3 and begins with 4, expected (N,N,K), N = 5"},
    {&op_scan_route, ATTR(scan_route_attr, ROUTE_COLUMN), "2,3,5 2,3,5 2,3,5 2,3,5 5,5,2 2,3,4",
     "scan_route: s has rank 3 and ends with 4, expected (B,T,K), K = 2 of dict"},
    {&op_stable_readout, ATTR(stable_readout_attr, 0), "2,3 2,3,2",
     "stable_readout: o and m have ranks 2 and 3, expected (B,T,...) and (B,T,heads)"},
    {&op_stable_readout, ATTR(stable_readout_attr, 0), "2,3,7 2,3,2",
     "stable_readout: o is 7 wide, expected a denominator and equally many values for each of 2 heads"},
    {&op_stable_readout, ATTR(stable_readout_attr, -1), "2,3,8 2,3,2",
     "stable_readout: eps is -1, expected a number that is not negative"},
    /* flow */
    {&op_scan_flow, ATTR(flow_attr, .N = 0, .m = 2), "2,3,8 2,4",
     "scan_flow: blocks=0 and m=2 must both be at least 1"},
    {&op_scan_flow, ATTR(flow_attr, .N = 2, .m = 2), "2,3,8 2,5",
     "scan_flow: y0 has 2 axes and 5 columns, expected 2 and 4"},
    {&op_scan_flow, ATTR(flow_attr, .N = 2, .m = 2), "2,3,9 2,4",
     "scan_flow: input 0 has 3 axes and 9 columns, expected 3 and 8"},
    {&op_scan_flow, ATTR(flow_attr, .N = 2, .m = 2), "3,3,8 2,4",
     "scan_flow: input 0 is (3,3) in batch and length, expected (2,3)"},
    {&op_scan_dplr, ATTR(flow_attr, .N = 0, .m = 0), "2,3,4 2,3,6 2,3,6 2,4",
     "scan_dplr: u has 6 columns, expected a multiple of the 4 of d"},
    {&op_scan_hadamard, ATTR(flow_attr, .N = 0, .m = 0), "2,3,6 2,6",
     "scan_hadamard: d has 6 columns, expected a power of two"},
    {&op_log_signature, ATTR(log_signature_attr, 2, 1), "2,3", "log_signature: w has rank 2, expected 3 (B,T,C)"},
    {&op_log_signature, ATTR(log_signature_attr, 2, 3), "2,3,4",
     "log_signature: interval=2 and depth=3, expected at least 1 step and depth 1 or 2"},
    {&op_brackets, ATTR(brackets_attr, 2, 0), "8,3", "brackets: blocks=2 and m=0 must both be at least 1"},
    {&op_brackets, ATTR(brackets_attr, 2, 2), "9,3",
     "brackets: a has rank 2 and 9 rows, expected rank 2 and m*m*blocks = 8 rows"},
    {&op_dense_generators, NONE, "4,3 8,3 9,3", "dense_generators: b has shape (8,3) but c has (9,3); they must agree"},
    {&op_dense_generators, NONE, "4,3 9,3 9,3",
     "dense_generators: d has rank 2 and 12 elements, u and v rank 2 and 27, expected (D,C) and (r*D,C)"},
    {&op_expm_flow, ATTR(expm_attr, .J = 2, .N = 0), "2,3,12", "expm_flow: blocks=0 and m=2 must both be at least 1"},
    {&op_expm_skew, ATTR(expm_attr, .J = 17, .N = 1), "2,3,289", "expm_skew: matrices of size 17, expected 1 to 16"},
    {&op_expm_skew, ATTR(expm_attr, .J = 3, .N = 1), "2,3,10",
     "expm_skew: a has 10 columns, not a multiple of J*J = 9"},
    {&op_expm_flow, ATTR(expm_attr, 2, 3, true), "2,3,13", "expm_flow: l has 13 columns, expected m*m*blocks = 12"},
    {&op_sandwich, ATTR(expm_attr, .J = 2, .N = 1), "2,3,8 2,3,5 2,3,8",
     "sandwich: e has 30 elements, expected 24 (J = 2 for each matrix)"},
    /* plstm */
    {&op_scan_plstm, ATTR(scan_plstm_attr, .H = 0, .J = 1), "2,3,4 2,3,4 2,3,6 2,3,2 2,3,2 2,3,2 2,3,2",
     "scan_plstm: heads=0, expected at least 1"},
    {&op_scan_plstm, ATTR(scan_plstm_attr, .H = 2, .J = 17), "2,3,4 2,3,4 2,3,6 2,3,2 2,3,2 2,3,2 2,3,2",
     "scan_plstm: track=17, expected 1 to 16"},
    {&op_scan_plstm, ATTR(scan_plstm_attr, .H = 2, .J = 1), "2,3,4 2,3,4 2,3,6 2,3,3 2,3,2 2,3,2 2,3,2",
     "scan_plstm: the source gate is (2,3,3), expected (2,3,2)"},
    {&op_scan_plstm, ATTR(scan_plstm_attr, .H = 2, .J = 1), "2,3,4 2,3,4 2,3,6 2,3,2 2,6 2,3,2 2,3,2",
     "scan_plstm: the transition has rank 2, expected 3 (B,rows,width)"},
    {&op_grid_scan, ATTR(grid_scan_attr, .X = 2, .Y = 2, .H = 2), "2,3,4 2,3,4 2,3,6 2,3,8 2,3,2",
     "grid_scan: height=2 times width=2 is not the length 3"},
    {&op_grid_gates, ATTR(grid_gates_attr, 0), "2,3,6 2,3,6 2,3,6",
     "grid_gates: raw gates have rank 3 and 6 columns, expected rank 3 and 4 directions a head"},
    {&op_dag_scan, ATTR(dag_scan_attr, .size = {4, 5}, .H = 2), "2,3,4 2,3 2,3,6 2,3,2 2,4,2 2,4,2 2,5,2 9:2,40",
     "dag_scan: k has rank 2, expected 3 (B,T,width)"},
    {&op_dag_scan, ATTR(dag_scan_attr, .size = {4, 5}, .H = 2), "2,3,4 2,4,4 2,3,6 2,3,2 2,4,2 2,4,2 2,5,2 9:2,40",
     "dag_scan: k is (2,4) and q (2,3) in batch and length; they must agree"},
    {&op_dag_scan, ATTR(dag_scan_attr, .size = {4, 5}, .H = 2), "2,3,4 2,3,4 2,3,7 2,3,2 2,4,2 2,4,2 2,5,2 9:2,40",
     "dag_scan: v is 7 wide, not divisible by heads=2"},
    {&op_dag_scan, ATTR(dag_scan_attr, .size = {4, 5}, .H = 2), "2,3,4 2,3,6 2,3,6 2,3,2 2,4,2 2,4,2 2,5,2 9:2,40",
     "dag_scan: k is 6 wide and q 4; they must agree"},
    /* tree; a tree of arity 2 and 3 levels has 7 nodes */
    {&op_tree_add, ATTR(tree, 2, 3, 4), "2,7 1,4",
     "tree_add: w and p have rank 2 and 2, expected 3 (B,nodes,P) and 2 (rows,P)"},
    {&op_tree_add, ATTR(tree, 2, 3, 4), "2,8,4 1,4",
     "tree_add: w has 8 nodes but the tree of arity 2 and 3 levels has 7"},
    {&op_tree_add, ATTR(tree, 2, 3, 4), "2,7,4 3,4", "tree_add: p has 3 rows, expected 1, levels-1 = 2 or nodes-1 = 6"},
    {&op_tree_add, ATTR(tree, 2, 3, 4), "2,7,4 2,5", "tree_add: w is 4 wide and p 5; they must agree"},
    {&op_tree_block, ATTR(tree_solve_attr, .tree = {2, 3, 4}, .block = 9), "1,4 1,4 - - 2,7,9 2,7,9 -",
     "tree_block: blocks of m = 9 and u of 9 columns, expected m in 1..8 and m r P columns"},
    {&op_tree_block, ATTR(tree_solve_attr, .tree = {2, 3, 4}, .block = 2), "1,12 1,12 - - 2,7,8 2,7,8 -",
     "tree_block: couplings are 12 wide, expected u's 8 columns (m,r,P) as (m,m,P)"},
    {&op_tree_solve, ATTR(tree_solve_attr, .tree = {2, 3, 4}), "1,4 1,4 - - 2,7 2,7,4 -",
     "tree_solve: u has rank 2, expected 3 (B,nodes,P)"},
    {&op_tree_solve, ATTR(tree_solve_attr, .tree = {2, 0, 4}), "1,4 1,4 - - 2,7,4 2,7,4 -",
     "tree_solve: a tree of arity 2 and 0 levels has no node or more than 2^31"},
    {&op_tree_solve, ATTR(tree_solve_attr, .tree = {2, 3, 4}), "1,4 1,4 - - 2,8,4 2,7,4 -",
     "tree_solve: u has 8 nodes but the tree of arity 2 and 3 levels has 7"},
    {&op_tree_solve, ATTR(tree_solve_attr, .tree = {2, 3, 5}), "1,4 1,4 - - 2,7,4 2,7,4 -",
     "tree_solve: 5 real leaves do not fit a tree of 4"},
    {&op_tree_solve, ATTR(tree_solve_attr, .tree = {2, 3, 4}), "1,4 - - - 2,7,4 2,7,4 -",
     "tree_solve: 2 coupling planes expected, up and in the free form down; plane 1 is missing"},
    {&op_tree_solve, ATTR(tree_solve_attr, .tree = {2, 3, 4}), "1,4 1,4 1,4 - 2,7,4 2,7,4 -",
     "tree_solve: 2 coupling planes expected, up and in the free form down; plane 2 is one too many"},
    {&op_tree_solve, ATTR(tree_solve_attr, .tree = {2, 3, 4}), "4 4 - - 2,7,4 2,7,4 -",
     "tree_solve: couplings have rank 1, expected 2 (rows,P) or 3 (B,nodes,P)"},
    {&op_tree_solve, ATTR(tree_solve_attr, .tree = {2, 3, 4}), "1,5 1,5 - - 2,7,4 2,7,4 -",
     "tree_solve: couplings are 5 wide, expected u's 4 columns"},
    {&op_tree_solve, ATTR(tree_solve_attr, .tree = {2, 3, 4}), "1,4 2,4 - - 2,7,4 2,7,4 -",
     "tree_solve: couplings hold 8 and 4 elements; all planes must have the same shape"},
    {&op_tree_solve, ATTR(tree_solve_attr, .tree = {2, 3, 4}), "3,7,4 3,7,4 - - 2,7,4 2,7,4 -",
     "tree_solve: couplings are (3,7) and u (2,7) in batch and nodes; they must agree"},
    {&op_tree_solve, ATTR(tree_solve_attr, .tree = {2, 3, 4}), "3,4 3,4 - - 2,7,4 2,7,4 -",
     "tree_solve: couplings have 3 rows, expected 1, levels-1 = 2 or nodes-1 = 6"},
    {&op_tree_solve, ATTR(tree_solve_attr, .tree = {2, 3, 4}), "1,4 1,4 - - 2,7,4 2,7,4 9:2",
     "tree_solve: leaves holds 2 counts below 9, expected 2 of at most 4"},
};

/* Misfits that no option can ask for, but a mistake in a model. */
static const struct misfit mistakes[] = {
    {&op_linear, NONE, "- 7,5", "linear: input 0 is missing"},
    {&op_l2norm, NONE, "-", "l2norm: input 0 is missing"},
    {&op_scan_block, ATTR(scan_attr, .N = 2, .m = 3), "2,3,24 -", "scan_block: input 1 is missing"},
    {&op_scan_companion, ATTR(scan_attr, .N = 2, .m = 3), "- 2,3,2", "scan_companion: input 0 is missing"},
    {&op_scan_diag, NONE, "2,3,5 -", "scan_diag: input 1 is missing"},
    {&op_scan_diag_complex, NONE, "5 5 2,3,5 -", "scan_diag_complex: input 3 is missing"},
    {&op_scan_lstm, NONE, "2,3,20 20,5 -", "scan_lstm: input 2 is missing"},
    {&op_tree_add, ATTR(tree, .arity = 2, .levels = 2), "2,3,4 -", "tree_add: input 1 is missing"},
    {&op_tree_solve, ATTR(tree_solve_attr, .tree = {.arity = 2, .levels = 1}), "- - - - - 2,1,4",
     "tree_solve: input 4 is missing"},
    {&op_activate, ATTR(activate_attr, (enum activation) - 1), "2,3,5", "activate: there is no activation number -1"},
    {&op_embedding, NONE, "2,3 8,5",
     "embedding: expected int32 ids of rank 1 to 4 and a table of rank 2, got ranks 2 and 2"},
    {&op_cross_entropy, NONE, "6,5 6", "cross_entropy: expected real logits and int32 targets"},
    {&op_step_begin, ATTR(step_attr, .schedule = {0}), "2 5", "step_begin: the loss has 2 elements, expected 1"},
    {&op_adamw, ATTR(adamw_attr, .n_segments = 2, .segments = segments), "7 7 7 7 -",
     "adamw: segment 1 (offset 3, count 4) is out of order or beyond the array of 7"},
    {&op_adamw, ATTR(adamw_attr, .n_segments = 1, .segments = segments), "3 3 3 3 -",
     "adamw: segment 0 (offset 0, count 4) is out of order or beyond the array of 3"},
    {&op_take_batch, ATTR(take_batch_attr, .period = 9), "8:9,3 - - - 8:2,3 - - -",
     "take_batch: input or targets are missing"},
    {&op_take_batch, ATTR(take_batch_attr, .period = 8), "8:9,3 8:9,3 - - 8:2,3 8:2,3 - -",
     "take_batch: a period of 8 leaves out some of 9 examples"},
    {&op_take_batch, ATTR(take_batch_attr, .period = 9), "8:9,3 8:9,3 4:9 - 8:2,3 8:2,3 - -",
     "take_batch: the split and the batch do not both have array 2"},
    {&op_take_batch, ATTR(take_batch_attr, .period = 9), "8:9,3 8:9,3 - - 8:2,4 8:2,3 - -",
     "take_batch: array 0 has 27 elements in a split of 9 and 8 in a batch of 2"},
    {&op_scan_outer, ATTR(outer_attr, .heads = 4, .groups = 2), "2,3,6 2,3,6 2,3,8 2,3,4 - 2,3,4 -",
     "scan_outer: mark and direct are given together or not at all"},
};

/* The tensor that a word of `inputs` asks for, NULL for "-". */
static struct tensor *input_of(struct graph *g, const char *word, const char *name) {
    int64_t dims[TENSOR_MAX_RANK], limit = 0;
    int rank = 0;
    if (*word == '-') return NULL;
    if (strchr(word, ':')) {
        limit = strtoll(word, NULL, 10);
        word = strchr(word, ':') + 1;
    }
    for (char *end; *word && rank < TENSOR_MAX_RANK; word = *end ? end + 1 : end)
        dims[rank++] = strtoll(word, &end, 10);
    if (limit) return graph_input_ids(g, name, rank, dims, (int32_t)limit, false);
    return graph_input(g, name, rank, dims, true);
}

/* The first op's sentence stays, whatever is built on its missing output. */
static void expect_sentence(const struct misfit *m, enum status status) {
    struct tensor *in[OP_MAX_IN] = {0};
    struct graph g;
    char words[256], name[2] = "a", *rest = NULL;
    int n = 0;
    open_graph(&g, NULL, true, false, "");
    snprintf(words, sizeof words, "%s", m->inputs);
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest), name[0]++) {
        ck_assert_int_lt(n, OP_MAX_IN);
        in[n++] = input_of(&g, word, name);
    }
    ck_assert_int_eq(g.error.status, ST_OK);
    ck_assert_ptr_null(graph_call(&g, m->op, m->attr, m->attr_bytes, in, n));
    ck_assert_int_eq(g.error.status, status);
    ck_assert_str_eq(g.error.text, m->says);
    ck_assert_ptr_null(linear(&g, NULL, in[0], NULL));
    ck_assert_str_eq(g.error.text, m->says);
    graph_free(&g);
}

START_TEST(a_misfit_is_one_sentence_with_both_numbers) {
    expect_sentence(&misfits[_i], ST_USAGE);
}
END_TEST

START_TEST(a_mistake_is_one_sentence) {
    expect_sentence(&mistakes[_i], ST_FAIL);
}
END_TEST

/* Whether any input fits the op. */
static bool takes_all(const struct op *op) {
    return op == &op_frobenius || op == &op_prepend_one || op == &op_softmax || !strcmp(op->name, "template");
}

START_TEST(every_op_has_a_misfit) {
    for (const struct op *const *op = op_list(); *op; op++) {
        bool has = takes_all(*op);
        for (size_t i = 0; i < sizeof misfits / sizeof *misfits; i++) has = has || misfits[i].op == *op;
        for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) has = has || mistakes[i].op == *op;
        ck_assert_msg(has, "%s refuses what nothing here gives it", (*op)->name);
    }
}
END_TEST

Suite *check_misfits(void);
Suite *check_misfits(void) {
    Suite *suite = suite_create("misfits");
    TCase *tests = tcase_create("misfits");
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_loop_test(tests, a_misfit_is_one_sentence_with_both_numbers, 0, (int)(sizeof misfits / sizeof *misfits));
    tcase_add_loop_test(tests, a_mistake_is_one_sentence, 0, (int)(sizeof mistakes / sizeof *mistakes));
    tcase_add_test(tests, every_op_has_a_misfit);
    suite_add_tcase(suite, tests);
    return suite;
}

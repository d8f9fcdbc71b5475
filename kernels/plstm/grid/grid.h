/* grid.h - parts that the twins of grid_gates and grid_scan share: the planes of the gate tensor, the four frames. */
#ifndef LRNN_KERNELS_PLSTM_GRID_GRID_H
#define LRNN_KERNELS_PLSTM_GRID_GRID_H

#include "kernels/plstm/dag_state.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Planes of the gate tensor (B,N, 8 planes * 4 directions * H), element (plane*4 + direction)*H + head. T_xy goes from
 * the in-edge y (l left, u top) to the out-edge x (r right, d down). */
enum grid_plane { GRID_SR, GRID_SD, GRID_RL, GRID_RU, GRID_DL, GRID_DU, GRID_ML, GRID_MU, GRID_PLANES };

/* Node of frame position (x, y): direction bit 0 flips the first axis, bit 1 the second. */
LRNN_INLINE int64_t grid_node(const struct grid_scan_attr *a, int direction, int64_t x, int64_t y) {
    return (direction & 1 ? a->X - 1 - x : x) * a->Y + (direction & 2 ? a->Y - 1 - y : y);
}

/* Index of plane 0 of a node, direction and head in a gate tensor. Plane p is p * 4H elements further. */
LRNN_INLINE int64_t grid_gate_at(int64_t H, int64_t row, int direction, int64_t h) {
    return row * GRID_PLANES * 4 * H + direction * H + h;
}

#ifdef __cplusplus
}
#endif
#endif

"""The libraries that the package takes for this processor compute: run by each kind of processor that qemu-user has.

    for cpu in Nehalem Haswell max; do qemu-x86_64 -cpu $cpu $(which python3) tests/library/check_levels.py; done

Needs an installed wheel, or PYTHONPATH, and nothing else. An instruction that the processor lacks would end it."""

import ctypes
import math
import random

from lrnn import ops

B, T, N, M = 2, 50, 16, 3
random.seed(1)
sizes = {"blocks": N, "m": M, "gate": 0}
op = ops.OPS["scan_block"]
arrays = {n: (ctypes.c_float * (B * T * op.shapes(sizes)[n][1]))() for n in ("z", "v", "h")}
for name in ("z", "v"):
    for i in range(len(arrays[name])):
        arrays[name][i] = random.uniform(-1, 1)
d = ops.descriptor(op, sizes, "float32", B, T)
for name, array in arrays.items():
    getattr(d, name).data = ctypes.addressof(array)


def workspace(size):
    memory = ctypes.create_string_buffer(size + ops.ALIGN)
    address = ctypes.addressof(memory)
    return address + -address % ops.ALIGN, memory


ops.run(op, d, ops.FORWARD, workspace)
worst = 0.0
for b in range(B):
    for k in range(N):
        h = [0.0] * M
        for t in range(T):
            token, new = b * T + t, []
            for i in range(M):
                row = [math.exp(arrays["z"][(token * M + i) * (M + 1) * N + j * N + k]) for j in range(M + 1)]
                seen = [*h, arrays["v"][(token * M + i) * N + k]]
                new.append(sum(a * x for a, x in zip(row, seen)) / sum(row))
            h = new
            worst = max(worst, *(abs(h[i] - arrays["h"][(token * M + i) * N + k]) for i in range(M)))
assert worst < 1e-5, worst

# Both passes of every op, in both precisions, on zeros: wide enough for the kernels' vectors, and their rests.
SIZES = {
    "scan_diag": {"width": 37, "constant": 0},
    "scan_diag_complex": {"width": 37, "constant": 0},
    "scan_block": {"blocks": 37, "m": 3},
    "scan_companion": {"channels": 37, "m": 3},
    "scan_lstm": {"width": 37},
    "scan_outer": {"heads": 2, "groups": 2, "key": 17, "value": 19, "scale": 1},
    "scan_delta": {"heads": 2, "steps": 1, "key": 17, "value": 19, "scale": 1, "rate": 1, "channels": 0},
    "scan_plstm": {"heads": 2, "states": 2, "key": 17, "value": 19, "scale": 1},
    "grid_scan": {"rows": 5, "columns": 7, "heads": 2, "key": 17, "value": 19, "scale": 1},
    "dag_scan": {"heads": 2, "key": 17, "value": 19, "edges": 2, "pairs": 1, "scale": 1},
    "scan_flow": {"blocks": 5, "m": 7},
    "scan_dplr": {"width": 37, "rank": 2},
    "scan_hadamard": {"width": 64},
    "tree_solve": {"arity": 2, "levels": 4, "width": 37},
}
LENGTHS = {"grid_scan": 35, "tree_solve": 15}
assert SIZES.keys() == ops.OPS.keys()
for dtype, kind in (("float32", ctypes.c_float), ("float64", ctypes.c_double)):
    for name, sizes in SIZES.items():
        op, length, arrays = ops.OPS[name], LENGTHS.get(name, T), []
        d = ops.descriptor(op, sizes, dtype, B, length)
        links = (ctypes.c_int32 * (B * 7))(*[0, 1, 1, 2, 0, 1, 0] * B)
        if op.numbers:
            setattr(d, op.numbers, ctypes.addressof(links))
        absent = ("down_re", "down_im", "read", "erase")
        for array in (a for a in op.arrays if a not in absent):
            axes, width = op.shapes(sizes)[array]
            count = math.prod(width) if isinstance(width, tuple) else width
            count *= {"T": B * length, "B": B, "R": B, "S": 1}[axes]
            arrays += [(kind * count)(), (kind * count)()]
            getattr(d, array).data, getattr(d, array).grad = map(ctypes.addressof, arrays[-2:])
        ops.run(op, d, ops.FORWARD, workspace)
        ops.run(op, d, ops.BACKWARD, workspace)
ran = f"both passes of {len(SIZES)} ops ran, in two precisions"
print(f"{ops.library_path()}: scan_block is off by {worst:.1e} at most; {ran}")

"""The library that the package takes for this processor computes: run by each kind of processor that qemu-user has.

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
print(f"{ops.library_path()}: scan_block is off by {worst:.1e} at most")

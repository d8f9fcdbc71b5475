"""lrnn.arrays on arrays of NumPy, and of PyTorch where it is: values, gradients, strides, offsets, refusals. Needs
NumPy and liblrnn-f64.so."""

import numpy as np

import lrnn.arrays
import lrnn.reference
from documented import faults

passed = 0
random = np.random.default_rng(1)
B, T, M, N = 3, 7, 2, 5
SIZES = {"blocks": N, "m": M}


def check(what, holds):
    global passed
    assert holds, what
    passed += 1
    print(f"  {what}")


def draw(*shape):
    return random.uniform(-1, 1, shape)


z, v, h0, dh = draw(B, T, M * (M + 1) * N), draw(B, T, M * N), draw(B, M * N), draw(B, T, M * N)


def scan(z, v, h0, like=np.empty_like):
    h = like(v)
    lrnn.arrays.forward("scan_block", SIZES, {"z": z, "v": v, "h": h, "h0": h0})
    return h


expected = lrnn.reference.scan_block(z.reshape(B, T, M, M + 1, N), v.reshape(B, T, M, N), h0=h0.reshape(B, M, N))[0]
h = scan(z, v, h0)
check("NumPy's arrays give the naive form to 1e-12", abs(h - expected.reshape(h.shape)).max() < 1e-12)
apart = np.empty((B, T, 2 * M * N))[:, ::-1, ::2]
check("strides change nothing", (scan(z[::-1].copy()[::-1], np.asfortranarray(v), h0, lambda v: apart) == h).all())

gradients = {"h": dh, "z": np.empty_like(z), "v": np.empty_like(v), "h0": np.empty_like(h0)}
lrnn.arrays.backward("scan_block", SIZES, {"z": z, "v": v, "h": h, "h0": h0}, gradients)
for name, x in (("z", z), ("v", v), ("h0", h0)):
    at, step, sides = (1,) * x.ndim, 1e-6, []
    for side in (step, -step):
        x[at] += side
        sides.append((scan(z, v, h0) * dh).sum())
        x[at] -= side
    check(f"the gradient of {name} is a difference", abs((sides[0] - sides[1]) / 2 / step - gradients[name][at]) < 1e-7)

cuts, tokens = [0, 4, 4, B * T], {"z": z.reshape(B * T, -1), "v": v.reshape(B * T, -1), "h": np.empty((B * T, M * N))}
lrnn.arrays.forward("scan_block", SIZES, tokens, offsets=cuts)
alone = np.empty((1, 4, M * N))
lrnn.arrays.forward("scan_block", SIZES, {"z": tokens["z"][None, :4], "v": tokens["v"][None, :4], "h": alone})
check("a sequence among others is the sequence alone", abs(tokens["h"][:4] - alone[0]).max() < 1e-14)
need = lrnn.arrays.workspace_bytes("scan_block", SIZES, {"z": z, "v": v, "h": apart})
space = np.empty(need // 4 + 16, np.int32)
space = space[-(space.ctypes.data % 64) // 4 % 16 :][: need // 4]
lrnn.arrays.forward("scan_block", SIZES, {"z": z, "v": v, "h": apart}, workspace=space)
check("a workspace of the caller's is used", need > 0)

try:
    import torch

    tensors = [torch.from_numpy(a.copy()) for a in (z, v, h0)]
    check("PyTorch's tensors come by DLPack", (scan(*tensors, torch.empty_like).numpy() == h).all())
    half = [t.bfloat16() for t in tensors]
    near = abs(scan(*half, torch.empty_like).double().numpy() - h).max()
    check("bfloat16 comes by DLPack", near < 0.05)
except ImportError:
    print("  without PyTorch: DLPack was checked on NumPy's arrays alone")


class Numbas:
    """An array on a device, as Numba tells of it."""

    def __init__(self, a):
        self.__cuda_array_interface__ = dict(a.__array_interface__, version=3)


class Elsewhere:
    """An array on a device, as DLPack tells of it: CUDA is 2, ROCm 10."""

    def __init__(self, a, kind):
        self.a, self.kind = a, kind

    def __dlpack_device__(self):
        return self.kind, 0

    def __dlpack__(self, stream=None):
        return self.a.__dlpack__()


given = {"z": z, "v": v, "h": h}
for words, wrong in (
    ("is float64 (3, 7, 10) on the CPU, expected float64 (3, 7, 30)", {"z": v}),
    ("expected float64 (3, 7, 10) on the CPU", {"v": v.astype(np.float32)}),
    ("there is no array w", {"w": v}),
    ("repeats one element", {"v": np.lib.stride_tricks.as_strided(np.ones(1), v.shape, (0, 0, 0))}),
    ("has neither __dlpack__", {"v": v.tolist()}),
    ("overlaps", {"h": v}),
    ("is float64 (3, 7, 10) on cuda:0, expected float64 (3, 7, 10) on the CPU", {"v": Numbas(v)}),
    ("CUDA memory, and this library was built without CUDA", {n: Numbas(a) for n, a in given.items()}),
    ("and this library was built without CUDA", {n: Elsewhere(a, 2) for n, a in given.items()}),
    ("h is float64 (3, 7, 10) on cuda:0, expected float64 (3, 7, 10) on the CPU", {"h": Elsewhere(h, 2)}),
    ("DLPack's device type 10, expected 1 (CPU) or 2 (CUDA)", {"v": Elsewhere(v, 10)}),
):
    try:
        lrnn.arrays.forward("scan_block", SIZES, {**given, **wrong})
        sentence = ""
    except lrnn.LrnnError as error:
        sentence = str(error)
    check(f"refused: {words}", words in sentence)
check("public functions have type hints and docstrings", not faults(lrnn.arrays))
print(f"{passed} passed with NumPy {np.__version__} and liblrnn {lrnn.version()}")

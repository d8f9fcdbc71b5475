"""The installed wheel, in a Python that has no other package: its library on the CPU, and what it says to a call on a
CUDA device that is not there.

    VENV/bin/python tests/library/check_wheel.py
"""

import ctypes
import importlib.metadata
import os

import lrnn
from lrnn import ops

passed = 0


def check(what, holds):
    global passed
    assert holds, what
    passed += 1
    print(f"  {what}")


def scan(dtype, real, device=0):
    """scan_diag of one sequence of three tokens with a = 1/2 and x = 1, on the CPU or on device 0 of CUDA."""
    op, (a, x, h) = ops.OPS["scan_diag"], ((real * 3)(*[value] * 3) for value in (0.5, 1, 0))
    d = ops.descriptor(op, {"width": 1}, dtype, 1, 3)
    d.call.device = device
    for name, array in (("a", a), ("x", x), ("h", h)):
        ops.bind(d, name, ops.Buffer(ctypes.addressof(array), (3, 1, 1)))
    ops.run(op, d, ops.FORWARD, lambda size: (_ for _ in ()).throw(AssertionError(f"a workspace of {size} bytes")))
    return list(h)


def refusal(dtype, real):
    """The sentence that a call on a CUDA device gets."""
    try:
        scan(dtype, real, ops.CUDA)
    except lrnn.LrnnError as error:
        return str(error)
    return ""


here, version = os.path.dirname(lrnn.__file__), importlib.metadata.version("lrnn")
with_cuda = os.path.isdir(os.path.join(here, "lib", "cuda"))
check(f"the library is of version {version}", lrnn.version() == version.split("+")[0])
check("the library is the wheel's", ops.library_path().startswith(here))
check("a wheel with CUDA says so in its version", with_cuda == ("+cu" in version))
words = "there is no CUDA device" if with_cuda else "this library was built without CUDA"
for dtype, real in (("float32", ctypes.c_float), ("float64", ctypes.c_double)):
    check(f"{dtype} on the CPU", scan(dtype, real) == [1, 1.5, 1.75])
    if os.path.exists("/dev/nvidiactl"):
        print(f"not checked: what {dtype} says of a machine without a GPU, as this one has one")
    else:
        check(f"{dtype} on a device: {words}", words in refusal(dtype, real))
for package in ("torch", "jax"):
    try:
        __import__(f"lrnn.{package}")
        missing = "nothing"
    except ImportError as error:
        missing = error.name
    check(f"lrnn.{package} says that {package} is missing", missing == package)
print(f"{passed} passed with the wheel {version}")

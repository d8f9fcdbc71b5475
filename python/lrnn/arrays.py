"""The ops on arrays of any package, without a copy: those with DLPack (NumPy, CuPy, PyTorch, JAX), with
__cuda_array_interface__ (Numba) or with __array_interface__.

    import lrnn.arrays
    sizes = {"blocks": 16, "m": 4, "gate": 0}
    lrnn.arrays.forward("scan_block", sizes, {"z": z, "v": v, "h": h})
    lrnn.arrays.backward("scan_block", sizes, {"z": z, "v": v, "h": h}, {"h": dh, "z": dz, "v": dv})

Names, sizes and shapes are those of include/lrnn.h: (B,T,W), with W joining the remaining axes. The caller makes all
arrays; outputs, and gradients of inputs, are written in place. LrnnError: what the library refuses, a wrong shape, or
arrays of several types or devices.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lrnn import ops
from lrnn.ops import LrnnError, Op

__all__ = ["forward", "backward", "workspace_bytes", "LrnnError"]

_CPU, _CUDA = 1, 2  # device types of DLPack
_CODES = {(2, 32): "float32", (2, 64): "float64", (4, 16): "bfloat16", (0, 32): "int32"}
_TYPES = {"<f4": "float32", "<f8": "float64", "<i4": "int32"}


class _Tensor(ctypes.Structure):
    """DLTensor of dlpack.h."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    ]


@dataclass
class _View:
    address: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    device: int | None  # None: the CPU
    owner: object


def _dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = [1]
    for n in shape[:0:-1]:
        strides.insert(0, strides[0] * max(n, 1))
    return tuple(strides[: len(shape)])


def _of_dlpack(a, stream: int) -> _View:
    kind, index = a.__dlpack_device__()
    if kind not in (_CPU, _CUDA):
        raise LrnnError(f"an array is on DLPack's device type {kind}, expected {_CPU} (CPU) or {_CUDA} (CUDA)")
    capsule = a.__dlpack__(stream=stream or 1) if kind == _CUDA else a.__dlpack__()  # 1: CUDA's default stream
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    t = _Tensor.from_address(pointer(capsule, b"dltensor"))
    dtype = _CODES.get((t.code, t.bits), f"code {t.code}, {t.bits} bits") if t.lanes == 1 else "a vector"
    shape = tuple(t.shape[: t.rank])
    strides = tuple(t.strides[: t.rank]) if t.strides else _dense(shape)
    return _View((t.data or 0) + t.offset, dtype, shape, strides, index if kind == _CUDA else None, capsule)


def _of_interface(told: dict, device: int | None) -> _View:
    dtype, shape = _TYPES.get(told["typestr"], told["typestr"]), tuple(told["shape"])
    size = int(told["typestr"][2:])
    strides = tuple(s // size for s in told["strides"]) if told.get("strides") else _dense(shape)
    return _View(told["data"][0] or 0, dtype, shape, strides, device, told)


def _view(a, device: int, stream: int) -> _View:
    if hasattr(a, "__dlpack__"):
        return _of_dlpack(a, stream)
    if hasattr(a, "__cuda_array_interface__"):
        return _of_interface(a.__cuda_array_interface__, device)
    if hasattr(a, "__array_interface__"):
        return _of_interface(a.__array_interface__, None)
    raise LrnnError(f"{type(a).__name__} has neither __dlpack__, __cuda_array_interface__ nor __array_interface__")


def _told(dtype: str, shape: tuple[int, ...], device: int | None) -> str:
    return f"{dtype} {shape} on {'the CPU' if device is None else f'cuda:{device}'}"


def _describe(op: Op, sizes: dict, arrays: dict, gradients: dict, offsets, threads: int, device: int, stream: int):
    """The descriptor, and what keeps its memory alive."""
    views = {(name, "data"): _view(a, device, stream) for name, a in arrays.items()}
    views |= {(name, "grad"): _view(a, device, stream) for name, a in gradients.items()}
    sizes = {name: sizes.get(name, 0) for name, _ in op.sizes}
    shapes = op.shapes(sizes)
    unknown = {name for name, _ in views} - {*op.arrays, op.numbers}
    if unknown:
        raise LrnnError(f"{op.name}: there is no array {sorted(unknown)[0]}; its arrays are {', '.join(op.arrays)}")
    first = next((v for (n, _), v in views.items() if n in op.arrays and shapes[n][0] == "T"), None)
    if first is None:
        raise LrnnError(f"{op.name}: no array of tokens is given")
    cuts = None if offsets is None else (ctypes.c_int64 * len(offsets))(*map(int, offsets))
    tokens = first.shape[:1] if cuts else first.shape[:2]
    batch, length = (len(cuts) - 1 if cuts else first.shape[0]), tokens[-1]
    if first.dtype not in ops.DTYPES:
        raise LrnnError(f"{op.name}: dtype {first.dtype}, expected {', '.join(ops.DTYPES)}")
    d = ops.descriptor(op, sizes, first.dtype, batch, length, ctypes.addressof(cuts) if cuts else None, threads)
    if first.device is not None:
        d.call.device, d.call.index, d.call.stream = ops.CUDA, first.device, stream or None
    for (name, part), v in views.items():
        if name == op.numbers:
            shape, dtype = (batch, op.numbers_width(sizes)), "int32"
        else:
            axes, width = shapes[name]
            shape = {"T": (*tokens, width), "B": (batch, width), "S": width}.get(axes) or (batch, *width)
            dtype = first.dtype
        if (v.dtype, v.shape, v.device) != (dtype, shape, first.device):
            found, expected = _told(v.dtype, v.shape, v.device), _told(dtype, shape, first.device)
            raise LrnnError(f"{op.name}: {part} of {name} is {found}, expected {expected}")
        if name == op.numbers:
            if v.strides != _dense(shape):
                raise LrnnError(f"{op.name}: {name} must be dense")
            setattr(d, name, v.address)
            continue
        strides = (0, *v.strides) if cuts and shapes[name][0] == "T" else v.strides
        if not any(strides) and math.prod(shape) > 1:
            raise LrnnError(f"{op.name}: {part} of {name} repeats one element (strides of 0); copy it first")
        buffer = ops.Buffer(v.address, strides)
        ops.bind(d, name, *((buffer,) if part == "data" else (None, buffer)))
    return d, (views, cuts)


def _run(which: int, name: str, sizes, arrays, gradients, offsets, threads, device, stream, workspace) -> None:
    op = ops.OPS.get(name)
    if op is None:
        raise LrnnError(f"there is no op {name}; ops are {', '.join(ops.OPS)}")
    d, alive = _describe(op, sizes, arrays, gradients, offsets, threads, device, stream)

    def take(size: int):
        if workspace is None and d.call.device == ops.CUDA:
            raise LrnnError(f"{name}: give a workspace of {size} bytes in the device's memory (workspace_bytes)")
        if workspace is None:
            memory = ctypes.create_string_buffer(size + ops.ALIGN)
            return ctypes.addressof(memory) + -ctypes.addressof(memory) % ops.ALIGN, memory
        v = _view(workspace, device, stream)
        d.call.workspace_bytes = v.shape[0] * 4
        if v.dtype not in ("int32", "float32") or len(v.shape) != 1:
            raise LrnnError(f"{name}: the workspace is {v.dtype} {v.shape}, expected one axis of int32 or float32")
        return v.address, v

    ops.run(op, d, which, take)
    del alive


def forward(
    name: str,
    sizes: dict[str, float],
    arrays: dict[str, Any],
    *,
    offsets: Sequence[int] | None = None,
    threads: int = 0,
    device: int = 0,
    stream: int = 0,
    workspace: Any = None,
) -> None:
    """Writes the outputs among `arrays`. offsets: B + 1 numbers. On CUDA: the index of the device of arrays that do not
    tell it, the stream's address, and a workspace, one axis of int32 of at least workspace_bytes() bytes."""
    _run(ops.FORWARD, name, sizes, arrays, {}, offsets, threads, device, stream, workspace)


def backward(
    name: str,
    sizes: dict[str, float],
    arrays: dict[str, Any],
    gradients: dict[str, Any],
    *,
    offsets: Sequence[int] | None = None,
    threads: int = 0,
    device: int = 0,
    stream: int = 0,
    workspace: Any = None,
) -> None:
    """Reads gradients of outputs, and writes gradients of inputs, of which `gradients` has those that are wanted."""
    _run(ops.BACKWARD, name, sizes, arrays, gradients, offsets, threads, device, stream, workspace)


def workspace_bytes(
    name: str,
    sizes: dict[str, float],
    arrays: dict[str, Any],
    gradients: dict[str, Any] | None = None,
    *,
    offsets: Sequence[int] | None = None,
    device: int = 0,
) -> int:
    """The bytes of workspace of a forward pass, or with `gradients` of a backward pass."""
    op = ops.OPS[name]
    d, _ = _describe(op, sizes, arrays, gradients or {}, offsets, 0, device, 0)
    return ops.measure(op, d, ops.FORWARD if gradients is None else ops.BACKWARD)

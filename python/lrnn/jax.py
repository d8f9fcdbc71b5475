"""The scans in JAX: jit, grad, vjp, and vmap over a new axis of batches, through XLA's foreign function interface. On
CUDA they need a library with CUDA, and refuse offsets.

    import jax, lrnn.jax
    h, last = lrnn.jax.scan_block(z, v, gate="softmax", h0=None)

Shapes are those of lrnn.torch. float32 and bfloat16, and float64 with jax_enable_x64. Not here: forward mode (jvp) and
gradients of gradients, which JAX refuses. vmap calls an op once, over all batches together; with offsets, or where
arrays are shared by all sequences (a of scan_diag, wh of scan_lstm), it calls it once a batch.

Sequences of unequal length: arrays without a batch axis, and offsets (B + 1 int32, from 0 to the number of tokens).

Shapes, types and choices that an op does not take raise LrnnError when a function is traced; what the library finds in
the numbers themselves (offsets, links) comes as JAX's error of a failed call, with the library's sentence.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
from typing import Iterable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lrnn import ops
from lrnn.ops import FORMS, GATES, OPS, LrnnError, choice, flat, tree_levels

__all__ = [*OPS, "dag_links", "LrnnError"]


def _register() -> ctypes.CDLL:
    """Registers the handlers that `make jax` or the wheel has built. They open a library at the first call that needs
    it; the one for float32 on the CPU is opened here, to refuse early. ImportError: there is no handler or no library.
    """
    ops.library()
    beside = os.path.dirname(ops.library_path())
    folders = [os.path.join(os.path.dirname(__file__), "lib"), beside, os.path.dirname(beside)]
    paths = [os.environ.get("LRNN_JAX", ""), *(os.path.join(f, "liblrnn-jax.so") for f in folders)]
    path = next((p for p in paths if p and os.path.exists(p)), None)
    if not path:
        raise ImportError("liblrnn-jax.so is not here: this wheel was built without jaxlib; `make jax` builds it")
    handler = ctypes.CDLL(path)
    for double in (False, True):
        for cuda in (False, True):
            handler.lrnn_jax_name(os.fsencode(ops.library_path(double, cuda)), int(double), int(cuda))
    jax.ffi.register_ffi_target("lrnn", jax.ffi.pycapsule(handler.lrnn_jax), platform="cpu")
    jax.ffi.register_ffi_target("lrnn", jax.ffi.pycapsule(handler.lrnn_jax_cuda), platform="CUDA")
    return handler


_handler = _register()


@functools.lru_cache(maxsize=None)
def _pass(name: str, sizes: tuple, operands: tuple, results: tuple, which: int, packed: bool, keeps: bool):
    """A pass as a function of dense arrays: operands and results are (array, whether its gradient). After the operands
    come offsets (packed) or the op's numbers. keeps: the last result of a forward pass, and the last argument of a
    backward pass, is what is kept between them."""
    op, size = OPS[name], dict(sizes)
    shapes = op.shapes(size)
    leading = next(i for i, (n, _) in enumerate(operands) if shapes[n][0] == "T")
    present = {n for n, gradient in (*operands, *results) if not gradient}
    forward = which == ops.FORWARD

    def place(array, gradient):
        return getattr(op.descriptor, array).offset + (ops.Array.grad if gradient else ops.Array.data).offset

    numbers = packed or op.numbers is not None
    places = [place(*operand) for operand in operands] + [op.numbers_at()] * numbers
    kept_place = [ops.Call.kept.offset] * keeps
    places += [*(place(*r) for r in results), *kept_place] if forward else [*kept_place, *(place(*r) for r in results)]

    def kept_bytes(kind, batch, length):
        # JAX does not tell here where the call will run, and to measure for CUDA would open a device. So there is room
        # for what kernels of the CPU keep; on CUDA nothing is kept, and backward computes values again.
        # Offsets have no values here. There is room for sequences of up to twice the mean length; where one is longer,
        # backward computes values again.
        longest = min(length, -(-2 * length // max(batch, 1))) if packed else length
        return ops.measure_kept(op, size, kind.name, batch, longest, present) if keeps else 0

    def run(*arrays):
        kind = arrays[leading].dtype
        offsets = arrays[len(operands)] if packed else None
        batch, length = (offsets.shape[0] - 1, arrays[leading].shape[0]) if packed else arrays[leading].shape[:2]
        if kind.name not in ops.DTYPES:
            raise LrnnError(f"{name}: dtype {kind}, expected {', '.join(ops.DTYPES)}")

        def shape(array):
            axes, width = shapes[array]
            tokens = (length,) if packed else (batch, length)
            if axes == "R":
                return (batch, *width)
            return width if axes == "S" else (batch, width) if axes == "B" else (*tokens, width)

        for (array, _), given in zip(operands, arrays):
            if given.shape != shape(array) or given.dtype != kind:
                raise LrnnError(f"{name}: {array} is {given.dtype}{given.shape}, expected {kind}{shape(array)}")
        if packed and (offsets.ndim != 1 or offsets.dtype.name not in ("int32", "int64") or batch < 0):
            raise LrnnError(f"{name}: offsets is {offsets.dtype}{offsets.shape}, expected int32(B + 1,)")
        if op.numbers:
            expected, links = (batch, op.numbers_width(size)), arrays[len(operands)]
            if links.shape != expected or links.dtype != jnp.int32:
                raise LrnnError(f"{name}: {op.numbers} is {links.dtype}{links.shape}, expected int32{expected}")
        d = ops.descriptor(op, size, kind.name, batch, length)
        d.call.kept_bytes = kept_bytes(kind, batch, length)
        outs = [jax.ShapeDtypeStruct(shape(n), kind) for n, _ in results]
        if keeps and forward:
            outs.append(jax.ShapeDtypeStruct((d.call.kept_bytes,), jnp.uint8))
        blob = np.frombuffer(bytes(d), dtype=np.uint8)
        call = jax.ffi.ffi_call("lrnn", outs)
        return call(*arrays, op=name, descriptor=blob, at=np.array(places, np.int64), **{"pass": np.int32(which)})

    mapped = jax.custom_batching.custom_vmap(run)

    @mapped.def_vmap
    def over_batches(size_of_axis, batched, *arrays):
        kept = arrays[-1] if keeps and not forward else None
        one_by_one = packed or any(shapes[n][0] == "S" for n, _ in operands)
        # One call for all batches keeps nothing: its values would be in no order that a further vmap knows.
        if one_by_one or (kept is not None and kept.size > 0):
            arrays = [a if b else jnp.broadcast_to(a, (size_of_axis, *a.shape)) for a, b in zip(arrays, batched)]
            outs = jax.lax.map(lambda one: mapped(*one), tuple(arrays))
            return list(outs), [True] * len(outs)
        if kept is not None:
            arrays, batched = arrays[:-1], batched[:-1]
        arrays = [a if b else jnp.broadcast_to(a, (size_of_axis, *a.shape)) for a, b in zip(arrays, batched)]
        batch = arrays[0].shape[1]
        plain = _pass(name, sizes, operands, results, which, packed, False)
        outs = plain(*(a.reshape(size_of_axis * batch, *a.shape[2:]) for a in arrays))
        outs = [o.reshape(size_of_axis, batch, *o.shape[1:]) for o in outs]
        empty = [jnp.zeros(0, jnp.uint8)] * (keeps and forward)
        return [*outs, *empty], [True] * len(outs) + [False] * len(empty)

    return mapped


@functools.lru_cache(maxsize=None)
def _differentiable(name: str, sizes: tuple, given: tuple, packed: bool):
    """The op as a function of the arrays that are given, then of offsets (packed) or of its numbers, with its gradient.
    """
    op, n = OPS[name], len(given)
    outs = op.outputs + ((op.last,) if op.has_last(dict(sizes)) else ())
    inputs, results = tuple((g, False) for g in given), tuple((o, False) for o in outs)
    gradients, sums = tuple((o, True) for o in outs), tuple((g, True) for g in given)
    forward = _pass(name, sizes, inputs, results, ops.FORWARD, packed, False)
    keeping = _pass(name, sizes, inputs, results, ops.FORWARD, packed, True)
    backward = _pass(name, sizes, inputs + results + gradients, sums, ops.BACKWARD, packed, True)

    @jax.custom_vjp
    def run(*arrays):
        return forward(*arrays)

    def keep(*arrays):
        values = keeping(*arrays)
        return values[: len(outs)], (arrays[:n], values[: len(outs)], arrays[n:], values[len(outs) :])

    def differentiate(saved, cotangents):
        arrays, values, numbers, kept = saved
        found = backward(*arrays, *values, *cotangents, *numbers, *kept)
        return (*found, *(None for _ in numbers))

    run.defvjp(keep, differentiate)
    return run


def dag_links(graphs: Iterable[Iterable[tuple[int, int]]]) -> Array:
    """The links of dag_scan, int32 (B, words), of a list of edges (tail, head), tail < head, for each graph."""
    return jnp.array(ops.dag_links(graphs)[0], jnp.int32)


def _call(name: str, arrays: dict, offsets=None, **sizes):
    """Outputs, and the last state or None."""
    given = {n: a for n, a in arrays.items() if a is not None}
    kinds = dict(OPS[name].sizes)
    sizes = tuple((n, float(v) if kinds[n] is ops.F64 else int(v)) for n, v in sizes.items())
    numbers = [] if offsets is None else [jnp.asarray(offsets)]
    packed = offsets is not None and not OPS[name].numbers
    results = _differentiable(name, sizes, tuple(given), packed)(*given.values(), *numbers)
    return list(results) if OPS[name].has_last(dict(sizes)) or not OPS[name].last else [*results, None]


def _shaped(a, *tail: int):
    return None if a is None else a.reshape(*a.shape[:-1], *tail)


def scan_diag(a: Array, x: Array, h0: Array | None = None, offsets: Array | None = None) -> tuple[Array, Array]:
    """h_t = a_t * h_{t-1} + x_t: x (B,T,W); a like x, or (W); h0 (B,W) -> h (B,T,W), last h (B,W)."""
    return tuple(_call("scan_diag", {"a": a, "x": x, "h0": h0}, offsets, width=x.shape[-1], constant=a.ndim == 1))


def scan_diag_complex(
    a: Array, x: Array, h0: Array | None = None, offsets: Array | None = None
) -> tuple[Array, Array]:
    """scan_diag of complex arrays, of the same shapes."""
    planes = {"a_re": a.real, "a_im": a.imag, "x_re": x.real, "x_im": x.imag}
    planes |= {} if h0 is None else {"h0_re": h0.real, "h0_im": h0.imag}
    h_re, h_im, re, im = _call("scan_diag_complex", planes, offsets, width=x.shape[-1], constant=a.ndim == 1)
    return jax.lax.complex(h_re, h_im), jax.lax.complex(re, im)


def scan_block(
    z: Array, v: Array, gate: str = "softmax", h0: Array | None = None, offsets: Array | None = None
) -> tuple[Array, Array]:
    """BD-LRU: z (B,T,m,m+1,N), v (B,T,m,N), h0 (B,m,N) -> h (B,T,m,N), last h."""
    lead = v.ndim - 2
    m, n = v.shape[-2:]
    arrays = {"z": flat(z, lead), "v": flat(v, lead), "h0": flat(h0, 1)}
    h, last = _call("scan_block", arrays, offsets, blocks=n, m=m, gate=choice("gate", gate, GATES))
    return _shaped(h, m, n), _shaped(last, m, n)


def scan_companion(
    z: Array,
    v: Array,
    gate: str = "softmax",
    s0: Array | None = None,
    observer: bool = False,
    offsets: Array | None = None,
) -> tuple[Array, Array]:
    """H-LRU: z (B,T,m+1,N), v (B,T,N), s0 (B,m,N) -> s (B,T,m,N), last s."""
    lead = v.ndim - 1
    m, n = z.shape[-2] - 1, v.shape[-1]
    arrays = {"z": flat(z, lead), "v": v, "s0": flat(s0, 1)}
    s, last = _call(
        "scan_companion", arrays, offsets, channels=n, m=m, gate=choice("gate", gate, GATES), observer=bool(observer)
    )
    return _shaped(s, m, n), _shaped(last, m, n)


def scan_lstm(
    u: Array,
    wh: Array,
    bh: Array,
    h0: Array | None = None,
    c0: Array | None = None,
    offsets: Array | None = None,
) -> tuple[Array, Array]:
    """LSTM: u (B,T,4W), wh (4W,W), bh (4W), h0, c0 (B,W) -> h, c (B,T,W), whose last tokens are the last state."""
    return tuple(_call("scan_lstm", {"u": u, "wh": wh, "bh": bh, "h0": h0, "c0": c0}, offsets, width=wh.shape[-1]))


def scan_outer(
    q: Array,
    k: Array,
    v: Array,
    decay: Array,
    source: Array | None = None,
    scale: float = 1.0,
    c0: Array | None = None,
    offsets: Array | None = None,
) -> tuple[Array, Array | None]:
    """q, k (B,T,G,dk), v (B,T,H,dv), decay, source (B,T,H), c0 (B,H,dk,dv) -> o (B,T,H,dv), last C; None if G < H."""
    lead = v.ndim - 2
    (heads, dv), (groups, dk) = v.shape[-2:], q.shape[-2:]
    arrays = {"q": flat(q, lead), "k": flat(k, lead), "v": flat(v, lead)}
    arrays |= {"decay": decay, "source": source, "c0": flat(c0, 1)}
    o, last = _call("scan_outer", arrays, offsets, heads=heads, groups=groups, key=dk, value=dv, scale=scale)
    return _shaped(o, heads, dv), _shaped(last, heads, dk, dv)


def scan_delta(
    q: Array,
    k: Array,
    v: Array,
    beta: Array | None = None,
    decay: Array | None = None,
    read: Array | None = None,
    erase: Array | None = None,
    steps: int = 1,
    scale: float = 1.0,
    rate: float = 1.0,
    s0: Array | None = None,
    offsets: Array | None = None,
) -> tuple[Array, Array | None]:
    """Delta rules, of the forms and shapes of lrnn.torch.scan_delta -> o (B,T,H,dv), last S; None with several steps.
    """
    lead = q.ndim - 2
    (heads, dk), dv = q.shape[-2:], v.shape[-1]
    channels = decay is not None and decay.ndim == q.ndim
    arrays = {"q": flat(q, lead), "k": flat(k, lead), "v": flat(v, lead), "beta": beta, "decay": flat(decay, lead)}
    arrays |= {"read": flat(read, lead), "erase": flat(erase, lead), "s0": flat(s0, 1)}
    sizes = {"heads": heads, "steps": steps, "key": dk, "value": dv, "scale": scale, "rate": rate}
    o, last = _call("scan_delta", arrays, offsets, **sizes, channels=channels)
    return _shaped(o, heads, dv), _shaped(last, heads, dk, dv)


def scan_plstm(
    q: Array,
    k: Array,
    v: Array,
    source: Array,
    transition: Array,
    mark: Array,
    direct: Array,
    scale: float = 1.0,
    c0: Array | None = None,
    offsets: Array | None = None,
) -> tuple[Array, Array]:
    """q, k (B,T,H,dk), v (B,T,H,dv), source, mark (B,T,H,J), transition (B,T,H,J,J), direct (B,T,H), c0 (B,H,J,dk,dv)
    -> y like v, last C like c0."""
    lead = v.ndim - 2
    (heads, dv), dk, states = v.shape[-2:], q.shape[-1], source.shape[-1]
    arrays = {"q": flat(q, lead), "k": flat(k, lead), "v": flat(v, lead)}
    arrays |= {"source": flat(source, lead), "transition": flat(transition, lead)}
    arrays |= {"mark": flat(mark, lead), "direct": direct, "c0": flat(c0, 1)}
    y, last = _call("scan_plstm", arrays, offsets, heads=heads, states=states, key=dk, value=dv, scale=scale)
    return _shaped(y, heads, dv), _shaped(last, heads, states, dk, dv)


def grid_scan(q: Array, k: Array, v: Array, gates: Array, direct: Array, scale: float = 1.0) -> Array:
    """q, k (B,X,Y,H,dk), v (B,X,Y,H,dv), gates (B,X,Y,8,4,H), direct (B,X,Y,H) -> y like v."""
    batch, x, y, heads, dv = v.shape
    names = ("q", "k", "v", "gates", "direct")
    arrays = {n: a.reshape(batch, x * y, math.prod(a.shape[3:])) for n, a in zip(names, (q, k, v, gates, direct))}
    found = _call("grid_scan", arrays, rows=x, columns=y, heads=heads, key=q.shape[-1], value=dv, scale=scale)
    return found[0].reshape(v.shape)


def dag_scan(
    q: Array,
    k: Array,
    v: Array,
    source: Array,
    mark: Array,
    transition: Array,
    direct: Array,
    links: Array,
    scale: float = 1.0,
    reversed: bool = False,
    tree: bool = False,
) -> Array:
    """q, k (B,T,H,dk), v (B,T,H,dv), source, mark (B,edges,H), transition (B,pairs,H), direct (B,T,H), links of
    dag_links -> y like v (lrnn.torch.dag_scan)."""
    (heads, dv), dk = v.shape[-2:], q.shape[-1]
    arrays = {"q": flat(q), "k": flat(k), "v": flat(v), "source": source, "mark": mark}
    arrays |= {"transition": transition, "direct": direct}
    sizes = {"heads": heads, "key": dk, "value": dv, "edges": source.shape[1], "pairs": transition.shape[1]}
    y = _call("dag_scan", arrays, links, **sizes, scale=scale, reversed=bool(reversed), tree=bool(tree))[0]
    return _shaped(y, heads, dv)


def scan_flow(a: Array, y0: Array, offsets: Array | None = None) -> Array:
    """a (B,T,m,m,N), y0 (B,N,m) -> y (B,T,N,m)."""
    lead = a.ndim - 3
    n, m = y0.shape[-2:]
    return _shaped(_call("scan_flow", {"a": flat(a, lead), "y0": flat(y0, 1)}, offsets, blocks=n, m=m)[0], n, m)


def scan_dplr(d: Array, u: Array, v: Array, y0: Array, offsets: Array | None = None) -> Array:
    """d (B,T,W), u, v (B,T,r,W), y0 (B,W) -> y (B,T,W)."""
    lead = d.ndim - 1
    arrays = {"d": d, "u": flat(u, lead), "v": flat(v, lead), "y0": y0}
    return _call("scan_dplr", arrays, offsets, width=d.shape[-1], rank=u.shape[-2])[0]


def scan_hadamard(d: Array, y0: Array, offsets: Array | None = None) -> Array:
    """d (B,T,W), y0 (B,W) -> y (B,T,W), W a power of two."""
    return _call("scan_hadamard", {"d": d, "y0": y0}, offsets, width=d.shape[-1])[0]


def tree_solve(
    u: Array, up: Array, down: Array | None = None, arity: int = 2, beta: float = 0.0, form: str = "hermitian"
) -> Array:
    """Complex u, up, down (B,nodes,W), leaves first -> x like u (lrnn.torch.tree_solve)."""
    planes = {
        f"{n}_{p}": getattr(a, {"re": "real", "im": "imag"}[p])
        for n, a in (("up", up), ("down", down), ("u", u))
        for p in ("re", "im")
        if a is not None
    }
    sizes = {"arity": arity, "levels": tree_levels(u.shape[1], arity), "width": u.shape[-1], "beta": beta}
    return jax.lax.complex(*_call("tree_solve", planes, **sizes, form=choice("form", form, FORMS)))

"""The ops of liblrnn by ctypes: descriptors, shapes, and one function that runs a pass.

Everything else in this package is made from the table OPS.
"""

from __future__ import annotations

import ctypes
import math
import os
from dataclasses import dataclass, field
from typing import Callable, Iterable

I32, I64, F64 = ctypes.c_int32, ctypes.c_int64, ctypes.c_double
DTYPES = {"float32": 0, "bfloat16": 1, "float64": 2}
GATES = ("softmax", "sigmoid", "relu", "none")
FORMS = ("hermitian", "skew", "free")
FORWARD, BACKWARD, KEPT = 0, 1, 2
CUDA = 1
ALIGN = 64


class LrnnError(ValueError):
    """A refusal by the library; the text is the library's sentence."""


class Array(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("grad", ctypes.c_void_p), ("strides", I64 * 3), ("grad_strides", I64 * 3)]


class Call(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("dtype", I32),
        ("device", I32),
        ("index", I32),
        ("threads", I32),
        ("stream", ctypes.c_void_p),
        ("workspace", ctypes.c_void_p),
        ("workspace_bytes", ctypes.c_size_t),
        ("batch", I64),
        ("length", I64),
        ("offsets", ctypes.c_void_p),
        ("kept", ctypes.c_void_p),
        ("kept_bytes", ctypes.c_size_t),
        ("reserved", ctypes.c_void_p * 2),
    ]


@dataclass(frozen=True)
class Op:
    """One op. sizes: the fields of its descriptor after `call`, in order. shapes(sizes): for each array its axes beside
    batch and time; "T" arrays are (B,T,W), "B" arrays (B,W), "R" arrays (B,rows,W), "S" arrays shared. numbers: a field
    with the address of whole numbers (B,numbers_width(sizes)). order: of the arrays in the descriptor, where it is not
    inputs, outputs, states."""

    name: str
    sizes: tuple[tuple[str, type], ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    shapes: Callable[[dict], dict[str, tuple]]
    optional: tuple[str, ...] = ()
    first: str | None = None
    last: str | None = None
    numbers: str | None = None
    numbers_width: Callable[[dict], int] | None = None
    order: tuple[str, ...] = ()
    descriptor: type = field(init=False)

    def __post_init__(self):
        arrays = self.order or self.arrays
        numbers = [(self.numbers, ctypes.c_void_p)] if self.numbers else []
        fields = [("call", Call), *self.sizes, *numbers, *((a, Array) for a in arrays)]
        object.__setattr__(self, "descriptor", type(f"lrnn_{self.name}", (ctypes.Structure,), {"_fields_": fields}))

    def has_last(self, sizes: dict) -> bool:
        """Whether the op gives its last state at these sizes."""
        if self.name == "scan_outer":
            return sizes["groups"] == sizes["heads"]
        return self.last is not None and (self.name != "scan_delta" or sizes["steps"] == 1)

    def numbers_at(self) -> int:
        """The place of its numbers in the descriptor; of offsets, where it has no numbers of its own."""
        return getattr(self.descriptor, self.numbers).offset if self.numbers else Call.offsets.offset

    @property
    def arrays(self) -> tuple[str, ...]:
        return self.inputs + self.outputs + tuple(a for a in (self.first, self.last) if a)


def _state(width):
    return ("B", width)


def _matrix_sizes(first, scale=True):
    return (*first, ("key", I64), ("value", I64), *((("scale", F64),) if scale else ()))


def _diag(s):
    a = ("S", (s["width"],)) if s["constant"] else ("T", s["width"])
    return {
        "a": a,
        "x": ("T", s["width"]),
        "h": ("T", s["width"]),
        "h0": _state(s["width"]),
        "last": _state(s["width"]),
    }


def _diag_complex(s):
    a, t = ("S", (s["width"],)) if s["constant"] else ("T", s["width"]), ("T", s["width"])
    states = {name: _state(s["width"]) for name in ("h0_re", "h0_im", "last_re", "last_im")}
    return {"a_re": a, "a_im": a, "x_re": t, "x_im": t, "h_re": t, "h_im": t, **states}


def _block(s):
    m, n = s["m"], s["blocks"]
    return {
        "z": ("T", m * (m + 1) * n),
        "v": ("T", m * n),
        "h": ("T", m * n),
        "h0": _state(m * n),
        "last": _state(m * n),
    }


def _companion(s):
    m, n = s["m"], s["channels"]
    return {"z": ("T", (m + 1) * n), "v": ("T", n), "s": ("T", m * n), "s0": _state(m * n), "last": _state(m * n)}


def _lstm(s):
    w = s["width"]
    u, wh, bh = ("T", 4 * w), ("S", (4 * w, w)), ("S", (4 * w,))
    return {"u": u, "wh": wh, "bh": bh, "h": ("T", w), "c": ("T", w), "h0": _state(w), "c0": _state(w)}


def _outer(s):
    h, g, dk, dv = s["heads"], s["groups"], s["key"], s["value"]
    return {
        "q": ("T", g * dk),
        "k": ("T", g * dk),
        "v": ("T", h * dv),
        "decay": ("T", h),
        "source": ("T", h),
        "o": ("T", h * dv),
        "c0": _state(h * dk * dv),
        "last": _state(h * dk * dv),
    }


def _delta(s):
    h, n, dk, dv = s["heads"], s["steps"], s["key"], s["value"]
    return {
        "q": ("T", h * dk),
        **{name: ("T", n * h * dk) for name in ("k", "read", "erase")},
        "v": ("T", n * h * dv),
        "beta": ("T", n * h),
        "decay": ("T", h * dk if s["channels"] else h),
        "o": ("T", h * dv),
        "s0": _state(h * dk * dv),
        "last": _state(h * dk * dv),
    }


def _plstm(s):
    h, j, dk, dv = s["heads"], s["states"], s["key"], s["value"]
    return {
        "q": ("T", h * dk),
        "k": ("T", h * dk),
        "v": ("T", h * dv),
        "source": ("T", h * j),
        "transition": ("T", h * j * j),
        "mark": ("T", h * j),
        "direct": ("T", h),
        "y": ("T", h * dv),
        "c0": _state(h * j * dk * dv),
        "last": _state(h * j * dk * dv),
    }


def _grid(s):
    h, dk, dv = s["heads"], s["key"], s["value"]
    return {
        "q": ("T", h * dk),
        "k": ("T", h * dk),
        "v": ("T", h * dv),
        "gates": ("T", 32 * h),
        "direct": ("T", h),
        "y": ("T", h * dv),
    }


def _dag(s):
    h, dk, dv = s["heads"], s["key"], s["value"]
    tokens = {"q": h * dk, "k": h * dk, "v": h * dv, "direct": h, "y": h * dv}
    rows = {"source": (s["edges"], h), "mark": (s["edges"], h), "transition": (s["pairs"], h)}
    return {n: ("T", w) for n, w in tokens.items()} | {n: ("R", w) for n, w in rows.items()}


def _flow(s):
    m, n = s["m"], s["blocks"]
    return {"a": ("T", m * m * n), "y0": _state(m * n), "y": ("T", m * n)}


def _dplr(s):
    w, r = s["width"], s["rank"]
    return {"d": ("T", w), "u": ("T", r * w), "v": ("T", r * w), "y0": _state(w), "y": ("T", w)}


def _hadamard(s):
    return {"d": ("T", s["width"]), "y0": _state(s["width"]), "y": ("T", s["width"])}


def _tree(s):
    names = ("up_re", "up_im", "down_re", "down_im", "u_re", "u_im", "x_re", "x_im")
    return {name: ("T", s["width"]) for name in names}


_SPARE = ("reserved", I32)
OPS = {
    op.name: op
    for op in (
        Op(
            "scan_diag",
            (("width", I64), ("constant", I32), _SPARE),
            ("a", "x"),
            ("h",),
            _diag,
            first="h0",
            last="last",
        ),
        Op(
            "scan_diag_complex",
            (("width", I64), ("constant", I32), _SPARE),
            ("a_re", "a_im", "x_re", "x_im", "h0_re", "h0_im"),
            ("h_re", "h_im", "last_re", "last_im"),
            _diag_complex,
            optional=("h0_re", "h0_im"),
            order=("a_re", "a_im", "x_re", "x_im", "h_re", "h_im", "h0_re", "h0_im", "last_re", "last_im"),
        ),
        Op(
            "scan_block",
            (("blocks", I64), ("m", I64), ("gate", I32), _SPARE),
            ("z", "v"),
            ("h",),
            _block,
            first="h0",
            last="last",
        ),
        Op(
            "scan_companion",
            (("channels", I64), ("m", I64), ("gate", I32), ("observer", I32)),
            ("z", "v"),
            ("s",),
            _companion,
            first="s0",
            last="last",
        ),
        Op(
            "scan_lstm",
            (("width", I64),),
            ("u", "wh", "bh", "h0", "c0"),
            ("h", "c"),
            _lstm,
            optional=("h0", "c0"),
            order=("u", "wh", "bh", "h", "h0", "c0", "c"),
        ),
        Op(
            "scan_outer",
            _matrix_sizes((("heads", I64), ("groups", I64))),
            ("q", "k", "v", "decay", "source"),
            ("o",),
            _outer,
            optional=("source",),
            first="c0",
            last="last",
        ),
        Op(
            "scan_delta",
            (*_matrix_sizes((("heads", I64), ("steps", I64))), ("rate", F64), ("channels", I32), _SPARE),
            ("q", "k", "v", "beta", "decay", "read", "erase"),
            ("o",),
            _delta,
            optional=("beta", "decay", "read", "erase"),
            first="s0",
            last="last",
        ),
        Op(
            "scan_plstm",
            _matrix_sizes((("heads", I64), ("states", I64))),
            ("q", "k", "v", "source", "transition", "mark", "direct"),
            ("y",),
            _plstm,
            first="c0",
            last="last",
        ),
        Op(
            "grid_scan",
            _matrix_sizes((("rows", I64), ("columns", I64), ("heads", I64))),
            ("q", "k", "v", "gates", "direct"),
            ("y",),
            _grid,
        ),
        Op(
            "dag_scan",
            (
                *(("heads", I64), ("key", I64), ("value", I64), ("edges", I64), ("pairs", I64)),
                *(("scale", F64), ("reversed", I32), ("tree", I32)),
            ),
            ("q", "k", "v", "source", "mark", "transition", "direct"),
            ("y",),
            _dag,
            numbers="links",
            numbers_width=lambda s: 2 * s["edges"] + 3 * s["pairs"],
        ),
        Op("scan_flow", (("blocks", I64), ("m", I64)), ("a", "y0"), ("y",), _flow),
        Op("scan_dplr", (("width", I64), ("rank", I64)), ("d", "u", "v", "y0"), ("y",), _dplr),
        Op("scan_hadamard", (("width", I64),), ("d", "y0"), ("y",), _hadamard),
        Op(
            "tree_solve",
            (("arity", I64), ("levels", I64), ("width", I64), ("beta", F64), ("form", I32), _SPARE),
            ("up_re", "up_im", "down_re", "down_im", "u_re", "u_im"),
            ("x_re", "x_im"),
            _tree,
            optional=("up_re", "up_im", "down_re", "down_im"),
        ),
    )
}


# Features of the x86-64 levels 3 and 4: (leaf of glibc's table, register eax to edx, bits).
_LEVEL_3 = ((0, 2, (12, 22, 28, 29)), (1, 1, (3, 5, 8)), (2, 2, (5,)))  # fma movbe avx f16c, bmi1 avx2 bmi2, lzcnt
_LEVEL_4 = ((1, 1, (16, 17, 28, 30, 31)),)  # avx512: f dq cd bw vl


def _cpu_level() -> int:
    """The x86-64 level of this processor, 2 to 4, by what glibc (2.33) finds usable; 2 where it is older."""
    try:
        leaf = ctypes.CDLL(None).__x86_get_cpuid_feature_leaf
    except (AttributeError, OSError):
        return 2
    leaf.restype, leaf.argtypes = ctypes.POINTER(ctypes.c_uint32 * 8), [ctypes.c_uint32]

    def has(features):
        # The last four words are the registers with the bits of what the system lets programs use.
        return all(leaf(at).contents[4 + register] >> bit & 1 for at, register, bits in features for bit in bits)

    return 2 if not has(_LEVEL_3) else 4 if has(_LEVEL_4) else 3


def library_path(double: bool = False, cuda: bool = False) -> str:
    """The library that is loaded: $LRNN_LIBRARY (or $LRNN_LIBRARY_F64), else the one of this package that fits the
    processor, else the one that the system finds. cuda: for arrays on a device; a wheel with CUDA has a library for
    them alone, since its size and its start would burden all others."""
    asked = os.environ.get("LRNN_LIBRARY_F64" if double else "LRNN_LIBRARY")
    if asked:
        return asked
    name = "liblrnn-f64.so" if double else "liblrnn.so"
    folder = os.path.join(os.path.dirname(__file__), "lib")
    for kind in ["cuda"] * cuda + [f"x86-64-v{level}" for level in range(_cpu_level(), 1, -1)]:
        path = os.path.join(folder, kind, name)
        if os.path.exists(path):
            return path
    return name + ".0"


_loaded: dict[tuple[bool, bool], ctypes.CDLL] = {}


def library(double: bool = False, cuda: bool = False) -> ctypes.CDLL:
    """The loaded library. ImportError where there is none."""
    if (double, cuda) not in _loaded:
        path = library_path(double, cuda)
        try:
            lib = ctypes.CDLL(path)
        except OSError as error:
            raise ImportError(
                f"cannot load {path}: {error}; install the wheel, or `make install` and set "
                f"LRNN_LIBRARY{'_F64' if double else ''}"
            ) from error
        lib.lrnn_last_error.restype = lib.lrnn_version.restype = lib.lrnn_ops.restype = ctypes.c_char_p
        _loaded[double, cuda] = lib
    return _loaded[double, cuda]


def _library_of(d) -> ctypes.CDLL:
    return library(d.call.dtype == DTYPES["float64"], d.call.device == CUDA)


def version() -> str:
    """The version of the loaded library."""
    return library().lrnn_version().decode()


def choice(what: str, value: str, known: tuple[str, ...]) -> int:
    """The number of a choice. LrnnError: there is none of this name."""
    if value not in known:
        raise LrnnError(f"{what}={value!r}, expected one of {', '.join(known)}")
    return known.index(value)


def flat(a, keep: int = 2):
    """An array of PyTorch or JAX whose last axes are joined into one, after the first `keep`; None stays None."""
    return None if a is None else a.reshape(*a.shape[:keep], math.prod(a.shape[keep:]))


def tree_levels(nodes: int, arity: int) -> int:
    """The levels of a perfect tree. LrnnError: none has so many nodes."""
    levels, whole = 1, 1
    while whole < nodes:
        levels, whole = levels + 1, whole * arity + 1
    if whole != nodes:
        raise LrnnError(f"tree_solve: {nodes} nodes, expected those of a perfect tree of arity {arity}")
    return levels


def dag_links(graphs: Iterable[Iterable[tuple[int, int]]]) -> tuple[list[list[int]], int, int]:
    """The links of dag_scan, edges and pairs, of graphs that are lists of edges (tail, head), tail < head.

    Returns a list of whole numbers for each graph, and the most edges and pairs that one has (at least 1). A pair is in
    the multitree (tree=True) unless a path between ancestors of its edges is there already (pLSTM, section 3.2)."""
    ordered = [sorted(graph) for graph in graphs]
    if any(not 0 <= tail < head for edges in ordered for tail, head in edges):
        raise LrnnError("dag_links: an edge must lead from a node, counted from 0, to one of a higher number")
    pairs = [
        [(a, b) for b, to in enumerate(edges) for a, before in enumerate(edges[:b]) if before[1] == to[0]]
        for edges in ordered
    ]
    n_edges, n_pairs = (max([1, *map(len, lists)]) for lists in (ordered, pairs))
    rows = []
    for edges, joined in zip(ordered, pairs):
        ancestors = [set() for _ in edges]
        row = [end for edge in edges for end in edge] + [-1, -1] * (n_edges - len(edges))
        for a, b in joined:
            free = not ancestors[a] & ancestors[b]
            if free:
                ancestors[b] |= ancestors[a] | {a}
            row += [a, b, 0 if free else -1]
        rows.append(row + [-1, -1, -1] * (n_pairs - len(joined)))
    return rows, n_edges, n_pairs


@dataclass
class Buffer:
    """An array in memory: its address, its strides in elements."""

    address: int
    strides: tuple[int, ...]


def descriptor(op: Op, sizes: dict, dtype: str, batch: int, length: int, offsets: int | None = None, threads: int = 0):
    """A descriptor with sizes and without arrays."""
    d = op.descriptor()
    d.call.size = ctypes.sizeof(op.descriptor)
    d.call.dtype = DTYPES[dtype]
    d.call.batch, d.call.length, d.call.threads, d.call.offsets = batch, length, threads, offsets
    for name, _ in op.sizes:
        setattr(d, name, sizes.get(name, 0))
    return d


def bind(d, name: str, value: Buffer | None, gradient: Buffer | None = None) -> None:
    """Puts the memory of an array, and of its gradient, into the descriptor."""
    array = getattr(d, name)
    for buffer, pointer, strides in ((value, "data", array.strides), (gradient, "grad", array.grad_strides)):
        if buffer is None:
            continue
        setattr(array, pointer, buffer.address)
        for i, stride in enumerate(buffer.strides):
            strides[i] = stride


def measure(op: Op, d, which: int) -> int:
    """The bytes of workspace that a pass needs; KEPT: of the values that a forward pass keeps for its backward pass."""
    lib, size = _library_of(d), ctypes.c_size_t()
    if getattr(lib, f"lrnn_{op.name}_workspace")(ctypes.byref(d), which, ctypes.byref(size)) != 0:
        raise LrnnError(lib.lrnn_last_error().decode())
    return size.value


def measure_kept(
    op: Op, sizes: dict, dtype: str, batch: int, length: int, present: Iterable[str], cuda: int | None = None
) -> int:
    """The bytes to be kept by a call with these arrays, whose memory is not there yet, on the CPU or a CUDA device."""
    d = descriptor(op, sizes, dtype, batch, length)
    if cuda is not None:
        d.call.device, d.call.index = CUDA, cuda
    for i, name in enumerate(present):
        getattr(d, name).data = (i + 1) << 44  # far apart, and read by nobody
    if op.numbers:
        setattr(d, op.numbers, 1 << 43)
    return measure(op, d, KEPT)


def run(op: Op, d, which: int, workspace: Callable[[int], tuple[int, object]]) -> None:
    """Runs a pass. workspace(bytes) gives an address aligned to 64 bytes, and an object that keeps it alive."""
    lib, alive = _library_of(d), None
    d.call.workspace_bytes = measure(op, d, which)
    if d.call.workspace_bytes:
        d.call.workspace, alive = workspace(d.call.workspace_bytes)
    status = getattr(lib, f"lrnn_{op.name}_{'backward' if which else 'forward'}")(ctypes.byref(d))
    del alive
    if status != 0:
        raise LrnnError(lib.lrnn_last_error().decode())

"""The scans as PyTorch operators: autograd, torch.compile, any strides, float32, bfloat16 and float64. They compute on
the CPU, and on CUDA devices if the library was built with CUDA, on PyTorch's current stream.

    import torch, lrnn.torch
    h, last = lrnn.torch.scan_block(z, v, gate="softmax", h0=None)

Every op is a torch.library custom op `lrnn::NAME` with a fake kernel and a registered gradient. The gradient of a
gradient is not defined: PyTorch then says that no formula was registered. torch.func has grad, vjp, jacrev and vmap;
forward-mode derivatives are refused.

Sequences of unequal length: arrays without a batch axis, and offsets (B + 1 int64, from 0 to the number of tokens).
The operator dag_scan has the graphs' links in the place of offsets.

Shapes, types, devices and choices that an op does not take, and what the library finds in offsets and links, raise
LrnnError with a sentence.
"""

from __future__ import annotations

from functools import partial
from typing import Iterable

import torch
from torch import Tensor

from lrnn import batching, ops
from lrnn.ops import FORMS, GATES, OPS, LrnnError, Op, choice, flat, tree_levels

__all__ = [
    "scan_diag",
    "scan_diag_complex",
    "scan_block",
    "scan_companion",
    "scan_lstm",
    "scan_outer",
    "scan_delta",
    "scan_plstm",
    "grid_scan",
    "dag_scan",
    "dag_links",
    "scan_flow",
    "scan_dplr",
    "scan_hadamard",
    "tree_solve",
    "LrnnError",
]

_NAMES = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float64: "float64"}


def _buffer(t: Tensor | None) -> ops.Buffer | None:
    """The memory of a tensor of rank 1 to 3; a tensor of two axes with offsets is one row of tokens."""
    if t is None:
        return None
    strides = t.stride() if t.numel() else (1,) * t.dim()
    return ops.Buffer(t.data_ptr(), strides)


def _own(t: Tensor | None) -> Tensor | None:
    """A copy of a tensor whose strides are all 0, which the library would take for a dense array."""
    return t.contiguous() if t is not None and t.numel() > 1 and not any(t.stride()) else t


def _workspace(device: torch.device, size: int):
    memory = torch.empty(size + ops.ALIGN, dtype=torch.uint8, device=device)
    address = memory.data_ptr()
    return address + -address % ops.ALIGN, memory


def _shape(op: Op, sizes: dict, name: str, batch: int, length: int, packed: bool) -> tuple[int, ...]:
    axes, width = op.shapes(sizes)[name]
    if axes == "S":
        return width
    if axes in "BR":
        return (batch, width) if axes == "B" else (batch, *width)
    return (length, width) if packed else (batch, length, width)


def _rows(op: Op, sizes: dict, name: str, t: Tensor, packed: bool) -> Tensor:
    return t.unsqueeze(0) if packed and op.shapes(sizes)[name][0] == "T" else t


def _keep_in(d, kept: Tensor) -> None:
    if kept.numel():
        d.call.kept, d.call.kept_bytes = kept.data_ptr(), kept.numel()


def _describe(op: Op, sizes: dict, given: dict[str, Tensor | None], offsets: Tensor | None):
    """Checks devices, types and shapes; the descriptor, and the dimensions of the call."""
    leading = next(given[n] for n in op.inputs if given[n] is not None and op.shapes(sizes)[n][0] == "T")
    packed = offsets is not None and not op.numbers
    batch, length = (offsets.numel() - 1, leading.shape[0]) if packed else leading.shape[:2]
    if leading.dtype not in _NAMES:
        raise LrnnError(f"{op.name}: dtype {leading.dtype}, expected float32, bfloat16 or float64")
    whole = packed and offsets.dtype == torch.int64 and offsets.device.type == "cpu"
    if packed and not (whole and offsets.dim() == 1 and offsets.is_contiguous()):
        raise LrnnError(f"{op.name}: offsets must be one contiguous axis of int64 on the CPU")
    for name, t in given.items():
        if t is None:
            if name in op.inputs and name not in op.optional:
                raise LrnnError(f"{op.name}: {name} is missing")
            continue
        expected = _shape(op, sizes, name, batch, length, packed)
        if tuple(t.shape) != tuple(expected):
            raise LrnnError(f"{op.name}: {name} has the shape {tuple(t.shape)}, expected {tuple(expected)}")
        if t.dtype != leading.dtype:
            raise LrnnError(f"{op.name}: {name} is {t.dtype}, and {op.inputs[0]} is {leading.dtype}; they must agree")
        if t.device != leading.device:
            raise LrnnError(f"{op.name}: {name} is on {t.device}, and {op.inputs[0]} is on {leading.device}")
    if leading.device.type not in ("cpu", "cuda"):
        raise LrnnError(f"{op.name}: tensors are on {leading.device}, expected cpu or cuda")
    d = ops.descriptor(
        op,
        sizes,
        _NAMES[leading.dtype],
        batch,
        length,
        offsets.data_ptr() if packed else None,
        torch.get_num_threads(),
    )
    if op.numbers:
        expected = (batch, op.numbers_width(sizes))
        if offsets.dtype != torch.int32 or tuple(offsets.shape) != expected or not offsets.is_contiguous():
            got = f"{offsets.dtype} {tuple(offsets.shape)}"
            raise LrnnError(f"{op.name}: {op.numbers} is {got}, expected contiguous int32 {expected}")
        if offsets.device != leading.device:
            raise LrnnError(f"{op.name}: {op.numbers} is on {offsets.device}, and q is on {leading.device}")
        setattr(d, op.numbers, offsets.data_ptr())
    if leading.device.type == "cuda":
        d.call.device, d.call.index = ops.CUDA, leading.device.index
        d.call.stream = torch.cuda.current_stream(leading.device).cuda_stream
    return d, leading, batch, length, packed


def _forward(
    op: Op, sizes: dict, given: dict[str, Tensor | None], offsets: Tensor | None, keep: bool
) -> list[Tensor]:
    """Outputs, the last state, and what is kept for the gradient; tensors without elements where there is none."""
    given = {name: _own(t) for name, t in given.items()}
    d, leading, batch, length, packed = _describe(op, sizes, given, offsets)
    names = op.outputs + ((op.last,) if op.has_last(sizes) else ())
    outs = [leading.new_empty(_shape(op, sizes, n, batch, length, packed)) for n in names]
    for name, t in [*given.items(), *zip(names, outs)]:
        if t is not None:
            ops.bind(d, name, _buffer(_rows(op, sizes, name, t, packed)))
    kept = leading.new_empty(ops.measure(op, d, ops.KEPT) if keep else 0, dtype=torch.uint8)
    _keep_in(d, kept)
    ops.run(op, d, ops.FORWARD, partial(_workspace, leading.device))
    return outs + [leading.new_empty(0)] * (len(op.outputs) + bool(op.last) - len(names)) + [kept]


def _backward(
    op: Op,
    sizes: dict,
    given: dict[str, Tensor | None],
    values: list[Tensor],
    gradients: list[Tensor | None],
    kept: Tensor,
    wanted: list[bool],
    offsets: Tensor | None,
) -> list[Tensor]:
    given, gradients = {name: _own(t) for name, t in given.items()}, [_own(t) for t in gradients]
    d, leading, batch, length, packed = _describe(op, sizes, given, offsets)
    names = op.outputs + ((op.last,) if op.last else ())
    written = []
    for (name, t), wants in zip(given.items(), wanted):
        gradient = t.new_empty(t.shape) if wants and t is not None else None
        written.append(gradient if gradient is not None else leading.new_empty(0))
        if t is not None:
            ops.bind(
                d,
                name,
                _buffer(_rows(op, sizes, name, t, packed)),
                _buffer(None if gradient is None else _rows(op, sizes, name, gradient, packed)),
            )
    for name, t, gradient in zip(names, values, gradients):
        if t.numel() == 0 and name == op.last:
            continue
        if gradient is not None and gradient.dtype != leading.dtype:
            raise LrnnError(f"{op.name}: the gradient of {name} is {gradient.dtype}, expected {leading.dtype}")
        ops.bind(
            d,
            name,
            _buffer(_rows(op, sizes, name, t, packed)),
            _buffer(None if gradient is None else _rows(op, sizes, name, gradient, packed)),
        )
    _keep_in(d, kept)
    ops.run(op, d, ops.BACKWARD, partial(_workspace, leading.device))
    return written


def _size_names(op: Op) -> list[tuple[str, str]]:
    return [(name, "float" if kind is ops.F64 else "int") for name, kind in op.sizes if name != "reserved"]


def _register(op: Op):
    """Makes lrnn::NAME and lrnn::NAME_backward, with fake kernels and the gradient."""
    tensors = op.inputs + ((op.first,) if op.first else ())
    results = op.outputs + ((op.last,) if op.last else ())
    optional = op.optional + ((op.first,) if op.first else ())
    sizes = _size_names(op)
    takes = ", ".join(
        [f"Tensor{'?' if n in optional else ''} {n}" for n in tensors]
        + ["Tensor? offsets"]
        + [f"{kind} {n}" for n, kind in sizes]
    )
    n_in, n_size = len(tensors), len(sizes)
    n_out = len(results)

    def split(arguments):
        given = dict(zip(tensors, arguments[:n_in]))
        size = dict(zip((n for n, _ in sizes), arguments[n_in + 1 : n_in + 1 + n_size]))
        return size, given, arguments[n_in], arguments[n_in + 1 + n_size]

    def forward(*arguments):
        return tuple(_forward(op, *split(arguments)))

    def fake(*arguments):
        size, given, offsets, keep = split(arguments)
        leading = next(given[n] for n in op.inputs if given[n] is not None and op.shapes(size)[n][0] == "T")
        packed = offsets is not None and not op.numbers
        batch, length = (offsets.numel() - 1, leading.shape[0]) if packed else leading.shape[:2]
        outs = [
            leading.new_empty(_shape(op, size, n, batch, length, packed) if n != op.last or op.has_last(size) else 0)
            for n in results
        ]
        kept = 0
        if keep and not packed and all(isinstance(n, (int, float)) for n in (batch, length, *size.values())):
            present = [n for n, t in given.items() if t is not None] + [n for n, t in zip(results, outs) if t.numel()]
            index = leading.device.index if leading.device.type == "cuda" else None
            kept = ops.measure_kept(op, size, _NAMES[leading.dtype], batch, length, present, index)
        elif keep:
            kept = torch.library.get_ctx().new_dynamic_size()
        return (*outs, leading.new_empty(kept, dtype=torch.uint8))

    returns = "(" + ", ".join("Tensor" for _ in (*results, "kept")) + ")"
    schema = f"({takes}, bool keep) -> {returns}"
    operator = torch.library.custom_op(f"lrnn::{op.name}", forward, mutates_args=(), schema=schema)
    operator.register_fake(fake)

    back_takes = (
        takes.split("Tensor? offsets")[0]
        + ", ".join(f"Tensor {n}" for n in results)
        + ", "
        + ", ".join(f"Tensor? grad_{n}" for n in results)
        + ", Tensor kept, bool[] wanted, Tensor? offsets"
        + takes.split("Tensor? offsets")[1]
    )

    def split_back(arguments):
        given = dict(zip(tensors, arguments[:n_in]))
        values, gradients = arguments[n_in : n_in + n_out], arguments[n_in + n_out : n_in + 2 * n_out]
        kept, wanted, offsets = arguments[n_in + 2 * n_out : n_in + 2 * n_out + 3]
        size = dict(zip((n for n, _ in sizes), arguments[n_in + 2 * n_out + 3 :]))
        return size, given, list(values), list(gradients), kept, list(wanted), offsets

    def backward(*arguments):
        return _backward(op, *split_back(arguments))

    def backward_fake(*arguments):
        _, given, _, _, _, wanted, _ = split_back(arguments)
        leading = next(t for t in given.values() if t is not None)
        return [
            (
                torch.empty_like(t, memory_format=torch.contiguous_format)
                if w and t is not None
                else leading.new_empty(0)
            )
            for t, w in zip(given.values(), wanted)
        ]

    gradient = torch.library.custom_op(
        f"lrnn::{op.name}_backward", backward, mutates_args=(), schema=f"({back_takes}) -> Tensor[]"
    )
    gradient.register_fake(backward_fake)

    def keep(ctx, inputs, output):
        size, given, offsets, _ = split(inputs)
        ctx.size, ctx.present = size, [t is not None for t in given.values()]
        ctx.offsets = offsets is not None
        ctx.save_for_backward(
            *[t for t in given.values() if t is not None], *output, *([offsets] if offsets is not None else [])
        )

    def differentiate(ctx, *gradients):
        saved = list(ctx.saved_tensors)
        given = [saved.pop(0) if present else None for present in ctx.present]
        values, kept, offsets = saved[:n_out], saved[n_out], saved[n_out + 1] if ctx.offsets else None
        wanted = [present and needed for present, needed in zip(ctx.present, ctx.needs_input_grad[:n_in])]
        sums = call_back(*given, *values, *gradients[:n_out], kept, wanted, offsets, *ctx.size.values())
        return (*[s if w else None for s, w in zip(sums, wanted)], None, *[None] * n_size, None)

    torch.library.register_autograd(f"lrnn::{op.name}", differentiate, setup_context=keep)

    def separate(size, offsets):
        """Whether each batch must be a call: sequences of unequal length, or arrays that all sequences share."""
        shared = any(axes == "S" for axes, _ in op.shapes(size).values())
        return shared or (offsets is not None and not op.numbers)

    def together(arguments, mapped, n):
        size, given, offsets, wants = split(arguments)
        if separate(size, offsets):
            return None
        joined = [batching.join(a, m, n) for a, m in zip(arguments[: n_in + 1], mapped)]
        return [*joined, *size.values(), wants]

    def together_back(arguments, mapped, n):
        size, given, values, gradients, kept, wanted, offsets = split_back(arguments)
        at = n_in + 2 * n_out
        if separate(size, offsets) or mapped[at]:
            return None
        joined = [batching.join(a, m, n) for a, m in zip(arguments, mapped)]
        if kept.numel() and not any(mapped[n_in : n_in + n_out]):
            return None  # kept values of one batch: jacrev maps the gradients of a forward pass that was not mapped
        return [*joined[:at], kept, wanted, joined[at + 2] if op.numbers else None, *size.values()]

    def map_forward(info, axes, *arguments):
        outs, out_axes = batching.over_batches(call, together, info, axes, arguments)
        return tuple(outs), tuple(out_axes)

    def map_backward(info, axes, *arguments):
        outs, out_axes = batching.over_batches(call_back, together_back, info, axes, arguments)
        return tuple(outs), tuple(out_axes)

    def keep_marked(ctx, inputs, output):
        ctx.mark_non_differentiable(output[-1])
        keep(ctx, inputs, output)

    def refuse(ctx, *_):
        raise LrnnError(f"{op.name}: the gradient of a gradient is not defined")

    function = batching.function_of(operator, keep_marked, differentiate, map_forward)
    function_back = batching.function_of(gradient, lambda *_: None, refuse, map_backward)

    def call(*arguments):
        batching.refuse_tangents(op, arguments)
        return function.apply(*arguments) if batching.transformed() else operator(*arguments)

    def call_back(*arguments):
        return function_back.apply(*arguments) if batching.transformed() else gradient(*arguments)

    return call


_CALLS = {name: _register(op) for name, op in OPS.items()}


def _call(name: str, *arguments):
    """Outputs, and the last state where the op has one. A gradient may come, so its values are kept."""
    tracked = any(isinstance(a, Tensor) and a.requires_grad for a in arguments)
    outs = _CALLS[name](*arguments, (tracked or batching.transformed()) and torch.is_grad_enabled())[:-1]
    return outs if len(outs) > 1 else outs[0]


def scan_diag(a: Tensor, x: Tensor, h0: Tensor | None = None, offsets: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """h_t = a_t * h_{t-1} + x_t. x (B,T,W); a like x, or (W) for all tokens; h0 (B,W) -> h (B,T,W), last h (B,W)."""
    return _call("scan_diag", a, x, h0, offsets, x.shape[-1], int(a.dim() == 1))


def scan_diag_complex(
    a: Tensor, x: Tensor, h0: Tensor | None = None, offsets: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """scan_diag of complex64 or complex128 tensors, of the same shapes."""
    planes = torch.view_as_real(a).unbind(-1) + torch.view_as_real(x).unbind(-1)
    planes += (None, None) if h0 is None else torch.view_as_real(h0).unbind(-1)
    h_re, h_im, re, im = _call("scan_diag_complex", *planes, offsets, x.shape[-1], int(a.dim() == 1))
    return torch.complex(h_re, h_im), torch.complex(re, im)


def scan_block(
    z: Tensor, v: Tensor, gate: str = "softmax", h0: Tensor | None = None, offsets: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """BD-LRU (arXiv 2602.12021): h_t[i] = sum_j a_t[i][j] h_{t-1}[j] + a_t[i][m] v_t[i] in each of N blocks.

    z (B,T,m,m+1,N) raw gates, rows normalised by `gate`; v (B,T,m,N); h0 (B,m,N) -> h (B,T,m,N), last h (B,m,N)."""
    lead, (m, n) = v.dim() - 2, v.shape[-2:]
    h, last = _call(
        "scan_block", flat(z, lead), flat(v, lead), flat(h0, 1), offsets, n, m, choice("gate", gate, GATES)
    )
    return h.unflatten(-1, (m, n)), last.unflatten(-1, (m, n))


def scan_companion(
    z: Tensor,
    v: Tensor,
    gate: str = "softmax",
    s0: Tensor | None = None,
    observer: bool = False,
    offsets: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """H-LRU (arXiv 2602.12021, Eq. 3). z (B,T,m+1,N) raw gates, v (B,T,N), s0 (B,m,N) -> s (B,T,m,N), last s."""
    lead, m, n = v.dim() - 1, z.shape[-2] - 1, v.shape[-1]
    s, last = _call(
        "scan_companion", flat(z, lead), v, flat(s0, 1), offsets, n, m, choice("gate", gate, GATES), int(observer)
    )
    return s.unflatten(-1, (m, n)), last.unflatten(-1, (m, n))


def scan_lstm(
    u: Tensor,
    wh: Tensor,
    bh: Tensor,
    h0: Tensor | None = None,
    c0: Tensor | None = None,
    offsets: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """LSTM, gates i, f, g, o: u (B,T,4W) = wx x + bx, wh (4W,W), bh (4W); h0, c0 (B,W), else zeros -> h, c (B,T,W),
    of which the last tokens are the last state."""
    return _call("scan_lstm", u, wh, bh, h0, c0, offsets, wh.shape[-1])


def scan_outer(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    decay: Tensor,
    source: Tensor | None = None,
    scale: float = 1.0,
    c0: Tensor | None = None,
    offsets: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """C_t = decay_t C_{t-1} + source_t k_t v_t^T; o_t = scale C_t^T q_t, a matrix C per head.

    q, k (B,T,G,dk), v (B,T,H,dv), decay, source (B,T,H), c0 (B,H,dk,dv) -> o (B,T,H,dv), last C (B,H,dk,dv). The last C
    is empty where heads share keys (G < H)."""
    lead, (heads, dv), (groups, dk) = v.dim() - 2, v.shape[-2:], q.shape[-2:]
    o, last = _call(
        "scan_outer",
        flat(q, lead),
        flat(k, lead),
        flat(v, lead),
        decay,
        source,
        flat(c0, 1),
        offsets,
        heads,
        groups,
        dk,
        dv,
        scale,
    )
    return o.unflatten(-1, (heads, dv)), last.unflatten(-1, (heads, dk, dv)) if groups == heads else last


def scan_delta(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor | None = None,
    decay: Tensor | None = None,
    read: Tensor | None = None,
    erase: Tensor | None = None,
    steps: int = 1,
    scale: float = 1.0,
    rate: float = 1.0,
    s0: Tensor | None = None,
    offsets: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Delta rules (lrnn.h has the forms): S <- Diag(decay) S, then n `steps` of S <- S + k (rate beta (v - S^T k))^T;
    with `read` instead of beta S <- S + k (v - rate S^T read)^T; with `erase` too S <- S + k v^T - erase (rate S^T
    read)^T.

    q (B,T,H,dk), k, read, erase (B,T,n*H,dk), v (B,T,n*H,dv), beta (B,T,n*H), decay (B,T,H) or (B,T,H,dk), s0
    (B,H,dk,dv) -> o (B,T,H,dv), last S (B,H,dk,dv), which is empty with several steps."""
    lead, (heads, dk), dv = q.dim() - 2, q.shape[-2:], v.shape[-1]
    channels = int(decay is not None and decay.dim() == q.dim())
    o, last = _call(
        "scan_delta",
        *(flat(t, lead) for t in (q, k, v)),
        beta,
        flat(decay, lead),
        flat(read, lead),
        flat(erase, lead),
        flat(s0, 1),
        offsets,
        heads,
        steps,
        dk,
        dv,
        scale,
        rate,
        channels,
    )
    return o.unflatten(-1, (heads, dv)), last.unflatten(-1, (heads, dk, dv)) if steps == 1 else last


def scan_plstm(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    source: Tensor,
    transition: Tensor,
    mark: Tensor,
    direct: Tensor,
    scale: float = 1.0,
    c0: Tensor | None = None,
    offsets: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """pLSTM on a sequence (arXiv 2506.11997), J states per head. q, k (B,T,H,dk), v (B,T,H,dv), source, mark (B,T,H,J),
    transition (B,T,H,J,J), direct (B,T,H), c0 (B,H,J,dk,dv) -> y (B,T,H,dv), last C."""
    lead, (heads, dv), dk, states = v.dim() - 2, v.shape[-2:], q.shape[-1], source.shape[-1]
    y, last = _call(
        "scan_plstm",
        *(flat(t, lead) for t in (q, k, v, source, transition, mark)),
        direct,
        flat(c0, 1),
        offsets,
        heads,
        states,
        dk,
        dv,
        scale,
    )
    return y.unflatten(-1, (heads, dv)), last.unflatten(-1, (heads, states, dk, dv))


def grid_scan(q: Tensor, k: Tensor, v: Tensor, gates: Tensor, direct: Tensor, scale: float = 1.0) -> Tensor:
    """pLSTM on a grid. q, k (B,X,Y,H,dk), v (B,X,Y,H,dv), gates (B,X,Y,8,4,H), direct (B,X,Y,H) -> y (B,X,Y,H,dv)."""
    batch, x, y, heads, dv = v.shape
    tokens = [t.reshape(batch, x * y, -1) for t in (q, k, v, gates, direct)]
    return _call("grid_scan", *tokens, None, x, y, heads, q.shape[-1], dv, scale).reshape(v.shape)


def dag_links(graphs: Iterable[Iterable[tuple[int, int]]]) -> Tensor:
    """The links of dag_scan: int32 (B, words), of a list of edges (tail, head), tail < head, for each graph. Rows of
    gates belong to edges in the order sorted(edges), and to pairs of edges in the order of their second edge."""
    return torch.tensor(ops.dag_links(graphs)[0], dtype=torch.int32)


def dag_scan(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    source: Tensor,
    mark: Tensor,
    transition: Tensor,
    direct: Tensor,
    links: Tensor,
    scale: float = 1.0,
    reversed: bool = False,
    tree: bool = False,
) -> Tensor:
    """pLSTM on a directed acyclic graph of T nodes (lrnn.h). q, k (B,T,H,dk), v (B,T,H,dv), source, mark (B,edges,H),
    transition (B,pairs,H), direct (B,T,H), links of dag_links -> y (B,T,H,dv)."""
    heads, dv = v.shape[-2:]
    sizes = (heads, q.shape[-1], dv, source.shape[1], transition.shape[1], scale, int(reversed), int(tree))
    y = _call("dag_scan", flat(q), flat(k), flat(v), source, mark, transition, direct, links, *sizes)
    return y.unflatten(-1, (heads, dv))


def scan_flow(a: Tensor, y0: Tensor, offsets: Tensor | None = None) -> Tensor:
    """SLiCE (arXiv 2505.17761): y_t = (I + A_t) y_{t-1} in each of N blocks; A at t = 0 is not read. a (B,T,m,m,N),
    y0 (B,N,m) -> y (B,T,N,m)."""
    n, m = y0.shape[-2:]
    return _call("scan_flow", flat(a, a.dim() - 3), flat(y0, 1), offsets, n, m).unflatten(-1, (n, m))


def scan_dplr(d: Tensor, u: Tensor, v: Tensor, y0: Tensor, offsets: Tensor | None = None) -> Tensor:
    """scan_flow with A_t = diag(d_t) + U_t V_t^T: d (B,T,W), u, v (B,T,r,W), y0 (B,W) -> y (B,T,W)."""
    lead = d.dim() - 1
    return _call("scan_dplr", d, flat(u, lead), flat(v, lead), y0, offsets, d.shape[-1], u.shape[-2])


def scan_hadamard(d: Tensor, y0: Tensor, offsets: Tensor | None = None) -> Tensor:
    """scan_flow with A_t = Q diag(d_t), Q the Hadamard matrix over sqrt(W): d (B,T,W), y0 (B,W) -> y (B,T,W)."""
    return _call("scan_hadamard", d, y0, offsets, d.shape[-1])


def tree_solve(
    u: Tensor, up: Tensor, down: Tensor | None = None, arity: int = 2, beta: float = 0.0, form: str = "hermitian"
) -> Tensor:
    """Solves x_v + b_v x_parent + sum c_c x_child = u_v on perfect trees (Myosotis, section 3.5). u, up, down
    (B,nodes,W) complex, leaves first -> x like u."""
    levels = tree_levels(u.shape[1], arity)
    planes = [
        *torch.view_as_real(up).unbind(-1),
        *(torch.view_as_real(down).unbind(-1) if down is not None else (None, None)),
        *torch.view_as_real(u).unbind(-1),
    ]
    return torch.complex(
        *_call("tree_solve", *planes, None, arity, levels, u.shape[-1], beta, choice("form", form, FORMS))
    )

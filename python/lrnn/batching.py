"""Rules of torch.func for the operators: what grad, vjp, jacrev and vmap call in the place of an operator."""

from __future__ import annotations

from typing import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import forward_ad

from lrnn.ops import LrnnError, Op


def transformed() -> bool:
    """Whether a transformation of torch.func runs. torch.compile traces operators as they are."""
    return not torch.compiler.is_compiling() and torch._C._functorch.peek_interpreter_stack() is not None


def refuse_tangents(op: Op, arguments) -> None:
    """Forward-mode derivatives would be lost without a word: PyTorch asks no operator for them."""
    if torch.compiler.is_compiling() or forward_ad._current_level < 0:
        return
    if any(isinstance(a, Tensor) and forward_ad.unpack_dual(a).tangent is not None for a in arguments):
        raise LrnnError(f"{op.name}: forward-mode derivatives (jvp, jacfwd, hessian) are not defined; use grad or vjp")


def function_of(operator: Callable, keep: Callable, differentiate: Callable, over_batches: Callable) -> type:
    """The operator as an autograd.Function, which torch.func can transform."""

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(*arguments):
            return tuple(operator(*arguments))

        setup_context = staticmethod(keep)
        backward = staticmethod(differentiate)
        vmap = staticmethod(over_batches)

    return Function


def _first(t, axis):
    """With the mapped axis in front."""
    return t.movedim(axis, 0) if axis is not None else t


def _stack(results: tuple[Tensor, ...]) -> Tensor:
    """All batches' results. Kept values of other lengths are of other sizes; backward reads no more than its own."""
    longest = max(r.shape[0] if r.dim() else 0 for r in results)
    return torch.stack([F.pad(r, (0, longest - r.shape[0])) if r.dim() == 1 else r for r in results])


def over_batches(call: Callable, together: Callable, info, axes, arguments):
    """The rule of vmap. together(arguments) is what one call for all batches takes, or None: then each batch is a call.
    Returns what call(*arguments) gives for each batch, and the mapped axis of every result."""
    size = info.batch_size
    arguments = [_first(a, axis) if isinstance(a, Tensor) else a for a, axis in zip(arguments, axes)]
    mapped = [isinstance(a, Tensor) and axis is not None for a, axis in zip(arguments, axes)]
    joined = together(arguments, mapped, size)
    if joined is None:
        each = [call(*(a[i] if m else a for a, m in zip(arguments, mapped))) for i in range(size)]
        return [_stack(results) for results in zip(*each)], [0] * len(each[0])
    results = call(*joined)
    whole = [r.dim() == 1 for r in results]  # kept values, and results that are not there, have no batches
    return (
        [r if w else r.unflatten(0, (size, r.shape[0] // size)) for r, w in zip(results, whole)],
        [None if w else 0 for w in whole],
    )


def join(t, mapped: bool, size: int):
    """All batches of an array along its first axis; what is no array stays as it is."""
    if not isinstance(t, Tensor):
        return t
    return (t if mapped else t.expand(size, *t.shape)).flatten(0, 1)

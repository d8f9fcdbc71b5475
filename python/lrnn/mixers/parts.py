"""Parts that several mixers share: parameters by name, rows of sequences, norms, heads, the causal convolution."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lrnn.ops import LrnnError

EPS = 1e-5  # of every norm but those of keys


@dataclass
class Rows:
    """The rows of a batch that count: lengths (B), None for all; edges of each sequence that is a graph, by tail and
    head, or None; first: values of a net's first layer, which rwkv7 keeps for the others."""

    lengths: Tensor | None = None
    edges: list[list[tuple[int, int]]] | None = None
    first: Tensor | None = None

    def used(self, x: Tensor) -> Tensor | None:
        """(B,T) whether a row of x (B,T,...) is in use; None: all are."""
        return None if self.lengths is None else torch.arange(x.shape[1]) < self.lengths[:, None]


def option(text: str):
    """An option's value from its text: yes, no and auto become True, False and 0, numbers become numbers."""
    if text in ("yes", "no", "auto"):
        return {"yes": True, "no": False, "auto": 0}[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


class Part(nn.Module):
    """Parameters under one name. Called, it is the linear map of its weight [out][in] and, where it has one, bias."""

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, getattr(self, "bias", None))


CONSTANTS = ("mask", "norm.mean", "norm.variance")  # ends of the names of tensors that no optimiser moves


def place(module: nn.Module, name: str, value: Tensor) -> None:
    """Makes a parameter, or a buffer of a constant, under a dotted name."""
    *path, last = name.split(".")
    for word in path:
        if word not in module._modules:
            module.add_module(word, Part())
        module = module._modules[word]
    if name.endswith(CONSTANTS):
        module.register_buffer(last, value)
    else:
        module.register_parameter(last, nn.Parameter(value))


class Mixer(nn.Module):
    """A sequence mixer, (B,T,D) -> (B,T,D). Its options are those that `lrnn info NAME` explains (gate_init for
    gate-init), its parameters those of `lrnn export`, by the same names.

    dim: D, for parameters at the start that models/ gives them; None leaves them to who loads the mixer. layer, layers:
    its place in a net. Options that are neither given nor in `defaults` are missing: a loaded mixer has all."""

    defaults: dict = {}
    causal = True

    def __init__(self, dim: int | None = None, *, layer: int = 0, layers: int = 0, **options):
        super().__init__()
        self.o = {**self.defaults, **{key.replace("_", "-"): value for key, value in options.items()}}
        self.layer, self.layers = layer, layers
        unknown = set(self.o) - set(self.defaults)
        if dim is None:
            return
        if unknown:
            raise LrnnError(
                f"{type(self).__name__} has no option {min(unknown)}; it has {', '.join(sorted(self.defaults))}"
            )
        for name, value in self.starts(dim).items():
            place(self, name, value)

    def forward(self, x: Tensor, rows: Rows | None = None) -> Tensor:
        return self.compute(x, rows or Rows())

    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        raise NotImplementedError

    def starts(self, dim: int) -> dict[str, Tensor]:
        """Parameters as models/ starts them, in its order."""
        raise LrnnError(f"{type(self).__name__} is made by lrnn.load alone; its start is the program's")


def start_linear(out: int, inputs: int, gain: float = 1) -> Tensor:
    """Weight of a linear map: U(-g, g), g = gain / sqrt(inputs)."""
    return torch.empty(out, inputs).uniform_(-1, 1) * (gain / math.sqrt(inputs))


def start_normal(*shape: int, sd: float) -> Tensor:
    return torch.randn(*shape) * sd


def rmsnorm(x: Tensor, weight: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS) * weight


def layernorm(x: Tensor, weight: Tensor, bias: Tensor | float = 0.0, eps: float = EPS) -> Tensor:
    x = x - x.mean(-1, keepdim=True)
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight + bias


def unit(x: Tensor, eps: float = 1e-6) -> Tensor:
    """Vectors of length 1."""
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + eps)


def heads(x: Tensor, n: int) -> Tensor:
    """(B,T,n*d) -> (B,T,n,d)"""
    return x.unflatten(-1, (n, -1))


def causal_conv(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y_t[c] = b[c] + sum_j w[c][j] x_{t-m+1+j}[c] of x (B,T,C), zeros before the start."""
    channels, width = weight.shape
    padded = F.pad(x.transpose(1, 2), (width - 1, 0))
    return F.conv1d(padded, weight.unsqueeze(1), bias, groups=channels).transpose(1, 2)


def complex_of(part: nn.Module) -> Tensor:
    """The complex tensor of parameters `re` and `im`."""
    return torch.complex(part.re, part.im)

"""Mixers without a recurrence: attention with rotary positions, full-attention (Dosovitskiy et al. 2021), conv, and
those of graphs: gcn (Kipf & Welling 2017), gin (Xu et al. 2019), gat (Velickovic et al. 2018), mpnn (Gilmer et al.
2017)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from lrnn.mixers.parts import Mixer, Rows, causal_conv, heads
from lrnn.mixers.plstm import edges_of


def turned(x: Tensor) -> Tensor:
    """Rotary positions on x (B,H,T,d): the pair (i, i + d/2) turns by t 10000^(-2i/d)."""
    half = x.shape[-1] // 2
    rate = 10000.0 ** (-torch.arange(half, dtype=x.dtype) / half)
    angle = torch.arange(x.shape[2], dtype=x.dtype)[:, None] * rate
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


class Attention(Mixer):
    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        q, k, v = (heads(part, self.o["heads"]).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


class FullAttention(Mixer):
    """Every token sees every other of its sequence; an empty sequence sees its first row, which nothing reads."""

    causal = False

    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        q, k, v = (heads(part, self.o["heads"]).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        seen = None
        if rows.lengths is not None:
            seen = (torch.arange(x.shape[1]) < rows.lengths.clamp(min=1)[:, None])[:, None, None]
        return self.out(F.scaled_dot_product_attention(q, k, v, seen).transpose(1, 2).flatten(2))


class Conv(Mixer):
    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        return self.out(causal_conv(self.v(x), self.kernel))


class Neighbours(Mixer):
    """Mixers in which each node hears its neighbours once; the way of an edge does not matter."""

    causal = False

    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        return self.hear(x, adjacency(x, edges_of(x, rows, self.o)))


def adjacency(x: Tensor, graphs: list[list[tuple[int, int]]]) -> Tensor:
    """(B,T,T) of 0 and 1."""
    a = x.new_zeros(x.shape[0], x.shape[1], x.shape[1])
    for b, edges in enumerate(graphs):
        for tail, head in edges:
            a[b, tail, head] = a[b, head, tail] = 1
    return a


class GCN(Neighbours):
    def hear(self, x: Tensor, a: Tensor) -> Tensor:
        a = a + torch.eye(x.shape[1], dtype=x.dtype)
        root = torch.rsqrt(a.sum(-1))
        return torch.relu(F.linear((root.unsqueeze(-1) * a * root.unsqueeze(-2)) @ x, self.weight, self.bias))


class GIN(Neighbours):
    def hear(self, x: Tensor, a: Tensor) -> Tensor:
        return self.w2(torch.relu(self.w1(x + a @ x)))


class GAT(Neighbours):
    def hear(self, x: Tensor, a: Tensor) -> Tensor:
        near = (a + torch.eye(x.shape[1], dtype=x.dtype) > 0).unsqueeze(-1)
        scores = F.leaky_relu(self.reader(x).unsqueeze(2) + self.writer(x).unsqueeze(1), 0.2)
        share = torch.softmax(scores.masked_fill(~near, -torch.inf), 2)
        return torch.einsum("bnuh,buhd->bnhd", share, heads(self.v(x), self.o["heads"])).flatten(2) + self.bias


class MPNN(Neighbours):
    def hear(self, x: Tensor, a: Tensor) -> Tensor:
        told = torch.relu(self.reader(x).unsqueeze(2) + self.writer(x).unsqueeze(1))
        heard = (a.unsqueeze(-1) * told).sum(2)
        return self.w2(torch.relu(self.w1(torch.cat([x, heard], -1))))


MIXERS = {
    "attention": Attention,
    "full-attention": FullAttention,
    "conv": Conv,
    "gcn": GCN,
    "gin": GIN,
    "gat": GAT,
    "mpnn": MPNN,
}

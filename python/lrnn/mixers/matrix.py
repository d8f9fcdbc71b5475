"""Mixers with a matrix state per head: mamba2 (Dao & Gu 2024), mamba3 (Lahoti et al. 2026), deltanet and gated-deltanet
(Yang et al. 2024), deltaproduct (Siems et al. 2025), kda (Kimi Team 2025), gdn2 (Hatamizadeh et al. 2026), rwkv7 (Peng
et al. 2025), gla (Yang et al. 2023), hgrn2 (Qin et al. 2024), mlstm and beside it slstm (Beck et al. 2024)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from lrnn.mixers.parts import Mixer, Rows, causal_conv, heads, layernorm, rmsnorm, unit
from lrnn.operators import scan_delta, scan_outer


class Mamba2(Mixer):
    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        size, n = self.o["state"], self.A.log.shape[0]
        inner = self.o["expand"] * x.shape[-1]
        z, xbc, dt = getattr(self, "in")(x).split([inner, inner + 2 * size, n], -1)
        v, b, c = F.silu(causal_conv(xbc, self.conv.weight, self.conv.bias)).split([inner, size, size], -1)
        delta = F.softplus(dt + self.dt.bias)
        decay = torch.exp(-delta * torch.exp(self.A.log))
        if self.o["range"] == "signed":
            decay = 2 * decay - 1
        v = heads(v, n)
        y = scan_outer(c.unsqueeze(2), b.unsqueeze(2), v, decay, delta)[0] + self.skip[:, None] * v
        return self.out(rmsnorm(y.flatten(2) * F.silu(z), self.norm.weight))


def turn(x: Tensor, angles: Tensor) -> Tensor:
    """Turns the pairs (2i, 2i + 1) of the last axis, as many as there are angles."""
    pairs, rest = x.split([2 * angles.shape[-1], x.shape[-1] - 2 * angles.shape[-1]], -1)
    a, b = pairs[..., 0::2], pairs[..., 1::2]
    c, s = angles.cos(), angles.sin()
    return torch.cat([torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2), rest], -1)


class Mamba3(Mixer):
    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        n, size = self.B.bias.shape
        inner, pairs = self.o["expand"] * x.shape[-1], int(self.o["rope"] * size) // 2
        widths = [inner, inner, size, size, n, n, n, pairs]
        z, v, b, c, dt, rate, trap, angle = getattr(self, "in")(x).split(widths, -1)
        delta = F.softplus(dt + self.dt.bias)
        if self.o["decay"] == "heavy":
            rate = torch.where(rate >= 0, 1 + rate, 1 / (1 - rate.clamp(max=0)))
        else:
            rate = F.softplus(rate)
        decay = torch.exp(-delta * rate.clamp(min=1e-4))
        # Whole turns leave the sum over a long sequence before it is rounded.
        turned = (delta.double()[..., None] * torch.tanh(angle).double().unsqueeze(2)).cumsum(1) % 2
        turned = turned.to(x.dtype) * math.pi
        k = turn(rmsnorm(b, self.B.norm).unsqueeze(2) + self.B.bias, turned)
        q = turn(rmsnorm(c, self.C.norm).unsqueeze(2) + self.C.bias, turned)
        now = torch.sigmoid(trap) * delta
        later = F.pad((delta - now)[:, 1:], (0, 0, 0, 1))  # the weight that a token gets one step later
        v = heads(v, n)
        y = scan_outer(q, k, v, decay, now + later)[0] - (later * (q * k).sum(-1))[..., None] * v
        y = y + self.skip[:, None] * v
        if self.o["norm"]:
            y = rmsnorm(y, heads(self.norm.weight, n))
        return self.out(y.flatten(2) * F.silu(z))


def projected(x: Tensor, part) -> Tensor:
    """A linear map and, where it has one, a causal convolution with silu."""
    y = part(x)
    return F.silu(causal_conv(y, part.conv)) if hasattr(part, "conv") else y


def low_rank(x: Tensor, part) -> Tensor:
    return part.up(part.down(x))


class DeltaRule(Mixer):
    """All delta rules of models/matrix/matrix_state.c, told apart by their parameters: `erase` and `write` gate vectors
    a channel, `f` has a decay a channel, `a` one per head; `g` gates the output."""

    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        n, steps, has = self.o["heads"], self.o.get("steps", 1), self._modules
        q, k = unit(heads(projected(x, self.q), n)), unit(heads(projected(x, self.k), steps * n))
        v = heads(projected(x, self.v), steps * n)
        gates: dict = {}
        if "erase" in has:
            gates["read"] = k * torch.sigmoid(heads(self.erase(x), steps * n))
            v = v * torch.sigmoid(heads(self.write(x), steps * n))
        else:
            gates["beta"] = torch.sigmoid(self.beta(x))
        if "f" in has:
            gates["decay"] = self.channel_decay(x)
        elif "a" in has:
            gates["decay"] = torch.exp(-torch.exp(self.A.log) * F.softplus(self.a(x) + self.dt.bias))
        y = scan_delta(q, k, v, **gates, steps=steps, scale=q.shape[-1] ** -0.5, rate=self.o.get("beta", 1))[0]
        y = rmsnorm(y, self.norm.weight).flatten(2)
        if "g" in has:
            y = y * (torch.sigmoid(low_rank(x, self.g)) if "f" in has else F.silu(self.g(x)))
        return self.out(y)

    def channel_decay(self, x: Tensor) -> Tensor:
        f = heads(low_rank(x, self.f) + self.dt.bias, self.o["heads"])
        rate = torch.exp(self.A.log)[:, None]
        if self.o["decay"] == "bounded":
            return torch.exp(self.o["floor"] * torch.sigmoid(rate * f))
        return torch.exp(-rate * F.softplus(f))


class GLA(Mixer):
    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        n = self.o["heads"]
        q, k, v = (heads(projected(x, part), n) for part in (self.q, self.k, self.v))
        decay = torch.sigmoid(heads(low_rank(x, self.f), n)) ** (1 / self.o["divisor"])
        y = scan_delta(q, k, v, decay=decay, scale=q.shape[-1] ** -0.5)[0]
        return self.out(rmsnorm(y, self.norm.weight).flatten(2) * F.silu(self.g(x)))


class HGRN2(Mixer):
    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        n = self.o["heads"]
        low = self.layer / self.layers if self.o["bounds"] and self.layers else 0
        z = heads(self.f(x), n)
        keep, take = torch.sigmoid(z), torch.sigmoid(-z)
        q, v = heads(F.silu(self.q(x)), n), heads(self.i(x), n)
        y = scan_delta(q, (1 - low) * take, v, decay=keep + low * take, scale=q.shape[-1] ** -0.5)[0]
        return self.out(rmsnorm(y.flatten(2), self.norm.weight))


class RWKV7(Mixer):
    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        n, step = self.o["heads"], F.pad(x, (0, 0, 1, -1)) - x
        r, w, k, v, a, g = (x + step * getattr(self.mix, name) for name in "rwkvag")
        values = self.v(v)
        if self.layer == 0:
            rows.first = values
        vmix = self.o["vmix"]  # 0: auto
        if vmix is True or (vmix is not False and self.layer > 0):
            share = torch.sigmoid(v @ self.vmix.down.T @ self.vmix.up.T + self.vmix.bias)
            values = values + ((x if self.layer == 0 else rows.first) - values) * share
        z = torch.tanh(w @ self.decay.down.T) @ self.decay.up.T + self.decay.bias
        speed = math.exp(-0.5) * torch.sigmoid(z)  # -log of the decay
        rate = torch.sigmoid(a @ self.rate.down.T @ self.rate.up.T + self.rate.bias)
        gate = torch.sigmoid(g @ self.gate.down.T) @ self.gate.up.T
        r, k = self.r(r), self.k(k)
        seen = unit(heads(k * self.key.scale, n), 1e-24)
        k = k * (1 + (rate - 1) * self.key.rate)
        # The erased vector reads the state before the decay, the op after it: it is divided by the decay.
        read, erase = seen * torch.exp(heads(speed, n)), seen * heads(rate, n)
        r, k, values = heads(r, n), heads(k, n), heads(values, n)
        y = scan_delta(r, k, values, decay=torch.exp(-heads(speed, n)), read=read, erase=erase)[0]
        y = layernorm(y, 1.0, 0.0, 64e-5).flatten(2) * self.norm.weight + self.norm.bias
        bonus = ((r * k * self.bonus).sum(-1, keepdim=True) * values).flatten(2)
        return self.out((y + bonus) * gate)


def blocks_of_four(x: Tensor, weight: Tensor) -> Tensor:
    """A block-diagonal map: row 4*k + i of the weight has the 4 inputs of block k."""
    return torch.einsum("btkj,kij->btki", x.unflatten(-1, (-1, 4)), weight.unflatten(0, (-1, 4))).flatten(2)


class MLSTM(Mixer):
    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        n = self.norm.weight.shape[0]
        u, z = self.up(x).chunk(2, -1)
        c = F.silu(causal_conv(u, self.conv.weight, self.conv.bias))
        q, k, v = (blocks_of_four(a, w.weight) for a, w in ((c, self.q), (c, self.k), (u, self.v)))
        i, f = self.gates(torch.cat([q, k, v], -1)).chunk(2, -1)
        forget = F.logsigmoid(f)
        # The running maximum m_t = max(forget_t + m_{t-1}, i_t) from 0, as a cumulative maximum; in float64, since sums
        # over a long sequence are large and their differences small.
        forget, i = forget.double(), i.double()
        total = forget.cumsum(1)
        m = total + torch.cummax(i - total, 1)[0].clamp(min=0)
        gates = forget + F.pad(m, (0, 0, 1, -1)) - m, i - m, -m
        decay, source, least = (torch.exp(gate).to(x.dtype) for gate in gates)
        q, k, v = heads(q, n), heads(k, n), heads(v, n)
        values = torch.cat([torch.ones_like(v[..., :1]), v], -1)
        both = scan_outer(q, k, values, decay, source, q.shape[-1] ** -0.5)[0]
        divisor = torch.maximum(both[..., :1].abs(), least.unsqueeze(-1)) + 1e-6
        h = layernorm(both[..., 1:] / divisor, 1 + self.norm.weight).flatten(2)
        return self.down((h + self.skip * c) * F.silu(z))


def by_head(x: Tensor, weight: Tensor) -> Tensor:
    """A block-diagonal map, a block per head: row h*dh + i of the weight has the inputs of head h."""
    n = x.shape[-1] // weight.shape[1]
    return torch.einsum("...hj,hij->...hi", heads(x, n), weight.unflatten(0, (n, -1))).flatten(-2)


class SLSTM(Mixer):
    """Its tokens follow one another: a loop over time."""

    def __init__(self, dim: int | None = None, **options):
        super().__init__(dim, **options)
        del self.o  # a gate has that name

    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        xc = F.silu(causal_conv(x, self.conv.weight, self.conv.bias)) if "conv" in self._modules else x
        i, f, z, o = (by_head(u, w.weight) for u, w in ((xc, self.i), (xc, self.f), (x, self.z), (x, self.o)))
        raw = torch.cat([i, f, z, o], -1) + self.bias
        recurrent = self.recurrent.weight.chunk(4)
        hs: list[Tensor] = []
        for p in raw.unbind(1):
            if hs:
                p = p + torch.cat([by_head(hs[-1], w) for w in recurrent], -1)
            i, f, z, o = p.chunk(4, -1)
            if hs:
                kept = F.logsigmoid(f) + m
                m = torch.maximum(kept, i)
                forget, enter = torch.exp(kept - m), torch.exp(i - m)
                c, n = forget * c + enter * torch.tanh(z), forget * n + enter
            else:
                m, c, n = i, torch.tanh(z), torch.ones_like(z)
            hs.append(torch.sigmoid(o) * c / n)
        h = heads(torch.stack(hs, 1), self.norm.weight.shape[0])
        return layernorm(h, 1 + self.norm.weight).flatten(2)


class XLSTM(Mixer):
    """mlstm or slstm, as the layer's parameters are."""

    def __init__(self, dim: int | None = None, **options):
        super().__init__(dim, **options)
        del self.o  # a gate of slstm has that name

    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        return (SLSTM if "recurrent" in self._modules else MLSTM).compute(self, x, rows)


MIXERS = {
    "mamba2": Mamba2,
    "mamba3": Mamba3,
    "deltanet": DeltaRule,
    "deltaproduct": DeltaRule,
    "gated-deltanet": DeltaRule,
    "kda": DeltaRule,
    "gdn2": DeltaRule,
    "rwkv7": RWKV7,
    "gla": GLA,
    "hgrn2": HGRN2,
    "mlstm": MLSTM,
    "slstm": SLSTM,
    "xlstm": XLSTM,
}

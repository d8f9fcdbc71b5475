"""Mixers with a vector state: bdlru, hlru (arXiv 2602.12021), lru (Orvieto et al. 2023), s5 (Smith et al. 2022), linoss
(Rusch & Rus 2024), mingru (Feng et al. 2024), rglru (De et al. 2024), aussm (Karuvally et al. 2025), pdssm (Terzic et
al. 2025), lstm."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from lrnn.mixers.parts import Mixer, Rows, causal_conv, complex_of, heads, start_linear, start_normal
from lrnn.operators import scan_block, scan_companion, scan_diag, scan_diag_complex, scan_lstm


class Gated(Mixer):
    """The part that bdlru and hlru share: raw gates of the input or constant ones, rows in the order of `axes` of the
    contract, which the scan wants permuted by `order`."""

    def raw_gates(self, x: Tensor, rows: Rows, axes: tuple[int, ...], order: tuple[int, ...]) -> Tensor:
        bias = self.gates.bias.reshape(axes).permute(order)
        if not self.o["selective"]:
            return bias.expand(*x.shape[:2], *bias.shape)
        if self.o["selective"] == "pointwise":
            z = self.gates.scale.reshape(axes).permute(order) * self.v(x).unsqueeze(-2) + bias
        else:
            weight = self.gates.weight.reshape(*axes, -1).permute(*order, len(axes)).flatten(0, -2)
            z = F.linear(x, weight, bias.flatten()).unflatten(-1, bias.shape)
        used = rows.used(x)
        if self.o["gate"] == "none" and used is not None:  # else states may overflow after the end
            z = z * used.reshape(*used.shape, *[1] * len(axes))
        return z

    def gate_starts(self, count: int, dim: int) -> dict[str, Tensor]:
        """In the order of models/parts.c: a constant bias is drawn, since nothing else tells the states apart."""
        if self.o["selective"] == "pointwise":
            scale = start_linear(count, 1, self.o["gate-init"]).flatten()
            return {"gates.scale": scale, "gates.bias": torch.zeros(count)}
        if not self.o["selective"]:
            return {"gates.bias": start_normal(count, sd=0.02)}
        return {"gates.weight": start_linear(count, dim, self.o["gate-init"]), "gates.bias": torch.zeros(count)}

    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        return self.with_state(x, None, rows)[0]


class BDLRU(Gated):
    """BD-LRU (arXiv 2602.12021), (B,T,D) -> (B,T,D): `blocks` blocks of m states, whose gates are rows of m + 1."""

    defaults = {"blocks": 64, "m": 5, "gate": "softmax", "selective": True, "gate-init": 1.0}

    def starts(self, dim: int) -> dict[str, Tensor]:
        n, m = self.o["blocks"], self.o["m"]
        return {
            **self.gate_starts(n * m * (m + 1), dim),
            "v.weight": start_linear(n * m, dim),
            "out.weight": start_linear(dim, n * m),
        }

    def with_state(self, x: Tensor, state: Tensor | None = None, rows: Rows | None = None) -> tuple[Tensor, Tensor]:
        """y and the last state (B,m,N), from the state before the first token."""
        n, m = self.o["blocks"], self.o["m"]
        z = self.raw_gates(x, rows or Rows(), (n, m, m + 1), (1, 2, 0))
        v = F.linear(x, self.v.weight.unflatten(0, (n, m)).transpose(0, 1).flatten(0, 1)).unflatten(-1, (m, n))
        h, last = scan_block(z, v, self.o["gate"], state)
        return F.linear(h.flatten(2), self.out.weight.unflatten(1, (n, m)).transpose(1, 2).flatten(1)), last


class HLRU(Gated):
    """H-LRU (arXiv 2602.12021), (B,T,D) -> (B,T,D): `channels` channels of m states, layout companion or observer."""

    defaults = {
        "channels": 128,
        "m": 5,
        "gate": "softmax",
        "layout": "companion",
        "selective": True,
        "gate-init": 1.0,
    }

    def starts(self, dim: int) -> dict[str, Tensor]:
        n, m = self.o["channels"], self.o["m"]
        return {
            **self.gate_starts(n * (m + 1), dim),
            "v.weight": start_linear(n, dim),
            "out.weight": start_linear(dim, n * m),
        }

    def with_state(self, x: Tensor, state: Tensor | None = None, rows: Rows | None = None) -> tuple[Tensor, Tensor]:
        """y and the last state (B,m,N), from the state before the first token."""
        n, m = self.o["channels"], self.o["m"]
        z = self.raw_gates(x, rows or Rows(), (n, m + 1), (1, 0))
        s, last = scan_companion(z, self.v(x), self.o["gate"], state, self.o["layout"] == "observer")
        return F.linear(s.flatten(2), self.out.weight.unflatten(1, (n, m)).transpose(1, 2).flatten(1)), last


class LRU(Mixer):
    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        a = torch.exp(torch.complex(-torch.exp(self.nu.log), torch.exp(self.theta.log)))
        u = torch.exp(self.gamma.log) * (x.to(a.dtype) @ complex_of(self.B).T)
        return (scan_diag_complex(a, u)[0] @ complex_of(self.C).T).real + self.skip * x


class S5(Mixer):
    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        rate = getattr(self, "lambda")
        re = rate.re.clamp(max=-1e-4) if self.o["clip"] else rate.re
        lam, step = torch.complex(re, rate.im), torch.exp(self.step.log)
        if self.o["step"] == "zoh":
            a = torch.exp(lam * step)
            b = (a - 1) / lam
        else:
            b = step / (1 - lam * step / 2)
            a = (1 + lam * step / 2) / (1 - lam * step / 2)
        h, _ = scan_diag_complex(a, b * (x.to(a.dtype) @ complex_of(self.B).T))
        return (2 if self.o["conj"] else 1) * (h @ complex_of(self.C).T).real + self.skip * x


class LinOSS(Mixer):
    """Each oscillator's position is a recurrence of order 2, of both planes."""

    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        square = torch.sigmoid(self.step).square()
        pull = square * torch.relu(self.A)
        if self.o["step"] == "imex":
            gates = (2 - pull, -torch.ones_like(pull), square)
        else:
            s = 1 / (1 + pull)
            gates = (2 * s, -s, s * square)
        z = torch.stack(gates).repeat(1, 2).expand(*x.shape[:2], 3, -1)
        u = torch.cat([x @ self.B.re.T, x @ self.B.im.T], -1)
        re, im = scan_companion(z, u, "none")[0][:, :, 0].chunk(2, -1)
        return re @ self.C.re.T - im @ self.C.im.T + self.skip * x


class MinGRU(Mixer):
    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        z, v = torch.sigmoid(self.z(x)), self.h(x)
        if self.o["form"] == "log":
            v = torch.where(v >= 0, v + 0.5, torch.sigmoid(v))
        h = scan_diag(1 - z, z * v)[0]
        return self.out(h) if "out" in self._modules else h


class RGLRU(Mixer):
    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        n = self.o["heads"]

        def blocks(u: Tensor, part) -> Tensor:
            w = part.weight.unflatten(0, (n, -1))
            return torch.einsum("bthj,hij->bthi", heads(u, n), w).flatten(2) + part.bias

        u = causal_conv(self.x(x), self.conv.weight, self.conv.bias)
        entry = torch.sigmoid(blocks(u, self.input)) * u
        log_a = -8 * torch.sigmoid(blocks(u, self.decay)) * F.softplus(self.A)
        later = torch.sqrt(-torch.expm1(2 * log_a[:, 1:])) * entry[:, 1:]
        h = scan_diag(torch.exp(log_a), torch.cat([entry[:, :1], later], 1))[0]
        return self.out(h * F.gelu(self.y(x), approximate="tanh"))


class AUSSM(Mixer):
    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        n, dim = self.B.radius.shape[0], x.shape[-1]
        u, z = getattr(self, "in")(x).chunk(2, -1)
        u = causal_conv(u, self.conv.weight, self.conv.bias)
        theta = self.angle(u * dim**-0.5)
        delta = F.softplus(self.dt.up(self.dt.down(u)) + self.dt.bias)
        u = F.silu(u)
        read = F.softplus(self.B.radius) * F.softplus(self.C.radius)  # B and C act by their product alone
        read = torch.polar(read, self.B.angle + self.C.angle)
        source = (delta * u).repeat(1, 1, n)
        h, _ = scan_diag_complex(torch.polar(torch.ones_like(theta), theta), torch.complex(source, 0 * source))
        y = (h.unflatten(-1, (n, dim)) * read[:, None]).real.sum(2)
        return self.out((y + self.skip * u) * F.silu(z))


class PDSSM(Mixer):
    def generated(self, x: Tensor, part) -> Tensor:
        """Numbers in (0, 1): of a hidden layer in form row, of one map in form column."""
        row = self.o["form"] == "row"
        return torch.sigmoid(part.out(F.gelu(getattr(part, "in")(x))) if row else part(x))

    def matrices(self, x: Tensor) -> Tensor:
        """(B,T,N,N), a single 1 in each row (column), with the gradient of the softmax along it."""
        M = torch.einsum("mnk,btk->btmn", self.dict, torch.softmax(self.select(x), -1))
        axis = -1 if self.o["form"] == "row" else -2
        soft = torch.softmax(M, axis)
        return (torch.zeros_like(M).scatter(axis, M.argmax(axis, keepdim=True), 1) - soft).detach() + soft

    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        row = self.o["form"] == "row"
        d = torch.polar(self.generated(x, self.magnitude), 2 * math.pi * self.generated(x, self.phase))
        u = x.to(d.dtype) @ complex_of(self.B).T
        P = self.matrices(x).to(d.dtype) if self.o["permute"] else None
        h = torch.zeros_like(u[:, 0])
        if row:
            h[:, 0] = 1
        hs: list[Tensor] = []
        for t in range(x.shape[1]):
            h = h if row else d[:, t] * h
            h = h if P is None else (P[:, t] @ h.unsqueeze(-1)).squeeze(-1)
            h = (d[:, t] * h if row else h) + u[:, t]
            hs.append(h)
        h = torch.stack(hs, 1)
        y = self.readout(torch.cat([h.real, h.imag], -1)) if row else (h @ complex_of(self.C).T).real
        return y + self.skip * x


class LSTM(Mixer):
    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        h, _ = scan_lstm(F.linear(x, self.wx, self.bx), self.wh, self.bh)
        return self.out(h) if "out" in self._modules else h


MIXERS = {
    "bdlru": BDLRU,
    "hlru": HLRU,
    "lru": LRU,
    "s5": S5,
    "linoss": LinOSS,
    "mingru": MinGRU,
    "rglru": RGLRU,
    "aussm": AUSSM,
    "pdssm": PDSSM,
    "lstm": LSTM,
}

"""SLiCE (arXiv 2505.17761), and its log-ODE form (Walker et al. 2024): structured linear controlled differential
equations, y_t = (I + A(w_t)) y_{t-1}."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from lrnn.mixers.parts import Mixer, Rows, start_normal
from lrnn.operators import scan_dplr, scan_flow, scan_hadamard

CLIP_NONE = 1e9  # from here on no move of a usual net is bent


def hadamard(size: int, like: Tensor) -> Tensor:
    """Sylvester's matrix over sqrt(size)."""
    h = like.new_ones(1, 1)
    while h.shape[0] < size:
        h = torch.cat([torch.cat([h, h], 1), torch.cat([h, -h], 1)])
    return h / math.sqrt(size)


def looped(a: Tensor, y0: Tensor, clip: float) -> Tensor:
    """scan_flow with a bound on each move: y_t = y_{t-1} + c tanh(A_t y_{t-1} / c)."""
    states = [y0]
    for t in range(1, a.shape[1]):
        move = torch.einsum("bijn,bnj->bni", a[:, t], states[-1])
        states.append(states[-1] + clip * torch.tanh(move / clip))
    return torch.stack(states, 1)


class SLiCE(Mixer):
    """SLiCE (arXiv 2505.17761), (B,T,D) -> (B,T,D): the state turned by I + A of each token, A of a `structure`."""

    defaults = {
        "structure": "block",
        "block": 4,
        "rank": 1,
        "keep": 0.1,
        "dt": 0.025,
        "init-std": 0.5,
        "penalty": 0.0,
        "interval": 1,
        "depth": 1,
        "flow": "euler",
        "clip": 1e11,
        "table": False,
        "time-letter": True,
    }

    def starts(self, dim: int) -> dict[str, Tensor]:
        kind, size, rank, sd = self.o["structure"], self.o["block"], self.o["rank"], self.o["init-std"]
        letters = dim + self.o["time-letter"]
        started = {"init.weight": start_normal(dim, dim, sd=sd), "init.bias": start_normal(dim, sd=sd)}

        def part(name: str, columns: int, fan: int):
            started[name] = start_normal(letters, columns, sd=sd / math.sqrt(fan))

        if kind == "diagonal-dense":
            part("A.diagonal", dim - size, 1)
            part("A.dense", size * size, size)
            return started
        whole = kind in ("dense", "sparse")
        m = size if kind == "block" else dim if whole else 1
        part("A", dim * m, m)
        if kind == "sparse":
            started["mask"] = (torch.rand(letters, dim * dim) < self.o["keep"]).to(started["A"].dtype)
        if kind == "dplr":
            part("U", dim * rank, rank)
            part("V", dim * rank, rank)
        return started

    def penalty(self) -> Tensor:
        """The term of the training loss: penalty times the Frobenius norm of A."""
        a = self.A
        parts = [a.diagonal, a.dense] if self.o["structure"] == "diagonal-dense" else [a]
        parts = [p * self.mask if self.o["structure"] == "sparse" else p for p in parts]
        return self.o["penalty"] * torch.sqrt(sum(p.square().sum() for p in parts))

    # --- generators: a list of (letters, N, m, m) ----------------------------------------------------------

    def generators(self, dim: int) -> list[Tensor]:
        """The matrices A_c of the letters, in blocks of one size each."""
        kind, size, rank = self.o["structure"], self.o["block"], self.o["rank"]
        if kind == "diagonal-dense":
            return [self.A.diagonal[..., None, None], self.A.dense.unflatten(1, (1, size, size))]
        if kind == "dplr":
            u, v = (p.unflatten(-1, (dim, rank)) for p in (self.U, self.V))
            return [(torch.diag_embed(self.A) + u @ v.mT).unsqueeze(1)]
        if kind == "hadamard":
            return [(hadamard(dim, self.A) @ torch.diag_embed(self.A)).unsqueeze(1)]
        a = self.A * self.mask if kind == "sparse" else self.A
        m = {"diagonal": 1, "block": size}.get(kind, dim)
        return [a.unflatten(1, (dim // m, m, m))]

    def flow(self, parts: list[Tensor], y0: Tensor) -> Tensor:
        """States y_0 .. y_K of generators (B,1+K,N,m,m) of blocks that lie side by side."""
        states = []
        for part, y in zip(parts, y0.split([p.shape[2] * p.shape[3] for p in parts], -1)):
            if self.o["flow"] == "exp":
                part = torch.matrix_exp(part) - torch.eye(part.shape[-1], dtype=part.dtype)
            a, y = part.permute(0, 1, 3, 4, 2), y.unflatten(-1, (part.shape[2], part.shape[3]))
            bent = 0 < self.o["clip"] < CLIP_NONE
            states.append((looped(a, y, self.o["clip"]) if bent else scan_flow(a, y)).flatten(2))
        return torch.cat(states, -1)

    # --- the two forms -------------------------------------------------------------------------------------

    def tokens(self, w: Tensor, y0: Tensor) -> Tensor:
        """One move a step."""
        kind, dim, rank = self.o["structure"], y0.shape[-1], self.o["rank"]
        bent = 0 < self.o["clip"] < CLIP_NONE
        if kind == "hadamard" and not bent:
            return scan_hadamard(w @ torch.tanh(self.A), y0)
        if kind == "hadamard":
            return self.flow([(hadamard(dim, w) @ torch.diag_embed(w @ torch.tanh(self.A))).unsqueeze(2)], y0)
        if kind == "dplr":
            u, v = ((w @ p).unflatten(-1, (dim, rank)) for p in (self.U, self.V))
            if bent:
                return self.flow([(torch.diag_embed(w @ self.A) + u @ v.mT).unsqueeze(2)], y0)
            return scan_dplr(w @ self.A, u.mT, v.mT, y0)
        return self.flow([torch.einsum("bte,enij->btnij", w, a) for a in self.generators(dim)], y0)

    def intervals(self, w: Tensor, y0: Tensor, rows: Rows) -> Tensor:
        """One move an interval of steps 1, 2, ..., by its log-signature. A position has the state of the last interval
        that has ended, the last position of a sequence that of its shorter last one."""
        interval, length = self.o["interval"], w.shape[1]
        count = -(-(length - 1) // interval)
        w = F.pad(w[:, 1:], (0, 0, 0, count * interval - (length - 1))).unflatten(1, (count, interval))
        letters, areas = w.sum(2), None
        if self.o["depth"] == 2:
            pair = torch.einsum("bkti,bktj->bkij", w.cumsum(2) - w, w)
            areas = (pair - pair.mT) / 2  # antisymmetric: its sum with A_j A_i has each bracket once
        parts = []
        for a in self.generators(y0.shape[-1]):
            move = torch.einsum("bke,enij->bknij", letters, a)
            if areas is not None and a.shape[-1] > 1:
                move = move + torch.einsum("bqij,jnkl,inlm->bqnkm", areas, a, a)
            parts.append(F.pad(move, (0, 0, 0, 0, 0, 0, 1, 0)))
        states = self.flow(parts, y0)
        at = (torch.arange(length) // interval).expand(w.shape[0], -1)
        ends = torch.full((w.shape[0],), length) if rows.lengths is None else rows.lengths
        last = torch.arange(length) == ends[:, None] - 1
        at = torch.where(last, -(-torch.arange(length) // interval), at)
        return states.gather(1, at[..., None].expand(-1, -1, states.shape[-1]))

    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        w = x * self.o["dt"]
        if self.o["time-letter"]:
            w = F.pad(w, (1, 0), value=self.o["dt"])
        used = rows.used(x)
        whole = self.o["interval"] == 1
        if used is not None and (not whole or self.o["clip"] == 0):  # steps after the end move nothing
            w = w * used[..., None]
        y0 = F.linear(x[:, 0], self.init.weight, self.init.bias)
        return self.tokens(w, y0) if whole else self.intervals(w, y0, rows)


MIXERS = {"slice": SLiCE}

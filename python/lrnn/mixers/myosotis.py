"""Myosotis: a linear system on a tree a head, solved exactly (models/myosotis.c has the sources)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lrnn.mixers.parts import Mixer, Rows, complex_of, start_normal
from lrnn.operators import tree_solve

FORMS = {"dd": "hermitian", "pd": "hermitian", "skew": "skew", "free": "free"}


class Tree:
    """The perfect tree of an arity with so many nodes or levels, breadth first, leaves first. level, parent and first
    (the first leaf below, or in a chain the node itself) of each node."""

    def __init__(self, arity: int, nodes: int = 0, levels: int = 0, leaves: int = 0):
        if not levels:
            levels = nodes or leaves if arity == 1 else 1
            while arity > 1 and (self.count(arity, levels) < nodes or arity ** (levels - 1) < leaves):
                levels += 1
        self.levels = levels
        level, parent, first, begin = [], [], [], 0
        for depth in range(levels):
            width = arity ** (levels - 1 - depth)
            level += [depth] * width
            parent += [begin + width + i // arity for i in range(width)]
            first += [begin if arity == 1 else i * arity**depth for i in range(width)]
            begin += width
        self.nodes = begin
        self.level, self.parent, self.first = torch.tensor(level), torch.tensor(parent[:-1]), torch.tensor(first)

    @staticmethod
    def count(arity: int, levels: int) -> int:
        return sum(arity**i for i in range(levels))


def hippo_frequencies(half: int) -> Tensor:
    """The lower half of the spectrum of -i (N + I/2), N HiPPO-N of size 2 half: minus the roots w of
    sum over n < 2 half of atan(w / (n + 1/2)) = (m + 1/2) pi, from the largest m (models/hippo.c)."""
    d = torch.arange(2 * half, dtype=torch.float64) + 0.5
    goal = (torch.arange(half - 1, -1, -1, dtype=torch.float64) + 0.5) * math.pi
    w = torch.zeros(half, dtype=torch.float64)
    for _ in range(200):  # the sum is concave: steps from 0 never pass the root
        w = w + (goal - torch.atan(w[:, None] / d).sum(1)) / (d / (d**2 + w[:, None] ** 2)).sum(1)
    return -w


def bounded(theta: Tensor, beta: float) -> Tensor:
    """beta Theta L^-H with L L^H = I + Theta^H Theta, of spectral norm below beta; beta 0: Theta (tree_bound.h)."""
    if not beta:
        return theta
    kept = torch.linalg.cholesky(torch.eye(theta.shape[-1]).to(theta) + theta.mH @ theta)
    return beta * torch.linalg.solve_triangular(kept, theta.mH, upper=False).mH


def solve_blocks(u: Tensor, up: Tensor, down: Tensor | None, tree: Tree, arity: int, beta: float, form: str) -> Tensor:
    """tree_solve with matrices: u (B,nodes,P,m,r), up and down (B,nodes,P,m,m). Eliminates level by level, leaves first
    (the paper's appendix A.1 with A = I), in plain PyTorch: the library's op has numbers."""
    b = bounded(up, beta)
    c = bounded(down, beta) if down is not None else b.mH * (-1 if form == "skew" else 1)
    diagonal = torch.eye(u.shape[-2]).to(u).expand(b.shape)
    levels = torch.bincount(tree.level).tolist()
    b_at, c_at, d_at, u_at = (list(x.split(levels, 1)) for x in (b, c, diagonal, u))
    for i in range(len(levels) - 1):
        d_sum, u_sum = (
            (c_at[i] @ torch.linalg.solve(d_at[i], y)).unflatten(1, (-1, arity)).sum(2) for y in (b_at[i], u_at[i])
        )
        d_at[i + 1], u_at[i + 1] = d_at[i + 1] - d_sum, u_at[i + 1] - u_sum
    x = [torch.linalg.solve(d_at[-1], u_at[-1])]
    for i in range(len(levels) - 2, -1, -1):
        above = x[0].repeat_interleave(arity, 1)
        x.insert(0, torch.linalg.solve(d_at[i], u_at[i] - b_at[i] @ above))
    return torch.cat(x, 1)


class Myosotis(Mixer):
    """(B,nodes,D) -> (B,nodes,D): the rows are the nodes of a tree, leaves first, as `append` of lrnn.load's nets makes
    them from tokens. levels = 0: what fits the rows. With block or rhs above 1 it is solved by plain PyTorch."""

    causal = False
    defaults = {
        "arity": 2,
        "levels": 0,
        "heads": 64,
        "form": "dd",
        "share": "level",
        "rho": 0.95,
        "leaves": "all",
        "selective": False,
        "blocks": 1,
        "block": 1,
        "rhs": 1,
    }

    def starts(self, dim: int) -> dict[str, Tensor]:
        m, blocks, form, started = self.o["block"], self.o["blocks"], self.o["form"], {}
        heads = self.o["heads"] * m  # component i of head h begins as head i P + h of m P scalar ones
        arity, levels, share = self.o["arity"], self.o["levels"], self.o["share"]
        if share != "head" and not levels:
            raise ValueError(f"share={share} has a coupling for each {share} of the tree; give levels")
        rows = {"head": 1, "level": levels - 1, "node": Tree.count(arity, levels) - 1 if levels else 0}[share]
        delta = torch.exp(math.log(1e-3) + math.log(100) * torch.rand(heads, dtype=torch.float64))
        angle = delta * hippo_frequencies(heads // blocks).repeat(blocks)
        radius = torch.exp(-delta / 2).clamp(max=0.99)
        size = radius if form == "skew" else radius / torch.sqrt(1 - radius**2)
        diagonal = torch.eye(m, dtype=torch.float64)[:, :, None]
        re, im = ((diagonal * (-size * f(angle)).view(m, -1)).flatten() for f in (torch.cos, torch.sin))
        kind, systems = torch.get_default_dtype(), heads * self.o["rhs"]
        for side, sign in (("up", 1), ("down", -1)) if form == "free" else (("up", 1),):
            started[f"{side}.re"] = re.to(kind).repeat(rows, 1)
            started[f"{side}.im"] = (sign * im).to(kind).repeat(rows, 1)
            for plane in ("re", "im") if self.o["selective"] else ():
                started[f"{side}.weight.{plane}"] = torch.zeros(heads * m, dim)
        for plane in ("re", "im"):
            started[f"in.{plane}"] = start_normal(systems, dim, sd=1 / math.sqrt(2 * dim))
        for plane in ("re", "im"):
            started[f"out.{plane}"] = start_normal(dim, systems, sd=1 / math.sqrt(2 * systems))
        started["skip"] = torch.randn(dim)
        return started

    def used(self, x: Tensor, tree: Tree, rows: Rows) -> Tensor | None:
        """(B,nodes) whether a node has a token below it; None: all have."""
        leaves = self.o["leaves"]
        if leaves == "all" and rows.lengths is None:
            return None
        limit = torch.full((x.shape[0],), x.shape[1] if leaves == "all" else leaves)
        if rows.lengths is not None:
            limit = torch.minimum(limit, rows.lengths)
        return tree.first < limit[:, None]

    def theta(self, x: Tensor, part, tree: Tree) -> Tensor:
        """The coupling of each node to its parent (B,nodes,P) before its bound; the root's is unused."""
        value: Tensor | float = 0.0
        if hasattr(part, "re"):
            table = complex_of(part)
            node = torch.arange(tree.nodes - 1)
            at = {"level": tree.level[:-1], "head": torch.zeros_like(node), "node": node}[self.o["share"]]
            value = torch.cat([table[at], table.new_zeros(1, table.shape[1])])
        if self.o["selective"]:
            w = complex_of(part.weight)
            value = value + x.to(w.dtype) @ w.T
        return value.expand(x.shape[0], -1, -1)

    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        arity, rho, form = self.o["arity"], self.o["rho"], self.o["form"]
        tree = Tree(arity, nodes=x.shape[1])
        into, out = complex_of(getattr(self, "in")), complex_of(self.out)
        u, used = x.to(into.dtype) @ into.T, self.used(x, tree, rows)
        couplings = [None, None]
        if tree.nodes > 1:
            couplings = [self.theta(x, self.up, tree), self.theta(x, self.down, tree) if form == "free" else None]
        else:
            couplings[0] = u.new_zeros(*u.shape[:2], self.o["heads"] * self.o["block"] ** 2)
        if used is not None:
            u = u * used[..., None]
            tied = torch.cat([used[:, :-1] & used[:, tree.parent], used[:, -1:]], 1)[..., None]
            couplings = [t * tied if t is not None else None for t in couplings]
        beta = {"pd": rho / (2 * math.sqrt(arity)), "skew": 0.0}.get(form, rho / (arity + 1))
        m, r = self.o["block"], self.o["rhs"]
        if m == r == 1:
            z = tree_solve(u, *couplings, arity=arity, beta=beta, form=FORMS[form])
        else:
            b, c = (t if t is None else t.unflatten(2, (m, m, -1)).permute(0, 1, 4, 2, 3) for t in couplings)
            sides = u.unflatten(2, (m, r, -1)).permute(0, 1, 4, 2, 3)
            z = solve_blocks(sides, b, c, tree, arity, beta, FORMS[form]).permute(0, 1, 3, 4, 2).flatten(2)
        return 2 * (z @ out.T).real + self.skip * x


MIXERS = {"myosotis": Myosotis}

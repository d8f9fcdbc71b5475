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


class Myosotis(Mixer):
    """(B,nodes,D) -> (B,nodes,D): the rows are the nodes of a tree, leaves first, as `append` of lrnn.load's nets makes
    them from tokens. levels = 0: what fits the rows."""

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
        heads, blocks, form, started = self.o["heads"], self.o["blocks"], self.o["form"], {}
        arity, levels, share = self.o["arity"], self.o["levels"], self.o["share"]
        if self.o["block"] != 1 or self.o["rhs"] != 1:
            raise ValueError("block and rhs are 1 in this layer; the program trains nets with larger ones")
        if share != "head" and not levels:
            raise ValueError(f"share={share} has a coupling for each {share} of the tree; give levels")
        rows = {"head": 1, "level": levels - 1, "node": Tree.count(arity, levels) - 1 if levels else 0}[share]
        delta = torch.exp(math.log(1e-3) + math.log(100) * torch.rand(heads, dtype=torch.float64))
        angle = delta * hippo_frequencies(heads // blocks).repeat(blocks)
        radius = torch.exp(-delta / 2).clamp(max=0.99)
        size = radius if form == "skew" else radius / torch.sqrt(1 - radius**2)
        re, im = (-size * f(angle) for f in (torch.cos, torch.sin))
        kind = torch.get_default_dtype()
        for side, sign in (("up", 1), ("down", -1)) if form == "free" else (("up", 1),):
            started[f"{side}.re"] = re.to(kind).repeat(rows, 1)
            started[f"{side}.im"] = (sign * im).to(kind).repeat(rows, 1)
            for plane in ("re", "im") if self.o["selective"] else ():
                started[f"{side}.weight.{plane}"] = torch.zeros(heads, dim)
        for plane in ("re", "im"):
            started[f"in.{plane}"] = start_normal(heads, dim, sd=1 / math.sqrt(2 * dim))
        for plane in ("re", "im"):
            started[f"out.{plane}"] = start_normal(dim, heads, sd=1 / math.sqrt(2 * heads))
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
            couplings[0] = torch.zeros_like(u)
        if used is not None:
            u = u * used[..., None]
            tied = torch.cat([used[:, :-1] & used[:, tree.parent], used[:, -1:]], 1)[..., None]
            couplings = [t * tied if t is not None else None for t in couplings]
        beta = {"pd": rho / (2 * math.sqrt(arity)), "skew": 0.0}.get(form, rho / (arity + 1))
        z = tree_solve(u, *couplings, arity=arity, beta=beta, form=FORMS[form])
        return 2 * (z @ out.T).real + self.skip * x


MIXERS = {"myosotis": Myosotis}

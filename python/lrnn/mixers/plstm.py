"""pLSTM (arXiv 2506.11997): plstm on sequences, plstm2d on grids, plstm-graph on directed acyclic graphs."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from lrnn.mixers.parts import Mixer, Rows, heads, rmsnorm, start_normal
from lrnn.operators import grid_scan, scan_plstm


class Heads(Mixer):
    """The part that all three share: q, k, v of each head, and after the recurrence a norm of each head and a map."""

    def qkv(self, x: Tensor) -> list[Tensor]:
        return [heads(part(x), self.o["heads"]) for part in (self.q, self.k, self.v)]

    def finish(self, y: Tensor) -> Tensor:
        return self.out(rmsnorm(y, self.norm.weight).flatten(2))


def constant(bias: Tensor, x: Tensor) -> Tensor:
    """sig(b) at every position."""
    return torch.sigmoid(bias).expand(*x.shape[:2], *bias.shape)


class PLSTM(Heads):
    """pLSTM on sequences (arXiv 2506.11997), (B,T,D) -> (B,T,D): `heads` heads, each with `track` states. heads must
    divide D."""

    defaults = {"heads": 4, "gates": "dense", "track": 1, "track-init": 0.02}

    def starts(self, dim: int) -> dict[str, Tensor]:
        n, states, apart = self.o["heads"], self.o["track"], self.o["track-init"]
        small = math.sqrt(0.4 / dim)
        started = {}
        for name in "qkv":
            started[f"{name}.weight"] = start_normal(dim, dim, sd=small)
            started[f"{name}.bias"] = torch.zeros(dim)
        for name in ("source", "mark"):
            if self.o["gates"] == "dense":
                started[f"{name}.weight"] = start_normal(n * states, dim, sd=apart if states > 1 else 0)
            started[f"{name}.bias"] = torch.full((n * states,), -5.0)
        started["transition.weight"] = torch.zeros(n * states, dim)
        started["transition.bias"] = torch.ones(n * states)
        for name in ("left", "right") if states > 1 else ():
            started[f"{name}.weight"] = torch.zeros(n * states * states, dim)
            identity = torch.eye(states).flatten().repeat(n)
            started[f"{name}.bias"] = identity + start_normal(n * states * states, sd=apart)
        started["direct.bias"] = torch.full((n,), -5.0)
        started["norm.weight"] = torch.ones(n, dim // n)
        started["out.weight"] = start_normal(dim, dim, sd=small)
        return started

    def gate(self, x: Tensor, part) -> Tensor:
        raw = torch.sigmoid(part(x)) if hasattr(part, "weight") else constant(part.bias, x)
        return heads(raw, self.o["heads"])

    def transition_of(self, x: Tensor) -> Tensor:
        n, states = self.o["heads"], self.o["track"]
        middle = torch.diag_embed(heads(torch.tanh(5 * self.transition(x)), n))
        if states == 1:
            return middle
        left, right = (part(x).unflatten(-1, (n, states, states)) for part in (self.left, self.right))
        return torch.matrix_exp(left - left.mT) @ middle @ torch.matrix_exp(right - right.mT)

    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        q, k, v = self.qkv(x)
        gates = self.gate(x, self.source), self.transition_of(x), self.gate(x, self.mark)
        return self.finish(scan_plstm(q, k, v, *gates, constant(self.direct.bias, x), q.shape[-1] ** -0.5)[0])


def grid_of(length: int, o: dict) -> tuple[int, int]:
    """Height and width of the grid of so many tokens: sides that are not given follow from their number, as square as
    it can be, or as wide as the other side asks for."""
    height, width = o["height"], o["width"]
    width = width or (-(-length // height) if height else math.isqrt(length - 1) + 1)
    return height or -(-length // width), width


def same_length(x: Tensor, rows: Rows):
    """Yields the sequences of each length above 0: their indices, and the length."""
    if rows.lengths is None:
        yield torch.arange(x.shape[0]), x.shape[1]
        return
    for length in rows.lengths.unique().tolist():
        if length:
            yield (rows.lengths == length).nonzero().flatten(), length


class PLSTM2D(Heads):
    causal = False

    def raw(self, x: Tensor, part) -> Tensor:
        """Raw gates (B,T,4,H) of all of x, of a slice of its channels per gate, or of a bias alone."""
        if not hasattr(part, "weight"):
            return part.bias.expand(*x.shape[:2], *part.bias.shape)
        if self.o["gates"] == "sliced":
            return (x.unflatten(-1, (*part.bias.shape, -1)) * part.weight).sum(-1) + part.bias
        return torch.einsum("btc,dhc->btdh", x, part.weight) + part.bias

    def planes(self, x: Tensor) -> Tensor:
        """The eight gates Sr, Sd, rl, ru, dl, du, Ml, Mu of each direction: (B,T,8,4,H)."""
        sig, mode = torch.sigmoid, self.o["mode"]
        if (("PD"[self.layer % 2]) if mode == "PD" else mode) == "D":
            source, transition, mark = self.source, self.transition, self.mark
            right, down, turn = (
                torch.tanh(5 * self.raw(x, part)) for part in (transition.right, transition.down, transition.turn)
            )
            none = torch.zeros_like(turn)
            turns = (turn, none) if self.o["chirality"] == "L" else (none, turn)
            sources = sig(self.raw(x, source.right)), sig(self.raw(x, source.down))
            return torch.stack(
                [*sources, right, *turns, down, sig(self.raw(x, mark.left)), sig(self.raw(x, mark.top))], 2
            )
        angle = torch.einsum("btc,dhc->btdh", x, self.orientation.weight) * (0.5 / x.shape[-1])
        a = sig(angle + self.orientation.bias)
        s, t, m = (
            sig(self.raw(x, self.source)),
            torch.tanh(5 * self.raw(x, self.transition)),
            sig(self.raw(x, self.mark)),
        )
        down, source_down = (1 - t * a, 1 - s * a) if self.o["form"] == "ref" else (t * (1 - a), s * (1 - a))
        return torch.stack([s * a, source_down, t * a, t * a, down, down, m, m], 2)

    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        q, k, v = self.qkv(x)
        tokens = [q, k, v, self.planes(x), constant(self.direct.bias, x)]
        y = torch.zeros_like(q)
        for which, length in same_length(x, rows):
            height, width = grid_of(length, self.o)
            missing = height * width - length  # nodes without a token: all their gates are 0
            grids = [
                F.pad(t[which, :length].flatten(2), (0, 0, 0, missing)).reshape(-1, height, width, *t.shape[2:])
                for t in tokens
            ]
            read = grid_scan(*grids, q.shape[-1] ** -0.5).flatten(1, 2)[:, :length]
            y = y.index_put((which,), F.pad(read, (0, 0, 0, 0, 0, x.shape[1] - length)))
        return self.finish(y)


def line_pairs(edges: list[tuple[int, int]], tree: bool) -> list[tuple[int, int]]:
    """Pairs of edges, the first of which ends where the second begins; with `tree` those that leave at most one path
    between any two edges."""
    before: list[set[int]] = [set() for _ in edges]
    pairs = []
    for e, (tail, _) in enumerate(edges):
        for f in range(e):
            if edges[f][1] != tail or (tree and before[f] & before[e]):
                continue
            if tree:
                before[e] |= before[f] | {f}
            pairs.append((f, e))
    return pairs


class PLSTMGraph(Heads):
    causal = False

    def compute(self, x: Tensor, rows: Rows) -> Tensor:
        graphs = edges_of(x, rows, self.o)
        return self.finish(torch.stack([self.read(sequence, edges) for sequence, edges in zip(x, graphs)]))

    def in_turn(self) -> tuple[bool, bool]:
        """Whether this layer is of D-mode, and whether it goes against the edges."""
        mode, way = self.o["mode"], self.o["direction"]
        tree = ("PD"[self.layer % 2] if mode == "PD" else mode) == "D"
        return tree, way == "back" or (way == "both" and self.layer // 2 % 2 == 1)

    def transitions(self, x: Tensor, middle: Tensor, pairs, edges, tree: bool) -> Tensor:
        first, second = torch.tensor(pairs).T
        tails = torch.tensor([tail for tail, _ in edges])
        node = tails[first] if self.o["node"] == "tail" else tails[second]
        t = self.transition(torch.cat([middle[first], middle[second], x[node]], -1))
        if tree:
            return torch.tanh(t)
        group = first if self.o["pnorm"] == "out" else second
        return t / (0.5 + t.new_zeros(len(edges), t.shape[-1]).index_add(0, group, t.abs())[group])

    def read(self, x: Tensor, edges: list[tuple[int, int]]) -> Tensor:
        """The nodes x (T,D) of one graph, before the norm: (T,H,dk)."""
        tree, back = self.in_turn()
        edges = sorted(edges)
        pairs = line_pairs(edges, tree)
        if back:  # every edge the other way, from the last to the first: the pairs stay what they are
            last = len(edges) - 1
            pairs = [(last - e, last - f) for f, e in reversed(pairs)]
            edges = [(head, tail) for tail, head in reversed(edges)]
        q, k, v = (t[0] for t in self.qkv(x.unsqueeze(0)))
        y = (torch.sigmoid(self.direct(x)) * (q * k).sum(-1)).unsqueeze(-1) * v
        if not edges:
            return y
        tails, ends = torch.tensor(edges).T
        middle = (x[tails] + x[ends]) / 2
        source = torch.sigmoid(self.source(torch.cat([x[tails], middle], -1)))
        mark = torch.sigmoid(self.mark(torch.cat([x[ends], middle], -1)))
        new = source[..., None, None] * k[tails].unsqueeze(-1) * v[tails].unsqueeze(-2)
        into: list[list[tuple[int, Tensor]]] = [[] for _ in edges]
        if pairs:
            for (f, e), t in zip(pairs, self.transitions(x, middle, pairs, edges, tree)):
                into[e].append((f, t))
        states: list[Tensor] = []
        for e in range(len(edges)):
            states.append(sum((t[:, None, None] * states[f] for f, t in into[e]), new[e]))
        read = (torch.stack(states) * q[ends].unsqueeze(-1)).sum(-2)
        return y.index_add(0, ends, mark.unsqueeze(-1) * read)


def edges_of(x: Tensor, rows: Rows, o: dict) -> list[list[tuple[int, int]]]:
    """The edges of each sequence: of its own graph, or those that the option names between its tokens."""
    if rows.edges is not None:
        return [[(min(edge), max(edge)) for edge in edges] for edges in rows.edges]
    lengths = [x.shape[1]] * x.shape[0] if rows.lengths is None else rows.lengths.tolist()
    text = str(o["edges"])
    if text == "path":
        return [[(t, t + 1) for t in range(n - 1)] for n in lengths]
    named = [] if text == "none" else [tuple(map(int, edge.split("-"))) for edge in text.replace("+", ",").split(",")]
    return [[(tail, head) for tail, head in named if head < n] for n in lengths]


MIXERS = {"plstm": PLSTM, "plstm2d": PLSTM2D, "plstm-graph": PLSTMGraph}

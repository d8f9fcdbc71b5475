"""plstm.py - pLSTM on sequences, grids and graphs (the paper's Eq. 1 and 2; ml-jku/plstm)."""
import math

import torch

from .graphs import graphs_of
from .parts import affine, chosen, heads_of, outer, read, rmsnorm


def qkv(x, p, H):
    return (heads_of(affine(x, p, name), H) for name in "qkv")


def finish(y, p):
    """RMSNorm of each head, output projection; y (B,T,H,dk)."""
    return rmsnorm(y, p["norm.weight"]).flatten(2) @ p["out.weight"].T


def constant(p, name, x):
    """sig(b) at every position."""
    return torch.sigmoid(p[name]).expand(*x.shape[:2], -1)


def direct_term(D, q, k, v):
    return (D * (q * k).sum(-1)).unsqueeze(-1) * v


def orthogonal(x, p, name, H, J):
    a = affine(x, p, name).unflatten(-1, (H, J, J))
    return torch.matrix_exp(a - a.mT)


def plstm(x, p, o):
    """C_t[i] = sum_j T_t[i][j] C_{t-1}[j] + S_t[i] k v^T;  y_t = dk^-1/2 (sum_j M_t[j] C_{t-1}[j]^T q + D (q.k) v)."""
    H, J = int(o["heads"]), int(o["track"])
    q, k, v = qkv(x, p, H)
    if o["gates"] == "bias":
        S, M = constant(p, "source.bias", x), constant(p, "mark.bias", x)
    else:
        S, M = torch.sigmoid(affine(x, p, "source")), torch.sigmoid(affine(x, p, "mark"))
    S, M, D = heads_of(S, H), heads_of(M, H), constant(p, "direct.bias", x)
    Tr = torch.diag_embed(torch.tanh(5 * affine(x, p, "transition")).unflatten(-1, (H, J)))
    if J > 1:
        Tr = orthogonal(x, p, "left", H, J) @ Tr @ orthogonal(x, p, "right", H, J)
    dk = q.shape[-1]
    C, ys = x.new_zeros(x.shape[0], H, J, dk, dk), []
    for t in range(x.shape[1]):
        seen = (M[:, t, :, :, None, None] * C).sum(2)
        ys.append((read(seen, q[:, t]) + direct_term(D[:, t], q[:, t], k[:, t], v[:, t])) / dk ** 0.5)
        new = outer(k[:, t], v[:, t]).unsqueeze(2)
        C = torch.einsum("bhij,bhjkv->bhikv", Tr[:, t], C) + S[:, t, :, :, None, None] * new
    return finish(torch.stack(ys, 1), p)


# --- grids ------------------------------------------------------------------------------------------------

def direction_gates(x, p, o):
    """The eight gates of each direction: dict of (B,T,4,H)."""
    def raw(name):
        """A gate before its function: a map of all of x, a map of a slice of its channels, or a bias alone."""
        b = p[f"{name}.bias"]
        if o["gates"] == "bias":
            return b.expand(*x.shape[:2], *b.shape)
        if o["gates"] == "sliced":
            return (x.unflatten(-1, (*b.shape, -1)) * p[f"{name}.weight"]).sum(-1) + b
        return torch.einsum("btc,dhc->btdh", x, p[f"{name}.weight"]) + b

    sig, decay = torch.sigmoid, lambda z: torch.tanh(5 * z)
    if o["mode"] == "D":
        right, down = decay(raw("transition.right")), decay(raw("transition.down"))
        turn, none = decay(raw("transition.turn")), torch.zeros_like(right)
        left_hand = o["chirality"] == "L"
        return {"Sr": sig(raw("source.right")), "Sd": sig(raw("source.down")), "Ml": sig(raw("mark.left")),
                "Mu": sig(raw("mark.top")), "rl": right, "du": down, "ru": turn if left_hand else none,
                "dl": none if left_hand else turn}
    D = x.shape[-1]
    a = sig(0.5 / D * torch.einsum("btc,dhc->btdh", x, p["orientation.weight"]) + p["orientation.bias"])
    s, g, m = sig(raw("source")), decay(raw("transition")), sig(raw("mark"))
    ref = o["form"] == "ref"
    down, source_down = (1 - g * a, 1 - s * a) if ref else (g * (1 - a), s * (1 - a))
    return {"Sr": s * a, "Sd": source_down, "Ml": m, "Mu": m, "rl": g * a, "ru": g * a, "dl": down, "du": down}


def into_frames(x):
    """(B,X,Y,4,...): direction d sees the grid with its first axis (bit 0), its second (bit 1) flipped, and back."""
    frames = []
    for d in range(4):
        axes = [axis for axis, bit in ((1, 1), (2, 2)) if d & bit]
        frames.append(x[:, :, :, d].flip(axes) if axes else x[:, :, :, d])
    return torch.stack(frames, 3)


def grid_of(n, o):
    """Height and width of the grid of n tokens: sides that are not given follow from n, as square as it can be or as
    wide as the other side asks for."""
    X, Y = chosen(o["height"]), chosen(o["width"])
    Y = Y or (-(-n // X) if X else math.isqrt(n - 1) + 1)
    return X or -(-n // Y), Y


def grid_rows(x, o, p, n):
    """The values that the n tokens of sequences x (B,T,D) read in the four directions, before D and the norm:
    (B,n,H,dk). Nodes of the grid without a token are not there: every gate of theirs is 0."""
    H, (X, Y) = int(o["heads"]), grid_of(n, o)
    q, k, v = qkv(x, p, H)
    dk = q.shape[-1]

    def on_grid(rows):
        missing = rows.new_zeros(rows.shape[0], X * Y - n, *rows.shape[2:])
        return torch.cat([rows[:, :n], missing], 1).unflatten(1, (X, Y))

    gates = {name: into_frames(on_grid(g)) for name, g in direction_gates(x, p, o).items()}
    four = [into_frames(on_grid(part).unsqueeze(3).expand(-1, -1, -1, 4, -1, -1)) for part in (q, k, v)]

    def at(name, r, s):
        return gates[name][:, r, s, :, :, None, None]

    zero = x.new_zeros(x.shape[0], 4, H, dk, dk)
    Cr, Cd, seen = {}, {}, {}
    for r in range(X):
        for s in range(Y):
            left, up = Cr.get((r - 1, s), zero), Cd.get((r, s - 1), zero)
            qn, kn, vn = (part[:, r, s] for part in four)
            seen[r, s] = read(at("Ml", r, s) * left + at("Mu", r, s) * up, qn)
            new = outer(kn, vn)
            Cr[r, s] = at("rl", r, s) * left + at("ru", r, s) * up + at("Sr", r, s) * new
            Cd[r, s] = at("dl", r, s) * left + at("du", r, s) * up + at("Sd", r, s) * new
    y = torch.stack([torch.stack([seen[r, s] for s in range(Y)], 1) for r in range(X)], 1)
    return into_frames(y).sum(3).flatten(1, 2)[:, :n]


def plstm2d(x, p, o, lengths=None):
    H = int(o["heads"])
    q, k, v = qkv(x, p, H)
    lengths = torch.full(x.shape[:1], x.shape[1]) if lengths is None else lengths
    y = torch.zeros_like(q)
    for n in sorted(set(lengths.tolist()) - {0}):  # sequences of one length have one grid
        y[lengths == n, :n] = grid_rows(x[lengths == n], o, p, n)
    return finish((y + direct_term(constant(p, "direct.bias", x), q, k, v)) / q.shape[-1] ** 0.5, p)


# --- graphs -----------------------------------------------------------------------------------------------

def line_pairs(edges, mode):
    """Pairs (e', e) of edges with head(e') = tail(e); in D-mode those that leave at most one path between two edges."""
    before = {e: set() for e in range(len(edges))}  # ancestors of each edge in the kept graph
    pairs = []
    for e, (tail, _) in enumerate(edges):
        for f in range(e):
            if edges[f][1] != tail:
                continue
            if mode == "D":
                if before[f] & before[e]:
                    continue
                before[e] |= before[f] | {f}
            pairs.append((f, e))
    return pairs


def pair_gates(t, pairs, edges, o):
    """T of each pair from raw t (B,pairs,H)."""
    if o["mode"] == "D":
        return torch.tanh(t)
    side = 0 if o["pnorm"] == "out" else 1
    gates = []
    for f, e in pairs:
        group = [i for i, pair in enumerate(pairs) if pair[side] == (f, e)[side]]
        gates.append(t[:, pairs.index((f, e))] / (0.5 + t[:, group].abs().sum(1)))
    return torch.stack(gates, 1)


def turned(edges, pairs):
    """Every edge the other way, from the last to the first: the pairs stay what they are."""
    last = len(edges) - 1
    return [(head, tail) for tail, head in reversed(edges)], [(last - e, last - f) for f, e in reversed(pairs)]


def graph_rows(x, p, o, edges):
    """The values that the nodes x (B,n,D) of one graph read, before the norm: (B,n,H,dk)."""
    H, n = int(o["heads"]), x.shape[1]
    pairs = line_pairs(edges, o["mode"])
    if o["direction"] == "back":
        edges, pairs = turned(edges, pairs)
    q, k, v = qkv(x, p, H)
    D = torch.sigmoid(affine(x, p, "direct"))
    f = [(x[:, tail] + x[:, head]) / 2 for tail, head in edges]
    into = {e: [] for e in range(len(edges))}
    if pairs:
        node = [edges[a][0] if o["node"] == "tail" else edges[b][0] for a, b in pairs]
        raw = torch.stack([torch.cat([f[a], f[b], x[:, n]], -1) for (a, b), n in zip(pairs, node)], 1)
        t = pair_gates(affine(raw, p, "transition"), pairs, edges, o)
        for i, (a, b) in enumerate(pairs):
            into[b].append((a, t[:, i]))
    C, ys = {}, [direct_term(D[:, i], q[:, i], k[:, i], v[:, i]) for i in range(n)]
    for e, (tail, head) in enumerate(edges):  # in an order in which every edge into the tail stands before
        S = torch.sigmoid(affine(torch.cat([x[:, tail], f[e]], -1), p, "source"))
        M = torch.sigmoid(affine(torch.cat([x[:, head], f[e]], -1), p, "mark"))
        C[e] = S[:, :, None, None] * outer(k[:, tail], v[:, tail])
        for a, t in into[e]:
            C[e] = C[e] + t[:, :, None, None] * C[a]
        ys[head] = ys[head] + M[..., None] * read(C[e], q[:, head])
    return torch.stack(ys, 1)


def plstm_graph(x, p, o, lengths=None, graphs=None):
    """Nodes without a token are not there, nor are the edges to them."""
    lengths = [x.shape[1]] * x.shape[0] if lengths is None else lengths.tolist()
    H = int(o["heads"])
    kinds = [(n, tuple(edges)) for n, edges in zip(lengths, graphs_of(x, o, torch.tensor(lengths), graphs))]
    y = x.new_zeros(*x.shape[:2], H, x.shape[2] // H)
    for n, edges in sorted(set(kinds)):
        rows = torch.tensor([kind == (n, edges) for kind in kinds])
        if n > 0:
            y[rows, :n] = graph_rows(x[rows, :n], p, o, list(edges))
    return finish(y, p)

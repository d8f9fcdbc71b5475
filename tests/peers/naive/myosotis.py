"""myosotis.py - Myosotis: the tree's linear systems as dense matrices (the paper's Eq. 8)."""
import torch


def tree(arity, levels):
    """Nodes breadth first, leaves first: of each (level, parent or None, first leaf below it)."""
    nodes, begin = [], 0
    for level in range(levels):
        width = arity ** (levels - 1 - level)
        for i in range(width):
            parent = begin + width + i // arity if level < levels - 1 else None
            nodes.append((level, parent, i * arity ** level))
        begin += width
    return nodes


def levels_of(o, T):
    """Levels of the tree with T nodes."""
    arity, levels = int(o["arity"]), 1
    while len(tree(arity, levels)) < T:
        levels += 1
    return levels


def in_use(o, T, lengths):
    """(B,T) whether a node counts: one with a token below it; of a chain, one that is a token itself."""
    arity = int(o["arity"])
    nodes = tree(arity, levels_of(o, T))
    first = torch.arange(T) if arity == 1 else torch.tensor([leaf for _, _, leaf in nodes])
    return first < lengths[:, None]


def theta(x, p, o, side, nodes):
    """Complex (B,T-1,P,m,m): the coupling parameters of all nodes but the root, `side` up or down."""
    T, m = len(nodes), int(o["block"])
    value = 0
    if f"{side}.re" in p:
        row = {"level": [n[0] for n in nodes[:-1]], "head": [0] * (T - 1), "node": list(range(T - 1))}[o["share"]]
        value = torch.complex(p[f"{side}.re"], p[f"{side}.im"])[row].unsqueeze(0)
    if o["selective"] == "yes":
        w = torch.complex(p[f"{side}.weight.re"], p[f"{side}.weight.im"])
        value = value + x[:, :-1].to(w.dtype) @ w.T
    return value.expand(x.shape[0], -1, -1).unflatten(2, (m, m, -1)).permute(0, 1, 4, 2, 3)


def couplings(x, p, o, nodes):
    """b and c of every node but the root."""
    form, k, rho = o["form"], int(o["arity"]), float(o["rho"])

    def bounded(t):
        beta = rho / (2 * k ** 0.5) if form == "pd" else rho / (k + 1)
        lower = torch.linalg.cholesky(torch.eye(t.shape[-1]) + t.mH @ t)
        return beta * torch.linalg.solve_triangular(lower, t.mH, upper=False).mH

    up = theta(x, p, o, "up", nodes)
    if form == "skew":
        return up, -up.mH
    b = bounded(up)
    return b, bounded(theta(x, p, o, "down", nodes)) if form == "free" else b.mH


def myosotis(x, p, o, lengths=None):
    B, T, _ = x.shape
    m, r = int(o["block"]), int(o["rhs"])
    nodes = tree(int(o["arity"]), levels_of(o, T))
    limit = torch.full((B,), T) if o["leaves"] == "all" else torch.full((B,), int(o["leaves"]))
    if lengths is not None:
        limit = torch.minimum(limit, lengths)
    used = in_use(o, T, limit)
    into, out = torch.complex(p["in.re"], p["in.im"]), torch.complex(p["out.re"], p["out.im"])
    u = (x.to(into.dtype) @ into.T) * used[..., None]
    P = u.shape[-1] // (m * r)
    system = torch.eye(T * m, dtype=u.dtype).view(T, m, T, m).expand(B, P, T, m, T, m).clone()
    if T > 1:
        child, parent = torch.arange(T - 1), torch.tensor([n[1] for n in nodes[:-1]])
        tied = (used[:, child] & used[:, parent])[..., None, None, None]
        b, c = couplings(x, p, o, nodes)
        system[:, :, child, :, parent, :] = (b * tied).transpose(0, 1)
        system[:, :, parent, :, child, :] = (c * tied).transpose(0, 1)
    sides = u.view(B, T, m, r, P).permute(0, 4, 1, 2, 3).reshape(B, P, T * m, r)
    z = torch.linalg.solve(system.reshape(B, P, T * m, T * m), sides)
    z = z.view(B, P, T, m, r).permute(0, 2, 3, 4, 1).reshape(B, T, m * r * P)
    return 2 * (z @ out.T).real + p["skip"] * x

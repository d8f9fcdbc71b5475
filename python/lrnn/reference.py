"""Naive forms of the scans in NumPy: the equations, token by token. Shapes are those of lrnn.torch."""

from __future__ import annotations

import numpy as np


def normalise(z, gate: str, axis: int):
    """Gates of rows along `axis`: f(z) / sum f(z); `none`: z."""
    if gate == "none":
        return z
    if gate == "softmax":
        f = np.exp(z - z.max(axis, keepdims=True))
    else:
        f = 1 / (1 + np.exp(-z)) if gate == "sigmoid" else np.maximum(z, 0)
    return f / f.sum(axis, keepdims=True)


def scan_diag(a, x, h0=None):
    h, out = np.zeros_like(x[:, 0]) if h0 is None else h0, np.empty_like(x)
    for t in range(x.shape[1]):
        h = out[:, t] = (a if a.ndim == 1 else a[:, t]) * h + x[:, t]
    return out, h


scan_diag_complex = scan_diag


def scan_block(z, v, gate="softmax", h0=None):
    m, a = v.shape[-2], normalise(z, gate, -2)
    h, out = np.zeros_like(v[:, 0]) if h0 is None else h0, np.empty_like(v)
    for t in range(v.shape[1]):
        h = out[:, t] = np.einsum("bijn,bjn->bin", a[:, t, :, :m], h) + a[:, t, :, m] * v[:, t]
    return out, h


def scan_companion(z, v, gate="softmax", s0=None, observer=False):
    batch, length, n = v.shape
    m, a = z.shape[-2] - 1, normalise(z, gate, -2)
    s, out = np.zeros((batch, m, n), v.dtype) if s0 is None else s0, np.empty((batch, length, m, n), v.dtype)
    for t in range(length):
        if observer:
            s = a[:, t, :m] * s[:, :1] + np.concatenate([s[:, 1:], np.zeros_like(s[:, :1])], 1)
            s[:, 0] += a[:, t, m] * v[:, t]
        else:
            first = (a[:, t, :m] * s).sum(1) + a[:, t, m] * v[:, t]
            s = np.concatenate([first[:, None], s[:, :-1]], 1)
        out[:, t] = s
    return out, s


def scan_lstm(u, wh, bh, h0=None, c0=None):
    sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
    batch, length, width = u.shape[0], u.shape[1], wh.shape[1]
    h, c = (np.zeros((batch, width), u.dtype) if s is None else s for s in (h0, c0))
    out, cells = np.empty((2, batch, length, width), u.dtype)
    for t in range(length):
        i, f, g, o = np.split(u[:, t] + h @ wh.T + bh, 4, -1)
        c = cells[:, t] = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = out[:, t] = sigmoid(o) * np.tanh(c)
    return out, cells


def scan_outer(q, k, v, decay, source=None, scale=1.0, c0=None):
    batch, length, heads, dv = v.shape
    shared = heads // q.shape[2]
    q, k = np.repeat(q, shared, 2), np.repeat(k, shared, 2)
    source = np.ones_like(decay) if source is None else source
    c = np.zeros((batch, heads, q.shape[-1], dv), v.dtype) if c0 is None else c0
    out = np.empty_like(v)
    for t in range(length):
        c = decay[:, t, :, None, None] * c + source[:, t, :, None, None] * k[:, t, :, :, None] * v[:, t, :, None, :]
        out[:, t] = scale * np.einsum("bhkv,bhk->bhv", c, q[:, t])
    return out, c


def scan_delta(q, k, v, beta=None, decay=None, read=None, erase=None, steps=1, scale=1.0, rate=1.0, s0=None):
    batch, length, heads, dk = q.shape
    dv = v.shape[-1]
    s = np.zeros((batch, heads, dk, dv), v.dtype) if s0 is None else s0
    out = np.empty((batch, length, heads, dv), v.dtype)
    for t in range(length):
        if decay is not None:
            s = s * (decay[:, t, :, :, None] if decay.ndim == 4 else decay[:, t, :, None, None])
        for j in range(steps):
            of = (slice(None), t, slice(j * heads, (j + 1) * heads))
            value, outer = v[of], lambda a, b: a[..., :, None] * b[..., None, :]
            seen = lambda by: np.einsum("bhkv,bhk->bhv", s, by)  # noqa: E731
            if beta is not None:
                s = s + outer(k[of], rate * beta[of][..., None] * (value - seen(k[of])))
            elif read is None:
                s = s + outer(k[of], value)
            elif erase is None:
                s = s + outer(k[of], value - rate * seen(read[of]))
            else:
                s = s + outer(k[of], value) - outer(erase[of], rate * seen(read[of]))
        out[:, t] = scale * np.einsum("bhkv,bhk->bhv", s, q[:, t])
    return (out, s) if steps == 1 else (out,)


def scan_plstm(q, k, v, source, transition, mark, direct, scale=1.0, c0=None):
    batch, length, heads, dv = v.shape
    c, out = c0, np.empty_like(v)
    if c is None:
        c = np.zeros((batch, heads, source.shape[-1], q.shape[-1], dv), v.dtype)
    for t in range(length):
        read = np.einsum("bhj,bhjkv,bhk->bhv", mark[:, t], c, q[:, t])
        here = direct[:, t] * (q[:, t] * k[:, t]).sum(-1)
        out[:, t] = scale * (read + here[..., None] * v[:, t])
        c = np.einsum("bhij,bhjkv->bhikv", transition[:, t], c)
        c = c + np.einsum("bhi,bhk,bhv->bhikv", source[:, t], k[:, t], v[:, t])
    return out, c


def grid_scan(q, k, v, gates, direct, scale=1.0):
    out = direct[..., None] * (q * k).sum(-1, keepdims=True) * v
    for direction in range(4):
        flips = [axis for axis, bit in ((1, 1), (2, 2)) if direction & bit]
        fq, fk, fv, fg = (np.flip(x, flips) for x in (q, k, v, gates[..., direction, :]))
        sr, sd, rl, ru, dl, du, ml, mu = (fg[:, :, :, i, :, None, None] for i in range(8))
        outer, y = fk[..., :, None] * fv[..., None, :], np.empty_like(v)
        right, down = np.zeros_like(outer), np.zeros_like(outer)
        for r in range(q.shape[1]):
            for s in range(q.shape[2]):
                at = (slice(None), r, s)
                left = right[:, r - 1, s] if r else np.zeros_like(outer[at])
                up = down[:, r, s - 1] if s else np.zeros_like(outer[at])
                y[at] = np.einsum("bhkv,bhk->bhv", ml[at] * left + mu[at] * up, fq[at])
                right[at] = rl[at] * left + ru[at] * up + sr[at] * outer[at]
                down[at] = dl[at] * left + du[at] * up + sd[at] * outer[at]
        out = out + np.flip(y, flips)
    return scale * out


def dag_scan(q, k, v, source, mark, transition, direct, links, scale=1.0, reversed=False, tree=False):
    out, n_edges = direct[..., None] * (q * k).sum(-1, keepdims=True) * v, source.shape[1]
    for b, numbers in enumerate(np.asarray(links)):
        edges, pairs, states = numbers[: 2 * n_edges].reshape(-1, 2), numbers[2 * n_edges :].reshape(-1, 3), {}
        for e in range(n_edges)[:: -1 if reversed else 1]:
            tail, head = edges[e][:: -1 if reversed else 1]
            if tail < 0:
                continue
            C = source[b, e, :, None, None] * k[b, tail][:, :, None] * v[b, tail][:, None, :]
            for p, (before, after, kept) in enumerate(pairs):
                before, after = (after, before) if reversed else (before, after)
                if after == e and not (tree and kept < 0):
                    C = C + transition[b, p, :, None, None] * states[before]
            states[e] = C
            out[b, head] += np.einsum("h,hkv,hk->hv", mark[b, e], C, q[b, head])
    return scale * out


def scan_flow(a, y0):
    y, out = y0, np.empty((y0.shape[0], a.shape[1], *y0.shape[1:]), y0.dtype)
    for t in range(a.shape[1]):
        if t:
            y = y + np.einsum("bijn,bnj->bni", a[:, t], y)
        out[:, t] = y
    return out


def scan_dplr(d, u, v, y0):
    y, out = y0, np.empty_like(d)
    for t in range(d.shape[1]):
        if t:
            y = y + d[:, t] * y + np.einsum("brw,brx,bx->bw", u[:, t], v[:, t], y)
        out[:, t] = y
    return out


def scan_hadamard(d, y0):
    width = d.shape[-1]
    bits = np.array([[bin(i & j).count("1") for j in range(width)] for i in range(width)])
    matrix, y, out = (-1.0) ** bits / np.sqrt(width), y0, np.empty_like(d)
    for t in range(d.shape[1]):
        if t:
            y = y + (d[:, t] * y) @ matrix.T
        out[:, t] = y
    return out


def tree_solve(u, up, down=None, arity=2, beta=0.0, form="hermitian"):
    """Builds the matrix of each system, and solves it."""
    batch, nodes, width = u.shape
    bound = lambda x: beta * x / np.sqrt(1 + np.abs(x) ** 2) if beta else x  # noqa: E731
    b = bound(up)
    c = bound(down) if form == "free" else np.conj(b) * (1 if form == "hermitian" else -1)
    parent, count, begin = {}, nodes, 0
    count = (nodes * (arity - 1) + 1) // arity if arity > 1 else 1
    while begin + count < nodes:
        for i in range(count):
            parent[begin + i] = begin + count + i // arity
        begin, count = begin + count, max(count // arity, 1)
    matrix = np.zeros((batch, width, nodes, nodes), u.dtype) + np.eye(nodes)
    for child, p in parent.items():
        matrix[:, :, child, p], matrix[:, :, p, child] = b[:, child], c[:, child]
    return np.linalg.solve(matrix, np.moveaxis(u, 1, -1)[..., None])[..., 0].swapaxes(1, 2)

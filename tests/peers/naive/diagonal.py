"""diagonal.py - mixers whose state is diagonal or nearly so: mingru (arXiv 2410.01201), rglru (2402.19427), s5
(2208.04933), linoss (2410.03943), aussm (2507.05238), pdssm (2509.22284)."""
import math

import torch
import torch.nn.functional as F

from .parts import affine, causal_conv, tokens, yes


def scan(a, x):
    """h_t = a_t h_{t-1} + x_t; a as x, or without its first two axes."""
    h, states = torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        h = (a[:, t] if a.dim() == x.dim() else a) * h + x[:, t]
        states.append(h)
    return torch.stack(states, 1)


def complex_of(p, name):
    return torch.complex(p[f"{name}.re"], p[f"{name}.im"])


def mingru(x, p, o):
    z, v = torch.sigmoid(affine(x, p, "z")), affine(x, p, "h")
    if o["form"] == "log":
        v = torch.where(v >= 0, v + 0.5, torch.sigmoid(v))
    h = scan(1 - z, z * v)
    return h @ p["out.weight"].T if "out.weight" in p else h


def rglru(x, p, o):
    H = int(o["heads"])

    def blocks(u, name):
        w = p[f"{name}.weight"].unflatten(0, (H, -1))
        return torch.einsum("bthj,hij->bthi", u.unflatten(-1, (H, -1)), w).flatten(2) + p[f"{name}.bias"]

    u = causal_conv(affine(x, p, "x"), p["conv.weight"], p["conv.bias"])
    entry = torch.sigmoid(blocks(u, "input")) * u
    log_a = -8 * torch.sigmoid(blocks(u, "decay")) * F.softplus(p["A"])
    root = torch.sqrt(-torch.expm1(2 * log_a[:, 1:]))
    h = scan(torch.exp(log_a), torch.cat([entry[:, :1], root * entry[:, 1:]], 1))
    return affine(h * F.gelu(affine(x, p, "y"), approximate="tanh"), p, "out")


def s5(x, p, o):
    re = p["lambda.re"]
    if yes(o, "clip"):
        re = torch.clamp(re, max=-1e-4)
    lam, step = torch.complex(re, p["lambda.im"]), torch.exp(p["step.log"])
    if o["step"] == "zoh":
        a = torch.exp(lam * step)
        b = (a - 1) / lam
    else:
        a, b = (1 + lam * step / 2) / (1 - lam * step / 2), step / (1 - lam * step / 2)
    h = scan(a, b * (x.to(a.dtype) @ complex_of(p, "B").T))
    return (2 if yes(o, "conj") else 1) * (h @ complex_of(p, "C").T).real + p["skip"] * x


def linoss(x, p, o):
    A, dt = torch.relu(p["A"]), torch.sigmoid(p["step"])
    B, C = complex_of(p, "B"), complex_of(p, "C")
    u = x.to(B.dtype) @ B.T
    z = w = torch.zeros_like(u[:, 0])
    states = []
    for t in range(x.shape[1]):
        z = z + dt * (u[:, t] - A * w)
        if o["step"] == "im":
            z = z / (1 + dt * dt * A)
        w = w + dt * z
        states.append(w)
    return (torch.stack(states, 1) @ C.T).real + p["skip"] * x


def aussm(x, p, o):
    D, N = x.shape[-1], p["B.radius"].shape[0]
    u, z = (x @ p["in.weight"].T).chunk(2, -1)
    u = causal_conv(u, p["conv.weight"], p["conv.bias"])
    theta = (u @ p["angle.weight"].T / D ** 0.5 + p["angle.bias"]).unflatten(-1, (N, D))
    delta = F.softplus(u @ p["dt.down.weight"].T @ p["dt.up.weight"].T + p["dt.bias"])
    u = F.silu(u)
    B, C = (torch.polar(F.softplus(p[f"{name}.radius"]), p[f"{name}.angle"])[:, None] for name in "BC")
    h = scan(torch.polar(torch.ones_like(theta), theta), B * (delta * u)[:, :, None])
    return (((C * h).real.sum(2) + p["skip"] * u) * F.silu(z)) @ p["out.weight"].T


def choice(M, axis):
    """A 1 where M is largest along the axis, the first among equals; its gradient is that of the softmax."""
    soft = torch.softmax(M, axis)
    return (F.one_hot(M.argmax(axis), M.shape[axis]).movedim(-1, axis) - soft).detach() + soft


def pdssm(x, p, o):
    row = o["form"] == "row"

    def generated(name):
        if row:
            return torch.sigmoid(affine(F.gelu(affine(x, p, f"{name}.in")), p, f"{name}.out"))
        return torch.sigmoid(affine(x, p, name))

    d = torch.polar(generated("magnitude"), 2 * math.pi * generated("phase"))
    B = complex_of(p, "B")
    u = x.to(B.dtype) @ B.T
    if yes(o, "permute"):
        s = torch.softmax(x @ p["select.weight"].T, -1)
        P = choice(torch.einsum("mnk,btk->btmn", p["dict"], s), -1 if row else -2).to(d.dtype)
    else:
        P = torch.eye(d.shape[-1], dtype=d.dtype).expand(*d.shape, -1)
    h, states = torch.zeros_like(u[:, 0]), []
    if row:
        h[:, 0] = 1
    for P_t, d_t, u_t in tokens(P, d, u):
        before = h if row else d_t * h
        h = (P_t @ before.unsqueeze(-1)).squeeze(-1)
        h = (d_t * h if row else h) + u_t
        states.append(h)
    h = torch.stack(states, 1)
    y = affine(torch.cat([h.real, h.imag], -1), p, "readout") if row else (h @ complex_of(p, "C").T).real
    return y + p["skip"] * x

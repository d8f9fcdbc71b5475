"""vector.py - mixers whose state is a vector, and those without one: bdlru, hlru (arXiv 2602.12021), lru
(Orvieto et al. 2023), lstm, conv, attention, full-attention (Dosovitskiy et al. 2021)."""
import torch

from .parts import affine, causal_conv, heads_of, yes


def normalise(z, gate):
    """Rows of z to gates: f(z) over the sum of f of the row."""
    if gate == "none":
        return z
    if gate == "softmax":
        return torch.softmax(z, -1)
    if gate == "sigmoid":  # a row's sum is above 0, however small
        return torch.softmax(torch.nn.functional.logsigmoid(z), -1)
    f = torch.relu(z)
    S = f.sum(-1, keepdim=True)
    alive = S >= 1e-12
    return torch.where(alive, f / torch.where(alive, S, 1.0), 0.0)


def raw_gates(x, p, o):
    """W_g x + b_g, b_g at every position, or pointwise s_g v + b_g, channel by channel."""
    if o["selective"] == "pointwise":
        v = (x @ p["v.weight"].T).unsqueeze(-1)
        return (v * p["gates.scale"].unflatten(0, (v.shape[-2], -1))).flatten(2) + p["gates.bias"]
    if yes(o, "selective"):
        return x @ p["gates.weight"].T + p["gates.bias"]
    return p["gates.bias"].expand(*x.shape[:2], -1)


def bdlru(x, p, o):
    """h_t[i] = sum_j a_t[i][j] h_{t-1}[j] + a_t[i][m] v_t[i] a block."""
    N, m = int(o["blocks"]), int(o["m"])
    a = normalise(raw_gates(x, p, o).unflatten(-1, (N, m, m + 1)), o["gate"])
    v = (x @ p["v.weight"].T).unflatten(-1, (N, m))
    h, states = torch.zeros_like(v[:, 0]), []
    for t in range(x.shape[1]):
        h = (a[:, t, :, :, :m] * h.unsqueeze(-2)).sum(-1) + a[:, t, :, :, m] * v[:, t]
        states.append(h)
    return torch.stack(states, 1).flatten(2) @ p["out.weight"].T


def hlru(x, p, o):
    """companion: h_t = sum_i a_i h_{t-i} + a_0 v_t, the last m values are read out; observer: its matrix transposed."""
    N, m = int(o["channels"]), int(o["m"])
    a = normalise(raw_gates(x, p, o).unflatten(-1, (N, m + 1)), o["gate"])
    u = a[..., m] * (x @ p["v.weight"].T)
    s, states = x.new_zeros(x.shape[0], N, m), []
    for t in range(x.shape[1]):
        lags, zero = a[:, t, :, :m], torch.zeros_like(u[:, t]).unsqueeze(-1)
        if o["layout"] == "companion":
            s = torch.cat([((lags * s).sum(-1) + u[:, t]).unsqueeze(-1), s[..., :-1]], -1)
        else:
            shifted = torch.cat([s[..., 1:], zero], -1)
            entry = torch.cat([u[:, t].unsqueeze(-1), zero.expand(-1, -1, m - 1)], -1)
            s = lags * s[..., :1] + shifted + entry
        states.append(s)
    return torch.stack(states, 1).flatten(2) @ p["out.weight"].T


def lru(x, p, o):
    """h_t = lambda h_{t-1} + exp(gamma) (B x_t), lambda = exp(-exp(nu) + i exp(theta)); y_t = Re(C h_t) + skip x_t."""
    lam = torch.exp(torch.complex(-torch.exp(p["nu.log"]), torch.exp(p["theta.log"])))
    B, C = torch.complex(p["B.re"], p["B.im"]), torch.complex(p["C.re"], p["C.im"])
    u = torch.exp(p["gamma.log"]) * (x.to(B.dtype) @ B.T)
    h, states = torch.zeros_like(u[:, 0]), []
    for t in range(x.shape[1]):
        h = lam * h + u[:, t]
        states.append(h)
    return (torch.stack(states, 1) @ C.T).real + p["skip"] * x


def lstm(x, p, o):
    """PyTorch's gates i, f, g, o."""
    h = c = x.new_zeros(x.shape[0], p["wh"].shape[1])
    states = []
    for t in range(x.shape[1]):
        i, f, g, out = (x[:, t] @ p["wx"].T + p["bx"] + h @ p["wh"].T + p["bh"]).chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(out) * torch.tanh(c)
        states.append(h)
    y = torch.stack(states, 1)
    return y @ p["out.weight"].T if "out.weight" in p else y


def conv(x, p, o):
    return causal_conv(x @ p["v.weight"].T, p["kernel"]) @ p["out.weight"].T


def turned(x, base=10000.0):
    """Rotary positions on x (B,T,H,dk): the pairs (i, i + dk/2) turn by t base^(-2i/dk)."""
    T, half = x.shape[1], x.shape[-1] // 2
    rate = base ** (-torch.arange(half, dtype=x.dtype) / half)
    angle = (torch.arange(T, dtype=x.dtype)[:, None] * rate)[:, None]
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * torch.cos(angle) - b * torch.sin(angle), a * torch.sin(angle) + b * torch.cos(angle)], -1)


def attention(x, p, o):
    q, k, v = (heads_of(part, int(o["heads"])) for part in (x @ p["qkv.weight"].T).chunk(3, -1))
    later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
    return attended(turned(q), turned(k), v, later) @ p["out.weight"].T


def attended(q, k, v, hidden):
    """sum_s softmax_s(q_t . k_s / sqrt(dk)) v_s over the keys that are not hidden; heads side by side again."""
    scores = torch.einsum("bthd,bshd->bhts", q, k) / q.shape[-1] ** 0.5
    weights = torch.softmax(scores.masked_fill(hidden, -torch.inf), -1)
    return torch.einsum("bhts,bshd->bthd", weights, v).flatten(2)


def full_attention(x, p, o, lengths=None):
    """Every token sees every other of its sequence; an empty sequence sees its first row, which nothing reads."""
    q, k, v = (heads_of(part, int(o["heads"])) for part in affine(x, p, "qkv").chunk(3, -1))
    T = x.shape[1]
    lengths = torch.full(x.shape[:1], T) if lengths is None else lengths.clamp(min=1)
    pads = torch.arange(T) >= lengths[:, None]
    return affine(attended(q, k, v, pads[:, None, None]), p, "out")

"""matrix_state.py - mixers with a matrix state a head: mamba2 (Dao & Gu 2024), deltanet (Yang et al. 2024),
deltaproduct (Siems et al. 2025), mlstm (Beck et al. 2024)."""
import torch
import torch.nn.functional as F

from .parts import causal_conv, heads_of, l2norm, layernorm, outer, read, rmsnorm, silu, yes


def mamba2(u, p, o):
    S, n = int(o["state"]), p["A.log"].shape[0]
    I = int(o["expand"]) * u.shape[-1]
    z, xbc, dt = (u @ p["in.weight"].T).split([I, I + 2 * S, n], -1)
    x, b, c = silu(causal_conv(xbc, p["conv.weight"], p["conv.bias"])).split([I, S, S], -1)
    x = heads_of(x, n)
    delta = F.softplus(dt + p["dt.bias"])
    decay = torch.exp(-delta * torch.exp(p["A.log"]))
    if o["range"] == "signed":
        decay = 2 * decay - 1
    h, ys = x.new_zeros(x.shape[0], n, I // n, S), []
    for t in range(x.shape[1]):
        h = decay[:, t, :, None, None] * h + outer(delta[:, t, :, None] * x[:, t], b[:, t, None])
        ys.append((h * c[:, t, None, None]).sum(-1) + p["skip"][:, None] * x[:, t])
    y = torch.stack(ys, 1).flatten(2)
    return rmsnorm(y * silu(z), p["norm.weight"]) @ p["out.weight"].T


def conv_projection(x, p, name):
    return silu(causal_conv(x @ p[f"{name}.weight"].T, p[f"{name}.conv"]))


def deltaproduct(x, p, o):
    """S <- a S;  then `steps` times S <- S + k (b (v - S^T k))^T;  o = S^T q / sqrt(dk)."""
    H, n = int(o["heads"]), int(o["steps"])
    q = l2norm(heads_of(conv_projection(x, p, "q"), H))
    k = l2norm(heads_of(conv_projection(x, p, "k"), n * H)).unflatten(2, (n, H))
    v = heads_of(conv_projection(x, p, "v"), n * H).unflatten(2, (n, H))
    beta = float(o["beta"]) * torch.sigmoid(x @ p["beta.weight"].T).unflatten(-1, (n, H))
    decay = torch.ones_like(beta[:, :, 0])
    if yes(o, "forget"):
        decay = torch.exp(-torch.exp(p["A.log"]) * F.softplus(x @ p["a.weight"].T + p["dt.bias"]))
    dk = q.shape[-1]
    S, ys = x.new_zeros(x.shape[0], H, dk, dk), []
    for t in range(x.shape[1]):
        S = decay[:, t, :, None, None] * S
        for j in range(n):
            error = v[:, t, j] - read(S, k[:, t, j])
            S = S + outer(k[:, t, j], beta[:, t, j, :, None] * error)
        ys.append(read(S, q[:, t]) / dk ** 0.5)
    y = rmsnorm(torch.stack(ys, 1), p["norm.weight"]).flatten(2)
    if yes(o, "outgate"):
        y = y * silu(x @ p["g.weight"].T)
    return y @ p["out.weight"].T


def deltanet(x, p, o):
    return deltaproduct(x, p, {**o, "steps": "1", "forget": "no", "outgate": "no"})


def blocks_of_four(x, w):
    """A block-diagonal map of blocks of 4 channels: row 4*k + i of w has the inputs of block k."""
    x = x.unflatten(-1, (-1, 4))
    return torch.einsum("btkj,kij->btki", x, w.unflatten(0, (-1, 4))).flatten(2)


def mlstm(x, p, o):
    H = int(o["heads"])
    u, z = (x @ p["up.weight"].T).chunk(2, -1)
    c = silu(causal_conv(u, p["conv.weight"], p["conv.bias"]))
    q, k, v = blocks_of_four(c, p["q.weight"]), blocks_of_four(c, p["k.weight"]), blocks_of_four(u, p["v.weight"])
    i, f = (torch.cat([q, k, v], -1) @ p["gates.weight"].T + p["gates.bias"]).chunk(2, -1)
    q, k, v = heads_of(q, H), heads_of(k, H), heads_of(v, H)
    k = k / k.shape[-1] ** 0.5
    B, T, dk = x.shape[0], x.shape[1], q.shape[-1]
    m, n, C, hs = torch.zeros_like(i[:, 0]), x.new_zeros(B, H, dk), x.new_zeros(B, H, dk, dk), []
    for t in range(T):
        kept = F.logsigmoid(f[:, t]) + m
        m = torch.maximum(kept, i[:, t])
        forget, enter = torch.exp(kept - m)[..., None], torch.exp(i[:, t] - m)[..., None]
        C = forget[..., None] * C + outer(enter * k[:, t], v[:, t])
        n = forget * n + enter * k[:, t]
        divisor = torch.maximum((n * q[:, t]).sum(-1).abs(), torch.exp(-m)) + 1e-6
        hs.append(read(C, q[:, t]) / divisor[..., None])
    h = layernorm(torch.stack(hs, 1), 1 + p["norm.weight"]).flatten(2)
    return ((h + p["skip"] * c) * silu(z)) @ p["down.weight"].T

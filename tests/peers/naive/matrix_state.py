"""matrix_state.py - mixers with a matrix state per head: mamba2 (Dao & Gu 2024), mamba3 (Lahoti et al. 2026), deltanet
and gated-deltanet (Yang et al. 2024), deltaproduct (Siems et al. 2025), kda (Kimi Team 2025), gdn2 (Hatamizadeh et al.
2026), rwkv7 (Peng et al. 2025), gla (Yang et al. 2023), hgrn2 (Qin et al. 2024), mlstm (Beck et al. 2024) and beside it
slstm and xlstm."""
import torch
import torch.nn.functional as F

from .parts import causal_conv, heads_of, l2norm, layernorm, outer, read, rmsnorm, silu, tokens, yes


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


def turn(x, angles):
    """Pairs (2i, 2i + 1) of the last axis, as many as there are angles."""
    R = angles.shape[-1]
    a, b, c, s = x[..., 0:2 * R:2], x[..., 1:2 * R:2], torch.cos(angles), torch.sin(angles)
    return torch.cat([torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2), x[..., 2 * R:]], -1)


def mamba3(u, p, o):
    n, S = p["B.bias"].shape
    I = int(o["expand"]) * u.shape[-1]
    R = int(float(o["rope"]) * S) // 2
    z, x, B, C, dt, A, trap, angle = (u @ p["in.weight"].T).split([I, I, S, S, n, n, n, R], -1)
    delta, mix = F.softplus(dt + p["dt.bias"]), torch.sigmoid(trap)
    heavy = torch.where(A >= 0, 1 + A, 1 / (1 - torch.clamp(A, max=0)))
    rate = torch.clamp(heavy if o["decay"] == "heavy" else F.softplus(A), min=1e-4)
    alpha = torch.exp(-delta * rate)
    theta = torch.cumsum(delta[..., None] * torch.pi * torch.tanh(angle)[:, :, None], 1)
    k = turn(rmsnorm(B, p["B.norm"])[:, :, None] + p["B.bias"], theta)
    q = turn(rmsnorm(C, p["C.norm"])[:, :, None] + p["C.bias"], theta)
    x = heads_of(x, n)
    h, before, ys = x.new_zeros(x.shape[0], n, I // n, S), 0.0, []
    for x_t, k_t, q_t, d, a, m in tokens(x, k, q, *(gate[..., None, None] for gate in (delta, alpha, mix))):
        now = outer(x_t, k_t)
        h = a * h + (1 - m) * d * a * before + m * d * now
        before = now
        ys.append((h * q_t[:, :, None]).sum(-1) + p["skip"][:, None] * x_t)
    y = torch.stack(ys, 1)
    if yes(o, "norm"):
        y = rmsnorm(y, p["norm.weight"].unflatten(0, (n, -1)))
    return (y.flatten(2) * silu(z)) @ p["out.weight"].T


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


def low_rank(x, p, name):
    y = x @ p[f"{name}.down.weight"].T @ p[f"{name}.up.weight"].T
    return y + p[f"{name}.up.bias"] if f"{name}.up.bias" in p else y


def states(q, k, v, decay, erase, read_by):
    """S <- Diag(decay) S;  S <- S - erase (S^T read_by)^T + k v^T;  o = S^T q. All (B,T,H,d); erase None: no such
    term."""
    S, ys = q.new_zeros(q.shape[0], q.shape[2], q.shape[3], v.shape[3]), []
    erasing = () if erase is None else (erase, read_by)
    for q_t, k_t, v_t, decay_t, *erasing_t in tokens(q, k, v, decay, *erasing):
        S = decay_t[..., None] * S
        if erasing_t:
            S = S - outer(erasing_t[0], read(S, erasing_t[1]))
        S = S + outer(k_t, v_t)
        ys.append(read(S, q_t))
    return torch.stack(ys, 1)


def delta_channels(x, p, o, vectors):
    """kda, and gdn2 with its gates as vectors."""
    H = int(o["heads"])
    q, k = (l2norm(heads_of(conv_projection(x, p, name), H)) for name in "qk")
    v = heads_of(conv_projection(x, p, "v"), H)
    f, rate = heads_of(low_rank(x, p, "f") + p["dt.bias"], H), torch.exp(p["A.log"])[:, None]
    if o["decay"] == "bounded":
        decay = torch.exp(float(o["floor"]) * torch.sigmoid(rate * f))
    else:
        decay = torch.exp(-rate * F.softplus(f))
    beta = float(o["beta"])
    if vectors:
        erased = beta * torch.sigmoid(heads_of(x @ p["erase.weight"].T, H)) * k
        y = states(q, k, torch.sigmoid(heads_of(x @ p["write.weight"].T, H)) * v, decay, k, erased)
    else:
        b = beta * torch.sigmoid(x @ p["beta.weight"].T)[..., None]
        y = states(q, k, b * v, decay, b * k, k)
    y = rmsnorm(y / q.shape[-1] ** 0.5, p["norm.weight"]).flatten(2)
    return (y * torch.sigmoid(low_rank(x, p, "g"))) @ p["out.weight"].T


def kda(x, p, o):
    return delta_channels(x, p, o, False)


def gdn2(x, p, o):
    return delta_channels(x, p, o, True)


def gated_deltanet(x, p, o):
    H = int(o["heads"])
    q, k = (l2norm(heads_of(conv_projection(x, p, name), H)) for name in "qk")
    v, b = heads_of(conv_projection(x, p, "v"), H), float(o["beta"]) * torch.sigmoid(x @ p["beta.weight"].T)[..., None]
    decay = torch.exp(-torch.exp(p["A.log"]) * F.softplus(x @ p["a.weight"].T + p["dt.bias"]))[..., None]
    y = states(q, k, b * v, decay.expand_as(q), b * k, k) / q.shape[-1] ** 0.5
    return (rmsnorm(y, p["norm.weight"]).flatten(2) * silu(x @ p["g.weight"].T)) @ p["out.weight"].T


def gla(x, p, o):
    H = int(o["heads"])
    mapped = conv_projection if int(o["conv"]) else lambda x, p, name: x @ p[f"{name}.weight"].T
    q, k, v = (heads_of(mapped(x, p, name), H) for name in "qkv")
    decay = torch.sigmoid(heads_of(low_rank(x, p, "f"), H)) ** (1 / float(o["divisor"]))
    y = rmsnorm(states(q, k, v, decay, None, None) / q.shape[-1] ** 0.5, p["norm.weight"]).flatten(2)
    return (y * silu(x @ p["g.weight"].T)) @ p["out.weight"].T


def hgrn2(x, p, o):
    """Forget gates are at least `low`, of which net.py tells a layer; a mixer alone has none."""
    H, low = int(o["heads"]), o.get("low", 0)
    q, v = silu(x @ p["q.weight"].T), x @ p["i.weight"].T
    f = low + (1 - low) * torch.sigmoid(x @ p["f.weight"].T)
    q, f, v = heads_of(q, H), heads_of(f, H), heads_of(v, H)
    y = states(q, 1 - f, v, f, None, None) / q.shape[-1] ** 0.5
    return rmsnorm(y.flatten(2), p["norm.weight"]) @ p["out.weight"].T


def rwkv7(x, p, o):
    """A mixer alone, or vmix=no: the values of a net's first layer are not known here."""
    H, before = int(o["heads"]), torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1)
    mixed = {n: x + (before - x) * p[f"mix.{n}"] for n in "rwkvag"}
    r, k, v = (mixed[n] @ p[f"{n}.weight"].T for n in "rkv")
    if yes(o, "vmix"):
        v = v + (x - v) * torch.sigmoid(mixed["v"] @ p["vmix.down"].T @ p["vmix.up"].T + p["vmix.bias"])
    z = torch.tanh(mixed["w"] @ p["decay.down"].T) @ p["decay.up"].T + p["decay.bias"]
    w = torch.exp(-torch.exp(torch.tensor(-0.5, dtype=x.dtype)) * torch.sigmoid(z))
    a = torch.sigmoid(mixed["a"] @ p["rate.down"].T @ p["rate.up"].T + p["rate.bias"])
    gate = torch.sigmoid(mixed["g"] @ p["gate.down"].T) @ p["gate.up"].T
    kk = heads_of(k * p["key.scale"], H)
    kk = kk * torch.rsqrt((kk * kk).sum(-1, keepdim=True) + 1e-24)
    k = k * (1 + (a - 1) * p["key.rate"])
    r, k, v, w, a = (heads_of(n, H) for n in (r, k, v, w, a))
    S, ys = x.new_zeros(x.shape[0], H, v.shape[-1], k.shape[-1]), []
    for r_t, k_t, v_t, w_t, a_t, kk_t in tokens(r, k, v, w, a, kk):
        removed = (S * kk_t[:, :, None]).sum(-1)
        S = S * w_t[:, :, None] - outer(removed, kk_t * a_t) + outer(v_t, k_t)
        ys.append((S * r_t[:, :, None]).sum(-1))
    y = torch.stack(ys, 1)
    centred = y - y.mean(-1, keepdim=True)
    y = centred * torch.rsqrt((centred * centred).mean(-1, keepdim=True) + 64e-5)
    y = y.flatten(2) * p["norm.weight"] + p["norm.bias"]
    y = y + ((r * k * p["bonus"]).sum(-1, keepdim=True) * v).flatten(2)
    return (y * gate) @ p["out.weight"].T


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


def by_head(x, w):
    """A block-diagonal map of one block per head: row h*dh + i of w has the inputs of head h."""
    H = x.shape[-1] // w.shape[1]
    return torch.einsum("...hj,hij->...hi", x.unflatten(-1, (H, -1)), w.unflatten(0, (H, -1))).flatten(-2)


def slstm(x, p, o):
    xc = silu(causal_conv(x, p["conv.weight"], p["conv.bias"])) if "conv.weight" in p else x
    raw = [by_head(xc if name in "if" else x, p[f"{name}.weight"]) for name in "ifzo"]
    recurrent, biases = p["recurrent.weight"].chunk(4), p["bias"].chunk(4)
    h = c = n = m = None
    hs = []
    for raw_t in tokens(*raw):
        i, f, z, out = (u + b + (0 if h is None else by_head(h, R)) for u, b, R in zip(raw_t, biases, recurrent))
        if h is None:
            c, n, m = torch.tanh(z), torch.ones_like(z), i
        else:
            kept = F.logsigmoid(f) + m
            m = torch.maximum(kept, i)
            c = torch.exp(kept - m) * c + torch.exp(i - m) * torch.tanh(z)
            n = torch.exp(kept - m) * n + torch.exp(i - m)
        h = torch.sigmoid(out) * c / n
        hs.append(h)
    return layernorm(heads_of(torch.stack(hs, 1), int(o["heads"])), 1 + p["norm.weight"]).flatten(2)


def xlstm(x, p, o):
    return (slstm if "recurrent.weight" in p else mlstm)(x, p, o)

"""parts.py - what several mixers share. Weights are [out][in]; x is (B,T,D)."""
import torch
import torch.nn.functional as F

NORM_EPS = 1e-5  # of every norm but l2norm
L2_EPS = 1e-6


def yes(o, key):
    """Whether the option is `yes`."""
    return o[key] == "yes"


def chosen(text):
    """A size, or 0 where it is left to the sizes of the net."""
    return 0 if text == "auto" else int(text)


def affine(x, p, name):
    """W x + b."""
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def rmsnorm(x, w):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + NORM_EPS) * w


def layernorm(x, w, b=0.0):
    centred = x - x.mean(-1, keepdim=True)
    return centred * torch.rsqrt((centred * centred).mean(-1, keepdim=True) + NORM_EPS) * w + b


def l2norm(x):
    return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + L2_EPS)


def causal_conv(x, w, b=0.0):
    """y_t[c] = b[c] + sum_j w[c][j] x_{t-m+1+j}[c], zeros before the start."""
    m, T = w.shape[1], x.shape[1]
    padded = torch.cat([x.new_zeros(x.shape[0], m - 1, x.shape[2]), x], 1)
    return sum(w[:, j] * padded[:, j:j + T] for j in range(m)) + b


def heads_of(x, H):
    """(B,T,H*d) -> (B,T,H,d)"""
    return x.unflatten(-1, (H, -1))


def tokens(*inputs):
    """The inputs (B,T,...) token by token. The gradient of x[:, t] would fill a whole zero tensor for every token."""
    return zip(*(x.unbind(1) for x in inputs))


def outer(a, b):
    return a.unsqueeze(-1) * b.unsqueeze(-2)


def read(C, q):
    """C^T q: C (...,k,v), q (...,k)."""
    return (C * q.unsqueeze(-1)).sum(-2)


def silu(x):
    return F.silu(x)

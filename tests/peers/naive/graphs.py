"""graphs.py - mixers whose tokens are the nodes of a graph, each of which hears its neighbours once a layer: gcn (Kipf
& Welling 2017), gin (Xu et al. 2019), gat (Velickovic et al. 2018), mpnn (Gilmer et al. 2017). Which way an edge leads
does not matter to them."""
import torch
import torch.nn.functional as F

from .parts import affine, heads_of


def edges_of(text, n):
    """The edges that an option names between n tokens."""
    if text == "path":
        return [(t, t + 1) for t in range(n - 1)]
    if text == "none":
        return []
    listed = [tuple(int(end) for end in edge.split("-")) for edge in text.replace("+", ",").split(",")]
    return [(tail, head) for tail, head in listed if head < n]


def graphs_of(x, o, lengths, graphs):
    """The edges of each sequence: of its own graph, or those that the option names."""
    if graphs is not None:
        return graphs
    lengths = [x.shape[1]] * x.shape[0] if lengths is None else lengths.tolist()
    return [edges_of(o["edges"], n) for n in lengths]


def adjacency(x, graphs):
    """(B,T,T) of 0 and 1."""
    A = x.new_zeros(x.shape[0], x.shape[1], x.shape[1])
    for b, edges in enumerate(graphs):
        for tail, head in edges:
            A[b, tail, head] = A[b, head, tail] = 1.0
    return A


def gcn(x, p, o, lengths=None, graphs=None):
    A = adjacency(x, graphs_of(x, o, lengths, graphs)) + torch.eye(x.shape[1])
    d = A.sum(-1)
    return torch.relu((A / torch.sqrt(d.unsqueeze(-1) * d.unsqueeze(-2))) @ x @ p["weight"].T + p["bias"])


def gin(x, p, o, lengths=None, graphs=None):
    A = adjacency(x, graphs_of(x, o, lengths, graphs))
    return affine(torch.relu(affine(x + A @ x, p, "w1")), p, "w2")


def gat(x, p, o, lengths=None, graphs=None):
    near = adjacency(x, graphs_of(x, o, lengths, graphs)) + torch.eye(x.shape[1]) > 0
    v = heads_of(x @ p["v.weight"].T, int(o["heads"]))
    s, r = x @ p["reader.weight"].T, x @ p["writer.weight"].T
    scores = F.leaky_relu(s.unsqueeze(2) + r.unsqueeze(1), 0.2)  # (B, n, u, H)
    share = torch.softmax(scores.masked_fill(~near.unsqueeze(-1), -torch.inf), 2)
    return torch.einsum("bnuh,buhd->bnhd", share, v).flatten(2) + p["bias"]


def mpnn(x, p, o, lengths=None, graphs=None):
    A = adjacency(x, graphs_of(x, o, lengths, graphs))
    told = torch.relu(affine(x, p, "reader").unsqueeze(2) + (x @ p["writer.weight"].T).unsqueeze(1))
    m = (A.unsqueeze(-1) * told).sum(2)
    return affine(torch.relu(affine(torch.cat([x, m], -1), p, "w1")), p, "w2")


def degree_code(x, graphs):
    """x + sin and cos of each node's number of neighbours, in turn."""
    D = x.shape[-1]
    angle = adjacency(x, graphs).sum(-1, keepdim=True) * 10000.0 ** (-torch.arange(0, D, 2, dtype=x.dtype) / D)
    return x + torch.stack([torch.sin(angle), torch.cos(angle)], -1).flatten(-2)[..., :D]

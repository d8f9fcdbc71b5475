"""The nets that the program trains, in PyTorch: lrnn.load makes one of an exported file, lrnn.save writes it back.

    net = lrnn.load("weights.safetensors")      # a file of `lrnn export`
    logits = net(tokens)                        # (B,T) ids -> (B,T,V), or (B,V) of one label per sequence
    lrnn.save(net, "changed.safetensors")       # `lrnn import changed.safetensors` scores it

The state dict has the file's names. Recurrences run in liblrnn, so the nets are on the CPU, in float32 or float64.
"""

from __future__ import annotations

import math
import os

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lrnn import safetensors
from lrnn.mixers import MIXERS, Rows
from lrnn.mixers.attention import adjacency
from lrnn.mixers.myosotis import Tree
from lrnn.mixers.parts import EPS, Part, layernorm, option, place, rmsnorm
from lrnn.mixers.plstm import grid_of
from lrnn.ops import LrnnError

MOMENTUM = 0.95  # of batch norm's running statistics
PAPER = {"slice": "slice", "lstm": "stacked", "mlstm": "slice-xlstm", "slstm": "slice-xlstm"}
PAPER |= {"xlstm": "slice-xlstm", "attention": "slice-transformer"}
READOUTS = ("positions", "sequence", "decoded")
SQUARE = {"height": 0, "width": 0}


def reversed_rows(x: Tensor, rows: Rows) -> Tensor:
    """Each sequence turned around in its own rows in use."""
    if rows.lengths is None:
        return x.flip(1)
    t, n = torch.arange(x.shape[1]), rows.lengths[:, None]
    return x.gather(1, torch.where(t < n, n - 1 - t, t)[..., None].expand_as(x))


class Layer(nn.Module):
    """One layer of a backbone (models/backbone.c): its mixer, or two of them, and the parts around."""

    def __init__(self, config: dict, index: int, tensors: dict[str, Tensor]):
        super().__init__()
        self.config, self.kind = config, config["backbone"]
        options = {key[6:]: value for key, value in config.items() if key.startswith("model.")}
        for name in ("mixer", "mixer_back"):
            own = {key[len(name) + 1 :]: t for key, t in tensors.items() if key.startswith(name + ".")}
            if own:
                mixer = MIXERS[config["model"]](layer=index, layers=config["layers"], **options)
                for key, tensor in own.items():
                    place(mixer, key, tensor)
                self.add_module(name, mixer)
        for key, tensor in tensors.items():
            if not key.startswith(("mixer.", "mixer_back.")):
                place(self, key, tensor)

    def drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.config["dropout"], self.training)

    def scaled(self, name: str, x: Tensor) -> Tensor:
        """A branch as it is added: LayerScale where the net has it, and dropout."""
        return self.drop(x * getattr(self, name) if name in self._parameters else x)

    def mixed(self, x: Tensor, rows: Rows, back: Rows) -> Tensor:
        y = self.mixer(x, rows)
        if "mixer_back" not in self._modules:
            return y
        return y + reversed_rows(self.mixer_back(reversed_rows(x, rows), back), rows)

    def channels(self, x: Tensor) -> Tensor:
        """The MLP of a pre-norm layer."""
        w1, w2 = self.mlp.w1, self.mlp.w2
        if self.kind == "slice-transformer":
            return w2(self.drop(F.gelu(w1(x))))
        if self.kind in ("slice-xlstm", "xlstm"):
            gate, value = w1(x).chunk(2, -1)
            return w2(F.gelu(gate) * value)
        if self.config["mlp"] == "gelu":
            return w2(F.gelu(w1(x), approximate="tanh"))
        return self.mlp.w3(F.silu(w1(x)) * w2(x))

    def batch_normed(self, x: Tensor, used: Tensor | None) -> Tensor:
        p = self.norm
        mean, variance = p.mean, p.variance
        chosen = x.flatten(0, 1) if used is None else x[used]
        if self.training and len(chosen):
            mean, variance = chosen.mean(0), chosen.var(0, correction=0)
            with torch.no_grad():
                p.mean.lerp_(mean, 1 - MOMENTUM)
                p.variance.lerp_(variance, 1 - MOMENTUM)
        return (x - mean) * torch.rsqrt(variance + EPS) * p.weight + p.bias

    def forward(self, x: Tensor, rows: Rows, back: Rows, nodes: Tensor | None, last: bool) -> Tensor:
        """nodes: which rows count, where a tree has more rows than tokens."""
        if self.kind == "stacked":
            y = self.mixed(x, rows, back)
            return y if last else self.drop(y)
        if self.kind == "s5":
            used = rows.used(x) if nodes is None else nodes
            y = self.drop(F.silu(self.mixed(self.batch_normed(x, used), rows, back)))
            return x + self.drop(y * torch.sigmoid(self.glu(y)))
        if self.kind in ("slice", "slice-glu"):
            z = x + self.mixed(x, rows, back)
            branch = self.mlp(z)
            branch = torch.tanh(branch) if self.kind == "slice" else branch * torch.sigmoid(self.mlp_gate(z))
            return self.drop(layernorm(z + branch, self.norm.weight, self.norm.bias))
        x = x + self.scaled("scale", self.mixed(normed(x, self.norm, self.kind), rows, back))
        if "mlp" not in self._modules:
            return x
        return x + self.scaled("mlp_scale", self.channels(normed(x, self.mlp_norm, self.kind)))


def normed(x: Tensor, part: Part, kind: str) -> Tensor:
    """The norm of a pre-norm backbone: a layer norm where it has a bias, around 1 in xLSTM's, else an RMS norm."""
    if kind in ("slice-xlstm", "xlstm"):
        return layernorm(x, 1 + part.weight)
    return layernorm(x, part.weight, part.bias) if hasattr(part, "bias") else rmsnorm(x, part.weight)


def resizing(m: int, n: int) -> Tensor:
    """(n,m): what each of n places has of m entries of one line, by Keys' cubic kernel with a = -1/2."""
    at = (torch.arange(n, dtype=torch.float64) + 0.5) * m / n - 0.5
    d = (at[:, None] - torch.arange(m, dtype=torch.float64)).abs()
    far = torch.where(d < 2, -0.5 * d**3 + 2.5 * d**2 - 4 * d + 2, 0.0)
    w = torch.where(d <= 1, 1.5 * d**3 - 2.5 * d**2 + 1, far)
    return w / w.sum(-1, keepdim=True)


def sinusoids(length: int, dim: int, dtype: torch.dtype) -> Tensor:
    """(T,D): sines in the first half, cosines in the second; an odd last column is 0."""
    half = dim // 2
    rate = torch.exp(-math.log(1e4) * torch.arange(half, dtype=torch.float64) / max(half - 1, 1))
    angle = torch.arange(length, dtype=torch.float64)[:, None] * rate
    return F.pad(torch.cat([angle.sin(), angle.cos()], 1), (0, dim - 2 * half)).to(dtype)


class Net(nn.Module):
    """A net of the program. config: its configuration, value by key; metadata: what its file had besides tensors."""

    def __init__(self, config: dict, tensors: dict[str, Tensor], readout: str, metadata: dict[str, str]):
        super().__init__()
        if config["backbone"] == "slice-paper":
            config = {**config, "backbone": PAPER.get(config["model"], "slice-glu")}
        self.config, self.readout, self.metadata = config, readout, metadata
        self.layers = nn.ModuleList()
        for index in range(config["layers"]):
            start = f"layers.{index}."
            own = {name[len(start) :]: t for name, t in tensors.items() if name.startswith(start)}
            self.layers.append(Layer(config, index, own))
        for name, tensor in tensors.items():
            if not name.startswith("layers."):
                place(self, name, tensor)
        self.requires_grad_(True)

    def options(self, key: str):
        return self.config[f"model.{key}"]

    def penalty(self) -> Tensor:
        """The terms that mixers add to the training loss (slice:penalty)."""
        mixers = [m for m in self.modules() if hasattr(m, "penalty") and m is not self]
        return sum((m.penalty() for m in mixers if m.o["penalty"]), torch.zeros(()))

    # --- before the layers -------------------------------------------------------------------------------------

    def encoded(self, inputs: Tensor, rows: Rows) -> Tensor:
        if "encoder" in self._modules:
            x = self.encoder(inputs.to(self.encoder.weight.dtype))
        else:
            x = F.embedding(inputs, self.embedding)
        if self.config["positions"] == "learnt":
            x = self.with_positions(x, rows)
        if self.config["degree-code"]:
            dim = x.shape[-1]
            degree = adjacency(x, rows.edges).sum(-1, keepdim=True)
            angle = degree * 10000.0 ** (-torch.arange(0, dim, 2, dtype=x.dtype) / dim)
            x = x + torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)[..., :dim]
        return x

    def with_positions(self, x: Tensor, rows: Rows) -> Tensor:
        """Adds the table of positions, resized to the square image that each sequence is."""
        height, width, _ = self.positions.shape
        added = []
        for length in [x.shape[1]] * x.shape[0] if rows.lengths is None else rows.lengths.tolist():
            sides = (1, length) if height == 1 or length == 0 else grid_of(length, SQUARE)
            to = [resizing(m, n).to(x.dtype) for m, n in zip((height, width), sides)]
            table = torch.einsum("xh,yw,hwd->xyd", *to, self.positions).flatten(0, 1)[:length]
            added.append(F.pad(table, (0, 0, 0, x.shape[1] - length)))
        return x + torch.stack(added)

    def with_nodes(self, x: Tensor, rows: Rows) -> tuple[Tensor, Tensor | None]:
        """A tree's rows: the tokens, leaves without one, one learned vector per level; and which of them count."""
        arity, length = self.options("arity"), x.shape[1]
        tree = Tree(arity, levels=self.options("levels"), leaves=length)
        leaves = tree.nodes if arity == 1 else arity ** (tree.levels - 1)
        parts = [F.pad(x, (0, 0, 0, leaves - length))]
        if arity > 1 and tree.levels > 1:
            parts.append(self.nodes[tree.level[leaves:] - 1].expand(x.shape[0], -1, -1))
        lengths = torch.full((x.shape[0],), length) if rows.lengths is None else rows.lengths
        return torch.cat(parts, 1), tree.first < lengths[:, None]

    # --- after them --------------------------------------------------------------------------------------------

    def last_row(self, x: Tensor, rows: Rows) -> Tensor:
        if rows.lengths is None:
            return x[:, -1]
        at = (rows.lengths - 1).clamp(min=0)
        return x[torch.arange(x.shape[0]), at] * (rows.lengths > 0)[:, None]

    def pooled(self, x: Tensor, length: int, rows: Rows, nodes: Tensor | None) -> Tensor:
        how, arity = self.config["pool"], 0
        if how == "top" and self.config["model"] == "myosotis":
            arity = self.options("arity")
        if arity > 1 and self.config.get("top-levels", 1) > 1:
            top = (arity ** self.config["top-levels"] - 1) // (arity - 1)
            return (x[:, -top:] * nodes[:, -top:, None]).mean(1)
        if arity > 1:
            return x[:, -1]
        if how == "class":
            return x[:, 0]
        x = x[:, :length]
        if how == "corners":
            corners = []
            lengths = [length] * x.shape[0] if rows.lengths is None else rows.lengths.tolist()
            for sequence, n in zip(x, lengths):
                height, width = grid_of(n, SQUARE) if n else (1, 1)
                places = [0, (height - 1) * width, width - 1, height * width - 1]
                corners.append(sequence[places].flatten() * (n > 0))
            return torch.stack(corners)
        if how != "mean":
            return self.last_row(x, rows)
        if rows.lengths is None:
            return x.mean(1)
        return (x * rows.used(x)[..., None]).sum(1) / rows.lengths.clamp(min=1)[:, None]

    def decoded(self, x: Tensor, rows: Rows) -> Tensor:
        """MAD's auto-encoder: every position from the last row in use."""
        d = self.last_row(x, rows).unsqueeze(1) + sinusoids(x.shape[1], x.shape[2], x.dtype)
        for part in (self.decoder._modules["0"], self.decoder._modules["1"]):
            d = F.gelu(part.linear(normed(d, part.norm, self.config["backbone"])))
        return d

    def forward(self, inputs: Tensor, lengths: Tensor | None = None, edges: list | None = None) -> Tensor:
        """Logits of ids (B,T) or values (B,T,C): (B,T,V), or (B,V) of one label per sequence. Of pairs of documents the
        rows 2i and 2i + 1 belong together. lengths (B): tokens in use; edges: of each sequence that is a graph."""
        rows, back, length, nodes = Rows(lengths, edges), Rows(lengths, edges), inputs.shape[1], None
        x = self.encoded(inputs, rows)
        if self.config["model"] == "myosotis":
            if lengths is None:
                rows.lengths = torch.full((x.shape[0],), length)
            x, nodes = self.with_nodes(x, rows)
        if self.config["pool"] == "class":
            x = torch.cat([self.get_parameter("class").expand(x.shape[0], 1, -1), x], 1)
            rows.lengths = None if lengths is None else lengths + 1
        for index, layer in enumerate(self.layers):
            x = layer(x, rows, back, nodes, index + 1 == len(self.layers))
        if self.readout != "sequence":
            x = x[:, :length]
        if self.readout == "decoded":
            x = self.decoded(x, rows)
        if "norm" in self._modules:
            x = normed(x, self.norm, self.config["backbone"])
        if self.readout == "sequence":
            x = self.pooled(x, length, rows, nodes)
        if "match" in self._modules:
            u, v = x.unflatten(0, (-1, 2)).unbind(1)
            x = F.gelu(self.match(torch.cat([u, v, u - v, u * v], -1)))
        return self.head(x)


def load(path: str | os.PathLike[str], readout: str | None = None) -> Net:
    """The net in a file of `lrnn export`. readout: "positions", "sequence" (one label each) or "decoded" (MAD's
    auto-encoder), where the file does not say. LrnnError: the file is none, or has a mixer that this package lacks."""
    tensors, metadata = safetensors.read(path)
    if "config" not in metadata:
        raise LrnnError(f"{path} has no configuration in its metadata; `lrnn export RUN FILE` writes it")
    config = {key: option(value) for key, value in (line.split("=", 1) for line in metadata["config"].splitlines())}
    readout = "decoded" if any(name.startswith("decoder.") for name in tensors) else readout or metadata.get("readout")
    if readout not in READOUTS:
        raise LrnnError(f"{path} does not say what is read out; give readout, one of {', '.join(READOUTS)}")
    if config["model"] not in MIXERS:
        raise LrnnError(f"{path}: this package has no mixer {config['model']}; it has {', '.join(sorted(MIXERS))}")
    return Net(config, tensors, readout, metadata)


def save(net: Net, path: str | os.PathLike[str], state: dict[str, Tensor] | None = None) -> None:
    """Writes the net's tensors, or a state dict of the same names, as a file that `lrnn import`, `lrnn train --from`
    and lrnn.load read. LrnnError: a name or a shape is another."""
    own = net.state_dict()
    state = own if state is None else state
    for name in sorted(own.keys() | state.keys()):
        if name not in own or name not in state or own[name].shape != state[name].shape:
            got, want = (tuple(d[name].shape) if name in d else "absent" for d in (state, own))
            raise LrnnError(f"{name} is {got}, expected {want}")
    safetensors.write(path, state, {key: text for key, text in net.metadata.items() if key != "values_xxh3"})

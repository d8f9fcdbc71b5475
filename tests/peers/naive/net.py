"""net.py - the net around a mixer: backbones, read-outs and the loss (athms/mad-lab,
Benjamin-Walker/structured-linear-cdes, lindermanlab/S5, ml-jku/plstm)."""
import copy
import math

import torch
import torch.nn.functional as F

from . import graphs, myosotis, slice, vision
from .mixers import CAUSAL, mix
from .parts import NORM_EPS, affine, chosen, layernorm, rmsnorm

MOMENTUM = 0.95  # of batch norm's running statistics
IGNORED = -100
SLICE_PAPER = {"slice": "slice", "lstm": "stacked", "mlstm": "slice-xlstm", "slstm": "slice-xlstm",
               "xlstm": "slice-xlstm", "attention": "slice-transformer"}  # other mixers: slice-glu


class Net:
    """One net of a run: `config` the run's resolved configuration, `weights` its parameters by contract name."""

    def __init__(self, config, weights):
        self.config, self.weights = config, weights
        self.mixer = config["model"]
        self.options = {key[6:]: value for key, value in config.items() if key.startswith("model.")}
        self.layers = int(config["layers"])
        self.layer_options = {f"layers.{i}": self.options_of(i) for i in range(self.layers)}
        kind = config["backbone"]
        self.backbone = SLICE_PAPER.get(self.mixer, "slice-glu") if kind == "slice-paper" else kind
        self.pre_norm = self.backbone in ("mad-lm", "vision", "slice-xlstm", "xlstm", "slice-transformer")
        self.two_ways = config["bidirectional"] == "yes" and self.mixer in CAUSAL
        self.tree = self.mixer == "myosotis"
        self.decodes = "decoder.0.linear.weight" in weights
        self.training = True

    def part(self, prefix):
        """The parameters under a name, without it."""
        return {name[len(prefix) + 1:]: w for name, w in self.weights.items() if name.startswith(prefix + ".")}

    def options_of(self, index):
        """The options of a layer. Layers of pLSTM alternate between P and D, and two go along the edges, two against
        them; a layer of HGRN2 has a least forget gate."""
        o = dict(self.options)
        if self.mixer == "hgrn2" and o["bounds"] == "yes":
            o["low"] = index / self.layers
        if o.get("mode") == "PD":
            o["mode"] = "PD"[index % 2]
        if o.get("direction") == "both":
            o["direction"] = ("forward", "back")[index // 2 % 2]
        return o

    # --- layers --------------------------------------------------------------------------------------------

    def mixed(self, x, layer, batch):
        o, lengths = self.layer_options[layer], batch.lengths
        y = mix(self.mixer, x, self.part(f"{layer}.mixer"), o, lengths, batch.edges)
        if self.two_ways:
            back = mix(self.mixer, reverse(x, lengths), self.part(f"{layer}.mixer_back"), o, lengths)
            y = y + reverse(back, lengths)
        return y

    def norm(self, x, name):
        p = self.part(name)
        if self.backbone in ("slice-xlstm", "xlstm"):
            return layernorm(x, 1 + p["weight"])
        layer = self.config["norm"] == "layernorm" or self.backbone == "slice-transformer"
        return layernorm(x, p["weight"], p["bias"]) if layer else rmsnorm(x, p["weight"])

    def mlp(self, x, p):
        if self.backbone == "slice-transformer":
            return affine(F.gelu(affine(x, p, "w1")), p, "w2")
        if self.backbone in ("slice-xlstm", "xlstm"):
            gate, value = (x @ p["w1.weight"].T).chunk(2, -1)
            return (F.gelu(gate) * value) @ p["w2.weight"].T
        if self.config["mlp"] == "gelu" and self.backbone == "vision":
            return affine(F.gelu(affine(x, p, "w1"), approximate="tanh"), p, "w2")
        if self.config["mlp"] == "gelu":
            return F.gelu(x @ p["w1.weight"].T, approximate="tanh") @ p["w2.weight"].T
        return (F.silu(x @ p["w1.weight"].T) * (x @ p["w2.weight"].T)) @ p["w3.weight"].T

    def mad_layer(self, x, layer, batch):
        scales = [self.weights.get(f"{layer}.{name}", 1) for name in ("scale", "mlp_scale")]
        x = x + scales[0] * self.mixed(self.norm(x, f"{layer}.norm"), layer, batch)
        if f"{layer}.mlp_norm.weight" not in self.weights:
            return x
        return x + scales[1] * self.mlp(self.norm(x, f"{layer}.mlp_norm"), self.part(f"{layer}.mlp"))

    def slice_layer(self, x, layer, batch):
        p = self.part(layer)
        z = x + self.mixed(x, layer, batch)
        branch = affine(z, p, "mlp")
        branch = torch.tanh(branch) if self.backbone == "slice" else branch * torch.sigmoid(affine(z, p, "mlp_gate"))
        return layernorm(z + branch, p["norm.weight"], p["norm.bias"])

    def batch_norm(self, x, p, used):
        mean, variance = p["mean"], p["variance"]
        if self.training and used.any():
            rows = x[used]
            mean = rows.mean(0)
            variance = ((rows - mean) ** 2).mean(0)
            with torch.no_grad():
                p["mean"].mul_(MOMENTUM).add_((1 - MOMENTUM) * mean)
                p["variance"].mul_(MOMENTUM).add_((1 - MOMENTUM) * variance)
        return (x - mean) * torch.rsqrt(variance + NORM_EPS) * p["weight"] + p["bias"]

    def s5_layer(self, x, layer, batch):
        used = myosotis.in_use(self.options, x.shape[1], batch.lengths) if self.tree else in_use(x, batch.lengths)
        y = F.silu(self.mixed(self.batch_norm(x, self.part(f"{layer}.norm"), used), layer, batch))
        return x + y * torch.sigmoid(affine(y, self.part(layer), "glu"))

    def layer(self, x, index, batch):
        name = f"layers.{index}"
        if self.pre_norm:
            return self.mad_layer(x, name, batch)
        if self.backbone == "s5":
            return self.s5_layer(x, name, batch)
        if self.backbone == "stacked":
            return self.mixed(x, name, batch)
        return self.slice_layer(x, name, batch)

    # --- a tree's inner nodes ------------------------------------------------------------------------------

    def with_nodes(self, x):
        """The leaves without a token are rows of zeros, the inner nodes one learned vector per level."""
        arity, levels = int(self.options["arity"]), chosen(self.options["levels"])
        if arity == 1:
            return x
        while not chosen(self.options["levels"]) and arity ** (levels - 1) < x.shape[1]:
            levels += 1
        rows = [x]
        for level in range(levels):
            if level == 0:
                rows.append(x.new_zeros(x.shape[0], arity ** (levels - 1) - x.shape[1], x.shape[2]))
            else:
                rows.append(self.weights["nodes"][level - 1].expand(x.shape[0], arity ** (levels - 1 - level), -1))
        return torch.cat(rows, 1)

    # --- read-outs -----------------------------------------------------------------------------------------

    def pooled(self, x, T, lengths):
        """One vector per sequence, of the rows of tokens; a tree's top is its last node, a chain's its last token."""
        how, nodes = self.config["pool"], x.shape[1]
        if how == "top" and nodes > T:
            return x[:, -1]
        if how == "corners":
            return vision.corners(x, lengths)
        if how == "class":
            return x[:, 0]
        return mean_row(x[:, :T], lengths) if how == "mean" else last_row(x[:, :T], lengths)

    def decoded(self, x, lengths):
        """MAD's auto-encoder: every position from the last row in use."""
        e, T = last_row(x, lengths), x.shape[1]
        d = e.unsqueeze(1) + sinusoids(T, e.shape[-1])
        for i in range(2):
            d = F.gelu(affine(self.norm(d, f"decoder.{i}.norm"), self.part(f"decoder.{i}"), "linear"))
        return d

    def encoded(self, batch):
        """Tokens by a table, values by a map; then what is added to them."""
        if "encoder.weight" in self.weights:
            x = affine(batch.input, self.weights, "encoder")
        else:
            x = self.weights["embedding"][batch.input]
        if self.config["positions"] == "learnt":
            x = vision.with_positions(x, self.weights["positions"], batch.lengths)
        if self.config["degree-code"] == "yes":
            x = graphs.degree_code(x, batch.edges)
        return self.with_nodes(x) if self.tree else x

    def logits(self, batch, per_sequence):
        x, T = self.encoded(batch), batch.input.shape[1]
        if self.config["pool"] == "class":
            x = torch.cat([self.weights["class"].expand(x.shape[0], 1, -1), x], 1)
            batch = copy.copy(batch)
            batch.lengths = batch.lengths + 1
        for i in range(self.layers):
            x = self.layer(x, i, batch)
        if not per_sequence:
            x = x[:, :T]
        if self.decodes:
            x = self.decoded(x, batch.lengths)
        if self.pre_norm:
            x = self.norm(x, "norm")
        if per_sequence:
            x = self.pooled(x, T, batch.lengths)
        return affine(x, self.weights, "head")

    def loss_terms(self):
        """The terms that mixers add to the training loss: SLiCE's penalty."""
        if self.mixer != "slice" or float(self.options["penalty"]) == 0:
            return 0.0
        ways = ["mixer", "mixer_back"] if self.two_ways else ["mixer"]
        return sum(slice.penalty(self.part(f"layers.{i}.{way}"), self.options)
                   for i in range(self.layers) for way in ways)


def cross_entropy(logits, targets):
    """The mean over scored targets, and the predictions."""
    scored = targets != IGNORED
    chosen = torch.log_softmax(logits, -1).gather(-1, targets.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    return -(chosen * scored).sum() / max(int(scored.sum()), 1), logits.argmax(-1)


def in_use(x, lengths):
    return torch.arange(x.shape[1]) < lengths[:, None]


def reverse(x, lengths):
    """Each sequence turned around in its own rows in use."""
    t, n = torch.arange(x.shape[1]), lengths[:, None]
    order = torch.where(t < n, n - 1 - t, t)
    return x.gather(1, order[..., None].expand_as(x))


def last_row(x, lengths):
    row = x[torch.arange(x.shape[0]), (lengths - 1).clamp(min=0)]
    return row * (lengths > 0)[:, None]


def mean_row(x, lengths):
    return (x * in_use(x, lengths)[..., None]).sum(1) / lengths.clamp(min=1)[:, None]


def sinusoids(T, D):
    """(T,D): sines in the first half, cosines in the second; an odd last column is 0."""
    half = D // 2
    rate = torch.exp(-math.log(1e4) * torch.arange(half, dtype=torch.float64) / (half - 1))
    angle = torch.arange(T, dtype=torch.float64)[:, None] * rate
    return F.pad(torch.cat([torch.sin(angle), torch.cos(angle)], 1), (0, D - 2 * half))

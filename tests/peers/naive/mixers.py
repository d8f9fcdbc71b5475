"""mixers.py - every mixer by name, with the values of keys that a case file leaves out."""
from . import diagonal, graphs, matrix_state, myosotis, plstm, slice, vector

DEFAULTS = {
    "bdlru": {"gate": "softmax", "selective": "yes"},
    "hlru": {"gate": "softmax", "selective": "yes", "layout": "companion"},
    "slice": {"block": "4", "rank": "1", "dt": "0.025", "interval": "1", "depth": "1", "flow": "euler", "penalty": "0",
              "clip": "1e11"},
    "plstm": {"gates": "dense", "track": "1"},
    "plstm2d": {"form": "paper", "chirality": "L", "gates": "dense"},
    "plstm-graph": {"node": "shared", "pnorm": "out", "direction": "forward"},
    "myosotis": {"form": "dd", "share": "level", "rho": "0.95", "leaves": "all", "selective": "no", "block": "1",
                 "rhs": "1"},
    "mamba2": {"expand": "2", "range": "unit"},
    "mamba3": {"expand": "2", "rope": "0.5", "decay": "heavy", "norm": "no"},
    "mingru": {"form": "log"},
    "rglru": {"heads": "4"},
    "s5": {"conj": "yes", "step": "zoh", "clip": "no"},
    "linoss": {"step": "im"},
    "pdssm": {"form": "row", "permute": "yes"},
    "gated-deltanet": {"beta": "1"},
    "kda": {"beta": "1", "decay": "softplus", "floor": "-5"},
    "gdn2": {"beta": "1", "decay": "softplus", "floor": "-5"},
    "rwkv7": {"vmix": "no"},
    "gla": {"conv": "0", "divisor": "16"},
    "deltanet": {"beta": "2"},
    "deltaproduct": {"beta": "2", "forget": "no", "outgate": "no"},
}

MIXERS = {
    "bdlru": vector.bdlru,
    "hlru": vector.hlru,
    "slice": slice.slice_mixer,
    "plstm": plstm.plstm,
    "plstm2d": plstm.plstm2d,
    "plstm-graph": plstm.plstm_graph,
    "myosotis": myosotis.myosotis,
    "mamba2": matrix_state.mamba2,
    "mamba3": matrix_state.mamba3,
    "deltanet": matrix_state.deltanet,
    "deltaproduct": matrix_state.deltaproduct,
    "gated-deltanet": matrix_state.gated_deltanet,
    "kda": matrix_state.kda,
    "gdn2": matrix_state.gdn2,
    "rwkv7": matrix_state.rwkv7,
    "gla": matrix_state.gla,
    "hgrn2": matrix_state.hgrn2,
    "mlstm": matrix_state.mlstm,
    "slstm": matrix_state.slstm,
    "xlstm": matrix_state.xlstm,
    "lru": vector.lru,
    "s5": diagonal.s5,
    "linoss": diagonal.linoss,
    "pdssm": diagonal.pdssm,
    "mingru": diagonal.mingru,
    "rglru": diagonal.rglru,
    "aussm": diagonal.aussm,
    "lstm": vector.lstm,
    "attention": vector.attention,
    "full-attention": vector.full_attention,
    "gcn": graphs.gcn,
    "gin": graphs.gin,
    "gat": graphs.gat,
    "mpnn": graphs.mpnn,
    "conv": vector.conv,
}

ON_GRAPHS = {"plstm-graph", "gcn", "gin", "gat", "mpnn"}
CAUSAL = set(MIXERS) - ON_GRAPHS - {"plstm2d", "myosotis", "full-attention"}
BY_LENGTH = {"slice", "plstm2d", "myosotis", "full-attention"}  # else pads would reach a sequence's rows in use


def mix(name, x, p, options, lengths=None, edges=None):
    """y (B,T,D) of the mixer on x; p its parameters by contract name, options its config keys as text, edges those of
    each sequence where the examples are graphs."""
    o = {**DEFAULTS.get(name, {}), **options}
    if name in ON_GRAPHS:
        return MIXERS[name](x, p, o, lengths, edges)
    return MIXERS[name](x, p, o, lengths) if name in BY_LENGTH else MIXERS[name](x, p, o)

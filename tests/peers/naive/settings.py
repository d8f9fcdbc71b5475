"""settings.py - the runs that loop.py compares: what is trained, and by which flags. Small, but for `wide` and
`defaults`: there B x H > 16 and T > 32, several chunks, the last partial. The last batch of an epoch is partial too."""
from typing import NamedTuple


class Setting(NamedTuple):
    name: str
    task: str
    model: str
    flags: dict


TAGGING = "word-problem:group=s3,length=12,n_train=40,n_val=20,n_test=20"
LONG_TAGGING = "word-problem:group=s3,length=41,n_train=21,n_val=10,n_test=10"
PADDED = "listops:min_length=4,max_length=20,n_train=40,n_val=20,n_test=20"  # one label per sequence, lengths differ
LONG_PADDED = "listops:min_length=20,max_length=33,n_train=21,n_val=10,n_test=10"
DECODED = "compression:length=12,n_train=40,n_val=20,n_test=20"
LONG_DECODED = "compression:length=42,n_train=21,n_val=10,n_test=10"
MOLECULES = "molecules:min_nodes=8,max_nodes=14,graphs=40"  # graphs of their own, one label each
LONG_MOLECULES = "molecules:min_nodes=30,max_nodes=41,graphs=20"
ARROWS = "arrow:size=24,patch=6,n_train=40,n_val=20,n_test=20"  # 16 patches; 64 in every second test image
LONG_ARROWS = "arrow:size=28,patch=4,n_train=21,n_val=10,n_test=10"  # 49 patches; 196
DIGITS = "digits:patch=7,n_train=40,n_val=20,n_test=20"
BATCH, LONG_BATCH = 16, 9  # three steps per epoch, the last of 8 and of 3 examples
DAG = "0-1+0-2+1-3+2-3+2-4+3-5+4-5+4-6+5-6+6-7+6-9+7-8+8-11+9-10+10-11"
WIDE_DAG = "0-1+0-3+1-2+1-4+2-5+3-4+3-6+4-7+5-7+6-7+7-8+7-9+8-10+9-10+10-30+30-31+30-33+31-32+32-41+33-34+34-41"
PADDED_DAG = "0-1+0-2+1-2+1-5+2-3+2-9+3-4+3-7+4-5+5-6+5-8+5-19+6-7+6-12+7-9+8-11+9-10+9-15+11-12+12-18+15-16+15-17"

SMALL = {"dim": 16, "batch": BATCH, "lr": 0.002}
WIDE = {"dim": 32, "batch": LONG_BATCH, "lr": 0.001}

SLICES = ["structure=diagonal", "structure=block,block=4", "structure=dense", "structure=dplr,rank=2",
          "structure=hadamard", "structure=sparse,keep=0.3", "structure=diagonal-dense,block=5"]
GRIDS = ["mode=P", "mode=P,form=ref", "mode=D", "mode=D,chirality=R"]
GRAPHS = ["mode=P", "mode=D", f"mode=P,edges={DAG}", f"mode=D,edges={DAG}", f"mode=P,edges={DAG},node=tail,pnorm=in",
          f"mode=D,edges={DAG},node=tail", "mode=P,edges=none"]
TREES = ["form=dd", "form=pd,arity=4", "form=skew", "form=free,share=node", "share=head,selective=yes",
         "form=free,selective=yes", "arity=1", "arity=1,form=free,share=head", "leaves=7", "block=2",
         "block=3,rhs=2,form=free,selective=yes"]
GIVEN_SIDES = ["height=4,width=5", "width=3", "height=3,mode=D", "height=20,width=1"]  # of graphs of 20 tokens
PADDED_GRAPHS = [f"{o},edges={PADDED_DAG}" for o in ("mode=P", "mode=D", "mode=P,pnorm=in", "mode=P,node=tail")]
PADDED_TREES = ["levels=7", "arity=3,levels=5,form=free,share=node", "arity=1,levels=26", "leaves=7,arity=1",
                "arity=20"]
NEIGHBOURS = ["gcn", "gin:inner=2", "gat:heads=2", "mpnn"]
VISION = {**SMALL, "backbone": "vision", "layers": 2, "decay": 0.05, "clip": 1}
ARROW_NETS = [  # of the profiles: a layer of P-mode and one of D-mode, one mode alone, and a vision transformer
    ("plstm2d:heads=2,form=ref,gates=sliced,mode=PD", {"pool": "corners", "positions": "learnt"}),
    ("plstm2d:heads=2,form=ref,gates=sliced,mode=P", {"pool": "corners", "positions": "learnt"}),
    ("plstm2d:heads=2,form=ref,gates=sliced,mode=D", {"pool": "corners", "positions": "learnt"}),
    ("plstm2d:heads=2,form=ref,gates=sliced,mode=PD", {"pool": "corners"}),
    ("full-attention:heads=2", {"norm": "layernorm", "positions": "learnt"}),
    ("full-attention:heads=2", {"pool": "class", "positions": "learnt", "layer-scale": 1})]

CAUSAL = (
    [f"bdlru:blocks=4,{o}" for o in ("m=2", "m=3,gate=sigmoid", "m=3,gate=relu", "m=2,gate=none", "m=2,selective=no",
                                     "m=1")]
    + [f"hlru:channels=6,{o}" for o in ("m=3", "m=3,layout=observer", "m=2,gate=sigmoid", "m=2,gate=relu",
                                        "m=2,gate=none", "m=2,selective=no", "m=3,layout=observer,selective=no",
                                        "m=2,selective=pointwise")]
    + [f"slice:{o}" for o in SLICES]
    + [f"slice:{o},interval=3" for o in SLICES]
    + [f"slice:{o},interval=3,depth=2,{more}" for o in SLICES if o.split(",")[0].split("=")[1] in
       ("diagonal", "block", "dense", "diagonal-dense") for more in ("dt=0.2", "flow=exp,dt=0.2")]
    + ["slice:structure=block,flow=exp,dt=0.2"]
    + [f"plstm:heads=2,{o}" for o in ("gates=dense", "gates=bias", "track=2", "track=3")]
    + ["mamba2:state=4,headdim=8", "mamba2:state=3,headdim=4,conv=2,expand=1", "deltanet:heads=2",
       "deltanet:heads=2,beta=1,conv=3", "deltaproduct:heads=2,steps=3",
       "deltaproduct:heads=2,headdim=5,steps=2,forget=yes", "deltaproduct:heads=2,steps=2,outgate=yes",
       "deltaproduct:heads=2,headdim=5,steps=1,forget=yes,outgate=yes", "mlstm:heads=2", "mlstm:heads=1,conv=3",
       "lru:state=9", "lstm", "lstm:hidden=7", "attention:heads=2", "conv:channels=5,m=4",
       "mamba2:state=4,headdim=8,range=signed", "mingru", "mingru:hidden=9,form=plain", "rglru:heads=2",
       "rglru:heads=3,width=9,conv=2", "s5:state=7", "s5:state=6,conj=no,step=bilinear,clip=yes", "linoss:state=7",
       "linoss:state=5,step=imex", "gated-deltanet:heads=2", "gated-deltanet:heads=2,headdim=5,expandv=2,beta=2",
       "kda:heads=2", "kda:heads=2,headdim=5,expandv=2,rank=3,decay=bounded,beta=2", "gdn2:heads=2",
       "gdn2:heads=2,headdim=5,expandv=2,rank=3,beta=2", "rwkv7:heads=2,vmix=no", "gla:heads=2",
       "gla:heads=2,headdim=5,keydim=3,rank=2,conv=3,divisor=4", "hgrn2:heads=2,bounds=no", "slstm:heads=2",
       "slstm:heads=4,conv=0", "mamba3:state=8,headdim=8",
       "mamba3:state=6,headdim=4,expand=1,rope=1,decay=softplus,norm=yes", "aussm:state=3",
       "aussm:state=5,conv=2,rank=2", "pdssm", "pdssm:state=9,dict=3,expand=1",
       "pdssm:form=column", "pdssm:state=9,form=column,dict=2", "pdssm:permute=no",
       "pdssm:state=9,form=column,permute=no"])

WIDE_CAUSAL = (
    ["bdlru:blocks=8,m=3", "hlru:channels=24,m=3", "hlru:channels=24,m=3,layout=observer"]
    + [f"slice:{o}" for o in SLICES]
    + ["slice:structure=block,interval=7,depth=2,dt=0.1", "slice:structure=dense,interval=7,flow=exp,dt=0.1",
       "plstm:heads=4", "plstm:heads=4,track=2", "mamba2:state=8,headdim=8", "deltanet:heads=4",
       "deltaproduct:heads=4,steps=3", "deltaproduct:heads=4,headdim=12,steps=2,forget=yes,outgate=yes",
       "mlstm:heads=4", "lru:state=24", "lstm:hidden=24", "attention:heads=4", "conv:channels=24,m=5",
       "mamba2:state=8,headdim=8,range=signed", "mingru:hidden=40", "rglru:heads=4,width=40", "s5:state=40",
       "linoss:state=40", "gated-deltanet:heads=4", "kda:heads=4", "gdn2:heads=4", "rwkv7:heads=4,vmix=no",
       "gla:heads=4", "hgrn2:heads=4,bounds=no", "slstm:heads=4",
       "mamba3:state=12,headdim=8,norm=yes", "aussm:state=7", "pdssm", "pdssm:form=column"])

TWO_WAYS = ["bdlru:blocks=4,m=2", "hlru:channels=6,m=3", "hlru:channels=6,m=3,layout=observer",
            "slice:structure=block,penalty=0.01", "slice:structure=block,interval=3,depth=2", "plstm:heads=2",
            "plstm:heads=2,track=2", "mamba2:state=4,headdim=8", "deltanet:heads=2",
            "deltaproduct:heads=2,forget=yes,outgate=yes", "mlstm:heads=2", "slstm:heads=2", "lru:state=9", "lstm",
            "attention:heads=2", "conv:channels=5,m=4"]


def mixers():
    for model in CAUSAL:
        yield Setting("mixer", TAGGING, model, SMALL)
    for layers in (2, 4):  # layer l's least forget gate is l / layers
        yield Setting("mixer", TAGGING, "hgrn2:heads=2", {**SMALL, "layers": layers})
    for model in [f"plstm2d:heads=2,{o}" for o in GRIDS] + [f"plstm-graph:heads=2,{o}" for o in GRAPHS] + \
            [f"myosotis:heads=4,{o}" for o in TREES]:
        yield Setting("mixer", DECODED, model, SMALL)


def wide():
    for model in WIDE_CAUSAL:
        yield Setting("wide", LONG_TAGGING, model, WIDE)
    yield Setting("wide", LONG_TAGGING, "hgrn2:heads=4", {**WIDE, "layers": 2})
    for model in ["plstm2d:heads=4,mode=P", "plstm2d:heads=4,mode=D", "plstm-graph:heads=4,mode=P",
                  f"plstm-graph:heads=4,mode=P,edges={WIDE_DAG}", f"plstm-graph:heads=4,mode=D,edges={WIDE_DAG}"]:
        yield Setting("wide", LONG_DECODED, model, WIDE)
    for model in ["myosotis:heads=16", "myosotis:heads=16,selective=yes,form=free"]:
        yield Setting("wide", LONG_PADDED, model, WIDE)


def kernels():
    """Where an op has several kernels, each of them, whatever these sizes prefer."""
    for kernel in ("scan_delta_chunk", "scan_delta_cpu"):
        for model in ("deltanet:heads=4", "deltaproduct:heads=4,steps=3,forget=yes"):
            yield Setting("kernel", LONG_TAGGING, model, {**WIDE, "kernel": kernel})
    for kernel in ("scan_outer_long", "scan_outer_chunk", "scan_outer_cpu"):
        for model in ("mamba2:state=8,headdim=8", "plstm:heads=4", "mlstm:heads=4"):
            yield Setting("kernel", LONG_TAGGING, model, {**WIDE, "kernel": kernel})
    for kernel in ("scan_plstm_chunk", "scan_plstm_cpu"):
        yield Setting("kernel", LONG_TAGGING, "plstm:heads=4,track=3", {**WIDE, "kernel": kernel})
    for kernel in ("grid_scan_block", "grid_scan_cpu"):
        for mode in "PD":
            yield Setting("kernel", LONG_DECODED, f"plstm2d:heads=4,mode={mode}", {**WIDE, "kernel": kernel})


def defaults():
    """Mixers as they are trained: options not named, width 128."""
    for model in ["bdlru", "hlru", "slice", "plstm", "mamba2", "deltanet", "deltaproduct", "mlstm", "lru", "lstm",
                  "attention", "conv", "mingru", "rglru", "s5", "linoss", "slstm", "mamba3", "aussm",
                  "pdssm"]:
        yield Setting("defaults", LONG_TAGGING, model, {**WIDE, "dim": 128})
    for model in ["plstm2d", "plstm-graph", "myosotis"]:
        yield Setting("defaults", DECODED, model, {**WIDE, "dim": 128})


def pads():
    """Lengths of their own, empty rows: one label per sequence."""
    for model in TWO_WAYS:
        yield Setting("two ways", PADDED, model, {**SMALL, "bidirectional": "yes"})
    for model in TWO_WAYS[:5]:
        yield Setting("wide, two ways", LONG_PADDED, model, {**WIDE, "dim": 16, "bidirectional": "yes"})
    for model in ["bdlru:blocks=4,m=2", "slice:structure=dense,interval=3,depth=2,dt=0.2", "deltanet:heads=2"]:
        for pool in ("mean", "last"):
            yield Setting(f"pads, {pool}", PADDED, model, {**SMALL, "pool": pool})
    for model in [f"plstm2d:heads=2,{o}" for o in GRIDS] + [f"plstm-graph:heads=2,mode={o}" for o in "PD"] + \
            [f"myosotis:heads=4,{o}" for o in TREES]:
        yield Setting("pads, mean", PADDED, model, SMALL)
    for model in [f"plstm2d:heads=2,{o}" for o in GIVEN_SIDES] + [f"plstm-graph:heads=2,{o}" for o in PADDED_GRAPHS] + \
            [f"myosotis:heads=4,{o}" for o in PADDED_TREES]:
        yield Setting("pads, mean", PADDED, model, SMALL)
    for model in ["plstm2d:heads=4,mode=P", "plstm2d:heads=4,mode=D", f"plstm-graph:heads=4,edges={PADDED_DAG}"]:
        yield Setting("wide, pads", LONG_PADDED, model, WIDE)
    for model in ["plstm2d:heads=2", f"plstm-graph:heads=2,edges={PADDED_DAG}", "myosotis:heads=4"]:
        yield Setting("two ways", PADDED, model, {**SMALL, "bidirectional": "yes"})  # neither has a direction to turn
    for model in ["myosotis:heads=4", "myosotis:heads=4,arity=1"]:
        for pool in ("last", "top"):
            yield Setting(f"pads, {pool}", PADDED, model, {**SMALL, "pool": pool})


def read_outs():
    small = "n_train=40,n_val=20,n_test=20"
    regular = f"max_length=15,eval_min_length=10,eval_max_length=25,{small}"
    single = f"in-context-recall:query=single,length=16,{small}"
    for task in [f"parity:{regular}", f"cycle-navigation:{regular}", f"modular-arithmetic:encoding=xlstm,{regular}",
                 f"even-pairs:encoding=deepmind,{regular}", f"selective-copying:length=20,copy=4,{small}",
                 f"in-context-recall:length=16,{small}", single, f"noisy-recall:length=16,{small}",
                 f"fuzzy-recall:length=24,{small}", f"memorization:vocab=16,length=8,{small}",
                 f"mqar:vocab=32,length=24,pairs=3,{small}", DECODED]:
        for model in ["bdlru:blocks=4,m=2", "deltanet:heads=2"]:
            yield Setting("read-out, one query" if task == single else "read-out", task, model, SMALL)
    yield Setting("read-out", DECODED, "bdlru:blocks=4,m=2", {**SMALL, "bidirectional": "yes", "norm": "layernorm"})


def backbones():
    """At the rate of the others a rounding of the initial weights alone makes 3e-8 of 60 steps of m=2 in xlstm's
    backbone; its rate is 1e-4."""
    for flags in [{"mlp": "gelu"}, {"mlp": "none"}, {"norm": "layernorm"}, {"layers": 3},
                  {"layers": 2, "mlp": "gelu", "norm": "layernorm", "dim": 19}]:
        yield Setting("backbone mad-lm", TAGGING, "bdlru:blocks=4,m=2", {**SMALL, **flags})
    for model in ["mlstm:heads=2", "attention:heads=2"]:
        yield Setting("backbone slice-paper", PADDED, model, {**SMALL, "backbone": "slice-paper", "layers": 2,
                                                              "decay": 0.1})
    for kind in ("xlstm", "slice-paper"):
        for model in ["xlstm:heads=2", "xlstm:heads=2,m=2", "slstm:heads=2", "mlstm:heads=2", "bdlru:blocks=4,m=2"]:
            slow = {"lr": 1e-4} if (kind, model) == ("xlstm", "xlstm:heads=2,m=2") else {}
            yield Setting(f"backbone {kind}", TAGGING, model,
                          {**SMALL, "backbone": kind, "layers": 3, "decay": 0.1, **slow})
    for kind in ("slice", "slice-glu", "stacked", "s5", "slice-paper", "slice-xlstm", "slice-transformer"):
        for model in ["slice:structure=block,penalty=0.01", "lstm", "mamba2:state=4,headdim=8", "bdlru:blocks=4,m=2"]:
            yield Setting(f"backbone {kind}", TAGGING, model, {**SMALL, "backbone": kind, "layers": 2, "decay": 0.1})
        for model in ["lru:state=9", "slice:structure=diagonal-dense,block=5,penalty=0.01"]:
            yield Setting(f"backbone {kind}", PADDED, model,
                          {**SMALL, "backbone": kind, "decay": 0.1, "bidirectional": "yes"})
    for model in ["myosotis:heads=4", "myosotis:heads=4,selective=yes,form=free", "plstm2d:heads=2"]:
        yield Setting("backbone s5", PADDED, model, {**SMALL, "backbone": "s5", "layers": 2, "decay": 0.1})
    for model in ["lru:state=9", "mamba2:state=4,headdim=8", "myosotis:heads=4", "lstm"]:
        yield Setting("backbone s5, ssm_lr", PADDED, model,
                      {**SMALL, "backbone": "s5", "layers": 2, "decay": 0.1, "ssm-lr-factor": 0.25,
                       "schedule": "cosine", "warmup": 10})


def with_edges(model, edges):
    return f"{model}{',' if ':' in model else ':'}edges={edges}"


def graphs():
    """Mixers of graphs, on those of the examples and on those that `edges` names."""
    for model in NEIGHBOURS:
        yield Setting("mixer", DECODED, with_edges(model, DAG), SMALL)
        yield Setting("pads, mean", PADDED, model, SMALL)
        yield Setting("pads, mean", PADDED, with_edges(model, PADDED_DAG), SMALL)
    for model in NEIGHBOURS + [f"plstm-graph:heads=2,{o}" for o in ("mode=P", "mode=D", "mode=P,pnorm=in,node=tail")]:
        yield Setting("molecules", MOLECULES, model, SMALL)
        yield Setting("molecules", MOLECULES, model, {**SMALL, "layers": 2, "degree-code": "yes", "pool": "last"})
    for more, layers in [("mode=PD,direction=both", 4), ("mode=P,direction=back", 1), ("mode=D,direction=back", 1)]:
        yield Setting("molecules", MOLECULES, f"plstm-graph:heads=2,{more}", {**SMALL, "layers": layers})
    for model in ["gcn", "gin:inner=2", "gat:heads=4", "mpnn", "plstm-graph:heads=4", "plstm-graph:heads=4,mode=D"]:
        yield Setting("wide molecules", LONG_MOLECULES, model, WIDE)
    for model in ["gcn", "gin", "gat", "mpnn"]:
        yield Setting("defaults", DECODED, model, {**WIDE, "dim": 128})


def all_to_all():
    """Attention of every token to every other, where sequences fill the graph and where they do not."""
    for name, task in [("mixer", DECODED), ("pads, mean", PADDED)]:
        yield Setting(name, task, "full-attention:heads=2", SMALL)
    for name, task in [("wide", LONG_DECODED), ("wide, pads", LONG_PADDED)]:
        yield Setting(name, task, "full-attention:heads=4", WIDE)
    yield Setting("defaults", DECODED, "full-attention", {**WIDE, "dim": 128})
    for kind in ("s5", "slice-glu"):
        for model in ["full-attention:heads=2", "gat:heads=2", "mpnn"]:
            yield Setting(f"backbone {kind}", PADDED, model, {**SMALL, "backbone": kind, "layers": 2, "decay": 0.1})


def images():
    """pLSTM's nets of images: patches, learned positions, which the larger images of the test resize, corners. At the
    rate of the other wide runs a rounding of the initial weights alone makes 7e-8 of 60 steps of mode=PD; theirs is
    1e-4."""
    for model, flags in ARROW_NETS:
        yield Setting("vision", ARROWS, model, {**VISION, "mlp": "gelu", **flags, "schedule": "cosine", "warmup": 6})
        yield Setting("wide vision", LONG_ARROWS, model.replace("heads=2", "heads=4"),
                      {**VISION, **WIDE, "mlp": "gelu", "dim": 48, "lr": 1e-4, **flags})
    for model in ["plstm2d:heads=2,gates=bias", "plstm2d:heads=2,gates=bias,mode=D", "plstm2d:heads=2",
                  "full-attention:heads=4", "bdlru:blocks=4,m=2"]:
        for mlp in ("gelu", "swiglu"):
            yield Setting("vision", DIGITS, model, {**VISION, "mlp": mlp, "pool": "corners", "positions": "learnt"})
    for model in ["plstm2d:heads=2,mode=PD", "full-attention:heads=2"]:
        for flags in [{"mlp": "none", "pool": "mean"}, {"pool": "last", "norm": "layernorm"}, {"backbone": "mad-lm"},
                      {"backbone": "s5", "positions": "learnt"}, {"backbone": "slice-glu", "pool": "corners"}]:
            yield Setting("images", ARROWS, model, {**VISION, **flags})
    yield Setting("vision", TAGGING, "bdlru:blocks=4,m=2", {**VISION, "mlp": "gelu"})


def clipped_moves():
    """SLiCE's bound on a step's move, where it bends most moves, and none."""
    for o in SLICES:
        yield Setting("clipped moves", TAGGING, f"slice:{o},clip=0.01", SMALL)
        yield Setting("wide, clipped moves", LONG_TAGGING, f"slice:{o},clip=0.01", WIDE)
    for o in ("structure=block,interval=3,depth=2", "structure=dense,interval=3,flow=exp", "structure=block,flow=exp"):
        yield Setting("clipped moves", TAGGING, f"slice:{o},dt=0.2,clip=0.1", SMALL)
    for o in ("structure=block", "structure=hadamard", "structure=dplr,rank=2"):
        yield Setting("clipped moves", TAGGING, f"slice:{o},clip=0", SMALL)


def training():
    cosine = {"schedule": "cosine", "lr-min": 1e-4}
    for flags in [{"clip": 0.3}, {"decay": 0.2}, {"beta1": 0.8, "beta2": 0.95}, cosine, {**cosine, "warmup": 10},
                  {"warmup": 7}, {"schedule": "cosine-epoch", "lr-min": 1e-4},
                  {"schedule": "cosine-epoch", "lr-min": 1e-4, "warmup": 9},
                  {"schedule": "cosine-epoch", "warmup": 9, "warmup-least": 0.5}, {"schedule": "mad-cosine"},
                  {**cosine, "warmup": 10, "clip": 0.3, "decay": 0.2}]:
        yield Setting("training", TAGGING, "bdlru:blocks=4,m=2", {**SMALL, **flags})
    for model in ["mamba2:state=4,headdim=8", "deltaproduct:heads=2,forget=yes", "lru:state=9", "lstm", "mlstm:heads=2",
                  "plstm:heads=2,track=2", "slice:structure=sparse,keep=0.3"]:
        yield Setting("training", TAGGING, model, {**SMALL, "decay": 0.2})
    yield Setting("training", DECODED, "myosotis:heads=4,form=free", {**SMALL, "decay": 0.2})
    for o in SLICES:
        yield Setting("penalty", TAGGING, f"slice:{o},penalty=0.1",
                      {**SMALL, "backbone": "slice-paper", "layers": 2, "decay": 0.01, "clip": 0.5})
    for model in ["bdlru:blocks=4,m=2", "slice:structure=block,penalty=0.01"]:
        yield Setting("extra strings", TAGGING + ",extra_length=3", model,
                      {**SMALL, "batch": 35, "backbone": "slice-paper"})


def settings():
    for family in (mixers, wide, kernels, defaults, pads, read_outs, backbones, training, graphs, all_to_all, images,
                   clipped_moves):
        yield from family()

"""lrnn.load and lrnn.save beside the program, for every mixer, backbone and read-out; needs PyTorch and ./lrnn-f64.

    tests/library/check_net.py LRNN-F64 [PATTERN] [--all]

Of each net: the program draws its weights, lrnn.save writes them with noise added, `lrnn import` scores that file, and
the net that lrnn.load makes of it must have the same losses on validation and test (1e-9), and the logits of the plain
PyTorch net of tests/peers/naive (1e-9). Nets are those of naive/settings.py: one per mixer and backbone; --all: each;
PATTERN: those whose name matches. Each mixer and each backbone of the program must be among them. Then 200 steps of
training in PyTorch must end at the loss of the program's, to 1e-4, layers must start as the program's mixers do, and
mixers that sum over tokens must have in float32 what they have in float64, to 1e-5 on 20 000 tokens.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
from functools import partial

import torch
import torch.nn.functional as F

import lrnn
import lrnn.torch
from lrnn.mixers.parts import Mixer, option
from lrnn.net import Net

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "peers"))
from naive.net import Net as Naive  # noqa: E402
from naive.program import NET_FLAGS, Refused, Run, call, export, json_lines, moved, train  # noqa: E402
from naive.settings import ARROWS, PADDED, Setting, settings  # noqa: E402
from naive.training import Batch  # noqa: E402

BOUND = 1e-9
FLOAT_BOUND = 1e-5  # some roundings of float32; sums over tokens in float32 make 1e-4
TASK = "word-problem:group=s3,length=12,n_train=40,n_val=20,n_test=20"
MORE = [  # which the peers' list lacks: (task, model, flags)
    (TASK, "hgrn2:heads=2", {"dim": 16, "layers": 3}),
    (TASK, "rwkv7:heads=2", {"dim": 16, "layers": 3}),
    (PADDED, "rwkv7:heads=2,vmix=yes", {"dim": 16, "layers": 2, "bidirectional": "yes"}),
    (TASK, "slice:structure=block,table=yes", {"dim": 16, "backbone": "slice"}),
    (TASK, "bdlru:blocks=4,m=2", {"dim": 16, "layer-scale": 0.5}),
    (PADDED, "myosotis:heads=2,block=2,rhs=2", {"dim": 16}),
    (PADDED, "myosotis:heads=3", {"dim": 16, "pool": "top", "top-levels": 2}),
    (ARROWS, "bdlru:blocks=4,m=2", {"dim": 16, "backbone": "vision", "layers": 1, "encoder": "linear"}),
]


def has_naive(config):
    """Whether the peers have the net: not a tree's levels, a mixer that reads another layer's values, or an encoder
    without bias."""
    alone = config["model"] != "rwkv7" or config["layers"] == "1"
    return alone and config.get("top-levels", "1") == "1" and config.get("encoder", "affine") == "affine"


def chosen(every):
    """Yields the nets to compare: all that differ by more than training, or the first of each mixer and backbone."""
    seen = set()
    for task, model, flags in ((s.task, s.model, s.flags) for s in settings()):
        net = {key: value for key, value in flags.items() if key in NET_FLAGS}
        names = [(task, model, tuple(sorted(net.items())))]
        if not every:
            names = [
                ("mixer", re.split("[:,]", model)[0], "depth=2" in model, "track" in model),
                ("backbone", net.get("backbone"), net.get("mlp"), net.get("norm")),
                ("read-out", task.split(":")[0], net.get("pool"), net.get("positions"), net.get("bidirectional")),
            ]
        if not all(name in seen for name in names):
            yield task, model, net
        seen.update(names)
    yield from MORE


def label_of(task, model, net):
    flags = " ".join(f"--{k} {v}" for k, v in net.items() if k not in ("dim", "batch"))
    return f"{task.split(':')[0]} {model} {flags}".rstrip()


def finite(error):
    """The error, inf where it is NaN: max() would pass over NaN."""
    return error if error == error else float("inf")


def losses(net, program, config, split, rows, length, per_sequence):
    """Mean loss over scored targets, and the largest difference of logits from the naive net."""
    total, scored, worst = 0.0, 0, 0.0
    naive = Naive({k: v for k, v in config.items()}, dict(net.state_dict()))
    naive.training = False
    size = int(config["batch"])
    for first in range(0, len(rows), size):
        batch = Batch(rows[first : first + size], size, length, per_sequence)
        with torch.no_grad():
            logits = net(batch.input, batch.lengths, batch.edges)
            if has_naive(config):
                other = naive.logits(batch, per_sequence)
                seen = logits if per_sequence else logits * (torch.arange(length) < batch.lengths[:, None])[..., None]
                other = other if per_sequence else other * (torch.arange(length) < batch.lengths[:, None])[..., None]
                rows_in_use = batch.lengths > 0
                worst = max(worst, finite(float((seen - other)[rows_in_use].abs().max() / (1 + other.abs().max()))))
        targets = batch.targets.flatten()
        count = int((targets != -100).sum())
        total += float(F.cross_entropy(logits.flatten(0, -2), targets, ignore_index=-100, reduction="sum"))
        scored += count
    return total / scored, worst


def compare(program, task, model, flags):
    """The largest error of losses, and of logits."""
    with tempfile.TemporaryDirectory() as folder:
        drawn, start = f"{folder}/drawn", f"{folder}/start"
        record = train(program, Setting("", task, model, flags), folder, steps=1, **{"eval-every": 1})
        tensors, _ = export(program, record, folder, drawn, "--initial")
        per_sequence = not isinstance(json.loads(call(program, "data", "show", task))["target"], list)
        net = lrnn.load(drawn)
        assert net.state_dict().keys() == tensors.keys()
        lrnn.save(net, start, moved(tensors, 1))
        told = json.loads(call(program, "import", start, "--json"))
        net = lrnn.load(start).eval()
        config = dict(line.split("=", 1) for line in record["config"].splitlines())
        errors, worst = [], 0.0
        for split in ("val", "test"):
            count = record["run"][f"n_{split}"]
            rows = json_lines(
                call(program, "data", "show", task, "--seed", config["seed"], "--split", split, "--count", count)
            )
            length = record["run"]["len_test"]
            loss, off = losses(net, program, config, split, rows, length, per_sequence)
            errors.append(finite(abs(loss - told[f"{split}_loss"]) / abs(told[f"{split}_loss"])))
            worst = max(worst, off)
        return max(errors), worst


def uncovered(program, nets):
    """Mixers and backbones that the program has and none of the nets."""
    mixers = {line.split()[0] for line in call(program, "list", "models").splitlines() if line.strip()}
    page = call(program, "man").replace("\\-", "-")
    backbones = set(re.search(r"net around the mixer \(([^)]*)\)", page)[1].split())
    found = {re.split("[:,]", model)[0] for _, model, _ in nets}
    return sorted(mixers - found) + sorted(backbones - {net.get("backbone", "mad-lm") for _, _, net in nets})


FAMILIES = ("bdlru:blocks=4,m=2", "hlru:channels=6,m=3", "plstm:heads=2,track=2", "slice", "myosotis:heads=4")
WIDE = 64
LAYERS = {
    "bdlru:blocks=16,m=3": lambda: lrnn.torch.BDLRU(WIDE, blocks=16, m=3),
    "bdlru:blocks=16,m=3,selective=no": lambda: lrnn.torch.BDLRU(WIDE, blocks=16, m=3, selective=False),
    "hlru:channels=24,m=3": lambda: lrnn.torch.HLRU(WIDE, channels=24, m=3),
    "hlru:channels=24,m=2,selective=pointwise": lambda: lrnn.torch.HLRU(WIDE, channels=24, m=2, selective="pointwise"),
    "plstm:heads=4": lambda: lrnn.torch.PLSTM(WIDE, heads=4),
    "plstm:heads=4,track=3": lambda: lrnn.torch.PLSTM(WIDE, heads=4, track=3),
    **{
        f"slice:structure={name}": partial(lrnn.torch.SLiCE, WIDE, structure=name)
        for name in ("diagonal", "block", "dense", "dplr", "hadamard", "sparse", "diagonal-dense")
    },
    "myosotis:heads=16,levels=6": lambda: lrnn.torch.Myosotis(WIDE, heads=16, levels=6),
    "myosotis:heads=16,levels=6,selective=yes": lambda: lrnn.torch.Myosotis(WIDE, heads=16, levels=6, selective=True),
    "myosotis:heads=6,levels=6,blocks=2,block=3,rhs=2": lambda: lrnn.torch.Myosotis(
        WIDE, heads=6, levels=6, blocks=2, block=3, rhs=2
    ),
}


def trained_apart(program, model):
    """The losses of step 200 of the program and of PyTorch, from the same weights on the same batches."""
    flags = {"dim": 16, "batch": 16, "lr": 0.002, "decay": 0.1, "steps": 200, "eval-every": 200}
    run = Run(program, Setting("", PADDED, model, flags))
    config = {key: option(value) for key, value in run.config.items()}
    net = Net(config, run.initial, "sequence", {})
    decay = config["decay"]
    optimiser = torch.optim.AdamW(
        net.parameters(), lr=config["lr"], betas=(config["beta1"], config["beta2"]), weight_decay=decay
    )
    free = [p for name, p in net.named_parameters() if name == "nodes"]  # which the program never decays
    for number in range(run.steps):
        batch = run.batch_of(number)
        used = batch.lengths > 0
        loss = F.cross_entropy(net(batch.input, batch.lengths)[used], batch.targets[used])
        optimiser.zero_grad()
        (loss + net.penalty()).backward()
        if config["clip"]:
            torch.nn.utils.clip_grad_norm_(net.parameters(), config["clip"])
        with torch.no_grad():
            for p in free:
                p.div_(1 - config["lr"] * decay)
        optimiser.step()
    return run.log[-1]["loss"], loss.item()


def start_faults(program, model, layer):
    """Differences of a layer's parameters from the program's at the start: names, shapes, constants, moments."""
    with tempfile.TemporaryDirectory() as folder:
        record = train(program, Setting("", PADDED, model, {"dim": WIDE}), folder, steps=1, **{"eval-every": 1})
        tensors, _ = export(program, record, folder, f"{folder}/drawn", "--initial")
    mixer = "layers.0.mixer."
    theirs = {name[len(mixer) :]: t for name, t in tensors.items() if name.startswith(mixer)}
    ours = layer.state_dict()
    if theirs.keys() != ours.keys():
        return [f"has {sorted(ours)}, expected {sorted(theirs)}"]
    found = []
    for name, t in theirs.items():
        drawn, n = ours[name], t.numel()
        if drawn.shape != t.shape:
            found.append(f"{name} is {tuple(drawn.shape)}, expected {tuple(t.shape)}")
        elif n == 1 or t.std() <= 1e-6 * t.abs().max():  # a constant, which float32 may have rounded
            found += [f"{name} is another constant"] * (not torch.allclose(drawn, t, rtol=1e-6, atol=1e-12))
        else:  # five standard errors of the difference of two draws
            sd, off = float(t.std()), abs(float(drawn.mean() - t.mean()))
            if off > 5 * sd * (2 / n) ** 0.5 or abs(float(drawn.std()) / sd - 1) > 5 / n**0.5:
                found.append(f"{name} has {float(drawn.mean()):.3g} +- {float(drawn.std()):.3g}, "
                             f"expected {float(t.mean()):.3g} +- {sd:.3g}")
    return found


LONG = {  # a parameter, and values by which what is summed over tokens grows
    "mamba3:state=8,headdim=8": ("dt.bias", 2.0),
    "mlstm:heads=2": ("gates.bias", [200.0, 200.0, 6.0, 6.0]),
}


def float_error(program, model, length=20000):
    """The largest error of a mixer in float32 on a long sequence, over its largest output in float64."""
    with tempfile.TemporaryDirectory() as folder:
        record = train(program, Setting("", TASK, model, {"dim": 16}), folder, steps=1, **{"eval-every": 1})
        export(program, record, folder, f"{folder}/drawn", "--initial")
        net = lrnn.load(f"{folder}/drawn").eval()
    mixer = next(part for part in net.modules() if isinstance(part, Mixer))
    x = 1 + torch.randn(1, length, 16, generator=torch.Generator().manual_seed(1))
    x = x.float().double()
    name, value = LONG[model]
    with torch.no_grad():
        mixer.get_parameter(name).copy_(torch.tensor(value))
        mixer.float().double()  # the same weights in both
        y, rough = mixer(x), mixer.float()(x.float())
    return finite(float((rough - y).abs().max() / y.abs().max()))


def main():
    program, every = sys.argv[1], "--all" in sys.argv
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    failed = count = 0
    largest = 0.0
    absent = uncovered(program, list(chosen(every)))
    if absent:
        print(f"FAILED: no net has {', '.join(absent)}")
        failed += 1
    only = next((word for word in sys.argv[2:] if not word.startswith("--")), "")
    for task, model, flags in chosen(every):
        label = label_of(task, model, flags)
        if not re.search(only, label):
            continue
        count += 1
        try:
            loss, logits = compare(program, task, model, flags)
        except (
            Refused,
            lrnn.LrnnError,
            RuntimeError,
            AttributeError,
            KeyError,
            TypeError,
            ValueError,
            IndexError,
        ) as error:
            if "-v" in sys.argv:
                raise
            print(f"FAILED {label}: {type(error).__name__} {error}")
            failed += 1
            continue
        largest = max(largest, loss, logits)
        if not max(loss, logits) < BOUND:
            failed += 1
            print(f"FAILED {label}: losses differ by {loss:.1e}, logits by {logits:.1e}")
    for model in FAMILIES if not only else ():
        ours, theirs = trained_apart(program, model)
        print(f"200 steps of {model}: loss {ours:.6f}, in PyTorch {theirs - ours:+.1e}")
        failed += not abs(ours - theirs) < 1e-4
    torch.manual_seed(0)
    for model, layer in LAYERS.items() if not only else ():
        faults = start_faults(program, model, layer())
        print(f"{model} starts as the program's" if not faults else f"FAILED {model}: {'; '.join(faults)}")
        failed += bool(faults)
    for model in LONG if not only else ():
        error = float_error(program, model)
        print(f"{model} in float32 on 20000 tokens is off by {error:.1e}")
        failed += not error < FLOAT_BOUND
    print(f"{count} nets, {failed} failed; the largest difference is {largest:.1e}")
    sys.exit(failed > 0)


main()

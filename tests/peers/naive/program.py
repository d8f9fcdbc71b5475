"""program.py - what `lrnn` says of a run: its configuration, data, weights, steps and scores."""
import csv
import importlib.util
import json
import subprocess
import tempfile
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from .training import Batch, trained

_spec = importlib.util.spec_from_file_location("records", Path(__file__).resolve().parents[3] / "tools" / "lrnn.py")
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
records = _module.records

STEPS, EVAL_EVERY = 60, 20
ALWAYS = {"steps": STEPS, "eval-every": EVAL_EVERY, "stop-at": 2, "threads": 1, "quiet": "yes"}
NET_FLAGS = ("dim", "layers", "mlp", "norm", "backbone", "dropout", "pool", "bidirectional", "ssm-lr-factor",
             "batch", "positions", "degree-code", "layer-scale")
NOISE = 0.1  # sd of what is added to the initial weights, many being 0 or alike; of matrices: / sqrt(columns / 8)


class Refused(Exception):
    """The program did not do what was asked; the text is its own."""


def call(program, *words):
    words = [str(word) for word in words]
    done = subprocess.run([program, *words], capture_output=True, text=True)
    if done.returncode:
        raise Refused(f"lrnn {' '.join(words)}: {done.stderr.strip() or f'exit {done.returncode}'}")
    return done.stdout


def json_lines(text):
    return [json.loads(line) for line in text.splitlines()]


def read_weights(path):
    with safe_open(path, "pt") as f:
        return {name: f.get_tensor(name) for name in f.keys()}, f.metadata()


def train(program, setting, out, **more):
    """The run's record."""
    flags = {**ALWAYS, **setting.flags, **more, "out": out}
    words = [word for key, value in flags.items() for word in (f"--{key}", value)]
    call(program, "train", setting.task, setting.model, *words)
    (record,) = records(out)
    return record


def export(program, record, out, path, which):
    call(program, "export", record["run"]["run_id"], path, "--out", out, which)
    return read_weights(path)


def moved(weights, seed):
    """The weights with noise on those that are trained."""
    g = torch.Generator().manual_seed(seed)

    def noise(w):
        sd = NOISE if w.ndim == 1 else NOISE / (w.shape[-1] / 8) ** 0.5
        return sd * torch.randn(w.shape, generator=g, dtype=w.dtype)

    return {name: w + noise(w) if trained(name) else w for name, w in weights.items()}


class Run:
    """One finished run of the program, from noisy initial weights, and all that is needed to do it again."""

    def __init__(self, program, setting):
        self.program, self.setting = program, setting
        self.steps = int(setting.flags.get("steps", STEPS))
        self.eval_every = int(setting.flags.get("eval-every", EVAL_EVERY))
        with tempfile.TemporaryDirectory() as folder:
            drawn, start, last, log = (f"{folder}/{name}" for name in ("drawn", "start", "last", "log.csv"))
            first = train(program, setting, f"{folder}/first", steps=1)
            initial, metadata = export(program, first, f"{folder}/first", drawn, "--initial")
            self.initial = moved(initial, 1)
            save_file(self.initial, start, metadata)
            self.record = train(program, setting, f"{folder}/run",
                                **{"from": start, "keep-weights": "all", "log-steps": log})
            self.final, _ = export(program, self.record, f"{folder}/run", last, "--last")
            with open(log, newline="") as f:
                self.log = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(f)]
        self.config = dict(line.split("=", 1) for line in self.record["config"].splitlines())
        self.read_groups()
        self.read_data()

    def read_groups(self):
        """Facts of `lrnn info` on each trained parameter: whether it decays, and its part of the rate."""
        flags = {key: value for key, value in self.setting.flags.items() if key in NET_FLAGS}
        words = [word for key, value in flags.items() for word in (f"--{key}", value)]
        info = json.loads(call(self.program, "info", self.setting.model, "--task", self.setting.task, "--json", *words))
        self.groups = {p["name"]: (p["decay"], p["rate"]) for p in info["params"] if p["group"] != "const"}

    def expect_group(self, name, decays, factor):
        if self.groups.get(name) != (decays, factor):
            raise Refused(f"lrnn info: {name} has decay and rate {self.groups.get(name)}, expected {(decays, factor)}")

    def read_data(self):
        row = self.record["run"]
        self.metric = row["metric"]
        self.batch = int(self.config["batch"])
        self.T = {"train": row["len_train"], "val": row["len_test"], "test": row["len_test"]}
        sizes = {"train": row["n_train"], "val": row["n_val"], "test": row["n_test"]}
        self.steps_per_epoch = -(-sizes["train"] // self.batch)
        self.examples = {split: json_lines(self.show("--split", split, "--count", n)) for split, n in sizes.items()}
        self.per_sequence = not isinstance(self.examples["train"][0]["target"], list)
        epochs = -(-self.steps // self.steps_per_epoch)
        self.step_indices = [row for epoch in range(epochs) for row in self.order_of(epoch)]
        extra = [index for row in self.step_indices for index in row.get("extra", [])]
        if extra:
            self.examples["extra"] = json_lines(self.show("--split", "extra", "--count", max(extra) + 1))

    def show(self, *flags):
        return call(self.program, "data", "show", self.setting.task, "--seed", self.config["seed"], *flags)

    def order_of(self, epoch):
        """The examples of each step of an epoch; a whole epoch has every example once."""
        steps = json_lines(self.show("--order", epoch, "--batch", self.batch, "--steps", self.steps))
        seen = sorted(index for row in steps for index in row["indices"])
        if len(steps) == self.steps_per_epoch and seen != list(range(len(self.examples["train"]))):
            raise Refused(f"data show --order {epoch}: not every example once")
        return steps

    def batch_of(self, step):
        examples = [self.examples["train"][i] for i in self.step_indices[step]["indices"]]
        return Batch(examples, self.batch, self.T["train"], self.per_sequence)

    def extra_batch_of(self, step):
        """Shorter strings that the task adds to each step, or None."""
        indices = self.step_indices[step].get("extra")
        if not indices:
            return None
        T = int(self.config["task.extra_length"])
        return Batch([self.examples["extra"][i] for i in indices], len(indices), T, False)

    def evaluation(self, split):
        rows = self.examples[split]
        for first in range(0, len(rows), self.batch):
            yield Batch(rows[first:first + self.batch], self.batch, self.T[split], self.per_sequence)

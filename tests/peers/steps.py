#!/usr/bin/env python3
"""steps.py - whole training steps in PyTorch beside ours, in one run: of nets, and of single layers with little around.

    python3 tests/peers/steps.py --out results/baseline/peers.csv
    python3 tests/peers/steps.py --only 'layer.*lstm' --peers 'eager' --rounds 3 --out peers.csv

Needs PyTorch 2, numpy and safetensors, and a built ./lrnn; the project itself needs none of the three.

    step     a net as it is trained: embedding, layers of mixer and MLP, head, loss, gradients, clipping, AdamW
    layer    the same of one layer without an MLP, batch 32, width 128: what is not the mixer is little

Peers: eager, compiled, and compiled with autocast to bf16. A mixer is what a user of PyTorch would write: its library's
LSTM and attention, Mamba2 and DeltaNet as products of matrices over the whole (short) sequence, the others as loops
over time (naive/), which torch.compile unrolls. AdamW is the fused one. Each peer first trains the program's own
weights on the program's own batches: the largest relative error of the losses of three steps is its `error`, and one
above the bound is a row that says so and has no time. Then ours in fp32, ours in bf16 and the peers take turns, round
after round; numbers are medians. With one thread they count the time that the process ran, as `lrnn perf` does, else
that of the clock. `foreign` is the share of the cores that other processes used meanwhile.
"""
import argparse
import json
import math
import re
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F

from naive import mixers
from naive.matrix_state import conv_projection
from naive.parts import causal_conv, heads_of, l2norm, rmsnorm, silu
from naive.program import Refused, Run
from naive.settings import Setting
from naive.training import IGNORED, Training, rate
from naive.vector import turned
from rows import write_rows

ROOT = Path(__file__).resolve().parents[2]
STEPS = 3  # that are compared
BOUNDS = {"eager": 1e-4, "compiled": 1e-4, "compiled bf16": 2e-2}
OURS_BF16 = "ours in bf16"
VOCABULARY = 120


# --- mixers as users of PyTorch have them -----------------------------------------------------------------------------

def library_lstm(x, p, o):
    H = p["wh"].shape[1]
    start = x.new_zeros(1, x.shape[0], H)
    y = torch.lstm(x, (start, start), [p["wx"], p["wh"], p["bx"], p["bh"]], True, 1, 0.0, True, False, True)[0]
    return y @ p["out.weight"].T if "out.weight" in p else y


def library_attention(x, p, o):
    q, k, v = (heads_of(part, int(o["heads"])) for part in (x @ p["qkv.weight"].T).chunk(3, -1))
    q, k, v = (part.to(v.dtype).transpose(1, 2) for part in (turned(q), turned(k), v))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return y.transpose(1, 2).flatten(2) @ p["out.weight"].T


def chunk_mamba2(u, p, o):
    """Without h: y_t = sum over s <= t of exp(sum of log decays in (s,t]) (c_t.b_s) delta_s x_s."""
    S, n = int(o["state"]), p["A.log"].shape[0]
    I, T = int(o["expand"]) * u.shape[-1], u.shape[1]
    z, xbc, dt = (u @ p["in.weight"].T).split([I, I + 2 * S, n], -1)
    x, b, c = silu(causal_conv(xbc, p["conv.weight"], p["conv.bias"])).split([I, S, S], -1)
    x = heads_of(x, n)
    delta = F.softplus(dt + p["dt.bias"])
    log = torch.cumsum(-delta.float() * torch.exp(p["A.log"]), 1)
    later = torch.ones(T, T, dtype=torch.bool).triu(1)[None, :, :, None]
    decay = torch.exp((log[:, :, None] - log[:, None]).masked_fill(later, -torch.inf))
    pairs = decay * (c @ b.mT)[..., None]
    y = torch.einsum("btsn,bsnd->btnd", pairs.to(x.dtype), delta.to(x.dtype)[..., None] * x) + p["skip"][:, None] * x
    return rmsnorm(y.flatten(2) * silu(z), p["norm.weight"]) @ p["out.weight"].T


def chunk_deltanet(x, p, o):
    """One chunk: (I + L) U = beta V, L the strictly lower part of beta K K^T; y = tril(Q K^T) U / sqrt(dk)."""
    H = int(o["heads"])
    q, k = (l2norm(heads_of(conv_projection(x, p, name), H)).transpose(1, 2) for name in "qk")
    v = heads_of(conv_projection(x, p, "v"), H).transpose(1, 2)
    beta = (float(o["beta"]) * torch.sigmoid(x @ p["beta.weight"].T)).transpose(1, 2)[..., None]
    lower = (beta * (k @ k.mT)).float().tril(-1)
    U = torch.linalg.solve_triangular(lower, (beta * v).float(), upper=False, unitriangular=True)
    y = ((q @ k.mT).float().tril() @ U).transpose(1, 2) / q.shape[-1] ** 0.5
    return rmsnorm(y, p["norm.weight"]).flatten(2) @ p["out.weight"].T


mixers.MIXERS.update({"lstm": library_lstm, "attention": library_attention, "mamba2": chunk_mamba2,
                      "deltanet": chunk_deltanet})


# --- what is measured -------------------------------------------------------------------------------------------------

def net(model, T, B, **flags):
    """A setting; its task has tokens of as many kinds as perf's, and the batches to compare on."""
    task = f"word-problem:group=s5,length={T},n_train={STEPS * B},n_val=8,n_test=8"
    return Setting("", task, model, {"batch": B, "steps": STEPS, "eval-every": STEPS, **flags}), T


def settings(toy):
    """By name."""
    if toy:
        return {("step", "bdlru m=2 D=8 N=4 L=1 B=4 T=4"): net("bdlru:m=2,blocks=4", 4, 4, dim=8, layers=1, mlp="gelu")}
    found = {}
    for m, D, N, L, T in ((5, 64, 16, 1, 16), (5, 128, 64, 1, 16), (5, 256, 64, 2, 16), (1, 128, 128, 1, 64)):
        found["step", f"bdlru m={m} D={D} N={N} L={L} B=128 T={T}"] = \
            net(f"bdlru:m={m},blocks={N}", T, 128, dim=D, layers=L, mlp="gelu")
    layers = [(model, 64) for model in ("lstm", "attention", "bdlru:m=5", "hlru:m=5", "lru", "mamba2", "deltanet")]
    layers = [(model, 32, T) for model, T in layers + [("lstm", 512), ("attention", 512)]]
    newer = ("gated-deltanet", "kda", "gdn2", "rwkv7", "gla", "hgrn2", "mamba3", "slstm", "pdssm", "s5", "linoss",
             "aussm", "rglru", "mingru")
    layers += [(model, 2048 // T, T) for T in (64, 512) for model in newer]  # a loop keeps every state: 2048 tokens
    for model, B, T in layers:
        found["layer", f"{model.replace(':', ' ')} D=128 B={B} T={T}"] = net(model, T, B, dim=128, layers=1, mlp="none")
    return found


def clock(threads):
    return time.process_time() if threads == 1 else time.perf_counter()


class Ours:
    """Milliseconds of `lrnn perf step`."""

    def __init__(self, args, setting, T, precision):
        flags = {key: value for key, value in setting.flags.items() if key not in ("steps", "eval-every")}
        flags |= {"length": T, "vocab": VOCABULARY, "steps": args.steps, "threads": args.threads,
                  "precision": precision}
        self.line = [args.lrnn, "perf", "step", setting.model, "--json"]
        self.line += [str(word) for key, value in flags.items() for word in (f"--{key}", value)]
        self.times, self.foreign = [], 0.0

    def turn(self):
        printed = json.loads(subprocess.run(self.line, check=True, capture_output=True, text=True).stdout)
        self.times.append(printed["step_ms_med"] * 1e3)
        self.foreign = max(self.foreign, printed["noise"])


class Peer:
    """The steps of a run in PyTorch."""

    def __init__(self, args, run, compiled, half):
        self.args, self.run, self.half, self.times = args, run, half, []
        self.training = Training(run)
        self.weights = [w for w in self.training.weights.values() if w.requires_grad]
        groups = [{key: group[key] for key in ("params", "weight_decay", "factor")}
                  for group in self.training.optimiser.param_groups]
        betas = float(run.config["beta1"]), float(run.config["beta2"])
        self.optimiser = torch.optim.AdamW(groups, betas=betas, eps=1e-8, fused=True)
        self.loss_of = torch.compile(self.loss) if compiled else self.loss
        self.batches = [run.batch_of(number) for number in range(STEPS)]

    def loss(self, batch):
        logits = self.training.net.logits(batch, False)
        return F.cross_entropy(logits.flatten(0, 1).float(), batch.targets.flatten(), ignore_index=IGNORED)

    def step(self, number):
        batch = self.batches[number]
        lr = rate(self.run.config, number, STEPS, self.run.steps_per_epoch)
        for group in self.optimiser.param_groups:
            group["lr"] = lr * group["factor"]
        self.optimiser.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.half):
            loss = self.loss_of(batch)
        loss.backward()
        clip = float(self.run.config["clip"])
        torch.nn.utils.clip_grad_norm_(self.weights, clip or math.inf)
        self.optimiser.step()
        return loss.item()

    def error(self):
        """The largest error of the losses of the first steps, which also compile what is compiled."""
        pairs = [(self.step(number), self.run.log[number]["loss"]) for number in range(STEPS)]
        return max(abs(got - want) / abs(want) for got, want in pairs)

    def turn(self):
        for _ in range(self.args.steps):
            start = clock(self.args.threads)
            self.step(0)
            self.times.append((clock(self.args.threads) - start) * 1e6)


# --- measuring --------------------------------------------------------------------------------------------------------

class TooLong(BaseException):
    """No Exception, which a compiler might take for one of its own and go on."""


def alarm(_signal, _frame):
    raise TooLong()


def prepared(args, run, name):
    """A peer that has shown equal losses, or None; and its row so far."""
    torch.compiler.reset()
    signal.alarm(args.compile_seconds)
    try:
        peer = Peer(args, run, name != "eager", name == "compiled bf16")
        error = peer.error()
        status = "ok" if error <= BOUNDS[name] else f"its losses differ by {error:.2g}"
    except TooLong:
        did = "no three steps" if name == "eager" else "not compiled"
        error, status = None, f"{did} within {args.compile_seconds} s"
    except Exception as e:  # the row says what the peer cannot do
        error, status = None, " ".join(f"{type(e).__name__}: {e}".replace(",", ";").split())[:160]
    signal.alarm(0)
    row = {"peer": name, "status": status} | ({} if error is None else {"error": f"{error:.3g}"})
    print(f"    {name}: {status}, error {error}", file=sys.stderr, flush=True)
    return (peer if status == "ok" else None), row


def numbers(times, ours):
    return {"samples": len(times), "median_us": f"{statistics.median(times):.6g}", "best_us": f"{min(times):.6g}",
            "times_ours": f"{statistics.median(times) / ours:.3g}"}


def rows_of(args, setting, T):
    run = Run(args.lrnn, setting)
    found = [prepared(args, run, name) for name in BOUNDS if re.fullmatch(args.peers, name)]
    ours, half = Ours(args, setting, T, "fp32"), Ours(args, setting, T, "bf16")
    for _ in range(args.rounds):
        for side in [ours, half] + [peer for peer, _ in found if peer]:
            side.turn()
    median = statistics.median(ours.times)
    rows = [row | (numbers(peer.times, median) if peer else {}) for peer, row in found]
    rows.append({"peer": OURS_BF16, "status": "ok", **numbers(half.times, median)})
    common = {"ours_us": f"{median:.6g}", "foreign": f"{max(ours.foreign, half.foreign):.2g}"}
    return [row | common for row in rows]


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--threads", type=int, default=1, help="CPU threads of both sides")
    p.add_argument("--rounds", type=int, default=7, help="turns of each side")
    p.add_argument("--steps", type=int, default=5, help="steps of a turn")
    p.add_argument("--compile-seconds", type=int, default=240, help="time for a peer's first steps")
    p.add_argument("--only", default="", metavar="PATTERN", help="a regular expression on op and shape")
    p.add_argument("--peers", default=".*", metavar="PATTERN", help="the same on the names of peers, as a whole")
    p.add_argument("--toy", action="store_true", help="one tiny net: a test of this script")
    p.add_argument("--lrnn", default=str(ROOT / "lrnn"))
    p.add_argument("--out", required=True, help="the CSV file; rows of other ops, shapes and threads stay in it")
    args = p.parse_args()
    torch.set_num_threads(args.threads)
    signal.signal(signal.SIGALRM, alarm)
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True).stdout.strip()
    common = {"commit": commit, "device": "cpu", "torch": torch.__version__, "threads": args.threads}
    for (op, shape), (setting, T) in settings(args.toy).items():
        if not re.search(args.only, f"{op} {shape}"):
            continue
        print(f"{op} {shape}", file=sys.stderr, flush=True)
        try:
            rows = rows_of(args, setting, T)
        except Refused as e:
            sys.exit(f"steps.py: {e}")
        for row in rows:
            print(f"    {row}", file=sys.stderr, flush=True)
        write_rows(args.out, [common | {"op": op, "shape": shape} | row for row in rows])


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""recurrences.py - the same recurrences in PyTorch, beside ours, in one run: forward and gradients.

    python3 tests/peers/recurrences.py --device cpu --threads 1 --out results/baseline/peers.csv
    python3 tests/peers/recurrences.py --device cuda --out results/device/peers.csv

Needs PyTorch 2.9 or newer and a built ./lrnn; the project itself needs neither Python nor PyTorch.

    diag    h_t = a_t h_{t-1} + v_t                                            (our op scan_diag)
    block   a_t = softmax of each row of z_t;  h_t[i] = sum_j a_t[i][j] h_{t-1}[j] + a_t[i][m] v_t[i]    (scan_block)

Peers: a loop over time (eager), the same loop compiled, and torch's associative scan (pairs of a matrix and a vector;
for `diag` pairs of numbers), compiled. Each is first held against the loop in float64: largest error of outputs and
gradients relative to the largest magnitude. A peer that cannot run is a row that says why. Our kernel is timed before
and after the peers of its shape, on a device before and after those of all shapes, and the faster of its two medians
stands in their rows.
"""
import argparse
import csv
import functools
import io
import json
import signal
import statistics
import subprocess
import sys
import time

import torch
from torch._higher_order_ops.associative_scan import associative_scan

from rows import write_rows

SHAPES = {
    "cpu": [("block", 128, 16, 64, 5), ("block", 128, 128, 64, 5), ("diag", 128, 16, 256, 1),
            ("diag", 128, 128, 256, 1)],
    "cuda": [("block", 128, 16, 64, 5), ("diag", 128, 16, 256, 1), ("block", 128, 128, 64, 5),
             ("diag", 128, 128, 256, 1), ("block", 128, 1024, 64, 5), ("diag", 128, 1024, 256, 1)],
}


# --- the recurrences --------------------------------------------------------------------------------------------------

def block_gates(z):
    """z (B,T,N,m,m+1) -> the transition (B,T,N,m,m) and the input's gate (B,T,N,m)."""
    a = torch.softmax(z, -1)
    return a[..., :-1], a[..., -1]


def block_loop(z, v):
    a, g = block_gates(z)
    x = g * v
    h, out = torch.zeros_like(v[:, 0]), []
    for a_t, x_t in zip(a.unbind(1), x.unbind(1)):
        h = (a_t * h.unsqueeze(-2)).sum(-1) + x_t
        out.append(h)
    return torch.stack(out, 1)


def block_scan(z, v):
    a, g = block_gates(z)

    def combine(left, right):
        return right[0] @ left[0], (right[0] @ left[1].unsqueeze(-1)).squeeze(-1) + right[1]

    return associative_scan(combine, (a.contiguous(), g * v), 1, combine_mode="generic")[1]


def diag_loop(a, v):
    h, out = torch.zeros_like(v[:, 0]), []
    for a_t, v_t in zip(a.unbind(1), v.unbind(1)):
        h = a_t * h + v_t
        out.append(h)
    return torch.stack(out, 1)


def diag_scan(a, v):
    def combine(left, right):
        return right[0] * left[0], right[0] * left[1] + right[1]

    mode = "pointwise" if v.is_cuda else "generic"
    return associative_scan(combine, (a, v), 1, combine_mode=mode)[1]


def inputs(op, B, T, N, m, device):
    """The two inputs in float64 and the gradient that flows into the output."""
    r = torch.Generator().manual_seed(1)
    if op == "block":
        first = torch.randn(B, T, N, m, m + 1, generator=r, dtype=torch.float64)
        second = torch.randn(B, T, N, m, generator=r, dtype=torch.float64)
    else:
        first = torch.rand(B, T, N, generator=r, dtype=torch.float64)
        second = torch.randn(B, T, N, generator=r, dtype=torch.float64)
    dh = torch.randn(second.shape, generator=r, dtype=torch.float64)
    return [t.to(device) for t in (first, second, dh)]


def peers_of(op):
    loop, scan = (block_loop, block_scan) if op == "block" else (diag_loop, diag_scan)
    return [("loop", lambda: loop), ("loop compiled", lambda: torch.compile(loop)),
            ("associative_scan compiled", lambda: torch.compile(scan))]


# --- measuring --------------------------------------------------------------------------------------------------------

class TooLong(Exception):
    pass


def alarm(_signal, _frame):
    raise TooLong()


def train(f, x, v, dh):
    """Output and gradients."""
    x, v = x.detach().requires_grad_(), v.detach().requires_grad_()
    h = f(x, v)
    return (h.detach(),) + torch.autograd.grad(h, (x, v), dh)


def error_of(got, want):
    return max(float((g.double() - w).abs().max() / w.abs().max()) for g, w in zip(got, want))


def once(f, data, device):
    """Microseconds of forward and backward."""
    if device == "cuda":
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        train(f, *data)
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3
    start = time.perf_counter()
    train(f, *data)
    return (time.perf_counter() - start) * 1e6


def samples_of(f, data, device, seconds):
    taken, start = [], time.perf_counter()
    while len(taken) < 7 or (time.perf_counter() - start < seconds and len(taken) < 1000):
        taken.append(once(f, data, device))
    return taken


@functools.cache
def device_rows(lrnn, seconds, name, when):
    """The rows of `lrnn perf device` for an op, measured once `before` and once `after` the peers."""
    line = [lrnn, "perf", "device", "--only", name, "--no-error", "--seconds", str(seconds)]
    printed = subprocess.run(line, check=True, capture_output=True, text=True).stdout
    return [r for r in csv.DictReader(io.StringIO(printed)) if r["op"] == name]


def ours(args, op, B, T, N, m, when):
    """Median microseconds of our kernel, forward and backward; of both measurements the faster one on a device."""
    name = "scan_block" if op == "block" else "scan_diag"
    if args.device == "cpu":
        line = [args.lrnn, "perf", "op", name, "--batch", str(B), "--length", str(T), "--blocks", str(N), "--m", str(m),
                "--threads", str(args.threads), "--kernel", name + "_cpu", "--seconds", str(args.seconds), "--json"]
        printed = subprocess.run(line, check=True, capture_output=True, text=True).stdout
        rows = [json.loads(r) for r in printed.splitlines()]
        return next(r["median_ms"] for r in rows if r["pass"] == "both") * 1e3
    wanted = f"batch={B} length={T} blocks={N}"
    times = [float(r["time_us"]) for r in device_rows(args.lrnn, args.seconds, name, when) if
             r["pass"] == "both" and r["cache"] == "warm" and r["shape"].startswith(wanted) and
             (op == "diag" or f"m={m}" in r["shape"])]
    if not times:
        sys.exit(f"recurrences.py: `lrnn perf device` has no row of {name} at {wanted} m={m}")
    return min(times)


def measure(args, make, data, want):
    """What a row says of one peer."""
    single = [t.float() for t in data]
    signal.alarm(args.compile_seconds)
    try:
        f = make()
        error = error_of(train(f, *single), want)
        signal.alarm(0)
    except TooLong:
        return {"status": f"not compiled within {args.compile_seconds} s"}
    except Exception as e:  # the row says what the peer cannot do
        signal.alarm(0)
        return {"status": " ".join(f"{type(e).__name__}: {e}".split())[:160]}
    times = samples_of(f, single, args.device, args.seconds)
    return {"status": "ok", "error": f"{error:.3g}", "samples": len(times),
            "median_us": f"{statistics.median(times):.6g}", "best_us": f"{min(times):.6g}"}


def shape_rows(args, op, B, T, N, m):
    data = inputs(op, B, T, N, m, args.device)
    want = train(block_loop if op == "block" else diag_loop, *data)
    before = ours(args, op, B, T, N, m, "before")
    rows = []
    for name, make in peers_of(op):
        torch.compiler.reset()
        rows.append({"op": op, "shape": f"B={B} T={T} N={N} m={m}", "peer": name, **measure(args, make, data, want)})
        print(rows[-1], file=sys.stderr)
    if args.device == "cpu":
        before = min(before, ours(args, op, B, T, N, m, "after"))
    return rows, before


def with_ours(args, shape, rows, before):
    """The rows with our time beside the peers'."""
    time_us = before if args.device == "cpu" else min(before, ours(args, *shape, "after"))
    for r in rows:
        r["ours_us"] = f"{time_us:.6g}"
        if r["status"] == "ok":
            r["times_ours"] = f"{float(r['median_us']) / time_us:.3g}"
    return rows


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    p.add_argument("--threads", type=int, default=1, help="CPU threads of both sides")
    p.add_argument("--seconds", type=float, default=2, help="time for each number")
    p.add_argument("--compile-seconds", type=int, default=240,
                   help="time for a peer's first run: a loop of 1024 steps is unrolled, which takes hours")
    p.add_argument("--lrnn", default="./lrnn")
    p.add_argument("--out", required=True, help="the CSV file; rows of other ops and shapes stay in it")
    args = p.parse_args()
    if args.device == "cuda" and not torch.cuda.is_available():
        sys.exit("recurrences.py: PyTorch sees no CUDA device")
    torch.set_num_threads(args.threads)
    signal.signal(signal.SIGALRM, alarm)
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True).stdout.strip()
    device = torch.cuda.get_device_name() if args.device == "cuda" else "cpu"
    measured = [(shape, *shape_rows(args, *shape)) for shape in SHAPES[args.device]]
    rows = [r for shape, found, before in measured for r in with_ours(args, shape, found, before)]
    common = {"commit": commit, "device": device, "torch": torch.__version__, "threads": args.threads}
    write_rows(args.out, [common | r for r in rows])


if __name__ == "__main__":
    main()

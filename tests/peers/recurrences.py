#!/usr/bin/env python3
"""recurrences.py - the same recurrences in PyTorch, beside ours, in one run: forward and gradients.

    python3 tests/peers/recurrences.py --device cpu --threads 1 --out results/baseline/peers.csv
    python3 tests/peers/recurrences.py --device cuda --out results/device/peers.csv

Needs PyTorch 2.9 or newer and a built ./lrnn; the project itself needs neither Python nor PyTorch.

    diag    h_t = a_t h_{t-1} + v_t                                            (our op scan_diag)
    block   a_t = softmax of each row of z_t;  h_t[i] = sum_j a_t[i][j] h_{t-1}[j] + a_t[i][m] v_t[i]    (scan_block)

Peers: a loop over time (eager), the same loop compiled, and torch's associative scan (pairs of a matrix and a vector;
for `diag` pairs of numbers), compiled. On a device each stands there twice: as Python calls it, launches and autograd
included, and captured in a graph and replayed, as our kernels are. Each is first held against the loop in float64:
largest error of outputs and gradients relative to the largest magnitude. A peer that cannot run is a row that says why.
Our kernel is the one that is taken unasked; it is timed before and after the peers of its shape, and the slower of its
two medians stands in their rows: what disturbs the machine is no advantage of ours. A shape's rows are written when it
is done.
"""
import argparse
import csv
import io
import json
import re
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
TOY = [("block", 2, 4, 3, 2), ("diag", 2, 4, 8, 1)]  # whether it runs, in seconds


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

class TooLong(BaseException):
    """No Exception, which a compiler might take for one of its own and go on."""


def alarm(_signal, _frame):
    raise TooLong()


def train(f, x, v, dh):
    """Output and gradients."""
    x, v = x.detach().requires_grad_(), v.detach().requires_grad_()
    h = f(x, v)
    return (h.detach(),) + torch.autograd.grad(h, (x, v), dh)


def error_of(got, want):
    return max(float((g.double() - w).abs().max() / w.abs().max()) for g, w in zip(got, want))


def captured(f, data):
    """Forward and backward as a graph that replays them, on the memory that they had when they were captured."""
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        for _ in range(3):
            train(f, *data)
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        train(f, *data)
    return graph.replay


def once(work, device):
    """Microseconds."""
    if device == "cuda":
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e6


def samples_of(work, args):
    taken, start = [], time.perf_counter()
    while len(taken) < 7 or (time.perf_counter() - start < args.seconds and len(taken) < 1000):
        taken.append(once(work, args.device))
    return {"samples": len(taken), "median_us": f"{statistics.median(taken):.6g}", "best_us": f"{min(taken):.6g}"}


def printed_by(line):
    return subprocess.run(line, check=True, capture_output=True, text=True).stdout


def first_row(line, rows):
    return next(rows, None) or sys.exit(f"recurrences.py: `{' '.join(line[1:])}` has no row of our kernel")


def ours_on_cpu(args, name, B, T, N, m):
    line = [args.lrnn, "perf", "op", name, "--batch", str(B), "--length", str(T), "--blocks", str(N)]
    line += ["--m", str(m)] if name == "scan_block" else []  # a diagonal has no blocks
    line += ["--threads", str(args.threads), "--kernel", name + "_cpu", "--seconds", str(args.seconds), "--json"]
    row = first_row(line, (r for r in map(json.loads, printed_by(line).splitlines()) if r["pass"] == "both"))
    return row["median_ms"] * 1e3, row["commit"]


def ours_on_device(args, name, B, T, N, m):
    shape = f"batch={B} length={T} blocks={N}" + (f" m={m}" if name == "scan_block" else "")
    line = [args.lrnn, "perf", "device", "--only", name, "--shape", shape, "--compare=no"]
    line += ["--seconds", str(args.seconds)]
    rows = csv.DictReader(io.StringIO(printed_by(line)))
    row = first_row(line, (r for r in rows if (r["op"], r["pass"], r["cache"], r["taken"]) ==
                           (name, "both", "warm", "yes")))
    return float(row["time_us"]), row["commit"]


def ours(args, op, *sizes):
    """Median microseconds of our kernel, forward and backward, and the commit that it is of."""
    measured = ours_on_cpu if args.device == "cpu" else ours_on_device
    return measured(args, "scan_block" if op == "block" else "scan_diag", *sizes)


def refusal(e):
    """An exception in a cell: no folders of this machine, nothing that ends a cell, not at length."""
    text = re.sub(r"(/[^/\s'\"]+)+/", "", f"{type(e).__name__}: {e}")
    return {"status": " ".join(text.replace(",", ";").replace('"', "'").split())[:160]}


def attempt(seconds, work):
    """Returns the result of work() and None; or None and a row with the reason why there is none in time."""
    signal.alarm(seconds)
    try:
        return work(), None
    except TooLong:
        return None, {"status": f"not compiled within {seconds} s"}
    except Exception as e:  # the row says what the peer cannot do
        return None, refusal(e)
    finally:
        signal.alarm(0)


def compiled(make, data, want):
    f = make()
    return f, error_of(train(f, *data), want)


def measure(args, name, make, data, want):
    """Returns the columns of a row for one peer."""
    single = [t.float() for t in data]
    made, why = attempt(args.compile_seconds, lambda: compiled(make, single, want))
    if why:
        return [{"peer": name, **why}]
    f, error = made
    rows = [{"peer": name, "status": "ok", "error": f"{error:.3g}", **samples_of(lambda: train(f, *single), args)}]
    if args.device == "cuda":
        replay, why = attempt(args.compile_seconds, lambda: captured(f, single))
        found = why or {"status": "ok", "error": f"{error:.3g}", **samples_of(replay, args)}
        rows.append({"peer": f"{name} captured", **found})
    return rows


def peer_rows(args, op, T, data):
    want = train(block_loop if op == "block" else diag_loop, *data)
    for name, make in peers_of(op)[: 1 if args.toy else None]:
        torch.compiler.reset()
        if name == "loop compiled" and T > args.unroll:
            yield {"peer": name, "status": f"not tried: a loop of {T} steps is unrolled; --unroll is {args.unroll}"}
        else:
            yield from measure(args, name, make, data, want)


def shape_rows(args, op, B, T, N, m):
    """The rows of a shape's peers, with our time beside theirs."""
    data = inputs(op, B, T, N, m, args.device)
    before, commit = ours(args, op, B, T, N, m)
    rows = []
    for row in peer_rows(args, op, T, data):
        rows.append({"commit": commit, "op": op, "shape": f"B={B} T={T} N={N} m={m}", **row})
        print(rows[-1], file=sys.stderr, flush=True)
    time_us = max(before, ours(args, op, B, T, N, m)[0])
    for row in rows:
        row["ours_us"] = f"{time_us:.6g}"
        if row["status"] == "ok":
            row["times_ours"] = f"{float(row['median_us']) / time_us:.3g}"
    return rows


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    p.add_argument("--threads", type=int, default=1, help="CPU threads of both sides")
    p.add_argument("--seconds", type=float, default=2, help="time for each number")
    p.add_argument("--compile-seconds", type=int, default=240,
                   help="time for a peer's first run, in which it is compiled")
    p.add_argument("--unroll", type=int, default=128, metavar="STEPS",
                   help="the longest loop that is compiled: it is unrolled, which takes minutes for hundreds of steps")
    p.add_argument("--toy", action="store_true", help="tiny shapes and the plain loop alone: a test of this script")
    p.add_argument("--lrnn", default="./lrnn")
    p.add_argument("--out", required=True, help="the CSV file; rows of other ops and shapes stay in it")
    args = p.parse_args()
    if args.device == "cuda" and not torch.cuda.is_available():
        sys.exit("recurrences.py: PyTorch sees no CUDA device")
    torch.set_num_threads(args.threads)
    signal.signal(signal.SIGALRM, alarm)
    device = torch.cuda.get_device_name() if args.device == "cuda" else "cpu"
    common = {"device": device, "torch": torch.__version__, "threads": args.threads}
    for shape in TOY if args.toy else SHAPES[args.device]:
        write_rows(args.out, [common | row for row in shape_rows(args, *shape)])


if __name__ == "__main__":
    main()

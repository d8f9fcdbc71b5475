"""Times a BD-LRU scan, both passes: our operator in PyTorch, the compiled loop, and PyTorch's associative scan.

    PYTHONPATH=python LRNN_LIBRARY=./liblrnn.so python3 tests/library/speed_torch.py [--threads 1 2] [--to FILE]

One line a shape: the best of each in milliseconds over rounds in turn, so that a disturbance meets all three, and the
ratios. Times are of the processor, over all threads: on one thread a busy machine hardly changes them. With several
threads there are also the times that passed (wall). The associative scan multiplies m x m transitions, in log2 T
rounds. The compiler unrolls the loop, so a length is not compiled that would take more than --limit seconds, by the
last one's time; then, and where a way is timed less often because one call takes over a tenth of --limit, the row's
last column says so.
"""

import argparse
import csv
import os
import sys
import time

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # so that the compiler's time is counted here
os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"

import torch  # noqa: E402
from torch._higher_order_ops.associative_scan import associative_scan  # noqa: E402

import lrnn.torch  # noqa: E402


def gates(z):
    return z.softmax(-2)


def loop(z, v):
    m, a = v.shape[-2], gates(z)
    h, out = torch.zeros_like(v[:, 0]), []
    for t in range(v.shape[1]):
        h = (a[:, t, :, :m] * h[:, None]).sum(2) + a[:, t, :, m] * v[:, t]
        out.append(h)
    return torch.stack(out, 1)


def combine(left, right):
    a, x = left
    b, y = right
    return torch.einsum("...ijn,...jkn->...ikn", b, a), torch.einsum("...ijn,...jn->...in", b, x) + y


def scan(z, v):
    m, a = v.shape[-2], gates(z)
    return associative_scan(combine, (a[..., :m, :], a[..., m, :] * v), dim=1, combine_mode="generic")[1]


def seconds(function, z, v, dh):
    """Seconds of the processor and of the clock."""
    start = time.process_time(), time.perf_counter()
    h = function(z, v)
    torch.autograd.grad(h, (z, v), dh)
    return time.process_time() - start[0], time.perf_counter() - start[1]


def row_of(m, length, threads, args, compiling):
    """Times one shape. compiling: the seconds that a step of the loop took to compile, or None."""
    torch.set_num_threads(threads)
    torch._dynamo.reset()
    n, notes = args.width // m, []
    z = torch.randn(args.batch, length, m, m + 1, n, requires_grad=True)
    v = torch.randn(args.batch, length, m, n, requires_grad=True)
    dh = torch.randn_like(v)
    ways = {"lrnn": lambda z, v: lrnn.torch.scan_block(z, v)[0], "associative_scan": scan}
    if compiling is None or compiling * length <= args.limit:
        ways["compiled_loop"] = torch.compile(loop)
    else:
        took = f"{compiling * length:.0f} s of {args.limit:.0f} allowed"
        notes.append(f"compiled_loop: {length} steps would compile for {took}")
    best, rounds, ours = {}, {}, None
    for name, way in ways.items():
        start = time.process_time() + children()
        first = way(z, v).detach()
        seconds(way, z, v, dh)
        if name == "compiled_loop" and compiling is None:
            compiling = (time.process_time() + children() - start) / length
        took = seconds(way, z, v, dh)
        best[name], ours = took, first if ours is None else ours
        rounds[name] = args.rounds if took[0] < args.limit / 10 else 1
        apart = (first - ours).abs().max().item()
        if apart > 1e-4:
            sys.exit(f"{name} differs from lrnn by {apart} at m={m} T={length}")
    for at in range(1, args.rounds):
        for name, way in ways.items():
            if at < rounds[name]:
                best[name] = [min(pair) for pair in zip(best[name], seconds(way, z, v, dh))]
    notes += [f"{name}: timed once" for name in ways if rounds[name] < args.rounds]
    row = {"m": m, "batch": args.batch, "length": length, "blocks": n, "threads": threads, "torch": torch.__version__}
    for kind, unit in ((0, "ms"), (1, "wall_ms")):
        for name in ("lrnn", "compiled_loop", "associative_scan"):
            there = name in best
            row[f"{name}_{unit}"] = f"{best[name][kind] * 1e3:.3f}" if there else ""
            if name != "lrnn":
                ratio = unit.replace("ms", "ratio")
                row[f"{name}_{ratio}"] = f"{best[name][kind] / best['lrnn'][kind]:.2f}" if there else ""
    return {**row, "note": "; ".join(notes)}, compiling


def children():
    """Seconds of the processor in processes that have ended, such as a C++ compiler."""
    times = os.times()
    return times.children_user + times.children_system


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--width", type=int, default=64, help="states m * N of each shape")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--lengths", type=int, nargs="+", default=[64, 512, 4096])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60, help="seconds of the processor")
    parser.add_argument("--to")
    args = parser.parse_args()
    rows = []
    for threads in args.threads:
        for m in args.sizes:
            compiling = None
            for length in args.lengths:
                row, compiling = row_of(m, length, threads, args, compiling)
                rows.append(row)
                print("  ".join(f"{k}={x}" for k, x in row.items()), flush=True)
    if args.to:
        with open(args.to, "w", newline="", encoding="ascii") as file:
            writer = csv.DictWriter(file, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


main()

"""Times a BD-LRU scan, both passes: our operator in PyTorch, the compiled loop, and PyTorch's associative scan.

    PYTHONPATH=python LRNN_LIBRARY=./liblrnn.so python3 tests/library/speed_torch.py [--threads 1 2] [--to FILE]

One line a shape: the best of each in milliseconds over rounds in turn, so that a disturbance meets all three, and the
ratios. Times are of the processor, over all threads: on one thread a busy machine hardly changes them. With several
threads there are also the times that passed (wall). The associative scan multiplies m x m transitions, in log2 T
rounds. The compiler unrolls the loop, and a step takes it about half a second. So a function of 64 steps is compiled,
which takes and returns the state, and is called T / 64 times; autograd joins the calls. A way is timed less often if
one call takes over a tenth of --limit; then the row's last column says so.
"""

import argparse
import csv
import os
import sys
import time

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

import torch  # noqa: E402
from torch._higher_order_ops.associative_scan import associative_scan  # noqa: E402

import lrnn.torch  # noqa: E402


UNROLLED = 64  # steps that the compiler unrolls


def gates(z):
    return z.softmax(-2)


def steps(z, v, h):
    m, a, out = v.shape[-2], gates(z), []
    for t in range(v.shape[1]):
        h = (a[:, t, :, :m] * h[:, None]).sum(2) + a[:, t, :, m] * v[:, t]
        out.append(h)
    return torch.stack(out, 1), h


def loop_of(compiled):
    """The loop over calls of a compiled function of UNROLLED steps."""

    def loop(z, v):
        # The first state asks for a gradient as the others do, so that one compiled function serves all calls.
        h, out = torch.zeros_like(v[:, 0], requires_grad=True), []
        for part in zip(z.split(UNROLLED, 1), v.split(UNROLLED, 1)):
            y, h = compiled(*part, h)
            out.append(y)
        return torch.cat(out, 1)

    return loop


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


def row_of(m, length, threads, args, compiled):
    """Times one shape."""
    n, notes = args.width // m, []
    z = torch.randn(args.batch, length, m, m + 1, n, requires_grad=True)
    v = torch.randn(args.batch, length, m, n, requires_grad=True)
    dh = torch.randn_like(v)
    ways = {"lrnn": lambda z, v: lrnn.torch.scan_block(z, v)[0], "compiled_loop": loop_of(compiled)}
    ways["associative_scan"] = scan
    best, rounds, ours = {}, {}, None
    for name, way in ways.items():
        first = way(z, v).detach()
        seconds(way, z, v, dh)
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
            row[f"{name}_{unit}"] = f"{best[name][kind] * 1e3:.3f}"
            if name != "lrnn":
                row[f"{name}_{unit.replace('ms', 'ratio')}"] = f"{best[name][kind] / best['lrnn'][kind]:.2f}"
    return {**row, "note": "; ".join(notes)}


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
        torch.set_num_threads(threads)
        for m in args.sizes:
            torch._dynamo.reset()
            compiled = torch.compile(steps)
            for length in args.lengths:
                rows.append(row_of(m, length, threads, args, compiled))
                print("  ".join(f"{k}={x}" for k, x in rows[-1].items()), flush=True)
    if args.to:
        with open(args.to, "w", newline="", encoding="ascii") as file:
            writer = csv.DictWriter(file, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


main()

"""Times a BD-LRU scan, both passes: our operator in PyTorch, the compiled loop, and PyTorch's associative scan.

    PYTHONPATH=python LRNN_LIBRARY=./liblrnn.so python3 tests/library/speed_torch.py [--threads 1] [--to FILE]

One line a shape: the best of each in milliseconds over rounds in turn, so that a disturbance meets all three, and the
ratios. The associative scan multiplies m x m transitions, in log2 T rounds.
"""

import argparse
import csv
import sys
import time

import torch
from torch._higher_order_ops.associative_scan import associative_scan

import lrnn.torch


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
    start = time.perf_counter()
    h = function(z, v)
    torch.autograd.grad(h, (z, v), dh)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--width", type=int, default=64, help="states m * N of each shape")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--lengths", type=int, nargs="+", default=[64, 512])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--to")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    rows = []
    for m in args.sizes:
        for length in args.lengths:
            torch._dynamo.reset()
            n = args.width // m
            z = torch.randn(args.batch, length, m, m + 1, n, requires_grad=True)
            v = torch.randn(args.batch, length, m, n, requires_grad=True)
            dh = torch.randn_like(v)
            ways = {"lrnn": lambda z, v: lrnn.torch.scan_block(z, v)[0], "associative_scan": scan}
            if length <= 128:  # the compiler unrolls the loop; longer ones compile for many minutes
                ways["compiled_loop"] = torch.compile(loop)
            best, first = {}, {}
            for name, way in ways.items():
                first[name] = way(z, v).detach()
                seconds(way, z, v, dh)
                apart = (first[name] - first["lrnn"]).abs().max().item()
                if apart > 1e-4:
                    sys.exit(f"{name} differs from lrnn by {apart} at m={m} T={length}")
            for _ in range(args.rounds):
                for name, way in ways.items():
                    best[name] = min(best.get(name, 1e9), seconds(way, z, v, dh))
            row = {"m": m, "batch": args.batch, "length": length, "blocks": n, "threads": args.threads,
                   "torch": torch.__version__}
            for name in ("lrnn", "compiled_loop", "associative_scan"):
                row[name + "_ms"] = f"{best[name] * 1e3:.3f}" if name in best else ""
                row[name + "_ratio"] = f"{best[name] / best['lrnn']:.2f}" if name in best else ""
            rows.append(row)
            print("  ".join(f"{k}={x}" for k, x in row.items()), flush=True)
    if args.to:
        with open(args.to, "w", newline="", encoding="ascii") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)


main()

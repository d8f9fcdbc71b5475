#!/usr/bin/env python3
"""write_case.py - a case file (docs/extend.md) of a mixer without ground truth from elsewhere, in float64.

    python3 tests/peers/write_case.py hgrn2:heads=3 2 9 tests/cases/90-hgrn2-heads3.safetensors    # B = 2, T = 9

y is that of the mixer's equations in naive/, its gradients are PyTorch's. Shapes stand in tests/models/contract/, at
width 12."""
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

from naive.mixers import mix

CONTRACT = Path(__file__).resolve().parents[1] / "models/contract"


def shapes_of(label):
    """Parameters of the contract's row: name and dims."""
    shapes = {}
    inside = False
    for line in (CONTRACT / f"{label.split(':')[0]}.def").read_text().splitlines():
        words = line.split()
        if line[:1] not in ("", " ", "#"):
            inside = words[0] == label
        elif inside and line.startswith(" "):
            shapes[words[0]] = [int(word) for word in words[1:]]
    return shapes or sys.exit(f"write_case.py: no contract has a row {label}")


def main():
    label, B, T, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    name, _, config = label.partition(":")
    options = dict(pair.split("=", 1) for pair in config.split(",") if pair)
    torch.set_default_dtype(torch.float64)
    g = torch.Generator().manual_seed(B * T)
    p = {key: torch.randn(dims, generator=g) / dims[-1] ** 0.5 for key, dims in shapes_of(label).items()}
    p = {key: w.requires_grad_() for key, w in p.items()}
    x, dy = torch.randn(B, T, 12, generator=g).requires_grad_(), torch.randn(B, T, 12, generator=g)
    y = mix(name, x, p, options)
    (y * dy).sum().backward()
    tensors = {"x": x, "y": y, "dy": dy, "dx": x.grad}
    tensors |= {f"p.{key}": w for key, w in p.items()} | {f"g.{key}": w.grad for key, w in p.items()}
    save_file({key: t.detach().contiguous() for key, t in tensors.items()}, path,
              {"lrnn_case": "1", "mixer": name, "config": config.replace(",", " ")})


if __name__ == "__main__":
    main()

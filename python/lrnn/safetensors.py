"""safetensors files of float tensors in PyTorch: 8 bytes header length, a JSON header, raw little-endian data."""

from __future__ import annotations

import json
import struct

import torch
from torch import Tensor

from lrnn.ops import LrnnError

KINDS = {"F64": torch.float64, "F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}


def read(path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors by name, and the file's metadata. LrnnError: it is no such file, or cut off."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        (size,) = struct.unpack_from("<Q", data)
        header = json.loads(data[8 : 8 + size])
        metadata = header.pop("__metadata__", {})
        tensors = {}
        for name, entry in header.items():
            begin, end = (8 + size + at for at in entry["data_offsets"])
            if end > len(data):
                raise ValueError(f"{name} ends at byte {end} of {len(data)}")
            raw = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.uint8)
            tensors[name] = raw.view(KINDS[entry["dtype"]]).reshape(entry["shape"])
    except (ValueError, KeyError, RuntimeError, struct.error) as error:
        raise LrnnError(f"{path} is no safetensors file of floats: {error}") from error
    return tensors, metadata


def write(path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    """Writes tensors and metadata; names in order, as the program does."""
    names = {kind: name for name, kind in KINDS.items()}
    header, at, parts = {"__metadata__": metadata}, 0, []
    for name, tensor in sorted(tensors.items()):
        if tensor.dtype not in names:
            raise LrnnError(f"{name} is of {tensor.dtype}, expected {', '.join(map(str, names))}")
        raw = bytes(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
        offsets = [at, at + len(raw)]
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "data_offsets": offsets}
        at += len(raw)
        parts.append(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))

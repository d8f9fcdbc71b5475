#!/usr/bin/env python3
"""Writes the small files of tests/data in the released formats, with Python's own struct and gzip.

The tests compute the same pixels and labels anew (tests/tasks/check_data.c), so this is run only to change the format:
    cd tests/data && ./make.py
"""
import gzip
import os
import struct
import zlib


def pixel(image, k):
    return (image * 37 + k * 11 + k // 28 * 5) % 256


def idx(name, first, labels):
    pixels = bytes(pixel(first + i, k) for i in range(len(labels)) for k in range(784))
    images = struct.pack(">IIII", 0x803, len(labels), 28, 28) + pixels
    with open(f"mnist/{name}-images-idx3-ubyte.gz", "wb") as f:
        f.write(gzip.compress(images, 9, mtime=0))
    with open(f"mnist/{name}-labels-idx1-ubyte", "wb") as f:
        f.write(struct.pack(">II", 0x801, len(labels)) + bytes(labels))


def cifar():
    names = [f"data_batch_{k}" for k in range(1, 6)] + ["test_batch"]
    for batch, name in enumerate(names):
        records = b""
        for image in range(4 * batch, 4 * batch + 4):
            planes = bytes((image * 37 + k * 11 + k // 1024 * 50) % 256 for k in range(3072))
            records += bytes([(3 * image + 2) % 10]) + planes
        if batch == 0:
            with open(f"cifar10/{name}.bin", "wb") as f:
                f.write(records)
        else:
            with open(f"cifar10/{name}.bin.gz", "wb") as f:
                f.write(gzip.compress(records, 9, mtime=0))


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(image):
    rows = b"".join(b"\0" + bytes((image * 37 + r * 5 + c * 11) % 256 for c in range(32)) for r in range(32))
    header = struct.pack(">IIBBBBB", 32, 32, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def pathfinder():
    """Two lists, of which 2 comes before 10, of six images each."""
    base = "pathfinder32/curv_contour_length_14"
    os.makedirs(f"{base}/metadata", exist_ok=True)
    for first, batch in ((0, 2), (6, 10)):
        os.makedirs(f"{base}/imgs/{batch}", exist_ok=True)
        lines = ""
        for i in range(6):
            image = first + i
            with open(f"{base}/imgs/{batch}/sample_{i}.png", "wb") as f:
                f.write(png(image))
            lines += f"imgs/{batch} sample_{i}.png {i} {image * 5 // 3 % 2} 1.0 14 4 2 0.5 1 0.75\n"
        with open(f"{base}/metadata/{batch}.npy", "w") as f:
            f.write(lines)


for folder in ("mnist", "cifar10"):
    os.makedirs(folder, exist_ok=True)
idx("train", 0, [(7 * i + 3) % 10 for i in range(40)])
idx("t10k", 40, [(3 * i + 1) % 10 for i in range(12)])
cifar()
pathfinder()

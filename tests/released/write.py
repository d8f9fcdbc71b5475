#!/usr/bin/env python3
"""Writes data of the released forms, large enough to learn from: images of digits and shapes that `lrnn data dump`
drew, and discs, reviews, papers and series made here. learn.sh trains on them.

    write.py SET FOLDER [TRAIN.jsonl TEST.jsonl]
"""
import gzip
import json
import math
import os
import random
import struct
import sys
import zlib

TRAIN, TEST = 2000, 400
draw = random.Random(7)


def images(path):
    """Labels and rows of bytes of dumped images; centred channels are -1 to 1, grey ones 0 to 1."""
    for line in open(path):
        x = json.loads(line)
        flat = isinstance(x["input"][0], float) or isinstance(x["input"][0], int)
        pixels = [[v] if flat else [(c + 1) / 2 for c in v] for v in x["input"]]
        yield x["target"], [bytes(round(255 * p[c]) for p in pixels) for c in range(len(pixels[0]))]


def mnist(folder, train, test):
    for name, path in (("train", train), ("t10k", test)):
        rows = list(images(path))
        with open(f"{folder}/{name}-images-idx3-ubyte", "wb") as f:
            f.write(struct.pack(">IIII", 0x803, len(rows), 28, 28) + b"".join(planes[0] for _, planes in rows))
        with gzip.open(f"{folder}/{name}-labels-idx1-ubyte.gz", "wb") as f:
            f.write(struct.pack(">II", 0x801, len(rows)) + bytes(label for label, _ in rows))


def cifar10(folder, train, test):
    rows = list(images(train))
    parts = [(f"data_batch_{k + 1}", rows[k::5]) for k in range(5)] + [("test_batch", list(images(test)))]
    for name, part in parts:
        with open(f"{folder}/{name}.bin", "wb") as f:
            f.write(b"".join(bytes([label]) + b"".join(planes) for label, planes in part))


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def discs(joined):
    """Two discs, and a line that joins them or goes as far elsewhere: neither has more bright pixels."""
    x, y = draw.randrange(4, 12), draw.randrange(4, 28)
    u, v = draw.randrange(20, 28), draw.randrange(4, 28)
    picture = [bytearray(32) for _ in range(32)]
    for a, b in ((x, y), (u, v)):
        for i in range(-1, 2):
            for j in range(-1, 2):
                picture[b + j][a + i] = 255
    shift = 0 if joined else (8 if max(y, v) < 20 else -8)
    for k in range(41):
        row = round(y + (v - y) * k / 40) + shift
        picture[min(max(row, 0), 31)][round(x + (u - x) * k / 40)] = 200
    data = b"".join(b"\0" + bytes(row) for row in picture)
    header = struct.pack(">IIBBBBB", 32, 32, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def pathfinder32(folder):
    base = f"{folder}/curv_contour_length_14"
    os.makedirs(f"{base}/metadata")
    for batch in range(6):
        os.makedirs(f"{base}/imgs/{batch}")
        lines = ""
        for i in range((TRAIN + TEST) // 6):
            label = draw.randrange(2)
            with open(f"{base}/imgs/{batch}/sample_{i}.png", "wb") as f:
                f.write(discs(label))
            lines += f"imgs/{batch} sample_{i}.png {i} {label} 1.0 14 4 2 0.5 1 0.75\n"
        with open(f"{base}/metadata/{batch}.npy", "w") as f:
            f.write(lines)


PLAIN = "the of film a scene actor plot camera story and music ending long dark room".split()


def review(kind):
    told = draw.choice(("fine", "lovely") if kind else ("dull", "poor"))
    words = [draw.choice(PLAIN) for _ in range(18)] + [told] * 2
    draw.shuffle(words)
    return " ".join(words)


def imdb(folder):
    for part, count in (("train", TRAIN), ("test", TEST)):
        for label, name in enumerate(("neg", "pos")):
            os.makedirs(f"{folder}/aclImdb/{part}/{name}")
            for i in range(count // 2):
                with open(f"{folder}/aclImdb/{part}/{name}/{i}_{7 if label else 3}.txt", "w") as f:
                    f.write(review(label))


def aan(folder):
    """A paper cites the other if both are about the same of two things."""
    for part, count in (("train", TRAIN), ("eval", TEST), ("test", TEST)):
        with open(f"{folder}/new_aan_pairs.{part}.tsv", "w") as f:
            for k in range(count):
                topics = [draw.choice(("zzzz", "qqqq")) for _ in range(2)]
                texts = [" ".join([draw.choice(PLAIN), topic, topic, draw.choice(PLAIN)]) for topic in topics]
                f.write(f"{float(topics[0] == topics[1])}\tid{k}\tP{k}\t{texts[0]}\t{texts[1]}\n")


def uea(folder):
    """Noisy waves of two channels; the class is how fast they turn."""
    for part, count in (("TRAIN", TRAIN), ("TEST", TEST)):
        with open(f"{folder}/Waves_{part}.ts", "w") as f:
            f.write("@problemName Waves\n@timeStamps false\n@missing false\n@univariate false\n@dimensions 2\n"
                    "@equalLength true\n@seriesLength 40\n@classLabel true slow middle fast\n@data\n")
            for _ in range(count):
                label, phase = draw.randrange(3), draw.uniform(0, 6.28)
                turn = (0.2, 0.4, 0.8)[label]
                rows = [[f(phase + turn * t) + draw.gauss(0, 0.3) for t in range(40)] for f in (math.sin, math.cos)]
                f.write(":".join(",".join(f"{v:.4f}" for v in row) for row in rows) + ":" +
                        ("slow", "middle", "fast")[label] + "\n")


if __name__ == "__main__":
    name, folder = sys.argv[1:3]
    os.makedirs(folder)
    globals()[name](folder, *sys.argv[3:])

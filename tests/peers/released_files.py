#!/usr/bin/env python3
"""released_files.py - files of the formats that `lrnn data import` reads, of 40 MB and more, to time the readers with.

    python3 tests/peers/released_files.py FOLDER
    ./lrnn perf data mnist --files FOLDER/mnist

Their shapes and the entropy of their bytes are near those of the released ones; what they hold means nothing. Numbers
come from a fixed seed. Needs Python alone.
"""
import gzip
import random
import struct
import sys
import zlib
from pathlib import Path

DRAW = random.Random(1)


def digit():
    """28 x 28 bytes, a thick soft stroke on black: four of five bytes are 0, as in MNIST."""
    pixels = bytearray(784)
    x, y, dx, dy = 14.0, 5.0, DRAW.uniform(-1, 1), 1.0
    for _ in range(40):
        dx += DRAW.uniform(-0.4, 0.4)
        x, y = min(max(x + dx / 2, 5), 22), y + dy / 2.2
        for i, grey in ((0, 255), (1, DRAW.randrange(120, 256)), (-1, DRAW.randrange(256)), (28, DRAW.randrange(256))):
            pixels[int(y) * 28 + int(x) + i] = grey
    return bytes(pixels)


def photograph(side):
    """Planes of red, green and blue: gradients under noise of some bits."""
    noise, planes = DRAW.randbytes(3 * side * side), bytearray()
    for c in range(3):
        base, across, down = DRAW.randrange(60, 160), DRAW.uniform(-1.5, 1.5), DRAW.uniform(-1.5, 1.5)
        for i in range(side * side):
            value = base + across * (i % side) + down * (i // side) + (noise[c * side * side + i] & 15)
            planes.append(int(min(max(value, 0), 255)))
    return bytes(planes)


def mnist(folder, pack):
    pool = [digit() for _ in range(2000)]
    for name, n in (("train", 60000), ("t10k", 10000)):
        images = b"".join(DRAW.choices(pool, k=n))
        labels = bytes(DRAW.randrange(10) for _ in range(n))
        for kind, body, header in (("images-idx3", images, struct.pack(">IIII", 0x803, n, 28, 28)),
                                   ("labels-idx1", labels, struct.pack(">II", 0x801, n))):
            data = header + body
            path = folder / f"{name}-{kind}-ubyte{'.gz' if pack else ''}"
            path.write_bytes(gzip.compress(data, 9) if pack else data)


def cifar(folder, pack):
    pool = [photograph(32) for _ in range(300)]
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        data = b"".join(bytes([DRAW.randrange(10)]) + image for image in DRAW.choices(pool, k=10000))
        path = folder / f"{name}.bin{'.gz' if pack else ''}"
        path.write_bytes(gzip.compress(data, 6) if pack else data)


def graphs(folder, name, n_graphs, n_nodes, labels, attributes, edge_labels):
    """Rings with a tail, every edge in both directions."""
    edges, indicator, nodes, values, kinds, first = [], [], [], [], [], 1
    for graph in range(1, n_graphs + 1):
        n = DRAW.randrange(n_nodes // 2, n_nodes * 3 // 2)
        pairs = [(i, i + 1) for i in range(n - 1)] + [(0, n // 2), (1, n - 1)]
        for a, b in sorted({(min(p), max(p)) for p in pairs}):
            edges += [f"{first + a}, {first + b}", f"{first + b}, {first + a}"]
            kinds += ["1", "1"]
        indicator += [str(graph)] * n
        nodes += [str(DRAW.randrange(labels)) for _ in range(n)]
        values += [", ".join(f"{DRAW.uniform(-9, 99):.6f}" for _ in range(attributes)) for _ in range(n)]
        first += n
    write = {"A": edges, "graph_indicator": indicator, "node_labels": nodes,
             "graph_labels": [str(DRAW.randrange(2)) for _ in range(n_graphs)]}
    if attributes:
        write["node_attributes"] = values
    if edge_labels:
        write["edge_labels"] = kinds
    for end, lines in write.items():
        (folder / f"{name}_{end}.txt").write_text("\n".join(lines) + "\n")


def series(folder, name, cases, dimensions, points):
    for part in ("TRAIN", "TEST"):
        with open(folder / f"{name}_{part}.ts", "w") as f:
            f.write(f"@problemName {name}\n@timeStamps false\n@missing false\n@univariate false\n"
                    f"@dimensions {dimensions}\n@equalLength true\n@seriesLength {points}\n"
                    "@classLabel true normal abnormal\n@data\n")
            for _ in range(cases):
                rows = (",".join(f"{DRAW.gauss(0, 30):.6f}" for _ in range(points)) for _ in range(dimensions))
                f.write(":".join(rows) + ":" + DRAW.choice(("normal", "abnormal")) + "\n")


def words():
    return ["".join(DRAW.choices("etaoinshrdlu'cmfwyp", k=DRAW.randrange(1, 11))) for _ in range(20000)]


def imdb(folder, n):
    known = words()
    for part in ("train", "test"):
        for label in ("neg", "pos"):
            at = folder / "aclImdb" / part / label
            at.mkdir(parents=True, exist_ok=True)
            for i in range(n // 4):
                (at / f"{i}_{1 + i % 10}.txt").write_text(" ".join(DRAW.choices(known, k=DRAW.randrange(60, 400))))


def aan(folder, n):
    known = words()
    for part, share in (("train", 8), ("eval", 1), ("test", 1)):
        with open(folder / f"new_aan_pairs.{part}.tsv", "w") as f:
            for i in range(n * share // 10):
                texts = [" ".join(DRAW.choices(known, k=DRAW.randrange(300, 900))) for _ in range(2)]
                f.write(f"{i % 2}.0\tP{i:06}\tQ{i:06}\t" + "\t".join(f'"{text}"' for text in texts) + "\n")


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def dashes(side):
    """A PNG file of grey dashes on black."""
    rows = [bytearray(side) for _ in range(side)]
    for _ in range(side * side // 40):
        x, y, dx, dy = DRAW.randrange(1, side - 3), DRAW.randrange(1, side - 3), DRAW.randrange(2), DRAW.randrange(2)
        for i in range(3):
            rows[y + i * dy][x + i * dx] = DRAW.randrange(100, 256)
    raw = b"".join(b"\0" + bytes(row) for row in rows)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def pathfinder(folder, side, n):
    top = folder / f"pathfinder{side}" / "curv_contour_length_14"
    (top / "metadata").mkdir(parents=True, exist_ok=True)
    pool = [dashes(side) for _ in range(400)]
    for batch in range(n // 1000):
        images = top / "imgs" / str(batch)
        images.mkdir(parents=True, exist_ok=True)
        lines = []
        for i in range(1000):
            (images / f"sample_{i}.png").write_bytes(DRAW.choice(pool))
            lines.append(f"imgs/{batch} sample_{i}.png {i} {i % 2} 1.0 14 4 2 0.5 1 2")
        (top / "metadata" / f"{batch}.npy").write_text("\n".join(lines) + "\n")


def nested(depth):
    """An expression as the release writes it, its value, and its tokens."""
    if depth == 10 or (depth > 1 and DRAW.random() < 0.75):
        digit = DRAW.randrange(10)
        return str(digit), digit, 1
    parts = [nested(depth + 1) for _ in range(DRAW.randrange(2, 11))]
    name = DRAW.choice(("MIN", "MAX", "MED", "SM"))
    values = sorted(value for _, value, _ in parts)
    n = len(values)
    value = {"MIN": values[0], "MAX": values[-1], "SM": sum(values) % 10,
             "MED": (values[(n - 1) // 2] + values[n // 2]) // 2}[name]
    text = "[" + name
    for part, _, _ in parts:
        text = f"( {text} {part} )"
    return f"( {text} ] )", value, 2 + sum(size for _, _, size in parts)


def listops(folder, n):
    pool = []
    while len(pool) < 200:
        text, value, tokens = nested(1)
        if 500 < tokens < 2000:
            pool.append(f"{text}\t{value}\n")
    for part, rows in (("train", n), ("val", n // 50), ("test", n // 50)):
        (folder / f"basic_{part}.tsv").write_text("Source\tTarget\n" + "".join(DRAW.choices(pool, k=rows)))


def main():
    top = Path(sys.argv[1])
    makers = {"mnist": lambda at: mnist(at, False), "mnist-gz": lambda at: mnist(at, True),
              "cifar10": lambda at: cifar(at, False), "cifar10-gz": lambda at: cifar(at, True),
              "nci1": lambda at: graphs(at, "NCI1", 40000, 40, 37, 0, False),
              "proteins": lambda at: graphs(at, "PROTEINS", 22000, 40, 3, 4, False),
              "heartbeat": lambda at: series(at, "Heartbeat", 100, 61, 405),
              "imdb": lambda at: imdb(at, 40000), "aan": lambda at: aan(at, 7000),
              "pathfinder32": lambda at: pathfinder(at, 32, 60000),
              "pathfinder128": lambda at: pathfinder(at, 128, 8000), "listops": lambda at: listops(at, 8000)}
    for name, make in makers.items():
        if sys.argv[2:] and name not in sys.argv[2:]:
            continue
        (top / name).mkdir(parents=True, exist_ok=True)
        make(top / name)
        size = sum(file.stat().st_size for file in (top / name).rglob("*") if file.is_file())
        print(f"{name}: {size / 1e6:.1f} MB")


main()

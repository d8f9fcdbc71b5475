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


def series(folder, name, dims, labels, lengths, crlf=False, packed=False):
    """Two files of the archive's text format; the test file's second case repeats the training file's third."""
    os.makedirs(folder, exist_ok=True)
    case = 0
    for part, cases in (("TRAIN", 12), ("TEST", 8)):
        text = f"# Cases made by make.py\n#\n@problemName {name}\n@timeStamps false\n@missing false\n"
        text += "@univariate false\n" if dims > 1 else "@univariate true\n"
        if dims > 1 and folder != "heartbeat":
            text += f"@dimensions {dims}\n"
        text += f"@equalLength {'true' if len(lengths) == 1 else 'false'}\n"
        if len(lengths) == 1:
            text += f"@seriesLength {lengths[0]}\n"
        text += f"@classLabel true {' '.join(labels)}\n@data\n"
        for i in range(cases):
            k = 2 if part == "TEST" and i == 1 else case
            T = lengths[k % len(lengths)]
            rows = [",".join(repr(((k * 37 + d * 11 + t * 5) % 64 - 20) / 8) for t in range(T)) for d in range(dims)]
            text += ":".join(rows) + ":" + labels[k * 7 // 3 % len(labels)] + "\n"
            case += 1
        data = (text.replace("\n", "\r\n") if crlf else text).encode()
        path = f"{folder}/{name}_{part}.ts"
        if packed:
            with open(path + ".gz", "wb") as f:
                f.write(gzip.compress(data, 9, mtime=0))
        else:
            with open(path, "wb") as f:
                f.write(data)


def graphs(folder, name, kinds, least, labels, attributes=0, bonds=False, comma=", ", end="\n", packed=()):
    """26 graphs: paths of 3 to 6 nodes, every third closed to a ring."""
    os.makedirs(folder, exist_ok=True)
    keys = ("A", "graph_indicator", "graph_labels", "node_labels", "node_attributes", "edge_labels")
    rows = {key: [] for key in keys}
    first = 1
    for k in range(26):
        n = 3 + k % 4
        edges = [(i, i + 1) for i in range(n - 1)] + [(0, n - 1)] * (k % 3 == 0)
        both = [(j, i) for i, j in edges] + edges if k % 2 else [e for i, j in edges for e in ((j, i), (i, j))]
        rows["A"] += [f"{first + i}{comma}{first + j}" for i, j in both]
        rows["edge_labels"] += [str((i + j) % 3) for i, j in both]
        rows["graph_indicator"] += [str(k + 1)] * n
        rows["graph_labels"].append(str(labels[k * 7 // 3 % 2]))
        rows["node_labels"] += [str(least + (k * 5 + i * 3) % kinds) for i in range(n)]
        for i in range(n):
            values = [repr(((k * 37 + i * 11 + j * 5) % 64 - 20) / 8) for j in range(attributes)]
            rows["node_attributes"].append(comma.join(values))
        first += n
    if not attributes:
        del rows["node_attributes"]
    if not bonds:
        del rows["edge_labels"]
    for key, lines in rows.items():
        data = (end.join(lines) + (end if folder != "ptc-fm" else "")).encode()
        path = f"{folder}/{name}_{key}.txt"
        if key in packed:
            with open(path + ".gz", "wb") as f:
                f.write(gzip.compress(data, 9, mtime=0))
        else:
            with open(path, "wb") as f:
                f.write(data)


def words(k, n):
    """Text of n words: ASCII, an accent, a sign of three bytes and one of four."""
    return " ".join(["film", "na\u00efve", "5\u20ac", "\U0001f600", "x"][(k * 3 + i * i) % 5] for i in range(n))


def imdb():
    """Twenty training and eight test reviews."""
    for part, each in (("train", 10), ("test", 4)):
        for label, first in (("neg", 0), ("pos", 100)):
            os.makedirs(f"imdb/aclImdb/{part}/{label}", exist_ok=True)
            for i in range(each):
                k = first + i + (50 if part == "test" else 0)
                with open(f"imdb/aclImdb/{part}/{label}/{i}_7.txt", "wb") as f:
                    f.write(words(k, 2 + k % 7).encode())


def aan():
    """Pairs of which every third text has quotes, which are characters like others; the label is 0 or 0.0."""
    os.makedirs("aan", exist_ok=True)
    k = 0
    for part, pairs in (("train", 9), ("eval", 3), ("test", 4)):
        lines = ""
        for _ in range(pairs):
            texts = [words(7 * k + j, 3 + (k + j) % 4) for j in range(2)]
            if k % 3 == 0:
                texts[k % 2] = '"' + texts[k % 2] + ' ""said"'
            label = k * 5 // 3 % 2
            lines += f"{label if k % 2 else float(label)}\tid{k}\tP{k}\t{texts[0]}\t{texts[1]}\n"
            k += 1
        with open(f"aan/new_aan_pairs.{part}.tsv", "w", newline="") as f:
            f.write(lines)


for folder in ("mnist", "cifar10"):
    os.makedirs(folder, exist_ok=True)
idx("train", 0, [(7 * i + 3) % 10 for i in range(40)])
idx("t10k", 40, [(3 * i + 1) % 10 for i in range(12)])
cifar()
pathfinder()
series("eigenworms", "EigenWorms", 6, ["1", "2", "3", "4", "5"], [9])
series("ethanolconcentration", "EthanolConcentration", 3, ["E45", "E38", "E40", "E35"], [7], packed=True)
series("heartbeat", "Heartbeat", 5, ["normal", "abnormal"], [6], crlf=True)
series("motorimagery", "MotorImagery", 4, ["finger", "tongue"], [5, 8, 6])
series("selfregulationscp1", "SelfRegulationSCP1", 2, ["negativity", "positivity"], [8])
series("selfregulationscp2", "SelfRegulationSCP2", 1, ["negativity", "positivity"], [8], crlf=True, packed=True)
graphs("mutag", "MUTAG", 7, 0, [1, -1], bonds=True)
graphs("nci1", "NCI1", 37, 1, [0, 1], packed=("A", "graph_labels"))
graphs("proteins", "PROTEINS", 3, 0, [1, 2], attributes=1, comma=",", end="\r\n")
graphs("ptc-fm", "PTC_FM", 18, 0, [-1, 1], bonds=True)
imdb()
aan()

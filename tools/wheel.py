#!/usr/bin/env python3
"""Packs the Python package lrnn with its libraries and the program into dist/lrnn-VERSION-py3-none-PLATFORM.whl.

    tools/wheel.py VERSION OUT LEVEL=FOLDER... [cuda=FOLDER]

LEVEL is an x86-64 level (v2, v3, v4), FOLDER the build folder that holds liblrnn.so, liblrnn-f64.so and, of v2, lrnn.
cuda: the build folder that holds float-cuda/liblrnn.so and double-cuda/liblrnn.so, for arrays on a device. The
program's data go in, too. The libraries that these need and a plain Linux lacks (oneDNN, OpenBLAS, libgomp, ...) go in
beside them; they are found by $ORIGIN, which the Makefile links in. The standard library of Python is all that this
needs.
"""

import base64
import hashlib
import os
import platform
import re
import subprocess
import sys
import zipfile

# Libraries that every Linux has (PEP 600), found on the user's machine.
SYSTEM = re.compile(r"^(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so|ld-linux|linux-vdso)")
METADATA = """Metadata-Version: 2.1
Name: lrnn
Version: {version}
Summary: Scans of structured linear recurrences, forward and gradient, and the benchmark lrnn
License: Apache-2.0
Requires-Python: >=3.9
"""


def needed(path):
    """Libraries that a file loads, as (name, path)."""
    for line in subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout.splitlines():
        match = re.match(r"\s*(\S+) => (/\S+)", line)
        if match and not SYSTEM.match(match[1]):
            yield match[1], os.path.realpath(match[2])


def record_line(name, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def main():
    version, out = sys.argv[1:3]
    levels = dict(argument.split("=", 1) for argument in sys.argv[3:])
    cuda = levels.pop("cuda", None)
    glibc = platform.libc_ver()[1].replace(".", "_")
    tag = f"py3-none-manylinux_{glibc}_{platform.machine()}"
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    files, libraries = {}, {}
    for folder, _, names in os.walk(os.path.join(root, "python", "lrnn")):
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith((".py", ".typed")):
                files[os.path.relpath(path, os.path.join(root, "python"))] = path
    for level, folder in levels.items():
        for name in ("liblrnn.so", "liblrnn-f64.so"):
            files[f"lrnn/lib/x86-64-{level}/{name}"] = os.path.join(folder, name)
    if cuda:
        files["lrnn/lib/cuda/liblrnn.so"] = os.path.join(cuda, "float-cuda", "liblrnn.so")
        files["lrnn/lib/cuda/liblrnn-f64.so"] = os.path.join(cuda, "double-cuda", "liblrnn.so")
    files["lrnn/lib/x86-64-v2/lrnn"] = os.path.join(levels["v2"], "lrnn")
    for name in ("results/published.csv", *(f"plots/{n}" for n in os.listdir(os.path.join(root, "plots")))):
        files[f"lrnn/lib/share/lrnn/{name}"] = os.path.join(root, name)  # where the program looks
    handler = os.path.join(levels["v2"], "liblrnn-jax.so")
    if os.path.exists(handler):
        files["lrnn/lib/liblrnn-jax.so"] = handler
    for path in [p for n, p in files.items() if n.endswith((".so", "/lrnn"))]:
        libraries.update(needed(path))
    for name, path in libraries.items():
        files[f"lrnn/lib/{name}"] = path
    os.makedirs(out, exist_ok=True)
    wheel = os.path.join(out, f"lrnn-{version}-{tag}.whl")
    info, record = f"lrnn-{version}.dist-info", ""
    texts = {
        f"{info}/METADATA": METADATA.format(version=version),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: lrnn\nRoot-Is-Purelib: false\nTag: {tag}\n",
    }
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        contents = [(name, open(path, "rb").read(), os.access(path, os.X_OK)) for name, path in sorted(files.items())]
        contents += [(name, text.encode(), False) for name, text in texts.items()]
        for name, content, runs in contents:
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))  # the same bytes from the same files
            entry.external_attr = (0o100755 if runs else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
            record += record_line(name, content)
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD", (2020, 1, 1, 0, 0, 0)), record + f"{info}/RECORD,,\n")
    print(wheel, f"{os.path.getsize(wheel) / 1e6:.1f} MB, libraries: {' '.join(sorted(libraries))}")


main()

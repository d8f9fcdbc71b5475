"""Runs the blocks of docs/python.md one after another, then looks at what they left: page.py PAGE FOLDER LRNN TOOLS."""

import os
import pathlib
import re
import struct
import subprocess
import sys

page, folder, lrnn, tools = (pathlib.Path(word).resolve() for word in sys.argv[1:5])
bin_folder = folder / "bin"
bin_folder.mkdir()
(bin_folder / "lrnn").symlink_to(lrnn)
os.environ["PATH"] = f"{bin_folder}:{os.environ['PATH']}"
(folder / "tools").symlink_to(tools)
os.chdir(folder)
names, blocks = {}, 0
for kind, block in re.findall(r"^```(sh|python)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S):
    if kind == "sh":
        subprocess.run(["sh", "-ec", block], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    else:
        exec(compile(block, str(page), "exec"), names)
    blocks += 1
assert blocks >= 7, blocks


def masked_crc(data):
    """CRC-32C bit by bit, masked as TFRecord wants it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


assert masked_crc(b"123456789") == ((0xE3069283 >> 15 | 0xE3069283 << 17 & 0xFFFFFFFF) + 0xA282EAD8) & 0xFFFFFFFF
data, events = pathlib.Path("run.tfevents").read_bytes(), 0
while data:
    length, crc = struct.unpack("<QI", data[:12])
    assert crc == masked_crc(data[:8])
    assert struct.unpack("<I", data[12 + length:16 + length])[0] == masked_crc(data[12:12 + length])
    data, events = data[16 + length:], events + 1
assert events > 3, events
print(f"{blocks} blocks, {events} events")

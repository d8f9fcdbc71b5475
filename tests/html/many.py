#!/usr/bin/env python3
"""many.py FROM TO N - N records in TO/runs: those of FROM, then copies of them with other seeds, as if each had been
trained with more. For the time and the size of `lrnn report --html` on many records (pip install xxhash)."""
import json
import pathlib
import re
import sys

import xxhash


def write(to, text, run_id):
    """A record: its first line holds the XXH3-128 of all bytes after it."""
    body = text.split("\n", 1)[1]
    path = to / "runs" / run_id[:2] / f"{run_id}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"checksum": "%s",\n%s' % (xxhash.xxh3_128_hexdigest(body.encode()), body))


def main():
    source, to, n = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
    texts = [path.read_text() for path in sorted(source.glob("runs/*/*.json"))]
    for i in range(n):
        text, turn = texts[i % len(texts)], i // len(texts)
        run = json.loads(text)["run"]
        run_id, seed = run["run_id"], run["seed"]
        if turn:
            run_id = xxhash.xxh3_128_hexdigest(f"{run_id} {turn}".encode())
            other = seed + 1000 * turn
            text = text.replace(run["run_id"], run_id)
            text = re.sub(r'("seed": )"?%s"?,' % seed, r"\g<1>%d," % other, text, count=1)
            text = re.sub(r"\\nseed=%s\\n" % seed, r"\\nseed=%d\\n" % other, text)
        write(to, text, run_id)


main()

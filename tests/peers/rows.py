"""rows.py - the CSV file of recurrences.py and steps.py, a row a shape and peer, which tools/peers_table.awk reads."""
import csv
from pathlib import Path

COLUMNS = ["commit", "device", "torch", "threads", "op", "shape", "peer", "status", "error", "samples", "median_us",
           "best_us", "ours_us", "times_ours", "foreign"]


def write_rows(path, rows):
    """Into the file, in the place of its rows of the same op, shape and threads; the others stay."""
    def key(row):
        return row["op"], row["shape"], str(row["threads"])

    new, old = {key(row) for row in rows}, []
    if Path(path).exists():
        with open(path, newline="", encoding="utf-8") as f:
            old = [row for row in csv.DictReader(f) if key(row) not in new]
    with open(path, "w", newline="", encoding="utf-8") as f:
        writer = csv.DictWriter(f, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(old + rows)

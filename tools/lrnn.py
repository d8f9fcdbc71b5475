"""Run records of lrnn in Python: one file, the standard library alone; pandas and NumPy are used where they are there.

    import sys; sys.path.insert(0, "tools"); import lrnn
    runs, curves, evals = lrnn.load("results")      # data frames, or lists of dictionaries without pandas
    w = lrnn.weights("results", run_id)             # name -> NumPy array, or (shape, array.array) without NumPy
    lrnn.plot(curves, "curves.png", runs)           # where pandas and Matplotlib are

Records are the truth (docs/design.md); columns are those of `lrnn schema runs`, `curves` and `evals`. A record whose
checksum does not hold is left to `lrnn store check`, which knows.
"""

import array
import gzip
import json
import math
import pathlib
import struct
import sys

try:
    import numpy
except ImportError:
    numpy = None
try:
    import pandas
except ImportError:
    pandas = None


SCHEMA = 3  # of records: RECORD_SCHEMA of harness/store/record.h


def _points(points):
    """The rows of a list, which is stored as a table of columns and rows, as dictionaries."""
    return [dict(zip(points["columns"], row)) for row in points["points"]]


def _record(record, path):
    """The record with its lists unfolded. In another schema a column may mean something else: it is refused."""
    schema = record.get("run", {}).get("schema", 0)
    if not schema:
        raise ValueError(f"{path} is no run record")
    if schema != SCHEMA:
        raise ValueError(f"{path} is of schema {schema}; this file reads schema {SCHEMA}: take the one of that lrnn")
    for name in ("curve", "evals"):
        record[name] = _points(record[name])
    return record


def _found(folder, run_id=""):
    """The records, by their paths, of the runs that begin with run_id: from runs/ab.gz, where they follow each other,
    and from runs/ab/ID.json, which takes precedence."""
    runs, found, decoder = pathlib.Path(folder, "runs"), {}, json.JSONDecoder()
    ab = run_id[:2].ljust(2, "?")
    for path in runs.glob(f"{ab}.gz"):
        text, at = gzip.decompress(path.read_bytes()).decode("utf-8"), 0
        while at < len(text):
            record, at = decoder.raw_decode(text, at)
            found[runs / path.stem / f"{record['run']['run_id']}.json"] = record
            at += 1  # the line's end
    for path in runs.glob(f"{ab}/*.json"):
        found[path] = json.loads(path.read_text(encoding="utf-8"))
    return {path: record for path, record in sorted(found.items()) if path.name.startswith(run_id)}


def _frame(rows):
    """A point lacks what it has no value for; here it is there, as None."""
    columns = dict.fromkeys(name for row in rows for name in row)
    rows = [{name: row.get(name) for name in columns} for row in rows]
    return pandas.DataFrame(rows) if pandas else rows


def records(folder):
    """Every record of the folder, as its file or pack has it, with the points of "curve" and "evals" as dictionaries.
    Attempts that were set aside are left out."""
    found = _found(folder)
    if not found:
        raise FileNotFoundError(f"no run records under {folder}/runs")
    return [_record(record, path) for path, record in found.items()]


def load(folder):
    """The runs, the points of their curves, their evaluations by length: three tables joined by run_id."""
    runs, curves, evals = [], [], []
    for record in records(folder):
        run = dict(record["run"])
        run["config"] = record.get("config", "")
        runs.append(run)
        for table, name in ((curves, "curve"), (evals, "evals")):
            table.extend({"run_id": run["run_id"], **point} for point in record[name])
    return _frame(runs), _frame(curves), _frame(evals)


def weights(folder, run_id):
    """The weights that validation chose, by the run's record: a run that was done again has others than at first.
    run_id: its first digits are enough."""
    found = _found(folder, run_id)
    if len(found) != 1:
        raise FileNotFoundError(f"{len(found)} runs in {folder}/runs begin with '{run_id}'")
    (path, record), = found.items()
    run = _record(record, path)["run"]
    if not run.get("ckpt"):
        raise FileNotFoundError(f"run {run['run_id']} kept no weights")
    return safetensors(pathlib.Path(folder, run["ckpt"]))


def safetensors(path):
    """8 bytes header length, a JSON header, little-endian data: github.com/huggingface/safetensors."""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, about in header.items():
        first, last = about["data_offsets"]
        numbers = array.array({"F32": "f", "F64": "d"}[about["dtype"]])
        numbers.frombytes(data[8 + size + first:8 + size + last])
        if sys.byteorder == "big":
            numbers.byteswap()
        shape = tuple(about["shape"])
        if math.prod(shape) != len(numbers):
            raise ValueError(f"{path}: {name} has {len(numbers)} numbers for the shape {shape}")
        tensors[name] = numpy.array(numbers).reshape(shape) if numpy else (shape, numbers)
    return tensors


def names(runs):
    """A label for each run, by its run_id: its layers with all their options, its rate and seed, and its task
    where the runs are of several. The column "model" alone would pool bdlru of m=1 with that of m=3."""
    rows = runs if isinstance(runs, list) else runs.to_dict("records")
    several = len({row["task"] for row in rows}) > 1
    return {row["run_id"]: f"{row['task'] + ' ' if several else ''}{row['layers']} lr {row['lr']:g} seed {row['seed']}"
            for row in rows}


def plot(curves, path, runs, y="acc"):
    """Validation curves of all runs, named by `names`. Needs pandas and Matplotlib; `lrnn plot` needs neither."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots()
    called = names(runs)
    for run_id, points in curves[curves["split"] == "val"].groupby("run_id"):
        axes.plot(points["step"], points[y], linewidth=1, label=called[run_id])
    axes.set_xlabel("steps")
    axes.set_ylabel(f"validation {y}")
    axes.legend(fontsize="small")
    figure.savefig(path)
    pyplot.close(figure)

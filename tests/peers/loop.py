#!/usr/bin/env python3
"""loop.py - whole training runs beside ours, in PyTorch and float64, step by step.

    python3 tests/peers/loop.py                       # the mixers against the case files, then all runs
    python3 tests/peers/loop.py --only 'wide.*delta'  # those whose name, task or model matches
    python3 tests/peers/loop.py --list
    python3 tests/peers/loop.py --log loop.jsonl      # a line per run; --resume passes over those that stand there
    python3 tests/peers/loop.py --table loop.jsonl    # results/tables/trainings.md from such lines

Needs PyTorch 2, numpy and safetensors, and a built ./lrnn-f64; the project itself needs none of the three.

Each run trains 60 steps from the same noisy weights on the same examples in the same order: loss, gradient norm and
rate of each step, the last weights and all scores are compared. Errors are relative: of a number to itself, of a tensor
its largest error to its largest magnitude. Above 1e-8 is FAIL, and the exit status 1. --control adds what rounding
alone does: the largest of these errors between PyTorch and itself from weights moved by about a unit in the last place.
naive/settings.py lists the runs; naive/ has the equations as the specs write them.
"""
import argparse
import json
import re
import sys
import time
from pathlib import Path

import torch
from safetensors import safe_open

from naive.mixers import mix
from naive.program import Refused, Run
from naive.settings import settings
from naive.table import COLUMNS, write_table
from naive.training import Training

BOUND = 1e-8
CASES_BOUND = 1e-9  # as `lrnn verify` has it
ROUNDING = 2e-16
ROOT = Path(__file__).resolve().parents[2]


# --- errors -----------------------------------------------------------------------------------------------

def finite(error):
    """The error, inf where it is NaN: max() would pass over NaN."""
    return error if error == error else float("inf")


def error_of_number(got, want):
    return finite(abs(got - want) / abs(want) if abs(want) > 1e-12 else abs(got - want))


def error_of(got, want):
    """The error of a tensor."""
    size, error = float(want.abs().max()), float((got - want).abs().max())
    return finite(error / size if size > 1e-12 else error)


def worst(pairs):
    return max((error_of_number(got, want) for got, want in pairs), default=0.0)


# --- mixers against case files ----------------------------------------------------------------------------

def case_errors(path):
    with safe_open(path, "pt") as f:
        meta = f.metadata()
        data = {name: f.get_tensor(name) for name in f.keys()}
    options = dict(pair.split("=", 1) for pair in meta["config"].split())
    x = data["x"].requires_grad_()
    p = {name[2:]: t.requires_grad_() for name, t in data.items() if name.startswith("p.")}
    y = mix(meta["mixer"], x, p, options)
    (y * data["dy"]).sum().backward()
    errors = {"y": error_of(y.detach(), data["y"]), "dx": error_of(x.grad, data["dx"])}
    for name, t in p.items():
        grad = torch.zeros_like(t) if t.grad is None or name == "mask" else t.grad
        errors[f"g.{name}"] = error_of(grad, data[f"g.{name}"])
    return errors


def check_cases(paths):
    failed = 0
    print(f"{'case file':75} {'tensors':>7}  {'worst':>7}  of")
    for path in paths:
        errors = case_errors(path)
        name = max(errors, key=errors.get)
        verdict = "ok" if errors[name] <= CASES_BOUND else "FAIL"
        failed += verdict != "ok"
        print(f"{path.stem:75} {len(errors):7}  {errors[name]:7.1e}  {name:24} {verdict}", flush=True)
    return failed


# --- runs -------------------------------------------------------------------------------------------------

KEYS = ("loss", "acc", "macro_acc", "seq_acc", "last_acc")


def score_pairs(record, curve, test):
    """Every score of the record, beside ours."""
    points = {split: [p for p in record["curve"] if p["split"] == split] for split in ("train", "val")}
    assert len(points["val"]) == len(points["train"]) == len(curve)
    for val, train, mine in zip(points["val"], points["train"], curve):
        yield train["loss"], mine["train_loss"]
        yield from ((val[key], mine[key]) for key in KEYS)
    whole = test.result()
    yield from ((record["run"][f"test_{key}"], whole[key]) for key in KEYS)
    after = 0  # a row of positions is of those after the row before it
    for row in record["evals"]:
        mine = test.result(row["length"]) if row["difficulty"] == "length" else whole
        if row["difficulty"] == "position":
            mine, after = test.at(after + 1, row["length"]), row["length"]
        yield from ((row[key], mine[key]) for key in ("n", *KEYS) if row[key] is not None and key in mine)


def run_errors(run, log, curve, test, weights):
    assert len(run.log) == len(log) and run.final.keys() == weights.keys()
    steps = list(zip(run.log, log))
    errors = {key: worst((ours[key], mine[key]) for ours, mine in steps) for key in ("loss", "grad_norm", "lr")}
    of_weights = {name: error_of(run.final[name], w.detach()) for name, w in weights.items()}
    errors["weights"] = max(of_weights.values())
    errors["scores"] = worst(score_pairs(run.record, curve, test))
    return errors, where(steps, of_weights)


def where(steps, of_weights):
    """The first step that disagrees, and the weights that do so most: what a failed run says."""
    first = next((f"step {number}, {key} {ours[key]:.12g} for {mine[key]:.12g}"
                  for number, (ours, mine) in enumerate(steps, 1) for key in ("lr", "loss", "grad_norm")
                  if error_of_number(ours[key], mine[key]) > BOUND), "no step")
    names = sorted(of_weights, key=of_weights.get, reverse=True)[:3]
    return f"first: {first}; most: " + ", ".join(f"{name} {of_weights[name]:.1e}" for name in names)


def control(run, log, weights):
    """The change of loss, norm and last weights by a rounding of the initial weights."""
    g = torch.Generator().manual_seed(2)
    other = Training(run)
    with torch.no_grad():
        for w in other.weights.values():
            w.mul_(1 + ROUNDING * torch.randn(w.shape, generator=g))
    moved = [other.step(number) for number in range(run.steps)]
    errors = [error_of(other.weights[name].detach(), w.detach()) for name, w in weights.items()]
    return max(*errors, *(worst((a[key], b[key]) for a, b in zip(moved, log)) for key in ("loss", "grad_norm")))


def heads_of(run):
    """The number of heads, blocks or channels of the mixer, which are computed side by side."""
    def option(key, otherwise=1):
        value = run.config.get(f"model.{key}", "auto")
        return otherwise if value == "auto" else int(value)

    mixer, D = run.config["model"], int(run.config["dim"])
    if mixer in ("mamba2", "mamba3"):
        inner = option("expand") * D
        return inner // option("headdim", max(width for width in range(1, 65) if inner % width == 0))
    if mixer == "slice":
        alone = {"diagonal": D, "hadamard": D, "block": D // option("block", 4),
                 "diagonal-dense": D - option("block") + 1}
        return alone.get(run.config["model.structure"], 1)
    if mixer in ("gcn", "gin", "mpnn", "aussm"):
        return D
    return {"lru": option("state", D), "pdssm": option("state", D), "lstm": option("hidden", D)}.get(
        mixer, option("heads", option("blocks", option("channels"))))


def label(setting):
    flags = " ".join(f"--{key} {value}" for key, value in setting.flags.items() if key not in ("dim", "batch", "lr"))
    return f"{setting.name}: {setting.task.split(':')[0]} {setting.model} {flags}".rstrip()


def check_run(args, setting):
    """Whether it failed."""
    start = time.perf_counter()
    try:
        run = Run(args.lrnn, setting)
        training = Training(run)
    except Refused as e:
        print(f"{'':89} REFUSED  {label(setting)}: {e}", flush=True)
        return True
    log, curve, test = training.whole()
    errors, disagreement = run_errors(run, log, curve, test, training.weights)
    verdict = "ok" if max(errors.values()) <= BOUND else "FAIL"
    rounding = f"{control(run, log, training.weights):8.1e} " if args.control else ""
    numbers = " ".join(f"{errors[key]:9.1e}" for key in COLUMNS)
    sizes = f"{run.steps:5} {run.batch:4} {run.T['train']:4} {heads_of(run):3}"
    seconds = time.perf_counter() - start
    print(f"{sizes} {numbers} {rounding}{seconds:5.1f} s  {verdict:4}  {label(setting)}", flush=True)
    if verdict != "ok":
        print(f"      {disagreement}", flush=True)
    if args.log:
        row = {"run": label(setting), "part": setting.name, "mixer": run.config["model"], "B": run.batch,
               "T": run.T["train"], "heads": heads_of(run), "commit": run.record["run"]["git_commit"], **errors}
        with open(args.log, "a") as f:
            print(json.dumps(row), file=f)
    return verdict != "ok"


def read_log(path):
    """Its rows, of each run the latest."""
    return list({row["run"]: row for row in map(json.loads, open(path))}.values())


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--lrnn", default=str(ROOT / "lrnn-f64"), help="the program in double precision")
    p.add_argument("--cases", default=str(ROOT / "tests/cases"), help="folder of case files")
    p.add_argument("--only", default="", metavar="PATTERN", help="a regular expression")
    p.add_argument("--list", action="store_true", help="name what there is and compare nothing")
    p.add_argument("--control", action="store_true", help="add what rounding alone does")
    p.add_argument("--log", default="", metavar="FILE", help="append a line of JSON for each run")
    p.add_argument("--resume", action="store_true", help="pass over the runs that --log has")
    p.add_argument("--table", default="", metavar="FILE", help="print the table of a log and compare nothing")
    args = p.parse_args()
    if args.table:
        sys.stdout.write(write_table(read_log(args.table), BOUND))
        return
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    paths = [path for path in sorted(Path(args.cases).glob("*.safetensors")) if re.search(args.only, path.name)]
    runs = {label(s): s for s in settings()}
    assert len(runs) == len(list(settings())), "two settings have the same label"
    chosen = [s for name, s in runs.items() if re.search(args.only, name)]
    if args.resume and args.log and Path(args.log).exists():
        done = {row["run"] for row in read_log(args.log)}
        chosen = [s for s in chosen if label(s) not in done]
    if not paths and not chosen:
        sys.exit(f"loop.py: nothing matches --only '{args.only}'; --list names what there is")
    if args.list:
        print("\n".join([path.name for path in paths] + [label(s) for s in chosen]))
        return
    failed = check_cases(paths) if paths else 0
    if chosen:
        rounding = "rounding " if args.control else ""
        print(f"\nsteps    B    T   H      loss grad_norm        lr   weights    scores {rounding}   time  verdict")
    failed += sum(check_run(args, setting) for setting in chosen)
    print(f"\n{len(paths)} case files, {len(chosen)} runs, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

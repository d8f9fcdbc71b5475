#!/usr/bin/env python3
"""Prints the shell steps of a workflow file as one bash script, as its service would run them.

    tests/ci/steps.py ci/github.yml pull_request|push
    tests/ci/steps.py ci/gitlab.yml merge_request|push

It also looks that actions are pinned to a commit, images to a release and a day, packages to the archive of a day, that
steps use no expression of the service, and that no condition is one that this script does not know. Exit 1: something
of that does not hold.
"""
import re
import shlex
import sys

import yaml

PINNED_ACTION = re.compile(r"^[\w-]+(/[\w-]+)+@[0-9a-f]{40}$")
PINNED_MIRROR = re.compile(r"^http://snapshot\.debian\.org/archive/debian/\d{8}T\d{6}Z$")
PINNED_IMAGE = re.compile(r"^[\w./-]+:[a-z]+-\d{8}(-slim)?$")


def wrong(text):
    sys.exit(f"steps.py: {sys.argv[1]}: {text}")


def check_image(image):
    if not PINNED_IMAGE.match(image or ""):
        wrong(f"the image {image} is not pinned to a release and a day")


def holds(condition, event):
    known = {"": True, "always()": True, "always() && github.ref == 'refs/heads/main'": event == "push"}
    if condition not in known:
        wrong(f"unknown condition: {condition}")
    return known[condition]


def variables(values):
    """The steps run with this machine's packages, which MIRROR would replace by those of a day."""
    if not PINNED_MIRROR.match(values.get("MIRROR", "")):
        wrong("MIRROR is not the archive of a day")
    for key, value in values.items():
        yield f"export {key}='{'' if key == 'MIRROR' else value}'"


def github(workflow, event):
    on = workflow[True]  # YAML 1.1 reads the key `on` as true
    if set(on) != {"pull_request", "push"}:
        wrong(f"runs on {sorted(on)}, expected pull_request and push")
    for name, job in workflow["jobs"].items():
        if not holds(job.get("if", ""), event):
            continue
        runs = [step for step in job["steps"] if "run" in step]
        if runs:
            check_image(job.get("container"))
        yield from variables(job.get("env", {}))
        for step in job["steps"]:
            uses = step.get("uses")
            if uses and not PINNED_ACTION.match(uses):
                wrong(f"{uses} is not pinned to a commit")
            if "run" in step and "${{" in step["run"]:
                wrong(f"step '{step.get('name')}' of {name} uses an expression of the service")
            if "run" in step and holds(step.get("if", ""), event):
                yield f"echo '--- {name}: {step['name']}'"
                yield f"bash --noprofile --norc -eo pipefail -c {shlex.quote(step['run'])} </dev/null"


def gitlab(workflow, event):
    check_image(workflow["image"])
    yield from variables(workflow["variables"])
    for name, job in workflow.items():
        if not isinstance(job, dict) or "script" not in job or (job.get("rules") and event != "push"):
            continue
        for lines in (job.get("before_script", []) + job["script"], job.get("after_script", [])):
            if lines:
                yield f"echo '--- {name}'"
                yield "bash -eo pipefail -c " + shlex.quote("\n".join(lines)) + " </dev/null"


with open(sys.argv[1], encoding="utf-8") as file:
    parsed = yaml.safe_load(file)
print("set -euo pipefail")
for line in (github if "jobs" in parsed else gitlab)(parsed, sys.argv[2]):
    print(line)

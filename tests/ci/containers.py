#!/usr/bin/env python3
"""Runs the steps of ci/Dockerfile and ci/*.def in fresh Debian 12 folders by chroot, where no daemon is to be had, and
then the program as the image would. For ci/lrnn-cuda.def, Debian with this machine's CUDA toolkit, read-only, stands
for the image with CUDA; without nvcc here it is checked as text alone.

    tests/ci/containers.py [Dockerfile] [lrnn.def] [lrnn-cuda.def]      make test-containers; none: all three

Needs root and debootstrap (apt-get install debootstrap). It stands for a build with the argument MIRROR, of which
the default is the archive of a day: MIRROR=http://deb.debian.org/debian here; OPT= overrides the optimisation, ARCHS=
(90) the compute capabilities. Where hadolint is installed it looks at the Dockerfile. The last line is
"N passed, N failed".
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

NVCC = shutil.which("nvcc", path=os.environ["PATH"] + ":/usr/local/cuda/bin")
MIRROR = os.environ.get("MIRROR", "http://deb.debian.org/debian")
PINNED = re.compile(r"^(debian:bookworm-\d{8}-slim|nvidia/cuda:[\d.]+-(devel|runtime)-ubuntu[\d.]+)$")
TRY = """lrnn --version
lrnn train s3:n_train=200,n_val=20,n_test=20 lstm:hidden=4 --steps 2 --quiet --out results
lrnn report --out results
lrnn plot accuracy --out results"""
work = tempfile.mkdtemp()
counts = [0, 0]
mounted = []


def check(ok, text):
    counts[not ok] += 1
    print(f"containers: {'' if ok else 'WRONG '}{text}", flush=True)
    return ok


def call(*words, **more):
    return subprocess.run(words, check=True, stdin=subprocess.DEVNULL, **more)


def base():
    """A minimal Debian 12, made once; BASE= names one of an earlier debootstrap."""
    folder = os.environ.get("BASE", os.path.join(work, "base"))
    if not os.path.isdir(folder):
        call("debootstrap", "--variant=minbase", "bookworm", folder, MIRROR, stdout=subprocess.DEVNULL)
    return folder


class Root:
    """The folder of one stage of a build, and what its instructions have set."""

    def __init__(self, name):
        self.path = os.path.join(work, name)
        self.env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
        self.cwd, self.user = "/", "0:0"
        call("cp", "-a", base(), self.path)
        call("mount", "-t", "proc", "proc", self.path + "/proc")  # where the program finds its own place
        mounted.append(self.path + "/proc")
        shutil.copy("/etc/resolv.conf", self.path + "/etc/resolv.conf")

    def add_cuda(self):
        toolkit = os.path.dirname(os.path.dirname(os.path.realpath(NVCC)))
        os.makedirs(self.path + toolkit)
        call("mount", "--bind", "-o", "ro", toolkit, self.path + toolkit)
        mounted.append(self.path + toolkit)
        self.env["PATH"] = f"{toolkit}/bin:" + self.env["PATH"]

    def run(self, command):
        words = [f"{k}={v}" for k, v in self.env.items()]
        call("chroot", f"--userspec={self.user}", self.path, "env", "-i", "DEBIAN_FRONTEND=noninteractive", *words,
             "sh", "-ec", f"cd {self.cwd}\n{command}")

    def copy_tree(self, to):
        """The files that git tracks, which .dockerignore leaves nearly all."""
        target = self.path + to
        os.makedirs(target, exist_ok=True)
        files = subprocess.Popen(["git", "ls-files", "-z"], stdout=subprocess.PIPE)
        pack = subprocess.Popen(["tar", "--null", "-T", "-", "-cf", "-"], stdin=files.stdout, stdout=subprocess.PIPE)
        subprocess.run(["tar", "--no-same-owner", "-xf", "-", "-C", target], stdin=pack.stdout, check=True)

    def copy_from(self, other, source, to):
        os.makedirs(self.path + to, exist_ok=True)
        call("cp", "-a", other.path + source + "/.", self.path + to)


def overridden(name, value):
    """The value of a build argument, or what this machine gives in its place."""
    if name.upper() == "MIRROR":
        return MIRROR
    if name == "archs":
        return os.environ.get("ARCHS", "90")
    return os.environ.get("OPT", value) if name in ("OPT", "optimise") else value


def dockerfile(path):
    text = re.sub(r"^#.*\n", "", open(path, encoding="utf-8").read(), flags=re.M).replace("\\\n", " ")
    stages, root = {}, None
    for line in filter(None, text.splitlines()):
        word, rest = line.split(None, 1)
        if word == "FROM":
            image, _, name = rest.partition(" AS ")
            check(PINNED.match(image) is not None, f"{path}: the base {image} is pinned")
            root = stages[name or "final"] = Root(f"docker-{name or 'final'}")
        elif word == "ARG":
            name, _, value = rest.partition("=")
            root.env[name] = overridden(name, value.strip('"'))
        elif word == "RUN":
            root.run(rest)
        elif word == "COPY" and rest.startswith("--from="):
            stage, source, to = rest[len("--from="):].split()
            root.copy_from(stages[stage], source, to)
        elif word == "COPY":
            root.copy_tree(rest.split()[1])
        elif word == "WORKDIR":
            root.cwd = rest
        elif word == "USER":
            root.user = rest
        elif word in ("ENTRYPOINT", "CMD"):
            check(isinstance(json.loads(rest), list), f"{path}: {word} is a list")
        else:
            check(False, f"{path}: unknown instruction {word}")
    check(root.user != "0:0", f"{path}: the image does not run as root")
    root.run(TRY)
    check(True, f"{path}: its steps ran, and the program trains, reports and plots")


def sections(path):
    """The stages of a definition: the header's words, and each section's text by its first line."""
    stages = []
    for line in open(path, encoding="utf-8"):
        if line.startswith("#"):
            continue
        if line.startswith("Bootstrap:"):
            stages.append(({}, {}))
        if line.startswith("%"):
            name = line[1:].strip()
            stages[-1][1][name] = ""
        elif stages[-1][1]:
            stages[-1][1][name] += line
        elif line.strip():
            key, value = line.split(":", 1)
            stages[-1][0][key] = value.strip()
    return stages


def definition(path):
    roots, runs = {}, True
    for header, parts in sections(path):
        check(PINNED.match(header["From"]) is not None, f"{path}: the base {header['From']} is pinned")
        cuda = header["From"].startswith("nvidia/")
        runs = runs and (not cuda or NVCC)
        args = dict(line.strip().split("=", 1) for line in parts.get("arguments", "").splitlines() if "=" in line)
        post = re.sub(r"{{ (\w+) }}", lambda m: overridden(m[1], args[m[1]]), parts["post"])
        known = subprocess.run(["sh", "-n"], input=post, text=True, check=False).returncode == 0
        check(known, f"{path}: %post of stage {header['Stage']} is a script")
        if not runs:
            continue
        root = roots[header["Stage"]] = Root(f"apptainer-{header['Stage']}")
        if cuda:
            root.add_cuda()
        for key, text in parts.items():
            if key.startswith("files from "):
                source, to = text.split()
                root.copy_from(roots[key.split()[2]], source, to + "/" + os.path.basename(source))
            elif key == "files":
                root.copy_tree(text.split()[1])
        root.run(post)
    if runs:
        root.run("mkdir -m 1777 /work")
        root.cwd, root.user = "/work", "1000:1000"
        root.run(parts["test"] + "\n" + TRY)
        check(True, f"{path}: its steps ran, and the program trains, reports and plots")


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    asked = sys.argv[1:] or ["Dockerfile", "lrnn.def", "lrnn-cuda.def"]
    if (asked != ["lrnn-cuda.def"] or NVCC) and (os.geteuid() != 0 or not shutil.which("debootstrap")):
        sys.exit("containers.py: needs root and debootstrap; apt-get install debootstrap")
    for name in asked:
        begin = time.time()
        if name == "Dockerfile" and shutil.which("hadolint"):
            found = subprocess.run(["hadolint", "ci/Dockerfile"], check=False).returncode
            check(found == 0, "ci/Dockerfile: hadolint finds nothing")
        try:
            if name == "Dockerfile":
                dockerfile("ci/Dockerfile")
            else:
                definition(f"ci/{name}")
        except subprocess.CalledProcessError as error:
            check(False, f"ci/{name}: a step failed: {' '.join(map(str, error.cmd))[:400]}")
        print(f"containers: ci/{name}: {time.time() - begin:.0f} s")
    print(f"{counts[0]} passed, {counts[1]} failed")
    return counts[1] > 0


try:
    status = main()
finally:
    for folder in reversed(mounted):
        call("umount", folder)
    shutil.rmtree(work, ignore_errors=True)
sys.exit(status)

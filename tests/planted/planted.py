#!/usr/bin/env python3
# tests/planted/planted.py -- plants a known bug in a copy of the tree and looks whether it is caught.
#
#   planted.py                one bug, another one with each commit
#   planted.py --all          every bug; also with DIBS_LONG=1
#   planted.py NAME ...       these
#   --folder PATH             where the copy is made and built (else a temporary one)
#
# Each NAME.patch beside this file is a bug. Its head says which target is built and which of its
# cases must fail then; unchanged, they must pass. A patch that does not apply any more, or whose
# tree does not build, is a failure: the bug has to be planted anew. "# environment: NAME=VALUE" asks
# for that too, as a longer run of what draws at random. Speaks TAP.
# SPDX-License-Identifier: Apache-2.0
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


class Bug:
    def __init__(self, path):
        head = path.read_text().split("\n--- ", 1)[0]
        self.path = path
        self.name = path.stem
        self.what = re.search(r"-- (.*)\.$", head, re.M).group(1)
        self.target = re.search(r"^# target: (.*)$", head, re.M).group(1)
        self.case = re.search(r"^# case: (.*)$", head, re.M).group(1)
        self.environment = dict(re.findall(r"^# environment: (\w+)=(\w+)$", head, re.M))


def run(command, folder, **options):
    return subprocess.run(command, cwd=folder, check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)


class Tree:
    """A copy of the tree, built where it lies."""

    def __init__(self, folder):
        self.folder = folder
        self.passed = set()
        names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True,
                               stdout=subprocess.PIPE).stdout.split(b"\0")
        for name in filter(None, names):
            to = folder / os.fsdecode(name)
            source = ROOT / os.fsdecode(name)
            if not source.is_file() or (to.is_file() and to.read_bytes() == source.read_bytes()):
                continue  # a copy that was made before is brought up to date
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, to)
        if not (folder / "build" / "build.ninja").exists():
            cache = ["ccache"] if shutil.which("ccache") else []
            environment = os.environ | {"CC": " ".join([*cache, "gcc"]),
                                        "CXX": " ".join([*cache, "g++"])}
            made = run(["meson", "setup", "build", "-Doptimization=1", "-Ddebug=false"], folder,
                       env=environment)
            if made.returncode != 0:
                raise SystemExit(made.stdout)

    def patch(self, bug, *options):
        return run(["patch", "-p1", "--fuzz=2", "--no-backup-if-mismatch", "-r", "-", *options, "-i",
                    str(bug.path)], self.folder)

    def build(self, bug):
        targets = [bug.target]
        if bug.target.startswith("tests/process"):
            targets.append("broker/dibsd")
        return run(["ninja", "-C", "build", *targets], self.folder)

    def test(self, bug):
        environment = os.environ | bug.environment | {
            "DIBS_DIBSD": str(self.folder / "build/broker/dibsd")}
        try:
            return run([str(self.folder / "build" / bug.target), f"--gtest_filter={bug.case}"],
                       self.folder, env=environment, timeout=300)
        except subprocess.TimeoutExpired:
            return None


def caught(tree, bug):
    """Whether the bug is caught, and what to say if not."""
    key = (bug.target, bug.case, *bug.environment.items())
    if key not in tree.passed:
        built = tree.build(bug)
        if built.returncode != 0:
            return False, "the tree does not build:\n" + built.stdout[-2000:]
        clean = tree.test(bug)
        if clean is None or clean.returncode != 0 or "[  PASSED  ] 0 tests" in clean.stdout:
            return False, f"{bug.case} does not pass without the bug"
        tree.passed.add(key)
    applied = tree.patch(bug)
    if applied.returncode != 0:
        return False, "the patch does not apply:\n" + applied.stdout
    try:
        built = tree.build(bug)
        if built.returncode != 0:
            return False, "it does not build:\n" + built.stdout[-2000:]
        tested = tree.test(bug)
        if tested is None or tested.returncode != 0:
            return True, ""
        return False, f"{bug.case} passes with the bug"
    finally:
        tree.patch(bug, "-R")


def chosen(names, everything):
    bugs = [Bug(path) for path in sorted(HERE.glob("*.patch"))]
    if names:
        return [bug for bug in bugs if bug.name in names]
    if everything:
        return bugs
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True,
                            stdout=subprocess.PIPE, text=True).stdout.strip()
    return [bugs[int(commit, 16) % len(bugs)]]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--all", action="store_true")
    arguments.add_argument("--folder")
    arguments.add_argument("names", nargs="*")
    given = arguments.parse_args()
    bugs = chosen(given.names, given.all or "DIBS_LONG" in os.environ)
    print(f"1..{len(bugs)}", flush=True)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="dibs-planted-") as temporary:
        folder = pathlib.Path(given.folder or temporary).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        tree = Tree(folder)
        for number, bug in enumerate(bugs, 1):
            good, why = caught(tree, bug)
            failed += not good
            if why:
                print("# " + why.strip().replace("\n", "\n# "))
            print(f"{'ok' if good else 'not ok'} {number} - {bug.name}: {bug.what}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

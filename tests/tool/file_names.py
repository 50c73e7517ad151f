#!/usr/bin/env python3
# tests/tool/file_names.py -- files that are named: an empty name, a folder, "-".
#
#   file_names.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import os
import re
import subprocess
import sys

from holding import POOLS
from tap import case, expect, expect_equal, main


def daemon(place, *words):
    ended = subprocess.run([place.dibsd, *words], capture_output=True, text=True, timeout=60,
                           check=False, cwd=place.folder)
    return ended.returncode, ended.stdout, ended.stderr


@case("an empty name is a script's empty variable: 2, and nothing is made")
def empty(place):
    place.start(POOLS)
    (place.folder / "empty").mkdir()
    for words, name in ((["dump", ""], "FILE"), (["dump", "--state", "", "x"], "--state"),
                        (["load", ""], "FILE"), (["record", ""], "FILE"), (["replay", ""], "FILE"),
                        (["replay", "-", "--to-json", ""], "--to-json"),
                        (["replay", "-", "--to-binary", ""], "--to-binary"),
                        (["config", "check", ""], "FILE"), (["fsck", ""], "STATE")):
        expect_equal(place.run(*words, cwd=place.folder / "empty"),
                     (2, "", f"dibs {words[0]}: {name}: the file's name is empty\nSee dibs "
                             f"{words[0]} --help.\n"))
    for option in ("--trace", "--report", "--json"):
        expect_equal(place.run("demo", option, ""),
                     (2, "", f'dibs demo: {option} "": a file is wanted\nSee dibs demo --help.\n'))
    for option in ("--config", "--check-config", "--load"):
        expect_equal(daemon(place, option, ""),
                     (2, "", f"dibsd: {option}: the file's name is empty\nSee dibsd --help.\n"))
    expect_equal(os.listdir(place.folder / "empty"), [])


@case("a folder is no file: 1, and it is said so")
def folder(place):
    place.start(POOLS)
    for words in (["load"], ["replay"], ["replay", "--check"]):
        expect_equal(place.run(*words, str(place.folder)),
                     (1, "", f"dibs {words[0]}: {place.folder}: is a directory\n"))
    expect_equal(daemon(place, "--no-keeper", "--socket", "other.sock", "--load", str(place.folder)),
                 (1, "", f"dibsd: {place.folder}: is a directory\n"))


@case("record: - is standard output, and what is said goes beside it")
def dash(place):
    place.start(POOLS)
    target = place.folder / "load.djn"
    with target.open("w") as out:
        child = place.begin("record", "-", stdout=out, cwd=place.folder)
        expect_equal(child.stderr.readline(),
                     "dibs record: recording to standard output; interrupt to end it\n")
        expect_equal(place.run("exec", "gpu", "--", "true")[0], 0)
        child.terminate()
        _, err = child.communicate(timeout=60)
    expect_equal(child.returncode, 0)
    expect(re.fullmatch(r"standard output: [1-9]\d* turns?, [1-9]\d* commands?, \d+ decisions?\n", err), err)
    code, out, err = place.run("replay", "--check", str(target))
    expect_equal((code, err), (0, ""))
    expect(out.endswith("turns decide as they were recorded\n"), out)
    expect(not (place.folder / "-").exists(), "a file is called -")


if __name__ == "__main__":
    main(sys.argv)

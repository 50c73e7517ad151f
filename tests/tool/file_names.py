#!/usr/bin/env python3
# tests/tool/file_names.py -- files that are named: an empty name, a folder, "-".
#
#   file_names.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys

from holding import POOLS
from tap import case, expect_equal, main


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


if __name__ == "__main__":
    main(sys.argv)

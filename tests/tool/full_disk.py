#!/usr/bin/env python3
# tests/tool/full_disk.py -- standard output that takes nothing more: 1, and why, once.
#
#   full_disk.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys

from holding import POOLS
from tap import case, expect, expect_equal, main

UNWRITTEN = "cannot write to standard output: No space left on device\n"


def into_full(command, environment):
    with open("/dev/full", "w", encoding="utf-8") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
                               check=False, env=environment)
    return ended.returncode, ended.stderr


@case("the daemon's help and version")
def daemon(place):
    for option in ("--help", "--version"):
        expect_equal(into_full([place.dibsd, option], place.environment()), (1, f"dibsd: {UNWRITTEN}"))
    closed = subprocess.run(f'"{place.dibsd}" --help >&-', shell=True, stderr=subprocess.PIPE,
                            text=True, timeout=60, check=False)
    expect_equal((closed.returncode, closed.stderr),
                 (1, "dibsd: cannot write to standard output: it is closed\n"))
    reader, writer = os.pipe()
    os.close(reader)  # who stops reading wants no more of it
    ended = subprocess.run([place.dibsd, "--help"], stdout=writer, stderr=subprocess.PIPE, text=True,
                           timeout=60, check=False)
    os.close(writer)
    expect(ended.stderr == "", ended.stderr)


@case("the tool's help, and what it shows")
def tool(place):
    place.start(POOLS)
    for words in (["--help"], ["exec", "--help"], ["demo", "--help"]):
        expect_equal(into_full([place.dibs, *words], place.environment()), (1, f"dibs: {UNWRITTEN}"))
    expect_equal(into_full([place.dibs, "ls", "pools"], place.environment()),
                 (1, f"dibs ls: {UNWRITTEN}"))
    expect_equal(into_full([place.dibs, "metrics"], place.environment()),
                 (1, f"dibs metrics: {UNWRITTEN}"))


@case("events, with the first one")
def events(place):
    place.start(POOLS)
    with open("/dev/full", "w", encoding="utf-8") as full:
        child = place.begin("events", "-f", stdout=full)
        while child.poll() is None:
            expect_equal(place.run("exec", "gpu", "--", "true")[0], 0)
    expect_equal((child.returncode, child.stderr.read()), (1, f"dibs events: {UNWRITTEN}"))


if __name__ == "__main__":
    main(sys.argv)

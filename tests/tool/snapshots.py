#!/usr/bin/env python3
# tests/tool/snapshots.py -- the state as a file: written while others claim, and read again.
#
#   snapshots.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys

from holding import POOLS, hold, waiting
from tap import case, expect, expect_equal, main


def dumped(place, name, *options):
    file = place.folder / name
    expect_equal(place.run("dump", *options, str(file)), (0, "", ""))
    return file.read_bytes()


@case("dump: a live state, with who holds and who waits; the same state gives the same bytes")
def dump(place):
    place.start(POOLS)
    hold(place, "gpu:2")
    place.begin("claim", "gpu")
    waiting(place, 1)
    first = dumped(place, "one.snap")
    expect_equal(first[4:8], b"DSNP")
    expect_equal(dumped(place, "two.snap"), first)
    expect(not (place.folder / "two.snap.draft").exists(), "a draft stays")


@case("dump: to standard output")
def dump_to_standard_output(place):
    place.start(POOLS)
    got = subprocess.run([place.dibs, "dump"], stdout=subprocess.PIPE, check=True,
                         env=place.environment(), timeout=60).stdout
    expect_equal(got, dumped(place, "one.snap"))


@case("dump: of a state that was left behind, the bytes of the live one")
def dump_of_a_file(place):
    broker = place.start(POOLS)
    hold(place, "gpu")
    live = dumped(place, "live.snap")
    memory = next(f"/proc/{broker.pid}/fd/{fd}" for fd in os.listdir(f"/proc/{broker.pid}/fd")
                  if "dibs-state" in os.readlink(f"/proc/{broker.pid}/fd/{fd}"))
    expect_equal(dumped(place, "left.snap", "--state", memory), live)


@case("dump: says what it cannot do, and leaves no file")
def dump_fails(place):
    file = place.folder / "none.snap"
    code, out, err = place.run("dump", str(file))
    expect_equal((code, out), (3, ""))
    code, _, err = place.run("dump", "--state", "/no/such/state", str(file))
    expect_equal((code, err), (1, "dibs dump: /no/such/state: No such file or directory\n"))
    text = place.folder / "text"
    text.write_text("x" * 5000)
    expect_equal(place.run("dump", "--state", str(text), str(file))[2],
                 f"dibs dump: {text}: state does not begin with DIBSTATE\n")
    place.start(POOLS)
    expect_equal(place.run("dump", "/no/folder/file")[2],
                 "dibs dump: /no/folder/file.draft: No such file or directory\n")
    expect_equal(place.run("dump", "a", "b"), (2, "", "dibs dump: one FILE is enough\n"))
    expect(not file.exists(), "a file was left")


if __name__ == "__main__":
    main(sys.argv)

#!/usr/bin/env python3
# tests/tool/locked_socket.py -- another program holds the lock beside the broker's socket: a start says
# whom it waits for, hears its signals and ends; an end does not wait.
#
#   locked_socket.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import contextlib
import fcntl
import os
import pathlib
import signal
import subprocess
import sys

from tap import case, expect, expect_equal, main

POOLS = '[[pool]]\nname = "gpu"\nkind = "counted"\nslots = 1\n'
HOLD = ("import fcntl, sys\n"
        "file = open(sys.argv[1], 'w')\n"
        "fcntl.flock(file, fcntl.LOCK_EX)\n"
        "open('/proc/self/comm', 'w').write(sys.argv[2])\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n")
WAYS = ("--no-keeper", None)


@contextlib.contextmanager
def held(place, name="hoarder"):
    """A process of this name holds the lock; closing its input ends it."""
    holder = subprocess.Popen([sys.executable, "-c", HOLD, place.socket + ".lock", name], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    place.children.append(holder)
    expect_equal(holder.stdout.readline(), "held\n")
    yield holder
    holder.stdin.close()
    holder.wait()


def begin(place, way, name="dibsd.toml"):
    file = place.folder / name
    file.write_text(POOLS)
    dibsd = subprocess.Popen([place.dibsd, *([way] if way else []), "--config", file, "--socket", place.socket],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    place.children.append(dibsd)
    return dibsd


def line_with(stream, words):
    """The next line with these words; what came before it, too, where there is none."""
    before = ""
    for line in stream:
        if words in line:
            return line
        before += line
    raise AssertionError(f"no line with {words!r}: {before}")


@case("a start says which file is held and by whom, and begins when it is let go")
def waits(place):
    for way in WAYS:
        with held(place) as holder:
            dibsd = begin(place, way)
            expect_equal(line_with(dibsd.stderr, ".lock").partition("warning: ")[2],
                         f"{place.socket}.lock is held by process {holder.pid} (hoarder): waiting for at "
                         "most 5 s; SIGTERM ends the wait\n")
        expect_equal(dibsd.stdout.readline(), f"dibsd: ready on {place.socket}\n")
        dibsd.send_signal(signal.SIGTERM)
        expect_equal(dibsd.wait(timeout=60), 0)


@case("SIGTERM and SIGINT end a start that waits, in order")
def hears(place):
    for way in WAYS:
        for number in (signal.SIGTERM, signal.SIGINT):
            with held(place):
                dibsd = begin(place, way)
                line_with(dibsd.stderr, ".lock is held")
                dibsd.send_signal(number)
                expect_equal((dibsd.wait(timeout=60), dibsd.stdout.read()), (0, ""))
                said = dibsd.stderr.read()
                expect("ends before it has begun" in said, said)
                expect("starting the next one" not in said, said)


@case("a start does not wait for ever for a program that is no broker")
def gives_up(place):
    for way in WAYS:
        with held(place) as holder:
            dibsd = begin(place, way)
            expect_equal((dibsd.wait(timeout=60), dibsd.stdout.read()), (1, ""))
            said = dibsd.stderr.read().splitlines()[-1]
            expect_equal(said, f"dibsd: {place.socket}.lock: process {holder.pid} (hoarder) has held it for 5 s, "
                         "and is no broker: nobody can tell who listens there; have it let go, or name "
                         "another socket")


@case("another broker is waited for")
def brokers(place):
    with held(place, "dibsd-broker") as holder:
        dibsd = begin(place, "--no-keeper")
        expect_equal(line_with(dibsd.stderr, ".lock").partition("warning: ")[2],
                     f"{place.socket}.lock is held by process {holder.pid} (dibsd-broker), a broker: waiting "
                     "until it lets go; SIGTERM ends the wait\n")
    expect_equal(dibsd.stdout.readline(), f"dibsd: ready on {place.socket}\n")


@case("an end does not wait for the lock; the next broker takes the name that is left")
def ends(place):
    for way in WAYS:
        dibsd = begin(place, way)
        expect_equal(dibsd.stdout.readline(), f"dibsd: ready on {place.socket}\n")
        with held(place):
            dibsd.send_signal(signal.SIGTERM)
            expect_equal(dibsd.wait(timeout=60), 0)
            said = dibsd.stderr.read()
            expect(f"{place.socket}.lock is held by " in said, said)
            expect(pathlib.Path(place.socket).is_socket(), "the name is left")
        dibsd = begin(place, way)
        expect_equal(dibsd.stdout.readline(), f"dibsd: ready on {place.socket}\n")
        dibsd.send_signal(signal.SIGTERM)
        expect_equal(dibsd.wait(timeout=60), 0)
        expect(not pathlib.Path(place.socket).exists(), "it is removed")


@case("a lock of fcntl's is none of a broker's")
def other_kind(place):
    with open(place.socket + ".lock", "wb") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        dibsd = begin(place, "--no-keeper")
        expect_equal(dibsd.stdout.readline(), f"dibsd: ready on {place.socket}\n")


if __name__ == "__main__":
    main(sys.argv)

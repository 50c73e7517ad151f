#!/usr/bin/env python3
# tests/tool/unread_talk.py -- what holds or serves something acts, however its standard output and error
# are taken: not at all, by a reader that is gone, by one that does not read, by a stopped terminal.
#
#   unread_talk.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import fcntl
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios

from holding import POOLS
from tap import await_state, case, expect, expect_equal, main

CONFIG = POOLS + 'answer_max = "1KiB"\n'


def closed():
    return None, None


def gone():
    reading, writing = os.pipe()
    os.close(reading)
    return None, writing


def full():
    reading, writing = os.pipe()
    flags = fcntl.fcntl(writing, fcntl.F_GETFL)
    fcntl.fcntl(writing, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    try:
        while True:
            os.write(writing, b"x")
    except BlockingIOError:
        pass
    fcntl.fcntl(writing, fcntl.F_SETFL, flags)
    return reading, writing


def stopped_terminal():
    """As behind Ctrl-S."""
    controlling, terminal = pty.openpty()
    termios.tcflow(terminal, termios.TCOOFF)
    return controlling, terminal


WAYS = (closed, gone, full, stopped_terminal)


class Unread:
    """A descriptor that a child is given and from which no line is ever read."""

    def __init__(self, way):
        self.kept, self.given = way()

    def __enter__(self):
        return self.given

    def __exit__(self, *_):
        for fd in (self.kept, self.given):
            if fd is not None:
                os.close(fd)


def begin(place, way, streams, *arguments):
    """Starts the tool with standard output, error or both (1, 2) taken this way, as long as it is looped over."""
    with Unread(way) as fd:
        def become():
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            for stream in streams:
                if fd is None:
                    os.close(stream)
                else:
                    os.dup2(fd, stream)
        child = place.begin(*arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            preexec_fn=become)
        yield child


def leases(place):
    return [json.loads(line) for line in place.run("ls", "leases", "-o", "jsonl")[1].splitlines()]


def await_lease(place):
    while not leases(place):
        pass
    return leases(place)[0]["id"]


def each(name, streams=((2,),)):
    """A case for each way and each set of streams."""
    def keep(function):
        for way in WAYS:
            for which in streams:
                where = " and ".join({1: "output", 2: "error"}[one] for one in which)

                def play(place, way=way, which=which):
                    place.start(CONFIG)
                    function(place, lambda *words: begin(place, way, which, *words))
                case(f"{name}: standard {where} {way.__name__.replace('_', ' ')}")(play)
        return function
    return keep


@each("exec: ends a command that has lost its lease, with 125")
def exec_loss(place, begun):
    note = place.folder / "note"
    script = f"trap 'echo ended > {note}; exit 0' TERM; echo > {place.folder}/up; while :; do read x; done"
    for child in begun("exec", "gpu", "--", "sh", "-c", f"mkfifo {place.folder}/f; exec <>{place.folder}/f; {script}"):
        lease = await_lease(place)
        while not (place.folder / "up").exists():
            pass
        expect_equal(place.run("release", lease)[0], 0)
        expect_equal(child.wait(timeout=60), 125)
        expect_equal(note.read_text(), "ended\n")


@each("exec -v: starts the command")
def exec_verbose(place, begun):
    for child in begun("exec", "-v", "gpu", "--", "sh", "-c", f"echo > {place.folder}/ran"):
        expect_equal(child.wait(timeout=60), 0)
        expect((place.folder / "ran").exists(), "the command did not run")


@each("exec: no slot free is 75, a time that passed 124")
def exec_none(place, begun):
    holder = place.begin("claim", "gpu:2")
    await_lease(place)
    for child in begun("exec", "--now", "gpu", "--", "true"):
        expect_equal(child.wait(timeout=60), 75)
    for child in begun("exec", "-t", "10ms", "gpu", "--", "true"):
        expect_equal(child.wait(timeout=60), 124)
    holder.terminate()


@each("claim: TERM ends it", streams=((2,), (1, 2)))
def claim(place, begun):
    for child in begun("claim", "gpu"):
        try:
            await_state(child, "SZ")
        except FileNotFoundError:
            pass
        child.terminate()
        child.wait(timeout=60)
    while leases(place):
        pass


@each("worker: replaces a process that ends, serves the next claim, and hears TERM")
def worker(place, begun):
    for child in begun("worker", "web:2", "--lines", "none", "--backoff", "1ms", "--", "sleep", "1000"):
        for _ in range(3):
            expect_equal(place.run("exec", "web", "-t", "30s", "--", "true")[0], 0)
        rows = [json.loads(line)
                for line in place.run("ls", "slots", "--pool", "web", "-o", "jsonl")[1].splitlines()]
        expect_equal(len(rows), 2)
        with open(f"/proc/{child.pid}/task/{child.pid}/children", encoding="utf-8") as file:
            processes = [int(pid) for pid in file.read().split()]
        for pid in processes:
            with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                if file.read() == "sleep\n":
                    os.kill(pid, signal.SIGKILL)
        while place.run("exec", "web", "-t", "30s", "--", "true")[0] != 0:
            pass  # granted before the death was seen
        child.terminate()
        expect_equal(child.wait(timeout=60), 0)


@case("worker: what its processes have started ends with it when it is killed")
def killed_worker(place):
    place.start(CONFIG)
    note = place.folder / "pid"
    child = place.begin("worker", "web", "--lines", "none", "--",
                        "sh", "-c", f"sleep 1000 & echo $! > {note}.new; mv {note}.new {note}; wait")
    while not note.exists():
        pass
    pid = int(note.read_text())
    child.kill()
    child.wait()
    fd = None
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    expect(select.select([fd], [], [], 60)[0], "it lives on")
    os.close(fd)


@case("exec: a command has the SIGPIPE that the tool was started with")
def pipe_signal(place):
    place.start(CONFIG)
    script = "grep SigIgn /proc/self/status"
    for ignored in (signal.SIG_DFL, signal.SIG_IGN):
        def become(ignored=ignored):
            signal.signal(signal.SIGPIPE, ignored)
        child = place.begin("exec", "gpu", "--", "sh", "-c", script, preexec_fn=become)
        bits = int(child.stdout.readline().split()[1], 16)
        expect_equal(bool(bits >> (signal.SIGPIPE - 1) & 1), ignored == signal.SIG_IGN)
        child.wait(timeout=60)


if __name__ == "__main__":
    main(sys.argv)

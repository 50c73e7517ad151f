#!/usr/bin/env python3
# tests/tool/ignored_signals.py -- the tool started by nohup, or as a script's background job: HUP and
# INT are ignored from the start, and end nothing.
#
#   ignored_signals.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import json
import signal
import sys

from holding import POOLS
from tap import case, expect_equal, main, stop

IGNORED = (signal.SIGHUP, signal.SIGINT)


def begin(place, *arguments, disposition=signal.SIG_IGN):
    def dispose():  # the tests themselves may have been started by nohup
        for number in IGNORED:
            signal.signal(number, disposition)
    return place.begin(*arguments, preexec_fn=dispose)


def send_both(child):
    stop(child)  # so that it has both at once
    for number in IGNORED:
        child.send_signal(number)
    child.send_signal(signal.SIGCONT)


@case("claim: holds on, until its lease ends otherwise")
def claim(place):
    place.start(POOLS)
    child = begin(place, "claim", "gpu", "-o", "json")
    lease = json.loads(child.stdout.readline())["id"]
    send_both(child)
    expect_equal(place.run("release", lease)[0], 0)
    expect_equal(child.wait(timeout=60), 1)  # it was not what ended it


@case("worker: its slots stay, and TERM still ends it")
def worker(place):
    place.start(POOLS)
    child = begin(place, "worker", "web", "--lines", "none", "--", "sleep", "1000")
    expect_equal(child.stderr.readline(), 'dibs worker: 1 slot of pool "web" ready\n')
    send_both(child)
    for _ in range(20):
        expect_equal(place.run("exec", "web", "--timeout", "30s", "--", "true"), (0, "", ""))
    child.terminate()
    expect_equal(child.wait(timeout=60), 0)


@case("record: goes on, until the broker ends")
def record(place):
    broker = place.start(POOLS)
    child = begin(place, "record", str(place.folder / "load.djn"))
    child.stderr.readline()
    send_both(child)
    broker.kill()
    expect_equal(child.wait(timeout=60), 3)


@case("record: HUP ends it, where nobody has it ignored, and what it has is whole")
def hang_up(place):
    place.start(POOLS)
    file = str(place.folder / "load.djn")
    child = begin(place, "record", file, disposition=signal.SIG_DFL)
    child.stderr.readline()
    child.send_signal(signal.SIGHUP)
    expect_equal(child.wait(timeout=60), 0)
    expect_equal(place.run("replay", "--check", file)[0], 0)


if __name__ == "__main__":
    main(sys.argv)

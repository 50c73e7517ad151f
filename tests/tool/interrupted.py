#!/usr/bin/env python3
# tests/tool/interrupted.py -- the tool is stopped and continued, as ^Z and fg do, while it waits for
# the broker: it waits on.
#
#   interrupted.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import signal
import socket
import sys

from holding import POOLS
from tap import await_state, case, expect, expect_equal, main, state_of, stop


def interrupt(child):
    """Stops it where it sleeps, and lets it go on until it sleeps again. False: it has ended."""
    await_state(child, "SZ")
    stop(child)
    child.send_signal(signal.SIGCONT)
    await_state(child, "SZ")
    return state_of(child) != "Z"


def listen(place):
    """A socket of the test's own, and how the tool is told of it. Only one caller waits there."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    path = str(place.folder / "between.sock")
    listener.bind(path)
    listener.listen(0)
    return listener, path


@case("stopped and continued while it waits for the broker's word, it waits on")
def answers(place):
    place.start(POOLS)
    wanted = place.run("ls", "slots", "-o", "jsonl")
    expect(wanted[1], "there are slots")
    listener, path = listen(place)
    child = place.begin("ls", "slots", "-o", "jsonl", "--socket", path)
    with listener, listener.accept()[0] as asker, place.connect() as broker:
        packets = 0
        # Each packet is passed on once the tool waits for what follows it.
        while said := asker.recv(65536):
            broker.send(said)
            heard = broker.recv(1 << 20)
            if not interrupt(child):
                break
            packets += 1
            asker.send(heard)
    expect_equal((child.wait(timeout=60), child.stdout.read(), child.stderr.read()), wanted)
    expect(packets >= 2, f"its greeting and its question were answered: {packets}")


@case("stopped and continued while others are before it, it waits to be let in")
def connects(place):
    place.start(POOLS)
    wanted = place.run("status", "-o", "json", "--socket", place.socket)[0]
    listener, path = listen(place)
    with listener, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
        other.connect(path)  # until it is accepted nobody else is let in
        child = place.begin("status", "-o", "json", "--socket", path)
        alive = interrupt(child)
        listener.accept()[0].close()
        listener.settimeout(60)
        if alive:
            with listener.accept()[0] as asker, place.connect() as broker:
                while said := asker.recv(65536):
                    broker.send(said)
                    asker.send(broker.recv(1 << 20))
    expect_equal((child.wait(timeout=60), child.stderr.read()), (wanted, ""))


if __name__ == "__main__":
    main(sys.argv)

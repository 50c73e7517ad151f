#!/usr/bin/env python3
# tests/tool/events.py -- what subscribers are told: each event with its fields, what was missed.
#
#   events.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import json
import os
import re
import select
import signal
import socket
import struct
import sys

from admin_channel import WELCOME, code_of, greet, request
from holding import POOLS, hold, steady
from tap import CASES, case, expect, expect_equal, main, number_in, stop

CASES.clear()  # those of admin_channel.py
EVENTS = 22
EVENTS_MAGIC = 0x53544e4544494244
HEAD = struct.Struct("<QIIQ")
EVENT_SIZE = 408
SESSION_ENDED = 20


def subscribed(place):
    """A connection that has been told that it is subscribed."""
    connection = greet(place)
    connection.send(request(EVENTS))
    expect_equal(code_of(connection.recv(65536)), 0)
    return connection


def follow(place, *options):
    """`dibs events`, once it has printed something: it is told of all that comes from then on."""
    child = place.begin("events", "-f", *options)
    while not select.select([child.stdout], [], [], 0)[0]:
        expect_equal(place.run("exec", "gpu", "--", "true")[0], 0)
    return child


def rows(child, until):
    found = []
    while not found or not until(found[-1]):
        found.append(json.loads(child.stdout.readline()))
    return found


@case("events: a grant and its end, with their fields, as JSON lines")
def events(place):
    place.start(POOLS)
    child = follow(place, "--jsonl")
    holder, said = hold(place, "gpu:2")
    number = said["number"]
    granted = rows(child, lambda row: row["event"] == "grant" and row["claim"] == number)[-1]
    expect_equal(granted["schema"], "dibs.events/1")
    expect_equal((granted["pool"], sorted(granted["slots"]), granted["units"], granted["full"]),
                 ("gpu", [0, 1], 2, True))
    expect_equal((granted["interval_ns"], granted["pid"]), (0, holder.pid))
    expect(re.fullmatch(r"s\d+\.\d+", granted["client"]), granted["client"])
    expect_equal(place.run("release", granted["lease"])[0], 0)
    ended = rows(child, lambda row: row["event"] == "lease_end")[-1]
    expect_equal((ended["claim"], ended["reason"], ended["fence"], ended["slots"]),
                 (number, "revoked", granted["fence"], granted["slots"]))
    expect_equal(ended["released_by"], os.geteuid())
    gone = rows(child, lambda row: row["event"] == "session_ended"
                and row["client"] == granted["client"])[-1]
    expect_equal(gone["pid"], holder.pid)
    child.terminate()


@case("events: as text, and only so many")
def text(place):
    place.start(POOLS)
    connection = subscribed(place)
    expect_equal(place.run("events", "--for", "1ms"), (0, "", ""))
    child = follow(place)
    holder, _ = hold(place, "gpu")
    line = child.stdout.readline()
    while f"pid {holder.pid}" not in line or " grant " not in line:
        expect(line, "the tool has ended")
        line = child.stdout.readline()
    line = re.sub(r"\bl0x[0-9a-f]+|\bs\d+\.\d+\b", "N", steady(line))
    line = re.sub(r"\b(claim c|fence |slots |uid |pid )\d+", r"\1N", line)
    expect_equal(line, "T grant gpu claim cN lease N slots N fence N interval_ns 0 client N "
                       "uid N pid N\n")
    child.terminate()
    connection.close()


@case("events: the time ends it, however much there is to read")
def busy(place):
    told = struct.pack("<QQB", 1, 1, SESSION_ENDED).ljust(EVENT_SIZE, b"\0")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(place.socket)
        listener.listen(1)
        child = place.begin("events", "--for", "1ns", "--jsonl")
        with listener.accept()[0] as reader:
            reader.recv(4096)
            reader.send(struct.pack("<QII24s16x", WELCOME, 1, 1, b"0.1.0"))
            reader.recv(65536)
            stop(child)  # what it is told is there before its time begins
            reader.send(request(0))  # as an answer it says 0, too
            for _ in range(2):
                reader.send(HEAD.pack(EVENTS_MAGIC, 1, 128, 0) + 128 * told)
            child.send_signal(signal.SIGCONT)
            out, err = child.communicate(timeout=60)
    expect_equal((child.returncode, err), (0, ""))
    expect(len(out.splitlines()) < 256, "it has told what came when its time was over")


@case("events: a count ends it, and without -f so does the second, however few there were")
def counted(place):
    place.start(POOLS)
    child = follow(place, "--count", "3")
    while child.poll() is None:
        expect_equal(place.run("exec", "gpu", "--", "true")[0], 0)
    expect_equal((child.returncode, len(child.stdout.read().splitlines())), (0, 3))
    expect_equal(place.run("events", "--count", "1000000")[0::2], (0, ""))


@case("events: a time that no clock reaches is none")
def long(place):
    place.start(POOLS)
    child = follow(place, "--jsonl", "--for", "2562047h")
    rows(child, lambda row: row["event"] == "session_ended")
    child.terminate()


@case("events: a subscriber that does not read is told how much it has missed")
def lost(place):
    place.start(POOLS)
    connection = subscribed(place)  # before any event: their numbers begin with 1
    expect_equal(place.run("bench", "gpu", "--ask", "--claims", "20000")[0], 0)
    connection.settimeout(60)
    last = lost_now = lost_ever = 0
    kinds = set()

    def read():
        nonlocal last, lost_now, lost_ever
        packet = connection.recv(1 << 20)
        _, version, count, gone = HEAD.unpack_from(packet)
        expect_equal((version, len(packet)), (3, HEAD.size + count * EVENT_SIZE))
        lost_now += gone
        lost_ever += gone
        for at in range(count):
            begin = HEAD.size + at * EVENT_SIZE
            number = number_in(packet, begin, "<Q")
            expect_equal(number, last + lost_now + 1)
            last, lost_now = number, 0
            kinds.add(number_in(packet, begin + 16, "<B"))

    while not lost_ever:
        read()
    expect_equal(place.run("exec", "gpu", "--", "true")[0], 0)
    kinds.clear()
    while SESSION_ENDED not in kinds:
        read()
    expect_equal(place.run("fsck")[0], 0)
    connection.close()


@case("events: no broker, no events")
def nobody(place):
    code, out, err = place.run("events")
    expect_equal((code, out), (3, ""))
    expect(err.startswith("dibs events: "), err)
    broker = place.start(POOLS)
    child = place.begin("events", "-f")
    connection = subscribed(place)
    broker.kill()
    broker.wait()
    expect(child.wait(timeout=60) == 3, child.returncode)
    connection.close()


if __name__ == "__main__":
    main(sys.argv)

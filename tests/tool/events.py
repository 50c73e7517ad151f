#!/usr/bin/env python3
# tests/tool/events.py -- what subscribers are told: each event with its fields, what was missed.
#
#   events.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import json
import re
import select
import struct
import sys

from admin_channel import code_of, greet, request
from holding import POOLS, hold, steady
from tap import CASES, case, expect, expect_equal, main, number_in

CASES.clear()  # those of admin_channel.py
EVENTS = 22
HEAD = struct.Struct("<QIIQ")
EVENT_SIZE = 344
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


@case("events: a subscriber that does not read is told how much it has missed")
def lost(place):
    place.start(POOLS)
    connection = subscribed(place)  # before any event: their numbers begin with 1
    expect_equal(place.run("bench", "gpu", "--claims", "20000")[0], 0)
    connection.settimeout(60)
    last = lost_now = lost_ever = 0
    kinds = set()

    def read():
        nonlocal last, lost_now, lost_ever
        packet = connection.recv(1 << 20)
        _, version, count, gone = HEAD.unpack_from(packet)
        expect_equal((version, len(packet)), (1, HEAD.size + count * EVENT_SIZE))
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

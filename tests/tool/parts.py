#!/usr/bin/env python3
# tests/tool/parts.py -- claims of a part of a slot: what holds it, what lacks, what is refused.
#
#   parts.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import json
import os
import signal
import subprocess
import sys

from holding import hold, wait_until, waiting
from tap import case, expect, expect_equal, main

GPUS = """
[[pool]]
name = "gpu"
kind = "counted"
slots = 2
attributes = [{ device = "0" }, { device = "1" }]
environment = { CUDA_VISIBLE_DEVICES = "device" }
resources = { memory = "80GiB", sm = 100 }
[[pool]]
name = "plain"
kind = "counted"
slots = 1
"""


def slots(place):
    return [(row["number"], row["state"], row["resources"])
            for row in map(json.loads, place.run("ls", "slots", "-p", "gpu", "-o", "jsonl")[1].splitlines())]


@case("two commands share a GPU by memory, and each is told what it has")
def shared(place):
    place.start(GPUS)
    hold(place, "gpu", "--want", "memory=50GiB")
    code, out, err = place.run("exec", "--want", "memory=10GiB", "--want", "sm=20", "--up-to", "memory=70GiB",
                               "gpu", "--", "sh", "-c",
                               "echo $CUDA_VISIBLE_DEVICES $DIBS_ATTR_DEVICE $DIBS_ATTR_RESOURCE_MEMORY "
                               "$DIBS_ATTR_RESOURCE_SM")
    expect_equal((code, out, err), (0, f"0 0 {30 << 30} 20\n", ""))


@case("ls and explain tell the parts of a slot, what is free of it, and what lacks")
def told(place):
    place.start(GPUS)
    hold(place, "gpu", "--want", "memory=50GiB", "--want", "sm=100")
    hold(place, "gpu", "--want", "memory=60GiB")
    expect_equal(sorted(slots(place)),
                 [(0, "leased", "memory=50GiB sm=100"), (0, "shared", "memory=30GiB sm=0"),
                  (1, "leased", "memory=60GiB sm=0"), (1, "shared", "memory=20GiB sm=100")])
    pool = json.loads(place.run("ls", "pools", "-p", "gpu", "-o", "jsonl")[1])
    expect_equal((pool["slots"], pool["idle"], pool["shared"], pool["leased"], pool["resources"]),
                 (2, 0, 2, 2, "memory=80GiB sm=100"))
    place.begin("claim", "gpu", "--want", "memory=40GiB")
    waiting(place, 1)
    why = json.loads(place.run("explain", "c3", "-o", "json")[1])
    expect_equal((why["reason"], why["holder"], why["resource"]), ("lacks", 1, "memory"))
    expect(why["sentence"].startswith("No slot of gpu has as much memory free as it wants at least."), why)
    expect_equal(place.run("exec", "--now", "--want", "sm=1", "plain", "--", "true")[0], 2)


@case("top counts a slot once, however many parts of it are leased")
def counted(place):
    place.start(GPUS)
    hold(place, "gpu", "--want", "memory=50GiB")
    hold(place, "gpu", "--want", "memory=10GiB")
    _, out, _ = place.run("top", "-b", "-n", "1", environment={"COLUMNS": "120"})
    row = next(line for line in out.splitlines() if line.startswith("gpu "))
    expect_equal(row.split()[1:4], ["[#.]", "1", "2"])


@case("what no slot has, and what is no part, is refused with names and amounts")
def refused(place):
    place.start(GPUS)
    start = "dibs exec: did not get a slot of pool "
    for wanted, code, said in (
            (("--want", "memory=81GiB"), 6,
             start + '"gpu": it wants 81GiB of memory, and a slot of the pool has 80GiB\n'),
            (("--want", "cpu=1"), 2,
             start + '"gpu": --want and --up-to name resources of its slots (memory, sm), each once; '
                     'something of one at least, and no more with --want than with --up-to\n'),
            (("--want", "sm=0"), 2, None), (("--want", "sm=2", "--up-to", "sm=1"), 2, None),
            (("--want", "sm"), 2, "dibs exec: --want sm: write NAME=AMOUNT, such as memory=10GiB or sm=20\n"),
            (("--want", "sm=-1"), 2,
             "dibs exec: --want sm=-1: write NAME=AMOUNT, such as memory=10GiB or sm=20\n"),
            (("--up-to", "sm=1"), 2, "dibs exec: --up-to: say with --want how much it is at least\n")):
        found, out, err = place.run("exec", *wanted, "gpu", "--", "true")
        expect_equal((found, out), (code, ""))
        if said is not None:
            expect_equal(err, said)
    expect_equal(place.run("exec", "--want", "sm=1", "plain", "--", "true")[2],
                 start + '"plain": its slots have no resources: each is claimed as a whole, without --want\n')
    hold(place, "gpu:2")
    code, out, err = place.run("exec", "--now", "--want", "sm=1", "gpu", "--", "true")
    expect_equal((code, out), (75, ""))
    expect("no slot has as much free, or others come first" in err, err)


@case("parts outlive the broker, and go back with their holders")
def outlive(place):
    (place.folder / "dibsd.toml").write_text('log_level = "off"\n' + GPUS)
    keeper = subprocess.Popen([place.dibsd, "--config", place.folder / "dibsd.toml", "--socket", place.socket],
                              stdout=subprocess.PIPE, text=True)
    try:
        expect_equal(keeper.stdout.readline(), f"dibsd: ready on {place.socket}\n")
        one, _ = hold(place, "gpu", "--want", "memory=50GiB")
        hold(place, "gpu", "--want", "memory=20GiB")
        before = slots(place)
        pid = json.loads(place.run("status", "-o", "json")[1])["pid"]
        os.kill(pid, signal.SIGKILL)
        wait_until(place, ("status", "-o", "jsonl"), lambda rows: rows[0]["pid"] != pid)
        expect_equal(slots(place), before)
        one.kill()
        one.wait()
        wait_until(place, ("ls", "slots", "-p", "gpu", "-o", "jsonl"),
                   lambda rows: sorted(row["resources"] for row in rows)
                   == ["memory=20GiB sm=0", "memory=60GiB sm=100", "memory=80GiB sm=100"])
    finally:
        place.close()
        keeper.terminate()
        keeper.wait()
        keeper.stdout.close()


BOXES = """
[[pool]]
name = "box"
kind = "worker"
answer_max = 4096
resources = { memory = "80GiB", sm = 100 }
[[pool]]
name = "eager"
kind = "worker"
release_is_ready = true
resources = { memory = "80GiB" }
[[pool]]
name = "bare"
kind = "worker"
[[pool]]
name = "gpu"
kind = "counted"
slots = 1
resources = { memory = "80GiB" }
"""


@case("what is no part is refused to a call as to a command")
def call_refused(place):
    place.start(BOXES)
    write = ": write NAME=AMOUNT, such as memory=10GiB or sm=20"
    start = "dibs call: did not get a slot of pool "
    for words, code, said in (
            (("box", "--want", "sm"), 2, "--want sm" + write), (("box", "--want", "sm=-1"), 2, write),
            (("box", "--want", "sm=99999999999999999999"), 2, write),
            (("box", "--up-to", "sm=1"), 2, "--up-to: say with --want how much it is at least"),
            (("box", "--want", "gpu=1"), 2, start + '"box": --want and --up-to name resources of its slots (memory, sm)'),
            (("box", "--want", "sm=2", "--up-to", "sm=1"), 2, start),
            (("bare", "--want", "sm=1"), 2, start + '"bare": its slots have no resources')):
        found, out, err = place.run("call", words[0], "x", *words[1:])
        expect_equal((words, found, out), (words, code, ""))
        expect(said in err, err)


if __name__ == "__main__":
    main(sys.argv)

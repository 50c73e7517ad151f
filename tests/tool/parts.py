#!/usr/bin/env python3
# tests/tool/parts.py -- claims of a part of a slot, counted or a worker's: what holds it, what lacks, what is refused.
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
    expect(why["sentence"].startswith("No slot of gpu has as much memory free as it wants at least: 40GiB is wanted, "
                                      "and 30GiB is the most that one slot has free."), why)
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
            (("--want", "memory=1GiB", "--up-to", "disk=1GiB"), 2,
             start + '"gpu": there is no resource "disk"; there are: memory, sm\n'),
            (("--want", "memroy=1"), 2,
             start + '"gpu": there is no resource "memroy"; did you mean "memory"? There are: memory, sm\n'),
            (("--want", "sm=0", "--up-to", "sm=1"), 2, "dibs exec: --want sm=0: it wants nothing; say more than 0 of one\n"),
            (("--want", "memory=2GiB", "--up-to", "memory=1GiB"), 2,
             "dibs exec: --want memory=2GiB is more than --up-to memory=1GiB\n"),
            (("--want", "sm=1", "--want", "sm=1"), 2, "dibs exec: --want names sm twice\n"),
            (("--want", "sm"), 2, "dibs exec: --want sm: write NAME=AMOUNT, such as memory=10GiB or sm=20\n"),
            (("--want", "sm=-1"), 2, "dibs exec: --want sm=-1: it is negative\n"),
            (("--want", "memory=8193TiB"), 2,
             "dibs exec: --want memory=8193TiB: it is too large: 9007199254740992 is the most\n"),
            (("--want", "memory=1GB"), 2,
             'dibs exec: --want memory=1GB: "GB" is not a unit: write KiB, MiB, GiB or TiB, or a number alone\n'),
            (("--up-to", "sm=1"), 2, "dibs exec: --up-to: say with --want how much it is at least\n")):
        found, out, err = place.run("exec", *wanted, "gpu", "--", "true")
        expect_equal((found, out), (code, ""))
        expect_equal(err, said)
    for command in (("exec", "gpu:2", "--want", "memory=1GiB", "--", "true"), ("claim", "gpu:2", "--want", "sm=1")):
        expect_equal(place.run(*command),
                     (2, "", f'dibs {command[0]}: --want is for a part of one slot: write gpu without ":2"\n'))
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
ECHO = ("sh", "-c", 'while read -r line; do printf "%s\\n" "$line"; done')
SERVE = ("sh", "-c", "echo $$; exec sleep 1000")


def worker(place, pool, *words, command):
    """A dibs worker, once its slots are ready."""
    child = place.begin("worker", pool, *words, "--", *command)
    said = child.stderr.readline()
    expect(said.endswith("ready\n"), said)
    return child


def state_of_slots(place, pool):
    return sorted((row["state"], row["resources"])
                  for row in map(json.loads, place.run("ls", "slots", "-p", pool, "-o", "jsonl")[1].splitlines()))


def called(place, *words):
    code, out, err = place.run("call", "box", "x", *words)
    expect_equal((code, err), (0, ""))
    return json.loads(out).get("resources")


@case("a worker's process is told the part that each call has, and is whole again behind it")
def worker_part(place):
    place.start(BOXES)
    worker(place, "box:1", "--resource", "memory=16GiB", command=ECHO)
    for _ in range(2):
        expect_equal(called(place, "--want", "memory=4GiB", "--up-to", "memory=10GiB"),
                     {"memory": 10 << 30, "sm": 0})
        expect_equal(called(place, "--want", "memory=4GiB"), {"memory": 4 << 30, "sm": 0})
        expect_equal(called(place), None)
    wait_until(place, ("ls", "slots", "-p", "box", "-o", "jsonl"), lambda rows: rows[0]["state"] == "idle")
    expect_equal(state_of_slots(place, "box"), [("idle", "memory=16GiB sm=0")])
    # More than it announced: others may come that have it.
    for wanted in ("memory=17GiB", "sm=1"):
        code, out, err = place.run("call", "box", "x", "--now", "--want", wanted)
        expect_equal((code, out), (75, ""))
        expect("no slot has as much free" in err, err)
    expect_equal(place.run("call", "box", "x", "--timeout", "10ms", "--want", "memory=17GiB")[0], 124)


@case("--parts 1 alone has the pool's amounts; a process that holds hears of the end of its part")
def worker_hold(place):
    place.start(BOXES)
    worker(place, "box:1", "--parts", "1", "--lines", "hold", command=ECHO)
    for _ in range(2):
        code, out, err = place.run("exec", "box", "--want", "memory=30GiB", "--", "sh", "-c",
                                   "echo $DIBS_ATTR_RESOURCE_MEMORY")
        expect_equal((code, out, err), (0, f"{30 << 30}\n", ""))


@case("without --resource and --parts only whole slots of a worker are claimed")
def worker_whole(place):
    place.start(BOXES)
    worker(place, "box:1", command=ECHO)
    expect_equal(called(place), None)
    expect_equal(place.run("call", "box", "x", "--now", "--want", "sm=1")[0], 75)


@case("several holders share one process, which serves whoever comes until the last has left")
def worker_parts(place):
    place.start(BOXES)
    child = worker(place, "box:1", "--resource", "memory=16GiB", "--parts", "3", "--lines", "none", command=SERVE)
    holders = [hold(place, "box", "--want", "memory=4GiB")[0] for _ in range(3)]
    expect_equal(state_of_slots(place, "box"),
                 [("leased", "memory=4GiB sm=0")] * 3 + [("shared", "memory=4GiB sm=0")])
    expect_equal(place.run("exec", "--now", "--want", "memory=1GiB", "box", "--", "true")[0], 75)
    for _ in range(4):  # the oldest leaves, and another one has its part
        first = holders.pop(0)
        first.terminate()
        first.wait()
        holders.append(hold(place, "box", "--want", "memory=4GiB")[0])
    for one in holders:
        one.terminate()
        one.wait()
    wait_until(place, ("ls", "slots", "-p", "box", "-o", "jsonl"), lambda rows: rows[0]["state"] == "idle")
    expect_equal(place.run("exec", "box", "--", "true")[0], 0)  # the whole slot
    # Told to stop, it waits for those who are there, and takes nobody else.
    last = [hold(place, "box", "--want", "memory=4GiB")[0] for _ in range(2)]
    child.terminate()
    wait_until(place, ("ls", "slots", "-p", "box", "-o", "jsonl"), lambda rows: any(row["draining"] for row in rows))
    last[0].terminate()
    last[0].wait()
    expect_equal(place.run("exec", "--now", "--want", "memory=1GiB", "box", "--", "true")[0], 75)
    expect(child.poll() is None, "a holder is left")
    last[1].terminate()
    expect_equal(child.wait(timeout=60), 0)


@case("a process that dies ends the leases on all of its parts")
def worker_dies(place):
    place.start(BOXES)
    child = worker(place, "box:1", "--parts", "256", "--lines", "none", "--backoff", "0ns", command=SERVE)
    holders = [hold(place, "box", "--want", "sm=1")[0] for _ in range(20)]
    os.kill(int(child.stdout.readline()), signal.SIGKILL)
    for one in holders:
        expect_equal(one.wait(timeout=60), 1)
        expect("lost" in one.stderr.read(), "why")
    expect_equal(place.run("exec", "--want", "sm=100", "box", "--", "true")[0], 0)  # of the next one


@case("where a release is enough, parts go on though no word tells of their ends")
def worker_eager(place):
    place.start(BOXES)
    worker(place, "eager:1", "--parts", "2", "--lines", "none", command=SERVE)
    hold(place, "eager", "--want", "memory=40GiB")
    for _ in range(5):
        expect_equal(place.run("exec", "--want", "memory=40GiB", "eager", "--", "true")[0], 0)
    expect_equal(place.run("release", "l1")[0], 0)
    expect_equal(place.run("exec", "--want", "memory=80GiB", "eager", "--", "true")[0], 0)
    hold(place, "eager", "--want", "memory=40GiB")
    worker(place, "eager:1", "--parts", "1", "--lines", "hold", command=ECHO)
    for _ in range(3):
        expect_equal(place.run("exec", "--want", "memory=80GiB", "eager", "--", "true")[0], 0)


@case("amounts and parts that a worker cannot have are refused, and say what may be")
def worker_refused(place):
    place.start(BOXES)
    write = ": write NAME=AMOUNT, such as memory=10GiB or sm=20"
    names = "--resource names resources of its pool's slots, each once and of at most 2^53"
    for words, code, said in (
            (("box", "--resource", "memory"), 2, "--resource memory" + write),
            (("box", "--resource", "memory=-1"), 2, "--resource memory=-1: it is negative"),
            (("box", "--resource", "=1"), 2, "--resource =1" + write),
            (("box", "--resource", "memory=99999999999999999999"), 2, "it is too large: 9007199254740992 is"),
            (("box", "--resource", "memory=10QiB"), 2, '"QiB" is not a unit'),
            (("box", *["--resource", "sm=1"] * 7), 2, "--resource: 7 are too many; 6 is the most"),
            (("box", "--resource", "memory=9007199254740993"), 2, "it is too large: 9007199254740992 is"),
            (("box", "--resource", "gpu=1"), 2, names),
            (("box", "--resource", "sm=1", "--resource", "sm=2"), 2, "--resource names sm twice"),
            (("bare", "--resource", "sm=1"), 2, names),
            (("bare", "--parts", "1"), 2, "--parts is for a pool whose slots have some"),
            (("gpu", "--resource", "memory=1"), 2, 'pool "gpu" is counted'),
            (("box", "--parts", "0"), 2, "from 1 to 256"),
            (("box", "--parts", "257", "--lines", "none"), 2, "from 1 to 256"),
            (("box", "--parts", "-1"), 2, "from 1 to 256"),
            (("box", "--parts", "2"), 2, "--parts 2: a process that is told its uses serves one at a time"),
            (("box", "--parts", "2", "--lines", "hold"), 2, "say --lines none"),
            (("box", "--parts", "2", "--lines", "none", "--uses-max", "9"), 2, "--uses-max, --age-max, "),
            (("box", "--parts", "2", "--lines", "none", "--between", "true"), 2, "--leftovers end are for a process"),
            (("box", "--parts", "2", "--lines", "none", "--leftovers", "end"), 2, "--leftovers end are for a process")):
        found, out, err = place.run("worker", *words, "--", "sleep", "1000")
        expect_equal((words, found, out), (words, code, ""))
        expect(said in err, err)


@case("what is no part is refused to a call as to a command")
def call_refused(place):
    place.start(BOXES)
    write = ": write NAME=AMOUNT, such as memory=10GiB or sm=20"
    start = "dibs call: did not get a slot of pool "
    for words, code, said in (
            (("box", "--want", "sm"), 2, "--want sm" + write), (("box", "--want", "sm=-1"), 2, "--want sm=-1: it is negative"),
            (("box", "--want", "sm=99999999999999999999"), 2, "it is too large"),
            (("box", "--up-to", "sm=1"), 2, "--up-to: say with --want how much it is at least"),
            (("box", "--want", "gpu=1"), 2, start + '"box": there is no resource "gpu"; there are: memory, sm'),
            (("box", "--want", "sm=2", "--up-to", "sm=1"), 2, "--want sm=2 is more than --up-to sm=1"),
            (("bare", "--want", "sm=1"), 2, start + '"bare": its slots have no resources')):
        found, out, err = place.run("call", words[0], "x", *words[1:])
        expect_equal((words, found, out), (words, code, ""))
        expect(said in err, err)


if __name__ == "__main__":
    main(sys.argv)

#!/usr/bin/env python3
# tests/tool/offers.py -- what is offered, what a lease is or was, and drains of what nobody uses.
#
#   offers.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import signal
import subprocess
import sys

from holding import hold, wait_until
from tap import Skip, case, expect, expect_equal, main

HOST = """
[[pool]]
name = "host"
kind = "counted"
slots = 2
resources = { memory = "8GiB", cpu = 16 }
[[pool]]
name = "lazy"
kind = "counted"
slots = 1
expiry = "lazy"
resources = { cpu = 8 }
[[pool]]
name = "plain"
kind = "counted"
slots = 1
"""


def offers(place, *arguments):
    code, out, err = place.run("offers", *arguments, "-o", "jsonl")
    expect_equal(err != "", code == 75)
    return code, [json.loads(line) for line in out.splitlines()]


def rooms(rows):
    return [(row["id"], row["available"]) for row in rows]


def runs(pid):
    """False once it sleeps: mostly for the answer to its question."""
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "S"


def hold_stopped(place):
    """A holder that keeps its lease alive no more."""
    holder = place.begin("exec", "--keepalive", "1h", "--want", "cpu=8", "lazy", "--", "sleep", "60")
    wait_until(place, ("status", "-o", "jsonl"), lambda rows: rows[0]["leases"] == 1)
    holder.send_signal(signal.SIGSTOP)


@case("S3.4, S3.20: what is free of each slot, the nearest to what is wanted first, and what lacks not")
def listed(place):
    place.start(HOST)
    hold(place, "host", "--want", "memory=4GiB", "--want", "cpu=2")
    code, rows = offers(place, "host")
    expect_equal((code, rooms(rows)), (0, [("host/0", "cpu=14 memory=4GiB"), ("host/1", "cpu=16 memory=8GiB")]))
    expect_equal(rooms(offers(place, "host", "--want", "cpu=1", "--up-to", "cpu=16")[1]),
                 [("host/1", "cpu=16 memory=8GiB"), ("host/0", "cpu=14 memory=4GiB")])
    expect_equal(rooms(offers(place, "host", "--want", "memory=5GiB")[1]), [("host/1", "cpu=16 memory=8GiB")])
    expect_equal(rooms(offers(place, "host", "--count", "1")[1]), [("host/0", "cpu=14 memory=4GiB")])
    hold(place, "host", "--want", "cpu=14")
    expect_equal(rooms(offers(place, "host")[1]), [("host/1", "cpu=16 memory=8GiB")])


@case("S3.22: who waits for offers is answered when a lease ends, or its time is over")
def waited(place):
    place.start(HOST)
    holder, _ = hold(place, "host:2")
    expect_equal(offers(place, "host", "--wait", "10ms"), (75, []))
    waiting = place.begin("offers", "host", "--wait", "60s", "-o", "jsonl")
    wait_until(place, ("status", "-o", "jsonl"), lambda rows: rows[0]["leases"] == 1)
    holder.terminate()
    out, _ = waiting.communicate(timeout=60)
    rows = [json.loads(line) for line in out.splitlines()]
    expect(rows and rows[0]["pool"] == "host", out)
    # Of the same stamp nothing is news until something changes.
    code, rows = offers(place, "host")
    stamp = str(rows[0]["stamp"])
    code, same = offers(place, "host", "--after", stamp, "--wait", "10ms")
    expect_equal((code, [row["stamp"] for row in same]), (0, [row["stamp"] for row in rows]))
    waiting = place.begin("offers", "host", "--after", stamp, "--wait", "60s", "-o", "jsonl")
    hold(place, "host", "--want", "cpu=1")
    out, _ = waiting.communicate(timeout=60)
    expect(json.loads(out.splitlines()[0])["stamp"] != int(stamp), out)


@case("each answer has a stamp, and one of no offers says why there are none")
def none(place):
    place.start(HOST)
    told = json.loads(place.run("offers", "host", "-o", "json")[1])
    expect_equal({row["stamp"] for row in told["rows"]}, {told["stamp"]})
    expect(place.run("offers", "host")[1].endswith(f"\nstamp {told['stamp']}\n"), "no stamp")

    def why(*words):
        code, out, err = place.run("offers", "host", *words, "-o", "json")
        expect_equal((code, json.loads(out)["rows"]), (75, []))
        expect(isinstance(json.loads(out)["stamp"], int), out)
        return err
    hold(place, "host", "--want", "cpu=10")
    hold(place, "host", "--want", "cpu=10")
    start = 'dibs offers: nothing is offered: pool "host": '
    expect_equal(why("--want", "cpu=7"), start + "no slot has as much free\n")
    place.begin("claim", "host", "--want", "cpu=16")
    wait_until(place, ("ls", "claims", "-o", "jsonl"), lambda rows: len(rows) == 1)
    expect_equal(why(), start + "a claim waits, which comes first\n")
    expect_equal(place.run("drain", "host")[0], 0)
    expect_equal(why("--wait", "1ms"), start + "it drains, or the whole broker\n")


@case("who waits for offers asks the next broker where one is killed")
def outlived(place):
    (place.folder / "dibsd.toml").write_text('log_level = "off"\n' + HOST)
    keeper = subprocess.Popen([place.dibsd, "--config", place.folder / "dibsd.toml", "--socket", place.socket],
                              stdout=subprocess.PIPE, text=True)
    try:
        expect_equal(keeper.stdout.readline(), f"dibsd: ready on {place.socket}\n")
        holder, _ = hold(place, "host:2")
        pid = json.loads(place.run("status", "-o", "json")[1])["pid"]
        waiting = place.begin("offers", "host", "--wait", "60s", "-o", "jsonl")
        while runs(waiting.pid):
            expect_equal(waiting.poll(), None)
        os.kill(pid, signal.SIGKILL)
        wait_until(place, ("status", "-o", "jsonl"), lambda rows: rows[0]["pid"] != pid)
        expect_equal(waiting.poll(), None)
        holder.terminate()
        out, err = waiting.communicate(timeout=60)
        expect_equal((waiting.returncode, err), (0, ""))
        expect_equal(json.loads(out.splitlines()[0])["pool"], "host")
    finally:
        place.close()
        keeper.terminate()
        keeper.wait()
        keeper.stdout.close()


@case("a lease that expires in a lazy pool is an offer, and ends a wait")
def expired(place):
    place.start(HOST)
    hold_stopped(place)
    expect_equal(offers(place, "lazy")[0], 75)
    waiting = place.begin("offers", "lazy", "--wait", "60s", "-o", "jsonl")
    expect_equal(place.run("renew", "l1", "--interval", "10ms")[0], 0)
    out, _ = waiting.communicate(timeout=60)
    expect_equal(json.loads(out)["available"], "cpu=8")


@case("what is no want, and what is no pool of offers, is refused with names and amounts")
def refused(place):
    place.start(HOST)
    for wanted, code, said in (
            (("host", "--want", "cpus=1"), 2,
             'pool "host": there is no resource "cpus"; did you mean "cpu"? There are: cpu, memory\n'),
            (("host", "--want", "cpu=0"), 2, "--want cpu=0: it wants nothing; say more than 0 of one\n"),
            (("host", "--want", "cpu=2", "--up-to", "cpu=1"), 2, "--want cpu=2 is more than --up-to cpu=1\n"),
            (("host", "--want", "cpu=2", "--want", "cpu=1"), 2, "--want names cpu twice\n"),
            (("host", "--want", "cpu=17"), 6, "no slot has as much of cpu: each has 16"),
            (("host", "--want", "memory=9GiB"), 6, "no slot has as much of memory: each has 8GiB\n"),
            (("host", "--want", "cpu=9007199254740993"), 2,
             "--want cpu=9007199254740993: it is too large: 9007199254740992 is the most\n"),
            (("host", "--want", "cpu=-1"), 2, "--want cpu=-1: it is negative\n"),
            (("host", "--want", "cpu"), 2, "--want cpu: write NAME=AMOUNT"),
            (("host", "--want", "cpu=1.5"), 2, "--want cpu=1.5: write NAME=AMOUNT"),
            (("host", "--want", "cpu=3x"), 2, '--want cpu=3x: "x" is not a unit: write KiB, MiB, GiB or TiB, or'),
            (("host", "--up-to", "cpu=1"), 2, "--up-to: say with --want how much it is at least"),
            (("host", "--after", "1"), 2, "--after waits for other offers: say with --wait for how long\n"),
            (("plain",), 2, "its slots have no resources"),
            (("none",), 4, "none")):
        found, out, err = place.run("offers", *wanted)
        expect_equal((found, out), (code, ""))
        expect(said in err, err)


@case("S3.15: inspect shows a lease with its meta and resources, and when and why it ended")
def inspected(place):
    place.start(HOST)
    holder, _ = hold(place, "host", "--want", "cpu=2", "--meta", "train 7")
    told = json.loads(place.run("inspect", "l1", "-o", "json")[1])
    expect_equal((told["lease"], told["pool"], told["state"], told["meta"], told["resources"], told["ended"]),
                 (1, "host", "live", "train 7", "cpu=2 memory=0", False))
    expect_equal(json.loads(place.run("ls", "leases", "-o", "jsonl")[1])["meta"], "train 7")
    expect_equal(place.run("inspect", "host/l1")[0], 0)
    expect_equal(place.run("inspect", "plain/l1")[0], 4)
    expect_equal(place.run("inspect", "l9")[0], 4)
    holder.terminate()
    holder.wait()
    wait_until(place, ("ls", "leases", "-o", "jsonl"), lambda rows: not rows)
    told = json.loads(place.run("inspect", "l1", "-o", "json")[1])
    expect_equal((told["state"], told["ended"], told["reason"], told["meta"], told["resources"]),
                 ("ended", True, "given back", "train 7", "cpu=2 memory=0"))
    # How long it was held does not grow any more, and a table shows that alone.
    later = json.loads(place.run("inspect", "l1", "-o", "json")[1])
    expect_equal(later["held_ns"], told["held_ns"])
    expect_equal(told["held_ns"], told["age_ns"] - told["ended_ns"])
    words = [line.split("  ")[0] for line in place.run("inspect", "l1")[1].splitlines()]
    expect("held" in words and "age" not in words and "kept alive, ago" not in words, words)
    for meta in ("x" * 256, "two\nlines"):
        code, _, err = place.run("exec", "--meta", meta, "plain", "--", "true")
        expect_equal(code, 2)
        expect("--meta: at most 255 bytes" in err, err)


@case("inspect tells how a lease ended: its holder died, or was killed with it, or it was revoked")
def ended(place):
    place.start(HOST + '[[pool]]\nname = "strict"\nkind = "counted"\nslots = 1\nexpiry = "strict"\n')

    def why(lease):
        wait_until(place, ("ls", "leases", "-o", "jsonl"), lambda rows: not rows)
        return json.loads(place.run("inspect", lease, "-o", "json")[1])["reason"]
    holder, _ = hold(place, "strict")
    holder.kill()
    expect_equal(why("l1"), "its holder's process has ended")
    expect_equal(place.run("exec", "--no-tree", "strict", "--", "true")[0], 0)
    expect_equal(why("l2"), "its holder's process has ended")
    holder, _ = hold(place, "strict", "--interval", "1h")
    holder.send_signal(signal.SIGSTOP)
    expect_equal(place.run("renew", "l3", "--interval", "1ms")[0], 0)
    expect_equal(holder.wait(60), -signal.SIGKILL)
    expect_equal(why("l3"), "killed: strict expiry")
    hold(place, "strict")
    expect_equal(place.run("release", "l4")[0], 0)
    expect_equal(why("l4"), "revoked")


@case("of another user's lease inspect tells pool, account and age, living or ended")
def anothers(place):
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    place.start(HOST)
    place.folder.chmod(0o755)
    os.chmod(place.socket, 0o666)
    _, said = hold(place, "plain")

    def told(lease):
        code, out, err = place.run("inspect", lease, "-o", "json", user=65534, group=65534, extra_groups=[])
        expect_equal((code, err), (0, ""))
        row = json.loads(out)
        expect(row["age_ns"] > 0, row)
        return [row[key] for key in ("pool", "account", "ended", "lease", "pid", "state", "reason", "meta")]
    for lease in ("l1", said["id"], "plain/l1"):
        expect_equal(told(lease), ["plain", "uid:0", False, None, None, None, None, None])
    expect_equal(place.run("inspect", "l9"),
                 (4, "", "dibs inspect: there is no lease l9; dibs ls leases shows those that are held\n"))
    code, _, err = place.run("inspect", "l9", user=65534, group=65534, extra_groups=[])
    expect_equal((code, err), (4, "dibs inspect: you hold no lease l9; dibs ls leases shows those that are held\n"))
    expect_equal(place.run("release", "l1")[0], 0)
    expect_equal(told("l1"), ["plain", "uid:0", True, None, None, None, None, None])


@case("S3.10: a lease that has ended is given back once more without harm")
def twice(place):
    place.start(HOST)
    hold(place, "plain")
    expect_equal(json.loads(place.run("release", "l1", "-o", "json")[1])["did"], "released")
    code, out, _ = place.run("release", "l1", "-o", "json")
    expect_equal((code, json.loads(out)["did"]), (0, "already ended"))
    told = json.loads(place.run("inspect", "l1", "-o", "json")[1])
    expect_equal(told["reason"], "revoked")


@case("S3.12: what nobody uses is drained, and what is used is not")
def idle(place):
    place.start(HOST)
    hold_stopped(place)
    code, out, err = place.run("drain", "lazy", "--if-idle-for", "0s", "-o", "jsonl")
    row = json.loads(out)
    expect_equal((code, row["draining"]), (6, False))
    expect(0 < row["left_ns"] <= 3600 * 10**9, row)
    expect("it is in use" in err, err)
    expect_equal(place.run("renew", "l1", "--interval", "1ms")[0], 0)
    wait_until(place, ("ls", "leases", "-o", "jsonl"), lambda rows: rows and rows[0]["state"] == "expired")
    code, out, _ = place.run("drain", "lazy", "--if-idle-for", "1h", "-o", "jsonl")
    expect_equal((code, json.loads(out)["left_ns"]), (6, 0))
    code, out, _ = place.run("drain", "lazy", "--if-idle-for", "0s", "-o", "jsonl")
    expect_equal((code, json.loads(out)["draining"]), (0, True))
    expect_equal(place.run("ls", "leases", "-o", "jsonl")[1], "")
    for wrong in (("lazy", "host"), ("--all",), ("lazy/0",)):
        expect_equal(place.run("drain", *wrong, "--if-idle-for", "1s")[0], 2)


@case("S3.24: a set offers what its members offer, in their order, and leaves out those that do not")
def of_set(place):
    place.start(HOST + """
[[set]]
name = "any"
pools = ["lazy", "plain", "host"]
[[set]]
name = "none"
pools = ["plain"]
""")
    expect_equal(rooms(offers(place, "any")[1]),
                 [("lazy/0", "cpu=8"), ("host/0", "cpu=16 memory=8GiB"), ("host/1", "cpu=16 memory=8GiB")])
    expect_equal(rooms(offers(place, "any", "--want", "memory=8GiB", "--count", "1")[1])[0][1], "cpu=16 memory=8GiB")
    stamp = str(offers(place, "any")[1][0]["stamp"])
    waiting = place.begin("offers", "any", "--after", stamp, "--wait", "60s", "-o", "jsonl")
    # Its answer is the same if it comes behind the drain; mostly it waits by then.
    expect_equal(offers(place, "any", "--after", stamp, "--wait", "50ms")[0], 0)
    expect_equal(place.run("drain", "lazy")[0], 0)
    out, _ = waiting.communicate(timeout=60)
    rows = [json.loads(line) for line in out.splitlines()]
    expect_equal(rooms(rows), [("host/0", "cpu=16 memory=8GiB"), ("host/1", "cpu=16 memory=8GiB")])
    expect(str(rows[0]["stamp"]) != stamp, out)
    code, out, err = place.run("offers", "none")
    expect_equal((code, out), (2, ""))
    expect("its slots have no resources" in err, err)


if __name__ == "__main__":
    main(sys.argv)

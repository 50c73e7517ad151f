#!/usr/bin/env python3
# tests/tool/reporting.py -- `dibs report` and `dibs pull`: workers that do not attach; and what `dibs
# claim` and `dibs exec` say of slots that are taken for a better claim.
#
#   reporting.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import json
import sys

from holding import hold, waiting
from tap import case, expect, expect_equal, main

POOLS = """
[[account]]
name = "urgent"
balance = 1000
[[pool]]
name = "far"
kind = "worker"
order = "account"
[[pool]]
name = "near"
kind = "counted"
slots = 1
order = "account"
[[pool]]
name = "plain"
kind = "worker"
"""


def rows(place, *arguments):
    code, out, err = place.run(*arguments, "-o", "jsonl")
    expect_equal((code, err), (0, ""))
    told = [json.loads(line) for line in out.splitlines()]
    for row in told:
        row.pop("schema", None)
    return told


def refused(place, code, words, *arguments):
    ended, out, err = place.run(*arguments)
    expect_equal((ended, out), (code, ""))
    expect(words in err, err)


@case("report: a worker that is said to be idle gets the claim that waits, and a pull tells it")
def idle(place):
    place.start(POOLS)
    claim = place.begin("claim", "far", "--label", "cuda", "--prefer", "a", "--prefer", "b",
                        "-o", "json")
    waiting(place, 1)
    expect_equal(rows(place, "report", "idle", "far", "w1"),
                 [{"reported": "idle", "pool": "far", "worker": "w1", "claim": None}])
    waiting(place, 1)  # it lacks the label
    pulled = rows(place, "pull", "far", "w1", "w2=cuda,b")
    expect_equal(pulled, [{"worker": "w1", "claim": None, "abort": None, "provision": []},
                          {"worker": "w2", "claim": 1, "abort": None, "provision": ["a"]}])
    said = json.loads(claim.stdout.readline())
    expect_equal((said["number"], said["provision"]), (1, ["a"]))
    expect_equal(rows(place, "pull", "far", "w2=cuda,b")[0]["claim"], 1)  # the same again
    rows(place, "report", "running", "far", "w2", "--claim", "c1")
    rows(place, "report", "idle", "far", "w2", "--label", "cuda", "--label", "b")
    expect_equal(claim.wait(), 1)  # done: what it ran is over
    expect("the lease is lost" in claim.stderr.read(), "its holder is told")


@case("report: what is older than what is known changes nothing")
def old_news(place):
    place.start(POOLS)
    rows(place, "report", "idle", "far", "w")
    holder, _ = hold(place, "far")
    rows(place, "report", "running", "far", "w", "--claim", "1")
    rows(place, "report", "idle", "far", "w", "--age", "1h")
    rows(place, "report", "absent", "far", "--claim", "1", "--age", "1h")
    expect_equal(holder.poll(), None)
    rows(place, "report", "absent", "far", "--claim", "1")
    expect_equal(holder.wait(), 1)
    expect_equal(rows(place, "ls", "slots", "--pool", "far"), [])


@case("report: a claim that is taken off its worker waits again and is granted again")
def unassign(place):
    place.start(POOLS)
    rows(place, "report", "idle", "far", "w")
    holder, _ = hold(place, "far")
    rows(place, "report", "unassign", "far", "w", "--claim", "1", "--error", "no disk")
    refused(place, 4, "there is no claim c1 on worker w", "report", "unassign", "far", "w",
            "--claim", "1")
    expect_equal(holder.wait(), 1)  # dibs claim waits for no second grant
    expect_equal(rows(place, "ls", "claims"), [])


@case("report again: a claim that runs waits again, with what it brings now")
def again(place):
    place.start(POOLS)
    rows(place, "report", "idle", "far", "w1")
    holder, _ = hold(place, "far", "--requeue")
    rows(place, "report", "running", "far", "w1", "--claim", "1")
    expect_equal(rows(place, "report", "again", "far", "--claim", "1", "--label", "cuda"),
                 [{"reported": "again", "pool": "far", "worker": None, "claim": 1}])
    waiting(place, 1)
    expect_equal([row["worker"] for row in rows(place, "pull", "far", "w2") if row["claim"]], [])
    expect_equal(rows(place, "pull", "far", "w3=cuda")[0]["claim"], 1)
    refused(place, 4, "there is no claim c1", "report", "again", "near",
            "--claim", "1")
    holder.terminate()
    expect_equal(holder.wait(), 0)
    refused(place, 4, "there is no claim c1", "report", "again", "far",
            "--claim", "1")


@case("claim: with --requeue it says why it waits again, where no better claim has come")
def unassigned_and_requeued(place):
    place.start(POOLS)
    rows(place, "report", "idle", "far", "w")
    holder, _ = hold(place, "far", "--requeue")
    rows(place, "report", "unassign", "far", "w", "--claim", "c1")
    expect_equal(holder.stderr.readline(), "dibs claim: its worker does not run it any more: waiting "
                                           "again, in the old place\n")
    holder.terminate()
    expect_equal(holder.wait(), 0)


@case("ls workers: those that are known by reports, too")
def reported_workers(place):
    place.start(POOLS)
    rows(place, "report", "idle", "far", "w1")
    rows(place, "report", "idle", "far", "w2")
    hold(place, "far")
    told = rows(place, "ls", "workers")
    for row in told:
        row.pop("age_ns")
    both = {"id": None, "pid": None, "user": None, "command": None, "account": None,
            "state": "reported", "slots": 1, "claims": 0, "uid": None, "gid": None, "pool": "far"}
    expect_equal(sorted(told, key=lambda row: row["name"]),
                 [both | {"leases": 1, "name": "w1"}, both | {"leases": 0, "name": "w2"}])
    expect_equal(place.run("ls", "workers")[1].splitlines()[0].split(),
                 ["WORKER", "PID", "USER", "COMMAND", "ACCOUNT", "SINCE", "STATE", "SLOTS", "CLAIMS",
                  "LEASES", "POOL", "NAME"])


@case("report, pull: what cannot be so is refused, and nothing changes")
def nonsense(place):
    place.start(POOLS)
    for words, code, arguments in (
            ("write idle, running", 2, ("report", "busy", "far", "w")),
            ("say which worker", 2, ("report", "idle", "far")),
            ("say which worker", 2, ("report", "running", "far", "--claim", "1")),
            ("say which claim", 2, ("report", "running", "far", "w")),
            ("leave --claim out", 2, ("report", "idle", "far", "w", "--claim", "1")),
            ("not of a worker", 2, ("report", "absent", "far", "w", "--claim", "1")),
            ("not of a worker", 2, ("report", "again", "far", "w", "--claim", "1")),
            ("goes with again", 2, ("report", "idle", "far", "w", "--prefer", "l")),
            ("goes with again", 2, ("report", "absent", "far", "--claim", "1", "--account", "a")),
            ("called c1, c2", 2, ("report", "absent", "far", "--claim", "0")),
            ("called c1, c2", 2, ("report", "absent", "far", "--claim", "l1")),
            ("goes with idle", 2, ("report", "absent", "far", "--claim", "1", "--label", "l")),
            ("goes with unassign", 2, ("report", "idle", "far", "w", "--error", "e")),
            ('"nowhere"', 4, ("report", "idle", "nowhere", "w")),
            ("63 is the most", 2, ("report", "idle", "far", "w" * 64)),
            ("control characters", 2, ("report", "idle", "far", "w\n")),
            ("63 is the most", 2, ("report", "idle", "far", "w", "--label", "l" * 64)),
            ("ordered by account", 6, ("report", "idle", "plain", "w")),
            ("ordered by account", 6, ("report", "idle", "near", "w")),
            ("there is no claim c7", 4, ("report", "unassign", "far", "w", "--claim", "7")),
            ("ordered by account", 6, ("pull", "plain", "w")),
            ("the name is empty", 2, ("pull", "far", "=label")),
            ("at most 8 workers", 2, ("pull", "far", *(f"w{i}" for i in range(9))))):
        refused(place, code, words, *arguments)
    # A claim and a worker that never were: nothing happens, and that is said.
    refused(place, 4, "there is no claim c99;", "report", "absent", "far", "--claim", "99")
    refused(place, 4, "there is no claim c99 on worker ghost", "report", "running", "far", "ghost",
            "--claim", "99")
    expect_equal((rows(place, "ls", "slots"), rows(place, "ls", "claims")),
                 ([{**row} for row in rows(place, "ls", "slots", "--pool", "near")], []))


@case("claim: says when its slot is being taken, and for how long it still has it")
def taken(place):
    place.start(POOLS)
    holder, _ = hold(place, "near", "--preempt", "1h")
    urgent = place.begin("claim", "near", "--account", "urgent", "-o", "json")
    said = holder.stderr.readline()
    expect(said.startswith("dibs claim: a better claim takes the slot: it is lost in "), said)
    expect_equal(urgent.poll(), None)
    holder.terminate()
    expect_equal(holder.wait(), 0)
    expect_equal(json.loads(urgent.stdout.readline())["number"], 2)


@case("claim: with --requeue it waits again in its old place, and says what it was granted then")
def requeued(place):
    place.start(POOLS)
    holder, first = hold(place, "near", "--preempt", "at-once", "--requeue")
    urgent, second = hold(place, "near", "--account", "urgent")
    expect_equal(holder.stderr.readline(), "dibs claim: a better claim has taken the slot: waiting "
                                           "again, in the old place\n")
    later = place.begin("claim", "near", "-o", "json")
    waiting(place, 2)
    urgent.terminate()
    expect_equal(urgent.wait(), 0)
    again = json.loads(holder.stdout.readline())
    expect_equal((again["number"], again["number"] == first["number"]), (1, True))
    expect(again["fence"] > second["fence"] > first["fence"], "a later fence")
    expect_equal(later.poll(), None)
    holder.terminate()
    expect_equal(holder.wait(), 0)
    expect_equal(json.loads(later.stdout.readline())["number"], 3)


@case("claim: interrupted while it waits again, it leaves nothing")
def requeued_and_gone(place):
    place.start(POOLS)
    holder, _ = hold(place, "near", "--preempt", "at-once", "--requeue")
    urgent, _ = hold(place, "near", "--account", "urgent")
    expect("waiting again" in holder.stderr.readline(), "it says so")
    waiting(place, 1)
    holder.terminate()
    expect_equal(holder.wait(), 0)
    waiting(place, 0)
    urgent.terminate()
    expect_equal(urgent.wait(), 0)


@case("claim: one that waits again is told what drains")
def requeued_and_drained(place):
    place.start(POOLS)
    for words, what, end in ((("near",), "pool", "near"), (("--all",), "whole broker", "--all")):
        holder, _ = hold(place, "near", "--preempt", "at-once", "--requeue")
        urgent, _ = hold(place, "near", "--account", "urgent")
        expect("waiting again" in holder.stderr.readline(), "it says so")
        expect_equal(place.run("drain", *words)[0], 0)
        expect_equal((holder.wait(), holder.stderr.read()),
                     (1, f"dibs claim: the lease is lost: its claim waited again, and the {what} drains "
                         f"and takes no new claims; dibs undrain {end} ends that\n"))
        urgent.terminate()
        expect_equal(urgent.wait(), 0)
        expect_equal(place.run("undrain", *words)[0], 0)


@case("exec: a command whose slot is taken is told by TERM, and gives it back")
def exec_taken(place):
    place.start(POOLS)
    command = place.begin("exec", "near", "--preempt", "1h", "--", "sh", "-c",
                          "trap 'exit 7' TERM; echo runs; while :; do sleep 0.01; done")
    expect_equal(command.stdout.readline(), "runs\n")
    urgent = place.begin("claim", "near", "--account", "urgent", "-o", "json")
    expect_equal(command.wait(), 7)
    said = command.stderr.read()  # among them what the shell says of a killed child
    expect("dibs exec: a better claim takes the slot of pool \"near\"" in said, said)
    expect_equal(json.loads(urgent.stdout.readline())["number"], 2)


@case("exec: a command whose slot may be taken at once does not outlive it")
def exec_lost(place):
    place.start(POOLS)
    command = place.begin("exec", "near", "--preempt", "at-once", "--", "sh", "-c",
                          "echo runs; exec sleep 1000")
    expect_equal(command.stdout.readline(), "runs\n")
    urgent = place.begin("claim", "near", "--account", "urgent", "-o", "json")
    expect_equal(json.loads(urgent.stdout.readline())["number"], 2)
    expect_equal(command.wait(), 125)


@case("exec: a pool's preempt holds for a claim that does not say")
def exec_as_pool(place):
    place.start(POOLS.replace('name = "near"', 'name = "near"\npreempt = "at-once"', 1))
    command = place.begin("exec", "near", "--", "sh", "-c", "echo runs; exec sleep 1000")
    expect_equal(command.stdout.readline(), "runs\n")
    urgent = place.begin("claim", "near", "--account", "urgent", "-o", "json")
    expect_equal(json.loads(urgent.stdout.readline())["number"], 2)
    expect_equal(command.wait(), 125)


@case("exec: a time that passes for a label that no slot has says so")
def exec_unfit(place):
    place.start(POOLS)
    worker = place.begin("worker", "far", "--lines", "none", "--label", "v100", "--", "sleep", "1000")
    worker.stderr.readline()
    code, _, err = place.run("exec", "far", "--label", "a100", "--timeout", "200ms", "--", "true")
    expect_equal(code, 124)
    expect(err.endswith('; no slot has the label "a100"\n'), err)
    worker.terminate()
    worker.wait()


@case("exec: nobody takes the slot of a command that has not said so")
def exec_kept(place):
    place.start(POOLS)
    command = place.begin("exec", "near", "--", "sh", "-c", "echo runs; read line",
                          stdin=-1)
    expect_equal(command.stdout.readline(), "runs\n")
    urgent = place.begin("claim", "near", "--account", "urgent", "-o", "json")
    waiting(place, 1)
    command.stdin.close()
    command.wait()
    expect_equal(json.loads(urgent.stdout.readline())["number"], 2)


@case("exec, claim: --preempt is never, at-once or a duration; a priority is one within the policy")
def options(place):
    place.start(POOLS + '[[policy]]\ndefault = true\npriority_max = 9\n')
    refused(place, 2, "--preempt soon: write never, at-once, or a duration", "claim", "near",
            "--preempt", "soon")
    refused(place, 2, "--preempt soon", "exec", "near", "--preempt", "soon", "--", "true")
    expect_equal(place.run("exec", "near", "--priority", "9", "--", "true")[0], 0)
    refused(place, 5, "priority_max = 9: the claim has priority 10", "exec", "near", "--priority", "10", "--", "true")


if __name__ == "__main__":
    main(sys.argv)

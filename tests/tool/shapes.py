#!/usr/bin/env python3
# tests/tool/shapes.py -- what -o json has, of every subcommand that knows it, and of each word that one
# takes (`ls pools`, `account set`): each key with its kind, in order, beside shapes.json; and that nothing
# that --help names is missing there. events and demo, whose JSON goes by other options, likewise.
#
#   shapes.py DIBSD DIBS [PART]     speaks TAP; with DIBS_WRITE_SHAPES=1 writes shapes.json anew
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import re
import select
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "packaging"))
import spoken_help  # noqa: E402
from holding import hold, wait_until, waiting
from snapshots import start_kept, stop
from tap import CASES, case, expect, expect_equal, main

CASES.clear()  # those of snapshots are run by themselves

FILE = pathlib.Path(__file__).with_name("shapes.json")
POOLS = """
[[account]]
name = "batch"
rate = 1.5
label_limits = { gpu = 2 }
[[pool]]
name = "gpu"
kind = "counted"
slots = 1
attributes = [{ device = "0" }]
[[pool]]
name = "room"
kind = "counted"
slots = 1
resources = { cpu = 8 }
[[pool]]
name = "far"
kind = "worker"
order = "account"
[[pool]]
name = "web"
kind = "worker"
attributes_max = 64
[[pool]]
name = "py"
kind = "worker"
workers_max = 1
[[pool]]
name = "sent"
kind = "worker"
workers_max = 1
dispatch = true
[[set]]
name = "any"
pools = ["gpu", "web"]
"""


def shape(value):
    """A value without what differs from run to run."""
    if isinstance(value, dict):
        return {key: told if key == "schema" else shape(told) for key, told in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return {bool: "truth", int: "number", float: "number", str: "text", type(None): "none"}[type(value)]


# Its JSON is the vocabulary of journals, which tests/broker/ctl and tests/scenarios compare.
JOURNALS = {"replay"}


def with_json(place):
    """What has JSON, by what each says of itself: a subcommand, or that and each word it takes."""
    _, below = spoken_help.tool(place.dibs)
    found = set()
    for name, command in below.items():
        if name in JOURNALS or not {"--output", "--json", "--jsonl"} & set(command.option_names()):
            continue
        found |= {f"{name} {word}" for word in command.words} or {name}
    return found


def told(place, name, *arguments, code=0):
    """What a subcommand says, as its shape."""
    ended, out, err = place.run(*name.split(), *arguments, "-o", "json")
    expect_equal((ended, err if code == 0 else ""), (code, ""))
    return shape(json.loads(out))


def gather_reports(place, take):
    """Each word of `dibs report`, of a worker that gets a claim again and again, and `dibs pull`."""
    take("report idle", "far", "w1", "--label", "a")
    take("pull", "far", "w1=a", as_name="pull, nothing")
    claim = place.begin("claim", "far", "--requeue", "--label", "a", "--prefer", "b", "-o", "json")
    number = json.loads(claim.stdout.readline())["number"]
    take("pull", "far", "w1=a", as_name="pull, a claim")
    take("report running", "far", "w1", "--claim", f"c{number}")
    take("report again", "far", "--claim", f"c{number}")
    take("report idle", "far", "w1", "--label", "a", as_name="report idle, again")
    take("report unassign", "far", "w1", "--claim", f"c{number}", "--error", "no disk")
    take("report absent", "far", "--claim", f"c{number}")
    claim.kill()
    claim.wait()


def gather_dispatched(place, take):
    """Each word of `dibs report` of a dispatched pool, and what is asked and told of it."""
    take("report worker", "sent", "w1", "--type", "sent", "--state", "idle")
    take("report entry", "sent", "a")
    take("report queue", "sent", "a")
    take("orders", "sent")
    take("ls entries")
    take("report done", "sent", "a")
    take("orders", "sent", as_name="orders, a start")
    take("report process", "sent", "a", "--worker", "w1")
    take("report process", "sent", "a", "--worker", "w1", "--exited", "0s", as_name="report process, exited")
    for word in ("hold", "drain", "run", "probe"):
        take(f"report {word}", "sent", "w1")
    take("hold", "sent/0")
    take("report entry", "sent", "b", "--age", "0s", as_name="report entry, again")
    for word in ("lock", "unlock", "cancel"):
        take(f"report {word}", "sent", "b")
    take("unhold", "sent/0")
    take("report forget", "sent", "b")
    take("report worker", "sent", "w1", "--state", "absent", as_name="report worker, absent")


def gather_applications(place, take):
    """Each word of `dibs app`, of an application with a gang and a task."""
    take("app add", "pair", "--pool", "room", "--group", "rank:1:cpu=2")
    take("app add-task", "pair", "one", "--in-group", "rank")
    take("app ls")
    take("app show", "pair")
    take("app complete", "pair", "one")
    take("app fail", "pair")
    take("app remove", "pair")
    expect_equal(place.run("app", "add", "other", "--pool", "room")[0], 0)
    take("app kill", "other")


def gather_types(place, take):
    """Those of an elastic pool, with the provisioner of one."""
    provisioner = place.begin("worker", "py", "--type", "py", "--", "sleep", "1000")
    wait_until(place, ("ls", "types", "-o", "jsonl"), lambda rows: rows[0]["provisioner"])
    take("ls types")
    take("show", "py", as_name="show, an elastic pool")
    provisioner.terminate()
    provisioner.wait()


def some_events(place):
    """A claim that is granted and given back, and one that is rejected."""
    expect_equal(place.run("exec", "gpu", "--", "true"), (0, "", ""))
    expect_equal(place.run("claim", "web")[0], 75)


def gather_events(place, shapes):
    """The first event of some kinds; tests/broker/ctl has all keys of all kinds."""
    expect_equal(place.run("drain", "web")[0], 0)
    child = place.begin("events", "-f", "--jsonl")
    while not select.select([child.stdout], [], [], 0)[0]:
        some_events(place)
    some_events(place)  # it listens since before the first of these
    for kind in ("grant", "end", "session_ended"):
        said = {}
        while said.get("event") != kind:
            said = json.loads(child.stdout.readline())
        shapes[f"events, {kind}"] = shape(said)
    child.kill()


def demo(place):
    """The figures of a small workload."""
    file = place.folder / "demo.json"
    code = place.run("demo", "--claims", "20", "--seconds", "1", "--slots", "2", "--json", str(file))[0]
    expect(code in (0, 1), f"its facts hold or do not: {code}")
    return shape(json.loads(file.read_text()))


def gather(place):
    """The shape of every subcommand's answer, against one broker that has something of each kind."""
    file = place.folder / "kept.toml"
    shapes = {}

    def take(name, *arguments, as_name=None, code=0):
        shapes[as_name or name] = told(place, name, *arguments, code=code)

    worker = place.begin("worker", "web", "--lines", "none", "--label", "a", "--attribute", "k=v", "--",
                         "sleep", "1000")
    wait_until(place, ("ls", "workers", "-o", "jsonl"), lambda rows: len(rows) == 1)
    holder, shapes["claim"] = hold(place, "gpu", "-i", "1min")
    shapes["claim"] = shape(shapes["claim"])
    waiter = place.begin("claim", "gpu", "-t", "1h", "-o", "json")
    waiting(place, 1)
    take("version")
    take("status")
    gather_types(place, take)
    for what in ("pools", "sets", "slots", "workers", "claims", "leases", "clients"):
        take(f"ls {what}")
    lease = json.loads(place.run("ls", "leases", "-o", "jsonl")[1])
    claim = json.loads(place.run("ls", "claims", "-o", "jsonl")[1])
    client = json.loads(place.run("ls", "clients", "-o", "jsonl")[1].splitlines()[0])["id"]
    for kind, one in (("pool", "gpu"), ("slot", "gpu/0"), ("worker", "web/0"), ("lease", lease["id"]),
                      ("claim", claim["id"]), ("client", client)):
        if kind == "worker":
            one = json.loads(place.run("ls", "workers", "-o", "jsonl")[1])["id"]
        take("show", one, as_name=f"show, a {kind}")
    take("explain", claim["id"])
    take("inspect", lease["id"])
    take("offers", "room")
    # What clients report is summed up later than the claim ends.
    wait_until(place, ("snapshot", "gpu", "-o", "json"), lambda rows: rows[0]["reported_p99_ns"])
    take("snapshot", "gpu")
    take("renew", lease["id"])
    take("cancel", claim["id"])
    take("release", lease["id"])
    expect_equal((waiter.wait(), holder.wait()), (1, 1))
    take("drain", "web")
    take("undrain", "web")
    take("config check", str(file))
    (place.folder / "bad.toml").write_text("colour = 1\n")
    take("config check", str(place.folder / "bad.toml"), as_name="config check, with a mistake", code=1)
    take("fsck")
    take("bench", "gpu", "-c", "100")
    take("account ls")
    take("account show", "batch")
    take("account set", "new", "-r", "1")
    take("account reset", "new")
    take("account delete", "new")
    gather_applications(place, take)
    gather_reports(place, take)
    gather_dispatched(place, take)
    gather_events(place, shapes)
    shapes["demo"] = demo(place)
    dump = str(place.folder / "state")
    expect_equal(place.run("dump", dump)[0], 0)
    worker.terminate()
    worker.wait()
    take("load", dump)
    take("reload")
    take("upgrade")
    take("stop")
    return shapes


@case("every subcommand that has -o json says what shapes.json has")
def every(place):
    keeper = start_kept(place, POOLS)
    try:
        shapes = gather(place)
    finally:
        stop(keeper)
    if os.environ.get("DIBS_WRITE_SHAPES"):
        FILE.write_text("{\n" + ",\n".join(f" {json.dumps(name)}: {json.dumps(one)}"
                                           for name, one in sorted(shapes.items())) + "\n}\n")
    golden = json.loads(FILE.read_text())
    for name, one in shapes.items():
        # As text: the order of keys is part of it.
        expect_equal((name, json.dumps(one)), (name, json.dumps(golden.get(name))))
        expect(name == "demo" or re.fullmatch(r"dibs\.\w+/1", one["schema"]), name)
    expect_equal(sorted(golden), sorted(shapes))


@case("shapes.json has everything whose --help has an option for JSON, and nothing else")
def none_missing(place):
    found = with_json(place)
    expect({"status", "account set", "ls leases", "report again", "config check"} <= found, str(found))
    golden = {name.split(",")[0] for name in json.loads(FILE.read_text())}
    expect_equal(sorted(golden), sorted(found))


if __name__ == "__main__":
    main(sys.argv)

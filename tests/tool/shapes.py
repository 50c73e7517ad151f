#!/usr/bin/env python3
# tests/tool/shapes.py -- what -o json has, of every subcommand that knows it: each key with its kind,
# in order, beside shapes.json; and that no subcommand is missing there.
#
#   shapes.py DIBSD DIBS [PART]     speaks TAP; with DIBS_WRITE_SHAPES=1 writes shapes.json anew
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import re
import sys

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
name = "far"
kind = "worker"
order = "account"
[[pool]]
name = "web"
kind = "worker"
attributes_max = 64
"""


def shape(value):
    """A value without what differs from run to run."""
    if isinstance(value, dict):
        return {key: told if key == "schema" else shape(told) for key, told in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return {bool: "truth", int: "number", float: "number", str: "text", type(None): "none"}[type(value)]


def subcommands(place):
    """Those that have -o FORM, by what each says of itself."""
    first = [line.split()[0] for line in place.run("--help")[1].splitlines() if line.startswith("  ")]
    return {word for word in first if "--output FORM" in place.run(word, "--help")[1]}


def told(place, name, *arguments, code=0):
    """What a subcommand says, as its shape."""
    ended, out, err = place.run(*name.split(), *arguments, "-o", "json")
    expect_equal((ended, err if code == 0 else ""), (code, ""))
    return shape(json.loads(out))


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
    for what in ("pools", "slots", "workers", "claims", "leases", "clients"):
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
    take("report", "idle", "far", "w1", "--label", "a")
    take("pull", "far", "w1=a")
    dump = str(place.folder / "state")
    expect_equal(place.run("dump", dump)[0], 0)
    worker.terminate()
    worker.wait()
    take("load", dump)
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
        expect(re.fullmatch(r"dibs\.\w+/1", one["schema"]), f"{name}: {one['schema']}")
    expect_equal(sorted(golden), sorted(shapes))


@case("shapes.json has every subcommand whose --help has -o FORM")
def none_missing(place):
    found = subcommands(place)
    expect(len(found) > 15, f"--help lists {sorted(found)}")
    golden = {name.replace(",", "").split()[0] for name in json.loads(FILE.read_text())}
    expect_equal(sorted(found), sorted(golden))


if __name__ == "__main__":
    main(sys.argv)

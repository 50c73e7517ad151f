#!/usr/bin/env python3
# tests/tool/reloading.py -- a configuration that is read again: what is taken over, what stays as it
# was until the next start, and what is said about it.
#
#   reloading.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import json
import re
import signal
import subprocess
import sys

from tap import case, expect, expect_equal, main

POOLS = """[[pool]]
name = "{first}"
kind = "counted"
slots = {slots}
[[pool]]
name = "kept"
kind = "counted"
slots = 1
"""
READ_AGAIN = "the configuration has been read again"


class Reloaded:
    """A broker whose warnings are read, without a keeper."""

    def __init__(self, place, config):
        self.place = place
        self.file = place.folder / "dibsd.toml"
        self.file.write_text(config)
        self.broker = subprocess.Popen(
            [place.dibsd, "--no-keeper", "--config", self.file, "--socket", place.socket],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        place.children.append(self.broker)
        expect_equal(self.broker.stdout.readline(), f"dibsd: ready on {place.socket}\n")

    def read(self, config):
        """Has it read this; what it warned of, and what it said at the end."""
        self.file.write_text(config)
        self.broker.send_signal(signal.SIGHUP)
        warned = []
        for line in self.broker.stderr:
            level, text = re.match(r"\S+ \S+ (\w+): (.*)\n", line).groups()
            if text in (READ_AGAIN, "the configuration stays as it was"):
                return warned, text
            if level != "info":
                warned.append(text)
        raise AssertionError(f"the broker ended: {self.broker.wait()}")

    def slots(self):
        lines = self.place.run("ls", "pools", "-o", "jsonl")[1].splitlines()
        return {pool["pool"]: pool["slots"] for pool in map(json.loads, lines)}

    def await_slots(self, wanted):
        """What is read is taken over by a turn; a claim's answer comes behind one."""
        while self.slots() != wanted:
            expect_equal(self.broker.poll(), None)


@case("limits, socket and hardening are fixed until the next start; all else is taken over")
def fixed(place):
    reloaded = Reloaded(place, POOLS.format(first="gpu", slots=2))
    filtered = status_of(reloaded.broker.pid, "Seccomp")
    elsewhere = place.folder / "elsewhere.sock"
    changed = (f'socket = "{elsewhere}"\nhardening = "off"\n' + POOLS.format(first="gpu", slots=3) +
               "[limits]\nslots = 64\n")
    expect_equal(reloaded.read(changed), (["limits are fixed until the next start",
                                           "the socket is fixed until the next start",
                                           "hardening is fixed until the next start"], READ_AGAIN))
    reloaded.await_slots({"gpu": 3, "kept": 1})
    expect(not elsewhere.exists(), "nobody listens elsewhere")
    status = json.loads(place.run("status", "-o", "json")[1])
    expect_equal(status["slots_max"], 4096)
    expect_equal(status_of(reloaded.broker.pid, "Seccomp"), filtered)


GPUS = """[[pool]]
name = "gpu"
kind = "counted"
slots = 2
environment = {{ DEVICE = "device" }}
attributes = [{{ device = "{first}" }}, {{ device = "{second}" }}]
"""


@case("attributes of a slot are others from the next grant on; whoever holds it has what he was told")
def attributes(place):
    reloaded = Reloaded(place, GPUS.format(first="a", second="b"))

    def shown():
        return sorted(place.run("exec", "gpu:2", "--", "sh", "-c", "echo $DEVICE")[1].strip().split(","))

    expect_equal(shown(), ["a", "b"])
    holder = place.begin("exec", "gpu", "--", "sh", "-c", "read go; echo $DEVICE", stdin=subprocess.PIPE)
    while json.loads(place.run("status", "-o", "json")[1])["leases"] != 1:
        expect_equal(holder.poll(), None)
    expect_equal(reloaded.read(GPUS.format(first="c", second="b")), ([], READ_AGAIN))
    expect_equal(holder.communicate("go\n")[0], "a\n")
    expect_equal(shown(), ["b", "c"])
    warned, said = reloaded.read(GPUS.format(first="longer", second="b"))
    expect_equal(said, READ_AGAIN)
    refused = warned[0] if warned else reloaded.broker.stderr.readline()  # a turn says it, sooner or later
    expect("attributes_max cannot change" in refused, refused)
    expect_equal(shown(), ["b", "c"])


@case("resources that change are told as such, not as what is derived from them")
def resources(place):
    same = POOLS.format(first="gpu", slots=2)
    host = '[[pool]]\nname = "host"\nkind = "counted"\nslots = 1\nresources = {{ {} }}\n'
    reloaded = Reloaded(place, same + host.format('memory = "8GiB", cpu = 16'))
    for changed in (same + host.format("cpu = 16"), same + host.format("cpu = 16, disk_space = 7, memory = 1")):
        warned, said = reloaded.read(changed)
        expect_equal(said, READ_AGAIN)
        refused = warned[0] if warned else reloaded.broker.stderr.readline()
        expect("its resources cannot change while it runs" in refused, refused)


@case("each of them is told of by itself")
def each(place):
    same = POOLS.format(first="gpu", slots=2)
    reloaded = Reloaded(place, same)
    expect_equal(reloaded.read("[limits]\naccounts = 7\n" + same),
                 (["limits are fixed until the next start"], READ_AGAIN))
    expect_equal(reloaded.read('socket_mode = "0660"\n' + same),
                 (["the socket is fixed until the next start"], READ_AGAIN))
    expect_equal(reloaded.read('hardening = "strict"\n' + same),
                 (["hardening is fixed until the next start"], READ_AGAIN))
    expect_equal(reloaded.read(same), ([], READ_AGAIN))


GONE = ('pool "{}" is no longer named: it takes no claims, and goes when its leases have ended and its '
        "workers have left")


def only(name, slots):
    return f'[[pool]]\nname = "{name}"\nkind = "counted"\nslots = {slots}\n'


def held(place, pool):
    """A holder of one of its slots, until it reads a line."""
    leases = json.loads(place.run("status", "-o", "json")[1])["leases"]
    holder = place.begin("exec", pool, "--", "sh", "-c", "read go", stdin=subprocess.PIPE)
    while json.loads(place.run("status", "-o", "json")[1])["leases"] == leases:
        expect_equal(holder.poll(), None)
    return holder


@case("a pool that is no longer named takes no claims, and goes when nobody uses it")
def unnamed_pool(place):
    reloaded = Reloaded(place, POOLS.format(first="gpu", slots=2))
    holder = held(place, "gpu")
    other = POOLS.format(first="later", slots=4)
    expect_equal(reloaded.read(other), ([GONE.format("gpu")], READ_AGAIN))
    reloaded.await_slots({"gpu": 1, "kept": 1, "later": 4})
    code, _, err = place.run("exec", "gpu", "--", "true")
    expect_equal(code, 75)
    expect("the pool is not in the broker's configuration any more" in err, err)
    expect_equal(reloaded.read(other), ([], READ_AGAIN))  # it is told once
    holder.communicate("go\n")
    expect_equal(holder.returncode, 0)
    reloaded.await_slots({"kept": 1, "later": 4})
    expect_equal(place.run("exec", "gpu", "--", "true")[0], 4)
    # One that a later file brought is one of the file's as well; idle, it goes at once.
    expect_equal(reloaded.read(POOLS.format(first="gpu", slots=3)), ([GONE.format("later")], READ_AGAIN))
    reloaded.await_slots({"gpu": 3, "kept": 1})
    expect_equal(place.run("exec", "gpu", "--now", "--", "true"), (0, "", ""))


@case("a pool that is named again before it is gone stays, ordered by account or not")
def renamed_pool(place):
    shared = POOLS.format(first="gpu", slots=2) + 'order = "account"\n[account_default]\nrate = [1.0]\n'
    reloaded = Reloaded(place, shared)
    holders = [held(place, "gpu"), held(place, "kept")]
    expect_equal(reloaded.read(only("later", 4)),
                 ([GONE.format("gpu"), GONE.format("kept")], READ_AGAIN))
    reloaded.await_slots({"gpu": 1, "kept": 1, "later": 4})
    expect_equal(reloaded.read(shared), ([GONE.format("later")], READ_AGAIN))
    reloaded.await_slots({"gpu": 2, "kept": 1})
    expect_equal(place.run("exec", "gpu", "--now", "--", "true"), (0, "", ""))
    expect_equal(reloaded.read(only("gpu", 2)),
                 ([GONE.format("kept")], READ_AGAIN))
    for holder in holders:
        holder.communicate("go\n")
    reloaded.await_slots({"gpu": 2})


@case("a pool shrinks: who is free goes at once, who is held when its lease ends")
def shrinking(place):
    reloaded = Reloaded(place, POOLS.format(first="gpu", slots=3))
    holders = [held(place, "gpu") for _ in range(3)]
    expect_equal(reloaded.read(POOLS.format(first="gpu", slots=1)), ([], READ_AGAIN))
    expect_equal(reloaded.slots(), {"gpu": 3, "kept": 1})
    holders[2].communicate("go\n")
    reloaded.await_slots({"gpu": 2, "kept": 1})
    holders[1].communicate("go\n")
    reloaded.await_slots({"gpu": 1, "kept": 1})
    expect_equal(reloaded.read(POOLS.format(first="gpu", slots=5)), ([], READ_AGAIN))
    reloaded.await_slots({"gpu": 5, "kept": 1})
    expect_equal(reloaded.read(POOLS.format(first="gpu", slots=2)), ([], READ_AGAIN))
    reloaded.await_slots({"gpu": 2, "kept": 1})
    holders[0].communicate("go\n")


@case("dibs reload says what the file wants and a running broker cannot do")
def refused(place):
    reloaded = Reloaded(place, POOLS.format(first="gpu", slots=2))
    reloaded.file.write_text(only("kept", 3) + only("gpu", 2) + 'order = "account"\n[account_default]\nrate = [1.0]\n')
    expect_equal(place.run("reload"),
                 (0, "The configuration has been read again.\n",
                  "dibs reload: pool 'gpu': its order cannot change while it runs; it stays as it was\n"))
    expect_equal(reloaded.slots(), {"gpu": 2, "kept": 3})
    reloaded.file.write_text(POOLS.format(first="gpu", slots=2))
    expect_equal(place.run("reload"), (0, "The configuration has been read again.\n", ""))


@case("an account that is no longer named is deleted; one that was made by hand stays")
def unnamed_account(place):
    account = '[[account]]\nname = "{}"\nrate = [1.0]\n'
    pools = POOLS.format(first="gpu", slots=2) + ('[[pool]]\nname = "shared"\nkind = "counted"\nslots = 1\n'
                                                  'order = "account"\n')
    reloaded = Reloaded(place, pools + account.format("team") + account.format("lab"))
    expect_equal(place.run("account", "set", "hand", "--rate", "2")[0], 0)

    def accounts():
        lines = place.run("account", "ls", "-o", "jsonl")[1].splitlines()
        return {json.loads(line)["account"] for line in lines}

    expect_equal(accounts() & {"team", "lab", "hand"}, {"team", "lab", "hand"})
    expect_equal(reloaded.read(pools + account.format("lab")), ([], READ_AGAIN))
    while "team" in accounts():
        expect_equal(reloaded.broker.poll(), None)
    expect_equal(accounts() & {"team", "lab", "hand"}, {"lab", "hand"})


@case("a file with a mistake changes nothing, and each mistake is told with its place")
def mistaken(place):
    reloaded = Reloaded(place, POOLS.format(first="gpu", slots=2))
    warned, end = reloaded.read(POOLS.format(first="gpu", slots=5) + "[limits]\nslots = -1\nfoo = 1\n")
    expect_equal(end, "the configuration stays as it was")
    expect_equal(len(warned), 2)
    for number, mistake in zip((10, 11), sorted(warned)):
        expect(f"dibsd.toml:{number}:" in mistake, mistake)
    expect_equal(reloaded.slots(), {"gpu": 2, "kept": 1})


def status_of(pid, key):
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        return next(line.split()[1] for line in status if line.startswith(key + ":"))


if __name__ == "__main__":
    main(sys.argv)

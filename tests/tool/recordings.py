#!/usr/bin/env python3
# tests/tool/recordings.py -- `dibs record`: what a live broker was given plays to the same decisions.
#
#   recordings.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import json
import os
import re
import signal
import sys
import time

from admin_channel import code_of, greet, request
from holding import POOLS, hold, wait_until, waiting
from tap import CASES, Skip, case, expect, expect_equal, main

CASES.clear()  # those of admin_channel.py
RECORD = 23
REFUSED = 7
MONEY = """
[[pool]]
name = "paid"
kind = "counted"
slots = 1
order = "account"
[[account]]
name = "alice"
rate = 0.5
balance = 100
"""


def begin(place, *options):
    """`dibs record`, once what is done is recorded; the broker may not yet know of the last one's end."""
    file = place.folder / "live.djn"
    until = time.monotonic() + 60
    while True:
        child = place.begin("record", str(file), *options)
        said = child.stderr.readline()
        if "another recording goes on" not in said or time.monotonic() > until:
            break
        child.communicate(timeout=60)
    expect_equal(said, f"dibs record: recording to {file}; interrupt to end it\n")
    return child, file


def end(child, file, number=signal.SIGINT):
    """Interrupts it: how many turns, commands and decisions there are."""
    child.send_signal(number)
    out, err = child.communicate(timeout=60)
    expect_equal((child.returncode, err), (0, ""))
    found = re.fullmatch(re.escape(str(file)) + r": (\d+) turns?, (\d+) commands?, (\d+) decisions?\n",
                         out)
    expect(found, out)
    return [int(number) for number in found.groups()]


def same(place, file, turns):
    expect_equal(place.run("replay", "--check", str(file)),
                 (0, f"{file}: 1 turn decides as it was recorded\n" if turns == 1 else
                  f"{file}: {turns} turns decide as they were recorded\n", ""))


def commands_of(place, file):
    """What the recording was given: of each command its word and its fields."""
    text = place.folder / "live.jsonl"
    expect_equal(place.run("replay", "--to-json", str(text), str(file)), (0, "", ""))
    told = [json.loads(line) for line in text.read_text().splitlines()]
    return [command for line in told if "given" in line for command in line["given"].items()]


ROUTED = """
[[pool]]
name = "a"
kind = "counted"
slots = 1
backlog_max = 1
[[pool]]
name = "b"
kind = "counted"
slots = 1
backlog_max = 1
[[set]]
name = "any"
pools = ["a", "b"]
rank = "load"
caps = { b = 3 }
"""


@case("record: claims of a set that is ranked by load bring its members, and go to the same pools again")
def routed(place):
    place.start(ROUTED)
    child, file = begin(place)
    holders = [hold(place, "any") for _ in range(2)]
    expect_equal([said["pool"] for _, said in holders], ["a", "b"])
    for _ in range(2):
        place.begin("claim", "any")
    wait_until(place, ("ls", "claims", "-o", "jsonl"), lambda claims: len(claims) == 2)
    expect(place.run("exec", "any", "--", "true")[0] != 0, "both backlogs are full")
    holders[1][0].send_signal(signal.SIGTERM)
    wait_until(place, ("ls", "claims", "-o", "jsonl"), lambda claims: [row["pool"] for row in claims] == ["a"])
    turns, _, _ = end(child, file)
    same(place, file, turns)
    routes = [fields["route"] for word, fields in commands_of(place, file) if word == "claim" and "route" in fields]
    expect_equal(len(routes), 5)
    expect_equal(routes[0]["members"], [{"pool": 0}, {"pool": 1, "cap": 3}])


@case("record: clients, workers, a worker that is killed, a configuration, administrators")
def under_load(place):
    broker = place.start(POOLS + MONEY)
    holder, _ = hold(place, "gpu")  # from before
    child, file = begin(place)
    load = place.begin("bench", "gpu", "--ask", "--claims", "3000")
    workers = place.begin("worker", "web:2", "--", "sleep", "1000")
    wait_until(place, ("ls", "slots", "--pool", "web", "-o", "jsonl"),
               lambda rows: len(rows) == 2 and all(row["state"] == "idle" for row in rows))
    held, _ = hold(place, "web:2")
    waiter = place.begin("claim", "web", "-o", "json")
    waiting(place, 1)
    os.kill(workers.pid, signal.SIGKILL)
    wait_until(place, ("ls", "slots", "--pool", "web", "-o", "jsonl"), lambda rows: not rows)
    expect(held.wait(timeout=60) != 0, "its slots are gone")
    config = place.folder / "dibsd.toml"
    config.write_text(config.read_text() + '\n[[pool]]\nname = "late"\nkind = "counted"\nslots = 3\n')
    broker.send_signal(signal.SIGHUP)
    wait_until(place, ("ls", "pools", "-o", "jsonl"),
               lambda rows: any(row["pool"] == "late" for row in rows))
    expect_equal(place.run("exec", "late:3", "--", "true")[0], 0)
    expect_equal(place.run("exec", "paid", "--account", "alice", "--", "true")[0], 0)
    expect_equal(place.run("account", "set", "bob", "--rate", "0.25")[0], 0)
    expect_equal(place.run("drain", "web")[0], 0)
    expect(waiter.wait(timeout=60) != 0, "it was rejected")
    expect_equal(load.wait(timeout=60), 0)
    holder.kill()
    holder.wait()
    expect_equal(place.run("exec", "gpu:2", "--timeout", "1min", "--", "true")[0], 0)
    turns, commands, decisions = end(child, file)
    same(place, file, turns)
    told = commands_of(place, file)
    given = [word for word, _ in told]
    for command in ("session", "session_dies", "claim", "release", "announce", "word", "drain"):
        expect(command in given, command)
    expect(("pool", "late") in [(word, fields.get("name")) for word, fields in told], "the new pool")
    expect(("account", "bob") in [(word, fields.get("name")) for word, fields in told], "the account")
    claims = given.count("claim") + given.count("pledged_claim")
    expect(commands == len(given) and claims >= 3000, commands)
    code, out, err = place.run("replay", str(file))
    expect_equal((code, err, len(out.splitlines())), (0, "", decisions))
    expect(sum(line.startswith('{"grant"') for line in out.splitlines()) >= 3005, "grants")
    expect_equal(place.run("fsck")[0], 0)


@case("record: what was done before it is interrupted is in it, and it ends by itself in time")
def ends(place):
    place.start(POOLS)
    for number in (signal.SIGINT, signal.SIGTERM):
        child, file = begin(place)
        expect_equal(place.run("exec", "gpu", "--", "true")[0], 0)
        turns, _, _ = end(child, file, number)
        same(place, file, turns)
        given = [word for word, _ in commands_of(place, file)]
        expect_equal(given[0], "session")
        expect("claim" in given or "pledged_claim" in given, given)
    file = place.folder / "live.djn"
    code, out, _ = place.run("record", str(file), "--for", "1ms")
    expect_equal((code, out.split(":")[0]), (0, str(file)))
    same(place, file, int(out.split()[1]))
    expect_equal(file.stat().st_mode & 0o777, 0o600)
    child, file = begin(place, "--for", "2562047h")  # which no clock reaches
    expect_equal(place.run("exec", "gpu", "--", "true")[0], 0)
    end(child, file)
    expect({"claim", "pledged_claim"} & {word for word, _ in commands_of(place, file)},
           "it has not ended by itself")


@case("record: a recorder that stands still loses what follows, and no more")
def too_slow(place):
    place.start(POOLS)
    code, claims = 0, 70000  # the broker keeps some 65,000 turns for it
    while code == 0:
        child, file = begin(place)
        child.send_signal(signal.SIGSTOP)
        expect_equal(place.run("bench", "gpu", "--ask", "--claims", str(claims))[0], 0)
        child.send_signal(signal.SIGINT)
        child.send_signal(signal.SIGCONT)
        out, err = child.communicate(timeout=60)
        same(place, file, int(out.split()[1]))
        code, claims = child.returncode, claims * 2
    expect_equal(code, 1)
    expect(re.fullmatch(r"dibs record: the broker did more than was taken from it: what came behind "
                        r"turn \d+ is lost\n", err), err)


@case("record: one at a time, and administrators only")
def one_at_a_time(place):
    place.start('socket_mode = "0666"\n' + POOLS)
    child, file = begin(place)
    connection = greet(place)
    connection.send(request(RECORD))
    expect_equal(code_of(connection.recv(65536)), REFUSED)
    connection.close()
    other = place.folder / "other.djn"
    code, out, err = place.run("record", str(other))
    expect_equal((code, out), (6, ""))
    expect("another recording goes on" in err, err)
    turns, _, _ = end(child, file)
    same(place, file, turns)
    child, file = begin(place)
    child.kill()  # its broker stops for it, and takes the next one
    child.wait()
    wait_until(place, ("ls", "pools", "-o", "jsonl"),
               lambda rows: place.run("record", str(other), "--for", "1ms")[0] == 0)
    code, _, err = place.run("replay", "--check", str(file))
    expect(code == 1 and "the recording was cut: it has no end behind turn " in err, err)
    if os.geteuid() != 0:
        raise Skip("only root can be another user, too")
    os.chmod(place.folder, 0o755)
    code, out, err = place.run("record", "/dev/null", user=65534, group=65534, extra_groups=[])
    expect_equal((code, out), (5, ""))
    expect(err.startswith("dibs record: only administrators may: root"), err)


@case("record: no broker, a file that cannot be written, a broker that goes")
def bad_input(place):
    file = place.folder / "none.djn"
    expect_equal(place.run("record", str(file))[:2], (3, ""))
    expect(not file.exists(), "a file for nothing")
    broker = place.start(POOLS)
    code, out, err = place.run("record", "/no/such/folder/file")
    expect_equal((code, out, err), (1, "", "dibs record: /no/such/folder/file: No such file or "
                                           "directory\n"))
    code, _, err = place.run("record", "/dev/full")
    expect_equal((code, err), (1, "dibs record: /dev/full: No space left on device\n"))
    expect_equal(place.run("record")[0], 2)
    expect_equal(place.run("record", "one", "two")[0], 2)
    child, file = begin(place)
    expect_equal(place.run("exec", "gpu", "--", "true")[0], 0)
    broker.kill()
    broker.wait()
    out, err = child.communicate(timeout=60)
    expect_equal(child.returncode, 3)
    expect("the recording ends there" in err, err)
    same(place, file, int(out.split()[1]))


@case("replay: a recording that was changed or cut, and what is none")
def changed(place):
    place.start(POOLS)
    child, file = begin(place)
    expect_equal(place.run("exec", "gpu", "--", "true")[0], 0)
    turns, _, _ = end(child, file)
    same(place, file, turns)
    bytes_ = file.read_bytes()
    broken = place.folder / "broken.djn"
    broken.write_bytes(bytes_[:-20] + bytes([bytes_[-20] ^ 1]) + bytes_[-19:])
    code, out, err = place.run("replay", "--check", str(broken))
    expect_equal((code, out), (1, ""))
    expect(err.startswith(f"{broken}:"), err)
    broken.write_bytes(bytes_[:-20])
    code, _, err = place.run("replay", "--check", str(broken))
    expect(code == 1 and "ends inside" in err, err)


if __name__ == "__main__":
    main(sys.argv)

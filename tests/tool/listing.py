#!/usr/bin/env python3
# tests/tool/listing.py -- `dibs ls` with --sort, --user and --watch.
#
#   listing.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import json
import os
import signal
import subprocess
import sys

from holding import POOLS, hold, waiting
from tap import Skip, case, expect, expect_equal, main


def column(place, key, *arguments):
    code, out, err = place.run("ls", *arguments, "-o", "jsonl")
    expect_equal((code, err), (0, ""))
    return [json.loads(line)[key] for line in out.splitlines()]


@case("ls --sort: numbers and times from the largest on, names from A to Z, what is not known last")
def sort(place):
    place.start(POOLS.replace("slots = 2", "slots = 3") + '[[pool]]\nname = "cpu"\nkind = "counted"\nslots = 9\n')
    expect_equal(column(place, "pool", "pools"), ["gpu", "web", "cpu"])
    expect_equal(column(place, "pool", "pools", "--sort", "pool"), ["cpu", "gpu", "web"])
    expect_equal(column(place, "pool", "pools", "-s", "pool", "-r"), ["web", "gpu", "cpu"])
    expect_equal(column(place, "slots", "pools", "-s", "SLOTS"), [9, 3, 0])
    hold(place, "gpu:2", "-i", "1min")
    hold(place, "gpu:1")
    expect_equal(column(place, "number", "leases"), [1, 2])
    expect_equal(column(place, "number", "leases", "-s", "since"), [2, 1])
    expect_equal(column(place, "number", "leases", "-s", "held", "-r"), [2, 1])
    expect_equal(column(place, "number", "leases", "-s", "age_ns", "-r"), [2, 1])
    expect_equal(column(place, "number", "leases", "-s", "left"), [1, 2])
    expect_equal(column(place, "number", "leases", "-s", "left", "-r"), [1, 2])
    code, out, err = place.run("ls", "leases", "--sort", "hold")
    expect_equal((code, out), (2, ""))
    expect(err.startswith('dibs ls: --sort: there is no column "hold"; did you mean held? There are account, '), err)
    expect_equal(place.run("ls", "pools", "-r")[0], 2)


@case("ls --user: rows of a user alone, by name and by uid, where rows have users")
def user(place):
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    place.start('socket_mode = "0666"\n' + POOLS)
    place.folder.chmod(0o755)
    hold(place, "gpu:2")
    place.begin("claim", "gpu", user=65534, group=65534, extra_groups=[])
    place.begin("claim", "gpu")
    waiting(place, 2)
    for name in ("nobody", "65534"):
        expect_equal(column(place, "uid", "claims", "-u", name), [65534])
        expect_equal(column(place, "uid", "leases", "-u", name), [])
    expect_equal(column(place, "user", "claims", "--user", "root"), ["root"])
    # Who may not see whose the others are sees them on their users' own accounts.
    code, out, _ = place.run("ls", "leases", "-u", "root", "-o", "jsonl", user=65534, group=65534, extra_groups=[])
    expect_equal((code, json.loads(out)["account"]), (0, "uid:0"))
    expect_equal(place.run("ls", "leases", "-u", "no-such-user")[::2],
                 (2, 'dibs ls: --user: there is no user "no-such-user"\n'))
    code, _, err = place.run("ls", "slots", "-u", "root")
    expect_equal((code, err), (2, "dibs ls: --user: slots belong to no user; list leases instead\n"))


@case("ls --watch: again and again, over a restart of the broker; ends with its reader")
def watch(place):
    broker = place.start(POOLS)
    child = place.begin("ls", "pools", "-p", "gpu", "-o", "jsonl", "--watch", "0.01")
    for _ in range(2):
        expect_equal(json.loads(child.stdout.readline())["idle"], 2)
    hold(place, "gpu")
    while json.loads(child.stdout.readline())["idle"] != 1:
        pass
    broker.kill()
    broker.wait()
    place.start(POOLS)
    while json.loads(child.stdout.readline())["idle"] != 2:
        pass
    child.stdout.close()
    expect_equal(child.wait(), 0)
    for value in ("0", "soon", "-1"):
        code, out, err = place.run("ls", "pools", f"--watch={value}")
        expect_equal((code, out), (2, ""))
    child = place.begin("ls", "--watch", "pools")  # without a value: every two seconds
    expect(child.stdout.readline().startswith("POOL "), "its heading")
    child.send_signal(signal.SIGTERM)
    expect_equal(child.wait(), -signal.SIGTERM)


@case("ls --watch on a terminal: in place, as many lines as there are, and it says that it waits")
def on_a_terminal(place):
    broker = place.start('[[pool]]\nname = "gpu"\nkind = "counted"\nslots = 40\n')
    leader, follower = os.openpty()
    subprocess.run(["stty", "cols", "40", "rows", "8"], stdin=follower, check=True)
    child = subprocess.Popen([place.dibs, "ls", "slots", "-w", "0.01"], stdout=follower,
                             env=place.environment(TERM="vt100"))
    place.children.append(child)
    os.close(follower)
    said = b""
    while said.count(b"\x1b[H") < 4:
        said += os.read(leader, 4096)
    for frame in said.split(b"\x1b[H")[1:3]:
        lines = frame.split(b"\x1b[J")[0].split(b"\n")
        expect_equal((len(lines), lines), (8, lines))
        expect(lines[0].startswith(b"dibs ls slots  20"), str(lines))
        expect(b"gpu/3" in lines[-1] or b"gpu/4" in lines[-1], str(lines))
    broker.kill()
    while b"waiting for the broker: " not in said:
        said += os.read(leader, 4096)
    child.kill()
    os.close(leader)


if __name__ == "__main__":
    main(sys.argv)

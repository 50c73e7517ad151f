#!/usr/bin/env python3
# tests/tool/sets.py -- pool sets as the tool has them: claims, lists of all members, names behind POOL/.
#
#   sets.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import json
import signal
import sys

from holding import hold, wait_until
from tap import case, expect, expect_equal, main

CONFIG = """
[[pool]]
name = "a"
kind = "counted"
slots = 1
attributes = [{ device = "0" }]
[[pool]]
name = "b"
kind = "counted"
slots = 1
[[pool]]
name = "web"
kind = "worker"
answer_max = 1024
[[set]]
name = "any"
pools = ["b", "a"]
"""


def rows(place, *command):
    code, out, err = place.run("ls", *command, "-o", "jsonl")
    expect_equal((code, err), (0, ""))
    return [{key: value for key, value in json.loads(line).items() if key != "schema"}
            for line in out.splitlines()]


@case("exec and claim take the first member that has a slot, and say which it is")
def takes(place):
    place.start(CONFIG)
    script = ("sh", "-c", "echo $DIBS_POOL $DIBS_SLOT")
    expect_equal(place.run("exec", "any", "--", *script), (0, "b 0\n", ""))
    holder, said = hold(place, "any")
    expect_equal(said["pool"], "b")
    expect_equal(place.run("exec", "any", "-e", "D=device", "--", "sh", "-c", "echo $DIBS_POOL $D"), (0, "a 0\n", ""))
    other, said = hold(place, "any")
    expect_equal((said["pool"], said["attributes"]), ("a", ["device=0"]))
    code, _, err = place.run("exec", "any", "--now", "--", "true")
    expect_equal(code, 75)
    expect(err.startswith('dibs exec: did not get a slot of pool "any": pool "b": no slot is idle'), err)
    expect_equal(place.run("exec", "any", "-t", "10ms", "--", "true")[0], 124)
    waiter = place.begin("exec", "any", "--", *script)
    wait_until(place, ("ls", "claims", "--pool", "any", "-o", "jsonl"), lambda claims: len(claims) == 2)
    other.send_signal(signal.SIGTERM)
    expect_equal(waiter.communicate(), ("a 0\n", ""))
    holder.send_signal(signal.SIGTERM)
    wait_until(place, ("ls", "pools", "--pool", "any", "-o", "jsonl"),
               lambda pools: all(pool["waiting"] == 0 and pool["leased"] == pool["parked"] for pool in pools))


@case("call finds the worker of a set, and says which member has none")
def calls(place):
    place.start(CONFIG + '[[set]]\nname = "workers"\npools = ["web"]\n')
    place.begin("worker", "web:1", "--", "sh", "-c", 'while read -r line; do printf "%s\\n" "$line"; done')
    code, out, err = place.run("call", "workers", "hello")
    expect_equal((code, json.loads(out)["body"], err), (0, "hello", ""))
    code, out, err = place.run("call", "any", "hello")
    expect_equal((code, out), (2, ""))
    expect('pool "b" is a counted pool' in err, err)


@case("S3.24: a list of a set has all of its members in their order, and fails if one takes no claims")
def lists(place):
    place.start(CONFIG)
    _, said = hold(place, "a")
    expect_equal([row["pool"] for row in rows(place, "pools", "--pool", "any")], ["b", "a"])
    expect_equal([row["id"] for row in rows(place, "slots", "--pool", "any")], ["b/0", "a/0"])
    expect_equal([row["number"] for row in rows(place, "leases", "--pool", "any")], [said["number"]])
    expect_equal(rows(place, "claims", "--pool", "any"), [])
    ordered = {"set": "any", "pools": ["b", "a"], "rank": "order", "ranked": [], "saturated": []}
    expect_equal(rows(place, "sets"), [{**ordered, "left_out": []}])
    expect_equal(place.run("drain", "a")[0], 0)
    expect_equal(rows(place, "sets"), [{**ordered, "left_out": ["a drains"]}])
    for kind in ("pools", "slots", "leases", "claims"):
        expect_equal(place.run("ls", kind, "--pool", "any"),
                     (4, "", 'dibs ls: pool "a" of set "any" drains: list the other pools one by one\n'))
    expect_equal(place.run("exec", "any", "--", "sh", "-c", "echo $DIBS_POOL"), (0, "b\n", ""))
    expect_equal(place.run("ls", "workers", "--pool", "any")[0], 2)


@case("S3.23: a name is split at its first slash; of an unknown pool, or another one, it is not found")
def names(place):
    place.start(CONFIG)
    holder, said = hold(place, "a")
    number, name = said["number"], said["id"]
    lease = f"l{number}"
    expect_equal(json.loads(place.run("show", f"a/{lease}", "-o", "json")[1])["pool"], "a")
    expect_equal(json.loads(place.run("show", f"a/{name}", "-o", "json")[1])["number"], number)
    expect_equal(place.run("renew", f"a/{lease}")[0], 0)
    for command in ("show", "renew", "release"):
        expect_equal(place.run(command, f"b/{lease}"),
                     (4, "", f"dibs {command}: there is no lease b/{lease}; "
                             "dibs ls leases shows those that are held\n"))
        expect_equal(place.run(command, f"x/{lease}")[0], 4)
    expect_equal(place.run("show", f"any/{lease}"),
                 (4, "", 'dibs show: "any" is a pool set; name one of its pools: b, a\n'))
    waiter = place.begin("claim", "a")
    claim = wait_until(place, ("ls", "claims", "-o", "jsonl"), lambda claims: len(claims) == 1)[0]["number"]
    expect_equal(place.run("explain", f"b/c{claim}")[0], 4)
    expect_equal(place.run("explain", f"a/c{claim}")[0], 0)
    expect_equal(place.run("cancel", f"b/c{claim}"),
                 (4, "", f"dibs cancel: claim b/c{claim} does not wait in that pool: it has ended, or is of "
                         "another pool; dibs ls claims shows those that wait\n"))
    expect_equal(place.run("cancel", f"a/c{claim}")[0], 0)
    expect(waiter.wait() != 0, "it was cancelled")
    for text in ("a/", "/c1", "a/b/c1", "a/x"):
        expect_equal(place.run("show", text)[0], 2)
    expect_equal(place.run("release", f"a/{lease}")[0], 0)
    expect_equal(holder.wait(), 1)


@case("an unknown name lists sets where they are taken; where they are not, a set's name is told as one")
def told(place):
    place.start(CONFIG)
    for command in (("exec", "ani", "--", "true"), ("claim", "ani"), ("call", "ani", "x"), ("offers", "ani"),
                    ("ls", "pools", "--pool", "ani")):
        expect_equal(place.run(*command)[::2],
                     (4, f'dibs {command[0]}: there is no pool or set "ani"; did you mean "any"? '
                         "There are: a, any, b, web\n"))
    expect_equal(place.run("snapshot", "ani"),
                 (4, "", 'dibs snapshot: there is no pool "ani"; did you mean "a"? There are: a, b, web\n'))
    is_set = '"any" is a pool set; name one of its pools: b, a\n'
    for command in (("snapshot", "any"), ("bench", "any"), ("worker", "any:2", "--", "true"), ("drain", "any")):
        expect_equal(place.run(*command), (4, "", f"dibs {command[0]}: {is_set}"))
    start = 'dibs exec: did not get a slot of pool "any": '
    expect_equal(place.run("drain", "a", "b")[0], 0)
    expect_equal(place.run("exec", "any", "--", "true"),
                 (75, "", start + "it is a set, and none of its pools takes claims: b drains, a drains\n"))
    expect_equal(place.run("drain", "--all")[0], 0)
    expect_equal(place.run("exec", "any", "--", "true"),
                 (75, "", start + "the whole broker drains and takes no new claims; dibs undrain --all ends that\n"))


@case("a set may name a pool that exec --create has made, as long as that is there")
def created(place):
    broker = place.start(CONFIG)
    wanted = CONFIG + '[[set]]\nname = "more"\npools = ["made", "a"]\n'
    (place.folder / "dibsd.toml").write_text('log_level = "off"\n' + wanted)
    code, _, err = place.run("reload")
    expect(code != 0 and 'there is no pool "made"' in err, err)
    expect_equal(place.run("exec", "--create", "made=1", "made", "--", "true")[0], 0)
    expect_equal(place.run("reload")[0], 0)
    expect_equal(place.run("exec", "more", "--", "sh", "-c", "echo $DIBS_POOL"), (0, "made\n", ""))
    expect_equal(place.run("exec", "--create", "any=1", "any", "--", "true")[2],
                 "dibs exec: --create any=1: there is a pool set of that name\n")
    # It cannot have the name of a pool that is there.
    taken = CONFIG + '[[set]]\nname = "made"\npools = ["a"]\n'
    (place.folder / "dibsd.toml").write_text('log_level = "off"\n' + taken)
    code, _, err = place.run("reload")
    expect(code != 0 and 'the broker has a pool "made"' in err, err)
    expect_equal([row["set"] for row in rows(place, "sets")], ["any", "more"])
    expect_equal(broker.poll(), None)


LOADED = """
cluster = "east"
[[pool]]
name = "a"
kind = "counted"
slots = 1
backlog_max = 1
attributes = [{ device = "0" }]
[[pool]]
name = "b"
kind = "counted"
slots = 2
backlog_max = 1
[[set]]
name = "any"
pools = ["a", "b"]
rank = "load"
cool_down = "1h"
"""


def of_set(place):
    row = rows(place, "sets")[0]
    return row["rank"], row["ranked"], row["saturated"], row["left_out"]


@case("S0.38: by load a claim goes to the pool with most idle slots, and stays where it waits")
def loaded(place):
    place.start(LOADED)
    expect_equal(of_set(place), ("load", ["b", "a"], [], []))
    script = ("sh", "-c", "echo $DIBS_POOL $DIBS_SLOT")
    expect_equal(place.run("exec", "any", "--", *script), (0, "b 0\n", ""))
    holders = [hold(place, "any") for _ in range(3)]
    expect_equal([said["pool"] for _, said in holders], ["b", "a", "b"])
    expect_equal(holders[1][1]["attributes"], ["device=0"])
    code, _, err = place.run("exec", "any", "--now", "--", "true")
    expect_equal(code, 75)
    expect('pool "a": no slot is idle' in err, err)
    # All are at their most: the one without claims that wait, then the name.
    first = place.begin("exec", "any", "--", *script)
    wait_until(place, ("ls", "claims", "--pool", "a", "-o", "jsonl"), lambda claims: len(claims) == 1)
    second = place.begin("exec", "any", "--", *script)
    wait_until(place, ("ls", "claims", "--pool", "b", "-o", "jsonl"), lambda claims: len(claims) == 1)
    # The backlogs hold one claim each: the first one's refusal is told.
    code, _, err = place.run("exec", "any", "--", "true")
    expect(code != 0 and 'pool "any": pool "a": too many claims wait already' in err, err)
    expect_equal(of_set(place), ("load", ["a", "b"], ["a", "b"], []))
    holders[1][0].send_signal(signal.SIGTERM)
    expect_equal(first.communicate(), ("a 0\n", ""))
    holders[0][0].send_signal(signal.SIGTERM)
    expect_equal(second.communicate()[0].split()[0], "b")
    # An idle slot makes up for that they were full.
    wait_until(place, ("ls", "pools", "--pool", "any", "-o", "jsonl"), lambda pools: pools[0]["leased"] == pools[0]["parked"])
    expect_equal(place.run("exec", "any", "--", "sh", "-c", "echo $DIBS_POOL")[0], 0)
    expect_equal(place.run("drain", "b")[0], 0)
    expect_equal(of_set(place), ("load", ["a"], ["a", "b"], ["b drains"]))
    expect_equal(place.run("exec", "any", "--", *script), (0, "a 0\n", ""))
    expect_equal(place.run("drain", "a")[0], 0)
    expect_equal(place.run("exec", "any", "--", "true"),
                 (75, "", 'dibs exec: did not get a slot of pool "any": '
                          "it is a set, and none of its pools takes claims: a drains, b drains\n"))


@case("S0.35: of the own cluster a pool, of another one elsewhere")
def clusters(place):
    place.start(LOADED)
    script = ("sh", "-c", "echo $DIBS_POOL")
    expect_equal(place.run("exec", "east::a", "--", *script), (0, "a\n", ""))
    code, _, err = place.run("exec", "west::a", "--", "true")
    expect(code != 0 and "another cluster" in err, err)
    expect(place.run("exec", "east::any", "--", "true")[0] != 0, "a set is no pool of its cluster")


@case("what a set says of its rank is checked, with its line")
def mistakes(place):
    def wrong(more, config=CONFIG):
        (place.folder / "dibsd.toml").write_text(config + more)
        code, _, err = place.run("config", "check", str(place.folder / "dibsd.toml"))
        expect_equal(code != 0, True)
        return err
    line = len(CONFIG.splitlines()) + 1
    for more, what in (('rank = "lod"', 'rank: "lod" is none of "order", "load"'),
                       ('caps = { a = 1 }', 'caps: only with rank = "load"'),
                       ('rank = "load"\ncaps = { c = 1 }', 'caps: "c" is no member of the set'),
                       ('rank = "load"\npriorities = { a = "x" }', "priorities: must be a whole number"),
                       ('cluster = 1', 'unknown key "cluster" in a set')):
        err = wrong(more + "\n")
        at = line + more.count("\n")
        expect(what in err and f":{at}" in err, f"{what}: {err}")


if __name__ == "__main__":
    main(sys.argv)

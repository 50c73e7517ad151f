#!/usr/bin/env python3
# tests/tool/gangs.py -- applications and gangs at the command line.
#
#   gangs.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import json
import os
import select
import signal
import sys

from holding import hold, wait_until
from tap import Skip, case, expect, expect_equal, main

CONFIG = """
[[pool]]
name = "gpu"
kind = "counted"
slots = 2
attributes = [{ device = "a" }, { device = "b" }]
[[pool]]
name = "other"
kind = "counted"
slots = 1
[[pool]]
name = "paid"
kind = "counted"
slots = 1
order = "account"
"""
ROOM = """
[[pool]]
name = "room"
kind = "counted"
slots = 1
resources = { cpu = 8 }
"""
SET = """
[[set]]
name = "any"
pools = ["gpu", "other"]
"""


def shown(place, name):
    code, out, err = place.run("app", "show", name, "-o", "json")
    expect_equal((code, err), (0, ""))
    return json.loads(out)


def state_of(place, name):
    _, out, _ = place.run("app", "ls", "-o", "jsonl")
    rows = [json.loads(line) for line in out.splitlines()]
    return next((row["state"] for row in rows if row["application"] == name), None)


@case("members run once all of them have a slot, and each finds it in its environment")
def gangs(place):
    place.start(CONFIG)
    holder, _ = hold(place, "gpu")
    code, out, err = place.run("app", "add", "pair", "--pool", "gpu", "--group", "rank:2", "--timeout", "1h")
    expect_equal((code, err), (0, ""))
    expect("added" in out, out)
    ranks = [place.begin("exec", "--app", "pair", "--task", f"rank-{n}", "--group", "rank", "gpu", "--",
                         "sh", "-c", "echo $DIBS_ATTR_DEVICE") for n in range(2)]
    wait_until(place, ("ls", "claims", "-o", "jsonl"),
               lambda claims: sorted(c["state"] for c in claims) == ["held", "held", "reserving"])
    wait_until(place, ("ls", "slots", "--pool", "gpu", "-o", "jsonl"),
               lambda slots: [s["application"] for s in slots if s["state"] == "placeholder"] == ["pair"])
    code, out, _ = place.run("app", "ls")
    expect("pair" in out and "reserving" in out, out)
    claims = [json.loads(line) for line in place.run("ls", "claims", "-o", "jsonl")[1].splitlines()]
    held = next(c for c in claims if c["state"] == "held")
    code, out, _ = place.run("explain", f"c{held['number']}")
    expect("reserves its gang, with 1 of 2 placeholders" in out, out)
    ask = next(c for c in claims if c["state"] == "reserving")
    code, out, err = place.run("explain", f"c{ask['number']}")
    expect_equal((code, err), (0, ""))
    expect("Application pair reserves its gang, with 1 of 2 placeholders so far. " in out, out)
    expect("dibs app show pair shows it" in out, out)
    code, _, err = place.run("cancel", f"c{ask['number']}")
    expect_equal(code, 6)
    expect("dibs app fail pair" in err, err)
    holder.send_signal(signal.SIGTERM)
    devices = sorted(rank.communicate()[0] for rank in ranks)
    expect_equal(devices, ["a\n", "b\n"])
    expect_equal([task["state"] for task in shown(place, "pair")["task_list"]], ["completed", "completed"])
    expect_equal(place.run("app", "complete", "pair")[0], 0)
    expect_equal(state_of(place, "pair"), "completed")


@case("a name is dead until it is removed, and every refusal says what to do")
def dies(place):
    place.start(CONFIG)
    expect_equal(place.run("app", "add", "pair", "--pool", "gpu", "--group", "rank:2")[0], 0)
    code, _, err = place.run("app", "add", "pair", "--pool", "gpu")
    expect_equal(code, 6)
    expect("is there already" in err and "dibs app show pair" in err, err)
    expect_equal(place.run("app", "fail", "pair")[0], 0)
    code, _, err = place.run("app", "add", "pair", "--pool", "gpu")
    expect_equal(code, 6)
    expect("application pair has ended (failed): remove it with dibs app remove pair, or choose another name" in err,
           err)
    code, _, err = place.run("exec", "--app", "pair", "--task", "x", "gpu", "--", "true")
    expect_equal(code, 6)
    expect("has ended (failed): remove it with dibs app remove pair, or choose another name" in err, err)
    code, _, err = place.run("app", "complete", "pair")
    expect_equal(code, 6)
    expect("application pair has failed: one that is running can be completed" in err, err)
    expect_equal(place.run("app", "remove", "pair")[0], 0)
    code, _, err = place.run("app", "remove", "pair")
    expect_equal(code, 4)
    expect("there is no application pair of yours" in err and "dibs app ls" in err, err)


@case("tasks that have not ended are named, and killed with their application")
def kills(place):
    place.start(CONFIG)
    expect_equal(place.run("app", "add", "solo", "--pool", "gpu")[0], 0)
    runner = place.begin("exec", "--app", "solo", "--task", "one", "gpu", "--", "sleep", "600")
    wait_until(place, ("ls", "leases", "-o", "jsonl"), lambda leases: len(leases) == 1)
    code, _, err = place.run("exec", "--app", "solo", "--task", "one", "gpu", "--", "true")
    expect_equal(code, 6)
    expect("is there already" in err, err)
    code, _, err = place.run("app", "remove", "solo")
    expect_equal(code, 6)
    expect("1 of its tasks has not ended: one" in err and "dibs app kill solo" in err, err)
    code, _, err = place.run("app", "remove", "solo", "one")
    expect_equal(code, 6)
    expect("has not ended" in err, err)
    expect_equal(place.run("app", "kill", "solo")[0], 0)
    expect_equal(runner.wait(), 125)
    wait_until(place, ("app", "ls", "-o", "jsonl"), lambda apps: apps[0]["state"] == "killed")


@case("leases that an application has left are ended task by task, and then it is removed")
def leaves(place):
    place.start(CONFIG)
    expect_equal(place.run("app", "add", "solo", "--pool", "gpu")[0], 0)
    runner = place.begin("exec", "--app", "solo", "--task", "one", "gpu", "--", "sleep", "600")
    wait_until(place, ("ls", "leases", "-o", "jsonl"), lambda leases: len(leases) == 1)
    expect_equal(place.run("app", "fail", "solo")[0], 0)
    code, _, err = place.run("app", "remove", "solo")
    expect_equal(code, 6)
    expect("1 of its tasks has not ended: one; dibs app complete solo TASK" in err, err)
    code, _, err = place.run("app", "kill", "solo")
    expect_equal(code, 6)
    expect("application solo has failed" in err, err)
    expect_equal(place.run("app", "complete", "solo", "one")[0], 0)
    expect_equal(runner.wait(), 125)
    expect_equal(place.run("app", "remove", "solo")[0], 0)


@case("who runs a task hears that it was ended by its application, waiting or not")
def tells_who_runs(place):
    place.start(CONFIG)
    expect_equal(place.run("app", "add", "solo", "--pool", "gpu")[0], 0)
    task = ("exec", "--app", "solo", "--task")
    runners = [place.begin(*task, name, "gpu", "--", "sleep", "600") for name in ("one", "two")]
    wait_until(place, ("ls", "leases", "-o", "jsonl"), lambda leases: len(leases) == 2)
    waiter = place.begin(*task, "three", "gpu", "--", "true")
    wait_until(place, ("ls", "claims", "-o", "jsonl"), lambda claims: len(claims) == 1)
    expect_equal(place.run("app", "complete", "solo", "three")[0], 0)
    expect_equal((waiter.communicate()[1], waiter.returncode),
                 ('dibs exec: did not get a slot of pool "gpu": task "three" of application "solo" was completed '
                  'from outside (dibs app complete)\n', 125))
    for runner, words in zip(runners, (("complete", "solo", "one"), ("kill", "solo"))):
        expect_equal(place.run("app", *words)[0], 0)
        _, err = runner.communicate()
        expect("is lost (it was ended from outside (dibs release, dibs app complete or dibs app kill))" in err, err)
        expect_equal(runner.returncode, 125)


@case("a hard gang fails at its time-out, a soft one runs without")
def times_out(place):
    place.start(CONFIG)
    holder, _ = hold(place, "gpu")
    for style in ("hard", "soft"):
        expect_equal(place.run("app", "add", style, "--pool", "gpu", "--group", "rank:2", "--style", style,
                               "--timeout", "1s")[0], 0)
        wait_until(place, ("app", "ls", "-o", "jsonl"),
                   lambda apps: [a["state"] for a in apps if a["application"] == style]
                   == [{"hard": "failed", "soft": "running"}[style]])
    expect_equal(shown(place, "hard")["reason"], "reservation-time-out")
    holder.send_signal(signal.SIGTERM)


@case("an application that its pool can never serve fails at once, and says why")
def admits(place):
    place.start(CONFIG)
    for name, pool, members, reason, why in (
            ("many", "gpu", 3, "too-many-units", "3 members, and pool gpu has 2 slots"),
            ("paid", "paid", 1, "state", "pool paid is ordered by account")):
        code, out, err = place.run("app", "add", name, "--pool", pool, "--group", f"rank:{members}")
        expect_equal((code, out), (6, ""))
        expect(f"application {name} has failed: {why}" in err and f"dibs app remove {name}" in err, err)
        expect_equal(shown(place, name)["state"], "failed")
        expect_equal(shown(place, name)["reason"], reason)
    code, _, err = place.run("exec", "--app", "many", "--task", "x", "gpu", "--", "true")
    expect_equal(code, 6)
    expect("has ended (failed, too-many-units): remove it" in err, err)


@case("a group that the pool cannot have is refused, and so is a task of a group that is not there")
def groups(place):
    place.start(CONFIG + ROOM)
    for pool, group, why in (
            ("gpu", "w:2:memory=1GiB", "group w: pool gpu has no resource memory: its slots have none"),
            ("room", "w:1:cup=2", "group w: pool room has no resource cup: its slots have cpu"),
            ("room", "w:1:cpu=0", "group w: a member wants 0"),
            ("room", "w:1:cpu=1,cpu=2", "group w: resource cpu is named twice")):
        code, _, err = place.run("app", "add", "a", "--pool", pool, "--group", group)
        expect_equal((group, code), (group, 6))
        expect(why in err, err)
        expect_equal(state_of(place, "a"), None)
    expect_equal(place.run("app", "add", "a", "--pool", "gpu")[0], 0)
    expect_equal(place.run("app", "add", "b", "--pool", "gpu", "--group", "rank:1", "--group", "io:1")[0], 0)
    for name, has in (("a", "no groups"), ("b", "rank, io")):
        code, _, err = place.run("app", "add-task", name, "t", "--in-group", "nog")
        expect_equal(code, 4)
        expect(f"application {name} has no group nog: it has {has}" in err, err)
        expect_equal(shown(place, name)["task_list"], [])
    expect_equal(place.run("app", "add-task", "b", "t", "--in-group", "io")[0], 0)


@case("an application has 32 groups, with names, amounts and tags as long as they may be")
def holds_many_groups(place):
    names = [f"{n:02}".ljust(31, "r") for n in range(6)]
    resources = ", ".join(f"{name} = {2**53}" for name in names)
    place.start(CONFIG + f'[[pool]]\nname = "wide"\nkind = "counted"\nslots = 1\nresources = {{ {resources} }}\n')
    amounts = ",".join(f"{name}={2**48}" for name in names)
    groups = [f"--group={n:02}".ljust(71, "g") + f":1:{amounts}" for n in range(32)]
    code, out, err = place.run("app", "add", "a" * 63, "--pool", "wide", *groups, "--tags", "t" * 255)
    expect_equal((code, err), (0, ""))
    has = shown(place, "a" * 63)
    expect_equal((has["tags"], len(has["groups"])), ("t" * 255, 32))
    expect_equal([(len(g["group"]), g["resources"].count("=")) for g in has["groups"]], [(63, 6)] * 32)
    code, _, err = place.run("app", "add", "b", "--pool", "wide", *groups, "--group", "one:1")
    expect_equal(code, 2)
    expect("an application has 32 groups at most" in err, err)


@case("a task beyond its user's quarter of limits.tasks is refused by the name of that limit")
def limits_tasks(place):
    place.start('socket_mode = "0666"\n[limits]\ntasks = 8\n' + CONFIG)
    expect_equal(place.run("app", "add", "a", "--pool", "gpu")[0], 0)
    for n in range(4):
        expect_equal(place.run("app", "add-task", "a", f"t{n}")[0], 0)
    for words in (("app", "add-task", "a", "more"), ("exec", "--app", "a", "--task", "more", "gpu", "--", "true")):
        code, _, err = place.run(*words)
        expect_equal((words, code), (words, 6))
        expect("quarter" in err and "limits.tasks" in err and "dibs app remove" in err, err)
    expect_equal(place.run("exec", "--app", "a", "--task", "t0", "gpu", "--", "true")[0], 0)


@case("another user's application is as if it were not there, and one's own of that name is another one")
def belongs(place):
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    place.start(CONFIG)
    place.folder.chmod(0o755)
    os.chmod(place.socket, 0o666)
    other = {"user": 65534, "group": 65534, "extra_groups": []}
    member = ("exec", "--app", "pair", "--task", "one", "--group", "rank", "gpu", "--", "true")
    add = ("app", "add", "pair", "--pool", "gpu", "--group", "rank:2")
    expect_equal(place.run(*add)[0], 0)
    code, _, err = place.run(*member, **other)
    expect_equal(code, 4)
    expect("dibs app add" in err, err)
    for words in ("fail", "remove"):
        expect_equal(place.run("app", words, "pair", **other)[0], 4)
    expect_equal(shown(place, "pair")["task_list"], [])
    expect_equal(place.run("app", "add", "pair", "--pool", "other", **other)[0], 0)
    expect_equal(place.run("exec", "--app", "pair", "--task", "one", "other", "--", "true", **other)[0], 0)
    expect_equal(shown(place, "pair")["task_list"], [])
    code, out, _ = place.run("app", "show", "pair", "-o", "json", **other)
    expect_equal([task["task"] for task in json.loads(out)["task_list"]], ["one"])


@case("what cannot be meant is refused before the broker is asked")
def refuses(place):
    place.start(CONFIG + SET)
    add = ("app", "add", "a", "--pool", "gpu")
    for words, part in (
            (("app", "ad", "a"), "did you mean add?"),
            (("app", "add", "a"), "--pool"),
            (("app", "add", "--pool", "gpu"), "needs the name"),
            (("app", "add", "a", "b", "--pool", "gpu"), "one application at a time"),
            (("app", "ls", "a"), ""),
            (("app", "fail", "a", "--style", "hard"), "--style is for dibs app add"),
            ((*add, "--group", "rank"), "number of members"),
            ((*add, "--group", "rank:0"), "rank:0"),
            ((*add, "--group", "rank:x"), "rank:x"),
            ((*add, "--group", ":2"), "1 to 63 bytes"),
            ((*add, "--group", "rank:2:memory"), "no amount"),
            ((*add, "--group", "rank:2:memory=much"), "no amount"),
            ((*add, "--group", "rank:1", "--group", "rank:2"), "two groups"),
            ((*add, "--style", "firm"), "soft"),
            ((*add, "--timeout", "0s"), "1ns is the least"),
            ((*add, "--timeout", "1s", "--no-timeout"), "contradict"),
            (("app", "show", "a" * 64), "64 bytes"),
            (("exec", "--task", "t", "gpu", "--", "true"), "--app"),
            (("exec", "--app", "a", "gpu", "--", "true"), "--task"),
            (("exec", "--app", "", "--task", "", "gpu", "--", "true"), "--app: the name is empty"),
            (("exec", "--app", "a", "--task", "", "gpu", "--", "true"), "--task: the name is empty"),
            (("exec", "--app", "a", "--task", "t", "--group", "", "gpu", "--", "true"), "--group: the name is empty"),
            (("exec", "--app", "a", "--task", "t", "any", "--", "true"), "\"any\" is a set of pools"),
            (("app", "add-task", "a", "t", "--in-group", ""), "--in-group: the name is empty"),
            (("exec", "--app", "a", "--task", "t", "gpu", "other", "--", "true"), "one pool")):
        code, out, err = place.run(*words)
        expect_equal((words, code, out), (words, 2, ""))
        expect(part in err, f"{words}: {err}")
    for words, part in ((("--tags", "a\nb"), "the tags have control characters"),
                        (("--group", "a\nb:1"), "a group's name")):
        code, _, err = place.run(*add, *words)
        expect_equal(code, 6)
        expect(part in err, err)
    code, _, err = place.run("app", "add", "a", "--pool", "gup")
    expect_equal(code, 4)
    expect("gup" in err and "gpu" in err, err)
    code, _, err = place.run("app", "show", "nobody")
    expect_equal(code, 4)
    expect("dibs app ls" in err, err)
    code, _, err = place.run("exec", "--app", "nobody", "--task", "t", "gpu", "--", "true")
    expect_equal(code, 4)
    expect("dibs app add" in err, err)
    expect_equal(place.run(*add)[0], 0)
    code, _, err = place.run("exec", "--app", "a", "--task", "t", "other", "--", "true")
    expect_equal(code, 6)
    expect("another pool" in err, err)
    code, _, err = place.run("app", "complete", "a", "nothing")
    expect_equal(code, 4)
    expect("there is no task nothing of application a" in err, err)


@case("events tell applications, tasks and placeholders, and metrics count them")
def tells(place):
    place.start(CONFIG)
    events = place.begin("events", "-f", "--jsonl")
    while not select.select([events.stdout], [], [], 0)[0]:  # until it has been subscribed
        expect_equal(place.run("exec", "gpu", "--", "true")[0], 0)
    expect_equal(place.run("app", "add", "pair", "--pool", "gpu", "--group", "rank:2")[0], 0)
    seen = []
    for line in events.stdout:
        event = json.loads(line)
        if event["event"] in ("application", "placeholder"):
            seen.append((event["event"], event.get("to", event.get("did"))))
        if seen and seen[-1] == ("application", "running"):
            break
    expect(("placeholder", "bound") in seen, seen)
    expect(("application", "reserving") in seen, seen)
    events.send_signal(signal.SIGTERM)
    events.communicate()
    _, out, _ = place.run("metrics")
    expect('dibs_applications{state="running"} 1' in out, out)
    expect('dibs_pool_placeholders{pool="gpu"} 2' in out, out)


if __name__ == "__main__":
    main(sys.argv)

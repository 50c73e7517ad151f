#!/usr/bin/env python3
# tests/tool/elastic.py -- a pool grows and shrinks with its claims, by the processes of dibs worker.
#
#   elastic.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import json
import os
import select
import signal
import subprocess
import sys

from tap import Skip, case, expect, expect_equal, main

ELASTIC = ('[[pool]]\nname = "py"\nkind = "worker"\nanswer_max = 4096\nworkers_max = 4\n'
           'idle_timeout = "{idle}"\n{more}')
# Each line is its process's own number; one with "held" waits until the file is there.
SERVE = ('while read -r line; do case $line in *held*) while [ ! -e "$GO" ]; do sleep 0.01; done;; esac; '
         "echo $$; done")


def start(place, idle="1h", more=""):
    return place.start(ELASTIC.format(idle=idle, more=more))


def provide(place, *words, script=SERVE, count=4):
    os.environ["GO"] = str(place.folder / "go")
    worker = place.begin("worker", f"py:{count}", "--type", "py", *words, "--", "sh", "-c", script)
    expect_equal(worker.stderr.readline(),
                 f'dibs worker: provisioner of type "py" of pool "py": as many processes as are needed, {count} at most\n')
    return worker


def rows(place, what):
    code, out, err = place.run("ls", what, "-o", "json")
    expect_equal((code, err), (0, ""))
    return json.loads(out)["rows"]


def slots(place, *states):
    return [row for row in rows(place, "slots") if row["state"] in states]


def shown(place, name):
    code, out, err = place.run("show", name, "-o", "json")
    expect_equal((code, err), (0, ""))
    return json.loads(out)


def await_slots(place, count, *states):
    while len(slots(place, *states)) != count:
        os.sched_yield()


def await_none(place):
    while rows(place, "slots"):
        os.sched_yield()


def call(place, body="", timeout="1min"):
    return place.begin("call", "py", body, "-t", timeout)


def answer(child):
    expect_equal(child.wait(60), 0)
    return int(child.stdout.read())


def lives(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@case("no process runs without a claim, as many as claims wait for under load, and none when all have been idle")
def grows_and_shrinks(place):
    start(place, idle="300ms")
    provide(place)
    expect_equal(rows(place, "slots"), [])
    calls = [call(place, "held") for _ in range(3)]
    await_slots(place, 3, "leased")
    (place.folder / "go").touch()
    processes = {answer(child) for child in calls}
    expect_equal(len(processes), 3)
    await_none(place)
    while any(lives(process) for process in processes):
        os.sched_yield()
    expect(answer(call(place)) not in processes, "the same process")


@case("ls, show and metrics tell what is ordered, of whom, and what may still be made")
def is_seen(place):
    start(place, idle="1min", more='[[pool]]\nname = "gpu"\nkind = "counted"\nslots = 1\n'
                                   '[[type]]\nname = "large"\npool = "py"\ncost = 9\n'
                                   '[[type]]\nname = "py"\npool = "py"\n')
    expect_equal([(row["type"], row["cost"], row["provisioner"], row["pid"]) for row in rows(place, "types")],
                 [("py", 1, None, None), ("large", 9, None, None)])
    worker = provide(place, "--ready-line", "ready",
                     script=f'while [ ! -e "$GO" ]; do sleep 0.01; done; echo ready; {SERVE}')
    calls = [call(place) for _ in range(3)]
    await_slots(place, 3, "ordered")
    for row in slots(place, "ordered"):
        expect_equal((row["type"], row["name"], row["worker"]), ("py", None, None))
    types = rows(place, "types")
    expect_equal((types[0]["pid"], types[0]["ordered"], types[0]["workers"]), (worker.pid, 3, 0))
    expect_equal((types[1]["pid"], types[1]["ordered"], types[1]["workers"]), (None, 0, 0))
    expect_equal([row["ordered"] for row in rows(place, "pools")], [3, None])
    pool = shown(place, "py")
    expect_equal(pool["types"], types)
    expect_equal([pool[key] for key in ("workers_max", "workers_min", "spare", "ordered", "limit", "headroom")],
                 [4, 0, 0, 3, 4, 1])
    expect_equal([pool[key] for key in ("idle_timeout_ns", "at_quota", "quota_left_ns", "quota_below")],
                 [60_000_000_000, False, None, None])
    expect("headroom" not in shown(place, "gpu"), "of a pool that is not elastic")
    told = place.run("metrics")[1]
    for line in ('ordered{pool="py"} 3', 'workers_max{pool="py"} 4', 'headroom{pool="py"} 1'):
        expect(f"\ndibs_pool_{line}\n" in told, line)
    expect('workers_max{pool="gpu"}' not in told, "of a pool that is not elastic")
    lines = place.run("show", "py")[1].splitlines()
    expect_equal([line.split()[:3] for line in lines[-3:]],
                 [["POOL", "TYPE", "COST"], ["py", "py", "1"], ["py", "large", "9"]])
    (place.folder / "go").touch()
    for child in calls:
        answer(child)
    await_slots(place, 0, "ordered")
    expect_equal([(row["ordered"], row["workers"]) for row in rows(place, "types")], [(0, 3), (0, 0)])
    expect_equal({row["type"] for row in rows(place, "slots") if row["pool"] == "py"}, {"py"})
    expect_equal(place.run("ls", "types", "-p", "gpu", "-o", "jsonl"), (0, "", ""))


@case("of another user's provisioner ls types tells the account, and no process")
def of_another_user(place):
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    place.start('socket_mode = "0666"\n' + ELASTIC.format(idle="1h", more=""))
    place.folder.chmod(0o755)
    provide(place)
    code, out, err = place.run("ls", "types", "-o", "jsonl", user=65534, group=65534, extra_groups=[])
    row = json.loads(out)
    expect_equal((code, err, row["type"], row["account"], row["user"]), (0, "", "py", "uid:0", "root"))
    expect_equal([row[key] for key in ("provisioner", "uid", "pid")], [None, None, None])


@case("it does not grow beyond workers_max, and the claims that wait are served by those that there are")
def at_most(place):
    start(place)
    provide(place)
    calls = [call(place, "held") for _ in range(7)]
    await_slots(place, 4, "leased")
    expect_equal(len(rows(place, "slots")), 4)
    expect_equal([shown(place, "py")[key] for key in ("at_quota", "headroom")], [True, 0])
    (place.folder / "go").touch()
    expect_equal(len({answer(child) for child in calls}), 4)


@case("workers_min and spare are there before any claim")
def spare(place):
    start(place, more="workers_min = 1\nspare = 2\n")
    provide(place)
    await_slots(place, 2, "idle")
    held = call(place, "held")
    await_slots(place, 1, "leased")
    await_slots(place, 2, "idle")
    (place.folder / "go").touch()
    answer(held)


@case("a command that ends at once is not started again and again, and its claim waits")
def ends_at_once(place):
    start(place)
    starts = place.folder / "starts"
    worker = provide(place, "--ready-line", "ready", script=f"echo >> {starts}; exit 3")
    waiting = call(place, timeout="2s")
    while rows(place, "types")[0]["failed_left_ns"] is None and waiting.poll() is None:
        os.sched_yield()
    expect(waiting.poll() is None, "no back-off is told")
    expect_equal(waiting.wait(60), 124)
    count = len(starts.read_text().splitlines())
    expect(1 <= count <= 12, f"{count} starts")  # 100 ms, doubling
    worker.terminate()
    expect_equal(worker.wait(60), 0)
    expect("ended with exit code 3" in worker.stderr.read(), "not said")


@case("a process that is never ready has failed, and another one is tried")
def never_ready(place):
    start(place)
    first = place.folder / "first"
    worker = provide(place, "--ready-line", "ready", "--ready-timeout", "200ms",
                     script=f"if mkdir {first} 2>/dev/null; then exec sleep 1000; fi; echo ready; {SERVE}")
    expect(answer(call(place)) > 0, "no answer")
    worker.terminate()
    expect_equal(worker.wait(60), 0)
    expect("was not ready within 200ms" in worker.stderr.read(), "not said")


@case("events tell which workers are to be made and stopped, and of which type")
def events(place):
    start(place, idle="20ms")
    seen = place.begin("events", "-f", "--jsonl")
    while not select.select([seen.stdout], [], [], 0)[0]:
        place.run("exec", "py", "--timeout", "1ms", "--", "true")
    provide(place)
    expect_equal(call(place).wait(60), 0)
    told = []
    for line in seen.stdout:
        event = json.loads(line)
        if event["event"] in ("create", "stop"):
            told.append([event[key] for key in ("event", "pool", "type", "slot")])
        if event["event"] == "stop":
            break
    seen.kill()
    expect_equal(told, [["create", "py", "py", 0], ["stop", "py", "py", 0]])


@case("a second provisioner of the type is refused, and one of a type that is not there, or that may not")
def refused(place):
    start(place)
    provide(place)
    said = (("py", 'type "py" of pool "py" has a provisioner already, and takes one at a time'),
            ("small", 'there is no type "small" of pool "py": [[type]] in dibsd\'s configuration names'))
    for name, text in said:
        code, out, err = place.run("worker", "py:2", "--type", name, "--", "true")
        expect(code != 0 and out == "" and text in err, (code, out, err))
    for name in ("a/b", ""):
        code, _, err = place.run("worker", "py:2", "--type", name, "--", "true")
        expect(code == 2 and "--type" in err, (code, err))


@case("its provisioner is killed: leases end, claims wait, and the next provisioner serves them")
def killed(place):
    start(place)
    worker = provide(place)
    held = call(place, "held")
    await_slots(place, 1, "leased")
    worker.send_signal(signal.SIGKILL)
    expect(held.wait(60) != 0, "it was served")
    expect("worker" in held.stderr.read(), "not said")
    waiting = call(place)
    provide(place)
    answer(waiting)


@case("one that is told to stop while a process starts gives its order back, and the next one makes another process")
def stopped_in_a_start(place):
    start(place)
    worker = provide(place, "--ready-line", "ready", script="sleep 1000")
    waiting = call(place)
    await_slots(place, 1, "ordered")
    worker.terminate()
    expect_equal(worker.wait(60), 0)
    provide(place)
    answer(waiting)


@case("an order waits for a process that is ending where all others are there, and is no matter of capacity")
def slow_to_end(place):
    start(place)
    serve = 'read -r line; echo $$; while read -r line; do :; done; while [ ! -e "$GO" ]; do sleep 0.01; done'
    provide(place, "--uses-max", "1", "--grace", "1min", script=f"trap '' TERM; {serve}", count=1)
    answer(call(place))
    waiting = call(place)
    await_slots(place, 1, "ordered")
    (place.folder / "go").touch()
    answer(waiting)


@case("one that is told to stop ends its processes in order, and makes no more")
def told_to_stop(place):
    start(place)
    worker = provide(place)
    held = call(place, "held")
    await_slots(place, 1, "leased")
    worker.terminate()
    (place.folder / "go").touch()
    answer(held)
    expect_equal(worker.wait(60), 0)
    expect_equal(rows(place, "slots"), [])


@case("a pool that drains has no workers, and has some again once it is undrained")
def drains(place):
    start(place, more="workers_min = 2\n")
    provide(place)
    await_slots(place, 2, "idle")
    expect_equal(place.run("drain", "py")[0], 0)
    await_none(place)
    expect_equal(place.run("undrain", "py")[0], 0)
    await_slots(place, 2, "idle")


@case("a held worker takes no claim, and is not stopped when it has been idle for long")
def held(place):
    start(place, idle="100ms", more="workers_min = 1\n")
    provide(place)
    await_slots(place, 1, "idle")
    first = slots(place, "idle")[0]["id"]
    expect_equal(place.run("hold", first)[0], 0)
    answer(call(place))
    await_slots(place, 1, "idle")  # another one, and the minimum alone
    expect_equal([(row["id"], row["held"]) for row in slots(place, "held")], [(first, True)])
    expect_equal(place.run("unhold", first)[0], 0)
    await_slots(place, 0, "held")
    code, _, err = place.run("hold", "py/77")
    expect_equal((code, err), (4, "dibs hold: there is no slot of that number in pool py\n"))


@case("a worker that was not made for an order is an ordinary one, which nobody stops")
def ordinary(place):
    start(place, idle="100ms")
    place.begin("worker", "py:1", "--", "sh", "-c", SERVE)
    await_slots(place, 1, "idle")
    provide(place)
    first = answer(call(place))
    expect_equal(answer(call(place)), first)
    await_slots(place, 1, "idle")


@case("the broker dies while a process starts for its order: the process is announced to the next one, with the order")
def broker_dies(place):
    file = place.folder / "dibsd.toml"
    file.write_text('log_level = "off"\n' + ELASTIC.format(idle="300ms", more=""))
    keeper = subprocess.Popen([place.dibsd, "--config", file, "--socket", place.socket], stdout=subprocess.PIPE,
                              text=True, env=place.environment(DIBS_STATE_DIR=str(place.folder)))
    place.children.append(keeper)
    expect_equal(keeper.stdout.readline(), f"dibsd: ready on {place.socket}\n")
    provide(place, "--ready-line", "ready", script=f'while [ ! -e "$GO" ]; do sleep 0.01; done; echo ready; {SERVE}')
    waiting = call(place)
    await_slots(place, 1, "ordered")
    broker = json.loads(place.run("status", "-o", "json")[1])["pid"]
    os.kill(broker, signal.SIGKILL)
    (place.folder / "go").touch()
    answer(waiting)
    expect_equal(len(rows(place, "slots")), 1)
    await_none(place)  # it is the order's: idle, it is stopped
    keeper.terminate()
    expect_equal(keeper.wait(60), 0)


SIZED = ('[[pool]]\nname = "box"\nkind = "worker"\nanswer_max = 4096\nworkers_max = 4\nidle_timeout = "1h"\n'
         'resources = { memory = "40GiB", "s-m" = 100 }\ncreate_min = { memory = "10GiB" }\n')
# Each process says what it was made for, and serves two at a time.
SAY = 'echo "$DIBS_ORDER_MEMORY $DIBS_ORDER_S_M $DIBS_ORDER_WIDTH"; exec sleep 1000'


@case("a burst of claims for parts has workers made of the size that is needed, and they serve all")
def of_size(place):
    place.start(SIZED)
    child = place.begin("worker", "box:4", "--type", "box", "--resource", "memory=10GiB", "--parts", "2",
                        "--lines", "none", "--", "sh", "-c", SAY)
    expect("provisioner of type" in child.stderr.readline(), "what it says")
    go = place.folder / "go"
    calls = [place.begin("exec", "box", "--want", "memory=5GiB", "--", "sh", "-c",
                         f'while [ ! -e {go} ]; do sleep 0.01; done; echo "$DIBS_ATTR_RESOURCE_MEMORY"')
             for _ in range(4)]
    await_slots(place, 4, "leased")
    expect_equal(len(slots(place, "shared")), 2)
    # Of 10 GiB, as create_min says; claims came one by one, or together.
    for _ in range(2):
        memory, other, width = child.stdout.readline().split()
        expect_equal((memory, other), (str(10 << 30), "0"))
        expect(int(width) < 4, width)
    go.touch()
    for call in calls:
        expect_equal((call.wait(60), call.stdout.read()), (0, f"{5 << 30}\n"))
    code, out, err = place.run("exec", "box", "--want", "memory=41GiB", "--", "true")
    expect_equal((code, out), (6, ""))
    expect("memory" in err, err)


if __name__ == "__main__":
    main(sys.argv)

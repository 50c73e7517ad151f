#!/usr/bin/env python3
# tests/tool/dispatch.py -- a dispatched pool through the tool: a queue that the test keeps, workers that
# it reports, and what the broker says is to be done.
#
#   dispatch.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import signal
import subprocess
import sys

from tap import Skip, await_state, case, expect, expect_equal, main

POOLS = """
[[pool]]
name = "far"
kind = "worker"
workers_max = 3
dispatch = true
supervisors = 0.5
attempts_max = 2
boot_timeout = "1ms"
probe_timeout = "1ms"
[[pool]]
name = "near"
kind = "worker"
workers_max = 3
[[pool]]
name = "gpu"
kind = "counted"
slots = 1
"""
GONE = 3  # no broker: the next one is asked


def rows(place, *arguments):
    code, out, err = place.run(*arguments, "-o", "jsonl")
    while code == GONE:
        code, out, err = place.run(*arguments, "-o", "jsonl")
    expect_equal((code, err), (0, ""))
    told = [json.loads(line) for line in out.splitlines()]
    for row in told:
        row.pop("schema", None)
    return told


def report(place, *arguments):
    return rows(place, "report", *arguments)[0]


def entry(place, name):
    return next((row for row in rows(place, "ls", "entries", "far") if row["entry"] == name), None)


def orders(place, *arguments):
    return [(row["order"], row["entry"], row["worker"]) for row in rows(place, "orders", "far", *arguments)]


def slot(place, name):
    return next(row for row in rows(place, "ls", "slots", "far") if row["name"] == name)


def refused(place, code, words, *arguments):
    ended, out, err = place.run(*arguments)
    expect_equal((ended, out), (code, ""))
    expect(words in err, err)


def begin(place, *workers):
    """A pool whose empty queue was read, with idle workers."""
    place.start(POOLS)
    for name in workers:
        report(place, "worker", "far", name, "--type", "far", "--state", "idle")
    report(place, "queue", "far")


class Dispatcher:
    """Keeps a queue, and runs what is started."""

    def __init__(self, place):
        self.place = place
        self.running = {}   # by worker
        self.started = []
        self.most = 0

    def step(self, *wait):
        told = orders(self.place, *wait)
        for order, name, worker in told:
            if order in ("lock", "unlock"):
                report(self.place, "done", "far", name)
            elif order == "start":
                expect_equal(self.running.get(worker), None)
                self.running[worker] = name
                self.started.append(name)
                self.most = max(self.most, len(self.running))
                report(self.place, "process", "far", name, "--worker", worker)
                report(self.place, "entry", "far", name, "--state", "running")
            else:
                raise AssertionError(f"{order} {name}")
        return told

    def end_one(self):
        worker, name = self.running.popitem()
        report(self.place, "process", "far", name, "--worker", worker, "--exited", "0s")
        report(self.place, "entry", "far", name, "--state", "complete")


@case("a queue of 20 entries runs to its end on 3 reported workers, also over the death of the broker")
def to_the_end(place):
    file = place.folder / "dibsd.toml"
    file.write_text('log_level = "off"\n' + POOLS)
    keeper = subprocess.Popen([place.dibsd, "--config", file, "--socket", place.socket], stdout=subprocess.PIPE,
                              text=True, env=place.environment(DIBS_STATE_DIR=str(place.folder)))
    place.children.append(keeper)
    expect_equal(keeper.stdout.readline(), f"dibsd: ready on {place.socket}\n")
    names = [f"job-{number:02}" for number in range(20)]
    for worker in ("w1", "w2", "w3"):
        report(place, "worker", "far", worker, "--type", "far", "--state", "idle")
    for name in names:
        report(place, "entry", "far", name, "--priority", "5")
    expect_equal({row["reason"] for row in rows(place, "ls", "entries", "far")}, {"reading"})
    expect_equal(orders(place), [])
    report(place, "queue", "far", *names)
    dispatcher = Dispatcher(place)
    ended = 0
    while ended < len(names):
        if ended in (3, 11):
            broker = rows(place, "status")[0]["pid"]
            os.kill(broker, signal.SIGKILL)
        while len(dispatcher.running) < min(3, len(names) - ended):
            expect(dispatcher.step("--wait", "30s"), "nothing is to be done")
        dispatcher.end_one()
        ended += 1
    expect_equal((dispatcher.started, dispatcher.most), (names, 3))
    report(place, "queue", "far")
    expect_equal(rows(place, "ls", "entries", "far"), [])
    expect_equal({row["state"] for row in rows(place, "ls", "slots", "far")}, {"idle"})
    waits = place.begin("orders", "far", "--wait")
    await_state(waits, "S")
    os.kill(rows(place, "status")[0]["pid"], signal.SIGKILL)
    report(place, "entry", "far", "last")
    expect_equal((waits.wait(60), waits.stdout.read()), (0, "lock\tlast\n"))
    keeper.terminate()
    expect_equal(keeper.wait(60), 0)


@case("orders: a line each, told again until it is done; --wait waits for what is new")
def ordered(place):
    begin(place, "w1")
    expect_equal(place.run("orders", "far"), (0, "", ""))
    expect_equal(place.run("orders", "far", "--wait", "1ms"), (0, "", ""))
    waits = place.begin("orders", "far", "--wait")
    report(place, "entry", "far", "a b", "--priority", "7")
    expect_equal((waits.wait(60), waits.stdout.read()), (0, "lock\ta b\n"))
    expect_equal(place.run("orders", "far"), (0, "lock\ta b\n", ""))
    code, out, _ = place.run("orders", "far", "-o", "json")
    stamp = json.loads(out)["stamp"]
    expect_equal((code, orders(place, "--wait", "1ms", "--after", str(stamp))), (0, [("lock", "a b", None)]))
    waits = place.begin("orders", "far", "--wait", "1min", "--after", str(stamp))
    report(place, "done", "far", "a b")
    expect_equal((waits.wait(60), waits.stdout.read()), (0, "start\ta b\tw1\n"))
    row = entry(place, "a b")
    expect_equal([row[key] for key in ("state", "reason", "process", "worker", "locks", "operation")],
                 ["locked", "preparing", "starting", "w1", 1, None])
    expect_equal(slot(place, "w1")["state"], "running")
    report(place, "process", "far", "a b", "--worker", "w1")
    expect_equal(orders(place), [])
    report(place, "entry", "far", "a b", "--priority", "0")
    expect_equal(orders(place), [("kill", "a b", "w1")])
    report(place, "done", "far", "a b", "--failed", "--error", "it does not end")
    expect_equal((orders(place), entry(place, "a b")["hopeless"]), ([], True))


@case("orders --after: the same order that is decided once more is news")
def again(place):
    begin(place, "w1")
    report(place, "entry", "far", "a")
    stamp = json.loads(place.run("orders", "far", "-o", "json")[1])["stamp"]
    report(place, "done", "far", "a", "--failed", "--error", "it is in use")
    report(place, "queue", "far", "a")
    expect_equal(orders(place, "--wait", "1min", "--after", str(stamp)), [("lock", "a", None)])
    told = json.loads(place.run("orders", "far", "-o", "json")[1])
    expect(told["stamp"] != stamp, "the same stamp")


@case("orders: a start whose kill has failed is not told again")
def hopeless(place):
    begin(place, "w1")
    report(place, "entry", "far", "a")
    report(place, "done", "far", "a")
    expect_equal(orders(place), [("start", "a", "w1")])
    report(place, "entry", "far", "a", "--priority", "0")
    expect_equal(orders(place), [("kill", "a", "w1")])
    report(place, "done", "far", "a", "--failed", "--error", "no such process")
    expect_equal((orders(place), entry(place, "a")["hopeless"]), ([], True))


@case("ls entries: positions, of supervisors by themselves, and reasons")
def listed(place):
    begin(place)
    for name, words in (("low", ("--priority", "1")), ("high", ("--priority", "9", "--type", "far")),
                        ("boss", ("--priority", "5", "--supervisor", "yes")),
                        ("none", ("--priority", "0"))):
        report(place, "entry", "far", name, *words)
    told = {row["entry"]: row for row in rows(place, "ls", "entries")}
    expect_equal({name: (row["position"], row["reason"], row["supervisor"]) for name, row in told.items()},
                 {"high": (1, "no provisioner", False), "low": (2, "no provisioner", False),
                  "boss": (1, "no provisioner", True)})
    expect_equal((told["high"]["types"], told["low"]["types"], told["high"]["number"]), (["far"], None, 2))
    report(place, "lock", "far", "low")
    expect_equal(entry(place, "low")["position"], 1)  # what is locked comes first
    expect_equal(place.run("ls", "entries", "-p", "far")[1].splitlines()[0].split()[0], "ENTRY")
    refused(place, 2, "one pool", "ls", "entries", "far", "-p", "far")


@case("report lock, unlock, cancel, forget: what somebody has done in the queue, and what cannot be")
def operations(place):
    begin(place)
    report(place, "entry", "far", "a")
    expect_equal(report(place, "lock", "far", "a"),
                 {"reported": "lock", "pool": "far", "worker": None, "claim": None, "entry": "a"})
    refused(place, 6, "entry a is locked, with priority 1: one that is queued", "report", "lock", "far", "a")
    report(place, "unlock", "far", "a")
    refused(place, 6, "entry a is queued, with priority 1: one that is locked", "report", "unlock", "far", "a")
    refused(place, 6, "can be forgotten", "report", "forget", "far", "a")
    report(place, "lock", "far", "a")
    report(place, "unlock", "far", "a")  # attempts_max
    expect_equal(entry(place, "a")["state"], "cancelled")
    refused(place, 6, "complete or cancelled stays so", "report", "cancel", "far", "a")
    report(place, "forget", "far", "a")
    expect_equal(entry(place, "a"), None)
    refused(place, 4, "there is no entry a in pool far", "report", "cancel", "far", "a")
    report(place, "worker", "far", "w1", "--type", "far", "--state", "idle")
    report(place, "entry", "far", "b")
    refused(place, 6, "an operation on entry b is under way", "report", "cancel", "far", "b")
    report(place, "done", "far", "b")
    refused(place, 4, "nothing is under way of entry b", "report", "done", "far", "b")
    report(place, "entry", "far", "c", "--age", "1h")
    report(place, "queue", "far", "b", "--age", "1ms", "--failed")
    expect_equal(entry(place, "c")["state"], "queued")
    report(place, "queue", "far", "b")
    expect_equal(entry(place, "c"), None)


@case("a held worker takes nothing and is not stopped, a drained one is told to stop, one without good probes, too")
def held(place):
    begin(place, "w1", "w2")
    one = slot(place, "w1")["id"]
    report(place, "hold", "far", "w1")
    expect_equal((slot(place, "w1")["state"], slot(place, "w1")["held"]), ("held", True))
    report(place, "drain", "far", "w2")
    expect_equal(slot(place, "w2")["state"], "drained")
    report(place, "entry", "far", "a")
    expect_equal((orders(place), entry(place, "a")["reason"]), ([], "no provisioner"))
    expect_equal(rows(place, "unhold", one), [{"id": one, "pool": "far", "number": 0, "held": False}])
    expect_equal(orders(place), [("lock", "a", None)])
    expect_equal(rows(place, "hold", one)[0]["held"], True)
    report(place, "probe", "far", "w1")
    report(place, "worker", "far", "w3", "--type", "far", "--state", "idle", "--age", "1s")
    for worker, state in (("w1", "held"), ("w3", "drained")):
        while slot(place, worker)["state"] != state:
            report(place, "probe", "far", worker, "--failed")
    report(place, "worker", "far", "w3", "--state", "absent")
    expect_equal([row["name"] for row in rows(place, "ls", "slots", "far")], ["w1", "w2"])


@case("events: what is to be done, and the end of an entry")
def events(place):
    begin(place, "w1")
    follows = place.begin("events", "-f", "--jsonl")
    os.set_blocking(follows.stdout.fileno(), False)
    told = ""
    while not told:  # until it has subscribed
        place.run("report", "entry", "far", "a", "--type", "huge")
        told = follows.stdout.readline()
    os.set_blocking(follows.stdout.fileno(), True)
    end = json.loads(told)
    expect_equal([end.get(key) for key in ("event", "pool", "entry", "entry_number", "outcome", "reason", "claim")],
                 ["end", "far", "a", None, "rejected", "unavailable", None])
    report(place, "entry", "far", "b")
    report(place, "done", "far", "b")
    report(place, "process", "far", "b", "--worker", "w1")
    report(place, "entry", "far", "b", "--state", "cancelled")
    report(place, "done", "far", "b")
    seen = []
    while len(seen) < 4:
        event = json.loads(follows.stdout.readline())
        if event.get("entry") == "b":
            seen.append((event["event"], event["entry_number"], event.get("slot")))
    expect_equal(seen, [("lock", 1, None), ("start", 1, 0), ("kill", 1, 0), ("forget", 1, None)])


@case("what cannot be so is refused, and nothing changes")
def nonsense(place):
    begin(place)
    report(place, "entry", "far", "a")
    for words, code, arguments in (
            ('"nowhere"', 4, ("report", "entry", "nowhere", "a")),
            ("pool near is not dispatched", 6, ("report", "entry", "near", "a")),
            ("pool gpu is not dispatched", 6, ("report", "queue", "gpu")),
            ("pool gpu is not elastic", 6, ("report", "hold", "gpu", "w")),
            ("dibs orders: pool near is not dispatched", 6, ("orders", "near")),
            ("dibs ls: pool near is not dispatched", 6, ("ls", "entries", "near")),
            ('"nowhere"', 4, ("orders", "nowhere")),
            ("no type of pool far suits entry b", 6, ("report", "entry", "far", "b", "--type", "huge")),
            ("there is no type huge in pool far", 4,
             ("report", "worker", "far", "w9", "--type", "huge", "--state", "idle")),
            ("worker w9 is new", 4, ("report", "worker", "far", "w9", "--state", "idle")),
            ("there is no worker w9", 4, ("report", "worker", "far", "w9", "--state", "absent")),
            ("there is no worker w9", 4, ("report", "process", "far", "a", "--worker", "w9")),
            ("there is no worker w9", 4, ("report", "probe", "far", "w9")),
            ("there is no worker w9", 4, ("report", "drain", "far", "w9")),
            ("slot of that number", 4, ("hold", "far/7")),
            ("entry a is queued", 6, ("report", "unlock", "far", "a")),
            ("there is no entry b", 4, ("report", "lock", "far", "b")),
            ("write idle, running", 2, ("report", "rest", "far", "a")),
            ("--priority", 2, ("report", "entry", "far", "b", "--priority", "-1")),
            ("63 is the most", 2, ("report", "entry", "far", "b" * 64)),
            ("control characters", 2, ("report", "entry", "far", "b\n")),
            ("is empty", 2, ("report", "entry", "far", "")),
            ("say which one", 2, ("report", "entry", "far")),
            ("one pool", 2, ("report", "entry", "far", "a", "b")),
            ("--state: an entry is one of queued, locked", 2, ("report", "entry", "far", "b", "--state", "idle")),
            ("--state: a worker is one of unknown, booting", 2, ("report", "worker", "far", "w1", "--state", "off")),
            ("--state idle", 2, ("report", "worker", "far", "w1")),
            ("yes or no", 2, ("report", "entry", "far", "b", "--supervisor", "maybe")),
            ("of one type", 2, ("report", "worker", "far", "w1", "--state", "idle", "--type", "a", "--type", "b")),
            ("--worker NAME", 2, ("report", "process", "far", "a")),
            ("--priority goes with entry", 2, ("report", "worker", "far", "w1", "--priority", "1")),
            ("--state goes with entry and worker", 2, ("report", "idle", "far", "w1", "--state", "idle")),
            ("--exited goes with process", 2, ("report", "entry", "far", "a", "--exited", "1s")),
            ("--failed goes with queue", 2, ("report", "entry", "far", "a", "--failed")),
            ("--claim goes with running", 2, ("report", "entry", "far", "a", "--claim", "c1")),
            ("--label goes with idle", 2, ("report", "entry", "far", "a", "--label", "l")),
            ("--error goes with unassign and done", 2, ("report", "lock", "far", "a", "--error", "e")),
            ("--after goes with --wait", 2, ("orders", "far", "--after", "1")),
            ("takes slots as POOL/NUMBER", 2, ("hold", "far"))):
        refused(place, code, words, *arguments)
    expect_equal([row["entry"] for row in rows(place, "ls", "entries", "far")], ["a"])
    code, out, err = place.run("claim", "far", "-t", "1min")  # nothing attaches
    expect(code not in (0, 124) and out == "", (code, err))


def on_page(place, language):
    """What docs/dispatch.md has to be run, in a file."""
    page = pathlib.Path(__file__).resolve().parents[2] / "docs/dispatch.md"
    text = page.read_text().partition(f"<!-- run by tests/tool/dispatch.py -->\n```{language}\n")[2].partition("```")[0]
    file = place.folder / f"page.{language}"
    file.write_text(text)
    return file


@case("the dispatcher of docs/dispatch.md runs what is queued, two at a time, each once")
def of_the_page(place):
    place.start(POOLS)
    (place.folder / "queued").mkdir()
    names = [f"job-{number}" for number in range(1, 9)]
    for name in names:
        (place.folder / "queued" / name).write_text(f"echo {name} >> ran\n")
    environment = place.environment(PATH=f"{pathlib.Path(place.dibs).parent}:{os.environ['PATH']}")
    ended = subprocess.run(["sh", on_page(place, "sh")], cwd=place.folder, env=environment, capture_output=True,
                           text=True, timeout=120, check=False)
    expect_equal((ended.returncode, ended.stdout, ended.stderr), (0, "", ""))
    expect_equal(sorted((place.folder / "ran").read_text().split()), names)


@case("the program of docs/dispatch.md is told what to start")
def program_of_the_page(place):
    begin(place, "w1")
    source = pathlib.Path(__file__).resolve().parents[2]
    library = pathlib.Path(place.dibs).parents[2] / "clientlib"
    program = place.folder / "program"
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-I", source / "clientlib/include", on_page(place, "c"),
                    "-o", program, "-L", library, "-ldibs", f"-Wl,-rpath,{library}"], check=True)
    run = lambda: subprocess.run([program], env=place.environment(), capture_output=True, text=True, timeout=60,
                                 check=True).stdout
    expect_equal(run(), "")
    report(place, "done", "far", "job-1")
    expect_equal(run(), "start job-1 on w1\n")


@case("only administrators report, and see a queue")
def no_administrator(place):
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    place.start('socket_mode = "0666"\n' + POOLS)
    place.folder.chmod(0o755)
    for arguments in (("report", "entry", "far", "a"), ("orders", "far"), ("ls", "entries", "far"),
                      ("ls", "entries"), ("hold", "far/0")):
        code, out, err = place.run(*arguments, user=65534, group=65534, extra_groups=[])
        expect_equal((code, out), (5, ""))
        expect("administrator" in err, err)


@case("config check: what a dispatched pool has")
def configured(place):
    file = place.folder / "dibsd.toml"
    good = '[[pool]]\nname = "far"\nkind = "worker"\nworkers_max = 3\ndispatch = true\n'
    for more, words in (("", None), ("supervisors = 0\nattempts_max = 0\n", None), ("supervisors = 1.0\n", None),
                        ("supervisors = 2\n", "supervisors: must be between 0 and 1"),
                        ("supervisors = 0.0001\n", "supervisors: must have at most three decimals"),
                        ('supervisors = "half"\n', "supervisors: must be a number, is a string"),
                        ("attempts_max = -1\n", "attempts_max: must be between 0 and 1000000"),
                        ("probe_timeout = 5\n", "probe_timeout: must be a duration in quotes"),
                        ('stale_lock_timeout = "soon"\n', "stale_lock_timeout"),
                        ("[limits]\nentries = 0\n", "entries: must be between 1 and 65536")):
        file.write_text(good + more)
        code, _, err = place.run("config", "check", str(file))
        expect_equal((code, words is None or words in err), (0 if words is None else 1, True))
    for text, words in ((good.replace("dispatch = true", "supervisors = 0.5"),
                         "supervisors: only a pool with dispatch = true has it"),
                        (good.replace("workers_max = 3\n", ""), "dispatch: only an elastic pool has it"),
                        ('[[pool]]\nname = "g"\nkind = "counted"\nslots = 1\nattempts_max = 1\n',
                         "attempts_max: only a worker pool has it")):
        file.write_text(text)
        code, _, err = place.run("config", "check", str(file))
        expect_equal((code, words in err), (1, True))


if __name__ == "__main__":
    main(sys.argv)

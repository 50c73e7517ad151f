#!/usr/bin/env python3
# tests/tool/steering.py -- every subcommand that holds, ends, prolongs, drains or checks:
# what it prints, what becomes of others, its exit code.
#
#   steering.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import json
import os
import re
import signal
import subprocess
import sys

from holding import POOLS, hold, wait_until, waiting
from tap import case, expect, expect_equal, main


@case("claim: says what it has, holds it, gives it back when it is interrupted")
def claim(place):
    place.start(POOLS)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        child, said = hold(place, "gpu", "--interval", "1min")
        expect_equal((said["schema"], said["pool"], said["slots"], said["interval_ns"]),
                     ("dibs.claim/1", "gpu", said["slots"], 60_000_000_000))
        expect_equal(said["attributes"], [f"device={said['slots'][0]}"])
        expect_equal(len(place.run("ls", "leases", "-o", "jsonl")[1].splitlines()), 1)
        child.send_signal(number)
        expect_equal((child.wait(), child.stderr.read()), (0, ""))
        expect_equal(place.run("ls", "leases", "-o", "jsonl")[1], "")


@case("claim: 75 if it will not wait, 124 at its deadline, and who holds it")
def claim_in_vain(place):
    place.start(POOLS)
    hold(place, "gpu:2")
    code, out, err = place.run("claim", "gpu", "--now")
    expect_equal((code, out), (75, ""))
    expect(re.search(r'no slot of.*|did not get a slot of pool "gpu"', err), err)
    err = ""
    while "process" not in err:  # a late broker: the library ended the claim, and knows no holder
        code, out, err = place.run("claim", "gpu", "-t", "1ms")
        expect_equal((code, out), (124, ""))
    expect(re.match(r'dibs claim: did not get a slot of pool "gpu": the time of 1ms has passed; '
                    r"process \d+ \(dibs\) of user \w+ has held one for ", err), err)
    code, out, err = place.run("claim", "gpu:3")
    expect_equal((code, out), (6, ""))
    expect(err.startswith('dibs claim: did not get 3 slots of pool "gpu": too many at once'), err)


@case("release: the holder is told, and the slot goes to who waits")
def release(place):
    place.start(POOLS)
    holder, _ = hold(place, "gpu:2")
    waiter = place.begin("claim", "gpu", "-o", "json")
    waiting(place, 1)
    code, out, err = place.run("release", "l1", "-o", "json")
    expect_equal((code, err), (0, ""))
    expect_equal(out, '{"schema":"dibs.release/1","number":1,"pool":"gpu","did":"released"}\n')
    expect_equal(json.loads(waiter.stdout.readline())["number"], 2)
    expect_equal(holder.wait(), 1)
    expect_equal(holder.stderr.read(), "dibs claim: the lease is lost: it was released from "
                                       "outside (dibs release)\n")
    expect_equal(place.run("release", "l1"), (0, "number  l1\npool    gpu\ndid     already ended\n", ""))
    expect_equal(place.run("release", "l9"),
                 (4, "", "dibs release: there is no lease l9; dibs ls leases shows those that are "
                         "held\n"))


@case("renew: from now, cut to what the pool allows; a lease without an interval stays")
def renew(place):
    place.start(POOLS)
    hold(place, "gpu", "-i", "1min")
    hold(place, "gpu")
    expect_equal(place.run("renew", "l1", "-i", "2min", "-o", "json")[1],
                 '{"schema":"dibs.renew/1","number":1,"pool":"gpu","interval_ns":120000000000}\n')
    expect_equal(place.run("renew", "l1", "-i", "9h")[1],
                 "number    l1\npool      gpu\ninterval  5min\n")
    expect_equal(place.run("renew", "l2", "-o", "json")[1],
                 '{"schema":"dibs.renew/1","number":2,"pool":"gpu","interval_ns":null}\n')


@case("a lease's number and its id: DIBS_LEASE is listed, and whatever takes a lease takes both")
def names_of_a_lease(place):
    place.start(POOLS)
    holders = []
    for _ in range(2):
        holders.append(place.begin("exec", "gpu", "--", "sh", "-c", "echo $DIBS_LEASE; exec sleep 1000"))
        holders[-1].told = holders[-1].stdout.readline().strip()
    rows = [line.split()[:2] for line in place.run("ls", "leases")[1].splitlines()]
    expect_equal(rows, [["LEASE", "ID"], ["l1", holders[0].told], ["l2", holders[1].told]])
    expect_equal(holders[0].told, "l0x100000000")
    for name in rows[1]:
        shown = [line.split() for line in place.run("show", name)[1].splitlines()]
        expect_equal(shown[:2], [["number", "l1"], ["id", holders[0].told]])
        expect_equal(place.run("renew", name)[1].splitlines()[0], "number    l1")
    for name, holder in zip((rows[1][0], rows[2][1]), holders):
        expect_equal(place.run("release", name)[0], 0)
        expect_equal(holder.wait(), 125)


@case("cancel: the claim ends, its session is told")
def cancel(place):
    place.start(POOLS)
    hold(place, "gpu:2")
    waiter = place.begin("claim", "gpu")
    waiting(place, 1)
    expect_equal(place.run("cancel", "c1"),
                 (4, "", "dibs cancel: claim c1 does not wait any more: it has its lease, l1; dibs "
                         "show l1 shows it\n"))
    expect_equal(place.run("release", "l2"),
                 (4, "", "dibs release: claim c2 still waits and has no lease; dibs cancel c2 ends "
                         "it\n"))
    expect_equal(place.run("cancel", "c2")[:2],
                 (0, "number  c2\npool    gpu\ndid     cancelled\n"))
    expect_equal(waiter.wait(), 1)
    expect_equal(waiter.stderr.read(), 'dibs claim: did not get a slot of pool "gpu": the claim was '
                                       "cancelled from outside (dibs cancel)\n")
    waiter = place.begin("exec", "gpu", "--", "true")
    waiting(place, 1)
    expect_equal(place.run("cancel", "c3")[0], 0)
    expect_equal(waiter.wait(), 125)  # 1 would be the command's
    expect("was cancelled from outside (dibs cancel)" in waiter.stderr.read(), "it is told")


@case("drain and undrain: of a pool, of the broker")
def drain(place):
    place.start(POOLS)
    expect_equal(place.run("drain", "gpu"), (0, "POOL  DRAINING\ngpu   yes\n", ""))
    code, out, err = place.run("claim", "gpu")
    expect_equal((code, out), (75, ""))
    expect_equal(err, 'dibs claim: did not get a slot of pool "gpu": the pool drains and takes no new '
                      "claims; dibs undrain gpu ends that\n")
    expect_equal(place.run("exec", "gpu", "--", "true"),
                 (75, "", err.replace("dibs claim", "dibs exec")))
    expect_equal(place.run("undrain", "gpu", "-o", "jsonl")[1],
                 '{"schema":"dibs.drain/1","id":"gpu","pool":"gpu","number":null,"draining":false}\n')
    expect_equal(place.run("drain", "--all")[0], 0)
    expect(json.loads(place.run("status", "-o", "json")[1])["draining"], "it drains")
    expect_equal(place.run("claim", "gpu"),
                 (75, "", 'dibs claim: did not get a slot of pool "gpu": the whole broker drains and '
                          "takes no new claims; dibs undrain --all ends that\n"))
    expect_equal(place.run("undrain", "--all")[0], 0)
    hold(place, "gpu")
    expect_equal(place.run("drain", "gpu", "gup"),
                 (4, "", 'dibs drain: there is no pool "gup"; did you mean "gpu"? There are: gpu, web\n'))
    expect(not json.loads(place.run("show", "gpu", "-o", "json")[1])["draining"], "none is drained")
    expect_equal(place.run("undrain", "l3"),
                 (2, "", 'dibs undrain: dibs undrain takes pools, and slots as POOL/NUMBER, not "l3"\n'))
    expect_equal(place.run("drain", "gpu", "--all"),
                 (2, "", "dibs drain: name the pools, or say --all for the whole broker, not both\n"))
    expect_equal(place.run("drain"),
                 (2, "", "dibs drain: name the pools, or say --all for the whole broker\n"))


def states(place):
    return [(row["state"], row["drained"])
            for row in json.loads(place.run("ls", "slots", "-p", "gpu", "-o", "json")[1])["rows"]]


@case("drain of a slot: it is granted no more, the pool goes on with the others")
def drain_of_a_slot(place):
    place.start(POOLS)
    expect_equal(place.run("drain", "gpu/0"), (0, "POOL   DRAINING\ngpu/0  yes\n", ""))
    expect_equal(states(place)[0], ("drained", True))
    free = len(states(place)) - 1
    hold(place, f"gpu:{free}")
    waiter = place.begin("claim", "gpu")
    waiting(place, 1)
    expect_equal(states(place), [("drained", True)] + free * [("leased", False)])
    expect("1 slot of the pool is drained." in place.run("explain", "c2")[1], "explain says so")
    expect_equal(place.run("undrain", "gpu/0")[0], 0)
    expect(waiter.stdout.readline() != "", "it is granted")
    expect_equal(place.run("drain", "gpu/0")[0], 0)
    expect_equal(states(place)[0], ("leased", True))
    left = ("dibs undrain: 1 slot of pool gpu stays drained: dibs undrain gpu/NUMBER ends that, and dibs "
            "ls slots shows them\n")
    expect_equal(place.run("undrain", "gpu"), (0, "POOL  DRAINING\ngpu   no\n", left))
    expect_equal(place.run("undrain", "--all")[2], left)
    expect_equal(place.run("undrain", "web")[2], "")
    expect_equal(place.run("drain", f"gpu/{free + 1}"),
                 (4, "", f"dibs drain: there is no slot gpu/{free + 1}; dibs ls claims, ls leases and ls slots "
                         "show what is\n"))


@case("drain of every slot of a pool: who waits is told")
def drain_of_all_slots(place):
    place.start(POOLS)
    slots = len(states(place))
    expect_equal(place.run("drain", *(f"gpu/{number}" for number in range(slots)))[0], 0)
    place.begin("claim", "gpu")
    waiting(place, 1)
    why = json.loads(place.run("explain", "c1", "-o", "json")[1])
    expect_equal((why["reason"], why["sentence"]),
                 ("drained", "Every slot of gpu is drained. An administrator must end that: "
                             "dibs undrain gpu/NUMBER, and dibs ls slots shows them."))


@case("drain: a claim that waits is told what drains, too")
def drain_of_waiters(place):
    broker = place.start(POOLS)
    hold(place, "gpu:2")
    for words, what, end in ((("gpu",), "pool", "gpu"), (("--all",), "whole broker", "--all")):
        waiter = place.begin("claim", "gpu")
        waiting(place, 1)
        expect_equal(place.run("drain", *words)[0], 0)
        expect_equal((waiter.wait(), waiter.stderr.read()),
                     (75, f'dibs claim: did not get a slot of pool "gpu": the {what} drains and takes '
                          f"no new claims; dibs undrain {end} ends that\n"))
        expect_equal(place.run("undrain", *words)[0], 0)
    waiter = place.begin("claim", "gpu")
    waiting(place, 1)
    broker.terminate()
    expect_equal((waiter.wait(), waiter.stderr.read()),
                 (75, 'dibs claim: did not get a slot of pool "gpu": the broker is about to stop, and '
                      "takes no new claims\n"))


@case("config check: good, bad, not there")
def config_check(place):
    good = place.folder / "good.toml"
    good.write_text(POOLS)
    expect_equal(place.run("config", "check", str(good)),
                 (0, f"file      {good}\npools     2\nmistakes  0\n", ""))
    bad = place.folder / "bad.toml"
    bad.write_text('[[pool]]\nname = "gpu"\nkindd = "counted"\n')
    code, _, err = place.run("config", "check", str(bad))
    expect_equal(code, 1)
    expect(err.startswith(f"{bad}:"), err)
    expect("kind" in err, err)
    bad.write_text('[[pool]]\nname = "gpu"\nkindd = "counted"\nslots = "two"\n')
    code, out, err = place.run("config", "check", str(bad), "-o", "json")
    told = json.loads(out)
    expect_equal((code, told["schema"], told["mistakes"]), (1, "dibs.config/1", 3))
    expect_equal([f"{one['file']}:{one['line']}:{one['column']}: {one['text']}"
                  for one in told["found"]], err.splitlines())
    places = [(one["line"], one["column"]) for one in told["found"]]
    expect((3, 1) in places and any(line == 4 for line, _ in places), str(places))
    told = json.loads(place.run("config", "check", "/no/such/file", "-o", "json")[1])
    expect_equal([(one["file"], one["line"], one["column"]) for one in told["found"]],
                 [("/no/such/file", None, None)])
    expect_equal(place.run("config", "check", "/no/such/file")[0], 1)
    expect_equal(place.run("config", "reload", str(good)),
                 (2, "", 'dibs config: "reload": dibs config can only check: dibs config check '
                         "FILE\n"))


@case("fsck: a live state is sound, while others claim")
def fsck(place):
    place.start(POOLS)
    hold(place, "gpu:2")
    place.begin("claim", "gpu")
    waiting(place, 1)
    code, out, err = place.run("fsck")
    expect_equal((code, err), (0, ""))
    expect(re.fullmatch(r"The state is sound: \d+ slices, nothing wrong\.\n", out), out)
    expect_equal(place.run("fsck", "-o", "json")[1], '{"schema":"dibs.fsck/1","rows":[]}\n')


@case("bench: times claims")
def bench(place):
    place.start(POOLS)
    code, out, err = place.run("bench", "gpu", "-c", "1000", "-o", "json")
    expect_equal((code, err), (0, ""))
    told = json.loads(out)
    expect_equal((told["schema"], told["claims"]), ("dibs.bench/1", 1000))
    expect(told["asked"] < 1000, out)  # a claim takes the lease again that the one before released
    asking = json.loads(place.run("bench", "gpu", "-c", "1000", "--ask", "-o", "json")[1])
    expect_equal(asking["asked"], 1000)
    expect_equal(asking["claim_bells"] + asking["release_bells"], asking["bells"])
    expect_equal(told["p999_ns"], None)  # of so few it would be the worst one
    expect(0 < told["least_ns"] <= told["p50_ns"] <= told["p99_ns"] <= told["most_ns"], out)
    expect_equal(place.run("bench", "gpu", "-c", "0"),
                 (2, "", 'dibs bench: --claims: "0" is not a number from 1 to 10000000\nSee dibs bench '
                         "--help.\n"))


def pools(place, holds):
    return wait_until(place, ("ls", "pools", "-o", "jsonl"),
                      lambda rows: holds({row["pool"]: row["slots"] for row in rows}))


KEPT = 'created_pool_idle = "1h"\n' + POOLS
GONE = 'created_pool_idle = "1s"\n' + POOLS


def holder_of_a_build(place, slots):
    """A command that holds a slot of the pool, and its fence."""
    # Where a configuration has not been read yet, the pool may go before it is claimed from.
    while True:
        holder = place.begin("exec", "build", "--create", f"build={slots}", "--keepalive",
                             "1h", "--", "sh", "-c", "echo $DIBS_FENCE; exec sleep 1000")
        line = holder.stdout.readline()
        if line:
            return holder, int(line)
        expect_equal(holder.wait(), 4)


@case("exec --create: the pool goes when nobody uses it any more, and may come back")
def created_pool(place):
    broker = place.start(KEPT)
    holder, fence = holder_of_a_build(place, 2)
    expect_equal(place.run("exec", "once", "--create", "once=1", "--", "true"), (0, "", ""))
    pools(place, lambda slots: slots == {"gpu": 2, "web": 0, "build": 2, "once": 1})
    place.reload(broker, GONE)
    pools(place, lambda slots: "once" not in slots)
    expect_equal(place.run("claim", "once"),
                 (4, "", 'dibs claim: there is no pool "once"; there are: build, gpu, web\n'))
    place.run("release", json.loads(place.run("ls", "leases", "-o", "jsonl")[1])["id"])
    holder.wait()  # its lease is lost, so it has been told to end
    pools(place, lambda slots: slots == {"gpu": 2, "web": 0})
    _, later = holder_of_a_build(place, 3)
    expect(later > fence, "fences go on")
    expect_equal(json.loads(place.run("show", "build", "-o", "json")[1])["slots"], 3)


@case("exec --create: a name that no pool can have")
def created_name(place):
    place.start(POOLS)
    rule = "a pool's name has 1 to 63 letters, digits, \".\", \"_\" and \"-\", a letter first\n"
    for name in ("a b", "a/b", "7", "gr\u00fcn"):
        expect_equal(place.run("exec", "gpu", "--create", f"{name}=1", "--", "true"),
                     (2, "", f'dibs exec: "{name}:1": {rule}'))


@case("release: the broker's log names who released and who held")
def release_is_logged(place):
    file, log = place.folder / "dibsd.toml", place.folder / "log"
    file.write_text(POOLS)
    with open(log, "w", encoding="utf-8") as told:
        broker = subprocess.Popen([place.dibsd, "--no-keeper", "--config", file, "--socket", place.socket],
                                  stdout=subprocess.PIPE, stderr=told, text=True)
    place.children.append(broker)
    broker.stdout.readline()
    holder, _ = hold(place, "gpu")
    expect_equal(place.run("release", "l1")[0], 0)
    line = f"user {os.getuid()} released lease l1 of pool gpu, which process {holder.pid} of user {os.getuid()} held\n"
    while line not in log.read_text(encoding="utf-8"):
        expect(broker.poll() is None, "the broker has ended")


if __name__ == "__main__":
    main(sys.argv)

#!/usr/bin/env python3
# tests/tool/operating.py -- dibs reload, stop and upgrade: what the broker is told to do with itself.
#
#   operating.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys

from holding import POOLS, hold, waiting
from tap import Skip, case, expect, expect_equal, main

NEW = POOLS + """
[[pool]]
name = "other"
kind = "counted"
slots = 1
"""
INSTEAD = "--drain rejects what waits, takes no new claims, and waits for the end of the leases"
FIRST = "dibs upgrade: another upgrade came first, or the broker died: asking the next one"
BROKEN = POOLS + 'colour = "red"\n'


@contextlib.contextmanager
def kept(place, config=POOLS, stderr=None):
    """A keeper with its broker, which both end with the case."""
    file = place.folder / "dibsd.toml"
    file.write_text('log_level = "off"\n' + config)
    with subprocess.Popen([place.dibsd, "--config", file, "--socket", place.socket],
                          stdout=subprocess.PIPE, stderr=stderr, text=True) as keeper:
        try:
            expect_equal(keeper.stdout.readline(), f"dibsd: ready on {place.socket}\n")
            yield keeper
        finally:
            while keeper.poll() is None:  # a second order does not wait for leases
                keeper.terminate()
                os.sched_yield()


def status(place):
    return json.loads(place.run("status", "-o", "json")[1])


@case("reload: takes the file over, and says what does not change")
def reload(place):
    place.start(POOLS)
    (place.folder / "dibsd.toml").write_text('log_level = "off"\n' + NEW +
                                             "[limits]\nslots = 64\n")
    expect_equal(place.run("reload"),
                 (0, "The configuration has been read again.\n",
                  "dibs reload: limits are fixed until the next start\n"))
    expect_equal(place.run("exec", "other", "--timeout", "60s", "--", "true"), (0, "", ""))


@case("reload: a mistake is told with its place, and changes nothing")
def broken(place):
    place.start(POOLS)
    file = place.folder / "dibsd.toml"
    file.write_text(BROKEN)
    line = BROKEN.splitlines().index('colour = "red"') + 1
    said = f'{file}:{line}:1: unknown key "colour" in a pool'
    code, out, err = place.run("reload", "-o", "json")
    expect_equal((code, err), (1, f"dibs reload: {said}\n"))
    expect_equal(json.loads(out), {"schema": "dibs.reload/1", "reloaded": False, "said": said})
    expect_equal(place.run("exec", "gpu", "--", "true"), (0, "", ""))


@case("stop: is refused while a lease is held, and names it; ends the broker where none is")
def stop(place):
    broker = place.start(POOLS)
    holder, _ = hold(place, "gpu")
    code, out, err = place.run("stop")
    expect_equal((code, out), (1, ""))
    expect(err.startswith("dibs stop: the broker goes on, since 1 lease is held: gpu l1 (process "), err)
    expect(err.endswith(f"); {INSTEAD}\n"), err)
    holder.terminate()
    holder.wait()
    expect_equal(place.run("stop"), (0, "The broker has stopped.\n", ""))
    expect_equal(broker.wait(), 0)


@case("stop: is refused while claims wait, and they go on")
def stop_waiting(place):
    place.start(POOLS)
    waiter = place.begin("claim", "web", "-t", "1h")
    waiting(place, 1)
    expect_equal(place.run("stop"),
                 (1, "", f"dibs stop: the broker goes on, since 1 claim waits; {INSTEAD}\n"))
    expect_equal((len(waiting(place, 1)), waiter.poll(), status(place)["draining"]), (1, None, False))


@case("stop --drain: waits longer than drain_timeout, over the broker's death too")
def drained(place):
    with kept(place, 'drain_timeout = "1ms"\n' + POOLS) as keeper:
        holder, _ = hold(place, "gpu")
        stopping = place.begin("stop", "--drain")
        expect(stopping.stderr.readline().startswith(
            "dibs: waiting for the end of what is held: gpu l1 (process "), "says whom it waits for")
        while not status(place)["draining"]:
            expect_equal(stopping.poll(), None)
        first = status(place)
        expect_equal((first["stops_in_ns"], first["draining"]), (None, True))
        os.kill(first["pid"], signal.SIGKILL)
        expect_equal(stopping.wait(), 3)  # the broker that it asked has died, and it says so
        again = place.begin("stop", "--drain")
        again.stderr.readline()
        while status(place)["epoch"] == first["epoch"]:
            expect_equal(again.poll(), None)
        expect_equal((status(place)["draining"], holder.poll(), keeper.poll()), (True, None, None))
        holder.terminate()
        expect_equal(again.communicate(timeout=60)[0], "The broker has stopped.\n")
        expect_equal(keeper.wait(), 0)


@case("stop --drain --within: cuts what is left then")
def bounded(place):
    broker = place.start(POOLS)
    holder, _ = hold(place, "gpu")
    code, out, _ = place.run("stop", "--drain", "--within", "1ms")
    expect_equal((code, out, broker.wait()), (0, "The broker has stopped.\n", 0))
    expect(holder.wait() != 0, "its holder is told")


@case("a signal shortens a drain without a bound to drain_timeout")
def shortened(place):
    broker = place.start('drain_timeout = "1ms"\n' + POOLS)
    hold(place, "gpu")
    stopping = place.begin("stop", "--drain")
    stopping.stderr.readline()
    while not status(place)["draining"]:
        expect_equal(stopping.poll(), None)
    broker.terminate()
    expect_equal((broker.wait(), stopping.wait()), (0, 0))


@case("upgrade: the next broker serves, and leases go on")
def upgrade(place):
    with kept(place):
        holder, _ = hold(place, "gpu")
        before = status(place)
        code, out, err = place.run("upgrade", "-o", "json")
        after = status(place)
        expect_equal((code, err), (0, ""))
        expect_equal(json.loads(out)["epoch"], after["epoch"])
        expect(after["epoch"] > before["epoch"] and after["pid"] != before["pid"], "it is another one")
        expect_equal((after["leases"], holder.poll()), (1, None))


@case("upgrade: of many at once each ends well, though the broker that it asked has made way for another")
def upgrades(place):
    with kept(place):
        holder, _ = hold(place, "gpu")
        for _ in range(10):
            before = status(place)["epoch"]
            both = [place.begin("upgrade") for _ in range(4)]
            for one in both:
                out, err = one.communicate(timeout=60)
                expect_equal(one.returncode, 0)
                expect(out.startswith("The next broker serves: "), out)
                expect(set(err.splitlines()) <= {FIRST}, err)
            expect(before < status(place)["epoch"] <= before + 4, "each has one at most")
        expect_equal((status(place)["leases"], holder.poll()), (1, None))


@contextlib.contextmanager
def upgradable(place):
    """A broker whose program can be replaced: its path, a function that does, and the log."""
    program = place.folder.resolve() / "installed"
    shutil.copy(place.dibsd, program)
    good, place.dibsd = place.dibsd, program

    def install(text=None):
        new = place.folder / "new"
        if text is None:
            shutil.copy(good, new)
        else:
            new.write_text(text)
        new.chmod(0o755)
        new.rename(program)

    with open(place.folder / "log", "w+", encoding="utf-8") as log, kept(place, stderr=log):
        yield program, install, lambda: (place.folder / "log").read_text(encoding="utf-8")


@case("upgrade: a program that does not come to serve is named, with its end; what holds goes on")
def not_upgraded(place):
    with upgradable(place) as (program, install, log):
        holder, _ = hold(place, "gpu")
        epoch = status(place)["epoch"]
        for text, why in (("#!/bin/sh\nexit 3\n", "it ended with exit code 3"),
                          ("#!/bin/sh\nexit 0\n", "it ended with exit code 0"),
                          ("#!/bin/sh\nkill -9 $$\n", "it died of signal 9"),
                          ("no program\n", f"posix_spawn of {program}: Exec format error")):
            install(text)
            code, out, err = place.run("upgrade")
            after = status(place)
            told = f"the program at {program} cannot go on ({why})"
            expect_equal((code, out, err),
                         (1, "", f"dibs upgrade: {told}: version {after['version']} serves in its place, "
                                 f"epoch {after['epoch']}; the log of dibsd may say more\n"))
            expect(f"{told}: the one that this keeper is does" in log(), log())
            expect(after["epoch"] > epoch, "another broker serves")
            expect_equal((after["leases"], holder.poll()), (1, None))
        install()
        expect_equal(place.run("upgrade", "-o", "json")[::2], (0, ""))
        expect_equal((status(place)["leases"], holder.poll()), (1, None))


@case("upgrade: that no program is installed is told and logged; one that is there again is taken")
def missing(place):
    with upgradable(place) as (program, install, log):
        program.unlink()
        told = f"the program at {program} cannot be started (No such file or directory)"
        code, out, err = place.run("upgrade")
        expect_equal((code, out), (1, ""))
        expect(err.startswith(f"dibs upgrade: {told}: version "), err)
        expect(f"{told}: the one that this keeper is goes on\n" in log(), log())
        install()
        expect_equal(place.run("upgrade", "-o", "json")[::2], (0, ""))
        expect_equal(os.readlink(f"/proc/{status(place)['pid']}/exe"), str(program))


@case("upgrade: a program that hangs is killed, and told with the time that it had")
def hangs(place):
    with upgradable(place) as (program, install, log):
        install("#!/bin/sh\nsleep 1000\n")
        code, out, err = place.run("upgrade")
        expect_equal((code, out), (1, ""))
        told = re.match(rf"dibs upgrade: (the program at {program} cannot go on "
                        r"\(it did not serve within \d+ s, and was killed\)): version ", err)
        expect(told is not None, err)
        expect(told.group(1) in log(), log())


@case("upgrade: a broker without a keeper refuses")
def no_keeper(place):
    place.start(POOLS)
    expect_equal(place.run("upgrade"),
                 (1, "", "dibs upgrade: this broker has no keeper to start its successor\n"))


@case("all three are an administrator's")
def denied(place):
    if os.geteuid() != 0:
        raise Skip("only root can ask as another user")
    place.start('socket_mode = "0666"\n' + POOLS)
    place.folder.chmod(0o755)
    for word in ("reload", "stop", "upgrade"):
        code, out, err = place.run(word, user=65534)
        expect_equal((code, out), (5, ""))
        expect(err.startswith(f"dibs {word}: "), err)


if __name__ == "__main__":
    main(sys.argv)

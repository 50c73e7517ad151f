#!/usr/bin/env python3
# tests/tool/trees.py -- leases that last as long as the processes of a command: dibs exec --tree.
#
#   trees.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import contextlib
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys

from groups import ALICE, LEAVES, delegated, end, group_of, lives, needs_groups, new_group, open_to_all, told_by
from tap import Skip, case, expect, expect_equal, main

POOL = '[[pool]]\nname = "one"\nkind = "counted"\nslots = 1\n'
HELLO = struct.Struct("=QIIIIIIII")  # of shm/greeting.hpp
FAREWELL = struct.Struct("=QIIII200s")


def leases(place):
    return place.run("ls", "leases")[1]


def await_outlived(place):
    while "outlived" not in leases(place):
        expect("one" in leases(place), "the lease is gone")


def await_asleep(process):
    """All its threads: it has nothing to do."""
    while any((task / "stat").read_text().rpartition(") ")[2][0] != "S"
              for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir()):
        pass


@case("a command that leaves a process keeps its slot until that has ended, and explain names it")
def leaves_one(place):
    needs_groups()
    broker = place.start(POOL)
    command = place.begin("exec", "--tree", "one", "--", "sh", "-c", LEAVES + "exit 7")
    left, = told_by(command, "left")
    expect_equal(command.wait(60), 7)
    said = command.stderr.read()
    expect("left 1 process running" in said and str(left) in said, said)
    await_outlived(place)
    await_asleep(broker)
    waiting = place.begin("exec", "one", "--", "true")
    while "c2" not in place.run("ls", "claims")[1]:
        pass
    told = place.run("explain", "c2")[1]
    expect("has ended, and what that had started runs on" in told and f"process {left} (sleep)" in told
           and f"kill {left}" in told and "dibs release l1" in told, told)
    expect(waiting.poll() is None, "the slot was given away")
    group = group_of(left)
    expect(lives(left), "it has been ended")
    end(left)
    expect_equal(waiting.wait(60), 0)
    expect_equal(place.run("exec", "one", "--", "true"), (0, "", ""))
    expect(not group.exists(), "its group is still there")


@case("a release from outside has what a command has left killed, and its slot is free when it is dead")
def released(place):
    needs_groups()
    place.start(POOL)
    command = place.begin("exec", "--tree", "one", "--", "sh", "-c", LEAVES)
    left, = told_by(command, "left")
    command.wait(60)
    await_outlived(place)
    code, out, _ = place.run("release", "l1")
    expect(code == 0 and "killing" in out, (code, out))
    expect_equal(place.run("exec", "one", "-t", "1min", "--", "true"), (0, "", ""))
    expect(not lives(left), "it lives")
    expect('"reason":"revoked"' in place.run("inspect", "l1", "-o", "jsonl")[1], "why it ended")


@case("a group whose last change is not notified, as it was removed right behind it, is found to be empty")
def lost_change(place):
    needs_groups()
    place.start(POOL)
    for _ in range(3):  # each within ten milliseconds, mostly
        command = place.begin("exec", "one", "--", "sh", "-c", LEAVES)
        left, = told_by(command, "left")
        command.wait(60)
        await_outlived(place)
        group = group_of(left)
        (group / "cgroup.freeze").write_text("1")  # a change that is notified
        os.kill(left, signal.SIGKILL)
        while group.exists():
            with contextlib.suppress(OSError):
                group.rmdir()
        expect_equal(place.run("exec", "one", "-t", "10s", "--", "true"), (0, "", ""))


def leaves_below(group):
    return [one.name for one in group.rglob("dibs-exec-*")]


@case("no group is left where no slot comes, and none of a wrapper within a wrapper that was killed")
def no_leaf_stays(place):
    place.start(POOL + POOL.replace("one", "two"))
    with new_group("leaves") as group:
        def begin(*words):
            return place.begin("exec", "--tree", *words, preexec_fn=lambda: (group / "cgroup.procs").write_text("0"))
        holder = begin("one", "--", "sh", "-c", "echo main $$; exec sleep 1000")
        main_pid, = told_by(holder, "main")
        expect_equal(begin("one", "--now", "--", "true").wait(60), 75)
        expect_equal(leaves_below(group), [f"dibs-exec-{holder.pid}"])
        end(main_pid)
        holder.wait(60)
        inner = f"{place.dibs} exec --tree two -- sh -c 'kill -9 $PPID; echo inner $$; exec sleep 1000'"
        outer = begin("one", "--", "sh", "-c", f"{inner} & wait; exec sleep 1000")
        inner_pid, = told_by(outer, "inner")
        expect_equal(group_of(inner_pid).parent, group / f"dibs-exec-{outer.pid}")
        end(inner_pid)
        outer.terminate()
        outer.wait(60)
        expect_equal(leaves_below(group), [])


@case("a wrapper and a command that are killed leave the slot to what they had started")
def killed(place):
    needs_groups()
    place.start(POOL)
    command = place.begin("exec", "one", "--", "sh", "-c", LEAVES + "echo main $$; exec sleep 1000")
    left, main_pid = told_by(command, "left", "main")
    command.kill()
    expect_equal(command.wait(60), -signal.SIGKILL)
    expect("outlived" not in leases(place), "the command lives")
    end(main_pid)
    await_outlived(place)
    os.kill(left, signal.SIGSTOP)
    expect_equal(place.run("exec", "one", "--now", "--", "true")[0], 75)
    (group_of(left) / "cgroup.freeze").write_text("1")
    expect_equal(place.run("exec", "one", "--now", "--", "true")[0], 75)
    (group_of(left) / "cgroup.freeze").write_text("0")
    end(left)
    expect_equal(place.run("exec", "one", "-t", "1min", "--", "true"), (0, "", ""))


@case("what has lost its lease is ended with all that it has started, deaf to TERM or not")
def lost(place):
    needs_groups()
    place.start(POOL)
    command = place.begin("exec", "one", "-g", "50ms", "--", "sh", "-c",
                          "trap '' TERM; " + LEAVES + "exec sleep 1000")
    left, = told_by(command, "left")
    expect_equal(place.run("release", "l1")[0], 0)
    expect_equal(command.wait(60), 125)
    expect(not lives(left), "what it had started lives")
    expect_equal(place.run("exec", "one", "--", "true"), (0, "", ""))


@case("a command without a tree gives its slot back as it ends")
def without(place):
    place.start(POOL)
    command = place.begin("exec", "--no-tree", "one", "--", "sh", "-c", LEAVES)
    left, = told_by(command, "left")
    expect_equal(command.wait(60), 0)
    expect_equal(place.run("exec", "one", "-t", "1min", "--", "true"), (0, "", ""))
    expect(lives(left), "it was ended")
    end(left)




@case("a set-user-ID program is ended with its tree, by the wrapper; without one the slot waits for it")
def set_user_id(place):
    place.start(POOL)
    open_to_all(place)
    if os.statvfs(place.folder).f_flag & os.ST_NOSUID:
        raise Skip("set-user-ID programs do not work here")
    program = pathlib.Path(shutil.copy("/bin/sleep", place.folder / "sleeps"))
    program.chmod(0o4755)
    with new_group("alice", ALICE) as group:
        command = delegated(place, group, "exec", "--tree", "-g", "50ms", "one", "--", "sh", "-c",
                            f"{program} 1000 & echo left $!; wait")
        helper, = told_by(command, "left")
        expect_equal(group_of(helper).parent, group)  # as in a scope of one's own
        expect_equal(place.run("release", "l1")[0], 0)
        expect_equal(command.wait(60), 125)
        expect(not lives(helper), "the helper lives")
        command = delegated(place, group, "exec", "--tree", "one", "--", "sh", "-c",
                            f"{program} 1000 & echo left $!; echo main $$; wait")
        helper, shell = told_by(command, "left", "main")
        command.kill()
        command.wait(60)
        end(shell)
        await_outlived(place)
        end(helper)
        expect_equal(place.run("exec", "one", "-t", "1min", "--", "true"), (0, "", ""))


@case("where no group can be made the wrapper waits for all that its command starts: with --tree alone")
def unwritable(place):
    place.start(POOL)
    open_to_all(place)
    with new_group("closed") as group:
        command = delegated(place, group, "exec", "one", "--", "true")
        expect_equal((command.wait(60), command.stderr.read()), (0, ""))
        twice = ("(setsid sh -c '(setsid sh -c \"echo left \\$\\$ >&3; exec sleep 1000\" &)' &) "
                 "3>&1 >/dev/null 2>&1; ")
        command = delegated(place, group, "exec", "--tree", "one", "--", "sh", "-c", twice + "exit 7")
        left, = told_by(command, "left")
        expect_equal(place.run("exec", "one", "--now", "--", "true")[0], 75)
        expect(command.poll() is None, "it does not wait")
        command.stderr.readline()  # that there is no group
        said = command.stderr.readline()
        kept = 'the slot of pool "one" is given back when the last one has ended'
        alone = f"1 process running, process {left} (sleep) of user {ALICE}: {kept}\n"
        # Its parents may not have ended yet.
        others = rf"[2-4] processes running, process \d+ \(\w+\) of user {ALICE} and others: {kept}\n"
        start = "dibs exec: the command has ended and left "
        expect(said == start + alone or re.fullmatch(start + others, said), said)
        end(left)
        expect_equal(command.wait(60), 7)
        command = delegated(place, group, "exec", "--tree", "one", "--", "true")
        command.wait(60)
        said = command.stderr.read()
        expect("--tree without a control group (no control group can be made in" in said
               and "Permission denied" in said, said)
        expect_equal(place.run("exec", "one", "--now", "--", "true"), (0, "", ""))
        command = delegated(place, group, "exec", "--tree", "-g", "50ms", "one", "--", "sh", "-c", twice)
        left, = told_by(command, "left")
        expect_equal(place.run("release", place.run("ls", "leases")[1].split("\n")[1].split()[0])[0], 0)
        expect_equal(command.wait(60), 125)
        expect(not lives(left), "what it had started lives")
        command = delegated(place, group, "exec", "--tree", "one", "--", "sh", "-c", twice + "exec sleep 1000")
        left, = told_by(command, "left")
        os.kill(left, signal.SIGKILL)
        while pathlib.Path(f"/proc/{left}").exists():  # taken though the command runs on
            pass
        command.kill()
        expect_equal(place.run("exec", "one", "-t", "1min", "--", "true"), (0, "", ""))
        command = delegated(place, group, "exec", "--tree", "one", "--", "sh", "-c", twice + "exec sleep 1000")
        left, = told_by(command, "left")
        command.kill()
        expect_equal(place.run("exec", "one", "-t", "1min", "--", "true"), (0, "", ""))
        end(left)
    expect_equal(place.run("exec", "--tree", "--no-tree", "one", "--", "true")[0], 2)


def refusal(place, prepare):
    """What a client is told that says its group is its own, after `prepare` in its process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        prepare()
        connection = place.connect()
        connection.send(HELLO.pack(0x4f4c4c4548424944, 1, 1, 0, 0, 0, 0, 0, 0))
        os.write(writing, connection.recv(1024))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        packet = told.read()
    os.waitpid(child, 0)
    expect_equal(len(packet), FAREWELL.size)
    _, code, _, _, size, text = FAREWELL.unpack(packet)
    expect_equal(code, 4)
    return text[:size].decode()


@case("a group that is the root, shared, divided or another user's is no tree: not allowed, and why")
def refused(place):
    broker = place.start(POOL)
    open_to_all(place)

    def enter(group):
        (group / "cgroup.procs").write_text("0")
    own = refusal(place, lambda: None)
    expect("no tree of process" in own, own)
    with new_group("shared", ALICE) as group:
        enter_shared = f"echo 0 > {group}/cgroup.procs; echo; exec sleep 1000"
        with subprocess.Popen(["sh", "-c", enter_shared], stdout=subprocess.PIPE) as other:
            other.stdout.readline()

            def as_alice():
                enter(group)
                os.setresgid(ALICE, ALICE, ALICE)
                os.setresuid(ALICE, ALICE, ALICE)
            expect("is not alone in it" in refusal(place, as_alice), "shared")
            other.kill()
        expect("user 61001 owns it, not 0" in refusal(place, lambda: enter(group)), "another's")
        (group / "below").mkdir()
        expect("has other groups below it" in refusal(place, as_alice), "divided")
    with new_group("broker") as group:
        (group / "cgroup.procs").write_text(str(broker.pid))
        expect("is not alone in it" in refusal(place, lambda: enter(group)), "the broker's")
        (group.parent / "cgroup.procs").write_text(str(broker.pid))
    expect_equal(place.run("ls", "clients")[1].count("\n") <= 1, True)
    expect_equal(place.run("exec", "one", "--", "true"), (0, "", ""))


@contextlib.contextmanager
def kept(place):
    """A service with its keeper, which is told to stop in the end: killed, it would be made good."""
    file = place.folder / "dibsd.toml"
    file.write_text('log_level = "off"\n' + POOL)
    keeper = subprocess.Popen([place.dibsd, "--config", file, "--socket", place.socket],
                              stdout=subprocess.PIPE, text=True,
                              env=place.environment(DIBS_STATE_DIR=str(place.folder)))
    place.children.append(keeper)
    try:
        expect_equal(keeper.stdout.readline(), f"dibsd: ready on {place.socket}\n")
        yield keeper
    finally:
        for number in (signal.SIGCONT, signal.SIGTERM, signal.SIGINT):
            keeper.send_signal(number)
        keeper.wait(60)


def broker_of(keeper, other=None):
    while True:
        for pid in pathlib.Path(f"/proc/{keeper.pid}/task/{keeper.pid}/children").read_text().split():
            with contextlib.suppress(OSError):
                name = pathlib.Path(f"/proc/{pid}/comm").read_text()
                if name == "dibsd-broker\n" and int(pid) != other:
                    return int(pid)


@case("a broker that dies leaves the tree to its successor: alive, ended meanwhile, made anew")
def taken_over(place):
    needs_groups()
    with kept(place) as keeper:
        command = place.begin("exec", "one", "--", "sh", "-c", LEAVES)
        left, = told_by(command, "left")
        expect_equal(command.wait(60), 0)
        await_outlived(place)
        broker = broker_of(keeper)
        os.kill(broker, signal.SIGKILL)
        broker = broker_of(keeper, broker)
        await_outlived(place)
        expect_equal(place.run("exec", "one", "--now", "--", "true")[0], 75)
        end(left)
        command = place.begin("exec", "one", "-t", "1min", "--", "sh", "-c", LEAVES)
        left, = told_by(command, "left")
        expect_equal(command.wait(60), 0)
        await_outlived(place)
        group = group_of(left)
        os.kill(keeper.pid, signal.SIGSTOP)  # nobody serves until it goes on
        end(broker)
        end(left)
        group.rmdir()
        group.mkdir()  # of the same path, and another one
        with subprocess.Popen(["sh", "-c", f"echo 0 > {group}/cgroup.procs; exec sleep 1000"]) as other:
            while "populated 0" in (group / "cgroup.events").read_text():
                pass
            os.kill(keeper.pid, signal.SIGCONT)
            expect_equal(place.run("exec", "one", "-t", "1min", "--", "true"), (0, "", ""))
            other.kill()
        while "populated 1" in (group / "cgroup.events").read_text():
            pass
        group.rmdir()


@case("a broker that dies while the command lives: its successor watches the tree")
def taken_over_alive(place):
    needs_groups()
    with kept(place) as keeper:
        command = place.begin("exec", "one", "--", "sh", "-c", LEAVES + "echo main $$; exec sleep 1000")
        left, shell = told_by(command, "left", "main")
        broker = broker_of(keeper)
        os.kill(broker, signal.SIGKILL)
        broker_of(keeper, broker)
        end(shell, signal.SIGTERM)
        command.wait(60)
        await_outlived(place)
        end(left)
        expect_equal(place.run("exec", "one", "-t", "1min", "--", "true"), (0, "", ""))


@case("where keeper and broker are both killed the wrapper ends all that the command has started")
def both_killed(place):
    needs_groups()
    with kept(place) as keeper:
        command = place.begin("exec", "one", "-g", "50ms", "--", "sh", "-c", LEAVES + "exec sleep 1000")
        left, = told_by(command, "left")
        broker = broker_of(keeper)
        os.kill(keeper.pid, signal.SIGSTOP)
        os.kill(broker, signal.SIGKILL)
        keeper.kill()
        expect_equal(command.wait(60), 125)
        expect(not lives(left), "what it had started lives")


if __name__ == "__main__":
    main(sys.argv)

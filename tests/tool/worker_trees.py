#!/usr/bin/env python3
# tests/tool/worker_trees.py -- what a use, a process and a `dibs worker` leave behind is ended.
#
#   worker_trees.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import contextlib
import os
import pathlib
import signal
import sys

from groups import ALICE, LEAVES, delegated, end, group_of, lives, needs_groups, new_group, open_to_all
from tap import Skip, case, expect, expect_equal, main

POOL = '[[pool]]\nname = "web"\nkind = "worker"\nanswer_max = 4096\n'
# What is left writes the answer, by its number, and is deaf to TERM.
SERVE = ("trap '' TERM; while read -r line; do case $line in *die*) exit 9;; "
         f"*leave*) {LEAVES};; *) echo main $$;; esac; done")


def begin(place, *words, script=SERVE):
    return place.begin("worker", "web", *words, "--", "sh", "-c", script)


def number_of(place, body):
    """The process that the answer names."""
    code, out, err = place.run("call", "web", body, "-t", "1min")
    expect_equal((code, err), (0, ""))
    return int(out.split()[1])


def line_with(worker, text):
    """Of its standard error."""
    while text not in (line := worker.stderr.readline()):
        expect(line, f"the worker has ended and not said {text}")
    return line


def leave(worker):
    """Ends it, and what it still says."""
    worker.terminate()
    expect_equal(worker.wait(60), 0)
    return worker.stderr.read()


@case("what a use leaves, twice forked and deaf to TERM, is dead before the next use; its holder has the answer")
def left(place):
    needs_groups()
    place.start(POOL)
    worker = begin(place)
    process = number_of(place, "who")
    for _ in range(3):
        rest = number_of(place, "leave")
        expect_equal(number_of(place, "who"), process)
        expect(not lives(rest), "it lives")
    said = line_with(worker, "its use has left")
    expect("1 process running, process " in said and "--leftovers keep" in said, said)
    expect_equal(leave(worker), "")  # it is told once


@case("where the holder gives the slot back, what the use has left is dead before the next grant")
def given_back(place):
    needs_groups()
    place.start(POOL)
    serve = ("while read -r line; do case $line in *assign*) "
             f"{LEAVES};; *) echo clean;; esac; done")
    begin(place, "--lines", "hold", script=serve)
    first = number_of(place, "")
    second = number_of(place, "")
    expect(first != second and not lives(first), "it lives")


@case("what a process had started before a use lives on, and so does all of a use with --leftovers keep")
def kept(place):
    needs_groups()
    place.start(POOL)
    early = "sleep 1000 & helper=$!; echo ready; " + SERVE.replace("echo main $$", "echo main $helper")
    worker = begin(place, "--ready-line", "ready", script=early)
    helper = number_of(place, "who")
    for body in ("leave", "who"):
        number_of(place, body)
        expect(lives(helper), "what was there before the use is dead")
    leave(worker)
    worker = begin(place, "--leftovers", "keep")
    rest = number_of(place, "leave")
    number_of(place, "who")
    expect(lives(rest), "it is dead")
    expect_equal(group_of(rest).parent.name, f"dibs-worker-{worker.pid}")
    leave(worker)
    expect(not lives(rest), "it has outlived its process")
    expect(not list(group_of("self").glob(f"dibs-worker-{worker.pid}*")), "a group is left")


@case("what a process that ends has left is dead before the next one is started")
def ended(place):
    needs_groups()
    place.start(POOL)
    begin(place, "--leftovers", "keep", "--backoff", "0ns")
    process = number_of(place, "who")
    rest = number_of(place, "leave")
    expect_equal(place.run("call", "web", "die")[0], 125)
    expect(number_of(place, "who") != process and not lives(rest), "it lives")
    rest = number_of(place, "leave")
    end(number_of(place, "who"))
    number_of(place, "who")
    expect(not lives(rest), "it lives")


@case("what the command between uses has left is dead before the next use")
def between(place):
    needs_groups()
    place.start(POOL)
    file = place.folder / "left"
    begin(place, "--between", f"setsid sleep 1000 >/dev/null 2>&1 & echo $! > {file}")
    number_of(place, "who")
    number_of(place, "who")
    rest = number_of(place, "leave")
    first = int(file.read_text())
    number_of(place, "who")
    expect(not lives(first) and not lives(rest), "it lives")


@case("a group that a use has made below its process's does not hide what it has left")
def below(place):
    needs_groups()
    place.start(POOL)
    hide = ("while read -r line; do case $line in *leave*) below=$(grep -o '/dibs-worker.*' /proc/$$/cgroup); "
            f"mkdir -p {group_of('self')}$below/hidden; setsid sleep 1000 >/dev/null 2>&1 & "
            f"echo $! > {group_of('self')}$below/hidden/cgroup.procs; echo left $!;; *) echo main $$;; esac; done")
    worker = begin(place, script=hide)
    rest = number_of(place, "leave")
    expect_equal(group_of(rest).name, "hidden")
    number_of(place, "who")
    expect(not lives(rest), "it lives")
    leave(worker)
    expect(not list(group_of("self").glob(f"dibs-worker-{worker.pid}*")), "a group is left")


@case("a worker that is killed takes all that its processes have started with it, and its groups go")
def killed(place):
    needs_groups()
    place.start(POOL)
    worker = begin(place, "--leftovers", "keep")
    process, rest = number_of(place, "who"), number_of(place, "leave")
    worker.kill()
    worker.wait(60)
    while lives(process) or lives(rest):
        pass
    begin(place)
    number_of(place, "who")
    expect(not list(group_of("self").glob(f"dibs-worker-{worker.pid}*")), "a group is left")


@contextlib.contextmanager
def freezer():
    """A group of the first version's freezer, in which not even KILL ends a process until it is thawed."""
    group = pathlib.Path(f"/sys/fs/cgroup/freezer/dibs-test-{os.getpid()}")
    try:
        group.mkdir()
    except OSError as error:
        raise Skip(f"no freezer: {error}") from error
    try:
        yield group
    finally:
        (group / "freezer.state").write_text("THAWED")
        for pid in (group / "cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        while (group / "cgroup.procs").read_text():
            pass
        group.rmdir()


@case("what KILL does not end has its process replaced, and is waited for; a stop waits no longer than its grace")
def unkillable(place):
    needs_groups()
    place.start(POOL)
    with freezer() as group:
        file = place.folder / "left"
        freeze = (f"setsid sh -c 'echo $$ > {group}/cgroup.procs; echo $$ > {file}; exec sleep 1000' & "
                  f"until test -s {file}; do :; done; echo FROZEN > {group}/freezer.state; "
                  f"until grep -q FROZEN {group}/freezer.state; do :; done; echo left $(cat {file})")
        serve = f"while read -r line; do case $line in *leave*) {freeze};; *) echo main $$;; esac; done"
        worker = begin(place, "--grace", "50ms", "--backoff", "0ns", script=serve)
        process = number_of(place, "who")
        rest = number_of(place, "leave")
        said = line_with(worker, "which KILL has not ended within 50ms")
        expect(f"process {process} " in said and f"process {rest} (s" in said, said)
        said = line_with(worker, "no other process is started until that has ended")
        expect(f"process {rest} (s" in said, said)
        expect_equal(place.run("call", "web", "who", "--now")[0], 75)
        file.unlink()
        (group / "freezer.state").write_text("THAWED")
        expect(number_of(place, "who") != process, "the same process")
        expect(not lives(rest), "it lives")
        rest = number_of(place, "leave")
        line_with(worker, "no other process is started")
        worker.terminate()
        expect_equal(worker.wait(60), 0)
        said = line_with(worker, "which KILL has not ended\n")
        expect(f"process {rest} (s" in said, said)
    begin(place)
    number_of(place, "who")  # it has looked for groups that others have left
    expect(not list(group_of("self").glob(f"dibs-worker-{worker.pid}*")), "a group is left")


@case("as another user: in a group of that user's own as root; without a right to one as without, or not at all")
def other_user(place):
    place.start(POOL)
    open_to_all(place)
    words = ("--", "sh", "-c", SERVE)
    with new_group("alice", ALICE) as group:
        worker = delegated(place, group, "worker", "web", "--leftovers", "end", *words)
        rest = number_of(place, "leave")
        number_of(place, "who")
        expect(not lives(rest), "it lives")
        leave(worker)
    with new_group("closed") as group:
        worker = delegated(place, group, "worker", "web", "--leftovers", "end", *words)
        expect_equal(worker.wait(60), 125)
        said = worker.stderr.read()
        expect("--leftovers end needs a control group for each process: no control group can be made in" in said
               and "Permission denied" in said, said)
        worker = delegated(place, group, "worker", "web", *words)
        rest = number_of(place, "leave")
        number_of(place, "who")
        expect_equal(leave(worker), 'dibs worker: 1 slot of pool "web" ready\n')
        expect(lives(rest), "it is dead")
        group.chmod(0o777)  # a group may be made, and not be entered: its parent's list is root's
        worker = delegated(place, group, "worker", "web", "--leftovers", "end", *words)
        expect_equal(worker.wait(60), 125)
        said = worker.stderr.read()
        expect("no process can be put into" in said and "Permission denied" in said, said)
    expect_equal(place.run("worker", "web", "--leftovers", "no", *words)[0], 2)


if __name__ == "__main__":
    main(sys.argv)

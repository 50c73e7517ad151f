#!/usr/bin/env python3
# tests/tool/runner_deaths.py -- workers, brokers and runners die: what goes on, and what is left of nothing.
#
#   runner_deaths.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import signal
import sys

from groups import ALICE, end, group_of, lives, needs_groups, new_group
from runners import (answer, ask, await_slots, begin, call, go, guard_of, kept_broker, kill_both, leave, line_with,
                     pools, quoted, worker, write, SERVE)
from tap import Skip, case, expect, expect_equal, main

SHARED = f'socket_mode = "0666"\n[[policy]]\nuser = {ALICE}\nprovisions = ["py"]\noffers = ["py"]\n'


@case("what ignores TERM is killed after its grace, and what has left children leaves none")
def deaf(place):
    place.start(pools())
    with new_group("runner") as group:
        runner = begin(place, worker(place, script="trap '' TERM; " + SERVE + "; sleep 1000", grace='"50ms"',
                                     leftovers='"keep"'), group=group)
        process, rest = ask(place), ask(place, "leave")
        expect(lives(process) and lives(rest), "it is dead")
        leave(runner)
        expect(not lives(process) and not lives(rest), "it lives")
        expect(not list(group.glob("dibs-runner-*")), "a group is left")


@case("a worker that is killed ends its lease as worker lost, and another one is made")
def worker_dies(place):
    place.start(pools())
    begin(place, worker(place))
    process = ask(place)
    held = call(place, "held")
    await_slots(place, 1, "leased")
    end(process)
    expect(held.wait(60) != 0, "it was served")
    expect("worker" in held.stderr.read(), "not said")
    expect(ask(place) != process, "the same process")


@case("the broker dies while a worker is made: it is announced to the next one; the keeper, likewise; workers stay")
def broker_dies(place):
    keeper = kept_broker(place, pools(idle="1min"))
    begin(place, worker(place, ready='"line:ready"',
                        script="while [ ! -e {go} ]; do sleep 0.01; done; echo ready; " + SERVE))
    waiting = call(place)
    await_slots(place, 1, "ordered")
    os.kill(json.loads(place.run("status", "-o", "json")[1])["pid"], signal.SIGKILL)
    go(place)
    process = answer(waiting)
    expect_equal(ask(place), process)
    keeper.kill()
    keeper.wait(60)
    expect_equal(ask(place), process)
    expect_equal(place.run("stop")[0], 0)


@case("the broker is stopped: its workers stay, and are those of the next broker")
def broker_stops(place):
    broker = place.start(pools())
    runner = begin(place, worker(place))
    process = ask(place)
    broker.terminate()
    expect_equal(broker.wait(60), 0)
    line_with(runner, "not yet provisioner")
    expect(lives(process), "it is dead")
    place.start(pools())
    expect_equal(ask(place), process)


@case("runner and guard are killed: leases end as worker lost; the successor ends what is left, says so, and starts afresh")
def killed(place):
    place.start(pools())
    with new_group("runner") as group:  # cases that run beside this one have their own
        runner = begin(place, worker(place, leftovers='"keep"'), group=group)
        process, rest = ask(place), ask(place, "leave")
        held = call(place, "held")
        await_slots(place, 1, "leased")
        tree = group_of(process).parent
        expect(tree.name.startswith(f"dibs-runner-{runner.pid}-"), tree)
        kill_both(runner)
        expect(held.wait(60) != 0, "it was served")
        expect("worker" in held.stderr.read(), "not said")
        expect(lives(rest), "it is dead")
        runner = begin(place, group=group)
        expect("an earlier runner has left " in line_with(runner, "earlier"), "not said")
        line_with(runner, "provisioner of")
        expect(not lives(rest) and not tree.exists(), "it is left")
        expect(ask(place) != process, "the same process")
        runner.kill()  # now the guard ends all
        runner.wait(60)
        runner = begin(place, group=group)
        ask(place)
        leave(runner)


@case("the runner is killed while its hook runs: the hook and what it has started are ended by the successor")
def killed_in_hook(place):
    place.start(pools())
    with new_group("runner") as group:
        file = place.folder / "hook"
        runner = begin(place, worker(place, between=quoted(f"setsid sleep 1000 & echo $! > {file}.new; mv {file}.new {file}; sleep 1000"),
                                     grace='"1min"'), group=group)
        ask(place)
        while not file.exists():
            os.sched_yield()
        kill_both(runner)
        runner = begin(place, group=group)
        line_with(runner, "earlier runner")
        line_with(runner, "provisioner of")
        expect(not lives(int(file.read_text())), "it lives")
        ask(place)


@case("a runner leaves alone what a living one has beside it; a second one of a type waits, and takes over")
def two(place):
    place.start(pools())
    with new_group("runner") as group:
        runner = begin(place, worker(place), group=group)
        process = ask(place)
        second = begin(place, group=group)
        expect("has a provisioner already" in line_with(second, "not yet provisioner"), "not said")
        expect_equal(ask(place), process)
        leave(runner)
        line_with(second, 'provisioner of type "py"')
        expect(ask(place) != process, "the same process")


@case("killed for its memory, a worker is replaced")
def out_of_memory(place):
    needs_groups()
    if "memory" not in (group_of("self") / "cgroup.controllers").read_text().split():
        raise Skip("there is no memory controller in this hierarchy")
    place.start(pools())
    hog = "while read -r line; do case $line in *hog*) head -c 300M /dev/zero | tail;; esac; echo $$; done"
    runner = begin(place, worker(place, script=hog, memory_max='"32MiB"'))
    process = ask(place)
    expect(place.run("call", "py", "hog", "-t", "1min")[0] != 0, "it was served")
    line_with(runner, "at its memory_max")
    expect(ask(place) != process, "the same process")


@case("another user's, in a group of that user's own: what it has left is ended by the successor, and no group stays")
def of_another_user(place):
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    place.start(SHARED + pools())
    place.folder.chmod(0o755)
    with new_group("alice", ALICE) as group:
        runner = begin(place, worker(place, leftovers='"keep"'), user=ALICE, group=group)
        process, rest = ask(place), ask(place, "leave")
        expect_equal(group_of(process).parent.parent, group)
        kill_both(runner)
        expect(lives(rest), "it is dead")
        runner = begin(place, user=ALICE, group=group)
        line_with(runner, "an earlier runner has left")
        ask(place)
        expect(not lives(rest), "it lives")
        leave(runner)
        expect(not list(group.glob("dibs-runner-*")), "a group is left")


@case("without control groups it says so, ends what it can, and at its own end all that its workers have left")
def without_groups(place):
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    place.start(SHARED + pools())
    place.folder.chmod(0o755)
    write(place, worker(place))
    runner = begin(place, user=ALICE)
    expect("lives on if the runner is killed" in line_with(runner, "no control groups here"), "not said")
    process, rest = ask(place), ask(place, "leave")
    end(process)
    expect(ask(place) != process, "the same process")
    expect(not lives(rest), "it has outlived its worker")
    rest = ask(place, "leave")
    leave(runner)
    expect(not lives(rest), "it has outlived the runner")


@case("the guard is killed: it is said, and the next one ends what a runner that is killed leaves")
def guard_dies(place):
    place.start(pools())
    with new_group("runner") as group:
        runner = begin(place, worker(place, leftovers='"keep"'), group=group)
        process, rest = ask(place), ask(place, "leave")
        os.kill(guard_of(runner), signal.SIGKILL)
        expect("lives on if this program is killed" in line_with(runner, "another one is started"), "not said")
        expect_equal(ask(place), process)
        guard = guard_of(runner)
        runner.kill()
        runner.wait(60)
        while any(lives(one) for one in (guard, process, rest)):
            os.sched_yield()


@case("without control groups: the guard is killed, twice at once, and orphans are reaped as before; a worker's end harms no other one")
def without_guard(place):
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    place.start(SHARED + pools())
    place.folder.chmod(0o755)
    write(place, worker(place, "py", script=SERVE))
    runner = begin(place, user=ALICE)
    line_with(runner, "no control groups here")
    held = [call(place, "held") for _ in range(2)]
    await_slots(place, 2, "leased")
    go(place)
    processes = {answer(one) for one in held}
    for then in ("another one is started", "none is started any more"):
        guard = guard_of(runner)
        os.kill(guard, signal.SIGKILL)
        line_with(runner, then)
    rest = ask(place, "leave")
    for process in processes:
        end(process)
    expect(not pathlib.Path(f"/proc/{guard}").exists(), "it is not reaped")
    expect(ask(place) not in processes, "the same process")
    while lives(rest):
        os.sched_yield()
    leave(runner)


if __name__ == "__main__":
    main(sys.argv)

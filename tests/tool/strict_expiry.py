#!/usr/bin/env python3
# tests/tool/strict_expiry.py -- a command in a pool of strict expiry: the broker kills it where its
# lease is not kept alive, and dibs exec says so.
#
#   strict_expiry.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import shutil
import signal
import subprocess
import sys

from groups import LEAVES, group_of, lives, needs_groups, told_by
from holding import steady
from tap import Skip, case, expect, expect_equal, main, stop

POOL = '[[pool]]\nname = "one"\nkind = "counted"\nslots = 1\nexpiry = "strict"\n'


@case("a command that is stopped is killed: 125, and why")
def expired(place):
    place.start(POOL)
    expect_equal(place.run("exec", "one", "--keepalive", "50ms", "--", "sh", "-c", "kill -STOP $$"),
                 (125, "", 'dibs exec: the lease of pool "one" is lost (it was not kept alive for '
                           "50ms): the command was killed\n"))
    expect_equal(place.run("exec", "one", "--timeout", "1min", "--", "true"), (0, "", ""))


@case("a command that somebody else kills ends as it is killed")
def killed(place):
    place.start(POOL)
    for words in ([], ["--keepalive", "1h"]):
        expect_equal(place.run("exec", "one", *words, "--", "sh", "-c", "kill -KILL $$"),
                     (-signal.SIGKILL, "", ""))


@case("in a pool of strict expiry what is left is killed by the broker")
def left_killed(place):
    needs_groups()
    place.start(POOL)
    command = place.begin("exec", "one", "-k", "1h", "--", "sh", "-c", LEAVES + "exec sleep 1000")
    left, = told_by(command, "left")
    command.kill()  # and with it, as it keeps the lease, the command
    expect_equal(place.run("exec", "one", "-t", "1min", "--", "true"), (0, "", ""))
    expect(not lives(left), "what it had started lives")


@case("in a pool of strict expiry the wrapper says how many processes are killed with the lease, and names one")
def strict_told(place):
    needs_groups()
    place.start(POOL)
    for left, said in (("sleep 1000 &", "1 process running, process P (sleep) of user "),
                       (LEAVES + "sleep 1000 & (sleep 1000 &);", "3 processes running, process P (")):
        command = place.begin("exec", "one", "--", "sh", "-c", left + " exit 7")
        expect_equal(command.wait(60), 7)
        told = steady(command.stderr.read())
        expect(told.startswith("dibs exec: the command has ended and left " + said), told)
        expect(told.endswith(': killed with its lease, as pool "one" has strict expiry\n'), told)
        expect_equal(place.run("exec", "one", "-t", "1min", "--", "true"), (0, "", ""))
    expect('"reason":"killed: strict expiry"' in place.run("inspect", "l1", "-o", "jsonl")[1], "why it ended")
    # What it has killed itself, or waited for, was not left.
    expect_equal(place.run("exec", "one", "--", "sh", "-c", "sleep 1000 & kill -9 $!; wait; sleep 0.01 & wait"),
                 (0, "", ""))


@case("however many processes are left, in a pool of strict expiry all of them are killed, wherever they are")
def many_left(place):
    needs_groups()
    place.start(POOL)
    command = place.begin("exec", "one", "-k", "1h", "--", "sh", "-c",
                          "i=0; while [ $i -lt 300 ]; do sleep 1000 & i=$((i + 1)); done; " + LEAVES + "exec sleep 1000")
    left, = told_by(command, "left")
    group = group_of(left)
    below = [group / f"below{i}" for i in range(900)]  # all of them are empty, but the last one
    for one in below:
        one.mkdir()
    (below[-1] / "cgroup.procs").write_text(str(left))
    command.kill()
    expect_equal(place.run("exec", "one", "-t", "1min", "--", "true"), (0, "", ""))
    expect(not lives(left), "what it had started lives")
    command.wait(60)
    expect_equal(place.run("exec", "one", "--", "true"), (0, "", ""))
    expect(not group.exists(), "its group is still there")


@case("a set-user-ID program is not killed, and who waits, looks or releases is told")
def set_user_id(place):
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    if os.statvfs(place.folder).f_flag & os.ST_NOSUID:
        raise Skip("set-user-ID programs do not work here")
    place.folder.chmod(0o755)
    program = pathlib.Path(shutil.copy("/bin/sleep", place.folder / "sleeps"))
    program.chmod(0o4755)
    place.start(POOL)
    os.chmod(place.socket, 0o666)
    holder = place.begin("exec", "one", "--keepalive", "100ms", "--", program, "1000", user=61001,
                         group=61001, extra_groups=[])
    while "one" not in place.run("ls", "leases")[1]:
        expect(holder.poll() is None, "the holder has ended")
    command = None
    while command is None:  # until it is the program's
        children = pathlib.Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text().split()
        command = next((pid for pid in children
                        if pathlib.Path(f"/proc/{pid}/comm").read_text() == "sleeps\n"), None)
    stop(holder)
    waiting = place.begin("exec", "one", "--", "true")
    while "unkillable" not in place.run("ls", "leases")[1]:
        pass
    while "c2" not in place.run("ls", "claims")[1]:
        pass
    expect("could not be killed" in place.run("explain", "c2")[1], place.run("explain", "c2"))
    code, _, err = place.run("release", "l1")
    expect_equal(code, 6)
    expect(f"process {command} of user 61001 could not be killed" in err, err)
    os.kill(int(command), signal.SIGKILL)
    expect_equal(waiting.wait(60), 0)


@case("without CAP_KILL a multi-user broker warns of pools of strict expiry")
def no_capability(place):
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        raise Skip("only root can give a capability up")
    file = place.folder / "dibsd.toml"
    file.write_text(POOL)
    for words, warned in ((["setpriv", "--bounding-set=-kill", "--inh-caps=-all"], True), ([], False)):
        ended = subprocess.run([*words, place.dibsd, "--multi-user", "--check-config", file],
                               capture_output=True, text=True, timeout=60, check=False)
        expect_equal((ended.returncode, "CAP_KILL" in ended.stdout + ended.stderr), (0, warned))


if __name__ == "__main__":
    main(sys.argv)

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

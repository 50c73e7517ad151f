# tests/tool/groups.py -- control groups and processes of their own, for cases about trees.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess

from tap import Skip, expect

ALICE = 61001


def group_of(process):
    """The folder of its control group."""
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        if " - cgroup2 " in line:
            point = line.split()[4]
            path = next(one[3:] for one in pathlib.Path(f"/proc/{process}/cgroup").read_text().splitlines()
                        if one.startswith("0::"))
            return pathlib.Path(point + path.rstrip("/"))
    raise Skip("cgroup2 is not mounted here")


@contextlib.contextmanager
def new_group(name, uid=None):
    """A group beside the test's own processes, which `uid` may divide further."""
    group = group_of("self") / f"dibs-test-{os.getpid()}-{name}"
    try:
        group.mkdir()
    except OSError as error:
        raise Skip(f"no control group can be made: {error}") from error
    try:
        if uid is not None:
            for file in ("", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"):
                os.chown(group / file, uid, uid)
        yield group
    finally:
        with contextlib.suppress(OSError):
            (group / "cgroup.kill").write_text("1")
        while "populated 1" in (group / "cgroup.events").read_text():
            pass
        for leaf in sorted(group.rglob("*/"), reverse=True):
            leaf.rmdir()
        group.rmdir()


def needs_groups():
    with new_group("probe"):
        pass


def lives(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


def end(pid, number=signal.SIGKILL):
    os.kill(pid, number)
    while lives(pid):
        pass


def told_by(child, *names):
    """Numbers of processes, which it and what it starts say in any order: "left 12"."""
    told = {}
    while set(told) != set(names):
        line = child.stdout.readline().split()
        expect(len(line) == 2, (line, child.stderr.read() if not line else ""))
        told[line[0]] = int(line[1])
    return [told[name] for name in names]


def delegated(place, group, *words):
    """Starts the tool as another user in a group of that user's own."""
    if shutil.which("setpriv") is None:
        raise Skip("there is no setpriv")
    tool = place.tool({"user": ALICE})
    run = f'echo 0 > {group}/cgroup.procs && exec setpriv --reuid {ALICE} --regid {ALICE} --clear-groups "$@"'
    child = subprocess.Popen(["sh", "-c", run, "sh", tool, *words], text=True, env=place.environment(),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    place.children.append(child)
    return child


def open_to_all(place):
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    place.folder.chmod(0o755)
    os.chmod(place.socket, 0o666)


# Leaves a process that no signal to a group or session of the command reaches.
LEAVES = "(setsid sh -c 'echo left $$ >&3; exec sleep 1000' &) 3>&1 >/dev/null 2>&1; "

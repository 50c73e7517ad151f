#!/usr/bin/env python3
# tests/packaging/booted.py -- the Debian packages under a systemd that has booted, in a container.
#
#   booted.py TREE PACKAGES        speaks TAP; by hand and as root, with systemd-nspawn
#
# TREE is a Debian that boots and stays as it is, PACKAGES a folder as scripts/package leaves one:
#   debootstrap --variant=minbase --include=systemd-sysv,dbus-user-session,libpam-systemd,\
#       procps,python3 bookworm TREE
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from tap_lines import Tap  # noqa: E402

PATIENCE = 120  # seconds: whoever waits for longer says for what, and fails
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
GOOD = """socket_mode = "0660"
hardening = "strict"  # a call that is not allowed kills
[[pool]]
name = "gpu"
kind = "counted"
slots = {slots}
"""
HOLDER = """
import dibs, sys
with dibs.connect() as client:
    lease = client.claim("gpu", timeout=60)
    for line in sys.stdin:
        try:
            if line == "fence\\n": print(lease.fence, flush=True)
            if line == "release\\n": print(lease.release(wait=60), flush=True)
            if line == "claim\\n": print(client.claim("gpu", timeout=60).fence, flush=True)
        except dibs.errors.Error as error:
            print(type(error).__name__, flush=True)
"""
FILES = ("find / -xdev ( -path /proc -o -path /sys -o -path /tmp -o -path /var/log -o -path /var/cache"
         " -o -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/lib/systemd -o -path /srv )"
         " -prune -o -print")


class Machine:
    """A container with a systemd of its own over a tree that it does not change."""

    def __init__(self, tree, packages):
        own = [] if os.path.isdir("/run/systemd/system") else ["--register=no", "--keep-unit"]
        self.process = subprocess.Popen(
            ["systemd-nspawn", "--quiet", "--boot", "-D", tree, "--volatile=overlay", *own,
             # Which nspawn would hide.
             "--system-call-filter=landlock_create_ruleset landlock_add_rule landlock_restrict_self",
             f"--bind-ro={packages}:/packages", "--console=pipe", "--machine=dibs-booted"],
            env={**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.leader = None

    def await_start(self):
        await_(self.find_leader, "the container's first process")
        await_(lambda: self.run("systemctl", "is-system-running").strip() in (
            "running", "degraded"), "the container's start")

    def find_leader(self):
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        for child in children.read_text().split():
            try:
                name = pathlib.Path(f"/proc/{child}/comm").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue  # one that nspawn started and that has ended
            if name == "systemd\n":  # and no nspawn
                self.leader = child
        return self.leader

    def command(self, *words, user=None):
        inside = ["nsenter", "-t", self.leader, "-a", "env", "-i", f"PATH={PATH}", "LANG=C.UTF-8"]
        if user:
            uid = subprocess.run([*inside, "id", "-u", user], stdout=subprocess.PIPE, text=True,
                                 check=True).stdout.strip()
            inside += ["runuser", "-u", user, "--", "env", f"HOME=/srv/{user}", "--chdir=/"]
            if os.path.exists(f"/proc/{self.leader}/root/run/user/{uid}"):
                inside += [f"XDG_RUNTIME_DIR=/run/user/{uid}"]
        return [*inside, *words]

    def ended(self, *words, user=None):
        """A command's exit code and everything that it says."""
        ran = subprocess.run(self.command(*words, user=user), stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             timeout=PATIENCE)
        return ran.returncode, ran.stdout

    def run(self, *words, user=None):
        return self.ended(*words, user=user)[1]

    def write(self, path, text):
        pathlib.Path(f"/proc/{self.leader}/root{path}").write_text(text)

    def end(self):
        if self.process.poll() is None:
            if self.leader:
                self.process.terminate()  # as a power button
            else:
                self.process.kill()
            try:
                self.process.wait(timeout=PATIENCE)
            finally:
                self.process.kill()


def await_(there, what):
    deadline = time.monotonic() + PATIENCE
    while not there():
        if time.monotonic() > deadline:
            raise AssertionError(f"not there within {PATIENCE} s: {what}")


class Service:
    """dibsd.service of the host, or of a user's own manager."""

    def __init__(self, machine, user=None):
        self.machine, self.user = machine, user
        self.words = ["systemctl", *(["--user"] if user else [])]

    def call(self, *words):
        return self.machine.ended(*self.words, *words, user=self.user)

    def show(self, name):
        return self.call("show", "dibsd", "--value", "-p", name)[1].strip()

    def processes(self):
        keeper = self.show("MainPID")
        group = f"/proc/{self.machine.leader}/root/sys/fs/cgroup{self.show('ControlGroup')}"
        inside = self.machine.run("cat", group[len(f"/proc/{self.machine.leader}/root"):] +
                                  "/cgroup.procs").split()
        return keeper, [pid for pid in inside if pid != keeper]

    def kill_both(self):
        before = self.show("InvocationID"), self.show("NRestarts")
        keeper, brokers = self.processes()
        self.machine.run("kill", "-STOP", keeper)
        self.machine.run("kill", "-KILL", *brokers, keeper)
        self.call("reset-failed", "dibsd")  # five starts within ten seconds are none too many here
        await_(lambda: (self.show("InvocationID"), self.show("NRestarts")) != before and
               self.show("SubState") in ("running", "failed"), "the service's next start")

    def is_up(self):
        return self.show("SubState") == "running"


class Holder:
    """A process of some user with a lease."""

    def __init__(self, machine, user):
        self.process = subprocess.Popen(
            machine.command("python3", "-c", HOLDER, user=user), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        self.fence = self.ask("fence")

    def ask(self, what):
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=PATIENCE)
        self.process.stdout.close()


def fences(machine, user=None):
    rows = machine.run("dibs", "ls", "leases", "-o", "jsonl", user=user)
    return re.findall(r'"fence":(\d+)', rows)


def slots(machine):
    return re.findall(r'"slots":(\d+)', machine.run("dibs", "ls", "pools", "-o", "jsonl"))


def check_users(tap, machine, service):
    tap.equal("starts", (service.call("start", "dibsd")[0], service.show("SubState"),
                         service.show("StatusErrno")), (0, "running", "0"))
    claim = ("dibs", "exec", "gpu", "--timeout", "60s", "--", "sh", "-c", "echo $DIBS_FENCE")
    tap.equal("a member of the group claims", machine.ended(*claim, user="alice"), (0, "1\n"))
    tap.equal("another user is told which group", machine.ended(*claim, user="bob"), (
        5, "dibs exec: you may not connect to /run/dibs/dibs.sock: it is for user dibs and group "
           "dibs (mode 0660); ask to be added to the group dibs\n"))
    tap.equal("root claims", machine.ended(*claim), (0, "2\n"))


def check_deaths(tap, machine, service, user, name=""):
    holder = Holder(machine, user)
    keeper, brokers = service.processes()
    machine.run("kill", "-KILL", *brokers)
    await_(lambda: fences(machine, service.user) == [holder.fence], "the next broker")
    tap.equal(f"{name}a broker is killed: its keeper stays, and the lease",
              (service.show("MainPID"), fences(machine, service.user)), (keeper, [holder.fence]))
    machine.run("kill", "-KILL", keeper)
    await_(lambda: service.show("MainPID") not in (keeper, "0") and service.is_up(),
           "the next keeper")
    tap.equal(f"{name}a keeper is killed: the lease stays", fences(machine, service.user),
              [holder.fence])
    for death in range(3):
        service.kill_both()
        tap.equal(f"{name}both are killed: the lease stays, death {death}",
                  fences(machine, service.user), [holder.fence])
    tap.equal(f"{name}its holder gives it back", holder.ask("release"), "True")
    tap.equal(f"{name}and gets the next fence", int(holder.ask("claim")), int(holder.fence) + 1)
    holder.end()


def check_upgrade(tap, machine, service):
    holder = Holder(machine, "alice")
    before = service.processes()
    machine.run("sh", "-c", "dpkg --install /packages/dibs_*.deb")
    await_(lambda: service.processes()[1] not in ([], before[1]), "the new package's broker")
    keeper, brokers = service.processes()
    programs = [machine.run("readlink", f"/proc/{pid}/exe").strip() for pid in (keeper, *brokers)]
    tap.equal("an upgrade: the broker is the new program, the keeper the old one",
              (keeper, programs), (before[0], ["/usr/bin/dibsd (deleted)", "/usr/bin/dibsd"]))
    tap.equal("an upgrade: the lease goes on", fences(machine), [holder.fence])
    tap.equal("an upgrade: its holder gives it back", holder.ask("release"), "True")
    holder.end()


def check_configuration(tap, machine, service):
    file = "/etc/dibs/dibs.toml"
    machine.write(file, GOOD.format(slots=3))
    tap.equal("reloads", service.call("reload", "dibsd")[0], 0)
    await_(lambda: slots(machine) == ["3"], "the third slot")
    machine.write(file, GOOD.format(slots=4) + 'colour = "red"\n')
    holder = Holder(machine, "alice")
    tap.equal("a broken file: fails the reload", service.call("reload", "dibsd")[0] != 0, True)
    tap.equal("a broken file: the service goes on", (service.is_up(), slots(machine)),
              (True, ["3"]))
    service.kill_both()
    tap.equal("a broken file: so it does when both are killed",
              (service.is_up(), fences(machine), slots(machine)), (True, [holder.fence], ["3"]))
    tap.equal("a broken file: so it does over a restart, which keeps the lease",
              (service.call("restart", "dibsd")[0], fences(machine), slots(machine)),
              (0, [holder.fence], ["3"]))
    stopping = subprocess.Popen(machine.command("systemctl", "stop", "dibsd"),
                                stderr=subprocess.DEVNULL)
    await_(lambda: service.show("SubState") == "stop-sigterm", "the drain")
    tap.equal("a stop waits for the lease", (stopping.poll(), holder.ask("release")),
              (None, "True"))
    tap.equal("and ends in order", stopping.wait(timeout=PATIENCE), 0)
    tap.equal("a broken file: fails the start", service.call("start", "dibsd")[0] != 0, True)
    tap.equal("a broken file: is not tried again", (service.show("SubState"),
                                                    service.show("NRestarts")), ("failed", "0"))
    tap.equal("the holder is told", holder.ask("claim"), "BrokerLost")
    holder.end()
    machine.write(file, GOOD.format(slots=2))
    tap.equal("mended, it starts", service.call("start", "dibsd")[0], 0)
    tap.equal("and begins anew", (slots(machine), fences(machine)), (["2"], []))


def check_socket(tap, machine, service):
    service.call("stop", "dibsd")
    service.call("start", "dibsd.socket")
    before = service.show("SubState")
    holder = Holder(machine, "alice")
    tap.equal("the first claim starts it by its socket", (before, service.show("SubState")),
              ("dead", "running"))
    service.kill_both()
    tap.equal("on the manager's socket: the lease survives both", fences(machine), [holder.fence])
    tap.equal("on the manager's socket: the lease is given back", holder.ask("release"), "True")
    mark = machine.run("journalctl", "-n0", "--show-cursor").split("cursor: ")[1].strip()
    tap.equal("on the manager's socket: restarts", service.call("restart", "dibsd")[0], 0)
    said = machine.run("journalctl", "-u", "dibsd", "-o", "cat", "--after-cursor", mark)
    tap.case("an orderly restart warns of nothing",
             [line for line in said.splitlines() if " warning: " in line or " error: " in line])
    holder.end()


def check_own(tap, machine):
    machine.run("loginctl", "enable-linger", "bob")
    service = Service(machine, "bob")
    await_(lambda: service.call("is-system-running")[1].strip() in ("running", "degraded"),
           "a user's own manager")
    machine.run("mkdir", "-p", "/srv/bob/.config/dibs", user="bob")
    machine.write("/srv/bob/.config/dibs/dibs.toml", GOOD.format(slots=2))
    tap.equal("a user's own: starts", (service.call("enable", "--now", "dibsd")[0],
                                       service.show("SubState")), (0, "running"))
    check_deaths(tap, machine, service, "bob", "a user's own: ")
    tap.equal("a user's own: reloads", service.call("reload", "dibsd")[0], 0)
    tap.equal("a user's own: stops", (service.call("disable", "--now", "dibsd")[0],
                                      service.show("SubState"), service.show("Result")),
              (0, "dead", "success"))


def check_journal(tap, machine):
    said = machine.run("journalctl", "-b", "-o", "cat")
    tap.case("no system call was one that is not allowed",
             [line for line in said.splitlines() if "SIGSYS" in line or "signal 31" in line])
    hardened = re.findall(r"hardened: (.*)", said)
    tap.case("every broker was hardened", [] if hardened and said.count("serving on") == len(
        hardened) and all("system calls" in line for line in hardened) else hardened)
    for line in sorted(set(hardened)):
        tap.note(f"hardened: {line}")


def main(tree, packages):
    tap = Tap()
    machine = Machine(tree, packages)
    try:
        machine.await_start()
        tap.note(machine.run("systemctl", "--version").splitlines()[0])
        machine.run("sh", "-c", "apt-get update; for user in alice bob; do adduser --disabled-password"
                    " --gecos '' --home /srv/$user $user; done")
        names = [shlex.quote(f"/packages/{path.name}") for path in pathlib.Path(packages).glob("*.deb")]
        # What they depend on stays when they go.
        machine.run("sh", "-c", "apt-get install -y --no-install-recommends $(dpkg-deb -f $(ls "
                    "/packages/dibs_*.deb) Depends | tr ',|' '\\n\\n' | sed 's/(.*//' | grep -v dibs)")
        before = machine.run(*FILES.split()).splitlines()
        code, said = machine.ended("sh", "-c", "apt-get install -y --no-install-recommends " +
                                   " ".join(names))
        tap.case("the packages install", [] if code == 0 else said.splitlines()[-10:])
        machine.run("adduser", "alice", "dibs")
        machine.write("/etc/dibs/dibs.toml", GOOD.format(slots=2))
        service = Service(machine)
        check_users(tap, machine, service)
        check_deaths(tap, machine, service, "alice")
        check_upgrade(tap, machine, service)
        check_configuration(tap, machine, service)
        check_socket(tap, machine, service)
        check_own(tap, machine)
        check_journal(tap, machine)
        service.call("enable", "dibsd", "dibsd.socket")
        code, said = machine.ended("sh", "-c", "apt-get purge -y dibs libdibs0 libdibs-dev python3-dibs")
        tap.case("they are purged while they serve", [] if code == 0 else said.splitlines()[-10:])
        tap.equal("nothing of them runs", machine.run("pgrep", "-a", "dibs"), "")
        after = machine.run(*FILES.split()).splitlines()
        tap.case("nothing of them is left", [
            path for path in sorted(set(after) - set(before)) if "__pycache__" not in path and
            not re.match(r"/(run|dev)/|/etc/(passwd|group|g?shadow|sub[ug]id|\.pwd)", path)])
        tap.equal("nor their socket's folder", machine.run("ls", "-d", "/run/dibs").strip(),
                  "ls: cannot access '/run/dibs': No such file or directory")
    finally:
        machine.end()
    sys.exit(tap.end())


if __name__ == "__main__":
    main(*sys.argv[1:])

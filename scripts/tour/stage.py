# scripts/tour/stage.py -- a broker of one's own with its keeper, eight warm workers, three tenants,
# in a temporary folder that goes away. They have sessions of their own: Ctrl-C and a terminal that is
# closed are heard by the tour alone, which ends them all.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("DIBS_BUILD", ROOT / "build")).resolve()
DIBSD, DIBS = BUILD / "broker/dibsd", BUILD / "broker/ctl/dibs"
HERE = pathlib.Path(__file__).resolve().parent

SLOTS = 8
# Claims at once, how long each is held, and how long the tenant works and rests in turn, in seconds.
TENANTS = {"batch": (10, 0.25, 4), "web": (3, 0.04, 0), "alice": (2, 0.10, 0)}

# Slots of the pool `fair` that each account may hold all the time: all of them, together. They are
# made when they are wanted: what an account has saved before, it would spend first.
SHARES = {"gold": 3, "silver": 2, "bronze": 1}

POOLS = f"""
[[pool]]
name = "work"          # eight warm processes, three tenants
kind = "worker"
[[pool]]
name = "spare"         # two warm processes, one of which is killed
kind = "worker"
answer_max = 64
[[pool]]
name = "solo"          # one slot, to fight for
kind = "counted"
slots = 1
[[pool]]
name = "narrow"        # one slot, and room for four that wait
kind = "counted"
slots = 1
backlog_max = 4
[[account]]
name = "urgent"        # pays for what is better than the rest
balance = 1000
[[pool]]
name = "shared"        # one slot, which an urgent claim may take
kind = "counted"
slots = 1
order = "account"
[[pool]]
name = "fair"          # six slots, three accounts that want them all
kind = "counted"
slots = {sum(SHARES.values())}
order = "account"
preemption_disabled = true
[[pool]]
name = "gpu"           # one device, shared by memory
kind = "counted"
slots = 1
resources = {{ memory = "80GiB" }}
[[pool]]
name = "near"          # two slots, beside six of another pool: their set sends claims to either
kind = "counted"
slots = 2
quantum = "0s"         # what is given back is idle at once
[[pool]]
name = "wide"
kind = "counted"
slots = 6
quantum = "0s"
[[set]]
name = "either"
pools = ["near", "wide"]
rank = "load"
[[pool]]
name = "ranks"         # room for one gang of four, and half of another
kind = "counted"
slots = 6
quantum = "0s"
[[pool]]
name = "burst"         # its workers come and go with the claims
kind = "worker"
workers_max = 4
idle_timeout = "500ms"
[[pool]]
name = "clock"         # claims that are timed
kind = "counted"
slots = 4
"""

# Before a command: it is told to end when this process has ended, even by SIGKILL.
TIED = ["setpriv", "--pdeathsig", "TERM"]
ENDS_WITHIN = 10  # seconds; who has not ended by then is killed


def eventually(condition, within=20.0):
    """Whether the condition comes true."""
    until = time.monotonic() + within
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.001)
    return True


class Tenant:
    """A process that claims, holds and gives back, and says so line by line."""

    def __init__(self, name):
        self.name = name
        self.waits_ns = []
        self.outcomes = {}
        self.said_end = False
        self.process = subprocess.Popen(
            [sys.executable, HERE / "tenant.py", *map(str, TENANTS[name])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            said = json.loads(line)
            if "outcomes" in said:
                self.outcomes, self.said_end = said["outcomes"], True
            else:
                self.waits_ns.append(said["wait_ns"])

    def end(self):
        """Lets what it has asked for come to its end."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.wait()
        self.reader.join()


class Stage:
    def __enter__(self):
        self.keeper, self.crews, self.tenants = None, [], []
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="dibs-tour-"))
        self.log = open(self.folder / "log", "w", encoding="utf-8")
        try:
            self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _begin(self):
        self.socket = self.folder / "dibs.sock"
        os.environ["DIBS_SOCKET"] = str(self.socket)
        os.environ["DIBS_STATE_DIR"] = str(self.folder)
        config = self.folder / "dibs.toml"
        config.write_text(POOLS)
        self.keeper = subprocess.Popen([*TIED, DIBSD, "--config", config], stdout=subprocess.PIPE,
                                       stderr=self.log, text=True, start_new_session=True)
        if not self.keeper.stdout.readline().startswith("dibsd: ready"):
            raise RuntimeError("the broker did not start:\n" + self.said())
        self._crew("work", SLOTS)
        self._crew("spare", 2)
        self.struck = None  # when an incident's blow fell

    def _crew(self, pool, count):
        crew = subprocess.Popen(
            [*TIED, DIBS, "worker", f"{pool}:{count}", "--name", pool, "--ready-line", "ready", "--lines",
             "none" if pool == "work" else "hold", "--backoff", "1ms", "--",
             sys.executable, HERE / "warm.py"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.crews.append(crew)
        crew.lines = []
        crew.lines.append(crew.stderr.readline())
        if "ready" not in crew.lines[0]:
            raise RuntimeError("the workers did not start: " + crew.lines[0])
        crew.reader = threading.Thread(target=lambda: crew.lines.extend(crew.stderr))
        crew.reader.start()

    def provide(self, pool, count):
        """A provisioner of an elastic pool: as many processes as its claims need."""
        crew = subprocess.Popen(
            [*TIED, DIBS, "worker", f"{pool}:{count}", "--type", pool, "--ready-line", "ready", "--lines", "hold",
             "--", sys.executable, HERE / "warm.py"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.crews.append(crew)
        crew.lines = [crew.stderr.readline()]
        crew.reader = threading.Thread(target=lambda: crew.lines.extend(crew.stderr))
        crew.reader.start()

    def open(self):
        for name in TENANTS:
            self.tenants.append(Tenant(name))
        if not eventually(lambda: all(tenant.waits_ns for tenant in self.tenants), 60):
            raise RuntimeError("a tenant got no slot within a minute")

    def said(self):
        return (self.folder / "log").read_text()

    def brokers(self):
        """The keeper's children: the broker and, behind it, the one that waits to follow."""
        children = pathlib.Path(f"/proc/{self.keeper.pid}/task/{self.keeper.pid}/children")
        with contextlib.suppress(OSError):
            return [int(pid) for pid in children.read_text().split()]
        return []

    def broker(self):
        """The broker's process. None while there is none."""
        return next(iter(self.brokers()), None)

    def close(self):
        """Everybody goes home in order; what was wrong with that."""
        wrong = []
        for tenant in self.tenants:
            tenant.end()
            if tenant.process.returncode != 0 or not tenant.said_end:
                wrong.append(f"tenant {tenant.name} ended with {tenant.process.returncode}")
        for crew in self.crews:
            crew.send_signal(signal.SIGTERM)
            if crew.wait() != 0:
                wrong.append(f"workers ended with {crew.returncode}")
            crew.reader.join()
        self.keeper.send_signal(signal.SIGTERM)
        if self.keeper.wait() != 0:
            wrong.append(f"the broker ended with {self.keeper.returncode}")
        return wrong

    def __exit__(self, *_):
        """The keeper first, or it would replace its broker; twice, so that no lease is waited for."""
        keepers = [self.keeper] if self.keeper else []
        for keeper in keepers:
            keeper.send_signal(signal.SIGTERM)
            keeper.send_signal(signal.SIGINT)
        for tenant in self.tenants:
            tenant.process.kill()
        for crew in self.crews:
            crew.terminate()  # ends its workers
        for process in keepers + self.crews + [tenant.process for tenant in self.tenants]:
            try:
                process.wait(ENDS_WITHIN)
            except subprocess.TimeoutExpired:
                brokers = self.brokers()
                process.kill()
                process.wait()
                for broker in brokers:
                    with contextlib.suppress(OSError):
                        os.kill(broker, signal.SIGKILL)
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

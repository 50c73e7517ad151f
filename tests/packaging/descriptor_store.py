#!/usr/bin/env python3
# tests/packaging/descriptor_store.py -- keeper and broker die together under a service manager that
# is played here: it stores what it is told to, and passes it to the dibsd that it starts next.
#
#   descriptor_store.py DIBSD        speaks TAP
# SPDX-License-Identifier: Apache-2.0
import ctypes
import os
import pathlib
import platform
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "clientlib/bindings/python"))
import dibs  # noqa: E402
from tap_lines import Tap  # noqa: E402
from unit_file import UnitFile  # noqa: E402

CONFIG = 'log_level = "error"\n[[pool]]\nname = "one"\nkind = "counted"\nslots = 1\n'
BROKEN = CONFIG + 'colour = "red"\n'
MISTAKE = '/dibsd.toml:6:1: unknown key "colour" in a pool'
PATIENCE = 120  # seconds: whoever waits for longer says for what, and fails
SESSION = 6  # descriptors of one that has been welcomed
KCMP = {"x86_64": 312, "aarch64": 272}[platform.machine()]
LAUNCHER = """
import fcntl, os, sys
count, names, *command = sys.argv[1:]
given = [int(number) for number in sys.stdin.readline().split()]
high = [fcntl.fcntl(number, fcntl.F_DUPFD, 500) for number in given]
for place, number in enumerate(high):
    os.dup2(number, 3 + place)
for number in high:
    os.close(number)
os.closerange(3 + len(high), 500)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=count, LISTEN_FDNAMES=names)
os.execv(command[0], command)
"""


def same(one, other):
    """Whether two numbers of ours are one open file: what systemd stores once."""
    pid = os.getpid()
    return ctypes.CDLL(None).syscall(KCMP, pid, pid, 0, one, other) == 0


def ends(pid):
    """Kills a process and waits for its death; whosever child it is."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        if not select.select([handle], [], [], PATIENCE)[0]:
            raise AssertionError(f"process {pid} does not die of SIGKILL within {PATIENCE} s")
    finally:
        os.close(handle)


class Manager:
    """What systemd does for Type=notify and FileDescriptorStoreMax=."""

    made = []

    def __init__(self, folder, dibsd, *, listens=False):
        self.folder = folder
        self.dibsd = dibsd
        self.path = f"{folder}/dibs.sock"
        self.config = pathlib.Path(folder) / "dibsd.toml"
        self.config.write_text(CONFIG)
        self.notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notices.bind(f"{folder}/notify")
        self.notices.setblocking(False)
        self.unit = UnitFile("dibsd.service", dibsd, self.config)
        self.log = open(f"{folder}/log", "a+", encoding="utf-8")
        self.store = []  # of name and descriptor
        self.words = []  # everything else that was said
        self.heard = 0
        self.lent = None
        self.process = None
        self.made.append(self)
        if listens:
            self.lent = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self.lent.bind(self.path)
            self.lent.listen(64)

    def hear(self):
        """One notice; none: BlockingIOError."""
        text, descriptors, _, _ = socket.recv_fds(self.notices, 4096, 16)
        self.heard += 1
        lines = dict(line.split("=", 1) for line in text.decode().splitlines())
        name = lines.pop("FDNAME", "stored")
        if lines.pop("FDSTOREREMOVE", None) == "1":
            gone = [number for stored, number in self.store if stored == name]
            self.store = [entry for entry in self.store if entry[0] != name]
            for number in gone:
                os.close(number)
        elif lines.pop("FDSTORE", None) == "1":
            for number in descriptors:
                if any(same(number, stored) for _, stored in self.store):
                    os.close(number)
                else:
                    self.store.append((name, number))
        else:
            self.words.append(lines)

    def hear_until(self, heard, what):
        deadline = time.monotonic() + PATIENCE
        while not heard():
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.notices], [], [], left)[0]:
                raise AssertionError(f"not heard within {PATIENCE} s: {what}; stored are "
                                     f"{self.names()}, said was {self.words}, the log:\n"
                                     f"{self.said()}")
            self.hear()

    def said(self):
        """What dibsd has written to its log."""
        self.log.seek(0)
        return self.log.read()

    def await_word(self, name):
        self.hear_until(lambda: any(name in lines for lines in self.words), name)

    def names(self):
        return sorted({name for name, _ in self.store})

    def await_sessions(self, count):
        self.hear_until(lambda: SESSION * count <= sum(
            name.startswith("s.") for name, _ in self.store), f"{count} sessions")

    def start(self):
        """Like `systemctl start`: until it says that it is ready."""
        for command in self.unit.commands("ExecStartPre"):
            subprocess.run(command, check=True, timeout=PATIENCE)
        self.launch()
        self.await_word("READY")

    def launch(self):
        self.words = []
        passed = [("dibsd.socket", self.lent.fileno())] if self.lent else []
        # The reverse of the order in which they came, as there.
        passed += reversed(self.store)
        numbers = [number for _, number in passed]
        environment = {name: value for name, value in os.environ.items() if name != "DIBS_SOCKET"}
        environment.update(NOTIFY_SOCKET=f"{self.folder}/notify", DIBS_STATE_DIR=self.folder)
        own = [] if self.lent else ["--socket", self.path]
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, str(len(passed)),
             ":".join(name for name, _ in passed), self.dibsd, "--config", self.config, *own],
            pass_fds=numbers, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=self.log, text=True)
        self.process.stdin.write(" ".join(map(str, numbers)) + "\n")
        self.process.stdin.close()

    def reload(self):
        """Like `systemctl reload`: what the first command says that fails."""
        for command in self.unit.commands("ExecReload", self.process.pid):
            ran = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
            if ran.returncode != 0:
                return ran.stderr
        return ""

    def broker(self):
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return int(children.read_text().split()[0])

    def kill_both(self):
        broker = self.broker()
        os.kill(self.process.pid, signal.SIGSTOP)  # so that nobody takes over
        ends(broker)
        self.kill_keeper()

    def kill_keeper(self):
        self.process.kill()
        self.process.wait(timeout=PATIENCE)

    def stop(self):
        """Like `systemctl stop`: its last words are heard, too."""
        self.process.terminate()
        code = self.process.wait(timeout=PATIENCE)
        try:
            while True:
                self.hear()
        except BlockingIOError:
            return code

    def abandon(self):
        """Where a test has ended too early."""
        if self.process is None or self.process.poll() is not None:
            return
        os.kill(self.process.pid, signal.SIGSTOP)
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                ends(int(child))
        self.kill_keeper()

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.stop()
        for _, number in self.store:
            os.close(number)
        self.notices.close()
        self.log.close()
        if self.lent:
            self.lent.close()


class Waiting:
    """A claim that waits in a session of its own."""

    def __init__(self, path):
        self.client = dibs.connect(path, timeout=10)
        self.lease = None
        self.error = None
        self.thread = threading.Thread(target=self.claim, daemon=True)
        self.thread.start()

    def claim(self):
        try:
            self.lease = self.client.claim("one", timeout=120)
        except dibs.errors.Error as error:
            self.error = error

    def fence(self):
        self.thread.join(timeout=PATIENCE)
        return self.lease.fence if self.lease else self.error


def leased(manager):
    """Starts the service: a client that the manager has heard of, and its lease."""
    manager.start()
    client = dibs.connect(manager.path, timeout=10)
    lease = client.claim("one", timeout=10)
    manager.await_sessions(1)
    return client, lease


def await_waiting(client, count):
    deadline = time.monotonic() + PATIENCE
    while client.snapshot("one").queued < count:
        assert time.monotonic() < deadline, f"{count} claims do not wait within {PATIENCE} s"


def lives(client):
    """Whether a session is heard: a claim of what is taken is answered busy."""
    try:
        client.claim("one", timeout=60, when_busy=dibs.WhenBusy.REJECT).release()
        return True
    except dibs.errors.Busy:
        return True
    except dibs.errors.Error:
        return False


def survives(tap, dibsd, folder, listens):
    name = "lent socket" if listens else "own socket"
    manager = Manager(folder, dibsd, listens=listens)
    manager.start()
    holder = dibs.connect(manager.path, timeout=10)
    lease = holder.claim("one", timeout=10)
    waiting = Waiting(manager.path)
    await_waiting(holder, 1)
    manager.await_sessions(2)
    segments = ["board", "state"] if listens else ["board", "listener", "state"]
    tap.equal(f"{name}: the manager stores segments, a broker and sessions",
              [name.split(".")[0] for name in manager.names()],
              sorted([*segments, "broker", "s", "s"]))
    for death in range(3):
        manager.kill_both()
        manager.start()
        tap.equal(f"{name}: serves again, death {death}", dibs.connect(
            manager.path, timeout=10).snapshot("one").leased, 1)
    fence = lease.fence
    lease.release(wait=10)
    tap.equal(f"{name}: the claim that waited is granted, with the next fence", waiting.fence(),
              fence + 1)
    waiting.lease.release(wait=10)
    tap.case(f"{name}: both sessions go on", [] if lives(holder) and lives(waiting.client) else [
        "one has ended"])
    holder.close()
    waiting.client.close()
    tap.equal(f"{name}: stops in order", manager.stop(), 0)
    tap.equal(f"{name}: leaves nothing that a next one would go on from",
              [name for name in manager.names() if not name.startswith("s.")], [])
    manager.start()
    with dibs.connect(manager.path, timeout=10) as client:
        tap.equal(f"{name}: begins anew then", client.claim("one", timeout=10).fence, 1)
    manager.close()


def lost(tap, dibsd, name, spoil, expected):
    """`spoil` changes what is stored of a broker with two sessions; what of them lives then."""
    with tempfile.TemporaryDirectory(prefix="dibs-store-") as folder:
        manager = Manager(folder, dibsd)
        manager.start()
        first = dibs.connect(manager.path, timeout=10)
        lease = first.claim("one", timeout=10)
        manager.await_sessions(1)
        second = dibs.connect(manager.path, timeout=10)
        manager.await_sessions(2)
        manager.kill_both()
        spoil(manager)
        manager.start()
        tap.equal(f"{name}: what lives", [lives(first), lives(second)], expected)
        with dibs.connect(manager.path, timeout=10) as third:
            tap.equal(f"{name}: the slot is there, or its holder", third.snapshot("one").leased,
                      1 if expected[0] else 0)
        names = [name for name, _ in manager.store]
        tap.case(f"{name}: nothing is left that was put aside",
                 [name for name in names if name in ("nonsense", "s.zz.1", "s.1")])
        for client in (first, second):
            client.close()
        manager.close()
        del lease


def add(name, make):
    def spoil(manager):
        manager.store.append((name, make(manager)))
    return spoil


def memfd(_):
    return os.memfd_create("other")


def take(manager, entries):
    for entry in entries:
        manager.store.remove(entry)
        os.close(entry[1])


def without(name):
    return lambda manager: take(manager, [one for one in manager.store if one[0] == name])


def second_session(manager):
    return sorted(name for name in manager.names() if name.startswith("s."))[1]


def incomplete(manager):
    name = second_session(manager)
    take(manager, [next(entry for entry in manager.store if entry[0] == name)])


def replaced(manager):
    name = second_session(manager)
    incomplete(manager)
    manager.store.append((name, os.memfd_create("dibs-up")))


def renamed(manager):
    name = second_session(manager)
    other = f"s.{int(name.split('.')[1], 16) + 7:x}.1"
    manager.store = [(other if stored == name else stored, number)
                     for stored, number in manager.store]


def no_broker(manager):
    take(manager, [entry for entry in manager.store if entry[0].startswith("broker.")])


def living_broker(tap, dibsd):
    """Both are stopped, and the manager takes them for dead. Another broker had that pid before."""
    with tempfile.TemporaryDirectory(prefix="dibs-store-") as folder:
        manager = Manager(folder, dibsd)
        client, lease = leased(manager)
        broker = manager.broker()
        handle = os.pidfd_open(broker)
        keeper = manager.process
        earlier = subprocess.Popen(["true"])
        manager.store.append((f"broker.{broker}", os.pidfd_open(earlier.pid)))  # is passed first
        earlier.wait(timeout=PATIENCE)
        for pid in (keeper.pid, broker):
            os.kill(pid, signal.SIGSTOP)
        manager.start()
        dead = bool(select.select([handle], [], [], 0)[0])
        os.close(handle)
        keeper.kill()
        keeper.wait(timeout=PATIENCE)
        tap.equal("a broker that lives: is dead before another one serves", dead, True)
        tap.equal("a broker that lives: its lease goes on", lease.release(wait=10), True)
        client.close()
        manager.close()


def in_mid_drain(tap, dibsd):
    """Who begins the service anew wants it to serve."""
    with tempfile.TemporaryDirectory(prefix="dibs-store-") as folder:
        manager = Manager(folder, dibsd)
        client, lease = leased(manager)
        manager.process.terminate()
        manager.hear_until(lambda: "listener" not in manager.names(), "it listens no more")
        manager.kill_both()
        manager.start()
        tap.equal("in mid-drain: the lease goes on", lease.release(wait=10), True)
        with dibs.connect(manager.path, timeout=10) as later:
            tap.equal("in mid-drain: serves again", later.claim("one", timeout=10).units, 1)
        client.close()
        manager.close()


def with_a_broken_file(tap, dibsd):
    """What is there goes on without a good file; what begins anew says what is wrong with it."""
    with tempfile.TemporaryDirectory(prefix="dibs-store-") as folder:
        manager = Manager(folder, dibsd)
        client, lease = leased(manager)
        manager.config.write_text(CONFIG.replace("slots = 1", "slots = 2"))
        tap.equal("a good file: is read again", manager.reload(), "")
        second = dibs.connect(manager.path, timeout=10)
        second.claim("one", timeout=PATIENCE).release(wait=10)  # waits until there are two slots
        manager.await_sessions(2)
        manager.config.write_text(BROKEN)
        tap.equal("a broken file: the reload says where", manager.reload().strip(),
                  folder + MISTAKE)
        for death in range(2):
            manager.kill_both()
            manager.start()
        tap.equal("a broken file: is in nobody's way who goes on from what is stored",
                  [lives(client), lives(second)], [True, True])
        tap.equal("a broken file: nor in the lease's", lease.release(wait=10), True)
        client.close()
        second.close()
        tap.equal("a broken file: stops in order", manager.stop(), 0)
        manager.launch()
        code = manager.process.wait(timeout=PATIENCE)
        tap.equal("a broken file: nothing begins anew with it", code, 2)
        tap.case("a broken file: the log says where", [] if manager.said().strip().endswith(
            folder + MISTAKE) else manager.said().splitlines())
        tap.equal("a broken file: is not tried again",
                  manager.unit.words("RestartPreventExitStatus"), [str(code)])
        manager.close()


def after_an_orderly_stop(tap, dibsd, spoil, expected):
    """A session that outlives the service that it was of is no reason to warn."""
    with tempfile.TemporaryDirectory(prefix="dibs-store-") as folder:
        manager = Manager(folder, dibsd)
        manager.config.write_text(CONFIG.replace('"error"', '"warning"'))
        manager.start()
        client = dibs.connect(manager.path, timeout=10)
        manager.await_sessions(1)
        manager.stop()
        spoil(manager)
        stored = sorted(name.split(".")[0] for name in manager.names())
        manager.start()
        manager.hear_until(lambda: not any(name in ("nonsense", "s") for name in (
            one.split(".")[0] for one in manager.names())), "what was left is taken out")
        tap.equal(f"after an orderly stop with {stored} left: is warned of",
                  "that nobody can use" in manager.said(), expected)
        client.close()
        manager.close()


def check_all(tap, dibsd):
    for listens in (False, True):
        with tempfile.TemporaryDirectory(prefix="dibs-store-") as folder:
            survives(tap, dibsd, folder, listens)
    both, one, none = [True, True], [True, False], [False, False]
    lost(tap, dibsd, "a name of nobody's", add("nonsense", memfd), both)
    lost(tap, dibsd, "a name that is nearly one", add("s.zz.1", memfd), both)
    lost(tap, dibsd, "half a name", add("s.1", memfd), both)
    lost(tap, dibsd, "two STATEs", add("state", memfd), none)
    lost(tap, dibsd, "no STATE", without("state"), none)
    lost(tap, dibsd, "no BOARD", without("board"), both)
    lost(tap, dibsd, "no listener", without("listener"), both)
    lost(tap, dibsd, "no proof of the broker's death", no_broker, none)
    lost(tap, dibsd, "a session without a descriptor", incomplete, one)
    lost(tap, dibsd, "a session with something else", replaced, one)
    lost(tap, dibsd, "a session of another row", renamed, one)
    living_broker(tap, dibsd)
    in_mid_drain(tap, dibsd)
    with_a_broken_file(tap, dibsd)
    after_an_orderly_stop(tap, dibsd, lambda manager: None, False)
    after_an_orderly_stop(tap, dibsd, add("nonsense", memfd), True)


def main(dibsd):
    tap = Tap()
    try:
        check_all(tap, dibsd)
    finally:
        for manager in Manager.made:
            manager.abandon()
    sys.exit(tap.end())


if __name__ == "__main__":
    main(sys.argv[1])

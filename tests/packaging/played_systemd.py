# tests/packaging/played_systemd.py -- a service manager with a descriptor store, played: it stores
# what it is told to, and passes it to the dibsd that it starts next.
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
import time

from unit_file import UnitFile

CONFIG = 'log_level = "error"\n[[pool]]\nname = "one"\nkind = "counted"\nslots = 1\n'
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

    def restart(self):
        """Like `systemctl restart`: the unit's signal for it, its last words, and a start."""
        name = self.unit.words("RestartKillSignal")[0]
        handle = os.pidfd_open(self.process.pid)
        self.process.send_signal(getattr(signal, name))
        while True:
            ready = select.select([self.notices, handle], [], [], PATIENCE)[0]
            assert ready, f"it does not end within {PATIENCE} s of {name}"
            if self.notices not in ready:
                break
            self.hear()
        os.close(handle)
        code = self.process.wait(timeout=PATIENCE)
        self.start()
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

#!/usr/bin/env python3
# tests/packaging/service.py -- dibsd under a service manager that is played here: it is lent a
# socket, says that it is ready, and leaves the socket's name when it goes.
#
#   service.py DIBSD        speaks TAP
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import socket
import stat
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "clientlib/bindings/python"))
import dibs  # noqa: E402
from tap_lines import Tap  # noqa: E402

CONFIG = 'log_level = "warning"\n[[pool]]\nname = "one"\nkind = "counted"\nslots = 1\n'


class Manager:
    """What systemd does for dibsd.socket and Type=notify."""

    def __init__(self, folder):
        self.path = f"{folder}/dibs.sock"
        self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listening.bind(self.path)
        self.listening.listen(1024)
        self.notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notices.bind(f"{folder}/notify")
        self.notices.settimeout(60)
        self.notify = f"{folder}/notify"

    def start(self, dibsd, lent, *arguments, count=1):
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("LISTEN_PID", "DIBS_SOCKET")}
        environment.update(LISTEN_FDS=str(count), NOTIFY_SOCKET=self.notify)
        descriptor = os.dup(lent.fileno())
        process = subprocess.Popen(
            ["bash", "-c", 'export LISTEN_PID=$$; exec "$@" 3<&"$0"- 4<&3', str(descriptor), dibsd,
             *arguments], pass_fds=[descriptor], env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        os.close(descriptor)
        return process

    def end(self):
        self.listening.close()
        self.notices.close()


def check(tap, dibsd, folder, *more):
    name = " ".join(["dibsd", *more])
    manager = Manager(folder)
    config = pathlib.Path(folder) / "dibsd.toml"
    config.write_text(CONFIG)
    waiting = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    waiting.connect(manager.path)  # as a client whose call starts the service
    process = manager.start(dibsd, manager.listening, "--config", config, *more)
    try:
        tap.equal(f"{name}: is ready on the socket that it was lent", process.stdout.readline(),
                  f"dibsd: ready on {manager.path}\n")
        while "READY=1" not in manager.notices.recv(4096).decode():
            pass  # what it wants stored
        tap.case(f"{name}: tells the manager", [])
        with dibs.connect(manager.path, timeout=10) as client:
            with client.claim("one", timeout=10) as lease:
                tap.equal(f"{name}: serves there", lease.units, 1)
    finally:
        process.terminate()
        said = process.communicate(timeout=60)[1]
    tap.equal(f"{name}: stops in order", (process.returncode, said), (0, ""))
    tap.case(f"{name}: leaves the socket's name", [] if os.path.exists(manager.path) and
             stat.S_ISSOCK(os.stat(manager.path).st_mode) else ["it is gone"])
    later = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    later.connect(manager.path)  # who comes now is in the manager's queue
    for one in (waiting, later):
        one.close()
    manager.end()


def check_refused(tap, dibsd, folder, kind, count, expected):
    manager = Manager(folder)
    wrong = socket.socket(socket.AF_UNIX, kind)
    wrong.bind(f"{folder}/wrong")
    if kind != socket.SOCK_DGRAM:
        wrong.listen()
    process = manager.start(dibsd, wrong, "--no-keeper", count=count)
    said = process.communicate(timeout=60)[1]
    tap.equal(f"refuses {kind.name} × {count}", (process.returncode, said.splitlines()[-1]),
              (1, f"dibsd: {expected}"))
    wrong.close()
    manager.end()


def main(dibsd):
    tap = Tap()
    for more in ([], ["--no-keeper"]):
        with tempfile.TemporaryDirectory(prefix="dibs-service-") as folder:
            check(tap, dibsd, folder, *more)
    not_one = "descriptor 3 is no listening SOCK_SEQPACKET UNIX socket (ListenSequentialPacket=)"
    for kind, count, expected in ((socket.SOCK_STREAM, 1, not_one),
                                  (socket.SOCK_DGRAM, 1, not_one),
                                  (socket.SOCK_SEQPACKET, 2, "LISTEN_FDS=2: one socket is wanted")):
        with tempfile.TemporaryDirectory(prefix="dibs-service-") as folder:
            check_refused(tap, dibsd, folder, kind, count, expected)
    sys.exit(tap.end())


if __name__ == "__main__":
    main(sys.argv[1])

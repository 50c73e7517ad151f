# tests/tool/tap.py -- cases of a Python test program, told as TAP, and a dibsd of their own.
#
# A case is a function that takes a Place: a folder, a broker in it, and ways to run the tool. A
# case fails by an exception. Nothing here waits for time: it waits for lines, exits and answers.
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from tap_lines import Tap  # noqa: E402

CASES = []


def case(what):
    """Registers the function as the case called `what`."""
    def keep(function):
        CASES.append((what, function))
        return function
    return keep


def expect_equal(got, wanted):
    if got != wanted:
        raise AssertionError(f"\n  got    {got!r}\n  wanted {wanted!r}")


def expect(holds, what):
    if not holds:
        raise AssertionError(what)


class Skip(Exception):
    """Raised by a case that cannot be told here, with the reason."""


class Place:
    """A folder with a socket's path; start() runs a dibsd there."""

    def __init__(self, dibsd, dibs, folder):
        self.dibsd, self.dibs = os.path.abspath(dibsd), os.path.abspath(dibs)  # run from anywhere
        self.folder = pathlib.Path(folder)
        self.socket = str(self.folder / "dibs.sock")
        self.children = []

    def start(self, config):
        file = self.folder / "dibsd.toml"
        file.write_text('log_level = "off"\n' + config)
        broker = subprocess.Popen([self.dibsd, "--no-keeper", "--config", file, "--socket", self.socket],
                                  stdout=subprocess.PIPE, text=True)
        self.children.append(broker)
        expect_equal(broker.stdout.readline(), f"dibsd: ready on {self.socket}\n")
        return broker

    def reload(self, broker, config):
        """Another configuration; it is taken over sooner or later."""
        (self.folder / "dibsd.toml").write_text('log_level = "off"\n' + config)
        broker.send_signal(signal.SIGHUP)

    def environment(self, **more):
        kept = {key: value for key, value in os.environ.items()
                if key not in ("DIBS_SOCKET", "XDG_RUNTIME_DIR", "COLUMNS")}
        # The folder has the library for a copy of the tool, see tool().
        return kept | {"DIBS_SOCKET": self.socket, "LD_LIBRARY_PATH": str(self.folder)} | more

    def tool(self, options):
        """Its path; for another user a copy, who may not be let into the folder of the build."""
        if "user" not in options:
            return self.dibs
        copy = self.folder / "dibs"
        if not copy.exists():
            library = pathlib.Path(self.dibs).parents[2] / "clientlib/libdibs.so.0"
            for file in (library, self.dibs):
                pathlib.Path(shutil.copy(file, self.folder)).chmod(0o755)
        return copy

    def run(self, *arguments, environment=None, **options):
        """Runs the tool to its end: (exit code, standard output, standard error)."""
        ended = subprocess.run([self.tool(options), *arguments], capture_output=True, text=True,
                               env=self.environment(**(environment or {})), timeout=60,
                               check=False, **options)
        return ended.returncode, ended.stdout, ended.stderr

    def begin(self, *arguments, **options):
        """Starts the tool and leaves it running."""
        child = subprocess.Popen([self.tool(options), *arguments], text=True, env=self.environment(),
                                 **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options)
        self.children.append(child)
        return child

    def close(self):
        for child in self.children:
            if child.poll() is None:
                child.send_signal(signal.SIGKILL)
            child.wait()
            for pipe in (child.stdout, child.stderr):
                if pipe is not None:
                    pipe.close()

    # --- the socket, without the tool
    def connect(self):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.settimeout(30)
        connection.connect(self.socket)
        return connection


def number_in(packet, offset, form):
    return struct.unpack_from(form, packet, offset)[0]


def state_of(child):
    """Of its one thread: S asleep, T stopped, Z ended ..."""
    with open(f"/proc/{child.pid}/stat", encoding="utf-8") as file:
        return file.read().rpartition(") ")[2][0]


def await_state(child, states):
    while state_of(child) not in states:
        os.sched_yield()


def stop(child):
    """Until SIGCONT, unless it has ended."""
    child.send_signal(signal.SIGSTOP)
    await_state(child, "TZ")


def main(arguments):
    """Runs all cases, or those whose name holds the third argument. argv: DIBSD DIBS [PART]"""
    dibsd, dibs = arguments[1:3]
    part = arguments[3] if len(arguments) > 3 else ""
    cases = [one for one in CASES if part in one[0]]
    tap = Tap()
    for number in (signal.SIGINT, signal.SIGHUP):  # ignored, if the tests were started by nohup, or with &
        signal.signal(number, signal.SIG_DFL)
    for what, function in cases:
        with tempfile.TemporaryDirectory(prefix="dibs-tool-") as folder:
            place = Place(dibsd, dibs, folder)
            try:
                function(place)
                tap.case(what, [])
            except Skip as reason:
                tap.skip(what, str(reason))
            except Exception:  # pylint: disable=broad-except
                tap.case(what, traceback.format_exc().splitlines())
            finally:
                place.close()
    sys.exit(tap.end())

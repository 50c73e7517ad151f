#!/usr/bin/env python3
# tests/tool/top.py -- `dibs top`: as text for scripts, and on a terminal, as tmux shows it.
#
#   top.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import fcntl
import json
import os
import pty
import re
import shlex
import signal
import struct
import subprocess
import sys
import termios

from holding import USER, hold, squeezed, waiting
from tap import case, expect, expect_equal, main

POOLS = """
[[account]]
name = "alice"
rate = 1.5
[[account]]
name = "bob"
rate = 0.5
[[pool]]
name = "gpu"
kind = "counted"
slots = 2
order = "account"
[[pool]]
name = "build"
kind = "counted"
slots = 100
"""


class Tmux:
    """`dibs top` in a window of tmux; its words may be waited for."""

    def __init__(self, place, *words, size=(80, 24), term="vt100", shell=False, **environment):
        self.place = place
        self.socket = str(place.folder / f"tmux{len(list(place.folder.glob('tmux*')))}")
        program = ["bash", "--norc", "-i"] if shell else [place.dibs, "top", "-d", "0.05", *words]
        command = shlex.join(["env", f"TERM={term}", *program])
        self.tmux("-f", "/dev/null", "-u", "new-session", "-d", "-x", str(size[0]), "-y", str(size[1]),
                  f"{command}; echo it ended with $?; exec cat", environment=environment)

    def tmux(self, *words, environment=None):
        return subprocess.run(["tmux", "-S", self.socket, *words], check=True,
                              capture_output=True, text=True, timeout=60,
                              env=self.place.environment(**(environment or {})) | {"LC_ALL": "C.UTF-8"}).stdout

    def screen(self, *words):
        return self.tmux("capture-pane", "-p", *words)

    def see(self, pattern):
        """Waits until the screen has it."""
        while True:
            screen = self.screen()
            found = re.search(pattern, screen, re.M)
            if found:
                return screen
            expect("it ended with" not in screen, f"{pattern} in\n{screen}")

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def pid(self):
        shell = self.tmux("display", "-p", "#{pane_pid}").strip()
        return int(subprocess.run(["ps", "-o", "pid=", "--ppid", shell], capture_output=True, text=True,
                                  check=True).stdout)

    def ended(self, code):
        while f"it ended with {code}" not in self.screen():
            pass
        return self.tmux("display", "-p", "#{alternate_on} #{cursor_flag}").strip()

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], check=False,
                       capture_output=True, timeout=60)


def busy(place):
    """Two leases of gpu, one of seven slots, two claims that wait."""
    broker = place.start(POOLS)
    first, _ = hold(place, "gpu", "--account", "alice")
    hold(place, "gpu", "--account", "bob")
    hold(place, "build:7")
    place.begin("claim", "gpu", "--account", "alice")
    waiting(place, 1)
    place.begin("claim", "gpu", "--account", "bob")
    waiting(place, 2)
    return broker, first


@case("--batch: pools with bars, accounts, claims with reasons, leases with user and command, twice")
def batch(place):
    _, first = busy(place)
    code, out, err = place.run("top", "-b", "-n", "2", "-d", "0.01", environment={"COLUMNS": "120"})
    expect_equal((code, err), (0, ""))
    expect("\x1b" not in out, out)
    lines = squeezed(out)
    expect(re.match(r"dibs top up T, 3 leases, 2 waiting, \d clients \d\d:\d\d:\d\d$", lines[0]), lines[0])
    expect_equal(lines[1:5], ["", "POOL SLOTS LEASED OF WAITING OLDEST GRANTS/S", "gpu [##] 2 2 2 T -",
                              "build [#.......................] 7 100 0 - -"])
    expect(lines[6].startswith("ACCOUNT RATE SHARE GOT SLOTS WAITING CLASS"), lines[6])
    expect(re.match(r"alice 1.5 75.0 % [\d.]+ % 1 1 ", lines[7]), lines[7])
    expect(lines[10].startswith("CLAIM POOL ") and lines[10].endswith(" REASON"), lines[10])
    expect(re.match(rf"c4 gpu .* {USER} \d+ dibs .*held by l1$", lines[11]), lines[11])
    expect(re.match(rf"c5 gpu .* {USER} \d+ dibs .*behind, held by l\d$", lines[12]), lines[12])
    expect(re.match(rf"l1 gpu .*0 T .*alice {USER} {first.pid} dibs ", lines[15]), lines[15])
    expect_equal(sum(line.startswith("dibs top ") for line in lines), 2)
    expect(re.search(r"^gpu \[##\] 2 2 2 T 0\.0$", "\n".join(lines[18:]), re.M), out)  # the second knows
    expect(all(len(line) <= 80 for line in place.run("top", "-bn1")[1].splitlines()), "80 columns")


@case("--batch goes on over a restart of the broker, and ends with its reader")
def batch_restart(place):
    broker = place.start(POOLS)
    child = place.begin("top", "--batch", "-d", "0.01")
    expect(child.stdout.readline().startswith("dibs top "), "a heading")
    broker.kill()
    broker.wait()
    while not child.stdout.readline().startswith("Waiting for the broker, "):
        pass
    place.start(POOLS)
    while not child.stdout.readline().startswith("dibs top "):
        pass
    child.stdout.close()
    expect_equal((child.wait(), child.stderr.read()), (0, ""))


@case("wrong usage, no terminal, a kind of terminal that is not known, no broker")
def refused(place):
    code, out, err = place.run("top", "-b", "-n", "1")
    expect_equal((code, out), (3, ""))
    place.start(POOLS)
    for words, what in ((("top",), "are no terminal: --batch needs none"),
                        (("top", "-n", "2"), "--count is for --batch"),
                        (("top", "-b", "-d", "0"), "write seconds")):
        code, out, err = place.run(*words)
        expect_equal((code, out), (2, ""))
        expect(what in err, err)
    for term in ("dumb", "no-such-terminal", ""):
        leader, follower = pty.openpty()
        ended = subprocess.run([place.dibs, "top"], stdin=follower, stdout=follower, stderr=subprocess.PIPE,
                               env=place.environment(TERM=term), timeout=60, check=False)
        expect_equal(ended.returncode, 2)
        expect(b"--batch needs none" in ended.stderr, str(ended.stderr))
        os.close(leader)
        os.close(follower)


@case("at 80x24 on a vt100 everything has its lines; q ends it")
def shown(place):
    busy(place)
    window = Tmux(place)
    try:
        lines = squeezed(window.see("^gpu .* 0\\.0$"))
        expect_equal(len(lines), 24)
        expect_equal(lines[2:5], ["POOL SLOTS LEASED OF WAITING OLDEST GRANTS/S", "gpu [##] 2 2 2 T 0.0",
                                  "build [#.......................] 7 100 0 - 0.0"])
        expect(any(re.match("c4 gpu .*held by l1$", line) for line in lines), str(lines))
        expect(lines[-1].startswith("q quit "), lines[-1])
        screen = window.screen("-e")
        expect(re.search("\x1b\\[(0;)?7m(\x1b\\[[34]9m)*gpu ", screen), f"the first row is chosen in {screen!r}")
        window.tmux("resize-window", "-x", "40", "-y", "9")
        small = window.see("(?s)^q quit.*\\Z").splitlines()
        while len(small) != 9:
            small = window.screen().splitlines()
        window.press("q")
        window.ended(0)
    finally:
        window.close()


@case("keys: explain at once; drain and release after a question")
def keys(place):
    _, first = busy(place)
    window = Tmux(place)
    try:
        window.see("^ +l3 ")
        window.press("e")
        window.see("e explains why a claim waits: choose one")
        window.press("Down", "Down", "Down", "Down", "e")
        window.see(f"(?s)^c4: .*longest\\s+holder\\s+is\\s+alice,\\s+process\\s+{first.pid}\\s+\\(dibs\\)")
        window.press("Down", "Down", "r")
        window.see("^Release lease l1 of pool gpu, held by process")
        window.press("n")
        window.see("^nothing was done")
        expect(first.poll() is None, "it holds")
        window.press("r")
        window.see("^Release lease l1 of pool gpu, held by process")
        window.press("y")
        window.see("^lease l1 is released")
        expect_equal(first.wait(), 1)
        window.press("s")
        window.see("^leases by user")
        window.press("Up", "Up", "Up", "Up", "Up", "Up", "Up", "Up", "d")
        window.see("^Drain pool gpu\\? Its 1 waiting claims are rejected, leases run on. y or n")
        window.press("y")
        window.see("^gpu .* draining")
        window.press("d")
        window.see("^pool gpu takes claims again")
        expect_equal([row["draining"] for row in rows(place, "pools")], [False, False])
    finally:
        window.close()


def rows(place, kind):
    return [json.loads(line) for line in place.run("ls", kind, "-o", "jsonl")[1].splitlines()]


@case("the broker goes: it says that it waits; it comes back: the picture does")
def restart(place):
    broker, _ = busy(place)
    window = Tmux(place)
    try:
        window.see("^ +l3 ")
        broker.kill()
        broker.wait()
        window.see("^Waiting for the broker, for ")
        place.start(POOLS)
        screen = window.see("^gpu +\\[\\.\\.\\] +0 +2 +0 ")
        expect("Waiting for" not in screen, screen)
    finally:
        window.close()


@case("TERM, INT and HUP end it and give the terminal back; colours only where wanted")
def signals(place):
    busy(place)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        window = Tmux(place, term="screen-256color")
        try:
            window.see("^ +l3 ")
            expect("\x1b[32m" in window.screen("-e").replace("\x1b[1m\x1b[32m", "\x1b[32m"), "green")
            expect_equal(window.tmux("display", "-p", "#{alternate_on} #{cursor_flag}").strip(), "1 0")
            os.kill(window.pid(), number)
            expect_equal(window.ended(128 + number), "0 1")
        finally:
            window.close()
    window = Tmux(place, term="screen-256color", NO_COLOR="1")
    try:
        window.see("^ +l3 ")
        expect(not re.search("\x1b\\[(1;)?3[0-8]m", window.screen("-e")), "no colour")
    finally:
        window.close()


@case("Ctrl-Z gives the terminal back to the shell, and fg draws the picture again")
def stopped(place):
    busy(place)
    window = Tmux(place, term="screen", shell=True)
    try:
        window.press(f"{place.dibs} top", "Enter")
        window.see("^ +l3 ")
        window.press("C-z")
        screen = window.see("Stopped .* top")
        expect("POOL" not in screen, screen)
        window.press("fg", "Enter")
        window.see("^ +l3 ")
    finally:
        window.close()


@case("a terminal that takes nothing: TERM ends it all the same, and its settings are as before")
def stuck(place):
    busy(place)
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    before = termios.tcgetattr(follower)
    child = subprocess.Popen([place.dibs, "top", "-d", "0.001"], stdin=follower, stdout=follower,
                             env=place.environment(TERM="vt100"))
    place.children.append(child)
    while not open(f"/proc/{child.pid}/syscall", encoding="ascii").read().startswith("1 "):
        os.kill(child.pid, signal.SIGWINCH)  # it draws all anew, until it stands in write(2)
    expect(termios.tcgetattr(follower) != before, "it has changed them")
    child.send_signal(signal.SIGTERM)
    expect_equal(child.wait(), -signal.SIGTERM)
    expect_equal(termios.tcgetattr(follower), before)
    os.close(leader)
    os.close(follower)


if __name__ == "__main__":
    main(sys.argv)

# tests/process/exec_terminal.py -- `dibs exec` on a terminal: Ctrl-C and Ctrl-Z reach the command, and
# the terminal comes back. Speaks TAP.
#
#   exec_terminal.py DIBSD DIBS
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import tempfile

DIBSD, DIBS = sys.argv[1:]
LONG = "l" * 63


class Terminal:
    """`dibs exec one -- sh -c SCRIPT` as the leader of a session on a terminal of its own."""

    def __init__(self, script, words=None):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE):
                signal.signal(ignored, signal.SIG_DFL)  # whoever runs the tests may ignore them
            words = words or [DIBS, "exec", "one", "--", "sh", "-c", script]
            os.execvp(words[0], words)
        self.said = b""

    def await_said(self, words):
        while words not in self.said:
            self.said += os.read(self.fd, 4096)

    def press(self, key):
        os.write(self.fd, key)

    def status(self):
        return os.waitpid(self.pid, os.WUNTRACED)[1]


def interrupts_the_command():
    # It starts nothing: a signal that finds a shell in vfork() can be lost.
    terminal = Terminal("trap 'echo got; exit 5' INT; echo up; while :; do read line; done")
    terminal.await_said(b"up")
    terminal.press(b"\x03")
    terminal.await_said(b"got")
    assert os.waitstatus_to_exitcode(terminal.status()) == 5


def ends_by_the_signal_that_ended_the_command():
    terminal = Terminal("echo up; exec sleep 1000")
    terminal.await_said(b"up")
    terminal.press(b"\x03")
    status = terminal.status()
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGINT, status


def stops_and_goes_on_with_the_command():
    # A shell that starts nothing: one that waits in vfork() for a stopped child never stops itself.
    terminal = Terminal("trap 'echo on' CONT; echo up; while :; do read line; done")
    terminal.await_said(b"up")
    terminal.press(b"\x1a")
    status = terminal.status()
    assert os.WIFSTOPPED(status), status
    assert os.tcgetpgrp(terminal.fd) == terminal.pid  # whoever started it has the terminal back
    os.kill(terminal.pid, signal.SIGCONT)
    terminal.await_said(b"on")
    terminal.press(b"\x03")
    status = terminal.status()
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGINT, status


def lets_the_command_read_from_the_terminal():
    terminal = Terminal("echo up; read x; echo heard $x")
    terminal.await_said(b"up")
    terminal.press(b"word\n")
    terminal.await_said(b"heard word")
    assert os.waitstatus_to_exitcode(terminal.status()) == 0


def stops_for_a_shell_as_the_command_does():
    terminal = Terminal("", ["bash", "--norc", "-ic", f"{DIBS} exec one -- sh -c 'echo up; while :; do read x; done'; "
                             "echo code $?; kill %1; fg"])
    terminal.await_said(b"up")
    terminal.press(b"\x1a")
    terminal.await_said(b"code 148")
    terminal.status()


def says_what_it_waits_for_and_takes_that_back():
    holder = subprocess.Popen([DIBS, "claim", "one"], stdout=subprocess.PIPE)
    holder.stdout.readline()
    terminal = Terminal("", ["sh", "-c", f"stty cols 200; exec {DIBS} exec one -- echo up"])
    terminal.await_said(b"waiting for a slot of pool \"one\", place 1 of 1; process "
                        + str(holder.pid).encode() + b" (dibs)")
    holder.terminate()
    terminal.await_said(b"\r\x1b[Kup")
    assert os.waitstatus_to_exitcode(terminal.status()) == 0
    holder.stdout.close()
    holder.wait()


def says_it_in_80_columns_with_shorter_names():
    holder = subprocess.Popen([DIBS, "claim", LONG], stdout=subprocess.PIPE)
    holder.stdout.readline()
    for columns in (80, 0):  # 0: it does not say
        terminal = Terminal("", ["sh", "-c", f"stty cols {columns}; exec {DIBS} exec {LONG} -- echo up"])
        terminal.await_said(b"dibs: waiting for ")
        terminal.await_said(b"s\r\x1b[K")  # the next second's
        line = terminal.said.split(b"\r\x1b[K")[1].decode()
        assert len(line) <= 79, line
        assert re.fullmatch(rf"dibs: waiting for l+~, 1 of 1; {holder.pid} \(dibs\) of \S+ has held one \S+s", line), line
        terminal.press(b"\x03")
        terminal.status()
    holder.terminate()
    holder.stdout.close()
    holder.wait()


def says_that_it_waits_for_its_own_caller():
    terminal = Terminal(f"stty cols 200; {DIBS} exec one -- true")
    terminal.await_said(b"waiting for a slot")
    terminal.await_said(b"it runs under a slot of this pool itself")
    terminal.press(b"\x03")
    terminal.status()


def main():
    cases = (stops_for_a_shell_as_the_command_does, says_what_it_waits_for_and_takes_that_back,
             says_that_it_waits_for_its_own_caller, says_it_in_80_columns_with_shorter_names,
             interrupts_the_command, ends_by_the_signal_that_ended_the_command,
             stops_and_goes_on_with_the_command, lets_the_command_read_from_the_terminal)
    print(f"1..{len(cases)}", flush=True)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "dibs.toml"
        config.write_text("".join(f'[[pool]]\nname = "{name}"\nkind = "counted"\nslots = 1\n' for name in ("one", LONG)))
        os.environ["DIBS_SOCKET"] = f"{folder}/dibs.sock"
        broker = subprocess.Popen([DIBSD, "--no-keeper", "--config", config],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        broker.stdout.readline()
        for number, case in enumerate(cases, 1):
            try:
                case()
                print(f"ok {number} - {case.__name__}", flush=True)
            except Exception as error:  # a case that breaks has failed, the others go on
                failed += 1
                print(f"not ok {number} - {case.__name__}\n# {error!r}", flush=True)
        broker.kill()
        broker.wait()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

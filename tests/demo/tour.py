# tests/demo/tour.py -- the tour of scripts/demo in a few seconds: as plain lines, on a terminal of 40
# columns, as tmux shows it, and what it leaves. Speaks TAP.
# Interrupted, it leaves nothing.
#
#   tour.py PROGRAM
# SPDX-License-Identifier: Apache-2.0
import ctypes
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import xml.etree.ElementTree

TOUR = os.path.abspath(sys.argv[1])
INCIDENTS = {"1 client killed", "2 worker killed", "3 deadline", "4 cancel races", "5 rush",
             "6 broker killed", "7 urgent claim", "8 GPU shared", "9 routed",
             "10 gangs of four", "11 child left", "12 pool grows", "13 shares 3 : 2 : 1"}
COMMAND = ["/usr/bin/python3", TOUR, "--seconds", "5", "--out"]


def lines_where_there_is_no_terminal(folder):
    run = subprocess.run(COMMAND + [folder], stdout=subprocess.PIPE, text=True, cwd=folder,
                         env=dict(os.environ, COLUMNS="80"))
    assert run.returncode == 0, run.stdout
    widest = max(run.stdout.splitlines(), key=len)
    assert len(widest) <= 80, widest
    # Where it is, and how it is looked at: below the present folder.
    assert re.search(r"^picture: demo\.svg .*xdg-open demo\.svg", run.stdout, re.M), run.stdout
    assert "\x1b" not in run.stdout
    assert run.stdout.splitlines()[-1] == "18 passed, 0 failed, 0 skipped", run.stdout
    for words in ("A client is killed", "An idle worker is killed", "deadline passes",
                  "A cancel races a grant", "More claims come", "The broker is killed",
                  "An urgent claim takes a slot", "A GPU of 80 GiB is shared", "Claims come to two pools", "Two gangs of four", "A command leaves a process", "A burst comes to a pool",
                  "Three accounts want more than there is",
                  "Every claim is granted", "No slot is lost"):
        assert re.search(f"^ok .*{words}", run.stdout, re.M), words


def facts_and_times_as_json(folder):
    told = json.loads((pathlib.Path(folder) / "demo.json").read_text())
    assert told["schema"] == "dibs.demo/1"
    assert [fact["verdict"] for fact in told["facts"]] == ["passed"] * 18, told["facts"]
    assert len(told["incidents"]) == 13 and told["claims_per_second"] > 0
    for name, one in told["times"].items():
        quantiles = [one[key] for key in ("p50_ns", "p99_ns", "p999_ns")]
        known = [value for value in quantiles if value is not None]
        assert known == sorted(known) and known[0] > 0, (name, one)
        # Of so many times as have ten beyond it.
        enough = [one["count"] - one["count"] * part // 1000 >= 10 for part in (500, 990, 999)]
        assert [value is not None for value in quantiles] == enough, (name, one)
    assert set(told["times"]) == {"parked lease, taken", "ring round trip", "dibs claim", "UNIX socket round trip",
                                  "cold start: fork + exec", "cold start: Python"}, told["times"]


def a_picture_that_can_be_drawn(folder):
    root = xml.etree.ElementTree.parse(pathlib.Path(folder) / "demo.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    assert root.tag == space + "svg"
    words = [text.text for text in root.iter(space + "text")]
    assert "dibs claim" in words and "6  The broker is killed" in words, words
    assert words[0].startswith("dibs hands out 8 warm processes"), words[0]
    # What an axis counts, its numbers, and each incident's name on its line.
    assert {"slots", "waiting", "8", "claims that wait", "0 s"} <= set(words), words
    names = [(float(text.get("x")), float(text.get("y")), len(text.text)) for text in
             root.iter(space + "text") if text.text in INCIDENTS and text.get("stroke") is None]
    assert len(names) == len(INCIDENTS), names
    for one, (x, y, letters) in enumerate(names):
        for other_x, other_y, others in names[:one]:
            assert y != other_y or abs(x - other_x) > 3 * (letters + others), names
    height = float(root.get("height"))
    assert all(0 <= float(text.get("y")) <= height for text in root.iter(space + "text")
               if text.get("transform") is None)


def a_live_picture_on_a_narrow_terminal(folder):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    environment = dict(os.environ, COLUMNS="", LINES="")
    process = subprocess.Popen(COMMAND + [folder], stdout=theirs, env=environment)
    os.close(theirs)
    said = b""
    while True:
        try:
            block = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        said += block
    assert process.wait() == 0
    text = said.decode()
    frames = re.findall(r"\x1b\[2K(.*?)\r?\n", text)
    bare = [re.sub(r"\x1b\[[0-9;]*m", "", frame) for frame in frames]
    assert len(bare) > 60, text
    assert max(len(line) for line in bare) < 40, max(bare, key=len)
    assert any(line.startswith("slots") for line in bare) and any("grants" in line for line in bare)
    assert text.rstrip().splitlines()[-1].endswith("\x1b[?25h") or "\x1b[?25h" in text[-200:]


def screens(command, folder):
    """What a terminal of 80 columns shows, again and again, until the command's words "it ended"."""
    tmux = subprocess.Popen(["tmux", "-u", "-S", f"{folder}/tmux", "-f", "/dev/null", "-C",
                             "new-session", f"{shlex.join(command)}; echo it ended with $?; cat",
                             ";", "set-option", "destroy-unattached", "on"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8",
                            bufsize=1, env=dict(os.environ, LC_ALL="C.UTF-8"))
    shown, asked, changed, screen = [], False, False, []
    for line in tmux.stdout:
        if line.startswith("%output"):
            changed = True
        elif line.startswith("%begin"):
            screen = []
        elif line.startswith("%end"):
            asked = False
            shown.append(screen)
            if any(text.startswith("it ended") for text in screen):
                tmux.stdin.write("kill-server\n")
                break
        else:
            screen.append(line.rstrip("\n"))
        if changed and not asked:  # also what has changed since it was asked for
            tmux.stdin.write("capture-pane -p\n")
            asked, changed = True, False
    tmux.stdin.close()
    tmux.stdout.read()
    tmux.wait()
    return shown


def a_live_picture_that_is_drawn_over_itself(folder):
    shown = screens(COMMAND + [folder], folder)
    assert "it ended with 0" in shown[-1], shown[-1]
    pictures = [[at for at, line in enumerate(screen) if line.startswith("slots   ")]
                for screen in shown]
    assert max(len(found) for found in pictures) == 1, shown
    whole = []
    for screen, found in zip(shown, pictures):
        picture = "\n".join(screen[found[0]:found[0] + 7]) if found else ""
        if re.fullmatch(r"slots   █ \d+ leased  .*░ \d+ idle  \d+ waiting\n"
                        r" {8}([█▓▒░?×]{2} *){8}\nwaiting [ ▁▂▃▄▅▆▇█]*\n"
                        r"(\w+ +\d+ grants   waits p50 .* ms   p99 .* ms\n){3}[━─]{79}", picture):
            whole.append(picture)
    assert whole, shown[len(shown) // 2]
    print("\n".join(f"# {line}" for line in whole[-1].splitlines()), flush=True)


PR_SET_CHILD_SUBREAPER = 36


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return "it has ended"


def left_behind():
    """What goes on though its parent has ended; a moment is given to who is being killed."""
    children = pathlib.Path(f"/proc/self/task/{os.getpid()}/children")
    left = set()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG) != (0, 0):
                continue
        except ChildProcessError:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            return sorted(left)
        if signal.sigtimedwait({signal.SIGCHLD}, 30) is None:  # nobody is ending
            for pid in map(int, children.read_text().split()):
                left.add(command_of(pid))
                os.kill(pid, signal.SIGKILL)


def interrupted(folder, words, strike):
    """The exit code of a tour on a terminal of its own, which is struck once it says these words."""
    ours, theirs = pty.openpty()
    tour = subprocess.Popen(["setsid", "--ctty", *COMMAND, folder], stdin=theirs, stdout=theirs,
                            stderr=theirs, env=dict(os.environ, TMPDIR=folder))
    os.close(theirs)
    said = b""
    while words not in said:
        said += os.read(ours, 65536)  # OSError: it has ended
    strike(tour, ours)
    # Who is left behind would keep the terminal open: it is read as long as the tour lives.
    while tour.poll() is None:
        try:
            if select.select([ours], [], [], 0.05)[0]:
                said += os.read(ours, 65536)
        except OSError:  # nobody has it open
            tour.wait()
    code = tour.returncode
    left = left_behind()
    assert not left, left
    assert os.listdir(folder) == [], os.listdir(folder)
    assert b"Traceback" not in said, said.decode()
    return code


def nothing_that_is_left_where_it_is_interrupted(folder):
    # Whatever loses its parent becomes a child of this process.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory(dir=folder) as own:
        code = interrupted(own, b"A claim's deadline passes", lambda _, ours: os.write(ours, b"\x03"))
        assert code == 130, code
        code = interrupted(own, b"The broker is killed", lambda tour, _: tour.terminate())
        assert code == 130, code


def nothing_that_is_left_where_its_terminal_is_closed(folder):
    with tempfile.TemporaryDirectory(dir=folder) as own:
        code = interrupted(own, b"A broker of its own", lambda _, ours: os.close(ours))
        assert code == 130, code


def main():
    cases = (lines_where_there_is_no_terminal, facts_and_times_as_json,
             a_picture_that_can_be_drawn, a_live_picture_on_a_narrow_terminal,
             a_live_picture_that_is_drawn_over_itself,
             nothing_that_is_left_where_it_is_interrupted,
             nothing_that_is_left_where_its_terminal_is_closed)
    print(f"1..{len(cases)}", flush=True)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(cases, 1):
            try:
                case(folder)
                print(f"ok {number} - {case.__name__}", flush=True)
            except Exception as error:  # a case that breaks has failed, the others go on
                failed += 1
                print(f"not ok {number} - {case.__name__}", flush=True)
                print("\n".join(f"# {line}" for line in repr(error).split("\\n")), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# tests/tidy/build_progress.py -- tests/build_lines.py: no line for each file, and every error whole.
#
#   build_progress.py     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import pty
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))
from tap_lines import Tap  # noqa: E402

LINES = [sys.executable, TESTS / "build_lines.py", "build", "--every"]
NEVER = "100000"
SETUP = "The Meson build system\nVersion: 1.0.1\n"
BEGINS = "ninja: Entering directory `build'\n"
MANY = "".join(f"[{number}/300] Compiling C++ object {number}.o\n" for number in range(1, 301))
ERROR = ("FAILED: broker/a.o\n"
         "g++ -c broker/a.cpp\n"
         "broker/a.cpp:7:1: error: 'x' was not declared\n"
         "    7 | x;\n"
         "ninja: build stopped: subcommand failed.\n")


def off_a_terminal(text):
    return subprocess.run(LINES + [NEVER], input=text, stdout=subprocess.PIPE, text=True, check=True).stdout


def on_a_terminal(text):
    ours, theirs = pty.openpty()
    child = subprocess.Popen(LINES + [NEVER], stdin=subprocess.PIPE, stdout=theirs, text=True,
                             env=os.environ | {"COLUMNS": "40"})
    os.close(theirs)
    child.stdin.write(text)
    child.stdin.close()
    said = b""
    try:
        while block := os.read(ours, 65536):
            said += block
    except OSError:  # the other end is closed
        pass
    child.wait()
    return said.decode().replace("\r\n", "\n")


def line_of_time(tap):
    """While nothing comes it says where the build is: its input stays open until it has."""
    child = subprocess.Popen(LINES + ["0.01"], stdin=subprocess.PIPE, text=True,
                             stdout=subprocess.PIPE)
    child.stdin.write(SETUP + BEGINS + "[5/300] Compiling C++ object 5.o\n")
    child.stdin.flush()
    while "[5/300]" not in (line := child.stdout.readline()):
        pass
    tap.equal("every so often a line says how many of how many are built", line.rpartition(",")[0],
              "   build [5/300]")
    child.stdin.close()
    child.stdout.read()
    child.wait()


def main():
    tap = Tap()
    tap.equal("off a terminal 300 files and what meson sets up are one line",
              off_a_terminal(SETUP + BEGINS + MANY), "   build [300/300]\n")
    tap.equal("an error is there whole", off_a_terminal(SETUP + BEGINS + MANY + ERROR),
              ERROR + "   build [300/300]\n")
    tap.equal("all of a setup that fails is there", off_a_terminal(SETUP + "meson.build:3: ERROR: no flatc\n"),
              SETUP + "meson.build:3: ERROR: no flatc\n")
    tap.equal("a warning of the setup is there",
              off_a_terminal(SETUP + "meson.build:3: WARNING: old\n" + BEGINS), "meson.build:3: WARNING: old\n")
    tap.equal("what was built already has no line", off_a_terminal(BEGINS + "ninja: no work to do.\n"), "")
    tap.equal("lines of tests behind the build are passed on",
              off_a_terminal(BEGINS + MANY + " 1/1 tidy OK 0.1s\n"),
              " 1/1 tidy OK 0.1s\n   build [300/300]\n")
    shown = on_a_terminal(SETUP + BEGINS + MANY + ERROR)
    tap.equal("on a terminal one line is renewed, in its width", shown.count("\n"), ERROR.count("\n") + 1)
    cut = on_a_terminal(BEGINS + "[300/300] Compiling C++ object abc/def/ghi.o\n")
    tap.case("its words are cut where 40 columns end",
             [] if "\rbuild [300/300] Compiling C++ object ab\x1b[K" in cut else [cut])
    tap.case("each state of it is there", [] if "\rbuild [7/300] Compiling C++ object 7.o\x1b[K" in shown
             else [shown[:300]])
    tap.equal("and the error stays behind it", shown.split("\r\x1b[K")[-1].split("\n", 1)[1],
              ERROR.split("\n", 1)[1] + "   build [300/300]\n")
    line_of_time(tap)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())

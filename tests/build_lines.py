#!/usr/bin/env python3
# tests/build_lines.py -- how far a build is, from the lines that meson and ninja print: on a terminal one
# line that is renewed, elsewhere a line now and then.
#
#   scripts/build FOLDER 2>&1 | tests/build_lines.py FOLDER [--every SECONDS]
#
# A file that is compiled has no line of its own. What ninja prints besides (a command that failed and what
# it said, whole) and warnings of meson's are passed on; all that meson said, where it fails. Other lines that
# come behind those of a build, of the tests that meson runs then, say, are passed on, too.
# SPDX-License-Identifier: Apache-2.0
import argparse
import os
import re
import shutil
import sys
import threading
import time

STATUS = re.compile(r"\[(\d+)/(\d+)\] ")  # as ninja has it unless NINJA_STATUS says otherwise
BEGINS = "ninja: Entering directory"
IDLE = "ninja: no work to do."
REGENERATES = "Regenerating build files."


class Lines:
    def __init__(self, out, folder, every):
        self.out, self.folder, self.every = out, folder, every
        self.live = out.isatty()
        self.lock = threading.Lock()
        self.setup = []  # what meson says before ninja begins; None: it has begun
        self.status, self.doing, self.done = "sets up", "", False
        self.drawn = False
        self.ended = threading.Event()
        self.begun = time.monotonic()
        if self.live:
            self.draw()

    def tell(self, text):
        """A line that stays."""
        self.out.write(("\r\x1b[K" if self.drawn else "") + text + "\n")
        self.drawn = False
        self.out.flush()

    def draw(self):
        width = shutil.get_terminal_size((80, 24)).columns - 1
        self.out.write("\r" + f"{self.folder} {self.status} {self.doing}"[:width] + "\x1b[K")
        self.drawn = True
        self.out.flush()

    def take(self, line):
        with self.lock:
            status = STATUS.match(line)
            if status or line.startswith(BEGINS) or line == IDLE:
                for warning in (said for said in self.setup or () if "WARNING:" in said):
                    self.tell(warning)
                if self.setup is not None:
                    self.setup, self.status = None, "begins"
                if status:
                    self.status, self.doing = f"[{status[1]}/{status[2]}]", line[status.end():]
                    self.done = status[1] == status[2]
                    if self.doing == REGENERATES:
                        self.setup, self.done = [], False
                if self.live:
                    self.draw()
                self.done = self.done or line == IDLE
            elif self.setup is None:
                self.tell(line)
            else:
                self.setup.append(line)

    def tell_now_and_then(self):
        while not self.ended.wait(self.every):
            with self.lock:
                if self.done:
                    continue
                seconds = int(time.monotonic() - self.begun)
                self.tell(f"   {self.folder} {self.status}, {seconds // 60}:{seconds % 60:02} min")

    def end(self):
        self.ended.set()
        with self.lock:
            for line in self.setup or ():
                self.tell(line)
            if self.status.startswith("["):
                self.tell(f"   {self.folder} {self.status}")
            elif self.drawn:
                self.out.write("\r\x1b[K")
                self.out.flush()


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder")
    arguments.add_argument("--every", type=float, default=20, help="seconds between lines")
    options = arguments.parse_args()
    lines = Lines(sys.stdout, options.folder, options.every)
    if not lines.live:
        threading.Thread(target=lines.tell_now_and_then, daemon=True).start()
    # By lines, as they come; bytes of a compiler's that are no UTF-8 are no reason to end.
    with os.fdopen(sys.stdin.fileno(), encoding="utf-8", errors="replace", closefd=False) as said:
        for line in said:
            lines.take(line.rstrip("\n"))
    lines.end()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)

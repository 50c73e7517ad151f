#!/usr/bin/env python3
# tests/tool/journal_lines.py -- what dibsd says to the journal, and what elsewhere.
#
#   journal_lines.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import os
import re
import subprocess
import sys

from tap import case, expect, main


def first_line(place, stream):
    """Of a dibsd whose standard error the variable names, or something else."""
    config = place.folder / "dibsd.toml"
    config.write_text('[[pool]]\nname = "gpu"\nkind = "counted"\nslots = 1\n')
    reading, writing = os.pipe()
    about = os.fstat(writing)
    environment = place.environment() | {"JOURNAL_STREAM": stream or f"{about.st_dev}:{about.st_ino}"}
    broker = subprocess.Popen([place.dibsd, "--no-keeper", "--config", config, "--socket", place.socket],
                              stdout=subprocess.DEVNULL, stderr=writing, env=environment)
    place.children.append(broker)
    os.close(writing)
    with open(reading, encoding="utf-8") as lines:
        return next(line for line in lines if "serving on" in line)


@case("to the journal: the priority, and neither time nor process")
def journal(place):
    line = first_line(place, None)
    expect(re.match(r"<6>serving on ", line), line)


@case("elsewhere, though a parent's error was the journal: time, process and level")
def elsewhere(place):
    line = first_line(place, "1:1")
    expect(re.match(r"\d{4}-\d\d-\d\dT[\d:.]+ dibsd\[\d+\] info: serving on ", line), line)


if __name__ == "__main__":
    main(sys.argv)

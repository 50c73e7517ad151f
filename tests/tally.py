#!/usr/bin/env python3
# tests/tally.py -- adds up the test cases of build folders: failures, skips with reasons, one sum.
#
#   tests/tally.py [--unbuilt N] FOLDER...
#
# Reads what `meson test` left in each folder: testlog.junit.xml has the cases, testlog.json how
# each program ended. A program that ended badly without a failed case (it crashed, hung, or said
# nothing) counts as one failure, and its cases do not count, so that a case that never ran is not
# taken for one that passed.
# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def program_in(text):
    """The program's name in meson's 'project.project:suite / program.rest'."""
    if " / " in text:
        text = text.split(" / ")[-1]
    elif text.startswith("dibs."):
        text = text[len("dibs."):]
    return text.split(".")[0]


def cases_of(folder):
    """Yields (program, case, outcome, reason) for every case of the folder's last run."""
    path = folder / "meson-logs" / "testlog.junit.xml"
    if not path.exists():
        return
    for suite in ElementTree.parse(path).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            name = case.get("name")
            # A program without cases of its own is itself a case of the suite "dibs".
            program = program_in(name if suite.get("name") == "dibs" else suite.get("name"))
            suite_class = case.get("classname") or ""
            if suite_class and program_in(suite_class) != program:
                name = f"{suite_class}.{name}"
            elif " / " in name:
                name = name.split(" / ")[-1]
            skipped = case.find("skipped")
            if case.find("failure") is not None or case.find("error") is not None:
                yield program, name, "failed", ""
            elif skipped is not None:
                reason = skipped.text or skipped.get("message") or "its name says why"
                yield program, name, "skipped", " ".join(reason.split())
            elif case.get("status") == "notrun":
                yield program, name, "skipped", "disabled"
            else:
                yield program, name, "passed", ""


def case_under_way(output):
    """The case that a GoogleTest program had begun and not ended, " in SUITE.CASE"; or ""."""
    begun = ""
    for line in output.splitlines():
        if line.startswith("[ RUN      ] "):
            begun = " in " + line[len("[ RUN      ] "):]
        elif line.startswith(("[       OK ] ", "[  FAILED  ] ", "[  SKIPPED ] ")):
            begun = ""
    return begun


def programs_of(folder):
    """Yields (program, result, where it ended) for every test program of the folder's last run."""
    path = folder / "meson-logs" / "testlog.json"
    if not path.exists():
        return
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        program = entry["name"].split(" / ")[-1].removeprefix("dibs:")
        yield program, entry["result"], case_under_way(entry.get("stdout", ""))


def tally(folders, unbuilt):
    counts = {"passed": 0, "failed": unbuilt, "skipped": 0}
    for folder in folders:
        cases = list(cases_of(folder))
        with_failures = {program for program, _, outcome, _ in cases if outcome == "failed"}
        broken = set()
        for program, result, where in programs_of(folder):
            if result in ("OK", "SKIP", "EXPECTEDFAIL") or program in with_failures:
                continue
            broken.add(program)
            counts["failed"] += 1
            print(f"FAILED  {folder}/{program}: ended as {result}{where} without a failed case")
        for program, name, outcome, reason in cases:
            if program in broken:
                continue  # an earlier run's: a program that is killed writes no report of its own
            counts[outcome] += 1
            if outcome == "failed":
                print(f"FAILED  {folder}/{program}: {name}")
            elif outcome == "skipped":
                print(f"SKIPPED {folder}/{program}: {name}: {reason}")
        if not cases:
            counts["failed"] += 1
            print(f"FAILED  {folder}: no test ran")
    return counts


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--unbuilt", type=int, default=0, help="builds that failed")
    arguments.add_argument("folders", nargs="*", type=pathlib.Path)
    options = arguments.parse_args()
    counts = tally(options.folders, options.unbuilt)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())

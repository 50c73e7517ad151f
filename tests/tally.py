#!/usr/bin/env python3
# tests/tally.py -- adds up the test cases of build folders: failures, skips with reasons, one sum.
#
#   tests/tally.py [--unbuilt N] [--left-out N] FOLDER...
#   tests/tally.py --failed FOLDER     only the names of the programs that failed
#
# Reads what `meson test` left in each folder: testlog.junit.xml has the cases, testlog.json how
# each program ended. A program that ended badly without a failed case (it crashed, hung, or said
# nothing) counts as one failure, and its cases do not count, so that a case that never ran is not
# taken for one that passed. What scripts/test has played again (again.*) stands in for the first time.
# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import pathlib
import sys
import xml.etree.ElementTree as ElementTree

LEFT_OUT = "1..0 # SKIP there was no time left"  # tests/in_time


def program_in(text):
    """The program's name in meson's 'project.project:suite / program.rest'."""
    if " / " in text:
        text = text.split(" / ")[-1]
    elif text.startswith("dibs."):
        text = text[len("dibs."):]
    return text.split(".")[0]


def log_of(folder, name):
    """Meson adds the wrapper of a run to the names of its logs."""
    return next((folder / "meson-logs").glob(name), None)


def cases_of(folder, log):
    """Yields (program, case, outcome, reason) for every case of the folder's last run."""
    path = log_of(folder, f"{log}*.junit.xml")
    if path is None:
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


def programs_of(folder, log):
    """Yields (program, result, where it ended) for every test program of the folder's last run; the result of
    one that tests/in_time left out is None."""
    path = log_of(folder, f"{log}*.json")
    if path is None:
        return
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        program = entry["name"].split(" / ")[-1].removeprefix("dibs:")
        said = entry.get("stdout", "")
        yield program, None if said.startswith(LEFT_OUT) else entry["result"], case_under_way(said)


def both(of, folder):
    """What `of` yields of the folder, for programs that were played again of that."""
    again = list(of(folder, "again"))
    programs = {entry[0] for entry in again}
    return [entry for entry in of(folder, "testlog") if entry[0] not in programs] + again


def is_bad(result):
    return result not in (None, "OK", "SKIP", "EXPECTEDFAIL")


def tally(folders, unbuilt, left_out):
    counts = {"passed": 0, "failed": unbuilt, "skipped": left_out}
    for folder in folders:
        cases = both(cases_of, folder)
        with_failures = {program for program, _, outcome, _ in cases if outcome == "failed"}
        broken = set()
        for program, result, where in both(programs_of, folder):
            if result is None:
                broken.add(program)
                counts["skipped"] += 1
                print(f"SKIPPED {folder}/{program}: there was no time left")
                continue
            if not is_bad(result) or program in with_failures:
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
    arguments.add_argument("--left-out", type=int, default=0, help="builds that there was no time for")
    arguments.add_argument("folders", nargs="*", type=pathlib.Path)
    arguments.add_argument("--failed", action="store_true", help="only the names of what failed")
    options = arguments.parse_args()
    if options.failed:
        for program, result, _ in programs_of(options.folders[0], "testlog"):
            if is_bad(result):
                print(program)
        return 0
    counts = tally(options.folders, options.unbuilt, options.left_out)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())

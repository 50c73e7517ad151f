#!/usr/bin/env python3
# tests/tool/unreadable_files.py -- files that cannot be checked: fsck and config check tell of each in
# their document, too, and fsck goes on with the next.
#
#   unreadable_files.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import json
import sys

from tap import case, expect_equal, main


@case("fsck: one row and one line for each")
def states(place):
    text, none = place.folder / "text", place.folder / "none"
    text.write_text("some words\n")
    said = [f"{none}: No such file or directory", f"{text}: is no state: it is some text",
            f"{place.dibs}: is no state: it is a program"]
    names = [str(none), str(text), str(place.dibs)]
    errors = "".join(f"dibs fsck: {line}\n" for line in said)
    expect_equal(place.run("fsck", *names), (1, "", errors))
    code, out, err = place.run("fsck", "-o", "json", *names)
    expect_equal((code, json.loads(out), err),
                 (1, {"schema": "dibs.fsck/1", "rows": [{"wrong": line} for line in said]}, errors))
    code, out, err = place.run("fsck", "-o", "jsonl", *names)
    expect_equal([json.loads(line)["wrong"] for line in out.splitlines()], said)


@case("config check: a mistake of the file, with no line")
def configurations(place):
    for name, why in ((str(place.dibs), "is no configuration: it is a program"),
                      ("/no/such", "cannot be read: No such file or directory")):
        code, out, err = place.run("config", "check", "-o", "json", name)
        expect_equal((code, json.loads(out)),
                     (1, {"schema": "dibs.config/1", "file": name, "pools": 0, "mistakes": 1,
                          "found": [{"file": name, "line": None, "column": None, "text": why}]}))
        expect_equal(err.removeprefix("dibs config: "), f"{name}: {why}\n")


if __name__ == "__main__":
    main(sys.argv)

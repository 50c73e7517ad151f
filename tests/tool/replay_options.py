#!/usr/bin/env python3
# tests/tool/replay_options.py -- options of dibs replay that go without each other.
#
#   replay_options.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import json
import os
import sys

from tap import case, expect, expect_equal, main

APART = (("--binary", "--json"), ("--to-binary", "--to-json"), ("--check", "--to-binary"),
         ("--check", "--to-json"), ("--check", "--final-state"), ("--check", "--turns"),
         ("--to-binary", "--final-state"), ("--to-binary", "--turns"), ("--to-json", "--final-state"),
         ("--to-json", "--turns"))


@case("two that contradict each other: 2, and nothing is read or written")
def contradictory(place):
    for one, other in APART:
        words = []
        for option in (other, one):  # in any order
            words += [option, "target"] if option.startswith("--to-") else [option]
        expect_equal(place.run("replay", *words, "/no/such", cwd=place.folder),
                     (2, "", f"dibs replay: {one} goes without {other}: each says what is done with "
                             "the journal\n"))
    expect_equal(os.listdir(place.folder), [])


@case("the others go together")
def together(place):
    journal = place.folder / "j.jsonl"
    journal.write_text("# nothing yet\n")
    for words in (["--final-state", "--turns"], ["--json", "--turns"],
                  ["--json", "--to-binary", str(place.folder / "j.djn")]):
        expect_equal(place.run("replay", *words, str(journal))[0::2], (0, ""))


@case("a journal of a few bytes takes no more memory than it may")
def bounded(place):
    journal = place.folder / "j.jsonl"
    journal.write_text('{"limits":{"claims":4000000000}}\n{"turn":{}}\n')
    code, out, err = place.run("replay", str(journal))
    expect_equal((code, out), (1, ""))
    expect(err.startswith(f"{journal}:1: with this line the journal needs "), err)
    expect(err.endswith("MiB of rows, more than 512MiB: --memory-max SIZE allows more\n"), err)
    journal.write_text('{"limits":{"claims":200000}}\n{"turn":{}}\n')
    code, out, err = place.run("replay", "--memory-max", "32MiB", str(journal))
    expect_equal((code, out), (1, ""))
    expect(err.endswith("MiB of rows, more than 32MiB: --memory-max SIZE allows more\n"), err)
    expect_equal(place.run("replay", "--memory-max", "2GiB", str(journal)), (0, "", ""))
    expect_equal(place.run("replay", "--memory-max", "much", str(journal)),
                 (2, "", 'dibs replay: --memory-max: "much" is no size such as 2GiB\n'))


@case("a recording of a few bytes takes no more memory than it may")
def bounded_recording(place):
    place.start('[[pool]]\nname = "gpu"\nkind = "counted"\nslots = 1\n')
    snapshot = place.folder / "s.snap"
    expect_equal(place.run("dump", str(snapshot)), (0, "", ""))
    journal = place.folder / "j.jsonl"
    journal.write_text(json.dumps({"state": {"snapshot": list(snapshot.read_bytes())}}) + "\n")
    expect_equal(place.run("replay", str(journal)),
                 (1, "", f"{journal}:1: the recording was cut: it has no end behind turn 0\n"))
    for options in ([], ["--check"]):
        code, out, err = place.run("replay", *options, "--memory-max", "4MiB", str(journal))
        expect_equal((code, out), (1, ""))
        expect(err.startswith(f"{journal}:1: the snapshot needs "), err)
        expect(err.endswith("MiB of rows, more than 4MiB: --memory-max SIZE allows more\n"), err)



if __name__ == "__main__":
    main(sys.argv)

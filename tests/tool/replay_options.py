#!/usr/bin/env python3
# tests/tool/replay_options.py -- options of dibs replay that go without each other.
#
#   replay_options.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import os
import sys

from tap import case, expect_equal, main

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


if __name__ == "__main__":
    main(sys.argv)

#!/usr/bin/env python3
# tests/tool/typed_words.py -- words that a terminal would obey, names that cannot be, and one of a kind.
#
#   typed_words.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import re
import subprocess
import sys

from holding import POOLS
from tap import case, expect, expect_equal, main

ESCAPE = "x\x1b[31m"


@case("no message has a control character of what was typed")
def obeyed(place):
    place.start(POOLS)
    for words in ([ESCAPE], [f"--{ESCAPE}"], ["ls", ESCAPE], ["show", ESCAPE], ["ls", f"--{ESCAPE}"],
                  ["ls", "pools", ESCAPE], ["status", "-o", ESCAPE], ["claim", "gpu", "-t", ESCAPE],
                  ["exec", "gpu", "-P", ESCAPE, "--", "true"], ["exec", ESCAPE, "--", "true"],
                  ["exec", "gpu", "--", ESCAPE], ["worker", ESCAPE, "--", "true"],
                  ["replay", f"/no/{ESCAPE}"], ["config", "check", f"/no/{ESCAPE}"],
                  ["dump", f"/no/{ESCAPE}"], ["load", f"/no/{ESCAPE}"], ["fsck", f"/no/{ESCAPE}"],
                  ["record", f"/no/{ESCAPE}"], ["account", ESCAPE], ["demo", "--trace", f"/no/{ESCAPE}"],
                  ["demo", "--format", ESCAPE], ["drain", ESCAPE]):
        code, out, err = place.run(*words)
        expect(code in (1, 2, 4, 127) and "x?[31m" in err and "\x1b" not in err + out, (words, out, err))
    for words in ([ESCAPE], [f"--{ESCAPE}"], ["--state-fd", ESCAPE]):
        ended = subprocess.run([place.dibsd, *words], capture_output=True, text=True, timeout=60,
                               check=False)
        expect(ended.returncode == 2 and "x?[31m" in ended.stderr and "\x1b" not in ended.stderr,
               ended.stderr)


@case("names with control characters: 2, whatever they are of")
def names(place):
    place.start(POOLS)
    for words, where in ((["account", "set", "a\tb", "--rate", "1"], "NAME"),
                         (["claim", "gpu", "--account", "a\tb"], "--account"),
                         (["exec", "gpu", "--account", "a\tb", "--", "true"], "--account"),
                         (["report", "idle", "web", "a\tb"], "WORKER"), (["pull", "web", "a\tb"], "WORKER"),
                         (["worker", "web", "--name", "a\tb", "--", "true"], "--name")):
        expect_equal(place.run(*words),
                     (2, "", f'dibs {words[0]}: {where}: "a?b" has control characters\n'))


@case("a variable that no program can ask for is none")
def variables(place):
    place.start(POOLS)
    for name in ("A B", "1A", "A-B", "\u00c4"):
        expect_equal(place.run("exec", "gpu", "--env", f"{name}=device", "--", "true"),
                     (2, "", f"dibs exec: --env {name}=device: a variable's name has letters, digits "
                             'and "_", and no digit first\n'))
    expect_equal(place.run("exec", "gpu", "--env", "A=", "--", "true"),
                 (2, "", "dibs exec: --env A=: write VARIABLE=ATTRIBUTE\n"))
    expect_equal(place.run("exec", "gpu", "--env", "_a1=device", "--", "sh", "-c", "echo $_a1")[0::2],
                 (0, ""))


@case("one of a kind is not several")
def one(place):
    config = place.folder / "one.toml"
    config.write_text('[[pool]]\nname = "gpu"\nkind = "counted"\nslots = 0\n'
                      'attributes = [{ device = "0" }]\n')
    err = place.run("config", "check", str(config))[2]
    expect("attributes: for 1 slot, but the pool has 0" in err, err)
    place.start(POOLS)
    out = place.run("fsck")[1]
    expect(re.search(r"(: 1 slice,)|( ([2-9]|\d\d+) slices,)", out), out)


if __name__ == "__main__":
    main(sys.argv)

#!/usr/bin/env python3
# tests/tool/numbers.py -- options of both programs that take a whole number: none wraps around.
#
#   numbers.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import subprocess
import sys

from tap import case, expect_equal, main

MOST = 2**63 - 1
UNFIT = ("-1", "99999999999999999999", "", "3x", "+3", " 3", "0x3", "1.5")


@case("what is no number in the range is not taken: 2, with the option, the text and the range")
def unfit(place):
    behind = ["--", "true"]
    for words, option, last, least, most in (
            (["exec", "gpu"], "-P", behind, 0, 2**31 - 1),
            (["exec", "gpu"], "--priority", behind, 0, 2**31 - 1),
            (["exec", "gpu"], "--conflict-exit", behind, 0, 255),
            (["claim", "gpu"], "-P", [], 0, 2**31 - 1), (["events"], "--count", [], 1, MOST),
            (["bench", "gpu"], "--claims", [], 1, 10**7),
            (["worker", "web"], "--uses-max", behind, 0, MOST),
            (["worker", "web"], "--tries-max", behind, 0, MOST),
            (["worker", "web"], "--line-max", behind, 1, 2**30),
            (["account", "set", "web"], "--fanout-max", [], 0, 65535)):
        name = {"-P": "--priority"}.get(option, option)
        command = "dibs account set" if words[0] == "account" else f"dibs {words[0]}"
        for text in (*UNFIT, str(most + 1), *(["0"] if least else [])):
            expect_equal(place.run(*words, option, text, *last),
                         (2, "", f'{command}: {name}: "{text}" is not a number from {least} to {most}\n'
                                 f"See {command} --help.\n"))
    for text in (*UNFIT, "0"):
        expect_equal(place.run("exec", "gpu", "--create", f"gpu={text}", *behind),
                     (2, "", f'dibs exec: --create gpu={text}: "{text}" is not a number from 1 to '
                             "1048576\n"))
        expect_equal(place.run("demo", "--slots", text)[:2], (2, ""))


@case("the daemon's descriptors, too")
def descriptors(place):
    for option in ("--state-fd", "--ready-fd", "--link", "--keep"):
        for text in (*UNFIT, str(2**31)):
            ended = subprocess.run([place.dibsd, option, text], capture_output=True, text=True,
                                   timeout=60, check=False)
            expect_equal((ended.returncode, ended.stdout, ended.stderr),
                         (2, "", f'dibsd: {option}: "{text}" is not a number from 0 to 2147483647\n'
                                 "See dibsd --help.\n"))


@case("the ends of a range are taken: nobody is there to say more")
def fit(place):
    behind = ["--", "true"]
    for words in (["exec", "gpu", "-P", "2147483647", "-E", "255", *behind],
                  ["events", "--count", str(MOST)], ["bench", "gpu", "-c", "10000000"],
                  ["worker", "web", "--uses-max", str(MOST), "--line-max", "1", *behind],
                  ["account", "set", "web", "--fanout-max", "65535"]):
        expect_equal(place.run(*words)[0], 3)


if __name__ == "__main__":
    main(sys.argv)

#!/usr/bin/env python3
# tests/tool/strict_expiry.py -- a command in a pool of strict expiry: the broker kills it where its
# lease is not kept alive, and dibs exec says so.
#
#   strict_expiry.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import signal
import sys

from tap import case, expect_equal, main

POOL = '[[pool]]\nname = "one"\nkind = "counted"\nslots = 1\nexpiry = "strict"\n'


@case("a command that is stopped is killed: 125, and why")
def expired(place):
    place.start(POOL)
    expect_equal(place.run("exec", "one", "--keepalive", "50ms", "--", "sh", "-c", "kill -STOP $$"),
                 (125, "", 'dibs exec: the lease of pool "one" is lost (it was not kept alive for '
                           "50ms): the command was killed\n"))
    expect_equal(place.run("exec", "one", "--timeout", "1min", "--", "true"), (0, "", ""))


@case("a command that somebody else kills ends as it is killed")
def killed(place):
    place.start(POOL)
    for words in ([], ["--keepalive", "1h"]):
        expect_equal(place.run("exec", "one", *words, "--", "sh", "-c", "kill -KILL $$"),
                     (-signal.SIGKILL, "", ""))


if __name__ == "__main__":
    main(sys.argv)

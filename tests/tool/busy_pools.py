#!/usr/bin/env python3
# tests/tool/busy_pools.py -- pools whose configuration says what a claim does that finds nothing idle:
# the tool says otherwise only where it is asked to.
#
#   busy_pools.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import sys

from holding import hold, waiting
from tap import case, expect, expect_equal, main

POOLS = "".join(f'[[pool]]\nname = "{word}"\nkind = "counted"\nslots = 1\nwhen_busy = "{word}"\n'
                for word in ("wait", "reject", "cold"))


@case("without --timeout and --now a claim waits or not as its pool says")
def as_configured(place):
    place.start(POOLS)
    holders = {pool: hold(place, pool)[0] for pool in ("wait", "reject", "cold")}
    for pool in ("reject", "cold"):
        for words in (["exec", pool, "--", "true"], ["claim", pool]):
            code, out, err = place.run(*words)
            expect_equal((code, out), (75, ""))
            expect(err.startswith(f'dibs {words[0]}: did not get a slot of pool "{pool}": '), err)
    for pool in ("wait", "reject", "cold"):
        expect_equal(place.run("exec", pool, "-t", "1ms", "--", "true")[0], 124)
        expect_equal(place.run("exec", pool, "--now", "--", "true")[0], 75)
    waiter = place.begin("exec", "wait", "--", "true")
    waiting(place, 1)
    holders["wait"].terminate()
    expect_equal(waiter.wait(timeout=60), 0)


if __name__ == "__main__":
    main(sys.argv)

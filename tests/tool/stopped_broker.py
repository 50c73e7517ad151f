#!/usr/bin/env python3
# tests/tool/stopped_broker.py -- a broker that is there and says nothing: every command ends, says so,
# and does not ask for another one to be started.
#
#   stopped_broker.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import sys

from holding import POOLS, hold, waiting
from tap import case, expect, expect_equal, main, stop


def silent(place, word):
    return (f"dibs {word}: the broker at {place.socket} does not answer: it is there, but stopped, or "
            "too busy\n")


@case("a broker that is stopped is said to be: 3, after as long as for a slot")
def stopped(place):
    stop(place.start(POOLS))
    commands = (["exec", "gpu", "-t", "1ms", "--", "true"], ["exec", "gpu", "--now", "--", "true"],
                ["exec", "new", "--create", "new=1", "--now", "--", "true"],
                ["exec", "gpu", "--", "true"], ["exec", "gpu", "-t", "1h", "--", "true"],
                ["claim", "gpu", "-n"], ["claim", "gpu", "-t", "1ms"], ["claim", "gpu"], ["status"],
                ["ls", "pools"], ["snapshot", "gpu"], ["events"], ["dump", "-"], ["version"],
                ["worker", "web", "--", "cat"])
    children = [(words[0], place.begin(*words)) for words in commands]
    for word, child in children:
        out, err = child.communicate(timeout=60)
        if word == "version":  # which needs none
            continue
        expect_equal((child.returncode, out, err), (3, "", silent(place, word)))


@case("--now ends while others have patience yet")
def now(place):
    stop(place.start(POOLS))
    patient = place.begin("exec", "gpu", "--", "true")
    expect_equal(place.run("exec", "gpu", "--now", "--", "true"), (3, "", silent(place, "exec")))
    expect(patient.poll() is None, "the patient one has ended before")


@case("a broker that is stopped while a claim waits: the timeout ends it")
def waits(place):
    broker = place.start(POOLS)
    hold(place, "gpu:2")
    child = place.begin("exec", "gpu", "-t", "5s", "--", "true")
    waiting(place, 1)
    stop(broker)
    out, err = child.communicate(timeout=60)
    expect_equal((child.returncode, out), (124, ""))
    expect(err.startswith('dibs exec: did not get a slot of pool "gpu": the time of 5s has passed'),
           err)


if __name__ == "__main__":
    main(sys.argv)

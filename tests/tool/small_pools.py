#!/usr/bin/env python3
# tests/tool/small_pools.py -- claims of more slots than their pool of workers has: what explain says.
#
#   small_pools.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import json
import sys

from holding import hold, waiting
from tap import case, expect_equal, main

WEB = '[[pool]]\nname = "web"\nkind = "worker"\nunits_max = 8\n'


def workers(place, count):
    child = place.begin("worker", f"web:{count}", "--lines", "none", "--", "sleep", "1000")
    child.stderr.readline()


def explained(place, claim):
    told = json.loads(place.run("explain", f"c{claim}", "-o", "json")[1])
    return told["obstacle"], told["sentence"]


@case("workers must announce more, since nothing that is given back is enough")
def too_few(place):
    place.start(WEB)
    workers(place, 2)
    place.begin("claim", "web:3")
    waiting(place, 1)
    few = "Pool web has 2 slots, and it wants 3. Workers must announce more."
    expect_equal(explained(place, 1), ("units", few))
    place.begin("claim", "web")
    waiting(place, 2)
    expect_equal(explained(place, 2),
                 ("units", "1 claim stands before it. Only 2 slots of web are idle, too few for the "
                           "first in line. The pool has no more. Workers must announce more, or that "
                           "claim must end."))


@case("also while those that there are are held")
def held(place):
    place.start(WEB)
    workers(place, 1)
    hold(place, "web")
    place.begin("claim", "web:2")
    waiting(place, 1)
    expect_equal(explained(place, 2),
                 ("held", "Pool web has 1 slot, and it wants 2. Workers must announce more."))


@case("where there are enough, more must be given back")
def enough(place):
    place.start(WEB)
    workers(place, 3)
    hold(place, "web")
    place.begin("claim", "web:3")
    waiting(place, 1)
    reason, sentence = explained(place, 2)
    expect_equal((reason, sentence.split(". ")[0], sentence.split(". ")[-1]),
                 ("units", "Only 2 slots of web are idle, too few for the first in line",
                  "More must be given back."))


if __name__ == "__main__":
    main(sys.argv)

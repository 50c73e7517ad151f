#!/usr/bin/env python3
# tests/tool/policies.py -- what a policy refuses: 5, what was refused and to whom, and which key of the
# configuration it is.
#
#   policies.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import os
import pwd
import sys

from holding import POOLS
from tap import case, expect_equal, main

ONLY_GPU = POOLS + """
[[pool]]
name = "other"
kind = "counted"
slots = 1
[[policy]]
default = true
pools = ["gpu"]
priority_max = 3
"""
SAYS = "[[policy]] in dibsd's configuration says so"


@case("claims from other pools and with other priorities, and slots in other pools")
def refused(place):
    place.start(ONLY_GPU)
    user = f"user {pwd.getpwuid(os.geteuid()).pw_name} may not"
    for words in (["exec", "other", "--", "true"], ["claim", "other"]):
        expect_equal(place.run(*words),
                     (5, "", f'dibs {words[0]}: did not get a slot of pool "other": {user} claim from '
                             f"this pool: {SAYS} (pools)\n"))
    expect_equal(place.run("exec", "gpu", "-P", "3", "--", "true"), (0, "", ""))
    expect_equal(place.run("exec", "gpu", "-P", "4", "--", "true"),
                 (5, "", f'dibs exec: did not get a slot of pool "gpu": {user} claim from this pool, or '
                         f"not with priority 4: {SAYS} (pools, priority_max)\n"))
    expect_equal(place.run("bench", "other"),
                 (5, "", f"dibs bench: {user} claim from this pool: {SAYS} (pools)\n"))
    expect_equal(place.run("worker", "web", "--lines", "none", "--name", "w", "--", "sleep", "1000"),
                 (5, "", f'dibs worker: cannot announce w-0: {user} offer slots of pool "web": {SAYS} '
                         "(offers)\n"))


if __name__ == "__main__":
    main(sys.argv)

#!/usr/bin/env python3
# tests/tool/policies.py -- what a policy refuses: 5, what was refused and to whom, and which key of the
# configuration it is.
#
#   policies.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import os
import pwd
import sys

from holding import POOLS, hold, wait_until, waiting
from tap import Skip, case, expect, expect_equal, main

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
NAME = pwd.getpwuid(os.geteuid()).pw_name
SAYS = "[[policy]] in dibsd's configuration says so"


@case("claims from other pools and with other priorities, and slots in other pools")
def refused(place):
    place.start(ONLY_GPU)
    user = f"user {NAME} may not"
    for words in (["exec", "other", "--", "true"], ["claim", "other"]):
        expect_equal(place.run(*words),
                     (5, "", f'dibs {words[0]}: did not get a slot of pool "other": {user} claim from '
                             f"this pool: {SAYS} (pools)\n"))
    expect_equal(place.run("exec", "gpu", "-P", "3", "--", "true"), (0, "", ""))
    expect_equal(place.run("exec", "gpu", "-P", "4", "--", "true"),
                 (5, "", f'dibs exec: did not get a slot of pool "gpu": policy of user {NAME}: '
                         "priority_max = 3: the claim has priority 4\n"))
    expect_equal(place.run("bench", "other"),
                 (5, "", f"dibs bench: {user} claim from this pool: {SAYS} (pools)\n"))
    expect_equal(place.run("worker", "web", "--lines", "none", "--name", "w", "--", "sleep", "1000"),
                 (5, "", f'dibs worker: cannot announce w-0: {user} offer slots of pool "web": {SAYS} '
                         "(offers)\n"))


@case("more leases and more waiting claims than a policy's numbers: 6, the key and its number")
def bounded(place):
    for key, holds, said in (("leases", 2, "leases = 2: 2 are held or waited for already"),
                             ("backlog", 3, "backlog = 3: 3 claims wait already"),
                             ("backlog", 1, "backlog = 1: 1 claim waits already")):
        broker = place.start(POOLS + f"[[policy]]\ndefault = true\n{key} = {int(said.split()[2][:-1])}\n")
        if key == "leases":
            for _ in range(holds):
                hold(place, "gpu")
        else:
            hold(place, "gpu:2")
            for _ in range(holds):
                place.begin("exec", "gpu", "--", "true")
            waiting(place, holds)
        for words in (["exec", "gpu", "--", "true"], ["claim", "gpu"]):
            expect_equal(place.run(*words),
                         (6, "", f'dibs {words[0]}: did not get a slot of pool "gpu": policy of user {NAME}: {said}\n'))
        place.close()
        broker.wait()


@case("slots, label sets and bytes of the arena beyond a policy's numbers, which bind no other user")
def tables(place):
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    place.folder.chmod(0o755)
    another = {"user": 61001, "group": 61001, "extra_groups": []}
    policy = "policy of user 61001: "
    place.start('socket_mode = "0666"\n[[pool]]\nname = "web"\nkind = "worker"\n'
                '[[pool]]\nname = "box"\nkind = "counted"\nslots = 2\norder = "account"\n'
                '[[policy]]\nuser = 61001\noffers = ["web"]\nslots = 1\nlabel_sets = 0\narena = "1KiB"\n')
    words = ["worker", "web:2", "--lines", "none", "--"]
    limited = place.begin(*words, "sleep", "1000", **another)
    expect("user 61001 has as many slots, label sets or bytes of attributes as it may: by its [[policy]] (slots, "
           "label_sets, arena)" in next(line for line in limited.stderr if "cannot announce" in line), "why")
    expect_equal(place.run("exec", "box", "-l", "new", "-t", "100ms", "--", "true", **another),
                 (6, "", f'dibs exec: did not get a slot of pool "box": {policy}label_sets = 0: a claim with new labels '
                         "needs one more than its claims, leases and slots\n"))
    code, _, err = place.run("call", "web", "x" * 2000, "-t", "10s", **another)
    expect_equal(code, 6)
    expect(f"{policy}arena = 1024: its payloads and attributes leave fewer bytes than the claim brings" in err, err)
    # Root has no such policy.
    expect_equal(place.run("exec", "box", "-l", "new", "-t", "100ms", "--", "true")[0], 124)
    place.begin(*words, "sleep", "1001")
    wait_until(place, ("ls", "slots", "-o", "jsonl"), lambda rows: sum(row["pool"] == "web" for row in rows) == 3)


@case("a claim for another account, which takes an administrator")
def account_of_others(place):
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    place.folder.chmod(0o755)
    place.start('socket_mode = "0666"\n[[pool]]\nname = "box"\nkind = "counted"\nslots = 1\norder = "account"\n'
                '[[account]]\nname = "rich"\nrate = 1\n')
    code, out, err = place.run("exec", "box", "--account", "rich", "--", "true", user=61001, group=61001,
                               extra_groups=[])
    expect_equal((code, out, err),
                 (5, "", 'dibs exec: did not get a slot of pool "box": user 61001 may not have account "rich" pay, '
                         f"which administrators may: {SAYS} (account)\n"))


@case("a label where nobody would read it is refused, and which pools match labels is said")
def labels(place):
    place.start(POOLS + '[[pool]]\nname = "box"\nkind = "counted"\nslots = 1\norder = "account"\n'
                'share = "equal"\n')
    for words in (["exec", "gpu", "-l", "a100", "--", "true"], ["claim", "gpu", "-l", "a100"]):
        expect_equal(place.run(*words),
                     (6, "", f'dibs {words[0]}: did not get a slot of pool "gpu": it is a counted pool that is not '
                             'ordered by account, where nobody reads labels: order = "account" in its [[pool]] matches '
                             'them, and workers (kind = "worker") are handed them\n'))
    code, _, err = place.run("exec", "box", "-l", "a100", "-t", "2s", "--", "true")
    expect_equal(code, 124)
    expect('no slot has the label "a100"' in err, err)


if __name__ == "__main__":
    main(sys.argv)

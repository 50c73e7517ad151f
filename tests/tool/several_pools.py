#!/usr/bin/env python3
# tests/tool/several_pools.py -- commands that want slots of several pools at once.
#
#   several_pools.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import signal
import sys

from holding import hold, wait_until
from tap import case, expect, expect_equal, main

CONFIG = """
[[pool]]
name = "gpu"
kind = "counted"
slots = 2
attributes = [{ device = "a" }, { device = "b" }]
[[pool]]
name = "port"
kind = "counted"
slots = 1
attributes = [{ number = "8080" }]
[[pool]]
name = "ordered"
kind = "counted"
slots = 1
order = "priority"
"""


@case("exec has the slots of all its pools, and each pool's in variables of its own")
def takes(place):
    place.start(CONFIG)
    script = ("sh", "-c", "echo $DIBS_PARTS $DIBS_POOL $DIBS_SLOT $DIBS_FENCE $DIBS_ATTR_DEVICE "
                          "$DIBS_POOL_2 $DIBS_SLOT_2 $DIBS_FENCE_2 $DIBS_ATTR_NUMBER_2; "
                          "test $DIBS_LEASE != $DIBS_LEASE_2")
    expect_equal(place.run("exec", "gpu:2", "port:1", "--", *script),
                 (0, "2 gpu 0,1 1 a,b port 0 1 8080\n", ""))
    # A command in a command has nothing of the outer one's.
    code, out, _ = place.run("exec", "gpu", "port", "--", place.dibs, "exec", "gpu", "--", "sh", "-c",
                             "echo $DIBS_POOL-$DIBS_POOL_2-$DIBS_ATTR_NUMBER_2-$DIBS_PARTS")
    expect_equal((code, out), (0, "gpu---\n"))


@case("exec waits for all of them, holds none meanwhile, and says what it did not get")
def waits(place):
    place.start(CONFIG)
    holder, _ = hold(place, "port")
    code, _, err = place.run("exec", "gpu:2", "port", "--now", "--", "true")
    expect_equal(code, 75)
    expect(err.startswith('dibs exec: did not get 2 slots of pool "gpu" and a slot of pool "port": '), err)
    waiter = place.begin("exec", "gpu:2", "port", "--", "sh", "-c", "echo $DIBS_SLOT_2")
    wait_until(place, ("ls", "claims", "-o", "jsonl"), lambda claims: len(claims) == 2)
    wait_until(place, ("ls", "pools", "--pool", "gpu", "-o", "jsonl"), lambda pools: pools[0]["leased"] == 0)
    holder.send_signal(signal.SIGTERM)
    expect_equal(waiter.communicate(), ("0\n", ""))


@case("pools that cannot be had so are named")
def refuses(place):
    place.start(CONFIG)
    code, _, err = place.run("exec", "gpu:1", "gpu:1", "--", "true")
    expect_equal((code, err), (2, 'dibs exec: pool "gpu" is named twice: write gpu:N for N of its slots\n'))
    code, _, err = place.run("exec", "gpu", "prot", "--", "true")
    expect_equal(code, 4)
    expect('"prot"' in err and "port" in err, err)
    code, _, err = place.run("exec", "gpu", "ordered", "--", "true")
    expect_equal(code, 2)
    expect("takes no claims over several" in err, err)
    code, _, err = place.run("exec", "gpu:200", "port:100", "--", "true")
    expect_equal((code, err), (2, "dibs exec: 300 slots in all: one claim has at most 256\n"))


@case("what refuses such a claim is named: a pool that drains, one that has fewer slots")
def names_what_refuses(place):
    place.start(CONFIG)
    code, _, err = place.run("exec", "gpu:2", "port:2", "--", "true")
    expect_equal(code, 6)
    expect('too many at once; pool "port" has 1 and gives one claim at most' in err, err)
    expect_equal(place.run("drain", "port")[0], 0)
    code, _, err = place.run("exec", "gpu", "port", "--", "true")
    expect_equal(code, 75)
    expect('pool "port" drains and takes no new claims; dibs undrain port ends that' in err, err)


@case("claim and call are for one pool, and say what is for several")
def one_pool(place):
    place.start(CONFIG)
    several = "dibs exec POOL:N POOL:N -- COMMAND has slots of several"
    expect_equal(place.run("claim", "gpu:2", "port:1"),
                 (2, "", f'dibs claim: "port:1" is a word too many: it claims of one pool; {several}\n'
                         "See dibs claim --help.\n"))
    expect_equal(place.run("call", "gpu", "port", "body"),
                 (2, "", f'dibs call: "body" is a word too many: it asks one worker; {several} pools\n'
                         "See dibs call --help.\n"))


@case("a user's limits count such a claim once for each pool, and its pools are those it may name")
def counts(place):
    place.start(CONFIG + '[[policy]]\ndefault = true\nleases = 2\npools = ["gpu", "port"]\n')
    expect_equal(place.run("exec", "gpu", "port", "--", "true"), (0, "", ""))
    holder, _ = hold(place, "gpu")
    code, _, err = place.run("exec", "gpu", "port", "--", "true")
    expect_equal(code, 6)
    expect("leases = 2" in err, err)
    expect_equal(place.run("exec", "gpu", "--", "true"), (0, "", ""))
    holder.send_signal(signal.SIGTERM)
    wait_until(place, ("ls", "leases", "-o", "jsonl"), lambda leases: len(leases) == 0)
    code, _, err = place.run("exec", "gpu", "ordered", "--", "true")
    expect_equal(code, 5)
    expect("pools" in err, err)


if __name__ == "__main__":
    main(sys.argv)

#!/usr/bin/env python3
# tests/tool/sharing.py -- the files of docs/gpus.md: users who are not named are treated alike.
#
#   sharing.py DIBSD DIBS [PART]     speaks TAP; as root
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import re
import sys

from holding import wait_until
from tap import Skip, case, expect, expect_equal, main

PAGE = (pathlib.Path(__file__).resolve().parents[2] / "docs/gpus.md").read_text()
BLOCKS = dict(re.findall(r"^```toml\n# ([\w-]+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
A, B, C = 60001, 60002, 60003


def start(place, file):
    if os.geteuid() != 0:
        raise Skip("only root can claim as several users")
    config = file.replace('socket_mode = "0660"', 'socket_mode = "0666"')
    place.folder.chmod(0o755)
    return place.start(config)


def rows(place, what):
    return [json.loads(line) for line in place.run("ls", what, "-o", "jsonl")[1].splitlines()]


def account(place, uid):
    return json.loads(place.run("account", "show", f"uid:{uid}", "-o", "json")[1])


def claim(place, pool, uid):
    return place.begin("claim", pool, "--timeout", "1h", "-o", "json", user=uid)


def await_count(place, what, count):
    return wait_until(place, ("ls", what, "-o", "jsonl"), lambda found: len(found) == count)


def holders(place):
    return sorted(row["account"] for row in rows(place, "leases"))


def rates():
    """The file of the second section: the first one's, with rates in place of the equal share."""
    return BLOCKS["gpus"].replace('share = "equal"\n', "") + BLOCKS["rates"]


@case("the files that docs/gpus.md calls complete are so, and what it adds to the first one fits there")
def complete(place):
    more = rates() + BLOCKS["more"].replace("alice", "root")
    for text in (BLOCKS["gpus"], BLOCKS["by-memory"], BLOCKS["ci"], rates(), more):
        file = place.folder / "dibs.toml"
        file.write_text(text)
        expect_equal(place.run("config", "check", str(file))[0::2], (0, ""))


@case("four GPUs, three users: what comes back goes to who has less")
def gpus(place):
    start(place, BLOCKS["gpus"])
    share(place)


@case("the same with rates: who has spent what he had waits behind the others")
def saved(place):
    start(place, rates())
    share(place)


def share(place):
    """A has all and wants more; what comes back goes to B and C."""
    held = []
    for count in range(1, 5):
        held.append(claim(place, "gpu", A))
        await_count(place, "leases", count)
    for count in range(1, 4):
        claim(place, "gpu", A)
        await_count(place, "claims", count)
    claim(place, "gpu", B)
    claim(place, "gpu", C)
    await_count(place, "claims", 5)
    while account(place, A)["balance_micros"][0] > 0:  # what it had before the others came is spent
        pass
    for left in (4, 3):
        held[left - 3].terminate()
        held[left - 3].wait()
        await_count(place, "claims", left)
    expect_equal(holders(place), [f"uid:{A}", f"uid:{A}", f"uid:{B}", f"uid:{C}"])


@case("another file changes what each user has, and one who is named has his own")
def more(place):
    broker = start(place, rates())
    claim(place, "gpu", A)
    await_count(place, "leases", 1)
    expect_equal(account(place, A)["rate_micros"][0], 1333333)
    more_of = BLOCKS["more"].replace('"alice"', str(C))
    place.reload(broker, rates().replace('"0660"', '"0666"').replace("1.333333", "1") + more_of)
    while account(place, A)["rate_micros"][0] != 1000000:
        expect_equal(broker.poll(), None)
    claim(place, "gpu", C)
    await_count(place, "leases", 2)
    expect_equal(holders(place), ["research", f"uid:{A}"])


@case("a CI host: two jobs of each user run, the rest waits, though slots are idle")
def jobs(place):
    start(place, BLOCKS["ci"])
    jobs_of_a = [claim(place, "heavy", A) for _ in range(5)]
    await_count(place, "leases", 2)
    await_count(place, "claims", 3)
    claim(place, "heavy", B)
    await_count(place, "leases", 3)
    expect_equal(holders(place), [f"uid:{A}", f"uid:{A}", f"uid:{B}"])
    running = {row["pid"] for row in rows(place, "leases")}
    done = next(job for job in jobs_of_a if job.pid in running)
    done.terminate()
    done.wait()
    await_count(place, "claims", 2)
    expect_equal(holders(place), [f"uid:{A}", f"uid:{A}", f"uid:{B}"])


@case("an account that is wanted takes nobody's place who is there, and the refused claim is told why")
def full(place):
    start(place, BLOCKS["gpus"] + "[limits]\naccounts = 2\n")
    claim(place, "gpu", A)
    job_of_b = claim(place, "gpu", B)
    await_count(place, "leases", 2)
    code, out, err = place.run("exec", "gpu", "--timeout", "1h", "--", "true", user=C)
    expect_equal((code, out), (6, ""))
    expect(f"the broker's tables are full; all 2 accounts are in use, and uid:{C} is none of them "
           "(limits.accounts in dibsd's configuration)" in err, err)
    expect(min(account(place, uid)["rate_micros"][0] for uid in (A, B)) > 0, rows(place, "leases"))
    job_of_b.terminate()
    job_of_b.wait()
    await_count(place, "clients", 1)
    expect_equal(place.run("exec", "gpu", "--timeout", "1h", "--", "true", user=C)[0], 0)


if __name__ == "__main__":
    main(sys.argv)

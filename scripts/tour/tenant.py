# scripts/tour/tenant.py -- one tenant: so many claims at once, each held for so long, working and
# resting in turn; a line for each grant, and the sum at the end. Ends when its input does.
# SPDX-License-Identifier: Apache-2.0
import asyncio
import collections
import json
import random
import sys
import time

import dibs
import dibs.aio

OUTCOMES = collections.Counter()


async def use_slots(client, hold, rest, ending):
    started = time.monotonic()
    while not ending.is_set():
        if rest and (time.monotonic() - started) // rest % 2:
            await asyncio.sleep(0.1)
            continue
        OUTCOMES["submitted"] += 1
        before = time.monotonic_ns()
        try:
            async with client.claim("work", timeout=30) as lease:
                print(json.dumps({"wait_ns": time.monotonic_ns() - before}), flush=True)
                await asyncio.sleep(hold * random.uniform(0.5, 1.5))
            OUTCOMES["lost" if lease.ended_by else "granted"] += 1
        except dibs.Expired:
            OUTCOMES["expired"] += 1
        except dibs.Error as error:
            OUTCOMES[error.name] += 1
        await asyncio.sleep(hold * random.uniform(0, 0.5))


async def main(claims, hold, rest):
    ending = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin, ending.set)
    async with await dibs.aio.connect(timeout=10) as client:
        await asyncio.gather(*(use_slots(client, hold, rest, ending) for _ in range(claims)))
    print(json.dumps({"outcomes": OUTCOMES}), flush=True)


asyncio.run(main(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])))

# scripts/tour/incidents.py -- what goes wrong on a good day: each incident is made to happen, and says
# whether what must hold did hold, and how long it took. Times are told, never judged.
# SPDX-License-Identifier: Apache-2.0
import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
import time

import dibs
import dibs.aio
import dibs.errors

from stage import DIBS, SHARES, eventually

HOLDER = ("import dibs, sys\n"
          "client = dibs.connect(timeout=10)\n"
          "lease = client.claim('solo')\n"
          "print('held', flush=True)\n"
          "sys.stdin.read()\n")


def shown(ns):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"


def holder():
    """A process that holds the one slot of `solo`, as long as this one lives."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, start_new_session=True)
    process.stdout.readline()
    return process


def client_killed(stage):
    """A client is killed while it holds a lease"""
    held = holder()
    killed = []

    def kill():
        stage.struck = time.monotonic()
        killed.append(time.monotonic_ns())
        held.kill()

    with dibs.connect(timeout=10) as client:
        threading.Timer(0.05, kill).start()
        with client.claim("solo", timeout=20):
            took = time.monotonic_ns() - killed[0]
    held.wait()
    return True, f"its slot went to who waited {shown(took)} after the kill"


def idle_worker_killed(stage):
    """An idle worker is killed"""
    with dibs.connect(timeout=10) as client:
        def use():
            with client.claim("spare", timeout=20) as lease:
                return int(lease.answer)

        victim = use()
        stage.struck = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        replaced = eventually(lambda: any(f"process {victim} was killed" in line
                                          for line in stage.crews[1].lines))
        after = {use() for _ in range(8)}
        whole = eventually(lambda: client.snapshot("spare").idle == 2)
    good = replaced and whole and victim not in after
    return good, f"handed out again: {'yes' if victim in after else 'never'}; replaced"


def deadline_passes(_stage):
    """A claim's deadline passes"""
    held = holder()
    try:
        with dibs.connect(timeout=10) as client:
            told = None
            while told is None:  # a broker that gets no CPU lets the library end the claim
                before = time.monotonic_ns()
                try:
                    client.claim("solo", timeout=0.1).release()
                    return False, "it was granted, though the slot is held"
                except dibs.Expired as error:
                    late = time.monotonic_ns() - before - 100_000_000
                    told = error.holder
            gone = eventually(lambda: client.snapshot("solo").queued == 0)
        good = told.pid == held.pid and gone and late >= 0
        return good, f"told {shown(max(late, 0))} after it, with the holder's name"
    finally:
        held.kill()
        held.wait()


def cancel_races_grant(_stage):
    """A cancel races a grant"""
    async def race():
        ends = {"granted": 0, "cancelled": 0}
        async with await dibs.aio.connect(timeout=10) as one, \
                await dibs.aio.connect(timeout=10) as other:
            for _ in range(200):
                lease = await one.claim("solo", timeout=20)

                async def wait():
                    async with other.claim("solo", timeout=20):
                        pass

                task = asyncio.create_task(wait())
                await asyncio.sleep(0)
                lease.release()
                await asyncio.sleep(random.choice((0, 0, 0.0001, 0.0005)))
                task.cancel()
                try:
                    await task
                    ends["granted"] += 1
                except asyncio.CancelledError:
                    ends["cancelled"] += 1
            lease = await one.claim("solo", timeout=20)  # nothing was left behind
            lease.release(wait=5)
            return ends

    ends = asyncio.run(race())
    with dibs.connect(timeout=10) as client:
        free = eventually(lambda: client.snapshot("solo").idle == 1)
    return free and sum(ends.values()) == 200, \
        f"200 races: {ends['cancelled']} cancelled, {ends['granted']} granted; the slot is free"


def back_pressure(_stage):
    """More claims come than may wait"""
    async def crowd():
        async with await dibs.aio.connect(timeout=10) as client:
            held = await client.claim("narrow", timeout=20)
            rejected, hints = 0, 0
            tasks = [asyncio.ensure_future(one(client)) for _ in range(10)]
            for _ in range(6):  # the others wait for the slot
                await asyncio.wait({task for task in tasks if not task.done()}, timeout=20,
                                   return_when=asyncio.FIRST_COMPLETED)
                if sum(task.done() for task in tasks) >= 6:
                    break
            eventually(lambda: client.snapshot("narrow").queued == 4)
            for task in tasks:
                if task.done() and isinstance(task.exception(), dibs.errors.BacklogFull):
                    rejected += 1
                    hints += task.exception().retry_after is not None
            held.release()
            await asyncio.gather(*tasks, return_exceptions=True)
            granted = sum(task.exception() is None for task in tasks)
            return rejected, hints, granted

    async def one(client):
        async with client.claim("narrow", timeout=20):
            pass

    rejected, hints, granted = asyncio.run(crowd())
    return (rejected, hints, granted) == (6, 6, 4), \
        f"{granted} waited and were served, {rejected} were told at once when to try again"


def broker_killed(stage):
    """The broker is killed"""
    held = holder()
    granted, gaps, stop = [], [], threading.Event()

    def wait():
        with dibs.connect(timeout=10) as client, client.claim("solo", timeout=30):
            granted.append(time.monotonic_ns())

    def tick():
        with dibs.connect(timeout=10) as client:
            last = time.monotonic_ns()
            while not stop.is_set():
                client.claim("clock", timeout=20).release()
                now = time.monotonic_ns()
                gaps.append(now - last)
                last = now

    threads = [threading.Thread(target=wait), threading.Thread(target=tick)]
    with dibs.connect(timeout=10) as client:
        for thread in threads:
            thread.start()
        ready = eventually(lambda: client.snapshot("solo").queued == 1 and len(gaps) > 100)
        before = stage.broker()
        stage.struck = time.monotonic()
        os.kill(before, signal.SIGKILL)
        follows = eventually(lambda: stage.broker() not in (None, before))
        seen = len(gaps)
        eventually(lambda: len(gaps) > seen + 100)
        now = client.snapshot("solo")
        kept = now.leased == 1 and now.queued == 1 and not granted
    held.kill()
    held.wait()
    threads[0].join()
    stop.set()
    threads[1].join()
    good = bool(ready and follows and kept and granted)
    return good, f"lease and waiting claim kept; the longest stall of a client {shown(max(gaps))}"


def urgent_claim(_stage):
    """An urgent claim takes a slot, with grace"""
    granted = []

    def claim():
        with dibs.connect(timeout=10) as client, \
                client.claim("shared", timeout=20, terms=dibs.Terms(account="urgent")) as won:
            granted.append(won.fence)

    urgent = threading.Thread(target=claim)
    with dibs.connect(timeout=10) as client:
        lease = client.claim("shared", timeout=20, terms=dibs.Terms(
            preempt=dibs.Preempt.WITH_GRACE, preempt_grace=30))
        fence = lease.fence
        urgent.start()
        told = eventually(lambda: lease.revoking is not None)
        left, early = lease.revoking or 0, bool(granted)
        lease.release()
        urgent.join()
    good = told and not early and 0 < left <= 30 and granted and granted[0] > fence
    return bool(good), f"its holder was told, with {left:.1f} s left, and gave it back in time"


def gpu_shared(_stage):
    """A GPU of 80 GiB is shared by memory"""
    def part(least, most=None):
        return dibs.Terms(least={"memory": f"{least}GiB"}, most={"memory": f"{most or least}GiB"})

    def gib(lease):
        return int(lease.attributes["resource.memory"]) >> 30

    with dibs.connect(timeout=10) as client:
        first = client.claim("gpu", timeout=20, terms=part(50))
        second = client.claim("gpu", timeout=20, terms=part(20, 60))
        try:
            client.claim("gpu", timeout=0, terms=part(1)).release()
            full = False
        except dibs.Error:
            full = True
        held = gib(first), gib(second)
        first.release()
        third = client.claim("gpu", timeout=20, terms=part(40))
        good = full and held == (50, 30) and gib(third) == 40
        third.release()
        second.release()
    return good, f"{held[0]} + {held[1]} GiB to two, and nothing to a third until one has given back"


def routed(_stage):
    """Claims come to two pools by their load"""
    slots = {"near": 2, "wide": 6}
    held, went = [], dict.fromkeys(slots, 0)
    seen = set()  # by a witness of its own, which asks no broker
    wrong = twice = 0

    def free(pool):
        return slots[pool] - sum(one[0] == pool for one in seen)

    with dibs.connect(timeout=10) as client:
        for step in range(60):
            if held and (len(held) == 8 or random.random() < 0.4):
                lease, place = held.pop(random.randrange(len(held)))
                seen.discard(place)
                lease.release(wait=5)
                continue
            less_loaded = min(slots, key=lambda pool: (-free(pool), pool))
            lease = client.claim("either", timeout=20)
            place = (client.describe(lease.pool).name, lease.slots[0].number)
            wrong += place[0] != less_loaded
            twice += place in seen
            seen.add(place)
            went[place[0]] += 1
            held.append((lease, place))
        # A claimant is told before the counters are published.
        agrees = eventually(lambda: all(client.snapshot(pool).idle == free(pool) for pool in slots))
        for lease, _ in held:
            lease.release(wait=5)
    return wrong + twice == 0 and agrees, \
        f"{went['near']} to one of 2 slots, {went['wide']} to one of 6, each to the less loaded one as a witness counts"


def gangs_of_four(_stage):
    """Two gangs of four want six slots"""
    met, alone = [], []

    def rank(name, number, together):
        terms = dibs.Terms(application=name, task=f"rank-{number}", group="rank")
        with dibs.connect(timeout=10) as client, client.claim("ranks", timeout=20, terms=terms):
            try:
                together.wait(10)
            except threading.BrokenBarrierError:
                alone.append((name, number))

    # Not while a rank's session is still being closed.
    def removed(application):
        try:
            application.remove()
        except dibs.errors.WrongState:
            return False
        return True

    def gang(letter):
        with dibs.connect(timeout=10) as client:
            for turn in range(4):
                name = f"{letter}-{turn}"
                application = client.add_application(name, "ranks", groups={"rank": 4})
                together = threading.Barrier(4)
                ranks = [threading.Thread(target=rank, args=(name, number, together)) for number in range(4)]
                for one in ranks:
                    one.start()
                for one in ranks:
                    one.join()
                application.complete()
                eventually(lambda: removed(application))
                met.append(name)

    gangs = [threading.Thread(target=gang, args=(letter,)) for letter in "ab"]
    for one in gangs:
        one.start()
    for one in gangs:
        one.join()
    return len(met) == 8 and not alone, \
        f"{len(met)} times four ranks, and each had its slot while the three others had theirs: {len(alone)} ran alone"


def child_left(stage):
    """A command leaves a process behind"""
    command = subprocess.Popen(
        [DIBS, "exec", "--tree", "solo", "--", "sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo $!"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
    left = int(command.stdout.readline())
    with dibs.connect(timeout=10) as client:
        try:
            client.claim("solo", timeout=0.2).release()
            early = True
        except dibs.Expired:
            early = False
        stage.struck = time.monotonic()
        os.kill(left, signal.SIGKILL)
        ended = time.monotonic_ns()
        with client.claim("solo", timeout=20):
            took = time.monotonic_ns() - ended
    command.wait()
    return not early, f"its slot was kept, and free {shown(took)} after that had ended"


def pool_grows(stage):
    """A burst comes to a pool without workers"""
    def claimed(client):
        begun = time.monotonic_ns()
        return client.claim("burst", timeout=30), time.monotonic_ns() - begun

    stage.provide("burst", 4)
    with dibs.connect(timeout=10) as client:
        empty = client.snapshot("burst").slots == 0
        stage.struck = time.monotonic()
        lease, cold = claimed(client)
        lease.release()
        eventually(lambda: client.snapshot("burst").idle == 1)
        lease, warm = claimed(client)
        burst = [lease] + [claimed(client)[0] for _ in range(3)]
        grown = client.snapshot("burst").slots
        for lease in burst:
            lease.release()
        gone = eventually(lambda: client.snapshot("burst").slots == 0)
    return (empty and grown == 4 and gone,
            f"it grew to {grown} processes and back to none; a claim waited {shown(cold)} for one to start, {shown(warm)} for a warm one")


def shares(_stage):
    """Three accounts want more than there is, 3 : 2 : 1"""
    ending = threading.Event()
    wanted = {name: rate / sum(SHARES.values()) for name, rate in SHARES.items()}

    def got(client):
        # As the broker publishes it; the longer it goes on, the less one lease counts.
        used = {name: client.share(name).used for name in SHARES}
        whole = sum(used.values()) or 1
        return {name: used[name] / whole for name in SHARES}, whole

    def fair(client):
        shared, whole = got(client)
        return whole > 12 and all(abs(shared[name] - wanted[name]) <= 0.02 for name in SHARES)

    async def use(client, name):
        while not ending.is_set():
            async with client.claim("fair", timeout=60, terms=dibs.Terms(account=name)):
                await asyncio.sleep(0.005)

    async def crowd():
        async with await dibs.aio.connect(timeout=10) as client:
            await asyncio.gather(*(use(client, name) for name in SHARES for _ in range(20)))

    claiming = threading.Thread(target=lambda: asyncio.run(crowd()))
    with dibs.connect(timeout=10) as client:
        for name, rate in SHARES.items():
            subprocess.run([DIBS, "account", "set", name, "--rate", str(rate), "--charge-max",
                            "1min"], check=True, capture_output=True)
        claiming.start()
        try:
            good = eventually(lambda: fair(client), 60)
            shared, _ = got(client)
        finally:
            ending.set()  # whoever interrupts this does not wait for the crowd
            claiming.join()
    return good, "held " + " : ".join(f"{100 * shared[name]:.1f}" for name in SHARES) + \
        " of 100, as the broker publishes it"


ALL = (client_killed, idle_worker_killed, deadline_passes, cancel_races_grant, back_pressure,
       broker_killed, urgent_claim, gpu_shared, routed, gangs_of_four, child_left,
       pool_grows, shares)
SHORT = {client_killed: "client killed", idle_worker_killed: "worker killed",
         deadline_passes: "deadline", cancel_races_grant: "cancel races", back_pressure: "rush",
         broker_killed: "broker killed", urgent_claim: "urgent claim", gpu_shared: "GPU shared",
         routed: "routed", gangs_of_four: "gangs of four", child_left: "child left",
         pool_grows: "pool grows", shares: "shares 3 : 2 : 1"}

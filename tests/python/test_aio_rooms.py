# tests/python/test_aio_rooms.py -- the asyncio client: claims wait for room for their answers.
# SPDX-License-Identifier: Apache-2.0
import asyncio
import tempfile

import dibs
import pytest
from dibs import errors

from conftest import Dibsd
from test_aio import run


ROOMY = """
[[pool]]
name = "web"
kind = "worker"
answer_max = "4KiB"
payload_max = "4KiB"
release_is_ready = true
[[pool]]
name = "gpu"
kind = "counted"
slots = 50
[[pool]]
name = "large"
kind = "counted"
slots = 1
attributes_max = "16KiB"
units_max = 1
[[pool]]
name = "wide"
kind = "counted"
slots = 50
attributes_max = "4KiB"
"""


@pytest.fixture
def roomy():
    """A broker of whose pool's claims seven fit into a session of the default size."""
    with tempfile.TemporaryDirectory(prefix="dibs-python-") as folder:
        broker = Dibsd(folder, ROOMY)
        yield broker
        broker.end()


async def reverse(client, socket, number, done=True):
    """Workers that end each lease with its body, turned round, or leave that to the holder."""
    async def work(worker):
        async for assignment in worker.assignments():
            if not assignment.is_revocation:
                assignment.confirm()
                if done:
                    assignment.done(assignment.body[::-1])

    workers = [await dibs.aio.connect(socket, timeout=10) for _ in range(number)]
    for worker in workers:
        await worker.announce("web")
    return workers, [asyncio.ensure_future(work(worker)) for worker in workers]


def test_claims_beyond_the_room_for_answers_wait_in_order(roomy):
    async def front(client, body, granted):
        async with client.claim("web", timeout=60, body=body) as lease:
            granted.append((lease.claim, int(body[:4])))
            return await lease.wait_answer(timeout=60)

    async def body(client):
        workers, working = await reverse(client, roomy.socket, 4)
        bodies = [b"%04d" % number * 900 for number in range(300)]
        granted = []
        answers = await asyncio.gather(*(front(client, body, granted) for body in bodies))
        assert answers == [body[::-1] for body in bodies]
        # One that the broker refuses, as what was given back is counted a turn late, may be a few places behind.
        assert all(abs(at - number) < 8 for at, (_, number) in enumerate(sorted(granted)))
        for task, worker in zip(working, workers):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            worker.close()
    run(roomy, body)


def test_a_claim_that_waits_for_room_expires_and_is_cancelled_there(roomy):
    async def body(client):
        worker = await dibs.aio.connect(roomy.socket, timeout=10, down_payload=1 << 20)
        async def serve():
            async for assignment in worker.assignments():
                if not assignment.is_revocation:
                    assignment.confirm()
        for number in range(9):
            await worker.announce("web", name=f"w{number}")
        serving = asyncio.ensure_future(serve())
        held = await asyncio.gather(*(client.claim("web", timeout=60) for _ in range(7)))
        with pytest.raises(errors.Expired, match="down_payload="):
            await client.claim("web", timeout=0.05)
        waiting = asyncio.ensure_future(client.claim("web", timeout=60).__aenter__())
        last = asyncio.ensure_future(client.claim("web", timeout=60).__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        held[3].release()
        late = await last
        for lease in [*held, late]:
            lease.release()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        worker.close()
    run(roomy, body)


def test_a_claim_that_will_never_have_room_says_what_it_needs(roomy):
    async def body(client):
        small = await dibs.aio.connect(roomy.socket, timeout=10, down_payload=4096)
        with pytest.raises(errors.NoRoom, match=r"a claim of 1 in pool 'web' needs \d+ bytes .* "
                                                r"down_payload is 4096: connect\(down_payload=16384\)"):
            await small.claim("web", timeout=60)
        small.close()
        with pytest.raises(errors.NoRoom, match=r"needs 2\d{6} bytes .*down_payload=4194304"):
            await client.claim("web", timeout=60, units=256)
    run(roomy, body)


def also(pool, units=1):
    return dibs.Terms(also=[(pool, units)])


def test_a_claim_over_several_pools_needs_as_much_as_the_largest_for_each_slot(roomy):
    async def body(client):
        for pool, terms, words in (("gpu", also("wide"), "2 in pools 'gpu', 'wide'"),
                                   ("wide", also("gpu"), "2 in pools 'wide', 'gpu'")):
            small = await dibs.aio.connect(roomy.socket, timeout=10, down_payload=4096)
            with pytest.raises(errors.NoRoom, match=rf"a claim of {words} needs 8448 bytes .* "
                                                    r"down_payload is 4096: connect\(down_payload=16384\)"):
                await small.claim(pool, timeout=60, terms=terms)
            small.close()
        enough = await dibs.aio.connect(roomy.socket, timeout=10, down_payload=16384)
        async with enough.claim("gpu", timeout=60, terms=also("wide")) as lease:
            assert [len(part.slots) for part in lease.parts] == [1, 1]
            with pytest.raises(errors.NoRoom):  # it is reckoned before the broker is asked
                await enough.claim("wide", when_busy=dibs.WhenBusy.REJECT, terms=also("gpu"))
        enough.close()
    run(roomy, body)


def test_claims_over_several_pools_wait_for_room_in_each(roomy):
    async def body(client):
        order = []

        async def use(number, pool, terms=dibs.Terms()):
            async with client.claim(pool, timeout=60, terms=terms):
                order.append(number)
                await asyncio.sleep(0)

        held = [await client.claim("wide", timeout=60, terms=also("gpu")) for _ in range(7)]
        tasks = [asyncio.ensure_future(use(0, "gpu", also("wide")))]
        await asyncio.sleep(0)  # it stands in line now
        tasks += [asyncio.ensure_future(use(1, "gpu")), asyncio.ensure_future(use(2, "wide")),
                  asyncio.ensure_future(use(3, "wide", also("gpu")))]
        for _ in range(100):
            await asyncio.sleep(0)
        assert order == []  # a claim of either pool would fit, and stands behind the first one
        for lease in held:
            lease.release()
        await asyncio.gather(*tasks)
        # Not in their order if the broker has refused the first one: it counts what was given back a turn late.
        assert sorted(order) == [0, 1, 2, 3]
        crowd = [use(number, *(("gpu", also("wide")) if number % 2 else ("wide", also("gpu")))) for number in range(60)]
        await asyncio.gather(*crowd)
    run(roomy, body)


def test_claims_of_another_pool_are_not_behind_those_that_wait_for_room(roomy):
    """Each task holds a slot of one pool while it claims in another."""
    async def body(client):
        workers, working = await reverse(client, roomy.socket, 8, done=False)
        reached = []

        async def use(number):
            async with client.claim("web", timeout=60):
                async with client.claim("gpu", timeout=60):
                    reached.append(number)

        await asyncio.gather(*(use(number) for number in range(20)))
        assert sorted(reached) == list(range(20))
        with pytest.raises(errors.NoRoom, match="down_payload="):
            held = [await client.claim("web", timeout=60) for _ in range(7)]
            await client.claim("web", when_busy=dibs.WhenBusy.REJECT)
        for lease in held:
            lease.release()
        for task, worker in zip(working, workers):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            worker.close()
    run(roomy, body)


@pytest.mark.parametrize("pad", range(54, 64))
def test_rooms_of_ended_leases_come_back_also_where_the_ring_was_full(roomy, pad):
    """Seven leases end and are given back at each place of the ring; then a claim needs nearly all room."""
    async def body(client):
        workers, working = await reverse(client, roomy.socket, 7)
        for _ in range(pad):
            (await client.claim("gpu", timeout=60)).release()
        leases = await asyncio.gather(*(client.claim("web", timeout=60) for _ in range(7)))
        for lease in leases:
            assert await lease.wait_answer(timeout=60) == b""
        for lease in leases:
            lease.release()
        (await client.claim("large", timeout=60)).release()
        assert client.totals("web").net_found_work == 0
        for task, worker in zip(working, workers):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            worker.close()
    run(roomy, body)


def test_a_claim_that_waited_for_room_expires_as_any_other(roomy):
    async def body(client):
        workers, working = await reverse(client, roomy.socket, 1, done=False)
        held = await client.claim("web", timeout=60)
        ends = await asyncio.gather(*(client.claim("web", timeout=0.1).__aenter__() for _ in range(40)),
                                    return_exceptions=True)
        assert {type(end) for end in ends} == {errors.Expired}
        held.release()
        for task, worker in zip(working, workers):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            worker.close()
    run(roomy, body)

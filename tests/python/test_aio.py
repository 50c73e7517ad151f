# tests/python/test_aio.py -- the asyncio client: claims wait without blocking the loop.
# SPDX-License-Identifier: Apache-2.0
import asyncio
import os
import signal

import dibs
import pytest
from dibs import errors


def run(dibsd, body):
    async def attached():
        async with await dibs.aio.connect(dibsd.socket, timeout=10) as client:
            await body(client)
    asyncio.run(attached())


def test_a_lease_goes_back_at_the_end_of_its_block(dibsd):
    async def body(client):
        async with client.claim("one", timeout=5) as lease:
            while client.snapshot("one").leased != 1:
                await asyncio.sleep(0)
            first = lease.fence
        lease = await client.claim("one", timeout=5)
        assert lease.fence > first
        lease.release()
    run(dibsd, body)


def test_claims_wait_side_by_side(dibsd):
    fences = []

    async def use(client):
        async with client.claim("gpu", timeout=60) as lease:
            assert client.snapshot("gpu").leased <= 2
            await asyncio.sleep(0)
            fences.append(lease.fence)

    async def body(client):
        await asyncio.gather(*(use(client) for _ in range(50)))
        while client.totals("gpu").granted != 50:  # counters are published after grants
            await asyncio.sleep(0)
        assert client.totals("gpu").net_found_work == 0
    run(dibsd, body)
    assert len(set(fences)) == 50


def test_a_timeout_names_the_holder(dibsd):
    async def body(client):
        async with client.claim("one", timeout=5):
            said = "no word of the broker"
            while "no word of the broker" in said:  # it is late: the client gave up by itself
                with pytest.raises(dibs.Expired) as raised:
                    await client.claim("one", timeout=0.01)
                said = str(raised.value)
            assert f"held by process {os.getpid()}" in said
    run(dibsd, body)


def test_a_cancelled_task_cancels_its_claim(dibsd):
    async def body(client):
        async with client.claim("one", timeout=5):
            task = asyncio.ensure_future(client._claim(client.claim("one")._op, None))
            while client.snapshot("one").queued == 0:
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while client.snapshot("one").queued != 0:
                await asyncio.sleep(0)
        (await client.claim("one", timeout=5)).release()
    run(dibsd, body)


def test_a_grant_that_a_cancelled_task_did_not_take_goes_back(dibsd):
    async def body(client):
        for steps in range(20):
            task = asyncio.ensure_future(client._claim(client.claim("one")._op, None))
            for _ in range(steps):
                await asyncio.sleep(0)
            if not task.cancel():
                task.result().release()
                continue
            try:
                (await task).release()
            except asyncio.CancelledError:
                pass
        (await client.claim("one", timeout=5)).release()
    run(dibsd, body)


def test_a_timeout_is_kept_when_the_broker_says_nothing(dibsd):
    async def body(client):
        os.kill(dibsd.process.pid, signal.SIGSTOP)
        with pytest.raises(dibs.Expired, match="no word of the broker"):
            await client.claim("one", timeout=0.01)
        os.kill(dibsd.process.pid, signal.SIGCONT)
        (await client.claim("one", timeout=60)).release()
    run(dibsd, body)


def test_a_broker_that_dies_ends_every_wait(dibsd):
    async def body(client):
        held = await client.claim("one", timeout=5)
        waiting = [asyncio.ensure_future(client._claim(client.claim("one")._op, None))
                   for _ in range(3)]
        while client.snapshot("one").queued != 3:
            await asyncio.sleep(0)
        dibsd.process.kill()
        for task in waiting:
            with pytest.raises(errors.BrokerLost):
                await task
        assert held.state == dibs.LeaseState.ENDED
        with pytest.raises(errors.BrokerLost):
            await client.claim("one")
    run(dibsd, body)


def test_a_worker_serves_in_the_same_loop(dibsd):
    async def serve(worker):
        await worker.announce("web", name="w-1", attributes={"port": "81"})
        async for work in worker.assignments():
            if work.is_revocation:
                work.ready()
            else:
                work.confirm(work.body.upper())

    async def body(client):
        async with await dibs.aio.connect(dibsd.socket, timeout=10) as worker:
            serving = asyncio.ensure_future(serve(worker))
            for word in (b"warm", b"slot"):
                async with client.claim("web", timeout=60, body=word) as lease:
                    assert lease.answer == word.upper()
                    assert lease.attributes == {"port": "81"}
            serving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await serving
    run(dibsd, body)


def test_announcing_what_is_refused_raises(dibsd):
    async def body(client):
        with pytest.raises(errors.NoSuchPool):
            await client.announce("none")
        with pytest.raises(errors.Error):
            await client.announce("one", name="a counted pool has no workers")
    run(dibsd, body)


def cancelled_at_its_grant(client, held):
    """A claim whose task is cancelled in the same step of the loop in which it is granted."""
    async def claims():
        lease = await client.claim("one", timeout=5)
        held.append(lease)
        return lease
    return asyncio.ensure_future(claims())


def test_a_cancellation_that_meets_the_grant_is_raised_and_leaks_nothing(dibsd):
    async def body(client):
        for number in range(20_000):
            held = []
            task = cancelled_at_its_grant(client, held)
            steps = number % 8
            for _ in range(steps):
                await asyncio.sleep(0)
            while client.snapshot("one").idle != 0 and not task.done() and number % 2:
                await asyncio.sleep(0)  # granted by the broker, and not told yet, or just now
            if number % 3 == 0:
                client._take()  # told: the future has its result, and its task has not run
            if task.cancel():
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert not held
            else:
                task.result().release()
        while client.snapshot("one").idle != 1:
            await asyncio.sleep(0)
    run(dibsd, body)


@pytest.mark.parametrize("count", (200, 500))
def test_more_claims_than_the_ring_has_entries_wait_for_room(dibsd, count):
    async def body(client):
        async def use():
            async with client.claim("gpu", timeout=60) as lease:
                return lease.claim
        numbers = await asyncio.gather(*(use() for _ in range(count)))
        assert len(set(numbers)) == count
    run(dibsd, body)


def test_a_release_into_a_full_ring_does_not_wait(dibsd):
    async def body(client):
        held = await client.claim("one", timeout=5)
        os.kill(dibsd.process.pid, signal.SIGSTOP)
        tasks = [asyncio.ensure_future(client._claim(client.claim("gpu")._op, None))
                 for _ in range(200)]
        for _ in range(4):
            await asyncio.sleep(0)
        assert held.release()  # the ring is full: it is said later
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        os.kill(dibsd.process.pid, signal.SIGCONT)
        while client.snapshot("one").idle != 1 or client.snapshot("gpu").idle != 2:
            await asyncio.sleep(0)
        assert client.snapshot("gpu").queued == 0
    run(dibsd, body)


def test_a_cancelled_announcement_withdraws_its_slot(dibsd):
    async def body(client):
        os.kill(dibsd.process.pid, signal.SIGSTOP)
        task = asyncio.ensure_future(client.announce("web", name="w"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        os.kill(dibsd.process.pid, signal.SIGCONT)
        offered = await client.announce("web", name="later", ready=False)
        while client.snapshot("web").slots != 1:
            await asyncio.sleep(0)
        assert offered is not None
    run(dibsd, body)


def test_closing_in_a_forked_child_leaves_the_parents_reader(dibsd):
    async def body(client):
        watched = client._fd
        child = os.fork()
        if child == 0:
            client.close()
            os._exit(0)
        os.waitpid(child, 0)
        assert asyncio.get_running_loop().remove_reader(watched)
        asyncio.get_running_loop().add_reader(watched, client._take)
        (await client.claim("one", timeout=5)).release()
    run(dibsd, body)


def test_closing_behind_its_loop_closes_the_session(dibsd):
    loop = asyncio.new_event_loop()
    client = loop.run_until_complete(dibs.aio.connect(dibsd.socket))
    held = loop.run_until_complete(client._claim(client.claim("one")._op, 5))
    waits = loop.create_task(client._claim(client.claim("one")._op, None))
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    client.close()
    assert not client._session.is_open
    assert held.state == dibs.LeaseState.ENDED
    waits._log_destroy_pending = False
    with dibs.connect(dibsd.socket) as other:
        other.claim("one", timeout=60).release()


def test_an_answer_that_comes_after_the_grant_is_awaited(dibsd):
    async def body(client):
        await client.announce("web")

        async def work():
            assignment = await client.next_assignment()
            assignment.confirm()
            await asyncio.sleep(0)
            assignment.done(b"late")
        worker = asyncio.ensure_future(work())
        lease = await client.claim("web", timeout=5)
        assert await lease.wait_answer(timeout=60) == b"late"
        lease.release()
        await worker
    run(dibsd, body)


def test_an_answer_that_comes_before_the_task_runs_stays(dibsd):
    async def body(client):
        with dibs.connect(dibsd.socket, timeout=10) as other:
            other.announce("web")
            task = asyncio.ensure_future(client._claim(client.claim("web")._op, None))
            while client.snapshot("web").confirming == 0:
                await asyncio.sleep(0)
            work = other.next_assignment(60)
            work.confirm()
            work.done(b"42", wait=60)  # the loop stands still meanwhile
            lease = await task
            for _ in range(3):  # each may take the place that the lease had
                (await client.claim("one", timeout=60)).release()
            assert await lease.wait_answer(timeout=60) == b"42"
            lease.release()
    run(dibsd, body)


def test_every_answer_reaches_its_claim(dibsd):
    async def work(worker):
        await worker.announce("web")
        async for assignment in worker.assignments():
            if assignment.is_revocation:
                assignment.ready()
                continue
            assignment.confirm()
            assignment.done(assignment.body[::-1])

    async def front(client, body):
        async with client.claim("web", timeout=60, body=body) as lease:
            return await lease.wait_answer(timeout=60)

    async def body(client):
        workers = [await dibs.aio.connect(dibsd.socket, timeout=10) for _ in range(4)]
        working = [asyncio.ensure_future(work(worker)) for worker in workers]
        bodies = [b"%03d" % number for number in range(300)]
        answers = await asyncio.gather(*(front(client, body) for body in bodies))
        assert answers == [body[::-1] for body in bodies]
        for task, worker in zip(working, workers):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            worker.close()
    run(dibsd, body)


def test_an_answer_longer_than_the_pools_is_refused_to_its_worker(dibsd):
    async def body(client):
        worker = await dibs.aio.connect(dibsd.socket, timeout=10)
        await worker.announce("web")
        claiming = asyncio.ensure_future(client.claim("web", timeout=60).__aenter__())
        assignment = await worker.next_assignment()
        with pytest.raises(errors.BadPayload, match="65 bytes.*at most 64"):
            assignment.confirm(b"x" * 65)
        assignment.confirm()
        lease = await claiming
        with pytest.raises(errors.BadPayload, match="65 bytes.*at most 64"):
            assignment.done(b"x" * 65)
        assignment.done(b"x" * 64)
        assert await lease.wait_answer(timeout=60) == b"x" * 64
        worker.close()
    run(dibsd, body)


def test_sizes_and_times_are_refused_by_name():
    for sizes, text in (({"down_payload": 1 << 40}, r"down_payload=1099511627776\): it is a power of two from 4096 to"),
                        ({"leases_max": 2**32 + 256}, "leases_max=4294967552"), ({"up_payload": 5000}, "up_payload")):
        with pytest.raises(ValueError, match=text):
            asyncio.run(dibs.aio.connect("/nowhere", **sizes))
    with pytest.raises(TypeError, match="seconds, not '5'"):
        asyncio.run(dibs.aio.connect("/nowhere", timeout="5"))
    with pytest.raises(ValueError, match="zero byte"):
        asyncio.run(dibs.aio.connect("/no\0where"))

# clientlib/bindings/python/dibs/aio.py -- the client for asyncio: nothing blocks the loop, whatever
# the broker does.
#
#     async with await dibs.aio.connect() as client:
#         async with client.claim("gpu", timeout=5) as lease:
#             ...
#
# The loop watches the session's one descriptor. Whenever it becomes readable, and every 100 ms
# while something is outstanding (the library's net), everything that has come is taken and handed
# on, then the descriptor is armed again.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio
import functools
from collections import deque
from types import TracebackType
from typing import (Any, AsyncIterator, Callable, Generator, Iterable, Mapping, Optional, TypeVar,
                    Union)

from . import _abi, accounts, errors, latency
from ._rooms import SIZE_MAX, Kind, Rooms, need_of
from ._session import MARGIN_S, OnEnd, Session, nanoseconds
from .accounts import Share
from .client import Counters, PoolLimits, Pools, Terms, Totals, WhenBusy
from .latency import Latency, Wakeups
from .lease import Lease, keep
from .worker import Assignment, OfferedSlot, announce_options, take_assignment

NET_S = 0.1
_FULL = "this client's earlier claims and leases hold its room for slots and answers (down_payload= of connect())"
_NO_ROOM = f"no slot within the timeout: all the time {_FULL}"
_NO_ENTRY = ("no slot within the timeout: all the time this client's earlier claims and leases held its entries "
             "(leases_max=, submission_entries= of connect())")
Result = TypeVar("Result")


class AsyncLease(Lease):
    """As dibs.Lease; nothing of it blocks the loop but what says `wait`, which is for threads."""

    def __init__(self, client: AsyncClient, place: int, grant: _abi.Completion) -> None:
        self._client = client
        self._place = place  # among the session's rooms
        super().__init__(client._session, grant)

    def _hear(self, event: _abi.Completion) -> None:
        super()._hear(event)
        if self._end is not None:
            self._client._leave(self._place)

    def _granted_again(self, end: _abi.Completion) -> None:
        super()._granted_again(end)
        if self._end is not None:
            self._client._leave(self._place)

    def _give_back(self, how: str, wait: float) -> bool:
        try:
            return super()._give_back(how, wait)
        finally:
            self._client._leave(self._place)

    def __del__(self) -> None:
        super().__del__()
        self._client._rooms.drop(self._place)

    async def wait_answer(  # type: ignore[override]
            self, timeout: Optional[float] = None) -> Optional[bytes]:
        """As Lease.wait_answer, without blocking the loop."""
        until = None if timeout is None else self._client._loop.time() + timeout
        while True:
            answer = self._answer_now()
            if answer is not None or (until is not None and self._client._loop.time() >= until):
                return answer
            await self._client._tick(until)


class Claiming:
    """A claim on its way: await it, or enter it with `async with`, for the lease."""

    def __init__(self, client: AsyncClient, op: _abi.Op, timeout: Optional[float]) -> None:
        self._client = client
        self._op = op
        self._timeout = timeout
        self._lease: Optional[AsyncLease] = None

    def __await__(self) -> Generator[Any, None, AsyncLease]:
        return self._client._claim(self._op, self._timeout).__await__()

    async def __aenter__(self) -> AsyncLease:
        self._lease = await self
        return self._lease

    async def __aexit__(self, kind: Optional[type[BaseException]],
                        error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        if self._lease is not None:
            self._lease.__exit__(kind, error, trace)


class AsyncClient:
    """As dibs.Client, for one event loop."""

    def __init__(self, session: Session, loop: asyncio.AbstractEventLoop) -> None:
        self._session = session
        self._pools = Pools(session)
        self._loop = loop
        self._fd = errors.check(session.call("dibs_fd"))
        self._outstanding: set[asyncio.Future[Any]] = set()
        self._assignments: deque[Assignment] = deque()
        self._worker: Optional[asyncio.Future[None]] = None
        self._net: Optional[asyncio.TimerHandle] = None
        self._lost: Optional[errors.Error] = None
        self._ticks: set[asyncio.Future[None]] = set()
        self._gate = asyncio.Lock()
        self._rooms = Rooms(session.down_payload, self._need)
        session.queues = True
        loop.add_reader(self._fd, self._take)
        self._take()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]],
                        error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()

    def close(self) -> None:
        self._stop_watching()
        self._fail(errors.Closed("this client has been closed"))
        self._session.close()

    # ---- the loop's side

    def _take(self) -> bool:
        """Takes everything that has come, then arms the descriptor. False: nothing had."""
        came = False
        try:
            while True:
                self._session.call("dibs_dispatch")
                reaped = 1
                while reaped > 0:
                    reaped = self._session.reap(0)
                    came = came or reaped > 0
                while (assignment := take_assignment(self._session, 0)) is not None:
                    self._assignments.append(assignment)
                code = self._session.call("dibs_arm")
                if code != _abi.EREADY:
                    errors.check(min(code, reaped))
                    break
        except errors.Error as error:
            self._stop_watching()
            self._fail(error)
        if self._worker is not None and not self._worker.done() and self._assignments:
            self._worker.set_result(None)
        for tick in list(self._ticks):
            _end_tick(tick)
        self._rooms.admit()
        return came

    def _watch_net(self) -> None:
        wanted = self._outstanding or self._ticks or self._session.owes
        if self._net is None and self._lost is None and wanted:
            self._net = self._loop.call_later(NET_S, self._look)

    def _look(self) -> None:
        self._net = None
        self._take()
        self._rooms.retry()
        self._watch_net()

    def _stop_watching(self) -> None:
        # A forked child shares the loop's epoll with its parent, whose reader this is.
        if self._fd >= 0 and self._session.is_open and not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
        self._fd = -1
        if self._net is not None:
            self._net.cancel()
            self._net = None

    def _fail(self, error: errors.Error) -> None:
        self._lost = error
        if self._loop.is_closed():  # whoever waited there does not run any more
            return
        for future in [*self._outstanding, *self._ticks]:
            if not future.done():
                future.set_exception(error)

    async def _tick(self, until: Optional[float]) -> None:
        """Until something has come, the next look of the net, or that time of the loop."""
        if self._lost is not None:
            raise self._lost
        tick: asyncio.Future[None] = self._loop.create_future()
        self._ticks.add(tick)
        timer = None if until is None else self._loop.call_at(until, _end_tick, tick)
        self._watch_net()
        try:
            await tick
        finally:
            self._ticks.discard(tick)
            if timer is not None:
                timer.cancel()

    async def _submit(self, op: _abi.Op, on_end: OnEnd, until: Optional[float]) -> None:
        """In order of arrival; a full ring, or no tag for another claim, is waited out."""
        async with self._gate:
            while True:
                if self._lost is not None:
                    raise self._lost
                try:
                    self._session.submit(op, on_end)
                    return
                except (errors.RingFull, errors.LimitReached, errors.Unread):
                    if self._take():  # completions, and so room
                        continue
                    if until is not None and self._loop.time() >= until:
                        raise errors.Expired(_NO_ENTRY) from None
                await self._tick(until)

    async def _completion(self, op: _abi.Op, until: Optional[float],
                          make: Callable[[_abi.Completion], AsyncLease],
                          kept: list[AsyncLease]) -> _abi.Completion:
        """Submits and waits; what is done for a waiter that goes away is taken back."""
        future: asyncio.Future[_abi.Completion] = self._loop.create_future()
        ended: list[_abi.Completion] = []
        on_end = functools.partial(keep, make, ended, kept)
        try:
            # No wait_for() of Python: up to 3.11 it loses a cancellation that meets the result.
            await self._submit(op, functools.partial(_settle, future, on_end), until)
            self._take()
            return await self._within(future, until, _expired())
        except BaseException:
            self._session.take_back(op, ended)
            self._watch_net()
            raise

    async def _within(self, future: asyncio.Future[Result], until: Optional[float],
                      late: errors.Error) -> Result:
        """What the future has; raises `late` at that time of the loop, or why the session ended."""
        if self._lost is not None:
            raise self._lost
        timer = None if until is None else self._loop.call_at(until, _expire, future, late)
        self._outstanding.add(future)
        self._watch_net()
        try:
            return await future
        finally:
            self._outstanding.discard(future)
            if timer is not None:
                timer.cancel()

    def _leave(self, place: int) -> None:
        """The claim of this place, or its lease, holds no room any more."""
        self._rooms.drop(place)
        if self._loop.is_closed():
            return
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            self._rooms.admit()
        else:
            self._loop.call_soon_threadsafe(self._rooms.admit)

    async def _room(self, place: int, kind: Kind, until: Optional[float]) -> None:
        """Waits until the broker will have room for the claim's slots and answers."""
        if self._rooms.take(place, kind):
            return
        admitted: asyncio.Future[None] = self._loop.create_future()
        self._rooms.wait(place, kind, admitted)
        await self._within(admitted, until, errors.Expired(_NO_ROOM))

    def _need(self, kind: Kind) -> int:
        try:
            pools = [(units, self._pools.describe(pool)) for pool, units in kind]
        except errors.Error:  # the broker says what is wrong with it
            return 0
        return need_of([(units, pool.attributes_max, pool.answer_max) for units, pool in pools])

    async def _claim(self, op: _abi.Op, timeout: Optional[float]) -> AsyncLease:
        until = None if timeout is None else self._loop.time() + timeout + MARGIN_S
        wanted = op.claim.contents
        kind = ((int(op.pool), int(wanted.units)),
                *((int(further.pool), int(further.units)) for further in wanted.also[:wanted.also_count]))
        place = self._rooms.arrive()
        make = functools.partial(AsyncLease, self, place)
        kept: list[AsyncLease] = []
        try:
            while True:
                if op.claim.contents.when_busy in (WhenBusy.REJECT, WhenBusy.COLD):
                    if not self._rooms.take(place, kind):
                        raise errors.NoRoom(_FULL)
                else:
                    await self._room(place, kind, until)
                if until is not None and timeout != 0:
                    left = until - MARGIN_S - self._loop.time()
                    if left <= 0:  # to the broker, 0 would be a claim that does not wait
                        raise errors.Expired(_NO_ROOM)
                    op.claim.contents.timeout_ns = nanoseconds(left)
                end = await self._completion(op, until, make, kept)
                if end.code != errors.NoRoom.code:
                    break
                if not self._rooms.refuse(place, kind, int(end.refused_at)):
                    raise errors.NoRoom(self._too_large(kind, int(end.refused_at)))
            if end.outcome != _abi.GRANTED:
                raise self._pools.refusal(op, end)
            kept[0]._hold()
            return kept[0]
        except BaseException:
            self._leave(place)
            raise

    def _too_large(self, kind: Kind, need: int) -> str:
        larger = 1 << (need - 1).bit_length()
        fix = f"connect(down_payload={larger})" if larger <= SIZE_MAX else "claim fewer units"
        if need <= self._rooms.size:
            fix = "offer its slots in another session, or connect with a larger down_payload="
        names = ", ".join(repr(self._pools.describe(pool).name) for pool, _ in kind)
        where = f"{sum(units for _, units in kind)} in pool{'s' if len(kind) > 1 else ''} {names}"
        return (f"a claim of {where} needs {need} bytes of the session for slots and answers "
                f"(attributes_max, answer_max), and its down_payload is {self._rooms.size}: {fix}")

    # ---- the caller's side

    def claim(self, pool: Union[str, int], *, timeout: Optional[float] = None,
              interval: float = 0, units: int = 1, when_busy: int = WhenBusy.AS_POOL,
              key: bytes = b"", body: bytes = b"", options: Optional[Mapping[str, str]] = None,
              labels: Iterable[str] = (), terms: Terms = Terms(), by_word: bool = False) -> Claiming:
        """As Client.claim. A cancelled task cancels its claim, and a late grant goes back."""
        op = self._pools.claim_op(pool, timeout, interval, units, when_busy, key, body, options,
                                  labels, terms, by_word)
        if op.pool & _abi.POOL_SET:
            raise errors.NoSuchPool(f"{pool!r} is a pool set: dibs.Client claims from it, the asyncio client takes "
                                    "pools alone")
        return Claiming(self, op, timeout)

    def describe(self, pool: Union[str, int]) -> PoolLimits:
        return self._pools.describe(pool)

    def snapshot(self, pool: Union[str, int]) -> Counters:
        return self._pools.read("dibs_snapshot", _abi.Counters.sized(), Counters, pool)

    def totals(self, pool: Union[str, int]) -> Totals:
        return self._pools.read("dibs_pool_totals", _abi.Totals.sized(), Totals, pool)

    def latency(self, pool: Union[str, int]) -> Latency:
        """How long its granted claims waited, as the broker measures it."""
        return latency.of_pool(self._session, self._pools.one(pool))

    def reported_latency(self) -> Latency:
        """How long granted claims took, of all pools and clients, as the clients report it."""
        return latency.reported(self._session)

    def session_latency(self) -> Latency:
        """The same of this client alone."""
        return latency.of_session(self._session)

    def session_wakeups(self) -> Wakeups:
        return latency.wakeups(self._session)

    def share(self, account: str) -> Share:
        return accounts.share(self._session, account)

    def shares(self) -> list[Share]:
        return accounts.shares(self._session)

    async def announce(self, pool: Union[str, int], *, name: Optional[str] = None,
                       labels: Iterable[str] = (), attributes: Optional[Mapping[str, str]] = None,
                       worker_tag: int = 0, is_protected: bool = False, ready: bool = True,
                       resources: Optional[Mapping[str, Union[int, str]]] = None, parts: int = 0,
                       timeout: float = 5) -> OfferedSlot:
        """Offers a slot of this process. In a pool whose slots have resources `resources` says
        what this one has (a whole number or a size such as "32GiB" each; 0 of what it does not
        name, None: what the pool says), and `parts` how many parts of it there may be at a time."""
        wanted = announce_options(name, labels, attributes, worker_tag, is_protected, ready,
                                  resources, parts)
        nanoseconds(timeout)  # refuses what is no duration
        op = _abi.Op.sized(kind=_abi.OP_ANNOUNCE, pool=self._pools.one(pool))
        op.announce.contents = wanted
        result = await self._completion(op, self._loop.time() + timeout, _no_lease, [])
        if result.code < 0:
            raise errors.of_completion(result)
        return OfferedSlot(self._session, result.slot, self._pools.describe(pool).answer_max)

    async def next_assignment(self) -> Assignment:
        """The next assignment or revocation. One task at a time may wait."""
        while not self._assignments:
            if self._lost is not None:
                raise self._lost
            if self._worker is not None:
                raise errors.InUse("another task waits for assignments already")
            self._worker = self._loop.create_future()
            self._outstanding.add(self._worker)
            try:
                self._watch_net()
                await self._worker
            finally:
                self._outstanding.discard(self._worker)
                self._worker = None
        return self._assignments.popleft()

    async def assignments(self) -> AsyncIterator[Assignment]:
        """All of them, until the session ends."""
        while True:
            yield await self.next_assignment()


def _settle(future: asyncio.Future[_abi.Completion], on_end: OnEnd, end: _abi.Completion) -> None:
    on_end(end)  # also for a waiter who has been cancelled and does not run yet
    if not future.done():
        future.set_result(end)


def _expired() -> errors.Expired:
    return errors.Expired("no slot within the timeout, and no word of the broker")


def _no_lease(end: _abi.Completion) -> AsyncLease:
    raise AssertionError(f"an announcement was granted: {end.claim}")


def _expire(future: asyncio.Future[Any], late: errors.Error) -> None:
    if not future.done():
        future.set_exception(late)


def _end_tick(tick: asyncio.Future[None]) -> None:
    if not tick.done():
        tick.set_result(None)


async def connect(socket: Optional[str] = None, *, timeout: float = 5.0,
                  **sizes: int) -> AsyncClient:
    """Opens a session with the broker of this host."""
    loop = asyncio.get_running_loop()
    session = await loop.run_in_executor(None, Session, socket, timeout, sizes)
    return AsyncClient(session, loop)

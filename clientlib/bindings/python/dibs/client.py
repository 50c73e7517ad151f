# clientlib/bindings/python/dibs/client.py -- a session with the broker: claims, counters, and a
# worker's slots.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ctypes
import enum
import functools
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Iterable, Iterator, Mapping, Optional, Sequence, Type, TypeVar, Union

from . import _abi, _amounts, accounts, application, errors, latency
from ._session import SLICE_NS, Session, nanoseconds, octets, options, strings
from .accounts import Share
from .application import Application, ApplicationEvent, Group
from .latency import Latency, Wakeups
from .lease import Lease, keep
from .offers import Offer
from .worker import Assignment, OfferedSlot, announce_options, take_assignment


class Preempt(enum.IntEnum):
    """What a lease lets happen when a better claim wants its slot.

    AS_POOL: as the pool is configured, which is never if its configuration says nothing."""
    AS_POOL = _abi.PREEMPT_AS_POOL
    AT_ONCE = _abi.PREEMPT_AT_ONCE
    WITH_GRACE = _abi.PREEMPT_GRACE
    NEVER = _abi.PREEMPT_NEVER


class WhenBusy(enum.IntEnum):
    """What a claim does when no slot is idle."""
    AS_POOL = _abi.BUSY_AS_POOL
    WAIT = _abi.BUSY_WAIT
    REJECT = _abi.BUSY_REJECT
    COLD = _abi.BUSY_COLD


@dataclass(frozen=True)
class PoolLimits:
    name: str
    units_max: int
    payload_max: int
    answer_max: int
    attributes_max: int
    has_workers: bool
    draining: bool


@dataclass(frozen=True)
class Counters:
    """One consistent picture of a pool. A part of a slot counts in `leased`, its slot in `shared`."""
    slots: int
    idle: int
    reserved: int
    leased: int
    parked: int
    recovering: int
    unknown: int
    queued: int
    confirming: int
    shared: int
    hits: int
    last_grant_ns: int


@dataclass(frozen=True)
class Totals:
    """What has become of a pool's claims so far."""
    accepted: int
    granted: int
    expired: int
    cancelled: int
    rejected: int
    released: int
    net_found_work: int


@dataclass(frozen=True)
class Terms:
    """What a claim brings to a pool ordered by account, or to one whose slots have resources: labels
    that its slot should have, how much of a slot it wants, and what happens when a better claim wants the slot. `requeue`: it waits again, in its old place."""
    prefer: tuple[str, ...] = ()
    priority: int = 0
    preempt: int = Preempt.AS_POOL
    preempt_grace: float = 0
    requeue: bool = False
    account: Optional[str] = None  # that pays, for administrators; None: the user's
    # A part of one slot, in a pool whose slots have resources: at least so much of each, as a whole
    # number or a text such as "10GiB"; and at most, where the slot has it. Empty: whole slots.
    least: Mapping[str, Union[int, str]] = field(default_factory=dict)
    most: Mapping[str, Union[int, str]] = field(default_factory=dict)
    # Accepts it: a part of its slot, now or not at all; without `least` all that it says. Raises
    # OfferExpired.
    offer: Optional[Offer] = None
    meta: Optional[str] = None  # for who inspects the claim or its lease, at most 255 bytes
    # Further pools and how many slots of each, seven at most: all of them or none (Lease.parts).
    also: Sequence[tuple[Union[str, int], int]] = ()
    # Of which task of which application of this user, and in which group of it.
    application: Optional[str] = None
    task: Optional[str] = None
    group: Optional[str] = None

    def fields(self) -> dict[str, Any]:
        preferred, count = strings(self.prefer)
        offered = self.offer.available if self.offer is not None else {}
        offer = ctypes.pointer(self.offer.raw()) if self.offer is not None else None
        meta = self.meta.encode() if self.meta is not None else None
        if meta is not None and len(meta) > _abi.META_MAX:
            raise errors.BadPayload(f"meta: at most {_abi.META_MAX} bytes, not {len(meta)}")
        if any(byte < 0x20 or byte == 0x7F for byte in meta or b""):
            raise errors.BadPayload(f"meta: one line without control characters, not {self.meta!r}")
        return {"offer": offer, "meta": meta, **_amounts.part(self.least or offered, self.most),
                "prefer": preferred, "prefer_count": count, "priority": self.priority,
                "preempt": self.preempt, "preempt_grace_ns": nanoseconds(self.preempt_grace),
                "requeue": int(self.requeue), "application": text(self.application),
                "task": text(self.task), "group": text(self.group),
                "account": self.account.encode() if self.account is not None else None}


def text(name: Optional[str]) -> Optional[bytes]:
    return application.name_bytes(name) if name is not None else None


Read = TypeVar("Read", Counters, Totals)


class Pools:
    """Names, limits and counters of pools: from memory that the broker publishes."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._numbers: dict[str, int] = {}

    def number(self, pool: Union[str, int]) -> int:
        if isinstance(pool, int) and not isinstance(pool, bool):
            return pool
        if not isinstance(pool, str):
            raise TypeError(f"a pool is a name or a number, not {pool!r}")
        if "\0" in pool:
            raise errors.NoSuchPool(f"no such pool: {pool!r}")
        if pool not in self._numbers:
            number = ctypes.c_uint32(0)
            code = self._session.call("dibs_pool", pool.encode(), number)
            if code == errors.NoSuchPool.code:
                raise errors.NoSuchPool(f"no such pool: {pool}")
            errors.check(code)
            self._numbers[pool] = number.value
        return self._numbers[pool]

    def one(self, pool: Union[str, int]) -> int:
        """The number of a pool that is no set."""
        number = self.number(pool)
        if number & _abi.POOL_SET:
            raise errors.NoSuchPool(f"{pool!r} is a pool set, which is for claims alone: name one of its pools")
        return number

    def describe(self, pool: Union[str, int]) -> PoolLimits:
        raw = _abi.PoolLimits.sized()
        errors.check(self._session.call("dibs_describe", self.one(pool), raw))
        return PoolLimits(raw.name.decode(), raw.units_max, raw.payload_max, raw.answer_max,
                          raw.attributes_max, bool(raw.has_workers), bool(raw.draining))

    def read(self, function: str, raw: _abi.Struct, kind: Type[Read],
             pool: Union[str, int]) -> Read:
        errors.check(self._session.call(function, self.one(pool), raw))
        return kind(**{name: getattr(raw, name) for name in raw.names() if name != "size"})

    def claim_op(self, pool: Union[str, int], timeout: Optional[float], interval: float,
                 units: int, when_busy: int, key: bytes, body: bytes,
                 claim_options: Optional[Mapping[str, str]],
                 labels: Iterable[str], terms: Terms, by_word: bool) -> _abi.Op:
        if len(key) > 16:
            raise errors.BadArgument(f"a key has at most 16 bytes, not {len(key)}")
        if units < 1 or units > _abi.UNITS_MAX:
            raise errors.BadUnits(f"a claim of pool {pool!r} is for 1 to {_abi.UNITS_MAX} slots, "
                                      f"not {units}")
        if units != 1 and (terms.least or terms.most or terms.offer is not None):
            raise errors.BadUnits(f"a part is of one slot: units={units} is for whole slots")
        if by_word and not interval:
            raise errors.BadArgument("by_word=True needs interval=: for so long a touch() keeps the lease")
        number = self.number(pool)
        if terms.offer is not None and not number & _abi.POOL_SET:
            name = self.describe(number).name
            if name != terms.offer.pool:
                raise errors.BadArgument(f"the offer is of pool {terms.offer.pool!r}, and the claim of pool {name!r}")
        body = octets("a body", body)
        pairs, pair_count = options(claim_options)
        label_array, label_count = strings(labels)
        claim = _abi.ClaimOptions.sized(
            timeout_ns=nanoseconds(timeout), interval_ns=nanoseconds(interval), units=units,
            when_busy=when_busy, key=(ctypes.c_uint8 * 16)(*key), body=body or None,
            body_size=len(body), options=pairs, option_count=pair_count, labels=label_array,
            label_count=label_count, keep=_abi.KEEP_BY_WORD if by_word else _abi.KEEP_BY_CALLS,
            **terms.fields())
        further = self.further(terms.also)
        claim.also, claim.also_count = further, len(further)
        made: _abi.Op = _abi.Op.sized(kind=_abi.OP_CLAIM, pool=number,
                                      claim=ctypes.pointer(claim))
        return made

    def further(self, also: Sequence[tuple[Union[str, int], int]]) -> ctypes.Array[_abi.PoolUnits]:
        for pool, units in also:
            if units < 1 or units > _abi.UNITS_MAX:
                raise errors.BadUnits(f"a claim of pool {pool!r} is for 1 to {_abi.UNITS_MAX} slots, not {units}")
        rows = [_abi.PoolUnits(self.one(pool), units) for pool, units in also]
        return (_abi.PoolUnits * len(rows))(*rows)

    def refusal(self, op: _abi.Op, end: _abi.Completion) -> errors.Error:
        """The exception for a claim that was not granted."""
        if end.code != errors.BadVector.code:
            return errors.of_completion(end)
        claim = op.claim.contents
        wanted = [*claim.least[:claim.least_count], *claim.most[:claim.most_count]]
        names = sorted({text.partition(b"=")[0].decode() for text in wanted})
        return errors.BadVector(f"the slots of pool {self.describe(int(end.pool)).name!r} have no resources, or none "
                                f"of one of these names: {', '.join(names)}")


class Client:
    """One session: used by one thread at a time, closed by leaving it or by close(). What it
    holds then goes back. `socket` None: $DIBS_SOCKET, $XDG_RUNTIME_DIR/dibs/dibs.sock, or
    /run/dibs/dibs.sock. The sizes are those of dibs_connect_options."""

    def __init__(self, socket: Optional[str] = None, *, timeout: float = 5.0,
                 **sizes: int) -> None:
        self._session = Session(socket, timeout, sizes)
        self._pools = Pools(self._session)
        self._applications: dict[str, Application] = {}

    def close(self) -> None:
        self._session.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    # ---- claims

    def claim(self, pool: Union[str, int], *, timeout: Optional[float] = None,
              interval: float = 0, units: int = 1, when_busy: int = WhenBusy.AS_POOL,
              key: bytes = b"", body: bytes = b"", options: Optional[Mapping[str, str]] = None,
              labels: Iterable[str] = (), terms: Terms = Terms(), by_word: bool = False) -> Lease:
        """Waits at most `timeout` seconds (None: for ever) for a lease. Raises Expired, which
        names the holder, or the exception of whatever else ended the claim. `by_word`:
        Lease.touch() keeps the interval, too.

        `pool` may be a pool set: then lease.pool says which member granted it, and a signal handler
        (Ctrl-C, too) runs once the claim has ended: give it a timeout."""
        op = self._pools.claim_op(pool, timeout, interval, units, when_busy, key, body, options,
                                  labels, terms, by_word)
        if op.pool & _abi.POOL_SET:
            return self._claim_of_set(op)
        ended: list[_abi.Completion] = []
        kept: list[Lease] = []
        made = functools.partial(Lease, self._session)
        try:  # an exception of a signal handler may come between any two steps
            self._session.wait(op, timeout, ended, functools.partial(keep, made, ended, kept))
            if ended[0].outcome != _abi.GRANTED:
                raise self._pools.refusal(op, ended[0])
            kept[0]._hold()
            return kept[0]
        except BaseException:
            if kept:
                kept[0]._held = False
            self._session.take_back(op, ended)
            raise

    def _claim_of_set(self, op: _abi.Op) -> Lease:
        end = _abi.Completion()
        try:
            errors.check(self._session.call("dibs_claim", op.pool, op.claim, end))
            if end.outcome != _abi.GRANTED:
                raise self._pools.refusal(op, end)
            lease = Lease(self._session, end)
            lease._hold()
            return lease
        except BaseException:
            if end.outcome == _abi.GRANTED:
                self._session.orphan(end.lease)
            raise

    def adopt(self, id: int, fence: int, *, timeout: float = 5) -> Lease:
        """Takes over a lease of another session of this user, whose holder has passed on its id
        and fence. From then on it lives as long as this client's process."""
        adopted = _abi.Completion(outcome=_abi.GRANTED)
        try:
            errors.check(self._session.call("dibs_adopt", id, fence, nanoseconds(timeout),
                                            adopted.lease))
            lease = Lease(self._session, adopted)
            lease._hold()
            return lease
        except BaseException:
            if adopted.lease.id != 0:
                self._session.orphan(adopted.lease)
            raise

    # ---- applications

    def add_application(self, name: str, pool: Union[str, int], *,
                        groups: Mapping[str, Group] = application.NONE, priority: int = 1,
                        placeholder_timeout: Optional[float] = 0, manager_timeout: Optional[float] = 0,
                        age: float = 0, hard: bool = False, recover: bool = False,
                        parameters: Optional[str] = None, tags: Optional[str] = None,
                        timeout: float = 5) -> Application:
        """Adds an application, whose manager this client is. `groups`: its gang, as name: members, or
        name: (members, {"memory": "10GiB"}). Time-outs: 0 = the default (15 and 5 minutes), None = none.
        Duplicate: it is there; ApplicationEnded: one of that name has ended."""
        number = application.add(
            self._session, self._pools.one(pool), name, groups, priority, placeholder_timeout,
            manager_timeout, age, hard, recover, parameters, tags, timeout)
        return self._managed(name, pool, number)

    def adopt_application(self, name: str, pool: Union[str, int], *, timeout: float = 5) -> Application:
        """Becomes the manager of one that has none; `pool` is the one that it is of. Of one that this
        client manages already it returns the object that there is."""
        number = application.adopt(self._session, name, timeout)
        if number is None and name in self._applications:
            return self._applications[name]
        return self._managed(name, pool, number or 0)  # 0: until its first event, if add has timed out

    def _managed(self, name: str, pool: Union[str, int], number: int) -> Application:
        made = self._applications[name] = Application(self, self._session, name, pool, number)
        return made

    def next_application_event(self, timeout: Optional[float] = None) -> Optional[ApplicationEvent]:
        """What happens to the applications that this client manages; None if nothing does in time."""
        event = application.take_event(self._session, timeout)
        if event is not None:
            app = self._applications.get(event.name)
            if app is not None and app.number in (0, event.number):  # not an older one of that name
                app.hear(event)
                if event.state in application.ENDED:
                    self._forget(event.name)
        return event

    def _forget(self, name: str) -> None:
        self._applications.pop(name, None)

    # ---- pools

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
        """Of all accounts that are known."""
        return accounts.shares(self._session)

    # ---- workers

    def announce(self, pool: Union[str, int], *, name: Optional[str] = None,
                 labels: Iterable[str] = (), attributes: Optional[Mapping[str, str]] = None,
                 worker_tag: int = 0, is_protected: bool = False, ready: bool = True,
                 resources: Optional[Mapping[str, Union[int, str]]] = None, parts: int = 0,
                 order: Optional[str] = None, timeout: float = 5) -> OfferedSlot:
        """Offers a slot of this process. In a pool whose slots have resources `resources` says
        what this one has (a whole number or a size such as "32GiB" each; 0 of what it does not
        name, None: what the pool says), and `parts` how many parts of it there may be at a time.
        `order` is the text of the order that the worker was made for (provide)."""
        wanted = announce_options(name, labels, attributes, worker_tag, is_protected, ready,
                                  resources, parts, order)
        slot = ctypes.c_uint64(0)
        errors.check(self._session.call("dibs_announce", self._pools.one(pool), wanted,
                                        nanoseconds(timeout), slot))
        return OfferedSlot(self._session, slot.value, self._pools.describe(pool).answer_max)

    def provide(self, pool: Union[str, int], type: str, on: bool = True, *, tag: int = 0,
                timeout: float = 5) -> None:
        """Takes the role of provisioner of a type of workers of an elastic pool, or gives it up.
        Its orders come with assignments(); `tag` comes back as their worker_tag."""
        errors.check(self._session.call("dibs_provide", self._pools.number(pool), type.encode(), tag,
                                        int(on), nanoseconds(timeout)))

    def provisioned(self, order: int, answer: str = "created", *, scope: str = "type",
                    quota_group: Optional[str] = None, timeout: float = 5) -> None:
        """Answers an order: created, stopped, quota, capacity (of the scope: pool, group, type),
        overload or failed."""
        answers = ("created", "stopped", "quota", "capacity", "overload", "failed")
        scopes = ("pool", "group", "type")
        if answer not in answers or scope not in scopes:
            raise errors.BadArgument(f"an answer is one of {', '.join(answers)}, and its scope one "
                                     f"of {', '.join(scopes)}")
        errors.check(self._session.call(
            "dibs_provisioned", order, answers.index(answer), scopes.index(scope),
            quota_group.encode() if quota_group is not None else None, nanoseconds(timeout)))

    def next_assignment(self, timeout: Optional[float] = None) -> Optional[Assignment]:
        """The next assignment or revocation; None if none comes in time."""
        until = None if timeout is None else time.monotonic() + timeout
        with self._session:  # in use all the time
            while True:
                left = SLICE_NS if until is None else int((until - time.monotonic()) * _abi.SECOND)
                taken = take_assignment(self._session, max(0, min(left, SLICE_NS)))
                if taken is not None or left <= 0:
                    return taken
                self._session.reap(0)  # leases' events, if this client holds some too

    def assignments(self) -> Iterator[Assignment]:
        """All of them, until the session ends."""
        while True:
            assignment = self.next_assignment()
            if assignment is not None:
                yield assignment


def connect(socket: Optional[str] = None, *, timeout: float = 5.0, **sizes: int) -> Client:
    """Opens a session with the broker of this host."""
    return Client(socket, timeout=timeout, **sizes)

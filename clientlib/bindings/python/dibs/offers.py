# clientlib/bindings/python/dibs/offers.py -- what may be claimed of slots with resources, and what a
# lease is.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace
from typing import Mapping, Optional, Sequence, Union

from . import _abi, _amounts, errors
from ._abi import library
from ._amounts import Amounts
from ._session import nanoseconds
from .state import asked


@dataclass(frozen=True)
class Offer:
    """What a claim could have of one slot when it was asked for: no promise. Terms(offer=...)."""
    pool: str
    slot: int
    available: Mapping[str, int]
    stamp: int

    def raw(self) -> _abi.Offer:
        raw = _abi.Offer(pool=self.pool.encode(), slot=self.slot, stamp=self.stamp,
                         count=len(self.available))
        for at, (name, amount) in enumerate(self.available.items()):
            raw.resources[at].value = name.encode()
            raw.amounts[at] = amount
        return raw

    def take(self, most: Amounts) -> Offer:
        """At most so much of it, to be accepted. Where nothing would be left of some resource, all
        of it: nobody could have the rest."""
        taken = _abi.Offer()
        texts, count = _amounts.texts("most", most)
        for name in most:
            if name not in self.available:
                raise errors.BadVector(f"most of {name}: the offer has {', '.join(self.available)} alone")
        _amounts.check_something("most", most)
        errors.check(library.dibs_offer_take(self.raw(), texts, count, taken))
        return replace(self, available=_available(taken))


def _available(raw: Union[_abi.Offer, _abi.Inspection]) -> dict[str, int]:
    return {raw.resources[at].value.decode(): raw.amounts[at] for at in range(raw.count)}


class Offers(list[Offer]):
    """The offers, in their order; `stamp` is another one whenever others are offered."""

    def __init__(self, found: Sequence[Offer], stamp: int) -> None:
        super().__init__(found)
        self.stamp = stamp


def offers(pool: str, *, least: Optional[Amounts] = None, most: Optional[Amounts] = None,
           wait: float = 0, after: int = 0, count: int = 10,
           socket: Optional[str] = None) -> Offers:
    """What the slots of a pool with resources offer: with `least` none that has less, those nearest
    to `most` first; else by slot number. While there is none, or it is still of the stamp `after`,
    waits at most `wait` seconds for others. Raises as a claim does: NoSuchPool, BadVector,
    Unavailable."""
    if "\0" in pool:
        raise errors.NoSuchPool(f"no such pool: {pool!r}")
    query = _abi.OffersQuery.sized(pool=pool.encode(), wait_ns=nanoseconds(wait), after_stamp=after,
                                   **_amounts.part(least or {}, most or {}))
    if not 1 <= count <= _abi.OFFERS_MAX:
        raise errors.BadArgument(f"count={count}: it is from 1 to {_abi.OFFERS_MAX}")
    found = (_abi.Offer * count)()
    stamp = ctypes.c_uint64(0)
    try:
        told = asked(socket, lambda to: int(library.dibs_offers(to, query, found, count, stamp)))
    except errors.NoSuchPool as error:
        raise errors.NoSuchPool(error.text.replace("no such pool", f"no such pool: {pool}", 1)) from None
    return Offers([Offer(raw.pool.decode(), raw.slot, _available(raw), raw.stamp)
                   for raw in found[:told]], stamp.value)


@dataclass(frozen=True)
class Inspection:
    """A lease, as dibs/dibs.h says; times in seconds. Of another user's only pool, account and age
    are known: its uid is None. `age` is since it was granted, also once it has ended: it was held for
    `age - ended`. `left` None: bound to its holder's life. `ended`: seconds since it
    has, and `code` why (0: given back); None: it lives."""
    pool: str
    account: str
    age: float
    lease: int
    fence: int
    claim: int
    kept: float
    interval: float
    left: Optional[float]
    expired: float
    ended: Optional[float]
    code: int
    uid: Optional[int]
    pid: int
    units: int
    slot: int
    resources: Mapping[str, int]
    state: str
    meta: str


def inspect(lease: int, *, socket: Optional[str] = None) -> Inspection:
    """A lease by its id (Lease.id), also one that has ended lately. Raises NotFound."""
    raw = _abi.Inspection()
    asked(socket, lambda to: int(library.dibs_inspect(to, lease, raw)))
    hidden = raw.uid == 2**32 - 1
    return Inspection(
        raw.pool.decode(), raw.account.decode(), raw.age_ns / 1e9, raw.lease, raw.fence, raw.claim,
        raw.kept_ns / 1e9, raw.interval_ns / 1e9,
        None if raw.left_ns == 2**63 - 1 else raw.left_ns / 1e9, raw.expired_ns / 1e9,
        raw.ended_ns / 1e9 if raw.ended else None, raw.code, None if hidden else raw.uid, raw.pid,
        raw.units, raw.slot, _available(raw), raw.state.decode(), raw.meta.decode())

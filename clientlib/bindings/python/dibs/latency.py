# clientlib/bindings/python/dibs/latency.py -- how long claims took, and who was woken for them.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import dataclass

from . import _abi, errors
from ._session import Session


@dataclass(frozen=True)
class Latency:
    """In seconds: so many hundredths of `count` times were at most so long. Of none, all are 0."""
    count: int
    p50: float
    p90: float
    p99: float
    p999: float
    longest: float

    @classmethod
    def of(cls, raw: _abi.Latency) -> Latency:
        return cls(raw.count, raw.p50_ns / _abi.SECOND, raw.p90_ns / _abi.SECOND,
                   raw.p99_ns / _abi.SECOND, raw.p999_ns / _abi.SECOND,
                   raw.longest_ns / _abi.SECOND)


@dataclass(frozen=True)
class Wakeups:
    """How often this client and the broker have woken each other, and for what."""
    bells: int          # the client has woken the broker; of these, as the last of what it asked:
    claim_bells: int    # it claimed
    release_bells: int  # it released; the rest: all else
    sleeps: int         # a call of this client has slept until the broker woke it; of these:
    claim_sleeps: int   # for the outcome of a claim


def of_pool(session: Session, pool: int) -> Latency:
    raw = _abi.Latency.sized()
    errors.check(session.call("dibs_pool_latency", pool, raw))
    return Latency.of(raw)


def reported(session: Session) -> Latency:
    raw = _abi.Latency.sized()
    errors.check(session.call("dibs_reported_latency", raw))
    return Latency.of(raw)


def of_session(session: Session) -> Latency:
    raw = _abi.Latency.sized()
    errors.check(session.call("dibs_session_latency", raw))
    return Latency.of(raw)


def wakeups(session: Session) -> Wakeups:
    raw = _abi.Wakeups.sized()
    errors.check(session.call("dibs_session_wakeups", raw))
    return Wakeups(raw.bells, raw.claim_bells, raw.release_bells, raw.sleeps, raw.claim_sleeps)

# clientlib/bindings/python/dibs/latency.py -- how long claims took.
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

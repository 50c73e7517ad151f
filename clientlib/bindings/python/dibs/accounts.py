# clientlib/bindings/python/dibs/accounts.py -- what each account may have, and what it has had.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ctypes
from dataclasses import dataclass

from . import _abi, errors
from ._session import Session


@dataclass(frozen=True)
class Share:
    """Of the pools that are ordered by account. `rate` over everybody's is the share that it was
    configured to get, `used` over everybody's the share that it got."""
    name: str
    configured: bool
    held: int       # slots, now
    waiting: int    # claims, now
    rate: float     # slots that it may hold all the time
    used: float     # slots times seconds for which it has held them
    counted: float  # seconds for which `used` has been counted

    @classmethod
    def of(cls, raw: _abi.Share) -> Share:
        return cls(raw.name.decode(), bool(raw.configured), raw.held, raw.waiting, raw.rate / 1e6,
                   raw.used_ns / _abi.SECOND, raw.counted_ns / _abi.SECOND)


def share(session: Session, account: str) -> Share:
    place = ctypes.c_uint32(0)
    raw = _abi.Share.sized()
    errors.check(session.call("dibs_account", account.encode(), place))
    errors.check(session.call("dibs_account_share", place.value, raw))
    return Share.of(raw)


def shares(session: Session) -> list[Share]:
    """Of all accounts that are known, in order of their places."""
    found: list[Share] = []
    place = 0
    while True:
        raw = _abi.Share.sized()
        code = session.call("dibs_account_share", place, raw)
        if code == _abi.EARGUMENT:  # beyond the last
            return found
        if code != _abi.ENOTFOUND:
            errors.check(code)
            found.append(Share.of(raw))
        place += 1

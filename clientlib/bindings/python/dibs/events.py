# clientlib/bindings/python/dibs/events.py -- what the broker decides, as it decides it.
#
# A subscription is a connection of its own. The broker waits for no subscriber: what one does not
# read in time it misses, and an event of the kind "lost" says how much.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Iterator, Optional

from . import _abi, errors
from ._abi import library
from ._session import SLICE_NS, nanoseconds


@dataclass(frozen=True)
class Event:
    """`full` False: another user's, of which kind, pool, account and time are told."""
    kind: str  # "grant", "lease_end", …; "lost": `value` events were missed
    number: int
    time_ns: int
    full: bool
    pool: Optional[str]
    account: Optional[str]
    claim: Optional[int]
    id: int
    fence: int
    value: int
    outcome: int
    code: int
    units: int
    slots: tuple[int, ...]
    uid: Optional[int]
    pid: Optional[int]
    holder: Optional[errors.Holder]
    from_class: int
    to_class: int
    cost_micros: tuple[int, ...]
    provision: bool
    is_void: bool
    type: Optional[str]  # "create", "stop": of the worker
    entry: Optional[str] = None  # of a dispatched pool

    @classmethod
    def of(cls, raw: _abi.Event) -> Event:
        nobody = raw.uid == _abi.HIDDEN_UID
        slots = tuple(raw.slots[:raw.slot_count])
        if not slots and raw.slot != _abi.HIDDEN_UID:
            slots = (raw.slot,)
        return cls(library.dibs_event_name(raw.kind).decode(), raw.number, raw.time_ns,
                   bool(raw.full), raw.pool.decode() or None, raw.account.decode() or None,
                   raw.claim or None, raw.id, raw.fence, raw.value, raw.outcome, raw.code,
                   raw.units, slots, None if nobody else raw.uid, None if nobody else raw.pid,
                   errors.Holder.of(raw.holder), raw.from_class, raw.to_class,
                   tuple(raw.cost_micros), bool(raw.provision), bool(raw.is_void),
                   raw.type.decode() or None, raw.entry.decode() or None)


class Events:
    """A subscription, from the next turn of the broker on; an iterator without an end."""

    def __init__(self, socket: Optional[str] = None, *, timeout: float = 5.0) -> None:
        self._handle = ctypes.c_void_p()
        wanted = _abi.ConnectOptions.to(socket, timeout_ns=nanoseconds(timeout))
        code = library.dibs_events_open(wanted, ctypes.byref(self._handle))
        if code < 0:
            raise errors.of_code(code, wanted.why)

    def next(self, timeout: Optional[float] = None) -> Optional[Event]:
        """None if none came within `timeout` seconds (None: waits for ever). BrokerLost: subscribe
        again."""
        if not self._handle:
            raise errors.Closed("this subscription has been closed")
        until = None if timeout is None else time.monotonic() + timeout
        raw = _abi.Event.sized()
        while True:
            left = SLICE_NS if until is None else int((until - time.monotonic()) * _abi.SECOND)
            code = library.dibs_events_next(self._handle, max(0, min(left, SLICE_NS)), raw)
            if code != _abi.ETIMEDOUT:
                errors.check(code)
                return Event.of(raw)
            if left <= 0:
                return None

    def fileno(self) -> int:
        """Readable when an event is there: then call next(0) until it is None."""
        return int(library.dibs_events_fd(self._handle))

    def close(self) -> None:
        handle, self._handle = self._handle, ctypes.c_void_p()
        library.dibs_events_close(handle)

    def __iter__(self) -> Iterator[Event]:
        while True:
            event = self.next()
            if event is not None:
                yield event

    def __enter__(self) -> Events:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

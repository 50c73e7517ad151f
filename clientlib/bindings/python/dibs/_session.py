# clientlib/bindings/python/dibs/_session.py -- one session of the C library, and the way of its
# completions to whoever waits for them.
#
# A session is used by one thread at a time; a second one gets InUse at once, instead of waiting
# behind a claim that may take for ever. A waiting call sleeps in the library for at most SLICE_NS
# (the library's own net wakes it as often), so that Python's signal handlers run. Completions are
# told apart by user_data: whoever submitted is called with the completion; a grant that nobody
# waits for any more is released; what happens to a lease goes to its object. A KeyboardInterrupt
# may come between any two steps: what was reaped stays marked until it has been handed on, and an
# exception on the way of a grant gives the lease back.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ctypes
import difflib
import functools
import os
import threading
import time
import weakref
from collections import deque
from typing import Any, Callable, Iterable, Mapping, Optional

from . import _abi, _rooms, errors
from ._abi import library

SLICE_NS = 100_000_000
MARGIN_S = 0.02  # for the broker's word that a claim has expired
REAP_MAX = 16
RANGES = {"submission_entries": (8, 4096), "completion_entries": (16, 16384), "leases_max": (8, 1024),
          "up_payload": (4096, 4 << 20), "down_payload": (4096, 4 << 20)}

OnEnd = Callable[[_abi.Completion], None]
OnEvent = Callable[[_abi.Completion], None]


def nanoseconds(seconds: Optional[float]) -> int:
    """None is for ever. Refuses what is no duration."""
    if seconds is None:
        return _abi.FOREVER
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(f"a time is a number of seconds, not {seconds!r}")
    if not seconds >= 0:
        raise errors.NegativeTime(f"a time is 0 seconds or more, not {seconds!r}")
    return _abi.FOREVER if seconds > _abi.FOREVER / _abi.SECOND else int(seconds * _abi.SECOND)


def sizes_of(wanted: Mapping[str, int]) -> dict[str, int]:
    """The sizes of a session, those named that are no size, or out of range."""
    unknown = sorted(set(wanted) - _abi.SIZES)
    if unknown:
        near = difflib.get_close_matches(unknown[0], [*_abi.SIZES, "socket", "timeout"], 1)
        raise TypeError(f"connect() takes no argument {unknown[0]!r}"
                        + (f"; did you mean {near[0]!r}?" if near else ""))
    for name, value in wanted.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"connect({name}=…) is a whole number, not {value!r}")
        least, most = RANGES.get(name, (-2**31, 2**31 - 1))
        power = name == "spin_us" or value & (value - 1) == 0
        if (value != 0 or name == "spin_us") and not (least <= value <= most and power):
            kind = "a whole number" if name == "spin_us" else "a power of two"
            raise ValueError(f"connect({name}={value}): it is {kind} from {least} to {most}")
    return {**wanted, "down_payload": wanted.get("down_payload", 0) or _rooms.SIZE}


def octets(what: str, value: Any) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"{what} is bytes, not {type(value).__name__}: {value!r}"
                        + (" (encode() it)" if isinstance(value, str) else ""))
    return bytes(value)


def strings(items: Iterable[str]) -> tuple[Any, int]:
    if isinstance(items, (str, bytes)):
        raise TypeError(f"labels are a list of texts, not one text: write [{items!r}]")
    encoded = [item.encode() for item in items]
    return (ctypes.c_char_p * len(encoded))(*encoded), len(encoded)


def options(pairs: Optional[Mapping[str, str]]) -> tuple[Any, int]:
    encoded = [_abi.Option(key.encode(), str(value).encode())
               for key, value in (pairs or {}).items()]
    return (_abi.Option * len(encoded))(*encoded), len(encoded)


def _too_much(op: _abi.Op) -> str:
    if op.kind != _abi.OP_CLAIM:
        return "name, labels and attributes of a slot take at most 16,384 bytes"
    return (f"a body of {op.claim.contents.body_size} bytes with its options and labels is too large: together, and "
            "with some 50 bytes that frame them, they take at most 16,384 bytes, payload_max of the pool and "
            "up_payload of connect()")


class Session:
    def __init__(self, path: Optional[str], timeout: float, sizes: Mapping[str, int]) -> None:
        self.handle = ctypes.c_void_p()
        self._lock = threading.RLock()  # of its own thread only a finalizer comes twice
        self._pid = os.getpid()
        self._owed: deque[tuple[str, tuple[Any, ...]]] = deque()
        self._waiting: dict[int, OnEnd] = {}
        self._events: dict[int, weakref.WeakMethod[OnEvent]] = {}
        self.answer_max: dict[int, int] = {}  # of the slots that it offers
        self._next = 1
        self._reaped = (_abi.Completion * REAP_MAX)()  # kind 0: handed on
        self._is_reaping = False
        self.queues = False  # what finds no room is owed, and its caller does not wait
        sizes = sizes_of(sizes)
        self.down_payload = sizes["down_payload"]
        if path is not None and "\0" in path:
            raise ValueError(f"a socket's path has no zero byte: {path!r}")
        wanted = _abi.ConnectOptions.to(path, timeout_ns=nanoseconds(timeout), **sizes)
        code = library.dibs_connect(wanted, ctypes.byref(self.handle))
        if code < 0:
            raise errors.of_code(code, wanted.why)

    # ---- entering

    def __enter__(self) -> ctypes.c_void_p:
        if self._pid != os.getpid():
            raise errors.Forked()
        if not self._lock.acquire(blocking=False):
            raise errors.InUse("another thread is using this client: open one for each thread")
        if not self.handle:
            self._lock.release()
            raise errors.Closed("this client has been closed")
        if self._owed:
            self._pay()
        return self.handle

    def __exit__(self, *ignored: object) -> None:
        self._lock.release()
        if self._owed:
            self.orphan()

    def call(self, name: str, *arguments: Any) -> int:
        """Calls a function that takes the session first; what it returned."""
        with self as handle:
            return int(getattr(library, name)(handle, *arguments))

    def close(self) -> None:
        if not self.handle:
            return
        if self._pid == os.getpid() and not self._lock.acquire(blocking=False):
            raise errors.InUse("another thread is using this client")
        handle, self.handle = self.handle, ctypes.c_void_p()
        library.dibs_close(handle)
        if self._pid == os.getpid():
            self._lock.release()

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            library.dibs_close(self.handle)

    @property
    def is_open(self) -> bool:
        return bool(self.handle) and self._pid == os.getpid()

    # ---- what is said when there is room: leases without a holder, claims without a caller

    def orphan(self, lease: Optional[_abi.LeaseName] = None) -> None:
        """Gives a lease back now, or with the next call if the session is busy or its ring full."""
        if lease is not None:
            self._owed.append(("dibs_release", (lease, 0)))
        if self.is_open and self._lock.acquire(blocking=False):
            try:
                self._pay()
            finally:
                self._lock.release()

    def withdraw(self, slot: int) -> None:
        """The same of a slot that was announced for a caller who has gone."""
        self.owe("dibs_withdraw", slot, 0)

    def owe(self, what: str, *arguments: Any) -> None:
        """Calls the function when there is room for its entry."""
        self._owed.append((what, arguments))
        self.orphan()

    @property
    def owes(self) -> bool:
        return bool(self._owed)

    def _pay(self) -> None:
        while self._owed:
            first = self._owed[0]
            what, arguments = first
            if getattr(library, what)(self.handle, *arguments) == _abi.EFULL:
                return
            # A finalizer that ran meanwhile may have paid it, and others behind it.
            if self._owed and self._owed[0] is first:
                self._owed.popleft()

    # ---- submitting

    def submit(self, op: _abi.Op, on_end: OnEnd) -> int:
        """Submits one operation; on_end gets its completion. Returns the ticket of a claim."""
        op.user_data = self._next
        self._next += 1
        with self as handle:
            if op.kind == _abi.OP_CLAIM and self._events:
                # It may take the place of a lease that has ended, whose answer is read before.
                while self._reap(0) == REAP_MAX:
                    pass
            self._waiting[op.user_data] = on_end
            code = library.dibs_submit(handle, op, 1)
            if code < 0:
                del self._waiting[op.user_data]
                raise errors.of_code(code, _too_much(op) if code == errors.BadPayload.code else "")
        return int(op.ticket)

    def abandon(self, op: _abi.Op) -> None:
        """No caller waits for this operation any more: a claim is cancelled, what comes late is
        given back."""
        if op.user_data not in self._waiting:
            return
        self._waiting[op.user_data] = functools.partial(self.give_up, op)
        if op.kind == _abi.OP_CLAIM:
            self._owed.append(("dibs_cancel", (op.ticket,)))
        if self.is_open:
            with self:
                self._reap(0)

    # ---- completions

    def _reap(self, timeout_ns: int) -> int:
        """Inside: takes what there is, waiting for the first, and hands it on."""
        if self._is_reaping:  # and was interrupted
            self._hand_on_all(REAP_MAX)
        self._is_reaping = True
        count = int(library.dibs_reap(self.handle, self._reaped, REAP_MAX, timeout_ns))
        self._hand_on_all(count)
        self._is_reaping = False
        if self._owed:
            self._pay()
        return count

    def _hand_on_all(self, count: int) -> None:
        for index in range(count):
            if self._reaped[index].kind != 0:
                completion = _abi.Completion.from_buffer_copy(self._reaped[index])
                self._hand_on(completion)
                self._reaped[index].kind = 0
                if completion.kind in (_abi.CLAIM_ENDED, _abi.RESULT):
                    self._waiting.pop(completion.user_data, None)

    def _hand_on(self, completion: _abi.Completion) -> None:
        if completion.kind in (_abi.LEASE_GRACE, _abi.LEASE_ENDED, _abi.LEASE_REVOKING,
                               _abi.LEASE_REQUEUED):
            event = self._events.get(completion.user_data, lambda: None)()
            if event is not None:
                event(completion)
            return
        # An interrupt between two steps hands it on once more, so its caller takes it twice alike.
        on_end = self._waiting.get(completion.user_data)
        if on_end is not None:
            on_end(completion)
        elif completion.outcome == _abi.GRANTED:
            self._owed.append(("dibs_release", (completion.lease, 0)))

    def reap(self, timeout_ns: int) -> int:
        with self:
            return self._reap(timeout_ns)

    def tell_events(self, user_data: int, event: OnEvent) -> None:
        """What happens to the lease of that claim is told to this method while its object lives."""
        self._events[user_data] = weakref.WeakMethod(event)

    def expect_again(self, user_data: int, on_end: OnEnd) -> None:
        """The claim waits again: its next end goes there."""
        self._waiting[user_data] = on_end

    def expect_no_more(self, user_data: int) -> None:
        self._waiting.pop(user_data, None)

    def forget_events(self, user_data: int) -> None:
        self._events.pop(user_data, None)

    def wait(self, op: _abi.Op, timeout: Optional[float], ended: list[_abi.Completion],
             on_end: OnEnd) -> None:
        """Submits a claim and waits until on_end has put its end into `ended`, which is its
        owner's; the session is in use all the time."""
        with self:
            self.submit(op, on_end)
            self._wait_for(ended, timeout)

    def _wait_for(self, ended: list[_abi.Completion], timeout: Optional[float]) -> None:
        until = None if timeout is None else time.monotonic() + timeout + MARGIN_S
        while not ended:
            left = SLICE_NS if until is None else int((until - time.monotonic()) * _abi.SECOND)
            count = self._reap(max(0, min(left, SLICE_NS)))
            if ended:
                return
            errors.check(count)
            if left <= 0:
                raise errors.Expired("no slot within the timeout, and no word of the broker")

    def take_back(self, op: _abi.Op, ended: list[_abi.Completion]) -> None:
        """A caller goes who waited for this claim: whatever it was granted is given back."""
        self.abandon(op)
        for end in ended:
            self.give_up(op, end)

    def give_up(self, op: _abi.Op, end: _abi.Completion) -> None:
        """How a claim or an announcement ended, and its caller has gone."""
        if op.kind == _abi.OP_ANNOUNCE and end.code >= 0:
            self.withdraw(int(end.slot))
        elif op.kind == _abi.OP_CLAIM and end.outcome == _abi.GRANTED:
            self.forget_events(int(op.user_data))
            self.orphan(end.lease)

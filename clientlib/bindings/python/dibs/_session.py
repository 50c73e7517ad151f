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
import os
import threading
import time
import weakref
from collections import deque
from typing import Any, Callable, Iterable, Mapping, Optional

from . import _abi, errors
from ._abi import library

SLICE_NS = 100_000_000
MARGIN_S = 0.02  # for the broker's word that a claim has expired
REAP_MAX = 16

OnEnd = Callable[[_abi.Completion], None]
OnEvent = Callable[[_abi.Completion], None]


def nanoseconds(seconds: Optional[float]) -> int:
    """None is for ever. Refuses what is no duration."""
    if seconds is None:
        return _abi.FOREVER
    if not seconds >= 0:
        raise errors.NegativeTime()
    return min(int(seconds * _abi.SECOND), _abi.FOREVER)


def strings(items: Iterable[str]) -> tuple[Any, int]:
    encoded = [item.encode() for item in items]
    return (ctypes.c_char_p * len(encoded))(*encoded), len(encoded)


def options(pairs: Optional[Mapping[str, str]]) -> tuple[Any, int]:
    encoded = [_abi.Option(key.encode(), str(value).encode())
               for key, value in (pairs or {}).items()]
    return (_abi.Option * len(encoded))(*encoded), len(encoded)


class Session:
    def __init__(self, path: Optional[str], timeout: float, sizes: Mapping[str, int]) -> None:
        self.handle = ctypes.c_void_p()
        self._lock = threading.RLock()  # of its own thread only a finalizer comes twice
        self._pid = os.getpid()
        self._orphans: deque[_abi.LeaseName] = deque()
        self._waiting: dict[int, OnEnd] = {}
        self._events: dict[int, weakref.WeakMethod[OnEvent]] = {}
        self._next = 1
        self._reaped = (_abi.Completion * REAP_MAX)()  # kind 0: handed on
        self._is_reaping = False
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
        if self._orphans:
            self._release_orphans()
        return self.handle

    def __exit__(self, *ignored: object) -> None:
        self._lock.release()
        if self._orphans:
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

    # ---- leases that nobody holds any more

    def orphan(self, lease: Optional[_abi.LeaseName] = None) -> None:
        """Gives a lease back now, or with the next call if the session is busy."""
        if lease is not None:
            self._orphans.append(lease)
        if self.is_open and self._lock.acquire(blocking=False):
            try:
                self._release_orphans()
            finally:
                self._lock.release()

    def _release_orphans(self) -> None:
        while self._orphans:
            lease = self._orphans.popleft()
            if library.dibs_release(self.handle, lease, 0) == _abi.EFULL:
                self._orphans.appendleft(lease)
                return

    # ---- submitting

    def submit(self, op: _abi.Op, on_end: OnEnd) -> int:
        """Submits one operation; on_end gets its completion. Returns the ticket of a claim."""
        op.user_data = self._next
        self._next += 1
        with self as handle:
            self._waiting[op.user_data] = on_end
            code = library.dibs_submit(handle, op, 1)
            if code < 0:
                del self._waiting[op.user_data]
                raise errors.of_code(code)
        return int(op.ticket)

    def abandon(self, op: _abi.Op) -> None:
        """Nobody waits for this claim any more: it is cancelled, a late grant released."""
        if self._waiting.pop(op.user_data, None) is None or not self.is_open:
            return
        with self as handle:
            self._reap(0)
            while library.dibs_cancel(handle, op.ticket) == _abi.EFULL and self._reap(0) > 0:
                pass

    # ---- completions

    def _reap(self, timeout_ns: int) -> int:
        """Inside: takes what there is, waiting for the first, and hands it on."""
        if self._is_reaping:  # and was interrupted
            self._hand_on_all(REAP_MAX)
        self._is_reaping = True
        count = int(library.dibs_reap(self.handle, self._reaped, REAP_MAX, timeout_ns))
        self._hand_on_all(count)
        self._is_reaping = False
        return count

    def _hand_on_all(self, count: int) -> None:
        for index in range(count):
            if self._reaped[index].kind != 0:
                self._hand_on(_abi.Completion.from_buffer_copy(self._reaped[index]))
                self._reaped[index].kind = 0

    def _hand_on(self, completion: _abi.Completion) -> None:
        if completion.kind in (_abi.LEASE_GRACE, _abi.LEASE_ENDED, _abi.LEASE_REVOKING,
                               _abi.LEASE_REQUEUED):
            event = self._events.get(completion.user_data, lambda: None)()
            if event is not None:
                event(completion)
            return
        on_end = self._waiting.pop(completion.user_data, None)
        if on_end is not None:
            on_end(completion)
        elif completion.outcome == _abi.GRANTED:
            self._orphans.append(completion.lease)

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

    def wait(self, op: _abi.Op, timeout: Optional[float]) -> _abi.Completion:
        """Submits a claim and waits for its end; the session is in use all the time."""
        ended: list[_abi.Completion] = []
        with self:
            try:
                self.submit(op, ended.append)
                self._wait_for(ended, timeout)
                return ended[0]
            except BaseException:
                self.abandon(op)
                if ended:
                    self.give_up(ended[0])
                raise

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

    def give_up(self, end: _abi.Completion) -> None:
        """How a claim ended, and its caller has gone."""
        if end.outcome == _abi.GRANTED:
            self.orphan(end.lease)

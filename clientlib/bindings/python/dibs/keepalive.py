# clientlib/bindings/python/dibs/keepalive.py -- when to call Lease.keepalive().
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import random
from ctypes import byref, c_int64
from typing import Optional

from . import _abi, errors
from ._session import nanoseconds


class KeepalivePolicy:
    """Says when to prolong one lease, for programs that have a loop of their own: before its end,
    and again after a call that has failed, as long as a whole call still fits. All in seconds.

        policy = dibs.KeepalivePolicy()
        failed = None
        while True:
            time.sleep(policy.wait(lease.remaining, failed))
            try:
                failed = lease.keepalive(policy.INTERVAL, wait=10)
            except dibs.Error as error:
                failed = error
    """

    INTERVAL = 120.0  # what to ask for, of a claim and of each keepalive

    def __init__(self, *, margin: float = 30, wait_most: float = 300, call: float = 10,
                 retry: float = 2, retry_most: float = 30, pause: float = 1) -> None:
        """`margin`: so long before the end it is prolonged, but after `wait_most` at the latest.
        `call`: what one call may take. `retry`: the first wait after a call that has failed, each
        further one half as long again, up to `retry_most`. `pause`: no two calls are closer. 0
        takes the default."""
        self._policy = _abi.KeepalivePolicy.sized()
        self._policy.margin_ns = nanoseconds(margin)
        self._policy.wait_most_ns = nanoseconds(wait_most)
        self._policy.call_ns = nanoseconds(call)
        self._policy.retry_ns = nanoseconds(retry)
        self._policy.retry_most_ns = nanoseconds(retry_most)
        self._policy.pause_ns = nanoseconds(pause)

    def wait(self, remaining: float, failed: Optional[errors.Error] = None) -> float:
        """How long to wait before the next call. `remaining`: of the lease, now. `failed`: what the
        last call has raised. Raises `failed` if no call can help any more, LeaseExpired if no whole
        call fits before the end."""
        wait = c_int64(0)
        code = _abi.OK if failed is None else failed.code
        answer = errors.check(_abi.library.dibs_keepalive_next(
            byref(self._policy), code, nanoseconds(remaining), random.getrandbits(64), byref(wait)))
        if answer == _abi.KEEPALIVE_WAIT:
            return wait.value / _abi.SECOND
        if answer == _abi.KEEPALIVE_LOST:
            raise errors.LeaseExpired() from failed
        assert failed is not None
        raise failed


__all__ = ["KeepalivePolicy"]

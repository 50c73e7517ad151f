# clientlib/bindings/python/dibs/errors.py -- one exception per code of dibs/dibs.h.
#
# A claim that is refused, expires, is cancelled or rejected raises; the exception says why and,
# where the broker named one, who holds what was wanted.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ctypes
import os
import pwd
from dataclasses import dataclass
from typing import Iterator, Optional

from . import _abi


@dataclass(frozen=True)
class Holder:
    """Who holds what was wanted, and since when (seconds). None: another user's, not told."""
    uid: Optional[int]
    pid: Optional[int]
    age: float
    claim: Optional[int]

    @classmethod
    def of(cls, raw: _abi.HolderName) -> Optional[Holder]:
        if raw.claim == 0:
            return None
        hidden = raw.claim == _abi.HIDDEN_CLAIM
        return cls(raw.uid if raw.uid != _abi.HIDDEN_UID else None, None if hidden else raw.pid,
                   raw.age_ns / _abi.SECOND, None if hidden else raw.claim)

    def __str__(self) -> str:
        process = "a process" if self.pid is None else f"process {self.pid}"
        user = "another user" if self.uid is None else f"user {self.uid}"
        return f"{process} of {user} for {self.age:.3f} s"


class Error(Exception):
    """Base of all: `code` is that of dibs.h, `name` its word."""

    code = 0

    def __init__(self, text: str = "", *, code: Optional[int] = None,
                 holder: Optional[Holder] = None, retry_after: Optional[float] = None,
                 worker_code: Optional[int] = None) -> None:
        if code is not None:
            self.code = code
        self.holder = holder
        self.retry_after = retry_after
        self.worker_code = worker_code
        text = text or _abi.library.dibs_strerror(self.code).decode()
        if worker_code is not None:
            text += f" with code {worker_code}"
        if holder is not None:
            text += f"; held by {holder}"
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return self.text

    @property
    def name(self) -> str:
        return str(_abi.library.dibs_reason_name(self.code).decode())


# ---- How a claim ends that is not granted and not rejected.

class Expired(Error, TimeoutError):
    """The claim's timeout passed."""


class Cancelled(Error):
    """The claim was cancelled."""


class Closed(Error, ValueError):
    """This client has been closed."""


class InUse(Error, RuntimeError):
    """Another thread is using this client: open one for each thread."""


class AlreadyEnded(Error):
    """There is no lease to prolong; its end, where it is known, is the cause of this."""
    code = 1


# ---- Said by the broker.

class NoSuchPool(Error, LookupError):
    code = -1


class BadUnits(Error, ValueError):
    code = -2


class BacklogFull(Error):
    code = -3


class ArenaFull(Error):
    code = -4


class Busy(Error):
    code = -5


class Cold(Error):
    code = -6


class Draining(Error):
    code = -7


class Duplicate(Error):
    code = -8


class LimitReached(Error):
    code = -9


class BadPayload(Error, ValueError):
    code = -10


class NotFound(Error, LookupError):
    code = -11


class Stale(Error):
    code = -12


class NotHolder(Error):
    code = -13


class WrongState(Error):
    code = -14


class Refused(Error):
    """By the worker; `worker_code` says why."""
    code = -15


class NoRoom(Error):
    code = -16


class NameInUse(Error):
    code = -17


class TablesFull(Error):
    code = -18


class HolderGone(Error):
    code = -19


class WorkerLost(Error):
    code = -20


class LeaseExpired(Error):
    code = -21


class WorkerDone(Error):
    code = -22


class Malformed(Error):
    code = -23


class NotAllowed(Error, PermissionError):
    code = -24


class Revoked(Error):
    code = -25


class StateLost(Error):
    """The broker's state failed its checks, and the session has ended with it."""
    code = -26


class Unkillable(Error):
    """A pool of strict expiry, and the broker may not kill this process."""
    code = -27


class LeaseEnded(Error):
    """There is nothing to adopt."""
    code = -28


class Adopted(Error):
    """Another session of this user has adopted the lease."""
    code = -29


class Unavailable(Error):
    """No slot of the pool has as much of a resource, whoever holds what."""
    code = -30


class BadVector(Error):
    """Not a part of a slot of this pool: an unknown resource, no amount, nothing, or more than most."""
    code = -31


class OfferExpired(Error):
    """The slot has not so much any more, or claims wait for it: ask what is offered again."""
    code = -32


class Elsewhere(Error):
    """A pool of another cluster."""
    code = -33


class ApplicationEnded(Error):
    """Its application has ended, or is ending."""
    code = -34


class ReservationTimedOut(Error):
    """Not all placeholders of the application's gang came in time."""
    code = -35


class ReservationFailed(Error):
    """They cannot come: its pool drains or goes."""
    code = -36


class ManagerGone(Error):
    """Nobody has adopted the application in time."""
    code = -37


# ---- Said by the library.

class BadArgument(Error, ValueError):
    code = -101


class UnknownSize(Error):
    code = -102


class Forked(Error):
    """The client belongs to the parent process: open one in the child."""
    code = -103


class NoBroker(Error, ConnectionError):
    code = -104


class VersionMismatch(Error):
    code = -105


class HandshakeFailed(Error):
    code = -106


class SystemFailure(Error, OSError):
    code = -107


class SessionEnded(Error):
    code = -108


class BrokerLost(SessionEnded, ConnectionError):
    """Broker and keeper have gone: connect again when there is one."""
    code = -109


class NegativeTime(Error, ValueError):
    code = -110


class BadName(Error, ValueError):
    code = -111


class BadOptions(Error, ValueError):
    code = -112


class BadLabels(Error, ValueError):
    code = -113


class RingFull(Error):
    code = -114


class Unread(Error):
    code = -115


class TimedOut(Error, TimeoutError):
    """Nothing came within the timeout; what was asked stands."""
    code = -116


class NotArmed(Error):
    code = -117


class Torn(Error):
    code = -118


class NoValue(Error, LookupError):
    code = -119


def _all(base: type[Error]) -> Iterator[type[Error]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _all(kind)


BY_CODE: dict[int, type[Error]] = {kind.code: kind for kind in _all(Error) if kind.code != 0}


def of_code(code: int, text: str = "", **about: object) -> Error:
    """The exception for a code; a code of a newer library is an Error."""
    if code == _abi.ESYSTEM and not text:
        text = os.strerror(ctypes.get_errno())
    return BY_CODE.get(code, Error)(text, code=code, **about)  # type: ignore[arg-type]


_SHARES = {6: "claims", 7: "leases", 8: "label_sets", 9: "arena"}


def _rule_of(end: _abi.Completion) -> str:
    """The setting that has refused a claim, its number and the user."""
    key, number = end.refused_by, end.refused_at
    if key == 0:
        return ""
    try:
        user = f"user {pwd.getpwuid(os.geteuid()).pw_name}"
    except KeyError:
        user = f"user {os.geteuid()}"
    if key in _SHARES:
        blocks = " blocks" if key == 9 else ""
        return (f"three quarters of the broker's {_SHARES[key]} are in use, and the rest is for users with fewer than "
                f"{number}{blocks}: {user} has as many (limits.{_SHARES[key]} in dibsd's configuration)")
    says = "[[policy]] in dibsd's configuration says so"
    held = "1 is" if number == 1 else f"{number} are"
    wait = "1 claim waits" if number == 1 else f"{number} claims wait"
    return {
        1: f"{user} may not claim from this pool: {says} (pools)",
        2: f"policy of {user}: priority_max = {ctypes.c_int32(number).value}: the claim's priority is higher",
        3: f"{user} may not have another account pay, which administrators may: {says} (account)",
        4: f"policy of {user}: leases = {number}: {held} held or waited for already",
        5: f"policy of {user}: backlog = {number}: {wait} already",
        10: "a counted pool that is not ordered by account, where nobody reads labels: order = \"account\" in its "
            "[[pool]] matches them, and workers (kind = \"worker\") are handed them",
        11: f"the claim needs {number} bytes of this session for slots and answers, and its other claims and leases "
            "leave fewer: release one, or connect with a larger down_payload=",
        12: f"policy of {user}: label_sets = {number}: a claim with new labels needs one more than its claims, leases "
            "and slots",
        13: f"policy of {user}: arena = {number}: its payloads and attributes leave fewer bytes than the claim brings",
        16: f"half of the broker's tasks of applications are in use, and {user} has a quarter of all ({number}) or more: "
            "remove applications or tasks that have ended, or raise limits.tasks in dibsd's configuration",
    }.get(key, "")


def of_completion(end: _abi.Completion) -> Error:
    """The exception for a claim that ended without a grant, or an operation that failed."""
    holder = Holder.of(end.holder)
    if end.outcome == _abi.EXPIRED:
        return Expired("no slot within the timeout", holder=holder)
    if end.outcome == _abi.CANCELLED:
        return Cancelled("the claim was cancelled")
    if end.outcome == _abi.BROKER_LOST:
        return of_code(end.code or BrokerLost.code)
    text = _rule_of(end)
    if end.code == BadPayload.code and not text:
        text = ("more than its pool takes: body, options and labels of a claim payload_max, attributes of a slot "
                "attributes_max")
    return of_code(end.code, text, holder=holder,
                   retry_after=end.retry_after_ns / _abi.SECOND if end.retry_after_ns else None,
                   worker_code=end.worker_code if end.code == _abi.EREFUSED else None)


def check(code: int) -> int:
    """A function's return value, or its exception."""
    if code < 0:
        raise of_code(code)
    return code

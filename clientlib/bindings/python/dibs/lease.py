# clientlib/bindings/python/dibs/lease.py -- what a claim was granted, until it is given back.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ctypes
import enum
import math
import time
import warnings
from dataclasses import dataclass, field
from types import TracebackType
from typing import Callable, Mapping, Optional, TypeVar

from . import _abi, errors
from ._session import SLICE_NS, Session, nanoseconds


class LeaseState(enum.IntEnum):
    LIVE = _abi.LIVE
    IN_GRACE = _abi.IN_GRACE
    ENDED = _abi.ENDED


@dataclass(frozen=True)
class Slot:
    """One unit of a lease: its number in the pool, its attributes, its worker's answer."""
    number: int
    attributes: Mapping[str, str] = field(default_factory=dict)
    answer: bytes = b""


@dataclass(frozen=True)
class Part:
    """What a lease has of one pool, by the pool's number. What writes to what a further part guards shows its fence."""
    pool: int
    id: int
    fence: int
    slots: tuple[Slot, ...]


def _slot(raw: _abi.Slot) -> Slot:
    text = ctypes.string_at(raw.attributes, raw.attributes_size) if raw.attributes_size else b""
    pairs = (item.decode(errors="replace").partition("=") for item in text.split(b"\0") if item)
    answer = ctypes.string_at(raw.answer, raw.answer_size) if raw.answer else b""
    return Slot(raw.number, {key: value for key, _, value in pairs}, answer)


class Lease:
    """A context manager: leaving it gives the lease back. Every slot is read when it is granted,
    so that attributes and answers may be looked at after its end too."""

    def __init__(self, session: Session, grant: _abi.Completion) -> None:
        self._session = session
        self._raw = _abi.LeaseName.from_buffer_copy(grant.lease)
        self._user_data = int(grant.user_data)
        self._held = False
        self._end: Optional[errors.Error] = None
        self._revoked_at: Optional[float] = None
        self._waits_again = False
        self._last_answer: Optional[bytes] = None  # when it ended
        self.provision = int(grant.provision)  # bit i: prefer[i] is missing on a slot of it
        self.claim = int(grant.claim)
        # The number of its pool: of a claim of a pool set the member that granted it. An adopted
        # lease does not say.
        self.pool: Optional[int] = int(grant.pool) if grant.kind == _abi.CLAIM_ENDED else None
        self.interval = grant.interval_ns / _abi.SECOND if grant.interval_ns else None
        self.slots: tuple[Slot, ...] = tuple(self._read(unit) for unit in range(self.units))
        self.parts = self._read_parts()  # one for each pool of its claim
        if self._user_data != 0:  # an adopted lease was no claim here: it is asked for its state
            session.tell_events(self._user_data, self._hear)

    def _hold(self) -> None:
        """From here on it is this object's to give back."""
        self._held = True

    def _read(self, unit: int) -> Slot:
        raw = _abi.Slot()
        code = self._session.call("dibs_lease_slot", self._raw, unit, raw)
        if code in (_abi.ALREADY_ENDED, _abi.ENOVALUE):  # ended before it could be looked at
            return Slot(0)
        errors.check(code)
        return _slot(raw)

    def _read_parts(self) -> tuple[Part, ...]:
        parts: list[Part] = []
        raw = _abi.Part()
        while self._session.call("dibs_lease_part", self._raw, len(parts), raw) == _abi.OK:
            slots = self.slots[raw.first_unit:raw.first_unit + raw.units]
            parts.append(Part(int(raw.pool), int(raw.id), int(raw.fence), slots))
        return tuple(parts)

    def _hear(self, event: _abi.Completion) -> None:
        if event.kind == _abi.LEASE_ENDED:
            self._last_answer = self._read_answer()
            self._end = errors.of_code(event.code)
        elif event.kind == _abi.LEASE_REVOKING:
            self._revoked_at = time.monotonic() + event.interval_ns / _abi.SECOND
        elif event.kind == _abi.LEASE_REQUEUED:
            self._waits_again = True
            self._session.expect_again(self._user_data, self._granted_again)

    def _granted_again(self, end: _abi.Completion) -> None:
        self._waits_again = False
        self._revoked_at = None
        if end.outcome != _abi.GRANTED:
            self._end = errors.of_completion(end)
            return
        self._raw = _abi.LeaseName.from_buffer_copy(end.lease)
        self.provision = int(end.provision)
        self.slots = tuple(self._read(unit) for unit in range(self.units))

    # ---- what it says

    @property
    def id(self) -> int:
        return int(self._raw.id)

    @property
    def fence(self) -> int:
        """Larger than that of every earlier grant of the pool: hand it on."""
        return int(self._raw.fence)

    @property
    def units(self) -> int:
        return int(self._raw.units)

    @property
    def attributes(self) -> Mapping[str, str]:
        """Of the first slot."""
        return self.slots[0].attributes

    @property
    def answer(self) -> bytes:
        """Of the first slot's worker, as it was when the lease was granted. A worker may answer
        later, as the processes of `dibs worker` do: wait_answer() has that answer."""
        return self.slots[0].answer

    def wait_answer(self, timeout: Optional[float] = None) -> Optional[bytes]:
        """Waits for the answer of the first slot's worker, which may be the end of this lease.
        None: not in time. Raises what ended the lease without an answer."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            answer = self._answer_now()
            left = SLICE_NS if until is None else int((until - time.monotonic()) * _abi.SECOND)
            if answer is not None or left <= 0:
                return answer
            errors.check(self._session.reap(min(left, SLICE_NS)))

    def _answer_now(self) -> Optional[bytes]:
        self._session.reap(0)
        answer = self._last_answer if self._end is not None else self._read_answer()
        if answer is None and self.state is LeaseState.ENDED and not self._waits_again:
            if isinstance(self._end, errors.WorkerDone):
                return self._last_answer or b""
            raise self._end or errors.of_code(_abi.ALREADY_ENDED)
        return answer

    def _read_answer(self) -> Optional[bytes]:
        answer, size = ctypes.c_void_p(), ctypes.c_size_t()
        code = self._session.call("dibs_lease_answer", self._raw, 0, answer, size)
        if code < 0 or not answer.value:
            return None
        return ctypes.string_at(answer.value, size.value)

    @property
    def state(self) -> LeaseState:
        if not self._held or self._end is not None or not self._session.is_open:
            return LeaseState.ENDED
        asked, why = self._raw, ctypes.c_int(0)
        code = self._session.call("dibs_lease_state", asked, why)
        if 0 <= code < LeaseState.ENDED:
            return LeaseState(code)
        self._session.reap(0)  # it may be the end of this lease, and not of its claim
        if self._raw is not asked:
            return self.state
        if not self._waits_again:
            self._end = self._end or errors.of_code(why.value if code >= 0 else code)
        return LeaseState.ENDED

    @property
    def revoking(self) -> Optional[float]:
        """Seconds within which a better claim wants the slot back; None: nobody does."""
        self._session.reap(0)
        if self._revoked_at is None or self.state is not LeaseState.IN_GRACE:
            return None
        return max(0.0, self._revoked_at - time.monotonic())

    @property
    def waits_again(self) -> bool:
        """It was taken, and its claim waits again, in its place."""
        self._session.reap(0)
        return self._waits_again

    def wait_again(self, timeout: Optional[float] = None) -> bool:
        """Waits until the claim is granted again: this object is that lease then, with a higher
        fence. False: not in time. Raises what else ended the claim."""
        until = None if timeout is None else time.monotonic() + timeout
        while self.waits_again:
            left = SLICE_NS if until is None else int((until - time.monotonic()) * _abi.SECOND)
            if left <= 0:
                return False
            errors.check(self._session.reap(min(left, SLICE_NS)))
        if self._end is not None:
            raise self._end
        return True

    @property
    def ended_by(self) -> Optional[errors.Error]:
        """Why it has ended without its holder's doing; None: it has not."""
        if self._held:
            _ = self.state
        return self._end

    @property
    def remaining(self) -> float:
        """Seconds until it must be kept alive; infinite if it is bound to this process."""
        left = ctypes.c_int64(0)
        code = self._session.call("dibs_lease_remaining", self._raw, left)
        if code == _abi.ALREADY_ENDED:
            return 0.0
        errors.check(code)
        return math.inf if left.value == _abi.FOREVER else left.value / _abi.SECOND

    # ---- what is done with it

    def keepalive(self, interval: Optional[float] = None, *, wait: float = 0) -> None:
        """Prolongs it to `interval` seconds from now, or as it was granted. AlreadyEnded, because
        of `ended_by`: somebody else may hold by now what it held."""
        code = errors.check(self._session.call(
            "dibs_keepalive", self._raw, nanoseconds(interval or 0), nanoseconds(wait), None))
        if code == _abi.ALREADY_ENDED:
            raise errors.of_code(code) from self.ended_by

    def touch(self) -> None:
        """Prolongs a lease that was claimed with `by_word`, without asking the broker: it looks
        when the lease is about to expire. Too late: AlreadyEnded, because of `ended_by`, where its
        expiry ends it; LeaseExpired during a grace or in a pool of lazy expiry, where keepalive()
        may revive it. Revoked: a better claim takes it."""
        code = self._session.call("dibs_touch", self._raw)
        if code == errors.WrongState.code:
            raise errors.WrongState("touch() is for a lease that was claimed with by_word=True (and interval=); "
                                    "keepalive() prolongs this one")
        errors.check(code)
        if code == _abi.ALREADY_ENDED:
            raise errors.of_code(code) from self.ended_by

    def release(self, *, wait: float = 0) -> bool:
        """Gives it back. False: it had ended before."""
        return self._give_back("dibs_release", wait)

    def fail(self, *, wait: float = 0) -> bool:
        """Gives it back as broken: its worker must say ready before it is granted again."""
        return self._give_back("dibs_fail", wait)

    def _give_back(self, how: str, wait: float) -> bool:
        if not self._held:
            return False
        code = self._session.call(how, self._raw, nanoseconds(wait))
        while code == _abi.EFULL and not self._session.queues:  # the broker reads, or the session ends
            self._session.reap(1_000_000)
            code = self._session.call(how, self._raw, nanoseconds(wait))
        if code == _abi.EFULL:
            self._session.owe(how, self._raw, 0)
            code = _abi.OK
        self._held = False
        self._session.forget_events(self._user_data)
        if self._waits_again:
            self._session.expect_no_more(self._user_data)
        return errors.check(code) != _abi.ALREADY_ENDED and self._end is None

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        try:
            if self._session.is_open:
                self.release()
        except errors.Error:
            if error is None:
                raise

    def __del__(self) -> None:
        if getattr(self, "_held", False) and self._session.is_open:
            if self._end is None:
                warnings.warn(f"lease l{self.id:#x} was not released", ResourceWarning, source=self)
            self._held = False
            self._session.forget_events(self._user_data)
            self._session.orphan(self._raw)

    def __repr__(self) -> str:
        return f"<dibs.Lease l{self.id:#x} fence={self.fence} units={self.units}>"


Kept = TypeVar("Kept", bound=Lease)


def keep(make: Callable[[_abi.Completion], Kept], ended: list[_abi.Completion], kept: list[Kept],
         end: _abi.Completion) -> None:
    """Notes how a claim ended. A lease is made at once, not when its claimer runs: its end, and
    with it the worker's answer, may come in the same batch."""
    ended.append(end)
    if end.outcome == _abi.GRANTED and not kept:
        kept.append(make(end))


__all__ = ["Lease", "LeaseState", "Slot"]

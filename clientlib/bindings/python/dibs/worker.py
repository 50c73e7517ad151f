# clientlib/bindings/python/dibs/worker.py -- a worker's side: the slot that it offers, and the
# assignments that it is told.
#
#     slot = client.announce("web", name="w-1", attributes={"port": "8081"})
#     for work in client.assignments():
#         if work.is_revocation:
#             work.ready()
#         else:
#             work.confirm()
#             work.done(serve(work.body))
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ctypes
from typing import Iterable, Mapping, Optional, Union

from . import _abi, _amounts, errors
from ._session import Session, nanoseconds, octets, options, strings


class OfferedSlot:
    """A slot that this process offers."""

    def __init__(self, session: Session, slot: int, answer_max: int) -> None:
        self._session = session
        self.id = slot
        session.answer_max[slot] = answer_max

    def ready(self, round: int = 0, *, wait: float = 0) -> None:
        """It is clean and may be granted; round 0: it was announced unready."""
        errors.check(self._session.call("dibs_ready", self.id, round, nanoseconds(wait)))

    def protect(self, on: bool = True, *, wait: float = 0) -> None:
        """Not to be granted until it is unprotected."""
        errors.check(self._session.call("dibs_protect", self.id, int(on), nanoseconds(wait)))

    def withdraw(self, *, wait: float = 0) -> None:
        """Offered no longer; a lease on it runs on."""
        errors.check(self._session.call("dibs_withdraw", self.id, nanoseconds(wait)))

    def __repr__(self) -> str:
        return f"<dibs.OfferedSlot s{self.id:#x}>"


class Assignment:
    """The slot was chosen for a claim (confirm or refuse), or is no longer held (say ready). To a
    provisioner: a worker is wanted for the order `slot`, whose text is `order`, or it is to stop."""

    def __init__(self, session: Session, raw: _abi.Assignment, is_readable: bool) -> None:
        self._session = session
        self.is_revocation = raw.kind == _abi.REVOKE
        self.is_order = raw.kind == _abi.CREATE
        self.is_stop = raw.kind == _abi.STOP
        # A better claim takes the slot: seconds in which what runs there has to end.
        self.revoking = raw.left_ns / _abi.SECOND if raw.kind == _abi.REVOKING else None
        self.is_readable = is_readable  # no: refuse it
        self.slot = int(raw.slot)
        self.round = int(raw.round)
        self.number = int(raw.number)
        self.worker_tag = int(raw.worker_tag)
        self.claim = int(raw.claim)
        # Copied: the C library's stay only until the worker's next word.
        self.body = ctypes.string_at(raw.body, raw.body_size) if raw.body else b""
        self.order = self.body.decode() if self.is_order else None
        self.options = {raw.options[i].key.decode(errors="replace"):
                        (raw.options[i].value or b"").decode(errors="replace")
                        for i in range(raw.option_count)}
        self.labels = tuple(raw.labels[i].decode(errors="replace")
                            for i in range(raw.label_count))
        self.prefer = tuple(raw.prefer[i].decode(errors="replace")
                            for i in range(raw.prefer_count))
        # Of them, those that the slot lacks.
        self.provision = tuple(label for i, label in enumerate(self.prefer)
                               if raw.provision >> i & 1)
        # Of an order: claims for so many more workers of that size wait.
        self.width = int(raw.width)
        # Of a part of a slot what it has, of an order what its worker is to have at least: by name,
        # whole numbers.
        texts = (raw.resources[i].decode() for i in range(raw.resource_count))
        self.resources = {name: int(amount)
                          for name, _, amount in (text.partition("=") for text in texts)}

    def confirm(self, answer: bytes = b"", *, wait: float = 0) -> None:
        """The work is taken; the answer goes to the holder."""
        self._answer("dibs_confirm", answer, nanoseconds(wait))

    def refuse(self, code: int = 0, *, try_again: bool = True, wait: float = 0) -> None:
        """Not taken. try_again: the claim waits on, else it ends rejected with `code`."""
        self._say("dibs_refuse", code, int(try_again), nanoseconds(wait))

    def done(self, answer: bytes = b"", *, then_ready: bool = True, wait: float = 0) -> None:
        """The work is done: the lease ends. then_ready: the slot may be granted at once."""
        self._answer("dibs_done", answer, int(then_ready), nanoseconds(wait))

    def ready(self, *, wait: float = 0) -> None:
        """The slot is clean and may be granted again."""
        self._say("dibs_ready", nanoseconds(wait))

    def _answer(self, what: str, answer: bytes, *arguments: object) -> None:
        answer = octets("an answer", answer)
        most = self._session.answer_max.get(self.slot)
        if most is not None and len(answer) > most:
            raise errors.BadPayload(f"the answer has {len(answer)} bytes, and its pool takes at most "
                                    f"{most} (answer_max): nothing was said")
        self._say(what, answer, len(answer), *arguments)

    def _say(self, what: str, *arguments: object) -> None:
        errors.check(self._session.call(what, self.slot, self.round, *arguments))

    def __repr__(self) -> str:
        kind = ("revocation" if self.is_revocation else "order" if self.is_order
                else "stop" if self.is_stop else "assignment")
        return f"<dibs.Assignment {kind} slot=s{self.slot:#x} round={self.round}>"


def announce_options(name: Optional[str], labels: Iterable[str],
                     attributes: Optional[Mapping[str, str]], worker_tag: int,
                     is_protected: bool, ready: bool,
                     resources: Optional[Mapping[str, Union[int, str]]],
                     parts: int, order: Optional[str] = None) -> _abi.AnnounceOptions:
    if not 0 <= worker_tag < 2**64:
        raise errors.BadArgument(f"a worker_tag is from 0 to 2**64 - 1, not {worker_tag}")
    if not 0 <= parts < 2**32:
        raise errors.BadArgument(f"parts are from 0 to 2**32 - 1, not {parts}")
    amounts, amount_count = _amounts.texts("resources", resources or {})
    label_array, label_count = strings(labels)
    pairs, pair_count = options(attributes)
    made: _abi.AnnounceOptions = _abi.AnnounceOptions.sized(
        name=name.encode() if name is not None else None, labels=label_array,
        label_count=label_count, attributes=pairs, attribute_count=pair_count,
        worker_tag=worker_tag, is_protected=int(is_protected), ready=int(ready),
        resources=amounts, resource_count=amount_count, parts=parts,
        order=order.encode() if order is not None else None)
    return made


def take_assignment(session: Session, timeout_ns: int) -> Optional[Assignment]:
    """The next one, waiting once; None if there is none."""
    raw = _abi.Assignment()
    with session as handle:
        code = _abi.library.dibs_next_assignment(handle, timeout_ns, raw)
        if code == _abi.ETIMEDOUT:
            return None
        if code != _abi.EPAYLOAD:
            errors.check(code)
        return Assignment(session, raw, code == _abi.OK)

# clientlib/bindings/python/dibs/application.py -- a manager's side: applications, their gangs and
# their tasks.
#
#     training = client.add_application("training", "gpu", groups={"worker": 4})
#     training.wait_for("running", timeout=60)
#     with training.claim("rank-0", group="worker") as lease:    # in four processes
#         ...
#     training.complete()
#
# An application outlives its client for manager_timeout: another client adopts it within that.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ctypes
import dataclasses
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Mapping, Optional, Union

from . import _abi, _amounts, errors
from ._abi import library
from ._session import SLICE_NS, Session, nanoseconds

if TYPE_CHECKING:
    from .client import Client
    from .lease import Lease

# Members, or members and how much of one slot each of them wants.
Group = Union[int, tuple[int, Mapping[str, Union[int, str]]]]
NONE: Mapping[str, Group] = {}
ENDED = ("completed", "failed", "killed", "removed")
GANG_DROPPED = ("the gang was dropped, and the application goes on without one: a group has no members or no name, two "
                "have one name, or one wants what is no resource of the pool")
MEMBERS_MAX = 2**32 - 1
PRIORITY_MAX = 2**31 - 1


@dataclass(frozen=True)
class ApplicationEvent:
    """`before` the same as `state`: a warning, about tasks alone, or for who adopts it. `error`:
    why, if anything is wrong. `tasks_failed`: of those that had no claim."""
    name: str
    number: int
    state: str
    before: str
    error: Optional[errors.Error]
    tasks_failed: int

    @classmethod
    def of(cls, raw: _abi.AppEvent) -> ApplicationEvent:
        def word(state: int) -> str:
            return str(library.dibs_app_state_name(state).decode())
        text = GANG_DROPPED if raw.code == errors.Malformed.code else ""
        error = errors.of_code(raw.code, text) if raw.code < 0 else None
        return cls(raw.name.decode(errors="replace"), raw.number, word(raw.state),
                   word(raw.before), error, raw.tasks_failed)


class Application:
    """One that this client manages."""

    def __init__(self, client: Client, session: Session, name: str, pool: Union[str, int],
                 number: int) -> None:
        self._client = client
        self._session = session
        self.name = name
        self.pool = pool
        self.number = number
        self.state: Optional[str] = None  # as of the last event that was taken
        self.error: Optional[errors.Error] = None

    def hear(self, event: ApplicationEvent) -> None:
        self.number = event.number
        self.state = event.state
        self.error = event.error if event.error is not None else self.error

    def wait_for(self, state: str = "running", timeout: Optional[float] = None) -> bool:
        """Takes events until it has that state; False if the time is over, or it has ended in
        another one (`error` says why)."""
        until = None if timeout is None else time.monotonic() + timeout
        while self.state != state and self.state not in ENDED:
            left = None if until is None else max(0.0, until - time.monotonic())
            if self._client.next_application_event(left) is None:
                return False
        return self.state == state

    def claim(self, task: str, *, group: Optional[str] = None, **how: Any) -> Lease:
        """A claim of a task of it; `how` as for Client.claim."""
        from .client import Terms
        terms = dataclasses.replace(how.pop("terms", Terms()), application=self.name, task=task,
                                    group=group)
        return self._client.claim(self.pool, terms=terms, **how)

    def complete(self, *, wait: float = 5) -> None:
        """It has done its work: placeholders go, claims of its tasks end."""
        self._say("dibs_app_complete", wait)

    def fail(self, *, wait: float = 5) -> None:
        """It fails; leases of its tasks stay."""
        self._say("dibs_app_fail", wait)

    def kill(self, *, wait: float = 5) -> None:
        """It fails, and leases of its tasks are revoked."""
        self._say("dibs_app_kill", wait)

    def recovered(self, *, wait: float = 5) -> None:
        """All tasks of a recovering one have been added."""
        self._say("dibs_app_recovered", wait)

    def remove(self, *, wait: float = 5) -> None:
        """Forgets it; its name is free. WrongState names how many tasks have not ended."""
        tasks = ctypes.c_uint64(0)
        code = self._session.call("dibs_app_remove", name_bytes(self.name), nanoseconds(wait), tasks)
        if code == errors.WrongState.code:
            raise errors.WrongState(f"{tasks.value} tasks of application {self.name} have not ended")
        if code in (_abi.OK, errors.NotFound.code):
            self._client._forget(self.name)
        errors.check(code)

    def add_task(self, task: str, *, group: Optional[str] = None, priority: int = 1,
                 assigned: bool = False, wait: float = 5) -> None:
        """`assigned`, of a recovering one: it runs already, outside of any lease."""
        raw = _abi.AppTask.sized(name=name_bytes(task),
                                 group=name_bytes(group) if group is not None else None,
                                 priority=_whole("priority", priority, PRIORITY_MAX),
                                 assigned=int(assigned))
        code = self._session.call("dibs_app_add_task", name_bytes(self.name), raw, nanoseconds(wait))
        if code == errors.Duplicate.code:
            raise errors.Duplicate(f"task {task} of application {self.name} is there already, and stays as it is")
        errors.check(code)

    def remove_task(self, task: str, *, wait: float = 5) -> None:
        """Forgets a task that has ended."""
        self._say("dibs_app_remove_task", wait, name_bytes(task))

    def complete_task(self, task: str, *, wait: float = 5) -> None:
        """Its claim ends, or its lease."""
        self._say("dibs_app_complete_task", wait, name_bytes(task))

    def _say(self, what: str, wait: float, *names: bytes) -> None:
        errors.check(self._session.call(what, name_bytes(self.name), *names, nanoseconds(wait)))

    def __repr__(self) -> str:
        return f"<dibs.Application {self.name!r} number={self.number} {self.state}>"


def name_bytes(name: str) -> bytes:
    """An application's, task's or group's name. A zero byte would end it early in C."""
    made = name.encode()
    if any(byte < 0x20 or byte == 0x7F for byte in made):
        raise errors.BadName(f"a name has no control characters: {name!r}")
    return made


def _whole(what: str, number: int, most: int) -> int:
    """ctypes would cut off what does not fit."""
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= most:
        raise errors.BadArgument(f"{what}: a whole number from 0 to {most}, not {number!r}")
    return number


def _groups(groups: Mapping[str, Group]) -> Any:
    rows = []
    for name, wanted in groups.items():
        members, resources = wanted if isinstance(wanted, tuple) else (wanted, {})
        members = _whole(f"group {name!r}: members", members, MEMBERS_MAX)
        texts, count = _amounts.texts("resources", resources)
        rows.append(_abi.AppGroup(name=name_bytes(name), members=members, resource=texts,
                                  resource_count=count))
    return (_abi.AppGroup * len(rows))(*rows)


def add(session: Session, pool: int, name: str, groups: Mapping[str, Group], priority: int,
        placeholder_timeout: Optional[float], manager_timeout: Optional[float], age: float,
        hard: bool, recover: bool, parameters: Optional[str], tags: Optional[str],
        timeout: float) -> int:
    rows = _groups(groups)
    raw = _abi.App.sized(
        name=name_bytes(name), pool=pool, priority=_whole("priority", priority, PRIORITY_MAX),
        groups=rows, group_count=len(rows),
        placeholder_timeout_ns=nanoseconds(placeholder_timeout),
        manager_timeout_ns=nanoseconds(manager_timeout), age_ns=nanoseconds(age),
        style=_abi.GANG_HARD if hard else _abi.GANG_SOFT, recover=int(recover),
        parameters=parameters.encode() if parameters is not None else None,
        tags=tags.encode() if tags is not None else None)
    number = ctypes.c_uint64(0)
    code = session.call("dibs_app_add", raw, nanoseconds(timeout), number)
    if code == errors.Duplicate.code:
        raise errors.Duplicate(f"application {name} is there already, and stays as it is: adopt_application() makes "
                               "this client its manager if it has none")
    errors.check(code)
    return number.value


def adopt(session: Session, name: str, timeout: float) -> Optional[int]:
    """Its number; None: this session is its manager already."""
    number = ctypes.c_uint64(0)
    code = errors.check(session.call("dibs_app_adopt", name_bytes(name), nanoseconds(timeout), number))
    return None if code == errors.AlreadyEnded.code else number.value


def take_event(session: Session, timeout: Optional[float]) -> Optional[ApplicationEvent]:
    until = None if timeout is None else time.monotonic() + timeout
    raw = _abi.AppEvent.sized()
    with session as handle:  # in use all the time
        while True:
            left = SLICE_NS if until is None else int((until - time.monotonic()) * _abi.SECOND)
            code = library.dibs_app_next(handle, raw, max(0, min(left, SLICE_NS)))
            if code == _abi.OK:
                return ApplicationEvent.of(raw)
            if code != _abi.ETIMEDOUT:
                errors.check(code)
            if left <= 0:
                return None
            session.reap(0)  # leases' events, if this client holds some too

# clientlib/bindings/python/dibs/administration.py -- accounts, workers that do not attach, and queues
# of dispatched pools; for administrators.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Iterable, Mapping, Optional, Sequence

from . import _abi, errors
from ._abi import library
from ._session import nanoseconds, strings


@dataclass(frozen=True)
class Pulled:
    """What a worker is to run. `claim` None: nothing; `abort`: what it is to end first."""
    worker: str
    claim: Optional[int]
    abort: Optional[int]
    provision: tuple[str, ...]  # labels that the claim prefers and the worker lacks


@dataclass(frozen=True)
class Order:
    """What is to be done: `kind` is lock, unlock, kill or start; the last two on a worker."""
    kind: str
    entry: str
    number: int  # of the entry, in the order in which they were first seen
    worker: Optional[str]
    type: Optional[str]  # the worker's


_ORDERS = {_abi.ORDER_LOCK: "lock", _abi.ORDER_UNLOCK: "unlock", _abi.ORDER_KILL: "kill",
           _abi.ORDER_START: "start"}
_ENTRY_STATES = {"queued": _abi.ENTRY_QUEUED, "locked": _abi.ENTRY_LOCKED,
                 "running": _abi.ENTRY_RUNNING, "complete": _abi.ENTRY_COMPLETE,
                 "cancelled": _abi.ENTRY_CANCELLED}
_WORKER_STATES = {"unknown": _abi.WORKER_UNKNOWN, "booting": _abi.WORKER_BOOTING,
                  "idle": _abi.WORKER_IDLE, "running": _abi.WORKER_RUNNING,
                  "shutdown": _abi.WORKER_SHUTDOWN, "absent": _abi.WORKER_ABSENT}
_OPERATIONS = {"lock": _abi.DISPATCH_LOCK, "unlock": _abi.DISPATCH_UNLOCK,
               "cancel": _abi.DISPATCH_CANCEL, "forget": _abi.DISPATCH_FORGET}
_BEHAVIOURS = {"run": _abi.DISPATCH_RUN, "hold": _abi.DISPATCH_HOLD, "drain": _abi.DISPATCH_DRAIN}


def _micros(amounts: Sequence[float]) -> tuple[Any, int]:
    exact = [round(amount * _abi.MICROS) for amount in amounts]
    return (ctypes.c_int64 * len(exact))(*exact), len(exact)


class Administration:
    """Each call asks the broker over a connection of its own, and needs no client. What is refused
    is errors.WrongState with the broker's sentence."""

    def __init__(self, socket: Optional[str] = None) -> None:
        self._socket = socket

    def _ask(self, function: Any, *arguments: Any) -> int:
        to = _abi.ConnectOptions.to(self._socket)
        code: int = function(to, *arguments)
        if code < 0:
            raise errors.of_code(code, to.why)
        return code

    # ---- accounts

    def set_account(self, name: str, *, rate: Optional[Sequence[float]] = None,
                    balance: Optional[Sequence[float]] = None,
                    charge_max: Optional[float] = None, fanout_max: Optional[int] = None,
                    no_free_tasks: Optional[bool] = None,
                    label_limits: Optional[Mapping[str, Optional[int]]] = None) -> None:
        """Makes it, or changes what is not None. `rate`, slots, and `balance`, slots times
        seconds, go by class, the best first; a label limit of None takes that limit away."""
        change = _abi.AccountChange.sized()
        if rate is not None:
            change.fields |= _abi.ACCOUNT_RATE
            change.rate, change.rate_count = _micros(rate)
        if balance is not None:
            change.fields |= _abi.ACCOUNT_BALANCE
            change.balance, change.balance_count = _micros(balance)
        if charge_max is not None:
            change.fields |= _abi.ACCOUNT_CHARGE_MAX
            change.charge_max_ns = nanoseconds(charge_max)
        if fanout_max is not None:
            change.fields |= _abi.ACCOUNT_FANOUT_MAX
            change.fanout_max = fanout_max
        if no_free_tasks is not None:
            change.fields |= _abi.ACCOUNT_NO_FREE_TASKS
            change.no_free_tasks = int(no_free_tasks)
        limits = [_abi.LabelLimit(key.encode(), _abi.NO_LIMIT if slots is None else slots)
                  for key, slots in (label_limits or {}).items()]
        change.label_limits = (_abi.LabelLimit * len(limits))(*limits)
        change.label_limit_count = len(limits)
        self._ask(library.dibs_account_set, name.encode(), change)

    def reset_account(self, name: str, balance: Sequence[float] = ()) -> None:
        self._ask(library.dibs_account_reset, name.encode(), *_micros(balance))

    def delete_account(self, name: str) -> None:
        self._ask(library.dibs_account_delete, name.encode())

    # ---- workers that do not attach

    def _report(self, kind: int, pool: str, worker: Optional[str], claim: int, age: float,
                **more: Any) -> None:
        said = _abi.WorkerReport.sized(
            kind=kind, pool=pool.encode(), claim=claim, age_ns=nanoseconds(age),
            worker=worker.encode() if worker is not None else None, **more)
        self._ask(library.dibs_report, said)

    def report_idle(self, pool: str, worker: str, *, labels: Iterable[str] = (),
                    age: float = 0) -> None:
        has, count = strings(labels)
        self._report(_abi.REPORT_IDLE, pool, worker, 0, age, labels=has, label_count=count)

    def report_running(self, pool: str, worker: str, claim: int, *, age: float = 0) -> None:
        self._report(_abi.REPORT_RUNNING, pool, worker, claim, age)

    def report_absent(self, pool: str, claim: int, *, age: float = 0) -> None:
        """Nobody runs the claim, and nobody wants it any more."""
        self._report(_abi.REPORT_ABSENT, pool, None, claim, age)

    def unassign(self, pool: str, worker: str, claim: int, *, error: Optional[str] = None,
                 age: float = 0) -> None:
        """The claim is taken off the worker and waits again."""
        self._report(_abi.REPORT_UNASSIGN, pool, worker, claim, age,
                     error=error.encode() if error is not None else None)

    def report_again(self, pool: str, claim: int, *, labels: Optional[Iterable[str]] = None,
                     prefer: Optional[Iterable[str]] = None, account: Optional[str] = None,
                     age: float = 0) -> None:
        """The claim is announced again; if it runs, it waits again, with what is not None."""
        more: dict[str, Any] = {"account": account.encode() if account is not None else None}
        if labels is not None:
            more["labels"], more["label_count"] = strings(labels)
        if prefer is not None:
            more["prefer"], more["prefer_count"] = strings(prefer)
        self._report(_abi.REPORT_AGAIN, pool, None, claim, age, **more)

    def pull(self, pool: str, workers: Mapping[str, Iterable[str]], *,
             age: float = 0) -> list[Pulled]:
        """Asks for work for workers, by name, with their labels; at most 8 at once."""
        asking = (_abi.Puller * len(workers))()
        for puller, (name, labels) in zip(asking, workers.items()):
            puller.worker = name.encode()
            puller.labels, puller.label_count = strings(labels)
        told = (_abi.Pulled * max(len(workers), 1))()
        count = self._ask(library.dibs_pull, pool.encode(), asking, len(workers),
                          nanoseconds(age), told)
        return [Pulled(one.worker.decode(), one.claim or None, one.abort or None,
                       tuple(one.provision[i].value.decode()
                             for i in range(one.provision_count)))
                for one in told[:count]]

    # ---- dispatched pools

    def _said(self, kind: int, pool: str, *, entry: Optional[str] = None,
              worker: Optional[str] = None, age: float = 0, **more: Any) -> None:
        said = _abi.Dispatched.sized(
            kind=kind, pool=pool.encode(), age_ns=nanoseconds(age),
            entry=entry.encode() if entry is not None else None,
            worker=worker.encode() if worker is not None else None, **more)
        self._ask(library.dibs_dispatch_report, said)

    def report_entry(self, pool: str, entry: str, *, state: Optional[str] = None,
                     priority: Optional[int] = None, supervisor: Optional[bool] = None,
                     types: Optional[Iterable[str]] = None, age: float = 0) -> None:
        """As its queue has it; what is None stays. `types`: those that suit it, none: any."""
        more: dict[str, Any] = {"fields": 0, "state": _ENTRY_STATES[state] if state else 0}
        if priority is not None:
            more["fields"] |= _abi.ENTRY_PRIORITY
            more["priority"] = priority
        if supervisor is not None:
            more["fields"] |= _abi.ENTRY_SUPERVISOR
            more["supervisor"] = int(supervisor)
        if types is not None:
            more["fields"] |= _abi.ENTRY_TYPES
            more["members"], more["member_count"] = strings(types)
        self._said(_abi.DISPATCH_ENTRY, pool, entry=entry, age=age, **more)

    def report_queue(self, pool: str, entries: Iterable[str] = (), *, failed: bool = False,
                     age: float = 0) -> None:
        """All that a reading of the queue found, which began `age` seconds ago."""
        names, count = strings(entries)
        self._said(_abi.DISPATCH_QUEUE, pool, age=age, members=names, member_count=count,
                   failed=int(failed))

    def queue_operation(self, pool: str, entry: str, word: str) -> None:
        """lock, unlock, cancel or forget: somebody has done so, or wants it."""
        self._said(_OPERATIONS[word], pool, entry=entry)

    def report_done(self, pool: str, entry: str, *, error: Optional[str] = None) -> None:
        """A lock, an unlock or a kill that orders() told has ended; failed, if there is an error."""
        self._said(_abi.DISPATCH_DONE, pool, entry=entry, failed=int(error is not None),
                   error=error.encode() if error is not None else None)

    def report_worker(self, pool: str, worker: str, state: str, *, type: Optional[str] = None,
                      age: float = 0) -> None:
        self._said(_abi.DISPATCH_WORKER, pool, worker=worker, age=age, state=_WORKER_STATES[state],
                   type=type.encode() if type is not None else None)

    def report_process(self, pool: str, entry: str, worker: str, *,
                       exited: Optional[float] = None) -> None:
        """It is alive on the worker, or has exited so many seconds ago."""
        self._said(_abi.DISPATCH_PROCESS, pool, entry=entry, worker=worker, age=exited or 0,
                   exited=int(exited is not None))

    def report_probe(self, pool: str, worker: str, good: bool, *, age: float = 0) -> None:
        self._said(_abi.DISPATCH_PROBE, pool, worker=worker, age=age, failed=int(not good))

    def set_behaviour(self, pool: str, worker: str, behaviour: str) -> None:
        """run; hold: it takes nothing new, and is not stopped; drain: and is stopped."""
        self._said(_BEHAVIOURS[behaviour], pool, worker=worker)

    def orders(self, pool: str, *, wait: float = 0, stamp: int = 0) -> tuple[list[Order], int]:
        """What is to be done, the best entry's first, and its stamp. While there is nothing, or
        just what had `stamp`, waits so many seconds at most."""
        told = (_abi.Order * _abi.ORDERS_MAX)()
        seen = ctypes.c_uint64(stamp)
        count = self._ask(library.dibs_dispatch_orders, pool.encode(), told, len(told),
                          nanoseconds(wait), ctypes.byref(seen))
        return [Order(_ORDERS[one.kind], one.entry.decode(), one.number,
                      one.worker.decode() or None, one.type.decode() or None)
                for one in told[:count]], seen.value

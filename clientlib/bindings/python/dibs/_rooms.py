# clientlib/bindings/python/dibs/_rooms.py -- which claims of a session wait until an earlier one has gone.
#
# The broker keeps room for the slots and answers of each claim in the session's down_payload, until the
# lease has been given back, and refuses a claim for which none is left. So claims are admitted in order of
# arrival, as many as fit. What a claim needs is reckoned as docs/protocol.md has it; the broker's refusal
# says it exactly. What was given back may be counted a turn late, so a refused claim is tried once more at
# once, then whenever something has gone, and with each look of the client's net.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio
import heapq
import itertools
from typing import Callable, Sequence

Kind = tuple[tuple[int, int], ...]  # pools and their units: claims that need the same

SIZE = 64 << 10  # the session's down_payload where the caller names none
SIZE_MAX = 4 << 20
RETRIES = 2


def need_of(pools: Sequence[tuple[int, int, int]]) -> int:
    """Of (units, attributes_max, answer_max) of each pool. Over several, a region is as large as the largest needs."""
    units = sum(pool[0] for pool in pools)
    place = max(16 + attributes_max for _, attributes_max, _ in pools)
    answers = max(_round_up(16 + attributes_max + 2 * answer_max, 8) - 16 - attributes_max
                  for _, attributes_max, answer_max in pools)
    parts = 200 if len(pools) > 1 else 0
    return _round_up(16 + units * _round_up(place + answers, 8) + parts, 64)


def _round_up(number: int, step: int) -> int:
    return -(-number // step) * step


class Rooms:
    """Claims of one pool wait in order of arrival; those of another pool are not behind them. One over several
    pools waits in each, and is admitted when it is the first in all."""

    def __init__(self, size: int, need: Callable[[Kind], int]) -> None:
        self.size = size
        self._need = need
        self._needs: dict[Kind, int] = {}
        self._held: dict[int, Kind] = {}  # by place in the order of arrival
        self._used = 0
        self._refused: dict[int, int] = {}  # by place: how often since something has gone
        self._waiting: dict[int, list[tuple[int, Kind, asyncio.Future[None]]]] = {}  # heaps, by pool
        self._places = itertools.count()

    def arrive(self) -> int:
        """A place in the order of arrival."""
        return next(self._places)

    def take(self, place: int, kind: Kind) -> bool:
        """Admits a claim that has just come, unless an earlier one of its pool waits or there is no room."""
        self.admit()
        if kind not in self._needs:
            self._needs[kind] = self._need(kind)
        if any(pool in self._waiting for pool, _ in kind) or not self._fits(place, kind):
            return False
        self._hold(place, kind)
        return True

    def wait(self, place: int, kind: Kind, admitted: asyncio.Future[None]) -> None:
        for pool, _ in kind:
            heapq.heappush(self._waiting.setdefault(pool, []), (place, kind, admitted))
        self.admit()

    def admit(self) -> None:
        while self._admit_first():
            pass

    def _admit_first(self) -> bool:
        """Of all that stand first in each of their pools and fit, those that came first. False: none."""
        for pool, line in list(self._waiting.items()):
            while line and line[0][2].done():
                heapq.heappop(line)
            if not line:
                del self._waiting[pool]
        heads = sorted((line[0] for line in self._waiting.values()), key=lambda head: head[0])
        found = False
        for place, kind, admitted in heads:
            is_first = all(self._waiting[pool][0][0] == place for pool, _ in kind)
            if is_first and not admitted.done() and self._fits(place, kind):
                self._hold(place, kind)
                admitted.set_result(None)
                found = True
        return found

    def refuse(self, place: int, kind: Kind, need: int) -> bool:
        """The broker had no room of `need` bytes for this claim. False: it will not have it."""
        self._held.pop(place, None)
        self._needs[kind] = need
        self._used = sum(self._needs[each] for each in list(self._held.values()))
        self._refused[place] = self._refused.get(place, 0) + 1
        return need <= self.size and (bool(self._held) or self._refused[place] <= RETRIES)

    def drop(self, place: int) -> None:
        """The claim has ended, or its lease. Who waits is admitted later: a finalizer may say so."""
        kind = self._held.pop(place, None)
        if kind is not None:
            self._used -= self._needs[kind]
            self._refused = {}

    def retry(self) -> None:
        self._refused = {}
        self.admit()

    def _fits(self, place: int, kind: Kind) -> bool:
        if not self._held:
            return True
        return self._refused.get(place, 0) < RETRIES and self._used + self._needs[kind] <= self.size

    def _hold(self, place: int, kind: Kind) -> None:
        self._held[place] = kind
        self._used += self._needs[kind]

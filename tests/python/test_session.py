# tests/python/test_session.py -- what a session owes the broker is paid, whoever runs in between.
# SPDX-License-Identifier: Apache-2.0
from collections import deque

from dibs import _session
from dibs._session import Session


def test_a_finalizer_that_pays_in_the_middle_takes_nothing_from_the_others(monkeypatch):
    paid = []

    class Library:
        def dibs_release(self, _, lease, __):
            paid.append(lease)
            if paid == [1]:
                session._pay()  # as a finalizer does that runs in the call
                session._owed.append(("dibs_release", (4, 0)))
            return 0

    session = Session.__new__(Session)
    session.handle = None
    session._owed = deque(("dibs_release", (lease, 0)) for lease in (1, 2, 3))
    monkeypatch.setattr(_session, "library", Library())
    session._pay()
    assert set(paid) == {1, 2, 3, 4}
    assert not session._owed

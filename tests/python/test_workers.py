# tests/python/test_workers.py -- a worker in Python, and a client that claims its slot.
# SPDX-License-Identifier: Apache-2.0
import os
import signal
import threading

import dibs
import pytest
from dibs import errors

from conftest import heard, until


def claiming(client, results, pool="web", **options):
    """A claim in a thread of its own, with its lease or its exception as the result."""
    def claim():
        try:
            results.append(client.claim(pool, timeout=60, **options))
        except dibs.Error as error:
            results.append(error)
    thread = threading.Thread(target=claim)
    thread.start()
    return thread


def test_a_claim_reaches_its_worker_and_the_answer_comes_back(client, other):
    slot = other.announce("web", name="w-1", attributes={"port": "81"}, worker_tag=31)
    results = []
    thread = claiming(client, results, body=b"a\0body", options={"url": "about:blank"},
                      labels=["headless"])
    work = other.next_assignment(60)
    assert not work.is_revocation and work.is_readable
    assert (work.slot, work.worker_tag) == (slot.id, 31)
    assert (work.body, work.options, work.labels) == (b"a\0body", {"url": "about:blank"},
                                                      ("headless",))
    work.confirm(b"ws://81")
    thread.join()
    with results[0] as lease:
        assert lease.answer == b"ws://81"
        assert lease.attributes == {"port": "81"}
    over = other.next_assignment(60)
    assert over.is_revocation
    over.ready(wait=5)
    until(lambda: client.snapshot("web").idle == 1)


def test_done_ends_the_lease(client, other):
    other.announce("web")
    results = []
    thread = claiming(client, results)
    work = next(other.assignments())
    work.confirm()
    thread.join()
    work.done(b"42", wait=5)
    until(lambda: results[0].state == dibs.LeaseState.ENDED)
    assert isinstance(results[0].ended_by, errors.WorkerDone)
    assert results[0].release() is False


def test_an_answer_that_comes_with_the_grant_stays_when_another_claim_follows(dibsd, client, other):
    other.announce("web")
    results = []
    thread = claiming(client, results)
    work = other.next_assignment(60)
    os.kill(dibsd.process.pid, signal.SIGSTOP)  # the broker will read both words at once
    work.confirm()
    work.done(b"42")
    os.kill(dibsd.process.pid, signal.SIGCONT)
    thread.join()
    for _ in range(3):  # each may take the place that the lease had
        heard(lambda: client.claim("one", timeout=60)).release()
    assert results[0].wait_answer(timeout=60) == b"42"


def test_a_refusal_says_the_workers_code(client, other):
    other.announce("web")
    results = []
    thread = claiming(client, results)
    other.next_assignment(60).refuse(-9, try_again=False, wait=5)
    thread.join()
    assert isinstance(results[0], errors.Refused)
    assert results[0].worker_code == -9
    assert str(results[0]) == "the worker refused with code -9"


def test_a_protected_slot_is_not_granted(client, other):
    slot = other.announce("web", ready=False)
    slot.protect(wait=5)
    slot.ready(wait=5)
    with pytest.raises(errors.Busy):
        heard(lambda: client.claim("web", timeout=0))
    slot.protect(False, wait=5)
    until(lambda: client.snapshot("web").idle == 1)
    slot.withdraw(wait=5)
    until(lambda: client.snapshot("web").slots == 0)


def test_words_of_another_round_are_stale(client, other):
    other.announce("web")
    results = []
    thread = claiming(client, results)
    work = other.next_assignment(60)
    work.round += 5
    with pytest.raises(errors.Stale):
        work.confirm(wait=5)
    work.round -= 5
    work.confirm()
    thread.join()
    results[0].release()


def test_no_assignment_within_the_timeout_is_none(other):
    other.announce("web")
    assert other.next_assignment(0.01) is None


def test_a_name_is_one_sessions(client, other):
    other.announce("web", name="w-1")
    with pytest.raises(errors.NameInUse):
        client.announce("web", name="w-1")


def test_a_worker_of_a_further_pool_has_the_body_and_its_answer_is_its_part(client, other):
    other.announce("web", attributes={"port": "81"})
    results = []
    thread = claiming(client, results, "gpu", units=2, body=b"body", terms=dibs.Terms(also=[("web", 1)]))
    work = other.next_assignment(60)
    assert work.body == b"body"
    work.confirm(b"ws://81")
    thread.join()
    with results[0] as lease:
        gpu, web = lease.parts
        assert [slot.answer for slot in gpu.slots] == [b"", b""]
        assert (web.slots[0].answer, web.slots[0].attributes) == (b"ws://81", {"port": "81"})
    over = other.next_assignment(60)
    assert over.is_revocation
    over.ready(wait=5)
    until(lambda: client.snapshot("web").idle == 1 and client.snapshot("gpu").idle == 2)

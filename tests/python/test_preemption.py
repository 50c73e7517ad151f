# tests/python/test_preemption.py -- a lease that a better claim takes, and a claim that waits again.
# SPDX-License-Identifier: Apache-2.0
import tempfile

import dibs
import pytest

from conftest import Dibsd, until

CONFIG = """
log_level = "warning"
[[account]]
name = "urgent"
balance = 1000
[[pool]]
name = "gpu"
kind = "counted"
slots = 1
order = "account"
[[pool]]
name = "box"
kind = "worker"
order = "account"
"""

URGENT = dibs.Terms(account="urgent")


@pytest.fixture
def pair():
    with tempfile.TemporaryDirectory(prefix="dibs-python-") as folder:
        broker = Dibsd(folder, CONFIG)
        with dibs.connect(broker.socket, timeout=10) as one, \
                dibs.connect(broker.socket, timeout=10) as other:
            yield one, other
        broker.end()


def test_with_grace_a_holder_sees_how_long_it_has(pair):
    one, other = pair
    terms = dibs.Terms(preempt=dibs.Preempt.WITH_GRACE, preempt_grace=0.001)
    with one.claim("gpu", timeout=5, terms=terms) as lease:
        assert lease.revoking is None
        with other.claim("gpu", timeout=60, terms=URGENT) as better:
            assert better.fence > lease.fence
            until(lambda: lease.state == dibs.LeaseState.ENDED)
            assert isinstance(lease.ended_by, dibs.errors.Revoked)


def test_a_claim_waits_again_and_its_lease_is_another_one(pair):
    one, other = pair
    with one.claim("gpu", timeout=5, terms=dibs.Terms(requeue=True, preempt=dibs.Preempt.AT_ONCE)) as lease:
        before = lease.fence
        better = other.claim("gpu", timeout=60, terms=URGENT)
        until(lambda: lease.waits_again)
        assert lease.state == dibs.LeaseState.ENDED
        assert lease.ended_by is None
        assert not lease.wait_again(timeout=0)
        better.release()
        assert lease.wait_again()
        assert lease.fence > better.fence > before
        assert lease.state == dibs.LeaseState.LIVE
    until(lambda: one.snapshot("gpu").idle == 1)


def test_leaving_the_block_cancels_a_claim_that_waits_again(pair):
    one, other = pair
    with one.claim("gpu", timeout=5, terms=dibs.Terms(requeue=True, preempt=dibs.Preempt.AT_ONCE)) as lease:
        better = other.claim("gpu", timeout=60, terms=URGENT)
        until(lambda: lease.waits_again)
    until(lambda: other.snapshot("gpu").queued == 0)
    better.release()
    one.claim("gpu", timeout=60).release()


def test_an_assignment_names_the_labels_to_provision(pair):
    worker, client = pair
    worker.announce("box", labels=["cuda", "b"])
    import threading
    granted = []

    def claim():
        with client.claim("box", timeout=60, labels=["cuda"],
                          terms=dibs.Terms(prefer=("a", "b"))) as lease:
            granted.append(lease.provision)

    thread = threading.Thread(target=claim)
    thread.start()
    assignment = worker.next_assignment(60)
    assert assignment.prefer == ("a", "b")
    assert assignment.provision == ("a",)
    assignment.confirm()
    thread.join()
    assert granted == [1]

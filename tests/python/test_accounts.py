# tests/python/test_accounts.py -- shares, events, latencies, and the whole state out and in.
# SPDX-License-Identifier: Apache-2.0
import tempfile

import dibs
import pytest
from dibs import errors

from conftest import Dibsd, until

CONFIG = """
log_level = "warning"
[[account]]
name = "three"
rate = 3
[[account]]
name = "one"
rate = 1
balance = 1000
[[pool]]
name = "gpu"
kind = "counted"
slots = 4
order = "account"
"""


@pytest.fixture
def broker():
    with tempfile.TemporaryDirectory(prefix="dibs-python-") as folder:
        made = Dibsd(folder, CONFIG)
        yield made
        made.end()


def test_a_share_is_what_was_configured_beside_what_was_had(broker):
    with dibs.connect(broker.socket, timeout=10) as client:
        assert [(share.name, share.configured, share.rate) for share in client.shares()
                if share.configured] == [("three", True, 3.0), ("one", True, 1.0)]
        with client.claim("gpu", units=2, timeout=60, terms=dibs.Terms(account="one")):
            until(lambda: client.share("one").held == 2)
            client.claim("gpu", timeout=60, terms=dibs.Terms(account="three")).release()
            until(lambda: client.share("one").used > 0)
        until(lambda: client.share("one").held == 0)
        one = client.share("one")
        assert 0 < one.used <= 4 * one.counted
        with pytest.raises(errors.NotFound):
            client.share("nobody")


def test_events_tell_a_lease_from_its_grant_to_its_end(broker):
    with dibs.connect(broker.socket, timeout=10) as client, dibs.Events(broker.socket) as events:
        assert events.fileno() >= 0
        with client.claim("gpu", timeout=60, terms=dibs.Terms(account="one")) as lease:
            fence = lease.fence
            told = next(event for event in events if event.kind == "grant")
            assert (told.full, told.pool, told.fence, told.slots) == (True, "gpu", fence, (0,))
            with pytest.raises(errors.Busy):
                client.claim("gpu", units=4, when_busy=dibs.WhenBusy.REJECT)
            ended = next(event for event in events if event.kind == "end")
            assert (ended.code, ended.pool) == (errors.Busy.code, "gpu")
    with pytest.raises(errors.Closed):
        events.next(0)


def test_a_broker_goes_on_from_what_another_one_wrote_down(broker):
    with dibs.connect(broker.socket, timeout=10) as client:
        client.claim("gpu", timeout=60, terms=dibs.Terms(account="one")).release()
        until(lambda: client.share("one").used > 0)
    with tempfile.TemporaryFile() as file, \
            tempfile.TemporaryDirectory(prefix="dibs-python-") as folder:
        dibs.dump(file, broker.socket)
        assert file.seek(0, 2) > 0
        other = Dibsd(folder, CONFIG, keeper=True)
        with dibs.connect(other.socket, timeout=10) as client:
            assert client.share("one").used == 0
            file.seek(0)
            with pytest.raises(errors.WrongState):  # somebody is attached
                dibs.load(file, other.socket)
        until(lambda: loaded(file, other.socket))
        with dibs.connect(other.socket, timeout=10) as client:
            assert client.share("one").used > 0
        other.end()


def loaded(file, socket):
    """False as long as the session that was closed has not ended."""
    file.seek(0)
    try:
        dibs.load(file, socket)
        return True
    except errors.WrongState:
        return False


def test_latencies_are_the_pools_the_clients_and_ones_own(broker):
    with dibs.connect(broker.socket, timeout=10) as client:
        assert client.session_latency() == dibs.Latency(0, 0, 0, 0, 0, 0)
        for _ in range(3):
            client.claim("gpu", timeout=60).release()
        own = client.session_latency()
        assert own.count == 3 and 0 < own.p50 <= own.p99 <= own.longest
        assert client.latency("gpu").count == 3
        assert client.reported_latency().count <= 3

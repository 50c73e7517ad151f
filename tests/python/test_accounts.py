# tests/python/test_accounts.py -- shares, events, latencies, administration, and the whole state out
# and in.
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


FAR = """
log_level = "warning"
[[pool]]
name = "far"
kind = "worker"
order = "account"
[[pool]]
name = "plain"
kind = "worker"
"""


def test_an_account_is_made_changed_reset_and_deleted(broker):
    admin = dibs.Administration(broker.socket)
    with dibs.connect(broker.socket, timeout=10) as client:
        admin.set_account("web", rate=(3, 0.5), label_limits={"gpu": 2})
        until(lambda: [share.rate for share in client.shares() if share.name == "web"] == [3.5])
        admin.set_account("web", no_free_tasks=True, charge_max=90, label_limits={"gpu": None})
        admin.reset_account("web", (10,))
        assert client.share("web").rate == 3.5
        admin.delete_account("web")
        until(lambda: "web" not in [share.name for share in client.shares() if share.configured])
        with pytest.raises(errors.NotFound):
            admin.reset_account("web")
        with pytest.raises(errors.WrongState, match="rate"):
            admin.set_account("web", rate=(-1,))


def test_workers_that_do_not_attach_are_told_of_and_pull(broker):
    with tempfile.TemporaryDirectory(prefix="dibs-python-") as folder:
        made = Dibsd(folder, FAR)
        admin = dibs.Administration(made.socket)
        with dibs.connect(made.socket, timeout=10) as client:
            admin.report_idle("far", "w1")
            lease = client.claim("far", timeout=60)
            assert admin.pull("far", {"w1": ()}) == [dibs.Pulled("w1", 1, None, ())]
            admin.report_running("far", "w1", 1)
            with pytest.raises(errors.NotFound):
                admin.unassign("far", "w2", 1)
            admin.report_again("far", 1, labels=["cuda"])
            assert admin.pull("far", {"w2": (), "w3": ("cuda",)}) == [
                dibs.Pulled("w2", None, None, ()), dibs.Pulled("w3", 1, None, ())]
            admin.unassign("far", "w3", 1, error="no disk")
            with pytest.raises(errors.NotFound):
                admin.report_absent("far", 99)
            lease.release()
        with pytest.raises(errors.WrongState, match="ordered by account"):
            admin.report_idle("plain", "w")
        with pytest.raises(errors.NoSuchPool):
            admin.pull("nowhere", {"w": ()})
        made.end()


def test_latencies_are_the_pools_the_clients_and_ones_own(broker):
    with dibs.connect(broker.socket, timeout=10) as client:
        assert client.session_latency() == dibs.Latency(0, 0, 0, 0, 0, 0)
        for _ in range(3):
            client.claim("gpu", timeout=60).release()
        own = client.session_latency()
        assert own.count == 3 and 0 < own.p50 <= own.p99 <= own.longest
        assert client.latency("gpu").count == 3
        assert client.reported_latency().count <= 3


def test_a_queue_that_is_kept_elsewhere_is_dispatched():
    with tempfile.TemporaryDirectory(prefix="dibs-python-") as folder:
        made = Dibsd(folder, '[[pool]]\nname = "far"\nkind = "worker"\nworkers_max = 2\ndispatch = true\n')
        admin = dibs.Administration(made.socket)
        admin.report_worker("far", "w1", "idle", type="far")
        admin.report_entry("far", "a", priority=3, supervisor=True, types=["far"])
        admin.report_queue("far", ["a"], age=1)
        orders, stamp = admin.orders("far", wait=60)
        assert orders == [dibs.Order("lock", "a", 1, None, None)]
        assert admin.orders("far", stamp=stamp) == (orders, stamp)
        admin.report_done("far", "a")
        assert admin.orders("far", wait=60, stamp=stamp)[0] == [dibs.Order("start", "a", 1, "w1", "far")]
        admin.report_process("far", "a", "w1")
        assert admin.orders("far")[0] == []
        admin.set_behaviour("far", "w1", "hold")
        admin.report_probe("far", "w1", True)
        admin.report_entry("far", "a", state="complete")
        assert admin.orders("far")[0] == [dibs.Order("kill", "a", 1, "w1", "far")]
        admin.report_done("far", "a", error="it does not end")
        admin.report_process("far", "a", "w1", exited=0)
        for word in ("lock", "unlock", "cancel", "forget"):
            with pytest.raises(errors.NotFound, match="no entry a"):
                admin.queue_operation("far", "a", word)
        with pytest.raises(errors.WrongState, match="no type of pool far"):
            admin.report_entry("far", "b", types=["huge"])
        made.end()

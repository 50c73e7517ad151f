# tests/python/test_claims.py -- claims and leases through ctypes, against a real dibsd.
# SPDX-License-Identifier: Apache-2.0
import gc
import math
import os
import pathlib
import pwd
import signal
import sys
import tempfile
import threading
import time
import warnings

import dibs
import pytest
from dibs import errors

from conftest import CONFIG, Dibsd, heard, until


def test_a_lease_goes_back_at_the_end_of_its_block(client):
    with client.claim("one", timeout=5) as lease:
        until(lambda: client.snapshot("one").leased == 1)
        assert lease.state == dibs.LeaseState.LIVE
        assert lease.units == 1
        first = lease.fence
    assert lease.state == dibs.LeaseState.ENDED
    with client.claim("one", timeout=5) as lease:
        assert lease.fence > first


def test_a_lease_goes_back_when_its_block_raises(client):
    with pytest.raises(KeyError):
        with client.claim("one", timeout=5):
            raise KeyError("what the block raised")
    client.claim("one", timeout=5).release()


def test_attributes_name_what_was_granted(client):
    with client.claim("gpu", units=2, timeout=5) as lease:
        assert [slot.attributes["device"] for slot in lease.slots] == ["0", "1"]
        assert [slot.number for slot in lease.slots] == [0, 1]
        assert lease.attributes == {"device": "0"}
        assert lease.answer == b""


def test_a_timeout_names_the_holder(client, other):
    with other.claim("one", timeout=5):
        with pytest.raises(dibs.Expired) as raised:
            heard(lambda: client.claim("one", timeout=0.01))
    assert raised.value.holder.pid == os.getpid()
    assert raised.value.holder.uid == os.getuid()
    assert f"held by process {os.getpid()} of user {os.getuid()} for" in str(raised.value)
    assert isinstance(raised.value, TimeoutError)


def test_another_users_holder_is_not_named():
    hidden = dibs._abi.HolderName(dibs._abi.HIDDEN_UID, 0, 2 * dibs._abi.SECOND,
                                  dibs._abi.HIDDEN_CLAIM)
    holder = dibs.Holder.of(hidden)
    assert (holder.uid, holder.pid, holder.claim) == (None, None, None)
    assert str(holder) == "a process of another user for 2.000 s"
    assert dibs.Holder.of(dibs._abi.HolderName()) is None


def test_now_or_not_at_all(client, other):
    with heard(lambda: other.claim("one", timeout=0)):
        with pytest.raises(errors.Busy):
            heard(lambda: client.claim("one", timeout=0))
        with pytest.raises(errors.Busy):
            client.claim("one", timeout=60, when_busy=dibs.WhenBusy.REJECT)
        with pytest.raises(errors.Cold):
            client.claim("one", timeout=60, when_busy=dibs.WhenBusy.COLD)


def test_a_claim_waits_for_the_one_before(client, other):
    held = other.claim("one", timeout=5)
    ended = threading.Thread(target=lambda: [until(lambda: other.snapshot("one").queued == 1),
                                             held.release()])
    ended.start()
    with client.claim("one", timeout=60) as lease:
        assert lease.fence > held.fence
    ended.join()


def test_a_key_is_in_use_by_one_claim(client, other):
    with client.claim("gpu", key=b"job-17", timeout=5) as lease:
        with pytest.raises(errors.Duplicate) as raised:
            other.claim("gpu", key=b"job-17", timeout=5)
    assert raised.value.holder.claim == lease.claim


def test_a_touch_asks_nobody(client):
    with client.claim("one", timeout=5, interval=60, by_word=True) as lease:
        for _ in range(1000):
            lease.touch()
        assert 1 < lease.remaining <= 60
        lease.keepalive(30, wait=5)
    with pytest.raises(errors.AlreadyEnded):
        lease.touch()
    with client.claim("one", timeout=5, interval=60) as lease:
        with pytest.raises(errors.WrongState, match=r"claimed with by_word=True \(and interval=\)"):
            lease.touch()
        assert repr(lease) == f"<dibs.Lease l{hex(lease.id)} fence={lease.fence} units=1>"
    with pytest.raises(errors.BadArgument, match="^by_word=True needs interval=: "):
        client.claim("one", timeout=5, by_word=True)


def test_a_touch_comes_too_late_for_what_has_ended(client):
    with client.claim("one", timeout=5, interval=0.001, by_word=True) as lease:
        until(lambda: lease.state == dibs.LeaseState.ENDED)
        with pytest.raises(errors.AlreadyEnded) as late:
            lease.touch()
        assert isinstance(late.value.__cause__, errors.LeaseExpired)


@pytest.mark.parametrize("pool", ['grace = "1h"', 'expiry = "lazy"'])
def test_a_touch_comes_too_late_for_what_a_keepalive_revives(pool):
    with tempfile.TemporaryDirectory(prefix="dibs-python-") as folder:
        broker = Dibsd(folder, CONFIG.replace('name = "one"', f'name = "one"\n{pool}'))
        try:
            with dibs.connect(broker.socket) as client:
                with client.claim("one", timeout=5, interval=0.001, by_word=True) as lease:
                    until(lambda: lease.state == dibs.LeaseState.IN_GRACE)
                    with pytest.raises(errors.LeaseExpired):
                        lease.touch()
                    lease.keepalive(60, wait=5)
                    assert lease.state == dibs.LeaseState.LIVE
                    lease.touch()
        finally:
            broker.end()


def test_keepalive_prolongs(client):
    with client.claim("one", timeout=5) as bound:
        assert bound.remaining == math.inf
        assert bound.interval is None
    with client.claim("one", timeout=5, interval=60) as lease:
        assert lease.interval == 60
        assert 1 < lease.remaining <= 60
        lease.keepalive(30, wait=5)
        assert 1 < lease.remaining <= 30


def test_a_lease_that_is_not_kept_alive_ends(client):
    with client.claim("one", timeout=5, interval=0.001) as lease:
        until(lambda: lease.state == dibs.LeaseState.ENDED)
        assert isinstance(lease.ended_by, errors.LeaseExpired)
        assert lease.release() is False


def test_a_lease_that_has_ended_is_not_prolonged(client):
    with client.claim("one", timeout=5, interval=0.001) as lease:
        until(lambda: lease.state == dibs.LeaseState.ENDED)
        for wait in (0, 5):
            with pytest.raises(errors.AlreadyEnded, match="the lease has ended before") as raised:
                lease.keepalive(30, wait=wait)
            assert isinstance(raised.value.__cause__, errors.LeaseExpired)
    released = client.claim("one", timeout=5, interval=60)
    assert released.release(wait=5) is True
    with pytest.raises(errors.AlreadyEnded) as raised:
        released.keepalive()
    assert raised.value.__cause__ is None


def test_a_lease_that_has_expired_stays_ended_when_its_tag_is_granted_again(client, other):
    held = other.claim("one", timeout=5, interval=60)
    # Its events are told to nobody: it is not a claim of this client.
    adopted = client.adopt(held.id, held.fence)
    adopted.keepalive(0.001, wait=5)
    until(lambda: client._session.call("dibs_lease_state", adopted._raw, None) ==
          dibs.LeaseState.ENDED)
    client._session.reap(0)
    with client.claim("one", timeout=5) as again:
        assert again._raw.tag == adopted._raw.tag
        assert adopted.state is dibs.LeaseState.ENDED
        assert isinstance(adopted.ended_by, errors.AlreadyEnded)
        assert again.state is dibs.LeaseState.LIVE
        assert adopted.release() is False
        assert held.release() is False


def test_release_says_whether_there_was_something_to_release(client):
    lease = client.claim("one", timeout=5)
    assert lease.release(wait=5) is True
    assert lease.release() is False
    assert client.claim("one", timeout=5).fail() is True


def test_a_lease_is_adopted_by_its_id_and_fence(client, other):
    lease = client.claim("gpu", timeout=5)
    with other.adopt(lease.id, lease.fence) as adopted:
        assert (adopted.id, adopted.fence) == (lease.id, lease.fence)
        assert adopted.attributes == {"device": "0"}
        assert adopted.state == dibs.LeaseState.LIVE
        until(lambda: lease.state == dibs.LeaseState.ENDED)
        assert isinstance(lease.ended_by, errors.Adopted)
        with pytest.raises(errors.Stale):
            other.adopt(lease.id, lease.fence + 1)
    until(lambda: client.snapshot("gpu").leased == 0)


def test_what_is_wrong_has_an_exception_each(client):
    with pytest.raises(errors.NoSuchPool, match="no such pool: none"):
        client.claim("none")
    with pytest.raises(errors.NegativeTime):
        client.claim("one", timeout=-1)
    with pytest.raises(errors.NegativeTime):
        client.claim("one", timeout=math.nan)
    with pytest.raises(errors.BadUnits):
        client.claim("one", units=257)
    with pytest.raises(errors.BadOptions):
        client.claim("one", options={str(i): "" for i in range(17)})
    with pytest.raises(errors.BadArgument):
        client.claim("one", key=b"seventeen letters")
    with pytest.raises(errors.NoBroker) as raised:
        dibs.connect("/tmp/dibs-there-is-no-such-socket")
    assert isinstance(raised.value, ConnectionError)
    assert raised.value.name == "no-broker"
    assert str(raised.value) == "/tmp/dibs-there-is-no-such-socket: no broker listens there"


@pytest.mark.parametrize("reach", [
    dibs.connect, dibs.Events, lambda path: dibs.dump(1, path), lambda path: dibs.load(0, path),
    lambda path: dibs.Administration(path).delete_account("a")])
def test_who_does_not_reach_a_broker_is_told_which(reach):
    path = "/tmp/dibs-there-is-no-such-socket"
    with pytest.raises(errors.NoBroker, match=f"^{path}: no broker listens "):
        reach(path)


def test_counters_and_limits(client):
    with client.claim("gpu", timeout=5):
        until(lambda: client.snapshot("gpu").leased == 1)  # published after the grant
        counters = client.snapshot("gpu")
        assert (counters.slots, counters.idle, counters.queued) == (2, 1, 0)
    limits = client.describe("web")
    assert limits.name == "web" and limits.has_workers and limits.answer_max == 64
    until(lambda: client.totals("gpu").released == 1)
    totals = client.totals("gpu")
    assert (totals.accepted, totals.granted, totals.net_found_work) == (1, 1, 0)


def test_a_lease_that_is_forgotten_goes_back_with_a_warning(client):
    with pytest.warns(ResourceWarning, match="was not released"):
        client.claim("one", timeout=5)
        gc.collect()
    client.claim("one", timeout=5).release()


def test_a_closed_client_says_so(dibsd):
    client = dibs.connect(dibsd.socket)
    lease = client.claim("one", timeout=5)
    client.close()
    client.close()
    with pytest.raises(errors.Closed):
        client.claim("one")
    assert lease.state == dibs.LeaseState.ENDED
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del lease


def test_a_second_thread_is_turned_away(client, other):
    with other.claim("one", timeout=5):
        waiting = threading.Thread(target=lambda: client.claim("one").release())
        waiting.start()
        until(lambda: other.snapshot("one").queued == 1)
        with pytest.raises(errors.InUse):
            client.claim("gpu", timeout=5)
    waiting.join()
    client.claim("one", timeout=5).release()


class Interrupted(Exception):
    pass


def test_a_signal_ends_a_wait_and_the_claim(client, other):
    def interrupt(number, frame):
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with other.claim("one", timeout=5):
            queued = threading.Thread(
                target=lambda: [until(lambda: other.snapshot("one").queued == 1),
                                signal.pthread_kill(threading.main_thread().ident,
                                                    signal.SIGUSR1)])
            queued.start()
            with pytest.raises(Interrupted):
                client.claim("one")
            queued.join()
            until(lambda: other.snapshot("one").queued == 0)
    finally:
        signal.signal(signal.SIGUSR1, before)
    client.claim("one", timeout=5).release()


def test_a_timeout_is_kept_when_the_broker_says_nothing(dibsd, client):
    os.kill(dibsd.process.pid, signal.SIGSTOP)
    started = time.monotonic()
    with pytest.raises(dibs.Expired, match="no word of the broker"):
        client.claim("one", timeout=0.01)
    assert time.monotonic() - started >= 0.01
    os.kill(dibsd.process.pid, signal.SIGCONT)
    # Granted late or cancelled: either way it is nobody's.
    client.claim("one", timeout=60).release()


def test_a_broker_that_dies_ends_the_wait(dibsd, client, other):
    with other.claim("one", timeout=5) as lease:
        killer = threading.Thread(target=lambda: [until(lambda: other.snapshot("one").queued == 1),
                                                  dibsd.process.kill()])
        killer.start()
        with pytest.raises(errors.BrokerLost):
            client.claim("one")
        killer.join()
        del lease


def test_nothing_of_a_client_works_in_a_forked_child(client):
    with client.claim("one", timeout=5) as lease:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                client.claim("gpu", timeout=1)
            except errors.Forked:
                code = 0
            del lease
            client.close()
            os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert lease.state == dibs.LeaseState.LIVE
        until(lambda: client.snapshot("one").leased == 1)


def test_an_exception_of_a_signal_handler_around_a_grant_leaks_nothing(client):
    """At each line that runs in the binding while a claim is granted, once."""
    binding = str(pathlib.Path(dibs.__file__).parent)

    class Interrupt(Exception):
        pass

    def interrupted_at(step):
        left = step

        def trace(frame, event, _):
            nonlocal left
            if not frame.f_code.co_filename.startswith(binding):
                return None
            if event == "line" and frame.f_code.co_name not in ("take_back", "abandon", "give_up"):
                left -= 1
                if left == 0:
                    sys.settrace(None)
                    raise Interrupt
            return trace
        sys.settrace(trace)
        try:
            lease = client.claim("one", timeout=60)
        finally:
            sys.settrace(None)
        lease.release()

    step = 0
    while True:
        step += 1
        try:
            interrupted_at(step)
            break  # more lines than it has
        except Interrupt:
            pass
        while client.snapshot("one").idle != 1:
            client._session.reap(1_000_000)
    assert step > 20


def test_what_is_no_pool_no_number_and_no_list_is_refused(client, dibsd):
    with pytest.raises(TypeError, match="a pool is a name or a number, not None"):
        client.claim(None)
    with pytest.raises(dibs.Error, match="a claim of pool 'gpu' is for 1 to 256 slots, not 0"):
        client.claim("gpu", units=0)
    with pytest.raises(TypeError, match="not one text: write .'a100'"):
        client.claim("gpu", labels="a100")
    with pytest.raises(TypeError, match="no argument 'sockt'; did you mean 'socket'"):
        dibs.connect(sockt=dibsd.socket)


def test_a_key_of_the_configuration_that_refuses_is_named_with_its_number():
    with tempfile.TemporaryDirectory(prefix="dibs-python-") as folder:
        broker = Dibsd(folder, CONFIG + '[[policy]]\ndefault = true\nleases = 1\npools = ["gpu"]\n')
        try:
            user = pwd.getpwuid(os.geteuid()).pw_name
            with dibs.connect(broker.socket) as client, client.claim("gpu"):
                with pytest.raises(dibs.Error, match=f"^policy of user {user}: leases = 1: 1 is held or waited for"):
                    client.claim("gpu")
                with pytest.raises(errors.NotAllowed, match=f"^user {user} may not claim from this pool: .* .pools.$"):
                    client.claim("one")
                with pytest.raises(dibs.Error, match='nobody reads labels: order = "account" in its'):
                    client.claim("one", labels=["a100"])
        finally:
            broker.end()


def test_a_claim_over_several_pools_has_slots_of_each(client):
    with client.claim("gpu", units=2, timeout=5, terms=dibs.Terms(also=[("one", 1)])) as lease:
        gpu, one = lease.parts
        assert (gpu.pool, gpu.id, gpu.fence) == (lease.pool, lease.id, lease.fence)
        assert [slot.attributes["device"] for slot in gpu.slots] == ["0", "1"]
        assert (len(one.slots), one.fence) == (1, 1)
        with pytest.raises(errors.Busy):
            client.claim("one", timeout=0)
    client.claim("one", timeout=5).release()


def test_a_lease_over_one_pool_has_one_part(client):
    with client.claim("one", timeout=5) as lease:
        assert [part.fence for part in lease.parts] == [lease.fence]

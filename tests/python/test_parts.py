# tests/python/test_parts.py -- parts of slots, offers and meta through ctypes, against a real dibsd.
# SPDX-License-Identifier: Apache-2.0
import os
import tempfile
import threading

import dibs
import pytest
from dibs import errors

from conftest import Dibsd, until

HOST = """
log_level = "warning"
[[pool]]
name = "host"
kind = "counted"
slots = 2
resources = { memory = "8GiB", cpu = 16 }
"""


def test_a_claim_takes_a_part_of_a_slot():
    with tempfile.TemporaryDirectory(prefix="dibs-python-") as folder:
        broker = Dibsd(folder, HOST)
        try:
            with dibs.connect(broker.socket) as client:
                wanted = dibs.Terms(least={"memory": "2GiB", "cpu": 4}, most={"memory": "6GiB", "cpu": 4})
                with client.claim("host", terms=wanted, timeout=5) as lease:
                    assert lease.units == 1
                    assert lease.attributes == {"resource.memory": str(6 << 30), "resource.cpu": "4"}
                    with client.claim("host", terms=dibs.Terms(least={"cpu": 12}), timeout=5) as rest:
                        assert rest.slots[0].number == lease.slots[0].number
                        assert client.snapshot("host").leased == 2
                with pytest.raises(errors.Unavailable):
                    client.claim("host", terms=dibs.Terms(least={"cpu": 17}), timeout=5)
                with pytest.raises(errors.BadUnits, match="^a part is of one slot: units=2 is for whole slots$"):
                    client.claim("host", terms=dibs.Terms(least={"cpu": 1}), units=2, timeout=5)
        finally:
            broker.end()


WRONG = [({"cpu": -1}, {}, "least of cpu: -1 is negative"),
         ({"cpu": "-1GiB"}, {}, "least of cpu: '-1GiB' is negative"),
         ({"memory": "1GB"}, {}, "least of memory: '1GB' is no amount: write a whole number, or one with KiB, MiB, "
          "GiB or TiB"),
         ({"cpu": 1.5}, {}, "least of cpu: 1.5 is no amount: write a whole number, or one with KiB, MiB, GiB or TiB"),
         ({"cpu": 2**53 + 1}, {}, "least of cpu: 9007199254740993 is above 2**53"),
         ({"cpu": "8192TiB"}, {"cpu": "8193TiB"}, "most of cpu: '8193TiB' is above 2**53"),
         ({"": 1}, {}, "least: '' is no resource's name"),
         ({"cpu": 0, "memory": "0GiB"}, {}, "least is nothing of any resource"),
         ({}, {"cpu": 1}, "most without least: say with least how much it is at least"),
         ({"memory": "1GiB"}, {"memory": "1MiB"}, "least of memory: '1GiB' is above most, '1MiB'"),
         ({"cpu": 2}, {"memory": 1}, "least of cpu: 2 is above most, which does not name it"),
         ({str(i): 1 for i in range(7)}, {}, "least: at most 6 resources, not 7")]


def test_an_amount_that_is_wrong_is_named_by_claims_and_by_offers():
    with tempfile.TemporaryDirectory(prefix="dibs-python-") as folder:
        broker = Dibsd(folder, HOST + '[[pool]]\nname = "plain"\nkind = "counted"\nslots = 1\n')
        try:
            with dibs.connect(broker.socket) as client:
                def offers(pool, least, most=()):
                    dibs.offers(pool, least=least, most=dict(most), socket=broker.socket)

                def claim(pool, least, most=()):
                    client.claim(pool, terms=dibs.Terms(least=least, most=dict(most)), timeout=5)

                for ask in (offers, claim):
                    for least, most, said in WRONG:
                        with pytest.raises(errors.BadVector) as wrong:
                            ask("host", least, most)
                        assert str(wrong.value) == said
                    with pytest.raises(errors.Unavailable):
                        ask("host", {"cpu": 17})
                with pytest.raises(errors.Unavailable, match="^no slot has as much of cpu: each has 16$"):
                    offers("host", {"cpu": 17})
                with pytest.raises(errors.BadVector,
                                   match=r"^what is wanted names resources of its slots \(cpu, memory\)"):
                    offers("host", {"gpu": 1})
                with pytest.raises(errors.BadVector, match="^its slots have no resources$"):
                    offers("plain", {"cpu": 1})
                with pytest.raises(errors.BadVector, match="^the slots of pool 'host' have no resources, or none of "
                                                           "one of these names: cpu, gpu$"):
                    claim("host", {"gpu": 1, "cpu": 1}, {"gpu": 1, "cpu": 2})
                with pytest.raises(errors.BadVector, match="^the slots of pool 'plain' have no resources"):
                    claim("plain", {"cpu": 1})
                for pool, said in (("nix", "no such pool: nix; there are: host, plain"), ("a\0b", "no such pool: 'a")):
                    with pytest.raises(errors.NoSuchPool, match=f"^{said}"):
                        offers(pool, {})
        finally:
            broker.end()


def test_an_offer_is_accepted_while_it_is_there():
    with tempfile.TemporaryDirectory(prefix="dibs-python-") as folder:
        broker = Dibsd(folder, HOST + HOST[HOST.index("[["):].replace("host", "other"))
        socket = broker.socket
        try:
            with dibs.connect(socket) as client:
                found = dibs.offers("host", least={"cpu": 4}, most={"cpu": 8}, socket=socket)
                assert len(found) == 2
                assert found[0].available == {"memory": 8 << 30, "cpu": 16}
                taken = found[0].take({"memory": "2GiB", "cpu": 4})
                assert taken.available == {"memory": 2 << 30, "cpu": 4}
                terms = dibs.Terms(offer=taken, meta="train 7")
                with client.claim("host", terms=terms, timeout=5) as lease:
                    assert lease.slots[0].number == found[0].slot
                    assert lease.attributes == {"resource.memory": str(2 << 30), "resource.cpu": "4"}
                    told = dibs.inspect(lease.id, socket=socket)
                    assert (told.pool, told.state, told.meta) == ("host", "live", "train 7")
                    assert told.resources == {"memory": 2 << 30, "cpu": 4}
                    assert told.pid == os.getpid() and told.ended is None and told.left is None
                    # The offer is stale: 16 cpu are not there any more, whoever waits how long.
                    with pytest.raises(errors.OfferExpired):
                        client.claim("host", terms=dibs.Terms(offer=found[0]), timeout=5)
                    # More than it says is not even asked for.
                    with pytest.raises(errors.OfferExpired):
                        client.claim("host", terms=dibs.Terms(offer=taken, least={"cpu": 5}), timeout=5)
                    # What it has of memory is less than `most`, and the rest of it is not wanted.
                    with pytest.raises(errors.BadVector, match="^least of memory: .* which does not name it$"):
                        client.claim("host", terms=dibs.Terms(offer=taken, most={"cpu": 4}), timeout=5)
                    with pytest.raises(errors.BadArgument,
                                       match="^the offer is of pool 'host', and the claim of pool 'other'$"):
                        client.claim("other", terms=terms, timeout=5)
                    now = dibs.offers("host", socket=socket)
                    assert now.stamp != found.stamp
                    assert dibs.offers("host", after=now.stamp, wait=0.01, socket=socket).stamp == now.stamp
                until(lambda: dibs.inspect(told.lease, socket=socket).ended is not None)
                assert dibs.inspect(told.lease, socket=socket).state == "ended"
                with pytest.raises(errors.NotFound):
                    dibs.inspect(2**40 + 7, socket=socket)
        finally:
            broker.end()


def test_what_would_leave_nothing_takes_all_of_an_offer():
    offer = dibs.Offer("host", 3, {"memory": 8, "cpu": 16}, 1)
    assert offer.take({"memory": 8, "cpu": 1}).available == {"memory": 8, "cpu": 16}
    assert offer.take({"memory": 9, "cpu": 1}).available == {"memory": 8, "cpu": 16}
    assert offer.take({"memory": 7, "cpu": 15}).available == {"memory": 7, "cpu": 15}
    assert offer.take({"cpu": 1}).available == {"memory": 0, "cpu": 1}
    for wrong, said in (({}, "most is nothing of any resource"), ({"cpu": 0}, "most is nothing of any resource"),
                        ({"gpu": 1}, "most of gpu: the offer has memory, cpu alone"),
                        ({"cpu": -1}, "most of cpu: -1 is negative"),
                        ({"cpu": "9PiB"}, "most of cpu: '9PiB' is no amount")):
        with pytest.raises(errors.BadVector, match=f"^{said}"):
            offer.take(wrong)


def test_what_is_no_meta_is_refused():
    with tempfile.TemporaryDirectory(prefix="dibs-python-") as folder:
        broker = Dibsd(folder, HOST)
        try:
            with pytest.raises(errors.NegativeTime):
                dibs.offers("host", wait=-1, socket=broker.socket)
            with dibs.connect(broker.socket) as client:
                with client.claim("host", terms=dibs.Terms(meta="m" * 255), timeout=5) as lease:
                    assert dibs.inspect(lease.id, socket=broker.socket).meta == "m" * 255
                for meta, said in (("m" * 256, "at most 255 bytes, not 256"),
                                   ("ü" * 128, "at most 255 bytes, not 256"),
                                   ("two\nlines", "one line without control characters, not"),
                                   ("a\0b", "one line without control characters, not")):
                    with pytest.raises(errors.BadPayload, match=f"^meta: {said}"):
                        client.claim("host", terms=dibs.Terms(meta=meta), timeout=5)
        finally:
            broker.end()


BOX = """
log_level = "warning"
[[pool]]
name = "box"
kind = "worker"
workers_max = 4
resources = { memory = "40GiB", cpu = 8 }
create_min = { memory = "10GiB" }
gather = "0ns"
"""


def test_an_order_says_of_which_size_its_worker_is_to_be():
    with tempfile.TemporaryDirectory(prefix="dibs-python-") as folder:
        broker = Dibsd(folder, BOX)
        try:
            with dibs.connect(broker.socket) as client, dibs.connect(broker.socket) as cloud:
                with pytest.raises(errors.Unavailable):
                    client.claim("box", terms=dibs.Terms(least={"memory": "41GiB"}), timeout=5)
                waiting = threading.Thread(target=lambda: client.claim(
                    "box", terms=dibs.Terms(least={"memory": "5GiB", "cpu": 2}), timeout=60).release())
                waiting.start()
                cloud.provide("box", "box")
                order = next(iter(cloud.assignments()))
                assert order.is_order and order.width == 0
                assert order.resources == {"memory": 10 << 30, "cpu": 2}
                slot = cloud.announce("box", order=order.order, parts=1, ready=True)
                part = next(one for one in cloud.assignments() if not one.is_order)
                assert slot.id == order.slot and part.resources == {"memory": 5 << 30, "cpu": 2}
                part.confirm(wait=5)
                waiting.join(60)
        finally:
            broker.end()

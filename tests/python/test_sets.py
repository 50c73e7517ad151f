# tests/python/test_sets.py -- claims of pool sets through ctypes, against a real dibsd.
# SPDX-License-Identifier: Apache-2.0
import asyncio
import tempfile

import dibs
import pytest

from conftest import CONFIG, Dibsd, until

SET = '[[set]]\nname = "any"\npools = ["one", "gpu"]\n'


@pytest.fixture
def broker():
    with tempfile.TemporaryDirectory(prefix="dibs-python-") as folder:
        dibsd = Dibsd(folder, CONFIG + SET)
        yield dibsd
        dibsd.end()


def test_a_set_is_claimed_by_its_name_and_the_lease_says_which_pool_it_is_of(broker):
    with dibs.connect(broker.socket) as client:
        with client.claim("any", timeout=5) as first, client.claim("any", timeout=5) as second:
            assert client.describe(first.pool).name == "one"
            assert client.describe(second.pool).name == "gpu"
            assert second.attributes == {"device": "0"}
            assert first.state == dibs.LeaseState.LIVE
            with client.claim("gpu", timeout=5) as third:
                assert third.pool == second.pool
                with pytest.raises(dibs.Expired):
                    client.claim("any", timeout=0.01)
        until(lambda: client.snapshot("one").leased == client.snapshot("gpu").leased == 0)


def test_a_set_is_for_claims_alone(broker):
    with dibs.connect(broker.socket) as client:
        for look in (client.describe, client.snapshot, client.totals, client.latency, client.announce):
            with pytest.raises(dibs.errors.NoSuchPool, match="^'any' is a pool set, which is for claims alone: "):
                look("any")


def test_the_asyncio_client_takes_pools_alone(broker):
    async def claim():
        async with await dibs.aio.connect(broker.socket) as client:
            await client.claim("any", timeout=5)
    with pytest.raises(dibs.errors.NoSuchPool, match="^'any' is a pool set: .* the asyncio client takes pools alone$"):
        asyncio.run(claim())

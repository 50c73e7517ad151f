# tests/python/test_keepalive.py -- when dibs.KeepalivePolicy says to call.
# SPDX-License-Identifier: Apache-2.0
import math

import dibs
import pytest


def test_waits_until_the_margin_begins():
    assert dibs.KeepalivePolicy().wait(120) == 90
    assert dibs.KeepalivePolicy(margin=5).wait(120) == 115


def test_waits_no_longer_than_it_is_told():
    assert dibs.KeepalivePolicy(wait_most=40).wait(1000) == 40
    assert dibs.KeepalivePolicy().wait(math.inf) == 300


def test_tries_again_after_longer_waits_while_a_whole_call_fits():
    policy = dibs.KeepalivePolicy()
    failed = dibs.errors.of_code(dibs.errors.TimedOut.code)
    assert 1.6 <= policy.wait(100, failed) <= 2
    assert 2.4 <= policy.wait(90, failed) <= 3
    assert policy.wait(11, failed) == 1
    with pytest.raises(dibs.errors.LeaseExpired) as lost:
        policy.wait(9, failed)
    assert lost.value.__cause__ is failed


def test_what_no_call_can_help_against_is_raised():
    failed = dibs.errors.of_code(dibs.errors.AlreadyEnded.code)
    with pytest.raises(dibs.errors.AlreadyEnded) as raised:
        dibs.KeepalivePolicy().wait(100, failed)
    assert raised.value is failed


def test_a_time_is_not_negative():
    with pytest.raises(dibs.errors.NegativeTime):
        dibs.KeepalivePolicy(margin=-1)
    with pytest.raises(dibs.errors.NegativeTime):
        dibs.KeepalivePolicy().wait(-1)

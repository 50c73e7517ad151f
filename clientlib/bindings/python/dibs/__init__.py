# clientlib/bindings/python/dibs/__init__.py -- claim warm, exclusive things from the dibs broker of
# this host.
# SPDX-License-Identifier: Apache-2.0
"""Claim warm, exclusive things from the dibs broker of this host, and offer them.

    import dibs

    with dibs.connect() as client:
        with client.claim("gpu", timeout=5) as lease:
            print("device", lease.attributes["device"], "fence", lease.fence)

What the words mean stands in dibs/dibs.h. A client is used by one thread at a time, and not by a
forked child; dibs.aio has the same for asyncio. Every code of the C interface is an exception.
"""
from . import aio, errors
from ._abi import library as _library
from .accounts import Share
from .application import Application, ApplicationEvent
from .administration import Administration, Order, Pulled
from .client import Client, Counters, PoolLimits, Preempt, Terms, Totals, WhenBusy, connect
from .errors import Cancelled, Error, Expired, Holder
from .events import Event, Events
from .keepalive import KeepalivePolicy
from .latency import Latency, Wakeups
from .lease import Lease, LeaseState, Part, Slot
from .offers import Inspection, Offer, Offers, inspect, offers
from .state import dump, load
from .worker import Assignment, OfferedSlot


def version() -> tuple[int, int, int]:
    """Of the C library that is loaded."""
    number = _library.dibs_version()
    return number >> 16, number >> 8 & 0xFF, number & 0xFF


__all__ = ["Administration", "Application", "ApplicationEvent", "Assignment", "Cancelled", "Client", "Counters", "Error", "Event",
           "Events", "Expired", "Holder", "Inspection", "KeepalivePolicy", "Latency", "Lease",
           "LeaseState", "Offer", "OfferedSlot", "Offers", "Order", "Part", "PoolLimits", "Preempt", "Pulled",
           "Share", "Slot", "Terms", "Totals", "Wakeups", "WhenBusy", "aio", "connect", "dump", "errors",
           "inspect", "load", "offers", "version"]

# clientlib/bindings/python/dibs/_abi.py -- dibs/dibs.h in ctypes: numbers, structs, prototypes.
#
# Names are those of the header, and tests/python compares every size, offset and number with what
# a C compiler makes of it. The library is $DIBS_LIBRARY, or the installed libdibs.so.0; what it
# needs is the C library, so that nothing is compiled here.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, c_char, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint8, c_uint32, \
    c_uint64, c_void_p
from typing import Any, Iterator, Optional

FOREVER = 2**63 - 1
SECOND = 1_000_000_000
NAME_MAX = 63
OPTIONS_MAX = 16
HIDDEN_UID = 2**32 - 1
HIDDEN_CLAIM = 2**64 - 1
LABELS_MAX = 32
RESOURCES_MAX = 6
EVENT_SLOTS = 16
APP_GROUPS_MAX = 32
GANG_SOFT, GANG_HARD = range(2)
APP_RUNNING, APP_COMPLETED, APP_FAILED, APP_KILLED = 6, 7, 9, 11

# As `code` of a completion, and as what functions return; errors.py has the negative ones.
OK = 0
ALREADY_ENDED = 1
KEEPALIVE_WAIT = 1
KEEPALIVE_LOST = 2
ENOTFOUND = -11
EREFUSED = -15
ENOTHOLDER = -13
EPAYLOAD = -10
EHANDSHAKE = -106
ESYSTEM = -107
EFULL = -114
ETIMEDOUT = -116
EREADY = -117
EARGUMENT = -101
ENOVALUE = -119

NO_OUTCOME, GRANTED, EXPIRED, CANCELLED, REJECTED, BROKER_LOST = range(6)
BUSY_AS_POOL, BUSY_WAIT, BUSY_REJECT, BUSY_COLD = range(4)
CLAIM_ENDED, RESULT, LEASE_GRACE, LEASE_ENDED, LEASE_REVOKING, LEASE_REQUEUED = range(1, 7)
KEEP_BY_CALLS, KEEP_BY_WORD = range(2)
PREEMPT_AS_POOL, PREEMPT_AT_ONCE, PREEMPT_GRACE, PREEMPT_NEVER = range(4)
OP_CLAIM, OP_ANNOUNCE = 1, 6
UNITS_MAX = 256
POOL_SET = 2**31  # a bit of a pool's number: it is a pool set
SIZES = frozenset(("submission_entries", "completion_entries", "up_payload", "down_payload", "leases_max",
                   "spin_us"))
LIVE, IN_GRACE, ENDED = range(3)
ASSIGN, REVOKE, REVOKING, CREATE, STOP = 1, 2, 3, 4, 5
CREATED, STOPPED, AT_QUOTA, AT_CAPACITY, OVERLOADED, NOT_STARTED = range(6)
SCOPE_POOL, SCOPE_GROUP, SCOPE_TYPE = range(3)
EVENT_LOST = 22
MICROS = 1_000_000
CLASSES = 5
NO_LIMIT = 2**32 - 1
PULLERS_MAX = 8
ACCOUNT_RATE, ACCOUNT_BALANCE, ACCOUNT_CHARGE_MAX, ACCOUNT_FANOUT_MAX, ACCOUNT_NO_FREE_TASKS = \
    1, 2, 4, 8, 16
ORDERS_MAX = 64
(DISPATCH_ENTRY, DISPATCH_QUEUE, DISPATCH_LOCK, DISPATCH_UNLOCK, DISPATCH_CANCEL, DISPATCH_FORGET,
 DISPATCH_DONE, DISPATCH_WORKER, DISPATCH_PROCESS, DISPATCH_PROBE, DISPATCH_RUN, DISPATCH_HOLD,
 DISPATCH_DRAIN) = range(1, 14)
ENTRY_QUEUED, ENTRY_LOCKED, ENTRY_RUNNING, ENTRY_COMPLETE, ENTRY_CANCELLED = range(1, 6)
WORKER_UNKNOWN, WORKER_BOOTING, WORKER_IDLE, WORKER_RUNNING, WORKER_SHUTDOWN, WORKER_ABSENT = range(6)
ENTRY_PRIORITY, ENTRY_SUPERVISOR, ENTRY_TYPES = 1, 2, 4
ORDER_LOCK, ORDER_UNLOCK, ORDER_KILL, ORDER_START = range(1, 5)
REPORT_IDLE, REPORT_RUNNING, REPORT_ABSENT, REPORT_UNASSIGN, REPORT_AGAIN = range(1, 6)


class Struct(ctypes.Structure):
    """A struct of the header; `sized` ones begin with their own size."""

    @classmethod
    def sized(cls, **fields: Any) -> Any:
        return cls(size=ctypes.sizeof(cls), **fields)

    @classmethod
    def names(cls) -> Iterator[str]:
        return (field[0] for field in cls._fields_)


class ConnectOptions(Struct):
    _fields_ = [("size", c_size_t), ("socket_path", c_char_p), ("timeout_ns", c_int64),
                ("submission_entries", c_uint32), ("completion_entries", c_uint32),
                ("up_payload", c_uint32), ("down_payload", c_uint32), ("leases_max", c_uint32),
                ("spin_us", c_int32), ("error_text", c_char_p), ("error_text_size", c_size_t),
                ("connected", POINTER(c_int)), ("tree", c_int32)]

    @classmethod
    def to(cls, path: Optional[str], **fields: Any) -> ConnectOptions:
        """For that socket, with room for the library's sentence about a failure."""
        text = ctypes.create_string_buffer(512)
        made: ConnectOptions = cls.sized(
            socket_path=os.fsencode(path) if path is not None else None,
            error_text=ctypes.cast(text, c_char_p), error_text_size=len(text), **fields)
        made.text = text
        return made

    @property
    def why(self) -> str:
        return str(self.text.value.decode(errors="replace"))


class PoolLimits(Struct):
    _fields_ = [("size", c_size_t), ("name", c_char * (NAME_MAX + 1)), ("units_max", c_uint32),
                ("payload_max", c_uint32), ("answer_max", c_uint32), ("attributes_max", c_uint32),
                ("has_workers", c_int32), ("draining", c_int32)]


class Counters(Struct):
    _fields_ = [("size", c_size_t), ("slots", c_uint32), ("idle", c_uint32),
                ("reserved", c_uint32), ("leased", c_uint32), ("parked", c_uint32), ("recovering", c_uint32),
                ("unknown", c_uint32), ("queued", c_uint32), ("confirming", c_uint32),
                ("shared", c_uint32), ("hits", c_uint64), ("last_grant_ns", c_int64)]


class Totals(Struct):
    _fields_ = [("size", c_size_t), ("accepted", c_uint64), ("granted", c_uint64),
                ("expired", c_uint64), ("cancelled", c_uint64), ("rejected", c_uint64),
                ("released", c_uint64), ("net_found_work", c_uint64)]


class Option(Struct):
    _fields_ = [("key", c_char_p), ("value", c_char_p)]


RESOURCES_MAX = 6
RESOURCE_NAME_MAX = 31
META_MAX = 255
OFFERS_MAX = 64


class Offer(Struct):
    _fields_ = [("pool", c_char * (NAME_MAX + 1)), ("slot", c_uint32), ("count", c_uint32),
                ("stamp", c_uint64), ("resources", (c_char * (RESOURCE_NAME_MAX + 1)) * RESOURCES_MAX),
                ("amounts", c_uint64 * RESOURCES_MAX)]


class OffersQuery(Struct):
    _fields_ = [("size", c_size_t), ("pool", c_char_p), ("least", POINTER(c_char_p)),
                ("least_count", c_size_t), ("most", POINTER(c_char_p)), ("most_count", c_size_t),
                ("wait_ns", c_int64), ("after_stamp", c_uint64)]


class Inspection(Struct):
    _fields_ = [("lease", c_uint64), ("fence", c_uint64), ("claim", c_uint64), ("age_ns", c_int64),
                ("kept_ns", c_int64), ("interval_ns", c_int64), ("left_ns", c_int64),
                ("expired_ns", c_int64), ("ended_ns", c_int64), ("ended", c_int32),
                ("code", c_int32), ("uid", c_uint32), ("pid", c_uint32), ("units", c_uint32),
                ("slot", c_uint32), ("count", c_uint32), ("reserved", c_uint32),
                ("resources", (c_char * (RESOURCE_NAME_MAX + 1)) * RESOURCES_MAX),
                ("amounts", c_uint64 * RESOURCES_MAX), ("pool", c_char * (NAME_MAX + 1)),
                ("account", c_char * (NAME_MAX + 1)), ("state", c_char * 16), ("meta", c_char * (META_MAX + 1))]


class PoolUnits(Struct):
    _fields_ = [("pool", c_uint32), ("units", c_uint32)]


class ClaimOptions(Struct):
    _fields_ = [("size", c_size_t), ("timeout_ns", c_int64), ("interval_ns", c_int64),
                ("units", c_uint32), ("when_busy", c_int32), ("key", c_uint8 * 16),
                ("body", c_char_p), ("body_size", c_size_t), ("options", POINTER(Option)),
                ("option_count", c_size_t), ("labels", POINTER(c_char_p)),
                ("label_count", c_size_t), ("prefer", POINTER(c_char_p)),
                ("prefer_count", c_size_t), ("priority", c_int32), ("preempt", c_int32),
                ("preempt_grace_ns", c_int64), ("account", c_char_p), ("requeue", c_int32), ("keep", c_int32),
                ("least", POINTER(c_char_p)), ("least_count", c_size_t),
                ("most", POINTER(c_char_p)), ("most_count", c_size_t),
                ("offer", POINTER(Offer)), ("meta", c_char_p),
                ("also", POINTER(PoolUnits)), ("also_count", c_size_t),
                ("application", c_char_p), ("task", c_char_p), ("group", c_char_p)]


class AppGroup(Struct):
    _fields_ = [("name", c_char_p), ("members", c_uint32), ("reserved", c_uint32),
                ("resource", POINTER(c_char_p)), ("resource_count", c_size_t)]


class App(Struct):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("pool", c_uint32), ("priority", c_int32),
                ("groups", POINTER(AppGroup)), ("group_count", c_size_t),
                ("placeholder_timeout_ns", c_int64), ("manager_timeout_ns", c_int64),
                ("age_ns", c_int64), ("style", c_int32), ("recover", c_int32),
                ("parameters", c_char_p), ("tags", c_char_p)]


class AppTask(Struct):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("group", c_char_p), ("priority", c_int32),
                ("assigned", c_int32)]


class AppEvent(Struct):
    _fields_ = [("size", c_size_t), ("number", c_uint64), ("state", c_int32), ("before", c_int32),
                ("code", c_int32), ("tasks_failed", c_uint32), ("name", c_char * (NAME_MAX + 1))]


class LeaseName(Struct):
    _fields_ = [("id", c_uint64), ("fence", c_uint64), ("session", c_uint64), ("tag", c_uint32),
                ("units", c_uint32)]


class HolderName(Struct):
    _fields_ = [("uid", c_uint32), ("pid", c_uint32), ("age_ns", c_int64), ("claim", c_uint64)]


class Completion(Struct):
    _fields_ = [("user_data", c_uint64), ("kind", c_int32), ("outcome", c_int32),
                ("code", c_int32), ("provision", c_uint32), ("claim", c_uint64),
                ("lease", LeaseName), ("interval_ns", c_int64), ("retry_after_ns", c_int64),
                ("worker_code", c_int64), ("holder", HolderName), ("slot", c_uint64),
                ("round", c_uint64), ("refused_by", c_uint32), ("refused_at", c_uint32),
                ("pool", c_uint32), ("reserved", c_uint32)]


class AnnounceOptions(Struct):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("labels", POINTER(c_char_p)),
                ("label_count", c_size_t), ("attributes", POINTER(Option)),
                ("attribute_count", c_size_t), ("worker_tag", c_uint64),
                ("is_protected", c_int32), ("ready", c_int32),
                ("resources", POINTER(c_char_p)), ("resource_count", c_size_t),
                ("parts", c_uint32), ("reserved", c_uint32), ("order", c_char_p)]


class Op(Struct):
    _fields_ = [("size", c_size_t), ("kind", c_int32), ("flags", c_uint32),
                ("user_data", c_uint64), ("ticket", c_uint64), ("pool", c_uint32),
                ("reserved", c_uint32), ("claim", POINTER(ClaimOptions)),
                ("announce", POINTER(AnnounceOptions)), ("lease", POINTER(LeaseName)),
                ("interval_ns", c_int64), ("slot", c_uint64), ("round", c_uint64),
                ("worker_code", c_int64), ("answer", c_char_p), ("answer_size", c_size_t)]


class Slot(Struct):
    _fields_ = [("number", c_uint32), ("attributes_size", c_uint32), ("attributes", c_void_p),
                ("answer", c_void_p), ("answer_size", c_size_t)]


class Part(Struct):
    _fields_ = [("pool", c_uint32), ("units", c_uint32), ("first_unit", c_uint32), ("id", c_uint64),
                ("fence", c_uint64)]


class Assignment(Struct):
    _fields_ = [("kind", c_int32), ("number", c_uint32), ("slot", c_uint64), ("round", c_uint64),
                ("worker_tag", c_uint64), ("claim", c_uint64), ("body", c_void_p),
                ("body_size", c_size_t), ("option_count", c_size_t), ("label_count", c_size_t),
                ("options", Option * OPTIONS_MAX), ("labels", c_char_p * LABELS_MAX),
                ("prefer_count", c_size_t), ("prefer", c_char_p * LABELS_MAX),
                ("provision", c_uint32), ("width", c_uint32), ("left_ns", c_int64),
                ("resource_count", c_size_t), ("resources", c_char_p * RESOURCES_MAX)]


class Share(Struct):
    _fields_ = [("size", c_size_t), ("name", c_char * (NAME_MAX + 1)), ("configured", c_int32),
                ("held", c_uint32), ("waiting", c_uint32), ("rate", c_uint64),
                ("used_ns", c_uint64), ("counted_ns", c_uint64)]


class Latency(Struct):
    _fields_ = [("size", c_size_t), ("count", c_uint64), ("p50_ns", c_int64), ("p90_ns", c_int64),
                ("p99_ns", c_int64), ("p999_ns", c_int64), ("longest_ns", c_int64)]


class Wakeups(Struct):
    _fields_ = [("size", c_size_t), ("bells", c_uint64), ("claim_bells", c_uint64),
                ("release_bells", c_uint64), ("sleeps", c_uint64), ("claim_sleeps", c_uint64)]


class LabelLimit(Struct):
    _fields_ = [("key", c_char_p), ("slots", c_uint32)]


class AccountChange(Struct):
    _fields_ = [("size", c_size_t), ("fields", c_uint32), ("no_free_tasks", c_int32),
                ("rate", POINTER(c_int64)), ("rate_count", c_size_t),
                ("balance", POINTER(c_int64)), ("balance_count", c_size_t),
                ("charge_max_ns", c_int64), ("fanout_max", c_uint32), ("reserved", c_uint32),
                ("label_limits", POINTER(LabelLimit)), ("label_limit_count", c_size_t)]


class WorkerReport(Struct):
    _fields_ = [("size", c_size_t), ("kind", c_int32), ("reserved", c_int32), ("pool", c_char_p),
                ("worker", c_char_p), ("claim", c_uint64), ("age_ns", c_int64),
                ("labels", POINTER(c_char_p)), ("label_count", c_size_t),
                ("prefer", POINTER(c_char_p)), ("prefer_count", c_size_t), ("account", c_char_p),
                ("error", c_char_p)]


class Puller(Struct):
    _fields_ = [("worker", c_char_p), ("labels", POINTER(c_char_p)), ("label_count", c_size_t)]


class Pulled(Struct):
    _fields_ = [("worker", c_char * (NAME_MAX + 1)), ("claim", c_uint64), ("abort", c_uint64),
                ("provision_count", c_uint32), ("reserved", c_uint32),
                ("provision", (c_char * (NAME_MAX + 1)) * LABELS_MAX)]


class Dispatched(Struct):
    _fields_ = [("size", c_size_t), ("kind", c_int32), ("state", c_int32), ("pool", c_char_p),
                ("entry", c_char_p), ("worker", c_char_p), ("type", c_char_p), ("age_ns", c_int64),
                ("fields", c_uint32), ("priority", c_int32), ("supervisor", c_int32),
                ("exited", c_int32), ("failed", c_int32), ("reserved", c_int32),
                ("members", POINTER(c_char_p)), ("member_count", c_size_t),
                ("error", c_char_p)]


class Order(Struct):
    _fields_ = [("kind", c_int32), ("slot", c_uint32), ("number", c_uint64),
                ("entry", c_char * (NAME_MAX + 1)), ("worker", c_char * (NAME_MAX + 1)),
                ("type", c_char * (NAME_MAX + 1))]


class Event(Struct):
    _fields_ = [("size", c_size_t), ("number", c_uint64), ("time_ns", c_int64),
                ("kind", c_int32), ("full", c_int32), ("outcome", c_int32), ("code", c_int32),
                ("provision", c_int32), ("is_void", c_int32), ("uid", c_uint32),
                ("pid", c_uint32), ("session", c_uint32), ("session_generation", c_uint32),
                ("units", c_uint32), ("slot", c_uint32), ("round", c_uint32),
                ("from_class", c_uint32), ("to_class", c_uint32), ("slot_count", c_uint32),
                ("hit_permille", c_uint32), ("reserved", c_uint32),
                ("claim", c_uint64), ("id", c_uint64), ("fence", c_uint64), ("value", c_uint64),
                ("holder", HolderName), ("cost_micros", c_int64 * 5),
                ("slots", c_uint32 * EVENT_SLOTS), ("pool", c_char * (NAME_MAX + 1)),
                ("account", c_char * (NAME_MAX + 1)), ("type", c_char * (NAME_MAX + 1)),
                ("entry", c_char * (NAME_MAX + 1))]


class KeepalivePolicy(Struct):
    _fields_ = [("size", c_size_t), ("margin_ns", c_int64), ("wait_most_ns", c_int64),
                ("call_ns", c_int64), ("retry_ns", c_int64), ("retry_most_ns", c_int64),
                ("pause_ns", c_int64), ("failures", c_uint32), ("reserved", c_uint32)]


# C names of the structs above.
STRUCTS: dict[str, type[Struct]] = {
    "dibs_connect_options": ConnectOptions, "dibs_pool_limits": PoolLimits,
    "dibs_counters": Counters, "dibs_totals": Totals, "dibs_option": Option,
    "dibs_claim_options": ClaimOptions, "dibs_lease": LeaseName, "dibs_holder": HolderName,
    "dibs_completion": Completion, "dibs_announce_options": AnnounceOptions, "dibs_op": Op,
    "dibs_slot": Slot, "dibs_part": Part, "dibs_pool_units": PoolUnits, "dibs_assignment": Assignment,
    "dibs_share": Share, "dibs_event": Event, "dibs_latency": Latency,
    "dibs_wakeups": Wakeups, "dibs_keepalive_policy": KeepalivePolicy,
    "dibs_label_limit": LabelLimit, "dibs_account_change": AccountChange,
    "dibs_worker_report": WorkerReport, "dibs_puller": Puller, "dibs_pulled": Pulled,
    "dibs_dispatched": Dispatched, "dibs_order": Order,
    "dibs_app_group": AppGroup, "dibs_app": App, "dibs_app_task": AppTask,
    "dibs_app_event": AppEvent,
    "dibs_offer": Offer, "dibs_offers_query": OffersQuery, "dibs_inspection": Inspection,
}

_session = c_void_p
_lease = POINTER(LeaseName)

# What each function takes; all return int but those in RETURNS.
FUNCTIONS: dict[str, list[Any]] = {
    "dibs_version": [],
    "dibs_strerror": [c_int],
    "dibs_reason_name": [c_int],
    "dibs_connect": [POINTER(ConnectOptions), POINTER(_session)],
    "dibs_close": [_session],
    "dibs_end_code": [_session],
    "dibs_pool": [_session, c_char_p, POINTER(c_uint32)],
    "dibs_describe": [_session, c_uint32, POINTER(PoolLimits)],
    "dibs_snapshot": [_session, c_uint32, POINTER(Counters)],
    "dibs_pool_totals": [_session, c_uint32, POINTER(Totals)],
    "dibs_pool_latency": [_session, c_uint32, POINTER(Latency)],
    "dibs_reported_latency": [_session, POINTER(Latency)],
    "dibs_session_latency": [_session, POINTER(Latency)],
    "dibs_session_wakeups": [_session, POINTER(Wakeups)],
    "dibs_account": [_session, c_char_p, POINTER(c_uint32)],
    "dibs_account_share": [_session, c_uint32, POINTER(Share)],
    "dibs_claim": [_session, c_uint32, POINTER(ClaimOptions), POINTER(Completion)],
    "dibs_submit": [_session, POINTER(Op), c_size_t],
    "dibs_reap": [_session, POINTER(Completion), c_size_t, c_int64],
    "dibs_cancel": [_session, c_uint64],
    "dibs_fd": [_session],
    "dibs_arm": [_session],
    "dibs_dispatch": [_session],
    "dibs_release": [_session, _lease, c_int64],
    "dibs_fail": [_session, _lease, c_int64],
    "dibs_keepalive": [_session, _lease, c_int64, c_int64, POINTER(c_int64)],
    "dibs_touch": [_session, _lease],
    "dibs_keepalive_next": [POINTER(KeepalivePolicy), c_int, c_int64, c_uint64, POINTER(c_int64)],
    "dibs_adopt": [_session, c_uint64, c_uint64, c_int64, _lease],
    "dibs_last_holder": [_session, POINTER(HolderName)],
    "dibs_lease_state": [_session, _lease, POINTER(c_int)],
    "dibs_lease_remaining": [_session, _lease, POINTER(c_int64)],
    "dibs_lease_slot": [_session, _lease, c_uint32, POINTER(Slot)],
    "dibs_lease_part": [_session, _lease, c_uint32, POINTER(Part)],
    "dibs_lease_answer": [_session, _lease, c_uint32, POINTER(c_void_p), POINTER(c_size_t)],
    "dibs_announce": [_session, c_uint32, POINTER(AnnounceOptions), c_int64, POINTER(c_uint64)],
    "dibs_next_assignment": [_session, c_int64, POINTER(Assignment)],
    "dibs_ready": [_session, c_uint64, c_uint64, c_int64],
    "dibs_confirm": [_session, c_uint64, c_uint64, c_char_p, c_size_t, c_int64],
    "dibs_refuse": [_session, c_uint64, c_uint64, c_int64, c_int, c_int64],
    "dibs_done": [_session, c_uint64, c_uint64, c_char_p, c_size_t, c_int, c_int64],
    "dibs_withdraw": [_session, c_uint64, c_int64],
    "dibs_protect": [_session, c_uint64, c_int, c_int64],
    "dibs_provide": [_session, c_uint32, c_char_p, c_uint32, c_int, c_int64],
    "dibs_provisioned": [_session, c_uint64, c_int, c_int, c_char_p, c_int64],
    "dibs_app_add": [_session, POINTER(App), c_int64, POINTER(c_uint64)],
    "dibs_app_adopt": [_session, c_char_p, c_int64, POINTER(c_uint64)],
    "dibs_app_complete": [_session, c_char_p, c_int64],
    "dibs_app_fail": [_session, c_char_p, c_int64],
    "dibs_app_kill": [_session, c_char_p, c_int64],
    "dibs_app_recovered": [_session, c_char_p, c_int64],
    "dibs_app_remove": [_session, c_char_p, c_int64, POINTER(c_uint64)],
    "dibs_app_add_task": [_session, c_char_p, POINTER(AppTask), c_int64],
    "dibs_app_remove_task": [_session, c_char_p, c_char_p, c_int64],
    "dibs_app_complete_task": [_session, c_char_p, c_char_p, c_int64],
    "dibs_app_next": [_session, POINTER(AppEvent), c_int64],
    "dibs_app_state_name": [c_int],
    "dibs_events_open": [POINTER(ConnectOptions), POINTER(_session)],
    "dibs_events_next": [_session, c_int64, POINTER(Event)],
    "dibs_events_fd": [_session],
    "dibs_events_close": [_session],
    "dibs_event_name": [c_int],
    "dibs_dump": [POINTER(ConnectOptions), c_int],
    "dibs_load": [POINTER(ConnectOptions), c_int],
    "dibs_account_set": [POINTER(ConnectOptions), c_char_p, POINTER(AccountChange)],
    "dibs_account_reset": [POINTER(ConnectOptions), c_char_p, POINTER(c_int64), c_size_t],
    "dibs_account_delete": [POINTER(ConnectOptions), c_char_p],
    "dibs_report": [POINTER(ConnectOptions), POINTER(WorkerReport)],
    "dibs_pull": [POINTER(ConnectOptions), c_char_p, POINTER(Puller), c_size_t, c_int64,
                  POINTER(Pulled)],
    "dibs_dispatch_report": [POINTER(ConnectOptions), POINTER(Dispatched)],
    "dibs_dispatch_orders": [POINTER(ConnectOptions), c_char_p, POINTER(Order), c_size_t, c_int64,
                             POINTER(c_uint64)],
    "dibs_offers": [POINTER(ConnectOptions), POINTER(OffersQuery), POINTER(Offer), c_size_t,
                    POINTER(c_uint64)],
    "dibs_offer_take": [POINTER(Offer), POINTER(c_char_p), c_size_t, POINTER(Offer)],
    "dibs_inspect": [POINTER(ConnectOptions), c_uint64, POINTER(Inspection)],
}
RETURNS = {"dibs_version": c_uint32, "dibs_strerror": c_char_p, "dibs_reason_name": c_char_p,
           "dibs_event_name": c_char_p, "dibs_app_state_name": c_char_p}


def load() -> ctypes.CDLL:
    path = os.environ.get("DIBS_LIBRARY", "libdibs.so.0")
    try:
        library = ctypes.CDLL(path, use_errno=True)
    except OSError as error:
        raise ImportError(f"dibs: {error}; install libdibs0 or set DIBS_LIBRARY") from error
    for name, arguments in FUNCTIONS.items():
        function = getattr(library, name)
        function.argtypes = arguments
        function.restype = RETURNS.get(name, c_int)
    return library


library = load()

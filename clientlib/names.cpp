// clientlib/names.cpp -- names codes and outcomes in words and sentences.
// Codes from the broker are the layout's reasons, under public names.
// SPDX-License-Identifier: Apache-2.0
#include "dibs/dibs.h"
#include "shm/layout.hpp"

namespace {

struct CodeText {
    int code;
    const char* name;
    const char* sentence;
};

constexpr CodeText kCodes[] = {
    {DIBS_OK, "ok", "success"},
    {DIBS_ALREADY_ENDED, "already-ended", "the lease has ended before"},
    {DIBS_EPOOL, "unknown-pool", "no such pool"},
    {DIBS_EUNITS, "too-many-units", "no units, or more than a claim of this pool may have"},
    {DIBS_EBACKLOG, "backlog-full", "too many claims wait already; try again later"},
    {DIBS_EARENA, "arena-full", "no room for the payload now; try again later"},
    {DIBS_EBUSY, "busy", "no slot is idle and the claim does not wait"},
    {DIBS_ECOLD, "cold", "no slot is idle: make one and announce it"},
    {DIBS_EDRAINING, "draining", "the pool or the broker takes no new claims"},
    {DIBS_EDUPLICATE,
     "duplicate",
     "the claim's key is in use by an earlier claim, or the application or task is there already"},
    {DIBS_ELIMIT, "limit", "a limit of this session or user is reached"},
    {DIBS_EPAYLOAD, "payload", "the payload or answer is malformed or too large"},
    {DIBS_ENOTFOUND, "not-found", "no such lease, claim, slot, application or task"},
    {DIBS_ESTALE, "stale", "the fence or round is of an earlier grant"},
    {DIBS_ENOTHOLDER, "not-holder", "it is held by another session"},
    {DIBS_ESTATE, "state", "not allowed in its present state"},
    {DIBS_EREFUSED, "refused", "the worker refused"},
    {DIBS_ENOROOM, "no-room", "the session's memory has no room for it"},
    {DIBS_ENAMEINUSE, "name-in-use", "another session has announced a slot of that name"},
    {DIBS_ETABLES, "tables-full", "the broker's tables are full"},
    {DIBS_EHOLDERGONE, "holder-gone", "the holder's process has ended"},
    {DIBS_EWORKERLOST, "worker-lost", "the worker's process has ended, or withdrew the slot"},
    {DIBS_EEXPIRED, "expired-lease", "the lease was not kept alive in time"},
    {DIBS_EDONE, "done", "the worker is done"},
    {DIBS_EMALFORMED,
     "malformed",
     "an operation that is not one; of an application: its groups cannot be, and its gang was "
     "dropped"},
    {DIBS_ENOTALLOWED, "not-allowed", "not allowed to this user"},
    {DIBS_ESTATELOST, "state-lost", "the broker's state failed its checks, and it has begun anew"},
    {DIBS_EREVOKED, "revoked", "ended from outside, or taken for a better claim"},
    {DIBS_EUNKILLABLE,
     "unkillable",
     "strict expiry: dibsd may not kill this process (its administrator can give it CAP_KILL)"},
    {DIBS_EENDED, "ended", "the lease has ended"},
    {DIBS_EADOPTED, "adopted", "another session has adopted the lease"},
    {DIBS_EUNAVAILABLE, "unavailable", "no slot of the pool has as much of a resource"},
    {DIBS_EVECTOR, "vector", "not a part of a slot: an unknown resource, none, or more than most"},
    {DIBS_EOFFEREXPIRED,
     "offer-expired",
     "the slot has not so much any more, or claims wait for it"},
    {DIBS_EELSEWHERE, "elsewhere", "a pool of another cluster"},
    {DIBS_EAPPLICATION, "application-ended", "its application has ended, or is ending"},
    {DIBS_ERESERVATIONTIME, "reservation-time-out", "not all of a gang's slots came in time"},
    {DIBS_ERESERVATIONFAILED,
     "reservation-failed",
     "a gang's slots cannot come: its pool drains or goes"},
    {DIBS_EMANAGERGONE, "manager-gone", "nobody has adopted the application in time"},
    {DIBS_EARGUMENT, "argument", "a null pointer, or a value without a meaning"},
    {DIBS_ESIZE, "size", "the size of an options struct is none that ever was"},
    {DIBS_EFORK, "fork", "the session belongs to the parent process"},
    {DIBS_ENOBROKER, "no-broker", "no broker listens at the socket or answers in time"},
    {DIBS_EVERSION, "version", "library and broker are of versions that do not fit together"},
    {DIBS_EHANDSHAKE, "handshake", "the broker let nobody in, or its answer cannot be read"},
    {DIBS_ESYSTEM, "system", "a system call failed"},
    {DIBS_ESESSION, "session", "the broker has ended this session"},
    {DIBS_EBROKERLOST, "broker-lost", "the broker is gone, and this session with it"},
    {DIBS_ENEGATIVE, "negative", "a negative timeout or interval"},
    {DIBS_ENAME, "name", "a name that is empty, too long, or has letters that none may have"},
    {DIBS_EOPTIONS, "options", "too many options, or one without a key"},
    {DIBS_ELABELS, "labels", "too many labels, or one that is empty or longer than 63 bytes"},
    {DIBS_EFULL, "full", "the ring or the payload area is full until the broker reads"},
    {DIBS_EUNREAD, "unread", "completions must be reaped first"},
    {DIBS_ETIMEDOUT, "timed-out", "nothing came within the timeout"},
    {DIBS_EREADY, "ready", "not armed: there is something to reap"},
    {DIBS_ETORN, "torn", "the broker stopped while it published this"},
    {DIBS_ENOVALUE, "no-value", "no attribute of that key, or no answer"},
};

const CodeText* find(int code) {
    for (const CodeText& text : kCodes) {
        if (text.code == code) return &text;
    }
    return nullptr;
}

using dibs::shm::Outcome;
using dibs::shm::Reason;
constexpr bool same(int code, Reason reason) {
    return code == static_cast<int>(reason);
}
constexpr bool same(int code, Outcome outcome) {
    return code == static_cast<int>(outcome);
}

static_assert(same(DIBS_ALREADY_ENDED, Reason::kAlreadyEnded));
static_assert(same(DIBS_EPOOL, Reason::kUnknownPool));
static_assert(same(DIBS_EUNITS, Reason::kTooManyUnits));
static_assert(same(DIBS_EBACKLOG, Reason::kBacklogFull));
static_assert(same(DIBS_EARENA, Reason::kArenaFull));
static_assert(same(DIBS_EBUSY, Reason::kBusy));
static_assert(same(DIBS_ECOLD, Reason::kCold));
static_assert(same(DIBS_EDRAINING, Reason::kDraining));
static_assert(same(DIBS_EDUPLICATE, Reason::kDuplicate));
static_assert(same(DIBS_ELIMIT, Reason::kLimit));
static_assert(same(DIBS_EPAYLOAD, Reason::kPayload));
static_assert(same(DIBS_ENOTFOUND, Reason::kNotFound));
static_assert(same(DIBS_ESTALE, Reason::kStale));
static_assert(same(DIBS_ENOTHOLDER, Reason::kNotHolder));
static_assert(same(DIBS_ESTATE, Reason::kState));
static_assert(same(DIBS_EREFUSED, Reason::kRefused));
static_assert(same(DIBS_ENOROOM, Reason::kNoRoom));
static_assert(same(DIBS_ENAMEINUSE, Reason::kNameInUse));
static_assert(same(DIBS_ETABLES, Reason::kTablesFull));
static_assert(same(DIBS_EHOLDERGONE, Reason::kHolderGone));
static_assert(same(DIBS_EWORKERLOST, Reason::kWorkerLost));
static_assert(same(DIBS_EEXPIRED, Reason::kExpiredLease));
static_assert(same(DIBS_EDONE, Reason::kDone));
static_assert(same(DIBS_EMALFORMED, Reason::kMalformed));
static_assert(same(DIBS_ENOTALLOWED, Reason::kNotAllowed));
static_assert(same(DIBS_EREVOKED, Reason::kRevoked));
static_assert(same(DIBS_ESTATELOST, Reason::kStateLost));
static_assert(same(DIBS_EUNKILLABLE, Reason::kUnkillable));
static_assert(same(DIBS_EENDED, Reason::kEnded));
static_assert(same(DIBS_EADOPTED, Reason::kAdopted));
static_assert(same(DIBS_EUNAVAILABLE, Reason::kUnavailable));
static_assert(same(DIBS_EVECTOR, Reason::kVector));
static_assert(same(DIBS_EOFFEREXPIRED, Reason::kOfferExpired));
static_assert(same(DIBS_EELSEWHERE, Reason::kElsewhere));
static_assert(same(DIBS_EAPPLICATION, Reason::kAppEnded));
static_assert(same(DIBS_ERESERVATIONTIME, Reason::kReservationTimeOut));
static_assert(same(DIBS_ERESERVATIONFAILED, Reason::kReservationFailed));
static_assert(same(DIBS_EMANAGERGONE, Reason::kManagerGone));
static_assert(same(DIBS_GRANTED, Outcome::kGranted));
static_assert(same(DIBS_EXPIRED, Outcome::kExpired));
static_assert(same(DIBS_CANCELLED, Outcome::kCancelled));
static_assert(same(DIBS_REJECTED, Outcome::kRejected));
static_assert(same(DIBS_BROKER_LOST, Outcome::kBrokerLost));

}  // namespace

extern "C" {

uint32_t dibs_version(void) {
    return DIBS_VERSION_MAJOR << 16 | DIBS_VERSION_MINOR << 8 | DIBS_VERSION_PATCH;
}

const char* dibs_strerror(int code) {
    const CodeText* text = find(code);
    return text != nullptr ? text->sentence : "a code that this library does not know";
}

const char* dibs_reason_name(int code) {
    const CodeText* text = find(code);
    return text != nullptr ? text->name : "unknown";
}

const char* dibs_wait_name(int reason) {
    static constexpr const char* kWords[] = {
        "none",           "behind",          "held",        "units",
        "confirming",     "unconfirmed-max", "leases-full", "recovering",
        "no-slots",       "next-turn",       "promised",    "left-out",
        "labels",         "label-limit",     "held-back",   "drained",
        "over-limit",     "on-hold",         "lacks",       "slot-rows",
        "no-provisioner", "being-made",      "at-quota",    "pausing",
        "limit",          "other-pools",     "gang",        "no-manager",
        "placeholder",    "behind-gang"};
    const bool known = reason >= 0 && reason <= DIBS_WAIT_BEHIND_GANG;
    return known ? kWords[reason] : "unknown";
}

const char* dibs_outcome_name(int outcome) {
    switch (outcome) {
        case DIBS_NO_OUTCOME:
            return "none";
        case DIBS_GRANTED:
            return "granted";
        case DIBS_EXPIRED:
            return "expired";
        case DIBS_CANCELLED:
            return "cancelled";
        case DIBS_REJECTED:
            return "rejected";
        case DIBS_BROKER_LOST:
            return "broker-lost";
        default:
            return "unknown";
    }
}

}  // extern "C"

// tests/naive/decision_wording.cpp -- the names of decisions, outcomes and reasons.
// SPDX-License-Identifier: Apache-2.0
#include "tests/naive/wording.hpp"

namespace dibs::naive {

using core::DecisionKind;
using shm::Outcome;
using shm::Reason;

const char* name_of(DecisionKind kind) {
    switch (kind) {
        case DecisionKind::kResult:
            return "result";
        case DecisionKind::kAnnounced:
            return "announced";
        case DecisionKind::kAssign:
            return "assign";
        case DecisionKind::kRevoke:
            return "revoke";
        case DecisionKind::kAnswer:
            return "answer";
        case DecisionKind::kGrant:
            return "grant";
        case DecisionKind::kEnd:
            return "end";
        case DecisionKind::kAdopted:
            return "adopted";
        case DecisionKind::kLeaseGrace:
            return "lease-grace";
        case DecisionKind::kKill:
            return "kill";
        case DecisionKind::kLeaseEnd:
            return "lease-end";
        case DecisionKind::kSlotGone:
            return "slot-gone";
        case DecisionKind::kDemand:
            return "demand";
        case DecisionKind::kDrained:
            return "drained";
        case DecisionKind::kPromote:
            return "promote";
        case DecisionKind::kDemote:
            return "demote";
        case DecisionKind::kPreempt:
            return "preempt";
        case DecisionKind::kRefund:
            return "refund";
        case DecisionKind::kPulled:
            return "pulled";
        case DecisionKind::kCreate:
            return "create";
        case DecisionKind::kStop:
            return "stop";
        case DecisionKind::kLock:
            return "lock";
        case DecisionKind::kUnlock:
            return "unlock";
        case DecisionKind::kStart:
            return "start";
        case DecisionKind::kKillProcess:
            return "kill-process";
        case DecisionKind::kForget:
            return "forget";
        case DecisionKind::kApplication:
            return "application";
        case DecisionKind::kTask:
            return "task";
        case DecisionKind::kPlaceholder:
            return "placeholder";
    }
    return "?";
}

const char* name_of(Outcome outcome) {
    switch (outcome) {
        case Outcome::kNone:
            return "none";
        case Outcome::kGranted:
            return "granted";
        case Outcome::kExpired:
            return "expired";
        case Outcome::kCancelled:
            return "cancelled";
        case Outcome::kRejected:
            return "rejected";
        case Outcome::kBrokerLost:
            return "broker-lost";
    }
    return "?";
}

const char* name_of(Reason reason) {
    switch (reason) {
        case Reason::kOk:
            return "ok";
        case Reason::kAlreadyEnded:
            return "already-ended";
        case Reason::kMayPark:
            return "may-park";
        case Reason::kByWord:
            return "by-word";
        case Reason::kUnknownPool:
            return "unknown-pool";
        case Reason::kUnavailable:
            return "unavailable";
        case Reason::kVector:
            return "vector";
        case Reason::kOfferExpired:
            return "offer-expired";
        case Reason::kElsewhere:
            return "elsewhere";
        case Reason::kTooManyUnits:
            return "too-many-units";
        case Reason::kBacklogFull:
            return "backlog-full";
        case Reason::kArenaFull:
            return "arena-full";
        case Reason::kBusy:
            return "busy";
        case Reason::kCold:
            return "cold";
        case Reason::kDraining:
            return "draining";
        case Reason::kDuplicate:
            return "duplicate";
        case Reason::kLimit:
            return "limit";
        case Reason::kPayload:
            return "payload";
        case Reason::kNotFound:
            return "not-found";
        case Reason::kStale:
            return "stale";
        case Reason::kNotHolder:
            return "not-holder";
        case Reason::kState:
            return "state";
        case Reason::kRefused:
            return "refused";
        case Reason::kNoRoom:
            return "no-room";
        case Reason::kNameInUse:
            return "name-in-use";
        case Reason::kTablesFull:
            return "tables-full";
        case Reason::kHolderGone:
            return "holder-gone";
        case Reason::kWorkerLost:
            return "worker-lost";
        case Reason::kExpiredLease:
            return "expired-lease";
        case Reason::kDone:
            return "done";
        case Reason::kMalformed:
            return "malformed";
        case Reason::kNotAllowed:
            return "not-allowed";
        case Reason::kRevoked:
            return "revoked";
        case Reason::kStateLost:
            return "state-lost";
        case Reason::kUnkillable:
            return "unkillable";
        case Reason::kEnded:
            return "ended";
        case Reason::kAdopted:
            return "adopted";
        case Reason::kAppEnded:
            return "app-ended";
        case Reason::kReservationTimeOut:
            return "reservation-time-out";
        case Reason::kReservationFailed:
            return "reservation-failed";
        case Reason::kManagerGone:
            return "manager-gone";
    }
    return "?";
}

}  // namespace dibs::naive

// broker/core/decision_fields.hpp -- lists which fields a decision of each kind has, once for every
// form of it.
//
// A form (text, sum, events) walks over them, in the order of the text:
//   each_field(kind, [&](const char* name, auto member, Form form) { ... });
// A decision of a kind sets no field that the list does not name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "broker/core/decision.hpp"

namespace dibs::core {

// What a field says, and thus how it reads. Some are told only if they say something.
enum class Form : uint8_t {
    kUntold,  // for whom it is decided; no part of the text
    kNumber,
    kNumberIfAny,  // unless 0
    kUntil,        // unless kNever
    kTruth,        // if true
    kBytes,
    kEntry,  // the name of an entry, an application, a task or a group, if any
    kOutcome,
    kReason,
    kReasonIfAny,  // unless kOk
    kName,         // of what the id names, unless that is none
    kSlot,         // a number in the decision's pool
    kSlots,        // Core::decided_slots()
    kCost,         // Core::decided_amounts(), unless is_void
    kResources,    // Core::decided_amounts(), if any
    kClass,        // if has_class
    kHolder,       // holder_…, unless holder_uid is kNoRow
    kOperation,    // that the result is of, and the interval of a keepalive
    kEndDetail,  // after a refusal the worker's code, of a duplicate the first claim (id), else the
                 // pause before another try
    kVoid,
    kAppState,
    kTaskState,
    kPlaceholderNews,
};

// Of what a client is told.
void each_client_field(DecisionKind kind, const auto& visit) {
    using D = Decision;
    const auto untold = [&](auto... member) { (visit("", member, Form::kUntold), ...); };
    const auto claim = [&] {
        visit("claim", &D::claim, Form::kName);
        visit("session", &D::session, Form::kName);
        untold(&D::tag, &D::units, &D::user_data, &D::room);
    };
    const auto pool = [&] { visit("pool", &D::pool, Form::kName); };
    const auto slots = [&] { visit("slots", &D::slots_begin, Form::kSlots); };
    const auto lease = [&] {
        untold(&D::id);
        visit("fence", &D::fence, Form::kNumber);
    };
    const auto holder = [&] {
        visit("holder", &D::holder_uid, Form::kHolder);
        untold(&D::holder_pid, &D::holder_claim, &D::holder_age_ns);
    };
    switch (kind) {
        case DecisionKind::kResult:
            visit("of", &D::user_data, Form::kOperation);
            visit("session", &D::session, Form::kName);
            visit("reason", &D::reason, Form::kReason);
            holder();
            return untold(&D::value, &D::tag, &D::claim, &D::room);
        case DecisionKind::kAnswer:
            claim();
            visit("part", &D::part, Form::kNumberIfAny);
            visit("index", &D::slots_begin, Form::kNumber);
            visit("answer", &D::answer, Form::kBytes);
            return untold(&D::pool, &D::slot_number, &D::reason);
        case DecisionKind::kGrant:
        case DecisionKind::kAdopted:
            claim(), pool(), slots(), lease();
            visit("interval_ns", &D::value, Form::kNumber);
            visit("pools", &D::round, Form::kNumberIfAny);
            visit("part", &D::part, Form::kNumberIfAny);
            if (kind == DecisionKind::kAdopted) return;
            visit("provision", &D::provision, Form::kTruth);
            visit("may_park", &D::may_park, Form::kTruth);
            visit("resources", &D::resources_begin, Form::kResources);
            visit("class", &D::to_class, Form::kClass);
            return untold(&D::outcome, &D::pledged, &D::has_class, &D::resources_count);
        case DecisionKind::kEnd:
            claim(), pool();
            visit("claim", &D::entry, Form::kEntry);
            visit("outcome", &D::outcome, Form::kOutcome);
            visit("reason", &D::reason, Form::kReason);
            visit("retry_after_ns", &D::value, Form::kEndDetail);
            holder();
            return untold(&D::id);
        case DecisionKind::kLeaseGrace:
            claim(), lease();
            visit("until_ns", &D::value, Form::kUntil);
            visit("reason", &D::reason, Form::kReasonIfAny);
            return untold(&D::pool);
        case DecisionKind::kKill:
            claim(), lease();
            return untold(&D::pool);
        case DecisionKind::kLeaseEnd:
            claim(), pool(), slots(), lease();
            visit("reason", &D::reason, Form::kReason);
            return visit("again", &D::value, Form::kTruth);
        default:
            return;
    }
}

// Of what a worker is told, or of its slot.
void each_worker_field(DecisionKind kind, const auto& visit) {
    using D = Decision;
    const auto untold = [&](auto... member) { (visit("", member, Form::kUntold), ...); };
    const auto slot = [&](const char* name) {
        visit(name, &D::slot_number, Form::kSlot);
        const bool is_told = kind != DecisionKind::kSlotGone && kind != DecisionKind::kPulled;
        if (is_told) visit("session", &D::session, Form::kName);
        visit("pool", &D::pool, Form::kName);
        untold(&D::user_data, &D::id);
    };
    const auto order = [&] {
        visit("session", &D::session, Form::kName);
        visit("pool", &D::pool, Form::kName);
        visit("type", &D::type, Form::kName);
        visit("worker", &D::slot_number, Form::kSlot);
        untold(&D::id);
    };
    switch (kind) {
        case DecisionKind::kAnnounced:
            slot("slot");
            visit("number", &D::slot_number, Form::kNumber);
            return untold(&D::round, &D::room, &D::value);
        case DecisionKind::kAssign:
            slot("slot");
            visit("round", &D::round, Form::kNumber);
            visit("claim", &D::claim, Form::kName);
            visit("provision", &D::provision, Form::kTruth);
            visit("resources", &D::resources_begin, Form::kResources);
            return untold(&D::units, &D::room, &D::value, &D::resources_count);
        case DecisionKind::kRevoke:
            slot("slot");
            visit("round", &D::round, Form::kNumber);
            visit("until_ns", &D::value, Form::kNumberIfAny);
            return untold(&D::claim);
        case DecisionKind::kSlotGone:
            slot("slot");
            return untold(&D::room);
        case DecisionKind::kPulled:
            slot("worker");
            visit("claim", &D::claim, Form::kName);
            visit("provision", &D::provision, Form::kTruth);
            return visit("abort", &D::holder_claim, Form::kName);
        case DecisionKind::kCreate:
            order();
            visit("min", &D::resources_begin, Form::kResources);
            visit("width", &D::value, Form::kNumberIfAny);
            return untold(&D::resources_count);
        case DecisionKind::kStop:
            return order();
        default:
            return;
    }
}

// Of entries of dispatched pools.
void each_entry_field(DecisionKind kind, const auto& visit) {
    using D = Decision;
    if (kind < DecisionKind::kLock || kind > DecisionKind::kForget) return;
    visit("claim", &D::entry, Form::kEntry);
    visit("pool", &D::pool, Form::kName);
    visit("", &D::id, Form::kUntold);
    if (kind != DecisionKind::kStart && kind != DecisionKind::kKillProcess) return;
    visit("worker", &D::slot_number, Form::kSlot);
    visit("type", &D::type, Form::kName);
}

// Of pools, and of what accounts pay.
void each_pool_field(DecisionKind kind, const auto& visit) {
    using D = Decision;
    const auto pool = [&](Form form) { visit("pool", &D::pool, form); };
    switch (kind) {
        case DecisionKind::kDemand:
            pool(Form::kName);
            visit("queued", &D::value, Form::kNumber);
            visit("oldest_wait_ns", &D::id, Form::kNumber);
            visit("hit_permille", &D::hit_permille, Form::kNumber);
            return visit("headroom", &D::fence, Form::kUntil);
        case DecisionKind::kDrained:
            return pool(Form::kName);
        case DecisionKind::kPromote:
        case DecisionKind::kDemote:
            visit("claim", &D::claim, Form::kName);
            visit("slot", &D::slot_number, Form::kSlot);
            visit("account", &D::account, Form::kName);
            visit("from", &D::from_class, Form::kNumber);
            visit("to", &D::to_class, Form::kNumber);
            return pool(Form::kUntold);
        case DecisionKind::kPreempt:
            visit("claim", &D::claim, Form::kName);
            visit("slot", &D::slot_number, Form::kSlot);
            visit("account", &D::account, Form::kName);
            visit("victim", &D::holder_claim, Form::kName);
            visit("cost_micros", &D::slots_begin, Form::kCost);
            return pool(Form::kUntold);
        case DecisionKind::kRefund:
            visit("what", &D::is_void, Form::kVoid);
            visit("claim", &D::holder_claim, Form::kName);
            visit("account", &D::account, Form::kName);
            visit("cost_micros", &D::slots_begin, Form::kCost);
            visit("by", &D::claim, Form::kUntold);
            visit("slot", &D::slot_number, Form::kUntold);
            return pool(Form::kUntold);
        default:
            return;
    }
}

// Of applications.
void each_gang_field(DecisionKind kind, const auto& visit) {
    using D = Decision;
    const auto whose = [&] {
        visit("number", &D::id, Form::kNumber);
        visit("session", &D::session, Form::kName);
    };
    const auto states = [&](Form form) {
        visit("from", &D::from_class, form);
        visit("to", &D::to_class, form);
        visit("reason", &D::reason, Form::kReasonIfAny);
        visit("pool", &D::pool, Form::kUntold);
    };
    switch (kind) {
        case DecisionKind::kApplication:
            visit("application", &D::entry, Form::kEntry);
            return whose(), states(Form::kAppState);
        case DecisionKind::kTask:
            visit("task", &D::entry, Form::kEntry);
            return whose(), states(Form::kTaskState);
        case DecisionKind::kPlaceholder:
            visit("group", &D::entry, Form::kEntry);
            visit("index", &D::value, Form::kNumber);
            visit("pool", &D::pool, Form::kName);
            visit("slot", &D::slot_number, Form::kSlot);
            visit("what", &D::to_class, Form::kPlaceholderNews);
            return whose();
        default:
            return;
    }
}

void each_field(DecisionKind kind, const auto& visit) {
    each_client_field(kind, visit);
    each_worker_field(kind, visit);
    each_entry_field(kind, visit);
    each_pool_field(kind, visit);
    each_gang_field(kind, visit);
}

// Whether decisions of this kind have a field of this form.
inline bool lists(DecisionKind kind, Form form) {
    bool found = false;
    each_field(kind, [&](const char*, auto, Form listed) { found = found || listed == form; });
    return found;
}

}  // namespace dibs::core

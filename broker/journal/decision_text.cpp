// broker/journal/decision_text.cpp -- writes decisions as JSON, one function per kind.
// SPDX-License-Identifier: Apache-2.0
#include "broker/journal/decision_text.hpp"

#include "broker/journal/json_text.hpp"

namespace dibs::ctl {
namespace {

using core::Decision;
using core::DecisionKind;
using Numbers = std::span<const uint32_t>;

std::string by_row(const std::vector<std::string>& names, uint64_t row) {
    if (row < names.size() && !names[row].empty()) return names[row];
    return "#" + std::to_string(row);
}

void write_slot(
    JsonText& json, std::string_view key, uint32_t pool, uint32_t number, const NameTables& names) {
    const auto named = names.slots.find({pool, number});
    if (named != names.slots.end()) {
        json.text(key, named->second);
    } else {
        json.number(key, number);
    }
}

void write_slots(JsonText& json,
                 const Decision& decision,
                 Numbers numbers,
                 const NameTables& names) {
    json.open_list("slots");
    for (uint32_t number : numbers)
        write_slot(json, {}, decision.pool, number, names);
    json.close_list();
}

void write_pool(JsonText& json, const Decision& decision, const NameTables& names) {
    if (decision.pool != shm::kNoRow) json.text("pool", names.pool(decision.pool));
}

void write_session(JsonText& json, const Decision& decision, const NameTables& names) {
    if (decision.session != shm::kNoRow) json.text("session", names.session(decision.session));
}

void write_holder(JsonText& json, const Decision& decision, const NameTables& names) {
    if (decision.holder_uid == shm::kNoRow) return;
    json.open_object("holder");
    if (decision.holder_claim != 0) json.text("claim", names.claim(decision.holder_claim));
    json.number("uid", decision.holder_uid);
    json.number("pid", decision.holder_pid);
    json.number("age_ns", decision.holder_age_ns);
    json.close_object();
}

void write_result(JsonText& json, const Decision& decision, const NameTables& names) {
    const bool known = decision.user_data < names.operations.size();
    if (known) {
        const Operation& operation = names.operations[decision.user_data];
        json.text("of", operation.word);
        json.text(operation.subject, operation.name);
        if (operation.word == "keepalive" && decision.reason == shm::Reason::kOk) {
            json.number("interval_ns", decision.value);
        }
    } else {
        json.number("of", decision.user_data);
    }
    write_session(json, decision, names);
    json.text("reason", reason_word(decision.reason));
    write_holder(json, decision, names);
}

void write_announced(JsonText& json, const Decision& decision, const NameTables& names) {
    write_slot(json, "slot", decision.pool, decision.slot_number, names);
    write_session(json, decision, names);
    write_pool(json, decision, names);
    json.number("number", decision.slot_number);
}

void write_assignment(JsonText& json, const Decision& decision, const NameTables& names) {
    write_slot(json, "slot", decision.pool, decision.slot_number, names);
    write_session(json, decision, names);
    write_pool(json, decision, names);
    json.number("round", decision.round);
    if (decision.kind == DecisionKind::kAssign) json.text("claim", names.claim(decision.claim));
    if (decision.provision) json.truth("provision", true);
    const bool later = decision.kind == DecisionKind::kRevoke && decision.value != 0;
    if (later) json.number("until_ns", decision.value);
}

void write_cost(JsonText& json, std::span<const int64_t> cost) {
    json.open_list("cost_micros");
    for (const int64_t paid : cost)
        json.signed_number({}, paid);
    json.close_list();
}

void write_reclassed(JsonText& json, const Decision& decision, const NameTables& names) {
    json.text("claim", names.claim(decision.claim));
    write_slot(json, "slot", decision.pool, decision.slot_number, names);
    json.text("account", names.account(decision.account));
    json.number("from", decision.from_class);
    json.number("to", decision.to_class);
}

void write_preempt(JsonText& json,
                   const Decision& decision,
                   const NameTables& names,
                   std::span<const int64_t> cost) {
    json.text("claim", names.claim(decision.claim));
    write_slot(json, "slot", decision.pool, decision.slot_number, names);
    json.text("account", names.account(decision.account));
    json.text("victim", names.claim(decision.holder_claim));
    write_cost(json, cost);
}

// The victim's account gets it back; if that account is gone, it is lost.
void write_refund(JsonText& json,
                  const Decision& decision,
                  const NameTables& names,
                  std::span<const int64_t> cost) {
    if (decision.is_void) json.text("what", "refund_void");
    json.text("claim", names.claim(decision.holder_claim));
    if (decision.account != shm::kNoRow) json.text("account", names.account(decision.account));
    if (!decision.is_void) write_cost(json, cost);
}

void write_pulled(JsonText& json, const Decision& decision, const NameTables& names) {
    write_slot(json, "worker", decision.pool, decision.slot_number, names);
    write_pool(json, decision, names);
    if (decision.claim != 0) json.text("claim", names.claim(decision.claim));
    if (decision.provision) json.truth("provision", true);
    if (decision.holder_claim != 0) json.text("abort", names.claim(decision.holder_claim));
}

// As text where it is ASCII; a line of JSON could not hold other bytes as they are.
void write_bytes(JsonText& json, std::span<const uint8_t> bytes) {
    static constexpr char kHex[] = "0123456789abcdef";
    std::string text;
    std::string hex;
    bool ascii = true;
    for (uint8_t byte : bytes) {
        ascii = ascii && byte < 0x80;
        text += static_cast<char>(byte);
        hex += kHex[byte >> 4];
        hex += kHex[byte & 15];
    }
    json.text(ascii ? "answer" : "answer_hex", ascii ? text : hex);
}

void write_answer(JsonText& json, const Decision& decision, const NameTables& names) {
    json.text("claim", names.claim(decision.claim));
    write_session(json, decision, names);
    json.number("index", decision.slots_begin);
    write_bytes(json, decision.answer);
}

void write_grant(JsonText& json,
                 const Decision& decision,
                 Numbers numbers,
                 const NameTables& names) {
    json.text("claim", names.claim(decision.claim));
    write_session(json, decision, names);
    write_pool(json, decision, names);
    write_slots(json, decision, numbers, names);
    json.number("fence", decision.fence);
    json.number("interval_ns", decision.value);
    if (decision.provision) json.truth("provision", true);
    if (decision.has_class) json.number("class", decision.to_class);
}

// A rejection's value is its worker's code after a refusal, else the pause before another try.
void write_end(JsonText& json, const Decision& decision, const NameTables& names) {
    json.text("claim", names.claim(decision.claim));
    write_session(json, decision, names);
    write_pool(json, decision, names);
    json.text("outcome", outcome_word(decision.outcome));
    json.text("reason", reason_word(decision.reason));
    if (decision.reason == shm::Reason::kRefused) {
        json.signed_number("code", static_cast<int64_t>(decision.value));
    } else if (decision.reason == shm::Reason::kDuplicate) {
        json.text("first", names.claim(decision.id));
    } else if (decision.value != 0) {
        json.number("retry_after_ns", decision.value);
    }
    write_holder(json, decision, names);
}

void write_lease_grace(JsonText& json, const Decision& decision, const NameTables& names) {
    json.text("claim", names.claim(decision.claim));
    write_session(json, decision, names);
    json.number("fence", decision.fence);
    // A lazy lease has none: no instant decides its end.
    if (decision.value != shm::kNever) json.number("until_ns", decision.value);
    if (decision.reason != shm::Reason::kOk) json.text("reason", reason_word(decision.reason));
}

void write_kill(JsonText& json, const Decision& decision, const NameTables& names) {
    json.text("claim", names.claim(decision.claim));
    write_session(json, decision, names);
    json.number("fence", decision.fence);
}

void write_lease_end(JsonText& json,
                     const Decision& decision,
                     Numbers numbers,
                     const NameTables& names) {
    json.text("claim", names.claim(decision.claim));
    write_session(json, decision, names);
    write_pool(json, decision, names);
    write_slots(json, decision, numbers, names);
    json.number("fence", decision.fence);
    json.text("reason", reason_word(decision.reason));
    if (decision.value != 0) json.truth("again", true);
}

void write_slot_gone(JsonText& json, const Decision& decision, const NameTables& names) {
    write_slot(json, "slot", decision.pool, decision.slot_number, names);
    write_pool(json, decision, names);
}

void write_demand(JsonText& json, const Decision& decision, const NameTables& names) {
    write_pool(json, decision, names);
    json.number("queued", decision.value);
    json.number("oldest_wait_ns", decision.id);
    json.number("hit_permille", decision.hit_permille);
}

std::string_view kind_word(const Decision& decision) {
    switch (decision.kind) {
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
            return "lease_grace";
        case DecisionKind::kKill:
            return "kill_holder";
        case DecisionKind::kLeaseEnd:
            return "lease_end";
        case DecisionKind::kSlotGone:
            return "slot_gone";
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
            return decision.is_void ? "note" : "refund";
        case DecisionKind::kPulled:
            return "pulled";
    }
    return "unknown";
}

}  // namespace

std::string NameTables::pool(uint32_t row) const {
    return by_row(pools, row);
}

std::string NameTables::session(uint32_t row) const {
    return by_row(sessions, row);
}

std::string NameTables::claim(uint64_t number) const {
    return by_row(claims, number);
}

std::string NameTables::account(uint32_t row) const {
    return by_row(accounts, row);
}

std::string decision_text(const Decision& decision,
                          Numbers slot_numbers,
                          const NameTables& names,
                          std::span<const int64_t> cost) {
    JsonText json;
    json.open_object();
    json.open_object(kind_word(decision));
    switch (decision.kind) {
        case DecisionKind::kResult:
            write_result(json, decision, names);
            break;
        case DecisionKind::kAnnounced:
            write_announced(json, decision, names);
            break;
        case DecisionKind::kAssign:
        case DecisionKind::kRevoke:
            write_assignment(json, decision, names);
            break;
        case DecisionKind::kAnswer:
            write_answer(json, decision, names);
            break;
        case DecisionKind::kGrant:
        case DecisionKind::kAdopted:
            write_grant(json, decision, slot_numbers, names);
            break;
        case DecisionKind::kEnd:
            write_end(json, decision, names);
            break;
        case DecisionKind::kLeaseGrace:
            write_lease_grace(json, decision, names);
            break;
        case DecisionKind::kKill:
            write_kill(json, decision, names);
            break;
        case DecisionKind::kLeaseEnd:
            write_lease_end(json, decision, slot_numbers, names);
            break;
        case DecisionKind::kSlotGone:
            write_slot_gone(json, decision, names);
            break;
        case DecisionKind::kDemand:
            write_demand(json, decision, names);
            break;
        case DecisionKind::kDrained:
            write_pool(json, decision, names);
            break;
        case DecisionKind::kPromote:
        case DecisionKind::kDemote:
            write_reclassed(json, decision, names);
            break;
        case DecisionKind::kPreempt:
            write_preempt(json, decision, names, cost);
            break;
        case DecisionKind::kRefund:
            write_refund(json, decision, names, cost);
            break;
        case DecisionKind::kPulled:
            write_pulled(json, decision, names);
            break;
    }
    json.close_object();
    json.close_object();
    return json.line();
}

std::string_view reason_word(shm::Reason reason) {
    switch (reason) {
        case shm::Reason::kOk:
            return "ok";
        case shm::Reason::kAlreadyEnded:
            return "already_ended";
        case shm::Reason::kUnknownPool:
            return "unknown_pool";
        case shm::Reason::kTooManyUnits:
            return "too_many_units";
        case shm::Reason::kBacklogFull:
            return "backlog_full";
        case shm::Reason::kArenaFull:
            return "arena_full";
        case shm::Reason::kBusy:
            return "busy";
        case shm::Reason::kCold:
            return "cold";
        case shm::Reason::kDraining:
            return "draining";
        case shm::Reason::kDuplicate:
            return "duplicate";
        case shm::Reason::kLimit:
            return "limit";
        case shm::Reason::kPayload:
            return "payload";
        case shm::Reason::kNotFound:
            return "not_found";
        case shm::Reason::kStale:
            return "stale";
        case shm::Reason::kNotHolder:
            return "not_holder";
        case shm::Reason::kState:
            return "state";
        case shm::Reason::kRefused:
            return "refused";
        case shm::Reason::kNoRoom:
            return "no_room";
        case shm::Reason::kNameInUse:
            return "name_in_use";
        case shm::Reason::kTablesFull:
            return "tables_full";
        case shm::Reason::kHolderGone:
            return "holder_gone";
        case shm::Reason::kWorkerLost:
            return "worker_lost";
        case shm::Reason::kExpiredLease:
            return "expired_lease";
        case shm::Reason::kDone:
            return "done";
        case shm::Reason::kMalformed:
            return "malformed";
        case shm::Reason::kNotAllowed:
            return "not_allowed";
        case shm::Reason::kRevoked:
            return "revoked";
        case shm::Reason::kStateLost:
            return "state_lost";
        case shm::Reason::kUnkillable:
            return "unkillable";
        case shm::Reason::kEnded:
            return "ended";
        case shm::Reason::kAdopted:
            return "adopted";
    }
    return "unknown";
}

std::string_view outcome_word(shm::Outcome outcome) {
    switch (outcome) {
        case shm::Outcome::kNone:
            return "none";
        case shm::Outcome::kGranted:
            return "granted";
        case shm::Outcome::kExpired:
            return "expired";
        case shm::Outcome::kCancelled:
            return "cancelled";
        case shm::Outcome::kRejected:
            return "rejected";
        case shm::Outcome::kBrokerLost:
            return "broker_lost";
    }
    return "unknown";
}

std::string_view pool_state_word(const shm::PoolRow& pool) {
    if ((pool.flags & shm::PoolFlag::kLeaving) != 0) return "leaving";
    return pool.state == shm::PoolState::kDraining ? "draining" : "open";
}

std::string_view slot_state_word(shm::SlotState state) {
    switch (state) {
        case shm::SlotState::kFree:
            return "free";
        case shm::SlotState::kIdle:
            return "idle";
        case shm::SlotState::kReserved:
            return "reserved";
        case shm::SlotState::kLeased:
            return "leased";
        case shm::SlotState::kRecovering:
            return "recovering";
        case shm::SlotState::kUnknown:
            return "unknown";
    }
    return "unknown";
}

}  // namespace dibs::ctl

// broker/journal/decision_text.cpp -- writes the fields of a decision as JSON.
// SPDX-License-Identifier: Apache-2.0
#include "broker/journal/decision_text.hpp"

#include "broker/core/decision_fields.hpp"
#include "broker/journal/json_text.hpp"

namespace dibs::ctl {
namespace {

using core::Decision;
using core::DecisionKind;
using core::Form;
using Numbers = std::span<const uint32_t>;

// In the order of DecisionKind.
constexpr std::string_view kKinds[] = {
    "result", "announced", "assign",      "revoke",      "answer",     "grant",
    "end",    "adopted",   "lease_grace", "kill_holder", "lease_end",  "slot_gone",
    "demand", "drained",   "promote",     "demote",      "preempt",    "refund",
    "pulled", "create",    "stop",        "lock",        "unlock",     "start",
    "kill",   "forget",    "application", "task",        "placeholder"};
// From the lowest on.
constexpr std::string_view kReasons[] = {"manager_gone",
                                         "reservation_failed",
                                         "reservation_time_out",
                                         "app_ended",
                                         "elsewhere",
                                         "offer_expired",
                                         "vector",
                                         "unavailable",
                                         "adopted",
                                         "ended",
                                         "unkillable",
                                         "state_lost",
                                         "revoked",
                                         "not_allowed",
                                         "malformed",
                                         "done",
                                         "expired_lease",
                                         "worker_lost",
                                         "holder_gone",
                                         "tables_full",
                                         "name_in_use",
                                         "no_room",
                                         "refused",
                                         "state",
                                         "not_holder",
                                         "stale",
                                         "not_found",
                                         "payload",
                                         "limit",
                                         "duplicate",
                                         "draining",
                                         "cold",
                                         "busy",
                                         "arena_full",
                                         "backlog_full",
                                         "too_many_units",
                                         "unknown_pool",
                                         "ok",
                                         "already_ended"};
constexpr std::string_view kOutcomes[] = {
    "none", "granted", "expired", "cancelled", "rejected", "broker_lost"};
constexpr std::string_view kSlotStates[] = {
    "free", "idle", "reserved", "leased", "recovering", "unknown", "shared", "ordered"};
constexpr std::string_view kAppStates[] = {"none",
                                           "new",
                                           "submitted",
                                           "accepted",
                                           "reserving",
                                           "resuming",
                                           "running",
                                           "completed",
                                           "failing",
                                           "failed",
                                           "killing",
                                           "killed",
                                           "rejected",
                                           "recovering",
                                           "going"};
constexpr std::string_view kTaskStates[] = {
    "none", "new", "scheduling", "allocated", "bound", "completed", "killed", "rejected", "failed"};
constexpr std::string_view kPlaceholderNews[] = {"bound", "replaced", "released", "lost"};
constexpr int kFirstReason = static_cast<int>(shm::Reason::kManagerGone);

std::string_view word(std::span<const std::string_view> words, int64_t at) {
    return at >= 0 && at < static_cast<int64_t>(words.size()) ? words[static_cast<size_t>(at)]
                                                              : "unknown";
}

std::string by_row(const std::vector<std::string>& names, uint64_t row) {
    if (row < names.size() && !names[row].empty()) return names[row];
    return "#" + std::to_string(row);
}

class Text {
  public:
    Text(const Decision& decision,
         Numbers slots,
         const NameTables& names,
         std::span<const int64_t> amounts)
        : decision_(decision), slots_(slots), names_(names), amounts_(amounts) {}

    std::string line() {
        const bool is_note = decision_.kind == DecisionKind::kRefund && decision_.is_void;
        json_.open_object();
        json_.open_object(is_note ? "note" : word(kKinds, static_cast<int64_t>(decision_.kind)));
        core::each_field(decision_.kind, [this](const char* name, auto member, Form form) {
            const auto& value = decision_.*member;
            if constexpr (requires { value.is_none(); }) {
                if (form == Form::kName) write_name(name, value);
            } else if constexpr (requires { static_cast<uint64_t>(value); }) {
                write(name, static_cast<uint64_t>(value), form);
            } else if constexpr (requires { value.starts_with(name); }) {
                if (!value.empty()) json_.text(name, value);
            } else {
                write_bytes(value);
            }
        });
        json_.close_object();
        json_.close_object();
        return json_.line();
    }

  private:
    [[nodiscard]] std::string name_of(core::PoolId row) const { return names_.pool(row); }
    [[nodiscard]] std::string name_of(core::SessionId row) const { return names_.session(row); }
    [[nodiscard]] std::string name_of(core::AccountId row) const { return names_.account(row); }
    [[nodiscard]] std::string name_of(core::TypeId row) const { return names_.type(row); }
    [[nodiscard]] std::string name_of(core::ClaimNumber claim) const { return names_.claim(claim); }
    void write_name(std::string_view name, core::AnyId auto id) {
        if (!id.is_none()) json_.text(name, name_of(id));
    }
    void write(std::string_view name, uint64_t value, Form form);
    void write_slot(std::string_view name, uint32_t number);
    void write_holder();
    void write_operation();
    void write_end_detail();
    void write_bytes(std::span<const uint8_t> bytes);
    void write_part(std::string_view name);
    [[nodiscard]] std::span<const std::string> resource_names() const {
        const auto named = names_.resources.find(decision_.pool);
        return named == names_.resources.end() ? std::span<const std::string>{} : named->second;
    }

    const Decision& decision_;
    Numbers slots_;
    const NameTables& names_;
    std::span<const int64_t> amounts_;
    JsonText json_;
};

void Text::write(std::string_view name, uint64_t value, Form form) {
    const auto reason = static_cast<shm::Reason>(value);
    switch (form) {
        case Form::kUntold:
        case Form::kName:
        case Form::kBytes:
        case Form::kEntry:
            return;
        case Form::kNumber:
            return json_.number(name, value);
        case Form::kNumberIfAny:
            return value != 0 ? json_.number(name, value) : void();
        case Form::kUntil:
            return value != shm::kNever ? json_.number(name, value) : void();
        case Form::kTruth:
            return value != 0 ? json_.truth(name, true) : void();
        case Form::kOutcome:
            return json_.text(name, outcome_word(decision_.outcome));
        case Form::kReason:
            return json_.text(name, reason_word(reason));
        case Form::kReasonIfAny:
            return reason != shm::Reason::kOk ? json_.text(name, reason_word(reason)) : void();
        case Form::kSlot:
            return write_slot(name, decision_.slot_number);
        case Form::kSlots:
            json_.open_list(name);
            for (const uint32_t number : slots_)
                write_slot({}, number);
            return json_.close_list();
        case Form::kCost:
            if (decision_.is_void) return;
            json_.open_list(name);
            for (const int64_t paid : amounts_)
                json_.signed_number({}, paid);
            return json_.close_list();
        case Form::kResources:
            return amounts_.empty() ? void() : write_part(name);
        case Form::kClass:
            return decision_.has_class ? json_.number(name, value) : void();
        case Form::kHolder:
            return value != shm::kNoRow ? write_holder() : void();
        case Form::kOperation:
            return write_operation();
        case Form::kEndDetail:
            return write_end_detail();
        case Form::kVoid:
            return decision_.is_void ? json_.text(name, "refund_void") : void();
        case Form::kAppState:
            return json_.text(name, word(kAppStates, static_cast<int64_t>(value)));
        case Form::kTaskState:
            return json_.text(name, word(kTaskStates, static_cast<int64_t>(value)));
        case Form::kPlaceholderNews:
            return json_.text(name, word(kPlaceholderNews, static_cast<int64_t>(value)));
    }
}

void Text::write_slot(std::string_view name, uint32_t number) {
    const auto named = names_.slots.find({decision_.pool, number});
    if (named != names_.slots.end()) return json_.text(name, named->second);
    json_.number(name, number);
}

void Text::write_holder() {
    json_.open_object("holder");
    write_name("claim", decision_.holder_claim);
    json_.number("uid", decision_.holder_uid);
    json_.number("pid", decision_.holder_pid);
    json_.number("age_ns", decision_.holder_age_ns);
    json_.close_object();
}

void Text::write_operation() {
    if (decision_.user_data >= names_.operations.size()) {
        return json_.number("of", decision_.user_data);
    }
    const Operation& operation = names_.operations[decision_.user_data];
    json_.text("of", operation.word);
    json_.text(operation.subject, operation.name);
    if (operation.word == "keepalive" && decision_.reason == shm::Reason::kOk) {
        json_.number("interval_ns", decision_.value);
    }
    if (operation.subject == "application" && decision_.value != 0) {
        json_.number("value", decision_.value);
    }
}

void Text::write_end_detail() {
    if (decision_.reason == shm::Reason::kRefused) {
        json_.signed_number("code", static_cast<int64_t>(decision_.value));
    } else if (decision_.reason == shm::Reason::kDuplicate) {
        json_.text("first", names_.claim(decision_.id));
    } else if (decision_.reason == shm::Reason::kUnavailable) {
        if (decision_.id < resource_names().size()) {
            json_.text("resource", resource_names()[decision_.id]);
        }
    } else if (decision_.value != 0) {
        json_.number("retry_after_ns", decision_.value);
    }
}

void Text::write_part(std::string_view name) {
    std::vector<core::Resource> part;
    for (const int64_t amount : amounts_) {
        const size_t at = part.size();
        const bool is_known = at < resource_names().size();
        part.push_back({is_known ? resource_names()[at] : "#" + std::to_string(at),
                        static_cast<uint64_t>(amount)});
    }
    write_resources(json_, name, part);
}

// As text where it is ASCII; a line of JSON could not hold other bytes as they are.
void Text::write_bytes(std::span<const uint8_t> bytes) {
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
    json_.text(ascii ? "answer" : "answer_hex", ascii ? text : hex);
}

}  // namespace

std::string NameTables::pool(core::PoolId row) const {
    return by_row(pools, row);
}

std::string NameTables::session(core::SessionId row) const {
    return by_row(sessions, row);
}

std::string NameTables::claim(core::ClaimNumber number) const {
    return by_row(claims, number);
}

std::string NameTables::account(core::AccountId row) const {
    return by_row(accounts, row);
}

std::string NameTables::type(core::TypeId row) const {
    return by_row(types, row);
}

std::string decision_text(const Decision& decision,
                          Numbers slot_numbers,
                          const NameTables& names,
                          std::span<const int64_t> amounts) {
    return Text(decision, slot_numbers, names, amounts).line();
}

void write_resources(JsonText& json,
                     std::string_view key,
                     std::span<const core::Resource> resources) {
    json.open_list(key);
    for (const core::Resource& resource : resources) {
        json.open_object();
        json.text("name", resource.name);
        json.number("amount", resource.amount);
        json.close_object();
    }
    json.close_list();
}

std::string_view reason_word(shm::Reason reason) {
    return word(kReasons, static_cast<int64_t>(reason) - kFirstReason);
}

std::string_view outcome_word(shm::Outcome outcome) {
    return word(kOutcomes, static_cast<int64_t>(outcome));
}

std::string_view slot_state_word(shm::SlotState state) {
    return word(kSlotStates, static_cast<int64_t>(state));
}

std::string_view app_state_word(shm::AppState state) {
    return word(kAppStates, static_cast<int64_t>(state));
}

std::string_view task_state_word(shm::TaskState state) {
    return word(kTaskStates, static_cast<int64_t>(state));
}

std::string_view pool_state_word(const shm::PoolRow& pool) {
    if ((pool.flags & shm::PoolFlag::kLeaving) != 0) return "leaving";
    return pool.state == shm::PoolState::kDraining ? "draining" : "open";
}

}  // namespace dibs::ctl

// broker/ctl/admin/event_text.cpp -- lists an event's fields once, for both forms.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/admin/event_text.hpp"

#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string_view>

#include "broker/ctl/output/sheet.hpp"
#include "broker/journal/json_text.hpp"

namespace dibs::ctl {

namespace {

constexpr uint32_t kNone = 0xffffffffU;

bool is_refused(const dibs_event& event) {
    return event.kind == DIBS_EVENT_END && event.outcome == DIBS_REJECTED &&
           event.code == DIBS_EREFUSED;
}

// What `value` is, by kind; empty: nothing, or what its worker has said, which has a sign.
std::string_view value_key(const dibs_event& event) {
    switch (event.kind) {
        case DIBS_EVENT_GRANT:
        case DIBS_EVENT_ADOPTED:
            return "interval_ns";
        case DIBS_EVENT_LEASE_GRACE:  // that of a lazy lease lasts until its room is wanted
            if (event.value == UINT64_MAX) return {};
            return "until_ns";
        case DIBS_EVENT_DEMAND:
            return "queued";
        case DIBS_EVENT_LOST:
            return "events";
        case DIBS_EVENT_END:
            if (event.outcome != DIBS_REJECTED || is_refused(event)) return {};
            return "retry_after_ns";
        default:
            return {};
    }
}

bool is_of_application(const dibs_event& event) {
    return event.kind == DIBS_EVENT_APPLICATION || event.kind == DIBS_EVENT_TASK ||
           event.kind == DIBS_EVENT_PLACEHOLDER;
}

std::string_view task_state(uint32_t state) {
    static constexpr std::string_view kWords[] = {"free",
                                                  "new",
                                                  "scheduling",
                                                  "allocated",
                                                  "bound",
                                                  "completed",
                                                  "killed",
                                                  "rejected",
                                                  "failed"};
    return state < std::size(kWords) ? kWords[state] : "unknown";
}

std::string_view placeholder_news(uint32_t news) {
    static constexpr std::string_view kWords[] = {"bound", "replaced", "released", "lost"};
    return news < std::size(kWords) ? kWords[news] : "unknown";
}

// `entry` is its name, its task's, or its group's.
template <class Form>
void say_application(const dibs_event& event, Form& form) {
    const auto from = static_cast<int>(event.from_class);
    const auto to = static_cast<int>(event.to_class);
    form.number("application", event.id);
    if (event.kind == DIBS_EVENT_APPLICATION) {
        form.text("name", event.entry);
        form.text("from", dibs_app_state_name(from));
        form.text("to", dibs_app_state_name(to));
    } else if (event.kind == DIBS_EVENT_TASK) {
        form.text("task", event.entry);
        form.text("from", task_state(event.from_class));
        form.text("to", task_state(event.to_class));
    } else {
        form.text("group", event.entry);
        form.text("did", placeholder_news(event.to_class));
        form.number("index", event.value);
    }
    if (event.code != DIBS_OK) form.text("reason", dibs_reason_name(event.code));
}

bool has_reason(const dibs_event& event) {
    return event.kind == DIBS_EVENT_RESULT || event.kind == DIBS_EVENT_END ||
           event.kind == DIBS_EVENT_LEASE_END;
}

bool is_order(const dibs_event& event) {
    return event.kind == DIBS_EVENT_CREATE || event.kind == DIBS_EVENT_STOP;
}

bool names_slot(const dibs_event& event) {
    return is_order(event) || event.kind == DIBS_EVENT_ANNOUNCED ||
           event.kind == DIBS_EVENT_ASSIGN || event.kind == DIBS_EVENT_REVOKE ||
           event.kind == DIBS_EVENT_SLOT_GONE;
}

bool names_lease(const dibs_event& event) {
    return event.kind == DIBS_EVENT_GRANT || event.kind == DIBS_EVENT_ADOPTED ||
           event.kind == DIBS_EVENT_LEASE_GRACE || event.kind == DIBS_EVENT_LEASE_END ||
           event.kind == DIBS_EVENT_KILL;
}

bool has_cost(const dibs_event& event) {
    return event.kind == DIBS_EVENT_PREEMPT ||
           (event.kind == DIBS_EVENT_REFUND && event.is_void == 0);
}

bool changes_class(const dibs_event& event) {
    return event.kind == DIBS_EVENT_PROMOTE || event.kind == DIBS_EVENT_DEMOTE;
}

std::string client_of(const dibs_event& event) {
    return "s" + std::to_string(event.session) + "." + std::to_string(event.session_generation);
}

// `form` has text(key, value), number(key, value), signed_number(key, value), claim(key, number),
// numbers(key, list, count).
template <class Form>
void say_what(const dibs_event& event, Form& form) {
    if (event.claim != 0) form.claim("claim", event.claim);
    if (is_of_application(event)) {
        say_application(event, form);
        if (event.slot != kNone) form.number("slot", event.slot);
        if (event.uid != kNone) form.number("uid", event.uid);
        return;
    }
    if (event.entry[0] != '\0') form.text("entry", event.entry);
    if (event.entry[0] != '\0' && event.id != 0) form.number("entry_number", event.id);
    if (names_lease(event)) form.text("lease", id_text(Letter::kLease, event.id));
    if (names_slot(event)) form.text("id", id_text(Letter::kSlot, event.id));
    if (event.slot != kNone) form.number("slot", event.slot);
    if (is_order(event)) form.text("type", event.type);
    if (event.slot_count != 0) form.numbers("slots", event.slots, event.slot_count);
    if (event.units > 1) form.number("units", event.units);
    const bool is_demand = event.kind == DIBS_EVENT_DEMAND;
    if (event.fence != 0 && !is_demand) form.number("fence", event.fence);
    if (event.round != 0) form.number("round", event.round);
    if (event.kind == DIBS_EVENT_END) form.text("outcome", dibs_outcome_name(event.outcome));
    if (has_reason(event)) form.text("reason", dibs_reason_name(event.code));
    if (const std::string_view key = value_key(event); !key.empty()) form.number(key, event.value);
    if (is_refused(event)) form.signed_number("worker_code", static_cast<int64_t>(event.value));
    if (is_demand) {
        form.number("oldest_wait_ns", event.id);
        form.number("hit_permille", event.hit_permille);
        if (event.fence != UINT64_MAX) form.number("headroom", event.fence);
    }
    if (changes_class(event)) {
        form.number("from", event.from_class);
        form.number("to", event.to_class);
    }
    if (event.holder.claim != 0) form.claim("holder_claim", event.holder.claim);
    if (event.holder.uid != kNone && event.kind == DIBS_EVENT_LEASE_END) {
        form.number("released_by", event.holder.uid);
    } else if (event.holder.uid != kNone) {
        form.number("holder_uid", event.holder.uid);
        form.number("holder_pid", event.holder.pid);
    }
    if (has_cost(event)) form.numbers("cost_micros", event.cost_micros, 5U);
    if (event.session != kNone) {
        form.text("client", client_of(event));
        form.number("uid", event.uid);
        form.number("pid", event.pid);
    }
}

class Words {
  public:
    explicit Words(std::string begin) : line_(std::move(begin)) {}
    void text(std::string_view key, std::string_view value) {
        line_.append(" ").append(key).append(" ").append(value);
    }
    void number(std::string_view key, uint64_t value) { text(key, std::to_string(value)); }
    void signed_number(std::string_view key, int64_t value) { text(key, std::to_string(value)); }
    void claim(std::string_view key, uint64_t number) {
        text(key, number_text(Letter::kClaim, number));
    }
    template <class Number>
    void numbers(std::string_view key, const Number* list, uint32_t count) {
        std::string all;
        for (uint32_t at = 0; at < count; ++at)
            all += (at == 0 ? "" : ",") + std::to_string(list[at]);
        text(key, all);
    }
    [[nodiscard]] const std::string& line() const { return line_; }

  private:
    std::string line_;
};

class Json {
  public:
    void text(std::string_view key, std::string_view value) { json.text(key, value); }
    void number(std::string_view key, uint64_t value) { json.number(key, value); }
    void signed_number(std::string_view key, int64_t value) { json.signed_number(key, value); }
    void claim(std::string_view key, uint64_t number) { json.number(key, number); }
    template <class Number>
    void numbers(std::string_view key, const Number* list, uint32_t count) {
        json.open_list(key);
        for (uint32_t at = 0; at < count; ++at)
            json.signed_number({}, static_cast<int64_t>(list[at]));
        json.close_list();
    }
    JsonText json;
};

std::string seconds(int64_t ns) {
    char text[32];
    std::snprintf(text,
                  sizeof(text),
                  "%lld.%06llds",
                  static_cast<long long>(ns / 1'000'000'000),
                  static_cast<long long>(ns % 1'000'000'000 / 1000));
    return text;
}

}  // namespace

std::string event_text(const dibs_event& event) {
    if (event.kind == DIBS_EVENT_LOST) {
        return std::to_string(event.value) +
               " events were lost: they came faster than they were "
               "read";
    }
    std::string begin = seconds(event.time_ns) + " " + dibs_event_name(event.kind);
    if (event.pool[0] != '\0') begin.append(" ").append(event.pool);
    if (event.full == 0) return begin + " (of account " + event.account + ")";
    Words words(begin);
    say_what(event, words);
    return words.line();
}

std::string event_json(const dibs_event& event) {
    Json form;
    form.json.open_object();
    form.text("schema", "dibs.events/1");
    form.text("event", dibs_event_name(event.kind));
    if (event.kind == DIBS_EVENT_LOST) {
        form.number("events", event.value);
    } else {
        form.number("number", event.number);
        form.number("time_ns", static_cast<uint64_t>(event.time_ns));
        if (event.pool[0] != '\0') form.text("pool", event.pool);
        if (event.account[0] != '\0') form.text("account", event.account);
        form.json.truth("full", event.full != 0);
        if (event.full != 0) say_what(event, form);
    }
    form.json.close_object();
    return form.json.line();
}

}  // namespace dibs::ctl

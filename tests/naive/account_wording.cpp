// tests/naive/account_wording.cpp -- the words of steps that only pools ordered by account look at.
// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include "tests/naive/wording.hpp"

namespace dibs::naive {

namespace {

template <class List>
void list(std::ostream& text, const char* name, const List& values) {
    if (values.empty()) return;
    const char* between = " ";
    for (const auto& value : values) {
        text << (between[0] == ' ' ? std::string(" ") + name + "=" : ",") << value;
        between = ",";
    }
}

void time(std::ostream& text, const char* name, uint64_t at_ns) {
    if (at_ns != shm::kNever) text << ' ' << name << '=' << at_ns;
}

}  // namespace

std::string words_of(const Terms& terms) {
    std::ostringstream text;
    if (!terms.account.empty()) text << "account=" << terms.account;
    list(text, "base", terms.base);
    list(text, "provisionable", terms.provisionable);
    if (terms.preempt_mode == shm::PreemptMode::kForbidden) text << " never-preempted";
    if (terms.preempt_mode == shm::PreemptMode::kWithGrace) text << " grace=" << terms.grace_ns;
    if (terms.requeue) text << " requeue";
    time(text, "enqueued", terms.enqueued_ns);
    time(text, "event", terms.event_ns);
    if (terms.account_given) text << " new-account";
    if (terms.base_given) text << " new-base";
    if (terms.provisionable_given) text << " new-provisionable";
    return text.str();
}

std::string words_of(const AccountSpec& account) {
    std::ostringstream text;
    list(text, "rate", account.rate);
    list(text, "balance", account.balance);
    text << " charge_max=" << account.charge_max_ns;
    if (account.fanout_max != 0) text << " fanout_max=" << account.fanout_max;
    for (const auto& [key, limit] : account.label_limits)
        text << " limit:" << key << '=' << limit;
    if (account.free_tasks_disabled) text << " no-free-tasks";
    if (account.keep_balance) text << " keep-balance";
    return text.str();
}

std::string words_of_account_order(const core::PoolConfig& config) {
    std::ostringstream text;
    text << "by-account promote=" << config.promote_threshold
         << " demote=" << config.demote_threshold << " worker_expiry=" << config.account_expiry_ns
         << " age_max=" << config.request_age_max_ns
         << " queue_timeout=" << config.queue_timeout_ns;
    if (config.preemption_disabled) text << " no-preemption";
    return text.str();
}

std::string report_words(const Step& step) {
    std::ostringstream text;
    if (step.kind == StepKind::kReport) {
        static constexpr const char* kKinds[] = {"idle", "running", "absent"};
        text << kKinds[static_cast<size_t>(step.report)];
    }
    if (step.pool != kNoLabel) text << " pool=" << step.pool;
    if (!step.name.empty()) text << " worker=" << step.name;
    if (step.subject != kNoLabel) text << " claim=" << step.subject;
    list(text, "labels", step.labels);
    for (const Caller& caller : step.callers) {
        text << " caller:" << caller.worker;
        list(text, "labels", caller.labels);
    }
    if (step.kind == StepKind::kUnassign && step.on) text << " error";
    text << ' ' << words_of(step.terms);
    return text.str();
}

}  // namespace dibs::naive

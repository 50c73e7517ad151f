// tests/naive/account_player.cpp -- plays the steps that only pools ordered by account look at.
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <vector>

#include "broker/core/core.hpp"
#include "tests/naive/naive_core.hpp"
#include "tests/naive/player.hpp"

namespace dibs::naive {

namespace {

std::vector<std::string_view> views(const std::vector<std::string>& strings) {
    return {strings.begin(), strings.end()};
}

}  // namespace

template <class CoreType>
void Player<CoreType>::set_account(const Step& step) {
    core::AccountConfig config;
    std::vector<core::AccountConfig::Limit> limits;
    for (const auto& [key, limit] : step.account.label_limits)
        limits.push_back({key, limit});
    config.name = step.name;
    config.rate = step.account.rate;
    config.charge_max_ns = step.account.charge_max_ns;
    config.fanout_max = step.account.fanout_max;
    config.label_limits = limits;
    config.free_tasks_disabled = step.account.free_tasks_disabled;
    config.balance = step.account.balance;
    config.keep_balance = step.account.keep_balance;
    std::string why;
    tell_accepted(step, core_.set_account(config, &why));
}

template <class CoreType>
uint64_t Player<CoreType>::number_of(uint32_t label) const {
    const auto number = numbers_.find(label);
    return number == numbers_.end() ? 0 : number->second;
}

template <class CoreType>
void Player<CoreType>::report(const Step& step) {
    const std::vector<std::string_view> labels = views(step.labels);
    core::Report report;
    report.kind = step.report;
    report.pool = pool_row(step.pool);
    report.worker = step.name;
    report.claim = number_of(step.subject);
    report.labels = labels;
    report.event_ns = step.terms.event_ns;
    report.user_data = step.label;
    core_.apply(report);
}

template <class CoreType>
void Player<CoreType>::pull(const Step& step) {
    std::vector<std::vector<std::string_view>> labels;
    for (const Caller& caller : step.callers)
        labels.push_back(views(caller.labels));
    std::vector<core::Pull::Worker> workers;
    for (size_t i = 0; i < step.callers.size(); ++i)
        workers.push_back({step.callers[i].worker, labels[i]});
    core::Pull pull;
    pull.pool = pool_row(step.pool);
    pull.workers = workers;
    pull.event_ns = step.terms.event_ns;
    pull.user_data = step.label;
    core_.apply(pull);
}

template <class CoreType>
void Player<CoreType>::unassign(const Step& step) {
    core::Unassign command;
    command.pool = pool_row(step.pool);
    command.claim = number_of(step.subject);
    command.worker = step.name;
    command.event_ns = step.terms.event_ns;
    command.error = step.on ? "broken" : "";
    command.user_data = step.label;
    core_.apply(command);
}

template <class CoreType>
void Player<CoreType>::update_claim(const Step& step) {
    const std::vector<std::string_view> base = views(step.terms.base);
    const std::vector<std::string_view> provisionable = views(step.terms.provisionable);
    core::UpdateClaim update;
    update.claim = number_of(step.subject);
    update.account_given = step.terms.account_given;
    update.account = step.terms.account;
    update.labels_given = step.terms.base_given;
    update.labels = base;
    update.provisionable_given = step.terms.provisionable_given;
    update.provisionable = provisionable;
    update.priority_given = step.terms.priority_given;
    update.priority = step.claim.priority;
    update.event_ns = step.terms.event_ns;
    update.user_data = step.label;
    core_.apply(update);
}

template void Player<NaiveCore>::set_account(const Step&);
template void Player<NaiveCore>::report(const Step&);
template void Player<NaiveCore>::pull(const Step&);
template void Player<NaiveCore>::unassign(const Step&);
template void Player<NaiveCore>::update_claim(const Step&);
template void Player<core::Core>::set_account(const Step&);
template void Player<core::Core>::report(const Step&);
template void Player<core::Core>::pull(const Step&);
template void Player<core::Core>::unassign(const Step&);
template void Player<core::Core>::update_claim(const Step&);
template uint64_t Player<NaiveCore>::number_of(uint32_t) const;
template uint64_t Player<core::Core>::number_of(uint32_t) const;

}  // namespace dibs::naive

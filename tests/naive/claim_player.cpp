// tests/naive/claim_player.cpp -- plays the steps that claim.
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "broker/core/core.hpp"
#include "tests/naive/journal_bytes.hpp"
#include "tests/naive/naive_core.hpp"
#include "tests/naive/player.hpp"

namespace dibs::naive {

template <class CoreType>
void Player<CoreType>::claim(const Step& step) {
    core::Claim claim = step.claim;
    claim.session = sessions_.at(step.session);
    claim.pool = pool_row(step.pool);
    claim.user_data = step.label;
    claim.payload = payload_of(step);
    core::ClaimTerms terms;
    const std::vector<std::string_view> base(step.terms.base.begin(), step.terms.base.end());
    const std::vector<std::string_view> provisionable(step.terms.provisionable.begin(),
                                                      step.terms.provisionable.end());
    terms.account = step.terms.account;
    terms.labels = base;
    terms.provisionable = provisionable;
    terms.preempt_mode = step.terms.preempt_mode;
    terms.preempt_grace_ns = step.terms.grace_ns;
    terms.requeue = step.terms.requeue;
    terms.enqueued_ns = step.terms.enqueued_ns;
    terms.confirmed_ns = step.terms.event_ns;
    claim.terms = &terms;
    claim.least = step.least;
    claim.most = step.most;
    claim.meta = step.meta;
    std::vector<core::PoolUnits> also;
    for (const auto& [pool, units] : step.also)
        also.push_back({pool_row(pool), units});
    claim.also = also;
    std::vector<core::RouteMember> members;
    for (const auto& [label, member] : step.route.members) {
        members.push_back(member);
        members.back().pool = pool_row(label);
    }
    core::Route route = step.route.route;
    route.members = members;
    if (!members.empty()) claim.route = &route;
    core::MemberOf of;
    of.application = step.gang.application;
    of.task = step.gang.task;
    of.group = step.gang.group;
    of.priority = step.gang.priority;
    if (step.gang.is_member) claim.member = &of;
    numbers_[step.label] = next_number();
    core_.apply(claim);
}

template void Player<NaiveCore>::claim(const Step&);
template void Player<core::Core>::claim(const Step&);

}  // namespace dibs::naive

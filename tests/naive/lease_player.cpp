// tests/naive/lease_player.cpp -- plays claims and what is said of leases from outside, and finds
// what steps name.
// SPDX-License-Identifier: Apache-2.0
#include <string_view>
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
    numbers_[step.label] = ++claims_played_;
    core_.apply(claim);
}

// What it returns is told like a result, so that the two cores must agree on that too.
template <class CoreType>
void Player<CoreType>::steer(const Step& step, uint32_t session) {
    const auto number = numbers_.find(step.subject);
    core::Steer command;
    command.kind = step.steer;
    command.lease = lease_of(step.subject).id;
    command.interval_ns = step.interval_ns;
    command.session = session;
    command.tag = step.tag;
    command.number = number == numbers_.end() ? 0 : number->second;
    core::TimeNs granted_ns = 0;
    DecisionLine line;
    line.reason = core_.apply(command, &granted_ns);
    line.value = granted_ns;
    line.user_data = step.label;
    listen();
    lines_.push_back(line);
}

// Its holder knows of its own takes.
template <class CoreType>
void Player<CoreType>::harvest(const Step& step) {
    core::Harvest command = step.harvest;
    command.lease = lease_of(step.subject).id;
    core_.apply(command);
    const auto number = numbers_.find(step.subject);
    if (number == numbers_.end() || !leases_.contains(number->second)) return;
    KnownLease& known = leases_.at(number->second);
    if (!known.may_park || command.takes <= known.takes || command.takes > kTakesMax) return;
    known.fence += command.takes - known.takes;
    known.takes = command.takes;
}

template <class CoreType>
typename Player<CoreType>::KnownLease Player<CoreType>::lease_of(uint32_t label) const {
    const auto number = numbers_.find(label);
    if (number == numbers_.end()) return {kNoSuchId, 1};
    const auto lease = leases_.find(number->second);
    return lease == leases_.end() ? KnownLease{kNoSuchId, 1} : lease->second;
}

template <class CoreType>
uint64_t Player<CoreType>::slot_id(uint32_t label) const {
    const auto slot = slots_.find(label);
    return slot == slots_.end() ? kNoSuchId : slot->second;
}

template void Player<NaiveCore>::claim(const Step&);
template void Player<NaiveCore>::steer(const Step&, uint32_t);
template void Player<NaiveCore>::harvest(const Step&);
template uint64_t Player<NaiveCore>::slot_id(uint32_t) const;
template Player<NaiveCore>::KnownLease Player<NaiveCore>::lease_of(uint32_t) const;
template void Player<core::Core>::claim(const Step&);
template void Player<core::Core>::steer(const Step&, uint32_t);
template void Player<core::Core>::harvest(const Step&);
template uint64_t Player<core::Core>::slot_id(uint32_t) const;
template Player<core::Core>::KnownLease Player<core::Core>::lease_of(uint32_t) const;

}  // namespace dibs::naive

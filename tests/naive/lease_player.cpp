// tests/naive/lease_player.cpp -- plays what is said of leases from outside, and finds what steps
// name.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/core.hpp"
#include "tests/naive/naive_core.hpp"
#include "tests/naive/player.hpp"

namespace dibs::naive {

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

template void Player<NaiveCore>::steer(const Step&, uint32_t);
template void Player<NaiveCore>::harvest(const Step&);
template uint64_t Player<NaiveCore>::slot_id(uint32_t) const;
template Player<NaiveCore>::KnownLease Player<NaiveCore>::lease_of(uint32_t) const;
template void Player<core::Core>::steer(const Step&, uint32_t);
template void Player<core::Core>::harvest(const Step&);
template uint64_t Player<core::Core>::slot_id(uint32_t) const;
template Player<core::Core>::KnownLease Player<core::Core>::lease_of(uint32_t) const;

}  // namespace dibs::naive

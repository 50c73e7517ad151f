// tests/naive/pool_player.cpp -- plays the steps that change and delete pools.
// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "broker/core/core.hpp"
#include "tests/naive/naive_core.hpp"
#include "tests/naive/player.hpp"

namespace dibs::naive {

template <class CoreType>
void Player<CoreType>::change_pool(const Step& step) {
    if (!pools_.contains(step.pool)) return;
    core::PoolConfig config = step.change.config;
    config.name = step.change.name;
    config.required_label = step.change.required_label;
    config.vector = step.change.vector;
    config.create_min = step.change.create_min;
    std::string why;
    const uint32_t row = core_.set_pool(config, &why);
    const bool accepted = row != shm::kNoRow;
    if (accepted) {  // perhaps made by this: in a row of its own, or in another's
        pools_[step.pool] = row;
        label_of_row_[row] = step.pool;
    }
    tell_accepted(step, accepted);
    if (!accepted || config.kind != shm::PoolKind::kCounted) return;
    slots_wanted_[step.pool] = config.slots;
    meet_counted_slots(step.pool);
}

template <class CoreType>
void Player<CoreType>::delete_pool(const Step& step) {
    if (!pools_.contains(step.pool)) return;
    DecisionLine line;
    line.reason = core_.delete_pool(pool_row(step.pool), step.on);
    line.user_data = step.label;
    listen();
    lines_.push_back(line);
    if (line.reason == shm::Reason::kOk) growing_.erase(step.pool);
}

// Whether it was idle is told like a result.
template <class CoreType>
void Player<CoreType>::drain(const Step& step) {
    core::TimeNs left_ns = 0;
    DecisionLine line;
    line.reason = core_.apply(
        core::Drain{pool_row(step.pool), step.on, step.number, step.if_idle_for_ns}, &left_ns);
    line.value = left_ns;
    line.user_data = step.label;
    if (step.if_idle_for_ns != shm::kNever && step.on) lines_.push_back(line);
    listen();
}

template <class CoreType>
uint32_t Player<CoreType>::pool_row(uint32_t label) const {
    const auto pool = pools_.find(label);
    return pool == pools_.end() ? shm::kNoRow : pool->second;
}

template <class CoreType>
uint32_t Player<CoreType>::pool_label(uint32_t row) const {
    const auto label = label_of_row_.find(row);
    return label == label_of_row_.end() ? kNoLabel : label->second;
}

template void Player<NaiveCore>::change_pool(const Step&);
template void Player<NaiveCore>::delete_pool(const Step&);
template void Player<NaiveCore>::drain(const Step&);
template uint32_t Player<NaiveCore>::pool_row(uint32_t) const;
template uint32_t Player<NaiveCore>::pool_label(uint32_t) const;
template void Player<core::Core>::change_pool(const Step&);
template void Player<core::Core>::delete_pool(const Step&);
template void Player<core::Core>::drain(const Step&);
template uint32_t Player<core::Core>::pool_row(uint32_t) const;
template uint32_t Player<core::Core>::pool_label(uint32_t) const;

}  // namespace dibs::naive

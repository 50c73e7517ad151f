// tests/naive/journal_of_pools.cpp -- pools that drain, change, go and come back.
// SPDX-License-Identifier: Apache-2.0
#include "tests/naive/journal_writer.hpp"

namespace dibs::naive {

// Also of one that lives, which changes nothing.
void Writer::bring_back(uint32_t pool) {
    Step step;
    step.kind = StepKind::kSetPool;
    step.label = pool;
    put(step);
    for (const auto& [label, id] : player_->slots())
        label_of_slot_[id] = label;
}

void Writer::drain() {
    Step step;
    step.kind = StepKind::kDrain;
    if (!model().slots.empty() && dice_.percent(50)) {
        const Slot& slot = dice_.any(model().slots).second;
        step.pool = label_of_pool(slot.pool);
        step.number = slot.number + (dice_.percent(5) ? 1 : 0);
        step.on = slot.is_drained ? dice_.percent(5) : dice_.percent(85);
        put(step);
        return;
    }
    step.pool = dice_.percent(25) ? kNoLabel : any_pool(false);
    if (model().is_draining && dice_.percent(60)) step.pool = kNoLabel;
    const bool drains = step.pool == kNoLabel
                            ? model().is_draining
                            : model().pools[player_->pool_row(step.pool)].is_draining;
    step.on = drains ? dice_.percent(15) : dice_.percent(85);
    if (step.pool != kNoLabel && dice_.percent(30)) {
        step.if_idle_for_ns = dice_.one_of<uint64_t>({0, 0, 1, 10, shm::kNever - 1});
    }
    put(step);
}

// It may be served from several pools, or from some twice.
void Writer::route(Step& step) {
    const uint64_t members = dice_.between(1, 5);
    for (uint64_t at = 0; at < members; ++at) {
        core::RouteMember member;
        member.priority = dice_.one_of({0, 0, 0, 0, 1, -1});
        member.cap = dice_.one_of<uint32_t>({shm::kNoRow, shm::kNoRow, 0, 1, 2, 4, 20});
        member.idle_seen = dice_.one_of<uint32_t>({0, 0, 0, 0, 1, 3});
        step.route.members.emplace_back(dice_.percent(98) ? any_pool(false) : kNoLabel, member);
    }
    step.route.route.group_cap =
        dice_.one_of<uint32_t>({shm::kNoRow, shm::kNoRow, shm::kNoRow, 1, 4, 10, 30});
    step.route.route.version = dice_.one_of<uint8_t>({1, 2, 3, 3});
    step.route.route.cool_down_ns = dice_.one_of<uint64_t>({0, 3, 10, 40, shm::kNever});
}

void Writer::change_pool() {
    Step step;
    step.kind = StepKind::kChangePool;
    step.pool = any_pool(false);
    PoolSpec now = journal_.pools[step.pool];
    now.config = model().pools[player_->pool_row(step.pool)].config;
    step.change = changed_pool(dice_, character_, now);
    put(step);
    for (const auto& [label, id] : player_->slots())
        label_of_slot_[id] = label;
}

}  // namespace dibs::naive

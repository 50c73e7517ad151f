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

// broker/core/dispatch/queue_look.cpp -- says where each entry of a dispatched pool stands, and why
// (S1.17). It changes no row.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

using shm::EntryOp;
using shm::EntryState;

// S1.7; 0: no limit.
uint32_t Dispatch::supervisor_limit(uint32_t pool) const {
    const shm::ElasticRow& row = state.elastics[pool];
    if (row.supervisor_permille == 0) return 0;
    const uint64_t most = uint64_t{row.limit} * row.supervisor_permille / 1000;
    return static_cast<uint32_t>(std::clamp<uint64_t>(most, 1, UINT32_MAX));
}

// In its line, from 1; 0: it does not wait.
uint32_t Dispatch::position(uint32_t row) const {
    const shm::EntryRow& entry = state.entries[row];
    if (!waits(entry)) return 0;
    return lines_.rank(line(entry.pool, is_supervisor(entry)), row, order()) + 1;
}

// Those that wait in the order in which they are served, then the others as they were first seen.
std::vector<uint32_t> Dispatch::entries(uint32_t pool) const {
    std::vector<uint32_t> found;
    for (uint32_t row = next_waiting(pool, kNoRow); row != kNoRow; row = next_waiting(pool, row))
        found.push_back(row);
    const auto others = static_cast<std::ptrdiff_t>(found.size());
    for (uint32_t row = of_pool_.head(pool); row != kNoRow; row = of_pool_.next(row)) {
        if (!waits(state.entries[row])) found.push_back(row);
    }
    std::sort(found.begin() + others, found.end(), by_number());
    return found;
}

EntryReason Dispatch::reason(uint32_t row) const {
    const shm::EntryRow& entry = state.entries[row];
    const shm::ElasticRow& elastic = state.elastics[entry.pool];
    const bool in_line = entry.state == EntryState::kQueued || entry.state == EntryState::kLocked;
    if (is_alive(entry)) {
        return entry.state == EntryState::kRunning  ? EntryReason::kRunning
               : entry.state == EntryState::kLocked ? EntryReason::kPreparing
                                                    : EntryReason::kOldProcess;
    }
    if (has_process(entry)) return EntryReason::kExited;
    if (!in_line) return EntryReason::kNone;
    if (entry.priority < 1) return EntryReason::kHeld;
    if (elastic.phase != shm::DispatchPhase::kServing) return EntryReason::kReading;
    if (is_over_limit(row)) return EntryReason::kSupervisorLimit;
    if (entry.op != EntryOp::kNone) return EntryReason::kPreparing;
    const uint64_t types = types_for(entry);
    bool is_provided = false;
    uint64_t unallocated = 0;
    for (const uint32_t type : provisioning().types_of(entry.pool)) {
        if (type >= kTypesOfEntry || (types >> type & 1U) == 0) continue;
        is_provided = is_provided || state.types[type].session != kNoRow;
        unallocated += provisioning().unallocated_of[type];
    }
    const uint64_t trying =
        uint64_t{provisioning().running(entry.pool)} + counts_[entry.pool].lacking;
    const bool locked = entry.state == EntryState::kLocked;
    if (trying >= elastic.limit + (locked ? 1U : 0U)) return EntryReason::kLimit;
    const auto before_in = [&](bool supervisor) {
        return uint64_t{lines_.rank(line(entry.pool, supervisor), row, order())};
    };
    if (unallocated > before_in(false) + before_in(true))
        return locked ? EntryReason::kBeingMade : EntryReason::kStarts;
    if (!is_provided) return EntryReason::kNoProvisioner;
    if (provisioning().cheapest(entry.pool, types) == kNoRow) return EntryReason::kAtCapacity;
    return provisioning().at_quota(entry.pool) ? EntryReason::kAtQuota : EntryReason::kStarts;
}

}  // namespace dibs::core

// broker/core/match/gang_explain.cpp -- explains what applications and their gangs keep waiting.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/parts.hpp"

namespace dibs::core {

void Explainer::explain_gang(uint32_t app, uint32_t group, Explanation* told) const {
    told->application = app;
    told->group = group;
    told->gang_held = state.apps[app].placeholders;
    told->gang_members = 0;
    for (uint32_t row = state.apps[app].first_group; row != kNoRow; row = state.groups[row].next)
        told->gang_members += state.groups[row].members;
}

// Its application does not let it be served yet, or has no placeholder for it.
void Explainer::explain_held(uint32_t row, Explanation* told) const {
    const shm::ClaimRow& claim = state.claims[row];
    const shm::TaskRow& task = state.tasks[claim.task];
    const shm::AppRow& app = state.apps[task.app];
    explain_gang(task.app, task.group, told);
    const bool managed = app.manager != kNoRow || (app.flags & shm::AppFlag::kUnmanaged) != 0;
    const shm::PoolRow& pool = state.pools[claim.pool];
    WaitReason why = WaitReason::kPlaceholder;
    if (app.state == shm::AppState::kRecovering) {
        why = WaitReason::kNoManager;
    } else if (app.state != shm::AppState::kRunning) {
        why = managed ? WaitReason::kGang : WaitReason::kNoManager;
    } else if (task.group != kNoRow && state.groups[task.group].bound != 0) {
        if (!free_rows().lease_row_left()) {
            why = WaitReason::kLeases;
        } else if (pool.kind == shm::PoolKind::kWorker && !may_ask(pool, 1)) {
            why = WaitReason::kUnconfirmed;
        }
    }
    told->reason = told->obstacle = why;
}

// Whether what stands first in line is asked for by an application: for its gang.
bool Explainer::explain_ask(uint32_t row, uint32_t first, Explanation* told) const {
    if (first == kNoRow || state.claims[first].session != kNoRow) return false;
    const uint32_t group = state.claims[first].group;
    if (group == kNoRow) return false;
    const uint32_t app = state.groups[group].app;
    const uint32_t own = state.claims[row].group;
    explain_gang(app, group, told);
    const bool is_own =
        state.claims[row].session == kNoRow && own != kNoRow && state.groups[own].app == app;
    told->obstacle = is_own ? WaitReason::kGang : WaitReason::kBehindGang;
    return true;
}

}  // namespace dibs::core

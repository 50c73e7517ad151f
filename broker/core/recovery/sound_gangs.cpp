// broker/core/recovery/sound_gangs.cpp -- checks applications, their groups, tasks and
// placeholders.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/recovery/sound_gangs.hpp"

#include <algorithm>
#include <bitset>
#include <vector>

#include "broker/core/gang/gangs.hpp"
#include "broker/core/recovery/sound_elastic.hpp"

namespace dibs::core {

using shm::AppState;
using shm::ClaimState;
using shm::TaskState;

namespace {

bool is_name(uint8_t size) {
    return size != 0 && size <= shm::kNameMax;
}

bool is_app(const State& state, uint32_t row) {
    return row < state.apps.size() && state.apps[row].state != AppState::kFree;
}

bool is_group(const State& state, uint32_t row) {
    return row < state.groups.size() && state.groups[row].state != 0;
}

bool is_number(const State& state, uint64_t number) {
    return number < state.counters->arrival_next;
}

template <class Row>
bool is_unused(const Rows<Row>& rows) {
    const Row* first = &rows[0];
    return std::none_of(first, first + rows.size(), [](const Row& row) {
        return static_cast<int>(row.state) != 0;
    });
}

// What the rows of an application, or of a group, add up to.
struct OfApp {
    uint32_t groups = 0;
    uint32_t tasks = 0;
    uint32_t claims = 0;
    uint32_t leases = 0;
    uint32_t placeholders = 0;
};

struct OfGroup {
    bool is_listed = false;
    uint32_t bound = 0;
    std::bitset<shm::kGangMax> indices;
};

class GangCounts {
  public:
    explicit GangCounts(const State& state)
        : state_(state), of_app_(state.apps.size()), of_group_(state.groups.size()) {}

    std::string first_wrong() {
        if (!list_groups()) return "the groups of applications are not in their chains once";
        if (!add_tasks()) return "tasks and leases of applications do not name each other";
        if (!add_placeholders()) return "two placeholders of a group are one";
        for (uint32_t row = 0; row < state_.apps.size(); ++row) {
            const shm::AppRow& app = state_.apps[row];
            const OfApp& counted = of_app_[row];
            if (app.state == AppState::kFree) continue;
            if (app.tasks != counted.tasks || app.claims != counted.claims ||
                app.leases != counted.leases || app.placeholders != counted.placeholders) {
                return "application row " + std::to_string(row) + " has other rows than it counts";
            }
        }
        for (uint32_t row = 0; row < state_.groups.size(); ++row) {
            if (state_.groups[row].state == 0 || state_.groups[row].bound == of_group_[row].bound)
                continue;
            return "group row " + std::to_string(row) + " has other placeholders than it counts";
        }
        return {};
    }

  private:
    bool list_groups() {
        for (uint32_t row = 0; row < state_.apps.size(); ++row) {
            if (state_.apps[row].state == AppState::kFree) continue;
            uint32_t at = state_.apps[row].first_group;
            for (; at != kNoRow; at = state_.groups[at].next) {
                if (!is_group(state_, at) || state_.groups[at].app != row) return false;
                if (of_group_[at].is_listed) return false;
                of_group_[at].is_listed = true;
            }
        }
        for (uint32_t row = 0; row < state_.groups.size(); ++row) {
            if (of_group_[row].is_listed != (state_.groups[row].state != 0)) return false;
        }
        return true;
    }

    bool add_tasks() {
        std::vector<bool> named(state_.leases.size());
        uint32_t leases = 0;
        for (uint32_t row = 0; row < state_.tasks.size(); ++row) {
            const shm::TaskRow& task = state_.tasks[row];
            if (task.state == TaskState::kFree) continue;
            OfApp& app = of_app_[task.app];
            ++app.tasks;
            if (task.claim != kNoRow) ++app.claims;
            if (task.lease == kNoRow) continue;
            if (named[task.lease]) return false;
            named[task.lease] = true;
            ++app.leases;
            ++leases;
        }
        for (uint32_t row = 0; row < state_.leases.size(); ++row) {
            const shm::LeaseRow& lease = state_.leases[row];
            if (lease.state == shm::LeaseState::kFree || lease.of_task == 0) continue;
            if (leases == 0) return false;
            --leases;
        }
        return leases == 0;
    }

    bool add_placeholders() {
        for (uint32_t row = 0; row < state_.slots.size(); ++row) {
            const shm::SlotRow& slot = state_.slots[row];
            if (slot.state == SlotState::kFree || is_dispatched(state_, slot.pool)) continue;
            if (!is_group(state_, slot.group)) continue;
            OfGroup& group = of_group_[slot.group];
            if (group.indices[slot.index]) return false;
            group.indices[slot.index] = true;
            ++group.bound;
            ++of_app_[state_.groups[slot.group].app].placeholders;
        }
        return true;
    }

    const State& state_;
    std::vector<OfApp> of_app_;
    std::vector<OfGroup> of_group_;
};

}  // namespace

bool sound_app(const State& state, const shm::AppRow& app) {
    if (app.state == AppState::kFree) return true;
    const bool is_managed =
        app.manager == kNoRow || (app.manager < state.sessions.size() &&
                                  state.sessions[app.manager].state != shm::SessionState::kFree);
    const bool is_past = has_ended(app.state) || app.state == AppState::kGoing;
    const bool is_pool = app.pool < state.counters->pools || (app.pool == shm::kNoPool && is_past);
    return app.state <= AppState::kGoing && app.style <= shm::GangStyle::kHard && app.flags < 4 &&
           is_pool && is_number(state, app.number) && is_managed &&
           (app.first_group == kNoRow || is_group(state, app.first_group)) &&
           app.tags_size <= shm::kMetaMax && is_name(app.name_size);
}

// Where it asks, the claim has its number and is for it.
bool sound_group(const State& state, const shm::GroupRow& group) {
    if (group.state == 0) return true;
    const bool asks = group.claim != kNoRow;
    const bool is_asked = !asks || (group.claim < state.claims.size() &&
                                    state.claims[group.claim].state != ClaimState::kFree &&
                                    state.claims[group.claim].group == state.groups.row_of(group));
    return group.state == 1 && is_app(state, group.app) && is_asked &&
           (group.next == kNoRow || is_group(state, group.next)) && group.members != 0 &&
           group.members <= shm::kGangMax && group.bound <= shm::kGangMax &&
           is_number(state, group.number) && is_name(group.name_size);
}

bool sound_task(const State& state, const shm::TaskRow& task) {
    if (task.state == TaskState::kFree) return true;
    const uint32_t row = state.tasks.row_of(task);
    const bool is_claimed =
        task.claim == kNoRow ||
        (task.claim < state.claims.size() && state.claims[task.claim].state != ClaimState::kFree &&
         state.claims[task.claim].task == row);
    const bool is_leased =
        task.lease == kNoRow || (task.lease < state.leases.size() &&
                                 state.leases[task.lease].state != shm::LeaseState::kFree &&
                                 state.leases[task.lease].of_task == 1);
    const bool is_grouped = task.group == kNoRow || (is_group(state, task.group) &&
                                                     state.groups[task.group].app == task.app);
    return task.state <= TaskState::kFailed && is_app(state, task.app) && is_grouped &&
           is_claimed && is_leased && (task.claim == kNoRow || task.lease == kNoRow) &&
           is_number(state, task.number) && is_name(task.name_size);
}

// An ask is its group's alone: nobody's else, without anything of its own.
bool sound_member(const State& state, const shm::ClaimRow& claim) {
    const uint32_t row = state.claims.row_of(claim);
    if (claim.state == ClaimState::kHeld && claim.task == kNoRow) return false;
    if ((claim.session == kNoRow) != (claim.group != kNoRow)) return false;
    if (claim.task != kNoRow) {
        return claim.group == kNoRow && claim.task < state.tasks.size() &&
               state.tasks[claim.task].state != TaskState::kFree &&
               state.tasks[claim.task].claim == row &&
               (claim.flags & shm::ClaimFlag::kSeveral) == 0;
    }
    if (claim.group == kNoRow) return true;
    return is_group(state, claim.group) && state.groups[claim.group].claim == row &&
           is_app(state, state.groups[claim.group].app) &&
           state.apps[state.groups[claim.group].app].pool == claim.pool &&
           claim.state == ClaimState::kWaiting && claim.payload == kNoRow && claim.meta == kNoRow &&
           !key_given(claim.key) && (claim.flags & shm::ClaimFlag::kSeveral) == 0;
}

bool sound_member(const State& state, const shm::LeaseRow& lease) {
    const bool may_be = state.counters->tasks_free != state.tasks.size();
    return lease.of_task == 0 || (lease.of_task == 1 && may_be);
}

// Reserved, or on its way back to its group.
bool sound_placeholder(const State& state, const shm::SlotRow& slot) {
    if (slot.group == kNoRow) return true;
    const bool may_be = slot.state == SlotState::kReserved ||
                        slot.state == SlotState::kRecovering || slot.state == SlotState::kUnknown;
    return may_be && is_group(state, slot.group) && is_app(state, state.groups[slot.group].app) &&
           state.apps[state.groups[slot.group].app].pool == slot.pool;
}

std::string unsound_gangs(const State& state) {
    // Without any of them no slot may be of one, and no lease: that is seen row by row.
    const bool has_none =
        is_unused(state.apps) && is_unused(state.groups) && is_unused(state.tasks);
    return has_none ? "" : GangCounts(state).first_wrong();
}

}  // namespace dibs::core

// broker/core/look.cpp -- looks up how full tables are, and what elastic pools have.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/look.hpp"

#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

Core::Room Core::room(shm::Table table) const {
    const State& state = parts_->state;
    const shm::CountersRow& counters = *state.counters;
    switch (table) {
        case shm::Table::kSlots:
            return {state.slots.size(), counters.slots_free};
        case shm::Table::kClaims:
            return {state.claims.size(), counters.claims_free};
        case shm::Table::kLeases:
            return {state.leases.size(), counters.leases_free};
        case shm::Table::kLabelSets: {
            const uint32_t sets = state.label_sets.size();
            return {sets, parts_->book ? parts_->book->labels.unused() : sets};
        }
        case shm::Table::kArena:
            return {state.arena.size(), counters.arena_free + counters.arena_freed};
        default:
            return {0, 0};
    }
}

uint32_t Core::held(SessionId session, shm::Table table) const {
    const shm::SessionRow& row = parts_->state.sessions[session];
    switch (table) {
        case shm::Table::kSlots:
            return row.slots;
        case shm::Table::kClaims:  // those that run in a pool by account keep theirs
            return row.claims + row.leases;
        case shm::Table::kLeases:
            return row.leases;
        case shm::Table::kLabelSets:
            return row.claims + row.leases + row.slots;
        case shm::Table::kArena:
            return parts_->arena_held[session];
        default:
            return 0;
    }
}

bool Core::knows_labels(std::span<const std::string_view> labels) const {
    return parts_->book != nullptr && parts_->book->labels.known(labels);
}

const shm::ElasticRow& Look::elastic(const Core& core, PoolId pool) {
    return core.parts_->state.elastics[pool];
}
uint32_t Look::ordered(const Core& core, PoolId pool) {
    const bool perhaps = core.pool(pool).order == shm::PoolOrder::kPriority;
    return perhaps ? elastic(core, pool).ordered : 0;
}
const shm::TypeRow& Look::type(const Core& core, TypeId row) {
    return core.parts_->state.types[row];
}
bool Look::opens_order(const Core& core, SlotId order, const OrderToken& token, uint32_t uid) {
    return core.parts_->opens_order(order, token, uid);
}
uint32_t Look::find_type(const Core& core, PoolId pool, std::string_view name) {
    return core.parts_->find_type(pool, name);
}
Look::OfElastic Look::of_elastic(const Core& core, PoolId pool) {
    const Core::Parts& parts = *core.parts_;
    OfElastic has;
    has.at_quota = parts.at_quota(pool);
    has.headroom = parts.headroom(pool);
    return has;
}
// Of a dispatched pool: idle but for a mark.
static bool is_ready_kept(const shm::SlotRow& slot) {
    return slot.session == kNoRow && (slot.flags & shm::SlotFlag::kSaidReady) != 0;
}
Look::OfType Look::of_type(const Core& core, TypeId type) {
    const Core::Parts& parts = *core.parts_;
    OfType has;
    has.at_quota = parts.at_quota(parts.state.types[type].pool);
    has.at_capacity = parts.at_capacity(type);
    for (uint32_t row = 0; row < parts.state.slots.size(); ++row) {
        const shm::SlotRow& slot = parts.state.slots[row];
        if (slot.state == SlotState::kFree || slot.type != type.number) continue;
        const Marks marks = parts.marks_of(row);
        if ((marks & Mark::kUnallocated) != 0) ++has.unallocated;
        if ((marks & Mark::kAsked) != 0) ++has.creating;
        ++has.workers[(marks & Mark::kRuns) != 0          ? 3
                      : is_drained(slot)                  ? 4
                      : slot.state == SlotState::kIdle    ? 2
                      : is_ready_kept(slot)               ? 2
                      : slot.state == SlotState::kUnknown ? 0
                                                          : 1];
    }
    return has;
}

uint32_t Look::applications_max(const Core& core) {
    return core.parts_->state.apps.size();
}
uint32_t Look::tasks_max(const Core& core) {
    return core.parts_->state.tasks.size();
}
const shm::AppRow& Look::application(const Core& core, uint32_t row) {
    return core.parts_->state.apps[row];
}
const shm::GroupRow& Look::group(const Core& core, uint32_t row) {
    return core.parts_->state.groups[row];
}
const shm::TaskRow& Look::task(const Core& core, uint32_t row) {
    return core.parts_->state.tasks[row];
}
uint32_t Look::find_application(const Core& core, uint32_t uid, std::string_view name) {
    return core.parts_->Gangs::find(uid, name);
}
uint32_t Look::find_task(const Core& core, uint32_t uid, const MemberOf& member) {
    const uint32_t app = find_application(core, uid, member.application);
    return app == kNoRow ? kNoRow : core.parts_->Gangs::find_task(app, member.task);
}
uint32_t Look::task_of_lease(const Core& core, uint32_t lease) {
    return core.parts_->task_of[lease];
}
uint32_t Look::find_application(const Core& core, uint64_t number) {
    for (uint32_t row = 0; row < core.parts_->state.apps.size(); ++row) {
        const shm::AppRow& app = core.parts_->state.apps[row];
        if (app.state != shm::AppState::kFree && app.number == number) return row;
    }
    return kNoRow;
}

bool Look::is_dispatched(const Core& core, PoolId pool) {
    return core.parts_->is_dispatched(pool);
}
uint32_t Look::entries_max(const Core& core) {
    return core.parts_->state.entries.size();
}
const shm::EntryRow& Look::entry(const Core& core, uint32_t row) {
    return core.parts_->state.entries[row];
}
uint32_t Look::find_entry(const Core& core, PoolId pool, std::string_view name) {
    return core.parts_->Dispatch::find(pool, name);
}
std::vector<uint32_t> Look::entries(const Core& core, PoolId pool) {
    return core.parts_->Dispatch::entries(pool);
}
uint32_t Look::entry_position(const Core& core, uint32_t row) {
    return core.parts_->Dispatch::position(row);
}
EntryReason Look::entry_reason(const Core& core, uint32_t row) {
    return core.parts_->Dispatch::reason(row);
}

namespace {

template <class Row, class RowAt>
std::vector<PoolUnits> pools_of(uint32_t row, const RowAt& row_at) {
    std::vector<PoolUnits> pools;
    const Row& any = row_at(row);
    uint32_t at = is_several(any) ? first_row_of(any) : row;
    while (at != shm::kNoRow && pools.size() < SeveralPools::kPoolsMax) {
        const Row& part = row_at(at);
        pools.push_back({part.pool, part.units});
        at = is_several(any) ? next_row_of(part) : shm::kNoRow;
    }
    return pools;
}

}  // namespace

uint32_t Look::first_lease(const Core& core, uint32_t lease) {
    return is_several(core.lease(lease)) ? first_row_of(core.lease(lease)) : lease;
}

std::vector<PoolUnits> Look::pools_of_lease(const Core& core, uint32_t lease) {
    return pools_of<shm::LeaseRow>(
        lease, [&](uint32_t row) -> const shm::LeaseRow& { return core.lease(row); });
}

std::vector<PoolUnits> Look::pools_of_claim(const Core& core, uint32_t claim) {
    return pools_of<shm::ClaimRow>(
        claim, [&](uint32_t row) -> const shm::ClaimRow& { return core.claim(row); });
}

uint32_t Look::pool_of_claim(const Core& core, SessionId session, uint16_t tag) {
    const Core::Parts& parts = *core.parts_;
    const std::vector<uint32_t>& own = parts.tags[session];
    const uint32_t holder = tag < own.size() ? own[tag] : kTagFree;
    if (holder == kTagFree || (holder & kTagLease) != 0) return kNoRow;
    if ((holder & kTagFresh) != 0) return parts.fresh[holder & ~kTagFresh].pool;
    return parts.state.claims[holder].pool;
}
Ranking Look::ranking(const Core& core, const Route& route) {
    return core.parts_->ranking(route);
}
const Rows<shm::AppRow>& Look::applications(const Core& core) {
    return core.parts_->state.apps;
}
const Rows<shm::GroupRow>& Look::groups(const Core& core) {
    return core.parts_->state.groups;
}
const Rows<shm::TaskRow>& Look::tasks(const Core& core) {
    return core.parts_->state.tasks;
}
uint32_t Look::supervisor_limit(const Core& core, PoolId pool) {
    return core.parts_->supervisor_limit(pool);
}

}  // namespace dibs::core

// broker/core/provision/answers.cpp -- carries out what provisioners answer of orders.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

using shm::OrderState;
using Answer = Provisioned::Answer;

namespace {

// A type whose starts fail is tried again after so long; twice as long each time.
constexpr TimeNs kBackoffNs = 100'000'000;
constexpr TimeNs kBackoffMaxNs = 30'000'000'000;

std::string_view group_of(const shm::TypeRow& type) {
    return {type.quota_group, type.quota_group_size};
}

// Of both, what an answer "at capacity" for the one says of the other.
bool is_alike(const shm::TypeRow& one, const shm::TypeRow& other) {
    const std::string_view provided{one.provider_type, one.provider_type_size};
    constexpr uint32_t kMarks = shm::TypeFlag::kPreemptible;
    return !provided.empty() && (one.flags & kMarks) == (other.flags & kMarks) &&
           provided == std::string_view{other.provider_type, other.provider_type_size};
}

}  // namespace

void Provisioning::apply(const Provisioned& command) {
    const auto tell = [&](Reason reason) {
        turn().result(command.session, command.user_data, reason);
    };
    const uint32_t row = row_of(command.slot);
    if (row >= state.slots.size()) return tell(Reason::kNotFound);
    const shm::SlotRow& slot = state.slots[row];
    if (slot.state == SlotState::kFree || row_id(slot.head.generation, row) != command.slot ||
        !pools().pool_lives(slot.pool) || slot.order == OrderState::kNone) {
        return tell(Reason::kNotFound);
    }
    const uint32_t pool = slot.pool;
    const uint32_t type = slot.type;
    if (state.types[type].session != command.session) return tell(Reason::kNotHolder);
    const bool waits = slot.state == SlotState::kOrdered;
    const bool is_full = command.answer == Answer::kQuota || command.answer == Answer::kCapacity;
    if (is_full && !waits) return tell(Reason::kState);
    tell(Reason::kOk);
    matcher().touch(pool);
    if (command.answer == Answer::kCreated) {
        if (slot.order != OrderState::kAsked) return;
        put(edit().row(slot, 1U << 1U).order, OrderState::kCreated);
        return slot_changes(row);
    }
    const bool fails = command.answer == Answer::kFailed || command.answer == Answer::kStopped;
    if (waits && fails) return order_fails(row);
    if (waits) slots().remove_slot(row);
    if (command.answer == Answer::kQuota) meet_quota(pool);
    if (command.answer == Answer::kCapacity) meet_capacity(type, command);
    if (command.answer == Answer::kOverload) meet_overload(pool);
}

void Provisioning::order_fails(uint32_t row) {
    start_fails(state.slots[row].type);
    slots().remove_slot(row);
}

// S1.38: no worker has come in time, or one that cannot serve: it is to be stopped.
void Provisioning::boot_times_out(uint32_t row) {
    const shm::SlotRow& slot = state.slots[row];
    if (slot.state == SlotState::kOrdered) return order_fails(row);
    start_fails(slot.type);
    put(edit().row(slot, 1U << 2U).boot_until_ns, kNever);
    pools().drain_slot(row, true);
    slot_changes(row);
}

void Provisioning::start_fails(uint32_t row) {
    shm::TypeRow& type = edit().row(state.types[row], 1);
    const TimeNs pause = std::min(type.backoff_ns, kBackoffMaxNs) * 2;
    put(type.backoff_ns, std::clamp(pause, kBackoffNs, kBackoffMaxNs));
    put(type.failed_until_ns, sum_or_never(turn().now_ns, type.backoff_ns));
}

// Until there are fewer workers than now, and not for ever: the quota may have been raised (S1.32).
void Provisioning::meet_quota(uint32_t pool) {
    shm::ElasticRow& row = edit().row(state.elastics[pool], 1);
    const uint32_t workers = whole_slots(state.pools[pool]);
    const bool was_met = is_quota_met(pool);
    put(row.quota_below, was_met ? std::min(row.quota_below, workers) : workers);
    put(row.quota_until_ns, sum_or_never(turn().now_ns, row.quota_error_ns));
}

void Provisioning::meet_capacity(uint32_t of, const Provisioned& command) {
    const uint32_t pool = state.types[of].pool;
    const TimeNs until = sum_or_never(turn().now_ns, state.elastics[pool].capacity_error_ns);
    if (command.scope == Provisioned::Scope::kEverything) {
        return put(edit().row(state.elastics[pool], 1).everything_until_ns, until);
    }
    const bool by_group = command.scope == Provisioned::Scope::kQuotaGroup;
    const std::string_view group =
        command.quota_group.empty() ? group_of(state.types[of]) : command.quota_group;
    for (const uint32_t type : types_of(pool)) {
        const shm::TypeRow& row = state.types[type];
        const bool is_meant =
            by_group ? !group.empty() && group_of(row) == group : is_alike(row, state.types[of]);
        if (type == of || is_meant) put(edit().row(row, 1).capacity_until_ns, until);
    }
}

// The limit follows at the turn's end. Nothing is made for a while, as when too many orders are
// unanswered: else the next order would come at once.
void Provisioning::meet_overload(uint32_t pool) {
    shm::ElasticRow& row = edit().row(state.elastics[pool], 1U << 2U);
    put(row.overload_ns, turn().now_ns);
    put(row.overloaded, 1);
    const TimeNs until = sum_or_never(turn().now_ns, row.create_throttle_ns);
    put(row.throttle_until_ns, std::max(row.throttle_until_ns, until));
}

// A worker of its type has been of use.
void Provisioning::use_ends(uint32_t lease) {
    if (!is_elastic(state.leases[lease].pool)) return;
    for (uint32_t slot = state.leases[lease].first_slot; slot != kNoRow;
         slot = state.slots[slot].holder_next) {
        const uint32_t type = state.slots[whole_of(state.slots[slot], slot)].type;
        if (type != kNoRow) is_of_use(type);
    }
}

void Provisioning::is_of_use(uint32_t type) {
    if (state.types[type].backoff_ns == 0) return;
    shm::TypeRow& row = edit().row(state.types[type], 1);
    put(row.backoff_ns, 0);
    put(row.failed_until_ns, 0);
    turn().dirty.add(row.pool);  // it may be made again
}

uint32_t Provisioning::open_order(SlotId order, uint32_t pool) const {
    const uint32_t row = row_of(order);
    if (order.is_none() || row >= state.slots.size()) return kNoRow;
    const shm::SlotRow& slot = state.slots[row];
    const bool is_there = slot.state == SlotState::kOrdered && slot.pool == pool &&
                          row_id(slot.head.generation, row) == order;
    return is_there ? row : kNoRow;
}

}  // namespace dibs::core

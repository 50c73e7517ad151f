// broker/core/rules/pools.cpp -- configures, grows and drains pools, and publishes their demand.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "broker/core/parts.hpp"
#include "shm/pool_name.hpp"

namespace dibs::core {

using shm::PoolKind;
using shm::PoolState;
namespace PoolFlag = shm::PoolFlag;

namespace {

// Slots that a counted pool makes in one step of growing: their lines fit the log's last quarter.
constexpr uint32_t kGrowStep = 200;
constexpr TimeNs kQuantumMaxNs = 3'600'000'000'000;
constexpr TimeNs kAccountExpiryDefault = 300'000'000'000;

std::string refusal_of(const PoolConfig& config) {
    const std::string name{config.name};
    if (!shm::is_pool_name(config.name.data(), config.name.size())) {
        return "'" + name + "': " + shm::kPoolNameRule;
    }
    const auto wrong = [&](const std::string& what) { return "pool '" + name + "': " + what; };
    if (config.kind == PoolKind::kCounted && config.slots == 0) {
        return wrong("a counted pool needs at least one slot");
    }
    if (config.kind == PoolKind::kWorker && config.slots != 0) {
        return wrong("a worker pool has the slots that its workers announce, not a number of them");
    }
    if (config.units_max == 0 || config.units_max > shm::kUnitsMax) {
        return wrong("units_max must be from 1 to 256");
    }
    if (config.backlog_max == 0) return wrong("backlog_max must be at least 1");
    if (config.unconfirmed_max == 0) return wrong("unconfirmed_max must be at least 1");
    if (config.gang_max == 0 || config.gang_max > shm::kGangMax) {
        return wrong("gang_max must be from 1 to 256");
    }
    if (config.payload_max > shm::kPayloadMax) return wrong("payload_max is at most 16384");
    if (config.answer_max > shm::kPayloadMax) return wrong("answer_max is at most 16384");
    if (config.attributes_max > shm::kPayloadMax) return wrong("attributes_max is at most 16384");
    if (config.grace_ns != 0 && config.expiry != shm::ExpiryMode::kCooperative) {
        return wrong("a grace is for cooperative expiry");
    }
    if (config.interval_max_ns == 0) return wrong("interval_max must be above 0");
    if (config.quantum_ns > kQuantumMaxNs) return wrong("quantum is at most an hour");
    if (config.required_label.size() > shm::kNameMax) {
        return wrong("required_label is longer than 63 bytes");
    }
    const bool by_account = config.order == shm::PoolOrder::kAccount;
    if (by_account && config.expiry == shm::ExpiryMode::kLazy) {
        return wrong("a pool ordered by account has cooperative or strict expiry");
    }
    if (by_account && config.promote_threshold < config.demote_threshold) {
        return wrong("promote_threshold is below demote_threshold");
    }
    if (const std::string resources = Vectors::refusal_of(config); !resources.empty()) {
        return wrong(resources);
    }
    if (const std::string elastic = elastic_refusal(config); !elastic.empty()) {
        return wrong(elastic);
    }
    if (config.slot_attributes.size() > std::min(config.slots, kGrowStep)) {
        return wrong("attributes are given for more slots than " +
                     std::to_string(std::min(config.slots, kGrowStep)));
    }
    for (const std::string_view attributes : config.slot_attributes) {
        if (attributes.size() > config.attributes_max) {
            return wrong("attributes of a slot are longer than attributes_max");
        }
    }
    return {};
}

std::string change_refusal_of(const PoolConfig& config, const shm::PoolRow& pool) {
    const std::string wrong = "pool '" + std::string{config.name} + "': ";
    if (config.kind != pool.kind) return wrong + "its kind cannot change while it runs";
    if (config.expiry != pool.mode) return wrong + "its expiry mode cannot change while it runs";
    if (config.order != pool.order) return wrong + "its order cannot change while it runs";
    if (config.payload_max != pool.payload_max || config.answer_max != pool.answer_max ||
        config.attributes_max != pool.attributes_max) {
        return wrong + "payload_max, answer_max and attributes_max cannot change while it runs";
    }
    // A slot is looked at with the label that is required when it is announced: nothing keeps what
    // labels it had, so none may have been looked at with another one.
    const std::string_view required{pool.required_label, pool.required_label_size};
    if (config.required_label != required && pool.slots != 0) {
        return wrong + "required_label cannot change while it has slots";
    }
    return {};
}

bool may_park(const PoolConfig& config) {
    return config.quantum_ns >= 1'000 && (config.kind == PoolKind::kCounted || config.park) &&
           config.expiry != shm::ExpiryMode::kStrict && config.order != shm::PoolOrder::kAccount &&
           config.vector.empty();
}

std::string_view attributes_of(const PoolConfig& config, uint32_t number) {
    return number < config.slot_attributes.size() ? config.slot_attributes[number] : "";
}

}  // namespace

uint32_t Pools::pool_named(std::string_view name) const {
    for (uint32_t row = 0; row < state.counters->pools; ++row) {
        const shm::PoolRow& pool = state.pools[row];
        if (pool_lives(row) && std::string_view{pool.name, pool.name_size} == name) return row;
    }
    return kNoRow;
}

uint32_t Pools::set_pool(const PoolConfig& config, std::string* why) {
    early_grants().settle_fresh();
    std::string wrong = refusal_of(config);
    const uint32_t row = row_for_pool(config.name);
    const bool is_new = !pool_lives(row);
    if (wrong.empty() && row == kNoRow) {
        wrong = "more pools than the " + std::to_string(state.pools.size()) + " configured";
    }
    if (wrong.empty() && is_new && state.pools[row].state == PoolState::kGoing) {
        wrong = "pool '" + std::string{config.name} + "': it is being deleted";
    }
    // Before what is derived from them, as attributes_max is.
    if (wrong.empty() && !is_new && vectors().differs(row, config)) {
        wrong =
            "pool '" + std::string{config.name} + "': its resources cannot change while it runs";
    }
    if (wrong.empty() && !is_new && provisioning().is_elastic(row) != (config.workers_max != 0)) {
        wrong = "pool '" + std::string{config.name} +
                "': whether it is elastic cannot change while it runs";
    }
    if (wrong.empty() && !is_new && dispatch().is_dispatched(row) != config.dispatch) {
        wrong = "pool '" + std::string{config.name} +
                "': whether it is dispatched cannot change while it runs";
    }
    if (wrong.empty() && !is_new) wrong = change_refusal_of(config, state.pools[row]);
    const uint32_t more = is_new ? config.slots : config.slots - slots_below(row, config.slots);
    if (const uint32_t left = slot_rows_left(row); wrong.empty() && more > left) {
        wrong = "pool '" + std::string{config.name} + "': " + std::to_string(more) +
                " more slots do not fit the slot table (" + std::to_string(left) +
                " rows are free)";
    }
    const std::vector<uint32_t> changed =
        is_new || !wrong.empty() ? std::vector<uint32_t>() : changed_slots(row, config);
    if (!changed.empty() && changed.size() + more > kGrowStep) {
        wrong = "pool '" + std::string{config.name} + "': attributes of " +
                std::to_string(changed.size()) + " slots change and " + std::to_string(more) +
                " slots are added, at most " + std::to_string(kGrowStep) + " at once can";
    }
    uint32_t blocks = is_new && !config.vector.empty() ? 1 : 0;  // their names
    for (const uint32_t slot : changed)
        blocks += Arena::blocks_for(attributes_of(config, state.slots[slot].number).size());
    for (size_t number = is_new ? 0 : state.pools[row].number_next;
         number < config.slot_attributes.size();
         ++number) {
        blocks += Arena::blocks_for(config.slot_attributes[number].size());
    }
    if (wrong.empty() && !arena().has_blocks(blocks)) {
        wrong = "pool '" + std::string{config.name} + "': the attributes of its slots take " +
                std::to_string(blocks) + " blocks of the arena, " +
                std::to_string(arena().available()) + " are free";
    }
    if (!wrong.empty()) {
        if (why != nullptr) *why = wrong;
        return kNoRow;
    }
    shm::PoolRow& pool = edit().row(state.pools[row], kPoolAll);
    if (is_new) {
        clear_pool(row, std::string_view{pool.name, pool.name_size} == config.name);
        shm::CountersRow& counters = edit().counters(1U << 1U);
        put(counters.pools, std::max(counters.pools, row + 1));
        put(pool.state, PoolState::kOpen);
        put(pool.kind, config.kind);
        put(pool.mode, config.expiry);
        put(pool.order, config.order);
        matcher().pool_opens(row);
        std::memcpy(pool.name, config.name.data(), config.name.size());
        stored();
        put(pool.name_size, config.name.size());
    }
    put(pool.flags,
        (pool.flags & (PoolFlag::kDrainTold | PoolFlag::kEndsLeases)) |
            (config.release_is_ready ? PoolFlag::kReleaseIsReady : 0) |
            (config.is_transient ? PoolFlag::kTransient : 0) |
            (config.preemption_disabled ? PoolFlag::kNoPreemption : 0) |
            (may_park(config) ? PoolFlag::kParks : 0) |
            (config.vector.empty() ? 0 : PoolFlag::kResources));
    if (is_new) vectors().open_pool(row, config);
    provisioning().configure(row, config, is_new);
    if (!is_new) gangs().pool_changes(row);
    vectors().slot_row_comes();  // its growth may leave some now
    put(pool.slots_wanted, config.slots);
    // A claim of more workers than there may ever be would wait for ever, and all behind it.
    const uint32_t most = config.workers_max == 0 ? config.units_max : config.workers_max;
    put(pool.units_max, std::min(config.units_max, most));
    put(pool.gang_max, config.gang_max);
    put(pool.backlog_max, config.backlog_max);
    matcher().backlog.reserve(row, std::min(config.backlog_max, state.claims.size()));
    put(pool.unconfirmed_max, config.unconfirmed_max);
    put(pool.payload_max, config.payload_max);
    put(pool.answer_max, config.answer_max);
    put(pool.attributes_max, config.attributes_max);
    put(pool.when_busy, config.when_busy);
    put(pool.reservation_ttl_ns, config.reservation_ttl_ns);
    put(pool.retry_after_ns, config.retry_after_ns);
    put(pool.quantum_us, config.quantum_ns / 1'000);
    put(pool.interval_max_ns, config.interval_max_ns);
    put(pool.grace_ns, config.grace_ns);
    if (book()) book()->watches[row].quiet_until_us = 0;  // its thresholds may have changed
    put(pool.promote_threshold, config.promote_threshold);
    put(pool.demote_threshold, config.demote_threshold);
    const TimeNs account_expiry_ns =
        config.account_expiry_ns == 0 ? kAccountExpiryDefault : config.account_expiry_ns;
    const bool watches_anew = !is_new && pool.account_expiry_ns != account_expiry_ns;
    put(pool.account_expiry_ns, account_expiry_ns);
    if (watches_anew && matcher().takes_reports(row)) reports().watch_all_reported(row);
    put(pool.request_age_max_ns, config.request_age_max_ns);
    put(pool.queue_timeout_ns, config.queue_timeout_ns);
    config.required_label.copy(pool.required_label, sizeof(pool.required_label));
    stored();
    put(pool.required_label_size, config.required_label.size());
    assert(pool_lives(row));
    matcher().touch(row);
    for (const uint32_t slot : changed)
        set_attributes(slot, attributes_of(config, state.slots[slot].number));
    if (config.kind != PoolKind::kCounted) return row;
    if (whole_slots(pool) > pool.slots_wanted) shrink_to_wanted(row);
    if (pool.number_next < pool.slots_wanted) {
        if (std::find(growing.begin(), growing.end(), row) == growing.end()) growing.push_back(row);
        grow_pool(row, config.slot_attributes);
    }
    return row;
}

// Of a counted pool: the slots whose attributes change. Their present holders have got the
// old ones; the next grant brings the new ones.
std::vector<uint32_t> Pools::changed_slots(uint32_t row, const PoolConfig& config) const {
    std::vector<uint32_t> changed;
    if (config.kind != PoolKind::kCounted || config.attributes_max == 0) return changed;
    std::string had;
    for (uint32_t slot_row = 0; slot_row < state.slots.size(); ++slot_row) {
        const shm::SlotRow& slot = state.slots[slot_row];
        if (slot.state == SlotState::kFree || slot.pool != row) continue;
        if (slot.number >= config.slots || slot.part_of != kNoRow) continue;  // it leaves
        had.resize(slot.attributes == kNoRow ? 0 : slot.attributes_size);
        if (!had.empty()) {
            arena().copy(
                slot.attributes, slot.attributes_size, reinterpret_cast<std::byte*>(had.data()));
        }
        if (had != attributes_of(config, slot.number)) changed.push_back(slot_row);
    }
    return changed;
}

void Pools::set_attributes(uint32_t slot_row, std::string_view text) {
    shm::SlotRow& slot = edit().row(state.slots[slot_row], 1U << 1U);
    const uint32_t chain =
        arena().store({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
    assert(text.empty() || chain != kNoRow);
    arena().free(slot.attributes, slot.attributes_size);
    put(slot.attributes, chain);
    put(slot.attributes_size, chain == kNoRow ? 0 : text.size());
}

// Of a counted pool; of a worker pool none, which wants none either.
uint32_t Pools::slots_below(uint32_t row, uint32_t number) const {
    const shm::PoolRow& pool = state.pools[row];
    if (pool.kind != PoolKind::kCounted) return number;
    if (whole_slots(pool) == pool.number_next) return std::min(whole_slots(pool), number);
    uint32_t count = 0;
    for (uint32_t slot_row = 0; slot_row < state.slots.size(); ++slot_row) {
        const shm::SlotRow& slot = state.slots[slot_row];
        count += slot.state != SlotState::kFree && slot.pool == row && slot.number < number &&
                 slot.part_of == kNoRow;
    }
    return count;
}

// Slots that were to leave and are wanted again, from the next number on: which of them are there.
void Pools::readmit_leaving(uint32_t row, std::vector<bool>* there) {
    const shm::PoolRow& pool = state.pools[row];
    if (whole_slots(pool) <= pool.number_next) return;
    for (uint32_t slot_row = 0; slot_row < state.slots.size(); ++slot_row) {
        const shm::SlotRow& slot = state.slots[slot_row];
        if (slot.state == SlotState::kFree || slot.pool != row) continue;
        if (slot.number < pool.number_next || slot.number >= pool.slots_wanted) continue;
        if (slot.part_of != kNoRow) continue;
        if (slot.number - pool.number_next >= there->size()) continue;
        there->at(slot.number - pool.number_next) = true;
        if ((slot.flags & shm::SlotFlag::kDraining) == 0) continue;
        matcher().slot_changes(slot_row, [&] {
            put(edit().row(slot, 1).flags, slot.flags & ~uint32_t{shm::SlotFlag::kDraining});
        });
    }
}

// One step. Of a counted pool that grows every slot below the next number is there.
void Pools::grow_pool(uint32_t row, std::span<const std::string_view> attributes) {
    shm::PoolRow& pool = edit().row(state.pools[row], kPoolAll);
    assert(pool.kind == PoolKind::kCounted);
    std::vector<bool> there(kGrowStep);
    readmit_leaving(row, &there);
    for (uint32_t step = 0; step < kGrowStep && pool.number_next < pool.slots_wanted; ++step) {
        const uint32_t number = pool.number_next;
        if (there[step]) {
            put(pool.number_next, number + 1);
            continue;
        }
        if (state.counters->slots_free == 0) return;
        const uint32_t slot_row = slots().make_slot(row);
        set_attributes(slot_row, number < attributes.size() ? attributes[number] : "");
        slots().move_slot(slot_row, SlotState::kIdle);
    }
}

bool Pools::grow_pools() {
    while (!growing.empty()) {
        const shm::PoolRow& pool = state.pools[growing.back()];
        if (pool.number_next >= pool.slots_wanted || state.counters->slots_free == 0) {
            growing.pop_back();
            continue;
        }
        if (turn().full()) return false;
        grow_pool(growing.back(), {});
    }
    return true;
}

uint32_t Pools::slot_rows_left(uint32_t but_for) const {
    uint32_t left = state.counters->slots_free;
    for (const uint32_t row : growing) {
        const shm::PoolRow& pool = state.pools[row];
        if (row == but_for || pool.number_next >= pool.slots_wanted) continue;
        left -= std::min(left, pool.slots_wanted - slots_below(row, pool.slots_wanted));
    }
    assert(left <= state.slots.size());
    return left;
}

Reason Pools::drain(const Drain& command, TimeNs* left_ns) {
    early_grants().settle_fresh();
    if (command.number != kNoRow) {
        const uint32_t row = find_number(command.pool, command.number);
        const bool is_stopped = row != kNoRow && provisioning().is_being_stopped(state.slots[row]);
        if (is_stopped && !command.on) return Reason::kState;  // it stays drained
        if (row != kNoRow) drain_slot(row, command.on);
        return Reason::kOk;
    }
    if (command.pool == kNoRow) {
        if ((state.counters->draining != 0) == command.on) return Reason::kOk;
        put(edit().counters(1U << 1U).draining, command.on ? 1 : 0);
        for (uint32_t pool = 0; pool < state.counters->pools; ++pool) {
            matcher().touch(pool);
            gangs().pool_changes(pool);
        }
    } else {
        if (!pool_lives(command.pool)) return Reason::kUnknownPool;
        const bool if_idle = command.on && command.if_idle_for_ns != kNever;
        if (if_idle && !idle_for(command.pool, command.if_idle_for_ns, left_ns)) {
            return Reason::kState;
        }
        const PoolState wanted = command.on ? PoolState::kDraining : PoolState::kOpen;
        if (state.pools[command.pool].state == wanted && !if_idle) return Reason::kOk;
        shm::PoolRow& pool = edit().row(state.pools[command.pool], 1);
        const bool is_news = pool.state != wanted;
        constexpr uint32_t kOfDrain = PoolFlag::kDrainTold | PoolFlag::kEndsLeases;
        if (is_news) put(pool.flags, pool.flags & ~kOfDrain);
        if (if_idle) put(pool.flags, pool.flags | PoolFlag::kEndsLeases);
        put(pool.state, wanted);
        matcher().touch(command.pool);
        gangs().pool_changes(command.pool);
    }
    drain_work = true;
    go_on_draining();
    return Reason::kOk;
}

// Waiting claims of all that drains end in order of number, over as many turns as it takes.
bool Pools::go_on_draining() {
    while (drain_work) {
        if (turn().full()) return false;
        uint32_t oldest = kNoRow;
        for (uint32_t pool = 0; pool < state.counters->pools; ++pool) {
            const uint32_t claim = matcher().backlog.head(pool);
            if (claim == kNoRow || !draining(pool)) continue;
            if (oldest == kNoRow || state.claims[claim].arrival < state.claims[oldest].arrival) {
                oldest = claim;
            }
        }
        if (oldest == kNoRow) {
            if (!end_leases_of_idle()) return false;
            drain_work = false;
        } else if (is_ask(state.claims[oldest])) {
            gangs().ask_drains(oldest);
        } else {
            claims().end_claim(oldest, Outcome::kRejected, Reason::kDraining, 0, true);
        }
    }
    return true;
}

void Pools::tell_drained(uint32_t row) {
    const shm::PoolRow& pool = state.pools[row];
    if ((pool.flags & PoolFlag::kDrainTold) != 0 || pool.waiting + pool.confirming != 0) return;
    put(edit().row(pool, 1).flags, pool.flags | PoolFlag::kDrainTold);
    turn().decide_that(DecisionKind::kDrained).pool = row;
}

void Pools::tell_all_drained() {
    for (uint32_t row = 0; row < state.counters->pools; ++row) {
        if (state.pools[row].waiting + state.pools[row].confirming != 0) return;
    }
    assert(state.counters->draining == 1);
    put(edit().counters(1U << 1U).draining, 2);
    turn().decide_that(DecisionKind::kDrained);
}

void Pools::publish_demand(uint32_t row) {
    const shm::PoolRow& pool = state.pools[row];
    const int64_t last = pool.demand_published;
    const int64_t current = int64_t{pool.waiting} + pool.confirming;
    const int64_t change = current > last ? current - last : last - current;
    const bool moved = last < 0 || ((last == 0) != (current == 0)) || change * 5 >= last;
    if (moved) tell_demand(row);
}

// What an elastic pool has room for goes with it, by the same rule (Provisioning::tell_headroom).
void Pools::tell_demand(uint32_t row) {
    const shm::PoolRow& pool = state.pools[row];
    const int64_t current = int64_t{pool.waiting} + pool.confirming;
    put(edit().row(pool, kPoolTotals).demand_published, current);
    Decision& demand = turn().decide_that(DecisionKind::kDemand);
    demand.pool = row;
    demand.value = static_cast<uint64_t>(current);
    if (const uint32_t first = matcher().backlog.head(row); first != kNoRow) {
        assert(pool.waiting != 0 && state.claims[first].pool == row);
        const TimeNs since = state.claims[first].enqueued_ns;
        demand.id = turn().now_ns - std::min(turn().now_ns, since);
    }
    if (pool.granted_total != 0) {
        demand.hit_permille = static_cast<uint32_t>(pool.hit_total * 1000 / pool.granted_total);
    }
    demand.fence = provisioning().is_elastic(row) ? provisioning().take_headroom(row) : kNever;
}

}  // namespace dibs::core

// tests/naive/pools.cpp -- pools: configured, drained, deleted, looked at.
//
// Drains and what a pool shows are written from the statements named above each function. Of
// configuring and deleting a pool S0 says nothing: docs/scenarios.md does ("the same name again
// changes what may be changed live", "nobody may be using it"), and what else both cores have to
// do alike is as it was.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "tests/naive/gangs.hpp"
#include "tests/naive/naive_core.hpp"

namespace dibs::naive {

using shm::Outcome;
using shm::Reason;

namespace {

// S1.2
uint64_t first_limit(const core::PoolConfig& config) {
    return config.quota_estimate != 0 ? config.quota_estimate : config.workers_max;
}

}  // namespace

// A change that leaves the rows of slots, claims and leases what they are: the pool's kind, order,
// expiry and sizes of its texts stay, and no slot would have lacked the label. Else nothing is
// changed.
bool NaiveCore::change_is_refused(uint32_t row, const core::PoolConfig& config) const {
    const Pool& pool = m_.pools.at(row);
    const core::PoolConfig& old = pool.config;
    const bool is_another =
        config.kind != old.kind || config.expiry != old.expiry || config.order != old.order ||
        config.payload_max != old.payload_max || config.answer_max != old.answer_max ||
        config.attributes_max != old.attributes_max ||
        (config.workers_max != 0) != (old.workers_max != 0) || config.dispatch != old.dispatch;
    const bool has_slots = counters(row).slots != 0;
    const bool label_changes = config.required_label != pool.required_label;
    if (is_another || (has_slots && label_changes)) return true;
    if (!same_vector(row, config)) return true;
    const auto there = std::count_if(m_.slots.begin(), m_.slots.end(), [&](const auto& entry) {
        return entry.second.pool == row && entry.second.number < config.slots &&
               !entry.second.part_of;
    });
    const bool counted = config.kind == shm::PoolKind::kCounted;
    return counted &&
           config.slots - static_cast<uint32_t>(there) > limits_.slots - slot_rows_used();
}

// Invariant 5: a row is not another pool's while somebody could mean the one that is gone: a
// session that was there before it went. kNoRow: there is none.
uint32_t NaiveCore::row_for(std::string_view name) const {
    for (uint32_t row = 0; row < m_.pools.size(); ++row) {
        if (m_.pools[row].name == name) return row;
    }
    const auto could_mean = [&](const Pool& gone) {
        return std::any_of(m_.sessions.begin(), m_.sessions.end(), [&](const auto& session) {
            return session.second.opened_ns <= gone.gone_ns;
        });
    };
    for (uint32_t row = 0; row < m_.pools.size(); ++row) {
        if (m_.pools[row].is_gone && !could_mean(m_.pools[row])) return row;
    }
    const auto next = static_cast<uint32_t>(m_.pools.size());
    return next < limits_.pools ? next : shm::kNoRow;
}

// A new pool counts from zero. Invariant 5: fences go on where one of its name was there before.
uint32_t NaiveCore::set_pool(const core::PoolConfig& config, std::string* /*why*/) {
    const uint32_t row = row_for(config.name);
    if (row == shm::kNoRow) return row;
    if (!pool_lives(row)) {
        if (config.slots > limits_.slots - slot_rows_used()) return shm::kNoRow;
        if (!config.vector.empty() && arena_free() == 0) return shm::kNoRow;  // for its names
        Pool fresh;
        fresh.name = config.name;
        fresh.config = config;
        for (const core::Amount& amount : config.vector)
            fresh.vector.emplace_back(amount.name, amount.amount);
        if (row == m_.pools.size()) m_.pools.emplace_back();
        if (m_.pools[row].name == fresh.name) fresh.fence_next = m_.pools[row].fence_next;
        fresh.elastic.limit = first_limit(config);
        m_.pools[row] = fresh;
    }
    if (change_is_refused(row, config)) return shm::kNoRow;
    const core::PoolConfig& old = m_.pools[row].config;
    if (config.workers_max != old.workers_max || config.quota_estimate != old.quota_estimate) {
        m_.pools[row].elastic.limit = first_limit(config);
    }
    m_.pools[row].config = config;
    m_.pools[row].create_min = *vector_of(row, config.create_min);
    m_.pools[row].required_label = config.required_label;
    m_.pools[row].is_leaving = false;
    if (is_elastic(row)) cut_pauses(row);
    shrink_pool(row);
    grow_pool(row);
    return row;
}

// "Who is free goes, who is held when that ends. Claims of more units end."
void NaiveCore::shrink_pool(uint32_t row) {
    Pool& pool = m_.pools[row];
    if (pool.config.kind == shm::PoolKind::kWorker) return;
    const uint32_t wanted = pool.is_leaving ? 0 : pool.config.slots;
    pool.number_next = std::min(pool.number_next, wanted);
    const std::map<uint64_t, Claim> claims = m_.claims;
    for (const auto& [number, claim] : claims) {
        const bool waits = !claim.is_confirming && !claim.is_held_back && !claim.is_ask();
        if (!waits || units_in(claim, row) <= wanted) continue;
        end_claim(number, Outcome::kRejected, Reason::kTooManyUnits, 0);
    }
    std::map<uint32_t, uint64_t> leaving;  // by number
    for (const auto& [id, slot] : m_.slots)
        if (slot.pool == row && slot.number >= wanted && !slot.part_of) leaving[slot.number] = id;
    for (const auto& [number, id] : leaving)
        withdraw(m_.slots.at(id));
}

// "Its worker's words do not take that back."
void NaiveCore::drain_slot(Slot& slot, bool on) {
    if (slot.is_drained == on || slot.is_stop_told)
        return;  // S1.37: what is being stopped stays so
    slot.is_drained = on;
    slot.is_held = false;
    slot.is_protected = on;
    if (slot.holder_is_killed) return;
    if (on) {
        protect(slot);
    } else {
        admit_if_only_waiting(slot);
    }
}

// Glossary: slots of a counted pool have no worker behind them. So nobody says that they are idle,
// and they are from the start (S0.7).
void NaiveCore::grow_pool(uint32_t row) {
    if (m_.pools[row].config.kind == shm::PoolKind::kWorker) return;
    while (m_.pools[row].number_next < m_.pools[row].config.slots) {
        // "One that was to leave and is still there stays."
        const auto known = std::find_if(m_.slots.begin(), m_.slots.end(), [&](const auto& entry) {
            return entry.second.pool == row && !entry.second.part_of &&
                   entry.second.number == m_.pools[row].number_next;
        });
        if (known != m_.slots.end()) {
            known->second.is_draining = false;
            ++m_.pools[row].number_next;
            continue;
        }
        Slot slot;
        slot.id = m_.slots_seen++;
        slot.pool = row;
        slot.number = m_.pools[row].number_next++;
        slot.capacity = usual_capacity(row);
        m_.slots[slot.id] = slot;
        become_idle(slot.id);
    }
}

// S0.29, as the clash table has it: of a pool or of the broker; all that wait fail, in order of
// arrival (S0.32: as draining). S0.31: what is in transition is not cut off. S0.29: idempotent.
Reason NaiveCore::apply(const core::Drain& drain, TimeNs* left_ns) {
    const bool of_broker = drain.pool == shm::kNoRow;
    if (!of_broker && !pool_lives(drain.pool)) return Reason::kUnknownPool;
    if (drain.number != shm::kNoRow) {
        const auto known = std::find_if(m_.slots.begin(), m_.slots.end(), [&](const auto& entry) {
            return entry.second.pool == drain.pool && entry.second.number == drain.number &&
                   !entry.second.part_of;
        });
        if (known == m_.slots.end()) return Reason::kOk;
        if (!drain.on && known->second.is_stop_told) return Reason::kState;
        drain_slot(known->second, drain.on);
        return Reason::kOk;
    }
    const bool if_idle = !of_broker && drain.on && drain.if_idle_for_ns != shm::kNever;
    if (if_idle && !is_idle_for(drain.pool, drain.if_idle_for_ns, left_ns)) return Reason::kState;
    bool& drains = of_broker ? m_.is_draining : m_.pools[drain.pool].is_draining;
    bool& is_told = of_broker ? m_.drain_told : m_.pools[drain.pool].drain_told;
    const bool is_news = drains != drain.on;
    if (!is_news && !if_idle) return Reason::kOk;
    drains = drain.on;
    if (is_news) is_told = false;
    if (!drain.on) return Reason::kOk;
    end_waiting(drain.pool);
    // "Its leases end, the oldest grant first."
    std::map<uint64_t, uint64_t> by_fence;
    for (const auto& [number, lease] : m_.leases)
        if (if_idle && lease.fences.contains(drain.pool))
            by_fence[lease.fences.at(drain.pool)] = number;
    for (const auto& [fence, number] : by_fence)
        lease_ended_by_time(number);
    return Reason::kOk;
}

// "Waiting claims end rejected (draining) in order of number", of the pool, or of all (kNoRow); for
// an ask its reservation fails. Held ones do not wait: they end as they are looked at.
void NaiveCore::end_waiting(uint32_t row) {
    const std::map<uint64_t, Claim> claims = m_.claims;
    for (const auto& [number, claim] : claims) {
        const bool is_its = row == shm::kNoRow || units_in(claim, row) != 0;
        const bool waits = !claim.is_confirming && !claim.is_held_back;
        if (!is_its || !waits || !m_.claims.contains(number)) continue;  // dropped with another ask
        if (claim.is_ask()) {
            gangs().ask_drains(number);
        } else {
            end_claim(number, Outcome::kRejected, Reason::kDraining, 0);
        }
    }
}

// S3.12, S3.13. "Under strict expiry its holder may live." What is being taken has its time.
bool NaiveCore::is_idle_for(uint32_t pool, TimeNs for_ns, TimeNs* left_ns) const {
    bool is_idle = std::none_of(m_.claims.begin(), m_.claims.end(), [&](const auto& entry) {
        return units_in(entry.second, pool) != 0 && !entry.second.is_held_back;
    });
    for (const auto& [number, app] : m_.applications)
        is_idle =
            is_idle && (app.pool != pool || app.has_ended() || app.state == shm::AppState::kGoing);
    TimeNs left = 0;
    const bool strict = m_.pools.at(pool).config.expiry == shm::ExpiryMode::kStrict;
    for (const auto& [number, lease] : m_.leases) {
        if (!lease.fences.contains(pool)) continue;
        const bool is_over = lease.expires_ns < m_.now;
        // An interval beyond all time ends at the last instant that there is.
        const TimeNs end =
            lease.interval_ns != 0 ? std::min(lease.expires_ns, shm::kNever - 1) : lease.expires_ns;
        if (!is_over) left = std::max(left, end == shm::kNever ? end : end - m_.now);
        const bool is_known = lease.is_in_grace || lease.is_uncollected;
        const bool may_live = strict || lease.is_revoking || (lease.by_word && !is_known);
        is_idle = is_idle && is_over && !may_live && m_.now - lease.expires_ns >= for_ns;
    }
    if (left_ns != nullptr) *left_ns = left;
    return is_idle;
}

// Nobody uses it: no claim, no lease, no worker. "When it is unused": it takes no claims meanwhile.
Reason NaiveCore::delete_pool(uint32_t row, bool when_unused) {
    if (!pool_lives(row)) return Reason::kUnknownPool;
    if (when_unused) {
        if (std::exchange(m_.pools[row].is_leaving, true)) return Reason::kOk;
        end_waiting(row);
        shrink_pool(row);
        return Reason::kOk;
    }
    const PoolCounters now = counters(row);
    const bool has_workers = m_.pools[row].config.kind == shm::PoolKind::kWorker && now.slots != 0;
    const bool has_claims = std::any_of(m_.claims.begin(), m_.claims.end(), [&](const auto& of) {
        return units_in(of.second, row) != 0;  // held ones, too
    });
    if (has_workers || has_claims || now.idle != now.slots) {
        return Reason::kState;
    }
    gangs().pool_goes(row);
    std::erase_if(m_.slots, [&](const auto& entry) { return entry.second.pool == row; });
    if (!m_.pools[row].vector.empty()) arena_freed(1);
    drop_types(row);
    std::erase_if(m_.entries, [&](const auto& entry) { return entry.second.pool == row; });
    Pool gone;
    gone.is_gone = true;
    gone.gone_ns = m_.now;
    gone.name = m_.pools[row].name;
    gone.config = m_.pools[row].config;
    gone.fence_next = m_.pools[row].fence_next;
    m_.pools[row] = gone;
    return Reason::kOk;
}

bool NaiveCore::pool_lives(uint32_t pool) const {
    return pool < m_.pools.size() && !m_.pools[pool].is_gone;
}

bool NaiveCore::is_draining(uint32_t pool) const {
    return m_.is_draining || m_.pools.at(pool).is_draining || m_.pools.at(pool).is_leaving;
}

bool NaiveCore::by_account(uint32_t pool) const {
    return m_.pools.at(pool).config.order == shm::PoolOrder::kAccount;
}

// S0.33: parked and in transition. In order of arrival.
std::vector<uint64_t> NaiveCore::pending_of(uint32_t pool) const {
    std::vector<uint64_t> numbers;
    for (const auto& [number, claim] : m_.claims) {
        if (units_in(claim, pool) != 0 && !claim.is_held_back) numbers.push_back(number);
    }
    return numbers;
}

// S0.22: slots whose transition is in flight: whose workers have been asked and have not answered.
uint64_t NaiveCore::unconfirmed_of(uint32_t pool) const {
    uint64_t count = 0;
    for (const auto& [id, slot] : m_.slots) {
        if (slot.pool == pool && slot.is == SlotIs::kReserved && !slot.has_confirmed) ++count;
    }
    return count;
}

// S0.22, README: so many in flight at most. Where none is, a claim that was accepted when there
// could be more is let through, or it would wait for ever (invariant 9).
bool NaiveCore::may_ask(uint32_t pool, uint64_t workers) const {
    const uint64_t in_flight = unconfirmed_of(pool);
    return in_flight == 0 || in_flight + workers <= m_.pools.at(pool).config.unconfirmed_max;
}

// Invariant 5: the lower its fence, the older it is.
const Lease* NaiveCore::oldest_lease_of(uint32_t pool) const {
    const Lease* oldest = nullptr;
    for (const auto& [claim, lease] : m_.leases) {
        if (!lease.fences.contains(pool)) continue;
        const bool is_older = oldest == nullptr || lease.fences.at(pool) < oldest->fences.at(pool);
        if (is_older) oldest = &lease;
    }
    return oldest;
}

// What was freed in this turn is not written over in it: whoever dies in it has it back.
uint32_t NaiveCore::arena_free() const {
    uint32_t used = m_.arena_freed_in_turn;
    for (const auto& [number, claim] : m_.claims)
        used += claim.payload_blocks + claim.meta_blocks;
    for (const auto& [number, lease] : m_.leases)
        used += lease.meta_blocks;
    for (const auto& [id, slot] : m_.slots)
        used += slot.attribute_blocks;
    for (const auto& [number, app] : m_.applications)
        used += app.tags_blocks;
    for (const Pool& pool : m_.pools)
        used += !pool.is_gone && !pool.vector.empty();  // names of its resources
    return limits_.arena_blocks - used;
}

// S0.33. The clash table on IdleReady: admitted and not reserved. ReservedCount is of all that are
// reserved, for a claim or without one. S0.41: a claim is in one of the two counts at any time.
// Invariant 1: a slot is in one of them.
PoolCounters NaiveCore::counters(uint32_t row) const {
    const Pool& pool = m_.pools.at(row);
    PoolCounters counters;
    for (const auto& [id, slot] : m_.slots) {
        if (slot.pool != row) continue;
        counters.slots += 1;
        counters.idle += slot.is == SlotIs::kIdle;
        counters.reserved += slot.is == SlotIs::kReserved || slot.is == SlotIs::kKept ||
                             slot.is == SlotIs::kPlaceholder;
        counters.leased += slot.is == SlotIs::kLeased;
        counters.recovering += slot.is == SlotIs::kRecovering;
        counters.unknown += slot.is == SlotIs::kUnknown;
        counters.shared += slot.is == SlotIs::kShared;
        counters.ordered += slot.is == SlotIs::kOrdered;
        counters.parts += slot.part_of.has_value();
    }
    for (const auto& [number, claim] : m_.claims) {
        if (units_in(claim, row) == 0 || claim.is_held_back) continue;
        (claim.is_confirming ? counters.confirming : counters.waiting) += 1;
    }
    for (const auto& [number, lease] : m_.leases) {
        if (lease.pool != row) continue;
        counters.parked += lease.is_parked;
        counters.wanted += lease.is_wanted;
    }
    counters.unconfirmed = unconfirmed_of(row);
    counters.last_dispatch_ns = pool.last_dispatch_ns;
    if (pool.saturated_until_ns > m_.now) counters.saturated_until_ns = pool.saturated_until_ns;
    counters.demand_published = pool.demand_published;
    counters.totals = pool.totals;
    return counters;
}

}  // namespace dibs::naive

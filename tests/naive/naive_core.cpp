// tests/naive/naive_core.cpp -- turns, pools, the pass, drains, demand, counters; and how a
// decision is written down.
// SPDX-License-Identifier: Apache-2.0
#include "tests/naive/naive_core.hpp"

#include <algorithm>

namespace dibs::naive {

using core::Decision;
using core::DecisionKind;
using shm::Outcome;
using shm::Reason;

// "A turn opens with a time (a time before the last one is taken as the last one)."
void NaiveCore::begin_turn(TimeNs now) {
    const TimeNs last = m_.now;
    m_.now = std::max(m_.now, now);
    m_.turn += 1;
    m_.arena_freed_in_turn = 0;
    decisions_.clear();
    decided_slots_.clear();
    decided_costs_.clear();
    time_passes(last, m_.now);
    forget_idle_workers();
}

// "… applies commands in order, and closes with one pass": timers, pass, drains, pulls, demand.
void NaiveCore::decide() {
    m_.pass_once_more = false;
    run_timers();
    for (uint32_t pool = 0; pool < m_.pools.size(); ++pool)
        pass(pool);
    tell_drained();
    tell_pulled();
    publish_demand();
}

void NaiveCore::pass(uint32_t pool) {
    if (by_account(pool)) {
        pass_by_account(pool);
    } else {
        pass_by_arrival(pool);
    }
}

// "The pass over one pool walks the backlog in order of number." S0.8 – S0.10
void NaiveCore::pass_by_arrival(uint32_t pool) {
    bool service_stopped = false;
    for (const uint64_t number : pending_of(pool)) {
        const Claim& claim = m_.claims.at(number);
        if (claim.is_confirming) continue;
        if (!service_stopped && !can_be_served(claim)) collect_for(claim);
        if (!service_stopped && can_be_served(claim)) {
            serve(number);
        } else if (claim.is_impatient) {
            reject_impatient(number);
        } else {
            service_stopped = true;
        }
    }
}

// "kDrained is decided once per drain, at the end of the turn …, pools by row, the broker last."
void NaiveCore::tell_drained() {
    bool anything_pending = false;
    for (uint32_t row = 0; row < m_.pools.size(); ++row) {
        Pool& pool = m_.pools[row];
        const bool pending = !pending_of(row).empty();
        anything_pending = anything_pending || pending;
        if (pool.is_draining && !pool.drain_told && !pending) {
            pool.drain_told = true;
            tell(DecisionKind::kDrained, shm::kNoRow).pool = row;
        }
    }
    if (m_.is_draining && !m_.drain_told && !anything_pending) {
        m_.drain_told = true;
        tell(DecisionKind::kDrained, shm::kNoRow).pool = shm::kNoRow;
    }
}

// "How long the first of the waiting claims in order of number has waited."
uint64_t NaiveCore::oldest_wait_of(uint32_t row) const {
    for (const uint64_t number : pending_of(row)) {
        const Claim& claim = m_.claims.at(number);
        if (!claim.is_confirming) return m_.now - std::min(m_.now, claim.enqueued_ns);
    }
    return 0;
}

// S0.34. A pool that the turn did not touch has published what it would publish.
void NaiveCore::publish_demand() {
    for (uint32_t row = 0; row < m_.pools.size(); ++row) {
        Pool& pool = m_.pools[row];
        if (pool.is_gone) continue;
        const int64_t last = pool.demand_published;
        const auto cur = static_cast<int64_t>(pending_of(row).size());
        const bool first = last < 0;
        const bool one_is_zero = (last == 0) != (cur == 0);
        const bool a_fifth = last > 0 && std::abs(cur - last) * 5 >= last;
        if (!first && !one_is_zero && !a_fifth) continue;
        pool.demand_published = cur;
        Decision& decision = tell(DecisionKind::kDemand, shm::kNoRow);
        decision.pool = row;
        decision.value = static_cast<uint64_t>(cur);
        decision.id = oldest_wait_of(row);
        decision.round = pool.totals.granted == 0
                             ? 0
                             : static_cast<uint32_t>(pool.totals.hits * 1000 / pool.totals.granted);
    }
}

// "The same name again changes what may be changed live", and nothing if that is not all.
bool NaiveCore::change_is_refused(const Pool& pool, const core::PoolConfig& config) const {
    const core::PoolConfig& old = pool.config;
    const bool other_pool = config.kind != old.kind || config.expiry != old.expiry ||
                            config.order != old.order || config.payload_max != old.payload_max ||
                            config.answer_max != old.answer_max ||
                            config.attributes_max != old.attributes_max;
    const bool has_slots = std::any_of(m_.slots.begin(), m_.slots.end(), [&](const auto& slot) {
        return m_.pools.at(slot.second.pool).name == pool.name;
    });
    if (has_slots && config.required_label != pool.required_label) return true;
    return other_pool || config.slots < old.slots ||
           config.slots - old.slots > limits_.slots - m_.slots.size();
}

// "The row goes to a pool of another name only once every session is gone that was opened before
// the row was free; the same name has it back at any time." kNoRow: there is none.
uint32_t NaiveCore::row_for(std::string_view name) const {
    for (uint32_t row = 0; row < m_.pools.size(); ++row) {
        if (m_.pools[row].name == name) return row;
    }
    for (uint32_t row = 0; row < m_.pools.size(); ++row) {
        const Pool& gone = m_.pools[row];
        const bool is_known =
            std::any_of(m_.sessions.begin(), m_.sessions.end(), [&](const auto& session) {
                return session.second.opened_ns <= gone.gone_ns;
            });
        if (gone.is_gone && !is_known) return row;
    }
    const auto next = static_cast<uint32_t>(m_.pools.size());
    return next < limits_.pools ? next : shm::kNoRow;
}

// "Counters at zero, fences going on" where it is the same name.
uint32_t NaiveCore::set_pool(const core::PoolConfig& config, std::string* /*why*/) {
    const uint32_t row = row_for(config.name);
    if (row == shm::kNoRow) return row;
    if (!pool_lives(row)) {
        if (config.slots > limits_.slots - m_.slots.size()) return shm::kNoRow;
        Pool fresh;
        fresh.name = config.name;
        fresh.config = config;
        if (row == m_.pools.size()) m_.pools.emplace_back();
        if (m_.pools[row].name == fresh.name) fresh.fence_next = m_.pools[row].fence_next;
        m_.pools[row] = fresh;
    }
    Pool& pool = m_.pools[row];
    if (change_is_refused(pool, config)) return shm::kNoRow;
    pool.config = config;
    pool.required_label = config.required_label;
    grow_pool(row);
    return row;
}

// "A counted pool has `slots` slots, numbered 0 to n − 1, idle from the start."
void NaiveCore::grow_pool(uint32_t row) {
    if (m_.pools[row].config.kind == shm::PoolKind::kWorker) return;
    while (m_.pools[row].number_next < m_.pools[row].config.slots) {
        Slot slot;
        slot.id = m_.slots_seen++;
        slot.pool = row;
        slot.number = m_.pools[row].number_next++;
        m_.slots[slot.id] = slot;
        become_idle(slot.id);
    }
}

// "Of a pool or of the broker: waiting claims end rejected (draining) in order of number."
void NaiveCore::apply(const core::Drain& drain) {
    if (drain.pool != shm::kNoRow && !pool_lives(drain.pool)) return;
    bool& is_draining =
        drain.pool == shm::kNoRow ? m_.is_draining : m_.pools.at(drain.pool).is_draining;
    bool& told = drain.pool == shm::kNoRow ? m_.drain_told : m_.pools.at(drain.pool).drain_told;
    if (is_draining == drain.on) return;  // "Drain of what drains changes nothing."
    is_draining = drain.on;
    told = false;
    if (!drain.on) return;
    const std::map<uint64_t, Claim> claims = m_.claims;
    for (const auto& [number, claim] : claims) {
        const bool concerned = drain.pool == shm::kNoRow || claim.pool == drain.pool;
        if (concerned && !claim.is_confirming) {
            end_claim(number, Outcome::kRejected, Reason::kDraining, 0);
        }
    }
}

// "A pool is deleted when nobody uses it": no claim, no lease, no slot that is not idle, no worker.
Reason NaiveCore::delete_pool(uint32_t row) {
    if (!pool_lives(row)) return Reason::kUnknownPool;
    Pool& pool = m_.pools[row];
    const bool has_workers = pool.config.kind == shm::PoolKind::kWorker;
    if (by_account(row)) return Reason::kState;
    for (const auto& [id, slot] : m_.slots) {
        if (slot.pool == row && (has_workers || slot.is != SlotIs::kIdle)) return Reason::kState;
    }
    if (!pending_of(row).empty()) return Reason::kState;
    std::erase_if(m_.slots, [&](const auto& entry) { return entry.second.pool == row; });
    Pool gone;
    gone.is_gone = true;
    gone.gone_ns = m_.now;
    gone.name = pool.name;
    gone.config = pool.config;
    gone.fence_next = pool.fence_next;
    pool = gone;
    return Reason::kOk;
}

bool NaiveCore::pool_lives(uint32_t pool) const {
    return pool < m_.pools.size() && !m_.pools[pool].is_gone;
}

bool NaiveCore::is_draining(uint32_t pool) const {
    return m_.is_draining || m_.pools.at(pool).is_draining;
}

bool NaiveCore::by_account(uint32_t pool) const {
    return m_.pools.at(pool).config.order == shm::PoolOrder::kAccount;
}

// Waiting and confirming claims of a pool, in order of number.
std::vector<uint64_t> NaiveCore::pending_of(uint32_t pool) const {
    std::vector<uint64_t> numbers;
    for (const auto& [number, claim] : m_.claims) {
        if (claim.pool == pool) numbers.push_back(number);
    }
    return numbers;
}

// Slots whose workers have been asked and have not answered. S0.22
uint64_t NaiveCore::unconfirmed_of(uint32_t pool) const {
    uint64_t count = 0;
    for (const auto& [id, slot] : m_.slots) {
        if (slot.pool == pool && slot.is == SlotIs::kReserved && !slot.has_confirmed) ++count;
    }
    return count;
}

// "Unconfirmed + units ≤ unconfirmed_max, or nothing is unconfirmed."
bool NaiveCore::may_ask(uint32_t pool, uint64_t workers) const {
    const uint64_t unconfirmed = unconfirmed_of(pool);
    return unconfirmed == 0 || unconfirmed + workers <= m_.pools.at(pool).config.unconfirmed_max;
}

// "The oldest live lease of the pool": fences grow with every grant.
const Lease* NaiveCore::oldest_lease_of(uint32_t pool) const {
    const Lease* oldest = nullptr;
    for (const auto& [claim, lease] : m_.leases) {
        if (lease.pool != pool) continue;
        if (oldest == nullptr || lease.fence < oldest->fence) oldest = &lease;
    }
    return oldest;
}

// Blocks that may be handed out: what is freed in a turn may be used in the next one.
uint32_t NaiveCore::arena_free() const {
    uint32_t used = m_.arena_freed_in_turn;
    for (const auto& [number, claim] : m_.claims)
        used += claim.payload_blocks;
    for (const auto& [id, slot] : m_.slots)
        used += slot.attribute_blocks;
    return limits_.arena_blocks - used;
}

PoolCounters NaiveCore::counters(uint32_t row) const {
    const Pool& pool = m_.pools.at(row);
    PoolCounters counters;
    for (const auto& [id, slot] : m_.slots) {
        if (slot.pool != row) continue;
        counters.slots += 1;
        counters.idle += slot.is == SlotIs::kIdle;
        counters.reserved += slot.is == SlotIs::kReserved || slot.is == SlotIs::kKept;
        counters.leased += slot.is == SlotIs::kLeased;
        counters.recovering += slot.is == SlotIs::kRecovering;
        counters.unknown += slot.is == SlotIs::kUnknown;
    }
    for (const uint64_t number : pending_of(row)) {
        const bool confirming = m_.claims.at(number).is_confirming;
        counters.waiting += !confirming;
        counters.confirming += confirming;
    }
    counters.unconfirmed = unconfirmed_of(row);
    counters.last_dispatch_ns = pool.last_dispatch_ns;
    counters.demand_published = pool.demand_published;
    counters.totals = pool.totals;
    return counters;
}

std::span<const uint32_t> NaiveCore::decided_slots(const Decision& decision) const {
    return std::span(decided_slots_).subspan(decision.slots_begin, decision.slots_count);
}

std::span<const int64_t> NaiveCore::decided_cost(const Decision& decision) const {
    return std::span(decided_costs_).subspan(decision.slots_begin, decision.slots_count);
}

void NaiveCore::list_cost(Decision& decision, const Money& cost) {
    decision.slots_begin = static_cast<uint32_t>(decided_costs_.size());
    decision.slots_count = static_cast<uint32_t>(cost.size());
    decided_costs_.insert(decided_costs_.end(), cost.begin(), cost.end());
}

Decision& NaiveCore::tell(DecisionKind kind, uint32_t session) {
    Decision decision{};
    decision.kind = kind;
    decision.session = session;
    decisions_.push_back(decision);
    return decisions_.back();
}

void NaiveCore::tell_result(uint32_t session, uint64_t user_data, Reason reason, uint64_t value) {
    Decision& decision = tell(DecisionKind::kResult, session);
    decision.user_data = user_data;
    decision.reason = reason;
    decision.value = value;
}

void NaiveCore::list_slots(Decision& decision, const std::vector<uint64_t>& slots) {
    decision.slots_begin = static_cast<uint32_t>(decided_slots_.size());
    decision.slots_count = static_cast<uint32_t>(slots.size());
    for (const uint64_t slot : slots)
        decided_slots_.push_back(static_cast<uint32_t>(slot));
}

// "names who holds …: uid, pid, claim number, age, if any"
void NaiveCore::name_holder(Decision& decision, const Lease* lease) const {
    if (lease == nullptr) return;
    const Session& holder = m_.sessions.at(lease->session);
    decision.holder_uid = holder.uid;
    decision.holder_pid = holder.pid;
    decision.holder_claim = lease->claim;
    decision.holder_age_ns = m_.now - lease->granted_ns;
}

}  // namespace dibs::naive

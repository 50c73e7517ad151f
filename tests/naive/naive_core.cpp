// tests/naive/naive_core.cpp -- a turn: what is due, the pass, and what is published at its end.
//
// Written from the statements named above each function. In which order a turn tells of drains,
// pulls and demand, pools by row, no statement fixes.
// SPDX-License-Identifier: Apache-2.0
#include "tests/naive/naive_core.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "tests/naive/gangs.hpp"

namespace dibs::naive {

using core::Decision;
using core::DecisionKind;
using shm::Outcome;
using shm::Reason;

// Invariant 12, S2.2: time does not go back. S2.3 to S2.6: first it passes for accounts, then
// idle workers that have been silent for too long are forgotten. S0.18: reservations that are over
// are swept before anything is admitted: before whatever the turn's commands make idle.
void NaiveCore::begin_turn(TimeNs now, bool same_turn) {
    const TimeNs last = std::exchange(m_.now, std::max(m_.now, now));
    m_.turn += 1;
    m_.arena_freed_in_turn = 0;
    decisions_.clear();
    decided_slots_.clear();
    decided_costs_.clear();
    entry_names_.clear();
    if (!same_turn) {
        m_.has_passed = false;
        m_.granted_by_pass.clear();
    }
    time_passes(last, m_.now);
    forget_idle_workers();
    sweep_reservations();
}

// One turn is one pass over what was ingested (the clash of S2's pass with streaming). S0.12,
// S0.18: what is due comes before it, so that nobody is served who is over, and everybody with what
// is free; first of all reservations that a command of this turn has left over. S0.29, S0.33,
// S0.34: what the turn has come to is told behind it. S2.30: what a worker has pulled, behind the
// last pass.
void NaiveCore::decide(bool last_pass) {
    m_.pass_once_more = false;
    sweep_reservations();
    run_timers();
    boots_time_out();
    gangs().run_timers();
    gangs().look();
    m_.has_passed = true;
    // "Looks at applications and passes, alternating until nothing changes."
    do
        pass_over_pools();
    while (gangs().look());
    gangs().reject_held();
    tell_drained();
    if (last_pass) tell_pulled();
    if (last_pass && !m_.pass_once_more) publish_demand();  // "behind its last pass"
}

// S0.10: in order of arrival; at the first for which there is no slot the rest is kept in order.
// S0.9, invariant 6: those that are new stand behind it, and whoever does not want to wait is not
// let past it either. S0.8: a claim waits where it finds nothing; one that does not want to
// (dibs.h: reject, cold, now) has its end. As it waits no more, it keeps nobody waiting.
void NaiveCore::pass_in_order(uint32_t pool) {
    bool somebody_waits = false;
    uint64_t passed_over = 0;
    held_back_.clear();
    const std::optional<uint64_t> half = half_reserved(m_, pool);
    gangs().serve_half_reserved(pool);
    for (const uint64_t number : order_of(pool)) {
        const Claim& claim = m_.claims.at(number);
        if (claim.is_confirming) continue;
        if (claim.is_ask()) {
            gangs().take_placeholders(number);
            if (!m_.claims.contains(number)) continue;
            somebody_waits = true;
            if (passed_over++ == 32 || !holds_back_some(claim)) break;
            held_back_.push_back(claim.least);
            if (is_all_held_back(pool)) break;
            continue;
        }
        if (!claim.also.empty()) {
            goes_back_ = can_be_served(claim);
            if (goes_back_) serve(number);
            return;
        }
        if (!can_be_served(claim)) collect_for(claim);
        if (can_be_served(claim)) {
            serve(number);
        } else if (claim.is_impatient && !somebody_waits) {
            reject_impatient(number);
        } else {
            somebody_waits = true;
            if (passed_over++ == 32) break;
            if (claim.is_impatient) continue;
            if (!holds_back_some(claim)) break;
            held_back_.push_back(claim.least);
            if (is_all_held_back(pool)) break;
        }
    }
    held_back_.clear();
    // "Its asks are served before all else", of one that holds a part only now as well; "the pass
    // begins again" where one has given way.
    const std::optional<uint64_t> half_now = half_reserved(m_, pool);
    const bool gave_way = std::exchange(gave_way_, false);
    if (gave_way || (half_now && half_now != half)) return pass_in_order(pool);
    for (const uint64_t number : pending_of(pool)) {
        const Claim& claim = m_.claims.at(number);
        const bool is_passed_over = (somebody_waits || is_held(claim)) && claim.also.empty();
        if (is_passed_over && claim.is_impatient && !claim.is_confirming) reject_impatient(number);
    }
}

Gangs NaiveCore::gangs() {
    return Gangs(*this);
}

Reason NaiveCore::apply(const core::AddApplication& command, uint64_t* number) {
    return gangs().add(command, number);
}

Reason NaiveCore::apply(const core::ApplicationEvent& event, uint64_t* value) {
    return gangs().apply(event, value);
}

void NaiveCore::pass_over(uint32_t pool) {
    if (by_account(pool)) return pass_by_account(pool);
    do
        pass_in_order(pool);
    while (is_elastic(pool) && provision(pool));
}

// S1.1: locked before all others, priority descending, first seen, id: these two are one number.
// S1.9: one of priority 0 is held.
std::vector<uint64_t> NaiveCore::order_of(uint32_t pool) const {
    std::vector<uint64_t> numbers = pending_of(pool);
    if (m_.pools.at(pool).config.order != shm::PoolOrder::kPriority) return numbers;
    std::erase_if(numbers, [&](uint64_t number) { return is_held(m_.claims.at(number)); });
    std::stable_sort(numbers.begin(), numbers.end(), [&](uint64_t left, uint64_t right) {
        const Claim& one = m_.claims.at(left);
        const Claim& other = m_.claims.at(right);
        return std::tuple(one.is_locked, one.priority) >
               std::tuple(other.is_locked, other.priority);
    });
    return numbers;
}

bool NaiveCore::is_held(const Claim& claim) const {
    return m_.pools.at(claim.pool).config.order == shm::PoolOrder::kPriority && claim.priority < 1;
}

// S0.29, S0.31: the end of a drain is told, once, when all that waited have failed and what was
// under way has been awaited.
void NaiveCore::tell_drained() {
    for (uint32_t row = 0; row < m_.pools.size(); ++row) {
        Pool& pool = m_.pools[row];
        if (!pool.is_draining || pool.drain_told || !pending_of(row).empty()) continue;
        pool.drain_told = true;
        tell(DecisionKind::kDrained, shm::kNoRow).pool = row;
    }
    if (!m_.is_draining || m_.drain_told || !m_.claims.empty()) return;  // none is held back then
    m_.drain_told = true;
    tell(DecisionKind::kDrained, shm::kNoRow);
}

// S0.4: since its enqueue time, of the first that waits. It may be said to be in the future.
uint64_t NaiveCore::oldest_wait_of(uint32_t row) const {
    for (const uint64_t number : pending_of(row)) {
        const Claim& claim = m_.claims.at(number);
        if (!claim.is_confirming) return m_.now - std::min(m_.now, claim.enqueued_ns);
    }
    return 0;
}

// S0.34. README, artefacts: the signal is how many are pending (S0.33: parked and in transition),
// the oldest wait and the hit ratio; a hit is a grant in the turn that its claim came in.
void NaiveCore::publish_demand() {
    for (uint32_t row = 0; row < m_.pools.size(); ++row) {
        Pool& pool = m_.pools[row];
        const int64_t last = pool.demand_published;
        const auto cur = static_cast<int64_t>(pending_of(row).size());
        if (!pool.is_gone && is_news(last, cur)) tell_demand(row);
    }
    for (uint32_t row = 0; row < m_.pools.size(); ++row) {
        const Pool& pool = m_.pools[row];
        if (pool.is_gone || !is_elastic(row)) continue;
        if (is_news(pool.elastic.headroom_told, headroom(row))) tell_demand(row);
    }
}

void NaiveCore::tell_demand(uint32_t row) {
    Pool& pool = m_.pools[row];
    pool.demand_published = static_cast<int64_t>(pending_of(row).size());
    const uint64_t granted = std::max<uint64_t>(pool.totals.granted, 1);
    Decision& demand = tell(DecisionKind::kDemand, shm::kNoRow);
    demand.pool = row;
    demand.value = static_cast<uint64_t>(pool.demand_published);
    demand.id = oldest_wait_of(row);
    demand.hit_permille = static_cast<uint32_t>(pool.totals.hits * 1000 / granted);
    demand.fence = shm::kNever;
    if (!is_elastic(row)) return;
    pool.elastic.headroom_told = headroom(row);
    demand.fence = static_cast<uint64_t>(pool.elastic.headroom_told);
}

// S0.34, word for word: |cur - last| / last is at least 0.2 where it is at least a fifth.
bool NaiveCore::is_news(int64_t last, int64_t cur) {
    if (last < 0) return true;
    if (last == 0 || cur == 0) return last != cur;
    return std::abs(cur - last) * 5 >= last;
}

}  // namespace dibs::naive

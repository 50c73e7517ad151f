// broker/core/dispatch/pass.cpp -- decides which entries are locked, started and unlocked, and
// which workers are made and stopped for them (S1.8 to S1.17).
//
// What is not waiting is in no line: entries with a process, alive or exited, are passed over as a
// whole (S1.9). What waits stands in two lines, of supervisors and of all others, the locked before
// the queued. The queued ones are looked at by groups of those that are alike, so that those for
// which nothing can be done cost nothing each.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/dispatch/entry_change.hpp"

namespace dibs::core {

using shm::DispatchPhase;
using shm::EntryOp;
using shm::EntryState;

namespace {

bool has(uint64_t types, uint32_t type) {
    return type < kTypesOfEntry && (types >> type & 1U) != 0;
}

uint64_t bit_of(uint32_t type) {
    return type < kTypesOfEntry ? uint64_t{1} << type : 0;
}

}  // namespace

bool Dispatch::serve(uint32_t pool) {
    const shm::ElasticRow& row = state.elastics[pool];
    Provisioning& making = provisioning();
    if (row.phase == DispatchPhase::kStale && !mend_stale(pool)) return false;
    if (row.phase == DispatchPhase::kServing) {
        if (!reconcile(pool)) return false;
        making.adapt_limit(pool);
        count_free(pool);
        // What is started or made may raise the limit, or meet the quota.
        for (bool again = !pools().draining(pool); again;) {
            const uint32_t limit = row.limit;
            const uint32_t slots = state.pools[pool].slots;
            if (!pass_entries(pool)) return false;
            if (!making.keep_spare(pool, making.counts[pool].unallocated - left(pool)))
                return false;
            making.adapt_limit(pool);
            again = row.limit != limit || state.pools[pool].slots != slots;
        }
        if (!making.stop_idle(pool)) return false;
    }
    if (!making.tell_untold(pool)) return false;
    making.set_due(pool);
    return true;
}

// S1.23, S1.24: locks of entries that nothing runs were another scheduler's, unless a worker that
// is unknown yet runs them.
bool Dispatch::mend_stale(uint32_t pool) {
    const shm::ElasticRow& row = state.elastics[pool];
    const auto first_held = [&] { return lines_.first(held_line(pool)); };
    uint32_t at = next_waiting(pool, kNoRow);
    const bool is_locked = at != kNoRow && state.entries[at].state == EntryState::kLocked;
    const bool waits_on = (is_locked || first_held() != kNoRow) && state.pools[pool].unknown != 0 &&
                          turn().now_ns < row.stale_until_ns;
    if (waits_on) return true;
    const auto mend = [&](uint32_t stale) {
        if (turn().full()) return false;
        if (state.entries[stale].op == EntryOp::kNone) ask(stale, EntryOp::kUnlock);
        return true;
    };
    for (; at != kNoRow && state.entries[at].state == EntryState::kLocked;
         at = next_waiting(pool, at)) {
        if (!mend(at)) return false;
    }
    for (at = first_held(); at != kNoRow; at = lines_.after(held_line(pool), at, order())) {
        if (!mend(at)) return false;
    }
    shm::ElasticRow& served = edit().row(row, 1U << 2U);
    put(served.phase, DispatchPhase::kServing);
    put(served.stale_until_ns, kNever);
    return true;
}

TimeNs Dispatch::stale_due(uint32_t pool) const {
    const shm::ElasticRow& row = state.elastics[pool];
    return row.phase == DispatchPhase::kStale ? row.stale_until_ns : kNever;
}

// The first one of both lines that stands behind `row`, or at all.
uint32_t Dispatch::next_waiting(uint32_t pool, uint32_t row) const {
    const auto next_of = [&](bool supervisor) {
        const uint32_t set = line(pool, supervisor);
        return row == kNoRow ? lines_.first(set) : lines_.after(set, row, order());
    };
    const uint32_t one = next_of(false);
    const uint32_t other = next_of(true);
    if (one == kNoRow || other == kNoRow) return one == kNoRow ? other : one;
    return order()(one, other) ? one : other;
}

// Those of the types that suit it that are not too dear (S1.30). One that goes counts for no price.
uint64_t Dispatch::types_for(const shm::EntryRow& entry) const {
    const uint64_t factor = state.elastics[entry.pool].price_factor_permille;
    uint64_t found = 0;
    uint64_t dearest = kNever;
    for (const uint32_t type : provisioning().types_of(entry.pool)) {
        if (!has(entry.types, type)) continue;
        const uint64_t cost = state.types[type].cost;
        if (dearest == kNever && factor != 0 && !provisioning().is_going(type)) {
            const uint64_t thousands = cost / 1000;
            const uint64_t whole = thousands > kNever / factor ? kNever : thousands * factor;
            dearest = std::max(cost, sum_or_never(whole, cost % 1000 * factor / 1000));
        }
        if (cost > dearest) break;
        found |= uint64_t{1} << type;
    }
    return found;
}

// S1.8: those that run count first, then those that wait, in their order.
bool Dispatch::is_over_limit(uint32_t row) const {
    const shm::EntryRow& entry = state.entries[row];
    if (!is_supervisor(entry)) return false;
    const uint32_t most = supervisor_limit(entry.pool);
    return most != 0 && uint64_t{counts_[entry.pool].supervisors} + position(row) > most;
}

// S1.11: one of the cheapest suitable type of which there is one.
uint32_t Dispatch::take_free(Round* round, uint64_t types) {
    for (const uint32_t type : provisioning().types_of(round->pool)) {
        if (!has(types, type) || unallocated_[type] == 0) continue;
        --unallocated_[type];
        ++round->trying;
        return type;
    }
    return kNoRow;
}

bool Dispatch::pass_entries(uint32_t pool) {
    Round round{
        .pool = pool, .trying = provisioning().running(pool), .limit = state.elastics[pool].limit};
    count_free(pool);
    unlocks_.clear();
    if (!pass_locked(&round)) return false;
    const bool has_room = round.over_quota == kNoRow && round.trying < round.limit;
    if (has_room && !pass_queued(&round)) return false;
    if (!unlock_over(round)) return false;
    return round.over_quota == kNoRow || stop_over_quota(pool);
}

// S1.13.
bool Dispatch::pass_locked(Round* round) {
    const uint32_t pool = round->pool;
    for (uint32_t row = next_waiting(pool, kNoRow); row != kNoRow; row = next_waiting(pool, row)) {
        const shm::EntryRow& entry = state.entries[row];
        if (entry.state != EntryState::kLocked) break;
        if (turn().full()) return false;
        if (is_over_limit(row)) {  // S1.10
            unlocks_.push_back(row);
            continue;
        }
        if (round->trying >= round->limit) continue;
        const uint64_t types = types_for(entry);
        if (const uint32_t type = take_free(round, types); type != kNoRow) {
            if (has(round->dont_start, type) || entry.op != EntryOp::kNone) continue;
            const uint32_t worker = provisioning().last_idle(type);
            if (worker == kNoRow) {
                round->dont_start |= bit_of(type);
            } else {
                start(row, worker);
            }
        } else if (const uint32_t made = provisioning().cheapest(pool, types); made != kNoRow) {
            if (provisioning().at_quota(pool)) {
                round->over_quota = row;
                break;
            }
            if (!provisioning().create(pool, made)) continue;
            round->dont_start |= bit_of(made);
            ++round->trying;
        }
    }
    return true;
}

// S1.12: a group of which one cannot be locked is left out.
bool Dispatch::pass_queued(Round* round) {
    const auto is_behind = [this](uint32_t left, uint32_t right) { return order()(right, left); };
    heads_.clear();
    const auto add = [&](uint32_t row) {
        if (row == kNoRow) return;
        heads_.push_back(row);
        std::push_heap(heads_.begin(), heads_.end(), is_behind);
    };
    for (uint32_t group = groups_of_.head(round->pool); group != kNoRow;
         group = groups_of_.next(group)) {
        add(queued_.first(group));
    }
    while (!heads_.empty() && round->trying < round->limit) {
        if (turn().full()) return false;
        std::pop_heap(heads_.begin(), heads_.end(), is_behind);
        const uint32_t row = heads_.back();
        heads_.pop_back();
        const shm::EntryRow& entry = state.entries[row];
        if (is_over_limit(row)) continue;
        const uint64_t types = types_for(entry);
        const auto is_free = [&](uint32_t type) { return has(types, type) && unallocated_[type]; };
        const auto all = provisioning().types_of(round->pool);
        if (std::none_of(all.begin(), all.end(), is_free)) {
            if (provisioning().cheapest(round->pool, types) == kNoRow) continue;
            if (provisioning().at_quota(round->pool)) {
                round->over_quota = row;
                return true;
            }
            ++round->trying;
        } else {
            take_free(round, types);
        }
        if (entry.op == EntryOp::kNone) ask(row, EntryOp::kLock);
        add(queued_.after(group_of(entry), row, order()));
    }
    return true;
}

// S1.15. What is over quota is the entry and all that wait behind it.
bool Dispatch::unlock_over(const Round& round) {
    const auto unlock = [&](uint32_t row) {
        if (turn().full()) return false;
        if (state.entries[row].op == EntryOp::kNone) ask(row, EntryOp::kUnlock);
        return true;
    };
    for (const uint32_t row : unlocks_) {
        if (!unlock(row)) return false;
    }
    uint32_t row = round.over_quota;
    if (row == kNoRow || state.entries[row].state != EntryState::kLocked) return true;
    const bool has_others = next_waiting(round.pool, row) != kNoRow;
    if (state.pools[round.pool].slots != 0 && has_others) row = next_waiting(round.pool, row);
    for (; row != kNoRow && state.entries[row].state == EntryState::kLocked;
         row = next_waiting(round.pool, row)) {
        if (!unlock(row)) return false;
    }
    return true;
}

// S1.16, S1.36: of each type that nothing could use and somebody can stop, unless one of it is
// being stopped already.
bool Dispatch::stop_over_quota(uint32_t pool) {
    for (const uint32_t type : provisioning().types_of(pool)) {
        if (state.types[type].session == kNoRow) continue;
        if (unallocated_[type] == 0 || provisioning().stopping_of[type] != 0) continue;
        if (turn().full()) return false;
        const uint32_t worker = provisioning().least_useful(type);
        if (worker == kNoRow) continue;
        take_left(type);
        pools().set_behaviour(worker, shm::Behaviour::kDrain);
    }
    return true;
}

void Dispatch::count_free(uint32_t pool) {
    for (const uint32_t type : provisioning().types_of(pool))
        unallocated_[type] = provisioning().unallocated_of[type];
}

// What a pass would leave that has nothing to decide: a core that begins has had none.
void Dispatch::find_left(uint32_t pool) {
    count_free(pool);
    if (pools().draining(pool)) return;
    Round round{
        .pool = pool, .trying = provisioning().running(pool), .limit = state.elastics[pool].limit};
    for (uint32_t row = next_waiting(pool, kNoRow); row != kNoRow && round.trying < round.limit;
         row = next_waiting(pool, row)) {
        const shm::EntryRow& entry = state.entries[row];
        const bool locked = entry.state == EntryState::kLocked;
        if (is_over_limit(row) || (!locked && entry.op == EntryOp::kNone)) continue;
        const uint64_t types = types_for(entry);
        if (take_free(&round, types) != kNoRow) continue;
        if (provisioning().cheapest(pool, types) == kNoRow) continue;
        if (provisioning().at_quota(pool)) return;
        if (!locked) ++round.trying;
    }
}

uint32_t Dispatch::left(uint32_t pool) const {
    uint32_t sum = 0;
    for (const uint32_t type : provisioning().types_of(pool))
        sum += unallocated_[type];
    return sum;
}

void Dispatch::start(uint32_t row, uint32_t worker) {
    run_on(row, worker, shm::EntryFlag::kStarting);
    ask(row, EntryOp::kNone);
}

}  // namespace dibs::core

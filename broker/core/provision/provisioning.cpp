// broker/core/provision/provisioning.cpp -- decides what elastic pools make and stop, and which of
// their claims are locked.
//
// It runs behind the pass over a pool, when what is idle has been granted. In the words of the
// statements (S1): M the limit, Q the workers within quota, I all workers and orders, R units that
// run, L units of locked claims, F unallocated workers. A second run in the same state changes
// nothing, and where time alone makes a difference a timer has the pool looked at.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

using shm::OrderState;

bool Provisioning::at_quota(uint32_t pool) const {
    const uint32_t workers = whole_slots(state.pools[pool]);
    return workers >= state.elastics[pool].workers_max || is_quota_met(pool);
}

// S1.32, as a provisioner has answered.
bool Provisioning::is_quota_met(uint32_t pool) const {
    const shm::ElasticRow& row = state.elastics[pool];
    return turn().now_ns < row.quota_until_ns && whole_slots(state.pools[pool]) >= row.quota_below;
}

bool Provisioning::at_capacity(uint32_t type) const {
    const shm::TypeRow& row = state.types[type];
    return turn().now_ns < row.capacity_until_ns ||
           turn().now_ns < state.elastics[row.pool].everything_until_ns;
}

// S1.30: it does not go, and the cheapest one that does not allows its price. What is dear for an
// entry does not suit it (Dispatch::types_for).
bool Provisioning::may_make(uint32_t type) const {
    if (is_going(type)) return false;
    const uint32_t pool = state.types[type].pool;
    if (dispatch().is_dispatched(pool)) return true;
    const auto types = types_of(pool);
    const auto first =
        std::find_if(types.begin(), types.end(), [&](uint32_t other) { return !is_going(other); });
    return is_affordable(type, *first);
}

// S1.30: beside the cheapest that would do.
bool Provisioning::is_affordable(uint32_t type, uint32_t cheapest) const {
    const shm::TypeRow& row = state.types[type];
    const uint32_t factor = state.elastics[row.pool].price_factor_permille;
    return factor == 0 || static_cast<__int128>(row.cost) * 1000 <=
                              static_cast<__int128>(state.types[cheapest].cost) * factor;
}

uint32_t Provisioning::cheapest(uint32_t pool, uint64_t types) const {
    for (const uint32_t type : types_of(pool)) {
        const bool suits = types == kAnyType || (type < kTypesOfEntry && (types >> type & 1U) != 0);
        if (suits && may_make(type) && can_make(type)) return type;
    }
    return kNoRow;
}

bool Provisioning::can_make(uint32_t type) const {
    const shm::TypeRow& row = state.types[type];
    const bool fails = turn().now_ns < row.failed_until_ns;
    return row.session != kNoRow && !fails && !at_capacity(type);
}

uint32_t Provisioning::running(uint32_t pool) const {
    return counts[pool].running + dispatch().exited(pool);
}

// S1.3–6. It grows from the workers that have come, not from what runs alone: they are what was
// possible, and minimum and spare are to be reached without claims. An order that nobody has
// answered is no proof of what is within quota.
void Provisioning::adapt_limit(uint32_t pool) {
    const shm::ElasticRow& row = state.elastics[pool];
    const uint32_t running = this->running(pool);
    const uint32_t workers = whole_slots(state.pools[pool]);
    const uint32_t made = workers - counts[pool].asked;
    const uint32_t come = workers - row.ordered;
    uint32_t limit = row.limit;
    uint32_t within = row.within_quota;
    const bool is_quiet =
        row.overload_ns == kNever || turn().now_ns > sum_or_never(row.overload_ns, row.quiet_ns);
    if (row.overloaded != 0) {
        limit = std::max(running, 2U) - 1;
    } else if (is_quiet) {
        limit = static_cast<uint32_t>(std::max<uint64_t>(limit, uint64_t{11} * come / 10 + 1));
    }
    limit = std::min(limit, row.workers_max);
    if (within != 0 && within < made) within = made;
    if (at_quota(pool)) {
        limit = std::min(limit, std::max(workers, 1U));
        if (is_quota_met(pool) || made == workers) within = made;
    } else if (within != 0) {
        limit = std::min(limit, within + 1);
    }
    if (row.overloaded != 0) put(edit().row(row, 1U << 2U).overloaded, 0);
    if (limit != row.limit) put(edit().row(row, 1).limit, limit);
    if (within != row.within_quota) put(edit().row(row, 1).within_quota, within);
}

bool Provisioning::provision(uint32_t pool) {
    reordered = false;
    if (!is_elastic(pool)) return true;
    kept_.clear();
    passed.add(pool);
    if (dispatch().is_dispatched(pool)) return dispatch().serve(pool);
    adapt_limit(pool);
    const bool has_sizes = has_resources(state.pools[pool]);
    uint32_t drained = 0;
    do {  // a worker that none could use, and that is stopped, leaves room for another one
        drained = state.pools[pool].drained;
        if (!pools().draining(pool)) {
            if (!make(pool)) return false;
            adapt_limit(pool);  // there may be as many workers as there can be, now
        }
        if (!stop_idle(pool)) return false;
    } while (has_sizes && state.pools[pool].drained != drained);
    if (!tell_untold(pool)) return false;
    set_due(pool);
    return true;
}

// Workers that may still be made, by the limit and the quota.
uint32_t Provisioning::headroom(uint32_t pool) const {
    if (at_quota(pool)) return 0;
    const shm::ElasticRow& row = state.elastics[pool];
    const uint32_t used = running(pool) + counts[pool].unallocated;
    return std::min(row.workers_max - whole_slots(state.pools[pool]),
                    row.limit - std::min(row.limit, used));
}

uint32_t Provisioning::take_headroom(uint32_t pool) {
    const uint32_t now = headroom(pool);
    put(edit().row(state.elastics[pool], 1U << 2U).headroom_told, now);
    return now;
}

// By the rule of S0.34.
bool Provisioning::tell_headroom() {
    for (uint32_t pool = passed.first(0); pool != kNoRow; pool = passed.first(pool + 1)) {
        if (!is_elastic(pool) || !pools().pool_lives(pool)) continue;
        const uint64_t last = state.elastics[pool].headroom_told;
        const uint64_t now = headroom(pool);
        const uint64_t change = now > last ? now - last : last - now;
        if (now == last || (last != 0 && now != 0 && change * 5 < last)) continue;
        if (turn().full()) return false;
        pools().tell_demand(pool);
    }
    passed.clear();
    return true;
}

// Workers that locked claims lack, as far as the limit goes: the first of them gets all of its own
// if there is room below the limit at all.
uint32_t Provisioning::missing(uint32_t pool) const {
    const Counts& now = counts[pool];
    const uint32_t limit = state.elastics[pool].limit;
    if (now.locked == 0 || now.running >= limit) return 0;
    const uint32_t first = state.claims[matcher().priorities->ranked.at(pool, 0)].units;
    const uint32_t wanted = std::min(now.locked_units, std::max(limit - now.running, first));
    return wanted > now.unallocated ? wanted - now.unallocated : 0;
}

// Of workers what the claims of the pool need, then spare ones. False: the log is full.
bool Provisioning::make(uint32_t pool) {
    if (matcher().has_labels(pool)) return make_for_accounts(pool);
    const bool done = has_resources(state.pools[pool])
                          ? gather(pool)
                          : make_missing(pool) && unlock_over_quota(pool) && lock_queued(pool) &&
                                unlock_over_quota(pool);
    return done && keep_spare(pool, counts[pool].locked_units);
}

bool Provisioning::make_missing(uint32_t pool) {
    while (missing(pool) != 0) {
        if (turn().full()) return false;
        if (!create(pool, cheapest(pool))) break;
    }
    return true;
}

// S1.15: all that lack a worker, but for the first of them. That one, too, where it would not be
// the first of several, or where no worker may ever come free.
bool Provisioning::unlock_over_quota(uint32_t pool) {
    if (!over_quota(pool)) return true;
    const auto last = [&] {
        return matcher().priorities->ranked.at(pool, counts[pool].locked - 1);
    };
    const auto before_last = [&] { return counts[pool].locked_units - state.claims[last()].units; };
    while (before_last() > counts[pool].unallocated) {
        if (turn().full()) return false;
        lock(last(), false);
    }
    const uint32_t behind = matcher().priorities->ranked.size(pool) - counts[pool].locked;
    if (whole_slots(state.pools[pool]) == 0 || behind == 0) lock(last(), false);
    return true;
}

// S1.12.
bool Provisioning::lock_queued(uint32_t pool) {
    const Counts& now = counts[pool];
    while (!over_quota(pool) && now.locked < matcher().priorities->ranked.size(pool)) {
        if (uint64_t{now.running} + now.locked_units >= state.elastics[pool].limit) break;
        if (turn().full()) return false;
        const uint32_t claim = matcher().priorities->ranked.at(pool, now.locked);
        const bool is_there = now.unallocated >= now.locked_units + state.claims[claim].units;
        if (!is_there && (at_quota(pool) || cheapest(pool) == kNoRow)) break;
        lock(claim, true);
        if (!make_missing(pool)) return false;
    }
    return true;
}

// Not while a claim waits for which there is no worker at quota.
bool Provisioning::keep_spare(uint32_t pool, uint64_t needed) {
    const shm::ElasticRow& row = state.elastics[pool];
    const Counts& now = counts[pool];
    const auto lacks = [&] {
        const bool few = whole_slots(state.pools[pool]) < row.workers_min ||
                         now.unallocated < needed + row.spare;
        return few && uint64_t{running(pool)} + now.unallocated < row.limit;
    };
    while (lacks()) {
        if (turn().full()) return false;
        if (!create(pool, cheapest(pool), smallest_order(pool))) break;
    }
    return true;
}

void Provisioning::lock(uint32_t row, bool on) {
    const shm::ClaimRow& claim = state.claims[row];
    assert(((claim.flags & shm::ClaimFlag::kLocked) != 0) != on);
    reordered = true;
    matcher().leave_priority(row);
    put(edit().row(claim, 1).flags, claim.flags ^ shm::ClaimFlag::kLocked);
    matcher().wait_by_priority(row);
}

// S1.11, S1.34. False: none can be ordered now.
bool Provisioning::create(uint32_t pool, uint32_t type, const Requirements& wanted) {
    const shm::ElasticRow& elastic = state.elastics[pool];
    if (type == kNoRow || at_quota(pool) || turn().now_ns < elastic.throttle_until_ns) return false;
    if (elastic.creates_max != 0 && counts[pool].asked >= elastic.creates_max) {
        if (elastic.create_throttle_ns != 0) {
            const TimeNs until = sum_or_never(turn().now_ns, elastic.create_throttle_ns);
            put(edit().row(elastic, 1).throttle_until_ns, until);
        }
        return false;
    }
    if (pools().slot_rows_left(kNoRow) == 0) {
        vectors().lacked_slot_row = true;  // the pool is looked at when one comes
        return false;
    }
    const uint32_t row = slots().make_slot(pool);
    shm::SlotRow& slot = edit().row(state.slots[row], 1U << 1U);
    put(slot.type, type);
    put(slot.order, OrderState::kAsked);
    put(slot.label_set, labels_of(type));
    slots().move_slot(row, SlotState::kOrdered);
    if (has_resources(state.pools[pool])) keep_size(row, wanted);
    tell(row);
    return true;
}

// S1.36: the one that began to boot last, else the one that is idle longest; kNoRow: none.
uint32_t Provisioning::least_useful(uint32_t type) const {
    uint32_t found = kNoRow;
    for (uint32_t slot = starts_.head(type); slot != kNoRow; slot = starts_.next(slot)) {
        const bool later = found == kNoRow || state.slots[slot].number > state.slots[found].number;
        if (later) found = slot;
    }
    return found == kNoRow ? idle_.head(type) : found;
}

// Of those that a provisioner could stop.
uint32_t Provisioning::longest_idle(uint32_t pool) const {
    uint32_t found = kNoRow;
    for (const uint32_t type : types_of(pool)) {
        if (state.types[type].session == kNoRow) continue;
        uint32_t slot = idle_.head(type);
        while (slot != kNoRow && is_spoken_for(slot))
            slot = idle_.next(slot);
        if (slot == kNoRow || !dispatch().has_left(pool, type)) continue;
        const bool longer =
            found == kNoRow || state.slots[slot].idle_order < state.slots[found].idle_order;
        if (longer) found = slot;
    }
    return found;
}

// When that one is to be stopped; kNever: not as things are.
TimeNs Provisioning::stop_due(uint32_t row) const {
    if (matcher().has_labels(row) && book()->service_has_ended) return kNever;
    const uint32_t slot = longest_idle(row);
    if (slot == kNoRow) return kNever;
    if (pools().draining_alone(row)) return 0;
    const shm::PoolRow& pool = state.pools[row];
    const shm::ElasticRow& elastic = state.elastics[row];
    // Those of the first claim that is not locked, too: of several units it may be one that lacks
    // workers at quota, and what was made for it would come and go. In order of account: those that
    // claims count on.
    const uint32_t locked = counts[row].locked;
    uint32_t next = count_spoken_for(row);
    const bool has_line = !matcher().has_labels(row) && !has_resources(pool);
    if (has_line && locked < matcher().priorities->ranked.size(row)) {
        next = state.claims[matcher().priorities->ranked.at(row, locked)].units;
    }
    const bool is_few =
        dispatch().is_dispatched(row)
            ? dispatch().left(row) <= elastic.spare
            : pool.idle <= uint64_t{elastic.spare} + counts[row].locked_units + next;
    const bool needed = is_few || whole_slots(pool) - pool.drained <= elastic.workers_min;
    return needed || elastic.idle_timeout_ns == kNever
               ? kNever
               : sum_or_never(state.slots[slot].idle_since_ns, elastic.idle_timeout_ns);
}

// S1.37. What is drained is taken by no claim.
bool Provisioning::stop_idle(uint32_t pool) {
    while (stop_due(pool) <= turn().now_ns) {
        if (turn().full()) return false;
        const uint32_t slot = longest_idle(pool);
        dispatch().take_left(state.slots[slot].type);
        pools().drain_slot(slot, true);
    }
    return true;
}

// What is to stop, those that an administrator has drained, too; and orders that the provisioner
// before this one has left unanswered. Where the provisioner is away they wait for it.
bool Provisioning::tell_untold(uint32_t pool) {
    std::vector<uint32_t>& rows = turn().scratch;
    for (const uint32_t type : types_of(pool)) {
        if (state.types[type].session == kNoRow) continue;
        rows.clear();
        for (uint32_t row = untold_.head(type); row != kNoRow; row = untold_.next(row))
            rows.push_back(row);
        std::sort(rows.begin(), rows.end(), [&](uint32_t left, uint32_t right) {
            return state.slots[left].number < state.slots[right].number;
        });
        for (const uint32_t row : rows) {
            if (turn().full()) return false;
            tell(row);
        }
    }
    return true;
}

// To make it, as an order that begins now, or to stop it.
void Provisioning::tell(uint32_t row) {
    shm::SlotRow& slot = edit().row(state.slots[row], 1U << 1U | 1U << 2U);
    const shm::TypeRow& type = state.types[slot.type];
    const bool is_order = slot.state == SlotState::kOrdered;
    put(slot.stop_told, type.role);
    if (is_order) put(slot.boot_until_ns, kNever);  // anew
    slot_changes(row);
    const TimeNs boot_ns = state.elastics[slot.pool].boot_timeout_ns;
    if (is_order && boot_ns != kNever) {
        put(slot.boot_until_ns, sum_or_never(turn().now_ns, boot_ns));
        slot_changes(row);
    }
    Decision& told = turn().decide_that(is_order ? DecisionKind::kCreate : DecisionKind::kStop);
    told.session = type.session;
    told.pool = slot.pool;
    told.type = slot.type;
    told.slot_number = slot.number;
    told.id = row_id(slot.head.generation, row);
    if (!is_order || !has_resources(state.pools[slot.pool])) return;
    told.value = state.slot_vectors[row].width;
    vectors().list_part(&told, row);
}

void Provisioning::set_due(uint32_t pool) {
    const shm::ElasticRow& row = state.elastics[pool];
    TimeNs due = kNever;
    const auto look_at = [&](TimeNs instant) {
        if (instant > turn().now_ns) due = std::min(due, instant);
    };
    look_at(row.quota_until_ns);
    look_at(row.throttle_until_ns);
    look_at(row.everything_until_ns);
    look_at(row.gather_until_ns);
    if (row.overload_ns != kNever) {
        look_at(sum_or_never(sum_or_never(row.overload_ns, row.quiet_ns), 1));
    }
    for (const uint32_t type : types_of(pool)) {
        look_at(state.types[type].failed_until_ns);
        look_at(state.types[type].capacity_until_ns);
    }
    const bool is_read = !dispatch().is_dispatched(pool) || dispatch().serves(pool);
    if (is_read) look_at(stop_due(pool));
    if (!is_read) look_at(dispatch().stale_due(pool));
    if (due == kNever) return due_.remove(TimerKind::kLook, pool);
    due_.set(TimerKind::kLook, pool, due, pool);
}

bool Provisioning::run_due_timers() {
    while (next_due() <= turn().now_ns) {
        if (turn().full()) return false;
        const Timer timer = due_.first();
        if (timer.kind == TimerKind::kBoot) {
            boot_times_out(timer.row);
        } else {
            due_.remove(TimerKind::kLook, timer.row);
            turn().dirty.add(timer.row);
        }
    }
    return true;
}

}  // namespace dibs::core

// tests/naive/elastic_pass.cpp -- what a pass over an elastic pool has made and stopped, and which
// claims it locks.
//
// What names a statement is written from it, what quotes is of docs/scheduling.md: units of claims
// stand for containers, and a lock is there at once. All types suit all claims of their pool. R, I,
// M and Q are those of S1; L is the units of locked claims, F the unallocated workers.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include "tests/naive/naive_core.hpp"
#include "tests/naive/sums.hpp"

namespace dibs::naive {

using core::DecisionKind;
using shm::OrderState;

// R: leased, or parts of it are, or reserved for a claim, or a placeholder's, or its holder is
// being killed.
uint64_t NaiveCore::running_units(uint32_t pool) const {
    if (is_dispatched(pool)) {
        return static_cast<uint64_t>(
            std::count_if(m_.entries.begin(), m_.entries.end(), [&](const auto& known) {
                return known.second.pool == pool && known.second.has_process;
            }));
    }
    return static_cast<uint64_t>(
        std::count_if(m_.slots.begin(), m_.slots.end(), [&](const auto& entry) {
            const Slot& slot = entry.second;
            if (slot.pool != pool || slot.part_of) return false;
            return slot.is == SlotIs::kReserved || slot.is == SlotIs::kLeased ||
                   slot.is == SlotIs::kShared || slot.is == SlotIs::kPlaceholder ||
                   slot.holder_is_killed;
        }));
}

// I
uint64_t NaiveCore::workers(uint32_t pool) const {
    return static_cast<uint64_t>(
        std::count_if(m_.slots.begin(), m_.slots.end(), [&](const auto& entry) {
            return entry.second.pool == pool && !entry.second.part_of;
        }));
}

// Orders without an answer.
uint64_t NaiveCore::asked(uint32_t pool) const {
    return static_cast<uint64_t>(
        std::count_if(m_.slots.begin(), m_.slots.end(), [&](const auto& entry) {
            const Slot& slot = entry.second;
            return slot.pool == pool && slot.order == OrderState::kAsked;
        }));
}

// S1.31: nothing runs there, and nothing keeps it from a claim. A kept slot is one, too.
bool NaiveCore::is_unallocated(const Slot& slot) {
    if (slot.is_protected || slot.is_unqualified || slot.is_draining || slot.part_of) return false;
    if (slot.entry != 0 || slot.is_held) return false;
    const bool is_away =
        slot.is == SlotIs::kRecovering || slot.is == SlotIs::kUnknown || slot.is == SlotIs::kKept;
    return slot.is == SlotIs::kOrdered || slot.is == SlotIs::kIdle ||
           (is_away && !slot.holder_is_killed);
}

uint64_t NaiveCore::unallocated(uint32_t pool, uint32_t type) const {
    return static_cast<uint64_t>(
        std::count_if(m_.slots.begin(), m_.slots.end(), [&](const auto& entry) {
            const Slot& slot = entry.second;
            const bool is_of_it = type == shm::kNoRow || slot.type == type;
            return slot.pool == pool && is_of_it && is_unallocated(slot);
        }));
}

// The claims that wait, locked or queued, in order. S1.9: those of priority 0 are not among them.
std::vector<uint64_t> NaiveCore::in_line(uint32_t pool, bool locked) const {
    std::vector<uint64_t> numbers = order_of(pool);
    std::erase_if(numbers, [&](uint64_t number) {
        const Claim& claim = m_.claims.at(number);
        return claim.is_confirming || claim.is_locked != locked;
    });
    return numbers;
}

uint64_t NaiveCore::locked_units(uint32_t pool) const {
    uint64_t units = 0;
    for (const uint64_t number : in_line(pool, true))
        units += m_.claims.at(number).units;
    return units;
}

// S1.32: "an answer *quota* holds until there are fewer workers than then, for quota_error_ns at
// most".
bool NaiveCore::quota_is_met(uint32_t pool) const {
    const Elastic& elastic = m_.pools.at(pool).elastic;
    return elastic.quota_met && m_.now < elastic.quota_until_ns &&
           workers(pool) >= *elastic.quota_met;
}

bool NaiveCore::at_quota(uint32_t pool) const {
    return quota_is_met(pool) || workers(pool) >= m_.pools.at(pool).config.workers_max;
}

// S1.33
bool NaiveCore::at_capacity(const Type& type) const {
    return m_.now < type.capacity_until_ns ||
           m_.now < m_.pools.at(type.pool).elastic.everything_until_ns;
}

// Workers that the limit and the quota leave room for.
int64_t NaiveCore::headroom(uint32_t pool) const {
    if (at_quota(pool)) return 0;
    const auto limit = static_cast<int64_t>(m_.pools.at(pool).elastic.limit);
    const auto most = static_cast<int64_t>(m_.pools.at(pool).config.workers_max);
    const auto used = static_cast<int64_t>(running_units(pool) + unallocated(pool));
    return std::max<int64_t>(0, std::min(most - static_cast<int64_t>(workers(pool)), limit - used));
}

// S1.3 to S1.6, but for what M grows from: "the workers that have come". Within quota are those
// that have been made: "I less the unanswered orders".
void NaiveCore::adapt_limit(uint32_t pool) {
    Elastic& elastic = m_.pools.at(pool).elastic;
    const core::PoolConfig& config = m_.pools.at(pool).config;
    const uint64_t runs = running_units(pool);
    const uint64_t there = workers(pool);
    const uint64_t made = there - asked(pool);
    const uint64_t come = there - counters(pool).ordered;
    const bool is_quiet =
        elastic.overload_ns == shm::kNever || m_.now - elastic.overload_ns > config.quiet_ns;
    if (elastic.is_overload_new) {
        elastic.limit = runs > 1 ? runs - 1 : 1;
        elastic.is_overload_new = false;
    } else if (elastic.limit > 0 && is_quiet) {
        elastic.limit = std::max(elastic.limit, 11 * come / 10 + 1);
    }
    elastic.limit = std::min<uint64_t>(elastic.limit, config.workers_max);
    if (elastic.within_quota > 0 && elastic.within_quota < made) elastic.within_quota = made;
    if (at_quota(pool)) {
        if (elastic.limit == 0 || elastic.limit > there)
            elastic.limit = std::max<uint64_t>(there, 1);
        // "If it is for workers_max alone, only when all have been answered."
        if (quota_is_met(pool) || asked(pool) == 0) elastic.within_quota = made;
    } else if (elastic.within_quota > 0 && elastic.limit > elastic.within_quota + 1) {
        elastic.limit = elastic.within_quota + 1;
    }
}

// S1.30: the cheapest first, then by name.
std::vector<uint32_t> NaiveCore::types_by_cost(uint32_t pool) const {
    std::map<std::tuple<uint64_t, std::string>, uint32_t> by_cost;
    for (const auto& [place, type] : m_.types) {
        if (type.pool == pool) by_cost[{type.cost, type.name}] = place;
    }
    std::vector<uint32_t> places;
    for (const auto& [key, place] : by_cost)
        places.push_back(place);
    return places;
}

// S1.11: the first that can be made; kNoRow: there is none. S1.30: the list ends at the cheapest
// times the price factor.
uint32_t NaiveCore::cheapest(uint32_t pool) const {
    // "What is dear for an entry does not suit it": there the entry says.
    const uint64_t factor =
        is_dispatched(pool) ? 0 : m_.pools.at(pool).config.price_factor_permille;
    uint64_t least = 0;
    for (const uint32_t place : types_by_cost(pool)) {
        const Type& type = m_.types.at(place);
        if (least == 0 && !type.is_going) least = type.cost;
        if (factor != 0 && least != 0 && type.cost * 1000 > least * factor) return shm::kNoRow;
        if (can_be_made(place)) return place;
    }
    return shm::kNoRow;
}

bool NaiveCore::can_be_made(uint32_t place) const {
    const Type& type = m_.types.at(place);
    const bool has_failed = m_.now < type.failed_until_ns;
    return type.session != shm::kNoRow && !type.is_going && !has_failed && !at_capacity(type);
}

// S1.34
bool NaiveCore::create(uint32_t pool, uint32_t place, const Vector& least, uint64_t width) {
    Pool& of = m_.pools.at(pool);
    if (at_quota(pool) || place == shm::kNoRow || m_.now < of.elastic.throttle_until_ns) {
        return false;
    }
    if (of.config.creates_max != 0 && asked(pool) >= of.config.creates_max) {
        of.elastic.throttle_until_ns = later(m_.now, of.config.create_throttle_ns);
        return false;
    }
    if (slot_rows_used() >= limits_.slots) return false;
    Slot slot;
    slot.id = m_.slots_seen++;
    slot.pool = pool;
    slot.number = of.number_next++;
    slot.is = SlotIs::kOrdered;
    slot.order = OrderState::kAsked;
    slot.type = place;
    slot.labels = m_.types.at(place).labels;
    slot.capacity = usual_capacity(pool);
    slot.wanted = least;
    slot.wanted_width = width;
    m_.slots[slot.id] = slot;
    tell_to_make(m_.slots.at(slot.id));
    return true;
}

// A start of its own, whoever was told before.
void NaiveCore::tell_to_make(Slot& slot) {
    slot.is_make_told = true;
    slot.boot_until_ns = later(m_.now, m_.pools.at(slot.pool).config.boot_timeout_ns);
    core::Decision& made = tell(DecisionKind::kCreate, m_.types.at(slot.type).session);
    made.pool = slot.pool;
    made.id = slot.id;
    made.slot_number = slot.number;
    made.type = slot.type;
    made.value = slot.wanted_width;
    made.resources_begin = static_cast<uint32_t>(decided_costs_.size());
    made.resources_count = static_cast<uint32_t>(slot.wanted.size());
    decided_costs_.insert(decided_costs_.end(), slot.wanted.begin(), slot.wanted.end());
}

// S1.13: "What is locked lacks min(L, max(M - R, units of the first locked claim)) - F workers if
// M > R: they are ordered, as far as that goes."
void NaiveCore::create_missing(uint32_t pool) {
    const uint64_t limit = m_.pools.at(pool).elastic.limit;
    const uint64_t runs = running_units(pool);
    const std::vector<uint64_t> locked = in_line(pool, true);
    if (locked.empty() || limit <= runs) return;
    const uint64_t first = m_.claims.at(locked.front()).units;
    const uint64_t wanted = std::min(locked_units(pool), std::max(limit - runs, first));
    while (unallocated(pool) < wanted) {
        if (!create(pool, cheapest(pool))) return;
    }
}

// S1.15: true if claims are over quota. Those that are stand behind the first locked one for which
// there is no worker.
bool NaiveCore::unlock_over_quota(uint32_t pool) {
    const uint64_t there = unallocated(pool);
    if (!at_quota(pool) || locked_units(pool) <= there) return false;
    std::vector<uint64_t> over;
    uint64_t units = 0;
    for (const uint64_t number : in_line(pool, true)) {
        units += m_.claims.at(number).units;
        if (units > there) over.push_back(number);
    }
    const size_t in_list = over.size() + in_line(pool, false).size();
    if (workers(pool) > 0 && in_list > 1) over.erase(over.begin());
    for (const uint64_t number : over)
        m_.claims.at(number).is_locked = false;
    return true;
}

// S1.12, S1.14: true if claims are over quota.
bool NaiveCore::lock_queued(uint32_t pool) {
    const uint64_t limit = m_.pools.at(pool).elastic.limit;
    for (const uint64_t number : in_line(pool, false)) {
        Claim& claim = m_.claims.at(number);
        if (limit != 0 && running_units(pool) + locked_units(pool) >= limit) return false;
        const bool fits = unallocated(pool) >= locked_units(pool) + claim.units;
        const bool can_be_made = !at_quota(pool) && cheapest(pool) != shm::kNoRow;
        if (!fits && !can_be_made) return at_quota(pool);
        claim.is_locked = true;
        create_missing(pool);
    }
    return false;
}

// Workers that are there without claims, too.
void NaiveCore::create_spare(uint32_t pool, uint64_t needed) {
    const core::PoolConfig& config = m_.pools.at(pool).config;
    for (;;) {
        const bool too_few =
            workers(pool) < config.workers_min || unallocated(pool) < needed + config.spare;
        if (!too_few || !is_below_limit(pool)) return;
        if (!create(pool, cheapest(pool), smallest_order(pool))) return;
    }
}

bool NaiveCore::is_below_limit(uint32_t pool) const {
    const uint64_t limit = m_.pools.at(pool).elastic.limit;
    return limit == 0 || running_units(pool) + unallocated(pool) < limit;
}

// S1.37: of an order, drained, and nothing holds it.
bool NaiveCore::is_to_stop(const Slot& slot) const {
    const bool is_held = slot.is == SlotIs::kReserved || slot.is == SlotIs::kKept ||
                         slot.is == SlotIs::kLeased || slot.is == SlotIs::kShared ||
                         slot.is == SlotIs::kPlaceholder || slot.holder_is_killed;
    const auto entry = m_.entries.find(slot.entry);
    const bool has_process = entry != m_.entries.end();
    const bool may_be_well = has_process ? !entry->second.is_hopeless : slot.is == SlotIs::kUnknown;
    const bool must_wait = is_dispatched(slot.pool) && may_be_well && !slot.is_broken;
    return slot.order == OrderState::kAnnounced && slot.is_drained && !is_held && !must_wait;
}

// S1.37: those of orders that have been idle for too long, the longest idle first, "if I less the
// drained ones is above workers_min, more are idle than spare, L and the units of the first claim
// that waits and is not locked, and its type has a provisioner";
// of a pool that drains all, but where the broker alone does.
// In order of account: beside `held`, which stay.
void NaiveCore::stop_idle(uint32_t pool, const std::set<uint64_t>& held) {
    const bool has_line = !by_account(pool) && m_.pools.at(pool).vector.empty();
    const std::vector<uint64_t> queued = has_line ? in_line(pool, false) : std::vector<uint64_t>{};
    const uint64_t next = queued.empty() ? held.size() : m_.claims.at(queued.front()).units;
    for (const uint64_t id : ready_of(pool)) {
        if (held.contains(id)) continue;
        const bool is_spare =
            ready_of(pool).size() > m_.pools.at(pool).config.spare + locked_units(pool) + next;
        if (drains_alone(pool) || is_spare) stop_if_idle_too_long(m_.slots.at(id));
    }
}

// "Where the broker alone drains": not because of that.
bool NaiveCore::drains_alone(uint32_t pool) const {
    return m_.pools.at(pool).is_draining || m_.pools.at(pool).is_leaving;
}

// True: it is drained.
bool NaiveCore::stop_if_idle_too_long(Slot& slot) {
    const core::PoolConfig& config = m_.pools.at(slot.pool).config;
    if (slot.order == OrderState::kNone) return false;
    if (m_.types.at(slot.type).session == shm::kNoRow) return false;
    uint64_t drained = 0;
    for (const auto& [other, known] : m_.slots)
        drained += known.pool == slot.pool && known.is_drained;
    const bool is_too_long = config.idle_timeout_ns != shm::kNever &&
                             m_.now - slot.idle_since_ns >= config.idle_timeout_ns;
    const bool is_too_many = workers(slot.pool) - drained > config.workers_min;
    if (!drains_alone(slot.pool) && !(is_too_long && is_too_many)) return false;
    drain_slot(slot, true);
    return true;
}

// "By type in order of cost, then by number. Where the type has no provisioner it waits for one."
void NaiveCore::tell_provisioners(uint32_t pool) {
    for (const uint32_t place : types_by_cost(pool)) {
        const uint32_t provisioner = m_.types.at(place).session;
        if (provisioner == shm::kNoRow) continue;
        std::map<uint32_t, uint64_t> by_number;
        for (const auto& [id, slot] : m_.slots) {
            const bool is_to_make = slot.order == OrderState::kAsked && !slot.is_make_told;
            const bool is_news = is_to_make || (is_to_stop(slot) && !slot.is_stop_told);
            if (slot.type == place && is_news) by_number[slot.number] = id;
        }
        for (const auto& [number, id] : by_number) {
            Slot& slot = m_.slots.at(id);
            if (slot.is == SlotIs::kOrdered) {
                tell_to_make(slot);
                continue;
            }
            slot.is_stop_told = true;
            core::Decision& stop = tell(DecisionKind::kStop, provisioner);
            stop.pool = pool;
            stop.id = id;
            stop.slot_number = number;
            stop.type = place;
        }
    }
}

// Behind the service of the pool. True: "if a claim was locked or unlocked, the pass over the pool
// begins again".
bool NaiveCore::provision(uint32_t pool) {
    if (is_dispatched(pool)) {
        dispatch(pool);
        return false;
    }
    std::vector<uint64_t> locked = in_line(pool, true);
    adapt_limit(pool);
    if (!m_.pools.at(pool).vector.empty()) {
        // "Where that stopped one, orders are looked at again."
        bool has_stopped = true;
        while (has_stopped)
            has_stopped = order_and_stop(pool);
    } else {
        if (!is_draining(pool)) {
            create_missing(pool);
            if (!unlock_over_quota(pool)) {
                const bool is_over = lock_queued(pool);
                // One of several units may have met the quota with its first workers.
                if (!unlock_over_quota(pool) && !is_over) create_spare(pool, locked_units(pool));
            }
        }
        adapt_limit(pool);  // "The same again behind step 5."
        stop_idle(pool);
    }
    tell_provisioners(pool);
    std::vector<uint64_t> locked_now = in_line(pool, true);
    std::sort(locked.begin(), locked.end());
    std::sort(locked_now.begin(), locked_now.end());
    return locked_now != locked;
}

std::vector<TimeNs> NaiveCore::provision_instants() const {
    std::set<TimeNs> instants;
    for (uint32_t pool = 0; pool < m_.pools.size(); ++pool) {
        if (!is_elastic(pool)) continue;
        const Elastic& elastic = m_.pools[pool].elastic;
        const core::PoolConfig& config = m_.pools[pool].config;
        instants.insert({elastic.quota_until_ns,
                         elastic.throttle_until_ns,
                         elastic.everything_until_ns,
                         elastic.gather_until_ns});
        if (is_dispatched(pool)) instants.insert(elastic.stale_until_ns);
        if (elastic.overload_ns != shm::kNever)
            instants.insert(later(later(elastic.overload_ns, config.quiet_ns), 1));
    }
    for (const auto& [place, type] : m_.types)
        instants.insert({type.failed_until_ns, type.capacity_until_ns});
    for (const auto& [id, slot] : m_.slots) {
        if (slot.order == OrderState::kNone || !is_elastic(slot.pool)) continue;
        if (may_time_out(slot)) instants.insert(slot.boot_until_ns);
        const TimeNs span_ns = m_.pools.at(slot.pool).config.idle_timeout_ns;
        if (slot.is == SlotIs::kIdle) instants.insert(later(slot.idle_since_ns, span_ns));
    }
    std::vector<TimeNs> sorted(instants.begin(), instants.end());
    std::erase_if(sorted, [&](TimeNs at) { return at <= m_.now || at == shm::kNever; });
    return sorted;
}

// Whether a turn at that instant, without any command, tells a provisioner something, locks or
// unlocks a claim, or drains a worker.
bool NaiveCore::time_changes(TimeNs at) const {
    NaiveCore then = *this;
    then.begin_turn(at);
    then.decide();
    const bool tells = std::any_of(
        then.decisions().begin(), then.decisions().end(), [](const core::Decision& decision) {
            return decision.kind == DecisionKind::kCreate || decision.kind == DecisionKind::kStop ||
                   decision.kind == DecisionKind::kSlotGone || decision.kind >= DecisionKind::kLock;
        });
    const bool locks = std::any_of(m_.claims.begin(), m_.claims.end(), [&](const auto& entry) {
        const auto known = then.m_.claims.find(entry.first);
        return known != then.m_.claims.end() && known->second.is_locked != entry.second.is_locked;
    });
    const bool drains = std::any_of(m_.slots.begin(), m_.slots.end(), [&](const auto& entry) {
        const auto known = then.m_.slots.find(entry.first);
        return known != then.m_.slots.end() && known->second.is_drained != entry.second.is_drained;
    });
    return tells || locks || drains;
}

}  // namespace dibs::naive

// tests/naive/elastic_types.cpp -- types of workers of elastic pools, who provides them, and what
// provisioners answer.
//
// What names a statement is written from it; what quotes is of the commands' headers.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <tuple>

#include "tests/naive/labels.hpp"
#include "tests/naive/naive_core.hpp"
#include "tests/naive/sums.hpp"

namespace dibs::naive {

using core::Provisioned;
using shm::OrderState;
using shm::Reason;
using Answer = Provisioned::Answer;
using Scope = Provisioned::Scope;

namespace {

constexpr TimeNs kFirstBackoffNs = 100'000'000;
constexpr TimeNs kLongestBackoffNs = 30'000'000'000;

}  // namespace

bool NaiveCore::is_elastic(uint32_t pool) const {
    return pool_lives(pool) && m_.pools[pool].config.workers_max != 0;
}

uint32_t NaiveCore::type_named(uint32_t pool, std::string_view name) const {
    for (const auto& [place, type] : m_.types) {
        if (type.pool == pool && type.name == name) return place;
    }
    return shm::kNoRow;
}

// "Made or changed."
bool NaiveCore::set_type(const core::TypeConfig& config, std::string* /*why*/) {
    uint32_t pool = 0;
    while (pool < m_.pools.size() && (m_.pools[pool].name != config.pool || !is_elastic(pool)))
        ++pool;
    if (pool == m_.pools.size() || config.cost == 0) return false;
    if (!config.labels.empty() && (!by_account(pool) || !labels_are_sound(config.labels))) {
        return false;
    }
    uint32_t place = type_named(pool, config.name);
    if (place == shm::kNoRow && m_.types.size() >= limits_.types) return false;
    if (place == shm::kNoRow) place = m_.types_seen++;
    Type& type = m_.types[place];
    type.name = config.name;
    type.pool = pool;
    type.cost = config.cost;
    type.provider_type = config.provider_type;
    type.is_preemptible = config.preemptible;
    type.is_going = false;
    type.quota_group = config.quota_group;
    type.labels = label_set(config.labels);
    return true;
}

// "While a worker or an order of it is there: state; it goes with the last one, and none is made."
Reason NaiveCore::apply(const core::DeleteType& deleted) {
    uint32_t pool = 0;
    while (pool < m_.pools.size() && (m_.pools[pool].name != deleted.pool || !pool_lives(pool)))
        ++pool;
    if (pool == m_.pools.size()) return Reason::kUnknownPool;
    const uint32_t place = type_named(pool, deleted.name);
    if (place == shm::kNoRow) return Reason::kNotFound;
    m_.types.at(place).is_going = true;
    return type_goes(place) ? Reason::kOk : Reason::kState;
}

bool NaiveCore::type_goes(uint32_t place) {
    const bool is_used = std::any_of(m_.slots.begin(), m_.slots.end(), [&](const auto& entry) {
        return entry.second.type == place;
    });
    const bool is_wanted =
        std::any_of(m_.entries.begin(), m_.entries.end(), [&](const auto& entry) {
            return entry.second.types && entry.second.types->contains(place);
        });
    if (is_used || is_wanted || !m_.types.at(place).is_going) return false;
    m_.types.erase(place);
    return true;
}

void NaiveCore::drop_types(uint32_t pool) {
    std::erase_if(m_.types, [&](const auto& entry) { return entry.second.pool == pool; });
}

// "A session takes the role of provisioner of a type, or gives it up."
void NaiveCore::apply(const core::Provide& provide) {
    const auto tell = [&](Reason reason) {
        tell_result(provide.session, provide.user_data, reason);
    };
    if (!pool_lives(provide.pool)) return tell(Reason::kUnknownPool);
    const uint32_t place = type_named(provide.pool, provide.type);
    if (place == shm::kNoRow) return tell(Reason::kNotFound);
    Type& type = m_.types.at(place);
    const bool is_its = type.session == provide.session;
    if (provide.on && type.session != shm::kNoRow && !is_its) return tell(Reason::kNameInUse);
    if (!provide.on && !is_its) return tell(Reason::kNotHolder);
    if (provide.on && type.session == shm::kNoRow) tell_again(place);
    type.session = provide.on ? uint32_t{provide.session} : shm::kNoRow;
    tell(Reason::kOk);
}

// What the provisioner before was told to make or to stop the next one is told.
void NaiveCore::tell_again(uint32_t type) {
    for (auto& [id, slot] : m_.slots) {
        if (slot.type != type) continue;
        slot.is_make_told = false;
        slot.is_stop_told = false;
    }
}

// Its orders stay, until their boot time-out at most.
void NaiveCore::give_up_roles(uint32_t session) {
    for (auto& [place, type] : m_.types) {
        if (type.session == session) type.session = shm::kNoRow;
    }
}

Slot* NaiveCore::open_order(uint64_t order, uint32_t pool) {
    const auto found = m_.slots.find(order);
    if (found == m_.slots.end()) return nullptr;
    Slot& slot = found->second;
    return slot.is == SlotIs::kOrdered && slot.pool == pool ? &slot : nullptr;
}

// S1.32: the latch holds until there are fewer workers.
void NaiveCore::slot_count_fell(uint32_t pool) {
    Elastic& elastic = m_.pools.at(pool).elastic;
    if (elastic.quota_met && workers(pool) < *elastic.quota_met) forget_quota(pool);
}

void NaiveCore::forget_quota(uint32_t pool) {
    m_.pools.at(pool).elastic.quota_met.reset();
    m_.pools.at(pool).elastic.quota_until_ns = 0;
}

// "0: none since a lease ended."
void NaiveCore::use_ended(const Lease& lease) {
    for (const uint64_t id : lease.slots) {
        const auto its = m_.slots.find(id);
        if (its == m_.slots.end()) continue;
        const auto slot = m_.slots.find(its->second.part_of.value_or(id));
        if (slot->second.type == shm::kNoRow) continue;
        m_.types.at(slot->second.type).backoff_ns = 0;
        m_.types.at(slot->second.type).failed_until_ns = 0;
    }
}

// "not_found: no order's slot; not_holder: of a type that this session does not provide; state: of
// a worker that has come, at quota or capacity."
void NaiveCore::apply(const Provisioned& answer) {
    const auto tell = [&](Reason reason) { tell_result(answer.session, answer.user_data, reason); };
    const auto found = m_.slots.find(answer.slot);
    if (found == m_.slots.end() || found->second.order == OrderState::kNone) {
        return tell(Reason::kNotFound);
    }
    Slot& slot = found->second;
    const Type type = m_.types.at(slot.type);
    if (type.session != answer.session) return tell(Reason::kNotHolder);
    const bool has_come = slot.is != SlotIs::kOrdered;
    const bool is_limit = answer.answer == Answer::kQuota || answer.answer == Answer::kCapacity;
    if (has_come && is_limit) return tell(Reason::kState);
    tell(Reason::kOk);
    Elastic& elastic = m_.pools.at(slot.pool).elastic;
    const uint32_t pool = slot.pool;
    if (answer.answer == Answer::kOverload) {  // S1.3
        elastic.overload_ns = m_.now;
        elastic.is_overload_new = true;
        elastic.throttle_until_ns = std::max(
            elastic.throttle_until_ns, later(m_.now, m_.pools.at(pool).config.create_throttle_ns));
    }
    if (has_come) return;
    switch (answer.answer) {
        case Answer::kCreated:
            slot.order = OrderState::kCreated;
            break;
        case Answer::kOverload:
            leave(slot.id);
            break;
        case Answer::kStopped:
        case Answer::kFailed:
            order_failed(slot.id);
            break;
        case Answer::kQuota:
            leave(slot.id);
            meet_quota(pool);
            break;
        case Answer::kCapacity:
            leave(slot.id);
            meet_capacity(type, answer);
            break;
    }
}

void NaiveCore::order_failed(uint64_t id) {
    start_failed(m_.slots.at(id).type);
    leave(id);
}

// 100 ms, doubling to 30 s.
void NaiveCore::start_failed(uint32_t place) {
    Type& type = m_.types.at(place);
    type.backoff_ns =
        type.backoff_ns == 0 ? kFirstBackoffNs : std::min(2 * type.backoff_ns, kLongestBackoffNs);
    type.failed_until_ns = later(m_.now, type.backoff_ns);
}

// S1.32: n is how many there are without it. Of two that hold the smaller one is kept.
void NaiveCore::meet_quota(uint32_t pool) {
    Elastic& elastic = m_.pools.at(pool).elastic;
    const uint64_t n = workers(pool);
    if (!quota_is_met(pool) || n < *elastic.quota_met) elastic.quota_met = n;
    elastic.quota_until_ns = later(m_.now, m_.pools.at(pool).config.quota_error_ns);
}

// "A change of the pool ends each pause that goes on where one that begins now would end, if that
// is earlier."
void NaiveCore::cut_pauses(uint32_t pool) {
    const core::PoolConfig& config = m_.pools.at(pool).config;
    Elastic& elastic = m_.pools.at(pool).elastic;
    const TimeNs capacity_ns = later(m_.now, config.capacity_error_ns);
    elastic.quota_until_ns = std::min(elastic.quota_until_ns, later(m_.now, config.quota_error_ns));
    elastic.throttle_until_ns =
        std::min(elastic.throttle_until_ns, later(m_.now, config.create_throttle_ns));
    elastic.everything_until_ns = std::min(elastic.everything_until_ns, capacity_ns);
    for (auto& [place, type] : m_.types) {
        if (type.pool == pool)
            type.capacity_until_ns = std::min(type.capacity_until_ns, capacity_ns);
    }
}

// S1.33. "kQuotaGroup: those of the named group; unnamed: of the group of the order's type. kType:
// those of the same provider_type, and preemptible or not as the order's." "The order's type is in
// any case."
void NaiveCore::meet_capacity(const Type& of, const Provisioned& answer) {
    const TimeNs until = later(m_.now, m_.pools.at(of.pool).config.capacity_error_ns);
    const std::string group(answer.quota_group.empty() ? of.quota_group : answer.quota_group);
    for (auto& [place, type] : m_.types) {
        if (type.pool != of.pool) continue;
        const bool is_itself = type.name == of.name;
        bool is_meant = false;
        if (answer.scope == Scope::kQuotaGroup) {
            is_meant = is_itself || (!group.empty() && type.quota_group == group);
        } else if (answer.scope == Scope::kType) {
            const bool is_same = !of.provider_type.empty() &&
                                 type.provider_type == of.provider_type &&
                                 type.is_preemptible == of.is_preemptible;
            is_meant = is_itself || is_same;
        }
        if (is_meant) type.capacity_until_ns = until;
    }
    if (answer.scope == Scope::kEverything)
        m_.pools.at(of.pool).elastic.everything_until_ns = until;
}

// An order's in any case; a worker's unless it is drained or held.
bool NaiveCore::may_time_out(const Slot& slot) {
    return slot.is == SlotIs::kOrdered || (!slot.is_drained && !slot.is_held);
}

// "It goes on until the order's worker is idle for the first time, or drained. At it the order has
// failed; a worker that has been announced is drained."
void NaiveCore::boots_time_out() {
    std::map<std::tuple<TimeNs, uint32_t, uint32_t>, uint64_t> over;
    for (const auto& [id, slot] : m_.slots) {
        if (!may_time_out(slot) || slot.boot_until_ns > m_.now) continue;
        over[{slot.boot_until_ns, slot.pool, slot.number}] = id;
    }
    for (const auto& [due, id] : over) {
        Slot& slot = m_.slots.at(id);
        if (slot.is == SlotIs::kOrdered) {
            order_failed(id);
            continue;
        }
        slot.boot_until_ns = shm::kNever;
        start_failed(slot.type);
        drain_slot(slot, true);
    }
}

}  // namespace dibs::naive

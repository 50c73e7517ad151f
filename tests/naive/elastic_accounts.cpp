// tests/naive/elastic_accounts.cpp -- what elastic pools ordered by account have made and stopped:
// "In order of account" of docs/scheduling.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/naive/labels.hpp"
#include "tests/naive/naive_core.hpp"

namespace dibs::naive {

using shm::OrderState;

namespace {

// "With the key `*`: of all slots."
Labels counted(const Labels& labels) {
    Labels all = labels;
    all.insert("*:");
    return all;
}

}  // namespace

// "Claims are alike if they have the same account, labels, provisionable labels and units."
std::vector<std::vector<uint64_t>> NaiveCore::alike(const Pass& pass) const {
    using Kind = std::tuple<uint8_t, std::string, Labels, Labels, uint16_t>;
    std::map<Kind, std::vector<uint64_t>> kinds;
    for (const uint64_t number : pending_of(pass.pool)) {
        const Claim& claim = m_.claims.at(number);
        const auto known = pass.classes.find(number);
        if (claim.is_confirming || claim.is_promised || known == pass.classes.end()) continue;
        kinds[{known->second, claim.account, claim.base, claim.provisionable, claim.units}]
            .push_back(number);
    }
    std::map<std::pair<uint8_t, uint64_t>, std::vector<uint64_t>> in_order;
    for (const auto& [kind, numbers] : kinds)
        in_order[{std::get<0>(kind), *std::min_element(numbers.begin(), numbers.end())}] = numbers;
    std::vector<std::vector<uint64_t>> crowds;
    for (const auto& [key, numbers] : in_order)
        crowds.push_back(numbers);
    return crowds;
}

// "The idle slots that the pass holds back for the first of them", as they became idle.
std::vector<uint64_t> NaiveCore::held_for(const Pass& pass, const std::vector<uint64_t>& crowd) {
    for (const uint64_t number : crowd) {
        const auto held = pass.held_by.find(number);
        if (held != pass.held_by.end()) return held->second.slots;
    }
    return {};
}

// Whether a slot with these labels may serve the claim, beside what is on its way to its account.
bool NaiveCore::may_be_served(const Claim& claim,
                              const Labels& labels,
                              const std::vector<Labels>& coming) const {
    if (!has_all(labels, claim.base)) return false;
    const Account* account = configured(claim.account);
    if (account == nullptr) return true;
    for (const auto& [key, most] : account->label_limits) {
        for (const std::string& label : counted(labels)) {
            if (!label.starts_with(key + ":")) continue;
            int64_t count = slots_with(claim, label);
            for (const Labels& other : coming)
                count += counted(other).contains(label);
            if (count >= int64_t{most}) return false;
        }
    }
    return true;
}

// "Where the service has ended, and somebody waits, none is drained."
void NaiveCore::provision(const Pass& pass) {
    adapt_limit(pass.pool);
    std::set<uint64_t> kept = pass.held;
    const bool drains = !pass.service_is_over || counters(pass.pool).waiting == 0;
    if (!is_draining(pass.pool)) {
        AccountLook look;
        do {
            look = {};
            order_one(pass, look);
            kept.insert(look.kept.begin(), look.kept.end());
            if (look.is_over_quota && drains) stop_for_others(pass, kept);
            if (!look.is_over_quota && !look.has_ordered) {
                const uint64_t before = workers(pass.pool);
                create_spare(pass.pool, look.needed);
                look.has_ordered = workers(pass.pool) != before;
            }
            if (look.has_ordered) kept = pass.held;
        } while (look.has_ordered);
    }
    adapt_limit(pass.pool);
    if (drains) stop_idle(pass.pool, kept);
    tell_provisioners(pass.pool);
}

// What the claims lack; for the first of them that lacks one a worker is ordered. "What is ordered
// may serve a claim before it, so all are looked at again."
void NaiveCore::order_one(const Pass& pass, AccountLook& look) {
    const uint32_t pool = pass.pool;
    std::vector<uint64_t> free;
    for (const uint64_t id : ready_of(pool))
        if (!pass.held.contains(id)) free.push_back(id);
    std::map<uint32_t, uint64_t> on_their_way;
    for (const auto& [id, slot] : m_.slots) {
        const bool comes = slot.pool == pool && is_unallocated(slot) && slot.is != SlotIs::kIdle;
        if (comes && slot.promised_to == 0) on_their_way[slot.number] = id;
    }
    for (const auto& [number, id] : on_their_way)
        free.push_back(id);
    std::map<std::string, std::vector<Labels>> counted_for;
    const uint64_t limit = m_.pools.at(pool).elastic.limit;
    for (const std::vector<uint64_t>& crowd : alike(pass)) {
        const Claim& claim = m_.claims.at(crowd.front());
        std::vector<Labels>& others = counted_for[claim.account];
        const Account* account = configured(claim.account);
        auto claims = static_cast<int64_t>(crowd.size());
        if (account != nullptr && account->free_tasks_disabled)
            claims = std::min(claims, std::max<int64_t>(fanout_left(claim), 0) / claim.units);
        int64_t wanted = claims * claim.units;
        const auto takes = [&](uint64_t id) {
            const Slot& slot = m_.slots.at(id);
            if (wanted <= 0 || !may_be_served(claim, slot.labels, others)) return false;
            others.push_back(slot.labels);
            if (slot.is == SlotIs::kIdle) look.kept.insert(id);
            --wanted;
            ++look.needed;
            return true;
        };
        for (const uint64_t id : held_for(pass, crowd))
            takes(id);
        std::erase_if(free, takes);
        if (wanted <= 0 || running_units(pool) + look.needed >= limit) continue;
        const uint32_t type = cheapest_for(claim, others);
        if (type == shm::kNoRow) continue;
        look.is_over_quota = at_quota(pool);
        if (!look.is_over_quota) look.has_ordered = create(pool, type);
        if (look.is_over_quota || look.has_ordered) return;
    }
}

// "With price_factor_permille it is the cheapest type with their base labels that sets the price."
uint32_t NaiveCore::cheapest_for(const Claim& claim, const std::vector<Labels>& others) const {
    const uint64_t factor = m_.pools.at(claim.pool).config.price_factor_permille;
    uint64_t least = 0;
    for (const uint32_t place : types_by_cost(claim.pool)) {
        const Type& known = m_.types.at(place);
        if (known.is_going || !has_all(known.labels, claim.base)) continue;
        if (least == 0) least = known.cost;
        const bool is_dear = factor != 0 && known.cost * 1000 > least * factor;
        if (!is_dear && can_be_made(place) && may_be_served(claim, known.labels, others))
            return place;
    }
    return shm::kNoRow;
}

// S1.16: "of each type the worker that is idle longest, not while one of the type is going, nor one
// that a claim counts on."
void NaiveCore::stop_for_others(const Pass& pass, const std::set<uint64_t>& kept) {
    for (const uint32_t place : types_by_cost(pass.pool)) {
        const bool one_goes = std::any_of(m_.slots.begin(), m_.slots.end(), [&](const auto& entry) {
            const Slot& slot = entry.second;
            return slot.type == place && slot.order == OrderState::kAnnounced && slot.is_drained;
        });
        if (one_goes || m_.types.at(place).session == shm::kNoRow) continue;
        for (const uint64_t id : ready_of(pass.pool)) {
            Slot& slot = m_.slots.at(id);
            if (slot.type != place || slot.order != OrderState::kAnnounced) continue;
            if (!kept.contains(id)) drain_slot(slot, true);
            break;
        }
    }
}

}  // namespace dibs::naive

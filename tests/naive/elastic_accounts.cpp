// tests/naive/elastic_accounts.cpp -- what elastic pools ordered by account have made and stopped:
// "In order of account" of docs/scheduling.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
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

void NaiveCore::provision(const Pass& pass) {
    adapt_limit(pass.pool);
    if (!is_draining(pass.pool)) provision_accounts(pass);
    adapt_limit(pass.pool);
    stop_idle(pass.pool, pass.held);
    tell_provisioners(pass.pool);
}

void NaiveCore::provision_accounts(const Pass& pass) {
    const uint32_t pool = pass.pool;
    std::map<Labels, uint64_t> on_their_way;
    for (const auto& [id, slot] : m_.slots) {
        const bool comes = slot.pool == pool && is_unallocated(slot) && slot.is != SlotIs::kIdle;
        if (comes && slot.promised_to == 0) ++on_their_way[slot.labels];
    }
    std::map<std::string, std::vector<Labels>> coming_to;
    const uint64_t limit = m_.pools.at(pool).elastic.limit;
    uint64_t needed = 0;
    for (const std::vector<uint64_t>& crowd : alike(pass)) {
        const Claim& claim = m_.claims.at(crowd.front());
        std::vector<Labels>& coming = coming_to[claim.account];
        const Account* account = configured(claim.account);
        auto claims = static_cast<int64_t>(crowd.size());
        if (account != nullptr && account->free_tasks_disabled)
            claims = std::min(claims, std::max<int64_t>(fanout_left(claim), 0) / claim.units);
        int64_t wanted = claims * claim.units;
        for (const uint64_t id : held_for(pass, crowd)) {
            const Labels& labels = m_.slots.at(id).labels;
            if (wanted <= 0 || !may_be_served(claim, labels, coming)) continue;
            coming.push_back(labels);
            --wanted;
            ++needed;
        }
        for (auto& [labels, number] : on_their_way) {
            for (; wanted > 0 && number > 0 && may_be_served(claim, labels, coming); --wanted) {
                coming.push_back(labels);
                --number;
                ++needed;
            }
        }
        for (; wanted > 0 && running_units(pool) + needed < limit; --wanted) {
            uint32_t type = shm::kNoRow;
            uint64_t least = 0;
            for (const uint32_t place : types_by_cost(pool)) {
                const Type& known = m_.types.at(place);
                if (known.is_going || !has_all(known.labels, claim.base)) continue;
                if (least == 0) least = known.cost;
                const uint64_t factor = m_.pools.at(pool).config.price_factor_permille;
                const bool is_dear = factor != 0 && known.cost * 1000 > least * factor;
                const bool fits =
                    !is_dear && can_be_made(place) && may_be_served(claim, known.labels, coming);
                if (fits && type == shm::kNoRow) type = place;
            }
            if (type == shm::kNoRow) break;
            if (at_quota(pool)) return stop_for_others(pass);
            if (!create(pool, type)) break;
            coming.push_back(m_.types.at(type).labels);
            ++needed;
        }
    }
    create_spare(pool, needed);
}

// S1.16: "of each type the worker that is idle longest, not while one of the type is going, nor one
// that a claim holds back."
void NaiveCore::stop_for_others(const Pass& pass) {
    for (const uint32_t place : types_by_cost(pass.pool)) {
        const bool one_goes = std::any_of(m_.slots.begin(), m_.slots.end(), [&](const auto& entry) {
            const Slot& slot = entry.second;
            return slot.type == place && slot.order == OrderState::kAnnounced && slot.is_drained;
        });
        if (one_goes || m_.types.at(place).session == shm::kNoRow) continue;
        for (const uint64_t id : ready_of(pass.pool)) {
            Slot& slot = m_.slots.at(id);
            if (slot.type != place || slot.order != OrderState::kAnnounced) continue;
            if (!pass.held.contains(id)) drain_slot(slot, true);
            break;
        }
    }
}

}  // namespace dibs::naive

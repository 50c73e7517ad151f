// tests/naive/account_pass.cpp -- "The pass over a pool ordered by account" of docs/scheduling.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>
#include <utility>

#include "tests/naive/labels.hpp"
#include "tests/naive/naive_core.hpp"

namespace dibs::naive {

using core::Decision;
using core::DecisionKind;

namespace {

constexpr int64_t kMillion = 1'000'000;

// Whole units of a part of the rate.
int64_t units_of(int64_t net) {
    return (net + kMillion - 1) / kMillion;
}

}  // namespace

// "Free if its account is not configured or its remaining fan-out is ≤ 0, else its account's best
// class": the first with a balance above 0, else free. S2.7, S2.8
uint8_t NaiveCore::class_of(const Claim& claim) const {
    const Account* account = configured(claim.account);
    if (account == nullptr || fanout_left(claim) <= 0) return kFreeClass;
    for (uint8_t at = 0; at < shm::kClasses; ++at) {
        if (account->balance[at] > 0) return at;
    }
    return kFreeClass;
}

void NaiveCore::pass_by_account(uint32_t row) {
    const bool another_comes_again = std::exchange(m_.pass_once_more, false);
    hand_over_held(row);
    Pass pass;
    pass.pool = row;
    for (const uint64_t number : pending_of(row)) {
        const Claim& claim = m_.claims.at(number);
        if (claim.is_confirming || claim.is_promised) continue;
        const uint8_t at = class_of(claim);
        const Account* account = configured(claim.account);
        const bool is_left_out =
            at == kFreeClass && account != nullptr && account->free_tasks_disabled;
        if (!is_left_out) pass.classes[number] = at;
    }
    for (uint8_t at = 0; at < shm::kClasses; ++at) {
        match(pass, at, true);
        match(pass, at, false);
        reprioritise(row, at);
        if (!m_.pools.at(row).config.preemption_disabled) preempt_at(pass, at);
        spill_to_free(pass, at);
    }
    match(pass, kFreeClass, true);
    match(pass, kFreeClass, false);
    for (const auto& [number, held] : pass.held_by)
        pass.kept_in_vain = pass.kept_in_vain || holds_in_vain(number, held);
    for (const uint64_t number : pending_of(row)) {
        const Claim& claim = m_.claims.at(number);
        const bool waits = !claim.is_confirming && !claim.is_promised;
        if (waits && claim.is_impatient) reject_impatient(number);
    }
    const bool again = pass.kept_in_vain && counters(row).waiting != 0;
    if (counters(row).waiting == 0) pass.held.clear();
    m_.pass_once_more = m_.pass_once_more || again;
    if (!m_.pass_once_more && is_elastic(row)) provision(pass);
    m_.pass_once_more = m_.pass_once_more || another_comes_again;
}

// "The claims of class p in order of (quality, higher first; number)", those that still wait.
std::vector<uint64_t> NaiveCore::list_of(const Pass& pass, uint8_t at) const {
    std::vector<std::tuple<int64_t, uint64_t>> order;
    for (const auto& [number, of] : pass.classes) {
        const auto claim = m_.claims.find(number);
        if (of != at || claim == m_.claims.end()) continue;
        if (claim->second.is_confirming || claim->second.is_promised) continue;
        order.emplace_back(-static_cast<int64_t>(claim->second.base.size()), number);
    }
    std::sort(order.begin(), order.end());
    std::vector<uint64_t> numbers;
    for (const auto& [quality, number] : order)
        numbers.push_back(number);
    return numbers;
}

bool NaiveCore::can_use(const Pass& pass, const Claim& claim, uint64_t id, bool provisioned) const {
    const Slot& slot = m_.slots.at(id);
    return !pass.held.contains(id) && !pass.held_in_step.contains(id) &&
           has_all(slot.labels, claim.base) &&
           (!provisioned || has_all(slot.labels, claim.provisionable));
}

// Steps 1 and 2. "A claim of u units takes the first u idle slots that can serve it … It is skipped
// if its remaining fan-out is < u, or if there are not u such slots." "A claim of several units
// that finds some slots but too few holds back every idle slot that it could use."
void NaiveCore::match(Pass& pass, uint8_t at, bool provisioned) {
    pass.held_in_step.clear();
    for (const uint64_t number : list_of(pass, at)) {
        if (pass.service_is_over) return;
        const Claim& claim = m_.claims.at(number);
        if (at < kFreeClass && fanout_left(claim) < int64_t{claim.units}) continue;
        std::vector<uint64_t> found;
        std::vector<uint64_t> could_use;
        for (const uint64_t id : ready_of(pass.pool)) {
            if (!can_use(pass, claim, id, provisioned)) continue;
            if (within_limits(claim, id, {})) could_use.push_back(id);
            if (found.size() < claim.units && within_limits(claim, id, found)) found.push_back(id);
        }
        if (found.size() == claim.units) {
            serve_with(pass, number, found, at);
        } else if (!limits_stop(claim, found)) {
            (provisioned ? pass.held_in_step : pass.held)
                .insert(could_use.begin(), could_use.end());
            if (could_use.empty()) continue;
            if (claim.is_impatient) pass.kept_in_vain = true;
            if (!provisioned) pass.held_by[number] = {at, could_use};
        }
    }
    pass.held_in_step.clear();
}

// "Or one that still waits would not hold back what it has held back in step 2, but less, or could
// be served." Nobody else has had these slots meanwhile.
bool NaiveCore::holds_in_vain(uint64_t number, const Pass::Held& held) const {
    const auto at = m_.claims.find(number);
    if (at == m_.claims.end() || at->second.is_confirming || at->second.is_promised) return false;
    const Claim& claim = at->second;
    if (held.at_class < kFreeClass && fanout_left(claim) < int64_t{claim.units}) return true;
    std::vector<uint64_t> found;
    for (const uint64_t id : held.slots) {
        if (!within_limits(claim, id, {})) return true;
        if (found.size() < claim.units && within_limits(claim, id, found)) found.push_back(id);
    }
    return found.size() == claim.units || limits_stop(claim, found);
}

// "It holds back nothing where its label limits, not what is idle, leave it too few: beside what it
// found, it may have too few of the pool's other slots with its base labels, idle or not, taken in
// order of their lists of labels."
bool NaiveCore::limits_stop(const Claim& claim, const std::vector<uint64_t>& found) const {
    std::map<Labels, std::vector<uint64_t>> others;
    for (const auto& [id, slot] : m_.slots) {
        const bool is_found = std::count(found.begin(), found.end(), id) != 0;
        if (slot.pool != claim.pool || is_found || !has_all(slot.labels, claim.base)) continue;
        others[slot.labels].push_back(id);
    }
    std::vector<uint64_t> may_have = found;
    bool refused = false;
    for (const auto& [labels, slots] : others) {
        for (const uint64_t id : slots) {
            if (may_have.size() == claim.units) return false;
            const bool is_allowed = within_limits(claim, id, may_have);
            if (is_allowed) may_have.push_back(id);
            refused = refused || !is_allowed;
        }
    }
    return refused && may_have.size() < claim.units;
}

// "Where no lease row is left, or unconfirmed_max would be passed, the service of the pool ends for
// this pass."
void NaiveCore::serve_with(Pass& pass,
                           uint64_t number,
                           const std::vector<uint64_t>& slots,
                           uint8_t at) {
    const auto asked =
        static_cast<uint64_t>(std::count_if(slots.begin(), slots.end(), [&](uint64_t id) {
            return m_.slots.at(id).session != shm::kNoRow;
        }));
    const bool asks_too_many = asked != 0 && !may_ask(pass.pool, asked);
    if (lease_rows_free() == 0 || asks_too_many) {
        pass.service_is_over = true;
        pass.kept_in_vain = pass.kept_in_vain || m_.claims.at(number).is_impatient;
        return;
    }
    Claim& claim = m_.claims.at(number);
    claim.slots = slots;
    claim.served_class = at;
    if (asked == 0) {
        grant(number);
    } else {
        reserve(number);
    }
}

// Step 3, "in order of accounts (configured ones): let n = rate[p] − 10⁶ · running(p)".
void NaiveCore::reprioritise(uint32_t pool, uint8_t at) {
    const core::PoolConfig& config = m_.pools.at(pool).config;
    std::map<uint32_t, const Account*> by_place;
    for (const auto& [name, account] : m_.accounts) {
        if (account.is_configured) by_place[account.place] = &account;
    }
    for (const auto& [place, account] : by_place) {
        const int64_t net = account->rate[at] - kMillion * running(account->name, at);
        if (account->balance[at] < config.demote_threshold && net < 0) {
            demote(pool, *account, at, units_of(-net));
        } else if (account->balance[at] > config.promote_threshold && net > 0) {
            promote(pool, *account, at, units_of(net));
        }
    }
}

void NaiveCore::demote(uint32_t pool, const Account& account, uint8_t at, int64_t units) {
    std::map<std::tuple<Money, uint32_t>, uint64_t> cheapest_first;
    for (const auto& [number, lease] : m_.leases) {
        if (lease.pool != pool || lease.was.account != account.name) continue;
        if (lease.account_class != at || lease.is_revoking) continue;
        cheapest_first[{lease.cost, m_.slots.at(lease.slots.front()).number}] = number;
    }
    for (const auto& [order, number] : cheapest_first) {
        if (units <= 0) return;
        Lease& lease = m_.leases.at(number);
        units -= static_cast<int64_t>(lease.slots.size());
        move_lease(lease, static_cast<uint8_t>(at + 1));
    }
}

// "Ties: the lower number of its first slot first", of the most expensive ones too.
void NaiveCore::promote(uint32_t pool, const Account& account, uint8_t at, int64_t units) {
    std::map<std::tuple<Money, int64_t>, uint64_t> cheapest_first;
    for (const auto& [number, lease] : m_.leases) {
        if (lease.pool != pool || lease.was.account != account.name) continue;
        if (lease.account_class <= at || lease.is_revoking) continue;
        const int64_t slot = m_.slots.at(lease.slots.front()).number;
        cheapest_first[{lease.cost, -slot}] = number;
    }
    for (auto entry = cheapest_first.rbegin(); entry != cheapest_first.rend(); ++entry) {
        if (units <= 0) return;
        Lease& lease = m_.leases.at(entry->second);
        if (promotion_is_barred(lease)) continue;
        units -= static_cast<int64_t>(lease.slots.size());
        move_lease(lease, at);
    }
}

void NaiveCore::move_lease(Lease& lease, uint8_t to) {
    const bool is_promotion = to < lease.account_class;
    Decision& moved =
        tell(is_promotion ? DecisionKind::kPromote : DecisionKind::kDemote, shm::kNoRow);
    moved.claim = lease.claim;
    moved.pool = lease.pool;
    moved.slot_number = m_.slots.at(lease.slots.front()).number;
    moved.account = m_.accounts.at(lease.was.account).place;
    moved.from_class = lease.account_class;
    moved.to_class = to;
    lease.account_class = to;
}

// Step 5: "claims of class p that still wait and whose remaining fan-out is below their units are
// of class free from here on, unless free_tasks_disabled."
void NaiveCore::spill_to_free(Pass& pass, uint8_t at) {
    for (const uint64_t number : list_of(pass, at)) {
        const Claim& claim = m_.claims.at(number);
        const Account* account = configured(claim.account);
        const bool throttled = fanout_left(claim) < int64_t{claim.units};
        if (throttled && !account->free_tasks_disabled) pass.classes[number] = kFreeClass;
    }
}

}  // namespace dibs::naive

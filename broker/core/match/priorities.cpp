// broker/core/match/priorities.cpp -- orders a pool's waiting claims by their priority.
//
// Such a pool is passed as one in order of arrival is: claims stand in its backlog by number, which
// says who waited longest, and in a second order that says who is next. A claim of priority 0 is
// held: it waits and stands in the first order alone, until its priority changes (S1.9).
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/match/priorities.hpp"

#include <memory>
#include <string>
#include <vector>

#include "broker/core/parts.hpp"

namespace dibs::core {

namespace {

bool is_held(const shm::ClaimRow& claim) {
    return claim.priority < 1;
}

}  // namespace

void Matcher::open_priorities() {
    if (!priorities) priorities = std::make_unique<Priorities>(state);
}

// An accepted claim has its row.
void Matcher::list_number(uint32_t row) {
    priorities->claim_by_number.insert(number_hash(state.claims[row].arrival), row);
}

// Its row was there when this core began.
void Matcher::claim_is_found(uint32_t row) {
    const shm::ClaimRow& claim = state.claims[row];
    if (!by_priority(claim.pool)) return;
    list_number(row);
    if (claim.state == shm::ClaimState::kWaiting) wait_by_priority(row);
}

void Matcher::forget_number(uint32_t row) {
    priorities->claim_by_number.remove(number_hash(state.claims[row].arrival), row);
}

// A claim that waits or confirms: its row, or kNoRow.
uint32_t Matcher::find_ranked(uint64_t number) const {
    if (!priorities) return kNoRow;
    return priorities->claim_by_number.find(
        number_hash(number), [&](uint32_t row) { return state.claims[row].arrival == number; });
}

void Matcher::wait_by_priority(uint32_t row) {
    const shm::ClaimRow& claim = state.claims[row];
    assert(claim.state == shm::ClaimState::kWaiting);
    if (is_held(claim)) return;
    priorities->ranked.insert(claim.pool, row, priorities->order());
    provisioning().count_locked(row, true);
}

void Matcher::leave_priority(uint32_t row) {
    const shm::ClaimRow& claim = state.claims[row];
    assert(claim.state == shm::ClaimState::kWaiting);
    if (is_held(claim)) return;
    priorities->ranked.remove(claim.pool, row, priorities->order());
    provisioning().count_locked(row, false);
}

uint32_t Matcher::best_by_priority(uint32_t pool) const {
    return priorities->ranked.first(pool);
}

// How many are served before it: if it is held, all that are not.
uint32_t Matcher::ahead_by_priority(uint32_t row) const {
    return priorities->ranked.rank(state.claims[row].pool, row, priorities->order());
}

// A confirming claim keeps its slots whatever its new priority is, and waits by that one again.
void Matcher::change_priority(uint32_t row, int32_t priority) {
    shm::ClaimRow& claim = edit().row(state.claims[row], 1U << 1U);
    assert(claim.state != shm::ClaimState::kFree && by_priority(claim.pool));
    const bool waits = claim.state == shm::ClaimState::kWaiting;
    if (waits) leave_priority(row);
    put(claim.priority, priority);
    if (is_held(claim)) put(claim.flags, claim.flags & ~uint32_t{shm::ClaimFlag::kLocked});
    if (!waits) return;
    wait_by_priority(row);
    touch(claim.pool);
}

// The order holds what waits and is not held, each number finds its row.
void Matcher::check_priorities(std::vector<std::string>* wrongs) const {
    if (!priorities) return;
    std::vector<uint32_t> ranked(state.pools.size());
    size_t numbers = 0;
    for (uint32_t row = 0; row < state.claims.size(); ++row) {
        const shm::ClaimRow& claim = state.claims[row];
        if (claim.state == shm::ClaimState::kFree || !by_priority(claim.pool)) continue;
        ++numbers;
        if (find_ranked(claim.arrival) != row) {
            wrongs->push_back("claim " + std::to_string(claim.arrival) +
                              ": its number is not listed");
        }
        if (claim.state == shm::ClaimState::kWaiting && !is_held(claim)) ++ranked[claim.pool];
    }
    if (numbers != priorities->claim_by_number.size()) {
        wrongs->push_back("numbers of claims are listed that are not there");
    }
    for (uint32_t pool = 0; pool < state.pools.size(); ++pool) {
        if (priorities->ranked.size(pool) == ranked[pool]) continue;
        wrongs->push_back("pool " + std::to_string(pool) + ": the order by priority differs");
    }
}

}  // namespace dibs::core

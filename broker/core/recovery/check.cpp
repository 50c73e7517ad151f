// broker/core/recovery/check.cpp -- checks the core's invariants, over rows and derived data.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/recovery/check.hpp"

#include <algorithm>

namespace dibs::core {

using shm::ClaimState;
using shm::LeaseState;
using shm::SessionState;
namespace SlotFlag = shm::SlotFlag;

namespace {

template <class Row>
void check_free_list(
    Wrongs* wrongs, const char* table, const Rows<Row>& rows, uint32_t head, uint32_t count) {
    uint32_t found = 0;
    uint32_t row = head;
    for (; row != kNoRow && found < rows.size(); row = rows[row].head.free_next) {
        if (row >= rows.size()) break;
        rows.fetch(row + kCheckAhead);  // what was never in use stands in its order
        expect(wrongs, static_cast<int>(rows[row].state) == 0, [&] {
            return std::string{table} + " row " + std::to_string(row) + " is free and in use";
        });
        ++found;
    }
    expect(
        wrongs, row == kNoRow, [&] { return std::string{table} + ": the free list does not end"; });
    expect_count(
        wrongs, [&] { return std::string{table} + " free rows"; }, found, count);
}

}  // namespace

void Check::free_lists(bool but_claims) {
    const shm::CountersRow& counters = *state_.counters;
    check_free_list(&wrongs_, "slot", state_.slots, counters.slots_free_head, counters.slots_free);
    if (!but_claims) {
        check_free_list(
            &wrongs_, "claim", state_.claims, counters.claims_free_head, counters.claims_free);
    }
    check_free_list(
        &wrongs_, "lease", state_.leases, counters.leases_free_head, counters.leases_free);
    check_free_list(
        &wrongs_, "session", state_.sessions, counters.sessions_free_head, counters.sessions_free);
}

// A free list that ends after as many rows as are counted has named so many rows, each of them
// free: once all rows in use have been met, what follows in the table has been looked at already.
uint64_t Check::rows_in_use(uint64_t rows, uint64_t free) const {
    return wrongs_.empty() && free <= rows ? rows - free : rows;
}

// Whatever is not free was met on the way through its table.
void Check::live_rows() {
    const shm::CountersRow& counters = *state_.counters;
    const auto expect_rows = [&](const char* table, uint64_t live, uint64_t free, uint64_t rows) {
        expect_count(
            &wrongs_, [&] { return std::string{table} + " rows"; }, live + free, rows);
    };
    expect_rows("slot", counts_.live_slots, counters.slots_free, state_.slots.size());
    expect_rows("claim", live_claims_.size(), counters.claims_free, state_.claims.size());
    expect_rows("lease", counts_.live_leases, counters.leases_free, state_.leases.size());
    uint64_t sessions = 0;
    for (uint32_t row = 0; row < state_.sessions.size(); ++row)
        sessions += state_.sessions[row].state != SessionState::kFree ? 1 : 0;
    expect_rows("session", sessions, counters.sessions_free, state_.sessions.size());
}

void Check::begin(Seen seen) {
    free_lists(seen.free_claims);
}

void Check::tags(uint32_t begin, uint32_t end) {
    for (uint32_t row = begin; row < end; ++row) {
        const shm::LeaseRow& lease = state_.leases[row];
        if (lease.state == LeaseState::kFree || lease.session >= state_.sessions.size()) continue;
        const std::vector<uint32_t>& tags = parts_.tags[lease.session];
        expect(&wrongs_,
               lease.tag < tags.size() && tags[lease.tag] == (row | Core::Parts::kTagLease),
               [&] {
                   return "lease of claim " + std::to_string(lease.arrival) +
                          " is not under its tag";
               });
    }
}

Wrongs Check::finish(RowCounts counts) {
    counts_ = std::move(counts);
    for (const std::string& wrong : counts_.wrongs)
        expect(&wrongs_, false, [&] { return wrong; });
    leased_slots();
    claims();
    live_rows();
    if (!wrongs_.empty()) return wrongs_;  // lists of broken rows may not end
    pools();
    sessions();
    arena();
    derived();
    if (parts_.book) {
        const Wrongs more = parts_.check_accounts();
        wrongs_.insert(wrongs_.end(), more.begin(), more.end());
    }
    return wrongs_;
}

void Check::claims() {
    const uint64_t rows = rows_in_use(state_.claims.size(), state_.counters->claims_free);
    for (uint32_t row = 0; row < state_.claims.size() && live_claims_.size() < rows; ++row) {
        const shm::ClaimRow& claim = state_.claims[row];
        if (claim.state == ClaimState::kFree) continue;
        live_claims_.push_back(row);
        const auto who = [&] { return "claim " + std::to_string(claim.arrival); };
        if (claim.pool >= counts_.census.size() || claim.session >= state_.sessions.size()) {
            wrongs_.push_back(who() + " names a pool or session that is not there");
            continue;
        }
        expect(&wrongs_, claim.arrival < state_.counters->arrival_next, [&] {
            return who() + " is from the future";
        });
        if (claim.state == ClaimState::kRunning) {  // its lease stands for it
            expect(&wrongs_, parts_.by_account(claim.pool), [&] {
                return who() + " runs in a pool without accounts";
            });
            expect(&wrongs_, claim.deadline_ns == kNever, [&] {
                return who() + " runs and has a deadline";
            });
            expect(&wrongs_, claim.first_slot == kNoRow, [&] {
                return who() + " runs and holds slots beside its lease";
            });
            continue;
        }
        ++counts_.held_by[claim.session].claims;
        expect(&wrongs_,
               parts_.tags[claim.session].size() > claim.tag &&
                   parts_.tags[claim.session][claim.tag] == row,
               [&] { return who() + " is not under its tag"; });
        if (claim.deadline_ns != kNever) ++counts_.timers_wanted;
        if (key_given(claim.key)) ++counts_.keys_wanted;
        Census& census = counts_.census[claim.pool];
        if (claim.state == ClaimState::kPromised) {
            ++census.waiting;
            ++promised_;
            continue;
        }
        if (claim.state == ClaimState::kWaiting) {
            ++census.waiting;
            expect(&wrongs_, claim.first_slot == kNoRow, [&] {
                return who() + " waits and holds slots";
            });
            continue;
        }
        ++census.confirming;
        ++counts_.timers_wanted;
        uint32_t confirmed = 0;
        const uint32_t length =
            chain_length(state_, claim.first_slot, row, SlotState::kReserved, &confirmed);
        expect_count(
            &wrongs_, [&] { return who() + " reserved slots"; }, length, claim.units);
        expect_count(
            &wrongs_, [&] { return who() + " confirmed slots"; }, confirmed, claim.confirmed);
        const bool is_over = parts_.now_ns > claim.deadline_ns;  // its timer is on its way
        expect(&wrongs_, confirmed < claim.units || is_over, [&] {
            return who() + " is confirmed by all and not granted";
        });
        census.unconfirmed += uint32_t{claim.units} - claim.confirmed;
    }
}

void Check::leased_slots() {
    for (uint32_t pool = 0; pool < counts_.leased.size(); ++pool) {
        expect_count(
            &wrongs_,
            [&] { return name_of(state_.pools[pool]) + " slots under leases"; },
            counts_.leased[pool],
            counts_.census[pool].by_state[static_cast<size_t>(SlotState::kLeased)] +
                counts_.census[pool].killed);
    }
}

void Check::sessions() {
    for (uint32_t row = 0; row < counts_.held_by.size(); ++row) {
        const Held& held = counts_.held_by[row];
        const shm::SessionRow& session = state_.sessions[row];
        const auto who = [&] { return "session row " + std::to_string(row); };
        if (session.state == SessionState::kFree) {
            expect(&wrongs_, held.claims + held.leases + held.slots == 0, [&] {
                return who() + " is free and holds something";
            });
            continue;
        }
        expect_count(
            &wrongs_, [&] { return who() + " claims"; }, held.claims, session.claims);
        expect_count(
            &wrongs_, [&] { return who() + " leases"; }, held.leases, session.leases);
        expect_count(
            &wrongs_, [&] { return who() + " slots"; }, held.slots, session.slots);
        uint64_t used = 0;
        for (const uint32_t tag : parts_.tags[row])
            used += tag != Core::Parts::kTagFree ? 1 : 0;
        expect_count(
            &wrongs_, [&] { return who() + " tags"; }, used, uint64_t{held.claims} + held.leases);
    }
}

void Check::derived() {
    uint64_t confirming = 0;
    for (const Census& census : counts_.census)
        confirming += census.confirming;
    expect_count(
        &wrongs_,
        [] { return std::string("confirming claims"); },
        confirming + promised_,
        parts_.confirming_total);
    expect_count(
        &wrongs_,
        [] { return std::string("timers"); },
        counts_.timers_wanted,
        parts_.timers.size());
    expect_count(
        &wrongs_,
        [] { return std::string("kept slots"); },
        counts_.kept_wanted,
        parts_.kept_slots.size());
    expect_count(
        &wrongs_, [] { return std::string("keys"); }, counts_.keys_wanted, parts_.keys.size());
    expect_count(
        &wrongs_,
        [] { return std::string("slot names"); },
        counts_.names_wanted,
        parts_.names.size());
}

std::vector<std::string> Core::Parts::check_all() const {
    return Check{*this}.run();
}

}  // namespace dibs::core

// broker/core/recovery/check.cpp -- checks all rows at once, or some between two turns of a broker.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include "broker/core/ledger/invariants.hpp"
#include "broker/core/match/invariants.hpp"
#include "broker/core/recovery/invariants.hpp"
#include "broker/core/recovery/soundness.hpp"

namespace dibs::core {

namespace {

// As many rows of slots and leases at a time: each look asks memory for the next ones.
template <class Look>
std::string in_pieces(const State& state, const Look& look) {
    const uint32_t rows = std::max(state.slots.size(), state.leases.size());
    std::string unsound;
    for (uint32_t row = 0; row < rows && unsound.empty(); row += Core::kRowsAtOnce)
        unsound = look(row, row + Core::kRowsAtOnce);
    return unsound;
}

}  // namespace

// How many stand in their list, each of them free; kNoRow: it does not end, or not so.
uint32_t Soundness::free_claims() const {
    const Rows<shm::ClaimRow>& rows = state_.claims;
    uint32_t count = 0;
    for (uint32_t row = state_.counters->claims_free_head; row != kNoRow; ++count) {
        if (row >= rows.size() || count == rows.size()) return kNoRow;
        rows.fetch(row + kCheckAhead);  // what was never in use stands in its order
        if (rows[row].state != shm::ClaimState::kFree) return kNoRow;
        row = rows[row].head.free_next;
    }
    return count;
}

std::string rows_refusal(std::span<std::byte> bytes) {
    State state{bytes};
    std::string found = Soundness::log(state);
    Soundness soundness(state);
    if (found.empty()) found = soundness.tables();
    if (found.empty())
        found = in_pieces(state, [&](auto... some) { return soundness.rows(some...); });
    return found.empty() ? soundness.lists() : found;
}

std::vector<std::string> Core::Parts::check_all() const {
    Soundness soundness(state);
    RowLook look(state, now_ns);
    std::string unsound = soundness.tables();
    if (unsound.empty())
        unsound = in_pieces(state, [&](auto... some) { return look.piece(some...); });
    if (unsound.empty()) unsound = soundness.ready_queues();
    if (!unsound.empty()) return {std::move(unsound)};
    Invariants invariants(*this);
    invariants.leases(0, state.leases.size());
    Wrongs wrongs = invariants.check(std::move(look.counts()), soundness.free_claims_sound());
    if (wrongs.empty()) check_priorities(&wrongs);
    if (wrongs.empty()) check_gangs(&wrongs);
    if (wrongs.empty()) Provisioning::check(&wrongs);
    if (wrongs.empty()) Dispatch::check(&wrongs);
    return wrongs;
}

// The cursor counts over the tables. A slice needs no sum over a table.
std::vector<std::string> Core::check_slice(uint64_t* cursor, uint32_t rows) const {
    const Parts& parts = *parts_;
    const State& state = parts.state;
    const Soundness soundness(state);
    Wrongs wrongs;
    const RowInvariants of_rows{state, parts.now_ns, &wrongs};
    const DerivedInvariants derived{parts, &wrongs};
    const auto is_sound = [&](std::string unsound) {
        if (unsound.empty()) return true;
        wrongs.push_back(std::move(unsound));
        return false;
    };
    const auto look = [&](size_t table, uint32_t row) {
        if (table == 0 && is_sound(soundness.pools(row, row + 1))) {
            of_rows.pool(row);
            derived.pool(row);
        } else if (table == 1 && is_sound(soundness.slots(row, row + 1))) {
            of_rows.slot(row);
            if (parts.book) slot_in_book(parts, row, &wrongs);
        } else if (table == 2 && is_sound(soundness.claims(row, row + 1))) {
            of_rows.claim(row);
            derived.claim(row);
            if (parts.book) claim_in_book(parts, row, &wrongs);
        } else if (table == 3 && is_sound(soundness.leases(row, row + 1))) {
            of_rows.lease(row);
            derived.lease(row);
            if (parts.book) lease_in_ledger(parts, row, &wrongs);
        }
    };
    const std::array<uint32_t, 4> ends = {
        state.counters->pools, state.slots.size(), state.claims.size(), state.leases.size()};
    uint64_t row = *cursor;
    size_t table = 0;
    for (uint32_t seen = 0; table < ends.size();) {
        if (row >= ends[table]) {
            row -= ends[table++];
        } else if (seen++ < rows) {
            look(table, static_cast<uint32_t>(row++));
        } else {
            break;
        }
    }
    *cursor = table < ends.size() ? *cursor + rows : 0;
    return wrongs;
}

}  // namespace dibs::core
